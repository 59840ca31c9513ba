/* The control flow of compiled kernels. The lowest block with waiting lanes runs next, as in the interpreter; lanes that come to a block
 * which is not compiled leave, with their registers in the interpreter's arrays. */
#include "device/cpu/jit/emit.h"

#include <stdio.h>
#include <stdlib.h>

#include "device/cpu/jit/subset.h"

enum { FULL_INSNS_MAX = 100 };

static const struct code_block *block_of(const struct emitter *e, uint32_t block)
{
    return &e->plan->code->blocks[block];
}

static llvm_value parameter(const struct emitter *e, unsigned i)
{
    return e->ll->LLVMGetParam(e->function, i);
}

static llvm_value all_lanes(const struct emitter *e)
{
    return number(e, 32, (1ull << e->lanes) - 1);
}

static llvm_value load_slot(struct emitter *e, llvm_type type, llvm_value slot)
{
    return e->ll->LLVMBuildLoad2(e->b, type, slot, "");
}

static llvm_value lanes_vector(struct emitter *e, llvm_value bits)
{
    llvm_value few = e->lanes == 32 ? bits : cast(e, LLVM_TRUNC, bits, int_type(e, e->lanes));

    return e->ll->LLVMBuildCast(e->b, LLVM_BITCAST, few, vector_of(e, e->i1), "");
}

/* ---- registers and the interpreter's arrays ---- */

static llvm_value array_of(struct emitter *e, uint32_t reg)
{
    unsigned   bytes = e->plan->function->registers[reg].bytes;
    llvm_value at = binary(e, LLVM_MUL, e->stride, number(e, 64, e->plan->code->places[reg]));

    at = binary(e, LLVM_ADD, at, binary(e, LLVM_MUL, e->lane, number(e, 64, bytes)));
    return binary(e, LLVM_ADD, e->frame, at);
}

void save_register(struct emitter *e, uint32_t reg, llvm_value mask)
{
    unsigned     bytes = e->plan->function->registers[reg].bytes;
    struct value v = read_register(e, reg);
    llvm_value   all = as_vector(e, &v), args[4], at;
    llvm_type    type = vector_of(e, int_type(e, 8 * bytes)), types[2];

    if (bytes == 1)
        all = cast(e, LLVM_ZEXT, all, e->i8);
    at = pointer(e, array_of(e, reg), type);
    types[0] = type;
    types[1] = e->ll->LLVMTypeOf(at);
    args[0] = all;
    args[1] = at;
    args[2] = number(e, 32, bytes);
    args[3] = mask;
    intrinsic(e, "llvm.masked.store", types, 2, args, 4);
}

struct value array_value(struct emitter *e, uint32_t reg)
{
    unsigned   bytes = e->plan->function->registers[reg].bytes;
    llvm_type  type = vector_of(e, int_type(e, 8 * bytes));
    llvm_value all = e->ll->LLVMBuildLoad2(e->b, type, pointer(e, array_of(e, reg), type), "");

    e->ll->LLVMSetAlignment(all, bytes);
    if (bytes == 1)
        all = icmp(e, LLVM_NE, all, e->ll->LLVMConstNull(type));
    return vector_value(all, bytes == 1 ? 1 : 8 * bytes);
}

/* From the arrays. Of a register that stands for all lanes, `trusted`: the first lane's alone; else also whether all lanes of `mask` have
 * the register's shape: otherwise *bad gets a bit. */
static void fetch_register(struct emitter *e, uint32_t reg, llvm_value mask, llvm_value first, bool trusted, llvm_value *bad)
{
    const struct shape *s = &e->plan->shapes[reg];
    unsigned            bytes = e->plan->function->registers[reg].bytes;
    llvm_type           element = int_type(e, 8 * bytes);
    llvm_value          at = array_of(e, reg), all = NULL, differ;
    struct value        v = {.scalar = true, .bits = bytes == 1 ? 1 : 8 * bytes, .shape = *s};

    if (!trusted || s->kind == SHAPE_VARYING)
        all = array_value(e, reg).v;
    if (s->kind == SHAPE_VARYING) {
        e->ll->LLVMBuildStore(e->b, all, e->slot[reg]);
        return;
    }
    if (trusted) {
        at = binary(e, LLVM_ADD, at, binary(e, LLVM_MUL, cast(e, LLVM_ZEXT, first, e->i64), number(e, 64, bytes)));
        v.v = e->ll->LLVMBuildLoad2(e->b, element, pointer(e, at, element), "");
        if (bytes == 1)
            v.v = icmp(e, LLVM_NE, v.v, number(e, 8, 0));
    } else {
        v.v = e->ll->LLVMBuildExtractElement(e->b, all, first, "");
    }
    if (s->kind == SHAPE_LINEAR) {
        llvm_value wide = v.bits == 64 ? cast(e, LLVM_ZEXT, first, e->i64) : first;
        v.v = binary(e, LLVM_SUB, v.v, binary(e, LLVM_MUL, wide, number(e, v.bits, (uint64_t)s->stride)));
        v.shape.wrapped = 0;
    }
    if (!trusted) {
        differ = binary(e, LLVM_AND, icmp(e, LLVM_NE, all, as_vector(e, &v)), mask);
        *bad = *bad ? binary(e, LLVM_OR, *bad, differ) : differ;
    }
    e->ll->LLVMBuildStore(e->b, v.v, e->slot[reg]);
    if (e->turn[reg])
        e->ll->LLVMBuildStore(e->b, number(e, 32, e->lanes), e->turn[reg]);
}

/* ---- lanes that wait or leave ---- */

/* The next chunk begins, those before having left for block `same`. */
static void begin_chunk(struct emitter *e, llvm_value inner, llvm_value outer, llvm_value lanes, llvm_value same)
{
    llvm_block from = e->ll->LLVMGetInsertBlock(e->b);

    e->ll->LLVMBuildBr(e->b, e->chunk);
    e->ll->LLVMAddIncoming(e->turns.inner, &inner, &from, 1);
    e->ll->LLVMAddIncoming(e->turns.outer, &outer, &from, 1);
    e->ll->LLVMAddIncoming(e->chunk_lanes, &lanes, &from, 1);
    e->ll->LLVMAddIncoming(e->chunk_same, &same, &from, 1);
}

/* Ends the call. */
static void stop_at(struct emitter *e, llvm_value result)
{
    set_member(e, offsetof(struct native_call, same), e->chunk_same, false);
    e->ll->LLVMBuildRet(e->b, result);
}

static size_t pending_at(uint32_t block)
{
    return offsetof(struct native_call, pending) + sizeof(uint32_t) * block;
}

static void add_pending(struct emitter *e, uint32_t block, llvm_value mask)
{
    set_member(e, pending_at(block), binary(e, LLVM_OR, member(e, pending_at(block), 32), mask_bits(e, mask)), false);
}

static llvm_value block_bit(const struct emitter *e, uint32_t block, bool and_below)
{
    uint64_t words[NATIVE_BLOCKS_MAX / 64] = {0};

    words[block / 64] = 1ull << (block % 64);
    for (uint32_t w = 0; and_below && w < block / 64; w++)
        words[w] = ~0ull;
    if (and_below)
        words[block / 64] |= words[block / 64] - 1;
    return e->ll->LLVMConstIntOfArbitraryPrecision(e->bits_type, e->bits_words, words);
}

static void wait_there(struct emitter *e, uint32_t block, llvm_value mask)
{
    add_pending(e, block, mask);
    e->ll->LLVMBuildStore(e->b, binary(e, LLVM_OR, load_slot(e, e->bits_type, e->bits_slot), block_bit(e, block, false)), e->bits_slot);
    e->awaited[block] = 1;
}

static void note_mixed(struct emitter *e, llvm_value yes)
{
    llvm_value before = load_slot(e, e->i32, e->mixed_slot);

    e->ll->LLVMBuildStore(e->b, binary(e, LLVM_OR, before, cast(e, LLVM_ZEXT, yes, e->i32)), e->mixed_slot);
}

static void count_leave(struct emitter *e, uint32_t block)
{
    llvm_value before = load_slot(e, e->i32, e->leaves_slot),
               other = icmp(e, LLVM_NE, load_slot(e, e->i32, e->last_slot), number(e, 32, block));

    note_mixed(e, binary(e, LLVM_AND, other, icmp(e, LLVM_NE, before, number(e, 32, 0))));
    e->ll->LLVMBuildStore(e->b, binary(e, LLVM_ADD, before, number(e, 32, 1)), e->leaves_slot);
    e->ll->LLVMBuildStore(e->b, number(e, 32, block), e->last_slot);
}

/* A line that has wrapped is no line in the arrays. */
static void note_turn(struct emitter *e, uint32_t reg)
{
    note_mixed(e, icmp(e, LLVM_ULT, load_slot(e, e->i32, e->turn[reg]), number(e, 32, e->lanes)));
}

static void save_registers(struct emitter *e, uint32_t block, llvm_value mask)
{
    for (uint32_t r = 0; r < e->plan->function->registers_count; r++) {
        if (!e->plan->dirty[r] || !plan_is_live(e->plan, block, r))
            continue;
        save_register(e, r, mask);
        if (e->turn[r])
            note_turn(e, r);
    }
}

static void stand_there(struct emitter *e, uint32_t block, llvm_value mask)
{
    size_t touched = offsetof(struct native_call, touched) + sizeof(uint64_t) * (block / 64);

    add_pending(e, block, mask);
    count_leave(e, block);
    set_member(e, touched, binary(e, LLVM_OR, member(e, touched, 64), number(e, 64, 1ull << (block % 64))), false);
}

static void leave_there(struct emitter *e, uint32_t block, llvm_value mask)
{
    save_registers(e, block, mask);
    stand_there(e, block, mask);
}

static void finish_path(struct emitter *e, uint32_t from)
{
    (void)from;
    e->ll->LLVMBuildBr(e->b, e->dispatch);
}

/* The interpreter looks at the clock and for others' turns when a chunk has gone round often enough. */
static void count_round(struct emitter *e, uint32_t from, uint32_t to, llvm_value mask)
{
    llvm_block out = new_block(e, "out"), on = new_block(e, "on");
    uint32_t   cost = block_of(e, from)->spins ? NATIVE_SPIN_COST : 1;
    llvm_value left = binary(e, LLVM_SUB, load_slot(e, e->i32, e->budget_slot), number(e, 32, cost));

    e->ll->LLVMBuildStore(e->b, left, e->budget_slot);
    e->ll->LLVMBuildCondBr(e->b, likely(e, icmp(e, LLVM_SGT, left, number(e, 32, 0))), on, out);
    go_on_in(e, out);
    wait_there(e, to, mask);
    e->ll->LLVMBuildBr(e->b, e->leave);
    go_on_in(e, on);
}

/* Whether lanes that leave for the block may have a line that has wrapped. */
static bool may_turn(const struct emitter *e, uint32_t block)
{
    for (uint32_t r = 0; r < e->plan->function->registers_count; r++) {
        if (e->turn[r] && e->plan->dirty[r] && plan_is_live(e->plan, block, r))
            return true;
    }
    return false;
}

static llvm_value plus_step(struct emitter *e, llvm_value now, llvm_value step)
{
    return binary(e, LLVM_ADD, now, step);
}

/* The next chunk has all its lanes, too. */
static void go_on_quickly(struct emitter *e, uint32_t to)
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

/* All lanes of the chunk leave for block `to`: where those of the chunks before did, too, the next chunk follows at once. */
static void leave_full(struct emitter *e, uint32_t to)
{
    save_registers(e, to, e->mask);
    if (!may_turn(e, to))
        go_on_quickly(e, to);
    stand_there(e, to, e->mask);
    e->ll->LLVMBuildBr(e->b, e->dispatch);
}

/* The lanes of `mask` go to block `to`. Ends the present basic block. */
static void go_to(struct emitter *e, uint32_t from, uint32_t to, llvm_value mask)
{
    llvm_block direct, wait;
    llvm_value lower;

    if (!e->plan->native[to] && e->full) {
        leave_full(e, to);
        return;
    }
    if (!e->plan->native[to]) {
        leave_there(e, to, mask);
        finish_path(e, from);
        return;
    }
    if (to <= from)
        count_round(e, from, to, mask);
    if (e->full) {
        e->ll->LLVMBuildBr(e->b, e->full_blocks[to]);
        return;
    }
    e->ll->LLVMBuildStore(e->b, mask, e->mask_slot);
    if (!e->plan->divergent[from]) {
        e->ll->LLVMBuildBr(e->b, e->blocks[to]);
        return;
    }
    direct = new_block(e, "direct");
    wait = new_block(e, "wait");
    lower = binary(e, LLVM_AND, load_slot(e, e->bits_type, e->bits_slot), block_bit(e, to, true));
    e->ll->LLVMBuildCondBr(e->b, icmp(e, LLVM_EQ, lower, e->ll->LLVMConstNull(e->bits_type)), direct, wait);
    go_on_in(e, wait);
    wait_there(e, to, mask);
    e->ll->LLVMBuildBr(e->b, e->dispatch);
    go_on_in(e, direct);
    e->ll->LLVMBuildBr(e->b, e->blocks[to]);
}

/* Some lanes go each way: those of the lower block first. */
static void go_both_ways(struct emitter *e, uint32_t from, uint32_t low, llvm_value low_mask, uint32_t high, llvm_value high_mask)
{
    if (!e->plan->native[high]) {
        leave_there(e, high, high_mask);
        go_to(e, from, low, low_mask);
    } else if (!e->plan->native[low]) {
        leave_there(e, low, low_mask);
        go_to(e, from, high, high_mask);
    } else {
        wait_there(e, high, high_mask);
        go_to(e, from, low, low_mask);
    }
}

static void split(struct emitter *e, uint32_t from, llvm_value p)
{
    uint32_t   target = block_of(e, from)->target, next = from + 1;
    llvm_value yes = binary(e, LLVM_AND, e->mask, p);
    llvm_value no = binary(e, LLVM_AND, e->mask, binary(e, LLVM_XOR, p, like(e, false, 1, 1)));
    llvm_block none = new_block(e, "none"), some = new_block(e, "some"), all = new_block(e, "all"), both = new_block(e, "both");

    e->ll->LLVMBuildCondBr(e->b, icmp(e, LLVM_EQ, mask_bits(e, yes), number(e, 32, 0)), none, some);
    go_on_in(e, none);
    go_to(e, from, next, e->mask);
    go_on_in(e, some);
    e->ll->LLVMBuildCondBr(e->b, icmp(e, LLVM_EQ, mask_bits(e, no), number(e, 32, 0)), all, both);
    go_on_in(e, all);
    go_to(e, from, target, e->mask);
    go_on_in(e, both);
    e->full = false;
    if (target < next)
        go_both_ways(e, from, target, yes, next, no);
    else
        go_both_ways(e, from, next, no, target, yes);
}

/* All lanes, if that holds. */
static void go_if(struct emitter *e, uint32_t from, llvm_value holds, uint32_t to)
{
    llvm_block yes = new_block(e, "yes"), no = new_block(e, "no");

    e->ll->LLVMBuildCondBr(e->b, likely(e, holds), yes, no);
    go_on_in(e, yes);
    go_to(e, from, to, e->mask);
    go_on_in(e, no);
}

static void leave_block(struct emitter *e, uint32_t block)
{
    const struct code_block *k = block_of(e, block);
    const struct ptx_insn   *in = k->last.insn;
    struct value             p;
    struct decision          d;
    llvm_block               yes, no;

    if (k->end != END_BRANCH || in->guard == PTX_NO_REG || k->target == block + 1) {
        go_to(e, block, k->end == END_BRANCH ? k->target : block + 1, e->mask);
        return;
    }
    p = read_register(e, in->guard);
    if (in->guard_not)
        p.v = binary(e, LLVM_XOR, p.v, like(e, p.scalar, 1, 1));
    if (!p.scalar && e->full && decide_branch(e, in, &d)) {
        bool back = k->target <= block; /* mostly taken; others mostly not */

        go_if(e, block, back ? d.all : d.none, back ? k->target : block + 1);
        go_if(e, block, back ? d.none : d.all, back ? block + 1 : k->target);
    }
    if (!p.scalar) {
        split(e, block, p.v);
        return;
    }
    yes = new_block(e, "yes");
    no = new_block(e, "no");
    e->ll->LLVMBuildCondBr(e->b, p.v, yes, no);
    go_on_in(e, yes);
    go_to(e, block, k->target, e->mask);
    go_on_in(e, no);
    go_to(e, block, block + 1, e->mask);
}

/* ---- blocks ---- */

static void emit_insn(struct emitter *e)
{
    if (native_way(e->plan->module, e->plan->function, e->insn) == NATIVE_BORROWED) {
        emit_borrowed(e);
        return;
    }
    switch ((int)e->insn->opcode) {
    case PTX_OP_MOV:
        emit_move(e);
        break;
    case PTX_OP_LD:
    case PTX_OP_LDU:
        emit_load(e);
        break;
    case PTX_OP_ST:
        emit_store(e);
        break;
    case PTX_OP_CVT:
        emit_convert(e);
        break;
    case PTX_OP_CVTA:
        emit_address(e);
        break;
    case PTX_OP_SETP:
        emit_compare(e);
        break;
    case PTX_OP_SELP:
        emit_select(e);
        break;
    case PTX_OP_SHFL:
        emit_shuffle(e);
        break;
    case PTX_OP_VOTE:
        emit_vote(e);
        break;
    case PTX_OP_ACTIVEMASK:
        emit_activemask(e);
        break;
    case PTX_OP_ATOM:
    case PTX_OP_RED:
        emit_atomic(e);
        break;
    case PTX_OP_BAR:
    case PTX_OP_BARRIER: /* of a warp: its block has let all members meet */
        break;
    default:
        emit_arithmetic(e);
        break;
    }
}

static void emit_insns(struct emitter *e)
{
    const struct code_block *k = block_of(e, e->block);

    for (uint32_t i = k->insn_first; i < k->insn_first + k->insn_count; i++) {
        e->insn = &e->plan->function->insns[i];
        if (e->insn->opcode == PTX_OP_BRA)
            break;
        e->guarded = e->insn->guard != PTX_NO_REG;
        e->taken = e->mask;
        if (e->guarded) {
            struct value p = read_register(e, e->insn->guard);
            if (e->insn->guard_not)
                p.v = binary(e, LLVM_XOR, p.v, like(e, p.scalar, 1, 1));
            e->taken = binary(e, LLVM_AND, e->mask, as_vector(e, &p));
        }
        emit_insn(e);
    }
}

/* Without the checks that `ok` stands for; and with each of them, for the lanes that fail one. */
static void emit_versions(struct emitter *e, llvm_value ok)
{
    llvm_block assuming = new_block(e, "assuming"), careful = new_block(e, "careful"), end = new_block(e, "end");
    unsigned   groups = e->groups_count;

    e->ll->LLVMBuildCondBr(e->b, likely(e, ok), assuming, careful);
    go_on_in(e, assuming);
    e->assuming = true;
    emit_insns(e);
    e->assuming = false;
    e->ll->LLVMBuildBr(e->b, end);
    go_on_in(e, careful);
    e->groups_count = groups;
    e->careful = true;
    emit_insns(e);
    e->careful = false;
    e->ll->LLVMBuildBr(e->b, end);
    go_on_in(e, end);
}

/* Operations of a warp wait for their members, which the interpreter lets meet. */
static void meet_warp(struct emitter *e, uint32_t block)
{
    llvm_block stay = new_block(e, "stay"), go = new_block(e, "go");

    e->ll->LLVMBuildCondBr(e->b, likely(e, warp_is_here(e, &e->plan->function->insns[block_of(e, block)->insn_first])), go, stay);
    go_on_in(e, stay);
    leave_there(e, block, e->mask);
    e->ll->LLVMBuildBr(e->b, e->dispatch);
    go_on_in(e, go);
}

/* The version for chunks all of whose lanes run it. Where a check does not pass, the other version has a look at each access. */
static void emit_full_block(struct emitter *e, uint32_t block)
{
    llvm_block sure = new_block(e, "sure"), careful = new_block(e, "careful");
    llvm_value ok;

    go_on_in(e, e->full_blocks[block]);
    e->block = block;
    e->full = true;
    e->mask = e->ll->LLVMConstAllOnes(vector_of(e, e->i1));
    if (block_of(e, block)->warp_first)
        meet_warp(e, block);
    ok = check_ahead(e);
    e->ll->LLVMBuildCondBr(e->b, ok ? likely(e, ok) : number(e, 1, 1), sure, careful);
    go_on_in(e, careful);
    e->ll->LLVMBuildStore(e->b, e->mask, e->mask_slot);
    e->ll->LLVMBuildBr(e->b, e->blocks[block]);
    go_on_in(e, sure);
    emit_insns(e);
    leave_block(e, block);
    e->full = false;
}

static void emit_block(struct emitter *e, uint32_t block)
{
    llvm_value ok;

    go_on_in(e, e->blocks[block]);
    e->block = block;
    e->groups_count = 0;
    e->mask = load_slot(e, vector_of(e, e->i1), e->mask_slot);
    if (block_of(e, block)->warp_first)
        meet_warp(e, block);
    ok = check_block(e);
    if (ok)
        emit_versions(e, ok);
    else
        emit_insns(e);
    leave_block(e, block);
}

static void fetch_all(struct emitter *e, uint32_t block, llvm_value mask, llvm_value first, bool trusted, llvm_value *bad)
{
    const struct jit_plan *p = e->plan;

    for (uint32_t r = 0; r < p->function->registers_count; r++) {
        if ((p->dirty[r] || p->read[r]) && plan_is_live(p, block, r))
            fetch_register(e, r, mask, first, trusted, bad);
    }
}

/* The lanes with those bits run it: perhaps all. */
static void enter_block(struct emitter *e, uint32_t block, llvm_value bits)
{
    e->ll->LLVMBuildCondBr(e->b, icmp(e, LLVM_EQ, bits, all_lanes(e)), e->full_blocks[block], e->blocks[block]);
}

static void emit_entry(struct emitter *e, uint32_t block, llvm_value mask, llvm_value first, llvm_value trusted)
{
    llvm_value bad = NULL;
    llvm_block good, refused, trusting = new_block(e, "trusting"), checking = new_block(e, "checking");

    e->ll->LLVMBuildCondBr(e->b, trusted, trusting, checking);
    go_on_in(e, trusting);
    fetch_all(e, block, mask, first, true, &bad);
    enter_block(e, block, e->chunk_lanes);
    go_on_in(e, checking);
    fetch_all(e, block, mask, first, false, &bad);
    if (bad) {
        good = new_block(e, "good");
        refused = new_block(e, "refused");
        e->ll->LLVMBuildCondBr(e->b, likely(e, icmp(e, LLVM_EQ, mask_bits(e, bad), number(e, 32, 0))), good, refused);
        go_on_in(e, refused);
        stop_at(e, binary(e, LLVM_OR, e->chunk_lane, number(e, 32, NATIVE_REFUSED)));
        go_on_in(e, good);
    }
    enter_block(e, block, e->chunk_lanes);
}

static void emit_dispatch(struct emitter *e)
{
    llvm_block none = new_block(e, "none"), some = new_block(e, "some");
    llvm_value bits, args[2], lowest, to;

    go_on_in(e, e->dispatch);
    bits = load_slot(e, e->bits_type, e->bits_slot);
    e->ll->LLVMBuildCondBr(e->b, icmp(e, LLVM_EQ, bits, e->ll->LLVMConstNull(e->bits_type)), none, some);
    go_on_in(e, none);
    e->ll->LLVMBuildBr(e->b, e->done);
    go_on_in(e, some);
    args[0] = bits;
    args[1] = number(e, 1, 1);
    lowest = intrinsic(e, "llvm.cttz", &e->bits_type, 1, args, 2);
    if (e->bits_words > 1)
        lowest = e->ll->LLVMBuildCast(e->b, LLVM_TRUNC, lowest, e->i64, "");
    to = e->ll->LLVMBuildSwitch(e->b, lowest, none, 8);
    for (uint32_t b = 0; b < e->plan->code->blocks_count; b++) {
        llvm_block wake;
        llvm_value less, waiting;

        if (!e->awaited[b])
            continue;
        wake = new_block(e, "wake");
        e->ll->LLVMAddCase(to, number(e, 64, b), wake);
        go_on_in(e, wake);
        waiting = member(e, pending_at(b), 32);
        e->ll->LLVMBuildStore(e->b, lanes_vector(e, waiting), e->mask_slot);
        set_member(e, pending_at(b), number(e, 32, 0), false);
        less = binary(e, LLVM_XOR, bits, block_bit(e, b, false));
        e->ll->LLVMBuildStore(e->b, less, e->bits_slot);
        enter_block(e, b, waiting);
    }
}

/* All lanes that are still inside wait where they are. */
static void emit_leave(struct emitter *e)
{
    const struct jit_plan *p = e->plan;
    llvm_value             inside = number(e, 32, 0), mask, bits;

    go_on_in(e, e->leave);
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        if (e->awaited[b])
            inside = binary(e, LLVM_OR, inside, member(e, pending_at(b), 32));
    }
    mask = lanes_vector(e, inside);
    for (uint32_t r = 0; r < p->function->registers_count; r++) {
        bool live = false;

        for (uint32_t b = 0; b < p->code->blocks_count && p->dirty[r]; b++)
            live |= e->awaited[b] && plan_is_live(p, b, r);
        if (live)
            save_register(e, r, mask);
    }
    set_member(e, offsetof(struct native_call, tired), number(e, 32, 1), false);
    note_mixed(e, number(e, 1, 1));
    bits = load_slot(e, e->bits_type, e->bits_slot);
    for (unsigned w = 0; w < e->bits_words; w++) {
        size_t     at = offsetof(struct native_call, touched) + sizeof(uint64_t) * w;
        llvm_value word = bits;

        if (e->bits_words > 1) {
            uint64_t by[NATIVE_BLOCKS_MAX / 64] = {64ull * w};
            word = binary(e, LLVM_LSHR, bits, e->ll->LLVMConstIntOfArbitraryPrecision(e->bits_type, e->bits_words, by));
            word = e->ll->LLVMBuildCast(e->b, LLVM_TRUNC, word, e->i64, "");
        }
        set_member(e, at, binary(e, LLVM_OR, member(e, at, 64), word), false);
    }
    e->ll->LLVMBuildBr(e->b, e->done);
}

/* ---- chunk after chunk ---- */

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
    t->inner_first = choose(e, t->across, first_x, number(e, 32, 0));
    t->inner_step = choose(e, t->across, one, lanes);
    t->inner_end = choose(e, t->across, end_x, parameter(e, 4));
    t->inner_full_end = choose(e, t->across, end_x, full_end);
    t->outer_step = choose(e, t->across, lanes, one);
    t->outer_end = choose(e, t->across, full_end, end_x);
}

static void start_chunks(struct emitter *e)
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
    if (e->plan->warps)
        set_member(e, offsetof(struct native_call, live), e->chunk_lanes, false);
    e->lane = cast(e, LLVM_ZEXT, e->chunk_lane, e->i64);
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
static void emit_done(struct emitter *e)
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

/* ---- the function ---- */

static void make_types(struct emitter *e)
{
    const struct llvm *ll = e->ll;

    e->i1 = ll->LLVMIntTypeInContext(e->context, 1);
    e->i8 = ll->LLVMIntTypeInContext(e->context, 8);
    e->i16 = ll->LLVMIntTypeInContext(e->context, 16);
    e->i32 = ll->LLVMIntTypeInContext(e->context, 32);
    e->i64 = ll->LLVMIntTypeInContext(e->context, 64);
    e->f32 = ll->LLVMFloatTypeInContext(e->context);
    e->f64 = ll->LLVMDoubleTypeInContext(e->context);
    e->bits_words = e->plan->code->blocks_count / 64 + 1;
    if (e->bits_words > NATIVE_BLOCKS_MAX / 64)
        e->bits_words = NATIVE_BLOCKS_MAX / 64;
    e->bits_type = ll->LLVMIntTypeInContext(e->context, 64 * e->bits_words);
}

static void make_slots(struct emitter *e)
{
    const struct jit_plan *p = e->plan;

    for (uint32_t r = 0; r < p->function->registers_count; r++) {
        unsigned  bytes = p->function->registers[r].bytes;
        llvm_type type = int_type(e, bytes == 1 ? 1 : 8 * bytes);

        if (bytes > 8 || (!p->dirty[r] && !p->read[r]))
            continue;
        e->slot[r] = e->ll->LLVMBuildAlloca(e->b, p->shapes[r].kind == SHAPE_VARYING ? vector_of(e, type) : type, "");
        if (p->shapes[r].kind == SHAPE_LINEAR && p->shapes[r].wrapped)
            e->turn[r] = e->ll->LLVMBuildAlloca(e->b, e->i32, "");
    }
    e->mask_slot = e->ll->LLVMBuildAlloca(e->b, vector_of(e, e->i1), "mask");
    e->bits_slot = e->ll->LLVMBuildAlloca(e->b, e->bits_type, "bits");
    e->budget_slot = e->ll->LLVMBuildAlloca(e->b, e->i32, "budget");
    e->leaves_slot = e->ll->LLVMBuildAlloca(e->b, e->i32, "leaves");
    e->mixed_slot = e->ll->LLVMBuildAlloca(e->b, e->i32, "mixed");
    e->last_slot = e->ll->LLVMBuildAlloca(e->b, e->i32, "last");
}

static void load_members(struct emitter *e)
{
    llvm_value elements[NATIVE_LANES_MAX];

    e->frame = member(e, offsetof(struct native_call, frame), 64);
    e->stride = member(e, offsetof(struct native_call, stride), 64);
    e->params = member(e, offsetof(struct native_call, params), 64);
    e->memory_base = member(e, offsetof(struct native_call, memory_base), 64);
    e->memory_span = member(e, offsetof(struct native_call, memory_span), 64);
    e->shared = member(e, offsetof(struct native_call, shared), 64);
    e->shared_bytes = member(e, offsetof(struct native_call, shared_bytes), 64);
    e->local = member(e, offsetof(struct native_call, local), 64);
    e->local_bytes = member(e, offsetof(struct native_call, local_bytes), 64);
    for (unsigned i = 0; i < e->lanes; i++)
        elements[i] = number(e, 32, i);
    e->every = e->ll->LLVMConstVector(elements, e->lanes);
}

static void add_attribute(struct emitter *e, const char *key, const char *value)
{
    e->ll->LLVMAddAttributeAtIndex(
        e->function, LLVM_FUNCTION_INDEX,
        e->ll->LLVMCreateStringAttribute(e->context, key, (unsigned)strlen(key), value, (unsigned)strlen(value)));
}

static void emit_start(struct emitter *e)
{
    const struct jit_plan *p = e->plan;
    llvm_value             block = parameter(e, 3), to, mask, first, trusted, args[2];
    llvm_block             refused = new_block(e, "unknown");

    load_members(e);
    load_specials(e);
    load_params(e);
    make_slots(e);
    trusted = icmp(e, LLVM_NE, member(e, offsetof(struct native_call, trusted), 32), number(e, 32, 0));
    start_chunks(e);
    mask = lanes_vector(e, e->chunk_lanes);
    args[0] = e->chunk_lanes;
    args[1] = number(e, 1, 0);
    first = binary(e, LLVM_AND, intrinsic(e, "llvm.cttz", &e->i32, 1, args, 2), number(e, 32, e->lanes - 1));
    to = e->ll->LLVMBuildSwitch(e->b, block, refused, 4);
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        llvm_block entry;

        if (!p->entry[b])
            continue;
        entry = new_block(e, "entry");
        e->ll->LLVMAddCase(to, number(e, 32, b), entry);
        go_on_in(e, entry);
        emit_entry(e, b, mask, first, trusted);
    }
    go_on_in(e, refused);
    stop_at(e, binary(e, LLVM_OR, e->chunk_lane, number(e, 32, NATIVE_REFUSED)));
}

/* Larger kernels take LLVM long enough without two versions of each block. */
static bool has_full_blocks(const struct jit_plan *p)
{
    return p->insns_native <= FULL_INSNS_MAX;
}

static void emit_all(struct emitter *e, const char *name)
{
    const struct jit_plan *p = e->plan;
    llvm_type              arguments[6] = {e->i64, e->i32, e->i32, e->i32, e->i32, e->i32};
    char                   width[16];

    e->function = e->ll->LLVMAddFunction(e->module, name, e->ll->LLVMFunctionType(e->i32, arguments, 6, 0));
    snprintf(width, sizeof width, "%u", 32 * llvm_lanes());
    add_attribute(e, "min-legal-vector-width", width);
    add_attribute(e, "prefer-vector-width", width);
    go_on_in(e, new_block(e, "start"));
    e->call = parameter(e, 0);
    e->dispatch = new_block(e, "dispatch");
    e->done = new_block(e, "done");
    e->leave = new_block(e, "leave");
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        if (p->native[b]) {
            e->blocks[b] = new_block(e, "block");
            e->full_blocks[b] = has_full_blocks(p) ? new_block(e, "full") : e->blocks[b];
        }
    }
    emit_start(e);
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        if (p->native[b]) {
            if (has_full_blocks(p))
                emit_full_block(e, b);
            emit_block(e, b);
        }
    }
    emit_dispatch(e);
    emit_leave(e);
    emit_done(e);
}

bool emit_function(struct emitter *e, const char *name)
{
    const struct jit_plan *p = e->plan;
    size_t                 registers = (size_t)p->function->registers_count + 1;

    make_types(e);
    e->lanes = p->lanes;
    e->slot = calloc(registers, sizeof *e->slot);
    e->turn = calloc(registers, sizeof *e->turn);
    e->blocks = calloc(p->code->blocks_count, sizeof *e->blocks);
    e->awaited = calloc(p->code->blocks_count, 1);
    e->full_blocks = calloc(p->code->blocks_count, sizeof *e->full_blocks);
    e->passed = calloc((size_t)p->function->insns_count + 1, 1);
    if (e->slot && e->turn && e->blocks && e->awaited && e->full_blocks && e->passed)
        emit_all(e, name);
    else
        e->broken = true;
    free(e->slot);
    free(e->turn);
    free(e->blocks);
    free(e->full_blocks);
    free(e->passed);
    free(e->awaited);
    return !e->broken;
}
