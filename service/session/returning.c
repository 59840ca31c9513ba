/* Device memory on its way back: an allocation that found none waits for it before it is refused.
 *
 * A device has freed memory again some time after everybody was told so: a process that was killed holds it until it is gone, and a
 * driver clears pages before it hands them out again. So it is noted who gives memory up, and how much; as long as that may be missing,
 * an allocation that it would help is tried again. What freed buffers have left in the caches of idle sessions is asked for first. */
#include <stdlib.h>

#include "session/internal.h"

static struct returning *of_context(const struct context *c)
{
    return &c->session->registry->returning[c->session->device];
}

/* ---- noting; with registry.lock held ---- */

static void give(struct registry *r, struct returning *p, uint64_t bytes)
{
    if (p->leaving == 0 && deadline_left_ns(p->until_ns) == 0)
        p->bytes = 0;
    p->bytes = bytes > UINT64_MAX - p->bytes ? UINT64_MAX : p->bytes + bytes;
    p->until_ns = deadline_after_ms(MEMORY_RETURN_MS);
    p->count++;
    pthread_cond_broadcast(&r->closing_changed);
}

/* ---- noting; without it ---- */

static uint64_t with_context(uint64_t bytes)
{
    return bytes > UINT64_MAX - CONTEXT_BYTES_MAX ? UINT64_MAX : bytes + CONTEXT_BYTES_MAX;
}

void returning_note(struct session *s, uint64_t bytes)
{
    struct registry *r = s->registry;

    pthread_mutex_lock(&r->lock);
    give(r, &r->returning[s->device], bytes);
    pthread_mutex_unlock(&r->lock);
}

void returning_lost(struct context *c)
{
    returning_note(c->session, with_context(c->quota_bytes));
}

void returning_begin(struct context *c, uint64_t bytes)
{
    struct registry *r = c->session->registry;

    pthread_mutex_lock(&r->lock);
    give(r, of_context(c), with_context(bytes));
    of_context(c)->leaving++;
    pthread_mutex_unlock(&r->lock);
}

void returning_end(struct context *c)
{
    struct registry *r = c->session->registry;

    pthread_mutex_lock(&r->lock);
    give(r, of_context(c), 0);
    of_context(c)->leaving--;
    pthread_mutex_unlock(&r->lock);
}

/* ---- caches ---- */

/* With session.lock held. What was freed since its memory was last asked for, which a worker keeps for itself. */
static uint64_t freed_take(struct context *c)
{
    uint64_t bytes = c->freed_bytes;

    c->freed_bytes = 0;
    return bytes;
}

void returning_cached(struct context *c, uint64_t bytes)
{
    c->freed_bytes = bytes > UINT64_MAX - c->freed_bytes ? UINT64_MAX : c->freed_bytes + bytes;
}

void returning_reused(struct context *c, uint64_t bytes)
{
    c->freed_bytes -= bytes < c->freed_bytes ? bytes : c->freed_bytes;
}

void returning_trimmed(struct context *c)
{
    struct session *s = c->session;
    uint64_t        bytes;

    pthread_mutex_lock(&s->lock);
    bytes = freed_take(c);
    pthread_mutex_unlock(&s->lock);
    if (bytes)
        returning_note(s, bytes);
}

/* A context in use, if it is idle and has something to give; NULL. */
static struct context *idle_with_cache(struct session *s, unsigned device, uint64_t *bytes)
{
    struct context *c;

    pthread_mutex_lock(&s->lock);
    c = s->device == device ? s->context : NULL;
    if (c && (c->closed || c->lost || c->uses || !c->freed_bytes))
        c = NULL;
    if (c) {
        c->uses++;
        *bytes = freed_take(c);
    }
    pthread_mutex_unlock(&s->lock);
    return c;
}

/* True when it gave something back. */
static bool trim_idle(struct session *s, unsigned device, uint64_t deadline_ns)
{
    struct msg_mem_trim_reply none;
    struct problem            why = {0};
    uint64_t                  bytes = 0;
    struct context           *c = idle_with_cache(s, device, &bytes);
    enum status               st;

    if (!c)
        return false;
    st = worker_mem_trim(c->worker, &(struct msg_mem_trim){0}, &none, deadline_ns, &why);
    if (!st)
        returning_note(s, bytes);
    return context_leave_with(c, st, &why) == STATUS_OK;
}

/* Of this session the worker has given all back itself before it refused. */
static bool trim_all(struct context *c, uint64_t deadline_ns)
{
    struct session  *own = c->session;
    bool             any = false;
    unsigned         count;
    struct session **all = registry_all(own->registry, &count);

    returning_trimmed(c);
    for (unsigned i = 0; i < count; i++) {
        any = (all[i] != own && trim_idle(all[i], own->device, deadline_ns)) || any;
        session_unpin(all[i], false);
    }
    free(all);
    return any;
}

/* ---- waiting ---- */

/* With registry.lock held: what is free and what may come are less than what is wanted. */
static bool is_hopeless(const struct returning *p, const struct problem *why)
{
    uint64_t max = why->limit_max, used = why->limit_used < max ? why->limit_used : max;
    uint64_t room = max - used;

    if (!max || why->limit_requested <= room)
        return false;
    return why->limit_requested > max || why->limit_requested - room > p->bytes;
}

/* With registry.lock held, which is given up meanwhile. */
static void nap(struct registry *r)
{
    struct timespec until = timespec_of_ns(deadline_after_ms(MEMORY_RETURN_NAP_MS));

    pthread_cond_timedwait(&r->closing_changed, &r->lock, &until);
}

/* While only workers are waited for that are about to end, nothing needs to be asked. */
static bool await(struct context *c, const struct memory_wait *w, const struct problem *why)
{
    struct registry  *r = c->session->registry;
    struct returning *p = of_context(c);
    bool              again = false, open = true;

    pthread_mutex_lock(&r->lock);
    while (open && !again) {
        open = deadline_left_ns(w->deadline_ns) > 0 && (p->leaving || deadline_left_ns(p->until_ns) > 0) && !is_hopeless(p, why);
        if (!open)
            break;
        nap(r);
        again = p->count != w->seen || deadline_left_ns(p->until_ns) > 0;
        if (again)
            break;
        pthread_mutex_unlock(&r->lock);
        again = context_is_closed(c); /* the worker tells that it has ended; and its own end may be what we would wait for */
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return again;
}

void memory_wait_look(struct context *c, struct memory_wait *w)
{
    struct registry *r = c->session->registry;

    if (!w->deadline_ns)
        w->deadline_ns = deadline_after_ms(WORKER_CALL_DEADLINE_MS);
    pthread_mutex_lock(&r->lock);
    w->seen = of_context(c)->count;
    pthread_mutex_unlock(&r->lock);
}

bool memory_wait_more(struct context *c, struct memory_wait *w, const struct problem *why)
{
    if (why->limit_max && why->limit_requested > why->limit_max)
        return false;
    if (!w->trimmed) {
        w->trimmed = true;
        if (trim_all(c, w->deadline_ns))
            return true;
    }
    return await(c, w, why);
}
