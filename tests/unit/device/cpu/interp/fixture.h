/* Runs PTX texts on a small engine. */
#pragma once

#include <criterion/criterion.h>

#include "device/cpu/ptx/ir.h"
#include "device/cpu/runtime/launch.h"
#include "device/cpu/runtime/memory.h"
#include "device/cpu/runtime/texture.h"

struct rig {
    struct cpu_memory   *memory;
    struct cpu_engine   *engine;
    struct cpu_textures *textures; /* that its kernels may name */
    struct ptx_module   *module;
    struct problem       why;
};

void rig_start(struct rig *r);
void rig_stop(struct rig *r);
/* Parses, places symbols, decodes. Fails the test on an error. */
void        rig_load(struct rig *r, const char *text);
enum status rig_try_load(struct rig *r, const char *text);
void        rig_load_file(struct rig *r, const char *name); /* relative to the folder of test texts */
/* Zeroed device memory, as host memory. */
void *rig_memory(struct rig *r, size_t bytes);

struct rig_shape {
    unsigned grid_x, block_x, shared_bytes, block_y, grid_y, deadline_ms, cooperative, block_z;
}; /* 0 means 1 */
/* params: 8 bytes each, narrowed to the parameter's size. */
enum status rig_run(struct rig *r, const char *kernel, struct rig_shape shape, const uint64_t *params, unsigned count);
#define RUN(r, kernel, shape, ...) rig_run(r, kernel, shape, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / 8)
#define SHAPE(x, threads, ...)     ((struct rig_shape){.grid_x = (x), .block_x = (threads), __VA_ARGS__})
#define ADDRESS(p)                 ((uint64_t)(uintptr_t)(p))

static inline uint64_t bits_of_float(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline uint64_t bits_of_double(double f)
{
    uint64_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
