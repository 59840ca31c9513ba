/* The second barrier behind the interpreter's own range checks: a kernel's access to a guard page ends its block, not the process.
 * (Thread sanitizer does not follow the jump out of the handler: tests that fault run without it.) Only accesses into the guarded range
 * while a guard is armed are caught; any other fault kills the process as usual. */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

/* One per thread that runs blocks, in that thread's frame; filled by fault_thread_start. */
struct fault_guard {
    sigjmp_buf        jump; /* set by the owner right before it arms */
    uint64_t          base; /* the guarded range */
    uint64_t          span;
    volatile uint64_t address; /* of the fault, valid after the jump */
    volatile bool     armed;
};

/* Once per process, any number of calls. False: the handlers cannot be set. */
bool fault_install(void);
/* Makes *g the calling thread's guard, and gives the thread an alternate signal stack, which it keeps until it ends. */
bool fault_thread_start(struct fault_guard *g, uint64_t base, uint64_t span);
/* It has none any more. */
void fault_thread_end(void);
