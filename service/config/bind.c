/* Checks listen addresses before anything is bound. */
#include "config/bind.h"

#include <arpa/inet.h>

static struct span host_of(const char *listen)
{
    struct span text = span_of(listen);
    const char *colon = memrchr(text.data, ':', text.bytes);

    if (colon)
        text.bytes = (size_t)(colon - text.data);
    if (text.bytes >= 2 && text.data[0] == '[' && text.data[text.bytes - 1] == ']')
        text = (struct span){text.data + 1, text.bytes - 2};
    return text;
}

/* A host name other than localhost may resolve to any address, so it is not local. */
bool address_is_local(const char *listen)
{
    char            host[64];
    struct in_addr  v4;
    struct in6_addr v6;

    if (span_starts(span_of(listen), "unix:"))
        return true;
    if (!span_copy(host_of(listen), host, sizeof host))
        return false;
    if (strcmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

enum status bind_check(const struct config *c, struct problem *why)
{
    for (unsigned i = 0; i < c->listen.count; i++) {
        const char *address = c->listen.items[i];

        if (address_is_local(address))
            continue;
        if (c->tokens[0] == '\0' && !c->insecure_no_auth)
            return problem_set(why, STATUS_INVALID_REQUEST,
                               "%s can be reached from other machines without a token: give --tokens FILE, or "
                               "--insecure-no-auth to serve everyone",
                               address);
        if (c->tls_cert[0] == '\0' && !c->allow_plaintext)
            return problem_set(
                why, STATUS_INVALID_REQUEST,
                "%s can be reached from other machines without encryption: give --tls-cert and --tls-key, put a TLS proxy in "
                "front and serve 127.0.0.1, or give --allow-plaintext",
                address);
    }
    return STATUS_OK;
}
