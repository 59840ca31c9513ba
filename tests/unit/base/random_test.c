/* Random ids: format, size, and no repeats. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/random.h"

Test(random, ids_have_the_prefix_and_22_base62_characters)
{
    char a[64];
    char b[64];

    cr_assert(random_id("b_", a, sizeof a));
    cr_assert(random_id("b_", b, sizeof b));
    cr_assert_eq(strlen(a), 2 + RANDOM_ID_CHARS);
    cr_assert_eq(strncmp(a, "b_", 2), 0);
    cr_assert_eq(strspn(a + 2, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"), RANDOM_ID_CHARS);
    cr_assert_str_neq(a, b);
}

Test(random, an_id_that_does_not_fit_is_refused)
{
    char small[RANDOM_ID_CHARS + 2];

    cr_assert_not(random_id("s_", small, sizeof small));
    cr_assert(random_id("s", small, sizeof small));
}
