/* Named barriers, branch tables, waiting within a warp, the kernels' heap, refusals by name, cancelling. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit/device/cpu/interp/the_rig.h"


TestSuite(interp_more, .init = the_rig_start, .fini = the_rig_stop);


/* The first warp waits for data of the second one, which does not wait. */
Test(interp_more, a_named_barrier_counts_those_that_only_arrive)
{
    const uint32_t *out = the_rig_output(HEAD ".shared .align 4 .b8 s[128];\n" ENTRY(".param .u64 out") OUT
             "setp.ge.u32 %p1, %r1, 64; @%p1 bra OTHERS; setp.ge.u32 %p1, %r1, 32; @%p1 bra PRODUCE;\n"
             "bar.sync 3, 64; mov.u32 %r2, s; mad.lo.u32 %r2, %r1, 4, %r2; ld.shared.u32 %r3, [%r2]; bra DONE;\n"
             "PRODUCE: sub.u32 %r4, %r1, 32; mov.u32 %r2, s; mad.lo.u32 %r2, %r4, 4, %r2; add.u32 %r3, %r4, 500;\n"
             "st.shared.u32 [%r2], %r3; bar.arrive 3, 64; mov.u32 %r3, 7; bra DONE;\n"
             "OTHERS: mov.u32 %r3, 9;\n"
             "DONE: st.global.u32 [%rd3], %r3; ret; }", SHAPE(1, 96));

    for (unsigned i = 0; i < 96; i++)
        cr_assert_eq(out[i], i < 32 ? 500 + i : i < 64 ? 7 : 9, "thread %u: %u", i, out[i]);
}

Test(interp_more, different_counts_at_one_barrier_are_a_failure)
{
    uint32_t *out = rig_memory(&r, 64 * 4);

    rig_load(&r, HEAD ENTRY(".param .u64 out") OUT
             "setp.ge.u32 %p1, %r1, 32; @%p1 bra B; bar.sync 1, 64; ret; B: bar.sync 1, 96; ret; }");
    FAULTS(719, "k", SHAPE(1, 96), ADDRESS(out));
    SAYS("different counts at barrier 1");
}

Test(interp_more, a_branch_table_sends_each_thread_its_way)
{
    const uint32_t *out = the_rig_output(HEAD ENTRY(".param .u64 out") OUT
             "TS: .branchtargets A, B, C;\n"
             "rem.u32 %r2, %r1, 3; brx.idx %r2, TS;\n"
             "A: mov.u32 %r3, 10; bra DONE;\nB: mov.u32 %r3, 20; bra DONE;\nC: mov.u32 %r3, 30;\n"
             "DONE: st.global.u32 [%rd3], %r3; ret; }", SHAPE(1, 40));

    for (unsigned i = 0; i < 40; i++)
        cr_assert_eq(out[i], 10 * (i % 3 + 1), "thread %u: %u", i, out[i]);
}

/* Parameters and results of functions in registers, vectors of registers, and sums as operands: read as what they stand for. */
Test(interp_more, registers_as_parameters_and_vectors)
{
    const uint32_t *out = the_rig_output(
        HEAD ".func (.reg .u32 total, .param .u64 twice) sum(.reg .u32 a, .param .b32 b, .reg .u8 small)\n"
             "{ .reg .u32 %x<3>; .reg .u64 %y; .reg .pred %q; ld.param.u32 %x0, [b]; cvt.u32.u8 %x1, small; add.u32 total, a, %x0; add.u32 total, total, %x1;\n"
             "mul.wide.u32 %y, total, 2; st.param.u64 [twice], %y; setp.gt.u32 %q, a, 15; @%q ret; add.u32 total, total, 1000; ret; }\n"
             ENTRY(".param .u64 out") OUT
        ".reg .v4 .u32 %v<2>; .reg .v2 .f32 pair; .reg .u8 %c; .reg .u64 %wide;\n"
        "{ .param .b32 p; .param .b64 q; st.param.u32 [p], 7; mov.u32 %r5, 300; cvt.u8.u32 %c, %r5; call (%r4, q), sum, (%r1, p, %c);\n"
        "ld.param.u64 %wide, [q]; st.global.u32 [%rd3], %r4; cvt.u32.u64 %r6, %wide; st.global.u32 [%rd3+256], %r6; }\n"
        "mov.u32 %v1.x, %r1; mov.u32 %v1.y, %r1+1; add.u32 %v1.z, %v1.y, %r1 + 1; mov.u32 %v1.w, %r1-1;\n"
        "mad.lo.u32 %r7, %v1.x, 16, 0; cvt.u64.u32 %rd5, %r7; ld.param.u64 %rd6, [out]; add.u64 %rd5, %rd6, %rd5; st.global.v4.u32 [%rd5+1024], %v1;\n"
        "ld.global.v4.u32 %v0, [%rd5+1024]; mov.f32 pair.x, 0f40000000; mov.f32 pair.g, pair.r; cvt.rzi.u32.f32 %r8, pair.y;\n"
        "add.u32 %r9, %v0.a, %r8; add.u32 %r9, %r9, %v0.b; st.global.u32 [%rd3+512], %r9; ret; }",
        SHAPE(1, 32));

    for (unsigned i = 0; i < 32; i++) {
        unsigned total = i + 7 + 44;

        cr_assert_eq(out[i], i > 15 ? total : total + 1000, "lane %u: %u", i, out[i]);
        cr_assert_eq(out[64 + i], 2 * total);
        cr_assert_eq(out[256 + 4 * i], i);
        cr_assert_eq(out[256 + 4 * i + 1], i + 1);
        cr_assert_eq(out[256 + 4 * i + 2], 2 * i + 2);
        cr_assert_eq(out[256 + 4 * i + 3], i - 1);
        cr_assert_eq(out[128 + i], 3 * i + 3, "lane %u: %u", i, out[128 + i]);
    }
}

Test(interp_more, a_shuffle_whose_members_never_come_is_a_failure)
{
    uint32_t *out = rig_memory(&r, 64 * 4);

    rig_load(&r, HEAD ENTRY(".param .u64 out") OUT
             "setp.ge.u32 %p1, %r1, 16; @%p1 bra WAIT;\n"
             "shfl.sync.bfly.b32 %r2, %r1, 1, 0x1f, 0xffffffff; st.global.u32 [%rd3], %r2;\n"
             "WAIT: bar.sync 0; ret; }");
    FAULTS(719, "k", SHAPE(1, 32), ADDRESS(out));
    SAYS("`shfl.sync.bfly.b32` waits for threads of its warp that never reach it: members 0xffffffff, arrived 0x0000ffff");
    SAYS("thread (0,0,0)");
}

/* Ended threads are not members. */
Test(interp_more, a_vote_does_not_wait_for_threads_that_returned)
{
    const uint32_t *out = the_rig_output(HEAD ENTRY(".param .u64 out") OUT
             "setp.ge.u32 %p1, %r1, 10; @%p1 ret; setp.lt.u32 %p2, %r1, 4;\n"
             "vote.sync.ballot.b32 %r2, %p2, 0xffffffff; st.global.u32 [%rd3], %r2; ret; }", SHAPE(1, 32));

    for (unsigned i = 0; i < 10; i++)
        cr_assert_eq(out[i], 15);
}

Test(interp_more, a_warp_meets_at_different_instructions)
{
    const uint32_t *out = the_rig_output(HEAD ".shared .align 4 .b8 s[256];\n" ENTRY(".param .u64 out") OUT
             "mov.u32 %r2, s; mad.lo.u32 %r2, %r1, 4, %r2; add.u32 %r3, %r1, 100; st.shared.u32 [%r2], %r3;\n"
             "and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 0; @%p1 bra EVEN;\n"
             "bar.warp.sync 0xffffffff; ld.shared.u32 %r5, [%r2-4]; bra DONE;\n"
             "EVEN: bar.warp.sync 0xffffffff; ld.shared.u32 %r5, [%r2+4];\n"
             "DONE: bar.warp.sync 0xffffffff; st.global.u32 [%rd3], %r5; ret; }", SHAPE(1, 64));

    for (unsigned i = 0; i < 64; i++)
        cr_assert_eq(out[i], 100 + (i ^ 1), "thread %u: %u", i, out[i]);
}

Test(interp_more, a_kernel_that_waits_for_its_grid_is_refused_unless_the_launch_is_cooperative)
{
    float *a = rig_memory(&r, 400), *b = rig_memory(&r, 400);

    rig_load_file(&r, "coopgroups.ptx");
    cr_assert_eq(RUN(&r, "cg_grid", SHAPE(2, 32), ADDRESS(a), ADDRESS(b), 100), STATUS_LAUNCH_CONFIG_INVALID);
    SAYS("the launch must be cooperative");
    for (unsigned i = 0; i < 100; i++)
        a[i] = 1;
    OK("cg_reduce", SHAPE(1, 64), ADDRESS(a), ADDRESS(b), 100);
    cr_assert_eq(b[0], 100);
}


Test(interp_more, kernels_allocate_and_free)
{
    uint32_t *out = rig_memory(&r, 256 * 4);

    rig_load(&r, HEAD HEAP ENTRY(".param .u64 out") OUT
             "mov.u64 %rd5, 100;\n" MALLOC("%rd5", "%rd6") "st.u32 [%rd6], %r1; st.u32 [%rd6+96], %r1; bar.sync 0;\n"
             "ld.u32 %r2, [%rd6]; ld.u32 %r3, [%rd6+96]; add.u32 %r2, %r2, %r3;\n" FREE("%rd6")
             "mov.u64 %rd5, 0x40000000;\n" MALLOC("%rd5", "%rd7") FREE("%rd7")
             "setp.eq.u64 %p1, %rd7, 0; @!%p1 mov.u32 %r2, 0; st.global.u32 [%rd3], %r2; ret; }");
    for (unsigned round = 0; round < 400; round++) /* far more than the heap holds if it is not freed */
        OK("k", SHAPE(1, 256), ADDRESS(out));
    for (unsigned i = 0; i < 256; i++)
        cr_assert_eq(out[i], 2 * i);
}

Test(interp_more, freeing_twice_is_a_failure)
{
    uint32_t *out = rig_memory(&r, 4);

    rig_load(&r, HEAD HEAP ENTRY(".param .u64 out") OUT "mov.u64 %rd5, 10;\n" MALLOC("%rd5", "%rd6") FREE("%rd6") FREE("%rd6") "ret; }");
    FAULTS(719, "k", SHAPE(1, 1), ADDRESS(out));
    SAYS("which is not from malloc or was freed before");
}

Test(interp_more, what_the_device_cannot_do_is_refused_by_name)
{
    static const char *const bodies[][2] = {
        {"red.global.max.v2.f32 [%rd1], {%f3, %f4};", "red.global.max.v2.f32"},
        {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1}];", "tex.2d.v4.f32.f32"},
        {"tex.cube.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2, %r3, %r4}];", "tex.cube.v4.f32.s32"},
        {"tex.2d.v2.f32.f32 {%f1, %f2}, [%rd1, {%f1, %f2}];", "tex.2d.v2.f32.f32"},
        {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1+8, {%f1, %f2}];", "tex.2d.v4.f32.f32"},
        {"tld4.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];", "tld4.2d.v4.f32.f32"},
        {"suld.b.cube.b32.trap %r1, [%rd1, {%r1, %r2, %r3, %r4}];", "suld.b.cube.b32.trap"},
        {"suld.b.1d.v4.b64.trap {%rd1, %rd2, %rd3, %rd4}, [%rd1, {%r1}];", "suld.b.1d.v4.b64.trap"},
        {"sust.b.1d.b32 [%rd1, {%r1}], %r2;", "sust.b.1d.b32"},
        {"txq.b32 %r1, [%rd1];", "txq.b32"},
        {"wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1, %r2}, [%rd1];", "wmma.load.a.sync.aligned.row.m16n16k16.f16"},
        {"cp.async.bulk.commit_group;", "cp.async.bulk.commit_group"},
        {"cp.async.mbarrier.arrive [%rd1];", "cp.async.mbarrier.arrive"},
        {"cp.async.b64 [%rd1], [%rd2], 8;", "cp.async.b64"},
        {"barrier.cluster.sync;", "barrier.cluster.sync"},
        {"barrier.cluster;", "barrier.cluster"},
        {"barrier.wait;", "barrier.wait"},
        {"alloca.u64 %rd3, 16, 24;", "alloca.u64"},
        {"alloca.u64 %rd3, 16, 1024;", "alloca.u64"},
        {"barrier.acquire.sync 0;", "barrier.acquire.sync"},
        {"mbarrier.init.parity.shared.b64 [%rd1], 1;", "mbarrier.init.parity.shared.b64"},
        {"mbarrier.init.global.b64 [%rd1], 1;", "mbarrier.init.global.b64"},
        {"cvt.rn.e4m3x2.f32 %r1, %f3, %f4;", "cvt.rn.e4m3x2.f32"},
        {"cvt.rz.satfinite.e5m2x2.f32 %r1, %f3, %f4;", "cvt.rz.satfinite.e5m2x2.f32"},
        {"cvt.rn.f32.e5m2x2 %f3, %r1;", "cvt.rn.f32.e5m2x2"},
        {"cvt.rn.satfinite.e5m2x2.e4m3x2 %r1, %r2;", "cvt.rn.satfinite.e5m2x2.e4m3x2"},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};",
         "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32"},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r5,%r6}, {%f1,%f2,%f3,%f4};",
         "mma.sync.aligned.m16n8k16"},
        {"min.relu.f16x2 %r1, %r2, %r3;", "min.relu.f16x2"},
    };

    for (unsigned i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        char text[1024];

        snprintf(text, sizeof text, "%s%s ret; }", HEAD ENTRY(".param .u64 out") "\n", bodies[i][0]);
        cr_expect_eq(rig_try_load(&r, text), STATUS_MODULE_INVALID, "%s", bodies[i][0]);
        cr_expect(strstr(r.why.detail, bodies[i][1]), "%s: %s", bodies[i][0], r.why.detail);
    }
}

/* Most of this is the same for all blocks of a launch, and computed once; but not for the next launch with other numbers, nor where a
 * register is written twice or depends on the block. */
Test(interp_more, every_launch_has_its_own_numbers)
{
    uint32_t *out = rig_memory(&r, 512 * 4);

    rig_load(&r, HEAD ENTRY(".param .u64 out, .param .u32 a, .param .u16 b")
             "ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [a]; ld.param.u16 %r2, [b]; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
             "mov.u32 %r5, %ctaid.x; mad.lo.u32 %r6, %r5, %r3, %r4; mul.lo.u32 %r7, %r1, %r2; add.u32 %r8, %r7, %r4;\n"
             "setp.lt.u32 %p1, %r4, 3; selp.u32 %r9, 1000, 0, %p1; add.u32 %r10, %r8, %r9; add.u32 %r10, %r10, %r5;\n"
             "mul.wide.u32 %rd2, %r6, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r10; ret; }");
    for (unsigned launch = 1; launch < 4; launch++) {
        OK("k", SHAPE(4, 30 * launch), ADDRESS(out), launch, 7);
        for (unsigned i = 0; i < 120 * launch; i++) {
            unsigned tid = i % (30 * launch), block = i / (30 * launch), want = 7 * launch + tid + (tid < 3 ? 1000 : 0) + block;
            cr_assert_eq(out[i], want, "launch %u, thread %u: %u, not %u", launch, i, out[i], want);
        }
    }
}

/* The second element's source is the first one's result; each element is added separately. */
Test(interp_more, vector_atomics_add_element_by_element)
{
    float    *sums = rig_memory(&r, 64);
    uint32_t *halves = rig_memory(&r, 64);

    rig_load(&r, HEAD ENTRY(".param .u64 out, .param .u64 h") ".reg .b16 %h<9>;\n"
             "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [h]; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; mov.f32 %f3, 0f40400000;\n"
             "atom.global.add.v2.f32 {%f2, %f1}, [%rd1], {%f1, %f2}; red.global.add.v4.f32 [%rd1+16], {%f3, %f3, %f3, %f3};\n"
             "mov.b16 %h1, 0x3c00; mov.b16 %h2, 0x4000; red.global.add.noftz.v2.f16 [%rd2], {%h1, %h2};\n"
             "mov.b32 %r1, 0x3c003c00; atom.add.noftz.v2.f16x2 {%r2, _}, [%rd2+8], {%r1, %r1};\n"
             "st.global.u32 [%rd2+16], %r2; ret; }");
    OK("k", SHAPE(1, 1), ADDRESS(sums), ADDRESS(halves));
    cr_assert_float_eq(sums[0], 1, 0);
    cr_assert_float_eq(sums[1], 2, 0);
    OK("k", SHAPE(2, 32), ADDRESS(sums), ADDRESS(halves));
    cr_assert_float_eq(sums[0], 65, 0);
    cr_assert_float_eq(sums[1], 130, 0);
    cr_assert_float_eq(sums[7], 195, 0);
    cr_assert_eq(halves[0], 0x58105410, "65 and 130 in binary16: %08x", halves[0]);
    cr_assert_eq(halves[2], 0x54105410);
    cr_assert_eq(halves[3], 0x54105410);
    FAULTS(716, "k", SHAPE(1, 1), ADDRESS(sums) + 4, ADDRESS(halves));
    SAYS("misaligned global address");
}

/* Lanes that access one address do so at once, but as if one after the other: each sees the results of those before it. */
Test(interp_more, atomics_of_all_threads_on_one_address)
{
    enum { BLOCKS = 32, THREADS = 192, ALL = BLOCKS * THREADS };
    uint32_t *cells = rig_memory(&r, 256), *olds = rig_memory(&r, ALL * 8), seen[2] = {0};
    uint8_t  *taken = calloc(ALL, 2);

    rig_load(&r, HEAD ENTRY(".param .u64 cells, .param .u64 out")
             "ld.param.u64 %rd4, [cells]; mov.u32 %r9, %ctaid.x; mov.u32 %r8, %tid.x; mad.lo.u32 %r1, %r9, 192, %r8;\n"
             "ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 8; add.s64 %rd3, %rd1, %rd2; add.u32 %r5, %r1, 1;\n"
             "atom.global.add.u32 %r2, [%rd4], 1; atom.global.exch.b32 %r3, [%rd4+64], %r5; atom.global.max.u32 %r4, [%rd4+128], %r1;\n"
             "red.global.add.f32 [%rd4+192], 0f3F800000; st.global.v2.u32 [%rd3], {%r2, %r3}; ret; }");
    OK("k", SHAPE(BLOCKS, THREADS), ADDRESS(cells), ADDRESS(olds));
    for (unsigned i = 0; i < ALL; i++) {
        cr_assert_lt(olds[2 * i], ALL);
        cr_assert_leq(olds[2 * i + 1], ALL);
        seen[0] += taken[2 * olds[2 * i]]++ == 0;
        seen[1] += olds[2 * i + 1] == 0 || taken[2 * (olds[2 * i + 1] - 1) + 1]++ == 0;
    }
    free(taken);
    cr_assert_eq(seen[0], ALL, "every count was somebody's");
    cr_assert_eq(seen[1], ALL, "nobody's value was taken twice");
    cr_assert_eq(cells[0], ALL);
    cr_assert_eq(cells[32], ALL - 1);
    cr_assert_eq(cells[48], 0x45c00000, "6144 in binary32: %08x", cells[48]);
}

/* As NVRTC writes __managed__ variables. */
Test(interp_more, managed_variables_are_device_memory)
{
    uint32_t *out = rig_memory(&r, 64), counter;

    rig_load(&r, HEAD ".global .attribute(.managed) .align 4 .u32 counter = 5;\n.global .attribute(.managed) .align 4 .b8 list[16];\n"
             ENTRY(".param .u64 out") "ld.param.u64 %rd1, [out]; mov.u64 %rd3, counter; atom.global.add.u32 %r1, [%rd3], 1;\n"
             "st.global.u32 [list+4], %r1; ld.global.u32 %r2, [list+4]; st.global.u32 [%rd1], %r2; ret; }");
    OK("k", SHAPE(1, 1), ADDRESS(out));
    cr_assert_eq(out[0], 5);
    OK("k", SHAPE(1, 1), ADDRESS(out));
    cr_assert_eq(out[0], 6);
    memcpy(&counter, (const void *)(uintptr_t)r.module->symbols[ptx_find_symbol(r.module, span_of("counter"))].address, sizeof counter);
    cr_assert_eq(counter, 7);
    cr_assert_neq(rig_try_load(&r, HEAD ".global .attribute(.unified(1, 2)) .u32 x;\n" ENTRY("") "ret; }"), STATUS_OK);
    SAYS("the attribute `.unified` is not supported");
}

static void *cancel_when_it_runs(void *flag)
{
    while (!*(volatile uint32_t *)flag)
        continue;
    cpu_engine_cancel(r.engine);
    return NULL;
}

Test(interp_more, a_running_kernel_can_be_cancelled)
{
    uint32_t *out = rig_memory(&r, 4);
    pthread_t other;

    rig_load(&r, HEAD ENTRY(".param .u64 out") OUT
             "mov.u32 %r2, 1; st.global.u32 [%rd1], %r2; LOOP: ld.volatile.global.u32 %r3, [%rd1]; setp.ne.u32 %p1, %r3, 0; @%p1 bra LOOP; ret; }");
    cr_assert_eq(pthread_create(&other, NULL, cancel_when_it_runs, out), 0);
    cr_assert_eq(RUN(&r, "k", SHAPE(1, 32), ADDRESS(out)), STATUS_CANCELLED, "%s", r.why.detail);
    pthread_join(other, NULL);
}

/* With the constants that corpus_goldens leaves at zero. */
Test(interp_more, a_stencil_with_constant_coefficients)
{
    enum { N = 600 };
    float   *in = rig_memory(&r, N * 4), *out = rig_memory(&r, N * 4), *coef;
    uint32_t symbol;

    rig_load_file(&r, "stencil.ptx");
    symbol = ptx_find_symbol(r.module, span_of("coef"));
    cr_assert_neq(symbol, PTX_NO_INDEX);
    coef = (float *)(uintptr_t)r.module->symbols[symbol].address;
    for (int k = 0; k < 7; k++)
        coef[k] = (float)(k + 1);
    for (int i = 0; i < N; i++)
        in[i] = (float)(i % 17 - 8);
    OK("stencil1d", SHAPE(3, 256), ADDRESS(in), ADDRESS(out), N);
    for (int i = 0; i < N; i++) {
        float want = 0;
        for (int k = -3; k <= 3; k++)
            want += (float)(k + 4) * (i + k >= 0 && i + k < N ? in[i + k] : 0);
        cr_assert_eq(out[i], want, "%d: %f, not %f", i, (double)out[i], (double)want);
    }
}

/* In a shared object; wrong use is reported with its reason. */
Test(interp_more, barrier_objects_that_are_used_wrongly)
{
    static const char *const rows[][2] = {
        {"mbarrier.arrive.shared.b64 %rd4, [%rd3];", "the mbarrier is not initialised"},
        {"mbarrier.init.shared.b64 [%rd3], 2; mbarrier.inval.shared.b64 [%rd3]; mbarrier.test_wait.parity.shared.b64 %p1, [%rd3], 0;", "not initialised"},
        {"mbarrier.init.shared.b64 [%rd3], 2; mbarrier.arrive.shared.b64 %rd4, [%rd3], 3;", "3 arrivals at an mbarrier that waits for 2"},
        {"mbarrier.init.shared.b64 [%rd3], 2; mbarrier.arrive.shared.b64 %rd4, [%rd3], 0;", "0 arrivals at an mbarrier"},
        {"mbarrier.init.shared.b64 [%rd3], 0;", "mbarrier of 0 arrivals"},
        {"mbarrier.init.shared.b64 [%rd3], 1048576;", "must be 1 to 1048575"},
        {"mbarrier.init.b64 [%rd1], 1;", "which is not in shared memory"},
        {"mbarrier.init.shared.b64 [%rd3+4], 1;", "misaligned shared address"},
        {"mbarrier.init.shared.b64 [%rd3+65536], 1;", "illegal shared address"},
        {"mov.u32 %r1, 1; mapa.u64 %rd4, %rd1, %r1;", "block 1 of a cluster of 1"},
    };

    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[1024];

        snprintf(text, sizeof text, "%s%s ret; }", HEAD ENTRY(".param .u64 out") OUT ".shared .align 8 .b64 object; mov.u64 %rd3, object; mov.u64 %rd5, 0;"
                 "st.shared.u64 [%rd3], %rd5;\n", rows[i][0]);
        rig_load(&r, text);
        cr_expect_eq(RUN(&r, "k", SHAPE(1, 1), ADDRESS(rig_memory(&r, 64))), STATUS_KERNEL_FAULT, "%s", rows[i][0]);
        cr_expect(strstr(r.why.detail, rows[i][1]), "%s: %s", rows[i][0], r.why.detail);
    }
}

/* A thread that waits for a later thread of its own warp, and consecutive phases. */
Test(interp_more, threads_wait_at_barrier_objects_until_the_last_arrives)
{
    const uint32_t *out = the_rig_output(HEAD ENTRY(".param .u64 out") OUT ".shared .align 8 .b64 object; .shared .align 4 .b32 sum; mov.u64 %rd3, object; mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0;\n"
             "@%p1 bra S; mbarrier.init.shared.b64 [%rd3], 64; mov.u32 %r2, 0; st.shared.u32 [sum], %r2;\nS: bar.sync 0; mov.u32 %r4, 0;\n"
             "PHASE: setp.eq.u32 %p1, %r1, 63; @%p1 bra LATE; atom.shared.add.u32 %r3, [sum], 1; mbarrier.arrive.shared.b64 %rd4, [%rd3]; bra WAIT;\n"
             "LATE: mbarrier.test_wait.parity.shared.b64 %p2, [%rd3], %r4; @%p2 trap; atom.shared.add.u32 %r3, [sum], 1; mbarrier.arrive.shared.b64 %rd4, [%rd3];\n"
             "WAIT: mbarrier.try_wait.shared.b64 %p2, [%rd3], %rd4, 100; @!%p2 bra WAIT; ld.shared.u32 %r5, [sum]; add.u32 %r6, %r4, 1; mul.lo.u32 %r6, %r6, 64;\n"
             "setp.lt.u32 %p1, %r5, %r6; @%p1 trap; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 2; @%p1 bra PHASE;\n"
             "mul.wide.u32 %rd5, %r1, 4; add.s64 %rd5, %rd1, %rd5; st.global.u32 [%rd5], %r4; ret; }", SHAPE(1, 64, .deadline_ms = 20000));

    for (unsigned i = 0; i < 64; i++)
        cr_assert_eq(out[i], 2);
}

/* In a loop of the kernel and in functions it calls, by threads with different sizes; also recursion, whose frames grow from the other
 * end. */
Test(interp_more, what_functions_allocate_on_the_stack_ends_with_them)
{
    enum { THREADS = 40, ROUNDS = 200 };
    const uint32_t *out = the_rig_output(HEAD ".func (.param .b32 sum) deep(.param .b32 n)\n{\n.reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<5>; .local .align 4 .b8 own[16];\n"
             "ld.param.u32 %r1, [n]; add.u32 %r2, %r1, 1; cvt.u64.u32 %rd1, %r2; shl.b64 %rd1, %rd1, 2; alloca.u64 %rd2, %rd1, 4; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3;\n"
             "st.local.u32 [%rd4], %r1; st.local.u32 [own], %r1; mov.u32 %r3, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra E;\n"
             "{ .param .b32 x; .param .b32 y; sub.u32 %r4, %r1, 1; st.param.b32 [x], %r4; call (y), deep, (x); ld.param.b32 %r3, [y]; }\n"
             "E: ld.local.u32 %r5, [%rd4]; ld.local.u32 %r6, [own]; add.u32 %r3, %r3, %r5; add.u32 %r3, %r3, %r6; st.param.b32 [sum], %r3; ret;\n}\n"
             ENTRY(".param .u64 out") OUT "mov.u32 %r4, 0; mov.u32 %r8, 0; alloca.u64 %rd4, 64; st.local.u32 [%rd4+60], %r1;\n"
             "L: { .param .b32 x; .param .b32 y; and.b32 %r5, %r1, 7; st.param.b32 [x], %r5; call (y), deep, (x); ld.param.b32 %r6, [y]; } add.u32 %r8, %r8, %r6;\n"
             "add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 200; @%p1 bra L; ld.local.u32 %r7, [%rd4+60]; add.u32 %r8, %r8, %r7; st.global.u32 [%rd3], %r8; ret; }", SHAPE(1, THREADS));

    for (unsigned i = 0, n; i < THREADS; i++) {
        n = i % 8;
        cr_assert_eq(out[i], ROUNDS * n * (n + 1) + i, "thread %u: %u", i, out[i]);
    }
}

Test(interp_more, stacks_that_overflow_say_so)
{
    static const char *const bodies[][2] = {
        {"L: alloca.u64 %rd4, 64; add.u32 %r2, %r2, 1; bra L;", "the stack of local memory overflowed"},
        {"mov.u64 %rd5, -8; alloca.u64 %rd4, %rd5;", "the stack of local memory overflowed"},
        {"alloca.u64 %rd4, 16000; alloca.u64 %rd5, 400;", "the stack of local memory overflowed"},
        {"stacksave.u64 %rd4; add.u64 %rd4, %rd4, 8; stackrestore.u64 %rd4; alloca.u64 %rd5, 8;", "which is not from stacksave"},
    };

    for (unsigned i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        char text[1024];

        snprintf(text, sizeof text, "%s%s ret; }", HEAD ENTRY(".param .u64 out") OUT, bodies[i][0]);
        rig_load(&r, text);
        cr_expect_eq(RUN(&r, "k", SHAPE(1, 32), ADDRESS(rig_memory(&r, 256))), STATUS_KERNEL_FAULT, "%s", bodies[i][0]);
        cr_expect(strstr(r.why.detail, bodies[i][1]), "%s: %s", bodies[i][0], r.why.detail);
    }
}
