/* The instructions of a block, in its versions: for any lanes, for all lanes of a chunk; with checks before it, or at each access. */
#include "device/cpu/jit/emit/flow.h"

#include "device/cpu/jit/subset.h"

void emit_instruction(struct emitter *e)
{
    static void (*const own[PTX_OP_COUNT])(struct emitter *) = {
        [PTX_OP_MOV] = emit_move,
        [PTX_OP_LD] = emit_load,
        [PTX_OP_LDU] = emit_load,
        [PTX_OP_ST] = emit_store,
        [PTX_OP_CVT] = emit_convert,
        [PTX_OP_CVTA] = emit_address,
        [PTX_OP_SETP] = emit_compare,
        [PTX_OP_SELP] = emit_select,
        [PTX_OP_SHFL] = emit_shuffle,
        [PTX_OP_VOTE] = emit_vote,
        [PTX_OP_ACTIVEMASK] = emit_activemask,
        [PTX_OP_ATOM] = emit_atomic,
        [PTX_OP_RED] = emit_atomic,
    };

    if (e->insn->opcode == PTX_OP_BAR || e->insn->opcode == PTX_OP_BARRIER)
        return; /* of a warp: its block has let all members meet */
    if (own[e->insn->opcode])
        own[e->insn->opcode](e);
    else
        emit_arithmetic(e);
}

void emit_insns(struct emitter *e)
{
    const struct code_block *k = block_of(e, e->block);

    for (uint32_t i = k->insn_first; i < k->insn_first + k->insn_count; i++) {
        e->insn = &e->plan->function->insns[i];
        if (e->insn->opcode == PTX_OP_BRA)
            break;
        e->guarded = e->insn->guard != PTX_NO_REG;
        e->taken = e->mask;
        if (e->guarded) {
            struct value p = read_register(e, e->insn->guard);
            if (e->insn->guard_not)
                p.v = binary(e, LLVM_XOR, p.v, like(e, p.scalar, 1, 1));
            e->taken = binary(e, LLVM_AND, e->mask, as_vector(e, &p));
        }
        if (native_way(e->plan->module, e->plan->function, e->insn) == NATIVE_BORROWED)
            emit_borrowed(e);
        else
            emit_instruction(e);
    }
}

/* Without the checks that `ok` stands for; and with each of them, for the lanes that fail one. */
static void emit_versions(struct emitter *e, llvm_value ok)
{
    llvm_block assuming = new_block(e, "assuming"), careful = new_block(e, "careful"), end = new_block(e, "end");
    unsigned   groups = e->groups_count;

    e->ll->LLVMBuildCondBr(e->b, likely(e, ok), assuming, careful);
    go_on_in(e, assuming);
    e->assuming = true;
    emit_insns(e);
    e->assuming = false;
    e->ll->LLVMBuildBr(e->b, end);
    go_on_in(e, careful);
    e->groups_count = groups;
    e->careful = true;
    emit_insns(e);
    e->careful = false;
    e->ll->LLVMBuildBr(e->b, end);
    go_on_in(e, end);
}

/* Operations of a warp wait for their members, which the interpreter lets meet. */
static void meet_warp(struct emitter *e, uint32_t block)
{
    llvm_block stay = new_block(e, "stay"), go = new_block(e, "go");

    e->ll->LLVMBuildCondBr(e->b, likely(e, warp_is_here(e, &e->plan->function->insns[block_of(e, block)->insn_first])), go, stay);
    go_on_in(e, stay);
    settle_registers(e);
    leave_there(e, block, e->mask);
    e->ll->LLVMBuildBr(e->b, e->dispatch);
    go_on_in(e, go);
}

/* The version for chunks all of whose lanes run it. Where a check does not pass, the other version has a look at each access. */
void emit_full_block(struct emitter *e, uint32_t block)
{
    llvm_block sure = new_block(e, "sure"), careful = new_block(e, "careful");
    llvm_value ok;

    go_on_in(e, e->full_blocks[block]);
    e->block = block;
    e->full = true;
    e->mask = e->ll->LLVMConstAllOnes(vector_of(e, e->i1));
    if (block_of(e, block)->warp_first)
        meet_warp(e, block);
    ok = check_ahead(e);
    e->ll->LLVMBuildCondBr(e->b, ok ? likely(e, ok) : number(e, 1, 1), sure, careful);
    go_on_in(e, careful);
    if (ok)
        settle_registers(e);
    e->ll->LLVMBuildStore(e->b, e->mask, e->mask_slot);
    e->ll->LLVMBuildBr(e->b, e->blocks[block]);
    go_on_in(e, sure);
    emit_insns(e);
    leave_block(e, block);
    e->full = false;
}

void emit_block(struct emitter *e, uint32_t block)
{
    llvm_value ok;

    go_on_in(e, e->blocks[block]);
    e->block = block;
    e->groups_count = 0;
    e->mask = load_slot(e, vector_of(e, e->i1), e->mask_slot);
    if (block_of(e, block)->warp_first)
        meet_warp(e, block);
    ok = check_block(e);
    if (ok)
        emit_versions(e, ok);
    else
        emit_insns(e);
    leave_block(e, block);
}
