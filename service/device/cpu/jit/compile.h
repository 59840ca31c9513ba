/* Compiles one kernel. */
#pragma once

#include "base/problem.h"
#include "device/cpu/interp/interp.h"
#include "device/cpu/ptx/ir.h"

/* A kernel's code with compiled blocks. `plain`: its code without; `lanes`: of a chunk; `rows`: chunks will be
 * pieces of rows of the block; `across`: and mostly such rows, so that blocks that follow each other may run
 * together; `whole`: only if all of it but barriers and returns can be compiled. One call at a time.
 * NOT_IMPLEMENTED with the reason: the kernel stays as it is. */
enum status jit_compile(const struct ptx_module *m, const struct ptx_function *f, const struct code *plain, unsigned lanes, bool rows,
                        bool across, bool whole, struct code **out, struct problem *why);
/* Not while it runs, nor during jit_compile. NULL is a no-op. */
void jit_release(struct code *c);
/* Whether its chunks must be warps. */
bool jit_meets_warp(const struct ptx_module *m, const struct ptx_function *f);
/* STATUS_OK: jit_compile of all of it would try. NOT_IMPLEMENTED with the reason: it would not. */
enum status jit_survey(const struct ptx_module *m, const struct ptx_function *f, const struct code *plain, struct problem *why);
