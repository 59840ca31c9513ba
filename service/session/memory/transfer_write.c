/* The writing side of transfers: bytes into staging slices, full slices to the device. */
#include "session/bounds.h"
#include "session/memory/transfer_internal.h"

static struct piece *idle_piece(struct transfer *t, struct waker *w)
{
    struct piece *p = NULL;

    pthread_mutex_lock(&t->session->lock);
    for (unsigned i = 0; i < TRANSFER_SLICES_MAX && !p; i++)
        if (t->pieces[i].state == PIECE_IDLE)
            p = &t->pieces[i];
    if (!p)
        t->user = w;
    pthread_mutex_unlock(&t->session->lock);
    return p;
}

/* Every call wakes the worker, and its answer wakes a thread here: far from its end a long upload makes longer pieces and so fewer
 * calls. Its last pieces are short, because a client that waits for the end waits for the last copy. */
static bool wants_long_piece(const struct transfer *t)
{
    uint64_t many = (uint64_t)TRANSFER_LONG_PIECES_MIN * TRANSFER_LONG_PIECE_BYTES;

    return t->left >= many && staging_bytes(t->worker_session->worker) >= many;
}

/* Never waits for a long piece: takes a shorter one instead. *bytes is the piece's size. */
static enum status take_slices(struct transfer *t, struct slice *out, size_t *bytes, struct waker *w)
{
    *bytes = TRANSFER_LONG_PIECE_BYTES;
    if (wants_long_piece(t) && transfer_slice(t, *bytes, out, NULL) == STATUS_OK)
        return STATUS_OK;
    *bytes = t->left < STAGING_SLICE_BYTES ? (size_t)t->left : STAGING_SLICE_BYTES;
    return transfer_slice(t, *bytes, out, w);
}

static enum status open_piece(struct transfer *t, struct waker *w, struct problem *why)
{
    struct piece *p;
    enum status   st;
    size_t        bytes;

    if (!t->left)
        return problem_set(why, STATUS_LENGTH_MISMATCH, "the body is longer than announced");
    p = idle_piece(t, w);
    if (!p)
        return STATUS_PENDING;
    st = take_slices(t, &p->slice, &bytes, w);
    if (st)
        return st == STATUS_PENDING ? st : problem_set(why, st, "no staging memory is free");
    p->address = t->address;
    p->bytes = bytes;
    p->done = 0;
    t->address += bytes;
    t->left -= bytes;
    t->filling = p;
    pthread_mutex_lock(&t->session->lock);
    piece_set_state(p, PIECE_FILLING);
    pthread_mutex_unlock(&t->session->lock);
    return STATUS_OK;
}

/* A full piece leaves. */
static enum status flush_piece(struct transfer *t, struct waker *w, struct problem *why)
{
    enum status st;

    if (!t->filling || t->filling->done < t->filling->bytes)
        return STATUS_OK;
    st = transfer_fly(t->filling, w, why);
    if (!st)
        t->filling = NULL;
    return st;
}

/* t->filling has room then. */
static enum status make_staging_room(struct transfer *t, struct waker *w, struct problem *why)
{
    enum status st = flush_piece(t, w, why);

    return st || t->filling ? st : open_piece(t, w, why);
}

static enum status write_step(struct transfer *t, struct span data, size_t *consumed, struct waker *w, struct problem *why)
{
    struct piece *p;
    enum status   st = make_staging_room(t, w, why);

    if (st)
        return st;
    p = t->filling;
    data = span_first(data, p->bytes - p->done);
    memcpy(p->slice.data + p->done, data.data, data.bytes);
    p->done += data.bytes;
    *consumed = data.bytes;
    st = flush_piece(t, NULL, why);
    return st == STATUS_PENDING ? STATUS_OK : st;
}

enum status transfer_write(struct transfer *t, struct span piece, size_t *consumed, struct waker *w, struct problem *why)
{
    enum status st;

    *consumed = 0;
    st = transfer_step_begin(t, why);
    if (st)
        return st;
    if (piece.bytes)
        st = write_step(t, piece, consumed, w, why);
    return transfer_step_end(t, st, why);
}

enum status transfer_write_borrow(struct transfer *t, char **to, size_t *room, struct waker *w, struct problem *why)
{
    enum status st = transfer_step_begin(t, why);

    if (st)
        return st;
    st = make_staging_room(t, w, why);
    if (!st)
        st = transfer_lend_begin(t, w, why);
    if (st)
        return transfer_step_end(t, st, why);
    *to = (char *)t->filling->slice.data + t->filling->done;
    *room = t->filling->bytes - t->filling->done;
    return STATUS_OK;
}

/* Ends the step that transfer_write_borrow() began. */
enum status transfer_write_commit(struct transfer *t, size_t bytes, struct problem *why)
{
    enum status st;

    transfer_lend_end(t);
    if (bytes > t->filling->bytes - t->filling->done)
        return transfer_step_end(t, problem_set(why, STATUS_INTERNAL, "more bytes than the lent memory"), why);
    t->filling->done += bytes;
    st = flush_piece(t, NULL, why);
    return transfer_step_end(t, st == STATUS_PENDING ? STATUS_OK : st, why);
}

enum status transfer_write_flush(struct transfer *t, struct waker *w, struct problem *why)
{
    enum status st = transfer_step_begin(t, why);

    return st ? st : transfer_step_end(t, flush_piece(t, w, why), why);
}

/* Sleeps until a call has ended, it is this transfer's turn, or the session is lost. */
static enum status wait_for_turn(struct transfer *t, struct problem *why)
{
    struct session *s = t->session;
    unsigned        before;
    enum status     st;

    pthread_mutex_lock(&s->lock);
    before = t->holds;
    while ((st = transfer_state(t, why)) == STATUS_OK && t->holds == before && (before || !launch_ordered(t->worker_session, t->order)))
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return st;
}

static enum status wait_for_flights(struct transfer *t, struct problem *why)
{
    struct session *s = t->session;
    enum status     st = STATUS_OK;

    pthread_mutex_lock(&s->lock);
    while (t->holds)
        pthread_cond_wait(&s->changed, &s->lock);
    if (t->problem.status) {
        *why = t->problem;
        st = t->problem.status;
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* From here the contents do not change any more. */
static void end_of_write(struct transfer *t)
{
    pthread_mutex_lock(&t->session->lock);
    t->session->epoch++;
    t->finished = true;
    if (t->buffer)
        t->contents = contents_of(t->worker_session, t->buffer);
    transfer_let_go(t);
    pthread_mutex_unlock(&t->session->lock);
}

struct contents transfer_contents(const struct transfer *t)
{
    return t->contents;
}

enum status transfer_write_finish(struct transfer *t, struct problem *why)
{
    enum status st = transfer_step_begin(t, why);

    if (st)
        return st;
    if (t->left || (t->filling && t->filling->done < t->filling->bytes))
        st = problem_set(why, STATUS_LENGTH_MISMATCH, "the body is shorter than announced");
    while (!st && t->filling) {
        st = flush_piece(t, NULL, why);
        if (st == STATUS_PENDING)
            st = wait_for_turn(t, why);
    }
    if (!st)
        st = wait_for_flights(t, why);
    if (!st)
        end_of_write(t);
    return transfer_step_end(t, st, why);
}
