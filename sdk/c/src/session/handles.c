/* The table of buffers. */
#include "session/handles.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_MIN = 64 };

void handles_init(struct handles *h, uint32_t nonce)
{
    *h = (struct handles){.nonce = nonce};
}

void handles_finish(struct handles *h)
{
    free(h->entries);
    *h = (struct handles){0};
}

static bool grow_handles(struct handles *h)
{
    uint32_t             room = h->room ? h->room * 2 : ROOM_MIN;
    struct buffer_entry *entries;

    if (h->count < h->room)
        return true;
    entries = h->room < BUFFERS_MAX ? realloc(h->entries, room * sizeof *entries) : NULL;
    if (!entries)
        return false;
    h->entries = entries;
    h->room = room;
    return true;
}

struct buffer_entry *handles_add(struct handles *h, uint64_t *id)
{
    uint32_t             slot, generation;
    struct buffer_entry *e;

    if (h->first_free) {
        slot = h->first_free - 1;
        h->first_free = h->entries[slot].next_free;
        generation = h->entries[slot].generation + 1;
    } else if (grow_handles(h)) {
        slot = h->count++;
        generation = h->nonce;
    } else {
        return NULL;
    }
    e = &h->entries[slot];
    memset(e, 0, sizeof *e);
    e->generation = generation;
    e->used = true;
    *id = (uint64_t)generation << 32 | (slot + 1);
    return e;
}

struct buffer_entry *handles_get(struct handles *h, uint64_t id)
{
    uint32_t slot = (uint32_t)id - 1;

    if (slot >= h->count || !h->entries[slot].used || h->entries[slot].generation != id >> 32)
        return NULL;
    return &h->entries[slot];
}

void handles_remove(struct handles *h, uint64_t id)
{
    struct buffer_entry *e = handles_get(h, id);

    if (!e)
        return;
    e->used = false;
    e->next_free = h->first_free;
    h->first_free = (uint32_t)id;
}

void handles_clear(struct handles *h)
{
    for (uint32_t i = 0; i < h->count; i++)
        if (h->entries[i].used)
            handles_remove(h, (uint64_t)h->entries[i].generation << 32 | (i + 1));
}
