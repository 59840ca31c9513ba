/* Arithmetic, bit, compare and convert operations: one row per form and edge case, each run by all threads and under a divergent mask. */
#include <math.h>
#include <stdio.h>

#include "unit/device/cpu/interp/fixture.h"

#define R0     " cvt.u64.u32 %rd0, %r0;"
#define F0     " mov.b32 %r0, %f0; cvt.u64.u32 %rd0, %r0;"
#define D0     " mov.b64 %rd0, %fd0;"
#define H0     " cvt.u64.u16 %rd0, %h0;"
#define P0     " selp.u64 %rd0, 1, 0, %p0;"
#define F(x)   bits_of_float(x)
#define D(x)   bits_of_double(x)
#define S32(x) ((uint64_t)(uint32_t)(x))

struct row {
    const char *body;
    uint64_t    a, b, c, want;
};

static const char head[] =
    ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 skip) {\n"
    ".reg .pred %p<10>; .reg .b16 %h<20>; .reg .b32 %r<30>; .reg .f32 %f<20>; .reg .b64 %rd<30>; .reg .f64 %fd<20>;\n"
    "ld.param.u64 %rd20, [in]; ld.param.u64 %rd21, [out]; ld.param.u32 %r20, [skip];\n"
    "mov.u32 %r21, %tid.x; and.b32 %r22, %r21, %r20; setp.ne.u32 %p9, %r22, 0; @%p9 bra DONE;\n"
    "ld.global.u64 %rd1, [%rd20]; ld.global.u64 %rd2, [%rd20+8]; ld.global.u64 %rd3, [%rd20+16];\n"
    "cvt.u32.u64 %r1, %rd1; cvt.u32.u64 %r2, %rd2; cvt.u32.u64 %r3, %rd3;\n"
    "cvt.u16.u64 %h1, %rd1; cvt.u16.u64 %h2, %rd2; cvt.u16.u64 %h3, %rd3;\n"
    "mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3; mov.b64 %fd1, %rd1; mov.b64 %fd2, %rd2; mov.b64 %fd3, %rd3;\n";
static const char tail[] = "\nmul.wide.u32 %rd22, %r21, 8; add.s64 %rd23, %rd21, %rd22; st.global.u64 [%rd23], %rd0;\nDONE: ret;\n}\n";

static void check(struct rig *r, const struct row *x)
{
    char      text[4096];
    uint64_t *in = rig_memory(r, 24), *out = rig_memory(r, 40 * 8);

    snprintf(text, sizeof text, "%s%s%s", head, x->body, tail);
    rig_load(r, text);
    in[0] = x->a;
    in[1] = x->b;
    in[2] = x->c;
    for (unsigned skip = 0; skip < 2; skip++) {
        memset(out, 0x5a, 40 * 8);
        cr_assert_eq(RUN(r, "k", SHAPE(1, 40), ADDRESS(in), ADDRESS(out), skip), STATUS_OK, "%s: %s", x->body, r->why.detail);
        for (unsigned i = 0; i < 40; i++) {
            uint64_t want = skip && i & 1 ? 0x5a5a5a5a5a5a5a5aull : x->want;
            cr_expect_eq(out[i], want, "%s lane %u: 0x%llx, not 0x%llx", x->body, i, (unsigned long long)out[i], (unsigned long long)want);
        }
    }
    cpu_memory_free(r->memory, ADDRESS(in));
    cpu_memory_free(r->memory, ADDRESS(out));
}

static void check_all(const struct row *rows, size_t count)
{
    struct rig r;

    rig_start(&r);
    for (size_t i = 0; i < count; i++)
        check(&r, &rows[i]);
    rig_stop(&r);
}
#define CHECK(rows) check_all(rows, sizeof rows / sizeof rows[0])

Test(interp_ops, integers)
{
    const struct row rows[] = {
        {"add.s32 %r0, %r1, %r2;" R0, 0x7fffffff, 1, 0, 0x80000000},
        {"add.u64 %rd0, %rd1, %rd2;", UINT64_MAX, 2, 0, 1},
        {"add.s16 %h0, %h1, %h2;" H0, 0xffff, 2, 0, 1},
        {"add.sat.s32 %r0, %r1, %r2;" R0, 0x7fffffff, 1, 0, 0x7fffffff},
        {"sub.s32 %r0, %r1, 5;" R0, 3, 0, 0, S32(-2)},
        {"mul.lo.s32 %r0, %r1, %r2;" R0, 0x10001, 0x10001, 0, 0x20001},
        {"mul.hi.u32 %r0, %r1, %r2;" R0, 0xffffffff, 0xffffffff, 0, 0xfffffffe},
        {"mul.hi.s32 %r0, %r1, %r2;" R0, S32(-2), 3, 0, S32(-1)},
        {"mul.wide.s32 %rd0, %r1, %r2;", S32(-2), 3, 0, (uint64_t)-6},
        {"mul.wide.u32 %rd0, %r1, %r2;", 0xffffffff, 2, 0, 0x1fffffffeull},
        {"mul.wide.u16 %r0, %h1, %h2;" R0, 0xffff, 0xffff, 0, 0xfffe0001},
        {"mul.hi.s64 %rd0, %rd1, %rd2;", (uint64_t)-1, 5, 0, (uint64_t)-1},
        {"mul.hi.u64 %rd0, %rd1, %rd2;", UINT64_MAX, 5, 0, 4},
        {"mad.lo.s32 %r0, %r1, %r2, %r3;" R0, 3, 4, 5, 17},
        {"mad.wide.u32 %rd0, %r1, %r2, %rd3;", 0xffffffff, 2, 3, 0x200000001ull},
        {"div.s32 %r0, %r1, %r2;" R0, S32(-7), 2, 0, S32(-3)},
        {"rem.s32 %r0, %r1, %r2;" R0, S32(-7), 2, 0, S32(-1)},
        {"div.u32 %r0, %r1, %r2;" R0, 7, 0, 0, 0xffffffff},
        {"div.s32 %r0, %r1, %r2;" R0, 0x80000000, S32(-1), 0, 0x80000000},
        {"rem.s64 %rd0, %rd1, %rd2;", 1ull << 63, (uint64_t)-1, 0, 0},
        {"rem.u64 %rd0, %rd1, %rd2;", 17, 5, 0, 2},
        {"min.s32 %r0, %r1, %r2;" R0, S32(-1), 1, 0, S32(-1)},
        {"min.u32 %r0, %r1, %r2;" R0, S32(-1), 1, 0, 1},
        {"max.s64 %rd0, %rd1, %rd2;", (uint64_t)-1, 1, 0, 1},
        {"abs.s32 %r0, %r1;" R0, S32(-9), 0, 0, 9},
        {"neg.s32 %r0, %r1;" R0, 9, 0, 0, S32(-9)},
        {"sad.s32 %r0, %r1, %r2, %r3;" R0, 3, 10, 100, 107},
        {"mul24.lo.u32 %r0, %r1, %r2;" R0, 0xff000003, 5, 0, 15},
        {"popc.b32 %r0, %r1;" R0, 0xf0f0, 0, 0, 8},
        {"popc.b64 %r0, %rd1;" R0, UINT64_MAX, 0, 0, 64},
        {"clz.b32 %r0, %r1;" R0, 0, 0, 0, 32},
        {"clz.b64 %r0, %rd1;" R0, 1, 0, 0, 63},
        {"brev.b32 %r0, %r1;" R0, 1, 0, 0, 0x80000000},
        {"bfind.u32 %r0, %r1;" R0, 0x100, 0, 0, 8},
        {"bfind.shiftamt.u32 %r0, %r1;" R0, 0x100, 0, 0, 23},
        {"bfind.s32 %r0, %r1;" R0, S32(-1), 0, 0, 0xffffffff},
    };
    CHECK(rows);
}

Test(interp_ops, bits)
{
    const struct row rows[] = {
        {"and.b32 %r0, %r1, %r2;" R0, 0xff00, 0x0ff0, 0, 0x0f00},
        {"or.b64 %rd0, %rd1, %rd2;", 1ull << 40, 1, 0, (1ull << 40) | 1},
        {"xor.b32 %r0, %r1, -1;" R0, 5, 0, 0, 0xfffffffa},
        {"not.b64 %rd0, %rd1;", 0, 0, 0, UINT64_MAX},
        {"cnot.b32 %r0, %r1;" R0, 0, 0, 0, 1},
        {"shl.b32 %r0, %r1, %r2;" R0, 1, 32, 0, 0},
        {"shl.b32 %r0, %r1, %r2;" R0, 1, 31, 0, 0x80000000},
        {"shl.b64 %rd0, %rd1, 40;", 1, 0, 0, 1ull << 40},
        {"shr.u32 %r0, %r1, %r2;" R0, 0x80000000, 99, 0, 0},
        {"shr.s32 %r0, %r1, %r2;" R0, 0x80000000, 99, 0, 0xffffffff},
        {"shr.s64 %rd0, %rd1, 4;", (uint64_t)-32, 0, 0, (uint64_t)-2},
        {"shf.l.wrap.b32 %r0, %r1, %r2, %r3;" R0, 0x80000000, 1, 33, 3},
        {"shf.r.wrap.b32 %r0, %r1, %r2, %r3;" R0, 0x10, 0x1, 4, 0x10000001},
        {"shf.r.clamp.b32 %r0, %r1, %r2, %r3;" R0, 5, 7, 40, 7},
        {"bfe.u32 %r0, %r1, %r2, %r3;" R0, 0xabcd, 4, 8, 0xbc},
        {"bfe.s32 %r0, %r1, %r2, %r3;" R0, 0x80, 4, 4, S32(-8)},
        {"bfi.b32 %r0, %r1, %r2, 8, 4;" R0, 0xf, 0, 0, 0xf00},
        {"bfi.b64 %rd0, %rd1, %rd2, 32, 32;", 7, 9, 0, (7ull << 32) | 9},
        {"prmt.b32 %r0, %r1, %r2, 0x5410;" R0, 0x33221100, 0x77665544, 0, 0x55441100},
        {"prmt.b32 %r0, %r1, %r2, 0x8;" R0, 0x80, 0, 0, 0x808080ff},
        {"lop3.b32 %r0, %r1, %r2, %r3, 0x96;" R0, 0xff, 0x0f, 0x33, 0xff ^ 0x0f ^ 0x33},
        {"bmsk.clamp.b32 %r0, %r1, %r2;" R0, 4, 8, 0, 0xff0},
        {"szext.clamp.s32 %r0, %r1, %r2;" R0, 0xff, 8, 0, 0xffffffff},
        {"dp4a.s32.s32 %r0, %r1, %r2, %r3;" R0, 0x01ff0203, 0x01010101, 10, 15},
        {"add.cc.u32 %r0, %r1, 1; addc.u32 %r0, %r2, 0;" R0, 0xffffffff, 7, 0, 8},
        {"sub.cc.u32 %r0, %r1, 1; subc.u32 %r0, %r2, 0;" R0, 0, 7, 0, 6},
        /* The code between kinds of operations, as an H100 has it. */
        {"sub.cc.u32 %r4, %r1, %r2; addc.u32 %r0, 0, 0;" R0, 5, 3, 0, 1},
        {"sub.cc.u32 %r4, %r1, %r2; addc.u32 %r0, 0, 0;" R0, 3, 5, 0, 0},
        {"sub.cc.u32 %r4, %r1, %r2; addc.u32 %r0, 0, 0;" R0, 4, 4, 0, 1},
        {"sub.cc.u32 %r4, %r1, %r2; subc.u32 %r0, 0, 0;" R0, 0, 1, 0, 0xffffffff},
        {"add.cc.u32 %r4, %r1, %r2; subc.u32 %r0, 0, 0;" R0, 5, 3, 0, 0xffffffff},
        {"add.cc.u32 %r4, %r1, %r2; subc.u32 %r0, 0, 0;" R0, 0xffffffff, 1, 0, 0},
        {"add.cc.u32 %r4, %r1, %r2; subc.cc.u32 %r4, 0, 0; addc.u32 %r0, 0, 0;" R0, 0xffffffff, 1, 0, 1},
        {"add.cc.u32 %r4, %r1, %r2; subc.cc.u32 %r4, 0, 0; addc.u32 %r0, 0, 0;" R0, 1, 1, 0, 0},
        {"sub.cc.u32 %r4, %r1, %r2; madc.lo.u32 %r0, %r1, %r2, 0;" R0, 5, 3, 0, 16},
        {"sub.cc.u64 %rd4, %rd1, %rd2; addc.u64 %rd0, 0, 0;", 3, 5, 0, 0},
        {"mad.lo.cc.u32 %r0, %r1, %r2, %r3; madc.hi.u32 %r0, %r1, %r2, 0;" R0, 0xffffffff, 2, 2, 2},
        {"mov.b64 {%r4, %r0}, %rd1;" R0, 0x1234567800000000ull, 0, 0, 0x12345678},
        {"mov.b64 %rd0, {%r1, %r2};", 1, 2, 0, 0x200000001ull},
        {"slct.s32.s32 %r0, %r1, %r2, %r3;" R0, 1, 2, S32(-1), 2},
        {"selp.b32 %r0, %r1, %r2, %p9;" R0, 1, 2, 0, 2},
    };
    CHECK(rows);
}

Test(interp_ops, floats)
{
    const struct row rows[] = {
        {"add.f32 %f0, %f1, %f2;" F0, F(1), F(2), 0, F(3)},
        {"fma.rn.f32 %f0, %f1, %f2, %f3;" F0, F(1 + 0x1p-12f), F(1 + 0x1p-12f), F(-1), F(0x1p-11f + 0x1p-24f)},
        {"mul.f32 %f0, %f1, %f2; add.f32 %f0, %f0, %f3;" F0, F(1 + 0x1p-12f), F(1 + 0x1p-12f), F(-1), F(0x1p-11f)},
        {"add.rz.f32 %f0, %f1, %f2;" F0, F(1), F(-0x1p-30f), 0, F(1 - 0x1p-24f)},
        {"add.rp.f32 %f0, %f1, %f2;" F0, F(1), F(0x1p-30f), 0, F(1 + 0x1p-23f)},
        {"add.rm.f32 %f0, %f1, %f2;" F0, F(1), F(0x1p-30f), 0, F(1)},
        {"mul.rz.f64 %fd0, %fd1, %fd2;" D0, D(1 + 0x1p-52), D(1 + 0x1p-52), 0, D(1 + 0x1p-51)},
        {"mul.rp.f64 %fd0, %fd1, %fd2;" D0, D(1 + 0x1p-52), D(1 + 0x1p-52), 0, D(1 + 0x1p-51 + 0x1p-52)},
        {"mul.rz.f32 %f0, %f1, %f2;" F0, F(0x1p127f), F(4), 0, F(0x1.fffffep127f)},
        {"fma.rm.f32 %f0, %f1, %f2, %f3;" F0, F(1), F(1), F(-0x1p-40f), F(1 - 0x1p-24f)},
        {"div.rn.f32 %f0, %f1, %f2;" F0, F(1), F(3), 0, F(1.0f / 3.0f)},
        {"div.rp.f32 %f0, %f1, %f2;" F0, F(1), F(3), 0, F(0x1.555556p-2f)},
        {"div.rm.f32 %f0, %f1, %f2;" F0, F(1), F(3), 0, F(0x1.555554p-2f)},
        {"sqrt.rn.f32 %f0, %f1;" F0, F(2), 0, 0, F(0x1.6a09e6p+0f)},
        {"sqrt.rp.f64 %fd0, %fd1;" D0, D(4), 0, 0, D(2)},
        {"rcp.rn.f64 %fd0, %fd1;" D0, D(4), 0, 0, D(0.25)},
        {"min.f32 %f0, %f1, %f2;" F0, 0x7fc00000, F(2), 0, F(2)},
        {"max.f32 %f0, %f1, %f2;" F0, F(2), 0x7fc00000, 0, F(2)},
        {"min.f32 %f0, %f1, %f2;" F0, F(0.0f), F(-0.0f), 0, F(-0.0f)},
        {"max.f64 %fd0, %fd1, %fd2;" D0, D(-3), D(-4), 0, D(-3)},
        {"add.ftz.f32 %f0, %f1, %f2;" F0, 1, 1, 0, 0},
        {"add.f32 %f0, %f1, %f2;" F0, 1, 1, 0, 2},
        {"mul.ftz.f32 %f0, %f1, %f2;" F0, F(-0x1p-100f), F(0x1p-40f), 0, F(-0.0f)},
        {"add.sat.f32 %f0, %f1, %f2;" F0, F(1), F(2), 0, F(1)},
        {"add.sat.f32 %f0, %f1, %f2;" F0, 0x7fc00000, F(2), 0, F(0)},
        {"neg.f32 %f0, %f1;" F0, F(2), 0, 0, F(-2)},
        {"abs.f64 %fd0, %fd1;" D0, D(-2), 0, 0, D(2)},
        {"copysign.f32 %f0, %f1, %f2;" F0, F(-1), F(5), 0, F(-5)},
        {"ex2.approx.f32 %f0, %f1;" F0, F(3), 0, 0, F(8)},
        {"lg2.approx.f32 %f0, %f1;" F0, F(8), 0, 0, F(3)},
        {"rsqrt.approx.f32 %f0, %f1;" F0, F(16), 0, 0, F(0.25f)},
        {"sin.approx.f32 %f0, %f1;" F0, F(0), 0, 0, F(0)},
        {"cos.approx.f32 %f0, %f1;" F0, F(0), 0, 0, F(1)},
        {"tanh.approx.f32 %f0, %f1;" F0, F(0), 0, 0, F(0)},
        {"testp.infinite.f32 %p0, %f1;" P0, F(INFINITY), 0, 0, 1},
        {"testp.subnormal.f64 %p0, %fd1;" P0, 1, 0, 0, 1},
        {"fma.rn.f16 %h0, %h1, %h2, %h3;" H0, 0x3c00, 0x4000, 0x4200, 0x4500},
        {"add.f16x2 %r0, %r1, %r2;" R0, 0x3c004000, 0x3c003c00, 0, 0x40004200},
        {"setp.lt.f16 %p0, %h1, %h2;" P0, 0x3c00, 0x4000, 0, 1},
        {"set.eq.f16.f16 %h0, %h1, %h2;" H0, 0x3c00, 0x3c00, 0, 0x3c00},
    };
    CHECK(rows);
}

Test(interp_ops, comparisons)
{
    const struct row rows[] = {
        {"setp.lt.s32 %p0, %r1, %r2;" P0, S32(-1), 1, 0, 1},
        {"setp.lt.u32 %p0, %r1, %r2;" P0, S32(-1), 1, 0, 0},
        {"setp.gt.u64 %p0, %rd1, %rd2;" P0, 2, 1, 0, 1},
        {"setp.ge.s64 %p0, %rd1, -5;" P0, (uint64_t)-5, 0, 0, 1},
        {"setp.eq.s16 %p0, %h1, 7;" P0, 0x10007, 0, 0, 1},
        {"setp.lt.f32 %p0, %f1, %f2;" P0, 0x7fc00000, F(1), 0, 0},
        {"setp.ltu.f32 %p0, %f1, %f2;" P0, 0x7fc00000, F(1), 0, 1},
        {"setp.ne.f32 %p0, %f1, %f2;" P0, 0x7fc00000, F(1), 0, 0},
        {"setp.neu.f64 %p0, %fd1, %fd2;" P0, 0x7ff8000000000000ull, D(1), 0, 1},
        {"setp.num.f32 %p0, %f1, %f2;" P0, F(1), F(1), 0, 1},
        {"setp.nan.f32 %p0, %f1, %f2;" P0, F(1), 0x7fc00000, 0, 1},
        {"setp.eq.ftz.f32 %p0, %f1, %f2;" P0, 1, 2, 0, 1},
        {"setp.eq.s32 %p1, 0, 0; setp.lt.and.s32 %p0, %r1, %r2, %p1;" P0, 1, 2, 0, 1},
        {"setp.eq.s32 %p1, 0, 0; setp.lt.and.s32 %p0, %r1, %r2, !%p1;" P0, 1, 2, 0, 0},
        {"setp.eq.s32 %p1, 0, 0; setp.lt.xor.s32 %p2|%p0, %r1, %r2, %p1;" P0, 1, 2, 0, 1},
        {"setp.lt.s32 %p2|%p0, %r1, %r2;" P0, 1, 2, 0, 0},
        {"setp.lt.s32 %p1, %r1, %r2; not.pred %p0, %p1;" P0, 1, 2, 0, 0},
        {"set.lt.u32.s32 %r0, %r1, %r2;" R0, 1, 2, 0, 0xffffffff},
        {"set.lt.f32.s32 %f0, %r1, %r2;" F0, 1, 2, 0, F(1)},
    };
    CHECK(rows);
}

Test(interp_ops, conversions)
{
    const struct row rows[] = {
        {"cvt.s64.s32 %rd0, %r1;", S32(-3), 0, 0, (uint64_t)-3},
        {"cvt.u64.u32 %rd0, %r1;", S32(-3), 0, 0, 0xfffffffd},
        {"cvt.s32.s8 %r0, %r1;" R0, 0x80, 0, 0, S32(-128)},
        {"cvt.u16.u32 %h0, %r1;" H0, 0x12345, 0, 0, 0x2345},
        {"cvt.sat.u8.s32 %r0, %r1;" R0, S32(-5), 0, 0, 0},
        {"cvt.sat.s8.s32 %r0, %r1;" R0, 300, 0, 0, 127},
        {"cvt.rzi.s32.f32 %r0, %f1;" R0, F(-2.9f), 0, 0, S32(-2)},
        {"cvt.rzi.s32.f32 %r0, %f1;" R0, F(3e9f), 0, 0, 0x7fffffff},
        {"cvt.rzi.s32.f32 %r0, %f1;" R0, 0x7fc00000, 0, 0, 0},
        {"cvt.rzi.u32.f32 %r0, %f1;" R0, F(-1), 0, 0, 0},
        {"cvt.rzi.u64.f64 %rd0, %fd1;", D(1e30), 0, 0, UINT64_MAX},
        {"cvt.rni.s32.f32 %r0, %f1;" R0, F(2.5f), 0, 0, 2},
        {"cvt.rmi.s32.f32 %r0, %f1;" R0, F(-2.1f), 0, 0, S32(-3)},
        {"cvt.rpi.f32.f32 %f0, %f1;" F0, F(2.1f), 0, 0, F(3)},
        {"cvt.rn.f32.s32 %f0, %r1;" F0, 16777217, 0, 0, F(16777216.0f)},
        {"cvt.rp.f32.s32 %f0, %r1;" F0, 16777217, 0, 0, F(16777218.0f)},
        {"cvt.rz.f32.u64 %f0, %rd1;" F0, UINT64_MAX, 0, 0, F(0x1.fffffep63f)},
        {"cvt.rn.f64.u64 %fd0, %rd1;" D0, UINT64_MAX, 0, 0, D(0x1p64)},
        {"cvt.rn.f32.f64 %f0, %fd1;" F0, D(0.1), 0, 0, F(0.1f)},
        {"cvt.rm.f32.f64 %f0, %fd1;" F0, D(0.1), 0, 0, F(0x1.999998p-4f)},
        {"cvt.f64.f32 %fd0, %f1;" D0, F(1.5f), 0, 0, D(1.5)},
        {"cvt.sat.f32.f32 %f0, %f1;" F0, F(7), 0, 0, F(1)},
        {"cvt.rn.f16.f32 %h0, %f1;" H0, F(1.0f / 3.0f), 0, 0, 0x3555},
        {"cvt.rn.f16.f32 %h0, %f1;" H0, F(65520.0f), 0, 0, 0x7c00},
        {"cvt.rz.f16.f32 %h0, %f1;" H0, F(65520.0f), 0, 0, 0x7bff},
        {"cvt.rn.f16.f32 %h0, %f1;" H0, F(0x1p-24f), 0, 0, 1},
        {"cvt.f32.f16 %f0, %h1;" F0, 0x0001, 0, 0, F(0x1p-24f)},
        {"cvt.f32.f16 %f0, %h1;" F0, 0xc000, 0, 0, F(-2)},
    };
    CHECK(rows);
}
