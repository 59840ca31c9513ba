/* Which registers chunks hold at barriers: those that stand for all lanes and are changed between two barriers, again and again. Others go to the
 * interpreter's arrays once. */
#include "device/cpu/jit/plan.h"

/* Of two addresses. Where lanes part between barriers, what was held costs more than it saved: with one number of 32 bits, sums by trees took 14 % longer
 * (A/B in turns, 2026-11-29). */
enum { HELD_BYTES_MIN = 16 };

/* Whether it is changed behind the first block, and wanted behind a barrier. */
static bool is_worth_it(const struct jit_plan *p, uint32_t reg)
{
    bool changed = false, live = false;

    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        changed |= plan_is_changed(p, b, reg, true);
        live |= plan_goes_on_behind(p, b) && plan_is_live(p, b, reg);
    }
    return changed && live && p->shapes[reg].kind != SHAPE_VARYING;
}

void plan_find_held(struct jit_plan *p)
{
    unsigned bytes = 0;

    for (uint32_t r = 0; r < p->function->registers_count; r++) {
        if (!is_worth_it(p, r))
            continue;
        p->held[r / 64] |= 1ull << (r % 64);
        bytes += p->function->registers[r].bytes;
    }
    p->holds = bytes >= HELD_BYTES_MIN;
}
