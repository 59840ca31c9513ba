/* Batches: begin, submit, discard, and their answer. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/batch.h"
#include "session/op.h"

/* ---- begin and discard ---- */

gpurest_batch *batch_create(gpurest_session *s)
{
    gpurest_batch *b = malloc(sizeof *b);

    if (!b)
        return NULL;
    memset(b, 0, offsetof(gpurest_batch, segments));
    b->session = s;
    session_hold(s);
    b->serial = (uint32_t)random_u64();
    buf_init(&b->ops, BATCH_JSON_BYTES_MAX);
    return b;
}

gpurest_status gpurest_batch_begin(gpurest_session *s, gpurest_batch **out)
{
    gpurest_batch *b;
    gpurest_status st = session_check(s);

    if (st)
        return st;
    if (!out || session_batch(s))
        return fail_invalid("out is NULL, or this thread already has a batch on the session");
    b = batch_create(s);
    if (!b)
        return fail_memory();
    session_start_recording(s, &b->recording, b);
    *out = b;
    return GPUREST_OK;
}

gpurest_status gpurest_batch_timeout_ms(gpurest_batch *b, uint64_t timeout_ms)
{
    if (!b)
        return fail_invalid("the batch is NULL");
    b->timeout_ms = timeout_ms;
    return GPUREST_OK;
}

size_t gpurest_batch_count(const gpurest_batch *b)
{
    return b ? b->ops_count : 0;
}

/* A buffer that is still the batch's does not exist at the service. */
void batch_void_made(gpurest_batch *b)
{
    gpurest_session *s = b->session;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < b->made_count; i++) {
        const struct buffer_entry *e = handles_get(&s->buffers, b->made[i].buffer.id);
        if (e && e->made_in == b)
            handles_remove(&s->buffers, b->made[i].buffer.id);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Earlier buffers whose free did not complete, or may not have, can be freed again. */
static void settle_freed(gpurest_batch *b, size_t completed)
{
    gpurest_session *s = b->session;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < b->freed_count; i++) {
        struct buffer_entry *e = handles_get(&s->buffers, b->freed[i].buffer.id);
        if (!e || !e->freed_in_batch)
            continue;
        if (b->freed[i].op < completed)
            handles_remove(&s->buffers, b->freed[i].buffer.id);
        else
            e->freed_in_batch = false;
    }
    pthread_mutex_unlock(&s->lock);
}

void batch_destroy(gpurest_batch *b)
{
    if (!b)
        return;
    batch_void_made(b);
    settle_freed(b, 0);
    for (size_t i = 0; i < b->segments_count; i++)
        free((void *)(uintptr_t)b->segments[i].data);
    buf_finish(&b->ops);
    free(b->made);
    free(b->freed);
    free(b->results);
    free(b->launches);
    session_drop(b->session);
    free(b);
}

void gpurest_batch_discard(gpurest_batch *b)
{
    if (!b)
        return;
    session_stop_recording(b->session, &b->recording);
    batch_destroy(b);
}

/* ---- the message ---- */

void batch_write_segments(struct buf *out, const gpurest_batch *b)
{
    char id[24];

    json_open(out, "segments", '[');
    for (size_t i = 0; i < b->segments_count; i++) {
        snprintf(id, sizeof id, "s%zu", i);
        json_open(out, NULL, '{');
        json_string(out, "id", id);
        json_u64(out, "size", b->segments[i].bytes);
        json_close(out, '}');
    }
    json_close(out, ']');
}

/* Nobody asks what a launch of it took. */
static bool is_untimed(const gpurest_batch *b)
{
    bool asked = false;

    for (size_t i = 0; i < b->results_count && !asked; i++)
        asked = b->results[i].launch != NULL;
    return b->launches_count && !asked;
}

void batch_write_ops(struct buf *out, const gpurest_batch *b)
{
    json_open(out, "ops", '[');
    buf_add(out, buf_text(&b->ops), b->ops.bytes);
    json_close(out, ']');
    if (b->default_module[0])
        json_string(out, "module", b->default_module);
    if (b->timeout_ms)
        json_u64(out, "timeout_ms", b->timeout_ms);
    if (is_untimed(b))
        json_bool(out, "timing", false);
}

static void write_keep(struct buf *out, gpurest_batch *b)
{
    gpurest_session *s = b->session;

    json_open(out, "keep", '[');
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < b->made_count; i++) {
        const struct buffer_entry *e = handles_get(&s->buffers, b->made[i].buffer.id);
        if (e && !b->made[i].freed)
            json_string(out, NULL, e->name);
    }
    pthread_mutex_unlock(&s->lock);
    json_close(out, ']');
}

/* No data comes until the batch ends, which the service bounds by its deadline. */
int batch_quiet_ms(const gpurest_batch *b)
{
    uint64_t ms = b->timeout_ms ? b->timeout_ms : EXECUTION_TIMEOUT_MS_DEFAULT;

    return ms > (uint64_t)TIMEOUT_MS_MAX - SLACK_MS ? TIMEOUT_MS_MAX : (int)ms + SLACK_MS;
}

/* ---- the answer ---- */

static const struct json *find_op_result(const struct json *answer, size_t op)
{
    const struct json *v = json_first(json_member(answer, "ops"));

    while (v && json_number_or(json_member(v, "index"), -1) != (double)op)
        v = json_next(v);
    return v;
}

/* A launch that is not listed was timed with others, and printed nothing. */
static gpurest_status take_op_result(const struct json *v, const struct batch_result *to)
{
    if (!v && to->elapsed_ms)
        return fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service",
                    "the answer to a batch lacks the result of operation %zu", to->op);
    if (to->elapsed_ms) {
        *to->elapsed_ms = (float)(json_number_or(json_member(v, "elapsed_us"), 0) / 1000);
        return GPUREST_OK;
    }
    return launch_take_result(v, to->launch);
}

/* Takes the ids of the buffers that the batch keeps. */
static gpurest_status take_kept(gpurest_batch *b, const struct json *answer)
{
    gpurest_session   *s = b->session;
    const struct json *kept = json_member(answer, "kept");
    gpurest_status     st = GPUREST_OK;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < b->made_count && !st; i++) {
        struct buffer_entry *e = handles_get(&s->buffers, b->made[i].buffer.id);
        const char          *id = e ? json_text_or(json_member(kept, e->name), "") : "";
        if (!e || b->made[i].freed)
            continue;
        if (!name_valid(id)) {
            st = fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer to a batch lacks the id of a buffer");
            continue;
        }
        snprintf(e->name, sizeof e->name, "%s", id);
        e->made_in = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

static void hand_over_output(const gpurest_batch *b, const struct json *answer)
{
    for (const struct json *v = json_first(json_member(answer, "ops")); v; v = json_next(v))
        client_output(b->session->client, json_text_or(json_member(v, "stdout"), ""), json_true(json_member(v, "stdout_truncated")));
}

static gpurest_status take_answer(gpurest_batch *b, const struct json *answer)
{
    gpurest_status st = take_kept(b, answer);

    if (b->prints)
        hand_over_output(b, answer);

    for (size_t i = 0; i < b->results_count && !st; i++)
        st = take_op_result(find_op_result(answer, b->results[i].op), &b->results[i]);
    settle_freed(b, b->ops_count);
    return st;
}

static size_t completed_of(const gpurest_batch *b, gpurest_status st)
{
    long completed = failure_last()->completed_ops;

    if (!st)
        return b->ops_count;
    return completed < 0 ? 0 : (size_t)completed < b->ops_count ? (size_t)completed : b->ops_count;
}

gpurest_status batch_write_message(struct buf *out, gpurest_batch *b)
{
    json_open(out, NULL, '{');
    batch_write_segments(out, b);
    batch_write_ops(out, b);
    write_keep(out, b);
    json_close(out, '}');
    return out->failed ? fail_memory() : GPUREST_OK;
}

gpurest_status batch_settle(gpurest_batch *b, gpurest_status st, const struct json *answer, gpurest_op *op)
{
    if (!st)
        st = take_answer(b, answer);
    else
        session_note_failure(b->session, failure_last());
    if (st)
        settle_freed(b, completed_of(b, st));
    if (op)
        op_set_results(op, b->ops_count, completed_of(b, st));
    return st;
}

gpurest_status batch_perform(gpurest_batch *b, struct cancel *cancel, gpurest_op *op)
{
    struct path       path = session_path(b->session, "/batches");
    struct frame_call f = {.path = path.text,
                           .headers = BATCH_PREFER,
                           .generation = session_generation(b->session),
                           .segments = b->segments,
                           .segments_count = b->segments_count,
                           .places = b->places,
                           .places_count = b->places_count,
                           .idle_ms = batch_quiet_ms(b),
                           .cancel = cancel};
    struct buf        message;
    gpurest_status    st;

    if (b->ops_count == 0)
        return GPUREST_OK;
    buf_init(&message, 2 * (size_t)BATCH_JSON_BYTES_MAX); /* frame_write checks the limit */
    st = batch_write_message(&message, b);
    f.json = buf_text(&message);
    if (!st)
        st = frame_perform(b->session->client, &f);
    st = batch_settle(b, st, f.answer, op);
    json_destroy(f.answer);
    buf_finish(&message);
    return st;
}

/* ---- submission ---- */

static gpurest_status batch_work_perform(gpurest_op *op, void *work, bool *followed)
{
    (void)followed;
    return batch_perform(work, &op->pending.cancel, op);
}

static void batch_work_release(void *work)
{
    batch_destroy(work);
}

static const struct op_work batch_kind = {.perform = batch_work_perform, .release = batch_work_release};

gpurest_status gpurest_batch_submit(gpurest_batch *b, gpurest_op **out_or_null)
{
    gpurest_status st;

    if (!b)
        return fail_invalid("the batch is NULL");
    session_stop_recording(b->session, &b->recording);
    st = session_check(b->session);
    if (!st && out_or_null)
        return op_begin(b->session, &batch_kind, b, out_or_null);
    if (!st) {
        lane_drain(b->session);
        st = batch_perform(b, NULL, NULL);
    }
    batch_destroy(b);
    return st;
}
