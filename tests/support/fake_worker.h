/* pool/pool.h, pool/workers/worker.h and pool/compile/compile.h without processes: workers are threads, device memory is malloc'ed, and calls fail when
 * told to. Commands of all streams run in one order; what does not wait for kernels in a real worker is done at once, on the caller's thread.
 *
 * Every module image that loads ("bad…" does not) has these kernels, which may print unless the image is "quiet…":
 *   noop()                       ends at once
 *   increment(u64 p, u32 n)      adds 1 to n bytes at p
 *   wait()                       runs until fake_release() or the worker's death
 *   fault()                      KERNEL_FAULT, the context is lost
 *   refuse()                     LAUNCH_CONFIG_INVALID from the device itself, the context lives on
 *   print()                      8 bytes of output
 *   _Z6scaledPfi(u64, u32)       a mangled one
 *   limited()                    at most 64 threads, 1 KiB of static shared memory */
#ifndef GPUREST_TESTS_FAKE_WORKER_H
#define GPUREST_TESTS_FAKE_WORKER_H

#include "pool/compile/compile.h"
#include "pool/pool.h"

enum { FAKE_MAX_GRID = 65535, FAKE_MAX_THREADS = 1024, FAKE_MAX_SHARED = 48 * 1024, FAKE_BEST_BLOCK = 128, FAKE_SHARING_UNIT = 4096 };

struct pool *fake_pool(void);

/* Before anything else in a test: everything as new, `slices` of staging per worker. */
void fake_reset(unsigned slices);
/* The n-th call from now (0: the next) of any kind ends with st; with fake_die_at the worker dies at it instead. */
void fake_fail_at(int n, enum status st);
void fake_die_at(int n);
/* True when no call was the n-th yet: every step has had its turn. */
bool fake_fault_unused(void);
/* pool_take fails so, once. */
void fake_fail_take(enum status st);
/* No worker stands ready from now on: pool_take still gives one. */
void fake_no_spare(void);
/* Nor does one from now on, but there is room for another. */
void fake_room(void);
/* How the device's memory is shared from now on; DEVICE_SHARES_FILE after a reset. */
void fake_sharing(enum device_sharing sharing);
/* Workers tell another size of shared allocations than what they made. */
void fake_lie(void);
/* Memory of clients that workers have mapped. */
unsigned fake_hosts_mapped(void);
/* So many allocations fit the device, of all workers that are not yet back; 0: any number. */
void fake_allocations_max(unsigned n);
/* From now on, after memory was given back so many allocations are refused although it would do. */
void fake_late(unsigned refusals);
/* From now on a worker keeps what is freed in it, so that others cannot have it: until MEM_TRIM, or until it finds no memory itself. */
void fake_caches(void);
/* Allocations that were refused so far. */
unsigned fake_refusals(void);
/* Blocks until an allocation was refused for that. */
void fake_await_refusal(void);
/* While held, pool_give_back does not end. */
void fake_hold_returns(bool held);
/* Workers that are killed while this is on are not gone before fake_end_lingering(); others end meanwhile. */
void fake_linger(bool on);
void fake_end_lingering(void);
/* Blocks until pool_take has failed. */
void fake_await_take(void);
/* Lets every "wait" kernel end, now and later. */
void fake_release(void);
/* MEM_WRITE, MEM_READ and the like, MEM_TRIM, and compiles stand still until fake_go(). */
void fake_hold(void);
void fake_go(void);
/* Blocks until a "wait" kernel runs. */
void fake_await_running(void);
/* Blocks until a compile was begun. */
void fake_await_compiling(void);
/* Blocks until n calls stand in workers' queues. */
void fake_await_queued(unsigned n);

/* What pool_device_state() tells from now on. */
void fake_device_state(enum device_state state);
/* Its verdict: nothing on it can be trusted. */
void fake_device_fail(bool failed);
/* What every kernel took on the device, as workers tell it from now on. */
void fake_gpu_us(float us);
/* What MEMORY_INFO tells from now on. */
void fake_memory(const struct device_memory *memory);

unsigned fake_live_allocations(void);
unsigned fake_live_workers(void);
unsigned fake_slices_used(void);
unsigned fake_modules_loaded(void);
unsigned fake_graphs(void);
uint64_t fake_compiles(void);

#endif
