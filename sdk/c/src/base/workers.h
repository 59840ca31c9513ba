/* A thread pool with a FIFO queue. Threads start on demand and live until workers_stop. */
#ifndef GPUREST_SDK_WORKERS_H
#define GPUREST_SDK_WORKERS_H

#include <pthread.h>
#include <stdbool.h>

#include "base/limits.h"

struct job {
    struct job *next;
    void (*run)(struct job *job); /* may call workers_again with it */
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    struct job     *first, *last;
    pthread_t       threads[TRANSFER_THREADS_MAX];
    int             threads_count, idle, max;
    bool            stopping;
};

void workers_init(struct workers *w, int max);
/* False: stopping, or no thread can be created; the job remains the caller's. */
bool workers_add(struct workers *w, struct job *job);
/* Requeues a running job after the others. */
void workers_again(struct workers *w, struct job *job);
/* Runs what is queued, then joins the threads. Not from a job. */
void workers_stop(struct workers *w);
void workers_finish(struct workers *w);

#endif
