/* Batches in the background: order, ends, what is kept and counted; and READs that stay on the device. Tasks here are gates that the
 * tests open. */
#include "base/bounds.h"
#include "session/batch/batch_internal.h"
#include "session/batch/result_store.h"
#include "unit/session/session_fixture.h"

/* ---- tasks ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    unsigned        alive, begun, allowed, order[256];
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

struct gated_task {
    struct batch_task task;
    unsigned          number;
    uint64_t          result_bytes;
    enum status       outcome;
};

static enum status run_gated(struct batch_task *t, struct problem *why)
{
    struct gated_task *g = (struct gated_task *)t;

    pthread_mutex_lock(&gate.lock);
    gate.order[gate.begun++] = g->number;
    pthread_cond_broadcast(&gate.changed);
    while (gate.allowed < gate.begun)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    t->bytes = g->result_bytes;
    return g->outcome ? problem_set(why, g->outcome, "as was wanted") : STATUS_OK;
}

static void destroy_gated(struct batch_task *t)
{
    pthread_mutex_lock(&gate.lock);
    gate.alive--;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    free(t);
}

static struct batch_task *task(unsigned number, uint64_t bytes, uint64_t result_bytes, enum status outcome)
{
    struct gated_task *g = calloc(1, sizeof *g);

    *g = (struct gated_task){{.bytes = bytes, .run = run_gated, .destroy = destroy_gated}, number, result_bytes, outcome};
    pthread_mutex_lock(&gate.lock);
    gate.alive++;
    pthread_mutex_unlock(&gate.lock);
    return &g->task;
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

    cr_assert_eq(batch_job_create_take(f.session, task(number, 100, result_bytes, outcome), &j, &f.why), STATUS_OK, "%s", f.why.detail);
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
    while (!batch_job_finished(j))
        if (batch_job_watch(j, &bell.waker))
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
    cr_assert_eq(info(jobs[0]).state, BATCH_JOB_RUNNING);
    cr_assert_eq(info(jobs[4]).state, BATCH_JOB_QUEUED);
    cr_assert_null(batch_job_result(jobs[0]));
    allow(5);
    for (unsigned i = 0; i < 5; i++) {
        await_job(jobs[i]);
        cr_assert_eq(gate.order[i], i);
        cr_assert_eq(info(jobs[i]).state, i == 3 ? BATCH_JOB_FAILED : BATCH_JOB_SUCCEEDED);
        cr_assert_eq(batch_job_result(jobs[i]) != NULL, i != 3);
    }
    cr_assert_eq(info(jobs[3]).problem.status, STATUS_RANGE_NOT_SATISFIABLE);
    cr_assert(info(jobs[0]).created_wall_ns <= info(jobs[0]).started_wall_ns);
    cr_assert(info(jobs[0]).expires_wall_ns > info(jobs[0]).finished_wall_ns);
    for (unsigned i = 0; i < 5; i++)
        batch_job_return(jobs[i]);
    cr_assert_eq(alive(), 5);
    finish();
}

Test(batch_async, one_that_waits_is_cancelled_and_a_running_one_is_not)
{
    struct batch_job *running, *waiting;
    struct bell       bell;
    bool              cancelled;

    bell_init(&bell);
    running = queue(0, 10, STATUS_OK);
    await_begun(1);
    waiting = queue(1, 10, STATUS_OK);
    cr_assert(batch_job_watch(waiting, &bell.waker));
    cr_assert_eq(batch_job_cancel(running, false, &cancelled, &f.why), STATUS_LAUNCH_RUNNING);
    cr_assert_eq(batch_job_cancel(waiting, false, &cancelled, &f.why), STATUS_OK);
    cr_assert(cancelled);
    bell_wait(&bell);
    cr_assert_not(batch_job_watch(waiting, &bell.waker));
    cr_assert_eq(info(waiting).state, BATCH_JOB_CANCELLED);
    cr_assert_eq(alive(), 1, "its work is let go of at once");
    cr_assert_eq(batch_job_cancel(waiting, false, &cancelled, &f.why), STATUS_OK);
    cr_assert_not(cancelled);
    allow(1);
    await_job(running);
    cr_assert_eq(gate.begun, 1);
    batch_job_forget(running);
    cr_assert_not(known(running->entry.id));
    cr_assert_not_null(batch_job_result(running), "who holds it can still read it");
    batch_job_return(running);
    cr_assert_eq(alive(), 0);
    batch_job_return(waiting);
    finish();
}

Test(batch_async, one_that_is_ended_by_force_is_cancelled)
{
    struct batch_job *j;
    bool              cancelled;

    j = queue(0, 10, STATUS_SESSION_BUSY);
    await_begun(1);
    cr_assert_eq(batch_job_cancel(j, true, &cancelled, &f.why), STATUS_LAUNCH_RUNNING);
    allow(1);
    await_job(j);
    cr_assert_eq(info(j).state, BATCH_JOB_CANCELLED);
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
    cr_assert_eq(batch_job_create_take(f.session, task(99, 1, 1, STATUS_OK), &more, &f.why), STATUS_QUOTA_EXCEEDED);
    cr_assert_str_eq(f.why.limit_name, "batches_queued");
    cr_assert_eq(alive(), BATCHES_QUEUED_MAX + 1);
    allow(BATCHES_QUEUED_MAX + 1);
    for (unsigned i = 0; i <= BATCHES_QUEUED_MAX; i++) {
        await_job(jobs[i]);
        batch_job_return(jobs[i]);
    }
    cr_assert_eq(batch_job_room(f.session, &f.why), STATUS_OK);
    cr_assert_eq(batch_job_create_take(f.session, task(99, BATCHES_QUEUED_BYTES_MAX + 1ull, 1, STATUS_OK), &more, &f.why),
                 STATUS_QUOTA_EXCEEDED);
    cr_assert_str_eq(f.why.limit_name, "batches_queued_bytes");
    cr_assert_eq(f.session->batches.finished_count, BATCHES_KEPT_MAX, "of one more the oldest was forgotten");
    finish();
}

Test(batch_async, results_make_room_for_each_other)
{
    struct batch_job *small, *half, *most, *too_much;
    char              ids[3][ID_BYTES];

    allow(4);
    await_job(small = queue(0, 10, STATUS_OK));
    await_job(half = queue(1, BATCH_RESULTS_KEPT_BYTES_MAX / 2, STATUS_OK));
    memcpy(ids[0], small->entry.id, ID_BYTES);
    memcpy(ids[1], half->entry.id, ID_BYTES);
    batch_job_return(small);
    /* Half is still being read: its bytes count, though it is found no more. */
    await_job(most = queue(2, BATCH_RESULTS_KEPT_BYTES_MAX / 2 + 1, STATUS_OK));
    cr_assert_not(known(ids[0]));
    cr_assert_not(known(ids[1]));
    cr_assert_eq(info(most).state, BATCH_JOB_FAILED);
    cr_assert_eq(info(most).problem.status, STATUS_OVERLOADED);
    cr_assert_eq(f.session->batches.kept_bytes, BATCH_RESULTS_KEPT_BYTES_MAX / 2);
    batch_job_return(half);
    cr_assert_eq(f.session->batches.kept_bytes, 0);
    await_job(too_much = queue(3, BATCH_RESULTS_KEPT_BYTES_MAX + 1ull, STATUS_RANGE_NOT_SATISFIABLE));
    cr_assert_eq(info(too_much).problem.status, STATUS_RANGE_NOT_SATISFIABLE, "how it ended is told all the same");
    await_alive(0);
    batch_job_return(most);
    batch_job_return(too_much);
    cr_assert_eq(f.registry->batch_bytes, 0);
    finish();
}

/* One whose result is kept, of a session. */
static enum batch_job_state keep_in(struct session *s, unsigned number, uint64_t result_bytes)
{
    struct batch_job    *j = NULL;
    enum batch_job_state state;

    cr_assert_eq(batch_job_create_take(s, task(number, 100, result_bytes, STATUS_OK), &j, &f.why), STATUS_OK, "%s", f.why.detail);
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
        cr_assert_eq(keep_in(mine[i], n++, BATCH_RESULTS_KEPT_BYTES_MAX - 4096), BATCH_JOB_SUCCEEDED); /* a task has its bytes, too */
    cr_assert_eq(keep_in(mine[FULL], n++, 1024 * 1024), BATCH_JOB_FAILED, "its caller has its portion");
    f.tenant = (struct tenant){&other, "others", 4, 1 << 30};
    others = fixture_session("s", MEMORY_LIMIT_NONE);
    cr_assert_eq(keep_in(others, n++, BATCH_RESULTS_KEPT_BYTES_MAX / 2), BATCH_JOB_SUCCEEDED);
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
    cr_assert_eq(batch_job_create_take(f.session, task(9, 1, 1, STATUS_OK), &jobs[0], &f.why), STATUS_SESSION_NOT_FOUND);
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
        bool              cancelled;
        if (batch_job_create_take(f.session, task(0, 10, 1000, STATUS_OK), &j, &why))
            continue;
        if ((i + c->number) % 3 == 0)
            batch_job_cancel(j, false, &cancelled, NULL);
        else if (i % 2)
            await_job(j);
        if (i % 5 == 0 && batch_job_finished(j))
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

/* ---- READs that stay on the device ---- */

static struct batch_op fill_op(uint64_t pattern)
{
    return (struct batch_op){
        .kind = BATCH_FILL, .to = SPAN_LITERAL("$a"), .segment = BATCH_NO_SEGMENT, .pattern = pattern, .pattern_bytes = 1};
}

static void read_all(struct batch *b, unsigned op, char *to, size_t bytes)
{
    struct transfer *t = NULL;
    struct bell      bell;

    bell_init(&bell);
    cr_assert_eq(batch_read_begin(b, op, &t, &f.why), STATUS_OK, "%s", f.why.detail);
    for (size_t got, done = 0; done < bytes; done += got) {
        enum status st = transfer_read(t, to + done, bytes - done, &got, &bell.waker);
        cr_assert(st == STATUS_OK || st == STATUS_PENDING);
        if (st)
            bell_wait(&bell);
    }
    transfer_destroy(t);
}

/* Of three READs the first is copied aside, the last one is read from its own buffer. */
Test(batch_async, reads_beyond_the_bound_are_read_later)
{
    const struct batch_op read = {.kind = BATCH_READ, .from = SPAN_LITERAL("$a"), .segment = BATCH_NO_SEGMENT};
    const struct batch_op small = {
        .kind = BATCH_READ, .from = SPAN_LITERAL("$a"), .segment = BATCH_NO_SEGMENT, .has_bytes = true, .bytes = 10};
    const struct batch_op ops[] = {
        {.kind = BATCH_ALLOC, .to = SPAN_LITERAL("$a"), .has_bytes = true, .bytes = 100, .segment = BATCH_NO_SEGMENT},
        fill_op('x'),
        read,
        fill_op('y'),
        small,
        read};
    struct batch_spec spec = {.ops = ops, .ops_count = COUNT(ops), .answer_bytes_max = 50, .answer_limit = "bound", .answer_streams = true};
    struct batch     *b;
    char              got[100], *held;

    cr_assert_eq(batch_create(f.session, &spec, &b, &f.why), STATUS_OK);
    cr_assert_eq(batch_run(b, &f.arena, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert_null(batch_data_take(b, 2));
    held = batch_data_take(b, 4);
    cr_assert_eq(memcmp(held, "yyyyyyyyyy", 10), 0);
    free(held);
    cr_assert_eq(fake_live_allocations(), 2, "the buffer and a copy of it");
    read_all(b, 2, got, 100);
    cr_assert(got[0] == 'x' && got[99] == 'x');
    read_all(b, 5, got, 100);
    cr_assert(got[0] == 'y' && got[99] == 'y');
    batch_destroy(b);
    spec.answer_streams = false;
    cr_assert_eq(batch_create(f.session, &spec, &b, &f.why), STATUS_OK);
    cr_assert_eq(batch_run(b, &f.arena, &f.why), STATUS_BODY_TOO_LARGE);
    cr_assert_eq(f.why.op_index, 2);
    batch_destroy(b);
}

Test(batch_async, a_failure_at_every_step_leaves_nothing)
{
    const struct batch_op ops[] = {
        {.kind = BATCH_ALLOC, .to = SPAN_LITERAL("$a"), .has_bytes = true, .bytes = 100, .segment = BATCH_NO_SEGMENT},
        fill_op('x'),
        {.kind = BATCH_READ, .from = SPAN_LITERAL("$a"), .segment = BATCH_NO_SEGMENT},
        fill_op('y')};
    struct batch_spec spec = {.ops = ops, .ops_count = COUNT(ops), .answer_bytes_max = 50, .answer_limit = "bound", .answer_streams = true};
    unsigned          failures = 0;
    bool              over = false;

    for (int n = 0; !over; n++) {
        struct batch *b = NULL;
        enum status   st;
        start();
        fake_fail_at(n, STATUS_DEVICE_MEMORY_EXHAUSTED);
        st = batch_create(f.session, &spec, &b, &f.why);
        st = st ? st : batch_run(b, &f.arena, &f.why);
        over = fake_fault_unused();
        fake_fail_at(-1, STATUS_OK);
        failures += st != STATUS_OK;
        batch_destroy(b);
        fixture_end(); /* nothing is left */
    }
    cr_assert_geq(failures, 4);
}
