/* Writes what became of a batch. */
#include "api/batch/request.h"

#include <math.h>
#include <stdlib.h>

#include "api/decode/launch_json.h"

/* ---- the JSON ---- */

static void add_segments(struct json_writer *w, const struct batch_request *b)
{
    const struct batch_message *m = &b->message;

    json_open_array(w, "segments");
    for (unsigned i = 0; batch_has(b->job.batch, BATCH_READ) && i < m->spec.ops_count; i++) {
        const struct batch_result *result = batch_result_of(b->job.batch, i);
        if (m->spec.ops[i].kind != BATCH_READ)
            continue;
        json_open_object(w, NULL);
        json_add_string(w, "id", m->outputs[i]);
        json_add_u64(w, "size", result->data_bytes);
        if (b->inline_json)
            json_add_base64(w, "data_b64", (struct span){result->data, result->data_bytes});
        json_close_object(w);
    }
    json_close_array(w);
}

static bool has_output(const struct batch_result *result)
{
    return result->output_bytes || result->output_truncated;
}

/* A launch that was timed with others tells nothing by itself: gpu_groups has its time. */
static bool has_result(const struct batch_op *op, const struct batch_result *result)
{
    if (op->kind == BATCH_LAUNCH)
        return result->timed || has_output(result) || op->launch->dtype.bytes;
    return op->kind == BATCH_ELAPSED;
}

static void add_launch(struct json_writer *w, const struct launch_spec *spec, const struct batch_result *result)
{
    if (spec->dtype.bytes)
        json_add_text(w, "engine", engine_name(result->vendor));
    if (result->timed)
        json_add_double(w, "gpu_us", result->gpu_us);
    if (!has_output(result))
        return;
    json_add_string(w, "stdout", (struct span){result->output, result->output_bytes});
    json_add_bool(w, "stdout_truncated", result->output_truncated);
}

/* Those that have something to tell. */
static void add_ops(struct json_writer *w, const struct batch_request *b)
{
    const struct batch_spec *spec = &b->message.spec;

    json_open_array(w, "ops");
    for (unsigned i = 0; batch_has_results(b->job.batch) && i < spec->ops_count; i++) {
        const struct batch_op     *op = &spec->ops[i];
        const struct batch_result *result = batch_result_of(b->job.batch, i);

        if (!has_result(op, result))
            continue;
        json_open_object(w, NULL);
        json_add_u64(w, "index", i);
        if (op->kind == BATCH_LAUNCH)
            add_launch(w, op->launch, result);
        else
            json_add_double(w, "elapsed_us", result->elapsed_us);
        json_close_object(w);
    }
    json_close_array(w);
}

static void add_groups(struct json_writer *w, const struct batch_request *b)
{
    unsigned                  count;
    const struct batch_group *groups = batch_groups_of(b->job.batch, &count);

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

static void add_kept(struct json_writer *w, struct batch_request *b)
{
    const struct batch_spec *spec = &b->message.spec;

    json_open_object(w, "kept");
    for (unsigned i = 0; i < spec->keep_count; i++) {
        const char *name = arena_printf(&b->job.arena, "%.*s", SPAN_ARG(spec->keep[i]));
        if (name)
            json_add_text(w, name, batch_kept_id(b->job.batch, i));
        else
            w->out->failed = true;
    }
    json_close_object(w);
}

/* To the microsecond: what is finer is noise, and takes long to write. */
static void add_ms(struct json_writer *w, const char *name, double ms)
{
    json_add_double(w, name, ms > 0 ? floor(ms * 1000 + 0.5) / 1000 : 0);
}

static void add_members(struct json_writer *w, struct batch_request *b)
{
    const char *module = batch_module_id(b->job.batch);

    json_add_text(w, "status", "succeeded");
    add_segments(w, b);
    add_ops(w, b);
    add_groups(w, b);
    json_open_object(w, "timing");
    add_ms(w, "recv_ms", b->recv_ms);
    add_ms(w, "compile_ms", b->answer.times.compile_ms);
    add_ms(w, "run_ms", b->answer.times.run_ms);
    json_close_object(w);
    add_kept(w, b);
    if (module[0])
        json_add_text(w, "module", module);
}

static bool tells(const struct batch_request *b)
{
    const struct batch_spec *spec = &b->message.spec;
    bool                     told = batch_has(b->job.batch, BATCH_READ) || spec->keep_count || batch_module_id(b->job.batch)[0];
    unsigned                 groups;

    batch_groups_of(b->job.batch, &groups);
    for (unsigned i = 0; batch_has_results(b->job.batch) && i < spec->ops_count && !told; i++)
        told = has_result(&spec->ops[i], batch_result_of(b->job.batch, i));
    return told || groups;
}

static bool write_json(struct batch_request *b, struct buf *text)
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

static void add_segment(struct batch_request *b, unsigned op)
{
    static const char          zeros[BATCH_ALIGN_BYTES];
    const struct batch_result *result = batch_result_of(b->job.batch, op);
    unsigned                   padding = batch_padding(result->data_bytes);
    char                      *data = result->data_bytes ? batch_data_take(b->job.batch, op) : NULL;

    add_part(&b->answer, (struct answer_part){{data, data ? result->data_bytes : 0}, result->data_bytes, op, data});
    add_part(&b->answer, (struct answer_part){{zeros, padding}, padding, op, NULL});
}

static bool is_read(const struct batch_request *b, unsigned op)
{
    return b->message.spec.ops[op].kind == BATCH_READ;
}

/* Head and JSON, then the segments, in the order of the operations. */
static bool add_frame(struct batch_request *b, struct span json)
{
    struct batch_answer *a = &b->answer;
    size_t               reads = 0;

    for (unsigned i = 0; i < b->message.spec.ops_count; i++)
        reads += is_read(b, i);
    buf_init(&a->head, BATCH_HEAD_BYTES + BATCH_ALIGN_BYTES + json.bytes);
    a->parts = calloc(1 + 2 * reads, sizeof *a->parts);
    if (!a->parts || !batch_head_add(&a->head, json))
        return false;
    add_part(a, (struct answer_part){.held = buf_span(&a->head), .bytes = a->head.bytes});
    for (unsigned i = 0; i < b->message.spec.ops_count; i++)
        if (is_read(b, i))
            add_segment(b, i);
    return true;
}

/* Within JSON there is one part, the text itself. */
static bool add_whole(struct batch_answer *a, struct buf *json)
{
    a->parts = calloc(1, sizeof *a->parts);
    if (!a->parts)
        return false;
    a->head = *json;
    buf_init(json, 0);
    add_part(a, (struct answer_part){.held = buf_span(&a->head), .bytes = a->head.bytes});
    return true;
}

enum status batch_answer_make(struct batch_request *b, struct problem *why)
{
    struct buf json;
    bool       ok;

    b->answer = (struct batch_answer){.times = batch_times_of(b->job.batch), .tells = tells(b)};
    if (b->minimal && !b->answer.tells)
        return STATUS_OK;
    buf_init(&json, REPLY_BODY_BYTES_MAX);
    ok = write_json(b, &json) && (b->inline_json ? add_whole(&b->answer, &json) : add_frame(b, buf_span(&json)));
    buf_finish(&json);
    return ok ? STATUS_OK : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the answer");
}

uint64_t batch_answer_bytes(const struct batch_answer *a)
{
    return a->held_bytes + a->parts_count * sizeof *a->parts;
}

void batch_answer_finish(struct batch_answer *a)
{
    for (unsigned i = 0; i < a->parts_count; i++)
        free(a->parts[i].owned);
    free(a->parts);
    buf_finish(&a->head);
    *a = (struct batch_answer){0};
}
