/* Which way all lanes of a chunk go, found from its first and last lane: of comparisons of a line with what is the same for all lanes, and of
 * their combinations. `i < n` holds for the lanes between two for which it does. */
#include "device/cpu/jit/emit/emit.h"

#include "device/cpu/interp/decode/decode.h"

enum { DEPTH_MAX = 12 }; /* of combinations */

static bool writes_between(const struct ptx_operand *o, const struct ptx_insn *from, const struct ptx_insn *to)
{
    for (const struct ptx_insn *in = from; o->kind == PTX_REG && in < to; in++) {
        if (insn_writes(in, o->reg))
            return true;
    }
    return false;
}

/* The block's last instruction before `end` that writes the register; NULL: there is none, or it is guarded. */
static const struct ptx_insn *definition(const struct emitter *e, uint32_t reg, const struct ptx_insn *end)
{
    const struct ptx_insn *first = e->plan->function->insns + e->plan->code->blocks[e->block].insn_first;

    for (const struct ptx_insn *in = end; in-- > first;) {
        if (insn_writes(in, reg))
            return in->guard == PTX_NO_REG ? in : NULL;
    }
    return NULL;
}

static bool is_ordered(enum compare how)
{
    return how == CMP_LT || how == CMP_LE || how == CMP_GT || how == CMP_GE;
}

static struct decision turned_round(struct decision d)
{
    return (struct decision){.all = d.none, .none = d.all, .yes = d.no, .no = d.yes, .sure = d.sure};
}

static llvm_value smaller(struct emitter *e, llvm_value x, llvm_value y)
{
    return choose(e, icmp(e, LLVM_ULT, x, y), x, y);
}

static llvm_value larger(struct emitter *e, llvm_value x, llvm_value y)
{
    return choose(e, icmp(e, LLVM_UGT, x, y), x, y);
}

struct stretch common_stretch(struct emitter *e, struct stretch a, struct stretch b)
{
    if (!a.low || !b.low)
        return (struct stretch){NULL, NULL};
    return (struct stretch){larger(e, a.low, b.low), smaller(e, a.high, b.high)};
}

static bool decide_uniform(struct emitter *e, struct value v, struct decision *out)
{
    llvm_value none = number(e, 32, 0);

    *out = (struct decision){.all = v.v, .none = binary(e, LLVM_XOR, v.v, number(e, 1, 1)), .sure = number(e, 1, 1)};
    if (e->in_strip && e->low_slot) {
        out->yes = (struct stretch){none, choose(e, v.v, lanes_together(e, 32), none)};
        out->no = (struct stretch){none, choose(e, v.v, none, lanes_together(e, 32))};
    }
    return true;
}

/* Its value where the block ends, which is known before the block begins; or the block runs already. */
static bool is_known(const struct emitter *e, const struct ptx_operand *o)
{
    return !e->ahead || o->kind != PTX_REG || e->ahead_state[o->reg] == AHEAD_KNOWN;
}

/* Of a line that grows by 1: so many of its first lanes lie below y, or at it. */
static llvm_value lanes_below(struct emitter *e, bool or_at, bool is_signed, struct value x, struct value y)
{
    llvm_value all = lanes_together(e, x.bits), none = number(e, x.bits, 0), one = number(e, x.bits, 1);
    llvm_value some = compare_ints(e, or_at ? CMP_LE : CMP_LT, is_signed, x.v, y.v), n = binary(e, LLVM_SUB, y.v, x.v);

    n = or_at ? binary(e, LLVM_ADD, smaller(e, n, binary(e, LLVM_SUB, all, one)), one) : smaller(e, n, all);
    n = choose(e, some, n, none);
    return x.bits == 64 ? cast(e, LLVM_TRUNC, n, e->i32) : n;
}

/* Below y, or at it, are the lanes before one; above it are those from one on. */
static void stretch_line(struct emitter *e, enum compare how, bool is_signed, struct value x, struct value y, bool swapped, llvm_value ok,
                         struct decision *out)
{
    bool           below = (how == CMP_LT || how == CMP_LE) != swapped, or_at = (how == CMP_LE || how == CMP_GT) != swapped;
    llvm_value     n;
    struct stretch before, behind;

    if (!e->in_strip || !e->low_slot || x.shape.stride != 1)
        return;
    n = lanes_below(e, or_at, is_signed, x, y);
    before = (struct stretch){number(e, 32, 0), n};
    behind = (struct stretch){n, lanes_together(e, 32)};
    out->yes = below ? before : behind;
    out->no = below ? behind : before;
    out->sure = ok;
}

/* `x`: the line; swapped: it stands on the right. */
static bool decide_line(struct emitter *e, enum compare how, bool is_signed, struct value x, struct value y, bool swapped,
                        struct decision *out)
{
    llvm_value steps = binary(e, LLVM_SUB, lanes_together(e, x.bits), number(e, x.bits, 1));
    llvm_value last = binary(e, LLVM_ADD, x.v, binary(e, LLVM_MUL, steps, number(e, x.bits, (uint64_t)x.shape.stride)));
    llvm_value ok, first_is, last_is;
    bool       grows = x.shape.stride > 0;

    ok = compare_ints(e, CMP_GE, is_signed, grows ? last : x.v, grows ? x.v : last); /* nothing has wrapped */
    if (x.turn)
        ok = binary(e, LLVM_AND, ok, icmp(e, LLVM_UGE, x.turn, lanes_together(e, 32)));
    first_is = swapped ? compare_ints(e, how, is_signed, y.v, x.v) : compare_ints(e, how, is_signed, x.v, y.v);
    last_is = swapped ? compare_ints(e, how, is_signed, y.v, last) : compare_ints(e, how, is_signed, last, y.v);
    *out = (struct decision){.all = binary(e, LLVM_AND, ok, binary(e, LLVM_AND, first_is, last_is))};
    out->none = binary(e, LLVM_AND, ok, binary(e, LLVM_XOR, binary(e, LLVM_OR, first_is, last_is), number(e, 1, 1)));
    stretch_line(e, how, is_signed, x, y, swapped, ok, out);
    return true;
}

static bool decide_comparison(struct emitter *e, const struct ptx_insn *in, const struct ptx_insn *end, struct decision *out)
{
    unsigned     bytes = ptx_type_bytes((enum ptx_type)in->type);
    enum compare how = CMP_EQ;
    struct value x, y;
    bool         is_signed = lane_type_is_signed(lane_type_of((enum ptx_type)in->type));

    if (is_float((enum ptx_type)in->type) || in->action || bytes < 4 || !insn_comparison(in, &how) ||
        !(is_ordered(how) || how == CMP_EQ || how == CMP_NE) || !is_known(e, &in->operands[1]) || !is_known(e, &in->operands[2]) ||
        writes_between(&in->operands[1], in, end) || writes_between(&in->operands[2], in, end))
        return false;
    x = source_value(e, &in->operands[1], bytes);
    y = source_value(e, &in->operands[2], bytes);
    if (x.scalar && y.scalar && x.shape.kind == SHAPE_UNIFORM && y.shape.kind == SHAPE_UNIFORM)
        return decide_uniform(e, scalar_value(compare_ints(e, how, is_signed, x.v, y.v), 1), out);
    if (!is_ordered(how) || !x.scalar || !y.scalar || (x.shape.kind == SHAPE_LINEAR) == (y.shape.kind == SHAPE_LINEAR))
        return false;
    if (x.shape.kind == SHAPE_LINEAR)
        return decide_line(e, how, is_signed, x, y, false, out);
    return decide_line(e, how, is_signed, y, x, true, out);
}

static bool decide_register(struct emitter *e, uint32_t reg, const struct ptx_insn *end, unsigned depth, struct decision *out);

static bool decide_operand(struct emitter *e, const struct ptx_operand *o, const struct ptx_insn *end, unsigned depth, struct decision *out)
{
    return o->kind == PTX_REG && !o->negated && decide_register(e, o->reg, end, depth, out);
}

static bool decide_combination(struct emitter *e, const struct ptx_insn *in, unsigned depth, struct decision *out)
{
    bool            both = in->opcode == PTX_OP_AND;
    struct decision a, b;

    if (!decide_operand(e, &in->operands[1], in, depth, &a))
        return false;
    if (in->opcode == PTX_OP_NOT) {
        *out = turned_round(a);
        return true;
    }
    if (!decide_operand(e, &in->operands[2], in, depth, &b))
        return false;
    out->all = binary(e, both ? LLVM_AND : LLVM_OR, a.all, b.all);
    out->none = binary(e, both ? LLVM_OR : LLVM_AND, a.none, b.none);
    out->yes = out->no = (struct stretch){NULL, NULL};
    *(both ? &out->yes : &out->no) = common_stretch(e, both ? a.yes : a.no, both ? b.yes : b.no);
    out->sure = a.sure && b.sure ? binary(e, LLVM_AND, a.sure, b.sure) : NULL;
    return true;
}

/* Its value before `end`. */
static bool decide_register(struct emitter *e, uint32_t reg, const struct ptx_insn *end, unsigned depth, struct decision *out)
{
    const struct code_block *k = &e->plan->code->blocks[e->block];
    const struct ptx_insn   *in = definition(e, reg, end), *block_end = e->plan->function->insns + k->insn_first + k->insn_count;
    struct ptx_operand       self = {.kind = PTX_REG, .reg = reg};

    if (e->plan->shapes[reg].kind == SHAPE_UNIFORM && !writes_between(&self, end, block_end) && is_known(e, &self))
        return decide_uniform(e, read_register(e, reg), out);
    if (!in || depth == DEPTH_MAX)
        return false;
    switch ((int)in->opcode) {
    case PTX_OP_SETP:
        return in->operands[0].kind == PTX_REG && in->operands[0].reg == reg && decide_comparison(e, in, block_end, out);
    case PTX_OP_AND:
    case PTX_OP_OR:
    case PTX_OP_NOT:
        return in->type == PTX_PRED && decide_combination(e, in, depth + 1, out);
    default:
        return false;
    }
}

bool decide_branch(struct emitter *e, const struct ptx_insn *branch, struct decision *out)
{
    if (!decide_register(e, branch->guard, branch, 0, out))
        return false;
    if (branch->guard_not)
        *out = turned_round(*out);
    return true;
}
