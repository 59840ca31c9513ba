/* From method and path to a row of the endpoint table. Knows no endpoint: frontend.c passes the table in. */
#pragma once

#include "base/span.h"
#include "base/status.h"
#include "http/bounds.h"
#include "limits.h"

struct request;

enum method { METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_PUT, METHOD_PATCH, METHOD_DELETE, METHOD_COUNT };

/* How a row treats a request body. */
enum body_kind {
    BODY_NONE,    /* a body that is not empty is 413 */
    BODY_JSON,    /* application/json (else 415), collected up to JSON_BODY_BYTES_MAX; may be empty */
    BODY_SOURCE,  /* any media type (the handler decides), collected up to SOURCE_BODY_BYTES_MAX */
    BODY_EITHER,  /* application/json collected as BODY_JSON, application/octet-stream streamed, else 415 */
    BODY_SESSION, /* application/json collected as BODY_JSON, SNAPSHOT_TYPE streamed, else 415 */
    BODY_BATCH,   /* application/json collected up to BATCH_JSON_BYTES_MAX, BATCH_TYPE streamed, else 415 */
    BODY_STREAM,  /* application/octet-stream (else 415), passed to request.sink in pieces */
};

#define BATCH_TYPE    "application/vnd.gpurest.batch"
#define SNAPSHOT_TYPE "application/vnd.gpurest.snapshot"

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

/* Fills r->reply, or returns a failure with r->problem set, which the server turns into the answer. May return PENDING after registering
 * r->waker or setting r->wake_at_ns: it is then called again in the same place once woken. r->calls counts the calls (0 the first time);
 * r->progress is the handler's own. */
typedef enum status handler_fn(struct request *r);

enum { ENDPOINT_QUERY_MAX = 4 };

struct endpoint {
    const char    *operation; /* "buffers_create" */
    enum method    method;
    const char    *path; /* "/v1/sessions/{sid}/buffers": a {name} matches one whole non-empty segment */
    handler_fn    *handle;
    handler_fn    *begin; /* (optional) once, on the loop, when the header is complete and authorised but no body byte was read:
                                 refuses early and sets r->sink for streamed bodies. Must not block, PENDING not allowed */
    enum body_kind body;
    enum scope     scope;
    enum place     place;
    bool           conditional;                   /* honours If-Match and If-None-Match; other writes refuse these headers */
    bool           asleep;                        /* its session need not be awake: to the application, see server_config.enter */
    bool           probe;                         /* a health probe: answered even when no connection or thread is left for others */
    const char    *query[ENDPOINT_QUERY_MAX + 1]; /* names of the query parameters that it has; NULL after the last */
};

struct route {
    const struct endpoint *endpoint;                 /* NULL: see status */
    enum status            status;                   /* OK, NOT_FOUND or METHOD_NOT_ALLOWED */
    struct span            params[ROUTE_PARAMS_MAX]; /* the segments of {…}, in order */
    unsigned               params_count;
    char                   allow[64]; /* for METHOD_NOT_ALLOWED: "GET, HEAD, PUT" */
};

/* HEAD finds the HEAD row, else the GET row of its path. `path` is the raw target up to '?', undecoded: segments may hold only
 * [A-Za-z0-9._~:-], else NOT_FOUND. */
void route_find(const struct endpoint *table, size_t count, enum method method, struct span path, struct route *out);
/* False for an unknown method. */
bool        method_parse(struct span name, enum method *out);
const char *method_name(enum method m);
