/* How long a thread looks for what it waits for before it sleeps. A wake-up costs several microseconds, which is much of a short
 * request; but with few processors whoever spins takes one away from the thread that it waits for. */
#ifndef GPUREST_BASE_SPIN_H
#define GPUREST_BASE_SPIN_H

#include <stdint.h>

#include "base/span.h"

struct spin_budgets {
    uint64_t call_ns;   /* a caller, for its worker's answer */
    uint64_t worker_ns; /* a worker, for the next command */
    uint64_t busy_ns;   /* a worker, for the end of device work */
    uint64_t loop_ns;   /* an event loop, for the next request */
};

struct spin_budgets spin_budgets_for(unsigned cpus);
/* "200000 100000", what a control group may use in each period: processors, rounded down, at least 1. UINT32_MAX: no bound, or another text. */
unsigned spin_quota_cpus(struct span text);

/* For this process; decided at the first use. Thread-safe. */
const struct spin_budgets *spin_budgets(void);
/* What that is decided by: as set, else what this process may run on. */
unsigned spin_cpus(void);
/* Before the first use; 0 = find out. */
void spin_cpus_set(unsigned cpus);

#endif
