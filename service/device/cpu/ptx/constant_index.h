/* Which constants a function has already, found by value and width. Used while it is decoded only. */
#ifndef GPUREST_DEVICE_CPU_CONSTANT_INDEX_H
#define GPUREST_DEVICE_CPU_CONSTANT_INDEX_H

#include <stdbool.h>
#include <stdint.h>

struct constant_slot {
    uint64_t value;
    uint32_t width; /* 0: the slot is empty */
    uint32_t place;
};

/* Starts zeroed. */
struct constant_index {
    struct constant_slot *slots; /* owned */
    uint32_t              room;  /* of them: a power of two, at least twice `count` */
    uint32_t              count;
    uint64_t              looks; /* at slots, ever */
};

void constant_index_finish(struct constant_index *x);
/* False: it has none of that value and width. */
bool constant_index_find(struct constant_index *x, uint64_t value, uint32_t width, uint32_t *place);
/* One that it has not; width > 0. False without memory. */
bool constant_index_add(struct constant_index *x, uint64_t value, uint32_t width, uint32_t place);

#endif
