/* One arena per request: a hard cap, everything freed at once. Not thread-safe: one thread at a time. */
#ifndef GPUREST_BASE_ARENA_H
#define GPUREST_BASE_ARENA_H

#include "base/span.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first */
    size_t              used;   /* bytes handed out, block heads included */
    size_t              cap;
};

void arena_init(struct arena *a, size_t cap_bytes);
/* Frees all that was handed out. A zeroed or finished arena is fine. */
void arena_finish(struct arena *a);

/* Zeroed, aligned for any type, valid until arena_finish. NULL past the cap or without host memory. n = 0 is legal. */
void *arena_alloc(struct arena *a, size_t n);
/* count * size, with the product checked. */
void *arena_array(struct arena *a, size_t count, size_t size);
/* A copy with a closing NUL behind it; data is NULL when it did not fit. */
struct span arena_copy(struct arena *a, struct span s);
/* printf into the arena; NULL when it did not fit. */
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
