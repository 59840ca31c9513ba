/* Instructions that compiled code leaves to the interpreter's operations, without leaving itself: their registers go to the interpreter's
 * arrays, the operations run for the lanes of the chunk, and the results come back. And the meeting of a warp before its operations. */
#include "device/cpu/jit/emit/emit.h"

#include "device/cpu/jit/subset.h"

enum { BORROWED_REGISTERS_MAX = 64 };

/* Registers that an instruction names, each once. */
struct named {
    uint32_t reg[BORROWED_REGISTERS_MAX];
    unsigned count;
    bool     overflows;
};

static void add_register(struct named *n, uint32_t reg)
{
    for (unsigned i = 0; i < n->count; i++) {
        if (n->reg[i] == reg)
            return;
    }
    if (n->count == BORROWED_REGISTERS_MAX)
        n->overflows = true;
    else
        n->reg[n->count++] = reg;
}

static void add_operand(struct named *n, const struct ptx_operand *o)
{
    if (o->kind == PTX_REG || (o->kind == PTX_ADDRESS && o->reg != PTX_NO_REG))
        add_register(n, o->reg);
    for (unsigned k = 0; o->kind == PTX_VECTOR && k < o->count; k++)
        add_operand(n, &o->elements[k]);
}

/* What it may write; all else that it names, it only reads. */
static void find_results(const struct ptx_insn *in, struct named *n)
{
    if (in->operands_count && in->operands[0].kind != PTX_ADDRESS)
        add_operand(n, &in->operands[0]);
    add_operand(n, &in->predicate);
    for (unsigned k = 0; in->call && k < in->call->results_count; k++)
        add_operand(n, &in->call->results[k]);
}

static void find_named(const struct ptx_insn *in, struct named *n)
{
    find_results(in, n);
    for (unsigned i = 0; i < in->operands_count; i++)
        add_operand(n, &in->operands[i]);
    for (unsigned k = 0; in->call && k < in->call->args_count; k++)
        add_operand(n, &in->call->args[k]);
}

static void call_operations(struct emitter *e)
{
    llvm_type  type = e->ll->LLVMFunctionType(e->ll->LLVMVoidTypeInContext(e->context), &e->i64, 1, 0);
    llvm_value to = pointer(e, member(e, offsetof(struct native_call, operate), 64), type);

    set_member(e, offsetof(struct native_call, insn), number(e, 32, (uint64_t)(e->insn - e->plan->function->insns)), false);
    set_member(e, offsetof(struct native_call, lanes), mask_bits(e, e->taken), false);
    e->ll->LLVMBuildCall2(e->b, type, to, &e->call, 1, "");
}

void emit_borrowed(struct emitter *e)
{
    struct named named = {.count = 0}, results = {.count = 0};

    find_named(e->insn, &named);
    find_results(e->insn, &results);
    if (named.overflows) {
        e->broken = true;
        return;
    }
    for (unsigned i = 0; i < named.count; i++)
        save_register(e, named.reg[i], e->taken);
    call_operations(e);
    for (unsigned i = 0; i < results.count; i++)
        write_register(e, results.reg[i], array_value(e, results.reg[i]), false);
}

/* ---- warps ---- */

/* Lanes of the chunk that live and are not in `mask`; those that stand before a return count as gone. */
static llvm_value lanes_elsewhere(struct emitter *e)
{
    llvm_value here = mask_bits(e, e->mask);

    for (uint32_t b = 0; b < e->plan->code->blocks_count; b++) {
        if (e->plan->passes[b] == PASSES_RETURN)
            here = binary(e, LLVM_OR, here, member(e, offsetof(struct native_call, pending) + sizeof(uint32_t) * b, 32));
    }
    return binary(e, LLVM_AND, member(e, offsetof(struct native_call, live), 32), binary(e, LLVM_XOR, here, number(e, 32, ~0u)));
}

llvm_value warp_is_here(struct emitter *e, const struct ptx_insn *in)
{
    const struct ptx_operand *o = native_members(in);
    llvm_value                elsewhere = lanes_elsewhere(e), taken = e->mask, waits;
    struct value              members = o ? source_value(e, o, 4) : constant_value(e, 32, UINT32_MAX);

    if (in->guard != PTX_NO_REG) {
        struct value p = read_register(e, in->guard);
        if (in->guard_not)
            p.v = binary(e, LLVM_XOR, p.v, like(e, p.scalar, 1, 1));
        taken = binary(e, LLVM_AND, e->mask, as_vector(e, &p));
    }
    if (alike(e, &members, 1)) {
        waits = e->ll->LLVMBuildICmp(e->b, LLVM_NE, binary(e, LLVM_AND, members.v, elsewhere), number(e, 32, 0), "");
        return in->guard == PTX_NO_REG
                   ? binary(e, LLVM_XOR, waits, number(e, 1, 1))
                   : choose(e, waits, e->ll->LLVMBuildICmp(e->b, LLVM_EQ, mask_bits(e, taken), number(e, 32, 0), ""), number(e, 1, 1));
    }
    waits = e->ll->LLVMBuildICmp(e->b, LLVM_NE, binary(e, LLVM_AND, members.v, spread(e, elsewhere)), like(e, false, 32, 0), "");
    return e->ll->LLVMBuildICmp(e->b, LLVM_EQ, mask_bits(e, binary(e, LLVM_AND, waits, taken)), number(e, 32, 0), "");
}
