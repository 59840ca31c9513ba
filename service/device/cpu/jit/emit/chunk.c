/* Chunk after chunk: of a block of threads, and of the blocks that follow in the grid's row. */
#include "device/cpu/jit/emit/flow.h"

#include <stddef.h>

/* The next chunk begins, those before having left for block `same`. */
void begin_chunk(struct emitter *e, llvm_value inner, llvm_value outer, llvm_value lanes, llvm_value same)
{
    llvm_block from = e->ll->LLVMGetInsertBlock(e->b);

    if (e->plan->warps) /* of the call's first chunk, some may wait elsewhere */
        set_member(e, offsetof(struct native_call, live), lanes, false);
    e->ll->LLVMBuildBr(e->b, e->chunk);
    e->ll->LLVMAddIncoming(e->turns.inner, &inner, &from, 1);
    e->ll->LLVMAddIncoming(e->turns.outer, &outer, &from, 1);
    e->ll->LLVMAddIncoming(e->chunk_lanes, &lanes, &from, 1);
    e->ll->LLVMAddIncoming(e->chunk_same, &same, &from, 1);
}

/* Ends the call. */
void stop_at(struct emitter *e, llvm_value result)
{
    set_member(e, offsetof(struct native_call, same), e->chunk_same, false);
    e->ll->LLVMBuildRet(e->b, result);
}

static llvm_value plus_step(struct emitter *e, llvm_value now, llvm_value step)
{
    return binary(e, LLVM_ADD, now, step);
}

/* The next chunk has all its lanes, too. */
void go_on_quickly(struct emitter *e, uint32_t to)
{
    const struct chunk_turns *t = &e->turns;
    llvm_block within = new_block(e, "within"), beyond = new_block(e, "beyond"), outer = new_block(e, "outer"), slow = new_block(e, "slow"),
               same = new_block(e, "same");
    llvm_value next = plus_step(e, t->inner, t->inner_step), next_outer = plus_step(e, t->outer, t->outer_step), good;

    good = binary(e, LLVM_OR, icmp(e, LLVM_EQ, e->chunk_same, number(e, 32, NO_BLOCK)), icmp(e, LLVM_EQ, e->chunk_same, number(e, 32, to)));
    e->ll->LLVMBuildCondBr(e->b, likely(e, good), same, slow);
    go_on_in(e, same);
    e->ll->LLVMBuildCondBr(e->b, likely(e, icmp(e, LLVM_ULT, next, t->inner_full_end)), within, beyond);
    go_on_in(e, within);
    begin_chunk(e, next, t->outer, all_lanes(e), number(e, 32, to));
    go_on_in(e, beyond); /* by the last full chunk, or with a chunk before the end that is not full */
    good = binary(e, LLVM_AND, icmp(e, LLVM_UGE, next, t->inner_end), icmp(e, LLVM_ULT, next_outer, t->outer_end));
    e->ll->LLVMBuildCondBr(e->b, good, outer, slow);
    go_on_in(e, outer);
    begin_chunk(e, t->inner_first, next_outer, all_lanes(e), number(e, 32, to));
    go_on_in(e, slow);
}

/* Of the registers nothing is left from the chunk before. */
static void start_chunk(struct emitter *e)
{
    const struct jit_plan *p = e->plan;

    for (uint32_t r = 0; r < p->function->registers_count; r++) {
        unsigned  bytes = p->function->registers[r].bytes;
        llvm_type type = int_type(e, bytes == 1 ? 1 : 8 * bytes);

        if (e->slot[r])
            e->ll->LLVMBuildStore(e->b, e->ll->LLVMGetUndef(p->shapes[r].kind == SHAPE_VARYING ? vector_of(e, type) : type), e->slot[r]);
    }
    e->ll->LLVMBuildStore(e->b, lanes_vector(e, e->chunk_lanes), e->mask_slot);
    e->ll->LLVMBuildStore(e->b, e->ll->LLVMConstNull(e->bits_type), e->bits_slot);
    e->ll->LLVMBuildStore(e->b, member(e, offsetof(struct native_call, budget), 32), e->budget_slot);
    e->ll->LLVMBuildStore(e->b, number(e, 32, 0), e->leaves_slot);
    e->ll->LLVMBuildStore(e->b, number(e, 32, 0), e->mixed_slot);
    e->ll->LLVMBuildStore(e->b, number(e, 32, 0), e->last_slot);
}

static llvm_value minus_or_none(struct emitter *e, llvm_value end, unsigned lanes)
{
    llvm_value some = icmp(e, LLVM_UGE, end, number(e, 32, lanes));

    return choose(e, some, binary(e, LLVM_SUB, end, number(e, 32, lanes - 1)), number(e, 32, 0));
}

static void find_turns(struct emitter *e)
{
    struct chunk_turns *t = &e->turns;
    llvm_value first_x = member(e, offsetof(struct native_call, first_x), 32), end_x = member(e, offsetof(struct native_call, end_x), 32);
    llvm_value lanes = number(e, 32, e->lanes), one = number(e, 32, 1), full_end = minus_or_none(e, parameter(e, 4), e->lanes);

    t->across = icmp(e, LLVM_NE, member(e, offsetof(struct native_call, across), 32), number(e, 32, 0));
    if (!plan_runs_many(e->plan)) /* one block at a time */
        t->across = number(e, 1, 0);
    t->inner_first = choose(e, t->across, first_x, number(e, 32, 0));
    t->inner_step = choose(e, t->across, one, lanes);
    t->inner_end = choose(e, t->across, end_x, parameter(e, 4));
    t->inner_full_end = choose(e, t->across, end_x, full_end);
    t->outer_step = choose(e, t->across, lanes, one);
    t->outer_end = choose(e, t->across, full_end, end_x);
}

void start_chunks(struct emitter *e)
{
    struct chunk_turns *t = &e->turns;
    llvm_value          x = member(e, offsetof(struct native_call, ctaid[0]), 32), lane = parameter(e, 1), first[2];
    llvm_block          from;

    find_turns(e);
    first[0] = choose(e, t->across, x, lane);
    first[1] = choose(e, t->across, lane, x);
    from = e->ll->LLVMGetInsertBlock(e->b);
    e->chunk = new_block(e, "chunk");
    e->ll->LLVMBuildBr(e->b, e->chunk);
    go_on_in(e, e->chunk);
    t->inner = e->ll->LLVMBuildPhi(e->b, e->i32, "");
    t->outer = e->ll->LLVMBuildPhi(e->b, e->i32, "");
    e->chunk_lanes = e->ll->LLVMBuildPhi(e->b, e->i32, "");
    e->chunk_same = e->ll->LLVMBuildPhi(e->b, e->i32, "");
    e->ll->LLVMAddIncoming(t->inner, &first[0], &from, 1);
    e->ll->LLVMAddIncoming(t->outer, &first[1], &from, 1);
    first[0] = parameter(e, 2);
    first[1] = parameter(e, 5);
    e->ll->LLVMAddIncoming(e->chunk_lanes, &first[0], &from, 1);
    e->ll->LLVMAddIncoming(e->chunk_same, &first[1], &from, 1);
    e->chunk_lane = choose(e, t->across, t->outer, t->inner);
    e->specials[PTX_SPECIAL_CTAID_X] = choose(e, t->across, t->inner, t->outer);
    set_member(e, offsetof(struct native_call, lane), e->chunk_lane, false);
    set_member(e, offsetof(struct native_call, ctaid[0]), e->specials[PTX_SPECIAL_CTAID_X], false);
    e->lane = cast(e, LLVM_ZEXT, e->chunk_lane, e->i64);
    e->head = e->ll->LLVMGetInsertBlock(e->b);
    e->narrow = new_block(e, "narrow");
    go_on_in(e, e->narrow);
    start_chunk(e);
}

/* The block has no waiting lanes of this chunk any more. */
static void forget_pending(struct emitter *e, llvm_value block)
{
    llvm_value word = cast(e, LLVM_ZEXT, block, e->i64), at;

    at = binary(e, LLVM_ADD, e->call, binary(e, LLVM_SHL, word, number(e, 64, 2)));
    at = binary(e, LLVM_ADD, at, number(e, 64, pending_at(0)));
    e->ll->LLVMBuildStore(e->b, number(e, 32, 0), pointer(e, at, e->i32));
    at = binary(e, LLVM_ADD, e->call, binary(e, LLVM_SHL, binary(e, LLVM_LSHR, word, number(e, 64, 6)), number(e, 64, 3)));
    at = binary(e, LLVM_ADD, at, number(e, 64, offsetof(struct native_call, touched)));
    e->ll->LLVMBuildStore(e->b, number(e, 64, 0), pointer(e, at, e->i64));
}

/* The lanes of a chunk: all, or as many as are left. */
static llvm_value lanes_from(struct emitter *e, llvm_value lane)
{
    llvm_value left = binary(e, LLVM_SUB, parameter(e, 4), lane), few;

    few = binary(e, LLVM_SUB, binary(e, LLVM_SHL, number(e, 32, 1), binary(e, LLVM_AND, left, number(e, 32, 31))), number(e, 32, 1));
    return choose(e, icmp(e, LLVM_UGE, left, number(e, 32, e->lanes)), all_lanes(e), few);
}

/* On to the next chunk if this one left as a whole for the block that it should, or for that of those before. */
void emit_done(struct emitter *e)
{
    const struct chunk_turns *t = &e->turns;
    llvm_block                next = new_block(e, "next"), out = new_block(e, "out");
    llvm_value                leaves, mixed, last, good, inner, outer, more;

    go_on_in(e, e->done);
    leaves = load_slot(e, e->i32, e->leaves_slot);
    mixed = load_slot(e, e->i32, e->mixed_slot);
    last = load_slot(e, e->i32, e->last_slot);
    inner = plus_step(e, t->inner, t->inner_step);
    outer = plus_step(e, t->outer, t->outer_step);
    more = icmp(e, LLVM_ULT, inner, t->inner_end);
    good = binary(e, LLVM_OR, icmp(e, LLVM_EQ, e->chunk_same, number(e, 32, NO_BLOCK)), icmp(e, LLVM_EQ, e->chunk_same, last));
    good = binary(e, LLVM_AND, good, icmp(e, LLVM_NE, leaves, number(e, 32, 0)));
    good = binary(e, LLVM_AND, good, icmp(e, LLVM_EQ, mixed, number(e, 32, 0)));
    good = binary(e, LLVM_AND, good, binary(e, LLVM_OR, more, icmp(e, LLVM_ULT, outer, t->outer_end)));
    e->ll->LLVMBuildCondBr(e->b, likely(e, good), next, out);
    go_on_in(e, out);
    set_member(e, offsetof(struct native_call, leaves), leaves, false);
    set_member(e, offsetof(struct native_call, mixed), mixed, false);
    set_member(e, offsetof(struct native_call, last), last, false);
    stop_at(e, e->chunk_lane);
    go_on_in(e, next);
    forget_pending(e, last);
    inner = choose(e, more, inner, t->inner_first);
    outer = choose(e, more, t->outer, outer);
    begin_chunk(e, inner, outer, lanes_from(e, choose(e, t->across, outer, inner)), last);
}
