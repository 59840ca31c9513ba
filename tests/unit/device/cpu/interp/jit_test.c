/* Kernels that libLLVM compiles: each program runs in the interpreter and compiled, and leaves the same bits; faults, deadlines and
 * cancellation as in the interpreter; and what is not compiled is told. Without libLLVM or AVX2 the tests are skipped. */
#include <stdio.h>
#include <stdlib.h>

#include "device/cpu/jit/jit.h"
#include "device/cpu/jit/llvm.h"
#include "program_maker.h"
#include "unit/device/cpu/interp/the_rig.h"

enum { WORDS = 1 << 14, PROGRAMS_DEFAULT = 40, LOOPS_DEFAULT = 12, TEXT_BYTES = 16384 };

static uint32_t   *in, *out, expected[WORDS];
static const char *functions = ""; /* before the kernel */

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
                     ".version 7.8\n.target sm_75\n.address_size 64\n%s.visible .entry k(.param .u64 pin, .param .u64 pout)\n{\n%s%s\n}\n",
                     functions, REGISTERS, body),
                 sizeof text);
    rig_load(&r, text);
}

static bool whole(void)
{
    char reason[192];

    return jit_engine(r.module, &r.module->functions[r.module->functions_count - 1], reason, sizeof reason);
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
        {.grid_x = 3, .block_x = 256},
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

/* Compiled code looks at what it reads where it goes on behind a barrier, and reads the line only behind the second one. */
Test(jit, a_line_that_wrapped_two_barriers_ago)
{
    agree("it", "add.s32 %r10, %r1, 2147483640; mul.wide.s32 %rd10, %r10, 4; bar.sync 0; st.shared.u32 [mem], %r3; bar.sync 0;"
                "shr.u64 %rd11, %rd10, 32; cvt.u32.u64 %r11, %rd11; cvt.u32.u64 %r12, %rd10; xor.b32 %r11, %r11, %r12;"
                "st.global.u32 [%rd5], %r11; ret;");
}

/* Changed between two barriers, so they are held behind the second one: lines, and what is the same for all threads, of each size. */
#define HELD                                                                                                                               \
    ".reg .b16 %h<3>; mul.lo.u32 %r11, %r1, 3; mad.lo.u32 %r12, %r4, 7, 2; mul.wide.u32 %rd12, %r1, 24; and.b32 %r13, %r1, 3;"             \
    "setp.eq.s32 %p1, %r13, 1; mov.u32 %r15, 0; cvt.u64.u32 %rd13, %r4; bar.sync 0; st.shared.u32 [mem], %r12; add.s64 %rd13, %rd13, 3; "  \
    "add.u32 %r18, %r11, %r12; add.u32 %r11, %r11, 5;"                                                                                     \
    "setp.lt.u32 %p2, %r4, 1; cvt.u16.u32 %h1, %r12; add.s64 %rd12, %rd12, 48; add.u32 %r12, %r12, 9; bar.sync 0;"
#define READ_HELD                                                                                                                          \
    "cvt.u32.u64 %r16, %rd13; add.u32 %r15, %r15, %r16; cvt.u32.u64 %r16, %rd12; mad.lo.u32 %r15, %r15, 5, %r11; mad.lo.u32 %r15, %r15, "  \
    "5, %r12; mad.lo.u32 %r15, %r15, 5, %r16;"                                                                                             \
    "selp.b32 %r16, 9, 4, %p2; cvt.u32.u16 %r17, %h1; mad.lo.u32 %r15, %r15, %r16, %r17; xor.b32 %r15, %r15, %r18;"                        \
    "st.global.u32 [%rd5], %r15; ret;"

Test(jit, registers_that_are_held_and_then_not)
{
    agree("threads part and meet at barriers of their own", HELD "@%p1 bra A; add.u32 %r15, %r11, 1; bar.sync 0; bra B; A: bar.sync 0;"
                                                                 "mul.lo.u32 %r15, %r12, %r11; B: " READ_HELD);
    agree("they part and meet at one, twice",
          HELD "@%p1 bra A; add.u32 %r15, %r11, 1; A: bar.sync 0; @!%p1 bra B; add.u32 %r15, %r15, %r12;"
               "add.u32 %r18, %r4, 6; B: bar.red.popc.u32 %r19, 0, %p2; add.u32 %r15, %r15, %r19;" READ_HELD);
    agree("the interpreter counts", HELD "bar.red.popc.u32 %r15, 0, %p2; add.u32 %r11, %r11, 4; bar.sync 0; @%p1 bra B; bar.sync 0; bra C;"
                                         "B: add.u32 %r11, %r11, 1; bar.sync 0; C: " READ_HELD);
    agree("a loop of many rounds", HELD "mov.u32 %r14, 0; L: add.u32 %r14, %r14, 1; setp.lt.u32 %p3, %r14, 5000; @%p3 bra L;"
                                        "add.u32 %r15, %r14, %r11; bar.sync 0; @%p1 bra B; add.u32 %r15, %r15, 1; B: " READ_HELD);
    agree("a line wraps", HELD "add.s32 %r10, %r1, 2147483640; mul.wide.s32 %rd10, %r10, 4; bar.sync 0; add.s64 %rd12, %rd12, 8; add.u32 "
                               "%r12, %r12, 1; bar.sync 0;"
                               "shr.u64 %rd11, %rd10, 33; cvt.u32.u64 %r19, %rd11; add.u32 %r15, %r19, 7; bar.sync 0; @%p1 bra B;"
                               "add.u32 %r15, %r15, 1; B: " READ_HELD);
    agree("chunks part", HELD "setp.lt.u32 %p3, %r5, 32; @%p3 bra A; add.u32 %r11, %r11, 1; bar.sync 0; bra B; A: add.u32 %r11, %r11, 2;"
                              "bar.sync 0; B: add.u32 %r15, %r15, 3; bar.sync 0; " READ_HELD);
    agree("some return", HELD "setp.gt.u32 %p3, %r1, 20; @%p3 bra E; bar.sync 0; add.u32 %r11, %r11, 2; bar.sync 0; @%p1 bra B;"
                              "add.u32 %r15, %r11, 1; B: bar.sync 0; " READ_HELD " E: st.global.u32 [%rd5], %r11; ret;");
    agree("the interpreter is asked for some threads",
          HELD "cvt.rn.f32.u32 %f1, %r12; bar.sync 0; mov.f32 %f2, %f1; @%p1 sin.approx.f32 %f2, %f1;"
               "mov.b32 %r15, %f2; bar.sync 0; @%p1 bra B; bar.sync 0; bra C; B: bar.sync 0; C: " READ_HELD);
}

/* The barrier alone parts threads that came together: those with odd numbers wait while the others read a word, and read it then. What they have read is
 * wanted behind one more barrier. */
#define PARTED(by, together)                                                                                                               \
    "and.b32 %r13, %r5, 1; setp.eq.s32 %p1, %r13, 1; mov.u32 %r11, 7; mov.u32 %r12, 0; st.shared.u32 [mem], %r12;"                         \
    "mul.lo.u32 %r15, %r3, %r6; shr.u32 %r16, %r15, 1; sub.u32 %r17, %r15, %r16; bar.sync 0; st.shared.u32 [mem+8], %r11; " by             \
    "@%p1 st.shared.u32 [mem], %r11; ld.shared.u32 %r10, [mem]; " together                                                                 \
    "st.shared.u32 [mem+8], %r3; bar.sync 0; add.u32 %r10, %r10, 3;"                                                                       \
    "st.global.u32 [%rd5], %r10; ret;"

Test(jit, threads_that_a_barrier_parts)
{
    agree("some do not wait", PARTED("@%p1 barrier.sync 0;", "@!%p1 barrier.sync 0;"));
    agree("some wait for half of them, some for all",
          PARTED("selp.b32 %r18, 1, 2, %p1; selp.b32 %r19, %r15, %r17, %p1; barrier.sync %r18, %r19;",
                 "selp.b32 %r18, 3, 1, %p1; selp.b32 %r19, %r16, %r15, %p1; barrier.arrive %r18, %r19;"));
}

/* Compiled code comes to the shuffle with some of a warp's threads, and the others stand before another block. */
Test(jit, a_shuffle_that_threads_of_a_warp_come_to_apart)
{
    agree("behind a loop that a chunk stops in",
          "and.b32 %r13, %r1, 7; mad.lo.u32 %r14, %r13, 500, 1900; mov.u32 %r19, 0; L: add.u32 %r19, %r19, 1; setp.lt.u32 %p3, %r19, %r14;"
          "@%p3 bra L; add.u32 %r19, %r19, %r1; shfl.sync.bfly.b32 %r15, %r19, 5, 31, -1; st.global.u32 [%rd5], %r15; ret;");
    agree("behind a barrier on each of two ways",
          "and.b32 %r13, %r1, 1; setp.eq.s32 %p1, %r13, 1; ld.global.u32 %r10, [%rd6]; @%p1 bra A; add.u32 %r10, %r10, 5; bar.sync 0;"
          "add.u32 %r10, %r10, 9; bra B; A: bar.sync 0; B: add.u32 %r10, %r10, 1; shfl.sync.bfly.b32 %r11, %r10, 1, 31, -1;"
          "st.global.u32 [%rd5], %r11; ret;");
}

Test(jit, a_barrier_that_counts_into_a_line)
{
    agree("it", "mul.lo.u32 %r15, %r1, 3; setp.lt.u32 %p2, %r1, 5; bar.sync 0; st.shared.u32 [mem], %r15; bar.red.popc.u32 %r15, 0, %p2;"
                "st.shared.u32 [mem], %r3; bar.sync 0; st.global.u32 [%rd5], %r15; ret;");
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

/* What shuffles take from lanes that do not exist is 0; members of warps that are not full are not waited for. */
Test(jit, warps)
{
    agree("shuffles",
          "mul.lo.s32 %r10, %r5, 77; shfl.sync.down.b32 %r11|%p1, %r10, 5, 31, -1; shfl.sync.up.b32 %r12|%p2, %r10, 3, 0, -1;"
          "shfl.sync.bfly.b32 %r13, %r10, 9, 31, -1; shfl.sync.idx.b32 %r14, %r10, 2, 31, -1; and.b32 %r15, %r1, 31;"
          "xor.b32 %r15, %r15, 21; shfl.sync.idx.b32 %r16, %r10, %r15, 31, -1; shfl.sync.down.b32 %r17|%p3, %r10, %r15, 6175, -1;"
          "shfl.sync.bfly.b32 %r18, %r10, 1, 7199, -1; selp.b32 %r19, 1, 0, %p1; selp.b32 %r20, 2, 0, %p2; selp.b32 %r21, 4, 0, %p3;"
          "add.s32 %r11, %r11, %r19; mad.lo.s32 %r11, %r11, 3, %r12; mad.lo.s32 %r11, %r11, 3, %r13; mad.lo.s32 %r11, %r11, 3, %r14;"
          "mad.lo.s32 %r11, %r11, 3, %r16; mad.lo.s32 %r11, %r11, 3, %r17; mad.lo.s32 %r11, %r11, 3, %r18; add.s32 %r11, %r11, %r20;"
          "add.s32 %r11, %r11, %r21; st.global.u32 [%rd5], %r11; ret;");
    agree("votes", "and.b32 %r10, %r1, 3; setp.eq.s32 %p1, %r10, 1; vote.sync.ballot.b32 %r11, %p1, -1; vote.sync.any.pred %p2, %p1, -1;"
                   "vote.sync.all.pred %p3, !%p1, -1; vote.sync.uni.pred %p4, %p1, -1; activemask.b32 %r12; selp.b32 %r13, 1, 0, %p2;"
                   "selp.b32 %r14, 2, 0, %p3; selp.b32 %r15, 4, 0, %p4; xor.b32 %r11, %r11, %r12; add.s32 %r11, %r11, %r13; add.s32 %r11, "
                   "%r11, %r14; add.s32 %r11, %r11, %r15; vote.sync.ballot.b32 %r16, !%p1, 0xff; add.s32 %r11, %r11, %r16;"
                   "st.global.u32 [%rd5], %r11; ret;");
    agree("matches and sums",
          "and.b32 %r10, %r1, 5; match.any.sync.b32 %r11, %r10, -1; match.all.sync.b32 %r12|%p1, %r10, -1; activemask.b32 %r15;"
          "selp.b32 %r14, 9, 0, %p1; add.s32 %r11, %r11, %r12; add.s32 %r11, %r11, %r14; st.global.u32 [%rd5], %r11; ret;");
    agree("some ask others",
          "mov.u32 %r12, 5; and.b32 %r10, %r1, 31; setp.lt.u32 %p1, %r10, 16; @%p1 bra A; shfl.sync.bfly.b32 %r12, %r5, 1, 31, 0xffff0000;"
          "bra B; A: vote.sync.ballot.b32 %r12, %p1, 0x0000ffff; activemask.b32 %r13; add.s32 %r12, %r12, %r13; B: bar.warp.sync -1;"
          "shfl.sync.idx.b32 %r14, %r12, 0, 31, -1; add.s32 %r12, %r12, %r14; st.global.u32 [%rd5], %r12; ret;");
    agree("some have returned", "and.b32 %r10, %r1, 7; setp.eq.s32 %p1, %r10, 3; @%p1 bra E; vote.sync.ballot.b32 %r11, %p1, -1;"
                                "activemask.b32 %r12; add.s32 %r11, %r11, %r12; st.global.u32 [%rd5], %r11; E: ret;");
    agree("they come by different ways",
          "and.b32 %r10, %r1, 31; mov.u32 %r3, %r1; setp.lt.u32 %p1, %r10, 9; @!%p1 bra LONG; S: shfl.sync.bfly.b32 %r12, %r3, 16, 31, -1;"
          "st.global.u32 [%rd5], %r12; ret; LONG: mov.u32 %r4, 0; M: add.s32 %r4, %r4, 1; setp.lt.s32 %p2, %r4, %r10; @%p2 bra M;"
          "add.s32 %r3, %r3, 1000; bra S;");
    agree(
        "they meet at different instructions",
        "and.b32 %r10, %r1, 31; setp.lt.u32 %p1, %r10, 9; @!%p1 bra O; bar.warp.sync -1; add.s32 %r12, %r1, 3; bra J; O: bar.warp.sync -1;"
        "mov.u32 %r12, 8; J: st.global.u32 [%rd5], %r12; ret;");
    agree("under a guard", "and.b32 %r10, %r1, 1; setp.eq.s32 %p1, %r10, 0; mov.u32 %r12, 7; @%p1 shfl.sync.bfly.b32 %r12, %r5, 2, 31, "
                           "0x55555555; @!%p1 vote.sync.ballot.b32 %r12, %p1, 0xaaaaaaaa; st.global.u32 [%rd5], %r12; ret;");
    agree("a loop", "mov.u32 %r10, 16; mov.u32 %r11, %r5; L: shfl.sync.down.b32 %r12, %r11, %r10, 31, -1; add.s32 %r11, %r11, %r12;"
                    "shr.u32 %r10, %r10, 1; setp.ne.s32 %p1, %r10, 0; @%p1 bra L; st.global.u32 [%rd5], %r11; ret;");
}

/* Sums of whole numbers, whose order does not matter; what was there before is added up, too. */
Test(jit, atomics)
{
    agree(
        "shared",
        "mov.u64 %rd10, mem; and.b32 %r10, %r1, 7; mul.wide.u32 %rd11, %r10, 4; add.s64 %rd11, %rd10, %rd11; mov.u32 %r11, 0;"
        "st.shared.u32 [%rd11], %r11; bar.sync 0; atom.shared.add.u32 %r12, [%rd11], %r5; bar.sync 0; atom.shared.max.u32 %r13, [%rd11], 3;"
        "bar.sync 0; ld.shared.u32 %r14, [%rd11]; st.global.u32 [%rd5], %r14; ret;");
    agree("its own word", "st.global.u32 [%rd5], %r1; atom.global.add.u32 %r10, [%rd5], 5; atom.global.exch.b32 %r11, [%rd5], %r10;"
                          "atom.global.cas.b32 %r12, [%rd5], %r10, %r11; red.global.xor.b32 [%rd5], 77; add.s32 %r12, %r12, %r11;"
                          "red.global.add.u32 [%rd5], %r12; ret;");
    agree("generic", "mov.u64 %rd10, mem; cvta.shared.u64 %rd10, %rd10; mov.u32 %r11, 0; st.u32 [%rd10], %r11; bar.sync 0;"
                     "atom.add.u32 %r12, [%rd10], 1; bar.sync 0; ld.u32 %r13, [%rd10]; st.u32 [%rd5], %r13; ret;");
    agree("a loop that waits",
          "mov.u64 %rd10, mem; mov.u32 %r11, 0; st.shared.u32 [%rd10], %r11; st.shared.u32 [%rd10+4], %r11; bar.sync 0;"
          "T: atom.shared.cas.b32 %r12, [%rd10], 0, 1; setp.ne.s32 %p1, %r12, 0; @%p1 bra T; ld.volatile.shared.u32 "
          "%r13, [%rd10+4]; add.s32 %r13, %r13, 3; st.volatile.shared.u32 [%rd10+4], %r13; membar.cta;"
          "atom.shared.exch.b32 %r14, [%rd10], 0; bar.sync 0; ld.shared.u32 %r15, [%rd10+4]; st.global.u32 [%rd5], %r15; ret;");
}

#define CALLED                                                                                                                             \
    ".func (.param .b32 ret) half(.param .b32 n) { .reg .b32 %r<4>; .reg .pred %p<2>; ld.param.u32 %r1, [n]; mov.u32 %r2, 0;\n"            \
    "L: add.s32 %r2, %r2, 2; setp.lt.u32 %p1, %r2, %r1; @%p1 bra L; shfl.sync.bfly.b32 %r3, %r2, 1, 31, 3; st.param.b32 [ret], %r2; ret; " \
    "}\n"
Test(jit, what_the_interpreter_lends)
{
    agree("bits of all kinds",
          "bfi.b32 %r10, %r5, %r1, 3, 9; bfe.s32 %r11, %r10, 2, 7; prmt.b32 %r12, %r10, %r11, 0x3614; bfind.u32 %r13, %r12;"
          "sad.u32 %r14, %r10, %r12, %r13; lop3.b32 %r15, %r10, %r14, %r12, 0x96; dp4a.s32.s32 %r15, %r10, %r12, %r15;"
          "st.global.u32 [%rd5], %r15; ret;");
    agree("in some threads",
          "setp.gt.u32 %p1, %r1, 4; mov.u32 %r15, 8; @%p1 bfi.b32 %r15, %r5, %r1, 3, 9; @!%p1 bra B; mul.lo.s32 %r15, %r15, 3;"
          "dp4a.s32.s32 %r15, %r15, %r1, %r5; B: st.global.u32 [%rd5], %r15; ret;");
    agree("approximations", "cvt.rn.f32.u32 %f1, %r5; sin.approx.f32 %f2, %f1; cos.approx.f32 %f3, %f1; lg2.approx.f32 %f4, %f1;"
                            "add.f32 %f2, %f2, %f3; fma.rz.f32 %f2, %f2, %f3, %f1; st.global.f32 [%rd5], %f2; ret;");
    agree("halves",
          "cvt.rn.f32.u32 %f1, %r1; { .reg .b16 %h<4>; cvt.rn.f16.f32 %h1, %f1; fma.rn.f16 %h2, %h1, %h1, %h1; cvt.f32.f16 %f2, %h2; }"
          "st.global.f32 [%rd5], %f2; ret;");
    agree("numbers of its place", "mov.u32 %r10, %ctaid.x; mov.u32 %r11, %lanemask_lt; add.s32 %r10, %r10, %r11; mov.u32 %r12, %nwarpid;"
                                  "bfi.b32 %r10, %ctaid.x, %r10, 4, 3; add.s32 %r10, %r10, %r12; st.global.u32 [%rd5], %r10; ret;");
    agree(
        "wide, narrow and scattered memory",
        "and.b32 %r10, %r1, 60; mul.wide.u32 %rd10, %r10, 3; add.s64 %rd10, %rd1, %rd10; ld.global.u8 %r11, [%rd10+1]; ld.global.s16 %r12, "
        "[%rd10+2]; mov.u64 %rd11, mem; and.b32 %r13, %r1, 63; mul.wide.u32 %rd12, %r13, 24; add.s64 %rd11, %rd11, %rd12;"
        "st.shared.u8 [%rd11+1], %r11; st.shared.u16 [%rd11+2], %r12; st.shared.v2.u32 [%rd11+8], {%r11, %r12}; ld.shared.s8 %r14, "
        "[%rd11+1];"
        "ld.shared.v2.u32 {%r15, %r16}, [%rd11+8]; add.s32 %r14, %r14, %r15; add.s32 %r14, %r14, %r16; st.global.u32 [%rd5], %r14; ret;");
}

/* A little more than the middle between two numbers of binary32, which is lost in binary64. */
Test(jit, integers_of_64_bits_round_once)
{
    agree("unsigned and signed", "cvt.u64.u32 %rd10, %r1; and.b64 %rd10, %rd10, 63; add.s64 %rd10, %rd10, 1152921573326323713;"
                                 "neg.s64 %rd11, %rd10; cvt.rn.f32.u64 %f1, %rd10; cvt.rn.f32.s64 %f2, %rd11; mov.b32 %r10, %f1;"
                                 "mov.b32 %r11, %f2; shl.b32 %r11, %r11, 1; xor.b32 %r10, %r10, %r11; st.global.u32 [%rd5], %r10; ret;");
}

/* Functions that compiled code calls run in the interpreter, for a chunk. */
Test(jit, functions_and_what_they_may_not_do)
{
    static const char *const calls =
        "{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 b; call.uni (b), half, (a); ld.param.b32 %r10, [b]; }"
        "st.global.u32 [%rd5], %r10; ret;";
    char reason[192];

    functions = CALLED;
    agree("calls", calls);
    functions = ".func (.param .b32 ret) half(.param .b32 n) { bar.sync 0; ret; }\n";
    load(calls);
    cr_assert_not(jit_engine(r.module, &r.module->functions[1], reason, sizeof reason));
    cr_assert(strstr(reason, "call.uni"), "%s", reason);
    functions = "";
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

/* What no block behind the barrier touches goes back to the arrays with the rest, where a chunk stops in the loop. */
Test(jit, a_chunk_that_stops_in_a_loop_behind_a_barrier)
{
    agree("a loop of many rounds",
          "ld.global.u32 %r12, [%rd6]; mov.u32 %r13, 0; mul.lo.u32 %r15, %r1, 3; mad.lo.u32 %r16, %r4, 5, 1;\n"
          "Again: add.u32 %r13, %r13, 1; mov.u32 %r14, 0;\n"
          "Inner: add.u32 %r14, %r14, 1; setp.lt.u32 %p1, %r14, 3000; @%p1 bra Inner;\n"
          "bar.sync 0; setp.lt.u32 %p2, %r13, 3; @%p2 bra Again; bar.sync 0;\n"
          "add.u32 %r12, %r12, %r14; add.u32 %r12, %r12, %r15; xor.b32 %r12, %r12, %r16; st.global.u32 [%rd5], %r12; ret;");
}

#define BEFORE_LOOP                                                                                                                        \
    "ld.global.u32 %r12, [%rd6]; mov.u32 %r13, 0; mul.lo.u32 %r15, %r1, 3; mad.lo.u32 %r16, %r4, 5, 1; mul.wide.u32 %rd12, %r1, 9;"
#define BEHIND_LOOP                                                                                                                        \
    "setp.lt.u32 %p2, %r13, 5; @%p2 bra L; mad.lo.u32 %r12, %r12, 3, %r15; cvt.u32.u64 %r17, %rd12; mad.lo.u32 %r12, %r12, 3, %r16;"       \
    "add.u32 %r12, %r12, %r17; mad.lo.u32 %r12, %r12, 3, %r13; st.global.u32 [%rd5], %r12; ret;"

Test(jit, what_only_the_way_out_of_a_loop_of_barriers_reads)
{
    agree("nothing else", BEFORE_LOOP "L: st.shared.u32 [mem], %r13; bar.sync 0; add.u32 %r13, %r13, 1;" BEHIND_LOOP);
    agree("some access more than there is, but for their guard", BEFORE_LOOP
          "setp.eq.u32 %p1, %r1, 0; mov.u64 %rd10, mem; mul.wide.u32 %rd11, %r1, 8192; add.s64 %rd11, %rd10, %rd11; mov.u32 %r19, 3;"
          "L: st.shared.u32 [mem], %r13; bar.sync 0; add.u32 %r13, %r13, 1; @%p1 ld.shared.u32 %r19, [%rd11];" BEHIND_LOOP);
    agree("a chunk stops on its way back",
          BEFORE_LOOP "mov.u32 %r18, 0; L: mov.u32 %r14, 0; I: add.u32 %r14, %r14, 1; setp.lt.u32 %p1, %r14, 3000;"
                      "@%p1 bra I; add.u32 %r15, %r15, 1; bar.sync 0; add.u32 %r13, %r13, 1;" BEHIND_LOOP);
}

Test(jit, random_programs)
{
    static void (*const kinds[])(char *text, size_t bytes, uint32_t seed) = {maker_write_alone, maker_write_warps, maker_write_barriers};
    static const unsigned threads[] = {256, 128, 100, 48, 33, 16, 7};
    static char           text[MAKER_TEXT_BYTES];
    uint32_t             *stores = rig_memory(&r, WORDS * 4);
    const char           *count = getenv("GPUREST_COMPILED_PROGRAMS");
    unsigned              end = 5000 + (count ? (unsigned)strtoul(count, NULL, 10) : PROGRAMS_DEFAULT);

    for (unsigned seed = 5000; seed < end; seed++) {
        uint32_t state = 7 * seed + 1;
        unsigned block = threads[seed % (sizeof threads / sizeof *threads)];

        for (unsigned i = 0; i < WORDS; i++)
            in[i] = maker_value(&state);
        kinds[seed % (sizeof kinds / sizeof *kinds)](text, sizeof text, seed);
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

Test(jit, random_loops_with_barriers)
{
    static const struct rig_shape shapes[] = {
        {.grid_x = 2, .block_x = 64},
        {.grid_x = 2, .block_x = 100},
        {.grid_x = 2, .block_x = 16, .block_y = 5},
        {.grid_x = 2, .block_x = 256},
        {.grid_x = 2, .block_x = 33},
        {.grid_x = 2, .block_x = 7, .block_y = 9},
        {.grid_x = 2, .block_x = 32, .block_y = 3},
    };
    static char text[MAKER_TEXT_BYTES];
    const char *count = getenv("GPUREST_COMPILED_PROGRAMS");
    unsigned    end = 7020 + (count ? (unsigned)strtoul(count, NULL, 10) : LOOPS_DEFAULT);

    for (unsigned seed = 7020; seed < end; seed++) {
        uint32_t state = 7 * seed + 1;

        for (unsigned i = 0; i < WORDS; i++)
            in[i] = maker_value(&state);
        maker_write_loops(text, sizeof text, seed);
        rig_load(&r, text);
        for (unsigned compiled = 0; compiled < 2; compiled++) {
            jit_choose(compiled ? JIT_NOW : JIT_OFF);
            memset(out, 0, WORDS * 4);
            cr_assert_eq(rig_run(&r, "made", shapes[seed % COUNT(shapes)], (const uint64_t[]){ADDRESS(in), ADDRESS(out)}, 2), STATUS_OK,
                         "program %u: %s", seed, r.why.detail);
            if (!compiled)
                memcpy(expected, out, sizeof expected);
        }
        cr_assert(whole(), "program %u is not compiled", seed);
        for (unsigned i = 0; i < WORDS; i++)
            cr_assert_eq(out[i], expected[i], "program %u: word %u is %08x, not %08x", seed, i, out[i], expected[i]);
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

/* Grids of so many blocks that a host thread takes several at once, and compiled code goes through all of them, chunk by chunk. */
#define IMAGE(body)                                                                                                                        \
    ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 pin, .param .u64 pout, .param .u64 pn)\n{\n"             \
    ".reg .b32 %r<30>; .reg .b64 %rd<20>; .reg .pred %p<6>; ld.param.u64 %rd1, [pin]; ld.param.u64 %rd2, [pout]; ld.param.u32 %r20, "      \
    "[pn];\n"                                                                                                                              \
    "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, %r1; mov.u32 %r5, %tid.y;\n"              \
    "mov.u32 %r6, %ctaid.y; mov.u32 %r7, %ntid.y; mad.lo.s32 %r8, %r6, %r7, %r5; mov.u32 %r9, %nctaid.x; mul.lo.s32 %r10, %r9, %r3;\n"     \
    "mad.lo.s32 %r11, %r8, %r10, %r4; mul.wide.s32 %rd3, %r11, 4; add.s64 %rd4, %rd2, %rd3; add.s64 %rd5, %rd1, %rd3;\n" body " ret; }"

enum { IMAGE_WORDS = 1 << 18 };

static void images_agree(const char *what, const char *text, uint32_t n, bool faults)
{
    static const struct rig_shape shapes[] = {
        {.grid_x = 67, .grid_y = 8, .block_x = 16, .block_y = 16},
        {.grid_x = 600, .block_x = 64},
        {.grid_x = 300, .grid_y = 2, .block_x = 32, .block_y = 8},
        {.grid_x = 520, .block_x = 8, .block_y = 9},
        {.grid_x = 1000, .block_x = 100},
        {.grid_x = 500, .block_x = 256},
        {.grid_x = 200, .block_x = 300},
        {.grid_x = 40, .grid_y = 2, .block_x = 128, .block_y = 4},
        {.grid_x = 130, .block_x = 1024},
    };
    static uint32_t before[IMAGE_WORDS];
    uint32_t       *image = rig_memory(&r, IMAGE_WORDS * 4), *from = rig_memory(&r, IMAGE_WORDS * 4);
    char            detail[PROBLEM_DETAIL_BYTES];

    for (unsigned i = 0; i < IMAGE_WORDS; i++)
        from[i] = i * 2654435761u >> 7;
    the_rig_threads(1);
    rig_load(&r, text);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (unsigned compiled = 0; compiled < 2; compiled++) {
            enum status st;

            jit_choose(compiled ? JIT_NOW : JIT_OFF);
            memset(image, 0xa5, IMAGE_WORDS * 4);
            st = rig_run(&r, "k", shapes[s], (const uint64_t[]){ADDRESS(from), ADDRESS(image), n}, 3);
            cr_assert_eq(st, faults ? STATUS_KERNEL_FAULT : STATUS_OK, "%s: %s", what, r.why.detail);
            if (compiled && faults)
                cr_assert_str_eq(r.why.detail, detail, "%s: %s, shape %zu, not %s", what, r.why.detail, s, detail);
            else if (compiled)
                cr_assert_eq(memcmp(image, before, sizeof before), 0, "%s, shape %zu", what, s);
            snprintf(detail, sizeof detail, "%s", r.why.detail);
            memcpy(before, image, sizeof before);
        }
        cr_assert(whole(), "%s", what);
    }
}

Test(jit, rows_of_blocks_run_chunk_by_chunk)
{
    images_agree(
        "a bound in the middle",
        IMAGE(
            "setp.ge.s32 %p1, %r4, %r20; @%p1 bra E; ld.global.u32 %r12, [%rd5]; add.s32 %r12, %r12, %r8; st.global.u32 [%rd4], %r12; E:"),
        777, false);
    images_agree("an inner part",
                 IMAGE("setp.lt.s32 %p1, %r4, 1; setp.lt.s32 %p2, %r8, 1; or.pred %p1, %p1, %p2; add.s32 %r12, %r10, -1; setp.ge.s32 %p2, "
                       "%r4, %r12; or.pred %p1, %p1, %p2;\n"
                       "@%p1 bra E; ld.global.u32 %r12, [%rd5+-4]; ld.global.u32 %r13, [%rd5+4]; xor.b32 %r12, %r12, %r13; st.global.u32 "
                       "[%rd4], %r12; E:"),
                 0, false);
    images_agree("two returns",
                 IMAGE("setp.lt.s32 %p1, %r4, %r20; @%p1 bra A; st.global.u32 [%rd4], %r8; ret; A: st.global.u32 [%rd4], %r4;"), 500,
                 false);
    images_agree("a loop that threads leave one by one, or run out of rounds in",
                 IMAGE("ld.global.u32 %r12, [%rd5]; and.b32 %r13, %r12, 7; setp.eq.s32 %p1, %r4, %r20; @%p1 mov.u32 %r13, 5000; mov.u32 "
                       "%r14, 0; mov.u32 %r15, %r11;\n"
                       "L: mad.lo.s32 %r15, %r15, 5, %r14; add.s32 %r14, %r14, 1; setp.le.s32 %p2, %r14, %r13; @%p2 bra L; st.global.u32 "
                       "[%rd4], %r15;"),
                 300, false);
    images_agree("a loop over a line",
                 IMAGE("mov.u32 %r12, %r4; mov.u32 %r13, 0; L: add.s32 %r13, %r13, %r12; add.s32 %r12, %r12, 50; setp.lt.s32 %p1, %r12, "
                       "%r20; @%p1 bra L; st.global.u32 [%rd4], %r13;"),
                 900, false);
    images_agree("each its own local memory",
                 IMAGE(".local .align 4 .b8 mine[64]; and.b32 %r12, %r4, 15; mul.wide.u32 %rd10, %r12, 4; mov.u64 %rd11, mine; add.s64 "
                       "%rd11, %rd11, %rd10; st.local.u32 [%rd11], %r11; ld.local.u32 %r13, [%rd11]; st.global.u32 [%rd4], %r13;"),
                 0, false);
}

Test(jit, chunks_that_run_as_one_part_again)
{
    images_agree(
        "a loop over the grid, whose end some threads come to first",
        IMAGE("mov.u32 %r12, %nctaid.y; mul.lo.s32 %r12, %r12, %r7; mul.lo.s32 %r12, %r12, %r10; mul.wide.s32 %rd6, %r12, 4; setp.ge.s32 "
              "%p1, %r11, %r20; @%p1 bra E;\n"
              "L: ld.global.u32 %r13, [%rd4]; ld.global.u32 %r14, [%rd5]; xor.b32 %r13, %r13, %r14; st.global.u32 [%rd4], %r13;\n"
              "add.s64 %rd4, %rd4, %rd6; add.s64 %rd5, %rd5, %rd6; add.s32 %r11, %r11, %r12; setp.lt.s32 %p1, %r11, %r20; @%p1 bra L; E:"),
        250007, false);
    images_agree(
        "numbers that wrap",
        IMAGE("add.s32 %r12, %r4, 2147483000; setp.lt.s32 %p1, %r12, 0; @%p1 bra A; st.global.u32 [%rd4], %r12; bra E; A: st.global.u32 "
              "[%rd4], %r8; E:"),
        0, false);
    images_agree("an index that wraps",
                 IMAGE("add.s32 %r12, %r4, 2147483000; mul.wide.s32 %rd10, %r12, 4; shr.s64 %rd11, %rd10, 40; mul.lo.s64 %rd11, %rd11, 4; "
                       "cvt.u32.u64 %r13, %rd10; st.global.u32 [%rd4], %r13;"),
                 0, false);
    agree("more rounds than a chunk may make",
          "mov.u32 %r10, 0; L: ld.global.u32 %r11, [%rd6]; mad.lo.s32 %r11, %r11, 5, %r10; st.global.u32 "
          "[%rd5], %r11; add.s32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 2100; @%p1 bra L; ret;");
}

#define INNER "ld.global.u32 %r14, [%rd5]; xor.b32 %r14, %r14, %r4; st.global.u32 [%rd4], %r14; E:"

/* Those behind and before a stretch of a row; of lines with and without a sign, that stand on either side of the comparison. */
Test(jit, threads_of_a_row_return_before_the_others)
{
    images_agree(
        "below one bound, or above another",
        IMAGE("mov.u32 %r12, 39; setp.gt.u32 %p1, %r12, %r4; setp.lt.u32 %p2, %r20, %r4; or.pred %p1, %p1, %p2; @%p1 bra E;" INNER), 700,
        false);
    images_agree(
        "all but those between",
        IMAGE("add.s32 %r12, %r4, -100; setp.ge.s32 %p1, %r12, -40; setp.le.s32 %p2, %r12, %r20; and.pred %p1, %p1, %p2; @!%p1 bra "
              "E;" INNER),
        650, false);
    images_agree("by numbers of 64 bits",
                 IMAGE("cvt.s64.s32 %rd10, %r4; cvt.u64.u32 %rd11, %r20; setp.le.s64 %p1, %rd11, %rd10; @%p1 bra E;" INNER), 555, false);
    images_agree("twice", IMAGE("setp.ge.s32 %p1, %r4, %r20; @%p1 bra E; setp.le.s32 %p1, %r4, 3; @%p1 bra E;" INNER), 801, false);
    images_agree("and the first of the others goes astray, behind what would have",
                 IMAGE("setp.lt.s32 %p1, %r4, 1065; @%p1 bra E; mul.wide.s32 %rd10, %r4, 4; add.s64 %rd10, %rd10, %rd2; st.global.u32 "
                       "[%rd10+1044456], %r4; E:"),
                 0, true);
}

Test(jit, a_fault_where_chunks_run_as_one_names_its_thread)
{
    images_agree("the page behind a buffer",
                 IMAGE("mul.wide.s32 %rd10, %r4, 4; add.s64 %rd10, %rd10, %rd2; st.global.u32 [%rd10+1044576], %r4;"), 0, true);
    images_agree(
        "a buffer's neighbour, read",
        IMAGE("mul.wide.s32 %rd10, %r4, 4; add.s64 %rd10, %rd10, %rd1; ld.global.u32 %r12, [%rd10+1044576]; st.global.u32 [%rd4], %r12;"),
        0, true);
    images_agree(
        "in a later round",
        IMAGE("mov.u64 %rd10, 2199023255552; setp.ge.s32 %p1, %r2, 5; selp.b64 %rd10, %rd10, 0, %p1; mov.u32 %r12, 0;\n"
              "L: st.global.u32 [%rd4], %r4; add.s64 %rd4, %rd4, %rd10; add.s32 %r12, %r12, 1; setp.lt.s32 %p2, %r12, 3; @%p2 bra L;"),
        0, true);
}

Test(jit, a_fault_in_a_row_of_blocks_names_its_block)
{
    images_agree("beyond the end",
                 IMAGE("setp.eq.s32 %p1, %r4, %r20; mul.wide.s32 %rd10, %r4, 1048576; add.s64 %rd10, %rd4, %rd10; @%p1 st.global.u32 "
                       "[%rd10], %r1; st.global.u32 [%rd4], %r4;"),
                 401, true);
    images_agree("misaligned", IMAGE("setp.ne.s32 %p1, %r4, %r20; @%p1 bra E; add.s64 %rd4, %rd4, 1; E: st.global.u32 [%rd4], %r4;"), 333,
                 true);
    images_agree("a wild pointer",
                 IMAGE("mov.u64 %rd10, 64; setp.eq.s32 %p1, %r2, 5; selp.b64 %rd10, %rd10, %rd4, %p1; st.global.u32 [%rd10], %r4;"), 0,
                 true);
}

Test(jit, every_block_runs_once_however_they_are_dealt)
{
    static const unsigned         blocks[] = {1, 7, 64, 65, 300, 2001};
    static const struct rig_shape shapes[] = {{.block_x = 32}, {.block_x = 16, .block_y = 8}};
    uint32_t                     *count = rig_memory(&r, IMAGE_WORDS * 4);

    jit_choose(JIT_NOW);
    for (unsigned threads = 1; threads <= 3; threads++) {
        the_rig_threads(threads);
        rig_load(&r, IMAGE("ld.global.u32 %r12, [%rd4]; add.s32 %r12, %r12, 1; st.global.u32 [%rd4], %r12;"));
        for (unsigned i = 0; i < COUNT(blocks) * COUNT(shapes); i++) {
            struct rig_shape shape = shapes[i / COUNT(blocks)];
            unsigned         lanes = shape.block_x * (shape.block_y ? shape.block_y : 1), k = 0;

            shape.grid_x = blocks[i % COUNT(blocks)];
            memset(count, 0, IMAGE_WORDS * 4);
            cr_assert_eq(rig_run(&r, "k", shape, (const uint64_t[]){ADDRESS(count), ADDRESS(count), 0}, 3), STATUS_OK, "%s", r.why.detail);
            while (k < IMAGE_WORDS && count[k] == (k < lanes * shape.grid_x))
                k++;
            cr_assert_eq(k, IMAGE_WORDS, "%u threads, %u blocks of %u: word %u is %u", threads, shape.grid_x, lanes, k,
                         k < IMAGE_WORDS ? count[k] : 0);
        }
    }
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
    load("T: .branchtargets L, E; L: brx.idx %r1, T; E: ret;");
    cr_assert_not(jit_engine(r.module, &r.module->functions[0], reason, sizeof reason));
    cr_assert(strstr(reason, "brx.idx") && strstr(reason, "PTX line"), "%s", reason);
    jit_choose(JIT_OFF);
    cr_assert_not(jit_engine(r.module, &r.module->functions[0], reason, sizeof reason));
    cr_assert(strstr(reason, "cpu_jit"), "%s", reason);
}

static bool is_compiled_now(bool *later)
{
    const struct cpu_launch launch = {.module = r.module, .kernel = &r.module->functions[0], .block = {64, 1, 1}};

    return jit_code_for(&launch, later) != launch.kernel->code;
}

Test(jit, a_long_launch_goes_over_to_compiled_code)
{
    enum { BLOCKS = 4096, PATIENCE = 100 };
    bool later = true, compiled = false;

    jit_choose(JIT_AUTO);
    load("mov.u32 %r10, 0; L: add.s32 %r10, %r10, 1; setp.ne.s32 %p1, %r10, 2000; @%p1 bra L;"
         "ld.param.u64 %rd10, [pout]; mov.u32 %r12, %tid.x; mul.wide.u32 %rd11, %r12, 4; add.s64 %rd10, %rd10, %rd11;"
         "atom.global.add.u32 %r11, [%rd10], %r10; ret;");
    for (unsigned k = 1; later && k <= PATIENCE; k++) {
        memset(out, 0, 256);
        cr_assert_eq(RUN(&r, "k", SHAPE(BLOCKS, 64), ADDRESS(in), ADDRESS(out)), STATUS_OK, "%s", r.why.detail);
        for (unsigned i = 0; i < 64; i++)
            cr_assert_eq(out[i], BLOCKS * 2000u);
        compiled = is_compiled_now(&later);
    }
    cr_assert(compiled);
}

Test(jit, a_short_kernel_stays_in_the_interpreter)
{
    bool later = false;

    jit_choose(JIT_AUTO);
    load("ld.global.u32 %r10, [%rd6]; st.global.u32 [%rd5], %r10; ret;");
    cr_assert_eq(RUN(&r, "k", SHAPE(1, 64), ADDRESS(in), ADDRESS(out)), STATUS_OK, "%s", r.why.detail);
    cr_assert_not(is_compiled_now(&later));
    cr_assert(later);
}

Test(jit, compiled_code_takes_over_while_launches_go_on)
{
    jit_choose(JIT_EAGER);
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
