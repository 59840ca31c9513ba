/* How the values of a register or of a result lie over the lanes of a chunk. */
#pragma once

#include "device/cpu/ptx/ir.h"

struct jit_plan;

/* How a register's values lie over the lanes of a chunk that run together. LINEAR: the first lane's plus a multiple of `stride`; from
 * some lane on, when numbers of 32 bits wrapped before they were widened, `wrapped` is added, too. */
enum shape_kind { SHAPE_NONE, SHAPE_UNIFORM, SHAPE_LINEAR, SHAPE_VARYING };
struct shape {
    enum shape_kind kind;
    int64_t         stride;
    int64_t         wrapped; /* 0: it cannot have */
};

/* Of a source operand as a number of `bytes`, and of the result of a compiled instruction. */
struct shape plan_operand(const struct jit_plan *p, const struct ptx_operand *o, unsigned bytes);
struct shape plan_result(const struct jit_plan *p, const struct ptx_insn *in);

struct shape shape_sum(struct shape a, struct shape b, bool minus);
struct shape shape_product(struct shape a, uint64_t by, unsigned bytes);
/* From 32 to 64 bits. */
struct shape shape_widened(struct shape a);

/* The operand is a number in the text: extended from `bytes`. */
bool operand_constant(const struct ptx_operand *o, unsigned bytes, bool is_signed, uint64_t *out);
