/* Which instructions of a kernel are compiled, and what is known about its registers before. */
#ifndef GPUREST_DEVICE_CPU_JIT_PLAN_H
#define GPUREST_DEVICE_CPU_JIT_PLAN_H

#include "base/problem.h"
#include "device/cpu/interp/interp.h"
#include "device/cpu/interp/ops/ops.h"
#include "device/cpu/jit/native.h"
#include "device/cpu/ptx/ir.h"

/* Whether the compiler takes that instruction; every other one ends a stretch of compiled code. */
bool native_insn(const struct ptx_function *f, const struct ptx_insn *in);

/* The space of a load or store, as the interpreter finds it; false: only known at run time. */
bool native_space(const struct ptx_insn *in, const struct ptx_operand *p, enum op_space *out);

/* How a register's values lie over the lanes of a chunk that run together. LINEAR: the first lane's plus a multiple of `stride`; from
 * some lane on, when numbers of 32 bits wrapped before they were widened, `wrapped` is added, too. */
enum shape_kind { SHAPE_NONE, SHAPE_UNIFORM, SHAPE_LINEAR, SHAPE_VARYING };
struct shape {
    enum shape_kind kind;
    int64_t         stride;
    int64_t         wrapped; /* 0: it cannot have */
};

struct jit_plan {
    const struct ptx_module   *module;
    const struct ptx_function *function;
    const struct code         *code;
    unsigned                   lanes;
    bool                       rows;   /* a chunk is a piece of one row of the block */
    uint8_t                   *native; /* [blocks_count] 1: compiled */
    uint8_t                   *passes; /* [blocks_count] see struct code_native */
    bool                       whole;
    uint8_t                   *entry;     /* [blocks_count] 1: compiled code can begin there */
    uint8_t                   *divergent; /* [blocks_count] 1: other lanes of the chunk may wait elsewhere while it runs */
    struct shape              *shapes;    /* [registers_count] */
    uint8_t                   *local;     /* [registers_count] 1: not read in other blocks, nor before it is written */
    uint8_t                   *dirty;     /* [registers_count] 1: compiled code writes it */
    uint8_t                   *read;      /* [registers_count] 1: compiled code reads it */
    uint64_t                  *live;      /* [blocks_count][words] registers that are read from there on */
    size_t                     words;
    uint32_t                   insns_native, insns_total;
    const struct ptx_insn     *first_refused; /* the first instruction that the interpreter keeps, but barriers and returns; NULL: none */
};

/* `whole`: only kernels of which nothing but barriers and returns is left to the interpreter. OUT_OF_MEMORY, or NOT_IMPLEMENTED with the
 * reason in *why: compiling would bring nothing. The plan is destroyed by plan_finish in any case. */
enum status plan_make(struct jit_plan *p, const struct ptx_module *m, const struct ptx_function *f, const struct code *c, unsigned lanes,
                      bool rows, bool whole, struct problem *why);
void        plan_finish(struct jit_plan *p);

static inline bool plan_is_live(const struct jit_plan *p, uint32_t block, uint32_t reg)
{
    return p->live[block * p->words + reg / 64] >> (reg % 64) & 1;
}

/* The shape of a source operand as a number of `bytes`; is_signed: how it is widened. And of a result of those. */
struct shape plan_operand(const struct jit_plan *p, const struct ptx_operand *o, unsigned bytes, bool is_signed);
struct shape shape_sum(struct shape a, struct shape b, bool minus);
struct shape shape_product(struct shape a, uint64_t by, unsigned bytes);
struct shape shape_widened(const struct jit_plan *p, struct shape a);
/* Of the result of a compiled instruction. */
struct shape plan_result(const struct jit_plan *p, const struct ptx_insn *in);

/* The operand is a number in the text: extended from `bytes`. */
bool operand_constant(const struct ptx_operand *o, unsigned bytes, bool is_signed, uint64_t *out);

#endif
