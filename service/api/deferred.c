/* The helper threads behind deferred.h: one queue, DEFERRED_THREADS that empty it. */
#include "api/deferred.h"

#include <pthread.h>
#include <stdlib.h>

#include "limits.h"

struct deferred {
    pthread_mutex_t      lock;
    pthread_cond_t       changed;
    struct deferred_job *first, *last;
    bool                 closing;
    pthread_t            threads[DEFERRED_THREADS];
    unsigned             threads_count;
};

/* With the lock held. NULL: closing and nothing left. */
static struct deferred_job *take(struct deferred *d)
{
    struct deferred_job *job;

    while (!d->first && !d->closing)
        pthread_cond_wait(&d->changed, &d->lock);
    job = d->first;
    if (job)
        d->first = job->next;
    if (!d->first)
        d->last = NULL;
    return job;
}

static void *work(void *arg)
{
    struct deferred     *d = arg;
    struct deferred_job *job;

    pthread_mutex_lock(&d->lock);
    while ((job = take(d))) {
        pthread_mutex_unlock(&d->lock);
        job->run(job);
        pthread_mutex_lock(&d->lock);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

enum status deferred_create(struct deferred **out)
{
    struct deferred *d = calloc(1, sizeof *d);

    if (!d)
        return STATUS_OUT_OF_MEMORY;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    while (d->threads_count < DEFERRED_THREADS) {
        if (pthread_create(&d->threads[d->threads_count], NULL, work, d)) {
            deferred_destroy(d);
            return STATUS_OUT_OF_MEMORY;
        }
        d->threads_count++;
    }
    *out = d;
    return STATUS_OK;
}

void deferred_push(struct deferred *d, struct deferred_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&d->lock);
    if (d->last)
        d->last->next = job;
    else
        d->first = job;
    d->last = job;
    pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

void deferred_destroy(struct deferred *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    d->closing = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    for (unsigned i = 0; i < d->threads_count; i++)
        pthread_join(d->threads[i], NULL);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d);
}
