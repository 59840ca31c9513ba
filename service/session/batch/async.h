/* Batches in the background: taken into a session's queue, done one after the other in the order of their coming, their results kept
 * for a while. What a batch and its result are is the business of who queues it.
 *
 * Jobs belong to the session and outlive its resets; a reset ends those that wait or run. All is thread-safe. */
#ifndef GPUREST_SESSION_BATCH_ASYNC_H
#define GPUREST_SESSION_BATCH_ASYNC_H

#include <stdatomic.h>

#include "session/session.h"

/* The work, then its result. */
struct batch_task {
    uint64_t    bytes; /* of host memory that it takes: as it waits, and after run() as it is kept */
    atomic_bool ended; /* while it runs somebody resets the session for its sake: what it loses by that is not done once more */
    /* On a thread of the session, at most once. May block. What *why points to lives as long as the task. */
    enum status (*run)(struct batch_task *t, struct problem *why);
    /* Once, at any time except during run(), on any thread, without a lock. */
    void (*destroy)(struct batch_task *t);
};

enum batch_job_state { BATCH_JOB_QUEUED, BATCH_JOB_RUNNING, BATCH_JOB_SUCCEEDED, BATCH_JOB_FAILED, BATCH_JOB_CANCELLED };
const char *batch_job_state_name(enum batch_job_state s);

struct batch_job; /* reference-counted; a reference from outside pins the session */

struct batch_job_info {
    char                 id[ID_BYTES];
    enum batch_job_state state;
    uint64_t             created_wall_ns, started_wall_ns, finished_wall_ns; /* 0 = not yet */
    uint64_t             expires_wall_ns;                                    /* when it is forgotten at the latest; 0 = not finished */
    struct problem       problem;                                            /* when failed; borrowed parts live until batch_job_return */
};

/* QUOTA_EXCEEDED when no more batches may wait now; an early look that reserves nothing. */
enum status batch_job_room(struct session *s, struct problem *why);
/* Queues the task, which it takes over even when it fails. *out is to be returned. */
enum status batch_job_create_take(struct session *s, struct batch_task *t, struct batch_job **out, struct problem *why);
enum status batch_job_borrow(struct session *s, struct span id, struct batch_job **out, struct problem *why);
void        batch_job_return(struct batch_job *j);

/* True when it has succeeded, failed or been cancelled. */
bool batch_job_finished(struct batch_job *j);
/* Registers w to be woken at the end; false when it has finished already (then w is not registered). */
bool batch_job_watch(struct batch_job *j, struct waker *w);
void batch_job_unwatch(struct batch_job *j, struct waker *w);
void batch_job_info_of(struct batch_job *j, struct batch_job_info *out);
/* The task with its result, when it has succeeded, else NULL. Borrowed until batch_job_return; others may be reading it. */
struct batch_task *batch_job_result(struct batch_job *j);
/* Queued: ends as cancelled, its work is released. Running: LAUNCH_RUNNING, and if `force` the caller resets the session next: it then
 * ends as cancelled. Finished: OK with *cancelled = false. */
enum status batch_job_cancel(struct batch_job *j, bool force, bool *cancelled, struct problem *why);
/* A finished one is found no more. */
void batch_job_forget(struct batch_job *j);

#endif
