/* Registers and the arrays that the interpreter keeps them in. */
#include "device/cpu/jit/emit/flow.h"

#include <stddef.h>

static llvm_value array_of(struct emitter *e, uint32_t reg)
{
    unsigned   bytes = e->plan->function->registers[reg].bytes;
    llvm_value at = binary(e, LLVM_MUL, e->stride, number(e, 64, e->plan->code->places[reg]));

    at = binary(e, LLVM_ADD, e->frame, at); /* the same for all chunks */
    return binary(e, LLVM_ADD, at, binary(e, LLVM_MUL, e->lane, number(e, 64, bytes)));
}

void save_register(struct emitter *e, uint32_t reg, llvm_value mask)
{
    unsigned     bytes = e->plan->function->registers[reg].bytes;
    struct value v = read_register(e, reg);
    llvm_value   all = as_vector(e, &v);

    if (bytes == 1)
        all = cast(e, LLVM_ZEXT, all, e->i8);
    own_store(e, array_of(e, reg), bytes, all, mask);
}

/* The first lane's number, which stands for all. */
static void hold_register(struct emitter *e, uint32_t reg)
{
    unsigned   bytes = e->plan->function->registers[reg].bytes;
    llvm_value first = read_register(e, reg).v;

    if (bytes == 1)
        first = cast(e, LLVM_ZEXT, first, e->i8);
    e->ll->LLVMBuildStore(e->b, first, pointer(e, array_of(e, reg), int_type(e, 8 * bytes)));
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
void fetch_register(struct emitter *e, uint32_t reg, llvm_value mask, llvm_value first, bool trusted, llvm_value *bad)
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

static bool is_saved(const struct emitter *e, uint32_t block, uint32_t reg)
{
    return plan_is_changed(e->plan, e->block, reg, false) && plan_is_live(e->plan, block, reg);
}

/* A line that has wrapped is no line in the arrays. */
static void note_turn(struct emitter *e, uint32_t reg)
{
    note_mixed(e, icmp(e, LLVM_ULT, load_slot(e, e->i32, e->turn[reg]), number(e, 32, e->lanes)));
}

llvm_value lines_are_straight(struct emitter *e, uint32_t block)
{
    llvm_value all = NULL, one;

    for (uint32_t r = 0; r < e->plan->function->registers_count; r++) {
        if (!e->turn[r] || !is_saved(e, block, r))
            continue;
        one = icmp(e, LLVM_UGE, load_slot(e, e->i32, e->turn[r]), number(e, 32, e->lanes));
        if (!plan_is_changed(e->plan, e->block, r, true)) /* not saved otherwise, nor known */
            one = choose(e, e->begins, one, number(e, 1, 1));
        all = all ? binary(e, LLVM_AND, all, one) : one;
    }
    return all;
}

/* Whether there are any among them that are saved wherever the call began, or, not `later`, only where it began in the first block. */
static bool has_some(const struct emitter *e, uint32_t block, bool later)
{
    for (uint32_t r = 0; r < e->plan->function->registers_count; r++) {
        if (is_saved(e, block, r) && plan_is_changed(e->plan, e->block, r, true) == later)
            return true;
    }
    return false;
}

/* `holds`: what is changed behind barriers again and again is held; the rest goes to the arrays once. */
static void save_some(struct emitter *e, uint32_t block, llvm_value mask, bool holds, bool later)
{
    for (uint32_t r = 0; r < e->plan->function->registers_count; r++) {
        if (!is_saved(e, block, r) || plan_is_changed(e->plan, e->block, r, true) != later)
            continue;
        if (holds && later && plan_is_held(e->plan, r))
            hold_register(e, r);
        else
            save_register(e, r, mask);
        if (e->turn[r] && !holds)
            note_turn(e, r);
    }
}

static void save_all(struct emitter *e, uint32_t block, llvm_value mask, bool holds)
{
    llvm_block begun, on;

    save_some(e, block, mask, holds, true);
    if (!has_some(e, block, false))
        return;
    begun = new_block(e, "begun");
    on = new_block(e, "on");
    e->ll->LLVMBuildCondBr(e->b, e->begins, begun, on);
    go_on_in(e, begun);
    save_some(e, block, mask, holds, false);
    e->ll->LLVMBuildBr(e->b, on);
    go_on_in(e, on);
}

void save_registers(struct emitter *e, uint32_t block, llvm_value mask)
{
    save_all(e, block, mask, false);
}

/* ---- registers that are held ---- */

/* Of the chunk, in the call. */
static llvm_value held_place(struct emitter *e)
{
    llvm_value at = binary(e, LLVM_ADD, e->call, number(e, 64, offsetof(struct native_call, held)));

    return pointer(e, binary(e, LLVM_ADD, at, binary(e, LLVM_SHL, e->lane, number(e, 64, 1))), e->i16);
}

/* A word that is stored for nothing costs matmul in tiles 2 %: mostly it is there. */
static void note_held(struct emitter *e)
{
    llvm_block fresh = new_block(e, "fresh"), on = new_block(e, "on");

    e->ll->LLVMBuildCondBr(e->b, likely(e, icmp(e, LLVM_NE, load_slot(e, e->i16, held_place(e)), number(e, 16, 0))), on, fresh);
    go_on_in(e, fresh);
    e->ll->LLVMBuildStore(e->b, number(e, 16, e->block + 1), held_place(e));
    e->ll->LLVMBuildBr(e->b, on);
    go_on_in(e, on);
}

void hold_registers(struct emitter *e, uint32_t block)
{
    bool some = false;

    for (uint32_t r = 0; r < e->plan->function->registers_count; r++)
        some |= is_saved(e, block, r) && plan_is_changed(e->plan, e->block, r, true) && plan_is_held(e->plan, r);
    save_all(e, block, e->mask, true);
    if (some)
        note_held(e);
}

void settle_registers(struct emitter *e)
{
    llvm_block held, on;
    llvm_type  type;

    if (!e->full || !e->holds)
        return;
    held = new_block(e, "held");
    on = new_block(e, "on");
    type = e->ll->LLVMFunctionType(e->ll->LLVMVoidTypeInContext(e->context), &e->i64, 1, 0);
    e->ll->LLVMBuildCondBr(e->b, likely(e, icmp(e, LLVM_EQ, load_slot(e, e->i16, held_place(e)), number(e, 16, 0))), on, held);
    go_on_in(e, held);
    e->ll->LLVMBuildCall2(e->b, type, pointer(e, member(e, offsetof(struct native_call, settle), 64), type), &e->call, 1, "");
    e->ll->LLVMBuildBr(e->b, on);
    go_on_in(e, on);
}
