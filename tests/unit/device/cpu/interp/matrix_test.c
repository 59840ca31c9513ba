/* mma of 1-bit, 4-bit and binary64 matrices, stmatrix and movmatrix, against the layouts in the PTX manual; and vabsdiff. */
#include <stdio.h>
#include <stdlib.h>

#include "unit/device/cpu/interp/the_rig.h"

TestSuite(matrix, .init = the_rig_start, .fini = the_rig_stop);

enum { LANES = 32 };

/* bits 64: f64. Registers per thread: of a m k bits / 1024 words, and so on. */
static const struct shape {
    const char *form;
    unsigned    m, k, bits;
    bool        is_signed, exclusive;
} forms[] = {
    {"mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32", 8, 32, 4, true, false},
    {"mma.sync.aligned.m16n8k32.row.col.s32.u4.u4.s32", 16, 32, 4, false, false},
    {"mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", 16, 64, 4, true, false},
    {"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc", 8, 128, 1, false, true},
    {"mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc", 16, 128, 1, false, false},
    {"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", 16, 256, 1, false, true},
    {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 8, 4, 64, true, false},
    {"mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64", 16, 4, 64, true, false},
    {"mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", 16, 16, 64, true, false},
};

static unsigned registers(const struct shape *s, unsigned rows)
{
    return s->bits == 64 ? rows * s->k / LANES : rows * s->k * s->bits / 32 / LANES;
}

static void list(char *out, size_t room, char prefix, unsigned count)
{
    size_t n = (size_t)snprintf(out, room, "{");

    for (unsigned i = 0; i < count; i++)
        n += (size_t)snprintf(out + n, room - n, "%s%%%c%u", i ? "," : "", prefix, i);
    snprintf(out + n, room - n, "}");
}

/* Each thread's registers are contiguous. */
static void moves(char *out, size_t room, bool store, char prefix, unsigned param, unsigned count, bool wide)
{
    unsigned bytes = wide ? 8 : 4;
    size_t   n = (size_t)snprintf(out, room, "ld.param.u64 %%rd1, [p%u]; mad.wide.u32 %%rd1, %%lane, %u, %%rd1;\n", param, count * bytes);

    for (unsigned i = 0; i < count; i++) {
        if (store)
            n += (size_t)snprintf(out + n, room - n, "st.global.b%u [%%rd1+%u], %%%c%u;\n", 8 * bytes, i * bytes, prefix, i);
        else
            n += (size_t)snprintf(out + n, room - n, "ld.global.b%u %%%c%u, [%%rd1+%u];\n", 8 * bytes, prefix, i, i * bytes);
    }
}

static void load_kernel(const struct shape *s)
{
    bool     wide = s->bits == 64;
    unsigned na = registers(s, s->m), nb = registers(s, 8), nc = s->m * 8 / LANES;
    char     text[8192], a[128], b[128], c[128], d[128], load_a[1024], load_b[1024], load_c[1024], store_d[1024];

    list(a, sizeof a, 'a', na);
    list(b, sizeof b, 'b', nb);
    list(c, sizeof c, 'c', nc);
    list(d, sizeof d, 'd', nc);
    moves(load_a, sizeof load_a, false, 'a', 0, na, wide);
    moves(load_b, sizeof load_b, false, 'b', 1, nb, wide);
    moves(load_c, sizeof load_c, false, 'c', 2, nc, wide);
    moves(store_d, sizeof store_d, true, 'd', 3, nc, wide);
    snprintf(text, sizeof text,
             HEAD ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3) {\n"
                  ".reg .b64 %%rd<3>; .reg .b32 %%lane; .reg .%s %%a<9>, %%b<9>, %%c<9>, %%d<9>;\nmov.u32 %%lane, %%tid.x;\n%s%s%s%s %s, %s, %s, %s;\n%sret; }",
             wide ? "f64" : "b32", load_a, load_b, load_c, s->form, d, a, b, c, store_d);
    rig_load(&r, text);
}

/* Element (row, k) of a, or (k, row) of b, in the registers of all threads: thread 4 (row % 8) + t, where t and the register depend on
 * k. */
static void put(uint64_t *words, const struct shape *s, unsigned rows, unsigned row, unsigned k, int value)
{
    unsigned packed = s->bits == 64 ? 1 : 32 / s->bits, run = 4 * packed;
    unsigned lane = 4 * (row % 8) + k % run / packed, reg = row / 8 + k / run * (rows / 8), n = registers(s, rows);
    double   number = value;

    if (s->bits == 64)
        memcpy(&words[lane * n + reg], &number, sizeof number);
    else
        ((uint32_t *)(void *)words)[lane * n + reg] |= ((uint32_t)value & ((1u << s->bits) - 1)) << (k % packed * s->bits);
}

static double sum_at(const uint64_t *words, const struct shape *s, unsigned row, unsigned column)
{
    unsigned lane = 4 * (row % 8) + column / 2, at = lane * (s->m / 4) + row / 8 * 2 + column % 2;
    double   number;

    memcpy(&number, &words[at], sizeof number);
    return s->bits == 64 ? number : ((const int32_t *)(const void *)words)[at];
}

static int sample(const struct shape *s, unsigned i)
{
    int v = (int)((i * 2654435761u) >> 20);

    return s->bits == 1 ? v & 1 : s->is_signed ? v % 8 : v % 16;
}

static void check(const struct shape *s)
{
    uint64_t *a = rig_memory(&r, 16384), *b = rig_memory(&r, 16384), *c = rig_memory(&r, 16384), *d = rig_memory(&r, 16384);

    load_kernel(s);
    for (unsigned k = 0; k < s->k; k++) {
        for (unsigned i = 0; i < s->m; i++)
            put(a, s, s->m, i, k, sample(s, i * s->k + k));
        for (unsigned i = 0; i < 8; i++)
            put(b, s, 8, i, k, sample(s, 7000 + i * s->k + k));
    }
    cr_assert_eq(RUN(&r, "k", SHAPE(1, 32), ADDRESS(a), ADDRESS(b), ADDRESS(c), ADDRESS(d)), STATUS_OK, "%s: %s", s->form, r.why.detail);
    for (unsigned row = 0; row < s->m; row++) {
        for (unsigned column = 0; column < 8; column++) {
            double want = 0;
            for (unsigned k = 0; k < s->k; k++) {
                int x = sample(s, row * s->k + k), y = sample(s, 7000 + column * s->k + k);
                want += s->exclusive ? x != y : x * y;
            }
            cr_assert(sum_at(d, s, row, column) == want, "%s (%u,%u): %f, not %f", s->form, row, column, sum_at(d, s, row, column), want);
        }
    }
}

Test(matrix, products_of_small_and_of_binary64_elements)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        check(&forms[i]);
}

/* Element (row, column) is 100 row + column; thread 4 row + t holds columns 2 t and 2 t + 1. */
Test(matrix, matrices_are_stored_and_transposed)
{
    uint32_t *out = rig_memory(&r, 128);
    uint16_t *rows = rig_memory(&r, 256);

    rig_load(&r, HEAD ".shared .align 16 .b8 s[256];\n.visible .entry k(.param .u64 out, .param .u64 rows) {\n"
             ".reg .b64 %rd<9>; .reg .b32 %r<20>; .reg .pred %p1;\n"
             "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [rows]; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 2; and.b32 %r3, %r1, 3;\n"
             "mul.lo.u32 %r4, %r2, 100; shl.b32 %r5, %r3, 1; add.u32 %r4, %r4, %r5; add.u32 %r5, %r4, 1; shl.b32 %r5, %r5, 16; or.b32 %r6, %r4, %r5;\n"
             "movmatrix.sync.aligned.m8n8.trans.b16 %r7, %r6; mad.wide.u32 %rd3, %r1, 4, %rd1; st.global.u32 [%rd3], %r7;\n"
             "mov.u32 %r8, s; and.b32 %r9, %r1, 15; mad.lo.u32 %r8, %r9, 16, %r8;\n"
             "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r8], {%r6, %r7}; bar.sync 0;\n"
             "mov.u32 %r8, s; mad.lo.u32 %r8, %r1, 8, %r8; ld.shared.b64 %rd4, [%r8]; mad.wide.u32 %rd5, %r1, 8, %rd2; st.global.b64 [%rd5], %rd4; ret; }");
    OK("k", SHAPE(1, 32), ADDRESS(out), ADDRESS(rows));
    for (unsigned i = 0; i < 32; i++)
        cr_assert_eq(out[i], (100 * (i % 4 * 2) + i / 4) | (100 * (i % 4 * 2 + 1) + i / 4) << 16, "thread %u: %08x", i, out[i]);
    for (unsigned i = 0; i < 64; i++) {
        cr_assert_eq(rows[i], 100 * (i / 8) + i % 8, "as it was: %u is %u", i, rows[i]);
        cr_assert_eq(rows[64 + i], 100 * (i % 8) + i / 8, "transposed: %u is %u", i, rows[64 + i]);
    }
}

static uint32_t differences(uint32_t a, uint32_t b, unsigned width, bool is_signed, bool add, uint32_t c)
{
    uint32_t result = add ? c : 0;

    for (unsigned i = 0; i < 32 / width; i++) {
        int64_t  x = a >> (width * i) & ((1u << width) - 1), y = b >> (width * i) & ((1u << width) - 1);
        uint32_t d;
        if (is_signed) {
            x = x >> (width - 1) ? x - (1 << width) : x;
            y = y >> (width - 1) ? y - (1 << width) : y;
        }
        d = (uint32_t)llabs(x - y);
        result += add ? d : (d & ((1u << width) - 1)) << (width * i);
    }
    return result;
}

Test(matrix, absolute_differences_of_parts)
{
    static const uint32_t values[] = {0, 0xffffffff, 0x80808080, 0x7f7f7f7f, 0x80007fff, 0x01020304, 0xfedcba98};
    static const struct { const char *form; unsigned width; bool is_signed, add; } rows[] = {
        {"vabsdiff4.u32.u32.u32", 8, false, false}, {"vabsdiff4.u32.u32.u32.add", 8, false, true}, {"vabsdiff4.u32.s32.s32", 8, true, false},
        {"vabsdiff4.s32.s32.s32.add", 8, true, true}, {"vabsdiff2.u32.u32.u32", 16, false, false}, {"vabsdiff2.u32.u32.u32.add", 16, false, true},
        {"vabsdiff2.u32.s32.s32.add", 16, true, true},
    };
    uint32_t *out = rig_memory(&r, 4);

    for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
        char text[1024];
        snprintf(text, sizeof text, HEAD ".visible .entry k(.param .u64 out, .param .u32 a, .param .u32 b, .param .u32 c) {\n.reg .b64 %%rd1; .reg .b32 %%r<9>;\n"
                 "ld.param.u64 %%rd1, [out]; ld.param.u32 %%r1, [a]; ld.param.u32 %%r2, [b]; ld.param.u32 %%r3, [c]; %s %%r4, %%r1, %%r2, %%r3;\n"
                 "st.global.u32 [%%rd1], %%r4; ret; }", rows[k].form);
        rig_load(&r, text);
        for (unsigned i = 0; i < 49; i++) {
            uint32_t a = values[i / 7], b = values[i % 7], want = differences(a, b, rows[k].width, rows[k].is_signed, rows[k].add, 0xfffffff0);
            OK("k", SHAPE(1, 1), ADDRESS(out), a, b, 0xfffffff0);
            cr_assert_eq(*out, want, "%s of %08x and %08x: %08x, not %08x", rows[k].form, a, b, *out, want);
        }
    }
}
