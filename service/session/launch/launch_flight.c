/* Launches on their way: through the backlog and the worker's ring, their output back, and their end. */
#include "base/metrics.h"
#include "base/threads/held.h"
#include "session/bounds.h"
#include "session/launch/internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* A list of launches takes no longer than all their deadlines together. */
static const double GPU_US_MAX = 1e3 * EXECUTION_TIMEOUT_MS_MAX * RUN_ITEMS_MAX;

bool gpu_us_check(float reported, double *us)
{
    bool possible = reported >= 0 && (double)reported <= GPU_US_MAX; /* neither holds for NaN */

    *us = possible ? round((double)reported * 1e3) / 1e3 : 0; /* whole nanoseconds: no digits that mean nothing */
    return possible;
}

void launch_measure(double gpu_us, bool untimed)
{
    counter_add(COUNTER_LAUNCHES_SUCCEEDED, 1);
    if (!untimed)
        times_add(TIMES_LAUNCH_EXEC_TIME, (uint64_t)(gpu_us * 1e3));
}

/* ---- ending; all with session.lock held ---- */

/* Forgets the oldest finished ones beyond what is kept. */
static void trim(struct worker_session *c)
{
    assert(held(&c->session->lock));
    while (c->finished_count > LAUNCHES_KEPT_MAX || (c->output_bytes > LAUNCH_OUTPUTS_KEPT_BYTES_MAX && c->finished_count > 1)) {
        struct launch *l = TAILQ_FIRST(&c->finished);
        TAILQ_REMOVE(&c->finished, l, kept);
        assert(waitlist_over(&l->end) && c->output_bytes >= l->output_bytes);
        c->finished_count--;
        c->output_bytes -= l->output_bytes;
        table_remove(&c->launches, &l->entry);
        launch_unref(l);
    }
}

void launch_keep(struct worker_session *c, struct launch *l)
{
    assert(held(&c->session->lock));
    TAILQ_INSERT_TAIL(&c->finished, l, kept);
    c->finished_count++;
    c->output_bytes += l->output_bytes;
    trim(c);
}

/* As far as it got. */
static void measure(const struct launch *l)
{
    if (l->state == WORK_SUCCEEDED)
        launch_measure(l->gpu_us, l->untimed);
    else
        counter_add(l->state == WORK_FAILED ? COUNTER_LAUNCHES_FAILED : COUNTER_LAUNCHES_CANCELLED, 1);
    if (l->started_wall_ns)
        times_add(TIMES_LAUNCH_QUEUE_TIME, l->started_wall_ns > l->created_wall_ns ? l->started_wall_ns - l->created_wall_ns : 0);
}

void launch_drop_scratch(struct launch *l)
{
    if (!l->scratch)
        return;
    assert(held(&l->worker_session->session->lock));
    temp_buffer_abandon(l->worker_session, l->scratch);
    buffer_unref(&l->scratch->buffer);
    l->scratch = NULL;
}

/* RUNNING again: it has ended, and its output is fetched. A short one may end before its start was told. */
static void launch_set_state(struct launch *l, enum work_state next)
{
    static const bool may[WORK_CANCELLED + 1][WORK_CANCELLED + 1] = {
        [WORK_QUEUED] = {[WORK_RUNNING] = 1, [WORK_SUCCEEDED] = 1, [WORK_FAILED] = 1, [WORK_CANCELLED] = 1},
        [WORK_RUNNING] = {[WORK_RUNNING] = 1, [WORK_SUCCEEDED] = 1, [WORK_FAILED] = 1, [WORK_CANCELLED] = 1},
    };

    assert(held(&l->worker_session->session->lock));
    assert(may[l->state][next]);
    l->state = next;
}

static void finish(struct launch *l, enum work_state state, const struct problem *why)
{
    struct worker_session *c = l->worker_session;

    assert(!waitlist_over(&l->end));
    launch_set_state(l, state);
    l->ended = true;
    l->finished_wall_ns = wall_ns();
    if (why && (l->problem = malloc(sizeof *why)) != NULL)
        *l->problem = *why;
    if (state == WORK_SUCCEEDED)
        use_add_time(c->session, l->gpu_us);
    use_add_launches(c->session, 1);
    measure(l);
    waitlist_end(&l->end); /* the metrics, which have no lock, count it already */
    if (l->output_bytes || l->output_truncated)
        launch_publish(l, EVENT_KERNEL_PRINTF);
    launch_publish(l, EVENT_LAUNCH_FINISHED);
    LIST_REMOVE(l, unfinished);
    assert(c->unfinished_count > 0);
    c->unfinished_count--;
    module_unref(l->module);
    l->module = NULL;
    launch_drop_scratch(l);
    pthread_cond_broadcast(&c->session->changed);
    launch_keep(c, l);
    launch_unref(l);
}

/* It never got to the device, or the device's answer got lost. */
static void finish_lost(struct launch *l)
{
    struct worker_session *c = l->worker_session;
    struct problem         why;

    assert(held(&c->session->lock));
    if (c->closed) {
        finish(l, WORK_CANCELLED, NULL);
        return;
    }
    problem_set(&why, STATUS_WORKER_LOST, "the session faulted before this launch finished (%s: %.300s)",
                status_code(c->session->fault.status), c->session->fault.detail);
    why.of_other_work = !status_blames_service(c->session->fault.status);
    finish(l, WORK_FAILED, &why);
}

void flight_release(struct flight *f)
{
    assert(f->holders > 0);
    if (--f->holders == 0)
        free(f);
}

static void leave_flight(struct flight *f)
{
    f->launch->flight = NULL;
    flight_release(f);
}

/* ---- the backlog; with session.lock held ---- */

static void push_backlog(struct worker_session *c, struct launch *l)
{
    assert(held(&c->session->lock) && !l->in_backlog);
    TAILQ_INSERT_TAIL(&c->backlog, l, queued);
    l->in_backlog = true;
}

static void drop_from_backlog(struct worker_session *c, struct launch *l)
{
    assert(held(&c->session->lock) && l->in_backlog);
    TAILQ_REMOVE(&c->backlog, l, queued);
    l->in_backlog = false;
    pthread_cond_broadcast(&c->session->changed);
    transfer_wake_all(c);
}

bool launch_withdraw(struct worker_session *c, struct launch *l)
{
    assert(held(&c->session->lock));
    if (!l->in_backlog)
        return false;
    drop_from_backlog(c, l);
    leave_flight(l->flight);
    finish(l, WORK_CANCELLED, NULL);
    return true;
}

void launch_flush(struct worker_session *c)
{
    struct launch *l = TAILQ_FIRST(&c->backlog);

    assert(held(&c->session->lock));
    if (l && l->sending)
        l = TAILQ_NEXT(l, queued);
    while (l) {
        struct launch *next = TAILQ_NEXT(l, queued);
        drop_from_backlog(c, l);
        leave_flight(l->flight);
        finish_lost(l);
        l = next;
    }
    while (c->outputs) {
        l = c->outputs;
        c->outputs = l->next;
        l->output_bytes = 0; /* it was only announced */
        l->output_truncated = true;
        finish(l, WORK_SUCCEEDED, NULL);
        worker_session_unuse(c);
    }
}

void launch_drop_all(struct worker_session *c)
{
    struct entry *e;

    assert(held(&c->session->lock));
    while ((e = table_pop(&c->launches)) != NULL)
        launch_unref((struct launch *)e);
    TAILQ_INIT(&c->finished);
    c->finished_count = 0;
    c->output_bytes = 0;
}

/* ---- through the ring ---- */

/* So long ago. */
static void started(struct flight *f, uint64_t ago_ns)
{
    struct launch *l = f->launch;
    uint64_t       wall = f->call.started_wall_ns ? f->call.started_wall_ns : wall_ns();

    assert(held(&l->worker_session->session->lock));
    launch_set_state(l, WORK_RUNNING);
    l->started_ns = now_ns();
    l->started_wall_ns = wall > l->created_wall_ns && ago_ns > wall - l->created_wall_ns ? l->created_wall_ns : wall - ago_ns;
    l->worker_session->last_event_ns = l->started_ns;
    launch_publish(l, EVENT_LAUNCH_STARTED);
}

static void succeeded(struct flight *f)
{
    struct launch         *l = f->launch;
    struct worker_session *c = l->worker_session;
    uint32_t               output = f->call.reply.launch.output_bytes;

    gpu_us_check(f->call.reply.launch.gpu_us, &l->gpu_us);
    if (!l->started_ns) /* short ones tell only their end */
        started(f, (uint64_t)(l->gpu_us * NS_PER_US));
    l->ended = true;
    if (!output || c->closed || c->lost) {
        l->output_truncated = output != 0;
        finish(l, WORK_SUCCEEDED, NULL);
        worker_session_unuse(c);
        return;
    }
    /* The use goes on until the text is here. */
    launch_set_state(l, WORK_RUNNING);
    l->output_truncated = output >= KERNEL_OUTPUT_BYTES_MAX;
    l->output_bytes = output < KERNEL_OUTPUT_BYTES_MAX ? output : KERNEL_OUTPUT_BYTES_MAX;
    l->next = c->outputs;
    c->outputs = l;
    submit_later(c);
}

/* The session's end, not the launch's own: its worker tells of each launch that has started, before it tells how it failed. */
static bool is_of_session(const struct flight *f, bool session_was_lost)
{
    if (f->call.status == STATUS_WORKER_LOST)
        return f->worker_session->closed || session_was_lost;
    return f->call.worker_session_lost && !f->launch->started_ns;
}

static void failed(struct flight *f, bool session_was_lost)
{
    struct launch *l = f->launch;
    struct problem why;
    enum status    st = f->call.status;

    if (st == STATUS_CANCELLED) {
        finish(l, WORK_CANCELLED, NULL);
    } else if (is_of_session(f, session_was_lost)) {
        finish_lost(l);
    } else {
        why = f->call.problem;
        why.status = st;
        finish(l, WORK_FAILED, &why);
    }
}

static void ended(struct flight *f)
{
    struct worker_session *c = f->worker_session;
    bool                   was_lost = c->lost;

    assert(held(&c->session->lock));
    worker_session_check_call(c, &f->call);
    if (f->call.status == STATUS_OK) {
        succeeded(f);
    } else {
        failed(f, was_lost);
        worker_session_unuse(c);
    }
}

static void on_event(struct call *call, enum call_event event)
{
    struct flight         *f = (struct flight *)call;
    struct worker_session *c = f->worker_session;
    struct session        *s = c->session;

    pthread_mutex_lock(&s->lock);
    if (event == CALL_STARTED) {
        started(f, 0);
    } else {
        c->last_event_ns = now_ns();
        assert(c->in_ring > 0);
        c->in_ring--;
        if (!TAILQ_EMPTY(&c->backlog))
            submit_later(c);
        ended(f);
        leave_flight(f);
    }
    pthread_mutex_unlock(&s->lock);
}

static bool ring_has_room(const struct worker_session *c)
{
    assert(held(&c->session->lock));
    return c->in_ring < LAUNCHES_IN_RING_MAX;
}

static void enter_ring(struct worker_session *c, struct launch *l)
{
    assert(held(&c->session->lock));
    assert(c->in_ring < LAUNCHES_IN_RING_MAX);
    if (c->in_ring++ == 0)
        c->last_event_ns = now_ns();
    c->uses++;
    l->refs++;
}

/* No lock held. Its end may be reported before this returns. */
static enum status put_into_ring(struct worker_session *c, struct flight *f)
{
    f->call.on_event = on_event;
    f->call.deadline_ns = DEADLINE_NEVER;
    return worker_submit_launch(c->worker, &f->msg, &f->call);
}

/* With session.lock held: the worker did not take it. */
static void leave_ring(struct worker_session *c, struct launch *l)
{
    assert(held(&c->session->lock));
    assert(c->in_ring > 0);
    c->in_ring--;
    worker_session_unuse(c);
    launch_unref(l);
}

enum status launch_send(struct worker_session *c, struct launch *l, struct flight **spun_on, struct problem *why)
{
    struct session *s = c->session;
    struct flight  *f = l->flight;
    enum status     st = STATUS_OVERLOADED;

    assert(held(&s->lock));
    assert(held(&c->submit_lock));
    if (TAILQ_EMPTY(&c->backlog) && ring_has_room(c)) {
        f->holders += spun_on != NULL;
        enter_ring(c, l);
        pthread_mutex_unlock(&s->lock);
        st = put_into_ring(c, f);
        if (!st) {
            if (spun_on)
                *spun_on = f;
            l->refs--; /* not the last one: the maker has another */
            return STATUS_OK;
        }
        pthread_mutex_lock(&s->lock);
        f->holders = 1;
        leave_ring(c, l);
    }
    if (st == STATUS_OVERLOADED && !c->lost && !c->closed) {
        push_backlog(c, l);
        st = STATUS_OK;
    } else {
        st = st == STATUS_OVERLOADED ? STATUS_WORKER_LOST : st;
        problem_set(why, st, "the session's worker has exited");
        finish(l, WORK_FAILED, why);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

void launch_pump(struct worker_session *c)
{
    struct session *s = c->session;
    enum status     st = STATUS_OK;

    assert(held(&c->submit_lock));
    pthread_mutex_lock(&s->lock);
    while (!TAILQ_EMPTY(&c->backlog) && ring_has_room(c) && st != STATUS_OVERLOADED) {
        struct launch *l = TAILQ_FIRST(&c->backlog);
        l->refs++;
        l->sending = true; /* keeps its place: what must come after it waits on */
        enter_ring(c, l);
        pthread_mutex_unlock(&s->lock);
        st = put_into_ring(c, l->flight);
        pthread_mutex_lock(&s->lock);
        if (st)
            leave_ring(c, l);
        else
            launch_unref(l);
        l->sending = false;
        if (st != STATUS_OVERLOADED || c->lost || c->closed)
            drop_from_backlog(c, l);
        if (st && (st != STATUS_OVERLOADED || c->lost || c->closed)) {
            leave_flight(l->flight);
            finish_lost(l);
        }
        launch_unref(l);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- output ---- */

/* Fetches a launch's printf text; owned by its event. */
struct text_flight {
    struct call            call; /* first: the event finds the rest by it */
    struct launch         *launch;
    struct worker_session *worker_session;
    struct slice           text; /* where the worker puts it */
};

static void text_came(struct call *call, enum call_event event)
{
    struct text_flight    *f = (struct text_flight *)call;
    struct launch         *l = f->launch;
    struct worker_session *c = f->worker_session;
    struct session        *s = c->session;
    uint64_t               bytes = call->status ? 0 : call->reply.take_output.bytes;

    if (event != CALL_DONE)
        return;
    if (bytes > l->output_bytes)
        bytes = l->output_bytes;
    l->output = bytes ? malloc(bytes) : NULL;
    if (l->output)
        memcpy(l->output, f->text.data, bytes);
    staging_give(c->worker, &f->text);
    pthread_mutex_lock(&s->lock);
    worker_session_check_call(c, call);
    l->output_truncated = l->output_truncated || call->status || (bytes && !l->output);
    l->output_bytes = l->output ? bytes : 0;
    finish(l, WORK_SUCCEEDED, NULL);
    worker_session_unuse(c);
    pthread_mutex_unlock(&s->lock);
    free(f);
}

/* PENDING: no staging memory now. */
static enum status fetch(struct worker_session *c, struct launch *l)
{
    struct text_flight    *f = calloc(1, sizeof *f);
    struct msg_take_output m = {.tag = l->number};
    enum status            st;

    if (!f)
        return STATUS_OUT_OF_MEMORY;
    f->launch = l;
    f->worker_session = c;
    st = staging_take(c->worker, l->output_bytes, &f->text, NULL);
    if (!st) {
        m.to = (struct shm_ref){f->text.ref.offset, l->output_bytes};
        f->call = (struct call){.on_event = text_came, .deadline_ns = deadline_after_ms(WORKER_CALL_DEADLINE_MS)};
        st = worker_submit_take_output(c->worker, &m, &f->call);
        if (st)
            staging_give(c->worker, &f->text);
    }
    if (st)
        free(f);
    return st;
}

void launch_fetch_outputs(struct worker_session *c)
{
    struct session *s = c->session;
    enum status     st = STATUS_OK;

    pthread_mutex_lock(&s->lock);
    while (c->outputs && st != STATUS_PENDING && st != STATUS_OVERLOADED) {
        struct launch *l = c->outputs;
        c->outputs = l->next;
        pthread_mutex_unlock(&s->lock);
        st = fetch(c, l);
        pthread_mutex_lock(&s->lock);
        if ((st == STATUS_PENDING || st == STATUS_OVERLOADED) && !c->closed && !c->lost) {
            l->next = c->outputs; /* the janitor has it tried again */
            c->outputs = l;
        } else if (st) {
            l->output_bytes = 0;
            l->output_truncated = true;
            finish(l, WORK_SUCCEEDED, NULL);
            worker_session_unuse(c);
        }
    }
    pthread_mutex_unlock(&s->lock);
}
