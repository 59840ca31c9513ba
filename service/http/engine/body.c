/* The body of a request: collected, given to the endpoint's sink piece by piece, or dropped. On the loop's thread. */
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

static enum MHD_Result collect(struct exchange *x, const char *piece, size_t *bytes)
{
    if (*bytes > x->body_max - x->body.bytes)
        return drop_body(x, problem_limit(&x->r.problem, STATUS_BODY_TOO_LARGE, x->body_max_name, x->body_max, 0, x->body.bytes + *bytes),
                         bytes);
    if (!buf_add(&x->body, piece, *bytes))
        return drop_body(x, problem_set(&x->r.problem, STATUS_OUT_OF_MEMORY, "not enough memory for the body"), bytes);
    integrity_add(x, (struct span){piece, *bytes});
    idempotent_add(x, (struct span){piece, *bytes});
    *bytes = 0;
    return MHD_YES;
}

static enum MHD_Result read_again(struct exchange *x, const char *piece, size_t *bytes)
{
    integrity_add(x, (struct span){piece, *bytes});
    idempotent_add(x, (struct span){piece, *bytes});
    *bytes = 0;
    return MHD_YES;
}

/* Gives the sink what it takes; *rest is what it left. */
static enum status feed_sink(struct exchange *x, struct span *rest)
{
    enum status st = STATUS_OK;

    while (rest->bytes && !st) {
        size_t consumed = 0;

        x->woken = false;
        st = x->r.sink->write(x->r.sink, &x->r, *rest, &consumed);
        if (consumed > rest->bytes || (!st && !consumed))
            st = problem_set(&x->r.problem, STATUS_INTERNAL, "a body sink made no progress");
        *rest = span_from(*rest, consumed);
    }
    return st;
}

enum status body_wait(struct exchange *x)
{
    bool        prepares = x->r.prepare != NULL;
    enum status st = prepares ? executor_submit(x->loop->server->executor, x) : STATUS_OK;

    if (st)
        return st;
    x->on_executor = prepares;
    exchange_suspend(x);
    return STATUS_PENDING;
}

/* What came of that; OK when there was nothing of the kind. */
static enum status prepared(struct exchange *x)
{
    if (!x->executed)
        return STATUS_OK;
    x->executed = false;
    x->on_executor = false;
    return x->executor_result;
}

static enum MHD_Result stream(struct exchange *x, const char *piece, size_t *bytes)
{
    struct span rest = {piece, *bytes};
    enum status st = prepared(x);

    if (!st)
        st = feed_sink(x, &rest);
    if (st && st != STATUS_PENDING)
        return drop_body(x, st, bytes);
    integrity_add(x, (struct span){piece, *bytes - rest.bytes});
    idempotent_add(x, (struct span){piece, *bytes - rest.bytes});
    *bytes = rest.bytes;
    if (st == STATUS_PENDING && (st = body_wait(x)) != STATUS_PENDING)
        return drop_body(x, st, bytes);
    return MHD_YES;
}

static enum MHD_Result hold_back(struct exchange *x, const char *piece, size_t *bytes)
{
    struct span all = {piece, *bytes};
    enum status st = integrity_keep(x, all);

    if (!st) {
        integrity_add(x, all);
        idempotent_add(x, all);
    }
    return drop_body(x, st, bytes);
}

static enum MHD_Result take_body(struct exchange *x, const char *piece, size_t *bytes)
{
    if (x->state == EXCHANGE_DROP)
        return drop_body(x, STATUS_OK, bytes);
    if (idempotent_replays(x))
        return read_again(x, piece, bytes);
    if (!x->streams)
        return collect(x, piece, bytes);
    if (integrity_holds(x))
        return hold_back(x, piece, bytes);
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

/* What was held back goes to the sink now. */
static enum status release_body(struct exchange *x)
{
    struct span held = integrity_held(x), rest = held;
    enum status st = feed_sink(x, &rest);

    integrity_released(x, held.bytes - rest.bytes);
    return st;
}

enum status body_end(struct exchange *x)
{
    enum status st = prepared(x);

    if (!st)
        st = integrity_end(x);
    if (!st && integrity_holds(x))
        st = release_body(x);
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
