/* Times on the device are what a worker says: those that cannot be are none, wherever they come in. */
#include <math.h>

#include "session/batch/batch_internal.h"
#include "unit/session/session_fixture.h"

static void start_usual(void)
{
    fixture_start(8);
}

TestSuite(gpu_time, .init = start_usual, .fini = fixture_end);

static const float impossible[] = {INFINITY, -INFINITY, NAN, -1, 3.4e38f, 1e20f};

static struct launch_spec noop(void)
{
    return (struct launch_spec){.module = SPAN_LITERAL("m"), .kernel = SPAN_LITERAL("noop"), .grid = {1, 1, 1}, .block = {1, 1, 1}};
}

static double launch_us(void)
{
    struct launch_spec spec = noop();
    struct launch_info info;
    struct launch     *l;

    cr_assert_eq(launch_submit(f.session, &spec, &l, &f.created, &f.why), STATUS_OK, "%s", f.why.detail);
    await_end(l);
    info = info_of(l);
    cr_assert_eq(info.state, WORK_SUCCEEDED);
    launch_return(l);
    return info.gpu_us;
}

/* One launch is a message of its own, two are a list. */
static double batch_ms(unsigned launches)
{
    const struct launch_spec launch = noop();
    const struct batch_op    op = {.kind = BATCH_LAUNCH, .launch = &launch, .segment = BATCH_NO_SEGMENT};
    const struct batch_op    ops[] = {op, op};
    struct batch_spec        spec = {.ops = ops, .ops_count = launches, .answer_bytes_max = 1 << 20, .answer_limit = "batch_answer_bytes"};
    struct batch            *b;
    double                   ms;

    cr_assert_eq(batch_create(f.session, &spec, &b, &f.why), STATUS_OK, "%s", f.why.detail);
    cr_assert_eq(batch_run(b, &f.arena, &f.why), STATUS_OK, "%s", f.why.detail);
    ms = batch_times_of(b).kernel_ms;
    batch_destroy(b);
    return ms;
}

static uint64_t session_us(void)
{
    return session_now().device_time_us;
}

Test(gpu_time, what_cannot_be_is_none)
{
    double us = 1;

    make_module("m", "quiet");
    for (unsigned i = 0; i < COUNT(impossible); i++) {
        fake_script()->gpu_us = impossible[i];
        cr_assert_not(gpu_us_check(impossible[i], &us)); /* of a launch by itself the pool takes none of these */
        cr_assert_eq(us, 0);
        cr_assert_eq(batch_ms(2), 0, "for %g", (double)impossible[i]);
    }
    cr_assert_eq(session_us(), 0);
    fake_script()->gpu_us = 2.5f;
    cr_assert_eq(launch_us(), 2.5);
    cr_assert_eq(batch_ms(1), 2.5e-3);
    cr_assert_eq(batch_ms(2), 5e-3);
    cr_assert_eq(session_us(), 10);
}
