/* The strips of a band, one after the other. device/cpu/jit/emit/band.c */
#pragma once

#include "device/cpu/jit/emit/flow.h"

/* Of the loop that is being made. */
struct band {
    llvm_block  loop;
    llvm_value  strip;                      /* which one, in 32 bits */
    llvm_value *first_value, *first_turn;   /* [registers_count] of the first strip, before the loop */
    llvm_value *result_value, *result_turn; /* [registers_count] of lines that are written: of the first strip, when that has run */
    llvm_value  lane, block;                /* the emitter's */
};

/* False: out of memory. It is finished in any case. */
bool band_make(struct band *d, const struct jit_plan *p);
void band_finish(struct band *d);
/* The block reads or writes device memory: its strips have to go through it. */
bool is_accessed(const struct emitter *e, uint32_t block);
/* What is made between the two is done for each strip, with its registers; behind them, registers are the first one's again. */
void begin_each_strip(struct emitter *e, struct band *d);
void end_each_strip(struct emitter *e, struct band *d);
/* The block's instructions, for those lanes of each strip that have not returned. */
void emit_strip_insns(struct emitter *e, struct band *d);
