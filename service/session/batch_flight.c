/* A batch's calls on their way: submitted in order, looked at in order, as many at once as there are places. */
#include <stdlib.h>

#include "session/batch_parts.h"

static const uint64_t SPIN_NS = (uint64_t)SPIN_BUDGET_US * NS_PER_US;

/* ---- landing; on whichever thread drains the ring ---- */

static void on_event(struct call *call, enum call_event event)
{
    struct flight_call *f = (struct flight_call *)call;
    struct batch       *b = f->batch;
    struct session     *s = b->session;

    if (event != CALL_DONE)
        return;
    f->landed_ns = now_ns();
    if (call->status) {
        pthread_mutex_lock(&s->lock);
        context_note(b->context, call);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_lock(&b->lock);
    f->landed = true;
    pthread_cond_signal(&b->landed);
    pthread_mutex_unlock(&b->lock);
}

static bool has_landed(struct batch *b, const struct flight_call *f)
{
    bool landed;

    pthread_mutex_lock(&b->lock);
    landed = f->landed;
    pthread_mutex_unlock(&b->lock);
    return landed;
}

static void await(struct batch *b, struct flight_call *f)
{
    if (has_landed(b, f))
        return;
    call_spin(b->context->worker, &f->call, SPIN_NS);
    pthread_mutex_lock(&b->lock);
    while (!f->landed)
        pthread_cond_wait(&b->landed, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

/* ---- looking at what landed ---- */

/* Gives back the staging memory of reads that are still in the ring. */
static void unload_reads(struct batch *b)
{
    for (unsigned i = 0; i < b->count; i++) {
        struct flight_call *f = &b->flights[(b->head + i) % BATCH_CALLS_IN_FLIGHT_MAX];
        if (!f->slice.data)
            continue;
        await(b, f);
        if (!f->call.status)
            memcpy(f->to, f->slice.data, f->bytes);
        staging_give(b->context->worker, &f->slice);
    }
}

/* Waits for staging memory, of which this batch itself must hold nothing then. */
static enum status output_slice(struct batch *b, uint64_t bytes, struct slice *out)
{
    enum status st = staging_take(b->context->worker, bytes, out, NULL);

    if (st != STATUS_PENDING)
        return st;
    unload_reads(b);
    return context_staging(b->context, bytes, out, NULL);
}

/* What a kernel printed; what cannot be had is missing, and said to be. */
static void fetch_output(struct batch *b, const struct flight_call *f, uint64_t bytes)
{
    struct context              *c = b->context;
    struct batch_result         *r = &b->results[f->op];
    struct msg_take_output       m = {.tag = f->tag};
    struct msg_take_output_reply got;
    struct slice                 slice;

    r->output_truncated = true;
    if (bytes > KERNEL_OUTPUT_BYTES_MAX || bytes > LAUNCH_OUTPUTS_KEPT_BYTES_MAX - b->output_bytes)
        return;
    if (output_slice(b, bytes, &slice))
        return;
    m.to = (struct shm_ref){slice.ref.offset, bytes};
    r->output = malloc(bytes);
    if (r->output && !worker_take_output(c->worker, &m, &got, deadline_after_ms(WORKER_CALL_DEADLINE_MS), NULL) && got.bytes <= bytes) {
        memcpy(r->output, slice.data, got.bytes);
        r->output_bytes = got.bytes;
        r->output_truncated = bytes >= KERNEL_OUTPUT_BYTES_MAX;
        b->output_bytes += got.bytes;
    }
    staging_give(c->worker, &slice);
}

static void launched(struct batch *b, const struct flight_call *f)
{
    const struct msg_launch_reply *r = &f->call.reply.launch;
    double                         us = r->gpu_us > 0 ? (double)r->gpu_us : 0;

    b->results[f->op].gpu_us = us;
    pthread_mutex_lock(&b->session->lock);
    b->session->device_time_us += us;
    pthread_mutex_unlock(&b->session->lock);
    if (r->output_bytes)
        fetch_output(b, f, r->output_bytes);
}

static void fail(struct batch *b, const struct flight_call *f)
{
    struct session *s = b->session;

    if (b->failed)
        return;
    b->failed = f->call.status;
    b->failed_op = f->op;
    b->failure = f->call.problem;
    b->failure.status = b->failed;
    pthread_mutex_lock(&s->lock);
    if (b->context->closed)
        b->failed = context_still_usable(b->context, &b->failure);
    pthread_mutex_unlock(&s->lock);
}

static enum status failure_of(struct batch *b, struct problem *why)
{
    if (!b->failed)
        return STATUS_OK;
    *why = b->failure;
    return batch_blame(why, b->failed, b->failed_op, b->failed_op);
}

static void look_at(struct batch *b, struct flight_call *f)
{
    if (f->call.status)
        fail(b, f);
    else if (f->tag)
        launched(b, f);
    else if (f->slice.data)
        memcpy(f->to, f->slice.data, f->bytes);
    else if (f->event)
        f->event->done_ns = f->landed_ns;
    if (f->slice.data)
        staging_give(b->context->worker, &f->slice);
}

enum status batch_reap(struct batch *b, struct problem *why)
{
    struct flight_call *f = &b->flights[b->head];

    await(b, f);
    look_at(b, f);
    b->head = (b->head + 1) % BATCH_CALLS_IN_FLIGHT_MAX;
    b->count--;
    b->reaped++;
    return failure_of(b, why);
}

enum status batch_reap_until(struct batch *b, uint64_t serial, struct problem *why)
{
    enum status st = failure_of(b, why);

    while (!st && b->reaped < serial)
        st = batch_reap(b, why);
    return st;
}

void batch_drain(struct batch *b)
{
    struct problem unused;

    while (b->count)
        batch_reap(b, &unused);
}

/* ---- submitting ---- */

static enum status submit_call(struct worker *w, const struct batch_order *o, struct call *c)
{
    if (o->message == MESSAGE_LAUNCH)
        return worker_submit_launch(w, &o->body.launch, c);
    if (o->message == MESSAGE_MEM_COPY)
        return worker_submit_mem_copy(w, &o->body.mem_copy, c);
    if (o->message == MESSAGE_MEM_FILL)
        return worker_submit_mem_fill(w, &o->body.mem_fill, c);
    if (o->message == MESSAGE_MEM_READ)
        return worker_submit_mem_read(w, &o->body.mem_read, c);
    return worker_submit_stream_sync(w, &o->body.stream_sync, c);
}

static enum status send(struct batch *b, const struct batch_order *o)
{
    struct flight_call *f = &b->flights[(b->head + b->count) % BATCH_CALLS_IN_FLIGHT_MAX];
    bool                launch = o->message == MESSAGE_LAUNCH;
    enum status         st;

    f->call = (struct call){.on_event = on_event, .deadline_ns = DEADLINE_NEVER};
    if (launch && b->deadline_ns < DEADLINE_NEVER - WORKER_GRACE_MS * NS_PER_MS)
        f->call.deadline_ns = b->deadline_ns + WORKER_GRACE_MS * NS_PER_MS;
    f->batch = b;
    f->op = o->op;
    f->landed = false;
    f->tag = launch ? o->body.launch.tag : 0;
    f->slice = o->slice;
    f->to = o->to;
    f->bytes = o->slice.data ? o->body.mem_read.to.bytes : 0;
    f->event = o->event;
    st = submit_call(b->context->worker, o, &f->call);
    if (st)
        return st;
    b->count++;
    b->submitted++;
    return STATUS_OK;
}

/* The addresses hold until the call is submitted: who frees a buffer takes the submit lock between hiding it and asking for its end. */
static enum status address_and_send(struct batch *b, struct batch_order *o, batch_address *address, struct problem *why)
{
    struct context *c = b->context;
    struct session *s = b->session;
    enum status     st;

    pthread_mutex_lock(&c->submit_lock);
    pthread_mutex_lock(&s->lock);
    st = context_still_usable(c, why);
    if (!st)
        st = address(b, o, why);
    s->epoch += o->message != MESSAGE_MEM_READ && o->message != MESSAGE_STREAM_SYNC;
    pthread_mutex_unlock(&s->lock);
    if (!st && !o->nothing && (st = send(b, o)) != STATUS_OK)
        problem_set(why, st, st == STATUS_OVERLOADED ? "too many calls are waiting for the device" : "the session's worker has ended");
    pthread_mutex_unlock(&c->submit_lock);
    return st;
}

enum status batch_submit(struct batch *b, struct batch_order *o, batch_address *address, struct problem *why)
{
    enum status st = failure_of(b, why);

    while (!st && b->count == BATCH_CALLS_IN_FLIGHT_MAX)
        st = batch_reap(b, why);
    while (!st && (st = address_and_send(b, o, address, why)) == STATUS_OVERLOADED && b->count)
        st = batch_reap(b, why);
    return st;
}

enum status batch_staging(struct batch *b, size_t bytes, struct slice *out, struct problem *why)
{
    enum status st = failure_of(b, why);

    while (!st && (st = staging_take(b->context->worker, bytes, out, NULL)) == STATUS_PENDING && b->count)
        st = batch_reap(b, why);
    if (st == STATUS_PENDING)
        return context_staging(b->context, bytes, out, why);
    return st && !b->failed ? problem_set(why, st, "no staging memory") : st;
}
