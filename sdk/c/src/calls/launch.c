/* Launches, synchronous and asynchronous. */
#include "code/launch_body.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/batch.h"
#include "session/op.h"
#include "transport/problem.h"

/* ---- the request ---- */

static gpurest_status prepare_launch(gpurest_session *s, const gpurest_kernel *kernel, const gpurest_launch_config *config,
                                     struct launch *l)
{
    gpurest_status st = session_check(s);

    if (st)
        return st;
    if (!kernel || (config && !struct_copy_in(&l->config, sizeof l->config, config)))
        return fail_invalid("the kernel is NULL, or config.struct_size is not set");
    if (kernel->module->session != s)
        return fail_invalid("the kernel %.100s belongs to another session", kernel->name);
    l->kernel = kernel;
    st = session_stream(s, l->config.stream, l->stream);
    return st ? st : args_check(kernel, l->args, l->args_count);
}

/* The library chooses the id, so a retry does not launch twice. */
static gpurest_status write_request(struct buf *b, gpurest_session *s, const struct launch *l, const char *id)
{
    gpurest_status st;

    buf_init(b, BATCH_JSON_BYTES_MAX);
    json_open(b, NULL, '{');
    json_string(b, "id", id);
    if (l->config.timeout_ms)
        json_u64(b, "timeout_ms", l->config.timeout_ms);
    if (!l->result)
        json_bool(b, "timing", false);
    st = launch_write(b, s, NULL, l);
    json_close(b, '}');
    return st || !b->failed ? st : fail_memory();
}

/* The operation's members are those of the launch, behind "op". */
static gpurest_status write_request_of_batch(struct buf *out, const gpurest_batch *b, const char *id)
{
    assert(batch_is_launch(b) && strncmp(buf_text(&b->ops), BATCH_LAUNCH_BEGIN, strlen(BATCH_LAUNCH_BEGIN)) == 0);
    buf_init(out, 2 * (size_t)BATCH_JSON_BYTES_MAX);
    json_open(out, NULL, '{');
    json_string(out, "id", id);
    if (b->timeout_ms)
        json_u64(out, "timeout_ms", b->timeout_ms);
    json_bool(out, "timing", false);
    if (b->default_module[0])
        json_string(out, "module", b->default_module);
    buf_add(out, ",", 1);
    buf_add(out, b->ops.data + strlen(BATCH_LAUNCH_BEGIN), b->ops.bytes - strlen(BATCH_LAUNCH_BEGIN));
    return out->failed ? fail_memory() : GPUREST_OK;
}

/* ---- the answer ---- */

/* 204: it has succeeded, and there is nothing to tell. */
static gpurest_status take_nothing(gpurest_launch_result *out)
{
    gpurest_launch_result none = GPUREST_LAUNCH_RESULT_INIT;

    if (!out)
        return GPUREST_OK;
    none.output = calloc(1, 1);
    if (!none.output)
        return fail_memory();
    struct_copy_out(out, &none, sizeof none);
    return GPUREST_OK;
}

/* Reads the state from a description of the launch. */
static gpurest_status take_launch_state(const struct exchange *x, gpurest_launch_result *out, bool *finished)
{
    struct json   *d;
    const char    *state;
    gpurest_status st = GPUREST_OK;

    *finished = true;
    if (x->status == 204)
        return take_nothing(out);
    d = json_parse(x->body.data, x->body.bytes);
    state = json_text_or(json_member(d, "state"), "");
    if (strcmp(state, "queued") == 0 || strcmp(state, "running") == 0)
        *finished = false;
    else if (strcmp(state, "succeeded") == 0)
        st = launch_take_result(d, out);
    else if (strcmp(state, "cancelled") == 0)
        st = fail(GPUREST_E_CANCELLED, NULL, "the launch was cancelled");
    else if (strcmp(state, "failed") == 0)
        st = problem_record_json(json_member(d, "problem"), "");
    else
        st = fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer to a launch has no state");
    json_destroy(d);
    return st;
}

/* cancel may be NULL. */
static gpurest_status poll_launch(gpurest_session *s, const char *id, int seconds, bool in_background, struct cancel *cancel,
                                  gpurest_launch_result *out, bool *finished)
{
    struct path     path = session_path(s, "/launches/%s", id);
    struct exchange x;
    char            prefer[48];
    gpurest_status  st;

    exchange_init(&x, "GET", path.text);
    client_set_wait(s->client, &x, seconds, "", prefer, sizeof prefer);
    x.beyond_pool = in_background;
    x.cancel = cancel;
    st = session_perform(s, &x);
    if (!st)
        st = take_launch_state(&x, out, finished);
    if (st)
        session_note_failure(s, failure_last());
    exchange_finish(&x);
    return st;
}

/* ---- synchronous ---- */

static gpurest_status post_launch(gpurest_session *s, const char *json, int wait_s, struct cancel *cancel, gpurest_launch_result *out,
                                  bool *finished, bool *lost)
{
    struct path     path = session_path(s, "/launches");
    struct exchange x;
    char            prefer[64];
    gpurest_status  st;

    exchange_init(&x, "POST", path.text);
    client_set_wait(s->client, &x, wait_s, ", return=minimal", prefer, sizeof prefer);
    if (!wait_s)
        x.headers = "Prefer: respond-async\r\n";
    x.generation = session_generation(s);
    x.repeatable = true;
    x.cancel = cancel;
    st = session_json(s, &x, json);
    if (!st)
        st = take_launch_state(&x, out, finished);
    *lost = st == GPUREST_E_CANCELLED && x.resent;
    exchange_finish(&x);
    return st;
}

/* Of a launch, or of a batch that is one. *lost: the service dropped the queued launch when the connection broke; it has not run. */
static gpurest_status try_launch(gpurest_session *s, const struct launch *l, const gpurest_batch *batch, gpurest_launch_result *result,
                                 bool *lost)
{
    char           id[NAME_BYTES];
    struct buf     body;
    bool           finished = false;
    gpurest_status st;

    *lost = false;
    session_name(s, 'l', id);
    st = batch ? write_request_of_batch(&body, batch, id) : write_request(&body, s, l, id);
    if (!st)
        st = post_launch(s, buf_text(&body), LAUNCH_WAIT_S, NULL, result, &finished, lost);
    while (!st && !finished)
        st = poll_launch(s, id, LAUNCH_WAIT_S, false, NULL, result, &finished);
    buf_finish(&body);
    return st;
}

static gpurest_status run_launch(gpurest_session *s, const struct launch *l, const gpurest_batch *batch, gpurest_launch_result *result)
{
    bool           lost;
    gpurest_status st = try_launch(s, l, batch, result, &lost);

    for (int tries = 0; lost && tries < s->client->max_retries; tries++)
        st = try_launch(s, l, batch, result, &lost);
    return st;
}

gpurest_status batch_perform_launch(gpurest_batch *b)
{
    gpurest_launch_result result = GPUREST_LAUNCH_RESULT_INIT;
    gpurest_status        st = run_launch(b->session, NULL, b, &result);

    if (st)
        session_note_failure(b->session, failure_last());
    else if (b->prints)
        client_output(b->session->client, result.output, result.output_truncated);
    free(result.output);
    return st;
}

static gpurest_status launch_or_queue(gpurest_session *s, struct launch *l)
{
    gpurest_batch *b = session_batch(s);

    if (b)
        return batch_launch(b, l);
    lane_drain(s);
    return run_launch(s, l, NULL, l->result);
}

gpurest_status gpurest_launch_with(gpurest_session *s, const gpurest_kernel *kernel, const gpurest_launch_config *config,
                                   const gpurest_arg *args, size_t args_count, gpurest_launch_result *result_or_null)
{
    struct launch  l = {.config = GPUREST_LAUNCH_CONFIG_INIT, .args = args, .args_count = args_count, .result = result_or_null};
    gpurest_status st = prepare_launch(s, kernel, config, &l);

    return st ? st : launch_or_queue(s, &l);
}

gpurest_status gpurest_launch(gpurest_session *s, const gpurest_kernel *kernel, gpurest_dim3 grid, gpurest_dim3 block, size_t shared_bytes,
                              gpurest_stream stream, const gpurest_arg *args, size_t args_count)
{
    gpurest_launch_config c = GPUREST_LAUNCH_CONFIG_INIT;

    if (shared_bytes > UINT32_MAX)
        return fail_invalid("shared_bytes %zu exceeds 32 bits", shared_bytes);
    c.grid = grid;
    c.block = block;
    c.shared_bytes = (uint32_t)shared_bytes;
    c.stream = stream;
    return gpurest_launch_with(s, kernel, &c, args, args_count, NULL);
}

gpurest_status gpurest_launch_raw(gpurest_session *s, const gpurest_kernel *kernel, const gpurest_launch_config *config, const void *params,
                                  size_t bytes)
{
    gpurest_arg    args[PARAMS_MAX];
    struct launch  l = {.config = GPUREST_LAUNCH_CONFIG_INIT, .args = args};
    gpurest_status st = kernel ? args_of_block(kernel, params, bytes, args) : fail_invalid("the kernel is NULL");

    if (!st) {
        l.args_count = kernel->params_count;
        st = prepare_launch(s, kernel, config, &l);
    }
    return st ? st : launch_or_queue(s, &l);
}

/* ---- asynchronous ---- */

struct launch_work {
    char                   id[NAME_BYTES];
    struct buf             body;
    gpurest_launch_result *result;
    bool                   cancel_sent;
};

/* The launch may not exist, or be running: the service decides. */
static void cancel_at_service(gpurest_session *s, const char *id)
{
    struct path     path = session_path(s, "/launches/%s", id);
    struct exchange x;

    exchange_init(&x, "DELETE", path.text);
    x.beyond_pool = true;
    client_perform(s->client, &x);
    exchange_finish(&x);
}

static gpurest_status launch_work_perform(gpurest_op *op, void *work, bool *followed)
{
    struct launch_work *w = work;
    bool                finished = false, lost;
    gpurest_status      st = post_launch(op->session, buf_text(&w->body), 0, &op->pending.cancel, w->result, &finished, &lost);

    if (st == GPUREST_E_CANCELLED) {
        cancel_at_service(op->session, w->id);
        return fail(GPUREST_E_CANCELLED, NULL, "the operation was cancelled");
    }
    *followed = !st && !finished;
    return st;
}

static gpurest_status launch_work_follow(gpurest_op *op, void *work, bool *finished)
{
    struct launch_work *w = work;
    struct cancel      *cancel = w->cancel_sent ? NULL : &op->pending.cancel;
    gpurest_status      st = poll_launch(op->session, w->id, FOLLOW_SLICE_S, true, cancel, w->result, finished);

    if (st != GPUREST_E_CANCELLED || *finished || !cancel)
        return st;
    w->cancel_sent = true; /* only the wait is cancelled so far: follow the launch to its end */
    cancel_at_service(op->session, w->id);
    return GPUREST_OK;
}

static void launch_work_release(void *work)
{
    struct launch_work *w = work;

    buf_finish(&w->body);
    free(w);
}

static const struct op_work launch_kind = {.perform = launch_work_perform, .follow = launch_work_follow, .release = launch_work_release};

gpurest_status gpurest_launch_async(gpurest_session *s, const gpurest_kernel *kernel, const gpurest_launch_config *config,
                                    const gpurest_arg *args, size_t args_count, gpurest_launch_result *result_or_null, gpurest_op **out)
{
    struct launch       l = {.config = GPUREST_LAUNCH_CONFIG_INIT, .args = args, .args_count = args_count};
    struct launch_work *w;
    gpurest_status      st = prepare_launch(s, kernel, config, &l);

    if (!st && (!out || session_batch(s)))
        st = fail_invalid("out is NULL, or this thread has begun a batch: use gpurest_launch and submit the batch asynchronously");
    if (st)
        return st;
    w = calloc(1, sizeof *w);
    if (!w)
        return fail_memory();
    w->result = result_or_null;
    session_name(s, 'l', w->id);
    st = write_request(&w->body, s, &l, w->id);
    if (!st)
        return op_begin(s, &launch_kind, w, out);
    launch_work_release(w);
    return st;
}
