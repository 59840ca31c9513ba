/* Strips: chunks that follow each other and run as one wide chunk, as long as all their lanes do the same. */
#pragma once

#include "device/cpu/jit/plan.h"

/* Chunks of a strip. A value then takes up to eight of the host's vector registers; with twice as many, they do not hold what a kernel needs. */
enum { STRIP_CHUNKS = 4, STRIP_LANES_MAX = STRIP_CHUNKS * NATIVE_LANES_MAX };
/* Strips of a band, which go through each block one after the other; what is computed once for a strip is then computed once for all of them.
 * Sixteen of 64 lanes are a row of an image of 1024: heat2d took 1.06 times plain C's time with eight and 1.03 with sixteen; 32 are no better (A/B in
 * turns, 2026-11-29). */
enum { BAND_STRIPS_MAX = 16, BAND_LANES_MAX = BAND_STRIPS_MAX * STRIP_LANES_MAX };

struct jit_strip {
    struct jit_plan plan;  /* a copy of the chunk's, with the strip's lanes and its own shapes */
    uint8_t        *late;  /* [blocks_count] 1: before it, something may have been stored, or a loop gone round */
    bool            bands; /* from block to block, nothing is kept but lines and what is the same for all lanes */
    bool            parts; /* and some lanes of a band may go on while those before and behind them return */
};

/* `across`: the chunks are the rows of blocks that follow each other in the grid, one chunk long each; else they follow each other in one row. False:
 * the kernel has no strips. It is finished in any case. */
bool strip_make(struct jit_strip *s, const struct jit_plan *p, bool across, bool masked);
void strip_finish(struct jit_strip *s);

/* Of a strip across blocks: %ctaid.x * %ntid.x + %tid.x, which grows by 1 from lane to lane. */
bool strip_counts(const struct jit_plan *p, const struct ptx_insn *in);
