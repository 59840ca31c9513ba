/* A hash table with open addressing, at most half full. */
#include "device/cpu/ptx/constant_index.h"

#include <stdlib.h>

enum { ROOM_FIRST = 64 };

void constant_index_finish(struct constant_index *x)
{
    free(x->slots);
    *x = (struct constant_index){0};
}

/* splitmix64: constants differ in few bits, often the highest. */
static uint64_t mix_bits(uint64_t n)
{
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u;
    n = (n ^ n >> 27) * 0x94d049bb133111ebu;
    return n ^ n >> 31;
}

/* The slot of that constant, or the empty slot where it belongs. There is room. */
static struct constant_slot *slot_of(struct constant_index *x, uint64_t value, uint32_t width)
{
    uint64_t at = mix_bits(value + width) & (x->room - 1);

    while (x->looks++, x->slots[at].width && (x->slots[at].value != value || x->slots[at].width != width))
        at = (at + 1) & (x->room - 1);
    return &x->slots[at];
}

bool constant_index_find(struct constant_index *x, uint64_t value, uint32_t width, uint32_t *place)
{
    const struct constant_slot *found = x->room ? slot_of(x, value, width) : NULL;

    if (!found || !found->width)
        return false;
    *place = found->place;
    return true;
}

static bool grow_index(struct constant_index *x)
{
    struct constant_index bigger = {.room = x->room ? 2 * x->room : ROOM_FIRST, .count = x->count, .looks = x->looks};

    bigger.slots = bigger.room > x->room ? calloc(bigger.room, sizeof *bigger.slots) : NULL;
    if (!bigger.slots)
        return false;
    for (uint32_t i = 0; i < x->room; i++)
        if (x->slots[i].width)
            *slot_of(&bigger, x->slots[i].value, x->slots[i].width) = x->slots[i];
    free(x->slots);
    *x = bigger;
    return true;
}

bool constant_index_add(struct constant_index *x, uint64_t value, uint32_t width, uint32_t place)
{
    if (x->room <= 2 * x->count && !grow_index(x))
        return false;
    *slot_of(x, value, width) = (struct constant_slot){value, width, place};
    x->count++;
    return true;
}
