/* Asynchronous operations, and one lane per session that orders them. */
#include "session/op.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/platform.h"

#define CONTAINER_OF(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* ---- create and release ---- */

static void op_drop(gpurest_op *op)
{
    if (atomic_fetch_sub(&op->references, 1) != 1)
        return;
    session_drop(op->session);
    failure_finish(&op->failure);
    cancel_finish(&op->pending.cancel);
    pthread_mutex_destroy(&op->lock);
    pthread_cond_destroy(&op->changed);
    free(op);
}

static gpurest_op *make_op(gpurest_session *s, const struct op_work *kind, void *work)
{
    gpurest_op *op = calloc(1, sizeof *op);

    if (!op)
        return NULL;
    atomic_init(&op->references, 2);
    op->session = s;
    session_hold(s);
    op->kind = kind;
    op->work = work;
    cancel_init(&op->pending.cancel);
    failure_init(&op->failure);
    pthread_mutex_init(&op->lock, NULL);
    condition_init(&op->changed);
    return op;
}

/* ---- the end of an operation ---- */

static void call_back(gpurest_op *op)
{
    op->callback(op->callback_arg, op);
    pthread_mutex_lock(&op->lock);
    op->callback_running = false;
    op->callback_done = true;
    pthread_cond_broadcast(&op->changed);
    pthread_mutex_unlock(&op->lock);
}

/* Ends it with `st` and this thread's error. Releases the caller's memory before it is seen as done. */
static void finish_op(gpurest_op *op, gpurest_status st)
{
    bool calls;

    op->kind->release(op->work);
    op->work = NULL;
    client_remove_pending(op->session->client, &op->pending);
    pthread_mutex_lock(&op->lock);
    if (st)
        failure_copy(&op->failure, failure_last());
    op->failure.status = st;
    op->state = OP_DONE;
    calls = op->callback_running = op->callback != NULL;
    pthread_cond_broadcast(&op->changed);
    pthread_mutex_unlock(&op->lock);
    if (calls)
        call_back(op);
    op_drop(op);
}

/* ---- following ---- */

static void follow_run(struct job *job)
{
    gpurest_op    *op = CONTAINER_OF(job, gpurest_op, job);
    bool           finished = false;
    gpurest_status st = op->kind->follow(op, op->work, &finished);

    if (!st && !finished) {
        workers_again(&op->session->client->followers, job);
        return;
    }
    if (st)
        session_note_failure(op->session, failure_last());
    finish_op(op, st);
}

static void begin_following(gpurest_op *op)
{
    pthread_mutex_lock(&op->lock);
    op->state = OP_FOLLOWED;
    pthread_mutex_unlock(&op->lock);
    op->job.run = follow_run;
    if (!workers_add(&op->session->client->followers, &op->job))
        finish_op(op, fail(GPUREST_E_CANCELLED, NULL, "the client is closed or cannot create a thread; the kernel may still run"));
}

/* ---- lanes ---- */

static gpurest_op *lane_take(gpurest_session *s)
{
    gpurest_op *op;

    pthread_mutex_lock(&s->lock);
    op = s->lane_first;
    s->lane_first = op->next_in_lane;
    if (!s->lane_first)
        s->lane_last = NULL;
    pthread_mutex_unlock(&s->lock);
    return op;
}

/* Schedules the next operation of the lane, after those of other sessions. */
static void lane_advance(gpurest_session *s)
{
    bool more;

    pthread_mutex_lock(&s->lock);
    s->lane_done++;
    more = s->lane_busy = s->lane_first != NULL;
    pthread_cond_broadcast(&s->lane_changed);
    pthread_mutex_unlock(&s->lock);
    if (more)
        workers_again(&s->client->transfers, &s->lane_job);
}

void lane_run(struct job *job)
{
    gpurest_session *s = CONTAINER_OF(job, gpurest_session, lane_job);
    gpurest_op      *op = lane_take(s);
    bool             followed = false;
    gpurest_status   st;

    pthread_mutex_lock(&op->lock);
    op->state = OP_DOING;
    pthread_mutex_unlock(&op->lock);
    st = cancel_asked(&op->pending.cancel) ? fail(GPUREST_E_CANCELLED, NULL, "the operation was cancelled before it began")
                                           : op->kind->perform(op, op->work, &followed);
    session_hold(s);
    lane_advance(s);
    if (!st && followed)
        begin_following(op);
    else
        finish_op(op, st);
    session_drop(s);
}

/* Appends it to the lane. False: no thread can be created. */
static bool lane_append(gpurest_session *s, gpurest_op *op)
{
    bool taken = true;

    pthread_mutex_lock(&s->lock);
    if (s->lane_last)
        s->lane_last->next_in_lane = op;
    else
        s->lane_first = op;
    s->lane_last = op;
    if (!s->lane_busy) {
        taken = workers_add(&s->client->transfers, &s->lane_job);
        s->lane_busy = taken;
        if (!taken)
            s->lane_first = s->lane_last = NULL;
    }
    s->lane_begun += taken;
    pthread_mutex_unlock(&s->lock);
    return taken;
}

void lane_drain(gpurest_session *s)
{
    uint64_t begun;

    pthread_mutex_lock(&s->lock);
    begun = s->lane_begun;
    while (s->lane_done < begun)
        pthread_cond_wait(&s->lane_changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

gpurest_status op_begin(gpurest_session *s, const struct op_work *kind, void *work, gpurest_op **out)
{
    gpurest_op *op = make_op(s, kind, work);

    if (!op) {
        kind->release(work);
        return fail_memory();
    }
    if (client_add_pending(s->client, &op->pending)) {
        if (lane_append(s, op)) {
            *out = op;
            return GPUREST_OK;
        }
        client_remove_pending(s->client, &op->pending);
    }
    kind->release(work);
    op_drop(op);
    op_drop(op);
    return fail(GPUREST_E_CANCELLED, NULL, "the client is closed or cannot create a thread");
}

void op_set_results(gpurest_op *op, size_t count, size_t done)
{
    pthread_mutex_lock(&op->lock);
    op->results_count = count;
    op->results_done = done;
    pthread_mutex_unlock(&op->lock);
}

/* ---- public functions ---- */

gpurest_status gpurest_op_wait(gpurest_op *op, int timeout_ms)
{
    struct timespec until = clock_after_ms(timeout_ms < 0 ? 0 : timeout_ms);
    bool            in_time = true;
    gpurest_status  st;

    if (!op)
        return fail_invalid("the operation is NULL");
    pthread_mutex_lock(&op->lock);
    while (op->state != OP_DONE && in_time)
        if (timeout_ms < 0)
            pthread_cond_wait(&op->changed, &op->lock);
        else
            in_time = condition_wait_until(&op->changed, &op->lock, &until);
    if (op->state != OP_DONE)
        st = fail(GPUREST_E_TIMEOUT, NULL, "the operation did not finish in %d ms and continues", timeout_ms);
    else
        st = op->failure.status ? failure_raise(&op->failure) : GPUREST_OK;
    pthread_mutex_unlock(&op->lock);
    return st;
}

int gpurest_op_done(const gpurest_op *op)
{
    gpurest_op *o = (gpurest_op *)(uintptr_t)op;
    int         done;

    if (!o)
        return 1;
    pthread_mutex_lock(&o->lock);
    done = o->state == OP_DONE;
    pthread_mutex_unlock(&o->lock);
    return done;
}

void gpurest_op_cancel(gpurest_op *op)
{
    if (op)
        cancel_ask(&op->pending.cancel);
}

static void late_callback(struct job *job)
{
    gpurest_op *op = CONTAINER_OF(job, gpurest_op, job);

    call_back(op);
    op_drop(op);
}

gpurest_status gpurest_op_on_done(gpurest_op *op, gpurest_op_cb callback, void *arg)
{
    gpurest_status st = GPUREST_OK;
    bool           late = false;

    if (!op || !callback)
        return fail_invalid("the operation or the callback is NULL");
    pthread_mutex_lock(&op->lock);
    if (op->callback) {
        st = fail_invalid("the operation already has a callback");
    } else {
        op->callback = callback;
        op->callback_arg = arg;
        late = op->callback_running = op->state == OP_DONE;
    }
    if (late) {
        op->job.run = late_callback;
        atomic_fetch_add(&op->references, 1);
        if (!workers_add(&op->session->client->transfers, &op->job)) {
            op->callback = NULL;
            op->callback_running = false;
            atomic_fetch_sub(&op->references, 1);
            st = fail(GPUREST_E_CANCELLED, NULL, "the client is closed or cannot create a thread");
        }
    }
    pthread_mutex_unlock(&op->lock);
    return st;
}

size_t gpurest_op_result_count(const gpurest_op *op)
{
    return op && gpurest_op_done(op) ? op->results_count : 0;
}

gpurest_status gpurest_op_result(const gpurest_op *op, size_t index)
{
    if (!op || !gpurest_op_done(op) || index >= op->results_count)
        return fail_invalid("the operation is not done, or the index is out of range");
    if (index < op->results_done || !op->failure.status)
        return GPUREST_OK;
    return index == op->results_done ? op->failure.status : GPUREST_E_ABORTED;
}

void gpurest_op_free(gpurest_op *op)
{
    if (!op)
        return;
    pthread_mutex_lock(&op->lock);
    while (op->state != OP_DONE || op->callback_running)
        pthread_cond_wait(&op->changed, &op->lock);
    pthread_mutex_unlock(&op->lock);
    op_drop(op);
}
