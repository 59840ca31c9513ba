/* traceparent, by the grammar of W3C Trace Context. */
#include <criterion/criterion.h>

#include "http/message/trace.h"

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static void expect(const char *header, const char *id)
{
    char got[TRACE_ID_BYTES] = "x";

    trace_id_parse(span_of(header), got);
    cr_assert_str_eq(got, id, "<%s>", header);
}

Test(trace, well_formed_ones)
{
    expect("00-" TRACE "-" PARENT "-01", TRACE);
    expect("  00-" TRACE "-" PARENT "-00 ", TRACE);
    expect("01-" TRACE "-" PARENT "-01", TRACE);
    expect("cc-" TRACE "-" PARENT "-01-what-comes-later", TRACE);
}

Test(trace, malformed_ones_are_ignored)
{
    expect("", "");
    expect("00", "");
    expect("00-" TRACE "-" PARENT, "");
    expect("00-" TRACE "-" PARENT "-0", "");
    expect("00-" TRACE "-" PARENT "-01-more", "");
    expect("00-" TRACE "-" PARENT "-011", "");
    expect("01-" TRACE "-" PARENT "-01x", "");
    expect("ff-" TRACE "-" PARENT "-01", "");
    expect("00-" TRACE "x" PARENT "-01", "");
    expect("00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01", "");
    expect("00-00000000000000000000000000000000-" PARENT "-01", "");
    expect("00-" TRACE "-0000000000000000-01", "");
    expect("0g-" TRACE "-" PARENT "-01", "");
}
