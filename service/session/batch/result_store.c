/* The memory of asynchronous batches: what waits and what is kept, counted and bounded, for each session, each caller, and for all together. */
#include <stdlib.h>

#include "base/held.h"
#include "base/portion.h"
#include "session/batch/result_store.h"

/* ---- counting ---- */

static enum status count_in_all(struct session *s, uint64_t bytes, struct problem *why)
{
    struct registry *r = s->registry;
    struct portion   all = {"batch_jobs_bytes", BATCH_JOBS_BYTES_MAX, 0, 0};
    enum status      st;

    pthread_mutex_lock(&r->lock);
    all.used = r->batch_bytes;
    all.mine = s->payer->batch_bytes;
    st = portion_check(&all, bytes, why);
    if (!st) {
        r->batch_bytes += bytes;
        s->payer->batch_bytes += bytes;
    }
    pthread_mutex_unlock(&r->lock);
    return st;
}

static void uncount(struct session *s, struct batch_job *j)
{
    struct registry *r = s->registry;

    assert(held(&s->lock));
    pthread_mutex_lock(&r->lock);
    assert(r->batch_bytes >= j->bytes && s->payer->batch_bytes >= j->bytes);
    r->batch_bytes -= j->bytes;
    s->payer->batch_bytes -= j->bytes;
    pthread_mutex_unlock(&r->lock);
    if (j->kept)
        s->batches.kept_bytes -= j->bytes;
    else
        s->batches.queued_bytes -= j->bytes;
    j->bytes = 0;
}

static enum status room_for(const struct result_store *b, uint64_t bytes, struct problem *why)
{
    if (b->queued_count >= BATCHES_QUEUED_MAX)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "batches_queued", BATCHES_QUEUED_MAX, b->queued_count, 1);
    if (bytes > BATCHES_QUEUED_BYTES_MAX || b->queued_bytes > BATCHES_QUEUED_BYTES_MAX - bytes)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "batches_queued_bytes", BATCHES_QUEUED_BYTES_MAX, b->queued_bytes, bytes);
    return STATUS_OK;
}

enum status batch_job_room(struct session *s, struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&s->lock);
    st = room_for(&s->batches, 0, why);
    pthread_mutex_unlock(&s->lock);
    return st;
}

enum status result_store_reserve(struct session *s, struct batch_job *j, uint64_t bytes, struct problem *why)
{
    enum status st = room_for(&s->batches, bytes, why);

    assert(held(&s->lock));
    assert(j->bytes == 0);
    if (!st)
        st = count_in_all(s, bytes, why);
    if (st)
        return st;
    j->bytes = bytes;
    s->batches.queued_bytes += bytes;
    return STATUS_OK;
}

/* False: there is no room now. */
static bool count_kept(struct session *s, struct batch_job *j, uint64_t bytes)
{
    struct result_store *b = &s->batches;
    bool                 fits = bytes <= BATCH_RESULTS_KEPT_BYTES_MAX && b->kept_bytes <= BATCH_RESULTS_KEPT_BYTES_MAX - bytes;

    assert(held(&s->lock));
    assert(!j->kept);
    if (b->finished_count >= BATCHES_KEPT_MAX || !fits || count_in_all(s, bytes, NULL))
        return false;
    j->kept = true;
    j->bytes = bytes;
    b->kept_bytes += bytes;
    return true;
}

/* ---- ends ---- */

void batch_job_set_state(struct batch_job *j, enum batch_job_state next)
{
    static const bool may[BATCH_JOB_CANCELLED + 1][BATCH_JOB_CANCELLED + 1] = {
        [BATCH_JOB_QUEUED] = {[BATCH_JOB_RUNNING] = 1, [BATCH_JOB_CANCELLED] = 1},
        [BATCH_JOB_RUNNING] = {[BATCH_JOB_SUCCEEDED] = 1, [BATCH_JOB_FAILED] = 1, [BATCH_JOB_CANCELLED] = 1},
    };

    assert(held(&j->session->lock));
    assert(may[j->state][next]);
    j->state = next;
}

void batch_job_unref(struct batch_job *j, struct batch_garbage *garbage)
{
    assert(held(&j->session->lock));
    assert(j->refs > 0);
    if (--j->refs)
        return;
    uncount(j->session, j);
    j->next = garbage->jobs;
    garbage->jobs = j;
}

static void destroy_task(struct batch_task *t)
{
    if (t)
        t->destroy(t);
}

void batch_garbage_destroy(struct batch_garbage *garbage)
{
    destroy_task(garbage->task);
    while (garbage->jobs) {
        struct batch_job *j = garbage->jobs;
        garbage->jobs = j->next;
        destroy_task(j->task);
        free(j);
    }
}

void result_store_forget(struct session *s, struct batch_job *j, struct batch_garbage *garbage)
{
    struct result_store *b = &s->batches;
    struct batch_job    *before = NULL, *at = b->finished;

    assert(held(&s->lock));
    while (at && at != j) {
        before = at;
        at = at->next;
    }
    if (!at)
        return;
    if (before)
        before->next = j->next;
    else
        b->finished = j->next;
    if (b->finished_last == j)
        b->finished_last = before;
    assert(b->finished_count > 0);
    b->finished_count--;
    table_remove(&b->jobs, &j->entry);
    batch_job_unref(j, garbage);
}

static void append_finished(struct result_store *b, struct batch_job *j)
{
    j->next = NULL;
    if (b->finished)
        b->finished_last->next = j;
    else
        b->finished = j;
    b->finished_last = j;
    b->finished_count++;
}

/* The oldest results go first. */
static bool make_room(struct session *s, struct batch_job *j, uint64_t bytes, struct batch_garbage *garbage)
{
    while (!count_kept(s, j, bytes)) {
        if (!s->batches.finished)
            return false;
        result_store_forget(s, s->batches.finished, garbage);
    }
    return true;
}

/* How it ended is told all the same, but for what lies in the task's memory. */
static enum batch_job_state drop_result(struct batch_job *j, enum batch_job_state state, struct batch_garbage *garbage)
{
    garbage->task = j->task;
    j->task = NULL;
    if (state == BATCH_JOB_SUCCEEDED) {
        problem_set(&j->problem, STATUS_OVERLOADED, "the batch was executed, but there is no room to keep its result");
        return BATCH_JOB_FAILED;
    }
    j->problem.compile_log = (struct span){0};
    j->problem.diagnostics = NULL;
    j->problem.diagnostics_count = 0;
    return state;
}

void result_store_settle(struct session *s, struct batch_job *j, enum batch_job_state state, struct batch_garbage *garbage)
{
    assert(held(&s->lock));
    uncount(s, j);
    if (!make_room(s, j, j->task ? j->task->bytes : 0, garbage))
        state = drop_result(j, state, garbage);
    batch_job_set_state(j, state);
    j->finished_wall_ns = wall_ns();
    j->expires_ns = deadline_after_ns(s->registry->config.result_ttl_s * NS_PER_S);
    append_finished(&s->batches, j);
}

void result_store_expire(struct session *s, uint64_t now)
{
    struct batch_garbage garbage = {0};

    pthread_mutex_lock(&s->lock);
    while (s->batches.finished && s->batches.finished->expires_ns <= now)
        result_store_forget(s, s->batches.finished, &garbage);
    pthread_mutex_unlock(&s->lock);
    batch_garbage_destroy(&garbage);
}

/* Nothing waits or runs any more: that would pin the session. */
void result_store_finish(struct session *s)
{
    struct batch_garbage garbage = {0};

    pthread_mutex_lock(&s->lock);
    assert(!s->batches.queued && !s->batches.running);
    while (s->batches.finished)
        result_store_forget(s, s->batches.finished, &garbage);
    assert(s->batches.kept_bytes == 0 && s->batches.queued_bytes == 0 && s->batches.jobs.count == 0);
    pthread_mutex_unlock(&s->lock);
    batch_garbage_destroy(&garbage);
    table_finish(&s->batches.jobs);
}
