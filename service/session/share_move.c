/* Copies between a buffer and the memory that clients map for it, through staging memory, as uploads and downloads go. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/spin.h"
#include "session/share.h"
#include "session/share_parts.h"

/* A part of it, on a thread of its own. */
struct copy {
    const struct share  *memory;
    enum share_direction direction;
    struct transfer     *transfer;
    uint64_t             at, left; /* in the memory */
    pthread_t            thread;
    bool                 started; /* the thread */
    enum status          status;
    struct problem       problem; /* of a failed status */
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

/* ---- several at once ---- */

/* A part each, where more processors than the copying needs are there: one thread does not fill a memory bus. */
static unsigned parts_for(uint64_t bytes)
{
    uint64_t most = spin_cpus() / 2;

    most = most < SHARE_COPY_THREADS_MAX ? most : SHARE_COPY_THREADS_MAX;
    most = most < bytes / SHARE_PART_BYTES_MIN ? most : bytes / SHARE_PART_BYTES_MIN;
    return most ? (unsigned)most : 1;
}

static void *copy_part(void *argument)
{
    struct copy *c = argument;

    c->status = c->direction == SHARE_TO_DEVICE ? write_all(c, &c->problem) : read_all(c, &c->problem);
    return NULL;
}

static enum status begin_part(struct session *s, struct span buffer, struct copy *c, struct problem *why)
{
    if (c->direction == SHARE_TO_DEVICE)
        return transfer_write_begin(s, buffer, c->at, c->left, &c->transfer, why);
    return transfer_read_begin(s, buffer, c->at, c->left, &c->transfer, why);
}

/* All are begun before one byte moves: together they have one place in the order of the session. */
static enum status begin_all(struct session *s, struct span buffer, struct copy *parts, unsigned count, struct problem *why)
{
    enum status st = STATUS_OK;
    unsigned    n = 0;

    while (n < count && !(st = begin_part(s, buffer, &parts[n], why)))
        n++;
    if (!st)
        return STATUS_OK;
    while (n-- > 0)
        transfer_destroy(parts[n].transfer);
    return st;
}

static enum status copy_all(struct copy *parts, unsigned count, struct problem *why)
{
    enum status st = STATUS_OK;

    for (unsigned i = 1; i < count; i++)
        parts[i].started = pthread_create(&parts[i].thread, NULL, copy_part, &parts[i]) == 0;
    copy_part(&parts[0]);
    for (unsigned i = 1; i < count; i++) {
        if (parts[i].started)
            pthread_join(parts[i].thread, NULL);
        else
            copy_part(&parts[i]);
    }
    for (unsigned i = 0; i < count && !st; i++) {
        st = parts[i].status;
        if (st)
            *why = parts[i].problem;
    }
    return st;
}

/* The buffer of that id may be another one by now: so the range is checked against both. */
static enum status copy(struct session *s, struct span buffer, const struct copy *whole, struct problem *why)
{
    struct copy *parts;
    unsigned     count = parts_for(whole->left);
    uint64_t     share = whole->left / count;
    enum status  st;

    if (whole->at > whole->memory->bytes || whole->left > whole->memory->bytes - whole->at)
        return problem_set(why, STATUS_RANGE_NOT_SATISFIABLE, "the range lies outside the shared memory");
    parts = calloc(count, sizeof *parts); /* with their problems they are too large for a stack */
    if (!parts)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "no memory for the copy");
    for (unsigned i = 0; i < count; i++) {
        parts[i] = *whole;
        parts[i].at = whole->at + i * share;
        parts[i].left = i + 1 < count ? share : whole->left - i * share;
    }
    st = begin_all(s, buffer, parts, count, why);
    if (!st)
        st = copy_all(parts, count, why);
    free(parts);
    return st;
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
    struct copy     work = {.direction = direction, .at = offset, .left = bytes};
    enum status     st = context_enter(s, &c, why);

    if (st)
        return st;
    st = find(c, buffer, &m, why);
    if (st)
        return context_leave_with(c, st, why);
    context_leave(c); /* the copy has uses of its own: a reset is not to wait for all of it */
    work.memory = m;
    st = copy(s, buffer, &work, why);
    pthread_mutex_lock(&s->lock);
    share_unref(s->registry, m);
    pthread_mutex_unlock(&s->lock);
    shares_reap(s->registry);
    return st;
}
