/* A table that is searched from its start: a look-up costs less than the file that it counts. */
#include "session/code/code_uses.h"

#include <stdlib.h>
#include <string.h>

#include "base/threads/held.h"

bool code_uses_init(struct code_uses *u)
{
    *u = (struct code_uses){.list = calloc(CACHE_HOLDERS_COUNTED_MAX, sizeof(struct code_use))};
    if (u->list && pthread_mutex_init(&u->lock, NULL) == 0)
        return true;
    free(u->list);
    return false;
}

void code_uses_finish(struct code_uses *u)
{
    pthread_mutex_destroy(&u->lock);
    free(u->list);
}

/* With the lock held; NULL: none. */
static struct code_use *find_use(const struct code_uses *u, const char *holder)
{
    assert(held(&u->lock));
    for (unsigned i = 0; i < u->count; i++)
        if (memcmp(u->list[i].holder, holder, CODE_HOLDER_CHARS) == 0)
            return &u->list[i];
    return NULL;
}

/* With the lock held. */
static struct code_use *make_use(struct code_uses *u, const char *holder)
{
    struct code_use *use = u->list;

    if (u->count < CACHE_HOLDERS_COUNTED_MAX)
        use = &u->list[u->count++];
    else
        for (unsigned i = 1; i < u->count; i++)
            use = u->list[i].used < use->used ? &u->list[i] : use;
    *use = (struct code_use){0};
    memcpy(use->holder, holder, CODE_HOLDER_CHARS);
    return use;
}

void code_uses_count(struct code_uses *u, const char *key, bool hit)
{
    struct code_use *use;

    pthread_mutex_lock(&u->lock);
    use = find_use(u, key);
    if (!use)
        use = make_use(u, key);
    use->used = ++u->clock;
    use->hits += hit;
    use->misses += !hit;
    u->hits += hit;
    u->misses += !hit;
    pthread_mutex_unlock(&u->lock);
}

void code_uses_of(struct code_uses *u, const char *holder, uint64_t *hits, uint64_t *misses)
{
    const struct code_use *use;

    pthread_mutex_lock(&u->lock);
    use = holder ? find_use(u, holder) : NULL;
    *hits = use ? use->hits : holder ? 0 : u->hits;
    *misses = use ? use->misses : holder ? 0 : u->misses;
    pthread_mutex_unlock(&u->lock);
}
