/* What is known about a kernel's blocks and registers before it is compiled. */
#pragma once

#include "base/problem.h"
#include "device/cpu/interp/interp.h"
#include "device/cpu/jit/native.h"
#include "device/cpu/jit/shape.h"
#include "device/cpu/ptx/ir.h"

struct jit_plan {
    const struct ptx_module   *module;
    const struct ptx_function *function;
    const struct code         *code;
    unsigned                   lanes;
    bool                       rows;                       /* a chunk is a piece of one row of the block */
    unsigned                   across;                     /* of a strip across blocks, lanes of each block; else 0 */
    uint8_t                   *native;                     /* [blocks_count] 1: compiled */
    uint8_t                   *passes;                     /* [blocks_count] see struct code_native */
    bool                       whole, spins, warps, fills; /* see struct code_native */
    uint32_t                   returns;                    /* see struct code_native */
    bool                       borrows;                    /* some of its operations are borrowed */
    bool                       calls;                      /* functions with frames of their own */
    uint8_t                   *entry;                      /* [blocks_count] 1: compiled code can begin there */
    uint8_t                   *divergent;                  /* [blocks_count] 1: other lanes of the chunk may wait elsewhere while it runs */
    uint64_t                  *waited;                     /* [blocks_count][words] registers that those lanes may still read */
    struct shape              *shapes;                     /* [registers_count] */
    uint8_t                   *local;                      /* [registers_count] 1: not read in other blocks, nor before it is written */
    uint8_t                   *dirty;                      /* [registers_count] 1: compiled code writes it */
    uint8_t                   *read;                       /* [registers_count] 1: compiled code reads it */
    uint64_t                  *live;                       /* [blocks_count][words] registers that are read from there on */
    uint64_t              *changed; /* [blocks_count][words] registers that may differ from the interpreter's arrays at the block's end */
    uint64_t              *changed_later; /* of those, what may be after an entry behind the first block */
    uint64_t              *needed;        /* [blocks_count][words] registers that compiled code wants of the arrays where it begins there */
    uint64_t              *left_alive;    /* [words] registers that lanes take to the arrays when a chunk stops inside compiled code */
    uint64_t              *held; /* [words] registers that chunks may hold at barriers (struct native_call); `holds`: there are some */
    bool                   holds;
    size_t                 words;
    uint32_t               insns_native;
    const struct ptx_insn *first_refused; /* the first instruction that the interpreter keeps, but barriers and returns; NULL: none */
};

/* `whole`: only kernels of which nothing but barriers and returns is left to the interpreter. OUT_OF_MEMORY, or NOT_IMPLEMENTED with the
 * reason in *why: compiling would bring nothing. The plan is destroyed by plan_finish in any case. */
enum status plan_make(struct jit_plan *p, const struct ptx_module *m, const struct ptx_function *f, const struct code *c, unsigned lanes,
                      bool rows, bool whole, struct problem *why);
void        plan_finish(struct jit_plan *p);
/* The blocks that may follow; returns how many, but for those of a table. */
unsigned plan_successors(const struct code *c, uint32_t block, uint32_t out[2]);
/* Registers that the instruction writes, or those of a block; and those that it reads: of instructions that the interpreter runs, all that it names. */
typedef void (*plan_reg_fn)(uint32_t reg, void *context);
void plan_each_result(const struct ptx_insn *in, plan_reg_fn fn, void *context);
void plan_block_results(const struct jit_plan *p, uint32_t block, plan_reg_fn fn, void *context);
void plan_each_source(const struct jit_plan *p, const struct ptx_insn *in, plan_reg_fn fn, void *context);
/* Of one block: the registers that are read before they are written there, and those that are written. */
struct plan_use {
    uint64_t *uses, *kills;
};
void plan_note_use(uint32_t reg, void *use);
void plan_note_kill(uint32_t reg, void *use);
/* Adds `from`, but for `kills` where that is not NULL, to a set of registers. Whether that had not all of them. */
bool plan_add(const struct jit_plan *p, uint64_t *to, const uint64_t *from, const uint64_t *kills);
/* p->changed. device/cpu/jit/changed.c */
void plan_find_changed(struct jit_plan *p);
/* p->needed and p->left_alive, after it. device/cpu/jit/needed.c */
enum status plan_find_needed(struct jit_plan *p);
/* p->held, after p->changed_later. device/cpu/jit/held.c */
void plan_find_held(struct jit_plan *p);
/* Whether lanes may wait before `to` that have come from `from`, both compiled. */
bool plan_may_wait(const struct jit_plan *p, uint32_t from, uint32_t to);
/* p->shapes of lanes that never part. */
void plan_shapes_together(struct jit_plan *p);

/* Where lanes leave at the end of `block`; `later`: having come in behind the first block. */
static inline bool plan_is_changed(const struct jit_plan *p, uint32_t block, uint32_t reg, bool later)
{
    return (later ? p->changed_later : p->changed)[block * p->words + reg / 64] >> (reg % 64) & 1;
}

static inline bool plan_is_live(const struct jit_plan *p, uint32_t block, uint32_t reg)
{
    return p->live[block * p->words + reg / 64] >> (reg % 64) & 1;
}

static inline bool plan_is_needed(const struct jit_plan *p, uint32_t block, uint32_t reg)
{
    return p->needed[block * p->words + reg / 64] >> (reg % 64) & 1;
}

static inline bool plan_is_held(const struct jit_plan *p, uint32_t reg)
{
    return p->held[reg / 64] >> (reg % 64) & 1;
}

/* Compiled code goes on behind `block`, a barrier. */
static inline bool plan_goes_on_behind(const struct jit_plan *p, uint32_t block)
{
    return p->passes[block] == PASSES_BARRIER && block + 1 < p->code->blocks_count && p->entry[block + 1];
}

/* Chunks that come there as one leave some of their registers held (struct native_call). */
static inline bool plan_holds(const struct jit_plan *p, uint32_t block)
{
    return p->holds && plan_goes_on_behind(p, block);
}

/* Several blocks of threads may run in turns. */
static inline bool plan_runs_many(const struct jit_plan *p)
{
    return p->whole && !p->spins && !p->borrows;
}
