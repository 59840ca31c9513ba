/* The files native*.c of device/cpu/interp/ among themselves. */
#pragma once

#include "device/cpu/interp/interp.h"
#include "device/cpu/jit/native.h"
#include "device/cpu/runtime/launch.h"

enum { BYTES_OF_LANES = 8, RUNS_PER_CLOCK = 64 };

/* Adds ones to eight bytes of 0 or 1. */
static inline void add_lanes(uint8_t *lanes, uint32_t bits)
{
    uint64_t v, more = ((bits & 0xff) * 0x0101010101010101ull) & 0x8040201008040201ull;

    memcpy(&v, lanes, sizeof v);
    more = (((more & 0x7f7f7f7f7f7f7f7full) + 0x7f7f7f7f7f7f7f7full) | more) >> 7 & 0x0101010101010101ull;
    v |= more;
    memcpy(lanes, &v, sizeof v);
}

/* device/cpu/interp/native_access.c: c->access and c->operate. */
void native_access(struct native_call *c);
void native_operate(struct native_call *c);

/* device/cpu/interp/native_chunks.c: the lanes of a chunk that has left, which now stand before the blocks that it names. */
void native_take_out(struct native_call *c, struct activation *a, unsigned lanes);
/* The lanes of a chunk now stand before a block. */
void native_stand_before(struct activation *a, uint32_t block, uint32_t lane, uint32_t bits, unsigned lanes);
/* After those. */
void native_measure_reached(struct block_run *r, struct activation *a);
/* The block before which all lanes of a chunk stand; NO_BLOCK: they have parted, or are tired. */
uint32_t native_only_block(struct native_call *c);
void     native_forget_chunk(struct native_call *c, uint32_t block);

/* device/cpu/interp/native_held.c: c->settle. */
void native_settle(struct native_call *c);
/* The chunk there stands before `block`: what it holds goes to the arrays of all its lanes. `trusted`: it was when it came in, so all its registers have
 * their shapes, and any may be held; else those that it changed. */
void native_fill(struct native_call *c, uint32_t lane, uint32_t block, bool trusted);

/* device/cpu/interp/native_blocks.c: the blocks of threads that a call runs, from the current one on; and r->block becomes the one that compiled code is in. */
void native_set_blocks(struct native_call *c, const struct block_run *r, uint32_t blocks);
void native_find_block(struct block_run *r);
