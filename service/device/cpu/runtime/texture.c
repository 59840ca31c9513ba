/* The table of textures. A number has the place in the table, whether it means the surface, and how often the place was used, so that a
 * number that is used too long is found out. */
#include "device/cpu/runtime/texture.h"

#include <stdlib.h>

enum { SURFACE_BIT = 1, PLACE_SHIFT = 1, GENERATION_SHIFT = 32 };

struct cpu_textures {
    struct cpu_memory *memory;
    struct cpu_texture places[TEXTURES_PER_SESSION_MAX];
};

enum status cpu_textures_create(struct cpu_memory *memory, struct cpu_textures **out)
{
    struct cpu_textures *all = calloc(1, sizeof *all);

    if (!all)
        return STATUS_OUT_OF_MEMORY;
    all->memory = memory;
    *out = all;
    return STATUS_OK;
}

void cpu_textures_destroy(struct cpu_textures *all)
{
    free(all);
}

static struct cpu_texture *place_of(const struct cpu_textures *all, uint64_t object)
{
    uint64_t place = (object & UINT32_MAX) >> PLACE_SHIFT;

    return place >= 1 && place <= TEXTURES_PER_SESSION_MAX ? (struct cpu_texture *)(uintptr_t)&all->places[place - 1] : NULL;
}

const struct cpu_texture *cpu_texture_find(const struct cpu_textures *all, uint64_t object, bool surface)
{
    const struct cpu_texture *t = place_of(all, object);

    if (!t || atomic_load_explicit(&t->object, memory_order_acquire) != (object & ~(uint64_t)SURFACE_BIT))
        return NULL;
    return surface == (object & SURFACE_BIT) && (!surface || t->desc.surface) ? t : NULL;
}

static struct cpu_texture *free_place(struct cpu_textures *all)
{
    for (unsigned i = 0; i < TEXTURES_PER_SESSION_MAX; i++)
        if (!atomic_load_explicit(&all->places[i].object, memory_order_relaxed))
            return &all->places[i];
    return NULL;
}

static void describe(struct cpu_texture *t, const struct texture_desc *desc, uint64_t base)
{
    unsigned faces = texture_dimension_of(desc)->faces;

    t->desc = *desc;
    t->base = base;
    for (unsigned i = 0; i < 3; i++)
        t->extent[i] = desc->extent[i];
    if (faces > 1)
        t->extent[1] = desc->extent[0];
    t->images = desc->layers * faces;
    t->texel_bytes = texture_texel_bytes(desc);
    t->row_bytes = texture_row_bytes(desc);
    t->image_bytes = t->row_bytes * t->extent[1];
}

enum status cpu_texture_make(struct cpu_textures *all, const struct texture_desc *desc, uint64_t *address, uint64_t *texture,
                             uint64_t *surface)
{
    struct cpu_texture *t = free_place(all);
    uint64_t            base = desc->address, object;
    enum status         st = STATUS_OK;

    if (!t)
        return STATUS_QUOTA_EXCEEDED;
    if (!base)
        st = cpu_memory_alloc(all->memory, texture_bytes(desc), &base);
    if (st)
        return st;
    describe(t, desc, base);
    object = (uint64_t)++t->generation << GENERATION_SHIFT | (uint64_t)(t - all->places + 1) << PLACE_SHIFT;
    atomic_store_explicit(&t->object, object, memory_order_release);
    *address = base;
    *texture = object;
    *surface = desc->surface ? object | SURFACE_BIT : 0;
    return STATUS_OK;
}

enum status cpu_texture_end(struct cpu_textures *all, uint64_t texture, uint64_t *memory)
{
    struct cpu_texture *t = place_of(all, texture);

    if (!texture || !t || atomic_load_explicit(&t->object, memory_order_relaxed) != texture)
        return STATUS_INTERNAL;
    *memory = t->desc.address ? 0 : t->base;
    atomic_store_explicit(&t->object, 0, memory_order_release);
    return STATUS_OK;
}
