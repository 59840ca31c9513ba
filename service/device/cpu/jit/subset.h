/* Which instructions are compiled; every other one ends a stretch of compiled code. */
#pragma once

#include "device/cpu/interp/ops/ops.h"
#include "device/cpu/ptx/ir.h"

/* How compiled code runs an instruction: as code of its own; by the interpreter's operations, which it calls for the lanes of the chunk
 * (device/cpu/jit/emit/borrow.c); or not: the chunk leaves before it. */
enum native_way { NATIVE_LEAVES, NATIVE_EMITTED, NATIVE_BORROWED };
enum native_way    native_way(const struct ptx_module *m, const struct ptx_function *f, const struct ptx_insn *in);
static inline bool native_insn(const struct ptx_module *m, const struct ptx_function *f, const struct ptx_insn *in)
{
    return native_way(m, f, in) != NATIVE_LEAVES;
}
/* Whether what it does depends on which other threads of its warp run it: a chunk must be a warp. */
bool native_meets_warp(const struct ptx_module *m, const struct ptx_insn *in);
/* Of such an instruction, the operand with the members that it waits for; NULL: it waits for none, or for all. */
const struct ptx_operand *native_members(const struct ptx_insn *in);
/* shfl: every lane reads lane 0. */
bool shuffles_first(const struct ptx_insn *in);
/* The space of a load or store, as the interpreter finds it; false: only known at run time. */
bool native_space(const struct ptx_insn *in, const struct ptx_operand *p, enum op_space *out);

/* Of an enum ptx_type: f32 or f64; an integer of 16 to 64 bits. */
bool is_plain_float(uint8_t type);
bool is_plain_int(uint8_t type);
