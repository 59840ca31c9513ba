/* A batch's calls on their way: submitted in order, looked at in order, as many at once as there are places. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/threads/spin.h"
#include "session/batch/batch_internal.h"
#include "session/bounds.h"

/* ---- landing; on whichever thread drains the ring ---- */

/* With its lock held. */
static uint64_t ran_ns(const struct batch_clock *k)
{
    return k->ran_ns + (k->running ? now_ns() - k->since_ns : 0);
}

uint64_t batch_ns_left(struct batch *b)
{
    struct batch_clock *k = &b->clock;
    uint64_t            ran;

    pthread_mutex_lock(&k->lock);
    ran = ran_ns(k);
    pthread_mutex_unlock(&k->lock);
    return ran < k->limit_ns ? k->limit_ns - ran : 0;
}

/* The worker ends it at its deadline, and is ended itself where it does not. */
static void note_start(struct flight_call *f)
{
    struct batch_clock *k = &f->batch->clock;

    pthread_mutex_lock(&k->lock);
    if (k->running++ == 0)
        k->since_ns = now_ns();
    f->runs = true;
    pthread_mutex_unlock(&k->lock);
    f->call.deadline_ns = deadline_after_ms(batch_ns_left(f->batch) / NS_PER_MS + 1 + LAUNCH_GRACE_MS);
}

static void note_end(struct flight_call *f)
{
    struct batch_clock *k = &f->batch->clock;

    pthread_mutex_lock(&k->lock);
    k->ran_ns = ran_ns(k);
    k->since_ns = now_ns();
    k->running -= f->runs;
    f->runs = false;
    pthread_mutex_unlock(&k->lock);
}

static void on_event(struct call *call, enum call_event event)
{
    struct flight_call *f = (struct flight_call *)call;
    struct batch       *b = f->batch;
    struct session     *s = b->session;

    if (event == CALL_STARTED) {
        note_start(f);
        return;
    }
    note_end(f);
    if (call->status) {
        pthread_mutex_lock(&s->lock);
        worker_session_check_call(b->worker_session, call);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_lock(&b->lock);
    f->landed = true;
    if (f == b->awaited)
        pthread_cond_signal(&b->landed);
    batch_tell_end(b);
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

/* False when that took longer. */
static bool await_for(struct batch *b, const struct flight_call *f, uint64_t ms)
{
    struct timespec until = timespec_of_ns(deadline_after_ms(ms));
    bool            landed;

    pthread_mutex_lock(&b->lock);
    b->awaited = f;
    while (!f->landed && pthread_cond_clockwait(&b->landed, &b->lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
        continue;
    b->awaited = NULL;
    landed = f->landed;
    pthread_mutex_unlock(&b->lock);
    return landed;
}

static void await(struct batch *b, struct flight_call *f)
{
    if (has_landed(b, f))
        return;
    call_spin(b->worker_session->worker, &f->call, spin_budgets()->call_ns);
    while (!await_for(b, f, BATCH_WATCH_MS))
        batch_still_wanted(b, NULL);
}

/* ---- looking at what landed ---- */

/* What the staging memory of a call that has landed holds is taken, and the memory given back. */
static void unload(struct batch *b, struct flight_call *f)
{
    if (!f->slice.data)
        return;
    if (f->count)
        command_batch_landed(b, f);
    else if (!f->call.status)
        memcpy(f->to, f->slice.data, f->bytes);
    staging_give(b->worker_session->worker, &f->slice);
}

/* Gives back the staging memory of all calls that are still in the ring. */
static void unload_all(struct batch *b)
{
    for (unsigned i = 0; i < b->count; i++) {
        struct flight_call *f = &b->flights[(b->head + i) % BATCH_CALLS_IN_FLIGHT_MAX];
        if (!f->slice.data)
            continue;
        await(b, f);
        unload(b, f);
    }
}

/* Waits for staging memory, of which this batch itself must hold nothing then. */
static enum status output_slice(struct batch *b, uint64_t bytes, struct slice *out)
{
    enum status st = staging_take(b->worker_session->worker, bytes, out, NULL);

    if (st != STATUS_PENDING)
        return st;
    unload_all(b);
    return worker_session_staging(b->worker_session, bytes, out, NULL);
}

/* What a kernel printed; what cannot be had is missing, and said to be. */
static void fetch_output(struct batch *b, const struct flight_call *f, uint64_t bytes)
{
    struct worker_session       *c = b->worker_session;
    struct batch_result         *r = &b->results[f->op];
    struct msg_take_output       m = {.tag = f->tag};
    struct msg_take_output_reply got;
    struct slice                 slice;

    r->output_truncated = true;
    b->holds_text = true;
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
    double                         us;

    gpu_us_check(r->gpu_us, &us);
    b->results[f->op].gpu_us = us;
    b->results[f->op].timed = !b->spec->ops[f->op].launch->untimed;
    b->timed_count += b->results[f->op].timed;
    b->kernel_us += us;
    pthread_mutex_lock(&b->session->lock);
    use_add_time(b->session, us);
    pthread_mutex_unlock(&b->session->lock);
    if (r->output_bytes)
        fetch_output(b, f, r->output_bytes);
}

static bool runs_kernels(const struct flight_call *f)
{
    return f->message == MESSAGE_LAUNCH || f->message == MESSAGE_COMMAND_LIST || f->message == MESSAGE_GRAPH_RUN;
}

/* Which operations of a failed call may be the one. With a living worker session the device refused the first that was not done. */
static void suspects(const struct batch *b, const struct flight_call *f, unsigned *first, unsigned *last)
{
    unsigned at = f->completed < f->count ? f->completed : f->count - 1;
    unsigned end = f->count - at < f->group ? f->count : at + f->group;

    *first = f->count ? b->listed[f->first + at] : f->op;
    *last = f->count && f->call.worker_session_lost ? b->listed[f->first + end - 1] : *first;
}

static void fail_first(struct batch *b, const struct flight_call *f, unsigned first, unsigned last)
{
    struct session *s = b->session;

    if (!b->failed)
        b->completed = first;
    b->failed = f->call.status;
    b->failed_op = first;
    b->failed_last = last;
    b->failed_kernels = runs_kernels(f);
    b->failed_lost = f->call.worker_session_lost;
    b->failure = f->call.problem;
    b->failure.status = b->failed;
    pthread_mutex_lock(&s->lock);
    /* Lost before it was closed: what failed had nothing to do with the reset, which came before we looked. */
    if (b->worker_session->closed && !b->worker_session->lost)
        b->failed = worker_session_still_usable(b->worker_session, &b->failure);
    pthread_mutex_unlock(&s->lock);
}

/* Kernels end worker sessions, not the copies that end with them; and of kernels not those that the worker says ended for others. */
static bool tells_more(const struct batch *b, const struct flight_call *f)
{
    return b->failed_lost && f->call.worker_session_lost && runs_kernels(f) &&
           (!b->failed_kernels || (b->failed == STATUS_WORKER_LOST && f->call.status != STATUS_WORKER_LOST));
}

/* Everything that was under way fails with the worker session. A kernel's fault can only be, on every stream, in the first call that did not end. */
static void fail(struct batch *b, const struct flight_call *f)
{
    bool    *suspected = &b->suspected[(f->stream & 0xffff) % COUNT(b->suspected)];
    bool     counts = b->failed_lost && f->call.status == b->failed && runs_kernels(f) && !*suspected;
    unsigned first, last;

    suspects(b, f, &first, &last);
    *suspected = *suspected || runs_kernels(f);
    if (!b->failed || tells_more(b, f))
        fail_first(b, f, first, last);
    else if (counts && last > b->failed_last)
        b->failed_last = last;
}

enum status batch_failure(struct batch *b, struct problem *why)
{
    *why = b->failure;
    batch_set_failed_op(why, b->failed, b->failed_op, b->completed);
    if (!b->failure.of_other_work)
        batch_set_failed_op_up_to(why, b->failed_last);
    return b->failed;
}

static enum status failure_of(struct batch *b, struct problem *why)
{
    return b->failed ? batch_failure(b, why) : STATUS_OK;
}

static void look_at(struct batch *b, struct flight_call *f)
{
    unload(b, f);
    if (f->call.status)
        fail(b, f);
    else if (f->tag)
        launched(b, f);
    else if (f->message == MESSAGE_EVENT_ELAPSED)
        b->results[f->op].elapsed_us = isfinite(f->call.reply.event_elapsed.us) ? (double)f->call.reply.event_elapsed.us : 0;
}

/* Waits for the oldest. Fails when it, or one before it, has failed. count > 0. */
static enum status batch_reap(struct batch *b, struct problem *why)
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

/* Nothing is left to do but to wait: one wait, for the last call, which mostly ends after all others. A sum of a sum of arrays took 172 us
 * instead of 217 so (cpu device, two processors, medians of four runs in turns, 2026-11-25). */
void batch_drain(struct batch *b)
{
    struct problem unused;

    if (b->count)
        await(b, &b->flights[(b->head + b->count - 1) % BATCH_CALLS_IN_FLIGHT_MAX]);
    while (b->count)
        batch_reap(b, &unused);
}

/* ---- submitting ---- */

void batch_order_init(struct batch_order *o, unsigned op, enum message m)
{
    memset(o, 0, offsetof(struct batch_order, body) + offsetof(struct msg_launch, params));
    o->op = op;
    o->message = m;
}

static_assert(sizeof(struct msg_command_list) <= offsetof(struct msg_launch, params) &&
                  sizeof(struct msg_graph_run) <= offsetof(struct msg_launch, params) &&
                  sizeof(struct msg_mem_read) <= offsetof(struct msg_launch, params) &&
                  sizeof(struct msg_mem_fill) <= offsetof(struct msg_launch, params),
              "what is submitted here is zeroed whole, but for parameters");

static enum status send(struct batch *b, const struct batch_order *o)
{
    struct flight_call *f = &b->flights[(b->head + b->count) % BATCH_CALLS_IN_FLIGHT_MAX];
    enum status         st;

    if (o->count)
        command_batch_unstarted(&o->slice);
    *f = (struct flight_call){.call = {.on_event = on_event, .deadline_ns = DEADLINE_NEVER},
                              .batch = b,
                              .op = o->count ? b->listed[o->first] : o->op,
                              .message = o->message,
                              .stream = o->stream,
                              .tag = o->message == MESSAGE_LAUNCH ? o->body.launch.tag : 0,
                              .slice = o->slice,
                              .to = o->to,
                              .bytes = o->message == MESSAGE_MEM_READ ? o->body.mem_read.to.bytes : 0,
                              .first = o->first,
                              .count = o->count};
    st = call_submit(b->worker_session->worker, o->message, &o->body, &f->call);
    if (st)
        return st;
    b->listed_count += o->count;
    b->count++;
    b->submitted++;
    return STATUS_OK;
}

static bool changes_memory(enum message m)
{
    return m == MESSAGE_LAUNCH || m == MESSAGE_COMMAND_LIST || m == MESSAGE_GRAPH_RUN || m == MESSAGE_MEM_COPY || m == MESSAGE_MEM_FILL;
}

/* The addresses hold until the call is submitted: who frees a buffer takes the submit lock between hiding it and asking for its end. */
static enum status address_and_send(struct batch *b, struct batch_order *o, batch_address *address, struct problem *why)
{
    struct worker_session *c = b->worker_session;
    struct session        *s = b->session;
    enum status            st;

    pthread_mutex_lock(&c->submit_lock);
    pthread_mutex_lock(&s->lock);
    st = worker_session_still_usable(c, why);
    if (!st && address)
        st = address(b, o, why);
    s->epoch += changes_memory(o->message);
    pthread_mutex_unlock(&s->lock);
    if (!st && !o->nothing && !b->preparing && (st = send(b, o)) != STATUS_OK) {
        pthread_mutex_lock(&s->lock);
        worker_session_not_submitted(c, st, why);
        pthread_mutex_unlock(&s->lock);
    }
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

    while (!st && (st = staging_take(b->worker_session->worker, bytes, out, NULL)) == STATUS_PENDING && b->count)
        st = batch_reap(b, why);
    if (st == STATUS_PENDING)
        return worker_session_staging(b->worker_session, bytes, out, why);
    return st && !b->failed ? worker_session_no_staging(st, why) : st;
}
