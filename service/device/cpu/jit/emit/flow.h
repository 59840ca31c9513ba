/* The files of device/cpu/jit/emit/ among themselves: lanes on their way through blocks and chunks. */
#pragma once

#include "device/cpu/jit/emit/emit.h"

/* device/cpu/jit/emit/emit.c */
const struct code_block *block_of(const struct emitter *e, uint32_t block);
llvm_value               parameter(const struct emitter *e, unsigned i); /* of the function */
llvm_value               all_lanes(const struct emitter *e);             /* their bits */
llvm_value               load_slot(struct emitter *e, llvm_type type, llvm_value slot);

/* device/cpu/jit/emit/array.c: from the interpreter's array. Of a register that stands for all lanes, `trusted`: the first lane's alone; else also
 * whether all lanes of `mask` have the register's shape: otherwise *bad gets a bit. */
void fetch_register(struct emitter *e, uint32_t reg, llvm_value mask, llvm_value first, bool trusted, llvm_value *bad);
/* All that are still needed there, of lanes that leave the present block for `block`. */
void save_registers(struct emitter *e, uint32_t block, llvm_value mask);
/* All of those, for all lanes, which leave as one: they are held there. No line among them has wrapped. */
void hold_registers(struct emitter *e, uint32_t block);
/* Whether that is so; NULL: none can. */
llvm_value lines_are_straight(struct emitter *e, uint32_t block);
/* Where the lanes of a chunk do not stay together: what was held when it began goes to the arrays of all its lanes. */
void settle_registers(struct emitter *e);

/* device/cpu/jit/emit/flow.c */
size_t     pending_at(uint32_t block);                                         /* where the call keeps the block's waiting lanes */
llvm_value block_bit(const struct emitter *e, uint32_t block, bool and_below); /* in the set of blocks with waiting lanes */
void       note_mixed(struct emitter *e, llvm_value yes);
/* Lanes leave compiled code before a block. */
void leave_there(struct emitter *e, uint32_t block, llvm_value mask);
/* The lanes of `mask` go from a block to another. Ends the present basic block. */
void go_to(struct emitter *e, uint32_t from, uint32_t to, llvm_value mask);
/* The end of the block: on to the next ones. */
void leave_block(struct emitter *e, uint32_t block);

/* device/cpu/jit/emit/block.c: the versions of a block, and its instructions alone. */
void emit_full_block(struct emitter *e, uint32_t block);
void emit_block(struct emitter *e, uint32_t block);
void emit_insns(struct emitter *e);

/* device/cpu/jit/emit/late.c: how chunks with all their lanes, which are trusted, begin there; false: not in a way of its own, and nothing is made. */
bool emit_late_entry(struct emitter *e, uint32_t block);

/* device/cpu/jit/emit/emit.c: places for the registers of e->plan. */
void make_register_slots(struct emitter *e);

/* device/cpu/jit/emit/strip.c: after all blocks. Whether the kernel has strips. */
bool emit_strip(struct emitter *e);
void begin_strip_slots(struct emitter *e);
void strip_emission_free(struct strip_emission *s);

/* device/cpu/jit/emit/chunk.c: the beginning of each chunk, and the end. */
void start_chunks(struct emitter *e);
void emit_done(struct emitter *e);
/* The next chunk begins, those before having left for block `same`. */
void begin_chunk(struct emitter *e, llvm_value inner, llvm_value outer, llvm_value lanes, llvm_value same);
/* The next chunk at once, if it has all its lanes; goes on where it has not. */
void go_on_quickly(struct emitter *e, uint32_t to);
/* Ends the call. */
void stop_at(struct emitter *e, llvm_value result);
