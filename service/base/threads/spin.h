/* How long a thread spins before it sleeps. A wake-up takes several microseconds, which is much of a short request. With few CPUs, however, a
 * spinning thread takes the CPU from the thread that it waits for. */
#pragma once

#include <stdint.h>

#include "base/span.h"

struct spin_budgets {
    uint64_t call_ns;   /* a caller, for its worker's answer */
    uint64_t worker_ns; /* a worker, for the next command */
    uint64_t busy_ns;   /* a worker, for the end of device work */
    uint64_t loop_ns;   /* an event loop, and a thread of the executor, for the next request */
};

struct spin_budgets spin_budgets_for(unsigned cpus);
/* CPUs from a control group's "200000 100000" (quota, period), rounded down, at least 1. UINT32_MAX: no quota, or another text. */
unsigned spin_quota_cpus(struct span text);

/* The budgets of this process, chosen at the first use. Thread-safe. */
const struct spin_budgets *spin_budgets(void);
/* The CPU count used to choose: the one that was set, else the CPUs that this process may use. */
unsigned spin_cpus(void);
/* Call before the first use; 0 = detect. */
void spin_cpus_set(unsigned cpus);

/* Between two checks of a spin: lets the core's other hardware thread run. */
static inline void spin_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
