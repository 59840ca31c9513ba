/* Code that is compiled into the cache ahead of its use, in the background: a job compiles one item after the other, as a request of its caller
 * would, so it takes turns with the caller's requests. Thread-safe.
 *
 * Jobs belong to a caller and to no session. What a job finds or leaves in the cache is its caller's, or of the built-in kernels. */
#pragma once

#include "base/threads/waitlist.h"
#include "kernels/kernels.h"
#include "session/session.h"

/* One compilation to be done: for one device, of a built-in kernel for one dtype, or of a source. */
struct warm_request {
    unsigned              device; /* of the pool */
    const struct builtin *kernel; /* NULL: a source */
    enum builtin_dtype    dtype;  /* of a built-in kernel */
    unsigned              module; /* of a source: which of `modules` */
};

struct warm_spec {
    const struct warm_request *items; /* [items_count], 1 to CACHE_WARM_ITEMS_MAX */
    unsigned                   items_count;
    const struct module_spec  *modules; /* [modules_count]; checked, of IMAGE_CUDA */
    unsigned                   modules_count;
};

/* One of a job's items, as it stands. */
struct warm_item {
    struct warm_request what; /* its kernel is one of the table of built-in kernels */
    enum work_state     state;
    bool                cached;     /* of a source that succeeded: its code was there */
    double              compile_ms; /* of a source that was compiled */
    enum status         status;     /* when it failed */
    char               *detail;     /* ... in words; owned; NULL: no memory for them */
};

struct warm_job;

/* Copies the spec and begins; *out is a reference for warm_job_return(). FEATURE_DISABLED without a cache, COMPILER_UNAVAILABLE,
 * DRAINING, TOO_MANY_IN_FLIGHT (cache_warms), OVERLOADED, OUT_OF_MEMORY. */
enum status warm_job_start(struct registry *r, const struct tenant *t, const struct warm_spec *spec, struct warm_job **out,
                           struct problem *why);
/* NOT_FOUND, also for another caller's. */
enum status warm_job_borrow(struct registry *r, const struct tenant *t, struct span id, struct warm_job **out, struct problem *why);
void        warm_job_return(struct warm_job *j);
/* Jobs of that caller that are under way. */
unsigned warm_jobs_of(struct registry *r, const struct tenant *t);

struct warm_info {
    char            id[ID_BYTES];
    enum work_state state;
    uint64_t        created_wall_ns, finished_wall_ns; /* 0: not yet */
    uint64_t        expires_wall_ns;                   /* 0: not finished */
    unsigned        items_count, succeeded, failed;
};
void warm_job_info_of(struct warm_job *j, struct warm_info *out);
/* Item `i` < items_count; detail is borrowed until warm_job_return(). */
void warm_job_item_of(struct warm_job *j, unsigned i, struct warm_item *out);
/* Over when the job has succeeded, failed or been cancelled. */
struct waitlist *warm_job_end(struct warm_job *j);
/* Ends it at once as cancelled; what is being compiled now still goes into the cache. False: it had ended. */
bool warm_job_cancel(struct warm_job *j);
/* One that has ended is found no more. */
void warm_job_forget(struct warm_job *j);
