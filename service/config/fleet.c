/* Checks the node's name and its own address before anything is bound. */
#include "config/fleet.h"

#include "base/node.h"

enum status fleet_check_node(const struct config *c, struct problem *why)
{
    if (!c->node[0] || node_name_valid(span_of(c->node)))
        return STATUS_OK;
    return problem_set(why, STATUS_INVALID_REQUEST,
                       "a node's name has 1 to %d characters of a-z, 0-9 and '-', and starts with a letter or digit", NODE_NAME_CHARS_MAX);
}

static struct span after_scheme(struct span url)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < COUNT(schemes); i++)
        if (span_starts(url, schemes[i]))
            return span_from(url, strlen(schemes[i]));
    return (struct span){0};
}

static bool is_port(struct span port)
{
    uint64_t number;

    return span_u64(port, &number) && number >= 1 && number <= UINT16_MAX;
}

/* "host", "host:port", "[v6]" or "[v6]:port". */
static bool is_authority(struct span text)
{
    bool        v6 = span_starts(text, "[");
    struct span port = text, host = span_cut(&port, v6 ? ']' : ':');

    if (!v6)
        return host.bytes && span_holds_only(host, ".-") && (!port.data || is_port(port));
    if (host.bytes < 2 || !span_holds_only(span_from(host, 1), ".:") || host.bytes == text.bytes)
        return false;
    return !port.bytes || (port.data[0] == ':' && is_port(span_from(port, 1)));
}

enum status fleet_check_endpoint(const struct config *c, struct problem *why)
{
    struct span text = after_scheme(span_of(c->endpoint));

    if (!c->endpoint[0] || is_authority(text))
        return STATUS_OK;
    return problem_set(why, STATUS_INVALID_REQUEST,
                       "an endpoint is http:// or https://, a host and, if it is another, a port: https://n1.example.com:8080");
}
