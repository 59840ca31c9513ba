/* A batch while it is made and run: what the files of batch/ share. */
#pragma once

#include "session/batch/batch.h"
#include "session/launch/internal.h"

/* ---- batch_builtin.c ---- */
/* b->calls[i] for the LAUNCH of a built-in kernel, sealed; errors as of builtin_open(), and the session's when the worker session was lost. */
enum status batch_builtin_open(struct batch *b, unsigned i, struct problem *why);

/* "$name" and the buffer that it stands for; NULL before its ALLOC and after its FREE. */
struct batch_name {
    struct entry        entry;
    struct temp_buffer *temp;
};

/* Where a segment of the request goes as it comes. */
struct batch_target {
    unsigned            op;       /* that uses it */
    bool                direct;   /* else into `temp`, and from there at its operation's time */
    struct temp_buffer *temp;     /* NULL: into the session's own buffer */
    struct transfer    *transfer; /* NULL: not begun, or finished */
    uint64_t            left;     /* not yet taken */
    bool                sent;     /* all of it is on its way to the device */
};

/* One record. A later one of the same name is another. */
struct batch_event {
    struct span       name;
    uint32_t          stream;
    struct event_name id; /* the worker session's; given back when the batch's calls are done */
};

/* An operation that waits to go to the worker together with others. */
struct batch_item {
    unsigned          op;
    enum message      message;
    struct module    *module;                                      /* LAUNCH: held */
    struct event_name event;                                       /* EVENT_RECORD, EVENT_WAIT */
    unsigned char     launch[offsetof(struct msg_launch, params)]; /* LAUNCH: but for the parameters */
};

/* Operations that follow each other on one stream. */
struct command_batch {
    struct batch_item *items; /* [RUN_ITEMS_MAX] */
    unsigned           count;
    uint32_t           stream;
    enum status        failed; /* of the item behind those that were sent */
    struct problem     why;
};

/* One call on its way. They are looked at in the order of their submission. */
struct flight_call {
    struct call   call; /* first: events find it by it */
    struct batch *batch;
    unsigned      op;
    bool          landed; /* under batch.lock */
    bool          runs;   /* its worker has told so */
    enum message  message;
    uint32_t      stream;
    uint64_t      tag;   /* LAUNCH */
    struct slice  slice; /* MEM_READ, lists: data NULL = none, or no longer */
    char         *to;    /* MEM_READ */
    size_t        bytes;
    unsigned      first, count;     /* lists: their operations in batch.listed; count 0 = no list */
    uint32_t      completed, group; /* lists: as the state said at the end */
};

/* How long the operations of a batch may run, and have run; what they wait for other work does not count. */
struct batch_clock {
    pthread_mutex_t lock; /* of flight_call.runs and all but limit_ns; inside everything else */
    uint64_t        limit_ns;
    uint64_t        ran_ns;   /* before since_ns */
    uint64_t        since_ns; /* when the first of those that run began */
    unsigned        running;  /* calls of which the worker has told that they run */
};

/* Where the bytes of a READ lie that are not held in host memory. */
struct batch_later {
    struct temp_buffer *temp; /* NULL: none */
    uint64_t            offset;
};

struct batch {
    struct session          *session;        /* pinned */
    struct worker_session   *worker_session; /* a reference */
    const struct batch_spec *spec;
    unsigned                 kinds[BATCH_KINDS]; /* how many operations of each kind it has: what it has none of is not looked for */
    struct temp_buffer      *temp_buffers;       /* all, kept ones too */
    struct table             names;
    struct batch_name       *name_items; /* [ALLOCs] */
    unsigned                 names_count;
    struct batch_target     *targets; /* [spec.segments_count] */
    struct batch_target     *unsent;  /* the last one that bytes came for */
    struct batch_result     *results; /* [spec.ops_count] */
    struct batch_event      *events;  /* [RECORDs] */
    unsigned                 events_count;
    struct command_batch     list;
    unsigned                *listed; /* [spec.ops_count]: the operations of the lists that were sent, one list behind the other */
    unsigned                 listed_count;
    bool                     preparing;  /* a program: nothing is sent */
    unsigned                 graph_next; /* of a program's graphs */
    struct batch_group      *groups;     /* [LAUNCHes]: those timed together */
    unsigned                 groups_count;
    struct temp_buffer     **kept;   /* [spec.keep_count] */
    struct module           *module; /* a reference; NULL: none */
    char                     module_id[ID_BYTES];
    uint64_t                 answer_bytes, output_bytes;
    struct batch_clock       clock;
    struct batch_times       times;       /* but for kernel_ms */
    double                   kernel_us;   /* of what has landed; of what is not timed by the worker's clock */
    unsigned                 timed_count; /* results of launches that are timed each */
    bool                     holds_text;  /* a kernel has printed: a result has output */
    struct builtin_call    **calls;       /* [spec.ops_count]: LAUNCHes of built-in kernels; owned */
    unsigned                 calls_count; /* of them, those that there are */
    struct temp_buffer      *scratch;     /* of the latest of them that takes some; one of `temp_buffers`, or the program's */
    uint32_t                 scratch_slot;
    struct batch_later      *later;    /* [spec.ops_count], NULL without a READ: those whose bytes stayed on the device */
    batch_unwanted          *unwanted; /* NULL: nobody is to be asked */
    void                    *unwanted_context;
    bool                     alone;    /* on its session */
    bool                     given_up; /* of the batch's thread */
    bool                     open;     /* under session.lock: counted in worker_session.batches */
    bool                     succeeded;
    bool                     begun; /* by batch_begin(), and not ended: it has a use of the worker session, and the program's turn */
    uint64_t                 began_ns;
    unsigned                 done; /* operations before this one were done, as far as is known; of the batch's thread */

    pthread_mutex_t           lock; /* of flight_call.landed, `awaited`, `woken` and `end_...`; inside everything else */
    pthread_cond_t            landed;
    const struct flight_call *awaited;   /* whose landing wakes who waits */
    struct waker             *end_waker; /* of one that has begun: woken when it has landed */
    struct reap_item         *end_item;  /* ... or this is posted, when nobody waits any more */
    struct waker              waker;     /* of batch_write_all() */
    bool                      woken;
    struct flight_call       *flights; /* [BATCH_CALLS_IN_FLIGHT_MAX], a ring */
    unsigned                  head, count;
    uint64_t                  submitted, reaped;                      /* serial numbers */
    enum status               failed;                                 /* the first call that failed, in the order of operations */
    unsigned                  failed_op, failed_last;                 /* one of these failed */
    unsigned                  completed;                              /* all operations before this one are known to be done */
    bool                      failed_kernels;                         /* those are of calls that run kernels */
    bool                      failed_lost;                            /* ... and ended with the worker session */
    bool                      suspected[STREAMS_PER_SESSION_MAX + 1]; /* streams, by slot, whose first failed call was looked at */
    struct problem            failure;
};

/* ---- batch.c ---- */
/* Marks *why as that operation's. */
enum status batch_set_failed_op(struct problem *why, enum status st, unsigned op, unsigned completed);
/* It, or one of those behind it up to `last`. */
void batch_set_failed_op_up_to(struct problem *why, unsigned last);
/* The buffer of that name: "$name", ":<variable>" or an id. With session.lock held. */
struct buffer     *batch_buffer(struct batch *b, struct span name);
struct batch_name *batch_name_of(struct batch *b, struct span name);
/* It changes nothing any more: a snapshot need not wait for it. With session.lock held. */
void batch_settle(struct batch *b);
/* Makes the buffer of an ALLOC. Needs a use. */
enum status batch_allocate(struct batch *b, const struct batch_op *op, struct problem *why);
/* Frees all buffers that are not kept, and waits for that unless other work of the session stands before it. Needs a use. */
void batch_release(struct batch *b);
/* Waits until all segments are in the device. Needs a use. */
enum status batch_finish_uploads(struct batch *b, struct problem *why);

/* A buffer more, freed with the batch. Needs a use. */
enum status batch_temp_buffer(struct batch *b, uint64_t bytes, struct temp_buffer **out, struct problem *why);

/* ---- session/batch/publish.c ---- notes what became of the batch's launches among the session's events. */
void batch_publish(const struct batch *b);

/* ---- session/batch/measure.c ---- counts what the batch did, for the metrics. */
void batch_measure(const struct batch *b, enum status st);

/* ---- session/batch/read.c ---- a READ of too many bytes to be held: they stay where they are, or a copy of them is made. Needs a use. */
enum status batch_read_later(struct batch *b, unsigned i, uint64_t bytes, struct problem *why);

/* ---- session/batch/begin.c ---- */
/* Its call has landed. With batch.lock held. */
void batch_tell_end(struct batch *b);

/* ---- session/batch/watch.c ---- whether anybody waits for it. Needs a use. CANCELLED when nobody does. */
enum status batch_still_wanted(struct batch *b, struct problem *why);

/* ---- session/batch/flight.c ---- all need a use of the worker session */
struct batch_order {
    unsigned           op;
    enum message       message;
    struct slice       slice; /* MEM_READ: taken over when the call is on its way */
    char              *to;
    struct module     *module;       /* LAUNCH: held while it is made */
    unsigned           first, count; /* lists: as of flight_call */
    unsigned           tried;        /* lists: `op` is the item to begin with, this the first one that had no place */
    uint32_t           stream;
    bool               nothing; /* set by `address`: of no bytes, not to be sent */
    union message_body body;    /* last: most of it is room for a launch's parameters */
};
/* All zeros but for those parameters, which are 32 KiB: zeroing them, too, would take longer than all else that an operation costs here. */
void batch_order_init(struct batch_order *o, unsigned op, enum message m);
/* Fills the message's addresses. With session.lock and submit_lock held. */
typedef enum status batch_address(struct batch *b, struct batch_order *o, struct problem *why);
/* Submits; `address` NULL: the message has no addresses. Waits for earlier ones when too many are under way. Fails when an earlier one has
 * failed. */
enum status batch_submit(struct batch *b, struct batch_order *o, batch_address *address, struct problem *why);
/* The first failure of a call, in the order of submission; b->failed is set. */
enum status batch_failure(struct batch *b, struct problem *why);
/* Until the call with that serial number is done. */
enum status batch_reap_until(struct batch *b, uint64_t serial, struct problem *why);
/* All of them, whatever became of them. */
void batch_drain(struct batch *b);
/* Staging memory, for which earlier reads are finished if need be. */
enum status batch_staging(struct batch *b, size_t bytes, struct slice *out, struct problem *why);

/* ---- session/batch/event.c ---- places of events, which all batches of a worker session share. */
/* No call that names them is under way. */
void device_events_give(struct worker_session *c, const struct batch_event *events, unsigned count);

enum status batch_run_record(struct batch *b, unsigned i, struct problem *why);
enum status batch_run_wait(struct batch *b, unsigned i, struct problem *why);
enum status batch_run_elapsed(struct batch *b, unsigned i, struct problem *why);
enum status batch_run_sync(struct batch *b, unsigned i, struct problem *why);

/* ---- session/batch/command_batch.c ---- operations go to the worker many at a time. All need a use of the worker session. */
/* Puts it behind the others; sends them first when they are of another stream or too many. The item's module goes over, on failure too. */
enum status command_batch_add(struct batch *b, uint32_t stream, const struct batch_item *item, struct problem *why);
/* Sends what was collected. Everything that must come behind it calls this first. */
enum status command_batch_send(struct batch *b, struct problem *why);
/* Forgets it. */
void command_batch_drop(struct batch *b);
/* Before a list is sent: where its state will be may be that of an earlier one, which must not count when the worker ends before it takes the list. */
void command_batch_unstarted(const struct slice *slice);
/* What the state in the call's slice says; the slice may be given back afterwards. */
void command_batch_landed(struct batch *b, struct flight_call *f);

/* ---- session/batch/run.c ---- */
/* An answer that is held as a whole has room for all that the READs want, as far as their buffers are there: what does not fit is refused before anything
 * is done. */
enum status batch_check_reads(struct batch *b, struct problem *why);
/* A call that was waited for: a fault in it is the session's. */
enum status batch_noted(struct worker_session *c, enum status st, const struct problem *why);
/* Fills the message of an item that is not sent alone. With session.lock and submit_lock held. */
enum status batch_item_address(struct batch *b, const struct batch_item *item, struct batch_order *o, struct problem *why);
/* Makes or finds the module of a batch or program, a reference in *out. Blocks. *out may be set on failure, too. */
enum status batch_make_module(struct worker_session *c, const struct module_spec *source, struct arena *arena, struct module **out,
                              struct problem *why);
enum status batch_time_left(struct batch *b, uint64_t *ms, struct problem *why);
/* Of limit_ns; 0: nothing. */
uint64_t batch_ns_left(struct batch *b);
uint64_t batch_limit_ns(const struct batch *b);
