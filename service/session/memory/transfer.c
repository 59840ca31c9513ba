/* Streamed writes to and reads from buffers: a few staging slices are in flight; the device copies one while the next is filled or
 * emptied. This file: beginning, calls, end. */
#include "base/threads/held.h"
#include "session/bounds.h"
#include "session/memory/transfer_internal.h"

#include <inttypes.h>
#include <stdlib.h>

/* Wakes whoever is registered there, once. With session.lock held. */
static void wake_once(struct waker **at)
{
    struct waker *w = *at;

    *at = NULL;
    if (w)
        w->wake(w);
}

void transfer_wake_all(struct worker_session *c)
{
    assert(held(&c->session->lock));
    for (struct transfer *t = LIST_FIRST(&c->transfers); t; t = LIST_NEXT(t, link)) {
        wake_once(&t->user);
        wake_once(&t->borrower);
    }
}

void transfer_unwatch_all(struct worker_session *c)
{
    struct session  *s = c->session;
    struct transfer *t;

    pthread_mutex_lock(&s->lock);
    for (t = LIST_FIRST(&c->transfers); t; t = t ? LIST_NEXT(t, link) : LIST_FIRST(&c->transfers)) {
        if (!t->watching)
            continue;
        t->watching = false;
        t->unwatching = true;
        pthread_mutex_unlock(&s->lock);
        staging_unwatch(c->worker, &t->staging);
        pthread_mutex_lock(&s->lock);
        t->unwatching = false;
        pthread_cond_broadcast(&s->changed);
        t = NULL; /* the list may have changed: start again */
    }
    pthread_mutex_unlock(&s->lock);
}

static void staging_came(struct waker *w)
{
    struct transfer *t = (struct transfer *)w;
    struct session  *s = t->session;

    pthread_mutex_lock(&s->lock);
    t->watching = false;
    wake_once(&t->user);
    pthread_mutex_unlock(&s->lock);
}

void transfer_let_go(struct transfer *t)
{
    if (t->buffer)
        buffer_unpin(t->buffer);
    t->buffer = NULL;
}

static void transfer_free(struct transfer *t)
{
    struct session *s = t->session;
    bool            unnoticed = t->unnoticed;

    pthread_mutex_lock(&s->lock);
    LIST_REMOVE(t, link);
    transfer_let_go(t);
    worker_session_unref(t->worker_session);
    pthread_mutex_unlock(&s->lock);
    free(t);
    session_unpin(s, !unnoticed);
}

void transfer_unnoticed(struct transfer *t)
{
    t->unnoticed = true;
}

/* With session.lock held. Reads are counted apart, because a snapshot waits for all other uses. */
static void transfer_use(struct transfer *t)
{
    assert(held(&t->session->lock));
    t->worker_session->uses++;
    t->worker_session->reads += !t->writing;
}

static void transfer_unuse(struct transfer *t)
{
    assert(held(&t->session->lock));
    t->worker_session->reads -= !t->writing;
    worker_session_unuse(t->worker_session);
}

/* With session.lock held: the last steps of a call's end. True when nobody needs the transfer any more. */
static bool land_piece(struct piece *p)
{
    struct transfer       *t = p->transfer;
    struct worker_session *c = t->worker_session;

    assert(held(&t->session->lock));
    assert(t->holds > 0);
    if (!p->call.status)
        use_add_bytes(t->session, t->writing, p->bytes);
    if (p->call.status && !t->problem.status) {
        t->problem = p->call.problem;
        t->problem.status = p->call.status;
    }
    worker_session_check_call(c, &p->call);
    if (!t->writing && !p->call.status && (t->to_arrive -= p->bytes) == 0)
        transfer_let_go(t);
    t->holds--;
    transfer_unuse(t);
    wake_once(&t->user);
    pthread_cond_broadcast(&t->session->changed);
    return t->destroyed && t->holds == 0;
}

/* FLYING to FILLING or IDLE: also of one that was not submitted. */
void piece_set_state(struct piece *p, enum piece_state next)
{
    static const bool may[PIECE_ARRIVED + 1][PIECE_ARRIVED + 1] = {
        [PIECE_IDLE] = {[PIECE_FILLING] = 1, [PIECE_FLYING] = 1},
        [PIECE_FILLING] = {[PIECE_FLYING] = 1},
        [PIECE_FLYING] = {[PIECE_ARRIVED] = 1, [PIECE_IDLE] = 1, [PIECE_FILLING] = 1},
        [PIECE_ARRIVED] = {[PIECE_IDLE] = 1},
    };

    assert(held(&p->transfer->session->lock));
    assert(may[p->state][next]);
    p->state = next;
}

static void on_piece_event(struct call *call, enum call_event event)
{
    struct piece    *p = (struct piece *)call;
    struct transfer *t = p->transfer;
    struct session  *s = t->session;
    struct slice     slice = p->slice;
    bool             last;

    if (event != CALL_DONE)
        return;
    pthread_mutex_lock(&s->lock);
    if (!t->writing && !call->status && !t->destroyed) {
        piece_set_state(p, PIECE_ARRIVED);
    } else {
        /* Until the state changes nobody else touches the piece. */
        pthread_mutex_unlock(&s->lock);
        staging_give(t->worker_session->worker, &slice);
        pthread_mutex_lock(&s->lock);
        piece_set_state(p, PIECE_IDLE);
    }
    last = land_piece(p);
    pthread_mutex_unlock(&s->lock);
    if (last)
        transfer_free(t);
}

static enum status begin_locked(struct session *s, struct transfer *t, struct span buffer, uint64_t offset, uint64_t bytes,
                                const struct contents *only, struct problem *why)
{
    enum status st = t->writing ? session_changeable_locked(s, why) : session_usable_locked(s, why);

    assert(held(&s->lock));
    if (st)
        return st;
    st = buffer_pin_if(s->worker_session, buffer, only, &t->buffer, why);
    if (st)
        return st;
    st = range_check(t->buffer, offset, bytes, why);
    if (st) {
        buffer_unpin(t->buffer);
        return st;
    }
    t->worker_session = s->worker_session;
    worker_session_ref(t->worker_session);
    t->address = t->buffer->address + offset;
    t->order = launch_order(t->worker_session);
    s->epoch += t->writing;
    LIST_INSERT_HEAD(&t->worker_session->transfers, t, link);
    return STATUS_OK;
}

static enum status begin_transfer(struct session *s, struct span buffer, uint64_t offset, uint64_t bytes, bool writing,
                                  const struct contents *only, struct transfer **out, struct problem *why)
{
    struct transfer *t = calloc(1, sizeof *t);
    enum status      st;

    if (!t)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a transfer");
    t->staging.wake = staging_came;
    t->session = s;
    t->writing = writing;
    t->left = t->unread = t->to_arrive = bytes;
    for (unsigned i = 0; i < TRANSFER_SLICES_MAX; i++)
        t->pieces[i].transfer = t;
    pthread_mutex_lock(&s->lock);
    st = begin_locked(s, t, buffer, offset, bytes, only, why);
    pthread_mutex_unlock(&s->lock);
    if (st) {
        free(t);
        return st;
    }
    session_pin(s);
    *out = t;
    return STATUS_OK;
}

enum status transfer_write_begin(struct session *s, struct span buffer, uint64_t offset, uint64_t bytes, const struct contents *only,
                                 struct transfer **out, struct problem *why)
{
    return begin_transfer(s, buffer, offset, bytes, true, only, out, why);
}

enum status transfer_read_begin(struct session *s, struct span buffer, uint64_t offset, uint64_t bytes, struct transfer **out,
                                struct problem *why)
{
    return begin_transfer(s, buffer, offset, bytes, false, NULL, out, why);
}

enum status transfer_state(const struct transfer *t, struct problem *why)
{
    if (!t->problem.status)
        return worker_session_still_usable(t->worker_session, why);
    if (why)
        *why = t->problem;
    return t->problem.status;
}

enum status transfer_step_begin(struct transfer *t, struct problem *why)
{
    struct worker_session *c = t->worker_session;
    bool                   unwatch = false;
    enum status            st;

    pthread_mutex_lock(&t->session->lock);
    t->user = NULL;
    st = transfer_state(t, why);
    if (!st) {
        transfer_use(t);
        unwatch = t->watching;
        t->watching = false;
    }
    pthread_mutex_unlock(&t->session->lock);
    if (unwatch)
        staging_unwatch(c->worker, &t->staging);
    return st;
}

enum status transfer_step_end(struct transfer *t, enum status st, const struct problem *why)
{
    atomic_fetch_sub(&t->worker_session->reads, !t->writing); /* first: reads are never more than uses */
    return worker_session_leave_with(t->worker_session, st, why);
}

enum status transfer_lend_begin(struct transfer *t, struct waker *w, struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&t->session->lock);
    st = transfer_state(t, why);
    if (!st)
        t->borrower = w;
    pthread_mutex_unlock(&t->session->lock);
    return st;
}

void transfer_lend_end(struct transfer *t)
{
    pthread_mutex_lock(&t->session->lock);
    t->borrower = NULL;
    pthread_mutex_unlock(&t->session->lock);
}

enum status transfer_slice(struct transfer *t, uint64_t bytes, struct slice *out, struct waker *w)
{
    struct worker  *worker = t->worker_session->worker;
    struct session *s = t->session;
    enum status     st = staging_take(worker, bytes, out, NULL);
    bool            woken;

    if (st != STATUS_PENDING || !w)
        return st;
    pthread_mutex_lock(&s->lock);
    t->user = w;
    t->watching = true;
    pthread_mutex_unlock(&s->lock);
    st = staging_take(worker, bytes, out, &t->staging);
    if (st == STATUS_PENDING)
        return st;
    pthread_mutex_lock(&s->lock);
    t->watching = false;
    woken = t->user == NULL;
    t->user = NULL;
    pthread_mutex_unlock(&s->lock);
    if (!woken || st)
        return st;
    /* w was woken between the two tries: it will ask again, so it must get PENDING now */
    staging_give(worker, out);
    return STATUS_PENDING;
}

static enum status submit_piece(struct piece *p)
{
    struct transfer *t = p->transfer;
    struct worker   *worker = t->worker_session->worker;

    p->call = (struct call){.on_event = on_piece_event, .deadline_ns = DEADLINE_NEVER};
    if (t->writing)
        return worker_submit_mem_write(worker, &(struct msg_mem_write){.to = p->address, .from = {p->slice.ref.offset, p->bytes}},
                                       &p->call);
    return worker_submit_mem_read(worker, &(struct msg_mem_read){.from = p->address, .to = {p->slice.ref.offset, p->bytes}}, &p->call);
}

/* A call could not be submitted. PENDING when the end of another call of this transfer makes space. With session.lock held. */
static enum status not_submitted(struct transfer *t, enum status st, struct waker *w, struct problem *why)
{
    assert(held(&t->session->lock));
    assert(t->holds > 0);
    t->holds--;
    if (st == STATUS_OVERLOADED && t->holds > 0) {
        transfer_unuse(t);
        t->user = w;
        return STATUS_PENDING;
    }
    worker_session_not_submitted(t->worker_session, st, &t->problem);
    transfer_unuse(t);
    if (why)
        *why = t->problem;
    return st;
}

enum status transfer_fly(struct piece *p, struct waker *w, struct problem *why)
{
    struct transfer *t = p->transfer;
    struct session  *s = t->session;
    enum piece_state before = p->state;
    enum status      st;
    bool             wait;

    pthread_mutex_lock(&s->lock);
    wait = !launch_ordered(t->worker_session, t->order);
    if (wait) {
        t->user = w;
    } else {
        piece_set_state(p, PIECE_FLYING);
        t->holds++;
        transfer_use(t);
    }
    pthread_mutex_unlock(&s->lock);
    if (wait)
        return STATUS_PENDING;
    st = submit_piece(p);
    if (!st)
        return st;
    pthread_mutex_lock(&s->lock);
    piece_set_state(p, before);
    st = not_submitted(t, st, w, why);
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* Returns slices that no call uses, while the worker exists. */
static void give_slices(struct transfer *t)
{
    for (unsigned i = 0; i < TRANSFER_SLICES_MAX; i++) {
        enum piece_state state;
        pthread_mutex_lock(&t->session->lock);
        state = t->pieces[i].state;
        pthread_mutex_unlock(&t->session->lock);
        if (state == PIECE_FILLING || state == PIECE_ARRIVED)
            staging_give(t->worker_session->worker, &t->pieces[i].slice);
    }
}

void transfer_destroy(struct transfer *t)
{
    struct session        *s;
    struct worker_session *c;
    bool                   open, last, unwatch;

    if (!t)
        return;
    s = t->session;
    c = t->worker_session;
    pthread_mutex_lock(&s->lock);
    /* A closing worker session cancels the registrations itself, at once. */
    while (t->unwatching || (c->closed && t->watching))
        pthread_cond_wait(&s->changed, &s->lock);
    t->user = NULL;
    t->destroyed = true;
    t->holds++;
    s->epoch += t->writing && !t->finished;
    unwatch = t->watching;
    t->watching = false;
    open = !c->closed;
    c->uses += open;
    pthread_mutex_unlock(&s->lock);
    if (open && unwatch)
        staging_unwatch(c->worker, &t->staging);
    if (open)
        give_slices(t);
    pthread_mutex_lock(&s->lock);
    if (open)
        worker_session_unuse(c);
    last = --t->holds == 0;
    pthread_mutex_unlock(&s->lock);
    if (last)
        transfer_free(t);
}
