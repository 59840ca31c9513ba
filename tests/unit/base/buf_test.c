/* The buffer: growth, the obligatory maximum, sticky failure. */
#include <criterion/criterion.h>

#include "base/buf.h"

Test(buf, grows_up_to_exactly_its_maximum)
{
    struct buf b;

    buf_init(&b, 1000);
    for (int i = 0; i < 1000; i++)
        cr_assert(buf_add(&b, "x", 1));
    cr_assert_not(b.failed);
    cr_assert_not(buf_add(&b, "x", 1));
    cr_assert(b.failed);
    cr_assert_eq(b.bytes, 1000);
    cr_assert_eq(b.data[1000], '\0');
    buf_finish(&b);
    cr_assert_null(b.data);
    cr_assert_eq(b.max, 1000);
}

Test(buf, prints_adds_and_clears)
{
    struct buf b;

    buf_init(&b, 1 << 20);
    cr_assert(buf_printf(&b, "%s=%d", "a", 5));
    cr_assert(buf_add_text(&b, ";"));
    cr_assert(buf_add_span(&b, SPAN_LITERAL("b")));
    cr_assert(span_is(buf_span(&b), "a=5;b"));
    buf_clear(&b);
    cr_assert_eq(b.bytes, 0);
    cr_assert(buf_printf(&b, "%0500d", 1));
    cr_assert_eq(b.bytes, 500);
    buf_finish(&b);
}

Test(buf, failure_is_sticky_until_cleared_and_keeps_what_was_there)
{
    struct buf b;

    buf_init(&b, 4);
    cr_assert(buf_add_text(&b, "ab"));
    cr_assert_not(buf_add_text(&b, "cde"));
    cr_assert(span_is(buf_span(&b), "ab"));
    cr_assert(b.failed);
    cr_assert_not(buf_add_text(&b, "c"), "no text with a hole in it");
    cr_assert(span_is(buf_span(&b), "ab"));
    buf_clear(&b);
    cr_assert_not(b.failed);
    cr_assert(buf_add_text(&b, "c"));
    buf_finish(&b);
}

Test(buf, reserve_and_grew_take_over_written_bytes)
{
    struct buf b;
    char      *at;

    buf_init(&b, 100);
    at = buf_reserve(&b, 10);
    cr_assert_not_null(at);
    memcpy(at, "0123", 4);
    buf_grew(&b, 4);
    cr_assert(span_is(buf_span(&b), "0123"));
    cr_assert_null(buf_reserve(&b, 97));
    buf_finish(&b);
}

Test(buf, an_empty_add_is_fine)
{
    struct buf b;

    buf_init(&b, 0);
    cr_assert(buf_add(&b, NULL, 0));
    cr_assert_not(buf_add(&b, "x", 1));
    buf_finish(&b);
}

Test(buf, numbers_are_written_in_decimal)
{
    struct buf b;

    buf_init(&b, 100);
    buf_add_u64(&b, 0);
    buf_add_text(&b, " ");
    buf_add_u64(&b, UINT64_MAX);
    cr_assert(span_is(buf_span(&b), "0 18446744073709551615"));
    buf_clear(&b);
    buf_add_thousandths(&b, 0);
    buf_add_text(&b, " ");
    buf_add_thousandths(&b, 7);
    buf_add_text(&b, " ");
    buf_add_thousandths(&b, 1230);
    buf_add_text(&b, " ");
    buf_add_thousandths(&b, UINT64_MAX);
    cr_assert(span_is(buf_span(&b), "0.000 0.007 1.230 18446744073709551.615"), "%s", b.data);
    buf_finish(&b);
    buf_init(&b, 5);
    cr_assert_not(buf_add_thousandths(&b, 12345));
    cr_assert(b.failed);
    buf_finish(&b);
}
