/* Method and path to a row of the endpoint table. Knows no endpoint: frontend.c hands the table in. */
#ifndef GPUREST_HTTP_ROUTE_H
#define GPUREST_HTTP_ROUTE_H

#include "base/span.h"
#include "base/status.h"
#include "http/bounds.h"
#include "limits.h"

struct request;

enum method { METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_PUT, METHOD_PATCH, METHOD_DELETE, METHOD_COUNT };

/* What a row does with a request body. */
enum body_kind {
    BODY_NONE,   /* a body is 413 (unless empty) */
    BODY_JSON,   /* application/json (415 otherwise), collected up to JSON_BODY_BYTES_MAX; may be empty */
    BODY_SOURCE, /* any media type (the handler decides), collected up to SOURCE_BODY_BYTES_MAX */
    BODY_EITHER, /* application/json collected as BODY_JSON, application/octet-stream streamed, else 415 */
    BODY_BATCH,  /* application/json collected up to BATCH_JSON_BYTES_MAX, BATCH_TYPE streamed, else 415 */
    BODY_STREAM, /* application/octet-stream (415 otherwise), given to request.sink piece by piece */
};

#define BATCH_TYPE "application/vnd.gpurest.batch"

/* Scopes of a token; SCOPE_NONE rows are open to everyone, SCOPE_ANY to every authenticated caller. */
enum scope {
    SCOPE_NONE = 0,
    SCOPE_ANY = 1 << 0,
    SCOPE_READ = 1 << 1,
    SCOPE_WRITE = 1 << 2,
    SCOPE_COMPILE = 1 << 3,
    SCOPE_LAUNCH = 1 << 4,
    SCOPE_METRICS = 1 << 5,
    SCOPE_ADMIN = 1 << 6,
};

/* Where the handler runs. */
enum place {
    ON_LOOP,     /* on the event loop's thread: must not block longer than SPIN_BUDGET_MANY_US */
    ON_EXECUTOR, /* on an executor thread: may block, bounded */
};

/* Fills r->reply, or returns a failure with r->problem set; the server makes the answer of it. May return PENDING after it
 * has registered r->waker somewhere or set r->wake_at_ns: it is then called again, on the same place, once woken.
 * r->calls counts (0 the first time); r->progress is the handler's own, to remember what it did. */
typedef enum status handler_fn(struct request *r);

struct endpoint {
    const char    *operation; /* "buffers_create" */
    enum method    method;
    const char    *path; /* "/v1/sessions/{sid}/buffers": a {name} takes one whole non-empty segment */
    handler_fn    *handle;
    handler_fn    *begin; /* (optional) once, on the loop, when the header is complete and authorised but no body byte was read:
                                 refuses early and sets r->sink for streamed bodies. Must not block, PENDING not allowed */
    enum body_kind body;
    enum scope     scope;
    enum place     place;
    bool           conditional; /* it writes, and looks at If-Match and If-None-Match; of others that write they are refused */
    bool           probe;       /* asks how the service is: answered where no connection and no thread is left for others */
};

struct route {
    const struct endpoint *endpoint;                 /* NULL: see status */
    enum status            status;                   /* OK, NOT_FOUND or METHOD_NOT_ALLOWED */
    struct span            params[ROUTE_PARAMS_MAX]; /* segments for {…}, in order */
    unsigned               params_count;
    char                   allow[64]; /* for METHOD_NOT_ALLOWED: "GET, HEAD, PUT" */
};

/* A HEAD request finds the HEAD row or else the GET row of its path. `path` is the raw target up to '?', undecoded:
 * segments may hold only [A-Za-z0-9._~:-] else NOT_FOUND. */
void route_find(const struct endpoint *table, size_t count, enum method method, struct span path, struct route *out);
/* False when it is no method of ours. */
bool        method_parse(struct span name, enum method *out);
const char *method_name(enum method m);

#endif
