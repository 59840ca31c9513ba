/* Freed device memory that is not available yet: an allocation that finds no memory waits for it before it fails.
 *
 * A device has freed memory available some time after the free was reported: a killed process holds its memory until it is gone, and a
 * driver clears pages before it reuses them. So each free is recorded with its size. While that memory may be missing, an allocation
 * that it would satisfy is retried. Before that, idle sessions are asked to release the caches that freed buffers have left. */
#include "base/threads/held.h"
#include "session/bounds.h"
#include "session/memory/internal.h"

static struct pending_free *pending_free_of(const struct worker_session *c)
{
    return &c->session->registry->pending_free[c->session->device];
}

/* ---- recording ---- */

/* So many bytes are on their way back; and so many more workers are about to end, or fewer. */
static void note_bytes(struct session *s, uint64_t bytes, int leaving)
{
    struct registry     *r = s->registry;
    struct pending_free *p = &r->pending_free[s->device];

    pthread_mutex_lock(&r->lock);
    if (p->leaving == 0 && deadline_left_ns(p->until_ns) == 0)
        p->bytes = 0;
    p->bytes = bytes > UINT64_MAX - p->bytes ? UINT64_MAX : p->bytes + bytes;
    p->until_ns = deadline_after_ms(MEMORY_RETURN_MS);
    p->count++;
    p->leaving += (unsigned)leaving;
    pthread_cond_broadcast(&r->closing_changed);
    pthread_mutex_unlock(&r->lock);
}

static uint64_t with_context(uint64_t bytes)
{
    return bytes > UINT64_MAX - CONTEXT_BYTES_MAX ? UINT64_MAX : bytes + CONTEXT_BYTES_MAX;
}

/* So many bytes were given back to the session's device, or soon will be. */
static void pending_free_add(struct session *s, uint64_t bytes)
{
    note_bytes(s, bytes, 0);
}

void pending_free_lost(struct worker_session *c)
{
    note_bytes(c->session, with_context(c->quota_bytes), 0);
}

void pending_free_begin(struct worker_session *c, uint64_t bytes)
{
    note_bytes(c->session, with_context(bytes), 1);
}

void pending_free_end(struct worker_session *c)
{
    note_bytes(c->session, 0, -1);
}

/* ---- caches ---- */

/* Bytes freed since the worker was last asked to release its cache. With session.lock held. */
static uint64_t freed_take(struct worker_session *c)
{
    uint64_t bytes = c->freed_bytes;

    assert(held(&c->session->lock));
    c->freed_bytes = 0;
    return bytes;
}

void pending_free_cached(struct worker_session *c, uint64_t bytes)
{
    assert(held(&c->session->lock));
    c->freed_bytes = bytes > UINT64_MAX - c->freed_bytes ? UINT64_MAX : c->freed_bytes + bytes;
}

void pending_free_reused(struct worker_session *c, uint64_t bytes)
{
    assert(held(&c->session->lock));
    c->freed_bytes -= bytes < c->freed_bytes ? bytes : c->freed_bytes;
}

void pending_free_trimmed(struct worker_session *c)
{
    struct session *s = c->session;
    uint64_t        bytes;

    pthread_mutex_lock(&s->lock);
    bytes = freed_take(c);
    pthread_mutex_unlock(&s->lock);
    if (bytes)
        pending_free_add(s, bytes);
}

/* The session's worker session, in use, if it is idle and has a cache to release; else NULL. */
static struct worker_session *idle_with_cache(struct session *s, unsigned device)
{
    struct worker_session *c;

    pthread_mutex_lock(&s->lock);
    c = s->device == device ? s->worker_session : NULL;
    if (c && (c->closed || c->lost || c->uses || !c->freed_bytes))
        c = NULL;
    if (c)
        c->uses++;
    pthread_mutex_unlock(&s->lock);
    return c;
}

/* Releases registry.lock, which is held, until memory was freed or a worker session ends, maybe the caller's own. */
static void wait_until(struct registry *r, uint64_t deadline_ns)
{
    struct timespec until = timespec_of_ns(deadline_ns);

    assert(held(&r->lock));
    pthread_cond_clockwait(&r->closing_changed, &r->lock, CLOCK_MONOTONIC, &until);
}

static void count_trims(struct worker_session *c, int change)
{
    struct registry *r = c->session->registry;

    pthread_mutex_lock(&r->lock);
    pending_free_of(c)->trims += (unsigned)change;
    pthread_cond_broadcast(&r->closing_changed);
    pthread_mutex_unlock(&r->lock);
}

static void trimmed(struct worker_session *c, const struct call *call, void *unused)
{
    (void)unused;
    if (!call->status)
        pending_free_add(c->session, freed_take(c));
    count_trims(c, -1);
}

static void trim_idle(struct session *s, void *asker)
{
    const struct session  *own = asker; /* whose worker has already released its cache before it refused */
    struct worker_session *c = s == own ? NULL : idle_with_cache(s, own->device);

    if (!c)
        return;
    count_trims(c, 1);
    if (!worker_session_call_async(c, MESSAGE_MEM_TRIM, &(struct msg_mem_trim){0}, trimmed, NULL))
        count_trims(c, -1);
    worker_session_leave(c);
}

/* True when memory was freed. The workers are other sessions': waits for their answers no longer than for memory. */
static bool await_trims(struct worker_session *c, uint64_t seen)
{
    struct registry           *r = c->session->registry;
    const struct pending_free *p = pending_free_of(c);
    uint64_t                   deadline = deadline_after_ms(MEMORY_RETURN_MS);
    bool                       gave;

    pthread_mutex_lock(&r->lock);
    while (p->count == seen && p->trims && deadline_left_ns(deadline) > 0)
        wait_until(r, deadline);
    gave = p->count != seen;
    pthread_mutex_unlock(&r->lock);
    return gave;
}

static bool trim_all(struct worker_session *c)
{
    struct registry *r = c->session->registry;
    uint64_t         seen;

    pending_free_trimmed(c);
    pthread_mutex_lock(&r->lock);
    seen = pending_free_of(c)->count;
    pthread_mutex_unlock(&r->lock);
    registry_each(r, trim_idle, c->session);
    return await_trims(c, seen);
}

/* Free memory and memory that may still be freed are less than the allocation. With registry.lock held. */
static bool is_hopeless(const struct pending_free *p, const struct problem *why)
{
    uint64_t max = why->limit_max, used = why->limit_used < max ? why->limit_used : max;
    uint64_t room = max - used;

    if (!max || why->limit_requested <= room)
        return false;
    return why->limit_requested > max || why->limit_requested - room > p->bytes;
}

/* While only workers are waited for that are about to end, nothing needs to be asked. */
static bool await_memory(struct worker_session *c, const struct memory_wait *w, const struct problem *why)
{
    struct registry     *r = c->session->registry;
    struct pending_free *p = pending_free_of(c);
    bool                 again = false, open = true;

    pthread_mutex_lock(&r->lock);
    while (open && !again) {
        open = deadline_left_ns(w->deadline_ns) > 0 && (p->leaving || deadline_left_ns(p->until_ns) > 0) && !is_hopeless(p, why);
        if (!open)
            break;
        wait_until(r, deadline_after_ms(MEMORY_RETURN_NAP_MS)); /* no driver reports when it has cleared its pages */
        again = p->count != w->seen || deadline_left_ns(p->until_ns) > 0;
        if (again)
            break;
        pthread_mutex_unlock(&r->lock);
        again = worker_session_is_closed(c); /* the end of a worker is announced; and the awaited worker may be our own */
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return again;
}

void memory_wait_look(struct worker_session *c, struct memory_wait *w)
{
    struct registry *r = c->session->registry;

    if (!w->deadline_ns)
        w->deadline_ns = deadline_after_ms(WORKER_CALL_DEADLINE_MS);
    pthread_mutex_lock(&r->lock);
    w->seen = pending_free_of(c)->count;
    pthread_mutex_unlock(&r->lock);
}

bool memory_wait_more(struct worker_session *c, struct memory_wait *w, const struct problem *why)
{
    if (why->limit_max && why->limit_requested > why->limit_max)
        return false;
    if (!w->trimmed) {
        w->trimmed = true;
        if (trim_all(c))
            return true;
    }
    if (await_memory(c, w, why))
        return true;
    if (!hibernation_make_room(c))
        return false;
    w->deadline_ns = 0; /* that took its time */
    return true;
}

bool memory_wait_leaving(struct worker_session *c, struct memory_wait *w)
{
    struct registry           *r = c->session->registry;
    const struct pending_free *p = pending_free_of(c);
    bool                       gave;

    pthread_mutex_lock(&r->lock);
    while (p->count == w->seen && p->leaving && deadline_left_ns(w->deadline_ns) > 0)
        wait_until(r, w->deadline_ns);
    gave = p->count != w->seen;
    pthread_mutex_unlock(&r->lock);
    return gave && !worker_session_is_closed(c);
}

/* ---- allocations that wait ---- */

static void tell_refusal(struct session *s, uint64_t bytes, enum status st)
{
    pthread_mutex_lock(&s->lock);
    events_publish_memory(s, bytes, st);
    pthread_mutex_unlock(&s->lock);
}

enum status memory_allocate_by(struct worker_session *c, uint64_t bytes, allocate_function *allocate, void *what, struct problem *why)
{
    struct memory_wait wait = {0};
    enum status        st;

    do {
        memory_wait_look(c, &wait);
        st = allocate(c, what, wait.deadline_ns, why);
    } while (st == STATUS_DEVICE_MEMORY_EXHAUSTED && memory_wait_more(c, &wait, why));
    if (st == STATUS_DEVICE_MEMORY_EXHAUSTED)
        tell_refusal(c->session, bytes, st);
    return st;
}

struct plain {
    uint64_t bytes, address;
};

static enum status allocate_plain(struct worker_session *c, void *what, uint64_t deadline_ns, struct problem *why)
{
    struct plain              *p = what;
    struct msg_mem_alloc_reply got = {0};
    enum status                st = worker_mem_alloc(c->worker, &(struct msg_mem_alloc){p->bytes}, &got, deadline_ns, why);

    p->address = got.address;
    return st;
}

enum status memory_allocate(struct worker_session *c, uint64_t bytes, uint64_t *address, struct problem *why)
{
    struct plain p = {.bytes = bytes};
    enum status  st = memory_allocate_by(c, bytes, allocate_plain, &p, why);

    *address = p.address;
    return st;
}
