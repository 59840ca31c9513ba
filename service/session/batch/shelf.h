/* What session/batch/async.c and session/batch/shelf.c share. */
#ifndef GPUREST_SESSION_BATCH_SHELF_H
#define GPUREST_SESSION_BATCH_SHELF_H

#include "session/batch/async.h"
#include "session/internal.h"

struct batch_job {
    struct entry    entry;
    struct session *session;
    uint64_t        created_wall_ns;
    /* under session.lock; the runner alone touches a running one's task */
    struct batch_task   *task; /* owned; NULL: nothing is left of it */
    unsigned             refs; /* the shelf's, the runner's, and those outside */
    enum batch_job_state state;
    bool                 kept;  /* `bytes` are in shelf.kept_bytes, else in queued_bytes */
    uint64_t             bytes; /* counted for it in the shelf and the registry */
    uint64_t             started_wall_ns, finished_wall_ns, expires_ns;
    struct problem       problem;
    struct waker        *watchers;
    struct batch_job    *next; /* in shelf.queued, then in shelf.finished, at last in remains */
};

/* What nobody needs any more, to be destroyed without a lock. Starts zeroed. */
struct batch_remains {
    struct batch_job  *jobs;
    struct batch_task *task;
};

/* All with session.lock held. */
/* QUOTA_EXCEEDED or OVERLOADED; counts the bytes of one that is to wait. */
enum status batch_shelf_reserve(struct session *s, struct batch_job *j, uint64_t bytes, struct problem *why);
/* It has ended thus. Older results make room for its own; if there is none it has failed. */
void batch_shelf_settle(struct session *s, struct batch_job *j, enum batch_job_state state, struct batch_remains *remains);
/* A finished one is found no more. */
void batch_shelf_forget(struct session *s, struct batch_job *j, struct batch_remains *remains);
void batch_job_unref(struct batch_job *j, struct batch_remains *remains);

void batch_remains_destroy(struct batch_remains *remains);

#endif
