/* Which instructions are compiled; every other one ends a stretch of compiled code. */
#ifndef GPUREST_DEVICE_CPU_JIT_SUBSET_H
#define GPUREST_DEVICE_CPU_JIT_SUBSET_H

#include "device/cpu/interp/ops/ops.h"
#include "device/cpu/ptx/ir.h"

/* Whether the compiler takes that instruction. */
bool native_insn(const struct ptx_function *f, const struct ptx_insn *in);
/* The space of a load or store, as the interpreter finds it; false: only known at run time. */
bool native_space(const struct ptx_insn *in, const struct ptx_operand *p, enum op_space *out);

/* Of an enum ptx_type: f32 or f64; an integer of 16 to 64 bits. */
bool is_plain_float(uint8_t type);
bool is_plain_int(uint8_t type);

#endif
