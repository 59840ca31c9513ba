/* Batches in the background: order, ends, what is kept and counted. The batches of the jobs here do nothing; their answers are gates that the
 * tests open. */
#include "base/bounds.h"
#include "session/batch/job.h"
#include "session/life/parts.h"
#include "unit/session/session_fixture.h"

/* ---- jobs ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    unsigned        alive, begun, allowed, order[256];
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

struct gated_job {
    struct batch_job job;
    unsigned         number;
    uint64_t         result_bytes;
    enum status      outcome;
    bool             holding; /* what it is to be done with, or its answer */
};

static enum status answer_gated(struct batch_job *j, struct problem *why)
{
    struct gated_job *g = (struct gated_job *)j;

    pthread_mutex_lock(&gate.lock);
    gate.order[gate.begun++] = g->number;
    pthread_cond_broadcast(&gate.changed);
    while (gate.allowed < gate.begun)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    j->bytes = g->result_bytes;
    if (g->outcome)
        problem_set(why, g->outcome, "as was wanted");
    why->compile_log = arena_copy(&j->arena, SPAN_LITERAL("lies with the job"));
    return g->outcome;
}

static void release_gated(struct batch_job *j, bool keep_answer)
{
    struct gated_job *g = (struct gated_job *)j;

    pthread_mutex_lock(&gate.lock);
    if (!keep_answer && g->holding) {
        g->holding = false;
        gate.alive--;
    }
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

/* Of that session, queued. */
static enum status queue_in(struct session *s, unsigned number, uint64_t bytes, uint64_t result_bytes, enum status outcome,
                            struct batch_job **out, struct problem *why)
{
    static const struct batch_job_ops ops = {answer_gated, release_gated};
    static const struct batch_spec    nothing;

    struct gated_job *g = calloc(1, sizeof *g);
    enum status       st;

    batch_job_init(&g->job, &ops, s->registry, &f.tenant);
    session_pin(s);
    g->job.session = s;
    g->job.spec = &nothing;
    g->job.bytes = bytes;
    g->number = number;
    g->result_bytes = result_bytes;
    g->outcome = outcome;
    g->holding = true;
    pthread_mutex_lock(&gate.lock);
    gate.alive++;
    pthread_mutex_unlock(&gate.lock);
    st = batch_job_queue(&g->job, why);
    if (st)
        batch_job_return(&g->job);
    else
        *out = &g->job;
    return st;
}

static void allow(unsigned count)
{
    pthread_mutex_lock(&gate.lock);
    gate.allowed += count;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void await_begun(unsigned count)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.begun < count)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static unsigned alive(void)
{
    unsigned n;

    pthread_mutex_lock(&gate.lock);
    n = gate.alive;
    pthread_mutex_unlock(&gate.lock);
    return n;
}

/* What is let go of goes on the thread that did it, maybe behind the news. */
static void await_alive(unsigned count)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.alive != count)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static void start(void)
{
    fixture_start(8);
    f.registry->config.result_ttl_s = 1000;
}

TestSuite(batch_async, .init = start, .fini = fixture_end);

static struct batch_job *queue(unsigned number, uint64_t result_bytes, enum status outcome)
{
    struct batch_job *j = NULL;

    cr_assert_eq(queue_in(f.session, number, 100, result_bytes, outcome, &j, &f.why), STATUS_OK, "%s", f.why.detail);
    return j;
}

static struct batch_job_info info(struct batch_job *j)
{
    struct batch_job_info i;

    batch_job_info_of(j, &i);
    return i;
}

static void await_job(struct batch_job *j)
{
    struct bell bell;

    bell_init(&bell);
    while (!waitlist_over(&j->end))
        if (waitlist_watch(&j->end, &bell.waker))
            bell_wait(&bell);
}

static bool known(const char *id)
{
    struct batch_job *j;

    if (batch_job_borrow(f.session, span_of(id), &j, &f.why))
        return false;
    batch_job_return(j);
    return true;
}

static void finish(void)
{
    struct session *s = f.session;

    pthread_mutex_lock(&s->lock);
    cr_assert_eq(s->batches.queued_bytes, 0);
    pthread_mutex_unlock(&s->lock);
    fixture_end();
    cr_assert_eq(alive(), 0);
}

/* ---- jobs ---- */

Test(batch_async, they_are_done_in_order_and_their_results_kept)
{
    struct batch_job *jobs[5];

    for (unsigned i = 0; i < 5; i++)
        jobs[i] = queue(i, 10, i == 3 ? STATUS_RANGE_NOT_SATISFIABLE : STATUS_OK);
    await_begun(1);
    cr_assert_eq(info(jobs[0]).state, WORK_RUNNING);
    cr_assert_eq(info(jobs[4]).state, WORK_QUEUED);
    allow(5);
    for (unsigned i = 0; i < 5; i++) {
        await_job(jobs[i]);
        cr_assert_eq(gate.order[i], i);
        cr_assert_eq(info(jobs[i]).state, i == 3 ? WORK_FAILED : WORK_SUCCEEDED);
    }
    cr_assert_eq(info(jobs[3]).problem.status, STATUS_RANGE_NOT_SATISFIABLE);
    cr_assert(info(jobs[0]).created_wall_ns <= info(jobs[0]).started_wall_ns);
    cr_assert(info(jobs[0]).expires_wall_ns > info(jobs[0]).finished_wall_ns);
    for (unsigned i = 0; i < 5; i++)
        batch_job_return(jobs[i]);
    cr_assert_eq(alive(), 4, "what failed keeps no answer");
    finish();
}

Test(batch_async, one_that_waits_is_cancelled_and_a_running_one_is_not)
{
    struct batch_job *running, *waiting;
    struct bell       bell;

    bell_init(&bell);
    running = queue(0, 10, STATUS_OK);
    await_begun(1);
    waiting = queue(1, 10, STATUS_OK);
    cr_assert(waitlist_watch(&waiting->end, &bell.waker));
    cr_assert_eq(batch_job_cancel(running, false, &f.why), STATUS_LAUNCH_RUNNING);
    cr_assert_eq(batch_job_cancel(waiting, false, &f.why), STATUS_OK);
    bell_wait(&bell);
    cr_assert_not(waitlist_watch(&waiting->end, &bell.waker));
    cr_assert_eq(info(waiting).state, WORK_CANCELLED);
    cr_assert_eq(alive(), 1, "its work is let go of at once");
    cr_assert_eq(batch_job_cancel(waiting, false, &f.why), STATUS_OK);
    allow(1);
    await_job(running);
    cr_assert_eq(gate.begun, 1);
    batch_job_forget(running);
    cr_assert_not(known(running->entry.id));
    cr_assert_eq(alive(), 1, "who holds it can still read it");
    batch_job_return(running);
    cr_assert_eq(alive(), 0);
    batch_job_return(waiting);
    finish();
}

Test(batch_async, one_that_is_ended_by_force_is_cancelled)
{
    struct batch_job *j;

    j = queue(0, 10, STATUS_SESSION_BUSY);
    await_begun(1);
    cr_assert_eq(batch_job_cancel(j, true, &f.why), STATUS_LAUNCH_RUNNING);
    allow(1);
    await_job(j);
    cr_assert_eq(info(j).state, WORK_CANCELLED);
    batch_job_return(j);
    finish();
}

Test(batch_async, no_more_wait_than_may)
{
    struct batch_job *jobs[BATCHES_QUEUED_MAX + 1], *more = NULL;

    jobs[0] = queue(0, 10, STATUS_OK);
    await_begun(1);
    for (unsigned i = 1; i <= BATCHES_QUEUED_MAX; i++)
        jobs[i] = queue(i, 10, STATUS_OK);
    cr_assert_eq(batch_job_room(f.session, &f.why), STATUS_QUOTA_EXCEEDED);
    cr_assert_eq(queue_in(f.session, 99, 1, 1, STATUS_OK, &more, &f.why), STATUS_QUOTA_EXCEEDED);
    cr_assert_str_eq(f.why.limit_name, "batches_queued");
    cr_assert_eq(alive(), BATCHES_QUEUED_MAX + 1);
    allow(BATCHES_QUEUED_MAX + 1);
    for (unsigned i = 0; i <= BATCHES_QUEUED_MAX; i++) {
        await_job(jobs[i]);
        batch_job_return(jobs[i]);
    }
    cr_assert_eq(batch_job_room(f.session, &f.why), STATUS_OK);
    cr_assert_eq(queue_in(f.session, 99, BATCHES_QUEUED_BYTES_MAX + 1ull, 1, STATUS_OK, &more, &f.why), STATUS_QUOTA_EXCEEDED);
    cr_assert_str_eq(f.why.limit_name, "batches_queued_bytes");
    cr_assert_eq(f.session->batches.finished.count, BATCHES_KEPT_MAX, "of one more the oldest was forgotten");
    finish();
}

Test(batch_async, results_make_room_for_each_other)
{
    struct batch_job *small, *half, *most, *full, *failed, *too_much;
    char              ids[3][ID_BYTES];

    allow(7);
    await_job(small = queue(0, 10, STATUS_OK));
    await_job(half = queue(1, BATCH_RESULTS_KEPT_BYTES_MAX / 2, STATUS_OK));
    memcpy(ids[0], small->entry.id, ID_BYTES);
    memcpy(ids[1], half->entry.id, ID_BYTES);
    batch_job_return(small);
    /* Half is still being read: its bytes count, though it is found no more. */
    await_job(most = queue(2, BATCH_RESULTS_KEPT_BYTES_MAX / 2 + 1, STATUS_OK));
    cr_assert_not(known(ids[0]));
    cr_assert_not(known(ids[1]));
    cr_assert_eq(info(most).state, WORK_FAILED);
    cr_assert_eq(info(most).problem.status, STATUS_OVERLOADED);
    cr_assert_eq(f.session->batches.kept_bytes, BATCH_RESULTS_KEPT_BYTES_MAX / 2);
    batch_job_return(half);
    cr_assert_eq(f.session->batches.kept_bytes, 0);
    await_job(full = queue(3, BATCH_RESULTS_KEPT_BYTES_MAX, STATUS_OK));
    await_job(failed = queue(4, 10, STATUS_RANGE_NOT_SATISFIABLE));
    cr_assert_eq(info(failed).problem.status, STATUS_RANGE_NOT_SATISFIABLE, "how it ended is told all the same");
    cr_assert_null(info(failed).problem.compile_log.data);
    batch_job_return(full);
    await_alive(0);
    batch_job_return(failed);
    await_job(failed = queue(5, 10, STATUS_RANGE_NOT_SATISFIABLE));
    cr_assert_not_null(info(failed).problem.compile_log.data);
    batch_job_return(failed);
    await_job(too_much = queue(6, BATCH_RESULTS_KEPT_BYTES_MAX + 1ull, STATUS_OK));
    cr_assert_eq(info(too_much).problem.status, STATUS_OVERLOADED);
    await_alive(0);
    batch_job_return(most);
    batch_job_return(too_much);
    cr_assert_eq(f.registry->batch_bytes, 0);
    finish();
}

/* One whose result is kept, of a session. */
static enum work_state keep_in(struct session *s, unsigned number, uint64_t result_bytes)
{
    struct batch_job *j = NULL;
    enum work_state   state;

    cr_assert_eq(queue_in(s, number, 100, result_bytes, STATUS_OK, &j, &f.why), STATUS_OK, "%s", f.why.detail);
    await_job(j);
    state = info(j).state;
    batch_job_return(j);
    return state;
}

Test(batch_async, results_of_one_caller_leave_room_for_others)
{
    enum { FULL = BATCH_JOBS_BYTES_MAX / PORTION_DIVISOR * (PORTION_DIVISOR - 1) / BATCH_RESULTS_KEPT_BYTES_MAX };

    const char     *names[] = {"t", "u", "v"};
    struct session *mine[] = {f.session, NULL, NULL, NULL}, *others;
    int             other;
    unsigned        n = 0;

    mine[0] = f.session;
    for (unsigned i = 1; i < COUNT(mine); i++)
        mine[i] = fixture_session(names[i - 1], MEMORY_LIMIT_NONE);
    cr_assert_eq(FULL, COUNT(mine) - 1);
    allow(100);
    for (unsigned i = 0; i < FULL; i++)
        cr_assert_eq(keep_in(mine[i], n++, BATCH_RESULTS_KEPT_BYTES_MAX - 4096), WORK_SUCCEEDED); /* a task has its bytes, too */
    cr_assert_eq(keep_in(mine[FULL], n++, 1024 * 1024), WORK_FAILED, "its caller has its portion");
    f.tenant = (struct tenant){&other, "others", 4, 1 << 30};
    others = fixture_session("s", MEMORY_LIMIT_NONE);
    cr_assert_eq(keep_in(others, n++, BATCH_RESULTS_KEPT_BYTES_MAX / 2), WORK_SUCCEEDED);
    session_return(others);
    for (unsigned i = 1; i < COUNT(mine); i++)
        session_return(mine[i]);
    finish();
}

Test(batch_async, results_are_kept_for_their_time)
{
    struct batch_job *j;
    char              id[ID_BYTES];

    allow(1);
    await_job(j = queue(0, 10, STATUS_OK));
    memcpy(id, j->entry.id, ID_BYTES);
    batch_job_return(j);
    result_store_expire(f.session, now_ns());
    cr_assert(known(id));
    result_store_expire(f.session, now_ns() + 1001 * NS_PER_S);
    cr_assert_not(known(id));
    cr_assert_eq(f.why.status, STATUS_BATCH_NOT_FOUND);
    cr_assert_eq(alive(), 0);
    finish();
}

Test(batch_async, what_waits_when_the_session_is_deleted_is_not_lost)
{
    struct batch_job *jobs[3];

    for (unsigned i = 0; i < 3; i++)
        jobs[i] = queue(i, 10, STATUS_OK);
    await_begun(1);
    cr_assert_eq(session_delete(f.session, &f.why), STATUS_OK);
    allow(3);
    for (unsigned i = 0; i < 3; i++) {
        await_job(jobs[i]);
        batch_job_return(jobs[i]);
    }
    cr_assert_eq(queue_in(f.session, 9, 1, 1, STATUS_OK, &jobs[0], &f.why), STATUS_SESSION_NOT_FOUND);
    finish();
}

struct crowd {
    pthread_t thread;
    unsigned  number;
};

static void *crowd_run(void *argument)
{
    struct crowd *c = argument;

    for (unsigned i = 0; i < 20; i++) {
        struct batch_job *j;
        struct problem    why;
        if (queue_in(f.session, 0, 10, 1000, STATUS_OK, &j, &why))
            continue;
        if ((i + c->number) % 3 == 0)
            batch_job_cancel(j, false, NULL);
        else if (i % 2)
            await_job(j);
        if (i % 5 == 0 && waitlist_over(&j->end))
            batch_job_forget(j);
        batch_job_return(j);
    }
    return NULL;
}

Test(batch_async, many_threads_at_once)
{
    struct crowd crowd[6] = {{.number = 0}};

    allow(256);
    for (unsigned i = 0; i < COUNT(crowd); i++) {
        crowd[i].number = i;
        pthread_create(&crowd[i].thread, NULL, crowd_run, &crowd[i]);
    }
    for (unsigned i = 0; i < COUNT(crowd); i++)
        pthread_join(crowd[i].thread, NULL);
    fixture_end();
    cr_assert_eq(alive(), 0);
}
