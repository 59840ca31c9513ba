/* Textures of the `cpu` device: their texels lie in device memory, row after row; kernels name them by a number.
 * The command thread makes and ends them while kernels that use others run. */
#pragma once

#include <stdatomic.h>

#include "device/cpu/runtime/memory.h"
#include "ipc/texture.h"

struct cpu_textures;

struct cpu_texture {
    _Atomic uint64_t    object; /* its number; 0: the place is free */
    uint64_t            base;   /* of its texels */
    uint64_t            row_bytes, image_bytes;
    uint32_t            extent[3]; /* texels; faces have their height here */
    uint32_t            images;    /* layers and faces together */
    unsigned            texel_bytes;
    uint32_t            generation; /* of the place */
    struct texture_desc desc;
};

/* memory is borrowed. */
enum status cpu_textures_create(struct cpu_memory *memory, struct cpu_textures **out);
void        cpu_textures_destroy(struct cpu_textures *all); /* NULL is a no-op; the memory ends by itself */

/* A checked description. *surface: 0 unless it is one. *address: where its texels begin. */
enum status cpu_texture_make(struct cpu_textures *all, const struct texture_desc *desc, uint64_t *address, uint64_t *texture,
                             uint64_t *surface);
/* It cannot be found any more. *memory: what is to be freed behind all queued work; 0: nothing. INTERNAL: there is no such texture. */
enum status cpu_texture_end(struct cpu_textures *all, uint64_t texture, uint64_t *memory);

/* From any thread. NULL: the number names none, or not one of this kind. */
const struct cpu_texture *cpu_texture_find(const struct cpu_textures *all, uint64_t object, bool surface);
