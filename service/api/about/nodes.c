/* The nodes of the fleet, as the router that passed the request on knows them; without a router this node alone. */
#include "api/call.h"
#include "api/endpoints.h"
#include "base/node.h"

/* "n1 up https://n1.example.org:8080": the state and the URL may be missing. */
struct told_node {
    struct span name, state, endpoint;
};

static bool parse_node(struct span text, struct told_node *out)
{
    struct span rest = span_trim(text);

    out->name = span_cut(&rest, ' ');
    out->state = span_cut(&rest, ' ');
    out->endpoint = rest;
    return node_name_valid(out->name) && (!out->state.bytes || span_is(out->state, "up") || span_is(out->state, "down")) &&
           (!out->endpoint.bytes || node_url_valid(out->endpoint));
}

static void add_told(struct json_writer *w, const struct told_node *n)
{
    json_open_object(w, NULL);
    json_add_string(w, "name", n->name);
    if (n->state.bytes)
        json_add_string(w, "state", n->state);
    else
        json_add_null(w, "state");
    if (n->endpoint.bytes)
        json_add_string(w, "endpoint", n->endpoint);
    json_close_object(w);
}

/* What is no node is left out: whoever wrote it reads the answer. */
static void add_all(struct json_writer *w, struct span told)
{
    struct told_node n;

    while (told.data)
        if (parse_node(span_cut(&told, ','), &n))
            add_told(w, &n);
}

static void add_own(struct json_writer *w, const struct request *r)
{
    const struct config *c = app_of(r)->config;

    json_open_object(w, NULL);
    json_add_text_or_null(w, "name", c->node);
    json_add_text(w, "state", "up");
    if (c->endpoint[0])
        json_add_text(w, "endpoint", c->endpoint);
    json_close_object(w);
}

enum status nodes_list(struct request *r)
{
    struct span   told = request_header(r, "Gpurest-Nodes");
    struct answer a;

    answer_begin(&a);
    json_open_array(&a.w, "items");
    if (told.bytes)
        add_all(&a.w, told);
    else
        add_own(&a.w, r);
    json_close_array(&a.w);
    json_add_null(&a.w, "next_cursor");
    return answer_end(&a, r, 200);
}
