/* One caller's portion of what all callers share. */
#include <criterion/criterion.h>

#include "base/portion.h"
#include "limits.h"

static struct portion of(uint64_t max, uint64_t others, uint64_t mine)
{
    return (struct portion){"things", max, others + mine, mine};
}

#define FITS(max, others, mine, more) portion_fits(&(struct portion){"things", max, (others) + (mine), mine}, more)

Test(portion, a_lone_caller_has_most_of_the_whole)
{
    cr_assert(FITS(100, 0, 0, 75) && FITS(100, 0, 74, 1));
    cr_assert(!FITS(100, 0, 0, 76) && !FITS(100, 0, 75, 1));
    cr_assert(FITS(UINT64_MAX, 0, 0, UINT64_MAX / 2) && !FITS(UINT64_MAX, 0, 1, UINT64_MAX));
}

Test(portion, of_few_things_a_caller_may_have_one_while_there_is_one)
{
    cr_assert(FITS(1, 0, 0, 1) && FITS(2, 0, 1, 1) && FITS(4, 3, 0, 1));
    cr_assert(!FITS(4, 0, 3, 1) && !FITS(1, 1, 0, 1) && !FITS(0, 0, 0, 1));
}

Test(portion, a_newcomer_finds_something_behind_greedy_callers)
{
    uint64_t max = HELD_BODIES_BYTES_MAX, used = 0;

    for (unsigned i = 0; i < 8; i++) {
        struct portion p = of(max, used, 0);

        cr_assert_gt(portion_max(&p), 0);
        used += portion_max(&p); /* all that it may have */
        cr_assert_lt(used, max);
    }
}

Test(portion, who_has_more_than_its_portion_gets_nothing_more_and_loses_nothing)
{
    cr_assert(!FITS(100, 60, 35, 1) && FITS(100, 60, 30, 0));
    cr_assert(!FITS(100, 150, 0, 1), "a bound that has become less");
}

Test(portion, the_problem_names_what_is_met)
{
    struct problem why;
    struct portion whole = of(100, 90, 0), own = of(100, 0, 70);

    cr_assert_eq(portion_check(&own, 5, &why), STATUS_OK);
    cr_assert_eq(portion_check(&whole, 20, &why), STATUS_OVERLOADED);
    cr_assert_str_eq(why.limit_name, "things");
    cr_assert(why.limit_max == 100 && why.limit_used == 90 && why.limit_requested == 20);
    cr_assert_eq(portion_check(&own, 10, &why), STATUS_OVERLOADED);
    cr_assert(why.limit_max == 75 && why.limit_used == 70 && why.limit_requested == 10);
    cr_assert_eq(portion_check(&own, 10, NULL), STATUS_OVERLOADED);
}
