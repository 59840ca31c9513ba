/* Batches: taken, done, answered in the form in which they came. */
#include "api/batch_frame.h"
#include "api/batch_request.h"
#include "api/endpoints.h"

/* ---- the answer ---- */

static void add_segments(struct json_writer *w, const struct batch_request_parts *p)
{
    const struct batch_message *m = p->message;
    struct buf                  text;

    buf_init(&text, REPLY_BODY_BYTES_MAX);
    json_open_array(w, "segments");
    for (unsigned i = 0; i < m->spec.ops_count; i++) {
        const struct batch_result *result = batch_result_of(p->batch, i);
        if (m->spec.ops[i].kind != BATCH_READ)
            continue;
        json_open_object(w, NULL);
        json_add_string(w, "id", m->outputs[i]);
        json_add_u64(w, "size", result->data_bytes);
        buf_clear(&text);
        if (p->within && base64_add(&text, (struct span){result->data, result->data_bytes}))
            json_add_string(w, "data_b64", buf_span(&text));
        w->out->failed = w->out->failed || text.failed;
        json_close_object(w);
    }
    json_close_array(w);
    buf_finish(&text);
}

static void add_launch(struct json_writer *w, const struct batch_result *result)
{
    json_add_double(w, "gpu_us", result->gpu_us);
    if (!result->output_bytes && !result->output_truncated)
        return;
    json_add_string(w, "stdout", (struct span){result->output, result->output_bytes});
    json_add_bool(w, "stdout_truncated", result->output_truncated);
}

/* Those that have something to tell. */
static void add_ops(struct json_writer *w, const struct batch_request_parts *p)
{
    const struct batch_spec *spec = &p->message->spec;

    json_open_array(w, "ops");
    for (unsigned i = 0; i < spec->ops_count; i++) {
        enum batch_kind kind = spec->ops[i].kind;
        if (kind != BATCH_LAUNCH && kind != BATCH_ELAPSED)
            continue;
        json_open_object(w, NULL);
        json_add_u64(w, "index", i);
        if (kind == BATCH_LAUNCH)
            add_launch(w, batch_result_of(p->batch, i));
        else
            json_add_double(w, "elapsed_us", batch_result_of(p->batch, i)->elapsed_us);
        json_close_object(w);
    }
    json_close_array(w);
}

static void add_kept(struct json_writer *w, struct request *r, const struct batch_request_parts *p)
{
    const struct batch_spec *spec = &p->message->spec;

    json_open_object(w, "kept");
    for (unsigned i = 0; i < spec->keep_count; i++) {
        const char *name = arena_printf(&r->arena, "%.*s", SPAN_ARG(spec->keep[i]));
        if (name)
            json_add_text(w, name, batch_kept_id(p->batch, i));
        else
            w->out->failed = true;
    }
    json_close_object(w);
}

/* Milliseconds: until the body was here, for the module, for the operations. */
struct timing {
    double recv, compile, run;
};

static void add_members(struct json_writer *w, struct request *r, const struct batch_request_parts *p, const struct timing *t)
{
    const char *module = batch_module_id(p->batch);

    json_add_text(w, "status", "succeeded");
    add_segments(w, p);
    add_ops(w, p);
    json_open_object(w, "timing");
    json_add_double(w, "recv_ms", t->recv);
    json_add_double(w, "compile_ms", t->compile);
    json_add_double(w, "run_ms", t->run);
    json_close_object(w);
    add_kept(w, r, p);
    if (module[0])
        json_add_text(w, "module", module);
}

static uint64_t framed_bytes(const struct batch_request_parts *p)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < p->message->spec.ops_count; i++) {
        uint64_t bytes = batch_result_of(p->batch, i)->data_bytes;
        total += bytes + batch_padding(bytes);
    }
    return total;
}

/* The JSON, then what was read, in the order of the operations. */
static enum status answer_framed(struct request *r, const struct batch_request_parts *p, struct span json)
{
    struct buf frame;
    enum status st = STATUS_OK;

    buf_init(&frame, (size_t)framed_bytes(p) + json.bytes + BATCH_HEAD_BYTES + BATCH_ALIGN_BYTES);
    batch_head_add(&frame, json);
    for (unsigned i = 0; i < p->message->spec.ops_count; i++) {
        const struct batch_result *result = batch_result_of(p->batch, i);
        buf_add(&frame, result->data, result->data_bytes);
        batch_padding_add(&frame, result->data_bytes);
    }
    if (frame.failed)
        st = problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "the answer does not fit in memory");
    else
        reply_text(&r->reply, 200, BATCH_TYPE, (struct span){0});
    if (!st) {
        buf_finish(&r->reply.body);
        r->reply.body = frame;
        buf_init(&frame, 0);
    }
    buf_finish(&frame);
    return st;
}

static enum status answer(struct request *r, const struct batch_request_parts *p, double recv_ms)
{
    struct timing      t = {recv_ms, batch_compile_ms(p->batch), batch_run_ms(p->batch)};
    struct buf         text;
    struct json_writer w;
    enum status        st;

    reply_header(&r->reply, "Server-Timing", "recv;dur=%.3f, compile;dur=%.3f, run;dur=%.3f", t.recv, t.compile, t.run);
    buf_init(&text, REPLY_BODY_BYTES_MAX);
    json_writer_init(&w, &text);
    json_open_object(&w, NULL);
    add_members(&w, r, p, &t);
    json_close_object(&w);
    if (text.failed)
        st = problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "the answer does not fit in memory");
    else
        st = p->within ? reply_json(&r->reply, 200, buf_span(&text)) : answer_framed(r, p, buf_span(&text));
    buf_finish(&text);
    return st;
}

/* ---- the handlers ---- */

static enum status handle(struct request *r)
{
    struct batch_request_parts p;
    double                     recv_ms;
    enum status                st = batch_request_complete(r);

    if (st)
        return st;
    recv_ms = (double)(now_ns() - r->received_ns) / (double)NS_PER_MS;
    p = batch_request_parts_of(r);
    st = batch_run(p.batch, &r->arena, &r->problem);
    return st ? st : answer(r, &p, recv_ms);
}

enum status batches_create_begin(struct request *r)
{
    return batch_request_begin(r, false);
}

enum status batches_create(struct request *r)
{
    return handle(r);
}

enum status run_create_begin(struct request *r)
{
    return batch_request_begin(r, true);
}

enum status run_create(struct request *r)
{
    return handle(r);
}
