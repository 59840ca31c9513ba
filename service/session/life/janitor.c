/* The janitor thread: idle time, lifetime, and launches whose worker does not enforce their deadline. */
#include "session/bounds.h"
#include "session/life/parts.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "base/log/log.h"
#include "base/threads/held.h"

static bool is_past(uint64_t now, uint64_t since, uint64_t ns)
{
    return now > since && now - since > ns;
}

/* What to kill the worker for; OK when there is nothing. */
static enum status deadline_overrun(const struct worker_session *c, uint64_t now, struct problem *why)
{
    uint64_t timeout_ms = c->lost ? 0 : launch_overdue(c, now);

    if (c->lost)
        return c->uses && is_past(now, c->lost_ns, WORKER_GRACE_MS * NS_PER_MS)
                   ? problem_set(why, STATUS_WORKER_LOST, "the session faulted before this operation finished")
                   : STATUS_OK;
    return timeout_ms
               ? problem_set(why, STATUS_EXECUTION_TIMEOUT,
                             "a kernel of the session exceeded its timeout_ms of %" PRIu64 " ms, or faulted: the worker does not tell",
                             timeout_ms)
               : STATUS_OK;
}

/* The worker has had work for some time but reports no running launch. Its work may wait for a batch or be copies, whose duration is
 * unknown, or it may hang. The worker's loop never blocks on the device, so a worker that does not answer hangs; the ping's own deadline
 * then ends it. */
static bool wants_ping(const struct worker_session *c, uint64_t now)
{
    return c->uses && !launch_is_running(c) && !c->lost && !c->closed && !c->ping_open &&
           is_past(now, c->busy_since_ns, PING_AFTER_MS * NS_PER_MS) && is_past(now, c->last_event_ns, PING_AFTER_MS * NS_PER_MS) &&
           is_past(now, c->pinged_ns, PING_AFTER_MS * NS_PER_MS);
}

static void ping_came(struct call *call, enum call_event event)
{
    struct worker_session *c = call->context;
    struct session        *s = c->session;

    if (event != CALL_DONE)
        return;
    pthread_mutex_lock(&s->lock);
    worker_session_check_call(c, call);
    c->ping_open = false;
    worker_session_unuse(c);
    pthread_mutex_unlock(&s->lock);
}

/* The cheapest call: it cancels a launch that does not exist. */
void janitor_ping(struct worker_session *c)
{
    struct session                *s = c->session;
    const struct msg_launch_cancel nobody = {UINT64_MAX};
    bool                           due;

    pthread_mutex_lock(&s->lock);
    due = c->ping_due && !c->ping_open;
    c->ping_due = false;
    if (due) {
        c->ping_open = true;
        c->pinged_ns = now_ns();
        c->uses++;
        c->ping = (struct call){.on_event = ping_came, .context = c, .deadline_ns = deadline_after_ms(WORKER_CALL_DEADLINE_MS)};
    }
    pthread_mutex_unlock(&s->lock);
    if (!due || worker_submit_launch_cancel(c->worker, &nobody, &c->ping) == STATUS_OK)
        return;
    pthread_mutex_lock(&s->lock);
    c->ping_open = false;
    worker_session_unuse(c);
    pthread_mutex_unlock(&s->lock);
}

/* False when there is no worker, or, if only work is to end, when it runs no kernels. */
static bool kill_worker(struct session *s, bool only_computing, const struct problem *why)
{
    struct worker_session *c = NULL;

    pthread_mutex_lock(&s->lock);
    if (s->worker_session && !s->worker_session->lost && !s->worker_session->closed) {
        c = s->worker_session;
        c->uses++;
    }
    pthread_mutex_unlock(&s->lock);
    if (!c)
        return false;
    if (only_computing && !worker_computes(c->worker)) {
        worker_session_leave(c);
        return false;
    }
    worker_kill(c->worker, why->status, why);
    worker_session_leave_with(c, why->status, why);
    return true;
}

/* Ends the session's work on a device that failed. One that overheats only must not compute: data stays. */
static void end_with_device(struct session *s)
{
    struct problem why = {0};
    enum status    st = pool_device_verdict(s->registry->config.pool, s->device, &why);

    if (st && kill_worker(s, st == STATUS_DEVICE_OVERHEATED, &why))
        log_warn("session", "killed a worker: %s", why.detail);
}

static void kill_one(struct session *s, void *why)
{
    kill_worker(s, false, why);
}

void registry_kill_workers(struct registry *r)
{
    struct problem why;

    problem_set(&why, STATUS_WORKER_LOST, "the service is shutting down");
    registry_each(r, kill_one, &why);
}

/* False when the session is busy, and so not idle. */
static bool look_after(struct session *s, uint64_t now)
{
    struct worker_session *c;
    struct problem         why;
    enum status            st = STATUS_OK;
    bool                   idle = true;

    pthread_mutex_lock(&s->lock);
    c = s->worker_session;
    if (c) {
        idle = c->uses == 0;
        if (idle || !c->busy_since_ns)
            c->busy_since_ns = now;
        st = deadline_overrun(c, now, &why);
        c->ping_due = c->ping_due || wants_ping(c, now);
        if (c->ping_due || !TAILQ_EMPTY(&c->backlog) || c->unloads || c->outputs || c->abandoned)
            submit_later(c);
        if (st)
            c->uses++;
    }
    pthread_mutex_unlock(&s->lock);
    if (st) {
        log_warn("session", "killing a worker: %s", status_code(st));
        worker_kill(c->worker, st, &why);
        worker_session_leave(c);
    }
    return idle;
}

/* Polled, because the pool does not announce changes of a device's state. */
static void look_at_device(struct session *s)
{
    enum device_state  state = pool_device_state(s->registry->config.pool, s->device);
    enum recovery_step step;
    uint64_t           steps = pool_device_recovery(s->registry->config.pool, s->device, &step);

    pthread_mutex_lock(&s->lock);
    if (state != s->device_state || steps != s->device_steps)
        events_publish_device(s, state, steps != s->device_steps ? step : RECOVERY_NONE);
    s->device_state = state;
    s->device_steps = steps;
    pthread_mutex_unlock(&s->lock);
}

/* Polled, because only time restores a budget. */
static void look_at_budget(struct session *s)
{
    bool spent = budget_is_spent(s);

    pthread_mutex_lock(&s->lock);
    if (spent != s->budget_spent)
        events_publish_budget(s, spent);
    s->budget_spent = spent;
    pthread_mutex_unlock(&s->lock);
}

/* Must not wait for a worker: it would delay the deadlines of all other sessions. */
static void sweep_one(struct session *s, void *time)
{
    const uint64_t now = *(const uint64_t *)time;

    if (!look_after(s, now))
        s->used_ns = now;
    result_store_expire(s, now);
    look_at_device(s);
    look_at_budget(s);
    end_with_device(s);
    domain_look(s);
    session_close_later(s, SESSION_GOES_ON, now);
}

void janitor_sweep(struct registry *r, uint64_t now)
{
    registry_each(r, sweep_one, &now);
    budgets_look(r);
    moved_look(r, now);
}

static void wait_for_tick(struct registry *r)
{
    struct timespec until = timespec_of_ns(deadline_after_ms(JANITOR_TICK_MS));

    assert(held(&r->lock));
    if (r->count == 0 && LIST_EMPTY(&r->moved) && !atomic_load(&r->any_budget))
        pthread_cond_wait(&r->janitor_kick, &r->lock);
    else
        pthread_cond_clockwait(&r->janitor_kick, &r->lock, CLOCK_MONOTONIC, &until);
}

static void *janitor_main(void *argument)
{
    struct registry *r = argument;

    pthread_mutex_lock(&r->lock);
    while (!r->janitor_stop) {
        wait_for_tick(r);
        pthread_mutex_unlock(&r->lock);
        janitor_sweep(r, now_ns());
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

bool janitor_start(struct registry *r)
{
    return pthread_create(&r->janitor, NULL, janitor_main, r) == 0;
}

void janitor_stop(struct registry *r)
{
    pthread_mutex_lock(&r->lock);
    r->janitor_stop = true;
    pthread_cond_signal(&r->janitor_kick);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->janitor, NULL);
}
