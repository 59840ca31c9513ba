/* Kernels that libLLVM compiles: each program runs in the interpreter and compiled, and leaves the same bits; faults, deadlines and
 * cancellation as in the interpreter; and what is not compiled is told. Without libLLVM or AVX2 the tests are skipped. */
#include <stdio.h>
#include <stdlib.h>

#include "device/cpu/jit/jit.h"
#include "device/cpu/jit/llvm.h"
#include "program_maker.h"
#include "unit/device/cpu/interp/the_rig.h"

enum { WORDS = 1 << 14, SEEDS = 30, TEXT_BYTES = 16384 };

static uint32_t *in, *out, expected[WORDS];

static void start(void)
{
    const char *why;

    the_rig_start();
    if (!llvm_open(&why))
        cr_skip_test("%s", why);
    in = rig_memory(&r, WORDS * 4);
    out = rig_memory(&r, WORDS * 4);
    for (unsigned i = 0; i < WORDS; i++)
        in[i] = i * 2654435761u;
}

TestSuite(jit, .init = start, .fini = the_rig_stop);

#define REGISTERS                                                                                                                          \
    ".reg .b32 %r<30>; .reg .b64 %rd<20>; .reg .f32 %f<8>; .reg .pred %p<6>; .shared .align 8 .b8 mem[4096];\n"                            \
    "ld.param.u64 %rd1, [pin]; ld.param.u64 %rd2, [pout]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y;\n"                                     \
    "mov.u32 %r3, %ntid.x; mov.u32 %r4, %ctaid.x; mad.lo.s32 %r5, %r2, %r3, %r1; mul.wide.u32 %rd3, %r5, 4;\n"                             \
    "mov.u32 %r6, %ntid.y; mul.lo.s32 %r7, %r3, %r6; mul.lo.s32 %r7, %r7, %r4; mul.wide.u32 %rd4, %r7, 4;\n"                               \
    "add.s64 %rd2, %rd2, %rd4; add.s64 %rd5, %rd2, %rd3; add.s64 %rd6, %rd1, %rd3;\n"

static void load(const char *body)
{
    static char text[TEXT_BYTES];

    cr_assert_lt((size_t)snprintf(
                     text, sizeof text,
                     ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 pin, .param .u64 pout)\n{\n%s%s\n}\n",
                     REGISTERS, body),
                 sizeof text);
    rig_load(&r, text);
}

static bool whole(void)
{
    char reason[192];

    return jit_engine(r.module, &r.module->functions[0], reason, sizeof reason);
}

/* In the interpreter, then compiled. */
static void agree(const char *what, const char *body)
{
    static const struct rig_shape shapes[] = {
        {.grid_x = 3, .block_x = 64},
        {.grid_x = 2, .block_x = 100},
        {.grid_x = 2, .block_x = 16, .block_y = 16},
        {.grid_x = 2, .block_x = 7, .block_y = 9},
        {.grid_x = 1, .block_x = 1},
        {.grid_x = 2, .block_x = 32, .block_y = 4},
        {.grid_x = 1, .block_x = 512},
    };

    load(body);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (unsigned compiled = 0; compiled < 2; compiled++) {
            jit_choose(compiled ? JIT_NOW : JIT_OFF);
            memset(out, 0xa5, WORDS * 4);
            cr_assert_eq(rig_run(&r, "k", shapes[s], (const uint64_t[]){ADDRESS(in), ADDRESS(out)}, 2), STATUS_OK, "%s: %s", what,
                         r.why.detail);
            if (!compiled)
                memcpy(expected, out, sizeof expected);
        }
        cr_assert(whole(), "%s is not compiled", what);
        for (unsigned i = 0; i < WORDS; i++)
            cr_assert_eq(out[i], expected[i], "%s, blocks of %u x %u: word %u is %08x, not %08x", what, shapes[s].block_x,
                         shapes[s].block_y, i, out[i], expected[i]);
    }
}

Test(jit, lines_that_wrap_around_on_both_sides_of_a_barrier)
{
    agree("signed",
          "add.s32 %r10, %r1, 2147483640; mul.wide.s32 %rd10, %r10, 4; bar.sync 0; shr.u64 %rd11, %rd10, 32; cvt.u32.u64 %r11, %rd11;"
          "cvt.u32.u64 %r12, %rd10; xor.b32 %r11, %r11, %r12; st.global.u32 [%rd5], %r11; ret;");
    agree("unsigned", "add.s32 %r10, %r1, -9; cvt.u64.u32 %rd10, %r10; bar.sync 0; shl.b64 %rd10, %rd10, 2; shr.u64 %rd11, %rd10, 30;"
                      "cvt.u32.u64 %r11, %rd11; st.global.u32 [%rd5], %r11; ret;");
    agree("an index that wraps", "add.s32 %r10, %r1, -5; and.b32 %r11, %r10, 4095; mul.wide.u32 %rd10, %r11, 4; add.s64 %rd10, %rd1, %rd10;"
                                 "ld.global.u32 %r12, [%rd10]; st.global.u32 [%rd5], %r12; ret;");
}

Test(jit, threads_that_part_and_meet)
{
    agree("a loop that threads leave one by one", "mov.u32 %r10, 0; mov.u32 %r11, 7; L: add.s32 %r11, %r11, %r3; add.s32 %r10, %r10, 1; "
                                                  "and.b32 %r12, %r5, 7; setp.le.u32 %p1, %r10, %r12;"
                                                  "@%p1 bra L; mad.lo.s32 %r11, %r10, 1000, %r11; st.global.u32 [%rd5], %r11; ret;");
    agree("two ways", "setp.lt.u32 %p1, %r1, 5; @%p1 bra A; mov.u32 %r10, 9; bra B; A: mov.u32 %r10, 4; mul.lo.s32 %r10, %r10, %r1; B:"
                      "add.s32 %r10, %r10, %r5; st.global.u32 [%rd5], %r10; ret;");
    agree("a value of a loop read behind it", "mov.u32 %r10, 0; L: mul.lo.s32 %r11, %r10, 3; add.s32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, "
                                              "%r1; @%p1 bra L; st.global.u32 [%rd5], %r11; ret;");
    agree("some return", "setp.gt.u32 %p1, %r5, 40; @%p1 bra E; st.global.u32 [%rd5], %r5; E: ret;");
    agree("a loop of barriers",
          "mov.u32 %r10, %r3; mov.u32 %r11, %r5; L: setp.ge.u32 %p1, %r1, %r10; @%p1 bra N; mul.lo.s32 %r11, %r11, 3; mov.u32 %r12, %r10;"
          "N: bar.sync 0; shr.u32 %r10, %r10, 1; setp.ne.s32 %p2, %r10, 0; @%p2 bra L; st.global.u32 [%rd5], %r11; ret;");
}

/* More than the bits of a word have; each sends some threads another way. */
Test(jit, many_blocks)
{
    enum { WAYS = 60 };
    static char body[WAYS * 160 + 256];
    size_t      n = (size_t)snprintf(body, sizeof body, "mov.u32 %%r10, %%r5;\n");

    for (unsigned k = 0; k < WAYS; k++)
        n += (size_t)snprintf(body + n, sizeof body - n,
                              "shr.u32 %%r11, %%r10, %u; and.b32 %%r11, %%r11, 1; setp.eq.s32 %%p1, %%r11, 0; @%%p1 bra W%u; mad.lo.s32 "
                              "%%r10, %%r10, 5, %u; W%u:\n",
                              k % 9, k, k, k);
    snprintf(body + n, sizeof body - n, "st.global.u32 [%%rd5], %%r10; ret;");
    agree("many ways", body);
}

Test(jit, shared_memory_between_barriers)
{
    agree(
        "a tree",
        "mov.u64 %rd10, mem; and.b32 %r10, %r5, 1023; mul.wide.u32 %rd11, %r10, 4; add.s64 %rd11, %rd10, %rd11; ld.global.u32 %r11, [%rd6];"
        "st.shared.u32 [%rd11], %r11; bar.sync 0; xor.b32 %r12, %r10, 0; ld.shared.u32 %r13, [%rd10]; ld.shared.u32 %r14, [%rd11];"
        "add.s32 %r13, %r13, %r14; st.global.u32 [%rd5], %r13; ret;");
}

Test(jit, random_programs)
{
    static const unsigned threads[] = {256, 128, 100, 48, 33, 16, 7};
    static char           text[MAKER_TEXT_BYTES];
    uint32_t             *stores = rig_memory(&r, WORDS * 4);

    for (unsigned seed = 5000; seed < 5000 + SEEDS; seed++) {
        uint32_t state = 7 * seed + 1;
        unsigned block = threads[seed % (sizeof threads / sizeof *threads)];

        for (unsigned i = 0; i < WORDS; i++)
            in[i] = maker_value(&state);
        maker_write_alone(text, sizeof text, seed);
        rig_load(&r, text);
        for (unsigned compiled = 0; compiled < 2; compiled++) {
            jit_choose(compiled ? JIT_NOW : JIT_OFF);
            memset(out, 0, WORDS * 4);
            memset(stores, 0, WORDS * 4);
            cr_assert_eq(RUN(&r, "made", SHAPE(2, block), ADDRESS(in), ADDRESS(out), ADDRESS(stores)), STATUS_OK, "program %u: %s", seed,
                         r.why.detail);
            if (!compiled)
                memcpy(expected, out, sizeof expected);
        }
        for (unsigned i = 0; i < 2 * block * MAKER_RESULTS; i++)
            cr_assert(maker_same(out[i], expected[i], i % MAKER_RESULTS >= MAKER_FLOATS_FROM), "program %u: word %u is %08x, not %08x",
                      seed, i, out[i], expected[i]);
    }
}

/* The same text as the interpreter's. */
static void same_fault(const char *body, const char *part, int result)
{
    char first[PROBLEM_DETAIL_BYTES] = "";

    for (unsigned compiled = 0; compiled < 2; compiled++) {
        jit_choose(compiled ? JIT_NOW : JIT_OFF);
        load(body);
        cr_assert_eq(RUN(&r, "k", SHAPE(1, 64), ADDRESS(in), ADDRESS(out)), STATUS_KERNEL_FAULT, "%s", body);
        cr_assert_eq(r.why.cuda_result, result);
        cr_assert(strstr(r.why.detail, part), "%s", r.why.detail);
        if (!compiled)
            snprintf(first, sizeof first, "%s", r.why.detail);
        cr_assert_str_eq(r.why.detail, first);
    }
    cr_assert(whole(), "%s", body);
}

Test(jit, faults_are_the_interpreters)
{
    same_fault("setp.eq.u32 %p1, %r1, 37; @%p1 st.global.u32 [%rd1+-64], %r1; ret;", "thread (37,0,0)", 700);
    same_fault(
        "setp.gt.u32 %p1, %r1, 20; @!%p1 bra E; mul.wide.u32 %rd10, %r1, 16777216; add.s64 %rd10, %rd1, %rd10; ld.global.u32 %r10, [%rd10];"
        "st.global.u32 [%rd5], %r10; E: ret;",
        "thread (21,0,0)", 700);
    same_fault("mov.u64 %rd10, 4096; st.global.u32 [%rd10], %r1; ret;", "thread (0,0,0)", 700);
    same_fault("add.s64 %rd10, %rd5, 2; st.global.u32 [%rd10], %r1; ret;", "misaligned", 716);
    same_fault("mul.wide.u32 %rd10, %r1, 80; mov.u64 %rd11, mem; add.s64 %rd10, %rd10, %rd11; st.shared.u32 [%rd10], %r1; ret;",
               "thread (52,0,0)", 700);
    same_fault("ld.global.u32 %r10, [%rd1+-4]; st.global.u32 [%rd5], %r10; ret;", "thread (0,0,0)", 700);
}

Test(jit, a_deadline_ends_a_loop)
{
    jit_choose(JIT_NOW);
    load("L: add.s32 %r10, %r10, %r1; setp.ne.s32 %p1, %r10, -1; @%p1 bra L; st.global.u32 [%rd5], %r10; ret;");
    cr_assert(whole());
    cr_assert_eq(RUN(&r, "k", SHAPE(1, 64, .deadline_ms = 200), ADDRESS(in), ADDRESS(out)), STATUS_EXECUTION_TIMEOUT, "%s", r.why.detail);
}

Test(jit, what_is_not_compiled_is_told)
{
    char reason[192];

    jit_choose(JIT_NOW);
    load("atom.global.add.u32 %r10, [%rd5], 1; ret;");
    cr_assert_not(jit_engine(r.module, &r.module->functions[0], reason, sizeof reason));
    cr_assert(strstr(reason, "atom.global.add.u32") && strstr(reason, "PTX line"), "%s", reason);
    jit_choose(JIT_OFF);
    cr_assert_not(jit_engine(r.module, &r.module->functions[0], reason, sizeof reason));
    cr_assert(strstr(reason, "cpu_jit"), "%s", reason);
}

Test(jit, compiled_code_takes_over_while_launches_go_on)
{
    jit_choose(JIT_AUTO);
    load("ld.global.u32 %r10, [%rd6]; add.s32 %r10, %r10, 1; st.global.u32 [%rd5], %r10; ret;");
    for (unsigned k = 0; k < 400; k++) {
        memset(out, 0, 256);
        cr_assert_eq(RUN(&r, "k", SHAPE(1, 64), ADDRESS(in), ADDRESS(out)), STATUS_OK, "%s", r.why.detail);
        for (unsigned i = 0; i < 64; i++)
            cr_assert_eq(out[i], in[i] + 1);
        if (k % 40 == 0) /* a module may go while it is compiled */
            load("ld.global.u32 %r10, [%rd6]; add.s32 %r10, %r10, 1; st.global.u32 [%rd5], %r10; ret;");
    }
}
