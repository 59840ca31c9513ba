/* Carries a body into a transfer; makes the buffer on a helper thread, for the event loop must not wait for a worker. */
#include "api/upload.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "api/deferred.h"

enum state { NEW, CREATING, READY, FAILED };

struct upload {
    struct body_sink    sink;
    struct deferred_job job;
    struct deferred    *deferred;
    struct session     *session;
    struct transfer    *transfer;     /* NULL until READY */
    char                id[ID_BYTES]; /* as asked for */
    struct buffer_info  buffer;
    bool                created; /* by us; deleted again unless kept */
    bool                kept;
    bool                in_place; /* the buffer is there: only the transfer is made */
    uint64_t            offset;
    uint64_t            bytes, received;
    pthread_mutex_t     lock;    /* of the rest, between the helper and the request's threads */
    struct request     *request; /* NULL: it is over, its waker is gone */
    enum state          state;
    struct problem      problem; /* when FAILED */
};

static struct upload *upload_of(struct deferred_job *job)
{
    return (struct upload *)((char *)job - offsetof(struct upload, job));
}

/* May wait for the worker when a buffer is to be removed. */
static void dispose(struct upload *u)
{
    transfer_destroy(u->transfer);
    if (u->created && !u->kept)
        buffer_abandon(u->session, span_of(u->buffer.id));
    session_return(u->session);
    pthread_mutex_destroy(&u->lock);
    free(u);
}

static void run_dispose(struct deferred_job *job)
{
    dispose(upload_of(job));
}

static enum status create(struct upload *u, struct problem *why)
{
    enum status st = STATUS_OK;

    if (!u->in_place)
        st = buffer_create(u->session, span_of(u->id), u->bytes, &u->buffer, &u->created, why);
    if (!st)
        st = transfer_write_begin(u->session, span_of(u->buffer.id), u->offset, u->bytes, &u->transfer, why);
    return st;
}

/* False: the request was over already, and *u belongs to the caller. */
static bool settle(struct upload *u, enum status st, const struct problem *why)
{
    bool alive;

    pthread_mutex_lock(&u->lock);
    u->state = st ? FAILED : READY;
    if (st) {
        u->problem = *why;
        u->problem.status = st;
    }
    alive = u->request != NULL;
    if (alive)
        u->request->waker.wake(&u->request->waker);
    pthread_mutex_unlock(&u->lock);
    return alive;
}

static void run_create(struct deferred_job *job)
{
    struct upload *u = upload_of(job);
    struct problem why = {0};
    enum status    st = create(u, &why);

    if (!settle(u, st, &why))
        dispose(u);
}

static enum state start_creating(struct upload *u)
{
    enum state state;

    pthread_mutex_lock(&u->lock);
    state = u->state;
    if (state == NEW)
        u->state = CREATING;
    pthread_mutex_unlock(&u->lock);
    if (state == NEW) {
        u->job.run = run_create;
        deferred_push(u->deferred, &u->job);
    }
    return state;
}

/* PENDING until there is a buffer to write to; r->waker is then told by settle(). */
static enum status make_transfer(struct upload *u, struct request *r)
{
    switch (start_creating(u)) {
    case NEW:
    case CREATING:
        return STATUS_PENDING;
    case FAILED:
        r->problem = u->problem;
        return u->problem.status;
    case READY:
        break;
    }
    return STATUS_OK;
}

static enum status write_piece(struct body_sink *sink, struct request *r, struct span piece, size_t *consumed)
{
    struct upload *u = (struct upload *)sink;
    enum status    st = make_transfer(u, r);

    *consumed = 0;
    if (st)
        return st;
    if (piece.bytes > u->bytes - u->received)
        return problem_set(&r->problem, STATUS_LENGTH_MISMATCH, "the body is longer than the %" PRIu64 " bytes it must have", u->bytes);
    st = transfer_write(u->transfer, piece, consumed, &r->waker, &r->problem);
    u->received += *consumed;
    return st;
}

static enum status borrow_room(struct body_sink *sink, struct request *r, char **to, size_t *room)
{
    struct upload *u = (struct upload *)sink;
    enum status    st = make_transfer(u, r);

    return st ? st : transfer_write_borrow(u->transfer, to, room, &r->waker, &r->problem);
}

static enum status commit_room(struct body_sink *sink, struct request *r, size_t bytes)
{
    struct upload *u = (struct upload *)sink;

    u->received += bytes;
    return transfer_write_commit(u->transfer, bytes, &r->problem);
}

/* On the loop: must not wait, so what might wait goes to a helper. The transfer lets go of the request's waker right here. */
static void on_finish(struct request *r)
{
    struct upload *u = r->progress;
    bool           busy;

    pthread_mutex_lock(&u->lock);
    u->request = NULL;
    busy = u->state == CREATING;
    pthread_mutex_unlock(&u->lock);
    if (busy)
        return; /* run_create() disposes of it */
    transfer_destroy(u->transfer);
    u->transfer = NULL;
    if (!u->created || u->kept) {
        dispose(u);
        return;
    }
    u->job.run = run_dispose;
    deferred_push(u->deferred, &u->job);
}

static struct upload *start(struct request *r, struct session *s, uint64_t bytes)
{
    struct upload *u = calloc(1, sizeof *u);

    if (!u) {
        session_return(s);
        problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "no memory for the upload");
        return NULL;
    }
    pthread_mutex_init(&u->lock, NULL);
    u->sink = (struct body_sink){.write = write_piece, .borrow = borrow_room, .commit = commit_room, .bytes = bytes};
    u->deferred = app_of(r)->deferred;
    u->session = s;
    u->bytes = bytes;
    u->request = r;
    r->sink = &u->sink;
    r->progress = u;
    r->on_finish = on_finish;
    return u;
}

enum status upload_start(struct request *r, struct session *s, struct span buffer, uint64_t offset, uint64_t bytes)
{
    struct upload *u = start(r, s, bytes);
    enum status    st;

    if (!u)
        return STATUS_OUT_OF_MEMORY;
    u->in_place = true;
    u->offset = offset;
    if (!span_copy(buffer, u->buffer.id, sizeof u->buffer.id))
        return problem_set(&r->problem, STATUS_INVALID_FIELD, "the id is too long");
    if (r->wants_inline)
        return STATUS_OK; /* the write begins with its first piece, so that a body that is refused before changes no entity tag */
    st = create(u, &r->problem);
    u->state = st ? FAILED : READY;
    return st;
}

enum status upload_start_new(struct request *r, struct session *s, struct span id, uint64_t bytes)
{
    struct upload *u = start(r, s, bytes);

    if (!u)
        return STATUS_OUT_OF_MEMORY;
    if (!span_copy(id, u->id, sizeof u->id))
        return problem_set(&r->problem, STATUS_INVALID_FIELD, "the id is too long");
    return STATUS_OK;
}

/* A body without a byte has brought no write: the buffer is still to be made. */
static enum status make_ready(struct upload *u, struct problem *why)
{
    enum status st;

    if (u->state != NEW)
        return STATUS_OK;
    st = create(u, why);
    u->state = st ? FAILED : READY;
    return st;
}

enum status upload_finish(struct request *r)
{
    struct upload *u = r->progress;
    uint64_t       start = now_ns();
    enum status    st = make_ready(u, &r->problem);

    timing_begin(r);
    if (!st && u->received != u->bytes)
        st = problem_set(&r->problem, STATUS_LENGTH_MISMATCH, "the body has %" PRIu64 " bytes, it must have %" PRIu64, u->received,
                         u->bytes);
    if (!st)
        st = transfer_write_finish(u->transfer, &r->problem);
    r->timing.h2d_ms = ms_since(start);
    u->kept = !st;
    return st;
}

struct session *upload_session(const struct request *r)
{
    return ((const struct upload *)r->progress)->session;
}

const struct buffer_info *upload_buffer(const struct request *r, bool *created)
{
    const struct upload *u = r->progress;

    *created = u->created;
    return &u->buffer;
}
