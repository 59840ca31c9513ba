/* Which registers compiled code wants of the interpreter's arrays, where it begins: those that it reads, or takes back, before it leaves. The others
 * stay there. */
#include "device/cpu/jit/plan.h"

#include <stdlib.h>

bool plan_may_wait(const struct jit_plan *p, uint32_t from, uint32_t to)
{
    const struct code_block *k = &p->code->blocks[from];

    return to <= from || p->divergent[from] ||
           (k->end == END_BRANCH && k->last.insn->guard != PTX_NO_REG && p->shapes[k->last.insn->guard].kind == SHAPE_VARYING);
}

/* What lanes take back that leave at the end of `block` for `to`, but for `kills`, which may be NULL. */
static void add_taken(const struct jit_plan *p, const uint64_t *changed, uint32_t block, uint32_t to, const uint64_t *kills, uint64_t *out)
{
    for (size_t w = 0; w < p->words; w++)
        out[w] |= changed[block * p->words + w] & p->live[to * p->words + w] & ~(kills ? kills[w] : 0);
}

static void survey(struct jit_plan *p, uint32_t block, uint64_t *kills)
{
    const struct code_block *k = &p->code->blocks[block];
    struct plan_use          u = {p->needed + block * p->words, kills};
    uint32_t                 next[2];

    for (uint32_t i = k->insn_first; i < k->insn_first + k->insn_count; i++) {
        const struct ptx_insn *in = &p->function->insns[i];

        plan_each_source(p, in, plan_note_use, &u);
        if (in->guard == PTX_NO_REG)
            plan_each_result(in, plan_note_kill, &u);
        else
            plan_each_result(in, plan_note_use, &u);
    }
    if (k->warp_first) /* lanes may leave before it */
        add_taken(p, p->changed_later, block, block, NULL, u.uses);
    for (unsigned n = plan_successors(p->code, block, next); n-- > 0;) {
        if (!p->native[next[n]])
            add_taken(p, p->changed_later, block, next[n], kills, u.uses);
        else if (plan_may_wait(p, block, next[n]))
            add_taken(p, p->changed, block, next[n], NULL, p->left_alive);
    }
}

/* Whether a chunk may stop inside compiled code from there on. */
static void find_stops(const struct jit_plan *p, uint8_t *stops)
{
    bool     more = true;
    uint32_t next[2];

    while (more) {
        more = false;
        for (uint32_t b = p->code->blocks_count; b-- > 0;) {
            for (unsigned n = p->native[b] && !stops[b] ? plan_successors(p->code, b, next) : 0; n-- > 0;) {
                if (p->native[next[n]] && (stops[next[n]] || plan_may_wait(p, b, next[n])))
                    stops[b] = more = true;
            }
        }
    }
}

/* Adds what the blocks want that may follow. */
static bool flow_back(struct jit_plan *p, uint32_t block, const uint64_t *kills)
{
    uint64_t *needed = p->needed + block * p->words;
    uint32_t  next[2];
    bool      more = false;

    for (unsigned n = plan_successors(p->code, block, next); n-- > 0;)
        more |= p->native[next[n]] && plan_add(p, needed, p->needed + next[n] * p->words, kills);
    return more;
}

/* The first block may be where a launch begins: nothing is in the arrays then, but for what it never wrote. */
static void add_what_stops(struct jit_plan *p)
{
    uint8_t stops[NATIVE_BLOCKS_MAX] = {0};

    find_stops(p, stops);
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        for (size_t w = 0; w < p->words; w++) {
            uint64_t live = p->live[b * p->words + w];

            p->needed[b * p->words + w] |= !b ? live : stops[b] ? live & p->left_alive[w] : 0;
        }
    }
}

enum status plan_find_needed(struct jit_plan *p)
{
    uint32_t  blocks = p->code->blocks_count;
    uint64_t *kills = calloc((size_t)blocks * p->words, sizeof *kills);
    bool      more = true;

    if (!kills)
        return STATUS_OUT_OF_MEMORY;
    for (uint32_t b = 0; b < blocks; b++) {
        if (p->native[b])
            survey(p, b, kills + b * p->words);
    }
    while (more) {
        more = false;
        for (uint32_t b = blocks; b-- > 0;)
            more |= p->native[b] && flow_back(p, b, kills + b * p->words);
    }
    add_what_stops(p);
    free(kills);
    return STATUS_OK;
}
