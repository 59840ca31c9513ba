/* One request as handlers see it. Only the thread that runs the handler touches it. */
#pragma once

#include <pthread.h>

#include "base/arena.h"
#include "base/problem.h"
#include "base/rate.h"
#include "base/threads/waker.h"
#include "http/bounds.h"
#include "http/message/reply.h"
#include "http/message/route.h"
#include "http/message/trace.h"

enum { REQUESTS_PER_S_UNSET = INT32_MAX };

/* The caller of requests. Lives as long as the server; compared by pointer. */
struct caller {
    char               name[CALLER_NAME_BYTES];
    unsigned           scopes;           /* bits of enum scope */
    unsigned           sessions_max;     /* SESSIONS_PER_CALLER_MAX unless the tokens file says otherwise */
    uint64_t           memory_max_bytes; /* over all its sessions; MEMORY_LIMIT_NONE: unlimited */
    uint64_t           expires_wall_s;   /* 0 = never */
    uint32_t           requests_per_s;   /* 0 = unlimited; REQUESTS_PER_S_UNSET: the server's default */
    struct rate_bucket requests;
    _Atomic unsigned   in_flight;
    _Atomic unsigned   event_streams;
    _Atomic unsigned   idempotency_keys; /* remembered keys, see idempotency.h */
    uint64_t           held_bytes;       /* under held_bodies.lock */
    unsigned           executor_threads; /* that serve its requests; under the executor's lock */
    unsigned           io_threads;       /* likewise; under the lock of the I/O threads */
};

/* Host memory of all requests' held bodies. */
struct held_bodies {
    pthread_mutex_t lock;
    uint64_t        bytes;
};

/* Where the time of a compute request went, in milliseconds; 0: no such part. Sent as Server-Timing with every answer, problems
 * included, once it is `known`. */
struct timing {
    bool   known;
    double wake_ms;   /* until a hibernated session was awake, before the body was read; 0: it was */
    double recv_ms;   /* from the header to the last byte of the body */
    double queue_ms;  /* waiting for its turn */
    double h2d_ms;    /* from the last byte of the body until all of it is in device memory */
    double kernel_ms; /* of all kernels, by the device's clock */
    double d2h_ms;    /* until the first bytes of the answer have arrived, or all of them if the answer is held */
};

/* Where a streamed body goes. All on the loop's thread, with two exceptions: a long body that was offloaded to an I/O thread, then all but abort
 * on that one; and a body that was held until its end, which is written on the executor. A sink has write, or borrow and commit; if it has all, only an offloaded
 * body is borrowed for. */
struct body_sink {
    /* Takes up to piece.bytes and sets *consumed. PENDING: it took *consumed bytes (maybe 0), and registered r->waker or set r->prepare;
     * it is called again with the rest after that wake, or after prepare. After a failure the rest of the body is read and dropped, then
     * the failure is answered. */
    enum status (*write)(struct body_sink *s, struct request *r, struct span piece, size_t *consumed);
    /* (optional) Called once if the request ends before its handler has run: client gone, stalled or refused. */
    void (*abort)(struct body_sink *s);
    /* The sink's own memory, into which the body is copied, or received when it is offloaded. The handler of an offloaded one runs on the I/O
     * thread, may block, must not return PENDING and must not answer with a source.
     * borrow: where the next bytes go, never none. Outcomes as of write. Whether or not r->waker was registered, a wake while the
     * memory is lent says that it is wanted back at once.
     * commit: `bytes` of it were filled, maybe 0. Follows every successful borrow before anything else is called. */
    enum status (*borrow)(struct body_sink *s, struct request *r, char **to, size_t *room);
    enum status (*commit)(struct body_sink *s, struct request *r, size_t bytes);
    /* (optional) The number of bytes it must get; 0: unknown. For bodies without a Content-Length. */
    uint64_t bytes;
};

/* Gives it up to piece.bytes, in either way. Outcomes as of write. */
enum status body_sink_write(struct body_sink *s, struct request *r, struct span piece, size_t *consumed);

/* "Prefer: wait=N", "respond-async", "handling=lenient", "return=minimal" (RFC 7240). wait_s is UINT64_MAX when absent. */
struct prefer {
    bool     respond_async;
    bool     lenient;
    bool     minimal; /* 204 where the answer has nothing to tell */
    uint64_t wait_s;
};

struct request {
    const struct endpoint *endpoint;
    enum method            method;                   /* as sent: HEAD stays HEAD */
    struct span            path;                     /* raw, without the query */
    struct span            params[ROUTE_PARAMS_MAX]; /* decoded */
    struct prefer          prefer;                   /* for request_prefer() alone */
    bool                   prefer_read;
    char                   id[REQUEST_ID_BYTES];  /* X-Request-Id */
    char                   trace[TRACE_ID_BYTES]; /* of traceparent; "" = none */
    struct timing          timing;
    struct caller         *caller;         /* never NULL in a handler */
    bool                   has_body_bytes; /* body_bytes is known (Content-Length) */
    uint64_t               body_bytes;
    bool                   wants_inline; /* the body is checked as it arrives, so it must not be offloaded. Set before begin */
    /* For work that a sink must wait for before it can take bytes: the sink sets this and returns PENDING. Called once, on the executor
     * or on the receiving I/O thread, where it may block; it must not return PENDING. A failure ends the body as a failure of write
     * does. */
    enum status (*prepare)(struct request *r);
    /* An ON_LOOP handler that would block sets this and returns PENDING; it is called again on the executor. Its begin sets it when that is known
     * already. */
    bool                  wants_executor;
    bool                  is_local;    /* over a Unix socket, HTTP/1.1: the answer may carry a descriptor */
    bool                  wants_whole; /* the answer will be stored: up to IDEMPOTENCY_ANSWER_BYTES_MAX it must be a body, not a source */
    struct span           body;        /* collected body; empty for streamed ones */
    struct json_document *document;    /* the handler's: of the body, parsed; destroyed when it returns */
    struct body_sink     *sink;        /* set by begin for a streamed body; owned by whoever set it */
    struct arena          arena;       /* freed with the request */
    struct reply          reply;
    struct problem        problem;
    void                 *app;            /* the application's: struct app of api/; http does not look inside */
    void                 *entered;        /* of server_config.enter, initially NULL */
    void                 *progress;       /* the handler's own, initially NULL */
    void (*on_finish)(struct request *r); /* (optional) set by begin or handler; called once when the request is over, in any case */
    unsigned                   calls;
    struct waker               waker;      /* a handler registers it to be called again */
    uint64_t                   wake_at_ns; /* the handler is also called again at this time; initially DEADLINE_NEVER */
    uint64_t                   received_ns;
    uint64_t                   held_bytes; /* counted by request_hold */
    const struct request_port *port;       /* functions of the server */
};

/* What a request needs of the server; tests provide their own. */
struct request_port {
    /* A header's value, {NULL,0} if absent. Borrowed for the request's life. */
    struct span (*header)(const struct request *r, const char *name);
    /* True once the client is known to be gone. */
    bool (*gone)(const struct request *r);
    /* True once the request's token is no longer valid. NULL: it always is. */
    bool (*revoked)(const struct request *r);
    struct span         query; /* raw text after '?', may be empty */
    struct held_bodies *held;  /* shared by all requests of the server; NULL: not counted */
};

/* Before the body: refuses query parameters that the endpoint has not, unless the client asked for leniency, and malformed conditions where
 * they count, which must not be ignored and let a write pass; then the endpoint's begin. */
enum status request_begin(struct request *r);
/* Calls the handler. */
enum status request_handle(struct request *r);

struct span request_header(const struct request *r, const char *name);
bool        request_gone(const struct request *r);
/* Percent-decodes the route's parameters into the request's: clients may write cpu%3A0 for cpu:0. INVALID_REQUEST for a bad escape. */
enum status request_take_params(struct request *r, const struct route *route);
/* Whether the request's token was revoked or has expired since it was admitted: a waiting request then ends. A request that is woken
 * asks again. */
bool request_revoked(const struct request *r);
/* Percent-decoded value of a query parameter, from the arena. False if it is absent. */
bool request_query(struct request *r, const char *name, struct span *out);
/* UNKNOWN_FIELD when the query has a name that is not in `names` (NULL-terminated), INVALID_FIELD when a name is repeated or badly
 * encoded. */
enum status request_query_only(struct request *r, const char *const *names);

/* Call this before holding bytes of a long body in memory: OVERLOADED when all requests together would hold more than
 * HELD_BODIES_BYTES_MAX, or the caller's more than its portion of it (base/portion.h). Counts until request_release(), which the server
 * also calls at the request's end. */
enum status request_hold(struct request *r, uint64_t bytes);
/* Whether that many bytes could be held now; counts nothing. */
enum status request_may_hold(struct request *r, uint64_t bytes);
/* What all requests of this request's caller hold now. */
uint64_t request_held_by_caller(const struct request *r);
void     request_release(struct request *r);

/* Read once, however often it is asked for. */
struct prefer request_prefer(struct request *r);

/* Whether Accept admits this type ("application/json"). True without the header. */
bool request_accepts(const struct request *r, const char *media_type);
/* The media type without parameters, such as "application/json"; empty without Content-Type. */
struct span request_media_type(const struct request *r);
