/* The other shapes of built-in kernels: their rows, when they may be taken, and the sizes that a measurement stands for. */
#include "kernels/kernels.h"

#include <criterion/criterion.h>

static const struct builtin_device ampere = {.multiprocessors = 10, .max_grid = {2147483647, 65535, 65535}};
static const struct builtin_device hopper = {.multiprocessors = 10, .warpgroups = true, .max_grid = {2147483647, 65535, 65535}};

static const struct builtin *named(const char *name)
{
    const struct builtin *k = builtin_find(span_of(name));

    cr_assert_not_null(k, "%s", name);
    return k;
}

static unsigned number_of(const char *kernel, const char *candidate)
{
    unsigned number = 99;

    cr_assert(builtin_candidate_find(named(kernel), span_of(candidate), &number), "%s of %s", candidate, kernel);
    return number;
}

Test(candidates, every_row_belongs_to_a_kernel_and_has_a_name_of_its_own)
{
    const struct builtin *k;
    unsigned              tunable = 0;

    for (unsigned i = 0; (k = builtin_at(i)) != NULL; i++) {
        unsigned count = builtin_candidates(k), found;
        cr_assert_leq(count, BUILTIN_CANDIDATES_MAX);
        cr_assert_str_eq(builtin_candidate_name(k, 0), "default");
        cr_assert_null(builtin_candidate_options(k, 0)[0]);
        cr_assert_null(builtin_candidate_name(k, count), "%s has more candidates than are counted", k->name);
        for (unsigned n = 0; n < count; n++) {
            cr_assert_lt(strlen(builtin_candidate_name(k, n)), CANDIDATE_NAME_BYTES);
            cr_assert(builtin_candidate_find(k, span_of(builtin_candidate_name(k, n)), &found));
            cr_assert_eq(found, n, "%s has two candidates %s", k->name, builtin_candidate_name(k, n));
            cr_assert(n == 0 || builtin_candidate_options(k, n)[0], "%s would compile to the same code", k->name);
        }
        tunable += count > 1;
    }
    cr_assert_gt(tunable, 80);
}

Test(candidates, kernels_whose_sums_follow_their_block_have_none)
{
    static const char *const theirs[] = {"softmax",    "log_softmax", "layer_norm",  "rms_norm", "reduce_sum",
                                         "reduce_var", "scan_sum",    "scatter_add", "scatter"};

    for (size_t i = 0; i < COUNT(theirs); i++)
        cr_expect_eq(builtin_candidates(named(theirs[i])), 1, "%s", theirs[i]);
}

Test(candidates, a_shape_makes_another_grid)
{
    uint64_t            n[BUILTIN_ARGS_MAX] = {[3] = 1 << 20};
    uint64_t            matrix[BUILTIN_ARGS_MAX] = {[2] = 256, [3] = 320, [4] = 2}; /* rows, columns, batch */
    struct builtin      as = builtin_as(named("add"), number_of("add", "threads_512"));
    struct builtin_plan p;
    struct problem      why;

    cr_assert_eq(builtin_plan_of(&as, BUILTIN_DTYPE_f32, n, &ampere, &p, &why), STATUS_OK);
    cr_assert_eq(p.block[0], 512);
    cr_assert_eq(p.grid[0], (1 << 20) / (512 * 4));
    as = builtin_as(named("add"), 0);
    cr_assert_eq(builtin_plan_of(&as, BUILTIN_DTYPE_f32, n, &ampere, &p, &why), STATUS_OK);
    cr_assert_eq(p.block[0], 256);
    as = builtin_as(named("transpose"), number_of("transpose", "tile_32x32_thin"));
    cr_assert_eq(builtin_plan_of(&as, BUILTIN_DTYPE_f32, matrix, &ampere, &p, &why), STATUS_OK);
    cr_assert_eq(p.block[0], 128);
    cr_assert(p.grid[0] == 10 && p.grid[1] == 8 && p.grid[2] == 2);
}

Test(candidates, warps_of_a_block_are_changed_only_where_each_has_a_row)
{
    const struct builtin *k = named("reduce_sum_axis");
    unsigned              four = number_of("reduce_sum_axis", "warps_4");
    uint64_t              rows[BUILTIN_ARGS_MAX] = {[2] = 100, [3] = BUILTIN_ROW_OF_WARP, [4] = 1};
    struct builtin        as = builtin_as(k, four);
    struct builtin_plan   p;
    struct problem        why;

    cr_assert(builtin_candidate_fits(k, four, BUILTIN_DTYPE_f32, rows, &ampere));
    cr_assert_eq(builtin_plan_of(&as, BUILTIN_DTYPE_f32, rows, &ampere, &p, &why), STATUS_OK);
    cr_assert(p.block[0] == 128 && p.grid[0] == 25);
    rows[3]++;
    cr_assert_not(builtin_candidate_fits(k, four, BUILTIN_DTYPE_f32, rows, &ampere));
    cr_assert(builtin_candidate_fits(k, 0, BUILTIN_DTYPE_f32, rows, &ampere));
    rows[3] = 16;
    rows[4] = 2;
    cr_assert_not(builtin_candidate_fits(k, four, BUILTIN_DTYPE_f32, rows, &ampere));
}

Test(candidates, tiles_of_products_are_the_warpgroups_own_where_there_are_some)
{
    uint64_t values[BUILTIN_ARGS_MAX] = {0};
    unsigned large = number_of("matmul", "large_tiles");

    cr_assert(builtin_candidate_fits(named("matmul"), large, BUILTIN_DTYPE_f16, values, &ampere));
    cr_assert_not(builtin_candidate_fits(named("matmul"), large, BUILTIN_DTYPE_f16, values, &hopper));
    cr_assert(builtin_candidate_fits(named("matmul"), large, BUILTIN_DTYPE_f32, values, &hopper));
}

Test(candidates, sizes_fall_into_classes_of_powers_of_four)
{
    uint64_t       values[BUILTIN_ARGS_MAX] = {[3] = 100}, bytes;
    struct problem why;

    cr_assert_eq(builtin_size_class(0), 0);
    cr_assert_eq(builtin_size_class(3), 0);
    cr_assert_eq(builtin_size_class(4), 1);
    cr_assert_eq(builtin_size_class(UINT64_MAX), BUILTIN_SIZE_CLASSES - 1);
    for (unsigned c = 1; c < BUILTIN_SIZE_CLASSES; c++) {
        cr_assert_eq(builtin_size_class(builtin_size_class_least(c)), c);
        cr_assert_eq(builtin_size_class(builtin_size_class_least(c) - 1), c - 1);
    }
    cr_assert_eq(builtin_all_bytes(named("add"), BUILTIN_DTYPE_f64, values, &bytes, &why), STATUS_OK);
    cr_assert_eq(bytes, 3 * 800);
    values[3] = UINT64_MAX;
    cr_assert_neq(builtin_all_bytes(named("add"), BUILTIN_DTYPE_f64, values, &bytes, &why), STATUS_OK);
}
