/* The rows of the built-in kernels are consistent; their expressions and shapes give the right values. */
#include <criterion/criterion.h>
#include <string.h>

#include "kernels/kernels.h"
#include "session/bounds.h"

static const struct builtin_device device = {.multiprocessors = 10, .max_grid = {2147483647, 65535, 65535}};

static const struct builtin *named(const char *name)
{
    const struct builtin *k = builtin_find(span_of(name));

    cr_assert_not_null(k, "%s", name);
    return k;
}

static void each_dtype(const struct builtin *k, void (*check)(const struct builtin *k, enum builtin_dtype dtype))
{
    for (unsigned i = 0; i < BUILTIN_DTYPES; i++)
        if (k->dtypes >> i & 1)
            check(k, (enum builtin_dtype)i);
}

static void row_is_whole(const struct builtin *k, enum builtin_dtype dtype)
{
    uint64_t            values[BUILTIN_ARGS_MAX];
    char                expression[BUILTIN_EXPRESSION_BYTES];
    struct builtin_plan plan;
    struct problem      why = {0};
    uint64_t            bytes;

    for (unsigned i = 0; i < BUILTIN_ARGS_MAX; i++)
        values[i] = 1;
    cr_assert(builtin_expression(k, dtype, expression, sizeof expression), "%s", k->name);
    cr_assert_null(strstr(expression, "$"), "%s", expression);
    cr_assert_eq(builtin_plan_of(k, dtype, values, &device, &plan, &why), STATUS_OK, "%s: %s", k->name, why.detail);
    cr_assert(plan.grid[0] && plan.grid[1] && plan.grid[2] && plan.block[0] >= 32 && plan.block[0] <= 1024, "%s", k->name);
    for (unsigned i = 0; i < k->params_count; i++)
        if (k->params[i].access != BUILTIN_VALUE)
            cr_assert_eq(builtin_buffer_bytes(k, dtype, values, i, &bytes, &why), STATUS_OK, "%s: %s", k->name, k->params[i].name);
}

Test(kernels, every_row_is_whole)
{
    const struct builtin *k;

    for (unsigned i = 0; (k = builtin_at(i)) != NULL; i++) {
        cr_assert_eq(builtin_find(span_of(k->name)), k, "two kernels are called %s", k->name);
        cr_assert_not_null(builtin_source_of(k), "%s has no source", k->name);
        cr_assert(strlen(builtin_source_of(k)->notes) > 100, "%s says nothing of itself", k->family);
        cr_assert_leq(k->params_count, BUILTIN_ARGS_MAX);
        cr_assert(k->dtypes, "%s", k->name);
        each_dtype(k, row_is_whole);
    }
    cr_assert_gt(builtin_common_source()->text.bytes, 0);
    cr_assert_null(builtin_find(span_of("")));
}

static uint64_t extent(const char *expression, uint64_t n0, uint64_t n1)
{
    const struct builtin *k = named("copy_strided"); /* n0, n1 are its third and fourth parameter */
    uint64_t              values[BUILTIN_ARGS_MAX] = {[2] = n0, [3] = n1}, out = 0;

    return builtin_extent(k, expression, BUILTIN_DTYPE_i16, values, 5, &out) ? out : UINT64_MAX;
}

Test(kernels, expressions)
{
    cr_assert_eq(extent("7", 0, 0), 7);
    cr_assert_eq(extent("n0*n1+3", 10, 20), 203);
    cr_assert_eq(extent("(n0-1)*n1+1", 3, 4), 9);
    cr_assert_eq(extent("(n0-1)*n1+1", 0, 4), 1);
    cr_assert_eq(extent("n0*sizeof_T/16*32+32", 17, 0), 96);
    cr_assert_eq(extent("sizeof_accumulator*blocks", 0, 0), 40);
    cr_assert_eq(extent("n0*n1", UINT64_C(1) << 40, UINT64_C(1) << 40), UINT64_MAX);
    cr_assert_eq(extent("n0+n1", UINT64_C(1) << 62, 1), UINT64_MAX);
    cr_assert_eq(extent("n0*n1", UINT64_C(1) << 63, 0), 0);
    cr_assert_eq(extent("nothing", 1, 1), UINT64_MAX);
    cr_assert_eq(extent("n0*", 1, 1), UINT64_MAX);
    cr_assert_eq(extent("n0-1", 1, 1), UINT64_MAX);
    cr_assert_eq(extent("(n0-2)", 1, 1), UINT64_MAX);
}

static struct builtin_plan plan_of(const char *name, enum builtin_dtype dtype, const uint64_t *values, enum status want)
{
    struct builtin_plan plan;
    struct problem      why = {0};

    cr_assert_eq(builtin_plan_of(named(name), dtype, values, &device, &plan, &why), want, "%s", why.detail);
    return plan;
}

Test(kernels, grids)
{
    struct builtin_plan p;

    p = plan_of("add", BUILTIN_DTYPE_f32, (uint64_t[BUILTIN_ARGS_MAX]){[3] = 1000000}, STATUS_OK);
    cr_assert_eq(p.grid[0], (1000000 + 1023) / 1024);
    cr_assert_not(p.takes_slot || p.takes_scratch || p.cooperative);
    p = plan_of("add", BUILTIN_DTYPE_f32, (uint64_t[BUILTIN_ARGS_MAX]){[3] = UINT64_C(1) << 60}, STATUS_OK);
    cr_assert_eq(p.grid[0], device.max_grid[0]);
    p = plan_of("add", BUILTIN_DTYPE_f32, (uint64_t[BUILTIN_ARGS_MAX]){0}, STATUS_OK);
    cr_assert_eq(p.grid[0], 1);
    p = plan_of("reduce_sum", BUILTIN_DTYPE_u8, (uint64_t[BUILTIN_ARGS_MAX]){[2] = 1 << 30}, STATUS_OK);
    cr_assert_eq(p.grid[0], 40);
    cr_assert(p.takes_slot && !p.takes_scratch && !p.cooperative);
    p = plan_of("softmax", BUILTIN_DTYPE_f32, (uint64_t[BUILTIN_ARGS_MAX]){[2] = 7, [3] = 1000}, STATUS_OK);
    cr_assert(p.grid[0] == 7 && p.block[0] == 64);
    p = plan_of("transpose", BUILTIN_DTYPE_f32, (uint64_t[BUILTIN_ARGS_MAX]){[2] = 1 << 30, [3] = 33, [4] = 2}, STATUS_OK);
    cr_assert(p.grid[0] == 2 && p.grid[1] == 65535 && p.grid[2] == 2);
    p = plan_of("scan_sum", BUILTIN_DTYPE_u8, (uint64_t[BUILTIN_ARGS_MAX]){[2] = 10000}, STATUS_OK);
    cr_assert(p.grid[0] == 5 && p.cooperative && p.takes_slot && p.takes_scratch);
    cr_assert_eq(p.scratch_bytes, 10000 * 8 / 16384 * 32 + 32);
}

Test(kernels, matrices_have_a_block_each_with_scratch_memory)
{
    const uint64_t      none[BUILTIN_ARGS_MAX] = {[9] = 3};
    uint64_t            values[BUILTIN_ARGS_MAX] = {[5] = 100, [6] = 7}; /* n, batch */
    struct builtin_plan p = plan_of("lu", BUILTIN_DTYPE_f64, values, STATUS_OK);

    cr_assert(p.grid[0] == 7 && p.block[0] == 128 && p.takes_scratch && !p.takes_slot && !p.cooperative);
    cr_assert_eq(p.scratch_bytes, 7 * 100 * 16 * 8);
    cr_assert_eq(plan_of("lu", BUILTIN_DTYPE_f32, values, STATUS_OK).block[0], 64);
    values[5] = 1 << 20;
    cr_assert_eq(plan_of("lu", BUILTIN_DTYPE_f64, values, STATUS_OK).block[0], 1024);
    values[5] = UINT64_C(1) << 31;
    plan_of("lu", BUILTIN_DTYPE_f64, values, STATUS_ARGUMENT_MISMATCH);
    p = plan_of("svd", BUILTIN_DTYPE_f32, none, STATUS_OK);
    cr_assert(p.grid[0] == 3 && p.scratch_bytes == 1);
}

Test(kernels, threads_of_the_cpu_device_take_more_and_the_source_is_told)
{
    const struct builtin_device host = {.multiprocessors = 10, .on_host = true, .max_grid = {2147483647, 65535, 65535}};
    const uint64_t              n[BUILTIN_ARGS_MAX] = {[1] = 1 << 20, [2] = 1 << 20, [3] = 1 << 20, [4] = 1 << 20};
    const struct builtin       *k;
    struct builtin_plan         gpu, cpu;
    struct problem              why;

    for (unsigned i = 0; (k = builtin_at(i)) != NULL; i++) {
        if (k->shape.rule != BUILTIN_FLAT)
            continue;
        cr_assert(k->shape.vectors && k->shape.vectors_on_host, "%s", k->name);
        if (strcmp(k->family, "elementwise") != 0)
            continue;
        cr_assert_eq(builtin_plan_of(k, BUILTIN_DTYPE_i32, n, &device, &gpu, &why), STATUS_OK, "%s", k->name);
        cr_assert_eq(builtin_plan_of(k, BUILTIN_DTYPE_i32, n, &host, &cpu, &why), STATUS_OK, "%s", k->name);
        cr_assert(builtin_vectors(k, false) == k->shape.vectors && builtin_vectors(k, true) == k->shape.vectors_on_host, "%s", k->name);
        cr_assert_eq(gpu.grid[0] * builtin_vectors(k, false), (1 << 20) / (256 * 4), "%s", k->name);
        cr_assert_eq(cpu.grid[0] * builtin_vectors(k, true), gpu.grid[0] * builtin_vectors(k, false), "%s", k->name);
    }
    cr_assert_eq(builtin_plan_of(named("add"), BUILTIN_DTYPE_f32, n, &host, &cpu, &why), STATUS_OK);
    cr_assert(builtin_vectors(named("add"), true) == 2 && cpu.grid[0] == 512);
    cr_assert_eq(builtin_plan_of(named("where"), BUILTIN_DTYPE_f32, n, &host, &cpu, &why), STATUS_OK);
    cr_assert(builtin_vectors(named("where"), true) == 1 && cpu.grid[0] == 1024);
    cr_assert_eq(builtin_plan_of(named("reduce_sum"), BUILTIN_DTYPE_f32, n, &host, &cpu, &why), STATUS_OK);
    cr_assert_eq(builtin_vectors(named("reduce_sum"), true), 0);
}

Test(kernels, rows_of_an_axis_are_warps_or_blocks)
{
    uint64_t            values[BUILTIN_ARGS_MAX] = {[2] = 100, [3] = BUILTIN_ROW_OF_WARP, [4] = 1};
    struct builtin_plan p = plan_of("reduce_sum_axis", BUILTIN_DTYPE_f32, values, STATUS_OK);

    cr_assert(p.grid[0] == 13 && p.block[0] == 256);
    values[3]++;
    p = plan_of("reduce_sum_axis", BUILTIN_DTYPE_f32, values, STATUS_OK);
    cr_assert(p.grid[0] == 100 && p.block[0] == 256);
    values[4] = 33;
    p = plan_of("reduce_sum_axis", BUILTIN_DTYPE_f32, values, STATUS_OK);
    cr_assert(p.grid[0] == 200 && p.block[0] == 256);
}

Test(kernels, products_of_warpgroups_have_a_multiprocessor_each)
{
    const struct builtin_device hopper = {.multiprocessors = 10, .warpgroups = true, .max_grid = {2147483647, 65535, 65535}};
    const uint64_t              values[BUILTIN_ARGS_MAX] = {[3] = 1000, [4] = 1000, [5] = 1000, [6] = 1};
    struct builtin_plan         p;
    struct problem              why = {0};

    for (enum builtin_dtype dtype = BUILTIN_DTYPE_f16; dtype <= BUILTIN_DTYPE_f64; dtype++) {
        bool half = dtype == BUILTIN_DTYPE_f16 || dtype == BUILTIN_DTYPE_bf16;
        cr_assert_eq(builtin_plan_of(named("matmul"), dtype, values, &hopper, &p, &why), STATUS_OK);
        cr_assert_eq(p.block[0], half ? BUILTIN_WARPGROUP_THREADS : 256);
        cr_assert_eq(p.shared_bytes, half ? BUILTIN_WARPGROUP_BYTES : 0);
        cr_assert_eq(p.grid[0], half ? 10 : 20);
    }
    cr_assert_eq(builtin_plan_of(named("matmul_tf32_strided"), BUILTIN_DTYPE_f32, values, &hopper, &p, &why), STATUS_OK);
    cr_assert_eq(p.shared_bytes, BUILTIN_WARPGROUP_BYTES);
    p = plan_of("matmul", BUILTIN_DTYPE_bf16, values, STATUS_OK);
    cr_assert(p.block[0] == 256 && p.shared_bytes == 0 && p.grid[0] == 20);
}

Test(kernels, headers_are_all_those_that_sources_include)
{
    unsigned count = 0;
    bool     common = false;

    while (builtin_header_at(count)) {
        cr_assert_not_null(strstr(builtin_header_at(count)->name, ".cuh"));
        common = common || builtin_header_at(count) == builtin_common_source();
        count++;
    }
    cr_assert(common && count <= BUILTIN_HEADERS_MAX);
}

Test(kernels, values_out_of_bounds)
{
    plan_of("reduce_min", BUILTIN_DTYPE_f32, (uint64_t[BUILTIN_ARGS_MAX]){0}, STATUS_ARGUMENT_MISMATCH);
    plan_of("fft", BUILTIN_DTYPE_f32, (uint64_t[BUILTIN_ARGS_MAX]){[2] = 12, [3] = 1}, STATUS_ARGUMENT_MISMATCH);
    plan_of("fft", BUILTIN_DTYPE_f32, (uint64_t[BUILTIN_ARGS_MAX]){[2] = 16, [3] = 1}, STATUS_OK);
    plan_of("sort", BUILTIN_DTYPE_f32, (uint64_t[BUILTIN_ARGS_MAX]){[2] = UINT64_C(1) << 32}, STATUS_ARGUMENT_MISMATCH);
    plan_of("matmul", BUILTIN_DTYPE_f32, (uint64_t[BUILTIN_ARGS_MAX]){[3] = UINT64_C(1) << 40, [4] = UINT64_C(1) << 40, [6] = 1},
            STATUS_ARGUMENT_MISMATCH);
}

Test(kernels, libraries_do_kernels_that_there_are)
{
    static const char *const theirs[] = {"matmul",
                                         "matmul_tf32",
                                         "matmul_strided",
                                         "matmul_tf32_strided",
                                         "fft",
                                         "fft_axis",
                                         "lu",
                                         "lu_complex",
                                         "cholesky",
                                         "cholesky_complex",
                                         "triangular_solve",
                                         "triangular_solve_complex",
                                         "qr",
                                         "qr_complex",
                                         "qr_q",
                                         "qr_q_complex",
                                         "eigh",
                                         "eigh_complex",
                                         "eig",
                                         "eig_complex",
                                         "svd",
                                         "svd_complex"};
    uint32_t                 dtypes;
    unsigned                 count = 0;

    for (size_t i = 0; i < COUNT(theirs); i++) {
        const struct builtin *k = named(theirs[i]);
        unsigned              nth = 0;

        for (; builtin_library_of(k, nth, &dtypes); nth++) {
            cr_expect_not_null(builtin_library_name(builtin_library_of(k, nth, &dtypes)), "%s", theirs[i]);
            cr_expect_eq(dtypes & ~k->dtypes, 0, "%s", theirs[i]);
            cr_expect_neq(dtypes >> BUILTIN_DTYPE_f32 & 1, 0, "%s", theirs[i]);
        }
        cr_expect_gt(nth, 0, "%s", theirs[i]);
        cr_expect_eq(dtypes, 0, "%s: past the last one", theirs[i]);
    }
    for (unsigned i = 0; builtin_at(i); i++)
        count += builtin_library_of(builtin_at(i), 0, &dtypes) != BUILTIN_LIBRARY_NONE;
    cr_assert_eq(count, COUNT(theirs));
    cr_assert_null(builtin_library_name(builtin_library_of(named("add"), 0, &dtypes)));
}

Test(kernels, of_the_libraries_that_a_device_has_one_is_chosen)
{
    const uint32_t here = 1u << BUILTIN_LIBRARY_OPENBLAS | 1u << BUILTIN_LIBRARY_FFTW;
    bool           takes;

    cr_expect_eq(builtin_library_among(named("matmul"), BUILTIN_DTYPE_f32, here, &takes), BUILTIN_LIBRARY_OPENBLAS);
    cr_expect(takes);
    cr_expect_eq(builtin_library_among(named("matmul"), BUILTIN_DTYPE_f16, here, &takes), BUILTIN_LIBRARY_NONE);
    cr_expect(takes, "another library does");
    cr_expect_eq(builtin_library_among(named("matmul"), BUILTIN_DTYPE_i32, here, &takes), BUILTIN_LIBRARY_NONE);
    cr_expect_not(takes);
    cr_expect_eq(builtin_library_among(named("fft"), BUILTIN_DTYPE_f64, here, &takes), BUILTIN_LIBRARY_FFTW);
    cr_expect_eq(builtin_library_among(named("fft"), BUILTIN_DTYPE_f64, 1u << BUILTIN_LIBRARY_CUFFT, &takes), BUILTIN_LIBRARY_CUFFT);
    cr_expect_eq(builtin_library_among(named("lu"), BUILTIN_DTYPE_f64, 0, &takes), BUILTIN_LIBRARY_NONE);
}

Test(kernels, shaders_have_blocks_of_their_own_and_bounds)
{
    const struct builtin_device device_of_shaders = {.multiprocessors = 1, .max_grid = {65535, 65535, 65535}, .shades = true};
    const struct builtin       *k;
    uint64_t                    values[32];
    struct builtin_plan         p;
    struct problem              why = {0};
    unsigned                    found = 0;

    for (unsigned i = 0; i < 32; i++)
        values[i] = 1;
    for (unsigned i = 0; (k = builtin_at(i)) != NULL; i++)
        for (unsigned dtype = 0; dtype < BUILTIN_DTYPES; dtype++) {
            const struct builtin_shader *s = builtin_shader_of(k, (enum builtin_dtype)dtype);
            enum status                  st = builtin_plan_of(k, (enum builtin_dtype)dtype, values, &device_of_shaders, &p, &why);

            if (!s) {
                cr_assert_eq(st, STATUS_INVALID_FIELD, "%s", k->name);
                continue;
            }
            found++;
            cr_assert_eq(st, STATUS_OK, "%s: %s", k->name, why.detail);
            cr_assert(k->dtypes >> dtype & 1, "%s", k->name);
            cr_assert(builtin_shader_source(k) && builtin_shader_header_at(0));
            cr_assert(p.block[0] == 256 && p.grid[0] >= 1 && !p.takes_slot && !p.cooperative && !p.shared_bytes, "%s", k->name);
            cr_assert(p.takes_scratch == s->scratch && (!s->scratch || k->shape.scratch), "%s", k->name);
        }
    cr_assert_gt(found, 100);
    k = named("matmul");
    values[5] = 40000; /* k */
    cr_assert_eq(builtin_plan_of(k, BUILTIN_DTYPE_f32, values, &device_of_shaders, &p, &why), STATUS_ARGUMENT_MISMATCH);
    values[3] = values[4] = 1024, values[5] = 1024;
    cr_assert_eq(builtin_plan_of(k, BUILTIN_DTYPE_f32, values, &device_of_shaders, &p, &why), STATUS_OK);
    cr_assert_geq(p.grid[0], 1024);
    k = named("reduce_sum_axis"); /* a thread for each result, and a block where the axis is longer */
    for (values[3] = 32; values[3] <= 33; values[3]++) {
        values[2] = 6000, values[4] = 10;
        cr_assert_eq(builtin_plan_of(k, BUILTIN_DTYPE_f32, values, &device_of_shaders, &p, &why), STATUS_OK);
        cr_assert_eq(p.grid[0], values[3] == 32 ? 60000 / 256 + 1 : 60000);
    }
    k = named("reduce_sum");
    values[2] = 1ull << 40;
    cr_assert_eq(builtin_plan_of(k, BUILTIN_DTYPE_f32, values, &device_of_shaders, &p, &why), STATUS_ARGUMENT_MISMATCH);
}
