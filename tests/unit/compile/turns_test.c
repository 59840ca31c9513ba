/* Turns to compile: shares, order, built-in kernels first, bounds, and the end. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/deadline.h"
#include "limits.h"
#include "pool/compile/turns.h"
#include "unit/compile/support.h"

static struct compile_turns turns;

static void end(void)
{
    compile_turns_finish(&turns);
}

TestSuite(turns, .fini = end);

/* A thread that wants a turn. */
struct asker {
    struct compile_turn turn;
    struct compile_for  whom;
    pthread_t           thread;
    enum status         st;
    _Atomic bool        answered;
};

static void *ask(void *argument)
{
    struct asker *a = argument;

    a->st = compile_turn_take(&turns, &a->turn, a->whom, deadline_after_ms(PATIENT_MS));
    a->answered = true;
    return NULL;
}

static unsigned arrived(void)
{
    unsigned n = 0;

    pthread_mutex_lock(&turns.lock);
    for (const struct compile_turn *t = TAILQ_FIRST(&turns.all); t; t = TAILQ_NEXT(t, listed))
        n++;
    pthread_mutex_unlock(&turns.lock);
    return n;
}

/* Starts to wait after all earlier askers. */
static void begin(struct asker *a, const char *caller, bool builtin)
{
    unsigned before = arrived();

    *a = (struct asker){.whom = {caller, builtin}, .st = STATUS_PENDING};
    cr_assert_eq(pthread_create(&a->thread, NULL, ask, a), 0);
    while (arrived() == before)
        sched_yield();
}

static void got(struct asker *a)
{
    pthread_join(a->thread, NULL);
    cr_assert_eq(a->st, STATUS_OK);
}

static bool waits(struct asker *a)
{
    bool running;

    pthread_mutex_lock(&turns.lock);
    running = a->turn.running;
    pthread_mutex_unlock(&turns.lock);
    return !running && !a->answered;
}

static void give(struct asker *a)
{
    compile_turn_give(&turns, &a->turn);
}

Test(turns, a_caller_never_has_all_of_them)
{
    struct asker a[4], b;

    compile_turns_init(&turns, 4, 3);
    for (unsigned i = 0; i < 4; i++)
        begin(&a[i], "alice", false);
    for (unsigned i = 0; i < 3; i++)
        got(&a[i]);
    cr_assert(waits(&a[3]));
    begin(&b, "bob", false);
    got(&b);
    cr_assert(waits(&a[3]));
    give(&b);
    cr_assert(waits(&a[3]), "it is nobody else's turn that is free");
    give(&a[1]);
    got(&a[3]);
    give(&a[0]);
    give(&a[2]);
    cr_assert(compile_turn_give(&turns, &a[3].turn), "nothing compiles");
}

Test(turns, a_lone_caller_may_have_all_where_nobody_shares)
{
    struct asker a[4];

    compile_turns_init(&turns, 4, 4);
    for (unsigned i = 0; i < 4; i++) {
        begin(&a[i], NULL, false);
        got(&a[i]);
    }
    for (unsigned i = 0; i < 4; i++)
        cr_assert_eq(compile_turn_give(&turns, &a[i].turn), i == 3);
}

Test(turns, go_round_the_callers_and_within_one_by_arrival)
{
    struct asker a[4], b[2];

    compile_turns_init(&turns, 1, 1);
    for (unsigned i = 0; i < 4; i++)
        begin(&a[i], "alice", false);
    got(&a[0]);
    begin(&b[0], "bob", false);
    begin(&b[1], "bob", false);
    give(&a[0]);
    got(&b[0]);
    give(&b[0]);
    got(&a[1]);
    give(&a[1]);
    got(&b[1]);
    cr_assert(waits(&a[2]) && waits(&a[3]));
    give(&b[1]);
    got(&a[2]);
    give(&a[2]);
    got(&a[3]);
    give(&a[3]);
}

Test(turns, built_in_kernels_have_one_of_their_own_and_go_first)
{
    struct asker source, next, one, other;

    compile_turns_init(&turns, 1, 1);
    begin(&source, "alice", false);
    got(&source);
    begin(&one, "bob", true);
    got(&one);
    begin(&next, "carol", false);
    begin(&other, "alice", true);
    cr_assert(waits(&other) && waits(&next));
    give(&source);
    got(&other);
    cr_assert(waits(&next));
    give(&one);
    got(&next);
    give(&next);
    cr_assert(compile_turn_give(&turns, &other.turn));
}

Test(turns, so_many_of_a_caller_wait_and_others_as_before)
{
    static struct asker a[1 + COMPILE_WAITING_PER_CALLER_MAX];
    struct asker        b, builtin;
    struct compile_turn more;

    compile_turns_init(&turns, 1, 1);
    for (unsigned i = 0; i < COUNT(a); i++)
        begin(&a[i], "alice", false);
    got(&a[0]);
    cr_assert_eq(compile_turn_take(&turns, &more, (struct compile_for){"alice", false}, DEADLINE_NEVER), STATUS_TOO_MANY_IN_FLIGHT);
    begin(&b, "bob", false);
    begin(&builtin, "alice", true);
    got(&builtin);
    cr_assert(waits(&b));
    cr_assert_eq(compile_turns_waiting(&turns, "alice"), COMPILE_WAITING_PER_CALLER_MAX);
    cr_assert_eq(compile_turns_waiting(&turns, "bob"), 1);
    give(&a[0]);
    got(&b);
    cr_assert_eq(compile_turns_waiting(&turns, "bob"), 0);
    give(&builtin);
    give(&b);
    for (unsigned i = 1; i < COUNT(a); i++) {
        got(&a[i]);
        give(&a[i]);
    }
}

Test(turns, who_gets_none_in_time_leaves_nothing)
{
    struct asker        a;
    struct compile_turn late;

    compile_turns_init(&turns, 1, 1);
    begin(&a, "alice", false);
    got(&a);
    cr_assert_eq(compile_turn_take(&turns, &late, (struct compile_for){"bob", false}, deadline_after_ms(1)), STATUS_OVERLOADED);
    cr_assert_eq(arrived(), 1);
    cr_assert(compile_turn_give(&turns, &a.turn));
}

Test(turns, closed_ones_let_everybody_go)
{
    struct asker        a, b;
    struct compile_turn late;

    compile_turns_init(&turns, 1, 1);
    begin(&a, "alice", false);
    got(&a);
    begin(&b, "bob", false);
    compile_turns_close(&turns);
    pthread_join(b.thread, NULL);
    cr_assert_eq(b.st, STATUS_DRAINING);
    cr_assert_eq(compile_turn_take(&turns, &late, (struct compile_for){"bob", true}, DEADLINE_NEVER), STATUS_DRAINING);
    cr_assert(compile_turn_give(&turns, &a.turn));
}
