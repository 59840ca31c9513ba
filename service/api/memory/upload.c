/* Carries a body into a transfer; has the buffer made first where waiting for a worker holds up nobody (request.prepare). */
#include "api/memory/upload.h"

#include <inttypes.h>
#include <stdlib.h>

struct upload {
    struct body_sink   sink;
    struct session    *session;
    struct transfer   *transfer;     /* NULL: still to be made */
    char               id[ID_BYTES]; /* as asked for */
    struct buffer_info buffer;
    bool               created; /* by us; deleted again unless kept */
    bool               kept;
    bool               in_place; /* the buffer is there: only the transfer is made */
    struct condition   condition;
    uint64_t           offset;
    uint64_t           bytes, received;
};

static enum status create_target(struct upload *u, struct problem *why)
{
    enum status st = STATUS_OK;

    if (!u->in_place)
        st = buffer_create(u->session, span_of(u->id), u->bytes, false, &u->buffer, &u->created, why);
    if (!st && u->condition.absent && !u->created)
        st = condition_not_absent(why);
    if (!st)
        st = transfer_write_begin(u->session, span_of(u->buffer.id), u->offset, u->bytes, condition_contents(&u->condition), &u->transfer,
                                  why);
    return st;
}

static enum status prepare_upload(struct request *r)
{
    return create_target(r->progress, &r->problem);
}

/* PENDING until there is a buffer to write to. */
static enum status make_transfer(struct upload *u, struct request *r)
{
    if (u->transfer)
        return STATUS_OK;
    r->prepare = prepare_upload;
    return STATUS_PENDING;
}

static enum status borrow_room(struct body_sink *sink, struct request *r, char **to, size_t *room)
{
    struct upload *u = (struct upload *)sink;
    enum status    st = make_transfer(u, r);

    if (!st && u->received == u->bytes)
        st = problem_set(&r->problem, STATUS_LENGTH_MISMATCH, "the body is longer than the expected %" PRIu64 " bytes", u->bytes);
    return st ? st : transfer_write_borrow(u->transfer, to, room, &r->waker, &r->problem);
}

static enum status commit_room(struct body_sink *sink, struct request *r, size_t bytes)
{
    struct upload *u = (struct upload *)sink;

    u->received += bytes;
    return transfer_write_commit(u->transfer, bytes, &r->problem);
}

/* On the loop: nothing here waits for a worker. */
static void on_upload_finish(struct request *r)
{
    struct upload *u = r->progress;

    transfer_destroy(u->transfer);
    if (u->created && !u->kept)
        buffer_abandon(u->session, span_of(u->buffer.id));
    session_return(u->session);
    free(u);
}

static enum status start_upload(struct request *r, uint64_t bytes, const struct condition *condition, struct upload **out)
{
    struct upload *u = calloc(1, sizeof *u);
    enum status    st = u ? session_of(r, &u->session) : problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the upload");

    if (st) {
        free(u);
        return st;
    }
    u->sink = (struct body_sink){.borrow = borrow_room, .commit = commit_room, .bytes = bytes};
    u->bytes = bytes;
    u->condition = *condition;
    r->sink = &u->sink;
    r->progress = u;
    r->on_finish = on_upload_finish;
    *out = u;
    return STATUS_OK;
}

enum status upload_start(struct request *r, struct span buffer, uint64_t offset, uint64_t bytes, const struct condition *condition)
{
    struct upload *u;
    enum status    st = start_upload(r, bytes, condition, &u);

    if (st)
        return st;
    u->in_place = true;
    u->offset = offset;
    if (!span_copy(buffer, u->buffer.id, sizeof u->buffer.id))
        return problem_set(&r->problem, STATUS_INVALID_FIELD, "the id is too long");
    if (r->wants_inline)
        return STATUS_OK; /* the write begins with its first piece, so that a body that is refused before changes no entity tag */
    return create_target(u, &r->problem);
}

enum status upload_start_new(struct request *r, struct span id, uint64_t bytes, const struct condition *condition)
{
    struct upload *u;
    enum status    st = start_upload(r, bytes, condition, &u);

    if (st)
        return st;
    if (!span_copy(id, u->id, sizeof u->id))
        return problem_set(&r->problem, STATUS_INVALID_FIELD, "the id is too long");
    u->in_place = condition->only;
    if (u->in_place)
        u->buffer = condition->there;
    return STATUS_OK;
}

enum status upload_finish(struct request *r)
{
    struct upload *u = r->progress;
    uint64_t       start = now_ns();
    enum status    st = u->transfer ? STATUS_OK : create_target(u, &r->problem); /* a body without a byte has brought no write */

    timing_begin(r);
    if (!st && u->received != u->bytes)
        st = problem_set(&r->problem, STATUS_LENGTH_MISMATCH, "the body has %" PRIu64 " bytes, expected %" PRIu64, u->received, u->bytes);
    if (!st)
        st = transfer_write_finish(u->transfer, &r->problem);
    r->timing.h2d_ms = ms_since(start);
    u->kept = !st;
    return st;
}

struct contents upload_contents(const struct request *r)
{
    return transfer_contents(((const struct upload *)r->progress)->transfer);
}

const struct buffer_info *upload_buffer(const struct request *r, bool *created)
{
    const struct upload *u = r->progress;

    *created = u->created;
    return &u->buffer;
}
