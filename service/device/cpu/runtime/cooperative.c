/* One host thread per block. A waiting block yields its core at the back edges of its loop. */
#include "device/cpu/runtime/cooperative.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/log/crash.h"
#include "device/cpu/interp/variants.h"

struct member {
    pthread_t             thread;
    struct grid_run      *grid;
    uint32_t              number; /* of the block */
    uint64_t              shared_bytes;
    cooperative_failed_fn failed;
    void                 *context;
    struct block_run      run;
};

static unsigned threads_set; /* 0: one per core */

void cpu_host_threads_choose(unsigned threads)
{
    threads_set = threads < CPU_POOL_THREADS_MAX ? threads : CPU_POOL_THREADS_MAX;
}

uint32_t cpu_host_threads(void)
{
    cpu_set_t set;
    int       n = threads_set ? (int)threads_set : sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

    return n < 1 ? 1 : n > CPU_POOL_THREADS_MAX ? CPU_POOL_THREADS_MAX : (uint32_t)n;
}

uint32_t cpu_resident_blocks(void)
{
    return cpu_host_threads() * CPU_RESIDENT_BLOCKS_PER_CORE;
}

static void fail_launch(const struct member *m)
{
    struct problem why;

    problem_set(&why, STATUS_OUT_OF_MEMORY, "not enough host memory for the blocks of a cooperative launch");
    m->failed(m->context, &why);
}

static void *run_member(void *context)
{
    struct member            *m = context;
    const struct interpreter *by = m->grid->code->by;

    if (!fault_thread_start(&m->run.guard, m->grid->memory_base, m->grid->memory_span)) {
        fail_launch(m);
        return NULL;
    }
    crash_doing("running a kernel", NULL);
    m->run.host_thread = m->number % CPU_POOL_THREADS_MAX;
    if (by->block_run_prepare(&m->run, m->grid, m->shared_bytes))
        fail_launch(m);
    else if (!by->blocks_run(&m->run, m->number, 1))
        m->failed(m->context, &m->run.problem);
    block_run_finish(&m->run);
    fault_thread_end();
    return NULL;
}

void cooperative_run(struct grid_run *grid, uint32_t blocks, uint64_t shared_bytes, cooperative_failed_fn failed, void *context)
{
    const struct member all = {.grid = grid, .shared_bytes = shared_bytes, .failed = failed, .context = context};
    struct member      *m = calloc(blocks, sizeof *m);
    uint32_t            started = 0;

    if (!m) {
        fail_launch(&all);
        return;
    }
    for (; started < blocks; started++) {
        m[started] = all;
        m[started].number = started;
        if (pthread_create(&m[started].thread, NULL, run_member, &m[started]) != 0) {
            fail_launch(&all);
            break;
        }
    }
    for (uint32_t i = 0; i < started; i++)
        pthread_join(m[i].thread, NULL);
    free(m);
}
