/* A chain of separately allocated blocks, so that sanitizers detect overruns between blocks. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ARENA_BLOCK_BYTES = 8 * 1024 };

struct arena_block {
    struct arena_block *next;
    size_t              used;
    size_t              room;
    bool                cleared; /* the system clears a large block; of a common block only the allocated part is cleared */
    alignas(max_align_t) char data[];
};

void arena_init(struct arena *a, size_t cap_bytes)
{
    *a = (struct arena){.cap = cap_bytes};
}

void arena_finish(struct arena *a)
{
    for (struct arena_block *b = a->blocks; b;) {
        struct arena_block *next = b->next;
        free(b);
        b = next;
    }
    a->blocks = NULL;
    a->used = 0;
}

void arena_reset(struct arena *a)
{
    struct arena_block *kept = a->blocks;

    while (kept && (kept->cleared || kept->room != ARENA_BLOCK_BYTES)) { /* what is not cleared at first has the usual size */
        struct arena_block *next = kept->next;
        free(kept);
        kept = next;
    }
    a->blocks = kept ? kept->next : NULL;
    arena_finish(a);
    if (!kept)
        return;
    *kept = (struct arena_block){.room = ARENA_BLOCK_BYTES};
    a->blocks = kept;
    a->used = sizeof *kept + ARENA_BLOCK_BYTES;
}

static struct arena_block *block_add(struct arena *a, size_t n)
{
    bool                cleared = n > ARENA_BLOCK_BYTES;
    size_t              room = cleared ? n : ARENA_BLOCK_BYTES;
    size_t              left = a->cap - a->used;
    struct arena_block *b;

    if (left <= sizeof *b || n > left - sizeof *b)
        return NULL;
    if (room > left - sizeof *b)
        room = left - sizeof *b;
    b = cleared ? calloc(1, sizeof *b + room) : malloc(sizeof *b + room);
    if (!b)
        return NULL;
    *b = (struct arena_block){.next = a->blocks, .room = room, .cleared = cleared};
    a->blocks = b;
    a->used += sizeof *b + room;
    return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
    struct arena_block *b = a->blocks;
    size_t              rounded;
    char               *at;

    if (n > SIZE_MAX - alignof(max_align_t))
        return NULL;
    rounded = (n + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (!b || rounded > b->room - b->used)
        b = block_add(a, rounded);
    if (!b)
        return NULL;
    b->used += rounded;
    at = b->data + b->used - rounded;
    return b->cleared ? at : memset(at, 0, rounded);
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
    size_t n;

    return __builtin_mul_overflow(count, size, &n) ? NULL : arena_alloc(a, n);
}

struct span arena_copy(struct arena *a, struct span s)
{
    char *copy = s.bytes < SIZE_MAX ? arena_alloc(a, s.bytes + 1) : NULL;

    if (!copy)
        return (struct span){NULL, 0};
    if (s.bytes)
        memcpy(copy, s.data, s.bytes);
    return (struct span){copy, s.bytes};
}

char *arena_printf(struct arena *a, const char *format, ...)
{
    va_list args;
    char   *text;
    int     n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    text = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
    if (!text)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}
