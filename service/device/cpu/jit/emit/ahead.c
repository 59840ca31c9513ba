/* Checks of accesses before their block begins. Addresses are computed from what the block finds in registers, and the checks of all accesses
 * become one: the block itself has neither branches nor slow ways then. LLVM drops what is computed twice. */
#include "device/cpu/jit/emit/emit.h"

#include <stdlib.h>

#include "device/cpu/interp/decode/decode.h"
#include "device/cpu/jit/subset.h"

/* Alignments whose low bits are gathered in one number: 2, 4, 8, ... */
enum { ALIGNMENTS = 6 };

struct ahead {
    llvm_value ok;
    llvm_value low_bits[ALIGNMENTS]; /* of scalar addresses, by the logarithm of the alignment - 1 */
};

static void also(struct emitter *e, struct ahead *a, llvm_value ok)
{
    a->ok = a->ok ? binary(e, LLVM_AND, a->ok, ok) : ok;
}

/* All lanes are aligned as the first is; so its bits are kept for one test of all. */
static unsigned gather_alignment(struct emitter *e, struct ahead *a, const struct value *base, const struct access_group *g)
{
    int64_t    stride = base->shape.kind == SHAPE_LINEAR ? base->shape.stride : 0;
    unsigned   k = g->align > 1 ? (unsigned)__builtin_ctz(g->align) - 1 : ALIGNMENTS;
    llvm_value at;

    if (!base->scalar || stride % (int64_t)g->align || k >= ALIGNMENTS)
        return g->align;
    at = binary(e, LLVM_ADD, base->v, number(e, 64, (uint64_t)g->low));
    a->low_bits[k] = a->low_bits[k] ? binary(e, LLVM_OR, a->low_bits[k], at) : at;
    return 1;
}

/* With the value that the register has now. */
static void check_group(struct emitter *e, struct ahead *a, struct access_group *g)
{
    struct value base = resize_value(e, read_register(e, g->reg), 64, false);
    unsigned     align = gather_alignment(e, a, &base, g);

    also(e, a, check_range(e, g->space, base, g->low, g->high, align, e->mask));
    g->last = NULL;
}

static void note_access(struct emitter *e, const struct ptx_operand *at, enum op_space space)
{
    int64_t              offset = (int64_t)at->value, beyond = offset + access_bytes(e->insn);
    struct access_group *g = NULL;

    for (unsigned i = 0; i < e->groups_count && !g; i++)
        g = e->groups[i].last && e->groups[i].reg == at->reg && e->groups[i].space == space ? &e->groups[i] : NULL;
    if (!g && e->groups_count == GROUPS_MAX)
        return;
    if (!g) {
        g = &e->groups[e->groups_count++];
        *g = (struct access_group){.reg = at->reg, .space = space, .low = offset, .high = beyond, .align = 1};
    }
    g->low = g->low < offset ? g->low : offset;
    g->high = g->high > beyond ? g->high : beyond;
    g->align = g->align > access_bytes(e->insn) ? g->align : access_bytes(e->insn);
    g->last = e->insn;
    e->passed[e->insn - e->plan->function->insns] = 1;
}

/* For the handler of faults: once for all strips of a band, which do not stop at each access for that. */
static void list_access(struct emitter *e, const struct ptx_operand *at)
{
    size_t       entry = offsetof(struct native_call, strip_access) + e->listed++ * sizeof(struct strip_access);
    struct value base = resize_value(e, read_register(e, at->reg), 64, false);

    if (!base.scalar || e->listed > NATIVE_STRIP_INSNS) {
        e->unfit = true;
        return;
    }
    set_member(e, entry + offsetof(struct strip_access, address), binary(e, LLVM_ADD, base.v, number(e, 64, at->value)), true);
    set_member(e, entry + offsetof(struct strip_access, insn), number(e, 64, (uint64_t)(e->insn - e->plan->function->insns)), true);
}

static bool known(const struct emitter *e, const struct ptx_operand *o)
{
    return o->kind == PTX_VECTOR ? false : o->kind != PTX_REG || e->ahead_state[o->reg] == AHEAD_KNOWN;
}

/* A few instructions that addresses are made of: the same as in the block, and without effects. */
static bool is_computed(const struct emitter *e, const struct ptx_insn *in)
{
    static const bool computed[PTX_OP_COUNT] = {
        [PTX_OP_ADD] = true, [PTX_OP_SUB] = true, [PTX_OP_MUL] = true, [PTX_OP_MAD] = true, [PTX_OP_SHL] = true, [PTX_OP_SHR] = true,
        [PTX_OP_AND] = true, [PTX_OP_OR] = true,  [PTX_OP_XOR] = true, [PTX_OP_MOV] = true, [PTX_OP_CVT] = true, [PTX_OP_CVTA] = true,
    };
    enum op_space space = OP_GENERIC;
    bool          ok = in->guard == PTX_NO_REG && native_way(e->plan->module, e->plan->function, in) == NATIVE_EMITTED &&
              !is_float((enum ptx_type)in->type) && in->operands_count && in->operands[0].kind == PTX_REG && in->type != PTX_PRED;

    for (unsigned i = 1; i < in->operands_count && in->opcode != PTX_OP_LD; i++)
        ok = ok && known(e, &in->operands[i]);
    if (in->opcode == PTX_OP_LD)
        return ok && native_space(in, &in->operands[1], &space) && space == OP_PARAM_KERNEL;
    return ok && computed[in->opcode] && !(in->opcode == PTX_OP_CVT && is_float((enum ptx_type)in->stype));
}

/* Groups end where their register changes. */
static void change_register(struct emitter *e, struct ahead *a, uint32_t reg, enum ahead_state to)
{
    for (unsigned i = 0; i < e->groups_count; i++) {
        if (e->groups[i].last && e->groups[i].reg == reg)
            check_group(e, a, &e->groups[i]);
    }
    e->ahead_state[reg] = (uint8_t)to;
}

static void change_operand(struct emitter *e, struct ahead *a, const struct ptx_operand *o, enum ahead_state to)
{
    if (o->kind == PTX_REG)
        change_register(e, a, o->reg, to);
    for (unsigned k = 0; o->kind == PTX_VECTOR && k < o->count; k++)
        change_operand(e, a, &o->elements[k], to);
}

static void go_over(struct emitter *e, struct ahead *a)
{
    const struct ptx_insn    *in = e->insn;
    const struct ptx_operand *at = address_operand(in);
    enum op_space             space = OP_GENERIC;
    int64_t                   offset = at ? (int64_t)at->value : 0;

    if (is_computed(e, in)) {
        change_operand(e, a, &in->operands[0], AHEAD_KNOWN);
        emit_instruction(e);
        return;
    }
    if (at && at->reg != PTX_NO_REG && in->guard == PTX_NO_REG && e->ahead_state[at->reg] == AHEAD_KNOWN &&
        native_way(e->plan->module, e->plan->function, in) == NATIVE_EMITTED && native_space(in, at, &space) && space != OP_PARAM_KERNEL &&
        offset % (int64_t)access_bytes(in) == 0 && offset < GROUP_REACH && offset > -GROUP_REACH)
        note_access(e, at, space);
    if (e->in_strip && e->passed[in - e->plan->function->insns])
        list_access(e, at);
    if (in->opcode == PTX_OP_ST || in->opcode == PTX_OP_BRA)
        return;
    for (unsigned i = 0; i < in->operands_count; i++) /* only the first is written, and of calls all may be */
        if (i == 0 || in->call)
            change_operand(e, a, &in->operands[i], AHEAD_UNKNOWN);
    change_operand(e, a, &in->predicate, AHEAD_UNKNOWN);
    for (unsigned k = 0; in->call && k < in->call->results_count; k++)
        change_operand(e, a, &in->call->results[k], AHEAD_UNKNOWN);
}

static void test_alignments(struct emitter *e, struct ahead *a)
{
    for (unsigned k = 0; k < ALIGNMENTS; k++) {
        llvm_value odd;

        if (!a->low_bits[k])
            continue;
        odd = binary(e, LLVM_AND, a->low_bits[k], number(e, 64, (2ull << k) - 1));
        also(e, a, icmp(e, LLVM_EQ, odd, number(e, 64, 0)));
    }
}

bool staying_lanes(const struct emitter *e, const struct code_block *k, const struct decision *way, struct stretch *out)
{
    uint32_t returns = e->plan->returns;

    *out = k->target == returns ? way->no : way->yes;
    return e->low_slot && way->sure && out->low && (k->target == returns) != (e->block + 1 == returns);
}

static void decide_way(struct emitter *e, struct ahead *a, struct decision *way)
{
    const struct code_block *k = &e->plan->code->blocks[e->block];
    struct stretch           left;

    *way = (struct decision){.all = NULL};
    if (k->end != END_BRANCH || k->last.insn->guard == PTX_NO_REG || k->target == e->block + 1)
        return;
    if (!decide_branch(e, k->last.insn, way))
        e->unfit = true;
    else if (staying_lanes(e, k, way, &left))
        also(e, a, way->sure);
    else
        also(e, a, binary(e, LLVM_OR, way->all, way->none));
}

llvm_value check_strip(struct emitter *e, struct decision *way)
{
    const struct code_block *k = &e->plan->code->blocks[e->block];
    size_t                   registers = (size_t)e->plan->function->registers_count + 1;
    struct ahead             a = {.ok = NULL};

    memset(e->passed, 0, e->plan->function->insns_count);
    e->listed = 0;
    e->ahead = calloc(registers, sizeof *e->ahead);
    e->ahead_state = calloc(registers, 1);
    e->groups_count = 0;
    if (!e->ahead || !e->ahead_state)
        e->broken = true;
    for (uint32_t i = k->insn_first; i < k->insn_first + k->insn_count && !e->broken; i++) {
        e->insn = &e->plan->function->insns[i];
        e->guarded = false;
        e->taken = e->mask;
        go_over(e, &a);
    }
    for (unsigned i = 0; i < e->groups_count && !e->broken; i++) {
        if (e->groups[i].last)
            check_group(e, &a, &e->groups[i]);
    }
    test_alignments(e, &a);
    if (e->listed)
        set_member(e, offsetof(struct native_call, strip_accesses), number(e, 32, e->listed), true);
    if (way && !e->broken)
        decide_way(e, &a, way);
    free(e->ahead);
    free(e->ahead_state);
    e->ahead = NULL;
    e->ahead_state = NULL;
    e->groups_count = 0;
    return a.ok;
}

llvm_value check_ahead(struct emitter *e)
{
    return check_strip(e, NULL);
}
