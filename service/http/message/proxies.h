/* What proxies report about their clients: the PROXY protocol, version 2, and the fields X-Forwarded-For and Forwarded (RFC 7239). Texts
 * and bytes in, addresses out. The operator's list of networks says which proxies are trusted. */
#pragma once

#include <netinet/in.h>

#include "base/problem.h"
#include "limits.h"

/* IPv4 addresses are mapped, ::ffff:a.b.c.d. All zeros: unknown. */
struct ip_address {
    unsigned char bytes[16];
};

struct network {
    struct ip_address address;
    unsigned          bits; /* of the mapped address */
};

struct networks {
    struct network items[TRUSTED_PROXIES_MAX];
    unsigned       count;
};

/* "10.0.0.0/8", "2001:db8::/32", or a single address. INVALID_REQUEST with the reason. */
enum status networks_add(struct networks *n, const char *text, struct problem *why);
bool        networks_hold(const struct networks *n, const struct ip_address *a);

/* Parses a text that is one address. */
bool ip_parse(struct span text, struct ip_address *out);
/* The address of a socket's peer; all zeros for other families. */
struct ip_address ip_of_peer(const struct sockaddr_storage *a);
/* The inverse of ip_of_peer(). */
struct sockaddr_storage ip_to_peer(const struct ip_address *a);
enum { IP_TEXT_BYTES = INET6_ADDRSTRLEN };
/* The usual text of an address; returns `out`. */
const char *ip_text(const struct ip_address *a, char out[IP_TEXT_BYTES]);

enum proxy_verdict {
    PROXY_NONE,  /* not a PROXY header */
    PROXY_SHORT, /* incomplete */
    PROXY_BAD,   /* has the signature, but is invalid or too long */
    PROXY_LOCAL, /* the proxy's own connection */
    PROXY_CLIENT,
};

struct proxy_header {
    size_t            bytes; /* LOCAL, CLIENT: length of the header */
    struct ip_address client;
};

/* `data` are the first bytes of a connection. */
enum proxy_verdict proxy_header_read(const unsigned char *data, size_t bytes, struct proxy_header *out);

/* Finds the client of a request that came from *client, a trusted proxy: sets *client to the last address in the fields that is not
 * itself a trusted proxy. Stops at an element that is no address, with the proxy that wrote it. If the two fields differ, *client stays:
 * it is unknown which of them the proxy wrote. */
void forwarded_client(const struct networks *trusted, struct span x_forwarded_for, struct span forwarded, struct ip_address *client);
