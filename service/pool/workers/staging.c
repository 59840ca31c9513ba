/* Hands out staging memory in runs of whole slices. */
#include "pool/workers/worker_internal.h"

void staging_init(struct worker *w)
{
    struct staging *s = &w->staging;

    pthread_mutex_init(&s->lock, NULL);
    s->waiters.lock = &s->lock;
    s->slices_count = (unsigned)(w->shm.staging_bytes / STAGING_SLICE_BYTES);
}

void staging_finish(struct worker *w)
{
    pthread_mutex_destroy(&w->staging.lock);
}

uint64_t staging_bytes(const struct worker *w)
{
    return w->shm.staging_bytes;
}

/* The first slice of a free run; slices_count when there is none. */
static unsigned run_find(const struct staging *s, unsigned want)
{
    unsigned length = 0;

    for (unsigned i = 0; i < s->slices_count; i++) {
        length = s->used[i] ? 0 : length + 1;
        if (length == want)
            return i + 1 - want;
    }
    return s->slices_count;
}

/* Under the lock. Whether the run holds slices that were never taken, which are not fresh any more. */
static bool run_is_fresh(struct staging *s, unsigned end)
{
    bool fresh = end > s->fresh;

    if (fresh)
        s->fresh = end;
    return fresh;
}

/* A worker that moves little never has the pages of all its staging memory: the lowest free run is taken. */
enum status staging_take(struct worker *w, uint64_t bytes, struct slice *out, struct waker *waker)
{
    struct staging *s = &w->staging;
    enum status     st = STATUS_OK;
    unsigned        want, first;
    bool            fresh = false;

    if (bytes > w->shm.staging_bytes)
        return STATUS_INTERNAL;
    want = bytes ? (unsigned)((bytes + STAGING_SLICE_BYTES - 1) / STAGING_SLICE_BYTES) : 1;
    pthread_mutex_lock(&s->lock);
    first = run_find(s, want);
    if (waitlist_over(&s->waiters)) {
        st = STATUS_WORKER_LOST;
    } else if (first == s->slices_count) {
        st = STATUS_PENDING;
        if (waker)
            waitlist_add(&s->waiters, waker);
    } else {
        memset(s->used + first, 1, want);
        out->ref = (struct shm_ref){(uint64_t)first * STAGING_SLICE_BYTES, (uint64_t)want * STAGING_SLICE_BYTES};
        out->data = w->shm.staging + out->ref.offset;
        fresh = run_is_fresh(s, first + want);
    }
    pthread_mutex_unlock(&s->lock);
    if (fresh)
        shm_populate(&w->shm, out->ref);
    return st;
}

void staging_give(struct worker *w, struct slice *slice)
{
    struct staging *s = &w->staging;

    pthread_mutex_lock(&s->lock);
    assert(slice->data && slice->ref.bytes && slice->ref.offset % STAGING_SLICE_BYTES == 0);
    assert(slice->ref.offset / STAGING_SLICE_BYTES + slice->ref.bytes / STAGING_SLICE_BYTES <= s->slices_count);
    assert(s->used[slice->ref.offset / STAGING_SLICE_BYTES]);
    memset(s->used + slice->ref.offset / STAGING_SLICE_BYTES, 0, slice->ref.bytes / STAGING_SLICE_BYTES);
    *slice = (struct slice){0};
    waitlist_wake(&s->waiters);
    pthread_mutex_unlock(&s->lock);
}

void staging_unwatch(struct worker *w, struct waker *waker)
{
    waitlist_unwatch(&w->staging.waiters, waker);
}

void staging_fail(struct worker *w)
{
    pthread_mutex_lock(&w->staging.lock);
    waitlist_end(&w->staging.waiters);
    pthread_mutex_unlock(&w->staging.lock);
}
