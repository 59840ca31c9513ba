/* Takes listen addresses apart; for those who listen, who check them, and who probe them. */
#include "http/engine/address.h"

#include <stdint.h>

enum { HOST_BYTES = 64, PORT_BYTES = 8 };

static enum status bad(struct problem *why, const char *what)
{
    return problem_set(why, STATUS_INVALID_REQUEST, "listen address: %s", what);
}

bool address_is_unix(const char *address)
{
    return span_starts(span_of(address), ADDRESS_UNIX_PREFIX);
}

enum status address_unix(const char *address, struct sockaddr_un *out, struct problem *why)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (!span_copy(span_from(span_of(address), strlen(ADDRESS_UNIX_PREFIX)), out->sun_path, sizeof out->sun_path) || !out->sun_path[0])
        return bad(why, "the path of the Unix socket is empty or too long");
    return STATUS_OK;
}

static bool split(const char *address, char host[HOST_BYTES], char port[PORT_BYTES])
{
    const char *colon = strrchr(address, ':');
    struct span head = {address, colon ? (size_t)(colon - address) : 0};
    uint64_t    number;

    if (!colon || !span_u64(span_of(colon + 1), &number) || number > UINT16_MAX)
        return false;
    if (span_starts(head, "[")) {
        if (head.data[head.bytes - 1] != ']')
            return false;
        head = span_first(span_from(head, 1), head.bytes - 2);
    }
    return span_copy(head, host, HOST_BYTES) && span_copy(span_of(colon + 1), port, PORT_BYTES);
}

enum status address_resolve(const char *address, bool passive, struct addrinfo **out, bool *any, struct problem *why)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0)};
    char            host[HOST_BYTES], port[PORT_BYTES];

    if (!split(address, host, port))
        return bad(why, "must be HOST:PORT, [V6]:PORT, :PORT or unix:PATH");
    *any = host[0] == '\0';
    if (*any && passive)
        hints.ai_family = AF_INET6;
    return getaddrinfo(*any ? NULL : host, port, &hints, out) ? bad(why, "unknown host") : STATUS_OK;
}
