/* An arena per request: a hard cap, everything freed at once. Not thread-safe: one thread at a time. */
#pragma once

#include "base/span.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t              used;   /* bytes allocated, including block headers */
    size_t              cap;
};

void arena_init(struct arena *a, size_t cap_bytes);
/* Frees all allocations. Accepts a zeroed or finished arena. */
void arena_finish(struct arena *a);

/* The same, but keeps a block for what is allocated next. */
void arena_reset(struct arena *a);

/* Zeroed, aligned for any type, valid until arena_finish. NULL beyond the cap or without host memory. n = 0 is allowed. */
void *arena_alloc(struct arena *a, size_t n);
/* Allocates count * size bytes and checks the product for overflow. */
void *arena_array(struct arena *a, size_t count, size_t size);
/* A NUL-terminated copy; data is NULL if it does not fit. */
struct span arena_copy(struct arena *a, struct span s);
/* printf into the arena; NULL if it does not fit. */
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
