/* Deadlines saturate instead of wrapping. */
#include <criterion/criterion.h>

#include "base/deadline.h"

Test(deadline, huge_timeouts_never_come)
{
    cr_assert_eq(deadline_after_ns(UINT64_MAX), DEADLINE_NEVER);
    cr_assert_eq(deadline_after_ms(UINT64_MAX), DEADLINE_NEVER);
    cr_assert_gt(deadline_left_ns(DEADLINE_NEVER), NS_PER_S);
}

Test(deadline, the_past_has_nothing_left)
{
    cr_assert_eq(deadline_left_ns(0), 0);
    cr_assert_gt(deadline_left_ns(deadline_after_ms(1000000)), 0);
}
