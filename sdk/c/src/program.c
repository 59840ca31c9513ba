/* Programs: batches that the service keeps, and their runs. */
#include <stdlib.h>

#include "batch.h"
#include "op.h"

struct gpurest_program {
    char           name[NAME_BYTES];
    gpurest_batch *batch; /* its segments and places; holds the session */
};

/* ---- prepare ---- */

static gpurest_status check(const gpurest_batch *b)
{
    if (b->results_count)
        return fail(GPUREST_E_UNSUPPORTED, "pass no result, and measure outside",
                    "a program has no results of launches and no elapsed times");
    if (b->freed_count)
        return fail(GPUREST_E_UNSUPPORTED, "free it after the last run", "a program frees no buffer from outside: it could not run again");
    return b->ops_count ? GPUREST_OK : fail_invalid("the batch is empty");
}

static gpurest_status put(const gpurest_program *p)
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
    batch_unlist(b);
    st = out ? session_enter(b->session) : fail_invalid("out is NULL");
    if (!st)
        st = check(b);
    p = st ? NULL : calloc(1, sizeof *p);
    if (!st && !p)
        st = fail_memory();
    if (!st) {
        p->batch = b;
        session_name(b->session, 'p', p->name);
        st = put(p);
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

/* What a run sends and takes, if it is not what was queued. */
struct run {
    struct piece       segments[BATCH_SEGMENTS_MAX];
    struct frame_place places[BATCH_SEGMENTS_MAX];
};

static gpurest_status fill(struct run *r, const gpurest_batch *b, const void *const *inputs, size_t inputs_count, void *const *outputs,
                           size_t outputs_count)
{
    if (inputs_count > b->segments_count || outputs_count > b->places_count || (inputs_count && !inputs) || (outputs_count && !outputs))
        return fail_invalid("the program has %zu inputs and %zu outputs", b->segments_count, b->places_count);
    memcpy(r->segments, b->segments, sizeof r->segments);
    memcpy(r->places, b->places, sizeof r->places);
    for (size_t i = 0; i < inputs_count; i++)
        if (inputs[i])
            r->segments[i].data = inputs[i];
    for (size_t i = 0; i < outputs_count; i++)
        if (outputs[i])
            r->places[i].data = outputs[i];
    return GPUREST_OK;
}

static gpurest_status perform(const gpurest_program *p, const struct run *r)
{
    const gpurest_batch *b = p->batch;
    struct path          path = session_path(b->session, "/programs/%s/runs", p->name);
    struct frame_call    f = {.path = path.text,
                              .segments = r->segments,
                              .segments_count = b->segments_count,
                              .places = r->places,
                              .places_count = b->places_count,
                              .idle_ms = batch_quiet_ms(b)};
    struct buf           message;
    gpurest_status       st;

    buf_init(&message, BATCH_JSON_BYTES_MAX);
    json_open(&message, NULL, '{');
    batch_write_segments(&message, b);
    json_close(&message, '}');
    f.json = buf_text(&message);
    st = message.failed ? fail_memory() : frame_perform(b->session->client, &f);
    if (st)
        session_note_failure(b->session, failure_last());
    json_destroy(f.answer);
    buf_finish(&message);
    return st;
}

gpurest_status gpurest_program_run(gpurest_program *p, const void *const *inputs, size_t inputs_count, void *const *outputs,
                                   size_t outputs_count)
{
    struct run    *r;
    gpurest_status st = p ? session_enter(p->batch->session) : fail_invalid("the program is NULL");

    if (st)
        return st;
    r = malloc(sizeof *r);
    if (!r)
        return fail_memory();
    st = fill(r, p->batch, inputs, inputs_count, outputs, outputs_count);
    if (!st)
        st = perform(p, r);
    free(r);
    return st;
}

/* Best effort, as with modules. */
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
