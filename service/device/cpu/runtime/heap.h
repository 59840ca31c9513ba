/* malloc and free of kernels: one bounded piece of device memory, allocated at a kernel's first request and kept until the device
 * closes. Thread-safe: blocks of a grid run on several threads. */
#pragma once

#include <pthread.h>

#include "device/cpu/runtime/memory.h"

struct heap_piece {
    uint32_t offset;
    uint32_t bytes;
    bool     used;
};

struct cpu_heap {
    pthread_mutex_t    lock;   /* guards all below */
    struct cpu_memory *memory; /* borrowed */
    uint64_t           base;   /* 0: not taken yet */
    struct heap_piece *pieces; /* sorted by offset, without gaps; owned */
    uint32_t           count;
};

void cpu_heap_init(struct cpu_heap *h, struct cpu_memory *memory);
void cpu_heap_finish(struct cpu_heap *h);
/* Aligned to 16 bytes; 0 when there is no room, as for malloc in a kernel. */
uint64_t cpu_heap_alloc(struct cpu_heap *h, uint64_t bytes);
/* False: malloc did not return that address, or it was freed before. 0 is fine. */
bool cpu_heap_free(struct cpu_heap *h, uint64_t address);
