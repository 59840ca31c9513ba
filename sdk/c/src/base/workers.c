/* Worker threads. */
#include "base/workers.h"

#include <stddef.h>

#include "base/platform.h"

void workers_init(struct workers *w, int max)
{
    *w = (struct workers){.max = max};
    pthread_mutex_init(&w->lock, NULL);
    condition_init(&w->changed);
}

void workers_finish(struct workers *w)
{
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
}

static struct job *take_job(struct workers *w)
{
    struct job *job = w->first;

    w->first = job->next;
    if (!w->first)
        w->last = NULL;
    job->next = NULL;
    return job;
}

static void *work(void *argument)
{
    struct workers *w = argument;

    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->first && !w->stopping) {
            w->idle++;
            pthread_cond_wait(&w->changed, &w->lock);
            w->idle--;
        }
        if (!w->first)
            break;
        struct job *job = take_job(w);
        pthread_mutex_unlock(&w->lock);
        job->run(job);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static bool make_thread(struct workers *w)
{
    bool made = thread_make(&w->threads[w->threads_count], work, w);

    w->threads_count += made;
    return made;
}

static void append_job(struct workers *w, struct job *job)
{
    job->next = NULL;
    if (w->last)
        w->last->next = job;
    else
        w->first = job;
    w->last = job;
    pthread_cond_signal(&w->changed);
}

bool workers_add(struct workers *w, struct job *job)
{
    bool taken;

    pthread_mutex_lock(&w->lock);
    taken = !w->stopping;
    if (taken && w->idle == 0 && w->threads_count < w->max && !make_thread(w))
        taken = w->threads_count > 0;
    if (taken)
        append_job(w, job);
    pthread_mutex_unlock(&w->lock);
    return taken;
}

void workers_again(struct workers *w, struct job *job)
{
    pthread_mutex_lock(&w->lock);
    append_job(w, job);
    pthread_mutex_unlock(&w->lock);
}

void workers_stop(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->threads_count; i++)
        pthread_join(w->threads[i], NULL);
}
