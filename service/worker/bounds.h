/* Bounds of worker/ alone, each with its unit in its name. What a user meets, or several folders share, is in limits.h. */
#pragma once

#include "limits.h"

enum {
    /* the compiler */
    COMPILE_ADDRESS_SPACE_MIB = 2048,
    COMPILE_STACK_MIB = 64, /* soft; deep nesting then ends as a crash instead of using up the machine */
    COMPILE_STACK_HARD_MIB = 256,
    COMPILE_FILES_MAX = 64, /* descriptors: nested headers */
    COMPILE_SCRATCH_MIB = 128, /* all temporary files of a compiler that cannot do without any */
    COMPILE_SCRATCH_FILE_MIB = 32, /* one of them, by the kernel, too: this times their number is what a compiler that was taken over can use */
    COMPILE_SCRATCH_FILES_MAX = COMPILE_HEADERS_MAX + 32, /* at once */

    /* batches */
    RUN_EXACT_ITEMS_MAX = 16, /* of up to so many each is watched by itself; of more, where watching is expensive, a group */
    RUN_GROUP_ITEMS = 16,
    RUN_ISSUE_AT_ONCE = 64, /* given to the device before the worker polls other things */
    STREAM_ITEMS_IN_FLIGHT_MAX = 512, /* fewer than a driver queues before its calls block */
    GRAPHS_PER_WORKER_MAX = PROGRAMS_PER_SESSION_MAX * GRAPHS_PER_PROGRAM_MAX,

    /* the process */
    LAUNCHES_IN_FLIGHT_MAX = 4, /* per stream: one runs, and brief ones stand behind it */
    BRIEF_US = 50, /* a launch that ends sooner is brief */
    BRIEF_TIMES = 3, /* ... so often in a row: it is expected to be */
    BRIEF_FORMS = 1024, /* kinds of launches of which that is known */
    STREAM_ASKED_US = 50, /* the driver is asked so often whether a launch has failed: asking takes it 1.3 us (one H200, 2026-11-29) */
    START_TOLD_US = 50, /* a launch that runs longer is told to have started before it ends; else that costs a message and a lock less, no time that shows (2026-11-29) */
    RUN_TOLD_US = 2000, /* the same for a run: only its deadline counts from there */
    COPIES_IN_FLIGHT_MAX = 64, /* per stream: copies and fills given to the device and not yet done */
    WORKER_NAP_US_MIN = 20,
    WORKER_NAP_US_MAX = 1000,
    WORKER_SLEEP_MS = 100, /* longest sleep between two polls */
    WORKER_UID_FIRST = 0x70000000, /* under root each worker's user is this number plus its process id: numbers that no system gives out */
    WORKER_FILES_RESERVE = 16, /* descriptors that a worker must be able to open at its start */
    WORKER_FILES_OF_DRIVER_MIN = 256, /* with a lower limit a device that does not open is not at fault: a driver opens up to some dozens a device */
};

static const uint64_t WORKER_OWN_BYTES = 4ull << 30; /* memory of a cpu worker beyond its device's: modules, its heap, stacks of its threads */
static const uint64_t WORKER_OWN_BYTES_PER_CPU = 1ull << 30; /* ... and for each processor: registers of the blocks that run there, and stacks of a cooperative launch's threads */
