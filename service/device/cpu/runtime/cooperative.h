/* Cooperative launches: every block of the grid has a host thread of its own, so that blocks can wait for each other. */
#pragma once

#include "device/cpu/interp/interp.h"

/* Blocks that this host runs at once: CPU_RESIDENT_BLOCKS_PER_CORE for each of cpu_host_threads(), of any size. A launch whose registers
 * the host cannot hold fails with OUT_OF_MEMORY. */
uint32_t cpu_resident_blocks(void);
/* Host threads that the blocks of a launch are dealt to, at most CPU_POOL_THREADS_MAX; 0: one for each core. Before the first launch. */
void cpu_host_threads_choose(unsigned threads);
/* The chosen number, else the cores that this process may use: 1 to CPU_POOL_THREADS_MAX. */
uint32_t cpu_host_threads(void);

/* Called on some thread when a block failed; must stop the others through grid->stop. */
typedef void (*cooperative_failed_fn)(void *context, const struct problem *p);

/* Runs blocks 0 to `blocks` - 1 to their ends. grid->workspace is zero. */
void cooperative_run(struct grid_run *grid, uint32_t blocks, uint64_t shared_bytes, cooperative_failed_fn failed, void *context);
