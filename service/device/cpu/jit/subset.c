/* Which instructions are compiled. */
#include "device/cpu/jit/subset.h"

#include "device/cpu/bounds.h"
#include "device/cpu/jit/native.h"

enum { CALLS_FOLLOWED_MAX = 8 }; /* functions that call functions that ... */

bool is_plain_float(uint8_t t)
{
    return t == PTX_F32 || t == PTX_F64;
}

bool is_plain_int(uint8_t t)
{
    static const bool plain[PTX_TYPE_COUNT] = {
        [PTX_B16] = true, [PTX_B32] = true, [PTX_B64] = true, [PTX_U16] = true, [PTX_U32] = true,
        [PTX_U64] = true, [PTX_S16] = true, [PTX_S32] = true, [PTX_S64] = true,
    };

    return plain[t];
}

/* Those of the launch and of the thread that compiled code knows: %tid to %nctaid, and the place in the warp. */
static bool special_fits(uint8_t s)
{
    return s <= PTX_SPECIAL_NCTAID_Z || s == PTX_SPECIAL_LANEID || s == PTX_SPECIAL_WARPID;
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
    static const bool always[PTX_OP_COUNT] = {
        [PTX_OP_ADD] = true, [PTX_OP_SUB] = true, [PTX_OP_AND] = true,  [PTX_OP_OR] = true,  [PTX_OP_XOR] = true,
        [PTX_OP_NOT] = true, [PTX_OP_NEG] = true, [PTX_OP_CNOT] = true, [PTX_OP_SHL] = true, [PTX_OP_SHR] = true,
        [PTX_OP_MIN] = true, [PTX_OP_MAX] = true, [PTX_OP_ABS] = true,
    };
    unsigned bytes = ptx_type_bytes((enum ptx_type)in->type);

    if (in->type == PTX_PRED)
        return in->opcode == PTX_OP_AND || in->opcode == PTX_OP_OR || in->opcode == PTX_OP_XOR || in->opcode == PTX_OP_NOT;
    if (!is_plain_int(in->type) || in->sat || in->relu || in->carry)
        return false;
    switch ((int)in->opcode) {
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
        return always[in->opcode];
    }
}

static bool float_fits(const struct ptx_insn *in)
{
    static const bool fits[PTX_OP_COUNT] = {
        [PTX_OP_ADD] = true,      [PTX_OP_SUB] = true, [PTX_OP_MUL] = true,  [PTX_OP_MIN] = true, [PTX_OP_MAX] = true,
        [PTX_OP_NEG] = true,      [PTX_OP_ABS] = true, [PTX_OP_SQRT] = true, [PTX_OP_RCP] = true, [PTX_OP_RSQRT] = true,
        [PTX_OP_COPYSIGN] = true, [PTX_OP_DIV] = true, [PTX_OP_FMA] = true,  [PTX_OP_MAD] = true, [PTX_OP_EX2] = true,
    };

    if (!is_plain_float(in->type) || in->relu || in->nan || in->xorsign || (in->rounding && in->rounding != PTX_RN) ||
        (in->type == PTX_F64 && in->approx && in->ftz))
        return false;
    return fits[in->opcode] && (in->opcode != PTX_OP_EX2 || in->type == PTX_F32);
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

bool shuffles_first(const struct ptx_insn *in)
{
    const struct ptx_operand *b = &in->operands[2], *c = &in->operands[3];

    return in->action == PTX_DO_IDX && b->kind == PTX_IMMEDIATE && (b->value & 31) == 0 && c->kind == PTX_IMMEDIATE &&
           (c->value >> 8 & 31) == 0;
}

static bool shuffle_fits(const struct ptx_insn *in)
{
    return in->action >= PTX_DO_UP && in->action <= PTX_DO_IDX && in->operands_count >= 4 && in->operands[0].kind == PTX_REG &&
           sources_fit(in, 1, in->operands_count) && in->predicate.kind != PTX_VECTOR;
}

static bool vote_fits(const struct ptx_insn *in)
{
    return in->action >= PTX_DO_ALL && in->action <= PTX_DO_BALLOT && in->operands_count >= 2 && in->operands[0].kind == PTX_REG &&
           in->operands[1].kind == PTX_REG && sources_fit(in, 2, in->operands_count);
}

/* Lane after lane in memory that this host thread has for itself. */
static bool atomic_fits(const struct ptx_function *f, const struct ptx_insn *in)
{
    unsigned      first = in->opcode == PTX_OP_ATOM, bytes = ptx_type_bytes((enum ptx_type)in->type);
    unsigned      operands = in->action == PTX_DO_CAS ? 2 : 1;
    enum op_space space;

    if (in->vector > 1 || in->operands_count != first + 1 + operands || in->operands[first].kind != PTX_ADDRESS ||
        (!is_plain_int(in->type) && !is_plain_float(in->type)) || bytes < 4 || in->action < PTX_DO_ADD || in->action > PTX_DO_CAS ||
        in->action == PTX_DO_POPC || (is_plain_float(in->type) && in->action != PTX_DO_ADD))
        return false;
    if (!native_space(in, &in->operands[first], &space) || (space != OP_GLOBAL && space != OP_SHARED))
        return false;
    if (first && in->operands[0].kind != PTX_SINK && (in->operands[0].kind != PTX_REG || f->registers[in->operands[0].reg].bytes < bytes))
        return false;
    return sources_fit(in, first + 1, in->operands_count);
}

static bool emitted(const struct ptx_function *f, const struct ptx_insn *in)
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
    case PTX_OP_SHFL:
        return shuffle_fits(in);
    case PTX_OP_VOTE:
        return vote_fits(in);
    case PTX_OP_ACTIVEMASK:
        return in->operands_count == 1 && in->operands[0].kind == PTX_REG;
    case PTX_OP_ATOM:
    case PTX_OP_RED:
        return atomic_fits(f, in);
    case PTX_OP_BAR:
    case PTX_OP_BARRIER:
        return in->warp && (in->operands_count == 0 || source_fits(&in->operands[0]));
    default:
        return arithmetic_fits(in);
    }
}

/* ---- what the interpreter's operations do for the lanes of a chunk ---- */

static bool registers_fit(const struct ptx_function *f, const struct ptx_operand *o)
{
    if (o->kind == PTX_REG || (o->kind == PTX_ADDRESS && o->reg != PTX_NO_REG))
        return f->registers[o->reg].bytes <= 8;
    for (unsigned k = 0; o->kind == PTX_VECTOR && k < o->count; k++) {
        if (!registers_fit(f, &o->elements[k]))
            return false;
    }
    return true;
}

static bool all_registers_fit(const struct ptx_function *f, const struct ptx_insn *in)
{
    bool ok = registers_fit(f, &in->predicate);

    for (unsigned i = 0; i < in->operands_count; i++)
        ok = ok && registers_fit(f, &in->operands[i]);
    for (unsigned k = 0; in->call && k < in->call->args_count; k++)
        ok = ok && registers_fit(f, &in->call->args[k]);
    for (unsigned k = 0; in->call && k < in->call->results_count; k++)
        ok = ok && registers_fit(f, &in->call->results[k]);
    return ok;
}

static bool is_control(const struct ptx_insn *in)
{
    switch ((int)in->opcode) {
    case PTX_OP_BRA:
    case PTX_OP_BRX:
    case PTX_OP_RET:
    case PTX_OP_EXIT:
        return true;
    case PTX_OP_BAR:
    case PTX_OP_BARRIER:
        return !in->warp;
    default:
        return false;
    }
}

static bool call_fits(const struct ptx_module *m, const struct ptx_insn *in, unsigned depth);

/* Only threads of its own chunk are in it: it must not wait for others, nor end some of them. */
static bool function_fits(const struct ptx_module *m, const struct ptx_function *f, unsigned depth)
{
    for (uint32_t i = 0; i < f->insns_count; i++) {
        const struct ptx_insn *in = &f->insns[i];

        if (in->opcode == PTX_OP_EXIT || ((in->opcode == PTX_OP_BAR || in->opcode == PTX_OP_BARRIER) && !in->warp))
            return false;
        if (in->opcode == PTX_OP_CALL && !call_fits(m, in, depth + 1))
            return false;
    }
    return true;
}

static bool call_fits(const struct ptx_module *m, const struct ptx_insn *in, unsigned depth)
{
    const struct ptx_function *f;

    if (!in->call || in->call->function == PTX_NO_INDEX || depth > CALLS_FOLLOWED_MAX)
        return false;
    f = &m->functions[in->call->function];
    return !f->defined || function_fits(m, f, depth);
}

enum native_way native_way(const struct ptx_module *m, const struct ptx_function *f, const struct ptx_insn *in)
{
    if (emitted(f, in))
        return NATIVE_EMITTED;
    if (is_control(in) || !all_registers_fit(f, in) || (in->opcode == PTX_OP_CALL && !call_fits(m, in, 0)))
        return NATIVE_LEAVES;
    return NATIVE_BORROWED;
}

static bool called_meets_warp(const struct ptx_module *m, const struct ptx_insn *in)
{
    const struct ptx_function *f = in->call && in->call->function != PTX_NO_INDEX ? &m->functions[in->call->function] : NULL;

    for (uint32_t i = 0; f && i < f->insns_count; i++) {
        if (f->insns[i].opcode == PTX_OP_CALL || native_meets_warp(m, &f->insns[i]))
            return true;
    }
    return false;
}

bool native_meets_warp(const struct ptx_module *m, const struct ptx_insn *in)
{
    static const bool always[PTX_OP_COUNT] = {
        [PTX_OP_SHFL] = true,     [PTX_OP_VOTE] = true,       [PTX_OP_MATCH] = true,     [PTX_OP_REDUX] = true,
        [PTX_OP_ELECT] = true,    [PTX_OP_ACTIVEMASK] = true, [PTX_OP_MMA] = true,       [PTX_OP_WMMA] = true,
        [PTX_OP_LDMATRIX] = true, [PTX_OP_STMATRIX] = true,   [PTX_OP_MOVMATRIX] = true,
    };

    switch ((int)in->opcode) {
    case PTX_OP_BAR:
    case PTX_OP_BARRIER:
        return in->warp;
    case PTX_OP_LD:
    case PTX_OP_ST: /* programs that count on warps in lockstep say so by this */
        return in->order == PTX_VOLATILE;
    case PTX_OP_CALL:
        return called_meets_warp(m, in);
    default:
        return always[in->opcode];
    }
}

const struct ptx_operand *native_members(const struct ptx_insn *in)
{
    static const uint8_t before[PTX_OP_COUNT] = {
        [PTX_OP_SHFL] = 4, [PTX_OP_VOTE] = 2, [PTX_OP_MATCH] = 2, [PTX_OP_REDUX] = 2, [PTX_OP_ELECT] = 1};
    bool names = before[in->opcode] || in->opcode == PTX_OP_BAR || in->opcode == PTX_OP_BARRIER;

    return names && before[in->opcode] < in->operands_count ? &in->operands[before[in->opcode]] : NULL;
}
