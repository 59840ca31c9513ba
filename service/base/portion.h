/* What one caller may have of a bound that all callers share: three quarters of what the others leave, rounded up. So a lone caller has most of the
 * whole, and a newcomer finds something however many are there. Counting, and the lock over it, are the bound's owner's. */
#ifndef GPUREST_BASE_PORTION_H
#define GPUREST_BASE_PORTION_H

#include "base/problem.h"

/* Of a bound of `max`, `used` by all callers together, the caller's `mine` included. */
struct portion {
    const char *name; /* of the bound, in problems */
    uint64_t    max, used, mine;
};

/* The most that the caller may have now. */
uint64_t portion_max(const struct portion *p);
bool     portion_fits(const struct portion *p, uint64_t more);
/* OK, or OVERLOADED: the whole is used up, or the caller's portion is, whose greatest and use the problem then tells. */
enum status portion_check(const struct portion *p, uint64_t more, struct problem *why);

#endif
