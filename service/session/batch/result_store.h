/* What session/batch/async.c and session/batch/result_store.c share. */
#ifndef GPUREST_SESSION_RESULT_STORE_H
#define GPUREST_SESSION_RESULT_STORE_H

#include "session/batch/async.h"
#include "session/launch/internal.h"

struct batch_job {
    struct entry    entry;
    struct session *session;
    uint64_t        created_wall_ns;
    /* under session.lock; the runner alone touches a running one's task */
    struct batch_task   *task; /* owned; NULL: nothing is left of it */
    unsigned             refs; /* the store's, the runner's, and those outside */
    enum batch_job_state state;
    bool                 kept;  /* `bytes` are in result_store.kept_bytes, else in queued_bytes */
    uint64_t             bytes; /* counted for it in the result store and the registry */
    uint64_t             started_wall_ns, finished_wall_ns, expires_ns;
    struct problem       problem;
    struct waker        *watchers;
    struct batch_job    *next; /* in result_store.queued, then in result_store.finished, at last in the garbage */
};

/* What nobody needs any more, to be destroyed without a lock. Starts zeroed. */
struct batch_garbage {
    struct batch_job  *jobs;
    struct batch_task *task;
};

/* All with session.lock held. */
/* QUOTA_EXCEEDED or OVERLOADED; counts the bytes of one that is to wait. */
enum status result_store_reserve(struct session *s, struct batch_job *j, uint64_t bytes, struct problem *why);
/* It has ended thus. Older results make room for its own; if there is none it has failed. */
void result_store_settle(struct session *s, struct batch_job *j, enum batch_job_state state, struct batch_garbage *garbage);
/* A finished one is found no more. */
void result_store_forget(struct session *s, struct batch_job *j, struct batch_garbage *garbage);
void batch_job_unref(struct batch_job *j, struct batch_garbage *garbage);
/* The only one to change the state. */
void batch_job_set_state(struct batch_job *j, enum batch_job_state next);

void batch_garbage_destroy(struct batch_garbage *garbage);

#endif
