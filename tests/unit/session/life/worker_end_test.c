/* Ends of workers that only a process can have, and how a reset heals them. */
#include "unit/session/session_fixture.h"

TestSuite(worker_end, .init = fixture_usual, .fini = fixture_end);

static void expect_end(const char *kernel, uint64_t timeout_ms, enum status st, int cuda_result)
{
    struct launch_spec spec = {.module = SPAN_LITERAL("m"),
                               .kernel = span_of(kernel),
                               .grid = {1, 1, 1},
                               .block = {1, 1, 1},
                               .timeout_ms = timeout_ms,
                               .spin_ns = 1000000};
    struct launch     *l = NULL;
    bool               created;

    make_module("m", "fake image");
    cr_assert_eq(launch_submit(f.session, &spec, &l, &created, &f.why), STATUS_OK, "%s", f.why.detail);
    await_end(l);
    cr_assert_eq(info_of(l).state, WORK_FAILED);
    cr_assert_eq(info_of(l).problem->status, st, "%s", info_of(l).problem->detail);
    cr_assert_eq(info_of(l).problem->cuda_result, cuda_result);
    launch_return(l);
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_SESSION_FAULTED);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK, "%s", f.why.detail);
    make_module("m", "fake image");
    l = launch_of("", "descriptors");
    await_end(l);
    cr_assert_eq(info_of(l).state, WORK_SUCCEEDED);
    cr_assert_gt(info_of(l).output.bytes, 0);
    launch_return(l);
}

Test(worker_end, a_kernel_past_its_deadline_ends_and_a_reset_heals)
{
    expect_end("endless", 50, STATUS_EXECUTION_TIMEOUT, 0);
}

Test(worker_end, a_fault_is_reported_as_such_and_a_reset_heals)
{
    expect_end("fault", 0, STATUS_KERNEL_FAULT, 700);
}

Test(worker_end, a_crash_is_a_lost_worker_and_a_reset_heals)
{
    expect_end("crash", 0, STATUS_WORKER_LOST, 0);
}

Test(worker_end, deleting_the_session_ends_an_endless_kernel)
{
    struct launch *l;

    make_module("m", "fake image");
    l = launch_of("", "endless");
    cr_assert_eq(session_delete(f.session, &f.why), STATUS_OK);
    await_end(l);
    cr_assert_eq(info_of(l).state, WORK_CANCELLED);
    cr_assert_eq(registry_count(f.registry), 0);
    launch_return(l);
}
