/* Which kernels can run several chunks at once, and how their values lie then. */
#include "device/cpu/jit/strip.h"

#include <stdlib.h>

#include "device/cpu/interp/decode/decode.h"
#include "device/cpu/jit/emit/emit.h"
#include "device/cpu/jit/subset.h"

/* The only place that writes the register is a plain move of a special register: which one; else PTX_SPECIAL_COUNT. */
static unsigned special_of(const struct jit_plan *p, const struct ptx_operand *o)
{
    const struct ptx_function *f = p->function;
    unsigned                   found = PTX_SPECIAL_COUNT;

    if (o->kind == PTX_SPECIAL_)
        return o->special;
    for (uint32_t i = 0; o->kind == PTX_REG && !o->negated && i < f->insns_count; i++) {
        const struct ptx_insn *in = &f->insns[i];

        if (!insn_writes(in, o->reg))
            continue;
        if (found != PTX_SPECIAL_COUNT || in->opcode != PTX_OP_MOV || in->guard != PTX_NO_REG || in->operands[0].kind != PTX_REG ||
            in->operands[1].kind != PTX_SPECIAL_ || ptx_type_bytes((enum ptx_type)in->type) != 4)
            return PTX_SPECIAL_COUNT;
        found = in->operands[1].special;
    }
    return found;
}

bool strip_counts(const struct jit_plan *p, const struct ptx_insn *in)
{
    unsigned x, y;

    if (!p->across || in->opcode != PTX_OP_MAD || in->part == PTX_HI || in->part == PTX_WIDE ||
        ptx_type_bytes((enum ptx_type)in->type) != 4 || is_float((enum ptx_type)in->type))
        return false;
    x = special_of(p, &in->operands[1]);
    y = special_of(p, &in->operands[2]);
    return ((x == PTX_SPECIAL_CTAID_X && y == PTX_SPECIAL_NTID_X) || (x == PTX_SPECIAL_NTID_X && y == PTX_SPECIAL_CTAID_X)) &&
           special_of(p, &in->operands[3]) == PTX_SPECIAL_TID_X;
}

static bool is_known_special(const struct ptx_operand *o)
{
    for (unsigned k = 0; o->kind == PTX_VECTOR && k < o->count; k++) {
        if (!is_known_special(&o->elements[k]))
            return false;
    }
    return o->kind != PTX_SPECIAL_ || o->special <= PTX_SPECIAL_NCTAID_Z;
}

/* All lanes at one address, or one after the other. */
static bool is_plain_access(const struct jit_plan *p, const struct ptx_insn *in)
{
    bool                      load = in->opcode == PTX_OP_LD;
    const struct ptx_operand *at = &in->operands[load ? 1 : 0], *moved = &in->operands[load ? 0 : 1];
    enum op_space             space = OP_GENERIC;
    const struct shape       *s;

    if (!native_space(in, at, &space))
        return false;
    if (space == OP_PARAM_KERNEL)
        return load;
    if (space != OP_GLOBAL || at->reg == PTX_NO_REG)
        return false;
    s = &p->shapes[at->reg];
    if (s->kind == SHAPE_UNIFORM)
        return load;
    return s->kind == SHAPE_LINEAR && moved->kind != PTX_VECTOR && s->stride == (int64_t)ptx_type_bytes((enum ptx_type)in->type);
}

static bool is_fit(const struct jit_plan *p, const struct ptx_insn *in)
{
    static const bool plain[PTX_OP_COUNT] = {
        [PTX_OP_MOV] = true, [PTX_OP_CVT] = true, [PTX_OP_CVTA] = true, [PTX_OP_SETP] = true, [PTX_OP_SELP] = true,
        [PTX_OP_ADD] = true, [PTX_OP_SUB] = true, [PTX_OP_MUL] = true,  [PTX_OP_MAD] = true,  [PTX_OP_FMA] = true,
        [PTX_OP_SHL] = true, [PTX_OP_SHR] = true, [PTX_OP_AND] = true,  [PTX_OP_OR] = true,   [PTX_OP_XOR] = true,
        [PTX_OP_NOT] = true, [PTX_OP_NEG] = true, [PTX_OP_ABS] = true,  [PTX_OP_MIN] = true,  [PTX_OP_MAX] = true,
    };

    if (in->opcode == PTX_OP_BRA)
        return true;
    if (in->guard != PTX_NO_REG || native_way(p->module, p->function, in) != NATIVE_EMITTED)
        return false;
    for (unsigned i = 0; i < in->operands_count; i++) {
        if (!is_known_special(&in->operands[i]))
            return false;
    }
    if (in->opcode == PTX_OP_LD || in->opcode == PTX_OP_ST)
        return is_plain_access(p, in);
    if (in->opcode == PTX_OP_DIV || in->opcode == PTX_OP_SQRT || in->opcode == PTX_OP_RCP)
        return is_plain_float(in->type);
    return plain[in->opcode];
}

static bool stores(const struct jit_plan *p, uint32_t block)
{
    const struct code_block *k = &p->code->blocks[block];

    for (uint32_t i = k->insn_first; i < k->insn_first + k->insn_count; i++) {
        if (p->function->insns[i].opcode == PTX_OP_ST)
            return true;
    }
    return false;
}

static void find_late(struct jit_strip *s)
{
    const struct jit_plan *p = &s->plan;
    bool                   changed = true;

    while (changed) {
        changed = false;
        for (uint32_t b = 0; b < p->code->blocks_count; b++) {
            uint32_t next[2];

            for (unsigned n = p->native[b] ? plan_successors(p->code, b, next) : 0; n-- > 0;) {
                if ((next[n] > b && !s->late[b] && !stores(p, b)) || s->late[next[n]])
                    continue;
                s->late[next[n]] = 1;
                changed = true;
            }
        }
    }
}

/* All of the kernel is compiled. */
static bool is_simple(const struct jit_plan *p)
{
    if (!p->whole || p->spins || p->borrows || p->warps || !p->rows || p->insns_native > NATIVE_STRIP_INSNS ||
        p->returns == p->code->blocks_count)
        return false;
    for (uint32_t r = 0; r < p->function->registers_count; r++) {
        if (p->function->registers[r].bytes > 8 || plan_is_live(p, p->returns, r))
            return false;
    }
    return true;
}

static bool all_fit(const struct jit_plan *p)
{
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        const struct code_block *k = &p->code->blocks[b];

        for (uint32_t i = k->insn_first; p->native[b] && i < k->insn_first + k->insn_count; i++) {
            if (!is_fit(p, &p->function->insns[i]))
                return false;
        }
    }
    return true;
}

/* All lanes load from one place there, and later blocks may read that, or what is made of it. While strips store, each may find another number. */
static bool keeps_loaded(const struct jit_plan *p, const struct code_block *k)
{
    bool loads = false, keeps = false;

    for (uint32_t i = k->insn_first; i < k->insn_first + k->insn_count; i++) {
        const struct ptx_operand *at = address_operand(&p->function->insns[i]);

        loads |= p->function->insns[i].opcode != PTX_OP_ST && at && at->reg != PTX_NO_REG && p->shapes[at->reg].kind == SHAPE_UNIFORM;
    }
    for (uint32_t r = 0; loads && r < p->function->registers_count; r++)
        keeps |= !p->local[r] && block_writes(p, k, r);
    return keeps;
}

/* A line that wraps does so once at most in a band. */
static bool has_bands(const struct jit_plan *p)
{
    enum { STRIDE_MAX = (1 << 30) / BAND_LANES_MAX };

    for (uint32_t r = 0; r < p->function->registers_count; r++) {
        const struct shape *s = &p->shapes[r];

        if ((s->kind == SHAPE_VARYING && !p->local[r]) || (s->kind == SHAPE_LINEAR && (s->stride > STRIDE_MAX || s->stride < -STRIDE_MAX)))
            return false;
    }
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        if (p->native[b] && keeps_loaded(p, &p->code->blocks[b]))
            return false;
    }
    return true;
}

static bool block_has_parts(const struct jit_strip *s, uint32_t block)
{
    const struct jit_plan   *p = &s->plan;
    const struct code_block *k = &p->code->blocks[block];
    bool                     accesses = false, lines = false;

    for (uint32_t i = k->insn_first; i < k->insn_first + k->insn_count; i++) {
        const struct ptx_insn *in = &p->function->insns[i];

        accesses |= address_operand(in) && address_operand(in)->reg != PTX_NO_REG;
        for (uint32_t r = 0; r < p->function->registers_count; r++)
            lines |= insn_writes(in, r) && p->shapes[r].kind == SHAPE_LINEAR && !p->local[r];
    }
    return !s->late[block] && !(accesses && lines);
}

/* There is nothing to leave for once lanes have returned, and no line of the first strip that only its own run tells. */
static bool has_parts(const struct jit_strip *s)
{
    bool all = s->bands;

    for (uint32_t b = 0; b < s->plan.code->blocks_count && all; b++)
        all = !s->plan.native[b] || block_has_parts(s, b);
    return all;
}

bool strip_make(struct jit_strip *s, const struct jit_plan *p, bool across, bool masked)
{
    *s = (struct jit_strip){.plan = *p};
    s->plan.shapes = NULL;
    if (!is_simple(p))
        return false;
    s->plan.across = across ? p->lanes : 0;
    s->plan.lanes = STRIP_CHUNKS * p->lanes;
    s->plan.shapes = calloc((size_t)p->function->registers_count + 1, sizeof *s->plan.shapes);
    s->late = calloc(p->code->blocks_count, 1);
    if (!s->plan.shapes || !s->late)
        return false;
    plan_shapes_together(&s->plan);
    find_late(s);
    s->bands = has_bands(&s->plan);
    s->parts = masked && has_parts(s); /* its edges have masks */
    return all_fit(&s->plan);
}

void strip_finish(struct jit_strip *s)
{
    free(s->plan.shapes);
    free(s->late);
}
