/* Checks the node's name and its own address, and where sessions may go, before anything is bound. */
#include "config/fleet.h"

#include "base/node.h"

enum status fleet_check_node(const struct config *c, struct problem *why)
{
    if (!c->node[0] || node_name_valid(span_of(c->node)))
        return STATUS_OK;
    return problem_set(why, STATUS_INVALID_REQUEST,
                       "a node's name has 1 to %d characters of a-z, 0-9 and '-', and starts with a letter or digit", NODE_NAME_CHARS_MAX);
}

enum status fleet_check_endpoint(const struct config *c, struct problem *why)
{
    if (!c->endpoint[0] || node_url_valid(span_of(c->endpoint)))
        return STATUS_OK;
    return problem_set(why, STATUS_INVALID_REQUEST,
                       "an endpoint is http:// or https://, a host and, if it is another, a port: https://n1.example.com:8080");
}

enum status fleet_check_moves(const struct config *c, struct problem *why)
{
    for (unsigned i = 0; i < c->move_to.count; i++) {
        struct span url = span_of(c->move_to.items[i]);

        if (url.bytes >= MOVE_URL_BYTES || !node_url_valid(url))
            return problem_set(why, STATUS_INVALID_REQUEST,
                               "sessions move to http:// or https://, a host and, if it is another, a port: https://n2.example.com:8080");
    }
    return STATUS_OK;
}
