/* Takes a batch in: collects its JSON, has the batch made (by request.prepare while more of the body is to come), and streams its segments in. */
#include "api/batch/request.h"
#include "api/bounds.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/batch/program_decode.h"
#include "api/endpoints.h"

/* ---- making ---- */

static enum status json_of(const struct batch_request *b, struct span body, struct span *json, struct problem *why)
{
    uint32_t    bytes;
    enum status st;

    *json = body;
    if (b->inline_json)
        return STATUS_OK;
    st = batch_head_decode(body, &bytes, why);
    if (st)
        return st;
    if (bytes > b->body_bytes - BATCH_HEAD_BYTES)
        return problem_set(why, STATUS_FRAMING_MISMATCH, "the body ends inside the JSON part");
    *json = (struct span){body.data + BATCH_HEAD_BYTES, bytes};
    return STATUS_OK;
}

static enum status decode(struct batch_request *b, struct span json, struct problem *why)
{
    struct batch_spec *spec = &b->message.spec;
    enum status        st = json_parse_up_to(json, BATCH_JSON_VALUES_MAX, &b->doc, why);

    if (!st && b->job.program)
        st = program_run_decode(json_root(b->doc), b->job.program, b->inline_json, b->lenient, &b->job.arena, &b->message, why);
    else if (!st)
        st = batch_decode(json_root(b->doc), b->inline_json, b->lenient, &b->job.arena, &b->message, why);
    if (!st && !b->inline_json)
        st = batch_frame_check((uint32_t)json.bytes, spec->segments, spec->segments_count, b->body_bytes, why);
    if (!st && spec->source && !b->may_compile && !b->job.program)
        st = problem_set(why, STATUS_INSUFFICIENT_SCOPE, "a module's source needs the scope compile");
    if (!st && b->job.implicit && spec->keep_count)
        st = problem_field(why, STATUS_INVALID_FIELD, "/keep", "value", "a run without a session cannot keep buffers; omit keep");
    spec->evict = b->job.implicit;
    spec->answer_streams = !b->inline_json && !b->background;
    b->json_bytes = json.bytes;
    return st;
}

/* The segments of a body that is here: `rest` is what follows the JSON of a frame, whose length was checked. */
static enum status find_segments(struct batch_request *b, struct span rest, struct problem *why)
{
    const struct batch_spec *spec = &b->message.spec;
    struct span             *data = arena_array(&b->job.arena, spec->segments_count + 1u, sizeof *data);
    enum status              st = STATUS_OK;

    if (!data)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the batch");
    for (unsigned i = 0; i < spec->segments_count && !st; i++) {
        unsigned padding = batch_padding(spec->segments[i]);

        data[i] = b->inline_json ? b->message.segments[i].data : span_first(rest, (size_t)spec->segments[i]);
        if (b->inline_json)
            continue;
        rest = span_from(rest, data[i].bytes);
        st = batch_zeros_check(span_first(rest, padding), why);
        rest = span_from(rest, padding);
    }
    b->job.data = data;
    return st;
}

/* Waits for the worker, maybe for a new one. */
static enum status make(struct batch_request *b, struct span body, struct problem *why)
{
    struct span json;
    enum status st = json_of(b, body, &json, why);

    if (!st)
        st = decode(b, json, why);
    if (!st && (b->inline_json || body.bytes == b->body_bytes))
        st = find_segments(b, b->inline_json ? (struct span){0} : span_from(body, BATCH_HEAD_BYTES + json.bytes), why);
    return st ? st : batch_job_make(&b->job, why);
}

static enum status prepare(struct request *r)
{
    struct batch_request *b = r->progress;

    return make(b, buf_span(&b->text), &r->problem);
}

/* ---- a place ---- */

static enum status no_place(struct problem *why)
{
    return problem_set(why, STATUS_OVERLOADED,
                       "this caller has %d runs in progress, or no worker is free, and none finished in %d s; send the request again later",
                       RUNS_AT_ONCE_PER_CALLER, RUN_WAIT_MS / 1000);
}

/* An implicit session for it alone, if it needs one: before it is made, and again when r->waker was woken. Never blocks. */
static enum status enter(struct batch_request *b, struct request *r)
{
    struct batch_job *j = &b->job;
    enum status       st;

    r->wake_at_ns = DEADLINE_NEVER;
    if (!j->implicit || b->background || j->place.taken)
        return STATUS_OK;
    if (request_gone(r))
        return problem_set(&r->problem, STATUS_CANCELLED, "the client has disconnected");
    if (!b->place_deadline_ns)
        b->place_deadline_ns = deadline_after_ms(RUN_WAIT_MS);
    st = run_enter(j->registry, &j->tenant, &j->place, &r->waker);
    if (st != STATUS_PENDING)
        return st;
    if (now_ns() >= b->place_deadline_ns) {
        run_leave(j->registry, &j->place);
        return no_place(&r->problem);
    }
    r->wake_at_ns = b->place_deadline_ns;
    return STATUS_PENDING;
}

/* ---- the body ---- */

/* How much is collected before anything is done: a small body whole, else head and JSON. */
static enum status bytes_wanted(const struct batch_request *b, size_t *wanted, struct problem *why)
{
    struct span json = {0};
    enum status st = STATUS_OK;

    *wanted = (size_t)b->body_bytes;
    if (b->body_bytes <= BATCH_WHOLE_BYTES_MAX)
        return STATUS_OK;
    if (b->text.bytes >= BATCH_HEAD_BYTES)
        st = json_of(b, buf_span(&b->text), &json, why);
    *wanted = BATCH_HEAD_BYTES + json.bytes;
    return st;
}

static enum status collect(struct batch_request *b, struct request *r, struct span piece, size_t *consumed)
{
    size_t      wanted;
    enum status st = bytes_wanted(b, &wanted, &r->problem);

    if (st)
        return st;
    piece = span_first(piece, wanted - b->text.bytes);
    if (!buf_add_span(&b->text, piece))
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the batch");
    *consumed = piece.bytes;
    if (b->body_bytes <= BATCH_WHOLE_BYTES_MAX || b->text.bytes <= BATCH_HEAD_BYTES || b->text.bytes < wanted)
        return STATUS_OK;
    r->prepare = prepare;
    return STATUS_PENDING;
}

/* Some of a stream of segments and padding. */
static enum status feed(struct batch_request *b, struct request *r, struct span piece, size_t *consumed)
{
    const struct batch_spec *spec = &b->message.spec;
    bool                     data;
    size_t                   n = batch_next(&b->position, spec->segments, spec->segments_count, piece.bytes, &data);
    enum status              st;

    *consumed = n;
    if (n == 0 && piece.bytes)
        return problem_set(&r->problem, STATUS_FRAMING_MISMATCH, "bytes follow the last segment");
    if (data)
        st = batch_write(b->job.batch, b->position.segment, span_first(piece, n), consumed, &r->waker, &r->problem);
    else
        st = batch_zeros_check(span_first(piece, n), &r->problem);
    batch_took(&b->position, data, *consumed);
    return st;
}

/* A body that is refused when some of it is in buffers of the session already. */
static enum status refuse(struct batch_request *b, enum status st, struct problem *why)
{
    size_t used;

    st = batch_job_verdict(&b->job, st, why);
    used = strlen(why->detail);
    if (st && st != STATUS_PENDING && b->job.batch && batch_overwrote(b->job.batch))
        snprintf(why->detail + used, sizeof why->detail - used,
                 "; earlier segments were already written: the contents of the buffers that they overwrite are indeterminate");
    return st;
}

static enum status write_piece(struct body_sink *sink, struct request *r, struct span piece, size_t *consumed)
{
    struct batch_request *b = r->progress;
    enum status           st = b->body_bytes > BATCH_WHOLE_BYTES_MAX ? enter(b, r) : STATUS_OK;

    (void)sink;
    *consumed = 0;
    if (st)
        return st;
    return b->job.batch ? refuse(b, feed(b, r, piece, consumed), &r->problem) : collect(b, r, piece, consumed);
}

enum status batch_request_complete(struct batch_request *b, struct request *r)
{
    const struct batch_spec *spec = &b->message.spec;
    enum status              st = b->complete ? STATUS_OK : enter(b, r);

    if (st || b->complete)
        return st;
    if (!b->job.batch)
        st = make(b, b->inline_json ? r->body : buf_span(&b->text), &r->problem);
    if (!st && !b->job.data && !batch_at_end(&b->position, spec->segments, spec->segments_count))
        st = problem_set(&r->problem, STATUS_FRAMING_MISMATCH, "the body ends inside the segments");
    st = refuse(b, st, &r->problem);
    if (!st)
        b->recv_ms = (double)(now_ns() - r->received_ns) / (double)NS_PER_MS;
    if (!b->job.implicit) /* it is not made once more */
        b->job.data = NULL;
    if (!b->job.data)
        buf_finish(&b->text);
    timing_begin(r);
    b->complete = !st;
    return st;
}

/* ---- begin ---- */

static void release(struct batch_job *j, bool keep_answer)
{
    struct batch_request *b = (struct batch_request *)j;

    json_document_destroy(b->doc);
    b->doc = NULL;
    buf_finish(&b->text);
    if (!keep_answer)
        batch_answer_finish(&b->answer);
}

static enum status answer(struct batch_job *j, struct problem *why)
{
    struct batch_request *b = (struct batch_request *)j;
    enum status           st = batch_answer_make(b, why);

    j->bytes = st ? 0 : sizeof *b + batch_answer_bytes(&b->answer);
    return st;
}

static bool is_gone(void *request)
{
    return request_gone(request);
}

static void on_finish(struct request *r)
{
    struct batch_request *b = r->progress;

    batch_job_abandon(&b->job);
}

static const struct batch_job_ops ops = {answer, release};

struct batch_request *batch_request_of_before(struct registry *r, const struct tenant *t)
{
    struct batch_request *b = calloc(1, sizeof *b);

    if (b)
        batch_job_init(&b->job, &ops, r, t);
    return b;
}

/* From the request's header. */
static enum status create(struct request *r, bool inline_json, bool implicit)
{
    struct batch_request *b = calloc(1, sizeof *b);
    struct tenant         t = tenant_of(r);
    struct prefer         prefer = request_prefer(r);

    if (!b)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the batch");
    batch_job_init(&b->job, &ops, app_of(r)->registry, &t);
    b->job.implicit = implicit;
    b->job.spec = &b->message.spec;
    b->job.unwanted = is_gone;
    b->job.unwanted_context = r;
    b->inline_json = inline_json;
    b->lenient = prefer.lenient;
    b->background = prefer.respond_async || prefer.wait_s != UINT64_MAX;
    b->minimal = prefer.minimal && !b->background;
    b->may_compile = (r->caller->scopes & SCOPE_COMPILE) != 0;
    b->sink.write = write_piece;
    b->body_bytes = r->body_bytes;
    buf_init(&b->text, BATCH_HEAD_BYTES + BATCH_JSON_BYTES_MAX);
    r->sink = inline_json ? NULL : &b->sink;
    r->progress = b;
    r->on_finish = on_finish;
    return STATUS_OK;
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

static enum status begin(struct request *r, bool implicit)
{
    bool        inline_json = !span_equal_nocase(request_media_type(r), SPAN_LITERAL(BATCH_TYPE));
    enum status st = check_type(r, inline_json);

    return st ? st : create(r, inline_json, implicit);
}

/* On the path's session, which is looked at as early as can be: before the body. */
enum status batches_create_begin(struct request *r)
{
    enum status           st = begin(r, false);
    struct batch_request *b = r->progress;

    if (!st)
        st = session_of(r, &b->job.session);
    if (!st)
        st = session_usable(b->job.session, &r->problem);
    if (!st && b->background)
        st = batch_job_room(b->job.session, &r->problem);
    return st;
}

enum status programs_run_begin(struct request *r)
{
    enum status           st = batches_create_begin(r);
    struct batch_request *b = r->progress;

    if (!st)
        st = program_borrow(b->job.session, r->params[1], &b->job.program, &r->problem);
    r->wants_executor = st || b->background || !b->inline_json || !program_is_one_graph(b->job.program);
    return st;
}

enum status run_create_begin(struct request *r)
{
    return begin(r, true);
}
