/* Which registers compiled code may have changed since it was entered: only those have to go back to the interpreter's arrays, where the others still
 * stand. */
#include "device/cpu/jit/plan.h"

static void note_changed(uint32_t reg, void *context)
{
    uint64_t *changed = context;

    changed[reg / 64] |= 1ull << (reg % 64);
}

/* Adds what is changed where `block` ends to what is where those blocks end that follow it. */
static bool flow_on(struct jit_plan *p, uint64_t *changed, uint32_t block)
{
    const uint64_t *from = changed + block * p->words;
    bool            more = false;
    uint32_t        next[2];

    for (unsigned n = plan_successors(p->code, block, next); n-- > 0;)
        more |= p->native[next[n]] && plan_add(p, changed + next[n] * p->words, from, NULL);
    return more;
}

/* By the blocks of `runs`, which nothing leads to but each other. */
static void find_changed(struct jit_plan *p, uint64_t *changed, const uint8_t *runs)
{
    const struct code *c = p->code;
    bool               more = true;

    for (uint32_t b = 0; b < c->blocks_count; b++) {
        if (runs[b])
            plan_block_results(p, b, note_changed, changed + b * p->words);
    }
    while (more) {
        more = false;
        for (uint32_t b = 0; b < c->blocks_count; b++)
            more |= runs[b] && flow_on(p, changed, b);
    }
}

/* The blocks that run after an entry behind the first block. */
static void find_later(const struct jit_plan *p, uint8_t *later)
{
    const struct code *c = p->code;
    bool               more = true;

    for (uint32_t b = 1; b < c->blocks_count; b++)
        later[b] = p->entry[b];
    while (more) {
        more = false;
        for (uint32_t b = 0; b < c->blocks_count; b++) {
            uint32_t next[2];

            for (unsigned n = later[b] ? plan_successors(c, b, next) : 0; n-- > 0;) {
                more = more || (p->native[next[n]] && !later[next[n]]);
                later[next[n]] |= p->native[next[n]];
            }
        }
    }
}

void plan_find_changed(struct jit_plan *p)
{
    uint8_t later[NATIVE_BLOCKS_MAX] = {0};

    find_later(p, later);
    find_changed(p, p->changed, p->native);
    find_changed(p, p->changed_later, later);
}
