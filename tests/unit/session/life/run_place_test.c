/* Batches whose clients go, and the places of runs. */
#include "session/batch/batch_internal.h"
#include "session/life/run_place.h"
#include "unit/session/session_fixture.h"

static void start(unsigned slices)
{
    fixture_start(slices);
    make_module("m", "good");
}

static void start_usual(void)
{
    start(8);
}

TestSuite(run_place, .init = start_usual, .fini = fixture_end);

static struct batch_op launch_op(const char *kernel)
{
    static struct launch_spec specs[8];
    static unsigned           next;
    struct launch_spec       *s = &specs[next++ % COUNT(specs)];

    *s = (struct launch_spec){.kernel = span_of(kernel), .grid = {1, 1, 1}, .block = {1, 1, 1}};
    return (struct batch_op){.kind = BATCH_LAUNCH, .launch = s, .segment = BATCH_NO_SEGMENT};
}

static struct batch_op sync_op(void)
{
    return (struct batch_op){.kind = BATCH_SYNC, .segment = BATCH_NO_SEGMENT};
}

static struct batch_spec spec_of(const struct batch_op *ops, unsigned count)
{
    return (struct batch_spec){
        .ops = ops, .ops_count = count, .module = SPAN_LITERAL("m"), .answer_bytes_max = 1 << 20, .answer_limit = "batch_answer_bytes"};
}

/* Waits for what is freed in the background. */
static void await_memory(uint64_t bytes)
{
    struct session *s = f.session;

    pthread_mutex_lock(&s->lock);
    while (s->memory_bytes != bytes)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* ---- clients that go ---- */

/* Says so when it is asked for the n-th time. */
static bool goes_at(void *left)
{
    unsigned *n = left;

    return *n == 0 || --*n == 0;
}

Test(run_place, without_its_client_it_goes_no_further_and_a_session_of_the_users_stays)
{
    const struct batch_op ops[] = {
        (struct batch_op){.kind = BATCH_ALLOC, .to = SPAN_LITERAL("$a"), .has_bytes = true, .bytes = 8, .segment = BATCH_NO_SEGMENT},
        launch_op("noop"), sync_op(), launch_op("fault")};
    struct batch_spec spec = spec_of(ops, COUNT(ops));
    unsigned          questions = 4;
    struct batch     *b;

    cr_assert_eq(batch_create(f.session, &spec, &b, &f.why), STATUS_OK);
    batch_watch(b, goes_at, &questions, false);
    cr_assert_not(batch_begun(b));
    cr_assert_eq(batch_run(b, &f.arena, &f.why), STATUS_CANCELLED);
    cr_assert(batch_begun(b));
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_OK, "the last operation was not done");
    batch_destroy(b);
    await_memory(0);
}

static struct session *session_at(const struct run_place *p)
{
    struct session *s = NULL;

    cr_assert_eq(run_session(f.registry, &f.tenant, p, &s, &f.why), STATUS_OK, "%s", f.why.detail);
    return s;
}

Test(run_place, without_its_client_what_runs_on_a_session_for_it_alone_ends_with_it)
{
    const struct batch_op ops[] = {launch_op("wait")};
    struct batch_spec     spec = spec_of(ops, COUNT(ops));
    struct run_place      place = {0};
    unsigned              questions = 3;
    struct session       *mine, *h, *next;
    struct batch         *b;

    mine = f.session;
    cr_assert_eq(run_enter(f.registry, &f.tenant, &place, NULL), STATUS_OK);
    f.session = h = session_at(&place);
    make_module("m", "good");
    cr_assert_eq(batch_create(h, &spec, &b, &f.why), STATUS_OK);
    batch_watch(b, goes_at, &questions, true);
    cr_assert_eq(batch_run(b, &f.arena, &f.why), STATUS_CANCELLED);
    next = session_at(&place);
    cr_assert_neq(next, h);
    cr_assert_eq(session_usable(next, &f.why), STATUS_OK);
    cr_assert_eq(session_usable(mine, &f.why), STATUS_OK);
    cr_assert_not(budget_is_spent(next));
    batch_destroy(b);
    session_return(h);
    session_return(next);
    run_leave(f.registry, &place);
    f.session = mine;
}

/* ---- places of runs ---- */

Test(run_place, runs_have_places_of_their_own_and_wait_for_one)
{
    struct run_place  places[RUNS_AT_ONCE_PER_CALLER + 2] = {0}, others = {0};
    struct run_place *late = &places[RUNS_AT_ONCE_PER_CALLER], *later = late + 1;
    struct tenant     other = {.owner = &other, .name = "other", .sessions_max = 8, .memory_max_bytes = UINT64_MAX};
    struct bell       bells[2];

    fake_spare(0, 8);
    bell_init(&bells[0]);
    bell_init(&bells[1]);
    for (unsigned i = 0; i < RUNS_AT_ONCE_PER_CALLER; i++) {
        cr_assert_eq(run_enter(f.registry, &f.tenant, &places[i], NULL), STATUS_OK);
        cr_assert_eq(places[i].number, i);
    }
    cr_assert_eq(run_enter(f.registry, &f.tenant, late, &bells[0].waker), STATUS_PENDING);
    cr_assert_eq(run_enter(f.registry, &f.tenant, later, &bells[1].waker), STATUS_PENDING);
    cr_assert_eq(run_enter(f.registry, &other, &others, NULL), STATUS_OK, "another caller");
    run_leave(f.registry, &others);
    run_leave(f.registry, later);
    cr_assert_eq(bell_rung(&bells[0]), 0);
    run_leave(f.registry, &places[2]);
    cr_assert_eq(bell_rung(&bells[0]), 1);
    cr_assert_eq(bell_rung(&bells[1]), 0, "it had gone");
    cr_assert_eq(run_enter(f.registry, &f.tenant, late, &bells[0].waker), STATUS_OK);
    cr_assert_eq(late->number, 2);
    for (unsigned i = 0; i < COUNT(places); i++)
        run_leave(f.registry, &places[i]);
    cr_assert(LIST_EMPTY(&f.registry->runs));
}

Test(run_place, runs_share_the_workers_that_there_are)
{
    struct run_place first = {0}, second = {0};
    struct bell      bell;
    struct session  *s;

    fake_spare(1, 0);
    bell_init(&bell);
    cr_assert_eq(run_enter(f.registry, &f.tenant, &first, NULL), STATUS_OK, "the first is refused by nobody but the pool");
    cr_assert_eq(run_enter(f.registry, &f.tenant, &second, &bell.waker), STATUS_PENDING);
    s = session_at(&first);
    run_leave(f.registry, &first);
    cr_assert_eq(bell_rung(&bell), 1);
    cr_assert_eq(run_enter(f.registry, &f.tenant, &second, &bell.waker), STATUS_OK);
    cr_assert_eq(second.number, 0, "one that has its session comes first");
    fake_spare(0, 8);
    cr_assert_eq(run_enter(f.registry, &f.tenant, &first, NULL), STATUS_OK);
    run_leave(f.registry, &first);
    run_leave(f.registry, &second);
    session_return(s);
}
