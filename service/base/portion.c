/* The rule for all bounds that callers share. */
#include "base/portion.h"
#include "base/bounds.h"

#include <assert.h>

/* What the other callers leave. */
static uint64_t portion_left(const struct portion *p)
{
    uint64_t others = p->used - p->mine;

    assert(p->mine <= p->used);
    return others < p->max ? p->max - others : 0;
}

uint64_t portion_max(const struct portion *p)
{
    return portion_left(p) - portion_left(p) / PORTION_DIVISOR;
}

bool portion_fits(const struct portion *p, uint64_t more)
{
    uint64_t most = portion_max(p);

    return p->mine <= most && more <= most - p->mine;
}

enum status portion_check(const struct portion *p, uint64_t more, struct problem *why)
{
    if (portion_fits(p, more))
        return STATUS_OK;
    if (p->used >= p->max || more > p->max - p->used)
        return problem_limit(why, STATUS_OVERLOADED, p->name, p->max, p->used, more);
    return problem_limit(why, STATUS_OVERLOADED, p->name, portion_max(p), p->mine, more);
}
