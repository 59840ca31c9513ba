/* Copies between a buffer and the memory that clients map for it, through staging memory, as uploads and downloads go. */
#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "session/share.h"
#include "session/share_parts.h"

struct copy {
    const struct share *memory;
    struct transfer    *transfer;
    uint64_t            at, left; /* in the memory */
};

/* ---- a waker to sleep on ---- */

struct bell {
    struct waker    waker; /* first */
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    bool            rung;
};

static void ring(struct waker *w)
{
    struct bell *b = (struct bell *)w;

    pthread_mutex_lock(&b->lock);
    b->rung = true;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

static void bell_init(struct bell *b)
{
    *b = (struct bell){.waker = {.wake = ring}};
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
}

static void bell_finish(struct bell *b)
{
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
}

static void bell_wait(struct bell *b)
{
    pthread_mutex_lock(&b->lock);
    while (!b->rung)
        pthread_cond_wait(&b->changed, &b->lock);
    b->rung = false;
    pthread_mutex_unlock(&b->lock);
}

/* ---- the copies ---- */

static enum status no_bytes(ssize_t n, struct problem *why)
{
    log_warn("session", "shared memory could not be copied: %s", n < 0 ? strerror(errno) : "its end came early");
    return problem_set(why, STATUS_OUT_OF_MEMORY, "the shared memory could not be read or written");
}

static enum status write_piece(struct copy *c, struct bell *bell, struct problem *why)
{
    char       *to;
    size_t      room;
    ssize_t     n;
    enum status st = transfer_write_borrow(c->transfer, &to, &room, &bell->waker, why);

    if (st == STATUS_PENDING) {
        bell_wait(bell);
        return STATUS_OK;
    }
    if (st)
        return st;
    n = pread(c->memory->fd, to, room < c->left ? room : (size_t)c->left, (off_t)c->at);
    st = transfer_write_commit(c->transfer, n > 0 ? (size_t)n : 0, why);
    if (n <= 0)
        return no_bytes(n, why);
    c->at += (uint64_t)n;
    c->left -= (uint64_t)n;
    return st;
}

static enum status write_all(struct copy *c, struct problem *why)
{
    struct bell bell;
    enum status st = STATUS_OK;

    bell_init(&bell);
    while (c->left && !st)
        st = write_piece(c, &bell, why);
    if (!st)
        st = transfer_write_finish(c->transfer, why);
    transfer_destroy(c->transfer); /* nobody rings any more */
    bell_finish(&bell);
    return st;
}

static enum status read_piece(struct copy *c, struct problem *why)
{
    struct span piece;
    ssize_t     n;
    enum status st = transfer_read_wait(c->transfer, why);

    if (st)
        return st;
    st = transfer_read_lend(c->transfer, &piece, NULL);
    if (st && st != STATUS_PENDING && !transfer_read_wait(c->transfer, why)) /* which says why */
        return problem_set(why, st, "%s", status_title(st));
    if (st)
        return STATUS_OK; /* asked again, it waits or fails */
    n = pwrite(c->memory->fd, piece.data, piece.bytes, (off_t)c->at);
    transfer_read_release(c->transfer, n > 0 ? (size_t)n : 0);
    if (n <= 0)
        return no_bytes(n, why);
    c->at += (uint64_t)n;
    c->left -= (uint64_t)n;
    return STATUS_OK;
}

static enum status read_all(struct copy *c, struct problem *why)
{
    enum status st = STATUS_OK;

    while (c->left && !st)
        st = read_piece(c, why);
    transfer_destroy(c->transfer);
    return st;
}

/* The buffer of that id may be another one by now: so the range is checked against both. */
static enum status copy(struct session *s, struct span buffer, enum share_direction direction, struct copy *c, struct problem *why)
{
    enum status st;

    if (c->at > c->memory->bytes || c->left > c->memory->bytes - c->at)
        return problem_set(why, STATUS_RANGE_NOT_SATISFIABLE, "the range lies outside the shared memory");
    if (direction == SHARE_TO_DEVICE)
        st = transfer_write_begin(s, buffer, c->at, c->left, &c->transfer, why);
    else
        st = transfer_read_begin(s, buffer, c->at, c->left, &c->transfer, why);
    if (st)
        return st;
    return direction == SHARE_TO_DEVICE ? write_all(c, why) : read_all(c, why);
}

static enum status find(struct context *c, struct span id, struct share **out, struct problem *why)
{
    struct buffer *b = NULL;
    enum status    st;

    pthread_mutex_lock(&c->session->lock);
    st = buffer_pin(c, id, &b, why);
    if (!st) {
        *out = b->share;
        if (b->share)
            b->share->refs++;
        else
            st = problem_set(why, STATUS_SHARE_NOT_FOUND, "the buffer's memory is not shared");
        buffer_unpin(b);
    }
    pthread_mutex_unlock(&c->session->lock);
    return st;
}

enum status share_move(struct session *s, struct span buffer, enum share_direction direction, uint64_t offset, uint64_t bytes,
                       struct problem *why)
{
    struct share   *m = NULL;
    struct context *c;
    struct copy     work = {.at = offset, .left = bytes};
    enum status     st = context_enter(s, &c, why);

    if (st)
        return st;
    st = find(c, buffer, &m, why);
    if (st)
        return context_leave_with(c, st, why);
    context_leave(c); /* the copy has uses of its own: a reset is not to wait for all of it */
    work.memory = m;
    st = copy(s, buffer, direction, &work, why);
    pthread_mutex_lock(&s->lock);
    share_unref(s->registry, m);
    pthread_mutex_unlock(&s->lock);
    shares_reap(s->registry);
    return st;
}
