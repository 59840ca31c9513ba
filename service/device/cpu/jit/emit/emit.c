/* The control flow of compiled kernels. The lowest block with waiting lanes runs next, as in the interpreter; lanes that come to a block
 * which is not compiled leave, with their registers in the interpreter's arrays. */
#include "device/cpu/jit/emit/flow.h"

#include <stdio.h>
#include <stdlib.h>

#include "device/cpu/jit/subset.h"

enum { FULL_INSNS_MAX = 160 };

const struct code_block *block_of(const struct emitter *e, uint32_t block)
{
    return &e->plan->code->blocks[block];
}

llvm_value parameter(const struct emitter *e, unsigned i)
{
    return e->ll->LLVMGetParam(e->function, i);
}

llvm_value all_lanes(const struct emitter *e)
{
    return number(e, 32, (1ull << e->lanes) - 1);
}

llvm_value load_slot(struct emitter *e, llvm_type type, llvm_value slot)
{
    return e->ll->LLVMBuildLoad2(e->b, type, slot, "");
}

/* ---- into compiled code, between its blocks, and out ---- */

static void fetch_all(struct emitter *e, uint32_t block, llvm_value mask, llvm_value first, bool trusted, llvm_value *bad)
{
    const struct jit_plan *p = e->plan;

    for (uint32_t r = 0; r < p->function->registers_count; r++) {
        if ((p->dirty[r] || p->read[r]) && plan_is_needed(p, block, r))
            fetch_register(e, r, mask, first, trusted, bad);
    }
}

/* The lanes with those bits run it: perhaps all. */
static void enter_block(struct emitter *e, uint32_t block, llvm_value bits)
{
    e->ll->LLVMBuildCondBr(e->b, icmp(e, LLVM_EQ, bits, all_lanes(e)), e->full_blocks[block], e->blocks[block]);
}

static llvm_value first_lane(struct emitter *e)
{
    llvm_value args[2] = {e->chunk_lanes, number(e, 1, 0)};

    return binary(e, LLVM_AND, intrinsic(e, "llvm.cttz", &e->i32, 1, args, 2), number(e, 32, e->lanes - 1));
}

/* The registers of lanes that came together have their shapes; a chunk that has not all its lanes is looked at all the same. */
static void emit_entry(struct emitter *e, uint32_t block, llvm_value trusted)
{
    llvm_value bad = NULL;
    llvm_block good, refused, trusting = new_block(e, "trusting"), checking = new_block(e, "checking");

    trusted = binary(e, LLVM_AND, trusted, icmp(e, LLVM_EQ, e->chunk_lanes, all_lanes(e)));
    e->ll->LLVMBuildCondBr(e->b, trusted, trusting, checking);
    go_on_in(e, trusting);
    if (!emit_late_entry(e, block)) {
        fetch_all(e, block, NULL, number(e, 32, 0), true, NULL);
        e->ll->LLVMBuildBr(e->b, e->full_blocks[block]);
    }
    go_on_in(e, checking);
    fetch_all(e, block, lanes_vector(e, e->chunk_lanes), first_lane(e), false, &bad);
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
        if (p->left_alive[r / 64] >> (r % 64) & 1)
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

void make_register_slots(struct emitter *e)
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
}

static void make_slots(struct emitter *e)
{
    make_register_slots(e);
    begin_strip_slots(e);
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
    llvm_value             block = parameter(e, 3), to, trusted;
    llvm_block             refused = new_block(e, "unknown");

    load_members(e);
    load_specials(e);
    load_params(e);
    make_slots(e);
    trusted = icmp(e, LLVM_NE, member(e, offsetof(struct native_call, trusted), 32), number(e, 32, 0));
    e->strips_wanted = icmp(e, LLVM_NE, member(e, offsetof(struct native_call, strips), 32), number(e, 32, 0));
    e->begins = icmp(e, LLVM_EQ, block, number(e, 32, 0));
    e->strips_wanted = binary(e, LLVM_AND, e->strips_wanted, e->begins);
    e->strip_align = member(e, offsetof(struct native_call, strip_align), 32);
    start_chunks(e);
    to = e->ll->LLVMBuildSwitch(e->b, block, refused, 4);
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        llvm_block entry;

        if (!p->entry[b])
            continue;
        entry = new_block(e, "entry");
        e->ll->LLVMAddCase(to, number(e, 32, b), entry);
        go_on_in(e, entry);
        emit_entry(e, b, trusted);
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
        e->holds |= plan_holds(p, b) && has_full_blocks(p);
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
    e->has_strips = emit_strip(e);
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
    strip_emission_free(e->strip_made);
    free(e->slot);
    free(e->turn);
    free(e->blocks);
    free(e->full_blocks);
    free(e->passed);
    free(e->awaited);
    return !e->broken;
}
