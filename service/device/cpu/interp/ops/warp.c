/* Operations among the 32 threads of a warp: shuffles, votes, matches, reductions, and waiting for named members. */
#include "device/cpu/interp/ops/ops.h"

static uint32_t warp_bits(const uint8_t *m, uint32_t first, uint32_t count)
{
    uint32_t bits = 0, n = count - first < WARP_LANES ? count - first : WARP_LANES;

    for (uint32_t i = 0; i < n; i++)
        bits |= (uint32_t)(m[first + i] & 1) << i;
    return bits;
}

static bool passes(struct block_run *r, uint32_t lane)
{
    if (!r->passes[lane])
        return false;
    r->passes[lane] = 0;
    r->passing--;
    return true;
}

/* A lane may continue when every live member that it names is here, too. The others wait as deferred lanes of `block`: they are tried
 * again whenever lanes join them. */
void warp_gather(struct block_run *r, struct activation *a, uint32_t block)
{
    struct lanes    *l = &r->lanes;
    const struct op *o = &a->code->ops[a->code->blocks[block].first]; /* all operations of an instruction share its guard */
    const uint32_t  *members = LANE(uint32_t, a->code->blocks[block].members);
    const uint8_t   *p = o->guard == OP_NONE ? NULL : LANE(uint8_t, o->guard);
    uint32_t         left = 0;

    for (uint32_t w = a->current.low / WARP_LANES * WARP_LANES; w < a->current.high; w += WARP_LANES) {
        uint32_t here = warp_bits(a->current.m, w, l->count), live = warp_bits(r->live, w, l->count);
        for (uint32_t k = 0; k < WARP_LANES; k++) {
            uint32_t i = w + k;
            if (!(here >> k & 1) || passes(r, i) || (p && (p[i] ^ o->guard_not) == 0) || !(members[i] & live & ~here))
                continue;
            pending_add_lane(a, block, i);
            a->current.m[i] = 0;
            left++;
        }
    }
    if (!left)
        return;
    mask_measure(&a->current, l->count);
    a->deferred_bits[block / 64] |= 1ull << (block % 64);
}

static bool deferred(const struct activation *a, uint32_t block)
{
    return a->deferred_bits[block / 64] >> (block % 64) & 1;
}

static const struct op *warp_op(const struct activation *a, uint32_t block)
{
    return &a->code->ops[a->code->blocks[block].first];
}

/* The lanes of a warp that wait at any bar.warp.sync. */
static uint32_t waiting_for_warp(const struct block_run *r, const struct activation *a, uint32_t warp)
{
    uint32_t bits = 0;

    for (uint32_t b = 0; b < a->code->blocks_count; b++) {
        if (deferred(a, b) && warp_op(a, b)->run == warp_sync)
            bits |= warp_bits(a->pending[b].m, warp, r->lanes.count);
    }
    return bits;
}

static bool release_block(struct block_run *r, struct activation *a, uint32_t block)
{
    struct lanes   *l = &r->lanes;
    const uint32_t *members = LANE(uint32_t, a->code->blocks[block].members);
    bool            any = false;

    for (uint32_t i = 0; i < l->count; i++) {
        uint32_t warp = i / WARP_LANES * WARP_LANES;
        if (!a->pending[block].m[i] || (members[i] & warp_bits(r->live, warp, l->count) & ~waiting_for_warp(r, a, warp)))
            continue;
        r->passing += !r->passes[i];
        r->passes[i] = 1;
        any = true;
    }
    return any;
}

bool warp_release(struct block_run *r, struct activation *a)
{
    bool any = false;

    for (uint32_t b = 0; b < a->code->blocks_count; b++) {
        if (deferred(a, b) && warp_op(a, b)->run == warp_sync)
            any |= release_block(r, a, b);
    }
    if (any)
        memset(a->deferred_bits, 0, a->words * sizeof *a->deferred_bits);
    return any;
}

void warp_stuck(struct block_run *r, struct activation *a)
{
    struct lanes *l = &r->lanes;

    for (uint32_t b = 0; b < a->code->blocks_count; b++) {
        const uint32_t *members = LANE(uint32_t, a->code->blocks[b].members);
        const uint8_t  *here = deferred(a, b) ? memchr(a->pending[b].m, 1, l->count) : NULL;
        uint32_t        lane, warp;
        struct span     text;

        if (!here)
            continue;
        lane = (uint32_t)(here - a->pending[b].m);
        warp = lane / WARP_LANES * WARP_LANES;
        text = span_first(warp_op(a, b)->insn->text, 64);
        l->current = warp_op(a, b);
        block_fault(l, FAULT_TRAP, lane, "`%.*s` waits for threads of its warp that never reach it: members 0x%08x, arrived 0x%08x",
                    SPAN_ARG(text), members[lane] & warp_bits(r->live, warp, l->count), warp_bits(a->pending[b].m, warp, l->count));
    }
    block_fault(l, FAULT_TRAP, -1, "threads wait for threads of their warp that never arrive");
}

/* shfl: `c` holds the clamp in its low 5 bits and the segment mask above bit 8. */
static bool shuffle_source(enum shfl_mode mode, uint32_t lane, uint32_t b, uint32_t c, uint32_t *source)
{
    uint32_t segment = c >> 8 & 31, clamp = c & 31, least = lane & segment, most = least | (clamp & ~segment);
    int32_t  at = 0;
    bool     inside = false;

    b &= 31;
    switch (mode) {
    case SHFL_UP:   at = (int32_t)lane - (int32_t)b; inside = at >= (int32_t)most; break;
    case SHFL_DOWN: at = (int32_t)(lane + b); inside = at <= (int32_t)most; break;
    case SHFL_BFLY: at = (int32_t)(lane ^ b); inside = at <= (int32_t)most; break;
    case SHFL_IDX:  at = (int32_t)(least | (b & ~segment)); inside = at <= (int32_t)most; break;
    }
    *source = inside ? (uint32_t)at : lane;
    return inside;
}

/* Results are gathered before any is written: the destination may be the source. PTX leaves open what a lane gives that does not take part; it is
 * 0, and the predicate speaks of the segment alone (measured on an H100, 2026-11-25: of lanes elsewhere and of those that have ended). */
void warp_shuffle(struct lanes *l, const struct op *o)
{
    const uint32_t *a_ = LANE(uint32_t, o->a), *b_ = LANE(uint32_t, o->b), *c_ = LANE(uint32_t, o->c);
    uint32_t       *d_ = LANE(uint32_t, o->d);
    uint8_t        *p_ = LANE(uint8_t, o->immediate);

    for (uint32_t w = l->low / WARP_LANES * WARP_LANES; w < l->high; w += WARP_LANES) {
        uint32_t n = l->count - w < WARP_LANES ? l->count - w : WARP_LANES, got[WARP_LANES], source;
        bool     inside[WARP_LANES];

        for (uint32_t k = 0; k < n; k++) {
            inside[k] = shuffle_source((enum shfl_mode)o->mode, k, b_[w + k], c_[w + k], &source);
            got[k] = source < n && l->m[w + source] ? a_[w + source] : 0;
        }
        for (uint32_t k = 0; k < n; k++) {
            if (!l->m[w + k])
                continue;
            d_[w + k] = got[k];
            p_[w + k] = inside[k];
        }
    }
}

/* What each lane of one warp contributes, read before any result is written. */
struct warp_view {
    uint32_t first, count, active;
};

static struct warp_view view(const struct lanes *l, uint32_t w)
{
    struct warp_view v = {w, l->count - w < WARP_LANES ? l->count - w : WARP_LANES, warp_bits(l->m, w, l->count)};

    return v;
}

#define EACH_WARP(v) \
    for (struct warp_view v = view(l, l->low / WARP_LANES * WARP_LANES); v.first < l->high; \
         v = v.first + WARP_LANES < l->high ? view(l, v.first + WARP_LANES) : (struct warp_view){.first = l->high})

void warp_vote(struct lanes *l, const struct op *o)
{
    const uint8_t  *a_ = LANE(uint8_t, o->a);
    const uint32_t *members = LANE(uint32_t, o->e);
    uint8_t         flip = (uint8_t)o->immediate;

    EACH_WARP(v) {
        uint32_t ones = 0;

        for (uint32_t k = 0; k < v.count; k++)
            ones |= (v.active >> k & 1 & (uint32_t)(a_[v.first + k] ^ flip)) << k;
        for (uint32_t k = 0; k < v.count; k++) {
            uint32_t i = v.first + k, all = members[i] & v.active, yes = ones & all;
            if (!(v.active >> k & 1))
                continue;
            switch ((enum vote_mode)o->mode) {
            case VOTE_ALL:    LANE(uint8_t, o->d)[i] = yes == all; break;
            case VOTE_ANY:    LANE(uint8_t, o->d)[i] = yes != 0; break;
            case VOTE_UNI:    LANE(uint8_t, o->d)[i] = yes == all || yes == 0; break;
            case VOTE_BALLOT: LANE(uint32_t, o->d)[i] = yes; break;
            }
        }
    }
}

void warp_activemask(struct lanes *l, const struct op *o)
{
    EACH_WARP(v) {
        for (uint32_t k = 0; k < v.count; k++) {
            if (v.active >> k & 1)
                LANE(uint32_t, o->d)[v.first + k] = v.active;
        }
    }
}

/* mode 0: which members hold the same value. mode 1: all of them or none, with a predicate (place `immediate`). */
void warp_match(struct lanes *l, const struct op *o)
{
    const uint32_t *members = LANE(uint32_t, o->e);

    EACH_WARP(v) {
        uint64_t value[WARP_LANES];

        for (uint32_t k = 0; k < v.count; k++)
            value[k] = lane_read(l, o->a, o->width, v.first + k);
        for (uint32_t k = 0; k < v.count; k++) {
            uint32_t i = v.first + k, all = members[i] & v.active, same = 0;
            if (!(v.active >> k & 1))
                continue;
            for (uint32_t j = 0; j < v.count; j++)
                same |= (uint32_t)((all >> j & 1) && value[j] == value[k]) << j;
            if (o->mode)
                LANE(uint8_t, o->immediate)[i] = same == all;
            LANE(uint32_t, o->d)[i] = o->mode && same != all ? 0 : same;
        }
    }
}

static uint32_t reduce_two(enum redux_mode mode, uint32_t x, uint32_t y)
{
    switch (mode) {
    case REDUX_ADD:  return x + y;
    case REDUX_AND:  return x & y;
    case REDUX_OR:   return x | y;
    case REDUX_XOR:  return x ^ y;
    case REDUX_UMIN: return x < y ? x : y;
    case REDUX_UMAX: return x > y ? x : y;
    case REDUX_SMIN: return (int32_t)x < (int32_t)y ? x : y;
    case REDUX_SMAX: return (int32_t)x > (int32_t)y ? x : y;
    }
    return 0;
}

void warp_redux(struct lanes *l, const struct op *o)
{
    const uint32_t *members = LANE(uint32_t, o->e);

    EACH_WARP(v) {
        uint32_t value[WARP_LANES];

        for (uint32_t k = 0; k < v.count; k++)
            value[k] = LANE(uint32_t, o->a)[v.first + k];
        for (uint32_t k = 0; k < v.count; k++) {
            uint32_t all = members[v.first + k] & v.active & ~(1u << k), sum = value[k];
            if (!(v.active >> k & 1))
                continue;
            for (; all; all &= all - 1)
                sum = reduce_two((enum redux_mode)o->mode, sum, value[__builtin_ctz(all)]);
            LANE(uint32_t, o->d)[v.first + k] = sum;
        }
    }
}

/* elect.sync: the lowest member leads. */
void warp_elect(struct lanes *l, const struct op *o)
{
    const uint32_t *members = LANE(uint32_t, o->e);

    EACH_WARP(v) {
        for (uint32_t k = 0; k < v.count; k++) {
            uint32_t i = v.first + k, all = members[i] & v.active;
            if (!(v.active >> k & 1) || !all)
                continue;
            LANE(uint32_t, o->d)[i] = (uint32_t)__builtin_ctz(all);
            LANE(uint8_t, o->immediate)[i] = (uint32_t)__builtin_ctz(all) == k;
        }
    }
}

void warp_sync(struct lanes *l, const struct op *o)
{
    (void)l;
    (void)o;
    __sync_synchronize();
}
