/* Runs compiled blocks: a chunk of lanes at a time, between the interpreter's own blocks. */
#include "device/cpu/jit/native.h"

#include <stdlib.h>

#include "device/cpu/jit/subset.h"
#include "device/cpu/runtime/launch.h"

enum { BYTES_OF_LANES = 8, RUNS_PER_CLOCK = 64, PAGE_GRAIN = 4096 };

/* One bit for each byte of eight, which are 0 or 1. */
static uint32_t bits_of(const uint8_t *lanes)
{
    uint64_t v;

    memcpy(&v, lanes, sizeof v);
    return (uint32_t)((v * 0x0102040810204080ull) >> 56);
}

/* Adds ones to eight bytes of 0 or 1. */
static void add_lanes(uint8_t *lanes, uint32_t bits)
{
    uint64_t v, more = ((bits & 0xff) * 0x0101010101010101ull) & 0x8040201008040201ull;

    memcpy(&v, lanes, sizeof v);
    more = (((more & 0x7f7f7f7f7f7f7f7full) + 0x7f7f7f7f7f7f7f7full) | more) >> 7 & 0x0101010101010101ull;
    v |= more;
    memcpy(lanes, &v, sizeof v);
}

bool native_begins(const struct code *c, uint32_t block)
{
    return c->native->entry[block];
}

/* ---- the blocks that it runs ---- */

/* Chunk by chunk of all of them, if they have several rows: so memory is accessed along rows of the grid, and lines of an image whose pitch
 * is a power of two, which hosts confuse, are not accessed one behind the other. */
static bool goes_across(const struct block_run *r, uint32_t blocks)
{
    const uint32_t *b = r->grid->launch->block;

    return blocks > 1 && b[1] > 1 && !r->shared_bytes && r->lanes.count % r->grid->code->native->lanes == 0;
}

static void set_blocks(struct native_call *c, const struct block_run *r, uint32_t blocks)
{
    memcpy(c->ctaid, r->block, sizeof c->ctaid);
    c->first_x = r->block[0];
    c->end_x = r->block[0] + blocks;
    c->across = goes_across(r, blocks);
}

/* Whether several chunks of such blocks may run as one. */
static void allow_strips(struct native_call *c, const struct block_run *r)
{
    const struct code_native *n = r->grid->code->native;
    const uint32_t           *b = r->grid->launch->block;

    c->strip_align = 0;
    if (n->across) {
        c->strips = n->strip && c->across && b[0] == n->lanes;
        return;
    }
    c->strips = n->strip && !c->across && (b[1] * b[2] == 1 || b[0] % n->strip == 0);
    if (b[1] * b[2] != 1)
        c->strip_align = n->strip - 1;
}

/* r->block becomes the block that compiled code is in. */
static void find_block(struct block_run *r)
{
    const struct native_call *c = r->native;

    r->block_number = r->block_number - r->block[0] + c->ctaid[0];
    r->block[0] = c->ctaid[0];
}

/* ---- accesses that need a look at each lane ---- */

/* The operation of that instruction that the interpreter would run. */
static const struct op *op_of(const struct code *c, const struct ptx_insn *in)
{
    for (uint32_t i = 0; i < c->ops_count; i++) {
        if (c->ops[i].insn == in && c->ops[i].addresses)
            return &c->ops[i];
    }
    return NULL;
}

static void fill_addresses(struct native_call *c)
{
    for (uint32_t i = 0; c->line_step != (int64_t)NATIVE_EACH && i < NATIVE_LANES_MAX; i++)
        c->addresses[i] = c->line_address + (uint64_t)c->line_step * i + (i >= c->line_turn ? (uint64_t)c->line_wrapped : 0);
}

KERNEL_MEMORY static void access_lanes(struct native_call *c)
{
    struct block_run         *r = c->run;
    const struct code        *code = r->grid->code;
    const struct ptx_insn    *in = &code->native->function->insns[c->insn];
    bool                      load = in->opcode != PTX_OP_ST;
    const struct ptx_operand *moved = &in->operands[load ? 0 : 1];
    unsigned                  count = moved->kind == PTX_VECTOR ? moved->count : 1, bytes = ptx_type_bytes((enum ptx_type)in->type);
    enum op_space             space = OP_GENERIC;
    uint32_t                  first = NATIVE_LANES_MAX;

    native_space(in, &in->operands[load ? 1 : 0], &space);
    fill_addresses(c);
    find_block(r);
    r->lanes.current = op_of(code, in);
    for (uint32_t i = 0; i < NATIVE_LANES_MAX; i++) {
        uint8_t *at;

        if (!(c->lanes >> i & 1))
            continue;
        first = first < i ? first : i;
        at = lane_pointer(&r->lanes, space, c->addresses[i], bytes * count, c->lane + i);
        for (unsigned k = 0; k < count; k++) {
            if (load)
                c->values[k][i] = 0;
            memcpy(load ? (void *)&c->values[k][i] : at + k * bytes, load ? at + k * bytes : (void *)&c->values[k][i], bytes);
        }
    }
    /* All lanes at one address: the first element is that of all. */
    for (unsigned k = 0; load && k < count && first < NATIVE_LANES_MAX; k++)
        c->values[k][0] = c->lanes & 1 ? c->values[k][0] : c->values[k][first];
}

/* Hosts gather in any order: the fault is that of the first lane whose page is no allocation's. Allocations end with their last page, but
 * for less than 256 bytes. */
static bool is_astray(const struct block_run *r, uint64_t at)
{
    return cpu_memory_left(r->grid->memory, (at | (PAGE_GRAIN - 1)) - 255) == 0;
}

/* The access of a strip becomes that of the chunk in it whose lane went astray first; chunks of a strip have all their lanes. */
static void find_chunk(struct native_call *c, const struct block_run *r, int64_t step)
{
    const struct code_native *n = r->grid->code->native;
    uint32_t                  at = 0;

    while (at < n->strip && !is_astray(r, c->address + (uint64_t)step * at))
        at++;
    at = at < n->strip ? at / n->lanes : 0;
    if (n->across)
        c->ctaid[0] += at;
    else
        c->lane += at * n->lanes;
    c->address += (uint64_t)step * at * n->lanes;
    c->lanes = ~0u >> (32 - n->lanes);
}

void native_explain(struct block_run *r)
{
    struct native_call    *c = r->native;
    struct lanes          *l = &r->lanes;
    const struct code     *code = r->grid->code;
    const struct ptx_insn *in;
    const struct op       *o;
    int64_t                step;

    if (!c || !c->active || !code->native) /* an earlier launch may have faulted in its compiled code */
        return;
    c->active = false;
    in = &code->native->function->insns[c->insn];
    step = code->native->ops[c->insn].step;
    if (c->lanes == NATIVE_STRIP) {
        step = code->native->ops[c->insn].strip_step;
        find_chunk(c, r, step);
    }
    find_block(r);
    o = op_of(code, in);
    l->current = o;
    if (!o)
        return;
    l->low = c->lane;
    l->high = c->lane + code->native->lanes < l->count ? c->lane + code->native->lanes : l->count;
    l->m = activation_now(r)->guard.m;
    for (uint32_t i = l->high; i-- > l->low;) {
        uint32_t k = i - c->lane;
        uint64_t at = step == (int64_t)NATIVE_EACH ? c->addresses[k] : c->address + (uint64_t)step * k;

        activation_now(r)->guard.m[i] = c->lanes >> k & 1;
        LANE(uint64_t, o->a)[i] = at - (uint64_t)o->immediate;
        if ((c->lanes >> k & 1) && is_astray(r, at))
            r->guard.address = at;
    }
}

/* ---- operations that the interpreter lends ---- */

static void operate(struct native_call *c)
{
    struct block_run        *r = c->run;
    struct lanes            *l = &r->lanes;
    const struct code       *code = r->grid->code;
    const struct native_ops *ops = &code->native->ops[c->insn];
    struct mask              m = {.m = c->mask, .low = c->lane, .count = (uint32_t)__builtin_popcount(c->lanes)};

    if (!c->lanes)
        return;
    find_block(r);
    m.high = m.low + 32 - (uint32_t)__builtin_clz(c->lanes);
    m.low += (uint32_t)__builtin_ctz(c->lanes);
    for (unsigned k = 0; k < code->native->lanes; k += BYTES_OF_LANES)
        add_lanes(c->mask + c->lane + k, c->lanes >> k);
    c->active = false;
    for (uint32_t i = ops->first; i < ops->first + ops->count; i++) {
        lanes_use(l, &m);
        l->current = &code->ops[i];
        code->ops[i].run(l, &code->ops[i]);
    }
    c->active = true;
    memset(c->mask + c->lane, 0, code->native->lanes);
}

/* ---- chunks ---- */

/* The lanes of a chunk now stand before a block. */
static void stand_before(struct activation *a, uint32_t block, uint32_t lane, uint32_t bits, unsigned lanes)
{
    for (unsigned k = 0; k < lanes; k += BYTES_OF_LANES)
        add_lanes(a->pending[block].m + lane + k, bits >> k);
    a->pending_bits[block / 64] |= 1ull << (block % 64);
    a->deferred_bits[block / 64] &= ~(1ull << (block % 64));
    a->reached[block / 64] |= 1ull << (block % 64);
}

static void take_out(struct native_call *c, struct activation *a, unsigned lanes)
{
    for (unsigned w = 0; w < COUNT(c->touched); w++) {
        while (c->touched[w]) {
            uint32_t block = w * 64 + (uint32_t)__builtin_ctzll(c->touched[w]);

            c->touched[w] &= c->touched[w] - 1;
            stand_before(a, block, c->lane, c->pending[block], lanes);
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

static void measure_reached(struct block_run *r, struct activation *a)
{
    for (uint32_t w = 0; w < a->words; w++) {
        while (a->reached[w]) {
            uint32_t block = w * 64 + (uint32_t)__builtin_ctzll(a->reached[w]);

            a->reached[w] &= a->reached[w] - 1;
            mask_measure(&a->pending[block], r->lanes.count);
        }
    }
}

/* The block before which all lanes of a chunk stand; NO_BLOCK: they have parted, or are tired. */
static uint32_t only_block(struct native_call *c)
{
    uint32_t block = c->mixed ? NO_BLOCK : c->last;

    c->leaves = c->mixed = 0;
    return block;
}

static void forget_chunk(struct native_call *c, uint32_t block)
{
    c->touched[block / 64] = 0;
    c->pending[block] = 0;
}

/* Chunks that were run so far went to `same` as one: they are noted as the others are. */
static void part(struct activation *a, uint32_t from, uint32_t to, unsigned lanes, uint32_t same)
{
    for (uint32_t at = from; same != NO_BLOCK && at < to; at += lanes) {
        uint32_t bits = chunk_bits(&a->current, at, lanes);

        if (bits)
            stand_before(a, same, at, bits, lanes);
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
            part(a, low, at, n->lanes, same);
            same = NO_BLOCK;
            parted = refused = true;
            continue;
        }
        to = only_block(c);
        if (!parted && to != NO_BLOCK && (same == NO_BLOCK || same == to)) {
            same = to;
            forget_chunk(c, to);
            continue;
        }
        part(a, low, at, n->lanes, same);
        same = NO_BLOCK;
        parted = true;
        memset(a->current.m + at, 0, n->lanes);
        take_out(c, a, n->lanes);
    }
    if (!parted)
        return same;
    measure_reached(r, a);
    if (refused)
        mask_measure(&a->current, r->lanes.count);
    else
        a->current = (struct mask){.m = a->current.m};
    return NO_BLOCK;
}

uint32_t native_run(struct block_run *r, struct activation *a, uint32_t *block)
{
    const struct code_native *n = a->code->native;
    struct native_call       *c = r->native;
    uint32_t                  next;

    c->frame = a->frame;
    set_blocks(c, r, 1);
    c->strips = 0;
    for (;;) {
        if (a->code->blocks[*block].count)
            r->lanes.current = &a->code->ops[a->code->blocks[*block].first];
        c->active = true;
        next = run_chunks(r, a, *block);
        c->active = false;
        c->trusted = 0;
        if (++r->back_edges % RUNS_PER_CLOCK == 0 || c->tired)
            check_clock(r);
        r->tired = c->tired && n->spins;
        c->tired = 0;
        if (next == NO_BLOCK || n->passes[next] != PASSES_BARRIER || a->current.count != r->live_count || !n->entry[next + 1])
            return next;
        *block = next + 1; /* all came to the barrier, and go on */
        c->trusted = 1;
    }
}

/* ---- whole blocks ---- */

/* The chunk that follows the one at lane *at of block c->ctaid[0]; false: there is none. */
static bool next_turn(struct native_call *c, const struct code_native *n, uint32_t count, uint32_t *at)
{
    if (c->across ? c->ctaid[0] + 1 < c->end_x : *at + n->lanes >= count) {
        if (!c->across)
            *at = 0;
        return ++c->ctaid[0] < c->end_x;
    }
    *at += n->lanes;
    if (c->across)
        c->ctaid[0] = c->first_x;
    return *at < count;
}

/* Lanes that a strip left before `block`: those below `end` that have not run since. */
struct left_over {
    uint32_t end, block;
};

/* Lanes below `at` have returned; those of the chunk there stand where compiled code left them, if it ran; then come those of `left`, and the others
 * have not begun. */
static void hand_over(struct block_run *r, uint32_t at, bool ran, struct left_over left, void (*start)(struct block_run *r))
{
    struct activation *a;
    unsigned           lanes = r->grid->code->native->lanes;

    start(r);
    a = activation_now(r);
    memset(r->live, 0, at);
    r->live_count -= at;
    memset(a->current.m, 0, at);
    if (ran) {
        memset(a->current.m + at, 0, lanes);
        take_out(r->native, a, lanes);
        at += lanes;
    }
    for (; at < left.end; at += lanes) {
        memset(a->current.m + at, 0, lanes);
        stand_before(a, left.block, at, ~0u >> (32 - lanes), lanes);
    }
    measure_reached(r, a);
    mask_measure(&a->current, r->lanes.count);
}

/* One chunk, from `block` on. Whether its lanes have returned; *ran: it ran at all. */
static bool run_alone(struct native_call *c, const struct code_native *n, uint32_t at, uint32_t block, bool *ran)
{
    uint32_t end_x = c->end_x, to;

    *ran = n->entry[block];
    if (!*ran)
        return false;
    c->lane = at;
    c->live = ~0u >> (32 - n->lanes);
    c->end_x = c->ctaid[0] + 1;
    *ran = !(n->run(c, at, c->live, block, at + 1, NO_BLOCK) & NATIVE_REFUSED);
    c->end_x = end_x;
    to = *ran ? only_block(c) : NO_BLOCK;
    if (to == NO_BLOCK || n->passes[to] != PASSES_RETURN)
        return false;
    forget_chunk(c, to);
    return true;
}

/* The chunks of the strip at *at one after the other, from where it left. Whether all have returned; *at is the last of them that ran. */
static bool finish_strip(struct native_call *c, const struct code_native *n, uint32_t *at, bool *ran, struct left_over *left)
{
    *left = (struct left_over){*at + n->strip, c->strip_block};
    c->strip_left = 0;
    while (run_alone(c, n, *at, left->block, ran)) {
        if (*at + n->lanes == left->end)
            return true;
        *at += n->lanes;
    }
    return false;
}

/* Chunks from *at on, as many as compiled code runs by itself. Whether all have returned; *at is the last of them that ran. */
static bool run_from_start(struct block_run *r, uint32_t *at, bool *ran, struct left_over *left)
{
    const struct code_native *n = r->grid->code->native;
    struct native_call       *c = r->native;
    uint32_t                  count = r->lanes.count, to, stopped;

    *left = (struct left_over){0, 0};
    c->lane = *at;
    c->live = count - *at < n->lanes ? (1u << (count - *at)) - 1 : ~0u >> (32 - n->lanes);
    stopped = n->run(c, *at, c->live, 0, count, n->returns);
    *at = stopped & ~NATIVE_REFUSED; /* those before have returned */
    *ran = !(stopped & NATIVE_REFUSED);
    if (*ran && c->strip_left)
        return finish_strip(c, n, at, ran, left);
    to = *ran ? only_block(c) : NO_BLOCK;
    if (to == NO_BLOCK || n->passes[to] != PASSES_RETURN)
        return false;
    forget_chunk(c, to);
    return true;
}

bool native_run_whole(struct block_run *r, void (*start)(struct block_run *r), uint32_t blocks, uint32_t lane, struct native_rest *rest)
{
    const struct code        *code = r->grid->code;
    const struct code_native *n = code->native;
    struct native_call       *c = r->native;
    uint32_t                  count = r->lanes.count, at = lane;

    r->depth = 1;
    r->lanes.frame = c->frame = r->activations[0].frame;
    r->lanes.current = NULL;
    set_blocks(c, r, blocks);
    allow_strips(c, r);
    if (blocks > 1 || r->starts++ % RUNS_PER_CLOCK == 0)
        check_clock(r);
    if (n->fills)
        fill_specials(r, &r->activations[0]);
    c->active = true;
    for (;;) {
        struct left_over left;
        bool             ran;

        if (!run_from_start(r, &at, &ran, &left)) {
            c->active = false;
            c->tired = 0;
            find_block(r);
            *rest = (struct native_rest){c->first_x, c->end_x, c->across ? at + n->lanes : count, c->across ? at : 0};
            hand_over(r, at, ran, left, start);
            check_clock(r);
            return false;
        }
        if (!next_turn(c, n, count, &at))
            break;
    }
    c->active = false;
    r->depth = 0;
    c->ctaid[0] = c->end_x - 1;
    find_block(r);
    return true;
}

/* ---- start and end ---- */

/* They stay as long as blocks have the same shape. */
static bool make_mask(struct native_call *c, const struct block_run *r)
{
    if (c->mask && c->stride >= r->lanes.stride)
        return true;
    free(c->mask);
    c->mask = calloc(r->lanes.stride, 1);
    return c->mask != NULL;
}

static bool make_thread_ids(struct native_call *c, const struct block_run *r)
{
    const uint32_t *b = r->grid->launch->block;
    size_t          n = r->lanes.stride;

    if (c->tid[0] && memcmp(c->ntid, b, sizeof c->ntid) == 0)
        return true;
    free(c->tid[0]);
    c->tid[0] = calloc(3 * n, sizeof *c->tid[0]);
    if (!c->tid[0])
        return false;
    memcpy(c->ntid, b, sizeof c->ntid);
    c->tid[1] = c->tid[0] + n;
    c->tid[2] = c->tid[0] + 2 * n;
    for (size_t i = 0; i < n; i++) {
        c->tid[0][i] = (uint32_t)i % b[0];
        c->tid[1][i] = (uint32_t)i / b[0] % b[1];
        c->tid[2][i] = (uint32_t)i / b[0] / b[1];
    }
    return true;
}

/* What a fault may have left behind. */
static void forget_all(struct native_call *c)
{
    memset(c->touched, 0, sizeof c->touched);
    memset(c->pending, 0, sizeof c->pending);
    c->active = false;
    c->leaves = c->mixed = c->tired = c->trusted = c->strip_left = 0;
}

enum status native_prepare(struct block_run *r)
{
    const struct grid_run *g = r->grid;
    struct native_call    *c = r->native = r->native ? r->native : calloc(1, sizeof *c);

    if (!c || !make_thread_ids(c, r) || !make_mask(c, r))
        return STATUS_OUT_OF_MEMORY;
    forget_all(c);
    memset(c->mask, 0, r->lanes.stride);
    c->stride = r->lanes.stride;
    c->params = g->launch->params;
    c->memory_base = g->memory_base;
    c->memory_span = g->memory_span;
    c->shared = r->shared;
    c->shared_bytes = r->shared_bytes;
    c->local = r->local;
    c->local_bytes = r->local_bytes;
    c->budget = NATIVE_BACK_EDGES;
    c->contended = &g->contended;
    c->access = access_lanes;
    c->operate = operate;
    c->run = r;
    memcpy(c->nctaid, g->launch->grid, sizeof c->nctaid);
    return STATUS_OK;
}

void native_finish(struct block_run *r)
{
    if (r->native) {
        free(r->native->tid[0]);
        free(r->native->mask);
    }
    free(r->native);
    r->native = NULL;
}
