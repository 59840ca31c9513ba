/* Values of compiled kernels: numbers of all lanes, as one scalar, a line or a vector; registers; members of the call. */
#include "device/cpu/jit/emit/emit.h"

#include <string.h>

llvm_type vector_of(const struct emitter *e, llvm_type element)
{
    return e->ll->LLVMVectorType(element, e->lanes);
}

llvm_type int_type(const struct emitter *e, unsigned bits)
{
    switch (bits) {
    case 1:
        return e->i1;
    case 8:
        return e->i8;
    case 16:
        return e->i16;
    case 32:
        return e->i32;
    default:
        return e->i64;
    }
}

llvm_value number(const struct emitter *e, unsigned bits, uint64_t value)
{
    return e->ll->LLVMConstInt(int_type(e, bits), bits == 64 ? value : value & ((1ull << bits) - 1), 0);
}

llvm_value spread(struct emitter *e, llvm_value scalar)
{
    llvm_type  type = vector_of(e, e->ll->LLVMTypeOf(scalar));
    llvm_value one = e->ll->LLVMBuildInsertElement(e->b, e->ll->LLVMGetUndef(type), scalar, number(e, 32, 0), "");

    return e->ll->LLVMBuildShuffleVector(e->b, one, e->ll->LLVMGetUndef(type), e->ll->LLVMConstNull(vector_of(e, e->i32)), "");
}

struct value scalar_value(llvm_value v, unsigned bits)
{
    return (struct value){.v = v, .scalar = true, .bits = bits, .shape = {SHAPE_UNIFORM, 0, 0}};
}

struct value vector_value(llvm_value v, unsigned bits)
{
    return (struct value){.v = v, .bits = bits, .shape = {SHAPE_VARYING, 0, 0}};
}

struct value constant_value(const struct emitter *e, unsigned bits, uint64_t v)
{
    return scalar_value(number(e, bits, v), bits);
}

/* 0, step, 2 step, ... */
static llvm_value steps(struct emitter *e, unsigned bits, int64_t step)
{
    llvm_value elements[STRIP_LANES_MAX];

    for (unsigned i = 0; i < e->lanes; i++)
        elements[i] = number(e, bits, (uint64_t)step * i);
    return e->ll->LLVMConstVector(elements, e->lanes);
}

llvm_value icmp(struct emitter *e, enum llvm_int_compare how, llvm_value x, llvm_value y)
{
    return e->ll->LLVMBuildICmp(e->b, how, x, y, "");
}

llvm_value binary(struct emitter *e, enum llvm_opcode op, llvm_value x, llvm_value y)
{
    return e->ll->LLVMBuildBinOp(e->b, op, x, y, "");
}

llvm_value choose(struct emitter *e, llvm_value condition, llvm_value x, llvm_value y)
{
    return e->ll->LLVMBuildSelect(e->b, condition, x, y, "");
}

llvm_value as_vector(struct emitter *e, const struct value *v)
{
    llvm_value all;

    if (!v->scalar)
        return v->v;
    all = spread(e, v->v);
    if (v->shape.kind != SHAPE_LINEAR)
        return all;
    all = binary(e, LLVM_ADD, all, steps(e, v->bits, v->shape.stride));
    if (v->turn) {
        llvm_value turned = e->ll->LLVMBuildICmp(e->b, LLVM_UGE, e->every, spread(e, v->turn), "");
        llvm_value more = spread(e, number(e, v->bits, (uint64_t)v->shape.wrapped));
        all = choose(e, turned, binary(e, LLVM_ADD, all, more), all);
    }
    return all;
}

bool alike(struct emitter *e, struct value *values, unsigned count)
{
    bool scalar = true;

    for (unsigned i = 0; i < count; i++)
        scalar = scalar && values[i].scalar && values[i].shape.kind == SHAPE_UNIFORM;
    for (unsigned i = 0; i < count && !scalar; i++)
        values[i] = vector_value(as_vector(e, &values[i]), values[i].bits);
    return scalar;
}

llvm_value cast(struct emitter *e, enum llvm_opcode op, llvm_value v, llvm_type element)
{
    const struct llvm *ll = e->ll;
    llvm_type          now = ll->LLVMTypeOf(v);
    bool scalar = now == e->i1 || now == e->i8 || now == e->i16 || now == e->i32 || now == e->i64 || now == e->f32 || now == e->f64;

    return ll->LLVMBuildCast(e->b, op, v, scalar ? element : vector_of(e, element), "");
}

llvm_value like(struct emitter *e, bool scalar, unsigned bits, uint64_t v)
{
    return scalar ? number(e, bits, v) : spread(e, number(e, bits, v));
}

llvm_value lanes_together(struct emitter *e, unsigned bits)
{
    llvm_value strips;

    if (!e->in_strip || !e->band_slot)
        return number(e, bits, e->lanes);
    strips = e->ll->LLVMBuildLoad2(e->b, e->i32, e->band_slot, "");
    return binary(e, LLVM_MUL, bits == 64 ? cast(e, LLVM_ZEXT, strips, e->i64) : strips, number(e, bits, e->lanes));
}

struct stretch lanes_left(struct emitter *e)
{
    if (!e->in_strip || !e->low_slot)
        return (struct stretch){number(e, 32, 0), lanes_together(e, 32)};
    return (struct stretch){e->ll->LLVMBuildLoad2(e->b, e->i32, e->low_slot, ""), e->ll->LLVMBuildLoad2(e->b, e->i32, e->high_slot, "")};
}

static unsigned turn_max(const struct emitter *e)
{
    return e->in_strip ? BAND_LANES_MAX : e->lanes;
}

static llvm_value never_wrapped(const struct emitter *e)
{
    return number(e, 32, turn_max(e));
}

/* The lane from which on a line of 32 bits has wrapped; at least turn_max(): none has. */
static struct value widen_line(struct emitter *e, struct value v, bool is_signed)
{
    const struct llvm *ll = e->ll;
    llvm_value         stride = number(e, 64, (uint64_t)v.shape.stride), base = cast(e, is_signed ? LLVM_SEXT : LLVM_ZEXT, v.v, e->i64);
    llvm_value         room = binary(e, LLVM_SUB, number(e, 64, is_signed ? 1ull << 31 : 1ull << 32), base);
    llvm_value         turn =
        v.shape.stride == 1 ? room : binary(e, LLVM_UDIV, binary(e, LLVM_ADD, room, number(e, 64, (uint64_t)v.shape.stride - 1)), stride);
    llvm_value few = ll->LLVMBuildICmp(e->b, LLVM_ULT, turn, number(e, 64, turn_max(e)), "");

    turn = choose(e, few, turn, number(e, 64, turn_max(e)));
    return (struct value){
        .v = base, .scalar = true, .bits = 64, .shape = shape_widened(v.shape), .turn = cast(e, LLVM_TRUNC, turn, e->i32)};
}

struct value resize_value(struct emitter *e, struct value v, unsigned bits, bool is_signed)
{
    if (bits == v.bits)
        return v;
    if (v.scalar && v.shape.kind == SHAPE_LINEAR) {
        if (bits == 64 && v.bits == 32 && v.shape.stride > 0)
            return widen_line(e, v, is_signed);
        if (bits == 32 && v.bits == 64) {
            v.shape.stride = (int32_t)v.shape.stride;
            v.shape.wrapped = 0;
            v.turn = NULL;
        } else {
            v = vector_value(as_vector(e, &v), v.bits);
        }
    }
    v.v = cast(e, bits < v.bits ? LLVM_TRUNC : is_signed ? LLVM_SEXT : LLVM_ZEXT, v.v, int_type(e, bits));
    v.bits = bits;
    return v;
}

llvm_value pointer(struct emitter *e, llvm_value address, llvm_type to)
{
    return e->ll->LLVMBuildCast(e->b, LLVM_INTTOPTR, address, e->ll->LLVMPointerType(to, 0), "");
}

static llvm_value member_at(struct emitter *e, size_t offset, llvm_type type)
{
    return pointer(e, binary(e, LLVM_ADD, e->call, number(e, 64, offset)), type);
}

llvm_value member(struct emitter *e, size_t offset, unsigned bits)
{
    return e->ll->LLVMBuildLoad2(e->b, int_type(e, bits), member_at(e, offset, int_type(e, bits)), "");
}

void set_member(struct emitter *e, size_t offset, llvm_value v, bool is_volatile)
{
    llvm_value store = e->ll->LLVMBuildStore(e->b, v, member_at(e, offset, e->ll->LLVMTypeOf(v)));

    e->ll->LLVMSetAlignment(store, 4);
    if (is_volatile)
        e->ll->LLVMSetVolatile(store, 1);
}

llvm_value intrinsic(struct emitter *e, const char *name, llvm_type *types, unsigned types_count, llvm_value *args, unsigned count)
{
    unsigned id = e->ll->LLVMLookupIntrinsicID(name, strlen(name));

    return e->ll->LLVMBuildCall2(e->b, e->ll->LLVMIntrinsicGetType(e->context, id, types, types_count),
                                 e->ll->LLVMGetIntrinsicDeclaration(e->module, id, types, types_count), args, count, "");
}

llvm_block new_block(struct emitter *e, const char *name)
{
    return e->ll->LLVMAppendBasicBlockInContext(e->context, e->function, name);
}

void go_on_in(struct emitter *e, llvm_block block)
{
    e->ll->LLVMPositionBuilderAtEnd(e->b, block);
}

llvm_value likely(struct emitter *e, llvm_value condition)
{
    llvm_value args[2] = {condition, number(e, 1, 1)};

    return intrinsic(e, "llvm.expect", &e->i1, 1, args, 2);
}

/* ---- operands ---- */

static struct value lane_array(struct emitter *e, llvm_value array, struct shape shape)
{
    llvm_value at = binary(e, LLVM_ADD, array, binary(e, LLVM_SHL, e->lane, number(e, 64, 2)));
    llvm_type  type = shape.kind == SHAPE_VARYING ? vector_of(e, e->i32) : e->i32;
    llvm_value load = e->ll->LLVMBuildLoad2(e->b, type, pointer(e, at, type), "");

    e->ll->LLVMSetAlignment(load, 4);
    return (struct value){.v = load, .scalar = shape.kind != SHAPE_VARYING, .bits = 32, .shape = shape};
}

/* Of a strip across blocks, each of which starts with a row of its own. */
struct value strip_index(struct emitter *e)
{
    llvm_value first = binary(e, LLVM_MUL, e->specials[PTX_SPECIAL_CTAID_X], e->specials[PTX_SPECIAL_NTID_X]);

    return (struct value){.v = first, .scalar = true, .bits = 32, .shape = {SHAPE_LINEAR, 1, 0}};
}

/* %tid.x and %ctaid.x there. */
static struct value strip_special(struct emitter *e, bool of_block)
{
    llvm_value elements[STRIP_LANES_MAX], all;

    for (unsigned i = 0; i < e->lanes; i++)
        elements[i] = number(e, 32, of_block ? i / e->plan->across : i % e->plan->across);
    all = e->ll->LLVMConstVector(elements, e->lanes);
    return vector_value(of_block ? binary(e, LLVM_ADD, all, spread(e, e->specials[PTX_SPECIAL_CTAID_X])) : all, 32);
}

static const struct special_row {
    uint8_t  special;
    size_t   offset;
    unsigned bits;
} special_rows[] = {
#define THREE(name, of, bits)                                                                                                              \
    {PTX_SPECIAL_##name##_X, offsetof(struct native_call, of[0]), bits},                                                                   \
        {PTX_SPECIAL_##name##_Y, offsetof(struct native_call, of[1]), bits},                                                               \
        {PTX_SPECIAL_##name##_Z, offsetof(struct native_call, of[2]), bits},
    THREE(TID, tid, 64) THREE(NTID, ntid, 32) THREE(CTAID, ctaid, 32) THREE(NCTAID, nctaid, 32)
#undef THREE
};

void load_specials(struct emitter *e)
{
    for (size_t i = 0; i < COUNT(special_rows); i++)
        e->specials[special_rows[i].special] = member(e, special_rows[i].offset, special_rows[i].bits);
}

static struct value special_value(struct emitter *e, const struct ptx_operand *o)
{
    struct shape shape = plan_operand(e->plan, o, 4);

    if (e->plan->across && (o->special == PTX_SPECIAL_TID_X || o->special == PTX_SPECIAL_CTAID_X))
        return strip_special(e, o->special == PTX_SPECIAL_CTAID_X);
    if (o->special <= PTX_SPECIAL_TID_Z)
        return lane_array(e, e->specials[o->special], shape);
    if (o->special <= PTX_SPECIAL_NCTAID_Z)
        return scalar_value(e->specials[o->special], 32);
    if (o->special == PTX_SPECIAL_LANEID) {
        struct value v = scalar_value(cast(e, LLVM_TRUNC, binary(e, LLVM_AND, e->lane, number(e, 64, WARP_LANES - 1)), e->i32), 32);
        v.shape = shape;
        return v;
    }
    return scalar_value(cast(e, LLVM_TRUNC, binary(e, LLVM_LSHR, e->lane, number(e, 64, 5)), e->i32), 32);
}
static_assert(WARP_LANES == 32, "a warp's number is a shift by 5");

struct value read_register(struct emitter *e, uint32_t reg)
{
    const struct shape *s = &e->plan->shapes[reg];
    unsigned            bytes = e->plan->function->registers[reg].bytes, bits = bytes == 1 ? 1 : 8 * bytes;
    llvm_type           type = s->kind == SHAPE_VARYING ? vector_of(e, int_type(e, bits)) : int_type(e, bits);
    struct value        v = {.scalar = s->kind != SHAPE_VARYING, .bits = bits, .shape = *s};

    if (e->ahead && e->ahead[reg].v)
        return e->ahead[reg];
    v.v = e->ll->LLVMBuildLoad2(e->b, type, e->slot[reg], "");
    if (e->turn[reg])
        v.turn = e->ll->LLVMBuildLoad2(e->b, e->i32, e->turn[reg], "");
    return v;
}

struct value source_value(struct emitter *e, const struct ptx_operand *o, unsigned bytes)
{
    unsigned bits = bytes == 1 ? 1 : 8 * bytes;
    uint64_t base;

    switch ((int)o->kind) {
    case PTX_REG: {
        struct value v = read_register(e, o->reg);
        if (v.bits == 1 && bits != 1) { /* a predicate where a number is asked for */
            v.v = cast(e, LLVM_ZEXT, v.v, int_type(e, bits));
            v.bits = bits;
        }
        v = resize_value(e, v, bits, false);
        if (o->negated)
            v.v = binary(e, LLVM_XOR, v.v, like(e, v.scalar, v.bits, ~0ull));
        return v;
    }
    case PTX_SPECIAL_:
        return resize_value(e, special_value(e, o), bits, false);
    case PTX_ADDRESS:
        base = o->index != PTX_NO_INDEX && o->index < e->plan->module->symbols_count ? e->plan->module->symbols[o->index].address : 0;
        return constant_value(e, bits, base + o->value);
    default:
        return constant_value(e, bits, o->value);
    }
}

/* The register's present value, where lanes that do not take part keep it. */
static llvm_value kept(struct emitter *e, uint32_t reg, llvm_value now)
{
    bool       others = !e->full && e->plan->divergent[e->block] && !e->plan->local[reg];
    llvm_value before;

    if (!e->guarded && !others)
        return now;
    before = e->ll->LLVMBuildLoad2(e->b, e->ll->LLVMTypeOf(now), e->slot[reg], "");
    return choose(e, e->taken, now, before);
}

/* Of a guard that is the same for all lanes. */
static void keep_scalars(struct emitter *e, uint32_t reg, struct value *v)
{
    struct value guard;
    llvm_value   yes;

    if (!e->guarded)
        return;
    guard = read_register(e, e->insn->guard);
    yes = e->insn->guard_not ? binary(e, LLVM_XOR, guard.v, number(e, 1, 1)) : guard.v;
    v->v = choose(e, yes, v->v, e->ll->LLVMBuildLoad2(e->b, e->ll->LLVMTypeOf(v->v), e->slot[reg], ""));
    if (v->turn)
        v->turn = choose(e, yes, v->turn, e->ll->LLVMBuildLoad2(e->b, e->i32, e->turn[reg], ""));
}

void write_register(struct emitter *e, uint32_t reg, struct value v, bool is_signed)
{
    const struct shape *s = &e->plan->shapes[reg];
    unsigned            bytes = e->plan->function->registers[reg].bytes, bits = bytes == 1 ? 1 : 8 * bytes;

    v = resize_value(e, v, bits, is_signed);
    if (e->ahead) {
        e->ahead[reg] = s->kind == SHAPE_VARYING ? vector_value(as_vector(e, &v), bits) : v;
        e->ahead[reg].shape = *s;
        if (e->turn[reg] && !v.turn)
            e->ahead[reg].turn = never_wrapped(e);
        return;
    }
    if (s->kind == SHAPE_VARYING) {
        e->ll->LLVMBuildStore(e->b, kept(e, reg, as_vector(e, &v)), e->slot[reg]);
        return;
    }
    if (!v.scalar || v.shape.kind != s->kind || v.shape.stride != s->stride || (v.turn && !e->turn[reg])) {
        e->broken = true;
        return;
    }
    if (e->turn[reg] && !v.turn)
        v.turn = never_wrapped(e);
    keep_scalars(e, reg, &v);
    e->ll->LLVMBuildStore(e->b, v.v, e->slot[reg]);
    if (e->turn[reg])
        e->ll->LLVMBuildStore(e->b, v.turn, e->turn[reg]);
}
