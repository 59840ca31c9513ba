/* Operations with the same result for every block of a launch: run once per launch and host thread instead of once per block. Such an
 * instruction has no effect but its result, and its result register is written nowhere else. Its sources are constants, parameters of
 * the kernel, special registers that do not depend on the block, and results of other such instructions. Interpreted, tests/bench/cpu_kernels takes
 * 25 % longer without it for vadd, 12 % for reduce_shfl, 5 % for softmax, the same for matmul (2026-11-25, two builds in turns). */
#include "device/cpu/interp/decode/decode.h"

enum { INVARIANT = 1, WRITTEN = 2, WRITTEN_AGAIN = 4 };

static void note_write(struct decoder *d, const struct ptx_operand *p)
{
    if (p->kind == PTX_REG)
        d->facts[p->reg] |= d->facts[p->reg] & WRITTEN ? WRITTEN_AGAIN : WRITTEN;
    for (unsigned k = 0; p->kind == PTX_VECTOR && k < p->count; k++)
        note_write(d, &p->elements[k]);
}

/* The first operand counts as written: one too many does no harm, one too few would. */
void hoist_prepare(struct decoder *d)
{
    for (uint32_t i = 0; i < d->function->insns_count; i++) {
        const struct ptx_insn *in = &d->function->insns[i];

        if (in->operands_count)
            note_write(d, &in->operands[0]);
        note_write(d, &in->predicate);
        for (unsigned k = 0; in->call && k < in->call->results_count; k++)
            note_write(d, &in->call->results[k]);
    }
}

bool insn_is_pure(const struct ptx_insn *in)
{
    switch ((int)in->opcode) {
    case PTX_OP_ABS: case PTX_OP_ADD: case PTX_OP_AND: case PTX_OP_BFE: case PTX_OP_BFI: case PTX_OP_BFIND: case PTX_OP_BMSK:
    case PTX_OP_BREV:
    case PTX_OP_CLZ: case PTX_OP_CNOT: case PTX_OP_COPYSIGN: case PTX_OP_COS: case PTX_OP_CVT: case PTX_OP_CVTA: case PTX_OP_DIV:
    case PTX_OP_EX2: case PTX_OP_FMA: case PTX_OP_ISSPACEP: case PTX_OP_LG2: case PTX_OP_LOP3: case PTX_OP_MAD: case PTX_OP_MAX:
    case PTX_OP_MIN: case PTX_OP_MOV: case PTX_OP_MUL: case PTX_OP_NEG: case PTX_OP_NOT: case PTX_OP_OR: case PTX_OP_POPC: case PTX_OP_PRMT:
    case PTX_OP_RCP: case PTX_OP_REM: case PTX_OP_RSQRT: case PTX_OP_SELP: case PTX_OP_SET: case PTX_OP_SETP: case PTX_OP_SHF:
    case PTX_OP_SHL: case PTX_OP_SHR: case PTX_OP_SIN: case PTX_OP_SQRT: case PTX_OP_SUB: case PTX_OP_XOR:
        return in->carry == PTX_NO_MODIFIER;
    case PTX_OP_LD:
        return in->space == PTX_PARAM && in->operands[1].kind == PTX_ADDRESS && in->operands[1].space == PTX_KERNEL_PARAM;
    default:
        return false;
    }
}

static bool source_stays(const struct decoder *d, const struct ptx_operand *p)
{
    switch ((enum ptx_operand_kind)p->kind) {
    case PTX_NOTHING:
    case PTX_IMMEDIATE:
    case PTX_FUNCTION: return true;
    case PTX_REG:      return d->facts[p->reg] & INVARIANT;
    case PTX_SPECIAL_: return ptx_special_kinds[p->special] != PTX_OF_BLOCK && ptx_special_kinds[p->special] != PTX_OF_CLOCK;
    case PTX_ADDRESS:  return p->reg == PTX_NO_REG && p->space != PTX_LOCAL;
    case PTX_VECTOR:
        for (unsigned k = 0; k < p->count; k++) {
            if (!source_stays(d, &p->elements[k]))
                return false;
        }
        return true;
    case PTX_SINK: break;
    }
    return false;
}

static bool written_here_only(const struct decoder *d, const struct ptx_operand *p)
{
    return p->kind == PTX_REG && !(d->facts[p->reg] & WRITTEN_AGAIN);
}

bool hoist_wanted(const struct decoder *d)
{
    const struct ptx_insn *in = d->insn;

    if (d->code->plain || d->parted || !d->function->entry || in->guard != PTX_NO_REG || !insn_is_pure(in) || !in->operands_count)
        return false;
    if (!written_here_only(d, &in->operands[0]) || (in->predicate.kind != PTX_NOTHING && !written_here_only(d, &in->predicate)))
        return false;
    for (unsigned i = 1; i < in->operands_count; i++) {
        if (!source_stays(d, &in->operands[i]))
            return false;
    }
    return true;
}

void hoist_done(struct decoder *d)
{
    d->facts[d->insn->operands[0].reg] |= INVARIANT;
    if (d->insn->predicate.kind == PTX_REG)
        d->facts[d->insn->predicate.reg] |= INVARIANT;
}
