/* Sets up and runs one block of threads: memory of its lanes, frames of functions, special registers, and texts of faults. */
#include <inttypes.h>
#include <stdlib.h>

#include "device/cpu/bounds.h"
#include "device/cpu/interp/affine.h"
#include "device/cpu/jit/native.h"
#include "device/cpu/runtime/launch.h"

enum { LANE_ROUNDING = 64 };
/* Of the arrays of prepare_lane_memory(), per lane. */
enum { LANE_BYTES = 15 };

/* The contents are lost. */
static bool grow_memory(uint8_t **memory, size_t *room, size_t bytes)
{
    if (bytes <= *room)
        return true;
    free(*memory);
    *memory = aligned_alloc(LANE_ROUNDING, (bytes + LANE_ROUNDING - 1) / LANE_ROUNDING * LANE_ROUNDING);
    *room = *memory ? bytes : 0;
    return *memory != NULL;
}

static bool prepare_lane_memory(struct block_run *r)
{
    size_t   s = r->lanes.stride;
    uint8_t *at;

    if (!grow_memory(&r->lane_memory, &r->lane_room, s * LANE_BYTES))
        return false;
    memset(r->lane_memory, 0, s * LANE_BYTES);
    at = r->lane_memory;
    r->resume = (uint32_t *)(void *)at;
    r->live = at + 4 * s;
    r->waits = at + 5 * s;
    r->wait_depth = at + 6 * s;
    r->votes = at + 7 * s;
    r->lanes.carry = at + 8 * s;
    r->passes = at + 9 * s;
    r->stack_top = (uint32_t *)(void *)(at + 10 * s);
    r->arrivals = at + 14 * s;
    r->stack_used = true;
    return true;
}

static void empty_stacks(struct block_run *r)
{
    for (uint32_t i = 0; i < r->lanes.count; i++)
        r->stack_top[i] = r->local_bytes;
    r->stack_used = false;
}

/* The end of the part of local memory that is free for frames in all lanes. */
static uint32_t stack_bottom(const struct block_run *r)
{
    uint32_t least = r->local_bytes;

    for (uint32_t i = 0; r->stack_used && i < r->lanes.count; i++)
        least = r->stack_top[i] < least ? r->stack_top[i] : least;
    return least;
}

/* A kernel may read what it never wrote: it must not see data of this process, where pointers into it may lie. */
static bool prepare_shared(struct block_run *r)
{
    uint32_t room = r->shared_bytes <= CPU_STATIC_SHARED_BYTES_MAX ? CPU_STATIC_SHARED_BYTES_MAX : CPU_SHARED_BYTES_MAX;

    if (r->shared && r->shared_room >= room)
        return true;
    free(r->shared);
    r->shared = aligned_alloc(LANE_ROUNDING, room);
    r->shared_room = r->shared ? room : 0;
    if (r->shared)
        memset(r->shared, 0, room);
    return r->shared != NULL;
}

enum status block_run_prepare(struct block_run *r, struct grid_run *grid, uint64_t shared_bytes)
{
    const uint32_t *b = grid->launch->block;

    r->grid = grid;
    r->lanes.run = r;
    r->lanes.count = b[0] * b[1] * b[2];
    r->lanes.width = b[0];
    r->lanes.height = b[1];
    r->lanes.stride = (r->lanes.count + LANE_ROUNDING - 1) / LANE_ROUNDING * LANE_ROUNDING;
    r->shared_bytes = (uint32_t)shared_bytes;
    r->local_bytes = grid->local_bytes;
    r->depth = 0;
    r->fault = FAULT_NONE;
    for (unsigned i = 0; i < CPU_CALL_DEPTH_MAX; i++)
        r->activations[i].filled_code = NULL;
    if (!prepare_shared(r) || !prepare_lane_memory(r) || !grow_memory(&r->local, &r->local_room, (size_t)r->local_bytes * r->lanes.count + 1))
        return STATUS_OUT_OF_MEMORY;
    memset(r->local, 0, (size_t)r->local_bytes * r->lanes.count);
    return grid->code->native ? native_prepare(r) : STATUS_OK;
}

void block_run_finish(struct block_run *r)
{
    for (unsigned i = 0; i < CPU_CALL_DEPTH_MAX; i++)
        free(r->activations[i].memory);
    free(r->lane_memory);
    free(r->local);
    free(r->shared);
    native_finish(r);
}

/* The bits of the lanes below, at or above a lane in its warp. */
static uint32_t lane_mask(enum ptx_special which, uint32_t lane)
{
    uint32_t bit = 1u << (lane % WARP_LANES);

    switch ((int)which) {
    case PTX_SPECIAL_LANEMASK_EQ: return bit;
    case PTX_SPECIAL_LANEMASK_LT: return bit - 1;
    case PTX_SPECIAL_LANEMASK_LE: return bit | (bit - 1);
    case PTX_SPECIAL_LANEMASK_GE: return ~(bit - 1);
    default:                  return ~(bit | (bit - 1));
    }
}

static uint64_t special_of_lane(const struct block_run *r, enum ptx_special which, uint32_t lane)
{
    const struct cpu_launch *k = r->grid->launch;
    const uint32_t          *c = k->kernel->cluster;
    uint32_t                 x = k->block[0], y = k->block[1];

    switch ((int)which) {
    case PTX_SPECIAL_TID_X:    return lane % x;
    case PTX_SPECIAL_TID_Y:    return lane / x % y;
    case PTX_SPECIAL_TID_Z:    return lane / x / y;
    case PTX_SPECIAL_NTID_X:   return x;
    case PTX_SPECIAL_NTID_Y:   return y;
    case PTX_SPECIAL_NTID_Z:   return k->block[2];
    case PTX_SPECIAL_CTAID_X: case PTX_SPECIAL_CTAID_Y: case PTX_SPECIAL_CTAID_Z:
        return r->block[which - PTX_SPECIAL_CTAID_X];
    case PTX_SPECIAL_NCTAID_X: case PTX_SPECIAL_NCTAID_Y: case PTX_SPECIAL_NCTAID_Z:
        return k->grid[which - PTX_SPECIAL_NCTAID_X];
    case PTX_SPECIAL_CLUSTERID_X: case PTX_SPECIAL_CLUSTERID_Y: case PTX_SPECIAL_CLUSTERID_Z:
        return r->block[which - PTX_SPECIAL_CLUSTERID_X] / c[which - PTX_SPECIAL_CLUSTERID_X];
    case PTX_SPECIAL_NCLUSTERID_X: case PTX_SPECIAL_NCLUSTERID_Y: case PTX_SPECIAL_NCLUSTERID_Z:
        return k->grid[which - PTX_SPECIAL_NCLUSTERID_X] / c[which - PTX_SPECIAL_NCLUSTERID_X];
    case PTX_SPECIAL_CLUSTER_CTAID_X: case PTX_SPECIAL_CLUSTER_CTAID_Y: case PTX_SPECIAL_CLUSTER_CTAID_Z:
        return r->block[which - PTX_SPECIAL_CLUSTER_CTAID_X] % c[which - PTX_SPECIAL_CLUSTER_CTAID_X];
    case PTX_SPECIAL_CLUSTER_NCTAID_X: case PTX_SPECIAL_CLUSTER_NCTAID_Y: case PTX_SPECIAL_CLUSTER_NCTAID_Z:
        return c[which - PTX_SPECIAL_CLUSTER_NCTAID_X];
    case PTX_SPECIAL_CLUSTER_CTARANK:  return r->rank;
    case PTX_SPECIAL_CLUSTER_NCTARANK: return c[0] * c[1] * c[2];
    case PTX_SPECIAL_IS_EXPLICIT_CLUSTER: return k->kernel->explicit_cluster;
    case PTX_SPECIAL_LANEID:   return lane % WARP_LANES;
    case PTX_SPECIAL_WARPID:   return lane / WARP_LANES;
    case PTX_SPECIAL_NWARPID:  return (r->lanes.count + WARP_LANES - 1) / WARP_LANES;
    case PTX_SPECIAL_SMID:     return r->host_thread;
    case PTX_SPECIAL_NSMID:    return CPU_POOL_THREADS_MAX;
    case PTX_SPECIAL_GRIDID:   return 1;
    case PTX_SPECIAL_ENVREG1:  return r->grid->workspace >> 32;
    case PTX_SPECIAL_ENVREG2:  return r->grid->workspace & UINT32_MAX;
    case PTX_SPECIAL_DYNAMIC_SMEM_SIZE: return k->shared_bytes;
    case PTX_SPECIAL_AGGR_SMEM_SIZE:
    case PTX_SPECIAL_TOTAL_SMEM_SIZE:   return r->shared_bytes;
    case PTX_SPECIAL_LANEMASK_EQ: case PTX_SPECIAL_LANEMASK_LT: case PTX_SPECIAL_LANEMASK_LE:
    case PTX_SPECIAL_LANEMASK_GE: case PTX_SPECIAL_LANEMASK_GT: return lane_mask(which, lane);
    default: return 0;
    }
}

static void fill_special(struct block_run *r, const struct code_special *s)
{
    struct lanes *l = &r->lanes;

    if (ptx_special_kinds[s->which] != PTX_OF_LANE) {
        lanes_fill(l, s->place, s->width, special_of_lane(r, (enum ptx_special)s->which, 0));
        return;
    }
    for (uint32_t i = 0; i < l->count; i++)
        lane_write(l, s->place, s->width, i, special_of_lane(r, (enum ptx_special)s->which, i));
}

static void set_affine_special(struct block_run *r, struct affine_value *affine, const struct code_special *s)
{
    struct affine_value f;

    if (s->affine == NO_AFFINE || !affine_special(&r->lanes, s->which, special_of_lane(r, (enum ptx_special)s->which, 0), &f))
        return;
    affine[s->affine] = f;
    if (s->wanted || ptx_special_kinds[s->which] != PTX_OF_BLOCK)
        affine[s->affine].state |= AFFINE_FILLED;
}

static void set_affine_constants(struct affine_value *affine, const struct code *code)
{
    for (uint32_t i = 0; i < code->constants_count; i++) {
        if (code->constants[i].affine != NO_AFFINE)
            affine[code->constants[i].affine] = (struct affine_value){.base = code->constants[i].value, .state = AFFINE_KNOWN | AFFINE_FILLED};
    }
}

/* Arrays of constants and special registers stay valid while the same function uses the frame. */
static void fill_registers(struct block_run *r, struct activation *a, const struct code *code)
{
    bool fresh = a->filled_code != code;

    for (uint32_t i = 0; fresh && i < code->constants_count; i++)
        lanes_fill(&r->lanes, code->constants[i].place, code->constants[i].width, code->constants[i].value);
    if (fresh)
        set_affine_constants(a->affine, code);
    for (uint32_t i = 0; i < code->specials_count; i++) {
        const struct code_special *s = &code->specials[i];
        bool                       by_block = ptx_special_kinds[s->which] == PTX_OF_BLOCK;

        if (!fresh && (!by_block || a->filled_block == r->block_number + 1))
            continue;
        if (s->wanted || !by_block)
            fill_special(r, s);
        set_affine_special(r, a->affine, s);
    }
    a->filled_code = code;
    a->filled_block = r->block_number + 1;
}

void fill_specials(struct block_run *r, struct activation *a)
{
    fill_registers(r, a, a->filled_code);
}

/* Only entries have a prologue: all lanes live. Affine results are written to their arrays, too, since they stay for every block. */
static void run_prologue(struct block_run *r, const struct activation *a, const struct code *code)
{
    struct lanes     *l = &r->lanes;
    const struct mask all = {.m = r->live, .high = l->count, .count = l->count};

    lanes_use(l, &all);
    for (uint32_t i = 0; i < code->prologue_count; i++) {
        const struct op *o = &code->prologue[i];

        l->current = o;
        if (!o->affine) {
            o->run(l, o);
            continue;
        }
        affine_run(l, a->affine, o, true);
        if (o->affine->result != NO_AFFINE)
            affine_fill(l, &a->affine[o->affine->result], o->d, o->affine->width);
    }
}

static size_t activation_bytes(const struct block_run *r, const struct code *code)
{
    size_t s = r->lanes.stride, blocks = code->blocks_count, words = blocks / 64 + 1;

    return s * code->frame_bytes + (size_t)code->param_bytes * s + (blocks + 3) * s + blocks * sizeof(struct mask) + words * 24
           + code->affine_count * sizeof(struct affine_value) + 4 * LANE_ROUNDING;
}

/* Masks are all zero at the start, and again whenever an activation ends without a fault. */
static void lay_out_activation(struct block_run *r, struct activation *a, const struct code *code)
{
    size_t   s = r->lanes.stride, blocks = code->blocks_count, words = blocks / 64 + 1;
    uint8_t *at = a->memory;

    a->frame = at;
    at += s * code->frame_bytes;
    a->params = at;
    at += (size_t)code->param_bytes * s;
    a->current = (struct mask){.m = at};
    a->side = (struct mask){.m = at + s};
    a->guard = (struct mask){.m = at + 2 * s};
    memset(at, 0, (blocks + 3) * s);
    at += 3 * s;
    a->pending = (struct mask *)(void *)(at + blocks * s);
    for (size_t i = 0; i < blocks; i++)
        a->pending[i] = (struct mask){.m = at + i * s};
    a->pending_bits = (uint64_t *)(void *)(a->pending + blocks);
    a->deferred_bits = a->pending_bits + words;
    a->reached = a->deferred_bits + words;
    memset(a->pending_bits, 0, 3 * words * sizeof *a->pending_bits);
    a->affine = (struct affine_value *)(void *)(a->reached + words);
    for (uint32_t i = 0; i < code->affine_count; i++)
        a->affine[i] = (struct affine_value){.state = AFFINE_FILLED};
    a->words = (uint32_t)words;
    a->turn = a->spins = 0;
    a->code = code;
}

/* The same function ran here before, with as many lanes: its masks are in place and all zero. */
static void start_again(struct activation *a)
{
    memset(a->pending_bits, 0, 2 * a->words * sizeof *a->pending_bits);
    a->turn = a->spins = 0;
}

struct activation *activation_enter(struct block_run *r, const struct code *code)
{
    struct activation *a = &r->activations[r->depth], *caller = r->depth ? a - 1 : NULL;
    size_t             bytes = activation_bytes(r, code);
    struct lanes      *l = &r->lanes;
    bool               fresh;

    if (r->depth >= CPU_CALL_DEPTH_MAX)
        block_fault(l, FAULT_TRAP, -1, "more than %d nested calls", CPU_CALL_DEPTH_MAX);
    if (bytes > CPU_REGISTER_FILE_BYTES_MAX)
        block_fault(l, FAULT_MEMORY, -1, "the register file of %u threads exceeds %d bytes", l->count, CPU_REGISTER_FILE_BYTES_MAX);
    if (bytes > a->room) {
        a->filled_code = NULL;
        if (!grow_memory(&a->memory, &a->room, bytes))
            block_fault(l, FAULT_MEMORY, -1, "not enough host memory for registers");
        memset(a->memory, 0, bytes);
    }
    if (a->filled_code == code)
        start_again(a);
    else
        lay_out_activation(r, a, code);
    a->local_base = caller ? caller->local_base + caller->code->local_bytes : 0;
    if (a->local_base + (uint64_t)code->local_bytes > stack_bottom(r))
        block_fault(l, FAULT_TRAP, -1, "the stack of local memory overflowed");
    l->frame = a->frame;
    l->plain = code->plain;
    fresh = a->filled_code != code;
    fill_registers(r, a, code);
    r->depth++;
    if (fresh)
        run_prologue(r, a, code);
    return a;
}

void activation_leave(struct block_run *r)
{
    r->depth--;
    if (r->depth)
        r->lanes.frame = r->activations[r->depth - 1].frame;
}

static void start_lanes(struct block_run *r)
{
    struct activation *a;

    memset(r->live, 1, r->lanes.count);
    memset(r->waits, NO_BARRIER, r->lanes.count);
    memset(r->passes, 0, r->lanes.count);
    r->passing = 0;
    if (r->barriers_used)
        memset(r->barriers, 0, sizeof r->barriers);
    r->barriers_used = 0;
    r->live_count = r->lanes.count;
    if (r->native)
        native_begin_block(r);
    if (r->met)
        memset(r->arrivals, 0, r->lanes.count);
    r->met = false;
    r->arrived = r->phase = 0;
    r->depth = 0;
    if (r->stack_used)
        empty_stacks(r);
    a = activation_enter(r, r->grid->code);
    memset(a->current.m, 1, r->lanes.count);
    a->current.high = a->current.count = r->lanes.count;
}

static void set_block(struct block_run *r, uint64_t number)
{
    const uint32_t *g = r->grid->launch->grid;

    r->block_number = number;
    r->waits_for_company = 0;
    r->block[0] = (uint32_t)(number % g[0]);
    r->block[1] = (uint32_t)(number / g[0] % g[1]);
    r->block[2] = (uint32_t)(number / g[0] / g[1]);
}

/* At a block's begin. The first one makes the registers' arrays, where compiled code leaves what it cannot end by itself. Such a block ran apart from the
 * others until 2026-11-29: an empty launch took 1.23 us, now 1.08 (A/B in turns). */
static bool runs_whole(struct block_run *r)
{
    const struct code *code = r->grid->code;

    if (!code->native || !code->native->whole || r->depth)
        return false;
    if (r->activations[0].filled_code != code)
        start_lanes(r);
    return true;
}

static void set_next_block(struct block_run *r)
{
    const uint32_t *g = r->grid->launch->grid;

    r->block_number++;
    r->waits_for_company = 0;
    if (++r->block[0] < g[0])
        return;
    r->block[0] = 0;
    if (++r->block[1] < g[1])
        return;
    r->block[1] = 0;
    r->block[2]++;
}

static void run_started(struct block_run *r)
{
    activation_run(r, activation_now(r));
    activation_leave(r);
}

static void move_to(struct block_run *r, uint32_t x)
{
    r->block_number = r->block_number - r->block[0] + x;
    r->block[0] = x;
}

/* Of blocks that compiled code left where one of them stopped, which has ended since. */
static void run_rest(struct block_run *r, const struct native_rest *rest)
{
    uint32_t stopped = r->block[0];

    for (uint32_t x = rest->first_x; x < rest->end_x; x++) {
        uint32_t           lane = x < stopped ? rest->before : rest->after;
        struct native_rest none;

        move_to(r, x);
        if (x != stopped && lane < r->lanes.count && !native_run_whole(r, start_lanes, 1, lane, &none))
            run_started(r);
    }
}

/* `blocks` of one row, from the current one on, which becomes the last of them. */
static void run_whole(struct block_run *r, uint32_t blocks)
{
    struct native_rest rest;

    if (native_run_whole(r, start_lanes, blocks, 0, &rest))
        return;
    run_started(r);
    run_rest(r, &rest);
}

/* One block or more of the `left` from the current one on; the last of them is the current one then. */
static void run_some(struct block_run *r, uint64_t left)
{
    uint64_t blocks = 1, row = r->grid->launch->grid[0] - r->block[0];

    r->lanes.current = NULL;
    if (runs_whole(r)) {
        if (r->grid->code->native->many && r->lanes.count % r->grid->code->native->lanes == 0)
            blocks = left < row ? left : row;
        run_whole(r, (uint32_t)blocks);
        return;
    }
    if (!r->depth)
        start_lanes(r);
    run_started(r);
}

bool blocks_run(struct block_run *r, uint64_t number, uint64_t count)
{
    int how;

    set_block(r, number);
    if (r->native)
        r->native->active = false;
    how = sigsetjmp(r->guard.jump, 0);
    if (how == 1) {
        native_explain(r);
        block_describe_guard(r);
    }
    if (how)
        return false;
    r->guard.armed = true;
    while (atomic_load_explicit(r->grid->stop, memory_order_relaxed) == STOP_NONE) {
        run_some(r, number + count - r->block_number);
        if (r->block_number + 1 == number + count)
            break;
        set_next_block(r);
    }
    r->guard.armed = false;
    return true;
}
