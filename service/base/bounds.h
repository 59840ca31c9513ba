/* Bounds of base/ alone, each with its unit in its name. What a user meets, or several folders share, is in limits.h. */
#ifndef GPUREST_BASE_BOUNDS_H
#define GPUREST_BASE_BOUNDS_H

#include "limits.h"

enum {
    PORTION_DIVISOR = 4, /* of what other callers leave of a shared bound, a caller may have all but this fraction; see base/portion.h, SECURITY.md */
    INPUT_PIPE_S = 10, /* a pipe in place of a settings, tokens or certificate file has ended after so long */
    LOG_MESSAGE_BYTES = 1024,
    LOG_LINES_QUEUED_MAX = 4096, /* wait for standard error or the file; the oldest are dropped */
    LOG_FLUSH_MS = 1000, /* the last lines have at the end of the service */
    LOG_CRASH_FLUSH_MS = 1000, /* ... and when it dies of a fault */
    LOG_RELAY_SOURCES_MAX = 256, /* processes of ours whose lines are taken in at once: all workers, device monitors and compilers twice over */
    LOG_RELAY_LINES_PER_S = 50, /* of each; what is more is dropped */
    LOG_RELAY_LINES_BURST = 500, /* ... beyond so many at once: a sanitizer's report is no more */
    LOG_RELAY_READ_BYTES = 16 * 1024, /* of each at a time ... */
    LOG_RELAY_PAUSE_MS = 50, /* ... and then, beyond its rate, nothing for so long */
    LOG_PATH_BYTES_MAX = 4000,
    RANDOM_STOCK_BYTES = 1024, /* per thread, for ids */
    SPIN_CPUS_FEW = 2, /* with fewer processors nobody spins */
    SPIN_CPUS_MANY = 5, /* from so many on spinning takes nothing away from others */
    WORKER_SPIN_US = 50, /* a worker's looking for the next command before it sleeps */
    WORKER_SPIN_MANY_US = 500, /* ... with many processors: longer than a client needs for its next request */
    WORKER_BUSY_SPIN_US = 200, /* ... and for the end of device work before it naps */
    LOOP_SPIN_MANY_US = 100, /* an event loop's looking for the next request; with few processors it sleeps at once */
};

#endif
