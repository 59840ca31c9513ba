/* If-Match and If-None-Match: lists, weak tags, the star, and garbage. */
#include <criterion/criterion.h>

#include "api/precondition.h"

static enum precondition check(const char *match, const char *none_match, bool reading)
{
    return precondition_check(span_of(match), span_of(none_match), SPAN_LITERAL("\"1.5\""), reading);
}

Test(precondition, absent_headers_hold)
{
    cr_assert_eq(check(NULL, NULL, true), PRECONDITION_HOLDS);
    cr_assert_eq(check(NULL, NULL, false), PRECONDITION_HOLDS);
}

Test(precondition, if_match_is_strong)
{
    cr_assert_eq(check("\"1.5\"", NULL, false), PRECONDITION_HOLDS);
    cr_assert_eq(check("*", NULL, false), PRECONDITION_HOLDS);
    cr_assert_eq(check("\"a,b\" , \"1.5\"", NULL, false), PRECONDITION_HOLDS);
    cr_assert_eq(check("\"1.4\"", NULL, false), PRECONDITION_FAILS);
    cr_assert_eq(check("W/\"1.5\"", NULL, true), PRECONDITION_FAILS);
    cr_assert_eq(check("1.5", NULL, true), PRECONDITION_FAILS);
    cr_assert_eq(check("\"1.5", NULL, true), PRECONDITION_FAILS);
}

Test(precondition, if_none_match_is_weak)
{
    cr_assert_eq(check(NULL, "\"1.5\"", true), PRECONDITION_NOT_MODIFIED);
    cr_assert_eq(check(NULL, "W/\"1.5\"", true), PRECONDITION_NOT_MODIFIED);
    cr_assert_eq(check(NULL, "*", true), PRECONDITION_NOT_MODIFIED);
    cr_assert_eq(check(NULL, "*", false), PRECONDITION_FAILS);
    cr_assert_eq(check(NULL, "\"1.4\",\"1.5\"", false), PRECONDITION_FAILS);
    cr_assert_eq(check(NULL, "\"1.4\"", true), PRECONDITION_HOLDS);
}

Test(precondition, if_match_comes_first)
{
    cr_assert_eq(check("\"9.9\"", "\"1.5\"", true), PRECONDITION_FAILS);
}
