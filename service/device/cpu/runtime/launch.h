/* Runs kernels: blocks in ascending order, taken by a few threads. One kernel at a time, on the calling thread plus helpers. */
#pragma once

#include "base/problem.h"
#include "device/cpu/runtime/memory.h"
#include "device/cpu/runtime/output.h"
#include "limits.h"

struct ptx_module;
struct ptx_function;
struct cpu_engine;
struct cpu_textures;
struct cpu_plan;

struct cpu_launch {
    const struct ptx_module   *module;
    const struct ptx_function *kernel;
    const struct cpu_plan     *plan; /* not NULL: a library of the host does it; module, kernel, grid and block are unused */
    uint32_t                   grid[3];
    uint32_t                   block[3];
    uint32_t                   shared_bytes; /* dynamic */
    bool                       cooperative;
    const void                *params; /* aligned to 8 */
    uint32_t                   params_bytes;
    uint64_t                   deadline_ms; /* 0: none; counts from the start of execution */
};

/* threads 0: one per core of the host. memory is borrowed. */
enum status cpu_engine_create(struct cpu_memory *memory, unsigned threads, struct cpu_engine **out);
void        cpu_engine_destroy(struct cpu_engine *e);
/* Before the first run: the textures that kernels may name; borrowed. Default: none. */
void cpu_engine_use_textures(struct cpu_engine *e, const struct cpu_textures *textures);

/* LAUNCH_CONFIG_INVALID with the reason: the kernel can never run with it. */
enum status cpu_launch_check(const struct cpu_launch *l, struct problem *why);
/* Runs to the end. KERNEL_FAULT with CUDA's number, EXECUTION_TIMEOUT, CANCELLED, OUT_OF_MEMORY. One caller at a time. */
enum status cpu_engine_run(struct cpu_engine *e, const struct cpu_launch *l, struct problem *why);
/* From any thread: the running kernel, and every later one, ends with CANCELLED. */
void cpu_engine_cancel(struct cpu_engine *e);

/* Frees what cpu_code_load_as made, also after a failure. */
void cpu_code_unload(struct ptx_module *m);

/* Moves the printed text into out, as much as fits; the rest is dropped. */
void cpu_engine_take_output(struct cpu_engine *e, struct buf *out);
