/* What batch.c, batch_run.c, batch_flight.c and local.c share. */
#ifndef GPUREST_SESSION_BATCH_PARTS_H
#define GPUREST_SESSION_BATCH_PARTS_H

#include "session/batch.h"
#include "session/internal.h"

/* A buffer of a batch. Its id is never told to anybody while it is the batch's. */
struct local {
    struct buffer buffer; /* first: what holds the buffer frees the local */
    struct context *context; /* where it lives; valid while it is in there */
    struct call   call;     /* of its freeing; holds a use of the context */
    struct local *of_batch; /* the batch's next one; the batch holds a reference */
    /* under session.lock */
    bool          orphan; /* to be freed, or being freed */
    bool          gone;   /* neither in context.locals nor on the device; or kept */
    struct local *next;   /* in context.orphans */
};

/* ---- local.c ---- */
/* Device memory under the quotas. Needs a use. May wait for the worker. */
enum status local_create(struct context *c, uint64_t bytes, struct local **out, struct problem *why);
/* With session.lock held: it is freed as soon as the worker takes the call, behind all that was submitted before. */
void local_abandon(struct context *c, struct local *l);
/* With session.lock held: from now on a buffer of the session. */
enum status local_keep(struct context *c, struct local *l, struct problem *why);
/* Waits until it is gone, the context has ended, or launches are under way, whose end its freeing waits for. */
void local_await(struct context *c, struct local *l);

/* "$name" and the buffer that it stands for; NULL before its ALLOC and after its FREE. */
struct batch_name {
    struct entry  entry;
    struct local *local;
};

/* Where a segment of the request goes as it comes. */
struct batch_target {
    unsigned         op;       /* that uses it */
    bool             direct;   /* else into `local`, and from there at its operation's time */
    struct local    *local;    /* NULL: into the session's own buffer */
    struct transfer *transfer; /* NULL: not begun, or finished */
    uint64_t         left;     /* not yet taken */
    bool             sent;     /* all of it is on its way to the device */
};

struct batch_event {
    struct span name;
    uint32_t    stream;
    uint64_t    serial;  /* of the call that marks it */
    uint64_t    done_ns; /* when we saw it done; 0 = not yet */
};

/* One call on its way. They are looked at in the order of their submission. */
struct flight_call {
    struct call         call; /* first: events find it by it */
    struct batch       *batch;
    unsigned            op;
    bool                landed; /* under batch.lock */
    uint64_t            landed_ns;
    uint64_t            tag;   /* LAUNCH */
    struct slice        slice; /* MEM_READ: data NULL = none */
    char               *to;
    size_t              bytes;
    struct batch_event *event; /* STREAM_SYNC of a RECORD */
};

struct batch {
    struct session          *session; /* pinned */
    struct context          *context; /* a reference */
    const struct batch_spec *spec;
    struct local            *locals; /* all, kept ones too */
    struct table             names;
    struct batch_name       *name_items; /* [ALLOCs] */
    unsigned                 names_count;
    struct batch_target     *targets; /* [spec.segments_count] */
    struct batch_target     *unsent;  /* the last one that bytes came for */
    struct batch_result     *results; /* [spec.ops_count] */
    struct batch_event      *events;  /* [spec.ops_count] */
    unsigned                 events_count;
    struct local           **kept; /* [spec.keep_count] */
    struct module           *module; /* a reference; NULL: none */
    char                     module_id[ID_BYTES];
    uint64_t                 answer_bytes, output_bytes;
    uint64_t                 deadline_ns;
    double                   compile_ms, run_ms;

    pthread_mutex_t     lock; /* of flight_call.landed; inside everything else */
    pthread_cond_t      landed;
    struct flight_call *flights; /* [BATCH_CALLS_IN_FLIGHT_MAX], a ring */
    unsigned            head, count;
    uint64_t            submitted, reaped; /* serial numbers */
    enum status         failed; /* the first call that failed, in the order of operations */
    unsigned            failed_op;
    struct problem      failure;
};

/* ---- batch.c ---- */
/* Marks *why as that operation's. */
enum status batch_blame(struct problem *why, enum status st, unsigned op, unsigned completed);
/* The buffer of that name, "$name" or an id. With session.lock held. */
struct buffer *batch_buffer(struct batch *b, struct span name);
struct batch_name *batch_name_of(struct batch *b, struct span name);
/* Makes the buffer of an ALLOC. Needs a use. */
enum status batch_allocate(struct batch *b, const struct batch_op *op, struct problem *why);
/* Frees all buffers that are not kept, and waits for that unless other work of the session stands before it. Needs a use. */
void batch_release(struct batch *b);
/* Waits until all segments are in the device. Needs a use. */
enum status batch_finish_uploads(struct batch *b, struct problem *why);

/* ---- batch_flight.c ---- all need a use of the context */
struct batch_order {
    unsigned            op;
    enum message        message;
    union message_body  body;
    struct slice        slice; /* MEM_READ: taken over when the call is on its way */
    char               *to;
    struct batch_event *event;
    struct module      *module;  /* LAUNCH: held while it is made */
    bool                nothing; /* set by `address`: of no bytes, not to be sent */
};
/* Fills the message's addresses. With session.lock and submit_lock held. */
typedef enum status batch_address(struct batch *b, struct batch_order *o, struct problem *why);
/* Submits; waits for earlier ones when too many are under way. Fails when an earlier one has failed. */
enum status batch_submit(struct batch *b, struct batch_order *o, batch_address *address, struct problem *why);
/* Waits for the oldest. Fails when it, or one before it, has failed. count > 0. */
enum status batch_reap(struct batch *b, struct problem *why);
/* Until the call with that serial number is done. */
enum status batch_reap_until(struct batch *b, uint64_t serial, struct problem *why);
/* All of them, whatever became of them. */
void batch_drain(struct batch *b);
/* Staging memory, for which earlier reads are finished if need be. */
enum status batch_staging(struct batch *b, size_t bytes, struct slice *out, struct problem *why);

#endif
