/* Shared by nearly every handler: caller, body, session, paging, answer. */
#pragma once

#include "api/app.h"
#include "http/json/json.h"
#include "http/message/request.h"

static inline struct app *app_of(const struct request *r)
{
    return r->app;
}

struct tenant tenant_of(const struct request *r);

/* Refuses a body that is neither empty nor an empty JSON object. */
enum status nothing_check(struct request *r);

/* A query parameter that is a number; absent: *out stays. */
enum status number_of(struct request *r, const char *name, uint64_t least, uint64_t most, uint64_t *out);
/* A query parameter that is 0 or 1; absent: 0. */
enum status flag_of(struct request *r, const char *name, bool *on);

/* Starts the timing of a compute request whose body has arrived; its answer then says where the time went. */
void timing_begin(struct request *r);
/* Milliseconds since that monotonic time. */
double ms_since(uint64_t start_ns);

/* Parses the body; an empty one counts as {}. What borrows from it does so until the handler returns. */
enum status body_parse(struct request *r, const struct json **root);
/* Decodes the body, an object. */
enum status body_decode(struct request *r, const struct json_field *fields, size_t count, void *out);

/* The id of the path's session as routers of a fleet find its node: a name that the client chose has the node before it. */
struct span sid_of(struct request *r);
/* Members "node" and "endpoint", if the service has such. */
void add_node(struct json_writer *w, const struct request *r);

/* Borrows the session named by the first path parameter; return it with session_return(). */
enum status session_of(struct request *r, struct session **out);
/* The same for one that may be waiting for the confirmation of its move. */
enum status session_pending_of(struct request *r, struct session **out);
/* Runs `call` with the path's session, borrowed meanwhile. */
enum status on_session(struct request *r, enum status (*call)(struct request *r, struct session *s));

/* A JSON answer under construction. answer_begin opens the root object, answer_end closes it, sends it and frees the text. */
struct answer {
    struct buf         text;
    struct json_writer w;
};
void        answer_begin(struct answer *a);
enum status answer_end(struct answer *a, struct request *r, unsigned http_status);

/* A page of a list under construction. */
struct list {
    struct request     *request;
    struct session     *session; /* borrowed; NULL: the path names none */
    struct page         page;    /* ?limit= and ?cursor= */
    void               *items;   /* room for page.limit of them */
    struct json_writer *w;       /* of the array */
};
/* Answers with a page of at most `most` items (0: LIST_ITEMS_MAX): `add` writes them. */
enum status answer_list(struct request *r, unsigned most, size_t item_bytes, void (*add)(struct list *l));

/* Writes a struct problem as a member; nothing for status OK. */
void add_problem(struct json_writer *w, const char *name, const struct request *r, const struct problem *why);
