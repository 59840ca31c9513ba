/* Runs whole blocks of threads in compiled code, several of a row of the grid in one call. */
#include "device/cpu/interp/native_internal.h"

/* ---- the blocks that it runs ---- */

/* Chunk by chunk of all of them, if they have several rows: so memory is accessed along rows of the grid, and lines of an image whose pitch
 * is a power of two, which hosts confuse, are not accessed one behind the other. */
static bool goes_across(const struct block_run *r, uint32_t blocks)
{
    const uint32_t *b = r->grid->launch->block;

    return blocks > 1 && b[1] > 1 && !r->shared_bytes && r->lanes.count % r->grid->code->native->lanes == 0;
}

void native_set_blocks(struct native_call *c, const struct block_run *r, uint32_t blocks)
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

void native_find_block(struct block_run *r)
{
    const struct native_call *c = r->native;

    r->block_number = r->block_number - r->block[0] + c->ctaid[0];
    r->block[0] = c->ctaid[0];
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
        native_take_out(r->native, a, lanes);
        at += lanes;
    }
    for (; at < left.end; at += lanes) {
        memset(a->current.m + at, 0, lanes);
        native_stand_before(a, left.block, at, ~0u >> (32 - lanes), lanes);
    }
    native_measure_reached(r, a);
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
    to = *ran ? native_only_block(c) : NO_BLOCK;
    if (to == NO_BLOCK || n->passes[to] != PASSES_RETURN)
        return false;
    native_forget_chunk(c, to);
    return true;
}

/* The chunks of the strips at *at one after the other, from where they left. Whether all have returned; *at is the last of them that ran. */
static bool finish_strip(struct native_call *c, const struct code_native *n, uint32_t *at, bool *ran, struct left_over *left)
{
    *left = (struct left_over){*at + c->strip_left * n->strip, c->strip_block};
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
    to = *ran ? native_only_block(c) : NO_BLOCK;
    if (to == NO_BLOCK || n->passes[to] != PASSES_RETURN)
        return false;
    native_forget_chunk(c, to);
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
    native_set_blocks(c, r, blocks);
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
            native_find_block(r);
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
    native_find_block(r);
    return true;
}
