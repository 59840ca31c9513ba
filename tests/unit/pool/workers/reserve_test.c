/* How many warm workers follow from their use, by a clock of the test. */
#include <criterion/criterion.h>

#include "base/deadline.h"
#include "pool/workers/reserve.h"

static const uint64_t START = 1000 * NS_PER_S;

Test(reserve, is_empty_at_first)
{
    struct reserve r = {.next = 0};

    cr_assert_eq(reserve_wanted(&r, START), 0);
}

Test(reserve, holds_as_many_as_a_second_used_up)
{
    struct reserve r = {.next = 0};

    for (unsigned i = 0; i < 4; i++)
        reserve_note(&r, START + i * NS_PER_MS);
    cr_assert_eq(reserve_wanted(&r, START + NS_PER_S), 4);
}

Test(reserve, does_not_grow_by_slow_use)
{
    struct reserve r = {.next = 0};

    for (unsigned i = 0; i < 20; i++)
        reserve_note(&r, START + i * NS_PER_S);
    cr_assert_eq(reserve_wanted(&r, START + 20 * NS_PER_S), 1);
}

Test(reserve, has_a_bound)
{
    struct reserve r = {.next = 0};

    for (unsigned i = 0; i < 1000; i++)
        reserve_note(&r, START + i);
    cr_assert_eq(reserve_wanted(&r, START + 1000), WARM_TAKEN_MAX);
}

Test(reserve, lapses_and_is_not_prolonged_by_less_use)
{
    const uint64_t until = START + WARM_KEEP_MS * NS_PER_MS;
    struct reserve r = {.next = 0};

    for (unsigned i = 0; i < 5; i++)
        reserve_note(&r, START);
    reserve_note(&r, START + 10 * NS_PER_S);
    cr_assert_eq(reserve_wanted(&r, until - 1), 5);
    cr_assert_eq(reserve_wanted(&r, until), 0);
    reserve_note(&r, until);
    cr_assert_eq(reserve_wanted(&r, until), 1);
}
