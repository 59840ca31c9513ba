/* Products and transforms by libraries of the GPU's maker, on fakes that do what the real ones would: that what is asked in rows comes out
 * in rows, with every stride, batch and number; what is refused; that a failure of any call leaves nothing behind. */
#include "unit/device/cuda/vendor/fixture.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

static struct device *d;
static struct problem why;

static void start(void)
{
    d = vendor_open();
}

static void stop(void)
{
    ops->close(d);
    cr_assert_eq(vendor_live(), 0);
    cr_assert_eq(fixture_live(), 0);
}

TestSuite(vendor, .init = start, .fini = stop);

/* Loads a plan; *workspace: as much memory as it wants. */
static struct device_module *loaded(const struct vendor_plan *p, uint64_t *workspace)
{
    struct device_module *m = NULL;

    cr_assert_eq(ops->vendor_load(d, p, &m, workspace, &why), STATUS_OK, "%s", why.detail);
    if (*workspace)
        *workspace = fixture_memory(d, *workspace);
    return m;
}

enum { ELEMENTS = 1 << 14 };

/* ---- products ---- */

static unsigned bytes_of(uint32_t number)
{
    return number == VENDOR_F64 ? 8 : number == VENDOR_F16 || number == VENDOR_BF16 ? 2 : 4;
}

/* Small integers, which every type holds exactly. */
static void put(void *at, uint32_t number, uint64_t i, int value)
{
    float    single = (float)value;
    uint32_t bits;
    int      size = abs(value), exponent = 0;

    memcpy(&bits, &single, sizeof bits);
    while (size >> exponent > 1)
        exponent++;
    if (number == VENDOR_F64)
        ((double *)at)[i] = value;
    else if (number == VENDOR_BF16)
        ((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
    else if (number == VENDOR_F16)
        ((uint16_t *)at)[i] = (uint16_t)((value < 0 ? 0x8000 : 0) | (value ? (exponent + 15) << 10 | (size << (10 - exponent) & 1023) : 0));
    else
        ((float *)at)[i] = single;
}

static int seeded(uint64_t i, unsigned seed)
{
    return (int)((i * 7 + seed * 5 + i / 3) % 7) - 3;
}

/* Compares all of `out`, gaps included, with plain loops over rows; 99 marks places that must not be written. */
static void check_product(const struct vendor_plan *p, uint64_t offset)
{
    struct device_module *m = NULL;
    unsigned              each = bytes_of(p->number);
    uint64_t              a = fixture_memory(d, ELEMENTS * 8), b = fixture_memory(d, ELEMENTS * 8), out = fixture_memory(d, ELEMENTS * 8);
    static unsigned char  expected[ELEMENTS * 8];
    struct vendor_matmul_params at = {a + offset * each, b + offset * each, out + offset * each, 0};

    for (uint64_t i = 0; i < ELEMENTS; i++) {
        put((void *)(uintptr_t)a, p->number, i, seeded(i - offset, 1));
        put((void *)(uintptr_t)b, p->number, i, seeded(i - offset, 2));
        put((void *)(uintptr_t)out, p->number, i, 99);
        put(expected, p->number, i, 99);
    }
    for (uint64_t z = 0; z < p->batch; z++)
        for (uint64_t i = 0; i < p->m; i++)
            for (uint64_t j = 0; j < p->n; j++) {
                int sum = 0;
                for (uint64_t k = 0; k < p->k; k++)
                    sum += seeded(z * p->a.matrix + i * p->a.row + k, 1) * seeded(z * p->b.matrix + k * p->b.row + j, 2);
                put(expected, p->number, offset + z * p->out.matrix + i * p->out.row + j, sum);
            }
    m = loaded(p, &at.workspace);
    cr_assert_eq(vendor_launch(d, m, &at, sizeof at, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(memcmp((void *)(uintptr_t)out, expected, (size_t)ELEMENTS * each), 0, "%u: %u x %u x %u", p->number, (unsigned)p->m,
                 (unsigned)p->n, (unsigned)p->k);
    ops->module_unload(d, m);
}

Test(vendor, products_are_of_rows_for_every_number_and_shape)
{
    static const uint64_t sizes[][4] = {{1, 1, 1, 1}, {2, 3, 4, 1}, {5, 1, 7, 1}, {1, 6, 3, 1}, {7, 5, 3, 4}, {16, 8, 80, 1}, {3, 2, 5, 6}};

    for (uint32_t number = VENDOR_F16; number <= VENDOR_F64; number++)
        for (size_t i = 0; i < COUNT(sizes); i++) {
            struct vendor_plan p = vendor_dense((enum vendor_number)number, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]);
            check_product(&p, 0);
        }
}

Test(vendor, rows_and_matrices_may_lie_any_distance_apart)
{
    struct vendor_plan p = vendor_dense(VENDOR_F32, 4, 5, 6, 3);

    p.a.row = 9;
    p.b.row = 7;
    p.out.row = 8;
    p.a.matrix = 50;
    p.b.matrix = 61;
    p.out.matrix = 40;
    check_product(&p, 0);
    p.b.matrix = 0; /* the same one for all */
    check_product(&p, 0);
    p.a.matrix = 0;
    check_product(&p, 0);
}

Test(vendor, matrices_may_begin_between_the_aligned_places_when_that_was_said)
{
    struct vendor_plan p = vendor_dense(VENDOR_F32, 4, 4, 4, 1);

    p.a.alignment_bytes = p.b.alignment_bytes = p.out.alignment_bytes = 4;
    check_product(&p, 3);
    p.number = VENDOR_F64;
    p.a.alignment_bytes = p.b.alignment_bytes = p.out.alignment_bytes = 8;
    check_product(&p, 1);
}

Test(vendor, a_matrix_at_another_alignment_is_refused)
{
    struct vendor_plan          p = vendor_dense(VENDOR_F32, 4, 4, 4, 1);
    uint64_t                    x = fixture_memory(d, 4096);
    struct vendor_matmul_params good = {x, x + 1024, x + 2048, 0};
    struct device_module       *m = loaded(&p, &good.workspace);
    uint64_t                   *members[] = {&good.a, &good.b, &good.out};

    for (size_t i = 0; i < COUNT(members); i++) {
        *members[i] += 4;
        cr_expect_eq(vendor_launch(d, m, &good, sizeof good, &why), STATUS_LAUNCH_CONFIG_INVALID);
        *members[i] -= 4;
    }
    cr_assert_eq(vendor_launch(d, m, &good, sizeof good, &why), STATUS_OK);
}

Test(vendor, only_tf32_rounds_operands)
{
    uint64_t                    x = fixture_memory(d, 4096);
    struct vendor_matmul_params at = {x, x + 1024, x + 2048, 0};
    const float                 fine = 1 + 1.0f / 4096;

    *(float *)(uintptr_t)at.a = fine;
    *(float *)(uintptr_t)at.b = 1;
    for (uint32_t number = VENDOR_F32; number <= VENDOR_TF32; number++) {
        struct vendor_plan    p = vendor_dense((enum vendor_number)number, 1, 1, 1, 1);
        struct device_module *m = loaded(&p, &at.workspace);

        cr_assert_eq(vendor_launch(d, m, &at, sizeof at, &why), STATUS_OK);
        cr_assert_eq(*(float *)(uintptr_t)at.out, number == VENDOR_F32 ? fine : 1);
    }
}

Test(vendor, a_product_has_its_workspace_or_does_without)
{
    struct vendor_plan          p = vendor_dense(VENDOR_F32, 2, 2, 64, 1);
    struct device_module       *m = NULL;
    uint64_t                    x = fixture_memory(d, 4096), workspace = 0;
    struct vendor_matmul_params at = {x, x + 1024, x + 2048, 0};

    cr_assert_eq(ops->vendor_load(d, &p, &m, &workspace, &why), STATUS_OK);
    cr_assert_gt(workspace, 0);
    cr_assert_eq(vendor_launch(d, m, &at, sizeof at, &why), STATUS_LAUNCH_CONFIG_INVALID);
    p.workspace_max = 0;
    cr_assert_eq(ops->vendor_load(d, &p, &m, &workspace, &why), STATUS_OK);
    cr_assert_eq(workspace, 0);
    cr_assert_eq(vendor_launch(d, m, &at, sizeof at, &why), STATUS_OK);
}

/* ---- transforms ---- */

static double number_at(uint64_t address, uint32_t number, uint64_t i)
{
    return number == VENDOR_F64 ? ((double *)(uintptr_t)address)[i] : (double)((float *)(uintptr_t)address)[i];
}

static void run_transform(const struct vendor_plan *p, uint64_t x, uint64_t out)
{
    struct vendor_fft_params at = {x, out, 0};
    struct device_module    *m = loaded(p, &at.workspace);

    cr_assert_eq(vendor_launch(d, m, &at, sizeof at, &why), STATUS_OK, "%s", why.detail);
    ops->module_unload(d, m);
}

/* Forward against the definition, and back to the input. */
static void check_transform(const struct vendor_plan *p)
{
    uint64_t x = fixture_memory(d, ELEMENTS * 16), there = fixture_memory(d, ELEMENTS * 16), back = fixture_memory(d, ELEMENTS * 16);
    uint64_t count = p->length * p->batch;
    struct vendor_plan inverse = *p;

    inverse.inverse = 1;
    for (uint64_t i = 0; i < 2 * count; i++)
        put((void *)(uintptr_t)x, p->number, i, seeded(i, 3));
    run_transform(p, x, there);
    run_transform(&inverse, there, back);
    for (uint64_t z = 0; z < p->batch; z++)
        for (uint64_t f = 0; f < p->length; f++) {
            uint64_t at = z * p->distance + f * p->stride;
            double   re = 0, im = 0;

            for (uint64_t t = 0; t < p->length; t++) {
                double angle = -2 * M_PI * (double)(f * t) / (double)p->length;
                double a = seeded(2 * (z * p->distance + t * p->stride), 3), b = seeded(2 * (z * p->distance + t * p->stride) + 1, 3);
                re += a * cos(angle) - b * sin(angle);
                im += a * sin(angle) + b * cos(angle);
            }
            cr_assert_float_eq(number_at(there, p->number, 2 * at), re, 1e-3);
            cr_assert_float_eq(number_at(there, p->number, 2 * at + 1), im, 1e-3);
        }
    for (uint64_t i = 0; i < 2 * count; i++)
        cr_assert_float_eq(number_at(back, p->number, i), seeded(i, 3), 1e-5);
}

Test(vendor, transforms_behind_each_other_and_side_by_side)
{
    for (int wide = 0; wide < 2; wide++) {
        enum vendor_number number = wide ? VENDOR_F64 : VENDOR_F32;
        struct vendor_plan one = vendor_transform(number, 8, 1, false), many = vendor_transform(number, 4, 5, false),
                           large = vendor_transform(number, 64, 2, false);
        struct vendor_plan beside = vendor_transform(number, 16, 3, false);

        beside.stride = 3;
        beside.distance = 1;
        check_transform(&one);
        check_transform(&many);
        check_transform(&large);
        check_transform(&beside);
    }
}

/* ---- refusals ---- */

static enum status load(struct vendor_plan p)
{
    struct device_module *m = NULL;
    uint64_t              workspace = 0;
    enum status           st = ops->vendor_load(d, &p, &m, &workspace, &why);

    if (!st)
        ops->module_unload(d, m);
    cr_assert_eq(why.status == STATUS_OK || why.status == st || !st, true);
    return st;
}

Test(vendor, what_no_library_does_is_refused_and_harms_nothing)
{
    struct vendor_plan good = vendor_dense(VENDOR_F32, 4, 4, 4, 1), t = vendor_transform(VENDOR_F32, 8, 1, false);
    struct vendor_plan p[] = {good, good, good, good, good, good, vendor_dense(VENDOR_F32, 13, 4, 4, 1), t, t, t, t, t};

    cr_expect_eq(load(good), STATUS_OK);
    p[0].m = 0;
    p[1].k = 1ull << 31;
    p[2].a.row = 3;
    p[3].out.row = UINT64_MAX;
    p[4].b.alignment_bytes = 12;
    p[5].number = VENDOR_F64 + 1; /* 6: an input that only the fake refuses */
    p[7].length = 4096;
    p[8].number = VENDOR_F16;
    p[9].batch = UINT64_MAX / 2;
    p[10].stride = 0;
    p[11].inverse = 2;
    for (size_t i = 0; i < COUNT(p); i++)
        cr_expect_eq(load(p[i]), STATUS_NOT_IMPLEMENTED, "plan %zu", i);
    p[0] = good, p[0].operation = VENDOR_OPERATIONS;
    cr_expect_eq(load(p[0]), STATUS_INVALID_REQUEST);
    cr_expect_eq(load(t), STATUS_OK);
}

Test(vendor_absent, without_libraries_there_are_neither_versions_nor_plans)
{
    static struct device_info info;

    device_set(SPAN_LITERAL("cublaslt"), NULL);
    device_set(SPAN_LITERAL("cufft"), "/nowhere/libcufft.so");
    d = fixture_open();
    cr_assert_eq(ops->info(d, &info), STATUS_OK);
    cr_assert_str_eq(info.libraries[0].name, "");
    cr_expect_eq(load(vendor_dense(VENDOR_F32, 4, 4, 4, 1)), STATUS_NOT_IMPLEMENTED);
    cr_expect_eq(load(vendor_transform(VENDOR_F32, 8, 1, false)), STATUS_NOT_IMPLEMENTED);
    ops->close(d);
}

Test(vendor_absent, a_library_that_lacks_functions_is_not_used)
{
    static struct device_info info;

    device_set(SPAN_LITERAL("cublaslt"), FAKE_CUFFT);
    device_set(SPAN_LITERAL("cufft"), FAKE_CUBLASLT); /* each taken for the other */
    d = fixture_open();
    cr_assert_eq(ops->info(d, &info), STATUS_OK);
    cr_assert_str_eq(info.libraries[0].name, "");
    ops->close(d);
}

Test(vendor, versions_are_told)
{
    static struct device_info info;

    cr_assert_eq(ops->info(d, &info), STATUS_OK);
    cr_assert_str_eq(info.libraries[0].name, "cublaslt");
    cr_assert_str_eq(info.libraries[0].version, "13.2.99");
    cr_assert_str_eq(info.libraries[1].name, "cufft");
    cr_assert_str_eq(info.libraries[1].version, "12.3.45");
    cr_assert_str_eq(info.libraries[2].name, "cusolver");
    cr_assert_str_eq(info.libraries[2].version, "12.3.45");
}

Test(vendor, best_block_and_cooperation_are_of_no_meaning)
{
    struct vendor_plan          p = vendor_dense(VENDOR_F32, 4, 4, 4, 1);
    struct device_module       *m = NULL;
    uint64_t                    workspace = 0, x = fixture_memory(d, 4096);
    struct vendor_matmul_params at = {x, x + 1024, x + 2048, 0};
    struct device_launch        l = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .cooperative = true, .params = &at, .params_bytes = sizeof at};
    uint32_t                    threads;

    cr_assert_eq(ops->vendor_load(d, &p, &m, &workspace, &why), STATUS_OK);
    cr_assert_eq(ops->best_block(d, m, 0, 0, &threads), STATUS_LAUNCH_CONFIG_INVALID);
    l.module = m;
    cr_assert_eq(ops->launch(d, NULL, &l, &why), STATUS_LAUNCH_CONFIG_INVALID);
    l.cooperative = false;
    l.block[0] = 2;
    cr_assert_eq(ops->launch(d, NULL, &l, &why), STATUS_LAUNCH_CONFIG_INVALID);
    l.block[0] = 1;
    l.params_bytes--;
    cr_assert_eq(ops->launch(d, NULL, &l, &why), STATUS_ARGUMENT_MISMATCH);
}
