/* Heartbeats: when each is due, and the thread that sends them. */
#include "client/heartbeats.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/platform.h"

void heartbeats_init(struct heartbeats *h)
{
    *h = (struct heartbeats){0};
    pthread_mutex_init(&h->lock, NULL);
    condition_init(&h->changed);
    cancel_init(&h->cancel);
}

void heartbeats_finish(struct heartbeats *h)
{
    cancel_finish(&h->cancel);
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
}

void leased_note(struct leased *l)
{
    if (l->lease_ms)
        atomic_store(&l->asked_ms, clock_ms());
}

/* ---- all below with the lock held ---- */

static uint64_t due_ms(struct leased *l)
{
    uint64_t asked = atomic_load(&l->asked_ms), last = asked > l->beaten_ms ? asked : l->beaten_ms;

    return last + l->lease_ms / BEATS_PER_LEASE;
}

static struct leased *earliest(struct heartbeats *h)
{
    struct leased *found = h->first;

    for (struct leased *l = h->first; l; l = l->next)
        if (due_ms(l) < due_ms(found))
            found = l;
    return found;
}

static void unlist(struct heartbeats *h, struct leased *l)
{
    struct leased **at = &h->first;

    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    l->listed = false;
}

/* Asks sooner after a failure. */
static void beat(struct heartbeats *h, struct leased *l)
{
    uint64_t now = clock_ms();
    bool     failed = false, needed;

    l->busy = true;
    pthread_mutex_unlock(&h->lock);
    needed = l->beat(l, &h->cancel, &failed);
    pthread_mutex_lock(&h->lock);
    l->beaten_ms = failed ? now - l->lease_ms / BEATS_PER_LEASE / 2 : now;
    if (!needed && l->listed)
        unlist(h, l);
    l->busy = false;
    pthread_cond_broadcast(&h->changed);
}

static void *run(void *argument)
{
    struct heartbeats *h = argument;

    pthread_mutex_lock(&h->lock);
    while (!h->stopping) {
        struct leased *l = earliest(h);
        uint64_t       now = clock_ms();

        if (!l)
            pthread_cond_wait(&h->changed, &h->lock);
        else if (due_ms(l) > now) {
            struct timespec until = clock_after_ms((int)(due_ms(l) - now));

            condition_wait_until(&h->changed, &h->lock, &until);
        } else
            beat(h, l);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

/* ---- without it ---- */

bool heartbeats_add(struct heartbeats *h, struct leased *l)
{
    bool added;

    if (!l->lease_ms)
        return true;
    pthread_mutex_lock(&h->lock);
    if (!h->started && !h->stopping)
        h->started = thread_make(&h->thread, run, h);
    added = h->started && !h->stopping;
    l->beaten_ms = clock_ms();
    if (added && !l->listed) {
        l->next = h->first;
        h->first = l;
        l->listed = true;
        pthread_cond_broadcast(&h->changed);
    }
    pthread_mutex_unlock(&h->lock);
    return added;
}

void heartbeats_remove(struct heartbeats *h, struct leased *l)
{
    pthread_mutex_lock(&h->lock);
    if (l->listed)
        unlist(h, l);
    while (l->busy)
        pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

void heartbeats_stop(struct heartbeats *h)
{
    bool started;

    pthread_mutex_lock(&h->lock);
    h->stopping = true;
    started = h->started;
    h->started = false;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    cancel_ask(&h->cancel);
    if (started)
        pthread_join(h->thread, NULL);
}
