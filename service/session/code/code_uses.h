/* How often code was found in the cache, and how often not: of each holder, and of all together. Thread-safe. */
#pragma once

#include <pthread.h>

#include "session/code/code_cache.h"

struct code_use {
    char     holder[CODE_HOLDER_CHARS]; /* as keys begin; no NUL */
    uint64_t hits, misses;
    uint64_t used; /* counted by code_uses.clock */
};

struct code_uses {
    pthread_mutex_t  lock; /* over all below */
    struct code_use *list; /* [CACHE_HOLDERS_COUNTED_MAX]; owned */
    unsigned         count;
    uint64_t         clock, hits, misses; /* the two: of all */
};

/* False: no memory. */
bool code_uses_init(struct code_uses *u);
void code_uses_finish(struct code_uses *u);
/* Of the holder that the key begins with. Beyond CACHE_HOLDERS_COUNTED_MAX the one that asked longest ago is counted anew. */
void code_uses_count(struct code_uses *u, const char *key, bool hit);
/* `holder` NULL: of all. */
void code_uses_of(struct code_uses *u, const char *holder, uint64_t *hits, uint64_t *misses);
