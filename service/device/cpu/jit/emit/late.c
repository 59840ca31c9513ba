/* Of chunks that go on behind a barrier, the first block has a version of its own where it ends with a choice, as a loop's end does: what one way out
 * wants alone, mostly what comes behind the loop, is fetched from the arrays on that way. */
#include "device/cpu/jit/emit/flow.h"

enum { LATE_INSNS_MAX = 16, LATE_REGISTERS_MIN = 3 };

struct ways {
    uint32_t out[2];
};

struct mention {
    uint32_t reg;
    bool     found;
};

static void note_mention(uint32_t reg, void *context)
{
    struct mention *m = context;

    m->found |= reg == m->reg;
}

static bool mentions(const struct emitter *e, uint32_t block, uint32_t reg)
{
    const struct jit_plan   *p = e->plan;
    const struct code_block *k = block_of(e, block);
    struct mention           m = {reg, false};

    for (uint32_t i = k->insn_first; i < k->insn_first + k->insn_count; i++) {
        plan_each_source(p, &p->function->insns[i], note_mention, &m);
        plan_each_result(&p->function->insns[i], note_mention, &m);
    }
    return m.found;
}

static bool is_fetched(const struct emitter *e, uint32_t block, uint32_t reg)
{
    return (e->plan->dirty[reg] || e->plan->read[reg]) && plan_is_needed(e->plan, block, reg);
}

/* Wanted on that way out of the block alone. Not what a chunk takes back that stops on one of them. */
static bool is_late(const struct emitter *e, uint32_t block, uint32_t reg, const struct ways *w, unsigned way)
{
    const struct jit_plan *p = e->plan;

    return is_fetched(e, block, reg) && plan_is_needed(p, w->out[way], reg) && !plan_is_needed(p, w->out[!way], reg) &&
           !(p->left_alive[reg / 64] >> (reg % 64) & 1) && !mentions(e, block, reg);
}

static void fetch_late(struct emitter *e, uint32_t block, const struct ways *w, unsigned way)
{
    for (uint32_t r = 0; r < e->plan->function->registers_count; r++) {
        if (is_late(e, block, r, w, way))
            fetch_register(e, r, NULL, number(e, 32, 0), true, NULL);
    }
}

static void fetch_others(struct emitter *e, uint32_t block, const struct ways *w)
{
    for (uint32_t r = 0; r < e->plan->function->registers_count; r++) {
        if (is_fetched(e, block, r) && !is_late(e, block, r, w, 0) && !is_late(e, block, r, w, 1))
            fetch_register(e, r, NULL, number(e, 32, 0), true, NULL);
    }
}

/* Both ways are compiled, and all lanes take the same one. */
static bool has_ways(const struct emitter *e, uint32_t block, struct ways *w)
{
    const struct jit_plan   *p = e->plan;
    const struct code_block *k = block_of(e, block);

    if (block == 0 || k->end != END_BRANCH || k->last.insn->guard == PTX_NO_REG || p->shapes[k->last.insn->guard].kind != SHAPE_UNIFORM)
        return false;
    *w = (struct ways){{block + 1, k->target}};
    return k->target != block + 1 && block + 1 < p->code->blocks_count && p->native[w->out[0]] && p->native[w->out[1]];
}

static bool has_late(const struct emitter *e, uint32_t block, const struct ways *w)
{
    const struct code_block *k = block_of(e, block);
    unsigned                 count = 0;

    if (k->warp_first || k->insn_count > LATE_INSNS_MAX || e->full_blocks[block] == e->blocks[block])
        return false;
    for (uint32_t r = 0; r < e->plan->function->registers_count; r++)
        count += is_late(e, block, r, w, 0) || is_late(e, block, r, w, 1);
    return count >= LATE_REGISTERS_MIN;
}

/* As emit_full_block(). */
static void emit_checks(struct emitter *e, uint32_t block, const struct ways *w)
{
    llvm_block sure = new_block(e, "sure"), careful = new_block(e, "careful");
    llvm_value ok = check_ahead(e);

    e->ll->LLVMBuildCondBr(e->b, ok ? likely(e, ok) : number(e, 1, 1), sure, careful);
    go_on_in(e, careful);
    fetch_late(e, block, w, 0);
    fetch_late(e, block, w, 1);
    settle_registers(e);
    e->ll->LLVMBuildStore(e->b, e->mask, e->mask_slot);
    e->ll->LLVMBuildBr(e->b, e->blocks[block]);
    go_on_in(e, sure);
}

static void leave_by_ways(struct emitter *e, uint32_t block, const struct ways *w)
{
    const struct ptx_insn *branch = block_of(e, block)->last.insn;
    llvm_block             ways[2] = {new_block(e, "next"), new_block(e, "taken")};
    llvm_value             taken = read_register(e, branch->guard).v;

    e->ll->LLVMBuildCondBr(e->b, taken, ways[!branch->guard_not], ways[branch->guard_not]);
    for (unsigned way = 0; way < 2; way++) {
        go_on_in(e, ways[way]);
        fetch_late(e, block, w, way);
        go_to(e, block, w->out[way], e->mask);
    }
}

bool emit_late_entry(struct emitter *e, uint32_t block)
{
    struct ways w;

    if (!has_ways(e, block, &w) || !has_late(e, block, &w))
        return false;
    fetch_others(e, block, &w);
    e->block = block;
    e->full = true;
    e->mask = e->ll->LLVMConstAllOnes(vector_of(e, e->i1));
    emit_checks(e, block, &w);
    emit_insns(e);
    leave_by_ways(e, block, &w);
    e->full = false;
    return true;
}
