/* Lanes that wait, leave or part at the ends of blocks. */
#include "device/cpu/jit/emit/flow.h"

#include <stddef.h>

size_t pending_at(uint32_t block)
{
    return offsetof(struct native_call, pending) + sizeof(uint32_t) * block;
}

static void add_pending(struct emitter *e, uint32_t block, llvm_value mask)
{
    set_member(e, pending_at(block), binary(e, LLVM_OR, member(e, pending_at(block), 32), mask_bits(e, mask)), false);
}

llvm_value block_bit(const struct emitter *e, uint32_t block, bool and_below)
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
    e->broken |= !plan_may_wait(e->plan, e->block, block); /* its registers would be lost if the chunk stopped */
    add_pending(e, block, mask);
    e->ll->LLVMBuildStore(e->b, binary(e, LLVM_OR, load_slot(e, e->bits_type, e->bits_slot), block_bit(e, block, false)), e->bits_slot);
    e->awaited[block] = 1;
}

void note_mixed(struct emitter *e, llvm_value yes)
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

static void stand_there(struct emitter *e, uint32_t block, llvm_value mask)
{
    size_t touched = offsetof(struct native_call, touched) + sizeof(uint64_t) * (block / 64);

    add_pending(e, block, mask);
    count_leave(e, block);
    set_member(e, touched, binary(e, LLVM_OR, member(e, touched, 64), number(e, 64, 1ull << (block % 64))), false);
}

void leave_there(struct emitter *e, uint32_t block, llvm_value mask)
{
    save_registers(e, block, mask);
    stand_there(e, block, mask);
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
    settle_registers(e);
    wait_there(e, to, mask);
    e->ll->LLVMBuildBr(e->b, e->leave);
    go_on_in(e, on);
}

/* All lanes of the chunk leave for block `to`: where those of the chunks before did, too, the next chunk follows at once, unless a line of this one
 * has wrapped. */
static void leave_full(struct emitter *e, uint32_t to)
{
    bool       holds = plan_holds(e->plan, to);
    llvm_block quick = new_block(e, "quick"), rest = new_block(e, "rest"), turned;
    llvm_value straight;

    if (!holds) {
        if (e->plan->passes[to] != PASSES_RETURN) /* where nobody reads registers */
            settle_registers(e);
        save_registers(e, to, e->mask);
    }
    straight = lines_are_straight(e, to);
    if (straight) {
        turned = new_block(e, "turned");
        e->ll->LLVMBuildCondBr(e->b, likely(e, straight), quick, turned);
        go_on_in(e, turned);
        if (holds) {
            settle_registers(e);
            save_registers(e, to, e->mask);
        }
        e->ll->LLVMBuildBr(e->b, rest);
    } else {
        e->ll->LLVMBuildBr(e->b, quick);
    }
    go_on_in(e, quick);
    if (holds)
        hold_registers(e, to);
    go_on_quickly(e, to);
    e->ll->LLVMBuildBr(e->b, rest);
    go_on_in(e, rest);
    stand_there(e, to, e->mask);
    e->ll->LLVMBuildBr(e->b, e->dispatch);
}

/* The lanes of `mask` go to block `to`. Ends the present basic block. */
void go_to(struct emitter *e, uint32_t from, uint32_t to, llvm_value mask)
{
    llvm_block direct, wait;
    llvm_value lower;

    if (!e->plan->native[to] && e->full) {
        leave_full(e, to);
        return;
    }
    if (!e->plan->native[to]) {
        leave_there(e, to, mask);
        e->ll->LLVMBuildBr(e->b, e->dispatch);
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
    settle_registers(e);
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

void leave_block(struct emitter *e, uint32_t block)
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
