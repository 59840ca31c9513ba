/* Programs: batches prepared once and run many times. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "batch/batch.h"
#include "session/op.h"

struct gpurest_program {
    char           name[NAME_BYTES];
    gpurest_batch *batch; /* its segments and places; references the session */
};

/* ---- prepare ---- */

static gpurest_status check_program(const gpurest_batch *b)
{
    if (b->results_count)
        return fail(GPUREST_E_UNSUPPORTED, "pass no result, and measure outside the program",
                    "a program returns no launch results or elapsed times");
    if (b->freed_count)
        return fail(GPUREST_E_UNSUPPORTED, "free it after the last run", "a program cannot free a buffer that it did not allocate");
    return b->ops_count ? GPUREST_OK : fail_invalid("the batch is empty");
}

static gpurest_status put_program(const gpurest_program *p)
{
    const gpurest_batch *b = p->batch;
    struct path          path = session_path(b->session, "/programs/%s", p->name);
    struct exchange      x;
    struct buf           message;
    gpurest_status       st;

    buf_init(&message, 2 * (size_t)BATCH_JSON_BYTES_MAX);
    json_open(&message, NULL, '{');
    batch_write_segments(&message, b);
    batch_write_ops(&message, b);
    json_close(&message, '}');
    exchange_init(&x, "PUT", path.text);
    st = message.failed ? fail_memory() : session_json(b->session, &x, buf_text(&message));
    exchange_finish(&x);
    buf_finish(&message);
    return st;
}

gpurest_status gpurest_batch_prepare(gpurest_batch *b, gpurest_program **out)
{
    gpurest_program *p;
    gpurest_status   st;

    if (!b)
        return fail_invalid("the batch is NULL");
    session_stop_recording(b->session, &b->recording);
    st = out ? session_enter(b->session) : fail_invalid("out is NULL");
    if (!st)
        st = check_program(b);
    p = st ? NULL : calloc(1, sizeof *p);
    if (!st && !p)
        st = fail_memory();
    if (!st) {
        p->batch = b;
        session_name(b->session, 'p', p->name);
        st = put_program(p);
    }
    if (st) {
        free(p);
        batch_destroy(b);
        return st;
    }
    batch_void_made(b);
    *out = p;
    return GPUREST_OK;
}

/* ---- run ---- */

/* The inputs, outputs and scalars of one run. */
struct run {
    const gpurest_program *program;
    struct piece           segments[BATCH_SEGMENTS_MAX];
    struct frame_place     places[BATCH_SEGMENTS_MAX];
    struct buf             message;
};

static gpurest_status fill_run(struct run *r, const gpurest_batch *b, const gpurest_program_run_options *o)
{
    if (o->inputs_count > b->segments_count || o->outputs_count > b->places_count || (o->inputs_count && !o->inputs) ||
        (o->outputs_count && !o->outputs))
        return fail_invalid("inputs or outputs is NULL, or exceeds the program's %zu inputs and %zu outputs", b->segments_count,
                            b->places_count);
    memcpy(r->segments, b->segments, sizeof r->segments);
    memcpy(r->places, b->places, sizeof r->places);
    for (size_t i = 0; i < o->inputs_count; i++)
        if (o->inputs[i])
            r->segments[i].data = o->inputs[i];
    for (size_t i = 0; i < o->outputs_count; i++)
        if (o->outputs[i])
            r->places[i].data = o->outputs[i];
    return GPUREST_OK;
}

static gpurest_status check_scalars(const gpurest_batch *b, const gpurest_program_scalar *s, size_t count)
{
    if (count > PROGRAM_SCALARS_MAX || (count && !s))
        return fail_invalid("at most %d scalars, and not NULL", PROGRAM_SCALARS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (s[i].launch >= b->launches_count)
            return fail_invalid("scalar %zu: launch %zu is out of range, the program has %zu", i, s[i].launch, b->launches_count);
        for (size_t j = 0; j < i; j++)
            if (s[j].launch == s[i].launch && s[j].argument == s[i].argument)
                return fail_invalid("scalars %zu and %zu are for the same argument", j, i);
    }
    return GPUREST_OK;
}

/* Writes NaN and infinities by name: a run accepts no raw bytes. */
static bool write_value(struct buf *out, const gpurest_arg *a)
{
    double value = a->kind == GPUREST_ARG_F32 ? (double)a->value.f32 : a->kind == GPUREST_ARG_F64 ? a->value.f64 : 0;

    if (a->kind == GPUREST_ARG_BYTES)
        return false;
    if (isfinite(value))
        return arg_write_value(out, a);
    json_string(out, a->kind == GPUREST_ARG_F32 ? "f32" : "f64", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    return true;
}

/* "<argument>":{…} */
static gpurest_status write_scalar(struct buf *out, const gpurest_program_scalar *s)
{
    char name[24];
    bool is_scalar;

    snprintf(name, sizeof name, "%zu", s->argument);
    json_open(out, name, '{');
    is_scalar = write_value(out, &s->value);
    json_close(out, '}');
    return is_scalar ? GPUREST_OK : fail_invalid("argument %zu of launch %zu: only scalars can be replaced", s->argument, s->launch);
}

/* Grouped by launch: {"<operation>":{"<argument>":{…}}}. */
static gpurest_status write_scalars(struct buf *out, const gpurest_batch *b, const gpurest_program_scalar *s, size_t count)
{
    gpurest_status st = check_scalars(b, s, count);
    char           name[24];

    if (st || !count)
        return st;
    json_open(out, "args", '{');
    for (size_t launch = 0; launch < b->launches_count && !st; launch++) {
        bool open = false;

        for (size_t i = 0; i < count && !st; i++) {
            if (s[i].launch != launch)
                continue;
            snprintf(name, sizeof name, "%zu", b->launches[launch]);
            if (!open)
                json_open(out, name, '{');
            open = true;
            st = write_scalar(out, &s[i]);
        }
        if (open)
            json_close(out, '}');
    }
    json_close(out, '}');
    return st;
}

static gpurest_status make_run(const gpurest_program *p, const gpurest_program_run_options *o, struct run **out)
{
    struct run    *r = calloc(1, sizeof *r);
    gpurest_status st = r ? fill_run(r, p->batch, o) : fail_memory();

    if (!r)
        return st;
    r->program = p;
    buf_init(&r->message, BATCH_JSON_BYTES_MAX);
    json_open(&r->message, NULL, '{');
    batch_write_segments(&r->message, p->batch);
    if (!st)
        st = write_scalars(&r->message, p->batch, o->scalars, o->scalars_count);
    json_close(&r->message, '}');
    if (!st && r->message.failed)
        st = fail_memory();
    *out = r;
    return st;
}

static void destroy_run(void *run)
{
    struct run *r = run;

    if (r)
        buf_finish(&r->message);
    free(r);
}

static gpurest_status perform_run(const struct run *r, struct cancel *cancel)
{
    const gpurest_batch *b = r->program->batch;
    struct path          path = session_path(b->session, "/programs/%s/runs", r->program->name);
    struct frame_call    f = {.path = path.text,
                              .headers = BATCH_PREFER,
                              .generation = session_generation(b->session),
                              .json = buf_text(&r->message),
                              .segments = r->segments,
                              .segments_count = b->segments_count,
                              .places = r->places,
                              .places_count = b->places_count,
                              .idle_ms = batch_quiet_ms(b),
                              .cancel = cancel};
    gpurest_status       st = frame_perform(b->session->client, &f);

    if (st)
        session_note_failure(b->session, failure_last());
    json_destroy(f.answer);
    return st;
}

static gpurest_status run_work_perform(gpurest_op *op, void *work, bool *followed)
{
    (void)followed;
    return perform_run(work, &op->pending.cancel);
}

static const struct op_work run_kind = {.perform = run_work_perform, .release = destroy_run};

gpurest_status gpurest_program_run_with(gpurest_program *p, const gpurest_program_run_options *options, gpurest_op **out_or_null)
{
    gpurest_program_run_options o = GPUREST_PROGRAM_RUN_OPTIONS_INIT;
    struct run                 *r = NULL;
    gpurest_status              st;

    if (!p)
        return fail_invalid("the program is NULL");
    st = out_or_null ? session_check(p->batch->session) : session_enter(p->batch->session);
    if (st)
        return st;
    if (options && !struct_copy_in(&o, sizeof o, options))
        return fail_invalid("options.struct_size is not set: start from the _INIT macro");
    st = make_run(p, &o, &r);
    if (!st && out_or_null)
        return op_begin(p->batch->session, &run_kind, r, out_or_null);
    if (!st)
        st = perform_run(r, NULL);
    destroy_run(r);
    return st;
}

gpurest_status gpurest_program_run(gpurest_program *p, const void *const *inputs, size_t inputs_count, void *const *outputs,
                                   size_t outputs_count)
{
    gpurest_program_run_options o = GPUREST_PROGRAM_RUN_OPTIONS_INIT;

    o.inputs = inputs;
    o.inputs_count = inputs_count;
    o.outputs = outputs;
    o.outputs_count = outputs_count;
    return gpurest_program_run_with(p, &o, NULL);
}

/* Best effort: the outcome is not reported. */
void gpurest_program_destroy(gpurest_program *p)
{
    struct failure  before;
    struct path     path;
    struct exchange x;

    if (!p)
        return;
    failure_init(&before);
    failure_copy(&before, failure_last());
    if (session_enter(p->batch->session) == GPUREST_OK) {
        path = session_path(p->batch->session, "/programs/%s", p->name);
        exchange_init(&x, "DELETE", path.text);
        session_perform(p->batch->session, &x);
        exchange_finish(&x);
    }
    failure_raise(&before);
    failure_finish(&before);
    batch_destroy(p->batch);
    free(p);
}
