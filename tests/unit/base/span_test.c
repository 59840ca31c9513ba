/* Spans: cutting, trimming, numbers with overflow. */
#include <criterion/criterion.h>

#include "base/span.h"

Test(span, cuts_at_the_separator)
{
    struct span rest = SPAN_LITERAL("a,,b");

    cr_assert(span_is(span_cut(&rest, ','), "a"));
    cr_assert(span_is(span_cut(&rest, ','), ""));
    cr_assert(span_is(span_cut(&rest, ','), "b"));
    cr_assert_eq(rest.bytes, 0);
    cr_assert(span_is(span_cut(&rest, ','), ""));
}

Test(span, a_part_lies_inside_or_there_is_none)
{
    const struct span whole = SPAN_LITERAL("abcd");
    struct span       part;
    char              copy[4];

    cr_assert(span_slice(whole, 1, 2, &part));
    cr_assert(span_is(part, "bc"));
    cr_assert(span_slice(whole, 4, 0, &part));
    cr_assert_not(span_slice(whole, 5, 0, &part));
    cr_assert_not(span_slice(whole, 1, 4, &part));
    cr_assert_not(span_slice(whole, UINT64_MAX, 2, &part));
    cr_assert_not(span_slice(whole, 2, UINT64_MAX, &part));
    cr_assert(span_read(whole, 0, copy, 4));
    cr_assert_eq(memcmp(copy, "abcd", 4), 0);
    cr_assert_not(span_read(whole, 1, copy, 4));
}

Test(span, trims_blanks_only_at_the_ends)
{
    cr_assert(span_is(span_trim(SPAN_LITERAL(" \t a b\t ")), "a b"));
    cr_assert(span_is(span_trim(SPAN_LITERAL("  ")), ""));
}

Test(span, compares)
{
    cr_assert(span_equal_nocase(SPAN_LITERAL("Content-Type"), SPAN_LITERAL("content-TYPE")));
    cr_assert_not(span_equal_nocase(SPAN_LITERAL("a"), SPAN_LITERAL("ab")));
    cr_assert_not(span_equal_nocase(SPAN_LITERAL("["), SPAN_LITERAL("{")));
    cr_assert(span_starts(SPAN_LITERAL("bytes=1"), "bytes="));
    cr_assert_not(span_starts(SPAN_LITERAL("byte"), "bytes="));
    cr_assert(span_equal((struct span){NULL, 0}, SPAN_LITERAL("")));
}

Test(span, reads_unsigned_numbers_strictly)
{
    static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "0x1", "18446744073709551616", "99999999999999999999", "1a"};
    uint64_t                 v = 0;

    for (size_t i = 0; i < COUNT(bad); i++)
        cr_assert_not(span_u64(span_of(bad[i]), &v), "%s", bad[i]);
    cr_assert(span_u64(SPAN_LITERAL("18446744073709551615"), &v));
    cr_assert_eq(v, UINT64_MAX);
    cr_assert(span_u64(SPAN_LITERAL("007"), &v));
    cr_assert_eq(v, 7);
}

Test(span, copies_only_what_fits)
{
    char room[4];

    cr_assert(span_copy(SPAN_LITERAL("abc"), room, sizeof room));
    cr_assert_str_eq(room, "abc");
    cr_assert_not(span_copy(SPAN_LITERAL("abcd"), room, sizeof room));
    cr_assert_str_eq(room, "");
    cr_assert_not(span_copy(SPAN_LITERAL(""), room, 0));
}

Test(span, from_and_first_never_leave_the_span)
{
    cr_assert_eq(span_from(SPAN_LITERAL("abc"), 9).bytes, 0);
    cr_assert(span_is(span_from(SPAN_LITERAL("abc"), 1), "bc"));
    cr_assert(span_is(span_first(SPAN_LITERAL("abc"), 9), "abc"));
}
