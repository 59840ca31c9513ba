/* Launches: their life, their order, their watchers, and what a fault does to them. */
#include "unit/session/session_fixture.h"

static void start(void)
{
    fixture_start(4);
    make_module("m", "code");
}

TestSuite(launch, .init = start, .fini = fixture_end);

static enum status submit(struct launch_spec *spec, struct launch **l)
{
    spec->module = spec->module.bytes ? spec->module : SPAN_LITERAL("m");
    return launch_submit(f.session, spec, l, &f.created, &f.why);
}

static struct launch_spec one_thread(const char *kernel)
{
    return (struct launch_spec){.kernel = span_of(kernel), .grid = {1, 1, 1}, .block = {1, 1, 1}};
}

static struct launch *increment(const char *buffer, uint32_t n)
{
    struct launch_arg  args[] = {{.kind = ARG_BUFFER, .buffer = span_of(buffer)}, {.kind = ARG_SCALAR, .scalar_bytes = 4, .value = n}};
    struct launch_spec spec = one_thread("increment");
    struct launch     *l = NULL;

    spec.args = args;
    spec.args_count = 2;
    cr_assert_eq(submit(&spec, &l), STATUS_OK, "%s", f.why.detail);
    return l;
}

Test(launch, computes_and_tells_so)
{
    struct launch     *l;
    struct launch_info info;
    uint64_t           epoch;

    make_buffer("a", 4);
    upload("a", SPAN_LITERAL("aaaa"));
    epoch = session_epoch(f.session);
    l = increment("a", 4);
    await_end(l);
    info = info_of(l);
    cr_assert_eq(info.state, WORK_SUCCEEDED);
    cr_assert_str_eq(info.kernel, "increment");
    cr_assert_str_eq(info.module, "m");
    cr_assert_eq(info.gpu_us, 2.5);
    cr_assert(info.created_wall_ns && info.started_wall_ns && info.finished_wall_ns);
    cr_assert_eq(byte_at("a", 0), 'b');
    cr_assert_eq(session_epoch(f.session), epoch + 1);
    cr_assert_eq(session_now().device_time_us, 2);
    launch_return(l);
}

Test(launch, spinning_sees_the_end)
{
    struct launch *l;

    make_buffer("a", 4);
    {
        struct launch_spec spec = one_thread("noop");

        spec.spin_ns = 60 * NS_PER_S;
        cr_assert_eq(submit(&spec, &l), STATUS_OK, "%s", f.why.detail);
    }
    cr_assert(waitlist_over(launch_end(l)), "nobody else had to look");
    launch_return(l);
}

Test(launch, output_is_there_when_it_has_finished)
{
    struct launch *l;

    l = launch_of("p", "print");
    await_end(l);
    cr_assert_eq(info_of(l).state, WORK_SUCCEEDED);
    cr_assert(span_is(info_of(l).output, "printed\n"));
    cr_assert(!info_of(l).output_truncated);
    cr_assert_eq(fake_slices_used(), 0);
    launch_return(l);
}

/* One that prints, but has not told so: uploads hold both slices of staging. */
static struct launch *untold(struct transfer **first, struct transfer **second)
{
    static char    slice[STAGING_SLICE_BYTES];
    struct launch *l;
    size_t         n;

    fixture_start(2);
    make_module("m", "code");
    make_buffer("a", 2 * STAGING_SLICE_BYTES);
    make_buffer("b", 8);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("a"), 0, sizeof slice, NULL, first, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(*first, (struct span){slice, 1}, &n, NULL, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write_begin(f.session, SPAN_LITERAL("b"), 0, 8, NULL, second, &f.why), STATUS_OK);
    cr_assert_eq(transfer_write(*second, SPAN_LITERAL("x"), &n, NULL, &f.why), STATUS_OK);
    l = launch_of("p", "print");
    cr_assert_eq(session_sync(f.session, (struct span){0}, &f.why), STATUS_OK);
    cr_assert(!waitlist_over(launch_end(l)), "its text cannot be fetched yet");
    return l;
}

Test(launch, output_waits_for_staging)
{
    struct transfer *t, *other;
    struct launch   *l = untold(&t, &other);

    transfer_destroy(t);
    await_end(l);
    cr_assert(span_is(info_of(l).output, "printed\n"));
    transfer_destroy(other);
    launch_return(l);
}

Test(launch, output_that_never_came_is_truncated_to_nothing)
{
    struct transfer *t, *other;
    struct launch   *l = untold(&t, &other);

    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    await_end(l); /* who was just about to fetch the text ends it, maybe after the reset */
    cr_assert_eq(info_of(l).state, WORK_SUCCEEDED);
    cr_assert_eq(info_of(l).output.bytes, 0);
    cr_assert(info_of(l).output_truncated);
    launch_return(l);
    transfer_destroy(t);
    transfer_destroy(other);
}

static void *launch_many(void *unused)
{
    (void)unused;
    for (int i = 0; i < 60; i++) {
        struct launch_spec spec = one_thread(i % 7 == 3 ? "print" : "noop");
        struct launch     *l;
        struct problem     why;
        bool               created, cancelled;
        spec.module = SPAN_LITERAL("m");
        spec.stream = i % 2 ? SPAN_LITERAL("odd") : (struct span){0};
        spec.spin_ns = 10000;
        if (launch_submit(f.session, &spec, &l, &created, &why))
            continue;
        if (i % 5 == 0)
            launch_cancel(f.session, l, &cancelled, &why);
        finish_launch(l);
    }
    return NULL;
}

Test(launch, every_launch_ends_while_sessions_are_reset)
{
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, launch_many, NULL);
    for (int i = 0; i < 6; i++) {
        struct module_spec spec = {.id = SPAN_LITERAL("m"), .kind = IMAGE_PTX, .source = SPAN_LITERAL("code")};
        struct module     *m;
        cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
        cr_assert_eq(fixture_module(f.session, spec, &m, &f.created), STATUS_OK, "%s", f.why.detail);
        module_return(f.session, m);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(session_now().state, SESSION_READY);
}

Test(launch, is_refused_before_it_reaches_the_device)
{
    struct launch_arg  args[2] = {{.kind = ARG_SCALAR, .scalar_bytes = 8}, {.kind = ARG_SCALAR, .scalar_bytes = 8}};
    struct launch_spec spec = one_thread("increment");
    struct launch     *l;

    spec.args = args;
    spec.args_count = 2;
    cr_assert_eq(submit(&spec, &l), STATUS_ARGUMENT_MISMATCH);
    cr_assert_str_eq(f.why.field.pointer, "/args/1");
    spec = one_thread("nothing");
    cr_assert_eq(submit(&spec, &l), STATUS_KERNEL_NOT_FOUND);
    cr_assert(strstr(f.why.detail, "it has gpurest_canary, add_one"), "%s", f.why.detail);
    cr_assert_str_eq(f.why.field.detail, f.why.detail);
    spec = one_thread("noop");
    spec.module = SPAN_LITERAL("other");
    cr_assert_eq(submit(&spec, &l), STATUS_MODULE_NOT_FOUND);
    spec = one_thread("noop");
    spec.grid[1] = FAKE_MAX_GRID + 1;
    cr_assert_eq(submit(&spec, &l), STATUS_LAUNCH_CONFIG_INVALID);
    spec = one_thread("limited");
    spec.block[0] = 65;
    cr_assert_eq(submit(&spec, &l), STATUS_LAUNCH_CONFIG_INVALID);
    spec = one_thread("limited");
    spec.shared_bytes = FAKE_MAX_SHARED - 1023;
    cr_assert_eq(submit(&spec, &l), STATUS_LAUNCH_CONFIG_INVALID);
    spec = one_thread("noop");
    spec.timeout_ms = EXECUTION_TIMEOUT_MS_MAX + 1;
    cr_assert_eq(submit(&spec, &l), STATUS_INVALID_FIELD);
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_OK);
}

Test(launch, block_and_grid_can_be_left_to_the_device)
{
    struct launch_spec spec = {.kernel = SPAN_LITERAL("noop"), .threads = 1000};
    struct launch     *l;

    cr_assert_eq(submit(&spec, &l), STATUS_OK, "%s", f.why.detail);
    cr_assert_eq(info_of(l).block[0], FAKE_BEST_BLOCK);
    cr_assert_eq(info_of(l).grid[0], 8);
    finish_launch(l);
}

Test(launch, finds_mangled_kernels_and_name_expressions)
{
    struct span        expression = SPAN_LITERAL("increment_by<1>");
    struct module_spec module = {
        .id = SPAN_LITERAL("t"), .source = SPAN_LITERAL("cuda"), .name_expressions = &expression, .name_expressions_count = 1};
    struct launch_arg  args[] = {{.kind = ARG_SCALAR, .scalar_bytes = 8, .value = 0}, {.kind = ARG_SCALAR, .scalar_bytes = 4, .value = 0}};
    struct launch_spec spec = one_thread("scaled");
    struct launch     *l;
    struct module     *m;

    spec.args = args;
    spec.args_count = 2;
    cr_assert_eq(submit(&spec, &l), STATUS_OK, "%s", f.why.detail);
    finish_launch(l);
    cr_assert_eq(fixture_module(f.session, module, &m, &f.created), STATUS_OK, "%s", f.why.detail);
    module_return(f.session, m);
    spec.module = SPAN_LITERAL("t");
    spec.kernel = expression;
    cr_assert_eq(submit(&spec, &l), STATUS_OK, "%s", f.why.detail);
    finish_launch(l);
}

Test(launch, an_id_means_one_specification)
{
    struct launch_spec spec = one_thread("noop");
    struct launch     *a, *b;
    bool               created;

    spec.id = SPAN_LITERAL("l");
    spec.module = SPAN_LITERAL("m");
    cr_assert_eq(launch_submit(f.session, &spec, &a, &created, &f.why), STATUS_OK);
    cr_assert(created);
    cr_assert_eq(launch_submit(f.session, &spec, &b, &created, &f.why), STATUS_OK);
    cr_assert(!created);
    cr_assert_eq(a, b);
    spec.grid[0] = 2;
    struct launch *c = a;
    created = true;
    cr_assert_eq(launch_submit(f.session, &spec, &c, &created, &f.why), STATUS_SPEC_CONFLICT);
    cr_assert_null(c);
    cr_assert(!created);
    finish_launch(a);
    launch_return(b);
    cr_assert_eq(launch_borrow(f.session, SPAN_LITERAL("l"), &a, &f.why), STATUS_OK);
    launch_return(a);
    cr_assert_eq(launch_borrow(f.session, SPAN_LITERAL("k"), &a, &f.why), STATUS_LAUNCH_NOT_FOUND);
}

Test(launch, a_failed_submission_gives_no_launch)
{
    struct launch_spec spec = one_thread("no_such_kernel");
    struct launch      elsewhere, *l = &elsewhere;
    bool               created = true;

    spec.module = SPAN_LITERAL("m");
    cr_assert_eq(launch_submit(f.session, &spec, &l, &created, &f.why), STATUS_KERNEL_NOT_FOUND);
    cr_assert_null(l);
    cr_assert(!created);
}

Test(launch, queued_can_be_cancelled_running_cannot)
{
    struct launch *running, *queued;
    bool           cancelled;

    running = launch_of("r", "wait");
    fake_await_running();
    queued = launch_of("q", "noop");
    cr_assert_eq(info_of(running).state, WORK_RUNNING);
    cr_assert_eq(info_of(queued).state, WORK_QUEUED);
    cr_assert_eq(launch_cancel(f.session, running, &cancelled, &f.why), STATUS_LAUNCH_RUNNING);
    cr_assert_eq(launch_cancel(f.session, queued, &cancelled, &f.why), STATUS_OK);
    cr_assert(cancelled);
    cr_assert_eq(info_of(queued).state, WORK_CANCELLED);
    cr_assert_eq(launch_cancel(f.session, queued, &cancelled, &f.why), STATUS_OK);
    cr_assert(!cancelled);
    fake_script()->released = true;
    await_end(running);
    cr_assert_eq(info_of(running).state, WORK_SUCCEEDED);
    launch_return(running);
    launch_return(queued);
}

Test(launch, a_fault_is_its_own_problem_and_the_sessions)
{
    struct launch     *fault, *behind, *l;
    struct launch_spec spec = one_thread("noop");

    struct launch *gate = launch_of("g", "wait");
    fake_await_running();
    fault = launch_of("f", "fault");
    behind = launch_of("b", "noop");
    fake_script()->released = true;
    await_end(fault);
    await_end(behind);
    cr_assert_eq(info_of(gate).state, WORK_SUCCEEDED);
    cr_assert_eq(info_of(fault).state, WORK_FAILED);
    cr_assert_eq(info_of(fault).problem->status, STATUS_KERNEL_FAULT);
    cr_assert_eq(info_of(behind).state, WORK_FAILED);
    cr_assert_eq(info_of(behind).problem->status, STATUS_WORKER_LOST); /* it has not run */
    cr_assert_not_null(strstr(info_of(behind).problem->detail, "kernel_fault"));
    cr_assert_eq(session_now().state, SESSION_FAULTED);
    cr_assert_eq(session_now().fault.status, STATUS_KERNEL_FAULT);
    cr_assert_eq(submit(&spec, &l), STATUS_SESSION_FAULTED);
    cr_assert_not_null(strstr(f.why.detail, "kernel_fault"));
    cr_assert_eq(session_sync(f.session, (struct span){0}, &f.why), STATUS_SESSION_FAULTED);
    launch_return(gate);
    launch_return(fault);
    launch_return(behind);
    cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
    make_module("m", "code");
    l = launch_of("f", "noop");
    finish_launch(l);
}

Test(launch, refused_by_the_device_leaves_the_session_well)
{
    struct launch *l;

    l = launch_of("l", "refuse");
    await_end(l);
    cr_assert_eq(info_of(l).state, WORK_FAILED);
    cr_assert_eq(info_of(l).problem->status, STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_OK);
    launch_return(l);
}

Test(launch, past_its_deadline_is_ended_by_the_janitor)
{
    struct launch *l;

    l = launch_of("l", "wait");
    fake_await_running();
    janitor_sweep(f.registry, now_ns() + 59 * NS_PER_S);
    cr_assert(!waitlist_over(launch_end(l)));
    janitor_sweep(f.registry, now_ns() + 61 * NS_PER_S + LAUNCH_GRACE_MS * NS_PER_MS);
    await_end(l);
    cr_assert_eq(info_of(l).state, WORK_FAILED);
    cr_assert_eq(info_of(l).problem->status, STATUS_EXECUTION_TIMEOUT);
    cr_assert_eq(session_usable(f.session, &f.why), STATUS_SESSION_FAULTED);
    launch_return(l);
}

Test(launch, more_than_the_ring_holds_run_in_order_and_others_wait_behind_them)
{
    enum { N = 2 * RING_SLOTS };
    static struct launch *l[N];
    struct launch        *gate;
    struct launch_spec    spec = one_thread("noop");

    make_buffer("a", 1);
    upload("a", (struct span){"\0", 1});
    gate = launch_of("g", "wait");
    for (int i = 0; i < N; i++)
        l[i] = increment("a", 1);
    fake_script()->released = true;
    cr_assert_eq(byte_at("a", 0), N % 256, "the read came behind all launches");
    cr_assert_eq(session_sync(f.session, (struct span){0}, &f.why), STATUS_OK);
    for (int i = 0; i < N; i++) {
        await_end(l[i]);
        cr_assert_eq(info_of(l[i]).state, WORK_SUCCEEDED);
        launch_return(l[i]);
    }
    launch_return(gate);
    cr_assert_eq(submit(&spec, &gate), STATUS_OK);
    launch_return(gate);
}

Test(launch, the_queue_is_bounded_and_its_end_cancels_all)
{
    static struct launch *l[LAUNCHES_QUEUED_MAX];
    struct launch        *more;
    struct launch_spec    spec = one_thread("noop");
    bool                  cancelled;

    for (int i = 0; i < LAUNCHES_QUEUED_MAX; i++) {
        struct launch_spec one = one_thread(i ? "noop" : "wait");
        cr_assert_eq(submit(&one, &l[i]), STATUS_OK);
    }
    cr_assert_eq(submit(&spec, &more), STATUS_QUOTA_EXCEEDED);
    cr_assert_str_eq(f.why.limit_name, "launches_queued");
    cr_assert_eq(launch_cancel(f.session, l[LAUNCHES_QUEUED_MAX - 1], &cancelled, &f.why), STATUS_OK);
    cr_assert(cancelled);
    cr_assert_eq(submit(&spec, &more), STATUS_OK);
    cr_assert_eq(session_delete(f.session, &f.why), STATUS_OK);
    for (int i = 0; i < LAUNCHES_QUEUED_MAX; i++) {
        cr_assert_eq(info_of(l[i]).state, WORK_CANCELLED);
        launch_return(l[i]);
    }
    cr_assert_eq(info_of(more).state, WORK_CANCELLED);
    launch_return(more);
}

Test(launch, forgets_the_oldest_finished_ones)
{
    struct launch *l;

    for (int i = 0; i < LAUNCHES_KEPT_MAX + 5; i++) {
        char id[16];
        snprintf(id, sizeof id, "n%d", i);
        l = launch_of(id, "noop");
        finish_launch(l);
    }
    cr_assert_eq(launch_borrow(f.session, SPAN_LITERAL("n4"), &l, &f.why), STATUS_LAUNCH_NOT_FOUND);
    cr_assert_eq(launch_borrow(f.session, SPAN_LITERAL("n5"), &l, &f.why), STATUS_OK);
    launch_return(l);
}

Test(launch, submission_is_all_or_nothing_at_every_death)
{
    for (int n = 0;; n++) {
        struct launch_spec spec = one_thread("noop");
        struct launch     *l = NULL;
        start();
        spec.stream = SPAN_LITERAL("new");
        spec.block[0] = 0;
        fake_script()->die_at = n;
        enum status st = submit(&spec, &l);
        if (!st) {
            await_end(l);
            st = info_of(l).problem ? info_of(l).problem->status : STATUS_OK;
            launch_return(l);
        }
        bool done = fake_fault_unused();
        cr_assert_eq(st, done ? STATUS_OK : STATUS_WORKER_LOST);
        cr_assert_eq(session_reset(f.session, &f.why), STATUS_OK);
        fixture_end();
        if (done)
            break;
        cr_assert_lt(n, 10);
    }
}

static void *watch_and_unwatch(void *launch)
{
    struct bell bell;

    bell_init(&bell);
    for (int i = 0; i < 200; i++)
        if (waitlist_watch(launch_end(launch), &bell.waker))
            waitlist_unwatch(launch_end(launch), &bell.waker);
    return NULL;
}

Test(launch, watchers_come_and_go_while_it_ends)
{
    struct launch *l;
    pthread_t      threads[2];
    struct bell    bell;

    bell_init(&bell);
    l = launch_of("l", "wait");
    cr_assert(waitlist_watch(launch_end(l), &bell.waker));
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, watch_and_unwatch, l);
    fake_script()->released = true;
    bell_wait(&bell);
    cr_assert(waitlist_over(launch_end(l)));
    cr_assert(!waitlist_watch(launch_end(l), &bell.waker));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(bell_rung(&bell), 0, "woken once");
    launch_return(l);
}

Test(launch, keeps_its_module_and_its_buffer_until_it_ran)
{
    struct launch *gate, *l;

    make_buffer("a", 4);
    gate = launch_of("g", "wait");
    fake_await_running();
    l = increment("a", 4);
    cr_assert_eq(module_delete(f.session, SPAN_LITERAL("m"), &f.why), STATUS_OK);
    cr_assert_eq(fake_modules_loaded(), 1);
    fake_script()->released = true;
    cr_assert_eq(buffer_delete(f.session, SPAN_LITERAL("a"), NULL, &f.why), STATUS_OK);
    cr_assert(waitlist_over(launch_end(l)));
    cr_assert_eq(info_of(l).state, WORK_SUCCEEDED);
    launch_return(gate);
    launch_return(l);
}

Test(launch, lists_references)
{
    struct launch *l[3];
    struct page    page = {.limit = 3};

    await_end(l[0] = launch_of("a", "noop"));
    launch_return(l[0]);
    await_end(l[0] = launch_of("b", "noop"));
    launch_return(l[0]);
    cr_assert_eq(launch_list(f.session, &page, l), 2);
    cr_assert_str_eq(info_of(l[0]).id, "a");
    cr_assert_str_eq(info_of(l[1]).id, "b");
    launch_return(l[0]);
    launch_return(l[1]);
}
