/* Divergence, loops, barriers, warp operations, atomics, calls, spaces, faults and stopping. */
#include <stdio.h>

#include "unit/device/cpu/interp/the_rig.h"

TestSuite(interp_control, .init = the_rig_start, .fini = the_rig_stop);

Test(interp_control, lanes_diverge_and_join_again)
{
    const uint32_t *out = the_rig_output(
        HEAD ENTRY(".param .u64 out") OUT
        "and.b32 %r2, %r1, 1; setp.eq.s32 %p1, %r2, 0; @%p1 bra EVEN;\n"
        "mov.u32 %r3, 100; bra JOIN;\nEVEN: mov.u32 %r3, 200;\nJOIN: add.s32 %r3, %r3, %r1; st.global.u32 [%rd3], %r3; ret; }",
        SHAPE(1, 64));

    for (unsigned i = 0; i < 64; i++)
        cr_assert_eq(out[i], (i & 1 ? 100 : 200) + i);
}

/* out = sum over k <= tid of (k summed tid-k times), by nested loops with different trip counts. */
Test(interp_control, nested_loops_with_different_trip_counts)
{
    const uint32_t *out = the_rig_output(HEAD ENTRY(".param .u64 out") OUT
                                         "mov.u32 %r2, 0; mov.u32 %r4, 0;\n"
                                         "OUTER: mov.u32 %r3, %r2;\n"
                                         "INNER: add.s32 %r4, %r4, 1; add.s32 %r3, %r3, 1; setp.le.s32 %p1, %r3, %r1; @%p1 bra INNER;\n"
                                         "add.s32 %r2, %r2, 1; setp.le.s32 %p1, %r2, %r1; @%p1 bra OUTER;\n"
                                         "st.global.u32 [%rd3], %r4; ret; }",
                                         SHAPE(1, 50));

    for (unsigned i = 0; i < 50; i++)
        cr_assert_eq(out[i], (i + 1) * (i + 2) / 2, "thread %u: %u", i, out[i]);
}

Test(interp_control, a_guard_applies_to_any_instruction)
{
    const uint32_t *out = the_rig_output(HEAD ENTRY(".param .u64 out") OUT
                                         "setp.gt.u32 %p1, %r1, 9; mov.u32 %r2, 1; @%p1 mov.u32 %r2, 2; @!%p1 add.s32 %r2, %r2, 5;\n"
                                         "@%p1 st.global.u32 [%rd3], %r2; @%p1 ret; st.global.u32 [%rd3], 77; ret; }",
                                         SHAPE(1, 32));

    for (unsigned i = 0; i < 32; i++)
        cr_assert_eq(out[i], i > 9 ? 2 : 77);
}

/* Every thread writes shared memory and, after the barrier, reads its mirror thread's word. */
Test(interp_control, a_barrier_orders_shared_memory)
{
    const uint32_t *out =
        the_rig_output(HEAD ".visible .entry k(.param .u64 out) {\n.shared .align 4 .b8 s[1024];\n.reg .b32 %r<9>; .reg .b64 %rd<9>;\n" OUT
                            "mov.u64 %rd4, s; add.s64 %rd5, %rd4, %rd2; st.shared.u32 [%rd5], %r1; bar.sync 0;\n"
                            "sub.s64 %rd6, %rd4, %rd2; ld.shared.u32 %r2, [%rd6+1020]; st.global.u32 [%rd3], %r2; ret; }",
                       SHAPE(1, 256));

    for (unsigned i = 0; i < 256; i++)
        cr_assert_eq(out[i], 255 - i);
}

Test(interp_control, a_barrier_in_two_branches_is_one_barrier)
{
    const uint32_t *out = the_rig_output(
        HEAD ".visible .entry k(.param .u64 out) {\n.shared .align 4 .b8 s[4];\n.reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n" OUT
             "setp.lt.u32 %p1, %r1, 20; @%p1 bra A;\n"
             "bar.sync 0; ld.shared.u32 %r2, [s]; bra E;\n"
             "A: mov.u32 %r3, 42; st.shared.u32 [s], %r3; bar.sync 0; mov.u32 %r2, 7;\n"
             "E: st.global.u32 [%rd3], %r2; ret; }",
        SHAPE(1, 64));

    for (unsigned i = 0; i < 64; i++)
        cr_assert_eq(out[i], i < 20 ? 7 : 42);
}

Test(interp_control, a_barrier_does_not_wait_for_threads_that_returned)
{
    const uint32_t *out = the_rig_output(
        HEAD ENTRY(".param .u64 out") OUT "setp.gt.u32 %p1, %r1, 40; @%p1 ret; bar.sync 0; st.global.u32 [%rd3], 5; ret; }", SHAPE(1, 64));

    cr_assert_eq(out[40], 5);
    cr_assert_eq(out[41], 0);
}

Test(interp_control, a_barrier_that_some_never_reach_is_a_failure)
{
    rig_load(&r, HEAD ENTRY(".param .u64 out") "mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 9; @%p1 bra B;\n"
                                               "bar.sync 0; bra E;\nB: bar.sync 1;\nE: ret; }");
    FAULTS(719, "k", SHAPE(1, 32), 0);
    SAYS("arrived 10 of 32");
    SAYS("line 7");
}

Test(interp_control, reducing_barriers)
{
    const uint32_t *out = the_rig_output(
        HEAD ENTRY(".param .u64 out") "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 10;\n"
                                      "bar.red.popc.u32 %r2, 0, %p1; bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1;\n"
                                      "selp.u32 %r3, 1, 0, %p2; selp.u32 %r4, 1, 0, %p3;\n"
                                      "st.global.u32 [%rd1], %r2; st.global.u32 [%rd1+4], %r3; st.global.u32 [%rd1+8], %r4; ret; }",
        SHAPE(1, 64));

    cr_assert_eq(out[0], 10);
    cr_assert_eq(out[1], 0);
    cr_assert_eq(out[2], 1);
}

Test(interp_control, warp_operations)
{
    const uint32_t *out = the_rig_output(
        HEAD ENTRY(".param .u64 out") OUT
        "shfl.sync.down.b32 %r2|%p1, %r1, 4, 31, -1; st.global.u32 [%rd3], %r2;\n"
        "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; st.global.u32 [%rd3+256], %r2;\n"
        "shfl.sync.idx.b32 %r2, %r1, 3, 0x1c1f, -1; st.global.u32 [%rd3+512], %r2;\n"
        "and.b32 %r4, %r1, 3; setp.eq.u32 %p2, %r4, 0; vote.sync.ballot.b32 %r2, %p2, -1; st.global.u32 [%rd3+768], %r2;\n"
        "match.any.sync.b32 %r2, %r4, -1; st.global.u32 [%rd3+1024], %r2;\n"
        "redux.sync.add.s32 %r2, %r1, -1; st.global.u32 [%rd3+1280], %r2;\n"
        "mov.u32 %r2, 0; @%p2 activemask.b32 %r2; st.global.u32 [%rd3+1536], %r2;\n"
        "vote.sync.any.pred %p3, %p2, -1; vote.sync.all.pred %p4, %p2, -1; selp.u32 %r2, 2, 0, %p3; selp.u32 %r5, 1, 0, %p4;\n"
        "add.u32 %r2, %r2, %r5; st.global.u32 [%rd3+1792], %r2; ret; }",
        SHAPE(1, 64));

    for (unsigned i = 0; i < 64; i++) {
        cr_assert_eq(out[i], i % 32 < 28 ? i + 4 : i);
        cr_assert_eq(out[64 + i], i ^ 1);
        cr_assert_eq(out[128 + i], (i & ~3u) + 3);
        cr_assert_eq(out[192 + i], 0x11111111);
        cr_assert_eq(out[256 + i], 0x11111111u << (i & 3));
        cr_assert_eq(out[320 + i], i < 32 ? 496 : 1520);
        cr_assert_eq(out[384 + i], i & 3 ? 0 : 0x11111111);
        cr_assert_eq(out[448 + i], 2);
    }
}

/* The lower half arrives first; its shuffle must wait for the upper half, whose path is longer. */
Test(interp_control, a_shuffle_waits_for_its_members)
{
    const uint32_t *out = the_rig_output(HEAD ENTRY(".param .u64 out") OUT
                                         "mov.u32 %r3, %r1; setp.lt.u32 %p1, %r1, 16; @!%p1 bra LONG;\n"
                                         "SHUFFLE: shfl.sync.bfly.b32 %r2, %r3, 16, 31, -1; st.global.u32 [%rd3], %r2; ret;\n"
                                         "LONG: mov.u32 %r4, 0;\nMORE: add.s32 %r4, %r4, 1; setp.lt.s32 %p2, %r4, 10; @%p2 bra MORE;\n"
                                         "add.s32 %r3, %r3, 1000; bra SHUFFLE; }",
                                         SHAPE(1, 32));

    for (unsigned i = 0; i < 32; i++)
        cr_assert_eq(out[i], (i ^ 16) + (i < 16 ? 1000 : 0), "lane %u: %u", i, out[i]);
}

/* Lanes that are elsewhere, or have ended, give 0; the predicate speaks of the segment alone. */
Test(interp_control, a_shuffle_from_a_lane_that_takes_no_part)
{
    static const char *const others[] = {"@!%p1 bra END;\n", "@!%p1 exit;\n"};

    for (size_t k = 0; k < COUNT(others); k++) {
        char text[2048];

        snprintf(text, sizeof text,
                 "%s%smov.u32 %%r4, 0; setp.lt.u32 %%p1, %%r1, 16; add.u32 %%r3, %%r1, 100; st.global.u32 [%%rd3], %%r1; %s"
                 "shfl.sync.idx.b32 %%r2|%%p2, %%r3, 20, 31, 0xffff; selp.u32 %%r4, 1, 0, %%p2; st.global.u32 [%%rd3], %%r2; st.global.u32 "
                 "[%%rd3+256], %%r4;\n"
                 "shfl.sync.down.b32 %%r2, %%r3, 8, 31, 0xffff; st.global.u32 [%%rd3+512], %%r2;\nEND: ret; }",
                 HEAD ENTRY(".param .u64 out"), OUT, others[k]);
        const uint32_t *out = the_rig_output(text, SHAPE(1, 32));

        for (unsigned i = 0; i < 32; i++) {
            cr_assert_eq(out[i], i < 16 ? 0 : i, "lane %u: %u", i, out[i]);
            cr_assert_eq(out[64 + i], i < 16);
            cr_assert_eq(out[128 + i], i < 8 ? i + 108 : 0);
        }
    }
}

/* This form livelocks if a whole warp must leave the loop together. */
Test(interp_control, a_spin_lock_makes_progress)
{
    const uint32_t *out =
        the_rig_output(HEAD ENTRY(".param .u64 out") "ld.param.u64 %rd1, [out];\n"
                                                     "TRY: atom.global.cas.b32 %r2, [%rd1], 0, 1; setp.ne.s32 %p1, %r2, 0; @%p1 bra TRY;\n"
                                                     "ld.volatile.global.u32 %r3, [%rd1+4]; add.s32 %r3, %r3, 1; st.volatile.global.u32 "
                                                     "[%rd1+4], %r3; membar.gl;\n"
                                                     "atom.global.exch.b32 %r2, [%rd1], 0; ret; }",
                       SHAPE(4, 16, .deadline_ms = 60000));

    cr_assert_eq(out[1], 64);
}

Test(interp_control, atomics_over_blocks_and_threads)
{
    uint32_t *out = rig_memory(&r, 64);
    float    *f = (float *)(out + 4);

    out[2] = 1000;
    rig_load(
        &r,
        HEAD ENTRY(
            ".param .u64 out") "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;\n"
                               "atom.global.add.u32 %r2, [%rd1], 1; red.global.max.s32 [%rd1+4], %r1; red.global.min.s32 [%rd1+8], %r1;\n"
                               "red.global.add.f32 [%rd1+16], 0f3F800000; red.global.add.u64 [%rd1+24], 2; atom.global.inc.u32 %r3, "
                               "[%rd1+32], 9;\n"
                               "red.global.or.b32 [%rd1+36], %r1; ret; }");
    OK("k", SHAPE(40, 256), ADDRESS(out));
    cr_assert_eq(out[0], 10240);
    cr_assert_eq(out[1], 255);
    cr_assert_eq(out[2], 0);
    cr_assert_eq(f[0], 10240.0f);
    cr_assert_eq(out[6], 20480);
    cr_assert_eq(out[8], 0);
    cr_assert_eq(out[9], 255);
}

#define FIB                                                                                                                                \
    ".func (.param .b32 ret) fib(.param .b32 n) {\n.reg .pred %p<3>; .reg .b32 %r<9>;\n"                                                   \
    "ld.param.u32 %r1, [n]; mov.u32 %r2, %r1; setp.lt.s32 %p1, %r1, 2; @%p1 bra DONE;\n"                                                   \
    "add.s32 %r3, %r1, -1; { .param .b32 a; st.param.b32 [a+0], %r3; .param .b32 b; call.uni (b), fib, (a); ld.param.b32 %r4, [b+0]; }\n"  \
    "add.s32 %r3, %r1, -2; { .param .b32 a; st.param.b32 [a+0], %r3; .param .b32 b; call.uni (b), fib, (a); ld.param.b32 %r5, [b+0]; }\n"  \
    "add.s32 %r2, %r4, %r5;\nDONE: st.param.b32 [ret+0], %r2; ret; }\n"

Test(interp_control, recursive_calls)
{
    static const uint32_t want[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34};
    const uint32_t       *out =
        the_rig_output(HEAD FIB ENTRY(".param .u64 out") OUT
                       "{ .param .b32 a; st.param.b32 [a+0], %r1; .param .b32 b; call.uni (b), fib, (a); ld.param.b32 %r2, [b+0]; }\n"
                       "st.global.u32 [%rd3], %r2; ret; }",
                       SHAPE(1, 10));

    for (unsigned i = 0; i < 10; i++)
        cr_assert_eq(out[i], want[i], "fib(%u) = %u", i, out[i]);
}

Test(interp_control, endless_recursion_is_a_failure)
{
    rig_load(&r, HEAD ".func f() {\ncall.uni f; ret; }\n" ENTRY(".param .u64 out") "call.uni f; ret; }");
    FAULTS(719, "k", SHAPE(1, 32), 0);
}

/* A prototype with larger parameters than the callee's must not write past the callee's memory. */
Test(interp_control, an_indirect_call_with_another_signature_is_a_failure)
{
    rig_load(&r, HEAD ".func f(.param .b32 a) { ret; }\n" ENTRY(
                     ".param .u64 out") "{ .param .align 8 .b8 big[4096];\nst.param.b64 [big+4088], %rd1;\n"
                                        "proto: .callprototype _ (.param .align 8 .b8 _[4096]);\nmov.u64 %rd1, f;\ncall %rd1, (big), "
                                        "proto; } ret; }");
    FAULTS(719, "k", SHAPE(1, 32), 0);
    SAYS("another signature");
}

Test(interp_control, generic_addresses_find_their_space)
{
    const uint32_t *out =
        the_rig_output(HEAD ".visible .entry k(.param .u64 out) {\n.shared .align 4 .b8 s[128]; .local .align 4 .b8 d[16];\n"
                            ".reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %rd<20>;\n" OUT
                            "mov.u64 %rd4, s; cvta.shared.u64 %rd5, %rd4; add.s64 %rd5, %rd5, %rd2; st.u32 [%rd5], %r1;\n"
                            "mov.u64 %rd6, d; cvta.local.u64 %rd7, %rd6; st.u32 [%rd7+8], 1000; ld.local.u32 %r2, [d+8];\n"
                            "isspacep.shared %p1, %rd5; isspacep.local %p2, %rd7; isspacep.global %p3, %rd3; isspacep.shared %p4, %rd3;\n"
                            "selp.u32 %r3, 1, 0, %p1; selp.u32 %r4, 2, 0, %p2; selp.u32 %r5, 4, 0, %p3; selp.u32 %r6, 8, 0, %p4;\n"
                            "add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; add.u32 %r3, %r3, %r6; add.u32 %r2, %r2, %r3;\n"
                            "cvta.to.shared.u64 %rd8, %rd5; ld.shared.u32 %r7, [%rd8]; add.u32 %r2, %r2, %r7; st.u32 [%rd3], %r2; ret; }",
                       SHAPE(1, 32));

    for (unsigned i = 0; i < 32; i++)
        cr_assert_eq(out[i], 1007 + i, "%u", out[i]);
}

Test(interp_control, vectors_and_narrow_types_in_memory)
{
    uint32_t *out = rig_memory(&r, 32);

    out[0] = 0x80ff0102;
    rig_load(&r, HEAD ENTRY(".param .u64 out") "ld.param.u64 %rd1, [out]; ld.global.s8 %r1, [%rd1+2]; ld.global.u8 %r2, [%rd1+3]; "
                                               "ld.global.s16 %r3, [%rd1+2];\n"
                                               "ld.global.v4.u8 {%r4, %r5, %r6, %r7}, [%rd1]; st.global.v4.u32 [%rd1+16], {%r1, %r2, %r3, "
                                               "%r5}; st.global.u16 [%rd1+4], %r6; ret; }");
    OK("k", SHAPE(1, 1), ADDRESS(out));
    cr_assert_eq(out[4], 0xffffffff);
    cr_assert_eq(out[5], 0x80);
    cr_assert_eq(out[6], 0xffff80ff);
    cr_assert_eq(out[7], 1);
    cr_assert_eq(out[1], 0xff);
}

#define IS_ACCESS(how, what, where, at, size)                                                                                              \
    cr_assert(r.why.access.error == (how) && r.why.access.kind == (what) && r.why.access.space == (where) &&                               \
                  r.why.access.address == (at) && r.why.access.bytes == (size),                                                            \
              "%u %u %u 0x%llx %u", r.why.access.error, r.why.access.kind, r.why.access.space, (unsigned long long)r.why.access.address,   \
              r.why.access.bytes)

Test(interp_control, faults_name_code_kernel_line_block_and_thread)
{
    uint32_t *out = rig_memory(&r, 256);

    rig_load(&r, HEAD ENTRY(".param .u64 out, .param .u64 from") "ld.param.u64 %rd1, [out]; ld.param.u64 %rd4, [from]; mov.u32 %r1, "
                                                                 "%tid.x; mul.wide.u32 %rd2, %r1, %ctaid.x;\n"
                                                                 "add.s64 %rd3, %rd1, %rd2; setp.lt.u32 %p1, %r1, 5; @%p1 bra E;\n"
                                                                 "ld.global.u32 %r2, [%rd4];\nE: ret; }");
    FAULTS(700, "k", SHAPE(3, 32), ADDRESS(out), 0x1234560);
    SAYS("illegal global address 0x1234560 in k, PTX line 8");
    SAYS("thread (5,0,0)");
    IS_ACCESS(ACCESS_OUT_OF_BOUNDS, ACCESS_READ, ACCESS_GLOBAL, 0x1234560, 4);
    cr_assert_eq(r.why.access.line, 8);
    cr_assert(r.why.access.has_thread && r.why.access.thread[0] == 5);
    FAULTS(716, "k", SHAPE(3, 32), ADDRESS(out), ADDRESS(out) + 2);
    IS_ACCESS(ACCESS_MISALIGNED, ACCESS_READ, ACCESS_GLOBAL, ADDRESS(out) + 2, 4);
    cr_assert_eq(RUN(&r, "k", SHAPE(1, 32), ADDRESS(out), ADDRESS(out) + 256), STATUS_KERNEL_FAULT, "behind the end: a guard page");
    cr_assert_eq(r.why.cuda_result, 700);
    IS_ACCESS(ACCESS_OUT_OF_BOUNDS, ACCESS_READ, ACCESS_GLOBAL, ADDRESS(out) + 256, 4);
    cr_assert(r.why.access.nearest == NEAREST_ALLOCATED && r.why.access.nearest_address == ADDRESS(out) &&
              r.why.access.nearest_bytes == 256);
    SAYS("thread (5,0,0)");
    cr_assert_eq(RUN(&r, "k", SHAPE(1, 32), ADDRESS(out), ADDRESS(&r)), STATUS_KERNEL_FAULT, "the host's own memory");
    OK("k", SHAPE(3, 32), ADDRESS(out), ADDRESS(out));
}

Test(interp_control, shared_memory_ends_at_its_size)
{
    rig_load(&r, HEAD ".visible .entry k(.param .u64 at) {\n.shared .align 4 .b8 s[64]; .reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
                      "ld.param.u64 %rd1, [at]; mov.u64 %rd2, s; add.s64 %rd1, %rd1, %rd2; st.shared.u32 [%rd1], 1; ret; }");
    OK("k", SHAPE(1, 1), 60);
    FAULTS(700, "k", SHAPE(1, 1), 64);
    IS_ACCESS(ACCESS_OUT_OF_BOUNDS, ACCESS_WRITE, ACCESS_SHARED, 64, 4);
    cr_assert_eq(r.why.access.nearest, NEAREST_NONE);
    cr_assert_eq(RUN(&r, "k", SHAPE(1, 1), (uint64_t)-4), STATUS_KERNEL_FAULT);
}

#define FAULTY(body)                                                                                                                       \
    HEAD ".const .align 4 .u32 c[2];\n.shared .align 8 .b8 s[64];\n" ENTRY(                                                                \
        ".param .u64 at") ".local .align 8 .b8 d[16];\n"                                                                                   \
                          "ld.param.u64 %rd1, [at]; mov.u32 %r1, 1; " body " ret; }"

/* What it did, to how many bytes, in which memory; a generic address counts as what it leads to. */
Test(interp_control, faults_tell_what_the_access_was)
{
    static const struct {
        const char       *text;
        uint64_t          at;
        enum access_error error;
        enum access_kind  kind;
        enum access_space space;
        uint64_t          shown;
        uint32_t          bytes;
    } rows[] = {
        {FAULTY("st.global.v4.u32 [%rd1], {%r1, %r1, %r1, %r1};"), 8, ACCESS_MISALIGNED, ACCESS_WRITE, ACCESS_GLOBAL, 8, 16},
        {FAULTY("ld.global.v2.u8 {%rs1, %rs2}, [%rd1];"), 8, ACCESS_OUT_OF_BOUNDS, ACCESS_READ, ACCESS_GLOBAL, 8, 2},
        {FAULTY("atom.global.add.u32 %r2, [%rd1], 1;"), 8, ACCESS_OUT_OF_BOUNDS, ACCESS_ATOMIC, ACCESS_GLOBAL, 8, 4},
        {FAULTY("red.shared.add.u64 [%rd1], 1;"), 64, ACCESS_OUT_OF_BOUNDS, ACCESS_ATOMIC, ACCESS_SHARED, 64, 8},
        {FAULTY("cvta.shared.u64 %rd2, %rd1; ld.u32 %r2, [%rd2];"), 2, ACCESS_MISALIGNED, ACCESS_READ, ACCESS_SHARED, 2, 4},
        {FAULTY("cvta.local.u64 %rd2, %rd1; st.u64 [%rd2], %rd1;"), 1 << 20, ACCESS_OUT_OF_BOUNDS, ACCESS_WRITE, ACCESS_LOCAL, 1 << 20, 8},
        {FAULTY("ld.const.u32 %r2, [%rd1];"), 8, ACCESS_OUT_OF_BOUNDS, ACCESS_READ, ACCESS_CONSTANT, 8, 4},
        {FAULTY("cp.async.ca.shared.global [%rd1], [%rd1], 8;"), 64, ACCESS_OUT_OF_BOUNDS, ACCESS_WRITE, ACCESS_SHARED, 64, 8},
        {FAULTY("cp.async.ca.shared.global [%rd1], [%rd1], 8;"), 8, ACCESS_OUT_OF_BOUNDS, ACCESS_READ, ACCESS_GLOBAL, 8, 8},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig_load(&r, rows[i].text);
        cr_assert_eq(RUN(&r, "k", SHAPE(1, 1), rows[i].at), STATUS_KERNEL_FAULT, "%s", rows[i].text);
        IS_ACCESS(rows[i].error, rows[i].kind, rows[i].space, rows[i].shown, rows[i].bytes);
    }
    rig_load(&r, FAULTY("trap;"));
    cr_assert_eq(RUN(&r, "k", SHAPE(1, 1), 0), STATUS_KERNEL_FAULT);
    cr_assert_eq(r.why.access.error, ACCESS_NONE);
}

Test(interp_control, trap_and_deadline_end_a_kernel)
{
    rig_load(&r, HEAD ENTRY(
                     ".param .u32 what") "ld.param.u32 %r1, [what]; setp.eq.s32 %p1, %r1, 0; @%p1 trap;\nL: add.s32 %r2, %r2, 1; bra L; }");
    FAULTS(719, "k", SHAPE(1, 32), 0);
    cr_assert_eq(RUN(&r, "k", SHAPE(5, 32, .deadline_ms = 30), 1), STATUS_EXECUTION_TIMEOUT);
    cr_assert_eq(r.why.cuda_result, 702);
}

Test(interp_control, impossible_launches_are_refused)
{
    rig_load(&r, HEAD ".visible .entry k(.param .u64 out) .maxntid 64 {\nret; }");
    cr_assert_eq(RUN(&r, "k", SHAPE(1, 64), 0), STATUS_OK);
    cr_assert_eq(RUN(&r, "k", SHAPE(1, 65), 0), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(RUN(&r, "k", SHAPE(0, 1), 0), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(RUN(&r, "k", SHAPE(1, 1, .shared_bytes = 1 << 20), 0), STATUS_LAUNCH_CONFIG_INVALID);
}

Test(interp_control, what_cannot_be_executed_is_refused_at_load)
{
    cr_assert_eq(rig_try_load(&r, HEAD ".extern .func nobody();\n" ENTRY(".param .u64 out") "\ncall.uni nobody; ret; }"),
                 STATUS_MODULE_INVALID);
    SAYS("line 8");
}

Test(interp_control, printf_assert_and_trap)
{
    struct buf text;
    int       *a = rig_memory(&r, 400);

    rig_load_file(&r, "printf_assert.ptx");
    OK("hello", SHAPE(1, 32), 2);
    buf_init(&text, 1000);
    cpu_engine_take_output(r.engine, &text);
    cr_assert_str_eq(text.data, "hello from block 0 thread 0: 0.000000 str 2199023255552\n"
                                "hello from block 0 thread 1: 1.500000 str 2199023255552\n");
    buf_finish(&text);
    OK("check", SHAPE(1, 64), ADDRESS(a), 50);
    a[7] = -1;
    FAULTS(710, "check", SHAPE(1, 64), ADDRESS(a), 50);
    SAYS("a[i] >= 0");
    SAYS("thread (7,0,0)");
    OK("trapper", SHAPE(1, 1), ADDRESS(a));
    a[0] = 42;
    FAULTS(719, "trapper", SHAPE(1, 1), ADDRESS(a));
}
