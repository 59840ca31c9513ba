/* Examines a kernel before it is compiled: its instructions, which registers live where, and how their values lie over the lanes. */
#include "device/cpu/jit/plan.h"

#include <stdlib.h>

#include "device/cpu/bounds.h"

enum { INSNS_MAX = 1000, STRIDE_MAX = 1 << 24 };

static bool is_plain_float(uint8_t t)
{
    return t == PTX_F32 || t == PTX_F64;
}

static bool is_plain_int(uint8_t t)
{
    unsigned bytes = ptx_type_bytes((enum ptx_type)t);

    switch ((int)t) {
    case PTX_B16:
    case PTX_B32:
    case PTX_B64:
    case PTX_U16:
    case PTX_U32:
    case PTX_U64:
    case PTX_S16:
    case PTX_S32:
    case PTX_S64:
        return bytes >= 2;
    default:
        return false;
    }
}

static bool special_fits(uint8_t s)
{
    switch ((int)s) {
    case PTX_SPECIAL_TID_X:
    case PTX_SPECIAL_TID_Y:
    case PTX_SPECIAL_TID_Z:
    case PTX_SPECIAL_NTID_X:
    case PTX_SPECIAL_NTID_Y:
    case PTX_SPECIAL_NTID_Z:
    case PTX_SPECIAL_CTAID_X:
    case PTX_SPECIAL_CTAID_Y:
    case PTX_SPECIAL_CTAID_Z:
    case PTX_SPECIAL_NCTAID_X:
    case PTX_SPECIAL_NCTAID_Y:
    case PTX_SPECIAL_NCTAID_Z:
    case PTX_SPECIAL_LANEID:
    case PTX_SPECIAL_WARPID:
        return true;
    default:
        return false;
    }
}

static bool source_fits(const struct ptx_operand *o)
{
    switch ((int)o->kind) {
    case PTX_REG:
    case PTX_IMMEDIATE:
        return true;
    case PTX_SPECIAL_:
        return special_fits(o->special);
    case PTX_ADDRESS:
        return o->reg == PTX_NO_REG && o->space != PTX_PARAM && o->space != PTX_KERNEL_PARAM;
    default:
        return false;
    }
}

static bool sources_fit(const struct ptx_insn *in, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        if (i >= in->operands_count || !source_fits(&in->operands[i]))
            return false;
    }
    return true;
}

static bool int_fits(const struct ptx_insn *in)
{
    unsigned bytes = ptx_type_bytes((enum ptx_type)in->type);

    if (in->type == PTX_PRED)
        return in->opcode == PTX_OP_AND || in->opcode == PTX_OP_OR || in->opcode == PTX_OP_XOR || in->opcode == PTX_OP_NOT;
    if (!is_plain_int(in->type) || in->sat || in->relu || in->carry)
        return false;
    switch ((int)in->opcode) {
    case PTX_OP_ADD:
    case PTX_OP_SUB:
    case PTX_OP_AND:
    case PTX_OP_OR:
    case PTX_OP_XOR:
    case PTX_OP_NOT:
    case PTX_OP_NEG:
    case PTX_OP_CNOT:
    case PTX_OP_SHL:
    case PTX_OP_SHR:
    case PTX_OP_MIN:
    case PTX_OP_MAX:
    case PTX_OP_ABS:
        return true;
    case PTX_OP_DIV:
    case PTX_OP_REM:
        return bytes == 4; /* of others, hosts have no vectors */
    case PTX_OP_MUL:
    case PTX_OP_MAD:
        return in->part == PTX_LO || ((in->part == PTX_WIDE || in->part == PTX_HI) && bytes < 8);
    case PTX_OP_POPC:
    case PTX_OP_CLZ:
    case PTX_OP_BREV:
        return bytes >= 4;
    case PTX_OP_SHF:
        return in->wrap != PTX_CLAMP;
    default:
        return false;
    }
}

static bool float_fits(const struct ptx_insn *in)
{
    if (!is_plain_float(in->type) || in->relu || in->nan || in->xorsign || (in->rounding && in->rounding != PTX_RN) ||
        (in->type == PTX_F64 && in->approx && in->ftz))
        return false;
    switch ((int)in->opcode) {
    case PTX_OP_ADD:
    case PTX_OP_SUB:
    case PTX_OP_MUL:
    case PTX_OP_MIN:
    case PTX_OP_MAX:
    case PTX_OP_NEG:
    case PTX_OP_ABS:
    case PTX_OP_SQRT:
    case PTX_OP_RCP:
    case PTX_OP_RSQRT:
    case PTX_OP_COPYSIGN:
    case PTX_OP_DIV:
        return true;
    case PTX_OP_FMA:
    case PTX_OP_MAD:
        return true;
    case PTX_OP_EX2:
        return in->type == PTX_F32;
    default:
        return false;
    }
}

static bool arithmetic_fits(const struct ptx_insn *in)
{
    bool ok = in->opcode == PTX_OP_COPYSIGN || in->opcode == PTX_OP_EX2 || is_plain_float(in->type) ? float_fits(in) : int_fits(in);

    return ok && in->operands_count >= 2 && in->operands[0].kind == PTX_REG && in->predicate.kind == PTX_NOTHING &&
           sources_fit(in, 1, in->operands_count);
}

static bool convert_fits(const struct ptx_insn *in)
{
    enum lane_type to = lane_type_of((enum ptx_type)in->type), from = lane_type_of((enum ptx_type)in->stype);
    bool           to_float = is_plain_float(in->type), from_float = is_plain_float(in->stype);

    if (in->pack || in->operands_count != 2 || in->operands[0].kind != PTX_REG || !source_fits(&in->operands[1]) || in->relu)
        return false;
    if (to == LANE_TYPES || from == LANE_TYPES || in->type == PTX_F16X2 || in->type == PTX_BF16X2 || in->stype == PTX_F16X2 ||
        in->stype == PTX_BF16X2 || in->sat == PTX_SATFINITE || (lane_type_is_float(to) && !to_float) ||
        (lane_type_is_float(from) && !from_float))
        return false;
    if (to_float && from_float)
        return in->type != PTX_F32 || in->stype != PTX_F64 || in->rounding == PTX_RN || in->rounding == PTX_NO_MODIFIER;
    if (to_float)
        return in->rounding == PTX_RN || in->rounding == PTX_NO_MODIFIER;
    return from_float || !in->sat;
}

static bool compare_fits(const struct ptx_insn *in)
{
    bool third = in->action != PTX_NO_ACTION;

    if ((!is_plain_int(in->type) && !is_plain_float(in->type)) || in->operands_count != (third ? 4u : 3u))
        return false;
    if (in->operands[0].kind != PTX_REG && in->operands[0].kind != PTX_SINK)
        return false;
    if (in->predicate.kind != PTX_NOTHING && in->predicate.kind != PTX_REG && in->predicate.kind != PTX_SINK)
        return false;
    if (in->action && in->action != PTX_DO_AND && in->action != PTX_DO_OR && in->action != PTX_DO_XOR)
        return false;
    return sources_fit(in, 1, 3) && (!third || in->operands[3].kind == PTX_REG);
}

bool native_space(const struct ptx_insn *in, const struct ptx_operand *p, enum op_space *out)
{
    enum ptx_space s = (enum ptx_space)in->space;

    if (p->reg == PTX_NO_REG && s == PTX_GENERIC && (p->index != PTX_NO_INDEX || p->space != PTX_GENERIC))
        s = (enum ptx_space)p->space;
    switch (s) {
    case PTX_GLOBAL:
    case PTX_CONST:
        *out = OP_GLOBAL;
        return true;
    case PTX_SHARED:
        *out = OP_SHARED;
        return true;
    case PTX_LOCAL:
        *out = OP_LOCAL;
        return true;
    case PTX_PARAM:
    case PTX_KERNEL_PARAM:
        *out = OP_PARAM_KERNEL;
        return p->reg == PTX_NO_REG && p->space == PTX_KERNEL_PARAM;
    case PTX_GENERIC:
        break;
    }
    return false;
}

static bool moved_fits(const struct ptx_function *f, const struct ptx_operand *o, unsigned bytes, bool load)
{
    if (o->kind == PTX_SINK)
        return load;
    if (o->kind == PTX_REG)
        return !load || f->registers[o->reg].bytes >= bytes;
    return !load && source_fits(o);
}

static bool access_fits(const struct ptx_function *f, const struct ptx_insn *in, bool load)
{
    const struct ptx_operand *at, *moved;
    unsigned                  bytes = ptx_type_bytes((enum ptx_type)in->type), count;
    enum op_space             space;

    if (in->operands_count != 2 || bytes < 1 || bytes > 8 || (in->order != PTX_NO_MODIFIER && in->order != PTX_WEAK))
        return false;
    at = &in->operands[load ? 1 : 0];
    moved = &in->operands[load ? 0 : 1];
    if (at->kind != PTX_ADDRESS || !native_space(in, at, &space) || (space == OP_PARAM_KERNEL && !load))
        return false;
    count = moved->kind == PTX_VECTOR ? moved->count : 1;
    if (count > NATIVE_ELEMENTS_MAX || count & (count - 1))
        return false;
    if (space == OP_PARAM_KERNEL &&
        (at->value > f->params_bytes || bytes * count > f->params_bytes - at->value || at->value % (bytes * count)))
        return false;
    for (unsigned k = 0; k < count; k++) {
        if (!moved_fits(f, moved->kind == PTX_VECTOR ? &moved->elements[k] : moved, bytes, load))
            return false;
    }
    return true;
}

static bool move_fits(const struct ptx_insn *in)
{
    const struct ptx_operand *to = &in->operands[0], *from = &in->operands[1];
    unsigned                  bytes = ptx_type_bytes((enum ptx_type)in->type);
    const struct ptx_operand *v = to->kind == PTX_VECTOR ? to : from->kind == PTX_VECTOR ? from : NULL;

    if (in->operands_count != 2 || bytes > 8 || (in->type == PTX_PRED && from->kind != PTX_REG))
        return false;
    if (!v)
        return to->kind == PTX_REG && source_fits(from);
    if (!v->count || bytes % v->count || (v == to ? from : to)->kind != PTX_REG || to->kind == from->kind)
        return false;
    for (unsigned k = 0; k < v->count; k++) {
        const struct ptx_operand *e = &v->elements[k];
        if (e->kind != PTX_REG && e->kind != PTX_SINK && (v == to || !source_fits(e)))
            return false;
    }
    return true;
}

bool native_insn(const struct ptx_function *f, const struct ptx_insn *in)
{
    switch ((int)in->opcode) {
    case PTX_OP_BRA:
        return true;
    case PTX_OP_MOV:
        return move_fits(in);
    case PTX_OP_LD:
    case PTX_OP_LDU:
        return access_fits(f, in, true);
    case PTX_OP_ST:
        return access_fits(f, in, false);
    case PTX_OP_CVT:
        return convert_fits(in);
    case PTX_OP_CVTA:
        return in->operands_count == 2 && in->operands[0].kind == PTX_REG && source_fits(&in->operands[1]);
    case PTX_OP_SETP:
        return compare_fits(in);
    case PTX_OP_SELP:
        return in->operands_count == 4 && in->operands[0].kind == PTX_REG && sources_fit(in, 1, 3) && in->operands[3].kind == PTX_REG;
    default:
        return arithmetic_fits(in);
    }
}

/* ---- shapes ---- */

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
struct shape shape_widened(const struct jit_plan *p, struct shape a)
{
    (void)p;
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
        return p->rows ? linear(1, 0) : varying;
    case PTX_SPECIAL_TID_Y:
    case PTX_SPECIAL_TID_Z:
        return p->rows ? uniform : varying;
    case PTX_SPECIAL_LANEID:
        return linear(1, 0);
    default:
        return uniform;
    }
}

static struct shape resized(const struct jit_plan *p, struct shape s, unsigned from, unsigned to, bool is_signed)
{
    (void)is_signed;
    if (s.kind != SHAPE_LINEAR || from == to)
        return s;
    if (from == 4 && to == 8)
        return shape_widened(p, s);
    if (from == 8 && to == 4)
        return linear((int32_t)s.stride, 0);
    return varying;
}

struct shape plan_operand(const struct jit_plan *p, const struct ptx_operand *o, unsigned bytes, bool is_signed)
{
    switch ((int)o->kind) {
    case PTX_REG:
        return resized(p, p->shapes[o->reg], p->function->registers[o->reg].bytes, bytes, is_signed);
    case PTX_SPECIAL_:
        return bytes == 4                                          ? special_shape(p, o->special)
               : special_shape(p, o->special).kind == SHAPE_LINEAR ? resized(p, special_shape(p, o->special), 4, bytes, false)
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
    struct shape              a = plan_operand(p, x, bytes, is_signed), b = plan_operand(p, y, bytes, is_signed);
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
    return shape_product(wide ? shape_widened(p, a) : a, by, wide ? 2 * bytes : bytes);
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
        return shape_sum(plan_operand(p, &in->operands[1], bytes, false), plan_operand(p, &in->operands[2], bytes, false),
                         in->opcode == PTX_OP_SUB);
    case PTX_OP_MUL:
        return product_shape(p, in, bytes, wide, is_signed);
    case PTX_OP_MAD:
        return shape_sum(product_shape(p, in, bytes, wide, is_signed), plan_operand(p, &in->operands[3], wide ? 2 * bytes : bytes, false),
                         false);
    case PTX_OP_SHL:
        if (operand_constant(&in->operands[2], 4, false, &by) && by < 8 * bytes && by < 24)
            return shape_product(plan_operand(p, &in->operands[1], bytes, false), 1ull << by, bytes);
        return all_uniform(p, in);
    default:
        return all_uniform(p, in);
    }
}

struct shape plan_result(const struct jit_plan *p, const struct ptx_insn *in)
{
    unsigned bytes = ptx_type_bytes((enum ptx_type)in->type), from = ptx_type_bytes((enum ptx_type)in->stype);

    switch ((int)in->opcode) {
    case PTX_OP_LD:
    case PTX_OP_LDU:
        return load_shape(p, in);
    case PTX_OP_CVTA:
        return plan_operand(p, &in->operands[1], 8, false);
    case PTX_OP_MOV:
        if (in->operands[0].kind == PTX_REG && in->operands[1].kind != PTX_VECTOR && bytes >= 4)
            return plan_operand(p, &in->operands[1], bytes, false);
        return all_uniform(p, in);
    case PTX_OP_CVT:
        if (!is_plain_float(in->type) && !is_plain_float(in->stype) && bytes >= 4 && from >= 4)
            return resized(p, plan_operand(p, &in->operands[1], from, false), from, bytes,
                           lane_type_is_signed(lane_type_of((enum ptx_type)in->stype)));
        return all_uniform(p, in);
    case PTX_OP_SETP:
    case PTX_OP_SELP:
        return all_uniform(p, in);
    default:
        return arithmetic_shape(p, in);
    }
}

/* ---- registers ---- */

typedef void (*reg_fn)(struct jit_plan *p, uint32_t reg, void *context);

static void visit(struct jit_plan *p, const struct ptx_operand *o, reg_fn fn, void *context)
{
    if (o->kind == PTX_REG || (o->kind == PTX_ADDRESS && o->reg != PTX_NO_REG))
        fn(p, o->reg, context);
    for (unsigned k = 0; o->kind == PTX_VECTOR && k < o->count; k++)
        visit(p, &o->elements[k], fn, context);
}

static bool has_result(const struct ptx_insn *in)
{
    return in->opcode != PTX_OP_ST && in->opcode != PTX_OP_BRA && in->operands_count > 0;
}

/* Registers that it reads; of instructions that are not compiled, all that it names. */
static void each_source(struct jit_plan *p, const struct ptx_insn *in, reg_fn fn, void *context)
{
    bool compiled = native_insn(p->function, in);

    if (in->guard != PTX_NO_REG)
        fn(p, in->guard, context);
    for (unsigned i = 0; i < in->operands_count; i++) {
        if (i > 0 || !compiled || !has_result(in))
            visit(p, &in->operands[i], fn, context);
    }
    if (!compiled)
        visit(p, &in->predicate, fn, context);
    for (unsigned k = 0; in->call && k < in->call->args_count; k++)
        visit(p, &in->call->args[k], fn, context);
    for (unsigned k = 0; in->call && k < in->call->results_count; k++)
        visit(p, &in->call->results[k], fn, context);
    if (in->call)
        visit(p, &in->call->target, fn, context);
}

static void each_result(struct jit_plan *p, const struct ptx_insn *in, reg_fn fn, void *context)
{
    if (has_result(in) && in->operands[0].kind != PTX_ADDRESS)
        visit(p, &in->operands[0], fn, context);
    visit(p, &in->predicate, fn, context);
    for (unsigned k = 0; in->call && k < in->call->results_count; k++)
        visit(p, &in->call->results[k], fn, context);
}

struct sets {
    uint64_t *uses, *kills; /* of one block */
};

static void note_use(struct jit_plan *p, uint32_t reg, void *context)
{
    struct sets *s = context;

    (void)p;
    if (!(s->kills[reg / 64] >> (reg % 64) & 1))
        s->uses[reg / 64] |= 1ull << (reg % 64);
}

static void note_kill(struct jit_plan *p, uint32_t reg, void *context)
{
    struct sets *s = context;

    (void)p;
    s->kills[reg / 64] |= 1ull << (reg % 64);
}

static unsigned successors(const struct code *c, uint32_t block, uint32_t out[2])
{
    const struct code_block *b = &c->blocks[block];
    unsigned                 n = 0;

    if (b->end == END_BRANCH)
        out[n++] = b->target;
    if ((b->end != END_BRANCH || b->last.guard != OP_NONE) && !((b->end == END_RETURN || b->end == END_EXIT) && b->last.guard == OP_NONE) &&
        block + 1 < c->blocks_count)
        out[n++] = block + 1;
    return n;
}

static bool flow_back(struct jit_plan *p, uint32_t block, const uint64_t *kills)
{
    const struct code *c = p->code;
    uint64_t          *live = p->live + block * p->words;
    uint32_t           next[2];
    bool               changed = false;

    for (unsigned n = successors(c, block, next); n-- > 0;) {
        for (size_t w = 0; w < p->words; w++) {
            uint64_t more = p->live[next[n] * p->words + w] & ~kills[w] & ~live[w];
            live[w] |= more;
            changed |= more != 0;
        }
    }
    for (uint32_t k = 0; c->blocks[block].end == END_TABLE && k < c->blocks[block].table_count; k++) {
        for (size_t w = 0; w < p->words; w++) {
            uint64_t more = p->live[c->blocks[block].table[k] * p->words + w] & ~kills[w] & ~live[w];
            live[w] |= more;
            changed |= more != 0;
        }
    }
    return changed;
}

static bool find_live(struct jit_plan *p)
{
    const struct code *c = p->code;
    uint64_t          *kills = calloc((size_t)c->blocks_count * p->words, sizeof *kills);
    bool               changed = true;

    if (!kills)
        return false;
    for (uint32_t b = 0; b < c->blocks_count; b++) {
        struct sets s = {p->live + b * p->words, kills + b * p->words};

        for (uint32_t i = c->blocks[b].insn_first; i < c->blocks[b].insn_first + c->blocks[b].insn_count; i++) {
            const struct ptx_insn *in = &p->function->insns[i];
            each_source(p, in, note_use, &s);
            if (in->guard == PTX_NO_REG && native_insn(p->function, in))
                each_result(p, in, note_kill, &s);
        }
    }
    while (changed) {
        changed = false;
        for (uint32_t b = c->blocks_count; b-- > 0;)
            changed |= flow_back(p, b, kills + b * p->words);
    }
    free(kills);
    return true;
}

/* ---- which blocks ---- */

static bool is_plain_barrier(const struct code_block *k)
{
    const struct ptx_insn *in = k->last.insn;

    return k->end == END_BARRIER && k->count == 0 && k->last.guard == OP_NONE && in && k->last.mode == BAR_SYNC && !in->red &&
           in->scope != PTX_SCOPE_CLUSTER && in->operands_count == 1 && in->operands[0].kind == PTX_IMMEDIATE &&
           in->operands[0].value < CLUSTER_BARRIER;
}

static uint8_t passes(const struct jit_plan *p, uint32_t block)
{
    const struct code_block *k = &p->code->blocks[block];

    if (is_plain_barrier(k))
        return PASSES_BARRIER;
    return (k->end == END_RETURN || k->end == END_EXIT) && k->count == 0 && k->last.guard == OP_NONE ? PASSES_RETURN : 0;
}

static void find_native(struct jit_plan *p)
{
    const struct code *c = p->code;

    for (uint32_t b = 0; b < c->blocks_count; b++) {
        const struct code_block *k = &c->blocks[b];
        bool                     ok = (k->end == END_FALL || k->end == END_BRANCH) && !k->spins && k->insn_count > 0;

        for (uint32_t i = k->insn_first; i < k->insn_first + k->insn_count; i++) {
            const struct ptx_insn *in = &p->function->insns[i];
            bool                   fits = native_insn(p->function, in);
            bool                   plain = in->opcode == PTX_OP_RET || in->opcode == PTX_OP_EXIT || (in->opcode == PTX_OP_BAR && !in->warp);

            ok = ok && fits;
            if (!fits && !plain && !p->first_refused)
                p->first_refused = in;
        }
        p->native[b] = ok;
        p->insns_total += k->insn_count;
        p->insns_native += ok ? k->insn_count : 0;
    }
    p->entry[0] = p->native[0];
    p->whole = p->native[0];
    for (uint32_t b = 0; b < c->blocks_count; b++) {
        p->passes[b] = passes(p, b);
        p->whole = p->whole && (p->native[b] || p->passes[b] == PASSES_RETURN);
    }
    for (uint32_t b = 0; b < c->blocks_count; b++) {
        uint32_t next[2];

        for (unsigned n = successors(c, b, next); n-- > 0;)
            p->entry[next[n]] |= p->native[next[n]] && (!p->native[b] || next[n] <= b);
        for (uint32_t k = 0; c->blocks[b].end == END_TABLE && k < c->blocks[b].table_count; k++)
            p->entry[c->blocks[b].table[k]] |= p->native[c->blocks[b].table[k]];
    }
}

/* ---- which registers live in one block only ---- */

struct homes {
    uint32_t *block; /* [registers_count] 1 + the block, or MANY */
    uint32_t  now;
};
enum { MANY = UINT32_MAX };

static void note_source(struct jit_plan *p, uint32_t reg, void *context)
{
    struct homes *h = context;

    (void)p;
    if (h->block[reg] != h->now)
        h->block[reg] = MANY;
}

static void note_result(struct jit_plan *p, uint32_t reg, void *context)
{
    struct homes *h = context;

    (void)p;
    if (h->block[reg] != h->now)
        h->block[reg] = h->block[reg] ? MANY : h->now;
}

static bool find_local(struct jit_plan *p)
{
    struct homes h = {calloc((size_t)p->function->registers_count + 1, sizeof *h.block), 0};

    if (!h.block)
        return false;
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        h.now = b + 1;
        for (uint32_t i = p->code->blocks[b].insn_first; i < p->code->blocks[b].insn_first + p->code->blocks[b].insn_count; i++) {
            const struct ptx_insn *in = &p->function->insns[i];
            each_source(p, in, note_source, &h);
            if (in->guard != PTX_NO_REG || !native_insn(p->function, in))
                each_result(p, in, note_source, &h);
            else
                each_result(p, in, note_result, &h);
        }
    }
    for (uint32_t r = 0; r < p->function->registers_count; r++)
        p->local[r] = h.block[r] != MANY;
    free(h.block);
    return true;
}

/* ---- how values lie ---- */

struct meeting {
    struct shape shape;
    bool         changed;
};

static void meet(struct jit_plan *p, uint32_t reg, void *context)
{
    struct meeting *m = context;
    struct shape   *s = &p->shapes[reg];

    if (m->shape.kind == SHAPE_NONE || s->kind == SHAPE_VARYING)
        return;
    if (p->function->registers[reg].bytes < 4 && m->shape.kind == SHAPE_LINEAR)
        m->shape = varying;
    if (s->kind == SHAPE_NONE) {
        *s = m->shape;
        m->changed = true;
    } else if (s->kind != m->shape.kind || s->stride != m->shape.stride || s->wrapped != m->shape.wrapped) {
        bool same_line = s->kind == SHAPE_LINEAR && m->shape.kind == SHAPE_LINEAR && s->stride == m->shape.stride &&
                         (s->wrapped == 0 || m->shape.wrapped == 0);

        if (same_line && s->wrapped)
            return;
        *s = same_line ? m->shape : varying;
        m->changed = true;
    }
}

static void note_dirty(struct jit_plan *p, uint32_t reg, void *context)
{
    (void)context;
    p->dirty[reg] = 1;
}

static void note_read(struct jit_plan *p, uint32_t reg, void *context)
{
    (void)context;
    p->read[reg] = 1;
}

static struct shape guarded(const struct jit_plan *p, const struct ptx_insn *in, struct shape s)
{
    if (in->guard == PTX_NO_REG || p->shapes[in->guard].kind == SHAPE_UNIFORM)
        return s;
    return p->shapes[in->guard].kind == SHAPE_NONE ? p->shapes[in->guard] : varying;
}

/* The result's own width may be another than the register's. */
static struct shape fitted(const struct jit_plan *p, const struct ptx_insn *in, struct shape s)
{
    const struct ptx_operand *to = &in->operands[0];
    unsigned                  bytes = ptx_type_bytes((enum ptx_type)in->type);

    bytes = in->part == PTX_WIDE ? 2 * bytes : bytes;
    bytes = in->opcode == PTX_OP_CVTA ? 8 : bytes;
    return s.kind == SHAPE_LINEAR && (to->kind != PTX_REG || p->function->registers[to->reg].bytes != bytes) ? varying : s;
}

static bool spread_shapes(struct jit_plan *p)
{
    struct meeting m = {.changed = false};

    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        for (uint32_t i = p->code->blocks[b].insn_first; i < p->code->blocks[b].insn_first + p->code->blocks[b].insn_count; i++) {
            const struct ptx_insn *in = &p->function->insns[i];

            m.shape = p->native[b] && in->opcode != PTX_OP_ST && in->opcode != PTX_OP_BRA
                          ? fitted(p, in, guarded(p, in, plan_result(p, in)))
                          : varying;
            each_result(p, in, meet, &m);
        }
    }
    return m.changed;
}

/* Marks what is reached from `from` through compiled blocks below `below`; returns the highest block at or above it that is reached. */
static uint32_t walk(const struct jit_plan *p, uint32_t from, uint32_t below, uint8_t *seen)
{
    uint32_t stack[NATIVE_BLOCKS_MAX], count = 0, most = 0, next[2];

    if (from >= below)
        return p->native[from] ? from : 0;
    if (!p->native[from] || seen[from])
        return 0;
    seen[from] = 1;
    stack[count++] = from;
    while (count) {
        uint32_t b = stack[--count];

        for (unsigned n = successors(p->code, b, next); n-- > 0;) {
            if (!p->native[next[n]])
                continue;
            if (next[n] >= below)
                most = next[n] > most ? next[n] : most;
            else if (!seen[next[n]]) {
                seen[next[n]] = 1;
                stack[count++] = next[n];
            }
        }
    }
    return most;
}

struct parting {
    uint32_t out;
    bool     changed;
};

static void make_parted(struct jit_plan *p, uint32_t reg, void *context)
{
    struct parting *w = context;

    if (!plan_is_live(p, w->out, reg) || p->shapes[reg].kind == SHAPE_VARYING)
        return;
    p->shapes[reg] = varying;
    w->changed = true;
}

/* Lanes leave compiled code at `out` with what their registers hold; those that go on at `in` may change theirs, and all may meet again. */
static bool part_ways(struct jit_plan *p, uint32_t out, uint32_t in)
{
    uint8_t        seen[NATIVE_BLOCKS_MAX] = {0};
    struct parting w = {out, false};

    if (p->native[out] || p->passes[out] == PASSES_RETURN || !p->native[in])
        return false;
    walk(p, in, p->code->blocks_count, seen);
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        for (uint32_t i = p->code->blocks[b].insn_first; seen[b] && i < p->code->blocks[b].insn_first + p->code->blocks[b].insn_count; i++)
            each_result(p, &p->function->insns[i], make_parted, &w);
    }
    return w.changed;
}

/* The lower way runs first; lanes of the upper one wait until the lower ones have come there, or beyond. */
static bool mark_divergence(struct jit_plan *p, uint32_t block)
{
    uint32_t next[2], low, high, reached;
    uint8_t  seen[NATIVE_BLOCKS_MAX] = {0};
    bool     changed = false;

    if (successors(p->code, block, next) != 2 || next[0] == next[1])
        return false;
    if (!p->native[next[0]] || !p->native[next[1]]) {
        changed = part_ways(p, next[0], next[1]);
        return part_ways(p, next[1], next[0]) || changed;
    }
    low = next[0] < next[1] ? next[0] : next[1];
    high = next[0] < next[1] ? next[1] : next[0];
    reached = walk(p, low, high, seen);
    /* Some pass by: they wait there while the others run all that lies below. */
    for (uint32_t limit = high; reached > limit;) {
        uint32_t other;

        limit = reached;
        memset(seen, 0, sizeof seen);
        reached = walk(p, low, limit, seen);
        other = walk(p, high, limit, seen);
        reached = reached > other ? reached : other;
    }
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        changed |= seen[b] && !p->divergent[b];
        p->divergent[b] |= seen[b];
    }
    return changed;
}

static void make_varying(struct jit_plan *p, uint32_t reg, void *context)
{
    bool *changed = context;

    if (p->local[reg] || p->shapes[reg].kind == SHAPE_VARYING)
        return;
    p->shapes[reg] = varying;
    *changed = true;
}

/* One number cannot stand for lanes that are at different places. */
static bool spread_divergence(struct jit_plan *p)
{
    bool changed = false;

    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        const struct ptx_insn *last = p->native[b] && p->code->blocks[b].end == END_BRANCH ? p->code->blocks[b].last.insn : NULL;

        if (last && last->guard != PTX_NO_REG && p->shapes[last->guard].kind == SHAPE_VARYING)
            changed |= mark_divergence(p, b);
    }
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        for (uint32_t i = p->code->blocks[b].insn_first;
             p->divergent[b] && i < p->code->blocks[b].insn_first + p->code->blocks[b].insn_count; i++)
            each_result(p, &p->function->insns[i], make_varying, &changed);
    }
    return changed;
}

static void find_shapes(struct jit_plan *p)
{
    bool changed = true;

    while (changed) {
        changed = spread_shapes(p);
        changed |= spread_divergence(p);
    }
    for (uint32_t r = 0; r < p->function->registers_count; r++) {
        if (p->shapes[r].kind == SHAPE_NONE)
            p->shapes[r] = varying; /* never written */
    }
    while (spread_shapes(p) | spread_divergence(p)) {
    }
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        for (uint32_t i = p->code->blocks[b].insn_first; p->native[b] && i < p->code->blocks[b].insn_first + p->code->blocks[b].insn_count;
             i++) {
            each_result(p, &p->function->insns[i], note_dirty, NULL);
            each_source(p, &p->function->insns[i], note_read, NULL);
        }
    }
}

static enum status refuse(struct problem *why, const char *reason)
{
    return problem_set(why, STATUS_NOT_IMPLEMENTED, "%s", reason);
}

enum status plan_make(struct jit_plan *p, const struct ptx_module *m, const struct ptx_function *f, const struct code *c, unsigned lanes,
                      bool rows, bool whole, struct problem *why)
{
    size_t blocks = c->blocks_count, registers = (size_t)f->registers_count + 1;

    *p = (struct jit_plan){.module = m, .function = f, .code = c, .lanes = lanes, .rows = rows, .words = registers / 64 + 1};
    if (blocks > NATIVE_BLOCKS_MAX)
        return refuse(why, "the kernel has more than 256 basic blocks");
    if (f->insns_count > INSNS_MAX)
        return refuse(why, "the kernel has more than 1000 instructions");
    p->native = calloc(blocks, 1);
    p->entry = calloc(blocks, 1);
    p->passes = calloc(blocks, 1);
    p->divergent = calloc(blocks, 1);
    p->shapes = calloc(registers, sizeof *p->shapes);
    p->local = calloc(registers, 1);
    p->dirty = calloc(registers, 1);
    p->read = calloc(registers, 1);
    p->live = calloc(blocks * p->words, sizeof *p->live);
    if (!p->native || !p->entry || !p->passes || !p->divergent || !p->shapes || !p->local || !p->dirty || !p->read || !p->live)
        return STATUS_OUT_OF_MEMORY;
    find_native(p);
    if (whole && p->first_refused)
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "`%.*s`, PTX line %u, is not compiled",
                           SPAN_ARG(span_first(p->first_refused->text, 64)), p->first_refused->line);
    if (!find_live(p) || !find_local(p))
        return STATUS_OUT_OF_MEMORY;
    find_shapes(p);
    return p->insns_native ? STATUS_OK : refuse(why, "no part of the kernel can be compiled");
}

void plan_finish(struct jit_plan *p)
{
    free(p->native);
    free(p->entry);
    free(p->passes);
    free(p->divergent);
    free(p->shapes);
    free(p->local);
    free(p->dirty);
    free(p->read);
    free(p->live);
}
