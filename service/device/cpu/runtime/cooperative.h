/* Blocks that can wait for each other, since each has a host thread of its own: of a cooperative launch all, of clusters those of each
 * cluster. */
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

/* Runs the grid's blocks to their ends: if the launch is cooperative, all at once, and grid->workspace is zero; else cluster by cluster, in
 * ascending order, on about so many host threads. */
void cooperative_run(struct grid_run *grid, uint64_t blocks, uint32_t host_threads, uint64_t shared_bytes, cooperative_failed_fn failed,
                     void *context);

/* Sets grid_line of the code of functions that wait for the grid in what they call: the first such call. OUT_OF_MEMORY. */
enum status grid_lines_find(const struct ptx_module *m, struct problem *why);
