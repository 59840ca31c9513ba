/* Compiles one kernel. */
#ifndef GPUREST_DEVICE_CPU_JIT_COMPILE_H
#define GPUREST_DEVICE_CPU_JIT_COMPILE_H

#include "base/problem.h"
#include "device/cpu/interp/interp.h"
#include "device/cpu/ptx/ir.h"

/* A kernel's code with compiled blocks. `plain`: its code without; `rows`: chunks will be pieces of rows of the block. One call at a time.
 * NOT_IMPLEMENTED with the reason: the kernel stays as it is. */
enum status jit_compile(const struct ptx_module *m, const struct ptx_function *f, const struct code *plain, bool rows, struct code **out,
                        struct problem *why);
/* Not while it runs, nor during jit_compile. NULL is a no-op. */
void jit_release(struct code *c);
/* Describes the code in a few words: what of it is compiled. */
void jit_describe(const struct code *c, char *text, size_t room);

#endif
