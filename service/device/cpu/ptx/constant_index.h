/* Finds a function's constants by value and width. Used only while it is decoded. */
#pragma once

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
    uint32_t              room;  /* count of slots: a power of two, at least twice `count` */
    uint32_t              count;
    uint64_t              looks; /* at slots, ever */
};

void constant_index_finish(struct constant_index *x);
/* False: no constant has that value and width. */
bool constant_index_find(struct constant_index *x, uint64_t value, uint32_t width, uint32_t *place);
/* Adds a new one; width > 0. False: out of memory. */
bool constant_index_add(struct constant_index *x, uint64_t value, uint32_t width, uint32_t place);
