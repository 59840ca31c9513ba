/* The reading side of transfers: slices are requested ahead and handed out in order. */
#include "session/bounds.h"

#include "session/memory/transfer_internal.h"
#include <assert.h>

/* Asks for the next slice of bytes; `slice` was taken for it. */
static enum status ask_for_slice(struct transfer *t, const struct slice *slice, size_t bytes, struct waker *w, struct problem *why)
{
    struct piece *p = &t->pieces[(t->head + t->count) % TRANSFER_SLICES_MAX];
    enum status   st;

    p->slice = *slice;
    p->address = t->address;
    p->bytes = bytes;
    p->done = 0;
    st = transfer_fly(p, w, why);
    if (st) {
        staging_give(t->worker_session->worker, &p->slice);
        return st;
    }
    t->address += bytes;
    t->left -= bytes;
    t->count++;
    return STATUS_OK;
}

static size_t next_bytes(const struct transfer *t)
{
    return t->left < STAGING_SLICE_BYTES ? (size_t)t->left : STAGING_SLICE_BYTES;
}

/* Requests as many slices ahead as there is space for. PENDING, with w registered, only when nothing is in flight. */
static enum status read_ahead(struct transfer *t, struct waker *w, struct problem *why)
{
    while (t->left && t->count < TRANSFER_SLICES_MAX) {
        struct waker *waiter = t->count ? NULL : w;
        struct slice  slice;
        size_t        bytes = next_bytes(t);
        enum status   st = transfer_slice(t, bytes, &slice, waiter);
        if (st && st != STATUS_PENDING)
            return problem_set(why, st, "no staging memory is free");
        if (!st)
            st = ask_for_slice(t, &slice, bytes, waiter, why);
        if (st)
            return st == STATUS_PENDING && t->count ? STATUS_OK : st;
    }
    return STATUS_OK;
}

/* Nothing is in flight: waits for the transfer's turn and for staging memory. */
static enum status read_first(struct transfer *t, struct problem *why)
{
    struct slice slice;
    enum status  st = worker_session_wait_order(t->worker_session, why);

    if (!st)
        st = worker_session_staging(t->worker_session, next_bytes(t), &slice, why);
    if (!st)
        st = ask_for_slice(t, &slice, next_bytes(t), NULL, why);
    return st == STATUS_PENDING ? problem_set(why, STATUS_OVERLOADED, "too many calls are waiting for the device") : st;
}

static enum status wait_for_head(struct transfer *t, struct problem *why)
{
    struct session *s = t->session;
    enum status     st = STATUS_OK;

    pthread_mutex_lock(&s->lock);
    while (t->pieces[t->head].state == PIECE_FLYING)
        pthread_cond_wait(&s->changed, &s->lock);
    if (t->problem.status)
        st = transfer_state(t, why);
    pthread_mutex_unlock(&s->lock);
    return st;
}

enum status transfer_read_wait(struct transfer *t, struct problem *why)
{
    enum status st = transfer_step_begin(t, why);

    if (st)
        return st;
    if (t->left && !t->count)
        st = read_first(t, why);
    if (!st)
        st = read_ahead(t, NULL, why);
    if (!st && t->count)
        st = wait_for_head(t, why);
    return transfer_step_end(t, st == STATUS_PENDING ? STATUS_OK : st, why);
}

/* OK: the head's bytes have arrived. PENDING with w registered, or why they never will. */
static enum status head_state(struct transfer *t, struct waker *w, struct problem *why)
{
    enum status st = STATUS_OK;

    pthread_mutex_lock(&t->session->lock);
    if (t->pieces[t->head].state != PIECE_ARRIVED) {
        st = transfer_state(t, why);
        if (!st) {
            t->user = w;
            st = STATUS_PENDING;
        }
    }
    pthread_mutex_unlock(&t->session->lock);
    return st;
}

static enum status head_ready(struct transfer *t, struct waker *w, struct problem *why)
{
    enum status st = t->count ? STATUS_OK : read_ahead(t, w, why);

    return st ? st : head_state(t, w, why);
}

static struct span head_bytes(const struct transfer *t)
{
    const struct piece *p = &t->pieces[t->head];

    return (struct span){(const char *)p->slice.data + p->done, p->bytes - p->done};
}

/* The head's next n bytes are used up; an empty slice goes back. */
static void pass_bytes(struct transfer *t, size_t n)
{
    struct piece *p = &t->pieces[t->head];

    assert(t->count > 0 && n <= p->bytes - p->done && n <= t->unread);
    p->done += n;
    t->unread -= n;
    if (p->done < p->bytes)
        return;
    staging_give(t->worker_session->worker, &p->slice);
    t->head = (t->head + 1) % TRANSFER_SLICES_MAX;
    t->count--;
    pthread_mutex_lock(&t->session->lock);
    piece_set_state(p, PIECE_IDLE);
    pthread_mutex_unlock(&t->session->lock);
}

static enum status pass_and_ask(struct transfer *t, size_t n, struct problem *why)
{
    enum status st;

    pass_bytes(t, n);
    st = read_ahead(t, NULL, why);
    return st == STATUS_PENDING ? STATUS_OK : st;
}

static enum status read_step(struct transfer *t, char *to, size_t room, size_t *got, struct waker *w, struct problem *why)
{
    enum status st;
    struct span piece;

    if (!t->unread || !room)
        return STATUS_OK;
    st = head_ready(t, w, why);
    if (st)
        return st;
    piece = span_first(head_bytes(t), room);
    memcpy(to, piece.data, piece.bytes);
    *got = piece.bytes;
    return pass_and_ask(t, piece.bytes, why);
}

enum status transfer_read(struct transfer *t, char *to, size_t room, size_t *got, struct waker *w)
{
    struct problem why;
    enum status    st;

    *got = 0;
    st = transfer_step_begin(t, &why);
    return st ? st : transfer_step_end(t, read_step(t, to, room, got, w, &why), &why);
}

enum status transfer_read_lend(struct transfer *t, struct span *out, struct waker *w)
{
    struct problem why;
    enum status    st = transfer_step_begin(t, &why);

    if (st)
        return st;
    st = t->unread ? head_ready(t, w, &why) : problem_set(&why, STATUS_INTERNAL, "nothing is left to read");
    if (!st)
        st = transfer_lend_begin(t, w, &why);
    if (st)
        return transfer_step_end(t, st, &why);
    *out = head_bytes(t);
    return STATUS_OK;
}

/* Ends the step that transfer_read_lend() began. The next step reports errors. */
void transfer_read_release(struct transfer *t, size_t bytes)
{
    struct problem why;

    transfer_lend_end(t);
    transfer_step_end(t, pass_and_ask(t, bytes, &why), &why);
}
