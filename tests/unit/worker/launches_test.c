/* Launches of one stream on a device that the test moves step by step: what stands behind what, and how ends are seen and told. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"
#include "worker/bounds.h"
#include "worker/commands/internal.h"

enum { COMMANDS = 8, PATIENCE_MS = 60000 };

/* In the order of the stream: a launch, or a mark. */
struct step {
    _Atomic uint32_t *word; /* NULL: a launch */
    uint32_t          value;
};

static struct {
    struct step steps[64];
    unsigned    given, done, launches, copies;
    bool        faulted; /* at the step that is next */
    enum status refuses; /* launches, with this */
    enum status marks;   /* what mark() answers */
    unsigned    events;
    bool        waits; /* behind another stream's work */
} dev;

static struct device_worker     w;
static struct accepted_command *commands;
static struct ring              answers; /* the front-end's end */

static struct kernel_table table;

static enum status give(struct step s)
{
    cr_assert_lt(dev.given, COUNT(dev.steps));
    dev.steps[dev.given++] = s;
    return STATUS_OK;
}

static enum status mock_launch(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why)
{
    (void)d, (void)s;
    if (dev.refuses)
        return problem_set(why, dev.refuses, "refused");
    if (l->mark.word && dev.marks)
        return dev.marks;
    dev.launches++;
    give((struct step){NULL, 0});
    return l->mark.word ? give((struct step){l->mark.word, l->mark.value}) : STATUS_OK;
}

/* Launches take their marks with them. */
static enum status mock_mark(struct device *d, struct device_stream *s, struct device_mark mark)
{
    (void)d, (void)s, (void)mark;
    cr_assert_fail("a mark by itself");
    return STATUS_INTERNAL;
}

static enum status mock_stream_query(struct device *d, struct device_stream *s, struct problem *why)
{
    (void)d, (void)s;
    if (dev.faulted)
        return problem_set(why, STATUS_KERNEL_FAULT, "an illegal address");
    return dev.done == dev.given ? STATUS_OK : STATUS_PENDING;
}

static enum status mock_fill(struct device *d, struct device_stream *s, uint64_t to, uint64_t pattern, uint32_t bytes, uint64_t count)
{
    (void)d, (void)s, (void)to, (void)pattern, (void)bytes, (void)count;
    dev.copies++;
    return STATUS_OK;
}

static enum status mock_event_create(struct device *d, struct device_event **out)
{
    (void)d;
    *out = (struct device_event *)(uintptr_t)++dev.events; /* never looked into */
    return STATUS_OK;
}

static enum status mock_event_record(struct device *d, struct device_stream *s, struct device_event *e)
{
    (void)d, (void)s, (void)e;
    return STATUS_OK;
}

/* The event behind a launch is taken before the one before it. */
static enum status mock_event_query(struct device *d, struct device_event *e, struct problem *why)
{
    bool is_before = (uintptr_t)e % 2 == 0;

    return is_before && !dev.waits ? STATUS_OK : mock_stream_query(d, NULL, why);
}

/* One operation of another stream stands before all. */
static void mock_progress(struct device *d, struct device_progress *out)
{
    (void)d;
    *out = (struct device_progress){1 + dev.given, dev.waits ? 0 : 1 + dev.done};
}

static enum status mock_event_elapsed(struct device *d, struct device_event *from, struct device_event *to, float *us)
{
    (void)d, (void)from, (void)to;
    *us = 5;
    return STATUS_OK;
}

static enum status mock_take_output(struct device *d, struct device_stream *s, struct buf *out)
{
    (void)d, (void)s, (void)out;
    return STATUS_OK;
}

static const struct kernel_table *mock_table(const struct device_module *m)
{
    (void)m;
    return &table;
}

static const struct device_ops ops = {.name = "mock",
                                      .launch = mock_launch,
                                      .mark = mock_mark,
                                      .stream_query = mock_stream_query,
                                      .mem_fill = mock_fill,
                                      .event_create = mock_event_create,
                                      .event_record = mock_event_record,
                                      .event_query = mock_event_query,
                                      .event_elapsed = mock_event_elapsed,
                                      .take_output = mock_take_output,
                                      .module_table = mock_table};

static void start(void)
{
    memset(&dev, 0, sizeof dev);
    memset(&w, 0, sizeof w);
    commands = calloc(COMMANDS, sizeof *commands);
    w.ops = &ops;
    cr_assert_eq(shm_create(&w.shm, STAGING_SLICE_BYTES), STATUS_OK);
    ring_init(&w.completions, w.shm.completions, sizeof(struct completion));
    ring_init(&answers, w.shm.completions, sizeof(struct completion));
    TAILQ_INIT(&w.commands_free);
    TAILQ_INIT(&w.barriers);
    for (size_t i = 0; i < COUNT(w.streams); i++)
        TAILQ_INIT(&w.streams[i].queue);
    w.streams[0].used = true;
    w.streams_end = 1;
    w.modules[0].module = (struct device_module *)(uintptr_t)&dev; /* never looked into */
}

static void end(void)
{
    shm_finish(&w.shm);
    free(commands);
}

TestSuite(launches, .init = start, .fini = end);

/* ---- what tests do ---- */

static const struct msg_launch brief = {
    .module = 1, .grid = {1, 1, 1}, .block = {32, 1, 1}, .untimed = 1, .timeout_ms = EXECUTION_TIMEOUT_MS_MAX};

/* Each number once. */
static struct accepted_command *command(unsigned i, uint32_t message)
{
    struct accepted_command *k = &commands[i];

    k->sequence = k->command.call = i + 1;
    k->command.message = message;
    if (message == MESSAGE_LAUNCH)
        k->command.body.launch = brief;
    k->command.body.launch.tag = i;
    return k;
}

static struct accepted_command *launch(unsigned i)
{
    struct accepted_command *k = command(i, MESSAGE_LAUNCH);

    stream_push(&w, &w.streams[0], k);
    return k;
}

static void learn(unsigned times, uint64_t ran_ns)
{
    for (unsigned i = 0; i < times; i++)
        overlap_learn(&w, &brief, ran_ns);
}

/* The device gets so far as behind the n-th launch, and its mark. */
static void device_does(unsigned n)
{
    unsigned launches = 0;

    for (dev.done = 0; dev.done < dev.given && launches <= n; dev.done++) {
        const struct step *s = &dev.steps[dev.done];

        if (!s->word && launches++ == n)
            return;
        if (s->word)
            atomic_store(s->word, s->value);
    }
}

/* The answer that comes next; UINT32_MAX: none. */
static struct completion told(void)
{
    struct completion c = {.kind = UINT32_MAX};
    size_t            bytes;

    sleep_ns((uint64_t)STREAM_ASKED_US * NS_PER_US); /* the device is asked now and then */
    streams_advance(&w);
    if (ring_pop(&answers, &c, &bytes) == STATUS_OK)
        cr_assert_eq(bytes, completion_bytes(&c));
    return c;
}

/* A machine under load lets any launch run for so long that its start is told. */
static struct completion told_but_starts(void)
{
    struct completion c = told();

    while (c.kind == COMPLETION_STARTED)
        c = told();
    return c;
}

static void expect_nothing(void)
{
    cr_assert_eq(told_but_starts().kind, UINT32_MAX);
}

static void expect_done(unsigned i, enum status st)
{
    struct completion c = told_but_starts();

    cr_assert_eq(c.kind, COMPLETION_DONE);
    cr_assert_eq(c.call, i + 1);
    cr_assert_eq(c.status, st, "%s", st ? c.detail : "");
}

/* So many, the first of which has just been given to the device: a machine under load may take too long between two. */
static void launch_at_once(unsigned n)
{
    uint64_t until = deadline_after_ms(PATIENCE_MS);

    do {
        cr_assert(deadline_left_ns(until) > 0);
        end();
        start();
        learn(BRIEF_TIMES, 0);
        for (unsigned i = 0; i < n; i++)
            launch(i);
    } while (w.streams[0].launches != (n < LAUNCHES_IN_FLIGHT_MAX ? n : LAUNCHES_IN_FLIGHT_MAX));
}

static void short_launch(unsigned i, struct stream *s, bool untimed)
{
    struct accepted_command *k = command(i, MESSAGE_LAUNCH);

    k->command.body.launch.timeout_ms = 1;
    k->command.body.launch.untimed = untimed;
    stream_push(&w, s, k);
}

static void expect_end(unsigned i, enum status st)
{
    struct completion c;

    do
        c = told_but_starts();
    while (c.kind == UINT32_MAX);
    cr_assert_eq(c.kind, COMPLETION_DONE);
    cr_assert_eq(c.call, i + 1);
    cr_assert_eq(c.status, st);
}

/* Its command was given to the device first, and stays there for as long as dev.waits. */
static void other_stream_is_busy(unsigned i)
{
    w.streams[1].used = true;
    w.streams_end = 2;
    command(i, MESSAGE_LAUNCH)->command.body.launch.untimed = 0;
    stream_push(&w, &w.streams[1], &commands[i]);
}

static void expect_deadlines_from_its_start(bool untimed)
{
    dev.waits = true;
    if (!untimed)
        other_stream_is_busy(6);
    short_launch(0, &w.streams[0], untimed);
    for (unsigned i = 0; i < 3; i++) {
        sleep_ns(2 * NS_PER_MS);
        expect_nothing();
    }
    dev.waits = false;
    dev.done = dev.given;
    expect_end(0, STATUS_OK);
    if (!untimed)
        expect_end(6, STATUS_OK);
    dev.waits = true;
    if (!untimed)
        other_stream_is_busy(7);
    short_launch(1, &w.streams[0], untimed);
    sleep_ns(2 * NS_PER_MS);
    expect_nothing();
    dev.waits = false;
    expect_end(1, STATUS_EXECUTION_TIMEOUT);
}

static void advance_until_lost(void)
{
    uint64_t until = deadline_after_ms(PATIENCE_MS);

    while (!w.lost) {
        cr_assert(deadline_left_ns(until) > 0);
        streams_advance(&w);
    }
}

static enum status copy_query(struct device *d, struct device_event *e, struct problem *why)
{
    (void)d, (void)e, (void)why;
    return dev.waits ? STATUS_PENDING : STATUS_OK;
}

/* Each on a stream of its own. */
static void two_short_launches_end_the_context(bool untimed)
{
    w.streams[1].used = true;
    w.streams_end = 2;
    for (unsigned i = 0; i < 2; i++)
        short_launch(i, &w.streams[i], untimed);
    advance_until_lost();
}

/* ---- tests ---- */

/* Streams may share a queue of the device, or a device does one thing after another. */
Test(launches, what_waits_on_the_device_behind_another_stream_is_not_overdue)
{
    expect_deadlines_from_its_start(false);
}

/* The device is asked for all of them at once: asked for one after the other, it would have to answer within one turn. */
Test(launches, of_several_that_are_overdue_one_ends_the_context)
{
    struct device_ops late = ops;

    late.faults_late_ms = 5;
    w.ops = &late;
    w.probe = (struct probe){.stream = (struct device_stream *)(uintptr_t)1, .event = (struct device_event *)(uintptr_t)1};
    two_short_launches_end_the_context(true);
}

/* The next answer. */
static void expect_end_of_context(unsigned i, enum status st, const char *text) /* how its detail begins */
{
    struct completion c = told_but_starts();

    cr_assert_eq(c.kind, COMPLETION_DONE);
    cr_assert_eq(c.call, i + 1);
    cr_assert_eq(c.status, st);
    cr_assert_eq(c.worker_session_lost, 1);
    cr_assert_eq(strncmp(c.detail, text, strlen(text)), 0, "%s", c.detail);
}

static void run_for(unsigned i, struct stream *s, uint32_t timeout_ms)
{
    command(i, MESSAGE_LAUNCH)->command.body.launch.timeout_ms = timeout_ms;
    stream_push(&w, s, &commands[i]);
}

/* One that has time left, and what waits behind it, have done nothing wrong. The first report is the session's. A barrier is told that, too. */
Test(launches, what_ran_beside_an_overdue_one_is_told_so)
{
    static const char why[] = "ended for other work of the session: the kernel exceeded its timeout_ms of 1 ms";

    w.streams[1].used = w.streams[2].used = true;
    w.streams_end = 3;
    run_for(0, &w.streams[0], PATIENCE_MS);
    run_for(1, &w.streams[0], 1);
    run_for(2, &w.streams[1], 1);
    TAILQ_INSERT_TAIL(&w.barriers, command(3, MESSAGE_MODULE_UNLOAD), queued);
    advance_until_lost();
    expect_end_of_context(2, STATUS_EXECUTION_TIMEOUT, why + strlen("ended for other work of the session: "));
    expect_end_of_context(0, STATUS_WORKER_LOST, why);
    expect_end_of_context(1, STATUS_WORKER_LOST, why);
    expect_end_of_context(3, STATUS_EXECUTION_TIMEOUT, why + strlen("ended for other work of the session: "));
}

/* The one whose deadline has passed may have waited for what another one did, and that may be done. */
Test(launches, what_is_done_by_then_is_told_so)
{
    w.streams[1].used = true;
    w.streams_end = 2;
    run_for(0, &w.streams[0], 1);
    run_for(1, &w.streams[1], 2);
    sleep_ns(4 * NS_PER_MS);
    atomic_store(dev.steps[3].word, dev.steps[3].value);
    advance_until_lost();
    expect_end(1, STATUS_OK);
    expect_end_of_context(0, STATUS_EXECUTION_TIMEOUT, "the kernel exceeded its timeout_ms of 1 ms");
}

/* Then nobody knows which one faulted, if one did. */
Test(launches, where_the_device_does_not_tell_what_ran_beside_may_have_faulted)
{
    struct device_ops late = ops;

    late.faults_late_ms = 5;
    w.ops = &late;
    w.probe = (struct probe){.stream = (struct device_stream *)(uintptr_t)1, .event = (struct device_event *)(uintptr_t)1};
    dev.waits = true;
    w.streams[1].used = w.streams[2].used = true;
    w.streams_end = 3;
    run_for(0, &w.streams[0], 1);
    run_for(1, &w.streams[1], PATIENCE_MS);
    run_for(2, &w.streams[2], 3);
    advance_until_lost();
    expect_end_of_context(0, STATUS_EXECUTION_TIMEOUT, "the kernel exceeded its timeout_ms of 1 ms, in which");
    expect_end_of_context(2, STATUS_EXECUTION_TIMEOUT, "the kernel exceeded its timeout_ms of 3 ms, in which");
    expect_end_of_context(1, STATUS_WORKER_LOST,
                          "ended for other work of the session, unless this faulted: the kernel exceeded its timeout_ms of 1 ms");
}

Test(launches, each_of_several_that_are_overdue_is_told_its_own_deadline)
{
    w.streams[1].used = true;
    w.streams_end = 2;
    run_for(0, &w.streams[0], 2);
    run_for(1, &w.streams[1], 1);
    sleep_ns(4 * NS_PER_MS);
    advance_until_lost();
    expect_end_of_context(0, STATUS_EXECUTION_TIMEOUT, "the kernel exceeded its timeout_ms of 2 ms");
    expect_end_of_context(1, STATUS_EXECUTION_TIMEOUT, "the kernel exceeded its timeout_ms of 1 ms");
}

/* Each has so long to be told its fault, whenever the question was asked. */
Test(launches, an_answer_that_another_one_waits_for_still_is_waited_for)
{
    struct device_ops late = ops;

    late.faults_late_ms = PATIENCE_MS;
    w.ops = &late;
    w.probe = (struct probe){.stream = (struct device_stream *)(uintptr_t)1, .event = (struct device_event *)(uintptr_t)1, .asked_ns = 1};
    short_launch(0, &w.streams[0], true);
    sleep_ns(2 * NS_PER_MS);
    expect_nothing();
    dev.done = dev.given;
    expect_end(0, STATUS_OK);
}

/* Without work before it there is nothing to wait for: the device hangs. */
Test(launches, the_first_on_a_device_that_hangs_is_overdue)
{
    dev.waits = true;
    two_short_launches_end_the_context(false);
}

Test(launches, what_stands_behind_a_copy_of_its_stream_is_not_overdue)
{
    struct device_ops copies = ops;

    copies.event_query = copy_query;
    w.ops = &copies;
    dev.waits = true;
    stream_push(&w, &w.streams[0], command(0, MESSAGE_MEM_FILL));
    command(1, MESSAGE_LAUNCH)->command.body.launch.timeout_ms = PATIENCE_MS;
    stream_push(&w, &w.streams[0], &commands[1]);
    cr_assert_eq(dev.launches, 1);
    commands[1].started_ns -= 2 * PATIENCE_MS * NS_PER_MS; /* so long ago */
    expect_nothing();
    dev.waits = false;
    expect_end(0, STATUS_OK);
    expect_nothing();
    dev.done = dev.given;
    expect_end(1, STATUS_OK);
}

Test(launches, what_waits_on_a_device_that_does_one_thing_after_another_is_not_overdue)
{
    struct device_ops serial = ops;

    serial.progress = mock_progress;
    w.ops = &serial;
    expect_deadlines_from_its_start(true);
}

Test(launches, brief_ones_stand_behind_each_other_and_end_in_order)
{
    launch_at_once(6);
    cr_assert_eq(dev.launches, LAUNCHES_IN_FLIGHT_MAX);
    device_does(2);
    expect_done(0, STATUS_OK);
    expect_done(1, STATUS_OK);
    device_does(dev.launches);
    expect_done(2, STATUS_OK);
    for (unsigned i = 3; i < 6; i++) {
        device_does(dev.launches);
        expect_done(i, STATUS_OK);
        device_does(dev.launches);
    }
    cr_assert_eq(dev.launches, 6);
    cr_assert_not(streams_in_flight(&w));
}

Test(launches, one_that_has_not_been_brief_goes_alone)
{
    learn(BRIEF_TIMES, 0);
    learn(1, (BRIEF_US + 1) * NS_PER_US);
    learn(BRIEF_TIMES - 1, 0);
    launch(0);
    launch(1);
    cr_assert_eq(dev.launches, 1);
    device_does(1);
    expect_done(0, STATUS_OK);
    cr_assert_eq(dev.launches, 2);
}

Test(launches, nothing_is_given_behind_one_that_runs_for_longer_than_usual)
{
    launch_at_once(1);
    sleep_ns(2 * BRIEF_US * NS_PER_US);
    launch(1);
    cr_assert_eq(dev.launches, 1);
    cr_assert_not_null(streams_withdraw(&w, 1));
}

Test(launches, timed_ones_and_those_that_print_go_alone)
{
    learn(BRIEF_TIMES, 0);
    launch(0);
    command(1, MESSAGE_LAUNCH)->command.body.launch.untimed = 0;
    stream_push(&w, &w.streams[0], &commands[1]);
    cr_assert_eq(dev.launches, 1);
    device_does(1);
    expect_done(0, STATUS_OK);
    launch(2);
    cr_assert_eq(dev.launches, 2);
    device_does(2);
    expect_done(1, STATUS_OK);
    w.prints = true;
    launch(3);
    cr_assert_eq(dev.launches, 3);
}

Test(launches, without_marks_they_go_alone_and_the_stream_tells_their_end)
{
    dev.marks = STATUS_NOT_IMPLEMENTED;
    learn(BRIEF_TIMES, 0);
    launch(0);
    launch(1);
    cr_assert(w.marks_fail);
    cr_assert_eq(dev.launches, 1);
    expect_nothing();
    device_does(1);
    expect_done(0, STATUS_OK);
    device_does(2);
    expect_done(1, STATUS_OK);
}

Test(launches, other_work_waits_for_all_of_them)
{
    launch_at_once(2);
    command(2, MESSAGE_MEM_FILL);
    stream_push(&w, &w.streams[0], &commands[2]);
    device_does(1);
    expect_done(0, STATUS_OK);
    cr_assert_eq(dev.copies, 0);
    device_does(2);
    expect_done(1, STATUS_OK);
    cr_assert_eq(dev.copies, 1);
}

Test(launches, a_fault_is_told_of_the_one_that_ran_when_those_before_were_done)
{
    struct completion c;

    launch_at_once(3);
    device_does(1);
    dev.faulted = true;
    expect_done(0, STATUS_OK);
    c = told();
    cr_assert_eq(c.kind, COMPLETION_STARTED); /* of all that did not succeed */
    cr_assert_eq(c.call, 2);
    expect_done(1, STATUS_KERNEL_FAULT);
    cr_assert(w.lost);
    c = told(); /* with the context; it has not started */
    cr_assert_eq(c.kind, COMPLETION_DONE);
    cr_assert_eq(c.call, 3);
    expect_nothing();
}

Test(launches, what_waits_can_be_withdrawn_and_what_was_given_cannot)
{
    launch_at_once(LAUNCHES_IN_FLIGHT_MAX + 1);
    cr_assert_null(streams_withdraw(&w, 1));
    cr_assert_eq(streams_withdraw(&w, LAUNCHES_IN_FLIGHT_MAX), &commands[LAUNCHES_IN_FLIGHT_MAX]);
    device_does(LAUNCHES_IN_FLIGHT_MAX);
    for (unsigned i = 0; i < LAUNCHES_IN_FLIGHT_MAX; i++)
        expect_done(i, STATUS_OK);
    expect_nothing();
}

Test(launches, the_deadline_of_one_counts_from_the_end_of_the_one_before)
{
    launch_at_once(2);
    commands[1].command.body.launch.timeout_ms = 1;
    sleep_ns(5 * NS_PER_MS);
    expect_nothing();
    device_does(1);
    expect_done(0, STATUS_OK);
    cr_assert_geq(commands[1].started_ns, commands[0].started_ns + 5 * NS_PER_MS);
    sleep_ns(5 * NS_PER_MS);
    expect_done(1, STATUS_EXECUTION_TIMEOUT);
}

Test(launches, one_that_runs_for_longer_is_told_to_have_started_once)
{
    launch(0);
    sleep_ns(2 * START_TOLD_US * NS_PER_US);
    cr_assert_eq(told().kind, COMPLETION_STARTED);
    cr_assert_eq(told().kind, UINT32_MAX);
    device_does(1);
    expect_done(0, STATUS_OK);
}

Test(launches, a_refused_one_has_not_started_and_holds_up_nothing)
{
    dev.refuses = STATUS_LAUNCH_CONFIG_INVALID;
    launch(0);
    dev.refuses = STATUS_OK;
    launch(1);
    cr_assert_eq(dev.launches, 1);
    expect_done(0, STATUS_LAUNCH_CONFIG_INVALID);
    device_does(1);
    expect_done(1, STATUS_OK);
}

Test(launches, one_behind_a_refused_one_that_stood_behind_another_starts_when_that_ends)
{
    uint64_t until = deadline_after_ms(PATIENCE_MS);

    do {
        cr_assert(deadline_left_ns(until) > 0);
        launch_at_once(1);
        dev.refuses = STATUS_LAUNCH_CONFIG_INVALID;
        launch(1);
        dev.refuses = STATUS_OK;
        launch(2);
    } while (w.streams[0].launches != 2);
    device_does(1);
    expect_done(0, STATUS_OK);
    expect_done(1, STATUS_LAUNCH_CONFIG_INVALID);
    expect_nothing();
    device_does(2);
    expect_done(2, STATUS_OK);
    cr_assert_not(streams_in_flight(&w));
}

Test(launches, one_that_loses_the_context_before_it_is_watched_has_started)
{
    dev.refuses = STATUS_KERNEL_FAULT;
    launch(0);
    cr_assert_eq(told().kind, COMPLETION_STARTED);
    expect_done(0, STATUS_KERNEL_FAULT);
}

Test(launches, marks_go_on_when_their_numbers_wrap)
{
    launch_at_once(1);
    device_does(1);
    expect_done(0, STATUS_OK);
    w.streams[0].marks = UINT32_MAX - 1;
    atomic_store(&w.shm.marks[0], UINT32_MAX - 1);
    for (unsigned i = 1; i < 5; i++) {
        launch(i);
        cr_assert_neq(commands[i].mark, 0);
        expect_nothing();
        device_does(dev.launches);
        expect_done(i, STATUS_OK);
    }
    cr_assert_eq(w.streams[0].marks, 3);
}
