/* What a worker can do to the memory that it shares with the front-end. */
#ifndef GPUREST_TESTS_POOL_HOSTILE_H
#define GPUREST_TESTS_POOL_HOSTILE_H

#include <stdint.h>

/* Finds that memory. While files can still be opened. */
void hostile_prepare(void);
/* Does harm to it, of a kind that the seed chooses; the same each time. */
void hostile_run(uint32_t seed);

#endif
