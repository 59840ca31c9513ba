/* Clusters of several blocks: their places, their barrier, and the shared memory of the other blocks. */
#include <stdio.h>

#include "device/cpu/bounds.h"
#include "unit/device/cpu/interp/the_rig.h"

TestSuite(cluster, .init = the_rig_start, .fini = the_rig_stop);

enum { WIDE = 6, HIGH = 4, THREADS = 64 };

#define CLUSTER(sizes)                                                                                                                     \
    ".visible .entry k(.param .u64 out) .reqnctapercluster " sizes " {\n"                                                                  \
    ".reg .pred %p<10>; .reg .b16 %rs<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .shared .align 8 .b8 s[1024];\n"                            \
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank;\n"
#define MEET "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
/* %rd3: a place of its own for each thread of a grid of one dimension with so many threads in a block. */
#define OWN(threads)                                                                                                                       \
    "mov.u32 %r30, %ctaid.x; mad.lo.u32 %r30, %r30, " #threads ", %r1; mul.wide.u32 %rd2, %r30, 4; add.u64 %rd3, %rd1, %rd2;\n"

static void expect_places(const uint32_t *out)
{
    for (uint32_t y = 0; y < HIGH; y++) {
        for (uint32_t x = 0; x < WIDE; x++) {
            const uint32_t *at = out + 12 * (y * WIDE + x);
            const uint32_t  want[12] = {x / 3, y / 2, 0, WIDE / 3, HIGH / 2, 1, x % 3, y % 2, x % 3 + 3 * (y % 2), 6, 3, 2};

            for (unsigned i = 0; i < 12; i++)
                cr_expect_eq(at[i], want[i], "block %u,%u, value %u: %u, not %u", x, y, i, at[i], want[i]);
        }
    }
}

Test(cluster, blocks_know_their_places_in_clusters)
{
    static const char *const specials[12] = {"%clusterid.x",     "%clusterid.y",      "%clusterid.z",      "%nclusterid.x",
                                             "%nclusterid.y",    "%nclusterid.z",     "%cluster_ctaid.x",  "%cluster_ctaid.y",
                                             "%cluster_ctarank", "%cluster_nctarank", "%cluster_nctaid.x", "%cluster_nctaid.y"};
    char                     text[8192];
    int                      n = snprintf(
                             text, sizeof text, "%s",
                             HEAD CLUSTER("3, 2, 1") "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y; mad.lo.u32 %r3, %r4, 6, %r3; mul.lo.u32 %r3, %r3, 48; "
                                                                          "cvt.u64.u32 %rd2, %r3; add.u64 %rd3, %rd1, %rd2;\n");
    uint32_t *out = rig_memory(&r, 12 * WIDE * HIGH * 4);

    for (unsigned i = 0; i < 12; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "mov.u32 %%r5, %s; st.global.u32 [%%rd3+%u], %%r5;\n", specials[i], 4 * i);
    snprintf(text + n, sizeof text - (size_t)n, "ret; }");
    rig_load(&r, text);
    OK("k", SHAPE(WIDE, 32, .grid_y = HIGH), ADDRESS(out));
    expect_places(out);
}

/* Each thread writes into its own block's memory, and reads, again and again, from the next block's. */
Test(cluster, blocks_read_each_others_shared_memory_between_barriers)
{
    enum { BLOCKS = 40, ROUNDS = 50 };
    uint32_t *out = rig_memory(&r, BLOCKS * THREADS * 4);

    rig_load(&r, HEAD CLUSTER("4")
                     OWN(64) "mov.u32 %r3, %nclusterid.x; mov.u32 %r4, 0; mov.u32 %r5, 0; mov.u64 %rd4, s; mul.wide.u32 %rd5, %r1, 4; "
                             "add.u64 %rd6, %rd4, %rd5;\n"
                             "add.u32 %r6, %r2, 1; and.b32 %r6, %r6, 3; cvta.shared.u64 %rd7, %rd6; mapa.u64 %rd8, %rd7, %r6; "
                             "mapa.shared::cluster.u64 %rd9, %rd6, %r6;\n"
                             "L: mad.lo.u32 %r7, %r4, 1000, %r30; st.shared.u32 [%rd6], %r7;\n" MEET
                             "ld.u32 %r8, [%rd8]; ld.shared::cluster.u32 %r9, [%rd9]; add.u32 %r5, %r5, %r8; add.u32 %r5, %r5, %r9;\n" MEET
                             "add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 50; @%p1 bra L;\nst.global.u32 [%rd3], %r5; ret; }");
    OK("k", SHAPE(BLOCKS, THREADS, .deadline_ms = 120000), ADDRESS(out));
    for (uint32_t i = 0; i < BLOCKS * THREADS; i++) {
        uint32_t block = i / THREADS, next = block / 4 * 4 + (block + 1) % 4, sum = 0;

        for (uint32_t round = 0; round < ROUNDS; round++)
            sum += 2 * (round * 1000 + next * THREADS + i % THREADS);
        cr_assert_eq(out[i], sum, "thread %u: %u, not %u", i, out[i], sum);
    }
}

/* All blocks add to a word in the memory of block 0, which counts with them. */
Test(cluster, atomics_on_another_blocks_shared_memory_lose_nothing)
{
    enum { CLUSTERS = 20 };
    uint32_t *out = rig_memory(&r, CLUSTERS * 8 * 4);

    rig_load(&r, HEAD CLUSTER("8") "mov.u64 %rd4, s; mov.u32 %r3, 0; mapa.shared::cluster.u64 %rd5, %rd4, %r3; mov.u32 %r5, 0; setp.ne.u32 "
                                   "%p1, %r1, 0; @!%p1 st.shared.u32 [s], %r5;\n" MEET
                                   "mov.u32 %r4, 0; L: red.shared::cluster.add.u32 [%rd5], 1; atom.shared.add.u32 %r6, [s+8], 1; add.u32 "
                                   "%r4, %r4, 1; setp.lt.u32 %p2, %r4, 20; @%p2 bra L;\n" MEET
                                   "@%p1 bra E; ld.shared::cluster.u32 %r7, [%rd5]; mov.u32 %r8, %ctaid.x; mul.wide.u32 %rd2, %r8, 4; "
                                   "add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r7;\n"
                                   "E: ret; }");
    OK("k", SHAPE(CLUSTERS * 8, THREADS, .deadline_ms = 120000), ADDRESS(out));
    for (unsigned i = 0; i < CLUSTERS * 8; i++)
        cr_assert_eq(out[i], 8 * THREADS * 20, "block %u: %u", i, out[i]);
}

/* Between arrival and wait a block waits for a word that another writes once it has passed the barrier: it needs the arrival only. */
Test(cluster, an_arrival_is_enough_for_the_others)
{
    uint32_t *out = rig_memory(&r, 16);

    rig_load(&r, HEAD CLUSTER("2") "setp.ne.u32 %p1, %r2, 0; barrier.cluster.arrive.release; @%p1 bra PASS;\n"
                                   "W: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra W; "
                                   "barrier.cluster.wait.acquire; st.global.u32 [%rd1+4], %r3; ret;\n"
                                   "PASS: barrier.cluster.wait.acquire; mov.u32 %r4, 9; st.volatile.global.u32 [%rd1], %r4; ret; }");
    OK("k", SHAPE(2, 32, .deadline_ms = 120000), ADDRESS(out));
    cr_assert_eq(out[1], 9);
}

/* Threads and whole blocks that have left are not waited for. */
Test(cluster, who_has_left_is_not_waited_for)
{
    uint32_t *out = rig_memory(&r, 8 * 32 * 4);

    rig_load(&r, HEAD CLUSTER("4") OWN(32) "setp.eq.u32 %p1, %r2, 1; @%p1 ret; setp.lt.u32 %p2, %r1, 5; @%p2 bra GO; ret;\n"
                                           "GO: " MEET MEET
                                           "mov.u32 %r3, 7; st.global.u32 [%rd3], %r3; setp.eq.u32 %p3, %r2, 2; barrier.cluster.arrive; "
                                           "@%p3 ret; barrier.cluster.wait; st.global.u32 [%rd3], %r1; ret; }");
    OK("k", SHAPE(8, 32, .deadline_ms = 120000), ADDRESS(out));
    for (uint32_t i = 0; i < 8 * 32; i++) {
        uint32_t rank = i / 32 % 4, thread = i % 32;

        cr_expect_eq(out[i], rank == 1 || thread >= 5 ? 0 : rank == 2 ? 7 : thread, "thread %u: %u", i, out[i]);
    }
}

/* Parts of a block come to it one after the other; and all from a function. */
Test(cluster, threads_come_to_the_barrier_by_different_ways)
{
    uint32_t *out = rig_memory(&r, 4 * 64 * 4);

    rig_load(&r, HEAD ".func meet() { barrier.cluster.arrive; barrier.cluster.wait; ret; }\n" CLUSTER("2")
                     OWN(64) "mov.u64 %rd4, s; mul.wide.u32 %rd5, %r1, 4; add.u64 %rd6, %rd4, %rd5; st.shared.u32 [%rd6], %r30; "
                             "setp.lt.u32 %p1, %r1, 20; @%p1 bra FEW;\n"
                             "barrier.cluster.arrive; barrier.cluster.wait; bra READ;\nFEW: barrier.cluster.arrive; barrier.cluster.wait;\n"
                             "READ: xor.b32 %r3, %r2, 1; mapa.shared::cluster.u64 %rd7, %rd6, %r3; ld.shared::cluster.u32 %r4, [%rd7]; "
                             "call.uni meet; st.global.u32 [%rd3], %r4; ret; }");
    OK("k", SHAPE(4, 64, .deadline_ms = 120000), ADDRESS(out));
    for (uint32_t i = 0; i < 4 * 64; i++)
        cr_assert_eq(out[i], i ^ 64, "thread %u: %u", i, out[i]);
}

Test(cluster, addresses_tell_whose_memory_they_are_in)
{
    uint32_t *out = rig_memory(&r, 4 * 32 * 4);

    rig_load(&r, HEAD CLUSTER("4")
                     OWN(32) "mov.u64 %rd4, s; cvta.shared.u64 %rd5, %rd4; mov.u32 %r3, 2; mapa.u64 %rd6, %rd5, %r3; getctarank.u64 %r4, "
                             "%rd6; getctarank.u64 %r5, %rd5;\n"
                             "cvt.u32.u64 %r6, %rd4; mapa.shared::cluster.u32 %r7, %r6, 3; getctarank.shared::cluster.u32 %r8, %r7;\n"
                             "isspacep.shared::cta %p1, %rd6; isspacep.shared::cluster %p2, %rd6; isspacep.shared %p3, %rd5; "
                             "isspacep.global %p4, %rd6;\n"
                             "selp.u32 %r9, 1, 0, %p1; selp.u32 %r10, 2, 0, %p2; selp.u32 %r11, 4, 0, %p3; selp.u32 %r12, 8, 0, %p4; "
                             "or.b32 %r9, %r9, %r10; or.b32 %r9, %r9, %r11; or.b32 %r9, %r9, %r12;\n"
                             "mad.lo.u32 %r9, %r9, 16, %r4; mad.lo.u32 %r9, %r9, 16, %r5; mad.lo.u32 %r9, %r9, 16, %r8; st.global.u32 "
                             "[%rd3], %r9; ret; }");
    OK("k", SHAPE(4, 32), ADDRESS(out));
    for (uint32_t i = 0; i < 4 * 32; i++) {
        uint32_t rank = i / 32, spaces = 2 + 4 + (rank == 2);

        cr_expect_eq(out[i], ((spaces * 16 + 2) * 16 + rank) * 16 + 3, "thread %u: %x", i, out[i]);
    }
}

/* An mbarrier of block 0 that threads of all blocks arrive at, as CUDA's headers do it. */
Test(cluster, blocks_arrive_at_a_barrier_object_of_another)
{
    uint32_t *out = rig_memory(&r, 2 * 4 * 4);

    rig_load(&r, HEAD CLUSTER("4") ".shared .align 8 .b64 object; setp.ne.u32 %p1, %r1, 0; or.b32 %r3, %r1, %r2; setp.ne.u32 %p2, %r3, 0; "
                                   "mov.u64 %rd4, object; @%p2 bra READY;\n"
                                   "mbarrier.init.shared::cta.b64 [%rd4], 128; fence.mbarrier_init.release.cluster;\nREADY: " MEET
                                   "mov.u32 %r4, 0; mapa.shared::cluster.u64 %rd5, %rd4, %r4; "
                                   "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%rd5];\n"
                                   "setp.ne.u32 %p3, %r2, 0; @%p3 bra E; W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, "
                                   "[%rd4], 0; @!%p4 bra W;\n"
                                   "@%p1 bra E; mov.u32 %r5, 5; mov.u32 %r6, %clusterid.x; mul.wide.u32 %rd6, %r6, 4; add.u64 %rd7, %rd1, "
                                   "%rd6; st.global.u32 [%rd7], %r5;\nE: " MEET "ret; }");
    OK("k", SHAPE(8, 32, .deadline_ms = 120000), ADDRESS(out));
    cr_assert(out[0] == 5 && out[1] == 5, "%u %u", out[0], out[1]);
}

/* The grid meets as well as the clusters: a cooperative launch. */
Test(cluster, clusters_run_in_cooperative_launches)
{
    uint32_t *out = rig_memory(&r, 4096);

    rig_load(
        &r, HEAD CLUSTER("2") OWN(32) MEET
        "atom.global.add.u32 %r3, [%rd1+1024], 1; W: ld.volatile.global.u32 %r4, [%rd1+1024]; setp.lt.u32 %p1, %r4, 256; @%p1 bra W;\n" MEET
        "st.global.u32 [%rd3], %r4; ret; }");
    OK("k", SHAPE(8, 32, .cooperative = 1, .deadline_ms = 120000), ADDRESS(out));
    for (unsigned i = 0; i < 8 * 32; i++)
        cr_assert_eq(out[i], 256);
}

static void assert_fault(const char *body, const char *what)
{
    char text[4096];

    snprintf(text, sizeof text, "%s%s ret; }", HEAD CLUSTER("4") OWN(32), body);
    rig_load(&r, text);
    cr_assert_eq(RUN(&r, "k", SHAPE(8, 32, .deadline_ms = 120000), ADDRESS(rig_memory(&r, 4096))), STATUS_KERNEL_FAULT, "%s", body);
    cr_assert(strstr(r.why.detail, what), "%s: %s", body, r.why.detail);
}

/* The other blocks wait meanwhile, and end. */
Test(cluster, what_goes_wrong_is_said_and_ends_all)
{
    assert_fault("setp.ne.u32 %p1, %r2, 1; @!%p1 trap; " MEET, "trap");
    assert_fault("mov.u32 %r3, 4; mov.u64 %rd4, s; mapa.shared::cluster.u64 %rd5, %rd4, %r3; " MEET, "block 4 of a cluster of 4");
    assert_fault("mov.u32 %r3, 4; mapa.u64 %rd5, %rd1, 1; " MEET, "which is not in shared memory");
    assert_fault("mov.u64 %rd4, s; mapa.shared::cluster.u64 %rd5, %rd4, 1; ld.shared::cluster.u32 %r4, [%rd5+1024]; " MEET,
                 "illegal shared address");
    assert_fault("mov.u64 %rd4, s; mapa.shared::cluster.u64 %rd5, %rd4, 1; st.shared::cluster.u32 [%rd5+2], %r4; " MEET,
                 "misaligned shared address");
    assert_fault("mov.u64 %rd5, 0x05000000; ld.shared::cluster.u32 %r4, [%rd5]; " MEET, "illegal shared address");
    assert_fault("barrier.cluster.wait;", "a wait at the cluster's barrier without an arrival");
    assert_fault("barrier.cluster.arrive; barrier.cluster.arrive;", "a second arrival at the cluster's barrier");
    assert_fault("setp.eq.u32 %p1, %r1, 3; @%p1 bra B; " MEET "ret;\nB: bar.sync 0;", "was not reached by all threads");
}

Test(cluster, a_block_that_others_wait_for_ends_at_the_deadline)
{
    rig_load(&r, HEAD CLUSTER("2") "setp.eq.u32 %p1, %r2, 0; @%p1 bra M; W: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0; "
                                   "@%p2 bra W;\nM: " MEET "ret; }");
    cr_assert_eq(RUN(&r, "k", SHAPE(4, 32, .deadline_ms = 200), ADDRESS(rig_memory(&r, 4))), STATUS_EXECUTION_TIMEOUT);
}

Test(cluster, launches_that_cannot_be_are_refused)
{
    rig_load(&r, HEAD CLUSTER("3, 2") "ret; }");
    cr_assert_eq(RUN(&r, "k", SHAPE(4, 32, .grid_y = 2), ADDRESS(rig_memory(&r, 4))), STATUS_LAUNCH_CONFIG_INVALID);
    SAYS("grid dimension 0 is 4; the kernel's clusters of 3 x 2 x 1 blocks need a multiple of 3");
    cr_assert_eq(RUN(&r, "k", SHAPE(3, 32, .grid_y = 3), ADDRESS(rig_memory(&r, 4))), STATUS_LAUNCH_CONFIG_INVALID);
    SAYS("grid dimension 1 is 3");
    rig_load(&r, HEAD CLUSTER("16") "ret; }");
    cr_assert_eq(RUN(&r, "k", SHAPE(16, 32), ADDRESS(rig_memory(&r, 4))), STATUS_LAUNCH_CONFIG_INVALID);
    SAYS("clusters of 16 blocks; at most 8 are possible");
}
