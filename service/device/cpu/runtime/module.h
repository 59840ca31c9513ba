/* A loaded module of the `cpu` device: parsed PTX, its variables in device memory, its code decoded. */
#pragma once

#include "device/cpu/ptx/ir.h"
#include "device/cpu/runtime/memory.h"
#include "ipc/kernel_table.h"

struct cpu_plan;
struct vendor_plan;

/* Of PTX, or of a plan that a library of the host does: then `program` is NULL. */
struct cpu_module {
    struct cpu_memory  *memory; /* borrowed */
    struct ptx_module  *program;
    struct kernel_table table;
    uint32_t           *kernels;   /* function of each row of the table; owned */
    struct cpu_plan    *plan;      /* owned; NULL: of PTX */
    uint64_t            variables; /* address of the allocation that holds them; 0 = none */
};

/* Of PTX, or of several texts of it as ipc/linked_images.h has them. MODULE_INVALID with the line, DEVICE_MEMORY_EXHAUSTED, OUT_OF_MEMORY. The image
 * may be freed afterwards. */
enum status cpu_module_load(struct cpu_memory *memory, struct span image, struct cpu_module **out, struct problem *why);
/* NOT_IMPLEMENTED: no library does it. */
enum status cpu_module_of_plan(struct cpu_memory *memory, const struct vendor_plan *ask, struct cpu_module **out, struct problem *why);
/* No launch of it may be unfinished. NULL is a no-op. */
void cpu_module_unload(struct cpu_module *m);
/* The function of that kernel; the index is within the table. NULL: there is none, or it is a plan's. */
const struct ptx_function *cpu_module_kernel(const struct cpu_module *m, unsigned kernel);
