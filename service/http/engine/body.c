/* The body of a request: collected, given to the endpoint's sink piece by piece, or dropped. On the loop's thread, but for what is held: the
 * executor gives that to the sink when all of it is there. */
#include <assert.h>

#include "http/bounds.h"
#include "http/engine/internal.h"

void body_abort(struct exchange *x)
{
    struct body_sink *sink = x->r.sink;

    x->r.sink = NULL;
    if (sink && sink->abort)
        sink->abort(sink);
}

static enum MHD_Result drop_body(struct exchange *x, enum status st, size_t *bytes)
{
    if (st) {
        x->failure = st;
        exchange_set_state(x, EXCHANGE_DROP);
        body_abort(x);
        buf_finish(&x->body); /* its client may take its time with the rest */
        request_release(&x->r);
    }
    *bytes = 0;
    return MHD_YES;
}

/* ---- bodies that are collected: their handler or, when they are held for a sink, the executor takes them whole ---- */

/* 0: nobody can tell. */
static uint64_t announced_bytes(const struct exchange *x)
{
    return x->r.has_body_bytes ? x->r.body_bytes : x->r.sink->bytes;
}

/* A small body is held so that its request is suspended once: the executor feeds the sink and runs the handler in one go. To create a buffer from
 * 4 KiB and to delete it takes 16 % less processor time and 5 to 9 % less time than with a sink that is fed as the body comes (2026-11-24, two cores:
 * tests/bench/results/2026-11-24-small-uploads.txt). What is small is not counted as held, as collected JSON is not. */
enum status body_hold(struct exchange *x)
{
    uint64_t bytes = x->streams ? announced_bytes(x) : 0;

    if (bytes == 0 || bytes > (x->check ? VERIFIED_BODY_BYTES_MAX : SMALL_BODY_BYTES_MAX))
        return STATUS_OK;
    x->holds = true;
    x->body_max = (size_t)bytes;
    /* So that nothing is sent in vain. What is counted is what comes. */
    return bytes > SMALL_BODY_BYTES_MAX ? request_may_hold(&x->r, bytes) : STATUS_OK;
}

static enum status too_long(struct exchange *x, size_t bytes)
{
    if (x->holds)
        return problem_set(&x->r.problem, STATUS_LENGTH_MISMATCH, "the body is longer than the expected %zu bytes", x->body_max);
    return problem_limit(&x->r.problem, STATUS_BODY_TOO_LARGE, x->body_max_name, x->body_max, 0, x->body.bytes + bytes);
}

static enum status keep(struct exchange *x, struct span piece)
{
    if (piece.bytes > x->body_max - x->body.bytes)
        return too_long(x, piece.bytes);
    if (x->holds && x->body_max > SMALL_BODY_BYTES_MAX && request_hold(&x->r, piece.bytes))
        return x->r.problem.status;
    if (!buf_add_span(&x->body, piece))
        return problem_set(&x->r.problem, STATUS_OUT_OF_MEMORY, "not enough memory for the body");
    return STATUS_OK;
}

static enum MHD_Result collect(struct exchange *x, const char *piece, size_t *bytes)
{
    struct span all = {piece, *bytes};
    enum status st = keep(x, all);

    if (!st) {
        integrity_add(x, all);
        idempotent_add(x, all);
    }
    return drop_body(x, st, bytes);
}

static enum MHD_Result read_again(struct exchange *x, const char *piece, size_t *bytes)
{
    integrity_add(x, (struct span){piece, *bytes});
    idempotent_add(x, (struct span){piece, *bytes});
    *bytes = 0;
    return MHD_YES;
}

/* ---- bodies for a sink ---- */

/* Gives the sink what it takes; *rest is what it left. */
static enum status feed_sink(struct exchange *x, struct span *rest)
{
    enum status st = STATUS_OK;

    while (rest->bytes && !st) {
        size_t consumed;

        st = body_sink_write(x->r.sink, &x->r, *rest, &consumed);
        if (consumed > rest->bytes || (!st && !consumed))
            st = problem_set(&x->r.problem, STATUS_INTERNAL, "a body sink made no progress");
        *rest = span_from(*rest, consumed);
    }
    return st;
}

enum status body_release(struct exchange *x)
{
    struct span rest = span_from(buf_span(&x->body), x->released);
    enum status st;

    if (!x->holds)
        return STATUS_OK;
    assert(x->state == EXCHANGE_HANDLING);
    do {
        st = x->r.prepare ? exchange_run_prepare(x) : STATUS_OK;
        if (!st)
            st = feed_sink(x, &rest);
    } while (st == STATUS_PENDING && x->r.prepare);
    x->released = x->body.bytes - rest.bytes;
    if (st == STATUS_PENDING)
        return st;
    x->holds = false;
    buf_finish(&x->body);
    request_release(&x->r);
    return st;
}

/* The sink has said PENDING: suspended until it is woken or r.prepare has ended. Another outcome: that is not possible. */
static enum status wait_for_sink(struct exchange *x)
{
    enum status st = x->r.prepare ? exchange_submit(x) : STATUS_PENDING;

    if (st == STATUS_PENDING)
        exchange_suspend(x);
    return st;
}

static enum MHD_Result stream(struct exchange *x, const char *piece, size_t *bytes)
{
    struct span rest = {piece, *bytes};
    enum status st = x->executed ? exchange_executed(x) : STATUS_OK;

    x->woken = false;
    if (!st)
        st = feed_sink(x, &rest);
    if (st && st != STATUS_PENDING)
        return drop_body(x, st, bytes);
    integrity_add(x, (struct span){piece, *bytes - rest.bytes});
    idempotent_add(x, (struct span){piece, *bytes - rest.bytes});
    *bytes = rest.bytes;
    if (st == STATUS_PENDING && (st = wait_for_sink(x)) != STATUS_PENDING)
        return drop_body(x, st, bytes);
    return MHD_YES;
}

static enum MHD_Result take_body(struct exchange *x, const char *piece, size_t *bytes)
{
    if (x->state == EXCHANGE_DROP)
        return drop_body(x, STATUS_OK, bytes);
    if (idempotent_replays(x))
        return read_again(x, piece, bytes);
    if (!x->streams || x->holds)
        return collect(x, piece, bytes);
    if (x->r.wants_inline || !offload_receive(x, (struct span){piece, *bytes}))
        return stream(x, piece, bytes);
    *bytes = 0;
    return MHD_YES;
}

enum MHD_Result body_call(struct exchange *x, const char *piece, size_t *bytes)
{
    size_t          offered = *bytes;
    enum MHD_Result result;

    x->progress_ns = now_ns();
    x->pace.bytes += offered; /* once given to an I/O thread it is that one's */
    result = take_body(x, piece, bytes);
    if (*bytes)
        x->pace.bytes -= *bytes;
    return result;
}

enum status body_end(struct exchange *x)
{
    enum status st = x->executed ? exchange_executed(x) : STATUS_OK;

    if (!st)
        st = integrity_end(x);
    if (!st && !x->streams)
        x->r.body = buf_span(&x->body);
    return st;
}

enum MHD_Result body_refuse(struct exchange *x, enum status st)
{
    x->failure = st;
    exchange_set_state(x, EXCHANGE_DROP);
    body_abort(x);
    return exchange_answer(x, st);
}
