/* The reading side of transfers: slices asked for ahead, handed out in order. */
#include "session/transfer_parts.h"

/* Asks for the next slice of bytes; `slice` was taken for it. */
static enum status ask(struct transfer *t, const struct slice *slice, size_t bytes, struct waker *w, struct problem *why)
{
    struct piece *p = &t->pieces[(t->head + t->count) % TRANSFER_SLICES_MAX];
    enum status   st;

    p->slice = *slice;
    p->address = t->address;
    p->bytes = bytes;
    p->done = 0;
    st = transfer_fly(p, w, why);
    if (st) {
        staging_give(t->context->worker, &p->slice);
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

/* As many slices ahead as there is room for. PENDING, with w registered, only when there is nothing under way. */
static enum status read_ahead(struct transfer *t, struct waker *w, struct problem *why)
{
    while (t->left && t->count < TRANSFER_SLICES_MAX) {
        struct waker *waiter = t->count ? NULL : w;
        struct slice  slice;
        size_t        bytes = next_bytes(t);
        enum status   st = transfer_slice(t, bytes, &slice, waiter);
        if (st && st != STATUS_PENDING)
            return problem_set(why, st, "no staging memory");
        if (!st)
            st = ask(t, &slice, bytes, waiter, why);
        if (st)
            return st == STATUS_PENDING && t->count ? STATUS_OK : st;
    }
    return STATUS_OK;
}

/* Nothing is under way: waits for its turn and for staging memory. */
static enum status read_first(struct transfer *t, struct problem *why)
{
    struct slice slice;
    enum status  st = context_wait_order(t->context, why);

    if (!st)
        st = context_staging(t->context, next_bytes(t), &slice, why);
    if (!st)
        st = ask(t, &slice, next_bytes(t), NULL, why);
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
    struct problem local;
    enum status    st;

    why = why ? why : &local;
    st = transfer_step_begin(t, why);
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

static bool head_arrived(struct transfer *t, struct waker *w)
{
    bool arrived;

    pthread_mutex_lock(&t->session->lock);
    arrived = t->pieces[t->head].state == PIECE_ARRIVED;
    if (!arrived)
        t->user = w;
    pthread_mutex_unlock(&t->session->lock);
    return arrived;
}

static void hand_out(struct transfer *t, char *to, size_t room, size_t *got)
{
    struct piece *p = &t->pieces[t->head];
    size_t        n = p->bytes - p->done < room ? p->bytes - p->done : room;

    memcpy(to, p->slice.data + p->done, n);
    p->done += n;
    t->unread -= n;
    *got = n;
    if (p->done < p->bytes)
        return;
    staging_give(t->context->worker, &p->slice);
    t->head = (t->head + 1) % TRANSFER_SLICES_MAX;
    t->count--;
    pthread_mutex_lock(&t->session->lock);
    p->state = PIECE_IDLE;
    pthread_mutex_unlock(&t->session->lock);
}

static enum status read_step(struct transfer *t, char *to, size_t room, size_t *got, struct waker *w, struct problem *why)
{
    enum status st = STATUS_OK;

    if (!t->unread || !room)
        return STATUS_OK;
    if (!t->count)
        st = read_ahead(t, w, why);
    if (st)
        return st;
    if (!head_arrived(t, w))
        return STATUS_PENDING;
    hand_out(t, to, room, got);
    st = read_ahead(t, NULL, why);
    return st == STATUS_PENDING ? STATUS_OK : st;
}

enum status transfer_read(struct transfer *t, char *to, size_t room, size_t *got, struct waker *w)
{
    struct problem why;
    enum status    st;

    *got = 0;
    st = transfer_step_begin(t, &why);
    return st ? st : transfer_step_end(t, read_step(t, to, room, got, w, &why), &why);
}
