/* Bounds of base/, each with its unit in its name. Bounds that users see, or that several folders share, are in limits.h. */
#pragma once

#include "limits.h"

enum {
    PORTION_DIVISOR = 4, /* a caller may use all but 1/4 of what others leave of a shared bound; see base/portion.h, SECURITY.md */
    INPUT_PIPE_S = 10, /* time for a pipe that replaces a settings, token or certificate file to reach its end */
    LOG_MESSAGE_BYTES = 1024,
    LOG_LINES_QUEUED_MAX = 4096, /* lines that wait to be written; the oldest are dropped */
    LOG_FLUSH_MS = 1000, /* time to write the last lines when the service stops */
    LOG_CRASH_FLUSH_MS = 1000, /* ... and when it crashes */
    LOG_RELAY_SOURCES_MAX = 256, /* child processes whose lines are read: twice the number of workers, device monitors and compilers */
    LOG_RELAY_LINES_PER_S = 50, /* per process; more lines are dropped */
    LOG_RELAY_LINES_BURST = 500, /* ... after a burst of this many, enough for a sanitizer's report */
    LOG_RELAY_READ_BYTES = 16 * 1024, /* read from one process at a time ... */
    LOG_RELAY_PAUSE_MS = 50, /* ... and, above its rate, the pause before the next read */
    LOG_PATH_BYTES_MAX = 4000,
    RANDOM_PIECE_BYTES = 32, /* enough for nearly every id */
    RANDOM_STOCK_BYTES = 32 * RANDOM_PIECE_BYTES, /* per thread, for ids */
    SPIN_CPUS_FEW = 2, /* with fewer CPUs no thread spins */
    SPIN_CPUS_MANY = 5, /* with this many CPUs, spinning does not slow other threads */
    WORKER_SPIN_US = 50, /* a worker, for the next command, before it sleeps */
    WORKER_SPIN_MANY_US = 500, /* ... with many CPUs: longer than a client needs to send its next request */
    WORKER_BUSY_SPIN_US = 200, /* ... and for the end of device work */
    LOOP_SPIN_MANY_US = 100, /* an event loop, for the next request; with few CPUs it sleeps at once */
};
