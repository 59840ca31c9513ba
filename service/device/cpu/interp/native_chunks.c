/* Runs compiled blocks: a chunk of lanes at a time, between the interpreter's own blocks. */
#include "device/cpu/interp/native_internal.h"

#include <assert.h>

/* One bit for each byte of eight, which are 0 or 1. */
static uint32_t bits_of(const uint8_t *lanes)
{
    uint64_t v;

    memcpy(&v, lanes, sizeof v);
    return (uint32_t)((v * 0x0102040810204080ull) >> 56);
}

void native_stand_before(struct activation *a, uint32_t block, uint32_t lane, uint32_t bits, unsigned lanes)
{
    for (unsigned k = 0; k < lanes; k += BYTES_OF_LANES)
        add_lanes(a->pending[block].m + lane + k, bits >> k);
    a->pending_bits[block / 64] |= 1ull << (block % 64);
    a->deferred_bits[block / 64] &= ~(1ull << (block % 64));
    a->reached[block / 64] |= 1ull << (block % 64);
}

void native_take_out(struct native_call *c, struct activation *a, unsigned lanes)
{
    for (unsigned w = 0; w < COUNT(c->touched); w++) {
        while (c->touched[w]) {
            uint32_t block = w * 64 + (uint32_t)__builtin_ctzll(c->touched[w]);

            c->touched[w] &= c->touched[w] - 1;
            native_stand_before(a, block, c->lane, c->pending[block], lanes);
            c->pending[block] = 0;
        }
    }
}

static uint32_t chunk_bits(const struct mask *m, uint32_t at, unsigned lanes)
{
    uint32_t bits = 0;

    for (unsigned k = 0; k < lanes; k += BYTES_OF_LANES)
        bits |= bits_of(m->m + at + k) << k;
    return bits;
}

static uint32_t chunk_live(const struct block_run *r, uint32_t at)
{
    const struct mask live = {.m = r->live};

    return chunk_bits(&live, at, r->grid->code->native->lanes);
}

void native_measure_reached(struct block_run *r, struct activation *a)
{
    for (uint32_t w = 0; w < a->words; w++) {
        while (a->reached[w]) {
            uint32_t block = w * 64 + (uint32_t)__builtin_ctzll(a->reached[w]);

            a->reached[w] &= a->reached[w] - 1;
            mask_measure(&a->pending[block], r->lanes.count);
        }
    }
}

uint32_t native_only_block(struct native_call *c)
{
    uint32_t block = c->mixed ? NO_BLOCK : c->last;

    c->leaves = c->mixed = 0;
    return block;
}

void native_forget_chunk(struct native_call *c, uint32_t block)
{
    c->touched[block / 64] = 0;
    c->pending[block] = 0;
}

/* Chunks that were run so far went to `same` as one: they are noted as the others are. */
static void part(struct native_call *c, struct activation *a, uint32_t from, uint32_t to, unsigned lanes, uint32_t same)
{
    for (uint32_t at = from; same != NO_BLOCK && at < to; at += lanes) {
        uint32_t bits = chunk_bits(&a->current, at, lanes);

        if (bits) {
            native_fill(c, at, same, c->trusted);
            native_stand_before(a, same, at, bits, lanes);
        }
        memset(a->current.m + at, 0, lanes);
    }
}

/* Runs all lanes of current. The block before which all of them stand then; or NO_BLOCK: they are pending, but for those that compiled
 * code refused, which stay in current. */
static uint32_t run_chunks(struct block_run *r, struct activation *a, uint32_t block)
{
    const struct code_native *n = a->code->native;
    struct native_call       *c = r->native;
    uint32_t                  low = a->current.low / n->lanes * n->lanes, same = NO_BLOCK;
    bool                      parted = false, refused = false, all = c->trusted && a->current.count == r->lanes.count;

    for (uint32_t at = low; at < a->current.high; at += n->lanes, all = false) {
        uint32_t bits = chunk_bits(&a->current, at, n->lanes), to, stopped;

        if (!bits)
            continue;
        c->lane = at;
        c->live = n->warps ? chunk_live(r, at) : bits;
        stopped = n->run(c, at, bits, block, all ? r->lanes.count : at + 1, NO_BLOCK);
        if ((stopped & ~NATIVE_REFUSED) > at) { /* the first round: nothing has parted */
            same = c->same;
            at = stopped & ~NATIVE_REFUSED;
        }
        if (stopped & NATIVE_REFUSED) {
            part(c, a, low, at, n->lanes, same);
            same = NO_BLOCK;
            parted = refused = true;
            continue;
        }
        to = native_only_block(c);
        c->doubted |= to == NO_BLOCK;
        if (!parted && to != NO_BLOCK && (same == NO_BLOCK || same == to)) {
            same = to;
            native_forget_chunk(c, to);
            continue;
        }
        part(c, a, low, at, n->lanes, same);
        same = NO_BLOCK;
        parted = true;
        memset(a->current.m + at, 0, n->lanes);
        assert(to != NO_BLOCK || !c->held[at]);
        native_fill(c, at, to, c->trusted);
        native_take_out(c, a, n->lanes);
    }
    if (!parted)
        return same;
    native_measure_reached(r, a);
    if (refused)
        mask_measure(&a->current, r->lanes.count);
    else
        a->current = (struct mask){.m = a->current.m};
    return NO_BLOCK;
}

/* All chunks of current went to `block` as one, and somebody else goes on there. */
static void fill_all(struct block_run *r, const struct activation *a, uint32_t block, bool trusted)
{
    const struct code_native *n = r->grid->code->native;
    unsigned                  lanes = n->lanes;

    for (uint32_t at = a->current.low / lanes * lanes; n->lines_count && at < a->current.high; at += lanes) {
        if (r->native->held[at] && chunk_bits(&a->current, at, lanes))
            native_fill(r->native, at, block, trusted);
    }
}

uint32_t native_run(struct block_run *r, struct activation *a, uint32_t *block)
{
    const struct code_native *n = a->code->native;
    struct native_call       *c = r->native;
    uint32_t                  next;
    bool                      trusted;

    c->frame = a->frame;
    native_set_blocks(c, r, 1);
    c->strips = 0;
    for (;;) {
        if (a->code->blocks[*block].count)
            r->lanes.current = &a->code->ops[a->code->blocks[*block].first];
        c->active = true;
        c->entered = *block;
        next = run_chunks(r, a, *block);
        c->active = false;
        trusted = c->trusted;
        c->trusted = 0;
        if (++r->back_edges % RUNS_PER_CLOCK == 0 || c->tired)
            check_clock(r);
        r->tired = c->tired && n->spins;
        c->tired = 0;
        if (next == NO_BLOCK || n->passes[next] != PASSES_BARRIER || a->current.count != r->live_count || !n->entry[next + 1])
            break;
        if (c->doubted)
            fill_all(r, a, next, trusted);
        *block = next + 1; /* all came to the barrier, and go on */
        c->trusted = !c->doubted;
    }
    if (next != NO_BLOCK && n->passes[next] != PASSES_RETURN) /* where nobody reads registers */
        fill_all(r, a, next, trusted);
    return next;
}
