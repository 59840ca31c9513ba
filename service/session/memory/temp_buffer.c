/* Buffers of batches: counted like all others, without public ids, freed in the background. */
#include <stdlib.h>

#include "base/threads/held.h"
#include "session/memory/internal.h"

/* With session.lock held: its memory is the device's again, or the device's memory is gone. */
static void drop_temp_buffer(struct worker_session *c, struct temp_buffer *l)
{
    assert(held(&c->session->lock));
    if (table_remove(&c->temp_buffers, &l->buffer.entry)) {
        share_detach(c, &l->buffer);
        quota_release(c, l->buffer.charged);
    }
    l->gone = true;
    pthread_cond_broadcast(&c->session->changed);
    buffer_unref(&l->buffer);
}

static enum status enlist_temp_buffer(struct worker_session *c, struct temp_buffer *l, struct problem *why)
{
    struct session *s = c->session;
    enum status     st;

    pthread_mutex_lock(&s->lock);
    st = worker_session_still_usable(c, why);
    if (!st)
        st = quota_reserve(c, l->buffer.bytes, why);
    if (!st && (st = table_put(&c->temp_buffers, &l->buffer.entry)) != STATUS_OK) {
        quota_release(c, l->buffer.bytes);
        problem_set(why, st, "not enough memory for a buffer");
    }
    l->buffer.number = ++s->buffers_made;
    pthread_mutex_unlock(&s->lock);
    return st;
}

static enum status allocate_temp_buffer(struct worker_session *c, struct temp_buffer *l, struct problem *why)
{
    uint64_t    address = 0;
    enum status st = memory_allocate(c, l->buffer.bytes, &address, why);

    pthread_mutex_lock(&c->session->lock);
    if (st) {
        drop_temp_buffer(c, l);
    } else {
        l->buffer.address = address;
        l->buffer.ready = true;
        pending_free_reused(c, l->buffer.bytes);
    }
    pthread_mutex_unlock(&c->session->lock);
    return st;
}

enum status temp_buffer_create(struct worker_session *c, uint64_t bytes, struct temp_buffer **out, struct problem *why)
{
    struct temp_buffer *l = calloc(1, sizeof *l);
    enum status         st;

    if (!l)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a buffer");
    l->worker_session = c;
    st = buffer_init(&l->buffer, bytes, 2, why); /* the table's reference and the batch's */
    if (!st)
        st = enlist_temp_buffer(c, l, why);
    if (!st)
        st = allocate_temp_buffer(c, l, why);
    if (st)
        free(l); /* the table has no reference, or none any more */
    else
        *out = l;
    return st;
}

void temp_buffer_abandon(struct worker_session *c, struct temp_buffer *l)
{
    assert(held(&c->session->lock));
    if (l->gone || l->abandoned)
        return;
    l->abandoned = true;
    l->buffer.ready = false;
    if (c->closed)
        return; /* the end of the worker session drops it */
    if (c->lost) {
        drop_temp_buffer(c, l);
        return;
    }
    l->next = c->abandoned;
    c->abandoned = l;
    submit_later(c);
}

enum status temp_buffer_keep(struct worker_session *c, struct temp_buffer *l, struct problem *why)
{
    enum status st;

    assert(held(&c->session->lock));
    if (c->buffers.count >= BUFFERS_PER_SESSION_MAX)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "buffers", BUFFERS_PER_SESSION_MAX, c->buffers.count, 1);
    st = table_put(&c->buffers, &l->buffer.entry);
    if (st)
        return problem_set(why, st, "not enough memory for a buffer");
    table_remove(&c->temp_buffers, &l->buffer.entry); /* its reference and its quota pass to the session's buffer */
    l->gone = true;
    return STATUS_OK;
}

void temp_buffer_await(struct worker_session *c, struct temp_buffer *l)
{
    struct session *s = c->session;

    pthread_mutex_lock(&s->lock);
    while (l->abandoned && !l->gone && !c->closed && !c->unfinished_count)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void temp_buffer_freed(struct call *call, enum call_event event)
{
    struct temp_buffer    *l = call->context;
    struct worker_session *c;
    struct session        *s;

    if (event != CALL_DONE)
        return;
    c = l->worker_session;
    s = c->session;
    pthread_mutex_lock(&s->lock);
    worker_session_check_call(c, call);
    pending_free_cached(c, l->buffer.bytes);
    drop_temp_buffer(c, l);
    worker_session_unuse(c);
    pthread_mutex_unlock(&s->lock);
}

/* False when the worker takes no more calls now; it stays in the list. */
static bool free_abandoned(struct worker_session *c, struct temp_buffer *l)
{
    struct session *s = c->session;
    struct problem  why;
    enum status     st;

    l->call = (struct call){.on_event = temp_buffer_freed, .context = l, .deadline_ns = DEADLINE_NEVER};
    st = worker_submit_mem_free(c->worker, &(struct msg_mem_free){l->buffer.address}, &l->call);
    if (!st)
        return true;
    pthread_mutex_lock(&s->lock);
    if (st != STATUS_OVERLOADED) {
        worker_session_not_submitted(c, st, &why); /* its memory ended with it */
        drop_temp_buffer(c, l);
    } else {
        l->next = c->abandoned;
        c->abandoned = l;
    }
    worker_session_unuse(c);
    pthread_mutex_unlock(&s->lock);
    return st != STATUS_OVERLOADED;
}

void temp_buffer_free_some(struct worker_session *c)
{
    struct session     *s = c->session;
    struct temp_buffer *l;

    do {
        pthread_mutex_lock(&s->lock);
        l = c->abandoned;
        if (l) {
            c->abandoned = l->next;
            c->uses++;
        }
        pthread_mutex_unlock(&s->lock);
    } while (l && free_abandoned(c, l));
}

void temp_buffer_drop_abandoned(struct worker_session *c)
{
    assert(held(&c->session->lock));
    for (struct temp_buffer *l; (l = c->abandoned) != NULL;) {
        c->abandoned = l->next;
        drop_temp_buffer(c, l);
    }
}

void temp_buffer_drop_all(struct worker_session *c)
{
    assert(held(&c->session->lock));
    c->abandoned = NULL;
    while (c->temp_buffers.count)
        drop_temp_buffer(c, (struct temp_buffer *)c->temp_buffers.items[c->temp_buffers.count - 1]);
}
