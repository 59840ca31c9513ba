/* Range and Content-Range: every form of RFC 9110 §14, at the edges. */
#include <criterion/criterion.h>

#include "http/message/range.h"

static void expect(const char *header, uint64_t size, enum range_kind kind, uint64_t offset, uint64_t bytes)
{
    struct byte_range got = {7777, 7777};

    cr_assert_eq(range_parse(span_of(header), size, &got), kind, "%s", header);
    if (kind == RANGE_UNSATISFIED)
        cr_assert_eq(got.offset, 7777);
    else
        cr_assert(got.offset == offset && got.bytes == bytes, "%s: %lu+%lu", header, got.offset, got.bytes);
}

Test(range, one_range)
{
    expect("bytes=0-0", 10, RANGE_PART, 0, 1);
    expect("bytes=2-5", 10, RANGE_PART, 2, 4);
    expect("bytes=0-9", 10, RANGE_PART, 0, 10);
    expect("bytes=5-", 10, RANGE_PART, 5, 5);
    expect("BYTES=5-", 10, RANGE_PART, 5, 5);
    expect("bytes=9-999999999999", 10, RANGE_PART, 9, 1);
    expect("bytes=-5", 10, RANGE_PART, 5, 5);
    expect("bytes=-50", 10, RANGE_PART, 0, 10);
    expect("bytes=1-18446744073709551615", UINT64_MAX, RANGE_PART, 1, UINT64_MAX - 1);
}

Test(range, unsatisfied)
{
    expect("bytes=10-", 10, RANGE_UNSATISFIED, 0, 0);
    expect("bytes=10-12", 10, RANGE_UNSATISFIED, 0, 0);
    expect("bytes=-0", 10, RANGE_UNSATISFIED, 0, 0);
    expect("bytes=0-", 0, RANGE_UNSATISFIED, 0, 0);
    expect("bytes=-1", 0, RANGE_UNSATISFIED, 0, 0);
}

Test(range, positions_beyond_64_bits_are_very_large)
{
    expect("bytes=99999999999999999999-", 10, RANGE_UNSATISFIED, 0, 0);
    expect("bytes=18446744073709551616-18446744073709551617", UINT64_MAX, RANGE_UNSATISFIED, 0, 0);
    expect("bytes=3-99999999999999999999", 10, RANGE_PART, 3, 7);
    expect("bytes=-18446744073709551616", 10, RANGE_PART, 0, 10);
    expect("bytes=-99999999999999999999", 0, RANGE_UNSATISFIED, 0, 0);
}

Test(range, what_is_not_understood_is_the_whole)
{
    static const char *const whole[] = {"",           "bytes",      "bytes=",     "bytes=-",       "bytes=5",
                                        "bytes=5-2",  "bytes=a-b",  "bytes=1-2,", "bytes=0-1,4-5", "lines=1-2",
                                        "bytes=+1-2", "bytes=1--2", "bytes 1-2",  "bytes=0x1-2",   "bytes=99999999999999999999a-"};

    for (size_t i = 0; i < COUNT(whole); i++)
        expect(whole[i], 10, RANGE_WHOLE, 0, 10);
}

static void expect_content(const char *header, uint64_t size, enum status st, uint64_t offset, uint64_t bytes)
{
    struct byte_range got = {0};
    struct problem    why = {0};

    cr_assert_eq(content_range_parse(span_of(header), size, &got, &why), st, "%s", header);
    if (st == STATUS_OK)
        cr_assert(got.offset == offset && got.bytes == bytes, "%s", header);
    else
        cr_assert(why.status == st && why.detail[0], "%s", header);
    if (st == STATUS_RANGE_NOT_SATISFIABLE)
        cr_assert(why.has_unsatisfied_range && why.range_size == size);
}

Test(content_range, good)
{
    expect_content("bytes 0-9/10", 10, STATUS_OK, 0, 10);
    expect_content("bytes 3-3/*", 10, STATUS_OK, 3, 1);
    expect_content("  bytes 3-4/10 ", 10, STATUS_OK, 3, 2);
}

Test(content_range, bad)
{
    static const char *const malformed[] = {"",
                                            "bytes",
                                            "bytes 0-9",
                                            "bytes */10",
                                            "bytes 5-2/10",
                                            "bytes=0-9/10",
                                            "bytes 0-9/11",
                                            "lines 0-9/10",
                                            "bytes -9/10",
                                            "bytes 0-/10",
                                            "bytes 0-9/x",
                                            "bytes 0-9/",
                                            "bytes a-b/10"};

    for (size_t i = 0; i < COUNT(malformed); i++)
        expect_content(malformed[i], 10, STATUS_INVALID_CONTENT_RANGE, 0, 0);
    expect_content("bytes 0-10/*", 10, STATUS_RANGE_NOT_SATISFIABLE, 0, 0);
    expect_content("bytes 10-10/10", 10, STATUS_RANGE_NOT_SATISFIABLE, 0, 0);
    expect_content("bytes 0-18446744073709551615/*", 10, STATUS_RANGE_NOT_SATISFIABLE, 0, 0);
    expect_content("bytes 0-18446744073709551616/*", 10, STATUS_RANGE_NOT_SATISFIABLE, 0, 0);
    expect_content("bytes 99999999999999999999-99999999999999999999/10", 10, STATUS_RANGE_NOT_SATISFIABLE, 0, 0);
    expect_content("bytes 0-9/99999999999999999999", 10, STATUS_INVALID_CONTENT_RANGE, 0, 0);
}
