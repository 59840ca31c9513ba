/* What a worker can do to the memory that it shares with the front-end. */
#ifndef GPUREST_TESTS_POOL_HOSTILE_H
#define GPUREST_TESTS_POOL_HOSTILE_H

#include <stdint.h>

/* Finds that memory. While files can still be opened. */
void hostile_prepare(void);
/* Does harm to it, of a kind that the seed chooses; the same each time. */
void hostile_run(uint32_t seed);

/* What a worker may tell of a call, and no worker tells. */
enum lie {
    LIE_STARTED_AGAIN,
    LIE_STARTED_FLOOD,
    LIE_READY_AGAIN,
    LIE_ENDLESS_TIME,
    LIE_NO_TIME,
    LIE_LONG_TIME,
    LIE_LOST_WELL,
    LIE_STATUS, /* and those behind it: outcomes that only the front-end tells */
    LIES = LIE_STATUS + 4
};
void hostile_lie(uint32_t lie, uint64_t call);

#endif
