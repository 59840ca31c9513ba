/* The strips of a band go through a block one after the other. A line of the first strip says where those of the others are, and what is the same for
 * all lanes of one is so for all. */
#include "device/cpu/jit/emit/band.h"

#include <stddef.h>
#include <stdlib.h>

bool band_make(struct band *d, const struct jit_plan *p)
{
    size_t registers = (size_t)p->function->registers_count + 1;

    d->first_value = calloc(registers, sizeof(llvm_value));
    d->first_turn = calloc(registers, sizeof(llvm_value));
    d->result_value = calloc(registers, sizeof(llvm_value));
    d->result_turn = calloc(registers, sizeof(llvm_value));
    return d->first_value && d->first_turn && d->result_value && d->result_turn;
}

void band_finish(struct band *d)
{
    free((void *)d->first_value);
    free((void *)d->first_turn);
    free((void *)d->result_value);
    free((void *)d->result_turn);
}

bool is_accessed(const struct emitter *e, uint32_t block)
{
    const struct code_block *k = block_of(e, block);

    for (uint32_t i = k->insn_first; i < k->insn_first + k->insn_count; i++) {
        const struct ptx_operand *at = address_operand(&e->plan->function->insns[i]);

        if (at && at->reg != PTX_NO_REG)
            return true;
    }
    return false;
}

static bool is_line(const struct emitter *e, uint32_t reg)
{
    return e->slot[reg] && e->plan->shapes[reg].kind == SHAPE_LINEAR;
}

static bool is_uniform(const struct emitter *e, uint32_t reg)
{
    return e->slot[reg] && e->plan->shapes[reg].kind == SHAPE_UNIFORM;
}

static llvm_type register_type(const struct emitter *e, uint32_t reg)
{
    unsigned bytes = e->plan->function->registers[reg].bytes;

    return int_type(e, bytes == 1 ? 1 : 8 * bytes);
}

/* A value in the loop that is not known before its first round. */
static llvm_value make_result(struct emitter *e, llvm_type type, llvm_block from)
{
    llvm_value phi = e->ll->LLVMBuildPhi(e->b, type, ""), none = e->ll->LLVMGetUndef(type);

    e->ll->LLVMAddIncoming(phi, &none, &from, 1);
    return phi;
}

static void load_first(struct emitter *e, struct band *d)
{
    for (uint32_t r = 0; r < e->plan->function->registers_count; r++) {
        if (!is_line(e, r) && !is_uniform(e, r))
            continue;
        d->first_value[r] = load_slot(e, register_type(e, r), e->slot[r]);
        if (e->turn[r])
            d->first_turn[r] = load_slot(e, e->i32, e->turn[r]);
    }
}

static void make_results(struct emitter *e, struct band *d, llvm_block from)
{
    for (uint32_t r = 0; r < e->plan->function->registers_count; r++) {
        d->result_value[r] = d->result_turn[r] = NULL;
        if (!is_line(e, r) || e->plan->local[r] || !block_writes(e->plan, block_of(e, e->block), r))
            continue;
        d->result_value[r] = make_result(e, register_type(e, r), from);
        if (e->turn[r])
            d->result_turn[r] = make_result(e, e->i32, from);
    }
}

/* The registers as this strip finds them: where a line has wrapped before, it has for all lanes. */
static void shift_registers(struct emitter *e, const struct band *d)
{
    llvm_value before = binary(e, LLVM_MUL, d->strip, number(e, 32, e->lanes)), wide = cast(e, LLVM_ZEXT, before, e->i64);

    for (uint32_t r = 0; r < e->plan->function->registers_count; r++) {
        bool       is_wide = e->plan->function->registers[r].bytes == 8;
        llvm_value by;

        if (is_uniform(e, r))
            e->ll->LLVMBuildStore(e->b, d->first_value[r], e->slot[r]);
        if (!is_line(e, r))
            continue;
        by = binary(e, LLVM_MUL, is_wide ? wide : before, number(e, is_wide ? 64 : 32, (uint64_t)e->plan->shapes[r].stride));
        e->ll->LLVMBuildStore(e->b, binary(e, LLVM_ADD, d->first_value[r], by), e->slot[r]);
        if (e->turn[r])
            e->ll->LLVMBuildStore(
                e->b,
                choose(e, icmp(e, LLVM_UGT, d->first_turn[r], before), binary(e, LLVM_SUB, d->first_turn[r], before), number(e, 32, 0)),
                e->turn[r]);
    }
}

/* Where the strip is; the handler of faults asks which one it is. */
static void shift_place(struct emitter *e, struct band *d)
{
    llvm_value by = binary(e, LLVM_MUL, d->strip, number(e, 32, e->plan->across ? STRIP_CHUNKS : e->lanes));

    d->lane = e->lane;
    d->block = e->specials[PTX_SPECIAL_CTAID_X];
    if (e->plan->across) {
        e->specials[PTX_SPECIAL_CTAID_X] = binary(e, LLVM_ADD, d->block, by);
    } else {
        e->lane = binary(e, LLVM_ADD, d->lane, cast(e, LLVM_ZEXT, by, e->i64));
    }
    set_member(e, offsetof(struct native_call, strip_now), d->strip, true);
}

void begin_each_strip(struct emitter *e, struct band *d)
{
    llvm_block from = e->ll->LLVMGetInsertBlock(e->b);
    llvm_value first = binary(e, LLVM_UDIV, lanes_left(e).low, number(e, 32, e->lanes));

    if (!e->band_slot)
        return;
    load_first(e, d);
    d->loop = new_block(e, "each_strip");
    e->ll->LLVMBuildBr(e->b, d->loop);
    go_on_in(e, d->loop);
    d->strip = e->ll->LLVMBuildPhi(e->b, e->i32, "");
    e->ll->LLVMAddIncoming(d->strip, &first, &from, 1);
    make_results(e, d, from);
    shift_registers(e, d);
    shift_place(e, d);
}

/* What the first strip left in the slot, then and later. */
static llvm_value keep_first(struct emitter *e, const struct band *d, llvm_value phi, llvm_type type, llvm_value slot)
{
    llvm_value now = choose(e, icmp(e, LLVM_EQ, d->strip, number(e, 32, 0)), load_slot(e, type, slot), phi);
    llvm_block from = e->ll->LLVMGetInsertBlock(e->b);

    e->ll->LLVMAddIncoming(phi, &now, &from, 1);
    return now;
}

void end_each_strip(struct emitter *e, struct band *d)
{
    uint32_t   registers = e->plan->function->registers_count;
    llvm_block done, from = e->ll->LLVMGetInsertBlock(e->b);
    llvm_value next, end;

    if (!e->band_slot)
        return;
    for (uint32_t r = 0; r < registers; r++) {
        if (d->result_value[r])
            d->first_value[r] = keep_first(e, d, d->result_value[r], register_type(e, r), e->slot[r]);
        if (d->result_turn[r])
            d->first_turn[r] = keep_first(e, d, d->result_turn[r], e->i32, e->turn[r]);
    }
    next = binary(e, LLVM_ADD, d->strip, number(e, 32, 1));
    e->ll->LLVMAddIncoming(d->strip, &next, &from, 1);
    done = new_block(e, "each_done");
    end = binary(e, LLVM_MUL, next, number(e, 32, e->lanes));
    e->ll->LLVMBuildCondBr(e->b, icmp(e, LLVM_ULT, end, lanes_left(e).high), d->loop, done);
    go_on_in(e, done);
    for (uint32_t r = 0; r < registers; r++) {
        if (is_line(e, r))
            e->ll->LLVMBuildStore(e->b, d->first_value[r], e->slot[r]);
        if (is_line(e, r) && e->turn[r])
            e->ll->LLVMBuildStore(e->b, d->first_turn[r], e->turn[r]);
    }
    e->lane = d->lane;
    e->specials[PTX_SPECIAL_CTAID_X] = d->block;
}

static void note_part(struct emitter *e, llvm_value from, llvm_value to)
{
    set_member(e, offsetof(struct native_call, strip_first), from, true);
    set_member(e, offsetof(struct native_call, strip_end), to, true);
}

/* Of a strip, the lanes that have not returned. */
static void emit_part(struct emitter *e, llvm_value first, llvm_value behind, struct stretch left)
{
    llvm_value all = e->mask, from, to;

    from = binary(e, LLVM_SUB, choose(e, icmp(e, LLVM_UGT, left.low, first), left.low, first), first);
    to = binary(e, LLVM_SUB, choose(e, icmp(e, LLVM_ULT, left.high, behind), left.high, behind), first);
    note_part(e, from, to);
    e->mask = binary(e, LLVM_AND, icmp(e, LLVM_UGE, e->every, spread(e, from)), icmp(e, LLVM_ULT, e->every, spread(e, to)));
    emit_insns(e);
    e->mask = all;
    note_part(e, number(e, 32, 0), number(e, 32, e->lanes));
}

void emit_strip_insns(struct emitter *e, struct band *d)
{
    llvm_value     first, behind, inside;
    struct stretch left;
    llvm_block     whole, part, join;

    if (!e->low_slot) {
        emit_insns(e);
        return;
    }
    left = lanes_left(e);
    first = binary(e, LLVM_MUL, d->strip, number(e, 32, e->lanes));
    behind = binary(e, LLVM_ADD, first, number(e, 32, e->lanes));
    inside = binary(e, LLVM_AND, icmp(e, LLVM_ULE, left.low, first), icmp(e, LLVM_UGE, left.high, behind));
    whole = new_block(e, "whole");
    part = new_block(e, "part");
    join = new_block(e, "join");
    e->ll->LLVMBuildCondBr(e->b, likely(e, inside), whole, part);
    go_on_in(e, whole);
    emit_insns(e);
    e->ll->LLVMBuildBr(e->b, join);
    go_on_in(e, part);
    emit_part(e, first, behind, left);
    e->ll->LLVMBuildBr(e->b, join);
    go_on_in(e, join);
}
