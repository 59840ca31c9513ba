/* Lists, events and graphs in a real worker process, on the misbehaving device. */
#include "unit/pool/one_worker.h"
#include "worker/bounds.h"

#include <stdlib.h>

#include "ipc/command_list.h"

enum { NUMBERS = 4 };

struct add_params {
    uint64_t at;
    uint32_t count;
};

static struct {
    struct add_params   params;
    struct slice        slice;
    struct run_state   *state;
    struct command_list list;
    struct call         call;
} s;

static void start(void)
{
    one_worker_start();
    s.params = (struct add_params){memory_of(w, NUMBERS * 4), NUMBERS};
    cr_assert_eq(
        worker_mem_fill(w, &(struct msg_mem_fill){.pattern_bytes = 4, .to = s.params.at, .count = NUMBERS}, NULL, deadline(), NULL),
        STATUS_OK);
    cr_assert_eq(staging_take(w, 1, &s.slice, NULL), STATUS_OK);
    s.state = (struct run_state *)(void *)s.slice.data;
    s.list = (struct command_list){.at = s.slice.data + sizeof *s.state, .room = s.slice.ref.bytes - sizeof *s.state};
}

static void end(void)
{
    staging_give(w, &s.slice);
    one_worker_end();
}

TestSuite(worker_runs, .init = start, .fini = end);

static void add(uint32_t kernel, uint64_t tag)
{
    uint32_t          ms = 30;
    struct msg_launch m =
        kernel == KERNEL_SLOW ? launch_of(module, kernel, 0, tag, &ms, 4) : launch_of(module, kernel, 0, tag, &s.params, 12);

    cr_assert(command_list_add(&s.list, MESSAGE_LAUNCH, &m, message_bytes(MESSAGE_LAUNCH), m.params, m.params_bytes));
}

/* One that works, this one, and another that works. */
static void add_around(uint32_t kernel)
{
    add(KERNEL_ADD_ONE, 1);
    add(kernel, 2);
    add(KERNEL_ADD_ONE, 3);
}

static void clear(void)
{
    s.list.bytes = s.list.count = 0;
}

static struct shm_ref list_ref(void)
{
    return (struct shm_ref){s.slice.ref.offset + sizeof *s.state, s.list.bytes};
}

static struct shm_ref state_ref(void)
{
    return (struct shm_ref){s.slice.ref.offset, sizeof *s.state};
}

static enum status run(uint64_t timeout_ms)
{
    struct msg_command_list m = {.count = s.list.count, .list = list_ref(), .state = state_ref(), .timeout_ms = timeout_ms};

    s.call = (struct call){.deadline_ns = deadline()};
    cr_assert_eq(worker_submit_command_list(w, &m, &s.call), STATUS_OK);
    return call_wait(w, &s.call);
}

static uint32_t first_number(void)
{
    struct slice to;
    uint32_t     value;

    cr_assert_eq(staging_take(w, 4, &to, NULL), STATUS_OK);
    cr_assert_eq(worker_mem_read(w, &(struct msg_mem_read){.from = s.params.at, .to = {to.ref.offset, 4}}, NULL, deadline(), NULL),
                 STATUS_OK);
    memcpy(&value, to.data, 4);
    staging_give(w, &to);
    return value;
}

/* The device's events are limited: with more than a few entries, groups are watched. */
Test(worker_runs, all_entries_run_in_groups)
{
    for (uint64_t i = 0; i < RUN_ITEMS_MAX; i++)
        add(KERNEL_ADD_ONE, i + 1);
    cr_assert_eq(run(10000), STATUS_OK, "%s", s.call.problem.detail);
    cr_assert_eq(atomic_load(&s.state->completed), RUN_ITEMS_MAX);
    cr_assert_eq(s.state->group, RUN_GROUP_ITEMS);
    for (unsigned i = 0; i < RUN_ITEMS_MAX / RUN_GROUP_ITEMS; i++)
        cr_assert(s.state->gpu_us[i] >= 0);
    cr_assert(s.state->gpu_us[RUN_ITEMS_MAX / RUN_GROUP_ITEMS] < 0);
    cr_assert_eq(first_number(), RUN_ITEMS_MAX);
}

Test(worker_runs, a_few_entries_are_timed_one_by_one)
{
    add_around(KERNEL_SLOW);
    cr_assert_eq(run(10000), STATUS_OK);
    cr_assert_eq(s.state->group, 1);
    cr_assert(s.state->gpu_us[0] >= 0 && s.state->gpu_us[1] >= 0 && s.state->gpu_us[2] >= 0);
    cr_assert_eq(first_number(), 2);
}

static void add_untimed(uint32_t kernel, uint64_t tag)
{
    uint32_t          ms = 30;
    struct msg_launch m =
        kernel == KERNEL_SLOW ? launch_of(module, kernel, 0, tag, &ms, 4) : launch_of(module, kernel, 0, tag, &s.params, 12);

    m.untimed = 1;
    cr_assert(command_list_add(&s.list, MESSAGE_LAUNCH, &m, message_bytes(MESSAGE_LAUNCH), m.params, m.params_bytes));
}

/* Each group and each single entry has one event behind it, and two more where it is timed. */
Test(worker_runs, entries_that_are_not_timed_have_the_workers_time)
{
    for (uint64_t i = 0; i < 2 * RUN_GROUP_ITEMS; i++)
        add_untimed(i == RUN_GROUP_ITEMS ? KERNEL_SLOW : KERNEL_ADD_ONE, i + 1);
    cr_assert_eq(run(10000), STATUS_OK, "%s", s.call.problem.detail);
    cr_assert(s.state->gpu_us[0] >= 0 && s.state->gpu_us[1] >= 25000 && s.state->gpu_us[2] < 0, "%f", (double)s.state->gpu_us[1]);
    cr_assert_eq(first_number(), 2 * RUN_GROUP_ITEMS - 1);
    clear();
    add_untimed(KERNEL_SLOW, 1);
    add(KERNEL_ADD_ONE, 2);
    cr_assert_eq(run(10000), STATUS_OK, "%s", s.call.problem.detail);
    cr_assert(s.state->gpu_us[0] >= 29000 && s.state->gpu_us[1] >= 0);
}

/* The number of finished entries is exact, both in groups and one by one; later ones do not run, and the context stays usable. */
Test(worker_runs, one_that_the_device_refuses_ends_the_list_there)
{
    uint32_t expected = 0;

    for (unsigned count = 3; count <= 40; count += 37)
        for (unsigned bad = 0; bad<count; bad += count> 3 ? 13 : 1) {
            clear();
            for (unsigned i = 0; i < count; i++)
                add(i == bad ? KERNEL_REFUSE : KERNEL_ADD_ONE, i + 1);
            cr_assert_eq(run(10000), STATUS_LAUNCH_CONFIG_INVALID);
            cr_assert_not(s.call.worker_session_lost);
            cr_assert_eq(atomic_load(&s.state->completed), bad, "%u of %u", bad, count);
            expected += bad;
            cr_assert_eq(first_number(), expected);
        }
}

Test(worker_runs, a_fault_ends_the_worker_and_the_state_says_how_far_it_came)
{
    add_around(KERNEL_FAULT);
    cr_assert_eq(run(10000), STATUS_KERNEL_FAULT);
    cr_assert(s.call.worker_session_lost);
    cr_assert_eq(s.call.problem.cuda_result, 700);
    cr_assert_leq(atomic_load(&s.state->completed), 1, "more is known to be done than can be");
}

Test(worker_runs, a_list_has_a_deadline_as_a_whole)
{
    add(KERNEL_ADD_ONE, 1);
    add(KERNEL_ENDLESS, 2);
    cr_assert_eq(run(100), STATUS_EXECUTION_TIMEOUT);
    cr_assert_leq(atomic_load(&s.state->completed), 1);
}

Test(worker_runs, a_stumbling_event_ends_the_list_alone)
{
    add_around(KERNEL_STUMBLE);
    cr_assert_eq(run(10000), STATUS_OUT_OF_MEMORY);
    cr_assert_not(s.call.worker_session_lost);
    clear();
    add(KERNEL_ADD_ONE, 4);
    cr_assert_eq(run(10000), STATUS_OK);
}

Test(worker_runs, malformed_lists_are_refused)
{
    struct shm_ref list, state = state_ref();

    add(KERNEL_ADD_ONE, 1);
    add(KERNEL_ADD_ONE, 2);
    list = list_ref();
    const struct msg_command_list bad[] = {
        {.count = 3, .list = list, .state = state},
        {.count = 0, .list = list, .state = state},
        {.count = 2, .list = {list.offset, list.bytes - 8}, .state = state},
        {.count = 2, .list = {UINT64_MAX, list.bytes}, .state = state},
        {.count = 2, .list = list, .state = {state.offset, state.bytes - 1}},
        {.count = 2, .list = list, .state = {state.offset + 4, state.bytes}},
        {.count = 2, .list = list, .state = state, .stream = 99},
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct msg_command_list m = bad[i];

        m.timeout_ms = 1000;
        cr_assert_eq(worker_command_list(w, &m, NULL, deadline(), NULL), STATUS_INVALID_REQUEST, "%zu", i);
    }
    cr_assert_eq(first_number(), 0);
}

static struct call *submit_event(enum message m, uint32_t stream, struct event_name e)
{
    struct call *c = calloc(1, sizeof *c);

    c->deadline_ns = deadline();
    if (m == MESSAGE_EVENT_RECORD)
        cr_assert_eq(worker_submit_event_record(w, &(struct msg_event_record){stream, e}, c), STATUS_OK);
    else
        cr_assert_eq(worker_submit_event_wait(w, &(struct msg_event_wait){stream, e}, c), STATUS_OK);
    return c;
}

static enum status end_of(struct call *c)
{
    enum status st = call_wait(w, c);

    free(c);
    return st;
}

Test(worker_runs, one_stream_waits_for_another_and_time_is_told)
{
    struct msg_stream_create_reply other;
    struct msg_event_elapsed_reply elapsed;
    const struct event_name        first = {3, 1}, second = {4, 2}, again = {3, 7};
    struct call                   *calls[4];
    struct problem                 why = {0};

    cr_assert_eq(worker_stream_create(w, &(struct msg_stream_create){0}, &other, deadline(), NULL), STATUS_OK);
    calls[0] = submit_event(MESSAGE_EVENT_RECORD, 0, first);
    add(KERNEL_SLOW, 1);
    cr_assert_eq(run(10000), STATUS_OK);
    calls[1] = submit_event(MESSAGE_EVENT_RECORD, 0, second);
    calls[2] = submit_event(MESSAGE_EVENT_WAIT, other.stream, second);
    cr_assert_eq(worker_event_elapsed(w, &(struct msg_event_elapsed){first, second}, &elapsed, deadline(), &why), STATUS_OK, "%s",
                 why.detail);
    cr_assert(elapsed.us >= 29000, "%f us", (double)elapsed.us);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(end_of(calls[i]), STATUS_OK);
    /* A place is reused: waiters for the new record wait for it, not for the old one. */
    calls[0] = submit_event(MESSAGE_EVENT_WAIT, other.stream, again);
    cr_assert_not(call_wait_until(w, calls[0], deadline_after_ms(50)));
    calls[1] = submit_event(MESSAGE_EVENT_RECORD, 0, again);
    cr_assert_eq(end_of(calls[0]), STATUS_OK);
    cr_assert_eq(end_of(calls[1]), STATUS_OK);
    cr_assert_eq(worker_event_record(w, &(struct msg_event_record){0, {EVENTS_PER_SESSION_MAX, 1}}, NULL, deadline(), NULL),
                 STATUS_INVALID_REQUEST);
    cr_assert_eq(worker_event_elapsed(w, &(struct msg_event_elapsed){first, {1, 0}}, NULL, deadline(), NULL), STATUS_INVALID_REQUEST);
}

/* A list that ends early still makes its records; otherwise their waiters would wait for ever. */
Test(worker_runs, records_behind_a_refused_launch_are_made)
{
    struct msg_stream_create_reply other;
    struct msg_event_record        r = {0, {5, 9}};
    struct call                   *waiting;

    cr_assert_eq(worker_stream_create(w, &(struct msg_stream_create){0}, &other, deadline(), NULL), STATUS_OK);
    add_around(KERNEL_REFUSE);
    cr_assert(command_list_add(&s.list, MESSAGE_EVENT_RECORD, &r, sizeof r, NULL, 0));
    waiting = submit_event(MESSAGE_EVENT_WAIT, other.stream, r.event);
    cr_assert_eq(run(10000), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(end_of(waiting), STATUS_OK);
    cr_assert_eq(first_number(), 1);
}

static enum status graph_run(uint32_t graph, struct problem *why)
{
    struct msg_graph_run m = {.graph = graph, .count = s.list.count, .list = list_ref(), .state = state_ref(), .timeout_ms = 10000};

    return worker_graph_run(w, &m, NULL, deadline(), why);
}

Test(worker_runs, graphs_run_change_and_end)
{
    struct msg_graph_create_reply made;
    struct msg_graph_create       create;
    struct problem                why = {0};

    for (uint64_t i = 0; i < 5; i++)
        add(KERNEL_ADD_ONE, i);
    create = (struct msg_graph_create){5, list_ref()};
    cr_assert_eq(worker_graph_create(w, &create, &made, deadline(), &why), STATUS_OK, "%s", why.detail);
    clear();
    cr_assert_eq(graph_run(made.graph, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(graph_run(made.graph, &why), STATUS_OK);
    cr_assert_eq(first_number(), 10);
    cr_assert_eq(atomic_load(&s.state->completed), 5);
    cr_assert_eq(s.state->group, 5);
    cr_assert(s.state->gpu_us[0] >= 0);
    add(KERNEL_SLOW, 2); /* in place of the third */
    cr_assert_eq(graph_run(made.graph, &why), STATUS_OK);
    clear();
    cr_assert_eq(graph_run(made.graph, &why), STATUS_OK);
    cr_assert_eq(first_number(), 18);
    add(KERNEL_REFUSE, 0);
    cr_assert_eq(graph_run(made.graph, &why), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(first_number(), 18);
    create = (struct msg_graph_create){1, list_ref()};
    cr_assert_eq(worker_graph_create(w, &create, &made, deadline(), &why), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(worker_graph_destroy(w, &(struct msg_graph_destroy){made.graph}, NULL, deadline(), &why), STATUS_OK);
    cr_assert_eq(worker_graph_destroy(w, &(struct msg_graph_destroy){made.graph}, NULL, deadline(), &why), STATUS_INVALID_REQUEST);
    cr_assert_eq(graph_run(made.graph, &why), STATUS_INVALID_REQUEST);
}
