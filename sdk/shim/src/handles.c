/* Handles: an index and a generation, shifted so that they are neither NULL nor a special value of streams, and never an address. */
#include <stdlib.h>

#include "shim.h"

enum { KIND_BITS = 4, INDEX_BITS = 24, HANDLES_MAX = 1 << INDEX_BITS };

struct slot {
    void            *object;
    enum handle_kind kind; /* 0: free */
    uint32_t         generation, next_free;
};

static struct slot *slots;
static uint32_t     count, room, first_free; /* first_free: index + 1; 0: none */

static void *value_of(uint32_t index)
{
    return (void *)(((uintptr_t)slots[index].generation << INDEX_BITS | index) << KIND_BITS | (uintptr_t)slots[index].kind);
}

static struct slot *slot_of(const void *handle)
{
    uintptr_t value = (uintptr_t)handle;
    uint32_t  index = (uint32_t)(value >> KIND_BITS) & (HANDLES_MAX - 1);

    return index < count && slots[index].kind && value_of(index) == handle ? &slots[index] : NULL;
}

static bool grow(void)
{
    uint32_t     more = room ? 2 * room : 64;
    struct slot *larger = more <= HANDLES_MAX ? realloc(slots, more * sizeof *slots) : NULL;

    if (!larger)
        return false;
    slots = larger;
    room = more;
    return true;
}

void *handle_add(enum handle_kind kind, void *object)
{
    uint32_t index = first_free ? first_free - 1 : count;

    if (index >= room && !grow())
        return NULL;
    if (index == count) {
        slots[index].generation = 0;
        count++;
    } else
        first_free = slots[index].next_free;
    slots[index].object = object;
    slots[index].kind = kind;
    slots[index].generation++; /* 32 bits: it fits above index and kind */
    return value_of(index);
}

void *handle_get(enum handle_kind kind, const void *handle)
{
    const struct slot *s = slot_of(handle);

    return s && s->kind == kind ? s->object : NULL;
}

void handle_set(const void *handle, void *object)
{
    struct slot *s = slot_of(handle);

    if (s)
        s->object = object;
}

void handle_remove(const void *handle)
{
    struct slot *s = slot_of(handle);

    if (!s)
        return;
    s->kind = 0;
    s->object = NULL;
    s->next_free = first_free;
    first_free = (uint32_t)(s - slots) + 1;
}

void handle_each(enum handle_kind kind, void (*visit)(void *handle, void *object, void *arg), void *arg)
{
    for (uint32_t i = 0; i < count; i++)
        if (slots[i].kind == kind && slots[i].object)
            visit(value_of(i), slots[i].object, arg);
}
