/* Random programs with independent threads, run with one thread per block and with many: the results must be equal, since the lanes of a
 * block must not see each other. GPUREST_RANDOM_PROGRAMS is their number (300), GPUREST_RANDOM_SEED the first seed (1). A failure names
 * the seed. */
#include <stdio.h>
#include <stdlib.h>

#include "program_maker.h"
#include "unit/device/cpu/interp/the_rig.h"

enum { PROGRAMS_DEFAULT = 300, THREADS_MAX = 256, WORDS = THREADS_MAX * MAKER_RESULTS, IN_WORDS = 1 << 13 };

static uint32_t *in, *out, *stores;
static uint32_t  results[WORDS], stored[WORDS];

static void start(void)
{
    the_rig_start();
    in = rig_memory(&r, IN_WORDS * 4);
    out = rig_memory(&r, WORDS * 4);
    stores = rig_memory(&r, WORDS * 4);
}

TestSuite(random_lanes, .init = start, .fini = the_rig_stop);

static unsigned setting(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);

    return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void run(unsigned seed, unsigned blocks, unsigned threads)
{
    memset(out, 0, WORDS * 4);
    memset(stores, 0, WORDS * 4);
    cr_assert_eq(RUN(&r, "made", SHAPE(blocks, threads), ADDRESS(in), ADDRESS(out), ADDRESS(stores)), STATUS_OK, "program %u: %s", seed,
                 r.why.detail);
}

static void compare(unsigned seed, unsigned blocks, unsigned threads)
{
    for (unsigned i = 0; i < blocks * threads * MAKER_RESULTS; i++) {
        cr_assert(maker_same(out[i], results[i], i % MAKER_RESULTS >= MAKER_FLOATS_FROM),
                  "program %u, %u blocks of %u: thread %u leaves %08x in word %u, alone %08x", seed, blocks, threads, i / MAKER_RESULTS,
                  out[i], i % MAKER_RESULTS, results[i]);
        cr_assert_eq(stores[i], stored[i], "program %u, %u blocks of %u: thread %u stores %08x at %u, alone %08x", seed, blocks, threads,
                     i / MAKER_RESULTS, stores[i], i % MAKER_RESULTS, stored[i]);
    }
}

static bool left_something(unsigned threads)
{
    for (unsigned i = 0; i < threads * MAKER_RESULTS; i++) {
        if (results[i])
            return true;
    }
    return false;
}

static void check_program(unsigned seed)
{
    static const unsigned shapes[][2] = {{1, 256}, {2, 128}, {1, 100}, {4, 48}, {1, 33}, {16, 16}, {5, 7}, {3, 64}};
    static char           text[MAKER_TEXT_BYTES];
    const unsigned       *shape = shapes[seed % (sizeof shapes / sizeof *shapes)];
    uint32_t              state = 7 * seed + 1;

    for (unsigned i = 0; i < IN_WORDS; i++)
        in[i] = maker_value(&state);
    maker_write_alone(text, sizeof text, seed);
    rig_load(&r, text);
    run(seed, shape[0] * shape[1], 1);
    memcpy(results, out, sizeof results);
    memcpy(stored, stores, sizeof stored);
    cr_assert(left_something(shape[0] * shape[1]), "program %u does nothing", seed);
    run(seed, shape[0], shape[1]);
    compare(seed, shape[0], shape[1]);
}

Test(random_lanes, one_thread_a_block_and_many_agree)
{
    unsigned first = setting("GPUREST_RANDOM_SEED", 1), count = setting("GPUREST_RANDOM_PROGRAMS", PROGRAMS_DEFAULT);

    cr_assert_gt(count, 0);
    for (unsigned seed = first; seed < first + count; seed++)
        check_program(seed);
}
