/* A loaded module of the `cpu` device: parsed PTX, its variables in device memory, its code decoded. */
#ifndef GPUREST_DEVICE_CPU_MODULE_H
#define GPUREST_DEVICE_CPU_MODULE_H

#include "device/cpu/ptx/ir.h"
#include "device/cpu/runtime/memory.h"
#include "ipc/kernel_table.h"

struct cpu_module {
    struct cpu_memory  *memory; /* borrowed */
    struct ptx_module  *program;
    struct kernel_table table;
    uint32_t           *kernels;   /* function of each row of the table; owned */
    uint64_t            variables; /* address of the allocation that holds them; 0 = none */
};

/* MODULE_INVALID with the line, DEVICE_MEMORY_EXHAUSTED, OUT_OF_MEMORY. The text may be freed afterwards. */
enum status cpu_module_load(struct cpu_memory *memory, struct span text, struct cpu_module **out, struct problem *why);
/* No launch of it may be unfinished. NULL is a no-op. */
void cpu_module_unload(struct cpu_module *m);
/* The function of that kernel; the index is within the table. */
const struct ptx_function *cpu_module_kernel(const struct cpu_module *m, unsigned kernel);

#endif
