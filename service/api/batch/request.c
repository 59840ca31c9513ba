/* Collects a batch's JSON, has the batch made (by request.prepare while more of the body is to come), and streams its segments in. */
#include "api/batch/request.h"
#include "api/bounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/batch/again.h"
#include "api/batch/frame.h"
#include "session/batch/async.h"

struct batch_request_state {
    struct body_sink      sink;
    struct batch_work    *work; /* NULL once it was taken */
    uint64_t              body_bytes;
    struct buf            text; /* head and JSON; of a small body all */
    size_t                text_wanted;
    struct batch_position position;
    struct span           rest;  /* what is collected behind the JSON and not yet handed on */
    size_t                given; /* within JSON: of the segment's bytes */
    bool                  made;  /* the batch is there; before that its JSON, or a whole small body, is collected */
};

static void dispose(struct batch_request_state *w)
{
    batch_work_destroy(w->work);
    buf_finish(&w->text);
    free(w);
}

/* ---- making ---- */

static enum status json_of(struct batch_request_state *w, struct span body, struct span *json, struct problem *why)
{
    uint32_t    bytes;
    enum status st;

    *json = body;
    if (w->work->inline_json)
        return STATUS_OK;
    st = batch_head_decode(body, &bytes, why);
    if (st)
        return st;
    if (bytes > w->body_bytes - BATCH_HEAD_BYTES)
        return problem_set(why, STATUS_FRAMING_MISMATCH, "the body ends inside the JSON part");
    *json = (struct span){body.data + BATCH_HEAD_BYTES, bytes};
    return STATUS_OK;
}

/* Waits for the worker, maybe for a new one. */
static enum status make(struct batch_request_state *w, struct span body, struct problem *why)
{
    struct span json;
    enum status st = json_of(w, body, &json, why);

    if (!st)
        st = batch_work_make(w->work, json, w->body_bytes, why);
    w->made = !st;
    if (!st && !w->work->inline_json)
        w->rest = span_from(body, BATCH_HEAD_BYTES + json.bytes);
    return st;
}

static enum status prepare(struct request *r)
{
    struct batch_request_state *w = r->progress;

    return make(w, buf_span(&w->text), &r->problem);
}

/* ---- the segments ---- */

/* Some of a stream of segments and padding. */
static enum status feed(struct batch_request_state *w, struct request *r, struct span piece, size_t *consumed)
{
    const struct batch_spec *spec = &w->work->message.spec;
    bool                     data;
    size_t                   n = batch_next(&w->position, spec->segments, spec->segments_count, piece.bytes, &data);
    enum status              st = STATUS_OK;

    *consumed = n;
    if (n == 0 && piece.bytes)
        return problem_set(&r->problem, STATUS_FRAMING_MISMATCH, "bytes follow the last segment");
    if (data)
        st = batch_write(w->work->batch, w->position.segment, span_first(piece, n), consumed, &r->waker, &r->problem);
    else
        st = batch_zeros_check(span_first(piece, n), &r->problem);
    batch_took(&w->position, data, *consumed);
    return st;
}

static enum status feed_inline_json(struct batch_request_state *w, struct request *r)
{
    const struct batch_message *m = &w->work->message;
    enum status                 st = STATUS_OK;

    while (!st && w->position.segment < m->spec.segments_count) {
        struct span data = span_from(m->segments[w->position.segment].data, w->given);
        size_t      consumed = 0;
        if (data.bytes)
            st = batch_write(w->work->batch, w->position.segment, data, &consumed, &r->waker, &r->problem);
        w->given += consumed;
        if (!st && consumed == data.bytes) {
            w->position.segment++;
            w->given = 0;
        }
    }
    return st;
}

static enum status feed_rest(struct batch_request_state *w, struct request *r)
{
    enum status st = w->work->inline_json ? feed_inline_json(w, r) : STATUS_OK;

    while (!st && w->rest.bytes) {
        size_t consumed = 0;
        st = feed(w, r, w->rest, &consumed);
        w->rest = span_from(w->rest, consumed);
    }
    return st;
}

/* ---- the body ---- */

/* How much is collected before anything is done: a small body whole, else head and JSON. */
static enum status want(struct batch_request_state *w, struct problem *why)
{
    struct span json;
    enum status st;

    if (w->body_bytes <= BATCH_WHOLE_BYTES_MAX) {
        w->text_wanted = (size_t)w->body_bytes;
        return STATUS_OK;
    }
    if (w->text.bytes < BATCH_HEAD_BYTES) {
        w->text_wanted = BATCH_HEAD_BYTES;
        return STATUS_OK;
    }
    st = json_of(w, buf_span(&w->text), &json, why);
    w->text_wanted = BATCH_HEAD_BYTES + json.bytes;
    return st;
}

static enum status collect(struct batch_request_state *w, struct request *r, struct span piece, size_t *consumed)
{
    enum status st = want(w, &r->problem);

    if (st)
        return st;
    piece = span_first(piece, w->text_wanted - w->text.bytes);
    if (!buf_add_span(&w->text, piece))
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the batch");
    *consumed = piece.bytes;
    if (w->body_bytes <= BATCH_WHOLE_BYTES_MAX || w->text.bytes <= BATCH_HEAD_BYTES || w->text.bytes < w->text_wanted)
        return STATUS_OK;
    r->prepare = prepare;
    return STATUS_PENDING;
}

/* A body that is refused when some of it is in buffers of the session already. */
static enum status refuse(struct batch_request_state *w, struct request *r, enum status st)
{
    struct problem *why = &r->problem;
    size_t          used;

    st = batch_work_verdict(w->work, st, why);
    used = strlen(why->detail);

    if (st && st != STATUS_PENDING && w->work->batch && batch_overwrote(w->work->batch))
        snprintf(why->detail + used, sizeof why->detail - used,
                 "; earlier segments were already written: the contents of the buffers that they overwrite are indeterminate");
    return st;
}

static enum status write_piece(struct body_sink *sink, struct request *r, struct span piece, size_t *consumed)
{
    struct batch_request_state *w = (struct batch_request_state *)sink;
    enum status                 st = w->body_bytes > BATCH_WHOLE_BYTES_MAX ? batch_work_enter(w->work, r) : STATUS_OK;

    *consumed = 0;
    if (st)
        return st;
    return w->made ? refuse(w, r, feed(w, r, piece, consumed)) : collect(w, r, piece, consumed);
}

/* On the loop. batch_destroy() does not wait. */
static void on_finish(struct request *r)
{
    dispose(r->progress);
}

/* ---- begin ---- */

/* Takes over the session, which may be NULL. */
static struct batch_request_state *state_new(struct request *r, bool hidden, bool inline_json, struct session *s)
{
    struct batch_request_state *w = calloc(1, sizeof *w);
    struct batch_work          *work = w ? batch_work_create(r, hidden, inline_json, s) : NULL;

    if (!work) {
        problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the batch");
        if (s)
            session_return(s);
        free(w);
        return NULL;
    }
    buf_init(&w->text, BATCH_HEAD_BYTES + BATCH_JSON_BYTES_MAX);
    w->sink.write = write_piece;
    w->work = work;
    w->body_bytes = r->body_bytes;
    return w;
}

static enum status check_type(struct request *r, bool inline_json)
{
    if (!request_accepts(r, inline_json ? "application/json" : BATCH_TYPE))
        return problem_set(&r->problem, STATUS_NOT_ACCEPTABLE, "Accept must allow the type of the request, which is that of the answer: %s",
                           inline_json ? "application/json" : BATCH_TYPE);
    if (!inline_json && !r->has_body_bytes)
        return problem_set(&r->problem, STATUS_LENGTH_REQUIRED, "a framed batch needs a Content-Length");
    if (!inline_json && r->body_bytes < BATCH_ALIGN_BYTES)
        return problem_set(&r->problem, STATUS_FRAMING_MISMATCH, "a framed batch must have at least 64 bytes");
    return STATUS_OK;
}

/* As early as can be: before the body. */
static enum status check_session(struct request *r, struct session *s)
{
    struct prefer prefer = request_prefer(r);
    enum status   st = session_usable(s, &r->problem);

    if (!st && (prefer.respond_async || prefer.wait_s != UINT64_MAX))
        st = batch_job_room(s, &r->problem);
    return st;
}

enum status batch_request_begin(struct request *r, bool hidden)
{
    bool                        inline_json = !span_equal_nocase(request_media_type(r), SPAN_LITERAL(BATCH_TYPE));
    struct session             *s = NULL;
    struct batch_request_state *w;
    enum status                 st = query_check(r, NULL);

    if (!st)
        st = check_type(r, inline_json);
    if (!st && !hidden)
        st = session_of(r, &s);
    if (!st && s && (st = check_session(r, s)) != STATUS_OK)
        session_return(s);
    if (st)
        return st;
    w = state_new(r, hidden, inline_json, s);
    if (!w)
        return STATUS_OUT_OF_MEMORY;
    r->sink = inline_json ? NULL : &w->sink;
    r->progress = w;
    r->on_finish = on_finish;
    return STATUS_OK;
}

/* ---- the handler's part ---- */

/* All that was collected comes at once: nothing is made yet. */
static enum status make_now(struct batch_request_state *w, struct request *r)
{
    enum status st = make(w, w->work->inline_json ? r->body : buf_span(&w->text), &r->problem);

    if (!st && w->work->hidden && !w->work->inline_json) {
        w->work->body = w->text; /* the rest still lies in there */
        w->text = (struct buf){0};
    }
    return st;
}

enum status batch_request_complete(struct request *r)
{
    struct batch_request_state *w = r->progress;
    const struct batch_spec    *spec = &w->work->message.spec;
    enum status                 st = batch_work_enter(w->work, r);

    if (st)
        return st;
    if (!w->made)
        st = make_now(w, r);
    if (!st)
        st = feed_rest(w, r);
    if (!st && !w->work->inline_json && !batch_at_end(&w->position, spec->segments, spec->segments_count))
        st = problem_set(&r->problem, STATUS_FRAMING_MISMATCH, "the body ends inside the segments");
    st = refuse(w, r, st);
    if (!st)
        w->work->recv_ms = (double)(now_ns() - r->received_ns) / (double)NS_PER_MS;
    timing_begin(r);
    return st;
}

struct batch_work *batch_request_work(const struct request *r)
{
    const struct batch_request_state *w = r->progress;

    return w->work;
}

struct batch_work *batch_request_take(struct request *r)
{
    struct batch_request_state *w = r->progress;
    struct batch_work          *work = w->work;

    w->work = NULL;
    r->sink = NULL;
    r->progress = NULL;
    r->on_finish = NULL;
    dispose(w);
    return work;
}
