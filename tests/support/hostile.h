/* What a worker can do to the memory that it shares with the front-end. */
#pragma once

#include <stdint.h>

/* Finds that memory. Call it while files can still be opened. */
void hostile_prepare(void);
/* Corrupts it in a way that depends only on the seed. */
void hostile_run(uint32_t seed);

/* Wrong reports about a call, which no correct worker sends. */
enum lie {
    LIE_STARTED_AGAIN,
    LIE_STARTED_FLOOD,
    LIE_READY_AGAIN,
    LIE_ENDLESS_TIME,
    LIE_NO_TIME,
    LIE_LONG_TIME,
    LIE_LOST_WELL,
    LIE_ACCESS,
    LIE_ACCESS_OF_OTHERS, /* of a failure that is no fault of a kernel */
    LIE_STATUS,           /* and those after it: outcomes that only the front-end may report */
    LIES = LIE_STATUS + 4
};
void hostile_lie(uint32_t lie, uint64_t call);
