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

enum status fleet_check_endpoint(const struct config *c, struct problem *why)
{
    if (!c->endpoint[0] || node_url_valid(span_of(c->endpoint)))
        return STATUS_OK;
    return problem_set(why, STATUS_INVALID_REQUEST,
                       "an endpoint is http:// or https://, a host and, if it is another, a port: https://n1.example.com:8080");
}
