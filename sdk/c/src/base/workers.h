/* Threads that do jobs in the order in which they came; made when needed, kept until the end. */
#ifndef GPUREST_SDK_WORKERS_H
#define GPUREST_SDK_WORKERS_H

#include <pthread.h>
#include <stdbool.h>

#include "base/limits.h"

/* A thread that takes none of the application's signals. */
bool thread_make(pthread_t *out, void *(*run)(void *), void *arg);

struct job {
    struct job *next;
    void (*run)(struct job *job); /* may give the job to the workers again */
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
/* False: they stop, or no thread can be made; the job stays the caller's then. Jobs of jobs are always taken. */
bool workers_add(struct workers *w, struct job *job);
/* Of a job that runs: behind the others. */
void workers_again(struct workers *w, struct job *job);
/* Does what is queued, then ends the threads. Not from a job. */
void workers_stop(struct workers *w);
void workers_finish(struct workers *w);

#endif
