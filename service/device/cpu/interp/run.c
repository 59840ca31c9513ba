/* The heart of the interpreter: which lanes run which basic block next, and leaving a block by branch, return or fault. The lowest block
 * with pending lanes runs next: that is right for any control flow, and lanes join again where paths meet. */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/deadline.h"
#include "device/cpu/bounds.h"
#include "device/cpu/interp/affine.h"
#include "device/cpu/interp/cluster.h"
#include "device/cpu/jit/native.h"

enum { EDGES_PER_CLOCK = 64, BLOCKS_PER_CLOCK = 16 };
/* In units of CPU_SPIN_ROUNDS: a loop that only looks like waiting has mostly ended by then. */
enum { WAITS_FOR_COMPANY = (1 << 14) / CPU_SPIN_ROUNDS };

void lanes_use(struct lanes *l, const struct mask *m)
{
    l->m = m->m;
    l->low = m->low;
    l->high = m->high;
    l->dense = m->count == m->high - m->low;
}

static void mark_pending(struct activation *a, uint32_t block)
{
    a->pending_bits[block / 64] |= 1ull << (block % 64);
    a->deferred_bits[block / 64] &= ~(1ull << (block % 64));
}

static void pending_add(struct activation *a, uint32_t block, const struct mask *m)
{
    if (!m->count)
        return;
    mask_add(&a->pending[block], m);
    mark_pending(a, block);
}

void pending_add_lane(struct activation *a, uint32_t block, uint32_t lane)
{
    struct mask *p = &a->pending[block];

    p->m[lane] = 1;
    if (!p->count || lane < p->low)
        p->low = lane;
    if (!p->count || lane >= p->high)
        p->high = lane + 1;
    p->count++;
    mark_pending(a, block);
}

/* The lowest pending block at or above `from`; deferred ones only if asked. NO_BLOCK when there is none. */
static uint32_t lowest_pending(const struct activation *a, uint32_t from, bool deferred)
{
    for (uint32_t w = from / 64; w < a->words; w++) {
        uint64_t bits = a->pending_bits[w] & (deferred ? ~0ull : ~a->deferred_bits[w]);
        if (w == from / 64)
            bits &= ~0ull << (from % 64);
        if (bits)
            return w * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    return NO_BLOCK;
}

/* current must be empty. */
static void take_pending(struct activation *a, uint32_t block)
{
    struct mask empty = a->current;

    a->current = a->pending[block];
    a->pending[block] = empty;
    a->pending_bits[block / 64] &= ~(1ull << (block % 64));
    a->deferred_bits[block / 64] &= ~(1ull << (block % 64));
}

static _Noreturn void leave_block(struct lanes *l, enum fault_code code, int64_t lane, const struct bad_access *a, const char *format,
                                  va_list args) __attribute__((format(printf, 5, 0)));

static _Noreturn void leave_block(struct lanes *l, enum fault_code code, int64_t lane, const struct bad_access *a, const char *format,
                                  va_list args)
{
    struct block_run *r = l->run;
    char              text[PROBLEM_DETAIL_BYTES / 2];

    vsnprintf(text, sizeof text, format, args);
    block_describe(r, code, lane, a, text);
    r->guard.armed = false;
    siglongjmp(r->guard.jump, 2);
}

_Noreturn void block_fault(struct lanes *l, enum fault_code code, int64_t lane, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    leave_block(l, code, lane, NULL, format, args);
}

_Noreturn void block_fault_access(struct lanes *l, enum fault_code code, int64_t lane, const struct bad_access *a, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    leave_block(l, code, lane, a, format, args);
}

static void check_stop(struct block_run *r)
{
    int stop = atomic_load_explicit(r->grid->stop, memory_order_relaxed);

    if (stop == STOP_CANCEL)
        block_fault(&r->lanes, FAULT_CANCELLED, -1, "cancelled");
    if (stop != STOP_NONE)
        block_fault(&r->lanes, FAULT_TRAP, -1, "another block failed");
}

void check_clock(struct block_run *r)
{
    check_stop(r);
    if (r->grid->deadline != DEADLINE_NEVER && deadline_left_ns(r->grid->deadline) == 0)
        block_fault(&r->lanes, FAULT_TIMEOUT, -1, "the execution deadline, its timeout_ms, passed");
}

/* A loop may wait for lanes, blocks or the host, which run only when it lets them. Loops that read shared state get CPU_SPIN_ROUNDS
 * rounds; then another pending block runs once, each in turn. */
static uint32_t turn_for_others(struct block_run *r, struct activation *a, uint32_t block)
{
    uint32_t other;

    if (++a->spins < CPU_SPIN_ROUNDS)
        return NO_BLOCK;
    a->spins = 0;
    other = lowest_pending(a, a->turn + 1 < a->code->blocks_count ? a->turn + 1 : 0, true);
    if (other == NO_BLOCK)
        other = lowest_pending(a, 0, true);
    if (other == NO_BLOCK || other == block) {
        if (r->grid->company && r->host_thread == 0 && ++r->waits_for_company % WAITS_FOR_COMPANY == 0)
            r->grid->company(r->grid->engine);
        sched_yield();
        return NO_BLOCK;
    }
    a->turn = other;
    return other;
}

/* All of current goes to `target`; returns the block to run next, with its lanes in current. */
static uint32_t enter_block(struct block_run *r, struct activation *a, const struct code_block *from, uint32_t block, uint32_t target)
{
    uint32_t next = NO_BLOCK, low;

    if (target <= block) {
        if (++r->back_edges % EDGES_PER_CLOCK == 0)
            check_clock(r);
        if (from->spins)
            next = turn_for_others(r, a, target);
    }
    low = lowest_pending(a, 0, false);
    if (next == NO_BLOCK && low > target && !a->pending[target].count)
        return target;
    pending_add(a, target, &a->current);
    mask_clear(&a->current);
    if (next == NO_BLOCK)
        next = lowest_pending(a, 0, false);
    take_pending(a, next);
    return next;
}

/* side = the lanes of current whose predicate holds; current keeps the others. */
static void split_lanes(struct block_run *r, struct activation *a, const struct op *o)
{
    struct lanes *l = &r->lanes;

    mask_split(&a->current, &a->side, LANE(uint8_t, o->guard), o->guard_not);
}

static void swap_masks(struct mask *x, struct mask *y)
{
    struct mask t = *x;

    *x = *y;
    *y = t;
}

/* The rest of current continues behind `block`. If it is empty, the lowest pending block is next, or NO_BLOCK. */
static uint32_t fall_through(struct block_run *r, struct activation *a, const struct code_block *b, uint32_t block)
{
    uint32_t next;

    if (a->current.count && block + 1 < a->code->blocks_count)
        return enter_block(r, a, b, block, block + 1);
    mask_clear(&a->current); /* running off the end is a return */
    next = lowest_pending(a, 0, false);
    if (next != NO_BLOCK)
        take_pending(a, next);
    return next;
}

/* The guard of a branch: 1 or 0 when all threads are known to go the same way, else -1. */
static int way_of_all(const struct activation *a, const struct code_block *b)
{
    const struct affine_value *f = b->guard_affine == NO_AFFINE ? NULL : &a->affine[b->guard_affine];

    if (!f || !(f->state & AFFINE_KNOWN))
        return -1;
    return (int)(f->base & 1) ^ b->last.guard_not;
}

static uint32_t take_branch(struct block_run *r, struct activation *a, const struct code_block *b, uint32_t block)
{
    int way = b->last.guard == OP_NONE ? 1 : way_of_all(a, b);

    if (way >= 0)
        return way ? enter_block(r, a, b, block, b->target) : fall_through(r, a, b, block);
    split_lanes(r, a, &b->last);
    if (!a->side.count)
        return fall_through(r, a, b, block);
    if (!a->current.count) {
        swap_masks(&a->current, &a->side);
        return enter_block(r, a, b, block, b->target);
    }
    pending_add(a, b->target, &a->side);
    if (b->target <= block) {
        /* The lanes that stay in the loop come first; the time check is theirs. */
        pending_add(a, block + 1, &a->current);
        mask_clear(&a->current);
        take_pending(a, b->target);
        return enter_block(r, a, b, block, b->target);
    }
    return fall_through(r, a, b, block);
}

static uint32_t branch_table(struct block_run *r, struct activation *a, const struct code_block *b, uint32_t block)
{
    struct lanes   *l = &r->lanes;
    const uint32_t *index = LANE(uint32_t, b->last.a);
    const uint32_t  count = b->table_count;

    mask_clear(&a->side);
    if (b->last.guard != OP_NONE)
        split_lanes(r, a, &b->last);
    else
        swap_masks(&a->current, &a->side);
    for (uint32_t i = a->side.low; i < a->side.high; i++) {
        if (!a->side.m[i])
            continue;
        if (index[i] >= count)
            block_fault(l, FAULT_TRAP, i, "branch index out of range");
        pending_add_lane(a, b->table[index[i]], i);
    }
    if (b->last.guard == OP_NONE)
        mask_clear(&a->current);
    if (++r->back_edges % EDGES_PER_CLOCK == 0)
        check_clock(r);
    return fall_through(r, a, b, block);
}

/* Lanes that exit leave the block for good: no barrier waits for them any more. */
static void leave_lanes(struct block_run *r, struct activation *a, const struct mask *m)
{
    mask_remove(r->live, m);
    r->live_count -= m->count;
    cluster_forget(r, m);
    memset(a->deferred_bits, 0, a->words * sizeof *a->deferred_bits);
}

static uint32_t leave_activation(struct block_run *r, struct activation *a, const struct code_block *b, uint32_t block)
{
    bool gone = b->end == END_EXIT || r->depth == 1;

    mask_clear(&a->side);
    if (b->last.guard != OP_NONE)
        split_lanes(r, a, &b->last);
    else
        swap_masks(&a->current, &a->side);
    if (gone)
        leave_lanes(r, a, &a->side);
    mask_clear(&a->side);
    if (b->last.guard == OP_NONE)
        mask_clear(&a->current);
    return fall_through(r, a, b, block);
}

static uint32_t wait_at_barrier(struct block_run *r, struct activation *a, const struct code_block *b, uint32_t block)
{
    bool all;

    mask_clear(&a->side);
    if (b->last.guard != OP_NONE) {
        split_lanes(r, a, &b->last);
        swap_masks(&a->current, &a->side);
        pending_add(a, block + 1, &a->side);
        mask_clear(&a->side);
    }
    all = a->current.count == 0 || barrier_arrive(r, a, &b->last, block + 1);
    if (!all)
        mask_clear(&a->current);
    return fall_through(r, a, b, block);
}

/* Lanes can run `next`, or no lane can. Then opens barriers that waited only for lanes that left, then warp operations that wait for
 * each other at different places, and waits for other blocks of the cluster. */
static uint32_t next_block(struct block_run *r, struct activation *a)
{
    uint32_t next;
    bool     deferred;

    for (;;) {
        next = lowest_pending(a, 0, false);
        if (next != NO_BLOCK)
            break;
        if (barriers_settle(r))
            continue;
        deferred = lowest_pending(a, 0, true) != NO_BLOCK;
        if ((deferred && warp_release(r, a)) || ((deferred || activation_waits(r)) && cluster_sleep(r)))
            continue;
        if (!deferred)
            break;
        warp_stuck(r, a);
    }
    if (next != NO_BLOCK)
        take_pending(a, next);
    else if (activation_waits(r))
        barriers_stuck(r);
    return next;
}

static void run_guarded(struct lanes *l, struct activation *a, const struct op *o)
{
    const uint8_t *p = LANE(uint8_t, o->guard);
    uint32_t       holds = mask_holds(&a->current, p, o->guard_not);

    if (holds == a->current.count) {
        o->run(l, o);
    } else if (holds) {
        mask_pick(&a->guard, &a->current, p, o->guard_not);
        lanes_use(l, &a->guard);
        o->run(l, o);
    }
    lanes_use(l, &a->current);
}

static void run_ops(struct block_run *r, struct activation *a, const struct code_block *b)
{
    struct lanes    *l = &r->lanes;
    const struct op *o = a->code->ops + b->first, *end = o + b->count;

    lanes_use(l, &a->current);
    for (; o < end; o++) {
        l->current = o;
        if (o->affine)
            affine_run(l, a->affine, o, a->current.count == r->live_count);
        else if (o->guard == OP_NONE)
            o->run(l, o);
        else
            run_guarded(l, a, o);
    }
    l->current = &b->last;
}

/* Compiled chunks have had their rounds of a loop that may wait for others. */
static uint32_t take_turn(struct block_run *r, struct activation *a)
{
    uint32_t low = lowest_pending(a, 0, false), next;

    if (low == NO_BLOCK)
        return NO_BLOCK;
    take_pending(a, low);
    a->spins = CPU_SPIN_ROUNDS;
    next = turn_for_others(r, a, low);
    if (next == NO_BLOCK)
        return low;
    pending_add(a, low, &a->current);
    mask_clear(&a->current);
    take_pending(a, next);
    return next;
}

/* False: the lanes of current are not all that the block's warp operation waits for, but were let through; the interpreter runs it. */
static bool gather_warps(struct block_run *r, struct activation *a, uint32_t block)
{
    uint32_t passing = r->passing;

    if (a->code->blocks[block].warp_first && (a->current.count != r->live_count || passing))
        warp_gather(r, a, block);
    return passing == r->passing;
}

/* The interpreter may change registers there, or part lanes that compiled code left together. */
static bool sows_doubt(const struct code_block *b)
{
    return b->count > 0 || b->end == END_TABLE || (b->end == END_BRANCH && b->last.guard != OP_NONE) ||
           (b->end == END_BARRIER && (b->last.guard != OP_NONE || b->last.width));
}

static uint32_t run_block(struct block_run *r, struct activation *a, uint32_t block)
{
    const struct code_block *b = &a->code->blocks[block];
    bool                     all = gather_warps(r, a, block);

    if (!a->current.count)
        return fall_through(r, a, b, block);
    if (a->code->native && all && native_begins(a->code, block)) {
        uint32_t next = native_run(r, a, &block);

        b = &a->code->blocks[block];
        if (next != NO_BLOCK)
            return enter_block(r, a, b, block, next);
        if (!a->current.count)
            return r->tired ? take_turn(r, a) : fall_through(r, a, b, block);
    }
    if (r->native)
        r->native->doubted |= sows_doubt(b);
    run_ops(r, a, b);
    switch (b->end) {
    case END_FALL:
        return fall_through(r, a, b, block);
    case END_BRANCH:
        return take_branch(r, a, b, block);
    case END_TABLE:
        return branch_table(r, a, b, block);
    case END_RETURN:
    case END_EXIT:
        return leave_activation(r, a, b, block);
    case END_BARRIER:
        return wait_at_barrier(r, a, b, block);
    }
    return NO_BLOCK;
}

void activation_run(struct block_run *r, struct activation *a)
{
    uint32_t block = 0;

    if (!a->code->blocks_count)
        return;
    if (r->starts++ % BLOCKS_PER_CLOCK == 0)
        check_clock(r);
    else
        check_stop(r);
    do {
        while (block != NO_BLOCK)
            block = run_block(r, a, block);
        block = next_block(r, a);
    } while (block != NO_BLOCK);
}
