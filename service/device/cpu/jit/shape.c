/* How values lie over the lanes of a chunk: what is computed of them once for all lanes, and what lane by lane. */
#include "device/cpu/jit/plan.h"
#include "device/cpu/jit/strip.h"
#include "device/cpu/jit/subset.h"

enum { STRIDE_MAX = 1 << 24 };

static const struct shape uniform = {SHAPE_UNIFORM, 0, 0}, varying = {SHAPE_VARYING, 0, 0};

static struct shape linear(int64_t stride, int64_t wrapped)
{
    if (stride > STRIDE_MAX || stride < -STRIDE_MAX)
        return varying;
    return (struct shape){SHAPE_LINEAR, stride, wrapped};
}

bool operand_constant(const struct ptx_operand *o, unsigned bytes, bool is_signed, uint64_t *out)
{
    unsigned cut = 64 - 8 * bytes;

    if (o->kind != PTX_IMMEDIATE)
        return false;
    *out = is_signed ? (uint64_t)((int64_t)(o->value << cut) >> cut) : o->value << cut >> cut;
    return true;
}

/* From 32 to 64 bits: where the numbers wrap, later lanes lie 2^32 lower than a line would. */
struct shape shape_widened(struct shape a)
{
    if (a.kind != SHAPE_LINEAR)
        return a;
    return a.stride > 0 ? linear(a.stride, -(int64_t)(1ll << 32)) : varying;
}

struct shape shape_sum(struct shape a, struct shape b, bool minus)
{
    int64_t sign = minus ? -1 : 1;

    if (a.kind == SHAPE_NONE || b.kind == SHAPE_NONE)
        return (struct shape){SHAPE_NONE, 0, 0};
    if (a.kind == SHAPE_VARYING || b.kind == SHAPE_VARYING)
        return varying;
    if (a.kind == SHAPE_UNIFORM && b.kind == SHAPE_UNIFORM)
        return uniform;
    if (a.kind == SHAPE_UNIFORM)
        return linear(sign * b.stride, sign * b.wrapped);
    if (b.kind == SHAPE_UNIFORM)
        return a;
    return a.wrapped || b.wrapped ? varying : linear(a.stride + sign * b.stride, 0);
}

struct shape shape_product(struct shape a, uint64_t by, unsigned bytes)
{
    int64_t factor = bytes == 4 ? (int32_t)by : (int64_t)by;

    if (a.kind != SHAPE_LINEAR)
        return a;
    if (factor > STRIDE_MAX || factor < -STRIDE_MAX)
        return varying;
    return linear(a.stride * factor, a.wrapped * factor);
}

static struct shape special_shape(const struct jit_plan *p, uint8_t s)
{
    switch ((int)s) {
    case PTX_SPECIAL_TID_X:
        return p->rows && !p->across ? linear(1, 0) : varying;
    case PTX_SPECIAL_CTAID_X:
        return p->across ? varying : uniform;
    case PTX_SPECIAL_TID_Y:
    case PTX_SPECIAL_TID_Z:
        return p->rows ? uniform : varying;
    case PTX_SPECIAL_LANEID:
        return linear(1, 0);
    default:
        return uniform;
    }
}

static struct shape resized(struct shape s, unsigned from, unsigned to)
{
    if (s.kind != SHAPE_LINEAR || from == to)
        return s;
    if (from == 4 && to == 8)
        return shape_widened(s);
    if (from == 8 && to == 4)
        return linear((int32_t)s.stride, 0);
    return varying;
}

struct shape plan_operand(const struct jit_plan *p, const struct ptx_operand *o, unsigned bytes)
{
    switch ((int)o->kind) {
    case PTX_REG:
        return resized(p->shapes[o->reg], p->function->registers[o->reg].bytes, bytes);
    case PTX_SPECIAL_:
        return bytes == 4                                          ? special_shape(p, o->special)
               : special_shape(p, o->special).kind == SHAPE_LINEAR ? resized(special_shape(p, o->special), 4, bytes)
                                                                   : special_shape(p, o->special);
    default:
        return uniform;
    }
}

static struct shape all_uniform(const struct jit_plan *p, const struct ptx_insn *in)
{
    struct shape result = uniform;

    for (unsigned i = 1; i < in->operands_count; i++) {
        const struct ptx_operand *o = &in->operands[i];
        unsigned                  parts = o->kind == PTX_VECTOR ? o->count : 1;

        for (unsigned k = 0; k < parts; k++) {
            const struct ptx_operand *e = o->kind == PTX_VECTOR ? &o->elements[k] : o;
            struct shape s = e->kind == PTX_REG ? p->shapes[e->reg] : e->kind == PTX_SPECIAL_ ? special_shape(p, e->special) : uniform;
            if (s.kind == SHAPE_NONE && result.kind == SHAPE_UNIFORM)
                result.kind = SHAPE_NONE;
            if (s.kind == SHAPE_VARYING || s.kind == SHAPE_LINEAR)
                result = varying;
        }
    }
    return result;
}

static struct shape load_shape(const struct jit_plan *p, const struct ptx_insn *in)
{
    const struct ptx_operand *at = &in->operands[1];
    enum op_space             space = OP_GENERIC;

    native_space(in, at, &space);
    if (space == OP_LOCAL)
        return varying;
    if (at->reg == PTX_NO_REG || p->shapes[at->reg].kind == SHAPE_UNIFORM)
        return uniform;
    return p->shapes[at->reg].kind == SHAPE_NONE ? p->shapes[at->reg] : varying;
}

/* A factor in the text times the other one. */
static struct shape product_shape(const struct jit_plan *p, const struct ptx_insn *in, unsigned bytes, bool wide, bool is_signed)
{
    const struct ptx_operand *x = &in->operands[1], *y = &in->operands[2];
    struct shape              a = plan_operand(p, x, bytes), b = plan_operand(p, y, bytes);
    uint64_t                  by;

    if (a.kind == SHAPE_NONE || b.kind == SHAPE_NONE)
        return (struct shape){SHAPE_NONE, 0, 0};
    if (a.kind == SHAPE_UNIFORM && b.kind == SHAPE_UNIFORM)
        return uniform;
    if (operand_constant(x, bytes, is_signed, &by))
        a = b;
    else if (!operand_constant(y, bytes, is_signed, &by))
        return varying;
    if (a.kind == SHAPE_VARYING)
        return varying;
    return shape_product(wide ? shape_widened(a) : a, by, wide ? 2 * bytes : bytes);
}

static struct shape arithmetic_shape(const struct jit_plan *p, const struct ptx_insn *in)
{
    unsigned bytes = ptx_type_bytes((enum ptx_type)in->type);
    bool     is_signed = lane_type_is_signed(lane_type_of((enum ptx_type)in->type)), wide = in->part == PTX_WIDE;
    uint64_t by;

    if (!is_plain_int(in->type) || bytes < 4 || (wide && bytes != 4) || in->part == PTX_HI)
        return all_uniform(p, in);
    switch ((int)in->opcode) {
    case PTX_OP_ADD:
    case PTX_OP_SUB:
        return shape_sum(plan_operand(p, &in->operands[1], bytes), plan_operand(p, &in->operands[2], bytes), in->opcode == PTX_OP_SUB);
    case PTX_OP_MUL:
        return product_shape(p, in, bytes, wide, is_signed);
    case PTX_OP_MAD:
        if (strip_counts(p, in))
            return linear(1, 0);
        return shape_sum(product_shape(p, in, bytes, wide, is_signed), plan_operand(p, &in->operands[3], wide ? 2 * bytes : bytes), false);
    case PTX_OP_SHL:
        if (operand_constant(&in->operands[2], 4, false, &by) && by < 8 * bytes && by < 24)
            return shape_product(plan_operand(p, &in->operands[1], bytes), 1ull << by, bytes);
        return all_uniform(p, in);
    default:
        return all_uniform(p, in);
    }
}

/* All lanes see the same vote if they name the same members. */
static struct shape members_shape(const struct jit_plan *p, const struct ptx_operand *o)
{
    struct shape s = plan_operand(p, o, 4);

    return s.kind == SHAPE_LINEAR ? varying : s;
}

struct shape plan_result(const struct jit_plan *p, const struct ptx_insn *in)
{
    unsigned bytes = ptx_type_bytes((enum ptx_type)in->type), from = ptx_type_bytes((enum ptx_type)in->stype);

    switch ((int)in->opcode) {
    case PTX_OP_LD:
    case PTX_OP_LDU:
        return load_shape(p, in);
    case PTX_OP_CVTA:
        return plan_operand(p, &in->operands[1], 8);
    case PTX_OP_MOV:
        if (in->operands[0].kind == PTX_REG && in->operands[1].kind != PTX_VECTOR && bytes >= 4)
            return plan_operand(p, &in->operands[1], bytes);
        return all_uniform(p, in);
    case PTX_OP_CVT:
        if (!is_plain_float(in->type) && !is_plain_float(in->stype) && bytes >= 4 && from >= 4)
            return resized(plan_operand(p, &in->operands[1], from), from, bytes);
        return all_uniform(p, in);
    case PTX_OP_SETP:
    case PTX_OP_SELP:
        return all_uniform(p, in);
    case PTX_OP_ATOM:
    case PTX_OP_RED:
        return varying;
    case PTX_OP_SHFL:
        return shuffles_first(in) ? uniform : varying;
    case PTX_OP_VOTE:
        return in->operands_count > 2 ? members_shape(p, &in->operands[2]) : uniform;
    case PTX_OP_ACTIVEMASK:
        return uniform;
    default:
        return arithmetic_shape(p, in);
    }
}
