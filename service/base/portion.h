/* The portion of a shared bound that one caller may use: three quarters of what the others leave, rounded up. A lone caller gets most of it, and a
 * new caller always finds something free. The owner of the bound counts and locks. */
#pragma once

#include "base/problem.h"

/* `used` is the use of all callers together, including the caller's `mine`. */
struct portion {
    const char *name; /* name of the bound in problems */
    uint64_t    max, used, mine;
};

/* The most that the caller may use now. */
uint64_t portion_max(const struct portion *p);
bool     portion_fits(const struct portion *p, uint64_t more);
/* OVERLOADED if the bound or the caller's portion is used up; the problem has the maximum and the use of the portion. */
enum status portion_check(const struct portion *p, uint64_t more, struct problem *why);
