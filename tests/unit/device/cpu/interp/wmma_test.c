/* wmma against matrix products computed here: every shape and type in NVIDIA's mma.h, in several layouts, and refusals. */
#include <stdio.h>

#include "device/cpu/interp/ops/math.h"
#include "unit/device/cpu/interp/the_rig.h"


TestSuite(wmma, .init = the_rig_start, .fini = the_rig_stop);

enum kind { F16, BF16, TF32, F64, S8, U8, S4, U4, B1, F32, S32 };
enum { SIDE_BYTES = 8192, COLUMNS = 1 };

/* Layouts: COLUMNS is column-major. Strides are in elements. */
static const struct product {
    const char *kernel;
    unsigned    m, n, k;
    enum kind   of, sum;
    unsigned    la, lb, lc, ld, lda, ldb, ldc;
    bool        and_bits;
} products[] = {
    {"f16_16_rc", 16, 16, 16, F16, F32, 0, 1, 0, 0, 16, 16, 16, false},
    {"f16_16_cr", 16, 16, 16, F16, F32, 1, 0, 1, 0, 16, 16, 16, false},
    {"f16_32_rr", 32, 8, 16, F16, F32, 0, 0, 0, 1, 16, 8, 32, false},
    {"f16_8_cc", 8, 32, 16, F16, F32, 1, 1, 1, 1, 8, 16, 8, false},
    {"h16_16_rc", 16, 16, 16, F16, F16, 0, 1, 0, 0, 16, 16, 16, false},
    {"h16_32_cr", 32, 8, 16, F16, F16, 1, 0, 0, 0, 32, 8, 8, false},
    {"bf_16_rc", 16, 16, 16, BF16, F32, 0, 1, 0, 0, 16, 16, 16, false},
    {"bf_32_cc", 32, 8, 16, BF16, F32, 1, 1, 0, 0, 32, 16, 8, false},
    {"bf_8_rr", 8, 32, 16, BF16, F32, 0, 0, 0, 0, 16, 32, 32, false},
    {"s8_16_rc", 16, 16, 16, S8, S32, 0, 1, 0, 0, 16, 16, 16, false},
    {"u8_32_cr", 32, 8, 16, U8, S32, 1, 0, 0, 0, 32, 8, 8, false},
    {"s8_8_rr", 8, 32, 16, S8, S32, 0, 0, 0, 0, 16, 32, 32, false},
    {"tf_16_rc", 16, 16, 8, TF32, F32, 0, 1, 0, 0, 8, 8, 16, false},
    {"f64_8_cr", 8, 8, 4, F64, F64, 1, 0, 0, 0, 8, 8, 8, false},
    {"s4_8", 8, 8, 32, S4, S32, 0, 1, 0, 0, 32, 32, 8, false},
    {"u4_8", 8, 8, 32, U4, S32, 0, 1, 0, 0, 32, 32, 8, false},
    {"b1_xor", 8, 8, 128, B1, S32, 0, 1, 0, 0, 128, 128, 8, false},
    {"b1_and", 8, 8, 128, B1, S32, 0, 1, 0, 0, 128, 128, 8, true},
};

static void put(void *memory, enum kind kind, unsigned at, double v)
{
    unsigned char *bytes = memory;

    switch (kind) {
    case F16:  ((uint16_t *)memory)[at] = f16_from_f64(v, ROUND_NEAREST); break;
    case BF16: ((uint16_t *)memory)[at] = bf16_from_f64(v, ROUND_NEAREST); break;
    case TF32:
    case F32:  ((float *)memory)[at] = (float)v; break;
    case F64:  ((double *)memory)[at] = v; break;
    case S8:
    case U8:   bytes[at] = (unsigned char)(int)v; break;
    case S32:  ((int32_t *)memory)[at] = (int32_t)v; break;
    case S4:
    case U4:   bytes[at / 2] |= (unsigned char)(((int)v & 15) << at % 2 * 4); break;
    case B1:   bytes[at / 8] |= (unsigned char)(((int)v & 1) << at % 8); break;
    }
}

static double take(const void *memory, enum kind kind, unsigned at)
{
    switch ((int)kind) {
    case F16: return (double)f32_from_f16(((const uint16_t *)memory)[at]);
    case F32: return (double)((const float *)memory)[at];
    case F64: return ((const double *)memory)[at];
    default:  return ((const int32_t *)memory)[at];
    }
}

/* Small integers, for which every sum is exact in every type that can hold them. */
static double sample(enum kind kind, unsigned i)
{
    int v = (int)(i * 7 + i / 5) % 15;

    switch ((int)kind) {
    case B1: return v % 3 == 0;
    case U8: return v + 240;
    case U4: return v;
    default: return v - 8;
    }
}

static unsigned place(unsigned row, unsigned column, unsigned by_columns, unsigned stride)
{
    return by_columns ? column * stride + row : row * stride + column;
}

static double expected(const struct product *p, const double *a, const double *b, double sum, unsigned row, unsigned column)
{
    for (unsigned k = 0; k < p->k; k++) {
        double x = a[row * p->k + k], y = b[k * p->n + column];
        sum += p->of != B1 || p->and_bits ? x * y : x != y;
    }
    return sum;
}

static void check_product(const struct product *p)
{
    void  *ma = rig_memory(&r, SIDE_BYTES), *mb = rig_memory(&r, SIDE_BYTES), *mc = rig_memory(&r, SIDE_BYTES), *md = rig_memory(&r, SIDE_BYTES);
    double a[1024], b[1024], c[256];

    for (unsigned i = 0; i < p->m * p->k; i++)
        put(ma, p->of, place(i / p->k, i % p->k, p->la, p->lda), a[i] = sample(p->of, i));
    for (unsigned i = 0; i < p->k * p->n; i++)
        put(mb, p->of, place(i / p->n, i % p->n, p->lb, p->ldb), b[i] = sample(p->of, 3 * i + 1));
    for (unsigned i = 0; i < p->m * p->n; i++)
        put(mc, p->sum, place(i / p->n, i % p->n, p->lc, p->ldc), c[i] = (double)(i % 11) - 5);
    cr_assert_eq(RUN(&r, p->kernel, SHAPE(1, 32), ADDRESS(ma), ADDRESS(mb), ADDRESS(mc), ADDRESS(md)), STATUS_OK, "%s: %s", p->kernel,
                 r.why.detail);
    for (unsigned i = 0; i < p->m * p->n; i++) {
        double got = take(md, p->sum, place(i / p->n, i % p->n, p->ld, p->ldc)), want = expected(p, a, b, c[i], i / p->n, i % p->n);
        cr_assert(got == want, "%s, element (%u,%u): %f, not %f", p->kernel, i / p->n, i % p->n, got, want);
    }
}

Test(wmma, products_of_every_shape_and_type)
{
    rig_load_file(&r, "wmma.ptx");
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        check_product(&products[i]);
}

/* (2 a) b + 1, halved, where b is the unit matrix: a + 1/2; one tile per warp, loaded from shared memory. */
Test(wmma, fragments_are_changed_element_by_element)
{
    uint16_t *a = rig_memory(&r, 1024), *b = rig_memory(&r, 512);
    float    *d = rig_memory(&r, 2048);

    rig_load_file(&r, "wmma.ptx");
    for (unsigned i = 0; i < 512; i++)
        a[i] = f16_from_f64((double)i - 200, ROUND_NEAREST);
    for (unsigned i = 0; i < 16; i++)
        b[17 * i] = f16_from_f64(1, ROUND_NEAREST);
    OK("scaled", SHAPE(1, 64), ADDRESS(a), ADDRESS(b), ADDRESS(d));
    for (unsigned i = 0; i < 512; i++)
        cr_assert_float_eq(d[i], (float)i - 200 + 0.5f, 0, "%u: %f", i, (double)d[i]);
}

#define MATRIX_KERNEL(body) \
    HEAD ".visible .entry k(.param .u64 p) {\n.reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .f32 %f<20>;\nld.param.u64 %rd1, [p];\n" body "\nret; }"
#define EIGHT(p) "{%" p "0, %" p "1, %" p "2, %" p "3, %" p "4, %" p "5, %" p "6, %" p "7}"

static void refused(const char *text, const char *opcode)
{
    char expect[160];

    cr_assert_eq(rig_try_load(&r, text), STATUS_MODULE_INVALID, "%s was loaded", opcode);
    snprintf(expect, sizeof expect, "`%s", opcode);
    cr_assert(strstr(r.why.detail, expect), "%s", r.why.detail);
    SAYS("not supported on device cpu, PTX line 7");
}

Test(wmma, forms_that_do_not_exist_are_refused_by_name_and_line)
{
    refused(MATRIX_KERNEL("wmma.load.a.sync.aligned.row.m16n16k16.global.f32 " EIGHT("f") ", [%rd1], 16;"), "wmma.load.a");
    refused(MATRIX_KERNEL("wmma.load.a.sync.aligned.row.m16n16k16.global.bf16 " EIGHT("r") ", [%rd1], 16;"), "wmma.load.a");
    refused(MATRIX_KERNEL("wmma.load.c.sync.aligned.row.m16n16k16.global.f64 " EIGHT("rd") ", [%rd1], 16;"), "wmma.load.c");
    refused(MATRIX_KERNEL("wmma.load.d.sync.aligned.row.m16n16k16.global.f32 " EIGHT("f") ", [%rd1], 16;"), "wmma.load.d");
    refused(MATRIX_KERNEL("wmma.store.c.sync.aligned.row.m16n16k16.global.f32 [%rd1], " EIGHT("f") ", 16;"), "wmma.store.c");
    refused(MATRIX_KERNEL("wmma.load.a.sync.aligned.col.m8n8k32.global.s4 {%r1}, [%rd1], 32;"), "wmma.load.a");
    refused(MATRIX_KERNEL("wmma.mma.sync.aligned.row.m16n16k16.f32.f32 " EIGHT("f") ", " EIGHT("r") ", " EIGHT("r1") ", " EIGHT("f") ";"), "wmma.mma");
    refused(MATRIX_KERNEL("wmma.mma.sync.aligned.row.col.m16n16k16.s32.s32 " EIGHT("r") ", " EIGHT("r") ", " EIGHT("r1") ", " EIGHT("r2") ";"), "wmma.mma");
    refused(MATRIX_KERNEL("wmma.mma.or.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r1, %r2}, {%r3}, {%r4}, {%r5, %r6};"), "wmma.mma.or");
}

Test(wmma, an_address_outside_is_an_error_of_its_thread)
{
    rig_load(&r, MATRIX_KERNEL("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " EIGHT("r") ", [%rd1], 16;"));
    FAULTS(700, "k", SHAPE(1, 32), 0);
    SAYS("illegal shared address");
}
