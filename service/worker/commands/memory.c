/* Texts for allocations that failed. */
#include <inttypes.h>
#include <stdio.h>

#include "worker/commands/internal.h"

/* The detail has to fit a completion. */
static enum status memory_exhausted(const struct device_memory *now, uint64_t bytes, struct problem *why)
{
    uint64_t used = now->total_bytes > now->free_bytes ? now->total_bytes - now->free_bytes : 0;

    problem_limit(why, STATUS_DEVICE_MEMORY_EXHAUSTED, "device_memory_bytes", now->total_bytes, used, bytes);
    snprintf(why->detail, sizeof why->detail,
             "%" PRIu64 " bytes requested, %" PRIu64 " of %" PRIu64 " bytes on the device are free, the largest free block has %" PRIu64,
             bytes, now->free_bytes, now->total_bytes, now->largest_free_bytes);
    return STATUS_DEVICE_MEMORY_EXHAUSTED;
}

enum status memory_answer(struct device_worker *w, uint64_t bytes, enum status st, struct problem *why)
{
    struct device_memory now = {0};

    if (st == STATUS_DEVICE_MEMORY_EXHAUSTED && !w->ops->memory(w->device, &now))
        return memory_exhausted(&now, bytes, why);
    return st && why->status != st ? problem_set(why, st, "cannot allocate device memory") : st;
}
