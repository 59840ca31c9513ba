/* If-Match and If-None-Match: lists, weak tags, the star, and garbage. */
#include <criterion/criterion.h>

#include "http/message/precondition.h"

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

Test(precondition, lists_are_tags_and_commas_and_nothing_else)
{
    static const char *const good[] = {"*",       " * ",          "\"1.5\"",         "W/\"1.5\"",      "\"\"",
                                       "\"a,b\"", "\"a\", \"b\"", "\"a\"\t,W/\"b\"", ",\"a\",,\"b\",", "\"\xc3\xa9\""};
    static const char *const bad[] = {"",           " ",          ",",        "1.5",       "\"1.5",     "\"1.5\"x",     "\"a\" \"b\"",
                                      "\"a\"\"b\"", "*, \"1.5\"", "\"a\", *", "**",        "w/\"1.5\"", "W/",           "W/ \"a\"",
                                      "\"a b\"",    "\"a\";q=1",  "\"a\", b", "\"a\x7f\"", "'1.5'",     "\"1.5\" junk", "\"a\", W/"};

    for (size_t i = 0; i < COUNT(good); i++)
        cr_assert(etag_list_valid(span_of(good[i])), "%s", good[i]);
    for (size_t i = 0; i < COUNT(bad); i++)
        cr_assert_not(etag_list_valid(span_of(bad[i])), "%s", bad[i]);
}

Test(precondition, if_range_is_one_tag_or_a_time)
{
    static const char *const good[] = {"\"1.5\"", "W/\"1.5\"", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                                       "Sun Nov  6 08:49:37 1994"};
    static const char *const bad[] = {"", "*", "\"1.5\", \"1.6\"", "\"1.5\"x", "1.5", "yesterday", "Sun, 06 Nov 1994 08:49:37 GMT x"};

    for (size_t i = 0; i < COUNT(good); i++)
        cr_assert(if_range_valid(span_of(good[i])), "%s", good[i]);
    for (size_t i = 0; i < COUNT(bad); i++)
        cr_assert_not(if_range_valid(span_of(bad[i])), "%s", bad[i]);
}
