/* Background batches: submitted without waiting, followed by long polls, results fetched at the end. */
#include <stdio.h>
#include <stdlib.h>

#include "batch/batch.h"
#include "session/op.h"
#include "transport/problem.h"

struct background {
    gpurest_batch *batch;
    char           id[NAME_BYTES]; /* the service's */
    bool           cancel_sent;
};

/* ---- submission ---- */

static gpurest_status take_id(struct background *w, const struct json *answer)
{
    const char *id = json_text_or(json_member(answer, "id"), "");

    if (!name_valid(id) || snprintf(w->id, sizeof w->id, "%s", id) >= (int)sizeof w->id)
        return fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service",
                    "the answer to a batch in the background has no id");
    return GPUREST_OK;
}

/* The idempotency key allows a retry when the connection breaks. */
static gpurest_status post_background(gpurest_op *op, struct background *w, const char *message)
{
    gpurest_batch    *b = w->batch;
    struct path       path = session_path(b->session, "/batches");
    char              key[NAME_BYTES], headers[NAME_BYTES + 64];
    struct frame_call f = {.path = path.text,
                           .headers = headers,
                           .repeatable = true,
                           .json = message,
                           .segments = b->segments,
                           .segments_count = b->segments_count,
                           .cancel = &op->pending.cancel};
    gpurest_status    st;

    session_name(b->session, 'k', key);
    snprintf(headers, sizeof headers, "Prefer: respond-async\r\nIdempotency-Key: \"%s\"\r\n", key);
    st = frame_send(b->session->client, &f);
    if (!st)
        st = take_id(w, f.answer);
    json_destroy(f.answer);
    return st;
}

static gpurest_status background_perform(gpurest_op *op, void *work, bool *followed)
{
    struct background *w = work;
    struct buf         message;
    gpurest_status     st = GPUREST_OK;

    if (w->batch->ops_count == 0)
        return GPUREST_OK;
    buf_init(&message, 2 * (size_t)BATCH_JSON_BYTES_MAX);
    st = batch_write_message(&message, w->batch);
    if (!st)
        st = post_background(op, w, buf_text(&message));
    buf_finish(&message);
    if (st)
        return batch_settle(w->batch, st, NULL, op);
    *followed = true;
    return GPUREST_OK;
}

/* ---- following ---- */

/* Cancels a queued batch, lets a running one continue, and drops the result of a finished one. */
static void delete_background(gpurest_session *s, const char *id)
{
    struct path     path = session_path(s, "/batches/%s", id);
    struct exchange x;

    exchange_init(&x, "DELETE", path.text);
    x.beyond_pool = true;
    client_perform(s->client, &x);
    exchange_finish(&x);
}

static gpurest_status fetch_result(gpurest_op *op, struct background *w)
{
    gpurest_batch    *b = w->batch;
    struct path       path = session_path(b->session, "/batches/%s/result", w->id);
    struct frame_call f = {.path = path.text, .places = b->places, .places_count = b->places_count};
    gpurest_status    st = frame_fetch(b->session->client, &f);

    st = batch_settle(b, st, f.answer, op);
    json_destroy(f.answer);
    if (!st)
        delete_background(b->session, w->id);
    return st;
}

static gpurest_status take_batch_state(gpurest_op *op, struct background *w, const struct exchange *x, bool *finished)
{
    struct json   *d = json_parse(x->body.data, x->body.bytes);
    const char    *state = json_text_or(json_member(d, "state"), "");
    gpurest_status st = GPUREST_OK;

    *finished = strcmp(state, "queued") != 0 && strcmp(state, "running") != 0;
    if (strcmp(state, "succeeded") == 0)
        st = fetch_result(op, w);
    else if (strcmp(state, "failed") == 0)
        st = batch_settle(w->batch, problem_record_json(json_member(d, "problem"), ""), NULL, op);
    else if (strcmp(state, "cancelled") == 0)
        st = batch_settle(w->batch, fail(GPUREST_E_CANCELLED, NULL, "the batch was cancelled"), NULL, op);
    else if (*finished)
        st = batch_settle(
            w->batch, fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "a batch in the background has no state"),
            NULL, op);
    json_destroy(d);
    return st;
}

static gpurest_status background_follow(gpurest_op *op, void *work, bool *finished)
{
    struct background *w = work;
    gpurest_session   *s = op->session;
    struct path        path = session_path(s, "/batches/%s", w->id);
    struct exchange    x;
    char               prefer[48];
    gpurest_status     st;

    exchange_init(&x, "GET", path.text);
    client_set_wait(s->client, &x, FOLLOW_SLICE_S, "", prefer, sizeof prefer);
    x.beyond_pool = true;
    x.cancel = w->cancel_sent ? NULL : &op->pending.cancel;
    st = session_perform(s, &x);
    if (st == GPUREST_E_CANCELLED && !w->cancel_sent) {
        w->cancel_sent = true; /* only the wait is cancelled so far: follow the batch to its end */
        delete_background(s, w->id);
        st = GPUREST_OK;
    } else if (st) {
        st = batch_settle(w->batch, st, NULL, op);
    } else {
        st = take_batch_state(op, w, &x, finished);
    }
    exchange_finish(&x);
    return st;
}

static void background_release(void *work)
{
    struct background *w = work;

    batch_destroy(w->batch);
    free(w);
}

static const struct op_work background_kind = {.perform = background_perform, .follow = background_follow, .release = background_release};

gpurest_status gpurest_batch_submit_background(gpurest_batch *b, gpurest_op **out)
{
    struct background *w = NULL;
    gpurest_status     st;

    if (!b)
        return fail_invalid("the batch is NULL");
    session_stop_recording(b->session, &b->recording);
    st = out ? session_check(b->session) : fail_invalid("out is NULL");
    if (!st) {
        w = calloc(1, sizeof *w);
        st = w ? GPUREST_OK : fail_memory();
    }
    if (st) {
        batch_destroy(b);
        return st;
    }
    w->batch = b;
    return op_begin(b->session, &background_kind, w, out);
}
