/* A few helper threads for what an event loop may not do itself: short worker calls that might have to wait. Thread-safe. */
#ifndef GPUREST_API_DEFERRED_H
#define GPUREST_API_DEFERRED_H

#include "base/status.h"

struct deferred;

/* Embedded in the object it works for; alive and unmoved until run() was called. */
struct deferred_job {
    void (*run)(struct deferred_job *job); /* on a helper thread, exactly once; may free the object */
    struct deferred_job *next;             /* the queue's */
};

enum status deferred_create(struct deferred **out);
/* Never fails and never blocks: the job is linked, not copied. Jobs start in order. */
void deferred_push(struct deferred *d, struct deferred_job *job);
/* Runs what is queued, then joins. NULL is a no-op. */
void deferred_destroy(struct deferred *d);

#endif
