/* Asynchronous batches: queued, run on one thread per session, followed, cancelled. */
#include "session/batch/async.h"

#include <stdlib.h>

#include "base/held.h"
#include "base/log.h"
#include "session/batch/result_store.h"

const char *batch_job_state_name(enum batch_job_state s)
{
    switch (s) {
    case BATCH_JOB_QUEUED:
        return "queued";
    case BATCH_JOB_RUNNING:
        return "running";
    case BATCH_JOB_SUCCEEDED:
        return "succeeded";
    case BATCH_JOB_FAILED:
        return "failed";
    case BATCH_JOB_CANCELLED:
        break;
    }
    return "cancelled";
}

static bool is_final(enum batch_job_state s)
{
    return s != BATCH_JOB_QUEUED && s != BATCH_JOB_RUNNING;
}

/* With session.lock held. A state is entered once, a final one by result_store_settle(). */
static void tell_watchers(struct batch_job *j)
{
    struct waker *w = j->watchers;

    assert(held(&j->session->lock));
    j->watchers = NULL;
    while (w) {
        struct waker *next = w->next;
        w->next = NULL;
        w->wake(w);
        w = next;
    }
}

/* ---- the runner ---- */

/* With session.lock held. */
static struct batch_job *unqueue(struct result_store *b, struct batch_job *j)
{
    struct batch_job *before = NULL, *at = b->queued;

    while (at && at != j) {
        before = at;
        at = at->next;
    }
    if (!at)
        return NULL;
    if (before)
        before->next = j->next;
    else
        b->queued = j->next;
    if (b->queued_last == j)
        b->queued_last = before;
    b->queued_count--;
    j->next = NULL;
    return j;
}

/* NULL: there is none, and this runner is none any more. */
static struct batch_job *next_job(struct session *s)
{
    struct batch_job *j;

    pthread_mutex_lock(&s->lock);
    j = s->batches.queued;
    if (j) {
        unqueue(&s->batches, j);
        batch_job_set_state(j, BATCH_JOB_RUNNING);
        j->started_wall_ns = wall_ns();
        j->refs++;
    } else {
        s->batches.running = false;
    }
    pthread_mutex_unlock(&s->lock);
    return j;
}

static void do_job(struct session *s, struct batch_job *j)
{
    struct batch_garbage garbage = {0};
    struct problem       why = {0};
    enum status          st = j->task->run(j->task, &why);

    pthread_mutex_lock(&s->lock);
    if (st) {
        j->problem = why;
        j->problem.status = st;
    }
    result_store_settle(s, j, !st ? BATCH_JOB_SUCCEEDED : atomic_load(&j->task->ended) ? BATCH_JOB_CANCELLED : BATCH_JOB_FAILED, &garbage);
    tell_watchers(j);
    batch_job_unref(j, &garbage);
    pthread_mutex_unlock(&s->lock);
    batch_garbage_destroy(&garbage);
}

static void *run_jobs(void *argument)
{
    struct session   *s = argument;
    struct registry  *r = s->registry;
    struct batch_job *j;

    while ((j = next_job(s)) != NULL)
        do_job(s, j);
    session_unpin(s, true);
    pthread_mutex_lock(&r->lock);
    r->runners--;
    pthread_cond_signal(&r->runner_left);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

void batch_runners_await(struct registry *r)
{
    pthread_mutex_lock(&r->lock);
    while (r->runners)
        pthread_cond_wait(&r->runner_left, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

static bool start_detached(struct session *s)
{
    pthread_attr_t detached;
    pthread_t      thread;
    int            failed = pthread_attr_init(&detached);

    if (failed)
        return false;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    failed = pthread_create(&thread, &detached, run_jobs, s);
    pthread_attr_destroy(&detached);
    return !failed;
}

/* With session.lock held, which the new thread waits for. */
static enum status ensure_runner(struct session *s, struct problem *why)
{
    struct registry *r = s->registry;

    assert(held(&s->lock));
    if (s->batches.running)
        return STATUS_OK;
    pthread_mutex_lock(&r->lock);
    r->runners++;
    pthread_mutex_unlock(&r->lock);
    session_pin(s);
    s->batches.running = start_detached(s);
    if (s->batches.running)
        return STATUS_OK;
    session_unpin(s, false); /* not the last one: the caller's is there */
    log_warn("session", "cannot start a thread for background batches");
    pthread_mutex_lock(&r->lock);
    r->runners--;
    pthread_mutex_unlock(&r->lock);
    return problem_set(why, STATUS_OVERLOADED, "cannot start a thread for the batch");
}

/* ---- queueing ---- */

/* With session.lock held. */
static enum status enqueue(struct session *s, struct batch_job *j, struct problem *why)
{
    struct result_store *b = &s->batches;
    enum status          st = session_usable_locked(s, why);

    assert(held(&s->lock));
    if (!st && table_put(&b->jobs, &j->entry))
        st = problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a batch");
    if (st)
        return st;
    st = result_store_reserve(s, j, j->task->bytes, why);
    if (!st)
        st = ensure_runner(s, why);
    if (st) {
        table_remove(&b->jobs, &j->entry);
        return st;
    }
    if (b->queued)
        b->queued_last->next = j;
    else
        b->queued = j;
    b->queued_last = j;
    b->queued_count++;
    return STATUS_OK;
}

/* Two references: the store's and the caller's. */
static struct batch_job *make(struct session *s, struct batch_task *t)
{
    struct batch_job *j = calloc(1, sizeof *j);

    if (!j || entry_name(&j->entry, (struct span){0}, "x_", NULL)) {
        free(j);
        return NULL;
    }
    j->session = s;
    j->task = t;
    j->created_wall_ns = wall_ns();
    j->refs = 2;
    return j;
}

/* The task's own hold on the session may end as soon as the lock is open: the job has another. */
static enum status create(struct session *s, struct batch_job *j, struct problem *why)
{
    struct batch_garbage garbage = {0};
    enum status          st;

    pthread_mutex_lock(&s->lock);
    st = enqueue(s, j, why);
    if (st) {
        j->refs = 1;
        batch_job_unref(j, &garbage);
    }
    pthread_mutex_unlock(&s->lock);
    batch_garbage_destroy(&garbage);
    return st;
}

enum status batch_job_create_take(struct session *s, struct batch_task *t, struct batch_job **out, struct problem *why)
{
    struct batch_job *j = make(s, t);
    enum status       st;

    session_pin(s);
    if (j) {
        st = create(s, j, why);
    } else {
        t->destroy(t);
        st = problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a batch");
    }
    if (st)
        session_unpin(s, true);
    else
        *out = j;
    return st;
}

enum status batch_job_borrow(struct session *s, struct span id, struct batch_job **out, struct problem *why)
{
    struct batch_job *j;

    pthread_mutex_lock(&s->lock);
    j = (struct batch_job *)table_get(&s->batches.jobs, id);
    if (j)
        j->refs++;
    pthread_mutex_unlock(&s->lock);
    if (!j)
        return problem_set(why, STATUS_BATCH_NOT_FOUND, "unknown batch, or its result has expired");
    session_pin(s);
    *out = j;
    return STATUS_OK;
}

void batch_job_return(struct batch_job *j)
{
    struct batch_garbage garbage = {0};
    struct session      *s = j->session;

    pthread_mutex_lock(&s->lock);
    batch_job_unref(j, &garbage);
    pthread_mutex_unlock(&s->lock);
    batch_garbage_destroy(&garbage);
    session_return(s);
}

/* ---- following ---- */

bool batch_job_finished(struct batch_job *j)
{
    bool final;

    pthread_mutex_lock(&j->session->lock);
    final = is_final(j->state);
    pthread_mutex_unlock(&j->session->lock);
    return final;
}

bool batch_job_watch(struct batch_job *j, struct waker *w)
{
    bool open;

    pthread_mutex_lock(&j->session->lock);
    open = !is_final(j->state);
    if (open) {
        w->next = j->watchers;
        j->watchers = w;
    }
    pthread_mutex_unlock(&j->session->lock);
    return open;
}

void batch_job_unwatch(struct batch_job *j, struct waker *w)
{
    struct waker **at;

    pthread_mutex_lock(&j->session->lock);
    at = &j->watchers;
    while (*at && *at != w)
        at = &(*at)->next;
    if (*at) {
        *at = w->next;
        w->next = NULL;
    }
    pthread_mutex_unlock(&j->session->lock);
}

void batch_job_info_of(struct batch_job *j, struct batch_job_info *out)
{
    struct session *s = j->session;

    *out = (struct batch_job_info){.created_wall_ns = j->created_wall_ns};
    memcpy(out->id, j->entry.id, sizeof out->id);
    pthread_mutex_lock(&s->lock);
    out->state = j->state;
    out->started_wall_ns = j->started_wall_ns;
    out->finished_wall_ns = j->finished_wall_ns;
    if (is_final(j->state))
        out->expires_wall_ns = j->finished_wall_ns + s->registry->config.result_ttl_s * NS_PER_S;
    if (j->state == BATCH_JOB_FAILED)
        out->problem = j->problem;
    pthread_mutex_unlock(&s->lock);
}

struct batch_task *batch_job_result(struct batch_job *j)
{
    struct batch_task *t;

    pthread_mutex_lock(&j->session->lock);
    t = j->state == BATCH_JOB_SUCCEEDED ? j->task : NULL;
    pthread_mutex_unlock(&j->session->lock);
    return t;
}

/* ---- ending ---- */

/* With session.lock held. Its device memory is not held until the result's time is over: the task goes now. */
static void cancel_queued(struct session *s, struct batch_job *j, struct batch_garbage *garbage)
{
    assert(held(&s->lock));
    assert(j->state == BATCH_JOB_QUEUED);
    garbage->task = j->task;
    j->task = NULL;
    result_store_settle(s, j, BATCH_JOB_CANCELLED, garbage);
    tell_watchers(j);
}

enum status batch_job_cancel(struct batch_job *j, bool force, bool *cancelled, struct problem *why)
{
    struct batch_garbage garbage = {0};
    struct session      *s = j->session;
    enum status          st = STATUS_OK;

    *cancelled = false;
    pthread_mutex_lock(&s->lock);
    if (j->state == BATCH_JOB_RUNNING) {
        if (force)
            atomic_store(&j->task->ended, true);
        st = problem_set(why, STATUS_LAUNCH_RUNNING, "the batch is running");
    } else if (unqueue(&s->batches, j)) {
        cancel_queued(s, j, &garbage);
        *cancelled = true;
    }
    pthread_mutex_unlock(&s->lock);
    batch_garbage_destroy(&garbage);
    return st;
}

void batch_job_forget(struct batch_job *j)
{
    struct batch_garbage garbage = {0};
    struct session      *s = j->session;

    pthread_mutex_lock(&s->lock);
    result_store_forget(s, j, &garbage);
    pthread_mutex_unlock(&s->lock);
    batch_garbage_destroy(&garbage);
}
