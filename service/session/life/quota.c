/* Bytes in buffers, counted per session and per tenant. */
#include "session/life/internal.h"

#include "base/threads/held.h"
#include "session/bounds.h"

static enum status reserve_of_tenant(struct session *s, uint64_t bytes, struct problem *why)
{
    struct registry *r = s->registry;
    enum status      st = STATUS_OK;
    uint64_t         used;

    pthread_mutex_lock(&r->lock);
    used = s->account->memory_bytes;
    if (used > s->tenant_memory_max || bytes > s->tenant_memory_max - used)
        st = problem_limit(why, STATUS_QUOTA_EXCEEDED, "caller_memory_bytes", s->tenant_memory_max, used, bytes);
    else
        s->account->memory_bytes += bytes;
    pthread_mutex_unlock(&r->lock);
    return st;
}

/* Told once, until it is otherwise. */
void quota_look(struct session *s)
{
    uint64_t limit = s->memory_limit;
    bool low = limit != MEMORY_LIMIT_NONE && s->memory_bytes > limit / 100 * MEMORY_LOW_PERCENT + limit % 100 * MEMORY_LOW_PERCENT / 100;

    assert(held(&s->lock));
    if (low && !s->memory_low)
        events_publish_memory(s, 0, STATUS_OK);
    s->memory_low = low;
}

static enum status reserve(struct session *s, uint64_t bytes, struct problem *why)
{
    if (s->memory_bytes > s->memory_limit || bytes > s->memory_limit - s->memory_bytes)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "session_memory_bytes", s->memory_limit, s->memory_bytes, bytes);
    return reserve_of_tenant(s, bytes, why);
}

enum status quota_reserve(struct worker_session *c, uint64_t bytes, struct problem *why)
{
    struct session *s = c->session;
    enum status     st;

    assert(held(&c->session->lock));
    if (c->closed)
        return worker_session_still_usable(c, why);
    st = reserve(s, bytes, why);
    if (st) {
        events_publish_memory(s, bytes, st);
        return st;
    }
    s->memory_bytes += bytes;
    c->quota_bytes += bytes;
    quota_look(s);
    return STATUS_OK;
}

static void give_back(struct worker_session *c, uint64_t bytes)
{
    struct session *s = c->session;

    assert(c->quota_bytes >= bytes && s->memory_bytes >= bytes);
    c->quota_bytes -= bytes;
    s->memory_bytes -= bytes;
    quota_look(s);
    pthread_mutex_lock(&s->registry->lock);
    assert(s->account->memory_bytes >= bytes);
    s->account->memory_bytes -= bytes;
    pthread_mutex_unlock(&s->registry->lock);
}

void quota_release(struct worker_session *c, uint64_t bytes)
{
    assert(held(&c->session->lock));
    if (!c->closed)
        give_back(c, bytes);
}

void quota_release_all(struct worker_session *c)
{
    assert(held(&c->session->lock));
    give_back(c, c->quota_bytes);
}
