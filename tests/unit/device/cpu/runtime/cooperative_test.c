/* Cooperative launches: blocks that wait for each other, with CUDA's cooperative groups and by hand. */
#include <stdio.h>

#include "device/cpu/runtime/cooperative.h"
#include "unit/device/cpu/interp/the_rig.h"

TestSuite(cooperative, .init = the_rig_start, .fini = the_rig_stop, .timeout = 180);

#define SHAPE_ALL(blocks, threads, ...) SHAPE(blocks, threads, .cooperative = 1, __VA_ARGS__)

/* b = 2 a, a barrier over the grid, then a = b backwards: wrong unless every block has written before any block reads. */
Test(cooperative, a_grid_meets_as_often_as_it_is_launched)
{
    enum { N = 3000 };
    float *a = rig_memory(&r, N * 4), *b = rig_memory(&r, N * 4);

    rig_load_file(&r, "coopgroups.ptx");
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < N; i++)
            a[i] = (float)(i + round);
        cr_assert_eq(RUN(&r, "cg_grid", SHAPE_ALL(cpu_resident_blocks(), 64, .deadline_ms = 30000), ADDRESS(a), ADDRESS(b), N), STATUS_OK,
                     "%s", r.why.detail);
        for (unsigned i = 0; i < N; i++)
            cr_assert_float_eq(a[i], 2 * (float)(N - 1 - i + round), 0, "round %u, element %u: %f", round, i, (double)a[i]);
    }
}

Test(cooperative, more_blocks_than_run_at_once_are_refused_with_their_greatest_number)
{
    char   most[64];
    float *a = rig_memory(&r, 400), *b = rig_memory(&r, 400);

    rig_load_file(&r, "coopgroups.ptx");
    cr_assert_eq(RUN(&r, "cg_grid", SHAPE_ALL(cpu_resident_blocks() + 1, 32), ADDRESS(a), ADDRESS(b), 100), STATUS_LAUNCH_CONFIG_INVALID);
    snprintf(most, sizeof most, "at most %u run at once", cpu_resident_blocks());
    SAYS(most);
}

#define MEETING(before)                                                                                                                    \
    HEAD                                                                                                                                   \
        ".extern .func (.param .b64 h) cudaCGGetIntrinsicHandle(.param .b32 scope);\n"                                                     \
        ".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 flags);\n"                                             \
        ".visible .entry k(.param .u64 sum, .param .u64 out, .param .u32 scope) {\n"                                                       \
        ".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<6>;\nld.param.u64 %d1, [sum]; ld.param.u64 %d2, [out]; ld.param.u32 %r2, [scope];\n" \
        "{ .param .b32 s; .param .b64 h; st.param.b32 [s], %r2; call.uni (h), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %d3, [h]; }\n"   \
        "mov.u32 %r1, %tid.x; setp.ne.u32 %p, %r1, 0; @!%p red.global.add.u32 [%d1], 1;\n" before                                          \
        "{ .param .b64 h; .param .b32 f; .param .b32 r; st.param.b64 [h], %d3; st.param.b32 [f], 0;\n"                                     \
        "call.uni (r), cudaCGSynchronize, (h, f); ld.param.b32 %r2, [r]; }\n"                                                              \
        "ld.global.u32 %r3, [%d1]; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mad.lo.u32 %r4, %r4, %r5, %r1;\n"                          \
        "mul.wide.u32 %d4, %r4, 4; add.u64 %d2, %d2, %d4; add.u32 %r3, %r3, %r2; st.global.u32 [%d2], %r3; ret; }\n"

/* The device has these functions of CUDA's device runtime itself. */
Test(cooperative, a_grid_meets_by_the_functions_of_the_device_runtime)
{
    enum { THREADS = 40 };
    uint32_t  blocks = cpu_resident_blocks();
    uint32_t *sum = rig_memory(&r, 4), *out = rig_memory(&r, blocks * THREADS * 4);

    rig_load(&r, MEETING(""));
    for (unsigned round = 0; round < 3; round++) {
        *sum = round;
        OK("k", SHAPE_ALL(blocks, THREADS, .deadline_ms = 60000), ADDRESS(sum), ADDRESS(out), 1);
        for (unsigned i = 0; i < blocks * THREADS; i++)
            cr_assert_eq(out[i], round + blocks);
    }
}

Test(cooperative, a_grid_that_cannot_meet_is_refused_or_trapped)
{
    uint32_t *out = rig_memory(&r, 4096);

    rig_load(&r, MEETING(""));
    cr_assert_eq(RUN(&r, "k", SHAPE(4, 32), ADDRESS(out), ADDRESS(out), 1), STATUS_LAUNCH_CONFIG_INVALID);
    SAYS("(PTX line 9): the launch must be cooperative");
    FAULTS(719, "k", SHAPE_ALL(4, 32), ADDRESS(out), ADDRESS(out), 2); /* several GPUs: there is no such grid */
    SAYS("trap");
    rig_load(&r, MEETING("setp.gt.u32 %p, %r1, 7; @%p bar.sync 1;\n"));
    FAULTS(719, "k", SHAPE_ALL(4, 32), ADDRESS(out), ADDRESS(out), 1);
    SAYS("cudaCGSynchronize was not called by all threads of a block: 8 of 32");
}

/* The line is that of the first call, in the kernel's text, that leads to where the grid meets: however long the way, in circles, and in whatever
 * order the functions stand. An instruction of its own comes before calls. */
Test(cooperative, the_line_is_that_of_the_first_call_that_leads_to_the_meeting)
{
    static const struct {
        const char *body;
        unsigned    line; /* of the text; 0: the kernel needs no cooperative launch */
    } rows[] = {
        {"call.uni meets;\n", 13},
        {"call.uni plain;\ncall.uni around;\n", 14},
        {"call.uni around;\ncall.uni meets;\n", 13},
        {"call.uni plain;\nmov.u32 %r1, %envreg2;\n", 14},
        {"call.uni around;\nmov.u32 %r1, %envreg2;\n", 14},
        {"call.uni plain;\ncall.uni itself;\n", 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[2000], said[64];

        snprintf(text, sizeof text,
                 HEAD ".func meets(); .func around();\n"
                      ".func plain() { ret; }\n.func itself() { .reg .pred %%p; @%%p call.uni itself; ret; }\n"
                      ".func back() { .reg .pred %%p; @%%p call.uni around; call.uni meets; ret; }\n.func around() { call.uni plain;\n"
                      "call.uni back; ret; }\n"
                      ".func meets() { .reg .b32 %%e; mov.u32 %%e, %%envreg1; ret; }\n.visible .entry k(.param .u64 x) { .reg .b32 "
                      "%%r<2>;\n\n%sret; }\n",
                 rows[i].body);
        rig_load(&r, text);
        cr_assert_eq(RUN(&r, "k", SHAPE(1, 1), 0), rows[i].line ? STATUS_LAUNCH_CONFIG_INVALID : STATUS_OK, "row %zu: %s", i, r.why.detail);
        snprintf(said, sizeof said, "(PTX line %u): the launch must be cooperative", rows[i].line);
        if (rows[i].line)
            SAYS(said);
    }
}

static char chain[400000];

/* Each function calls the one behind it, and the last one meets: callers are many more steps away from it than in any program of a person. */
Test(cooperative, a_long_way_to_the_meeting_is_found_at_once)
{
    enum { FUNCTIONS = 3000 };
    int used = snprintf(chain, sizeof chain, HEAD);

    for (int i = 0; i < FUNCTIONS; i++)
        used += snprintf(chain + used, sizeof chain - (size_t)used, ".func f%d();\n", i);
    for (int i = 0; i < FUNCTIONS - 1; i++)
        used += snprintf(chain + used, sizeof chain - (size_t)used, ".func f%d() { call.uni f%d; ret; }\n", i, i + 1);
    snprintf(chain + used, sizeof chain - (size_t)used,
             ".func f%d() { .reg .b32 %%e; mov.u32 %%e, %%envreg1; ret; }\n.visible .entry k(.param .u64 x) {\ncall.uni f0; ret; }\n",
             FUNCTIONS - 1);
    rig_load(&r, chain);
    cr_assert_eq(RUN(&r, "k", SHAPE(1, 1), 0), STATUS_LAUNCH_CONFIG_INVALID);
    SAYS("(PTX line 6005): the launch must be cooperative");
}

/* A kernel that does not synchronize its grid may be launched cooperatively, too. */
Test(cooperative, blocks_know_their_places)
{
    uint32_t *out = rig_memory(&r, 8 * 4);

    rig_load(&r, HEAD ".visible .entry k(.param .u64 out) {\n.reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
                      "ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;\n"
                      "add.u32 %r2, %r1, 7; st.global.u32 [%rd1], %r2; ret; }");
    OK("k", SHAPE_ALL(8, 32), ADDRESS(out));
    for (unsigned i = 0; i < 8; i++)
        cr_assert_eq(out[i], i + 7);
}

/* All but block 1 wait for ever for a word that nobody writes. */
#define WAITING                                                                                                                            \
    HEAD ".visible .entry k(.param .u64 out) {\n.reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"                                    \
         "ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 1; @%p1 bra FAIL;\n"                                      \
         "WAIT: ld.volatile.global.u32 %r2, [%rd1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT; ret;\n"                                        \
         "FAIL: "

Test(cooperative, a_fault_in_one_block_ends_those_that_wait)
{
    uint32_t *out = rig_memory(&r, 4);

    rig_load(&r, WAITING "trap; }");
    FAULTS(719, "k", SHAPE_ALL(6, 32), ADDRESS(out));
    SAYS("trap");
    SAYS("block (1,0,0)");
}

Test(cooperative, a_grid_that_waits_for_ever_ends_at_its_deadline)
{
    uint32_t *out = rig_memory(&r, 4);

    rig_load(&r, WAITING "ret; }");
    cr_assert_eq(RUN(&r, "k", SHAPE_ALL(4, 32, .deadline_ms = 100), ADDRESS(out)), STATUS_EXECUTION_TIMEOUT);
}

/* Blocks on several host threads: alone, with helpers, and alone again where helpers do not take part. Every addition counts, and every
 * ticket is drawn once. */
Test(cooperative, atomics_of_a_grid_on_several_host_threads_lose_nothing)
{
    enum { BLOCKS = 300, THREADS = 128, ROUNDS = 16, CELLS = 24, TICKETS = BLOCKS * THREADS };
    uint32_t *cells = rig_memory(&r, CELLS * 4), *drawn = rig_memory(&r, (TICKETS + 1) * 4), sum;

    the_rig_threads(4);
    rig_load(&r,
             HEAD ".visible .entry k(.param .u64 cells, .param .u64 drawn)\n{\n"
                  ".reg .b32 %r<12>; .reg .b64 %rd<12>; .reg .pred %p<3>;\n"
                  "ld.param.u64 %rd1, [cells]; ld.param.u64 %rd2, [drawn]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, 0;\n"
                  "L: mad.lo.u32 %r4, %r1, 7, %r3; mad.lo.u32 %r4, %r2, 5, %r4; rem.u32 %r4, %r4, 24; mul.wide.u32 %rd3, %r4, 4; add.s64 "
                  "%rd4, %rd1, %rd3;\n"
                  "red.global.add.u32 [%rd4], 3; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 16; @%p1 bra L;\n"
                  "atom.global.add.u32 %r5, [%rd2], 1; mul.wide.u32 %rd5, %r5, 4; add.s64 %rd6, %rd2, %rd5; atom.global.add.u32 %r6, "
                  "[%rd6+4], 1;\nret;\n}\n");
    for (uint32_t round = 1; round <= 3; round++) {
        sum = drawn[0] = 0;
        OK("k", SHAPE(BLOCKS, THREADS), ADDRESS(cells), ADDRESS(drawn));
        for (unsigned i = 0; i < CELLS; i++)
            sum += cells[i];
        cr_assert_eq(sum, round * 3 * BLOCKS * THREADS * ROUNDS);
        for (unsigned i = 1; i <= TICKETS; i++)
            cr_assert_eq(drawn[i], round, "ticket %u was drawn %u times in %u rounds", i, drawn[i], round);
    }
}

/* Not a cooperative launch, and a grid so small that it starts on one host thread: others join when a block waits. */
Test(cooperative, blocks_that_wait_for_later_ones_get_company)
{
    uint32_t *out = rig_memory(&r, 8);

    the_rig_threads(2);
    rig_load(&r,
             HEAD ".visible .entry k(.param .u64 out) {\n.reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
                  "ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 1; @%p1 bra LATER;\n"
                  "WAIT: atom.global.add.u32 %r2, [%rd1], 0; setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT; st.global.u32 [%rd1+4], %r2; ret;\n"
                  "LATER: mov.u32 %r3, 5; atom.global.exch.b32 %r2, [%rd1], %r3; ret; }");
    for (unsigned round = 0; round < 3; round++) {
        out[0] = out[1] = 0;
        OK("k", SHAPE(2, 32, .deadline_ms = 30000), ADDRESS(out));
        cr_assert_eq(out[1], 5);
    }
}
