/* The service's built-in kernels in the C SDK: found, checked here, launched alone, in batches and programs, and without a session. */
#include <criterion/criterion.h>
#include <gpurest/builtin.h>
#include <string.h>

#include "support/fixture.h"

static const gpurest_dim3 none = {0, 0, 0};

TestSuite(builtin, .init = world_start_bare, .fini = world_end);

static const gpurest_kernel *only_kernel(gpurest_module *m)
{
    const gpurest_kernel *k;

    cr_assert_eq(gpurest_module_kernel_count(m), 1);
    cr_assert_not(bad(gpurest_kernel_at(m, 0, &k)));
    return k;
}

static gpurest_buffer floats(const float *values, size_t count)
{
    gpurest_buffer b;

    cr_assert_not(bad(gpurest_alloc_from(w.session, &b, values, count * sizeof *values)));
    return b;
}

Test(builtin, is_a_module_with_one_kernel)
{
    gpurest_module       *m;
    const gpurest_kernel *k;
    void                 *code;
    size_t                offset, bytes;

    cr_assert_not(bad(gpurest_module_builtin(w.session, &m, "fill", "u8", NULL)));
    k = only_kernel(m);
    cr_assert_str_eq(gpurest_kernel_name(k), "fill");
    cr_assert_str_eq(gpurest_module_id(m), "fill");
    cr_assert_eq(gpurest_kernel_param_count(k), 3);
    cr_assert_not(bad(gpurest_kernel_param(k, 2, &offset, &bytes)));
    cr_assert_eq(offset, 16);
    cr_assert_eq(bytes, 1);
    cr_assert_str_eq(gpurest_kernel_param_type(k, 2), "u8");
    cr_assert_eq(gpurest_module_code(m, "ptx", &code, &bytes), GPUREST_E_UNSUPPORTED);
    gpurest_module_unload(m);
}

Test(builtin, what_there_is_not)
{
    gpurest_module *m = NULL;

    cr_assert_eq(gpurest_module_builtin(w.session, &m, "nothing", "f32", NULL), GPUREST_E_NOTFOUND);
    cr_assert_eq(gpurest_module_builtin(w.session, &m, "softmax", "i32", NULL), GPUREST_E_INVAL);
    cr_assert_not_null(strstr(gpurest_last_error()->message, "softmax"));
    cr_assert_eq(gpurest_module_builtin(w.session, &m, "softmax", "float", NULL), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_module_builtin(w.session, &m, "softmax", NULL, NULL), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_module_builtin(w.session, &m, "../sessions", "f32", NULL), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_module_builtin(w.session, &m, "softmax", "f32", "other"), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_module_builtin(w.session, NULL, "softmax", "f32", NULL), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_module_builtin(NULL, &m, "softmax", "f32", NULL), GPUREST_E_INVAL);
    cr_assert_null(m);
    cr_assert_not(bad(gpurest_sync(w.session)));
}

Test(builtin, launches_as_any_kernel)
{
    float                 x[5] = {1, 2, 3, 4, 5}, sum = 0, more[5];
    gpurest_module       *sums, *axpys;
    gpurest_buffer        in = floats(x, 5), y = floats(x, 5), out = floats(&sum, 1);
    gpurest_launch_result result = GPUREST_LAUNCH_RESULT_INIT;
    gpurest_arg           args[] = {GPUREST_BUF(in), GPUREST_BUF(out), GPUREST_U64(5)};
    gpurest_arg           axpy[] = {GPUREST_F32(2), GPUREST_BUF(in), GPUREST_BUF(y), GPUREST_U64(5)};

    cr_assert_not(bad(gpurest_module_builtin(w.session, &sums, "reduce_sum", "f32", "builtin")));
    cr_assert_not(bad(gpurest_launch_with(w.session, only_kernel(sums), NULL, args, 3, &result)));
    cr_assert_not(bad(gpurest_read(w.session, out, 0, &sum, sizeof sum)));
    cr_assert_float_eq(sum, 15, 0);
    gpurest_mem_free(result.output);
    cr_assert_eq(gpurest_launch(w.session, only_kernel(sums), none, none, 0, (gpurest_stream){0}, args, 2), GPUREST_E_INVAL);
    args[2] = GPUREST_F64(5);
    cr_assert_eq(gpurest_launch(w.session, only_kernel(sums), none, none, 0, (gpurest_stream){0}, args, 3), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_module_builtin(w.session, &axpys, "axpy", "f32", NULL)));
    cr_assert_not(bad(gpurest_launch(w.session, only_kernel(axpys), GPUREST_1D(77), GPUREST_1D(1), 9, (gpurest_stream){0}, axpy, 4)));
    cr_assert_not(bad(gpurest_read(w.session, y, 0, more, sizeof more)));
    for (int i = 0; i < 5; i++)
        cr_assert_float_eq(more[i], 3 * x[i], 0);
    gpurest_module_unload(sums);
    gpurest_module_unload(axpys);
}

Test(builtin, in_a_batch_and_in_a_program)
{
    float            x[3] = {3, 1, 2}, got[3] = {0};
    gpurest_module  *m;
    gpurest_batch   *b;
    gpurest_program *program;
    gpurest_buffer   in = floats(x, 3), out = floats(x, 3);
    gpurest_arg      args[] = {GPUREST_BUF(in), GPUREST_BUF(out), GPUREST_U64(3)};

    cr_assert_not(bad(gpurest_batch_begin(w.session, &b)));
    cr_assert_not(bad(gpurest_module_builtin(w.session, &m, "sqrt", "f32", NULL)));
    cr_assert_not(bad(gpurest_launch(w.session, only_kernel(m), none, none, 0, (gpurest_stream){0}, args, 3)));
    cr_assert_not(bad(gpurest_read(w.session, out, 0, got, sizeof got)));
    cr_assert_not(bad(gpurest_batch_submit(b, NULL)));
    cr_assert_float_eq(got[1], 1, 0);
    cr_assert_not(bad(gpurest_batch_begin(w.session, &b)));
    cr_assert_not(bad(gpurest_launch(w.session, only_kernel(m), none, none, 0, (gpurest_stream){0}, args, 3)));
    cr_assert_not(bad(gpurest_read(w.session, out, 0, got, sizeof got)));
    cr_assert_not(bad(gpurest_batch_prepare(b, &program)));
    x[1] = 16;
    cr_assert_not(bad(gpurest_write(w.session, in, 0, x, sizeof x)));
    cr_assert_not(bad(gpurest_program_run(program, NULL, 0, NULL, 0)));
    cr_assert_float_eq(got[1], 4, 0);
    gpurest_program_destroy(program);
    gpurest_module_unload(m);
}

Test(builtin, runs_without_a_session)
{
    double        x[4] = {1, 2, 3, 4}, y[4] = {0};
    gpurest_arg   args[] = {GPUREST_IN(x, sizeof x), GPUREST_OUT(y, sizeof y), GPUREST_U64(2), GPUREST_U64(2), GPUREST_U64(1)};
    gpurest_times times;

    cr_assert_not(bad(gpurest_run_builtin(w.client, "transpose", "f64", NULL, args, 5, &times)));
    cr_assert_float_eq(y[1], 3, 0);
    cr_assert_float_eq(y[2], 2, 0);
    cr_assert_gt(times.run_ms, 0);
    cr_assert_eq(gpurest_run_builtin(w.client, "nothing", "f64", NULL, args, 4, NULL), GPUREST_E_NOTFOUND);
    cr_assert_eq(gpurest_run_builtin(w.client, "transpose", "f64", "vendor", args, 5, NULL), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_run_builtin(w.client, "transpose", "f65", NULL, args, 4, NULL), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_run_builtin(w.client, NULL, "f64", NULL, args, 4, NULL), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_run_builtin(w.client, "transpose", "f64", NULL, NULL, 4, NULL), GPUREST_E_INVAL);
}
