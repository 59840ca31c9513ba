/* Random kernels of the kind that compiled code runs in strips and bands, over grids of many blocks: they leave the interpreter's bits, and fault where
 * it does. Each thread writes only places of its own, so the order of blocks does not matter. GPUREST_COMPILED_PROGRAMS says how many. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/cpu/jit/jit.h"
#include "device/cpu/jit/llvm.h"
#include "program_maker.h"
#include "unit/device/cpu/interp/the_rig.h"

/* Places of threads: words, words, 8 bytes, bytes, 2 bytes; and what no kernel writes. */
enum { THREADS_MAX = 1 << 15, REGION = THREADS_MAX * 8, REGIONS = 5, OUT_BYTES = REGION * (REGIONS + 1) };
enum { TEXT_BYTES = 1 << 14, DEPTH_MAX = 2, PROGRAMS_DEFAULT = 12, SHAPES_EACH = 3, FIRST = 900 };

struct maker {
    char     text[TEXT_BYTES];
    size_t   length;
    uint32_t state;
    unsigned labels;
};

static void start(void)
{
    const char *why;

    the_rig_start();
    if (!llvm_open(&why))
        cr_skip_test("%s", why);
}

TestSuite(jit_bands, .init = start, .fini = the_rig_stop);

static unsigned below(struct maker *m, unsigned n)
{
    return (maker_random(&m->state) >> 8) % n;
}

static void say(struct maker *m, const char *format, ...)
{
    va_list list;
    int     n;

    va_start(list, format);
    n = vsnprintf(m->text + m->length, sizeof m->text - m->length, format, list);
    va_end(list);
    cr_assert_lt(m->length + (size_t)n, sizeof m->text);
    m->length += (size_t)n;
}

#define PICK(m, list) ((list)[below(m, sizeof(list) / sizeof *(list))])

static const char *const lines[] = {"%r4", "%r11", "%r21", "%r22", "%r11", "%r4"};
static const char *const same[] = {"%r20", "%r23", "%r24", "%r6", "%r9", "77"};
static const char *const ops[] = {"add.s32", "xor.b32", "mul.lo.s32", "sub.s32", "max.s32", "min.u32"};

/* Registers that only one statement uses: what is kept from block to block is a line, or the same for all lanes. */
static void begin(struct maker *m)
{
    say(m, "{ .reg .b16 %%h<4>; .reg .b32 %%t<4>; .reg .b64 %%w<4>; .reg .f32 %%f<4>; .reg .f64 %%fd<4>; .reg .pred %%q<4>; ");
}

static void finish(struct maker *m)
{
    say(m, "}\n");
}

/* One off the ends of strips and bands, or somewhere. */
static int threshold(struct maker *m)
{
    static const int ends[] = {0, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 300, 100, 700, 5000};

    return PICK(m, ends) + (int)below(m, 3) - 1;
}

/* %p1: true for a stretch of a row, as a rule. */
static void stretch_condition(struct maker *m)
{
    static const char *const how[] = {"lt", "le", "gt", "ge"}, *const type[] = {"s32", "s32", "u32"}, *const both[] = {"and", "or"};

    for (unsigned i = 1; i <= 2; i++) {
        if (below(m, 5) == 0)
            say(m, "mov.u32 %%t0, %d; setp.%s.%s %%q%u, %%t0, %s; ", threshold(m), PICK(m, how), PICK(m, type), i, PICK(m, lines));
        else if (below(m, 6) == 0)
            say(m, "cvt.s64.s32 %%w0, %s; setp.%s.s64 %%q%u, %%w0, %d; ", PICK(m, lines), PICK(m, how), i, threshold(m));
        else if (below(m, 4) == 0)
            say(m, "setp.%s.%s %%q%u, %s, %s; ", PICK(m, how), PICK(m, type), i, PICK(m, lines), PICK(m, same));
        else
            say(m, "setp.%s.%s %%q%u, %s, %d; ", PICK(m, how), PICK(m, type), i, PICK(m, lines), threshold(m));
    }
    if (below(m, 3) == 0)
        say(m, "%s.pred %%q1, %%q1, %%q2; ", PICK(m, both));
    if (below(m, 6) == 0)
        say(m, "not.pred %%q1, %%q1; ");
}

static void words(struct maker *m)
{
    unsigned to = below(m, 2) * REGION;

    if (below(m, 2))
        say(m, "ld.global.u32 %%t0, [%%rd5+%d]; ", 4 * ((int)below(m, 80) - 40));
    else
        say(m, "ld.global.u32 %%t0, [%%rd4+%u]; ", below(m, 2) * REGION);
    say(m, "ld.global.u32 %%t1, [%%rd4+%u]; %s %%t0, %%t0, %s; ", to, PICK(m, ops), below(m, 2) ? PICK(m, lines) : PICK(m, same));
    say(m, "mad.lo.s32 %%t0, %%t1, 5, %%t0; st.global.u32 [%%rd4+%u], %%t0;\n", to);
    if (below(m, 3) == 0)
        say(m, "ld.global.u32 %%t2, [%%rd4+%u]; %s %%t2, %%t2, %%t1; st.global.u32 [%%rd4+%u], %%t2;\n", to, PICK(m, ops), REGION - to);
}

static void wide(struct maker *m)
{
    say(m, "mul.wide.s32 %%w0, %%r11, 8; add.s64 %%w0, %%w0, %%rd2; ld.global.u64 %%w1, [%%w0+%u]; ", 2 * REGION);
    if (below(m, 2))
        say(m, "add.s32 %%t0, %s, %u; mul.wide.%s32 %%w2, %%t0, %u; add.s64 %%w1, %%w1, %%w2; ", PICK(m, lines),
            2147483647u - below(m, 3000) + (below(m, 2) << 31), below(m, 2) ? "s" : "u", 1 + below(m, 4));
    else
        say(m,
            "cvt.rn.f64.s64 %%fd1, %%w1; fma.rn.f64 %%fd1, %%fd1, 0d3FF8000000000000, 0d4008000000000000; cvt.rzi.s64.f64 %%w1, %%fd1; ");
    if (below(m, 2))
        say(m, "add.s64 %%w1, %%w1, %%rd15; ");
    say(m, "st.global.u64 [%%w0+%u], %%w1;\n", 2 * REGION);
}

static void narrow(struct maker *m)
{
    bool     bytes = below(m, 2);
    unsigned bits = bytes ? 8 : 16, at = (bytes ? 3 : 4) * REGION;

    say(m, bytes ? "cvt.s64.s32 %%w0, %%r11; " : "mul.wide.s32 %%w0, %%r11, 2; ");
    say(m, "add.s64 %%w1, %%w0, %%rd1; add.s64 %%w0, %%w0, %%rd2; ld.global.u%u %%h1, [%%w1]; ", bits);
    say(m, "ld.global.s%u %%h2, [%%w0+%u]; add.s16 %%h1, %%h1, %%h2; st.global.u%u [%%w0+%u], %%h1;\n", bits, at, bits, at);
}

static void floats(struct maker *m)
{
    say(m, "ld.global.u32 %%t0, [%%rd5]; cvt.rn.f32.s32 %%f1, %%t0; cvt.rn.f32.s32 %%f2, %s; fma.rn.f32 %%f1, %%f1, %%f2, %%f2; ",
        PICK(m, lines));
    say(m, "st.global.f32 [%%rd4+%u], %%f1;\n", below(m, 2) * REGION);
}

/* What strips do not run. */
static void others(struct maker *m)
{
    switch (below(m, 6)) {
    case 0:
        stretch_condition(m);
        say(m, "@%%q1 st.global.u32 [%%rd4], %%r11;\n");
        break;
    case 1:
        say(m,
            "and.b32 %%t0, %%r11, 7; mov.u32 %%t1, 0; Q%u: add.s32 %%t1, %%t1, 3; add.s32 %%t0, %%t0, -1; setp.gt.s32 %%q3, %%t0, 0; @%%q3 "
            "bra Q%u; "
            "st.global.u32 [%%rd4], %%t1;\n",
            m->labels, m->labels);
        m->labels++;
        break;
    case 2:
        say(m, "red.global.add.u32 [%%rd4+%u], %%r11;\n", REGION);
        break;
    case 3:
        say(m,
            "mul.wide.s32 %%w0, %%r11, 8; add.s64 %%w0, %%w0, %%rd2; ld.global.v2.u32 {%%t0, %%t1}, [%%w0+%u]; add.s32 %%t0, %%t0, %%r4; "
            "st.global.v2.u32 [%%w0+%u], {%%t1, %%t0};\n",
            2 * REGION, 2 * REGION);
        break;
    case 4:
        say(m, "and.b32 %%t0, %%r4, 15; mul.wide.u32 %%w0, %%t0, 4; mov.u64 %%w1, mine; add.s64 %%w1, %%w1, %%w0; st.local.u32 [%%w1], "
               "%%r11; ld.local.u32 %%t1, [%%w1]; st.global.u32 [%%rd4], %%t1;\n");
        break;
    default:
        say(m, "cvt.rn.f32.u32 %%f1, %%r4; cvt.rn.f16.f32 %%h1, %%f1; fma.rn.f16 %%h1, %%h1, %%h1, %%h1; cvt.u32.u16 %%t0, %%h1; "
               "st.global.u32 [%%rd4], "
               "%%t0;\n");
    }
}

static void some(struct maker *m, unsigned depth);

static void loop(struct maker *m, unsigned depth)
{
    unsigned label = m->labels++, counter = 25 + depth;

    say(m, "mov.u32 %%r%u, 0;\nL%u: ", counter, label);
    some(m, depth + 1);
    if (below(m, 2))
        say(m, "add.s32 %%r21, %%r21, %u; ", below(m, 900));
    if (below(m, 3) == 0)
        say(m, "add.s64 %%rd5, %%rd5, 4; ");
    begin(m);
    say(m, "add.s32 %%r%u, %%r%u, 1; and.b32 %%t0, %s, 3; setp.le.u32 %%q3, %%r%u, %%t0; @%%q3 bra L%u; ", counter, counter, PICK(m, same),
        counter, label);
    finish(m);
}

static void skip(struct maker *m, unsigned depth)
{
    unsigned label = m->labels++;

    begin(m);
    if (below(m, 2))
        stretch_condition(m);
    else
        say(m, "setp.%s.s32 %%q1, %s, %d; ", below(m, 2) ? "lt" : "ne", PICK(m, same), threshold(m));
    say(m, "@%%q1 bra S%u; ", label);
    finish(m);
    some(m, depth + 1);
    say(m, "S%u:\n", label);
}

static void one(struct maker *m, unsigned depth)
{
    static void (*const plain[])(struct maker * m) = {words, words, wide, narrow, floats};

    switch (below(m, 16)) {
    case 0:
        say(m, "add.s32 %%r2%u, %s, %d;\n", 1 + below(m, 2), PICK(m, lines), threshold(m) - 300);
        break;
    case 1:
        say(m, "mad.lo.s32 %%r2%u, %s, %u, %s;\n", 1 + below(m, 2), PICK(m, lines), 1 + below(m, 5), PICK(m, same));
        break;
    case 2:
        say(m, "xor.b32 %%r23, %%r24, %s;\n", PICK(m, same));
        break;
    case 3:
        say(m, "ld.global.u32 %%r2%u, [%%rd1+%u];\n", 3 + below(m, 2), 4 * below(m, 90));
        break;
    case 4:
    case 5:
    case 6:
        begin(m);
        stretch_condition(m);
        say(m, "@%%q1 bra E; ");
        finish(m);
        break;
    case 7:
        if (depth < DEPTH_MAX)
            loop(m, depth);
        break;
    case 8:
        if (depth < DEPTH_MAX)
            skip(m, depth);
        break;
    case 9:
        if (below(m, 6))
            break;
        begin(m);
        others(m);
        finish(m);
        break;
    default:
        begin(m);
        PICK(m, plain)(m);
        finish(m);
    }
}

static void some(struct maker *m, unsigned depth)
{
    for (unsigned n = 1 + below(m, depth ? 3 : 6); n > 0; n--)
        one(m, depth);
}

/* As an image has them. */
static void edges(struct maker *m)
{
    if (below(m, 2))
        say(m, "add.s32 %%r21, %%r11, %u; cvt.s64.s32 %%rd15, %%r21;\n", 2147483647u - below(m, 4000));
    for (unsigned n = 1 + below(m, 2); n > 0; n--) {
        begin(m);
        stretch_condition(m);
        say(m, "@%%q1 bra E; ");
        finish(m);
    }
    if (below(m, 2)) {
        begin(m);
        wide(m);
        finish(m);
    }
}

/* From some thread on, behind the buffer; or all of them, misaligned. */
static void go_astray(struct maker *m)
{
    unsigned at = OUT_BYTES - 4 * (1 + below(m, 3000)) + (below(m, 8) == 0);

    if (below(m, 2))
        say(m, "st.global.u32 [%%rd4+%u], %%r11;\n", at);
    else
        say(m, "{ .reg .b32 %%t<2>; ld.global.u32 %%t0, [%%rd4+%u]; st.global.u32 [%%rd4], %%t0; }\n", at);
}

/* One access at most goes astray: of two, the interpreter comes to the earlier one first, and compiled code to that of the earlier thread. */
static void make(struct maker *m, uint32_t seed, bool faults)
{
    bool early;

    *m = (struct maker){.state = seed * 2654435761u + 1};
    say(m, ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 pin, .param .u64 pout, .param .u32 pn)\n{\n"
           ".local .align 4 .b8 mine[64];\n"
           ".reg .b32 %%r<40>; .reg .b64 %%rd<20>;\n"
           "ld.param.u64 %%rd1, [pin]; ld.param.u64 %%rd2, [pout]; ld.param.u32 %%r20, [pn];\n"
           "mov.u32 %%r1, %%tid.x; mov.u32 %%r2, %%ctaid.x; mov.u32 %%r3, %%ntid.x; mad.lo.s32 %%r4, %%r2, %%r3, %%r1; mov.u32 %%r5, "
           "%%tid.y;\n"
           "mov.u32 %%r6, %%ctaid.y; mov.u32 %%r7, %%ntid.y; mov.u32 %%r8, %%tid.z; mad.lo.s32 %%r5, %%r8, %%r7, %%r5; mov.u32 %%r8, "
           "%%ntid.z;\n"
           "mul.lo.s32 %%r7, %%r7, %%r8; mad.lo.s32 %%r8, %%r6, %%r7, %%r5; mov.u32 %%r9, %%nctaid.x;\n"
           "mul.lo.s32 %%r10, %%r9, %%r3; mad.lo.s32 %%r11, %%r8, %%r10, %%r4; mul.wide.s32 %%rd3, %%r11, 4; add.s64 %%rd4, %%rd2, %%rd3;\n"
           "add.s64 %%rd5, %%rd1, %%rd3; mov.u32 %%r21, %%r4; mov.u32 %%r22, %%r11; mov.u32 %%r23, %%r6; mov.u32 %%r24, %%r20;\n");
    say(m, "cvt.s64.s32 %%rd15, %%r11;\n");
    if (below(m, 2))
        edges(m);
    else
        some(m, 0);
    early = below(m, 2);
    if (faults && early)
        go_astray(m);
    begin(m);
    words(m);
    finish(m);
    if (faults && !early)
        go_astray(m);
    say(m, "E: ret;\n}\n");
}

static struct rig_shape shape_of(struct maker *m)
{
    static const unsigned widths[] = {16, 32, 32, 32, 64, 128, 256, 512, 1024, 128, 256, 512, 1024, 100, 300, 31, 48, 72, 640, 1000};
    struct rig_shape      s = {.block_x = PICK(m, widths), .grid_x = 1 + below(m, 80)};

    if (below(m, 2) == 0 && s.block_x <= 128)
        s.block_y = 1 + below(m, 8);
    if (below(m, 8) == 0 && s.block_x <= 64 && s.block_y <= 4)
        s.block_z = 2;
    if (below(m, 3) == 0)
        s.grid_y = 2 + below(m, 3);
    if (below(m, 3) == 0)
        s.grid_x = THREADS_MAX / s.block_x;
    while (s.grid_x > 1 &&
           s.grid_x * s.block_x * (s.block_y + !s.block_y) * (s.block_z + !s.block_z) * (s.grid_y + !s.grid_y) > THREADS_MAX)
        s.grid_x--;
    return s;
}

/* In the interpreter, then compiled. */
static void agree(struct maker *m, uint32_t seed, struct rig_shape s, uint8_t *from, uint8_t *out, bool faults)
{
    static uint8_t expected[OUT_BYTES];
    static char    detail[PROBLEM_DETAIL_BYTES];
    uint32_t       n = below(m, 2) ? (uint32_t)threshold(m) : below(m, 4000);
    enum status    st, first = STATUS_OK;
    size_t         bytes;

    for (unsigned compiled = 0; compiled < 2; compiled++) {
        jit_choose(compiled ? JIT_NOW : JIT_OFF);
        memset(out, 0x5a, OUT_BYTES);
        st = rig_run(&r, "k", s, (const uint64_t[]){ADDRESS(from), ADDRESS(out), n}, 3);
        cr_assert(st == STATUS_OK || (faults && st == STATUS_KERNEL_FAULT), "program %u: %s\n%s", seed, r.why.detail, m->text);
        if (!compiled) {
            first = st;
            memcpy(expected, out, OUT_BYTES);
            snprintf(detail, sizeof detail, "%s", st == STATUS_OK ? "" : r.why.detail);
        }
    }
    cr_assert_eq(st, first, "program %u: %s", seed, r.why.detail);
    if (st != STATUS_OK) {
        /* of blocks of several rows, compiled code runs a chunk of each before the next chunk */
        bytes = s.block_y > 1 || s.block_z > 1 ? strcspn(detail, "0") : sizeof detail;
        cr_assert_eq(strncmp(r.why.detail, detail, bytes), 0, "program %u, %ux%u of %ux%u: %s, not %s", seed, s.grid_x, s.grid_y, s.block_x,
                     s.block_y, r.why.detail, detail);
        return;
    }
    for (unsigned i = 0; memcmp(out, expected, OUT_BYTES) && i < OUT_BYTES; i++)
        cr_assert_eq(out[i], expected[i], "program %u, n %u, %ux%u of %ux%ux%u: byte %u of region %u is %02x, not %02x\n%s", seed, n,
                     s.grid_x, s.grid_y, s.block_x, s.block_y, s.block_z, i % REGION, i / REGION, out[i], expected[i], m->text);
}

static void run_programs(uint32_t first, bool faults)
{
    static struct maker m;
    const char         *count = getenv("GPUREST_COMPILED_PROGRAMS");
    uint32_t            end = first + (count ? (uint32_t)strtoul(count, NULL, 10) : PROGRAMS_DEFAULT);
    uint8_t            *from = (uint8_t *)rig_memory(&r, OUT_BYTES) + 4096, *out = rig_memory(&r, OUT_BYTES);

    for (uint32_t i = 0; i < (OUT_BYTES - 4096) / 4; i++)
        ((uint32_t *)(void *)from)[i] = i * 2654435761u >> i % 32;
    for (uint32_t seed = first; seed < end; seed++) {
        make(&m, seed, faults);
        if (seed % 8 == 0)
            the_rig_threads(faults || seed % 16 ? 1 : 2);
        rig_load(&r, m.text);
        for (unsigned k = 0; k < SHAPES_EACH; k++)
            agree(&m, seed, shape_of(&m), from, out, faults);
    }
}

Test(jit_bands, random_programs)
{
    run_programs(FIRST, false);
}

Test(jit_bands, random_programs_that_fault)
{
    run_programs(2 * FIRST, true);
}

/* What all threads load from one place and one of them stores to: which number a thread finds there is not defined, but it keeps it. */
Test(jit_bands, a_thread_keeps_what_it_has_loaded)
{
    enum { THREADS = 4096, PART = THREADS * 4 };
    uint32_t   *out = rig_memory(&r, 4 * PART);
    static char text[TEXT_BYTES];
    char        reason[192];

    snprintf(text, sizeof text,
             ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 pout, .param .u32 pn)\n{\n"
             ".reg .b32 %%r<9>; .reg .b64 %%rd<9>; .reg .pred %%p<2>; ld.param.u64 %%rd2, [pout]; ld.param.u32 %%r5, [pn];\n"
             "mov.u32 %%r1, %%tid.x; mov.u32 %%r2, %%ctaid.x; mov.u32 %%r3, %%ntid.x; mad.lo.s32 %%r4, %%r2, %%r3, %%r1;\n"
             "mul.wide.s32 %%rd3, %%r4, 4; add.s64 %%rd4, %%rd2, %%rd3;\n"
             "ld.global.u32 %%r7, [%%rd2+%d]; add.s32 %%r6, %%r7, 1; st.global.u32 [%%rd4+%d], %%r6; st.global.u32 [%%rd4], %%r5; "
             "setp.eq.s32 %%p1, %%r5, 0; @%%p1 bra S;\n"
             "st.global.u32 [%%rd4+%d], %%r6; S: ret; }",
             PART / 2, PART, 2 * PART);
    jit_choose(JIT_NOW);
    the_rig_threads(1);
    rig_load(&r, text);
    cr_assert_eq(RUN(&r, "k", SHAPE(THREADS / 1024, 1024), ADDRESS(out), 7), STATUS_OK, "%s", r.why.detail);
    cr_assert(jit_engine(r.module, &r.module->functions[0], reason, sizeof reason));
    for (unsigned i = 0; i < THREADS; i++)
        cr_assert_eq(out[THREADS + i], out[2 * THREADS + i], "thread %u: %u, then %u", i, out[THREADS + i], out[2 * THREADS + i]);
}

Test(jit_bands, a_deadline_ends_a_loop_of_a_band)
{
    uint32_t *out = rig_memory(&r, 1 << 16);

    jit_choose(JIT_NOW);
    rig_load(&r,
             ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 pout)\n{\n.reg .b32 %r<4>; .reg .b64 %rd<4>; "
             ".reg .pred %p<2>;\n"
             "ld.param.u64 %rd1, [pout]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mul.wide.s32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;\n"
             "L: st.global.u32 [%rd1], %r1; setp.ne.s32 %p1, %r2, 0; @%p1 bra L; ret; }");
    cr_assert_eq(RUN(&r, "k", SHAPE(8, 1024, .deadline_ms = 200), ADDRESS(out)), STATUS_EXECUTION_TIMEOUT, "%s", r.why.detail);
}
