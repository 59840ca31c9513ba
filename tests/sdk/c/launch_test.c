/* Launches, asynchronous ones, streams and gpurest_run at the real service. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/fixture.h"

TestSuite(launch, .init = world_start, .fini = world_end);

struct mixed {
    char   c;
    double d;
    short  s;
};

enum { ENDLESS_MS = 600000 }; /* deadline of a kernel that is ended otherwise */

Test(launch, every_kind_of_argument_arrives_bit_by_bit)
{
    const gpurest_kernel *k = world_kernel("store");
    struct mixed          mixed = {7, -12345678901.0, -3};
    long long             out[13];
    double                minus_zero = -0.0;
    float                 nan_of_ours;
    uint32_t              nan_bits = 0x7fc12345;
    gpurest_buffer        b;
    gpurest_arg           args[12];

    memcpy(&nan_of_ours, &nan_bits, 4);
    cr_assert_not(bad(gpurest_alloc(w.session, &b, sizeof out)));
    args[0] = GPUREST_BUF(b);
    args[1] = GPUREST_I8(-128);
    args[2] = GPUREST_I16(-32768);
    args[3] = GPUREST_I32(INT32_MIN);
    args[4] = GPUREST_I64(INT64_MIN);
    args[5] = GPUREST_U8(255);
    args[6] = GPUREST_U16(65535);
    args[7] = GPUREST_U32(UINT32_MAX);
    args[8] = GPUREST_U64(UINT64_MAX);
    args[9] = GPUREST_F32(nan_of_ours);
    args[10] = GPUREST_F64(minus_zero);
    args[11] = GPUREST_BYTES(&mixed, sizeof mixed);
    cr_assert_not(bad(gpurest_launch(w.session, k, GPUREST_1D(1), GPUREST_1D(1), 0, (gpurest_stream){0}, args, 12)));
    cr_assert_not(bad(gpurest_read(w.session, b, 0, out, sizeof out)));
    const long long expected[13] = {-128, -32768,     INT32_MIN, INT64_MIN, 255,          65535, UINT32_MAX,
                                    -1,   0x7fc12345, INT64_MIN, 7,         -12345678901, -3};
    for (int i = 0; i < 13; i++)
        cr_assert_eq(out[i], expected[i], "value %d is %lld", i, out[i]);
}

Test(launch, a_parameter_block_is_laid_out_by_the_table)
{
    const gpurest_kernel *k = world_kernel("talk");
    int                   n = 42;
    gpurest_launch_config c = GPUREST_LAUNCH_CONFIG_INIT;

    c.block = GPUREST_1D(1);
    cr_assert_not(bad(gpurest_launch_raw(w.session, k, &c, &n, sizeof n)));
    cr_assert_eq(gpurest_launch_raw(w.session, k, &c, &n, 3), GPUREST_E_INVAL);
}

Test(launch, tells_what_the_kernel_printed_and_how_long_it_took)
{
    const gpurest_kernel *k = world_kernel("talk");
    gpurest_launch_config c = GPUREST_LAUNCH_CONFIG_INIT;
    gpurest_launch_result r = GPUREST_LAUNCH_RESULT_INIT;
    gpurest_arg           args[] = {GPUREST_I32(5)};

    c.block = GPUREST_1D(2);
    cr_assert_not(bad(gpurest_launch_with(w.session, k, &c, args, 1, &r)));
    cr_assert_str_eq(r.output, "n is 5\nn is 5\n");
    cr_assert_gt(r.gpu_us, 0);
    cr_assert_eq(r.output_truncated, 0);
    gpurest_mem_free(r.output);
}

Test(launch, wrong_ones_are_refused_here_or_there)
{
    const gpurest_kernel *k = world_kernel("add_one");
    gpurest_session      *other = session_of(w.client);
    gpurest_buffer        b;
    gpurest_arg           args[3];

    cr_assert_not(bad(gpurest_alloc(w.session, &b, 8)));
    args[0] = GPUREST_BUF(b);
    args[1] = GPUREST_U32(8);
    args[2] = GPUREST_U32(8);
    gpurest_dim3   one = GPUREST_1D(1), huge = GPUREST_1D(1 << 20);
    gpurest_stream none = {0}, stale = {12345};
    cr_assert_eq(gpurest_launch(w.session, k, one, one, 0, none, args, 1), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_launch(w.session, k, one, one, 0, none, args, 3), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_launch(w.session, k, one, one, 0, stale, args, 2), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_launch(other, k, one, one, 0, none, args, 2), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_launch(w.session, NULL, one, one, 0, none, args, 2), GPUREST_E_INVAL);
    args[1] = GPUREST_F32(8);
    cr_assert_eq(gpurest_launch(w.session, k, one, one, 0, none, args, 2), GPUREST_E_INVAL);
    args[1] = GPUREST_U32(8);
    cr_assert_eq(gpurest_last_error()->http_status, 0);
    cr_assert_eq(gpurest_launch(w.session, k, one, huge, 0, none, args, 2), GPUREST_E_INVAL);
    cr_assert_str_eq(gpurest_last_error()->code, "launch_config_invalid");
    cr_assert_not(bad(gpurest_launch(w.session, k, one, one, 0, none, args, 2)));
    gpurest_session_close(other);
}

/* What the kernel without end reads: it never is anything else than 0. */
static gpurest_buffer zero(void)
{
    gpurest_buffer b;

    cr_assert_not(bad(gpurest_alloc(w.session, &b, 4)));
    cr_assert_not(bad(gpurest_fill(w.session, b, 0, 0, 4, 1, (gpurest_stream){0})));
    return b;
}

Test(launch, one_without_end_is_stopped_at_its_deadline)
{
    const gpurest_kernel *k = world_kernel("spin");
    gpurest_launch_config c = GPUREST_LAUNCH_CONFIG_INIT;
    gpurest_arg           args[] = {GPUREST_BUF(zero())};

    c.block = GPUREST_1D(1);
    c.timeout_ms = 300;
    cr_assert_eq(gpurest_launch_with(w.session, k, &c, args, 1, NULL), GPUREST_E_TIMEOUT);
    cr_assert_str_eq(gpurest_last_error()->code, "execution_timeout");
    cr_assert_eq(gpurest_last_error()->fatal_for_session, 1);
    cr_assert_eq(gpurest_sync(w.session), GPUREST_E_SESSION_LOST);
}

/* ---- asynchronous ---- */

Test(launch, asynchronous_ones_are_done_in_order)
{
    const gpurest_kernel *k = world_kernel("add_one");
    gpurest_launch_config c = GPUREST_LAUNCH_CONFIG_INIT;
    unsigned char         in[1000] = {0}, out[1000] = {0};
    gpurest_op           *ops[12];
    gpurest_buffer        b;
    gpurest_arg           args[2];

    cr_assert_not(bad(gpurest_alloc(w.session, &b, sizeof in)));
    args[0] = GPUREST_BUF(b);
    args[1] = GPUREST_U32(sizeof in);
    c.threads = sizeof in;
    cr_assert_not(bad(gpurest_write_async(w.session, b, 0, in, sizeof in, &ops[0])));
    for (int i = 1; i <= 10; i++)
        cr_assert_not(bad(gpurest_launch_async(w.session, k, &c, args, 2, NULL, &ops[i])));
    cr_assert_not(bad(gpurest_read_async(w.session, b, 0, out, sizeof out, &ops[11])));
    for (int i = 11; i >= 0; i--) {
        cr_assert_not(bad(gpurest_op_wait(ops[i], -1)));
        cr_assert(gpurest_op_done(ops[i]));
        gpurest_op_free(ops[i]);
    }
    for (size_t i = 0; i < sizeof out; i++)
        cr_assert_eq(out[i], 10);
}

Test(launch, a_queued_one_can_be_cancelled_and_a_reset_ends_what_runs)
{
    const gpurest_kernel *k = world_kernel("spin"), *add;
    gpurest_launch_config c = GPUREST_LAUNCH_CONFIG_INIT;
    gpurest_op           *running, *queued;
    gpurest_arg           args[] = {GPUREST_BUF(zero()), GPUREST_U32(4)};

    cr_assert_not(bad(gpurest_kernel_get(w.module, "add_one", &add)));
    c.block = GPUREST_1D(1);
    c.timeout_ms = ENDLESS_MS;
    cr_assert_not(bad(gpurest_launch_async(w.session, k, &c, args, 1, NULL, &running)));
    cr_assert_not(bad(gpurest_launch_async(w.session, add, &c, args, 2, NULL, &queued)));
    cr_assert_not(bad(gpurest_flush(w.session)));
    cr_assert_eq(gpurest_op_done(running), 0);
    gpurest_op_cancel(queued);
    cr_assert_eq(gpurest_op_wait(queued, -1), GPUREST_E_CANCELLED);
    cr_assert_not(bad(gpurest_session_reset(w.session)));
    cr_assert_neq(gpurest_op_wait(running, -1), GPUREST_OK);
    gpurest_op_free(running);
    gpurest_op_free(queued);
}

Test(launch, a_passed_deadline_reaches_its_operation)
{
    const gpurest_kernel *k = world_kernel("spin");
    gpurest_launch_config c = GPUREST_LAUNCH_CONFIG_INIT;
    gpurest_op           *running;
    gpurest_arg           args[] = {GPUREST_BUF(zero())};

    c.block = GPUREST_1D(1);
    c.timeout_ms = 300;
    cr_assert_not(bad(gpurest_launch_async(w.session, k, &c, args, 1, NULL, &running)));
    cr_assert_eq(gpurest_op_wait(running, -1), GPUREST_E_TIMEOUT);
    cr_assert_str_eq(gpurest_last_error()->code, "execution_timeout");
    cr_assert_eq(gpurest_sync(w.session), GPUREST_E_SESSION_LOST);
    gpurest_op_free(running);
}

Test(launch, streams_are_the_sessions_own)
{
    const gpurest_kernel *k = world_kernel("add_one");
    gpurest_session      *other = session_of(w.client);
    gpurest_stream        st, last = {0};
    unsigned char         x[16] = {0};
    gpurest_buffer        b;
    gpurest_arg           args[2];
    int                   made = 1;

    cr_assert_not(bad(gpurest_alloc_from(w.session, &b, x, sizeof x)));
    args[0] = GPUREST_BUF(b);
    args[1] = GPUREST_U32(sizeof x);
    cr_assert_not(bad(gpurest_stream_create(w.session, &st)));
    cr_assert_not(bad(gpurest_launch(w.session, k, GPUREST_1D(1), GPUREST_1D(16), 0, st, args, 2)));
    cr_assert_not(bad(gpurest_stream_sync(w.session, st)));
    cr_assert_not(bad(gpurest_fill(w.session, b, 8, 7, 1, 8, st)));
    cr_assert_not(bad(gpurest_sync(w.session)));
    cr_assert_not(bad(gpurest_read(w.session, b, 0, x, sizeof x)));
    cr_assert_eq(x[0], 1);
    cr_assert_eq(x[15], 7);
    cr_assert_eq(gpurest_stream_sync(other, st), GPUREST_E_INVAL);
    while (gpurest_stream_create(w.session, &last) == GPUREST_OK)
        made++;
    cr_assert_eq(made, 64);
    cr_assert_eq(gpurest_last_error()->status, GPUREST_E_LIMIT);
    gpurest_session_close(other);
}

/* ---- run ---- */

static void run_refuses(gpurest_client *c, const gpurest_arg *args, const char *pointer, const char *words)
{
    cr_assert_eq(gpurest_run(c, kernels_source, "axpy", GPUREST_1D(4), GPUREST_1D(256), args, 4, NULL), GPUREST_E_INVAL);
    cr_assert_str_eq(gpurest_last_error()->code, "argument_mismatch");
    cr_assert_str_eq(gpurest_last_error()->pointer, pointer);
    cr_assert_not_null(strstr(gpurest_last_error()->message, words), "%s", gpurest_last_error()->message);
}

/* axpy(float, in, inout, int), after two allocations. */
static void run_refuses_other_kinds(gpurest_client *c, const gpurest_arg good[4])
{
    gpurest_arg args[4];

    memcpy(args, good, sizeof args);
    args[0] = GPUREST_I32(2);
    run_refuses(c, args, "/ops/2/args/0", "argument 0 of axpy is i32, the parameter is f32");
    args[0] = good[0];
    args[3] = GPUREST_F32(INFINITY);
    run_refuses(c, args, "/ops/2/args/3", "argument 3 of axpy is f32, the parameter is u32");
}

Test(launch, run_does_all_of_it_in_one_request)
{
    float         x[1000], y[1000];
    gpurest_times t = {0};

    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        gpurest_client *c = client_of(w.service.url, use_libcurl);
        gpurest_arg     args[] = {GPUREST_F32(2), GPUREST_IN(x, sizeof x), GPUREST_INOUT(y, sizeof y), GPUREST_I32(1000)};
        for (int i = 0; i < 1000; i++) {
            x[i] = (float)i;
            y[i] = 0.5f;
        }
        cr_assert_not(bad(gpurest_run(c, kernels_source, "axpy", GPUREST_1D(4), GPUREST_1D(256), args, 4, &t)));
        for (int i = 0; i < 1000; i++)
            cr_assert_eq(y[i], 2 * (float)i + 0.5f);
        cr_assert_gt(t.gpu_us, 0);
        cr_assert_eq(gpurest_run(c, kernels_source, "axpy", GPUREST_1D(4), GPUREST_1D(256), args, 3, &t), GPUREST_E_INVAL);
        cr_assert_str_eq(gpurest_last_error()->code, "argument_mismatch");
        run_refuses_other_kinds(c, args);
        cr_assert_eq(gpurest_run(c, kernels_source, "absent", GPUREST_1D(4), GPUREST_1D(256), args, 4, &t), GPUREST_E_NOTFOUND);
        cr_assert_eq(gpurest_run(c, "no C at all", "axpy", GPUREST_1D(4), GPUREST_1D(256), args, 4, &t), GPUREST_E_COMPILE);
        cr_assert_neq(gpurest_last_error()->log[0], '\0');
        args[1] = GPUREST_IN(NULL, 4);
        cr_assert_eq(gpurest_run(c, kernels_source, "axpy", GPUREST_1D(4), GPUREST_1D(256), args, 4, &t), GPUREST_E_INVAL);
        gpurest_close(c);
    }
}

/* ---- what kernels of a run print ---- */

static void keep_output(void *arg, const char *text, int truncated)
{
    snprintf(arg, 64, "%s%s", text, truncated ? "…" : "");
}

Test(launch, run_hands_over_what_its_kernel_prints)
{
    static const char source[] = "extern \"C\" __global__ void hello(int n) { if (n) printf(\"hello %d\\n\", n); }";
    gpurest_client   *c = client_of(w.service.url, 0);
    gpurest_arg       args[] = {GPUREST_I32(7)};
    char              seen[64] = "";

    cr_assert_not(bad(gpurest_run(c, source, "hello", GPUREST_1D(1), GPUREST_1D(1), args, 1, NULL)), "without a function it is dropped");
    gpurest_client_set_output(c, keep_output, seen);
    cr_assert_not(bad(gpurest_run(c, source, "hello", GPUREST_1D(1), GPUREST_1D(1), args, 1, NULL)));
    cr_assert_str_eq(seen, "hello 7\n");
    args[0] = GPUREST_I32(0);
    gpurest_client_set_output(c, NULL, NULL);
    cr_assert_not(bad(gpurest_run(c, source, "hello", GPUREST_1D(1), GPUREST_1D(1), args, 1, NULL)));
    cr_assert_str_eq(seen, "hello 7\n");
    gpurest_close(c);
}
