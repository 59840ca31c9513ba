/* What references, whose operands are registers, leave out: immediates, parts of registers, and instructions that depend on each other. Each row is
 * run by all threads and under a divergent mask. */
#include <stdio.h>

#include "unit/device/cpu/interp/fixture.h"

#define R0     " cvt.u64.u32 %rd0, %r0;"
#define F0     " mov.b32 %r0, %f0; cvt.u64.u32 %rd0, %r0;"
#define P0     " selp.u64 %rd0, 1, 0, %p0;"
#define F(x)   bits_of_float(x)
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

Test(interp_ops, immediate_operands)
{
    const struct row rows[] = {
        {"sub.s32 %r0, %r1, 5;" R0, 3, 0, 0, S32(-2)},
        {"xor.b32 %r0, %r1, -1;" R0, 5, 0, 0, 0xfffffffa},
        {"shl.b64 %rd0, %rd1, 40;", 1, 0, 0, 1ull << 40},
        {"shr.s64 %rd0, %rd1, 4;", (uint64_t)-32, 0, 0, (uint64_t)-2},
        {"bfi.b32 %r0, %r1, %r2, 8, 4;" R0, 0xf, 0, 0, 0xf00},
        {"bfi.b64 %rd0, %rd1, %rd2, 32, 32;", 7, 9, 0, (7ull << 32) | 9},
        {"prmt.b32 %r0, %r1, %r2, 0x5410;" R0, 0x33221100, 0x77665544, 0, 0x55441100},
        {"prmt.b32 %r0, %r1, %r2, 0x8;" R0, 0x80, 0, 0, 0x808080ff},
        {"lop3.b32 %r0, %r1, %r2, %r3, 0x96;" R0, 0xff, 0x0f, 0x33, 0xff ^ 0x0f ^ 0x33},
        {"setp.ge.s64 %p0, %rd1, -5;" P0, (uint64_t)-5, 0, 0, 1},
        {"setp.eq.s16 %p0, %h1, 7;" P0, 0x10007, 0, 0, 1},
    };
    CHECK(rows);
}

/* mul and add are never fused. */
Test(interp_ops, several_results_and_results_that_go_on)
{
    const struct row rows[] = {
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
        {"mul.f32 %f0, %f1, %f2; add.f32 %f0, %f0, %f3;" F0, F(1 + 0x1p-12f), F(1 + 0x1p-12f), F(-1), F(0x1p-11f)},
        {"setp.eq.s32 %p1, 0, 0; setp.lt.and.s32 %p0, %r1, %r2, %p1;" P0, 1, 2, 0, 1},
        {"setp.eq.s32 %p1, 0, 0; setp.lt.and.s32 %p0, %r1, %r2, !%p1;" P0, 1, 2, 0, 0},
        {"setp.eq.s32 %p1, 0, 0; setp.lt.xor.s32 %p2|%p0, %r1, %r2, %p1;" P0, 1, 2, 0, 1},
        {"setp.lt.s32 %p2|%p0, %r1, %r2;" P0, 1, 2, 0, 0},
        {"setp.lt.s32 %p1, %r1, %r2; not.pred %p0, %p1;" P0, 1, 2, 0, 0},
    };
    CHECK(rows);
}
