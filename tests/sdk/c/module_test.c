/* Modules at the real service. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/fixture.h"

TestSuite(module, .init = world_start_bare, .fini = world_end);

Test(module, has_a_table_of_its_kernels)
{
    gpurest_kernel_info_t info = GPUREST_KERNEL_INFO_INIT;
    const gpurest_kernel *k, *other;
    gpurest_module       *m;
    size_t                offset = 0, bytes = 0;

    k = kernel_of(w.session, &m, "axpy");
    cr_assert_eq(gpurest_module_kernel_count(m), 6);
    cr_assert_str_eq(gpurest_module_log(m), "");
    cr_assert_neq(gpurest_module_arch(m)[0], '\0');
    cr_assert_eq(gpurest_kernel_param_count(k), 4);
    cr_assert_not(bad(gpurest_kernel_param(k, 3, &offset, &bytes)));
    cr_assert_eq(offset, 24);
    cr_assert_eq(bytes, 4);
    cr_assert_str_eq(gpurest_kernel_param_type(k, 0), "f32");
    cr_assert_eq(gpurest_kernel_param(k, 4, NULL, NULL), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_kernel_info(k, &info)));
    cr_assert_gt(info.max_threads, 0);
    cr_assert_eq(gpurest_kernel_get(m, "absent", &other), GPUREST_E_NOTFOUND);
    cr_assert_eq(gpurest_kernel_at(m, 6, &other), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_kernel_at(m, 5, &other)));
    gpurest_module_unload(m);
}

Test(module, an_error_of_the_source_comes_with_the_log)
{
    gpurest_module *m = NULL;

    cr_assert_eq(gpurest_compile(w.session, &m, "extern \"C\" __global__ void k() { undefined_thing = 1; }", NULL, 0), GPUREST_E_COMPILE);
    cr_assert_null(m);
    cr_assert_str_eq(gpurest_last_error()->code, "compile_failed");
    cr_assert_not_null(strstr(gpurest_last_error()->log, "undefined_thing"));
    cr_assert_eq(gpurest_compile(w.session, &m, "", NULL, 0), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_sync(w.session)));
}

Test(module, options_headers_and_templates)
{
    static const char    *options[] = {"-DTIMES=3", "--std=c++17"}, *names[] = {"scale<int>"}, *forbidden[] = {"--include-path=/etc"};
    static gpurest_header headers[] = {{"plus.h", "#define PLUS 4\n"}};
    static const char     source[] =
        "#include \"plus.h\"\ntemplate <class T> __global__ void scale(T *x) { x[threadIdx.x] = x[threadIdx.x] * TIMES + PLUS; }";
    gpurest_compile_options o = GPUREST_COMPILE_OPTIONS_INIT;
    gpurest_module         *m;
    const gpurest_kernel   *k;
    int                     x[4] = {1, 2, 3, 4};
    gpurest_buffer          b;
    gpurest_arg             args[1];

    o.options = options;
    o.options_count = 2;
    o.headers = headers;
    o.headers_count = 1;
    o.name_expressions = names;
    o.name_expressions_count = 1;
    cr_assert_not(bad(gpurest_compile_with(w.session, &m, source, &o)));
    cr_assert_not(bad(gpurest_kernel_get(m, "scale<int>", &k)));
    cr_assert_not(bad(gpurest_alloc_from(w.session, &b, x, sizeof x)));
    args[0] = GPUREST_BUF(b);
    cr_assert_not(bad(gpurest_launch(w.session, k, GPUREST_1D(1), GPUREST_1D(4), 0, (gpurest_stream){0}, args, 1)));
    cr_assert_not(bad(gpurest_read(w.session, b, 0, x, sizeof x)));
    for (int i = 0; i < 4; i++)
        cr_assert_eq(x[i], (i + 1) * 3 + 4);
    gpurest_module_unload(m);
    cr_assert_eq(gpurest_compile(w.session, &m, source, forbidden, 1), GPUREST_E_INVAL);
    cr_assert_str_eq(gpurest_last_error()->code, "option_not_allowed");
}

Test(module, code_can_be_taken_and_loaded_again)
{
    gpurest_module       *m, *again, *twin;
    const gpurest_kernel *k;
    void                 *ptx;
    size_t                bytes;
    unsigned char         x[2] = {1, 2};
    gpurest_buffer        b;
    gpurest_arg           args[2];

    kernel_of(w.session, &m, "axpy");
    cr_assert_not(bad(gpurest_module_code(m, "ptx", &ptx, &bytes)));
    cr_assert_eq(gpurest_module_code(m, "../x", &ptx, &bytes), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_module_load(w.session, &again, ptx, bytes)));
    gpurest_mem_free(ptx);
    cr_assert_not(bad(gpurest_compile(w.session, &twin, kernels_source, NULL, 0)));
    gpurest_module_unload(m); /* the same source, but a separate module */
    cr_assert_not(bad(gpurest_kernel_get(twin, "add_one", &k)));
    cr_assert_not(bad(gpurest_alloc_from(w.session, &b, x, 2)));
    args[0] = GPUREST_BUF(b);
    args[1] = GPUREST_U32(2);
    cr_assert_not(bad(gpurest_launch(w.session, k, GPUREST_1D(1), GPUREST_1D(2), 0, (gpurest_stream){0}, args, 2)));
    gpurest_module_unload(twin);
    cr_assert_not(bad(gpurest_kernel_get(again, "add_one", &k)));
    cr_assert_not(bad(gpurest_launch(w.session, k, GPUREST_1D(1), GPUREST_1D(2), 0, (gpurest_stream){0}, args, 2)));
    cr_assert_not(bad(gpurest_read(w.session, b, 0, x, 2)));
    cr_assert_eq(x[0], 3);
    cr_assert_eq(x[1], 4);
    gpurest_module_unload(again);
    cr_assert_eq(gpurest_module_load(w.session, &again, "nonsense", 8), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_module_load(w.session, &again, ".version 9.9\nnonsense", 21), GPUREST_E_COMPILE);
}

Test(module, has_variables_that_are_buffers)
{
    static const char     source[] = "__device__ int counter = 5; namespace ns { __constant__ int two[2] = {1, 2}; }\n"
                                     "extern \"C\" __global__ void step(int *to, int by) { atomicAdd(&counter, by); *to = ns::two[1]; }";
    gpurest_launch_config config = GPUREST_LAUNCH_CONFIG_INIT;
    gpurest_module       *m;
    const gpurest_kernel *k;
    gpurest_buffer        counter, two, copy;
    gpurest_batch        *batch;
    gpurest_arg           args[2];
    int                   values[2] = {7, 8}, got = 0;

    cr_assert_not(bad(gpurest_compile(w.session, &m, source, NULL, 0)));
    cr_assert_not(bad(gpurest_kernel_get(m, "step", &k)));
    cr_assert_not(bad(gpurest_module_global(m, "counter", &counter)));
    cr_assert_not(bad(gpurest_module_global(m, "ns::two", &two)));
    cr_assert_eq(gpurest_buffer_bytes(w.session, two), 8);
    cr_assert_not(bad(gpurest_write(w.session, two, 0, values, sizeof values)));
    cr_assert_not(bad(gpurest_alloc(w.session, &copy, 4)));
    args[0] = GPUREST_BUF(copy);
    args[1] = GPUREST_I32(10);
    config.grid = GPUREST_1D(2);
    config.block = GPUREST_1D(1);
    config.cooperative = 1;
    cr_assert_not(bad(gpurest_launch_with(w.session, k, &config, args, 2, NULL)));
    cr_assert_not(bad(gpurest_read(w.session, counter, 0, &got, sizeof got)));
    cr_assert_eq(got, 25);
    cr_assert_not(bad(gpurest_read(w.session, copy, 0, &got, sizeof got)));
    cr_assert_eq(got, 8);
    cr_assert_not(bad(gpurest_batch_begin(w.session, &batch)));
    cr_assert_not(bad(gpurest_fill(w.session, counter, 0, 1, 4, 1, (gpurest_stream){0})));
    args[0] = GPUREST_BUF(two);
    cr_assert_not(bad(gpurest_launch_with(w.session, k, &config, args, 2, NULL)));
    cr_assert_not(bad(gpurest_read(w.session, counter, 0, &got, sizeof got)));
    cr_assert_not(bad(gpurest_batch_submit(batch, NULL)));
    cr_assert_eq(got, 21);
    config.grid = GPUREST_1D(1 << 20);
    cr_assert_neq(gpurest_launch_with(w.session, k, &config, args, 2, NULL), GPUREST_OK);
    cr_assert_eq(gpurest_module_global(m, "absent", &counter), GPUREST_E_NOTFOUND);
    cr_assert_eq(gpurest_module_global(m, NULL, &counter), GPUREST_E_INVAL);
    cr_assert_eq(gpurest_free(w.session, two), GPUREST_E_INVAL);
    gpurest_module_unload(m);
    cr_assert_neq(gpurest_read(w.session, two, 0, &got, sizeof got), GPUREST_OK);
}
