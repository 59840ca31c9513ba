/* What proxies say about their clients: the PROXY protocol, version 2, and the fields X-Forwarded-For and Forwarded (RFC 7239). Texts and bytes
 * in, addresses out; who is trusted is the operator's list of networks. */
#ifndef GPUREST_HTTP_PROXIES_H
#define GPUREST_HTTP_PROXIES_H

#include <netinet/in.h>

#include "base/problem.h"
#include "limits.h"

/* IPv4 addresses are in their mapped form, ::ffff:a.b.c.d. All zeros: none is known. */
struct ip_address {
    unsigned char bytes[16];
};

struct network {
    struct ip_address address;
    unsigned          bits; /* of the mapped form */
};

struct networks {
    struct network items[TRUSTED_PROXIES_MAX];
    unsigned       count;
};

/* "10.0.0.0/8", "2001:db8::/32", or an address alone. INVALID_REQUEST with the reason. */
enum status networks_add(struct networks *n, const char *text, struct problem *why);
bool        networks_hold(const struct networks *n, const struct ip_address *a);

/* The whole text is an address. */
bool ip_parse(struct span text, struct ip_address *out);
/* The address of a socket's peer; all zeros for other families. */
struct ip_address ip_of_peer(const struct sockaddr_storage *a);
/* Back, for whoever reads socket addresses. */
struct sockaddr_storage ip_to_peer(const struct ip_address *a);
enum { IP_TEXT_BYTES = INET6_ADDRSTRLEN };
/* As people write it; returns `out`. */
const char *ip_text(const struct ip_address *a, char out[IP_TEXT_BYTES]);

enum proxy_verdict {
    PROXY_NONE,  /* the bytes are no such header */
    PROXY_SHORT, /* more of it must come */
    PROXY_BAD,   /* it has the signature, and is wrong or too long */
    PROXY_LOCAL, /* the proxy speaks for itself */
    PROXY_CLIENT,
};

struct proxy_header {
    size_t            bytes; /* of LOCAL and CLIENT: what is to be taken off */
    struct ip_address client;
};

/* Of the first bytes of a connection. */
enum proxy_verdict proxy_header_read(const unsigned char *data, size_t bytes, struct proxy_header *out);

/* Who sent a request whose connection belongs to *client, a trusted proxy: changes *client to the last address in the fields that is not
 * itself a trusted proxy's. It stops at what is no address, with the proxy that wrote it; where the two fields differ nobody knows which of
 * them the proxy wrote, and *client stays as it is. */
void forwarded_client(const struct networks *trusted, struct span x_forwarded_for, struct span forwarded, struct ip_address *client);

#endif
