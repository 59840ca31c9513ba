/* Batches: many operations in one go on one session, with buffers that live as long as the batch. No HTTP, no CUDA.
 *
 * batch_create() makes the buffers, batch_write() streams the segments of the request into them, batch_run() does the operations in
 * order. Device work is pipelined: an operation waits on the host only for what it needs. One thread at a time per batch. */
#pragma once

#include "base/threads/reaper.h"
#include "session/session.h"

enum batch_kind {
    BATCH_ALLOC,
    BATCH_WRITE,
    BATCH_COPY,
    BATCH_FILL,
    BATCH_LAUNCH,
    BATCH_READ,
    BATCH_FREE,
    BATCH_RECORD,
    BATCH_WAIT,
    BATCH_ELAPSED,
    BATCH_SYNC,
};
enum { BATCH_KINDS = BATCH_SYNC + 1 };

struct program;

enum { BATCH_NO_SEGMENT = -1 };

/* Buffers are named by an id of the session, or by the batch's own "$name". */
struct batch_op {
    enum batch_kind           kind;
    struct span               to;          /* ALLOC: the new "$name"; WRITE, COPY, FILL; FREE: which; RECORD, WAIT, ELAPSED: an event */
    struct span               from;        /* COPY, READ; ELAPSED: an event */
    uint64_t                  offset;      /* in `to`, of a READ in `from` */
    uint64_t                  from_offset; /* COPY */
    bool                      has_bytes;   /* else: to the end (of the shorter one) */
    uint64_t                  bytes;       /* of what is made, copied, filled or read */
    int                       segment;     /* ALLOC, WRITE: index of the request's segment with the contents */
    uint64_t                  pattern;     /* FILL */
    unsigned                  pattern_bytes;
    struct span               stream; /* LAUNCH, RECORD, WAIT, SYNC (has_stream: that one, else all) */
    bool                      has_stream;
    const struct launch_spec *launch; /* id and timeout unused; module empty: the batch's */
};

struct batch_spec {
    const struct batch_op    *ops; /* checked: every segment is used once, every "$name" is made once and before its use */
    unsigned                  ops_count;
    const uint64_t           *segments; /* sizes of those that come with the request, in the order of their coming */
    unsigned                  segments_count;
    const struct span        *keep; /* "$names" that stay as buffers of the session */
    unsigned                  keep_count;
    const struct module_spec *source;           /* a module to be made or found; NULL: none */
    struct span               module;           /* or one of the session */
    bool                      evict;            /* when the session has no room for another module: unload all others first */
    struct program           *program;          /* a run of it: with its buffers, modules and graphs; NULL: a batch of its own. Borrowed */
    bool                      prepare;          /* with program: batch_prepare() follows, no segments and no run */
    uint64_t                  timeout_ms;       /* of all operations together; 0 = the default */
    uint64_t                  answer_bytes_max; /* of all READs together, as they are held in host memory */
    const char               *answer_limit;     /* that bound's name */
    bool                      answer_streams;   /* READs beyond it stay on the device until batch_read_begin(); else they are refused */
};

/* What became of one operation. */
struct batch_result {
    bool   vendor;     /* LAUNCH of a built-in kernel: a library did it */
    bool   timed;      /* LAUNCH: gpu_us is its own time on the device */
    double gpu_us;     /* LAUNCH */
    double elapsed_us; /* ELAPSED, by the device's clock */
    char  *output;     /* LAUNCH: printf text; owned by the batch */
    size_t output_bytes;
    bool   output_truncated;
    char  *data; /* READ: owned by the batch; NULL when it stayed on the device */
    size_t data_bytes;
};

/* Operations whose launches were timed together: from the start of the first to the end of the last. */
struct batch_group {
    unsigned first_op, last_op;
    double   gpu_us;
};

struct batch;

/* Makes the buffers that the operations up to the first FREE allocate, all or none. *spec and all it points to is borrowed for the
 * batch's life. May wait for the worker. A failure names the operation (problem.op_index). */
enum status batch_create(struct session *s, const struct batch_spec *spec, struct batch **out, struct problem *why);
/* Bytes of the segments, one segment after the other, each from its start. PENDING registers w. Never blocks. */
enum status batch_write(struct batch *b, unsigned segment, struct span piece, size_t *consumed, struct waker *w, struct problem *why);
/* The same for all segments at once. Blocks; CANCELLED when nobody waits for the batch any more. */
enum status batch_write_all(struct batch *b, const struct span *segments, struct problem *why);
/* From now on batch_write_all() and batch_run() ask this, on their thread, now and then: when it says that nobody waits for the batch any
 * more, no further operation is given to the device, and the batch ends as CANCELLED once what it was given is done. `alone`: nothing else
 * is on the session, which is ended at once, and a kernel that runs with it. */
typedef bool batch_unwanted(void *context);
void         batch_watch(struct batch *b, batch_unwanted *unwanted, void *context, bool alone);
/* An operation was given to the device. */
bool batch_begun(const struct batch *b);
/* Segments have gone straight into buffers of the session: if the batch ends now, what they overwrote is indeterminate. */
bool batch_overwrote(const struct batch *b);
/* Makes the module, waits for the segments, does the operations, and waits until all is done. Then the buffers are freed, but for
 * those that are kept. The first failure ends it, with op_index and completed_ops unless it concerns no operation; operations behind
 * the failed one may have run, as they were under way already. Blocks. */
enum status batch_run(struct batch *b, struct arena *arena, struct problem *why);

/* A run of a program that is one graph, on a thread that must not wait. False: it is to be waited for something, or something is wrong: nothing
 * was done, and batch_run() does it all. Else it is under way, and was waited for as long as a thread spins: batch_run() ends it, which does not
 * block once it has landed. */
bool batch_begin(struct batch *b);
/* Of one that has begun. False: w is woken when it has landed, unless another one is given or batch_end_later() is called before. */
bool batch_landed(struct batch *b, struct waker *w);
/* It has begun, and batch_run() has not ended it. */
bool batch_is_under_way(const struct batch *b);
/* Of one under way: has the registry's reaper run the item once it has landed. */
void batch_end_later(struct batch *b, struct reap_item *item);

/* As batch_run() but for segments and results: everything is checked, nothing runs, and the graphs of spec.program are made. */
enum status batch_prepare(struct batch *b, struct problem *why);

/* After a successful run. */
const struct batch_result *batch_result_of(const struct batch *b, unsigned op);
/* Whether any operation but a READ has something to tell. */
bool batch_has_results(const struct batch *b);
bool batch_has(const struct batch *b, enum batch_kind kind);
/* What a READ has in host memory, for the caller to free; NULL when it stayed on the device. */
char *batch_data_take(struct batch *b, unsigned op);
/* A READ's bytes that stayed on the device, as they were at its place among the operations. At most once for each; the transfer must be
 * destroyed before the batch. Fails when the session has been reset since. Never blocks. */
enum status batch_read_begin(struct batch *b, unsigned op, struct transfer **out, struct problem *why);
/* In the order of the operations; borrowed. */
const struct batch_group *batch_groups_of(const struct batch *b, unsigned *count);
const char               *batch_kept_id(const struct batch *b, unsigned keep); /* the id of keep[i] */
const char               *batch_module_id(const struct batch *b);              /* of the module made from source; "" = none */
/* Where the time went, in ms. */
struct batch_times {
    double compile_ms; /* for making or finding the module, and those of built-in kernels, which are compiled at their first use */
    double upload_ms;  /* waiting for the segments to be in the device's memory */
    double queue_ms;   /* ... and then for launches that were queued before */
    double run_ms;     /* for the operations, without compile_ms */
    double kernel_ms;  /* of its kernels, by the device's clock; of those that are not timed by the worker's */
};
struct batch_times batch_times_of(const struct batch *b);

/* In any state. Lets go of w and frees what is left in the background; does not block. NULL is a no-op. */
void batch_destroy(struct batch *b);
