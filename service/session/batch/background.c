/* Batches in the background: a session's queue, the thread that does what is in it, and the answers that are kept. Their memory is counted and
 * bounded, for each session, each caller, and for all together. */
#include <assert.h>
#include <stdlib.h>

#include "base/log/log.h"
#include "base/portion.h"
#include "base/threads/held.h"
#include "session/batch/job.h"
#include "session/life/parts.h"

/* With session.lock held: the only one to change it. */
static void set_job_state(struct batch_job *j, enum work_state next)
{
    static const bool may[WORK_CANCELLED + 1][WORK_CANCELLED + 1] = {
        [WORK_QUEUED] = {[WORK_RUNNING] = true, [WORK_CANCELLED] = true},
        [WORK_RUNNING] = {[WORK_SUCCEEDED] = true, [WORK_FAILED] = true, [WORK_CANCELLED] = true},
    };

    assert(held(&j->home->lock));
    assert(may[j->state][next]);
    j->state = next;
}

/* ---- counting; with session.lock held ---- */

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
    uint64_t        *bytes = j->kept ? &s->batches.kept_bytes : &s->batches.queued_bytes;

    assert(held(&s->lock));
    pthread_mutex_lock(&r->lock);
    assert(r->batch_bytes >= j->counted_bytes && s->payer->batch_bytes >= j->counted_bytes);
    r->batch_bytes -= j->counted_bytes;
    s->payer->batch_bytes -= j->counted_bytes;
    pthread_mutex_unlock(&r->lock);
    assert(*bytes >= j->counted_bytes);
    *bytes -= j->counted_bytes;
    j->counted_bytes = 0;
}

static enum status room_for(const struct result_store *b, uint64_t bytes, struct problem *why)
{
    if (b->queued.count >= BATCHES_QUEUED_MAX)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "batches_queued", BATCHES_QUEUED_MAX, b->queued.count, 1);
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

/* QUOTA_EXCEEDED or OVERLOADED. */
static enum status count_queued(struct session *s, struct batch_job *j, struct problem *why)
{
    enum status st = room_for(&s->batches, j->bytes, why);

    assert(held(&s->lock));
    assert(j->counted_bytes == 0);
    if (!st)
        st = count_in_all(s, j->bytes, why);
    if (st)
        return st;
    j->counted_bytes = j->bytes;
    s->batches.queued_bytes += j->bytes;
    return STATUS_OK;
}

/* False: there is no room now. */
static bool count_kept(struct session *s, struct batch_job *j)
{
    struct result_store *b = &s->batches;
    bool                 fits = j->bytes <= BATCH_RESULTS_KEPT_BYTES_MAX && b->kept_bytes <= BATCH_RESULTS_KEPT_BYTES_MAX - j->bytes;

    assert(held(&s->lock));
    assert(!j->kept);
    if (b->finished.count >= BATCHES_KEPT_MAX || !fits || count_in_all(s, j->bytes, NULL))
        return false;
    j->kept = true;
    j->counted_bytes = j->bytes;
    b->kept_bytes += j->bytes;
    return true;
}

/* ---- lists and references; with session.lock held ---- */

static void list_append(struct batch_job_list *l, struct batch_job *j)
{
    TAILQ_INSERT_TAIL(&l->jobs, j, listed);
    l->count++;
}

static void list_remove(struct batch_job_list *l, struct batch_job *j)
{
    assert(l->count > 0);
    TAILQ_REMOVE(&l->jobs, j, listed);
    l->count--;
}

/* The last reference puts it among those that are to be freed without a lock. */
static void unref(struct batch_job *j, struct batch_job **garbage)
{
    assert(j->refs > 0);
    if (--j->refs)
        return;
    if (j->home)
        uncount(j->home, j);
    j->next = *garbage;
    *garbage = j;
}

/* A finished one is found no more; others stay. */
static void forget(struct session *s, struct batch_job *j, struct batch_job **garbage)
{
    if (!waitlist_over(&j->end) || !table_remove(&s->batches.jobs, &j->entry))
        return;
    list_remove(&s->batches.finished, j);
    unref(j, garbage);
}

/* No lock held. */
static void drop(struct batch_job *j)
{
    batch_job_release(j, false);
    arena_finish(&j->arena);
}

static void free_all(struct batch_job *garbage)
{
    while (garbage) {
        struct batch_job *j = garbage;
        garbage = j->next;
        drop(j);
        free(j);
    }
}

/* No lock held. */
static void unref_unlocked(struct batch_job *j)
{
    struct batch_job *garbage = NULL;
    struct session   *home = j->home;

    if (home)
        pthread_mutex_lock(&home->lock);
    unref(j, &garbage);
    if (home)
        pthread_mutex_unlock(&home->lock);
    free_all(garbage);
}

/* ---- ends ---- */

/* The oldest results go first. */
static bool make_room(struct session *s, struct batch_job *j, struct batch_job **garbage)
{
    while (!count_kept(s, j)) {
        if (TAILQ_EMPTY(&s->batches.finished.jobs))
            return false;
        forget(s, TAILQ_FIRST(&s->batches.finished.jobs), garbage);
    }
    return true;
}

/* How it ended is told all the same, but for what lies in memory that is not kept. */
static enum work_state without_result(struct batch_job *j, enum work_state state)
{
    if (state == WORK_SUCCEEDED) {
        problem_set(&j->problem, STATUS_OVERLOADED, "the batch was executed, but there is no room to keep its result");
        return WORK_FAILED;
    }
    j->problem.compile_log = (struct span){0};
    j->problem.diagnostics = NULL;
    j->problem.diagnostics_count = 0;
    return state;
}

/* With session.lock held: it has ended thus. Older results make room for its own; false when there is none, and the caller drops what it holds. */
static bool settle(struct session *s, struct batch_job *j, enum work_state state, struct batch_job **garbage)
{
    bool room;

    assert(held(&s->lock));
    assert(!waitlist_over(&j->end));
    uncount(s, j);
    room = make_room(s, j, garbage);
    set_job_state(j, room ? state : without_result(j, state));
    j->finished_wall_ns = wall_ns();
    j->expires_ns = deadline_after_ns(s->registry->config.result_ttl_s * NS_PER_S);
    list_append(&s->batches.finished, j);
    waitlist_end(&j->end);
    return room;
}

/* ---- the runner ---- */

/* NULL: there is none, and this runner is none any more. */
static struct batch_job *next_job(struct session *s)
{
    struct batch_job *j;

    pthread_mutex_lock(&s->lock);
    j = TAILQ_FIRST(&s->batches.queued.jobs);
    s->batches.running = j != NULL;
    if (j) {
        list_remove(&s->batches.queued, j);
        set_job_state(j, WORK_RUNNING);
        j->started_wall_ns = wall_ns();
        j->refs++;
    }
    pthread_mutex_unlock(&s->lock);
    return j;
}

static void do_job(struct session *s, struct batch_job *j)
{
    struct batch_job *garbage = NULL;
    struct problem    why = {0};
    enum status       st = batch_job_run(j, &why);
    bool              kept;

    if (!st)
        st = j->ops->answer(j, &why);
    batch_job_release(j, !st);
    if (!st)
        arena_finish(&j->arena);
    else
        j->bytes = j->arena.used;
    pthread_mutex_lock(&s->lock);
    if (st) {
        j->problem = why;
        j->problem.status = st;
    }
    kept = settle(s, j, !st ? WORK_SUCCEEDED : j->forced ? WORK_CANCELLED : WORK_FAILED, &garbage);
    if (kept)
        unref(j, &garbage);
    pthread_mutex_unlock(&s->lock);
    free_all(garbage);
    if (kept)
        return;
    drop(j);
    unref_unlocked(j);
}

static void *run_jobs(void *argument)
{
    struct session   *s = argument;
    struct registry  *r = s->registry;
    struct batch_job *j;

    while ((j = next_job(s)) != NULL)
        do_job(s, j);
    session_unpin(s, true);
    registry_runner_leave(r);
    return NULL;
}

void batch_runners_await(struct registry *r)
{
    pthread_mutex_lock(&r->lock);
    while (r->runners)
        pthread_cond_wait(&r->runner_left, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

/* With session.lock held, which the new thread waits for. */
static enum status ensure_runner(struct session *s, struct problem *why)
{
    if (s->batches.running)
        return STATUS_OK;
    session_pin(s);
    s->batches.running = registry_runner_start(s->registry, run_jobs, s);
    if (s->batches.running)
        return STATUS_OK;
    session_unpin(s, false); /* not the last one: the caller's is there */
    log_warn("session", "cannot start a thread for background batches");
    return problem_set(why, STATUS_OVERLOADED, "cannot start a thread for the batch");
}

/* ---- queueing ---- */

static bool is_forced(void *job)
{
    return ((struct batch_job *)job)->forced;
}

/* With session.lock held. */
static enum status enqueue(struct session *s, struct batch_job *j, struct problem *why)
{
    enum status st = session_changeable_locked(s, why);

    if (!st)
        st = count_queued(s, j, why);
    if (!st && table_put(&s->batches.jobs, &j->entry))
        st = problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a batch");
    if (!st)
        st = ensure_runner(s, why);
    if (st) {
        table_remove(&s->batches.jobs, &j->entry);
        uncount(s, j);
        return st;
    }
    j->home = s;
    j->created_wall_ns = wall_ns();
    j->end.lock = &s->lock;
    j->unwanted = is_forced;
    j->unwanted_context = j;
    j->refs++;
    session_pin(s); /* by the caller's reference: its own hold ends with its run */
    list_append(&s->batches.queued, j);
    return STATUS_OK;
}

enum status batch_job_queue(struct batch_job *j, struct problem *why)
{
    struct session *s = j->session;
    enum status     st;

    assert(s && !j->home);
    if (registry_name(s->registry, &j->entry, (struct span){0}, 'x', NULL))
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a batch");
    pthread_mutex_lock(&s->lock);
    st = enqueue(s, j, why);
    pthread_mutex_unlock(&s->lock);
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

static void give_back(struct batch_job *j, bool used)
{
    struct session *home = j->home;

    unref_unlocked(j);
    if (home)
        session_unpin(home, used);
}

void batch_job_return(struct batch_job *j)
{
    give_back(j, true);
}

void batch_job_return_unnoticed(struct batch_job *j)
{
    give_back(j, false);
}

void batch_job_info_of(struct batch_job *j, struct batch_job_info *out)
{
    struct session *s = j->home;

    *out = (struct batch_job_info){.created_wall_ns = j->created_wall_ns};
    memcpy(out->id, j->entry.id, sizeof out->id);
    pthread_mutex_lock(&s->lock);
    out->state = j->state;
    out->started_wall_ns = j->started_wall_ns;
    out->finished_wall_ns = j->finished_wall_ns;
    if (waitlist_over(&j->end))
        out->expires_wall_ns = j->finished_wall_ns + s->registry->config.result_ttl_s * NS_PER_S;
    if (j->state == WORK_FAILED)
        out->problem = j->problem;
    pthread_mutex_unlock(&s->lock);
}

/* ---- ending ---- */

enum status batch_job_cancel(struct batch_job *j, bool force, struct problem *why)
{
    struct batch_job *garbage = NULL;
    struct session   *s = j->home;
    enum status       st = STATUS_OK;
    bool              unqueued;

    pthread_mutex_lock(&s->lock);
    unqueued = j->state == WORK_QUEUED;
    if (unqueued) { /* its memory does not wait for the time of results to be over */
        list_remove(&s->batches.queued, j);
        j->bytes = 0;
        settle(s, j, WORK_CANCELLED, &garbage);
    } else if (j->state == WORK_RUNNING) {
        j->forced = j->forced || force;
        st = problem_set(why, STATUS_LAUNCH_RUNNING, "the batch is running");
    }
    pthread_mutex_unlock(&s->lock);
    if (unqueued)
        drop(j);
    free_all(garbage);
    return st;
}

void batch_job_forget(struct batch_job *j)
{
    struct batch_job *garbage = NULL;
    struct session   *s = j->home;

    pthread_mutex_lock(&s->lock);
    forget(s, j, &garbage);
    pthread_mutex_unlock(&s->lock);
    free_all(garbage);
}

void result_store_expire(struct session *s, uint64_t now)
{
    struct batch_job *garbage = NULL, *j;

    pthread_mutex_lock(&s->lock);
    while ((j = TAILQ_FIRST(&s->batches.finished.jobs)) && j->expires_ns <= now)
        forget(s, j, &garbage);
    pthread_mutex_unlock(&s->lock);
    free_all(garbage);
}

/* Nothing waits or runs any more: that would pin the session. */
void result_store_finish(struct session *s)
{
    struct batch_job *garbage = NULL;

    pthread_mutex_lock(&s->lock);
    assert(TAILQ_EMPTY(&s->batches.queued.jobs) && !s->batches.running);
    while (!TAILQ_EMPTY(&s->batches.finished.jobs))
        forget(s, TAILQ_FIRST(&s->batches.finished.jobs), &garbage);
    assert(s->batches.kept_bytes == 0 && s->batches.queued_bytes == 0 && s->batches.jobs.count == 0);
    pthread_mutex_unlock(&s->lock);
    free_all(garbage);
    table_finish(&s->batches.jobs);
}

/* ---- with snapshots ---- */

unsigned batch_jobs_ended(struct session *s, struct batch_job *out[BATCHES_KEPT_MAX])
{
    struct batch_job *j;
    unsigned          n = 0;

    pthread_mutex_lock(&s->lock);
    TAILQ_FOREACH(j, &s->batches.finished.jobs, listed)
        if (n < BATCHES_KEPT_MAX) {
            j->refs++;
            session_pin(s);
            out[n++] = j;
        }
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* With session.lock held. */
static enum status list_ended(struct session *s, struct batch_job *j, struct problem *why)
{
    if (table_get(&s->batches.jobs, span_of(j->entry.id)))
        return problem_set(why, STATUS_SNAPSHOT_INVALID, "two batches have this id");
    if (!count_kept(s, j))
        return problem_set(why, STATUS_QUOTA_EXCEEDED, "there is no room for its result");
    j->home = s;
    if (!table_put(&s->batches.jobs, &j->entry))
        return STATUS_OK;
    uncount(s, j);
    j->home = NULL;
    j->kept = false;
    return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a result");
}

enum status batch_job_restore(struct session *s, struct batch_job *j, const struct batch_job_info *was, struct problem *why)
{
    enum status st;

    span_copy(span_of(was->id), j->entry.id, sizeof j->entry.id);
    j->state = was->state;
    j->created_wall_ns = was->created_wall_ns;
    j->started_wall_ns = was->started_wall_ns;
    j->finished_wall_ns = wall_ns();
    j->expires_ns = deadline_after_ns(s->registry->config.result_ttl_s * NS_PER_S);
    if (was->state == WORK_FAILED)
        j->problem = was->problem;
    j->end.lock = &s->lock;
    pthread_mutex_lock(&s->lock);
    st = list_ended(s, j, why);
    if (!st) {
        j->refs++;
        session_pin(s); /* by the caller's reference */
        list_append(&s->batches.finished, j);
        waitlist_end(&j->end);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}
