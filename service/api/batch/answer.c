/* Writes what became of a batch. */
#include "api/batch/answer.h"

#include <stdlib.h>

#include "api/batch/answer_internal.h"
#include "api/batch/frame.h"
#include "api/decode/launch_json.h"

/* ---- the JSON ---- */

static void add_segments(struct json_writer *w, const struct batch_work *b)
{
    const struct batch_message *m = &b->message;
    struct buf                  text;

    buf_init(&text, REPLY_BODY_BYTES_MAX);
    json_open_array(w, "segments");
    for (unsigned i = 0; i < m->spec.ops_count; i++) {
        const struct batch_result *result = batch_result_of(b->batch, i);
        if (m->spec.ops[i].kind != BATCH_READ)
            continue;
        json_open_object(w, NULL);
        json_add_string(w, "id", m->outputs[i]);
        json_add_u64(w, "size", result->data_bytes);
        buf_clear(&text);
        if (b->inline_json && base64_add(&text, (struct span){result->data, result->data_bytes}))
            json_add_string(w, "data_b64", buf_span(&text));
        w->out->failed = w->out->failed || text.failed;
        json_close_object(w);
    }
    json_close_array(w);
    buf_finish(&text);
}

static void add_launch(struct json_writer *w, const struct launch_spec *spec, const struct batch_result *result)
{
    if (spec->dtype.bytes)
        json_add_text(w, "engine", engine_name(result->vendor));
    if (result->timed)
        json_add_double(w, "gpu_us", result->gpu_us);
    else
        json_add_null(w, "gpu_us"); /* timed with others: gpu_groups */
    if (!result->output_bytes && !result->output_truncated)
        return;
    json_add_string(w, "stdout", (struct span){result->output, result->output_bytes});
    json_add_bool(w, "stdout_truncated", result->output_truncated);
}

/* Those that have something to tell. */
static void add_ops(struct json_writer *w, const struct batch_work *b)
{
    const struct batch_spec *spec = &b->message.spec;

    json_open_array(w, "ops");
    for (unsigned i = 0; i < spec->ops_count; i++) {
        enum batch_kind kind = spec->ops[i].kind;
        if (kind != BATCH_LAUNCH && kind != BATCH_ELAPSED)
            continue;
        json_open_object(w, NULL);
        json_add_u64(w, "index", i);
        if (kind == BATCH_LAUNCH)
            add_launch(w, spec->ops[i].launch, batch_result_of(b->batch, i));
        else
            json_add_double(w, "elapsed_us", batch_result_of(b->batch, i)->elapsed_us);
        json_close_object(w);
    }
    json_close_array(w);
}

static void add_groups(struct json_writer *w, const struct batch_work *b)
{
    unsigned                  count;
    const struct batch_group *groups = batch_groups_of(b->batch, &count);

    json_open_array(w, "gpu_groups");
    for (unsigned i = 0; i < count; i++) {
        json_open_object(w, NULL);
        json_add_u64(w, "first", groups[i].first_op);
        json_add_u64(w, "last", groups[i].last_op);
        json_add_double(w, "gpu_us", groups[i].gpu_us);
        json_close_object(w);
    }
    json_close_array(w);
}

static void add_kept(struct json_writer *w, struct batch_work *b)
{
    const struct batch_spec *spec = &b->message.spec;

    json_open_object(w, "kept");
    for (unsigned i = 0; i < spec->keep_count; i++) {
        const char *name = arena_printf(&b->arena, "%.*s", SPAN_ARG(spec->keep[i]));
        if (name)
            json_add_text(w, name, batch_kept_id(b->batch, i));
        else
            w->out->failed = true;
    }
    json_close_object(w);
}

static void add_members(struct json_writer *w, struct batch_work *b)
{
    const char *module = batch_module_id(b->batch);

    json_add_text(w, "status", "succeeded");
    add_segments(w, b);
    add_ops(w, b);
    add_groups(w, b);
    json_open_object(w, "timing");
    json_add_double(w, "recv_ms", b->recv_ms);
    json_add_double(w, "compile_ms", batch_compile_ms(b->batch));
    json_add_double(w, "run_ms", batch_run_ms(b->batch));
    json_close_object(w);
    add_kept(w, b);
    if (module[0])
        json_add_text(w, "module", module);
}

static bool write_json(struct batch_work *b, struct buf *text)
{
    struct json_writer w;

    json_writer_init(&w, text);
    json_open_object(&w, NULL);
    add_members(&w, b);
    json_close_object(&w);
    return !text->failed;
}

/* ---- the parts ---- */

static void add_part(struct batch_answer *a, struct answer_part part)
{
    if (part.bytes == 0)
        return;
    a->parts[a->parts_count++] = part;
    a->bytes += part.bytes;
    a->held_bytes += part.held.bytes;
    a->on_device = a->on_device || !part.held.data;
}

static void add_segment(struct batch_answer *a, struct batch_work *b, unsigned op)
{
    static const char          zeros[BATCH_ALIGN_BYTES];
    const struct batch_result *result = batch_result_of(b->batch, op);
    char                      *data = batch_data_take(b->batch, op);
    unsigned                   padding = batch_padding(result->data_bytes);

    a->data[a->data_count++] = data;
    add_part(a, (struct answer_part){{data, data ? result->data_bytes : 0}, result->data_bytes, op});
    add_part(a, (struct answer_part){{zeros, padding}, padding, op});
}

static unsigned reads_of(const struct batch_work *b)
{
    unsigned n = 0;

    for (unsigned i = 0; i < b->message.spec.ops_count; i++)
        n += b->message.spec.ops[i].kind == BATCH_READ;
    return n;
}

/* Head and JSON, then the segments, in the order of the operations. */
static bool frame(struct batch_answer *a, struct batch_work *b, struct span json)
{
    unsigned reads = reads_of(b);

    a->parts = calloc(1 + 2 * (size_t)reads, sizeof *a->parts);
    a->data = calloc(1 + (size_t)reads, sizeof *a->data);
    if (!a->parts || !a->data || !batch_head_add(&a->head, json))
        return false;
    add_part(a, (struct answer_part){buf_span(&a->head), a->head.bytes, 0});
    for (unsigned i = 0; i < b->message.spec.ops_count; i++)
        if (b->message.spec.ops[i].kind == BATCH_READ)
            add_segment(a, b, i);
    return true;
}

/* Within JSON there is one part, the text itself. */
static bool whole(struct batch_answer *a, struct buf *json)
{
    a->parts = calloc(1, sizeof *a->parts);
    if (!a->parts)
        return false;
    buf_finish(&a->head);
    a->head = *json;
    buf_init(json, 0);
    add_part(a, (struct answer_part){buf_span(&a->head), a->head.bytes, 0});
    return true;
}

enum status batch_answer_create(struct batch_work *w, struct batch_answer **out, struct problem *why)
{
    struct batch_answer *a = calloc(1, sizeof *a);
    struct buf           json;
    bool                 ok;

    buf_init(&json, REPLY_BODY_BYTES_MAX);
    ok = a && write_json(w, &json);
    if (a) {
        buf_init(&a->head, BATCH_HEAD_BYTES + BATCH_ALIGN_BYTES + json.bytes);
        a->media_type = w->inline_json ? "application/json" : BATCH_TYPE;
        a->recv_ms = w->recv_ms;
        a->queue_ms = batch_queue_ms(w->batch);
        a->h2d_ms = batch_upload_ms(w->batch);
        a->kernel_ms = batch_kernel_ms(w->batch);
        a->compile_ms = batch_compile_ms(w->batch);
        a->run_ms = batch_run_ms(w->batch);
    }
    ok = ok && (w->inline_json ? whole(a, &json) : frame(a, w, buf_span(&json)));
    buf_finish(&json);
    if (!ok) {
        batch_answer_destroy(a);
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the answer");
    }
    a->work = a->on_device ? w : NULL;
    *out = a;
    return STATUS_OK;
}

uint64_t batch_answer_bytes(const struct batch_answer *a)
{
    return sizeof *a + a->held_bytes + a->parts_count * sizeof *a->parts + a->data_count * sizeof *a->data;
}

void batch_answer_destroy(struct batch_answer *a)
{
    if (!a)
        return;
    for (unsigned i = 0; i < a->data_count; i++)
        free(a->data[i]);
    free(a->data);
    free(a->parts);
    buf_finish(&a->head);
    free(a);
}
