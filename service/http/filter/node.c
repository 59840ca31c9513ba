/* Requests that are meant for another node: a router has sent them to the wrong one, or their client goes around it. Refused before the body is
 * read, with the node's name. */
#include "base/node.h"
#include "http/engine/internal.h"

static enum status check_name(struct exchange *x, struct span named)
{
    if (!named.bytes || span_is(named, x->loop->server->config.node))
        return STATUS_OK;
    return problem_node(&x->r.problem, named);
}

static enum status check_header(struct exchange *x)
{
    struct span named = span_trim(exchange_header(x, "Gpurest-Node"));

    if (named.data && !node_name_valid(named))
        return problem_set(&x->r.problem, STATUS_INVALID_HEADER,
                           "Gpurest-Node must be a node's name: 1 to %d characters of a-z, 0-9 and '-', the first one no '-'",
                           NODE_NAME_CHARS_MAX);
    return check_name(x, named);
}

/* The first parameter names what the path is about. What a session holds is where the session is, even if another node has named it: a batch whose
 * session has moved since. Handlers know sessions by their names without the node. Pages have file names, which are no ids. */
static enum status check_params(struct exchange *x)
{
    struct span rest, node;

    if (!span_starts(span_of(x->r.endpoint->path), "/v1/"))
        return STATUS_OK;
    node = node_of_id(x->r.params[0], &rest);
    if (strstr(x->r.endpoint->path, "/{sid}"))
        x->r.params[0] = rest;
    return check_name(x, node);
}

enum status node_check(struct exchange *x)
{
    const char *own = x->loop->server->config.node;
    enum status st;

    if (!own || !own[0])
        return STATUS_OK;
    st = check_header(x);
    return st ? st : check_params(x);
}
