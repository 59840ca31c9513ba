/* Atomics on memory that only this host thread accesses now: shared memory, and all other while a launch runs on one thread. Lane after lane,
 * as in device/cpu/interp/ops/atomic.c; all else is borrowed from there. */
#include "device/cpu/jit/emit/emit.h"

#include "device/cpu/interp/decode/decode.h"
#include "device/cpu/jit/subset.h"

struct atom {
    const struct ptx_operand *to; /* NULL: red */
    llvm_type                 type;
    unsigned                  bytes;
    bool                      is_float, is_signed;
    llvm_value                operand[2]; /* vectors, or scalars */
    bool                      scalar[2];
    unsigned                  operands;
};

static llvm_value element_at(struct emitter *e, size_t offset, llvm_value lane, unsigned bytes, llvm_type type)
{
    llvm_value at = binary(e, LLVM_ADD, e->call, number(e, 64, offset));

    at = binary(e, LLVM_ADD, at, binary(e, LLVM_MUL, lane, number(e, 64, bytes)));
    return pointer(e, at, type);
}

static llvm_value chosen(struct emitter *e, enum llvm_int_compare how, llvm_value x, llvm_value y)
{
    return choose(e, e->ll->LLVMBuildICmp(e->b, how, x, y, ""), x, y);
}

static llvm_value float_sum(struct emitter *e, const struct atom *a, llvm_value x, llvm_value y)
{
    llvm_type  real = a->bytes == 4 ? e->f32 : e->f64;
    llvm_value s =
        binary(e, LLVM_FADD, e->ll->LLVMBuildCast(e->b, LLVM_BITCAST, x, real, ""), e->ll->LLVMBuildCast(e->b, LLVM_BITCAST, y, real, ""));

    return e->ll->LLVMBuildCast(e->b, LLVM_BITCAST, s, a->type, "");
}

/* What stands there afterwards; z: what cas writes. */
static llvm_value next_value(struct emitter *e, const struct atom *a, llvm_value x, llvm_value y, llvm_value z)
{
    llvm_value zero = number(e, 8 * a->bytes, 0), one = number(e, 8 * a->bytes, 1), far;

    switch ((int)e->insn->action) {
    case PTX_DO_ADD:
        return a->is_float ? float_sum(e, a, x, y) : binary(e, LLVM_ADD, x, y);
    case PTX_DO_AND:
        return binary(e, LLVM_AND, x, y);
    case PTX_DO_OR:
        return binary(e, LLVM_OR, x, y);
    case PTX_DO_XOR:
        return binary(e, LLVM_XOR, x, y);
    case PTX_DO_EXCH:
        return y;
    case PTX_DO_MIN:
        return chosen(e, a->is_signed ? LLVM_SLT : LLVM_ULT, x, y);
    case PTX_DO_MAX:
        return chosen(e, a->is_signed ? LLVM_SGT : LLVM_UGT, x, y);
    case PTX_DO_INC:
        return choose(e, e->ll->LLVMBuildICmp(e->b, LLVM_UGE, x, y, ""), zero, binary(e, LLVM_ADD, x, one));
    case PTX_DO_DEC:
        far = binary(e, LLVM_OR, e->ll->LLVMBuildICmp(e->b, LLVM_EQ, x, zero, ""), e->ll->LLVMBuildICmp(e->b, LLVM_UGT, x, y, ""));
        return choose(e, far, y, binary(e, LLVM_SUB, x, one));
    default:
        return choose(e, e->ll->LLVMBuildICmp(e->b, LLVM_EQ, x, y, ""), z, x);
    }
}

static void update_lane(struct emitter *e, const struct atom *a, llvm_value lane)
{
    llvm_value p, y[2] = {NULL, NULL}, x, store;

    p = e->ll->LLVMBuildLoad2(e->b, e->i64, element_at(e, offsetof(struct native_call, addresses), lane, 8, e->i64), "");
    p = pointer(e, p, a->type);
    for (unsigned k = 0; k < a->operands; k++)
        y[k] =
            a->scalar[k] ? a->operand[k] : e->ll->LLVMBuildLoad2(e->b, a->type, element_at(e, values_at(k), lane, a->bytes, a->type), "");
    x = e->ll->LLVMBuildLoad2(e->b, a->type, p, "");
    e->ll->LLVMSetAlignment(x, a->bytes);
    store = e->ll->LLVMBuildStore(e->b, next_value(e, a, x, y[0], y[1]), p);
    e->ll->LLVMSetAlignment(store, a->bytes);
    if (a->to)
        e->ll->LLVMBuildStore(e->b, x, element_at(e, values_at(2), lane, a->bytes, a->type));
}

/* For each bit of the mask, the lowest first. */
static void update_lanes(struct emitter *e, const struct atom *a)
{
    llvm_block before = e->ll->LLVMGetInsertBlock(e->b), loop = new_block(e, "lanes"), end = new_block(e, "updated"), from[2];
    llvm_value bits = mask_bits(e, e->taken), left, lane, args[2], next, values[2];

    e->ll->LLVMBuildCondBr(e->b, e->ll->LLVMBuildICmp(e->b, LLVM_EQ, bits, number(e, 32, 0), ""), end, loop);
    go_on_in(e, loop);
    left = e->ll->LLVMBuildPhi(e->b, e->i32, "");
    args[0] = left;
    args[1] = number(e, 1, 1);
    lane = cast(e, LLVM_ZEXT, intrinsic(e, "llvm.cttz", &e->i32, 1, args, 2), e->i64);
    update_lane(e, a, lane);
    next = binary(e, LLVM_AND, left, binary(e, LLVM_SUB, left, number(e, 32, 1)));
    e->ll->LLVMBuildCondBr(e->b, e->ll->LLVMBuildICmp(e->b, LLVM_NE, next, number(e, 32, 0), ""), loop, end);
    values[0] = bits;
    values[1] = next;
    from[0] = before;
    from[1] = loop;
    e->ll->LLVMAddIncoming(left, values, from, 2);
    go_on_in(e, end);
}

static llvm_value loaded_results(struct emitter *e, const struct atom *a)
{
    llvm_type  all = vector_of(e, a->type);
    llvm_value at = binary(e, LLVM_ADD, e->call, number(e, 64, values_at(2)));
    llvm_value v = e->ll->LLVMBuildLoad2(e->b, all, pointer(e, at, all), "");

    e->ll->LLVMSetAlignment(v, 8);
    return v;
}

void emit_atomic(struct emitter *e)
{
    const struct ptx_insn *in = e->insn;
    unsigned               first = in->opcode == PTX_OP_ATOM;
    enum lane_type         lane = lane_type_of((enum ptx_type)in->type);
    struct atom            a = {.bytes = ptx_type_bytes((enum ptx_type)in->type), .operands = in->operands_count - first - 1};
    llvm_block             ours = new_block(e, "ours"), theirs = new_block(e, "theirs"), done = new_block(e, "done");
    llvm_value             ok;

    a.to = first && in->operands[0].kind == PTX_REG ? &in->operands[0] : NULL;
    a.type = int_type(e, 8 * a.bytes);
    a.is_float = is_float((enum ptx_type)in->type);
    a.is_signed = lane_type_is_signed(lane);
    ok = atomic_is_ours(e, &in->operands[first], a.bytes);
    e->ll->LLVMBuildCondBr(e->b, likely(e, ok), ours, theirs);
    go_on_in(e, theirs);
    emit_borrowed(e);
    e->ll->LLVMBuildBr(e->b, done);
    go_on_in(e, ours);
    for (unsigned k = 0; k < a.operands; k++) {
        struct value v = source_value(e, &in->operands[first + 1 + k], a.bytes);

        a.scalar[k] = alike(e, &v, 1);
        a.operand[k] = v.v;
        if (!a.scalar[k])
            set_member(e, values_at(k), v.v, false);
    }
    update_lanes(e, &a);
    if (a.to)
        write_register(e, a.to->reg, vector_value(loaded_results(e, &a), 8 * a.bytes), false);
    e->ll->LLVMBuildBr(e->b, done);
    go_on_in(e, done);
}
