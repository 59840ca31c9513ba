/* Structured dictionaries: valid ones, and everything that is nearly valid. */
#include <criterion/criterion.h>

#include "http/message/structured.h"

/* The kind of the first failure, or ITEM_NONE at the end; counts members. */
static enum field_item read_all(const char *text, unsigned *members)
{
    struct field_dictionary d;
    struct field_member     m;

    *members = 0;
    field_dictionary_init(&d, span_of(text));
    while (field_dictionary_next(&d, &m) != ITEM_NONE) {
        if (m.item == ITEM_MALFORMED)
            return ITEM_MALFORMED;
        ++*members;
    }
    return ITEM_NONE;
}

Test(structured, members_come_one_by_one)
{
    struct field_dictionary d;
    struct field_member     m;

    field_dictionary_init(&d, SPAN_LITERAL("  sha-256=:YWJj+/==:;q=1;w=\"x\\\"y\" ,\tcrc32c=10, *a_.-*=-7;b, t=tok/e:n, l=(1 \"a\";p :AA==:) "));
    cr_assert_eq(field_dictionary_next(&d, &m), ITEM_BYTES);
    cr_assert(span_is(m.key, "sha-256") && span_is(m.text, "YWJj+/=="));
    cr_assert_eq(field_dictionary_next(&d, &m), ITEM_INTEGER);
    cr_assert(span_is(m.key, "crc32c") && span_is(m.text, "10"));
    cr_assert_eq(field_dictionary_next(&d, &m), ITEM_INTEGER);
    cr_assert(span_is(m.key, "*a_.-*") && span_is(m.text, "-7"));
    cr_assert_eq(field_dictionary_next(&d, &m), ITEM_OTHER);
    cr_assert_eq(field_dictionary_next(&d, &m), ITEM_OTHER);
    cr_assert(span_is(m.key, "l"));
    cr_assert_eq(field_dictionary_next(&d, &m), ITEM_NONE);
    cr_assert_eq(field_dictionary_next(&d, &m), ITEM_NONE);
}

Test(structured, good_ones)
{
    static const struct {
        const char *text;
        unsigned    members;
    } good[] = {
        {"", 0},           {"   ", 0},           {"a", 1},           {"a;x", 1},
        {"a,b,c", 3},      {"a=1.5", 1},         {"a=?1, b=?0", 2},  {"a=::", 1},
        {"a=\"\"", 1},     {"a=\"\\\\\"", 1},    {"a=()", 1},        {"a=( 1 2 )", 1},
        {"a=(1;b);c", 1},  {"a=1;  b=2;c", 1},   {"a=1,a=2", 2},     {"a=999999999999999", 1},
        {"a=-0", 1},       {"a=123456789012.125", 1}, {"a=*t", 1},   {"a=T!#$%&'*+-.^_`|~:/", 1},
    };

    for (size_t i = 0; i < COUNT(good); i++) {
        unsigned members;

        cr_expect_eq(read_all(good[i].text, &members), ITEM_NONE, "%s", good[i].text);
        cr_expect_eq(members, good[i].members, "%s", good[i].text);
    }
}

Test(structured, everything_that_is_nearly_one)
{
    static const char *const bad[] = {
        ",",     ",a",     "a,",     "a, ",     "a,,b",      "a b",     "A=1",      "1=2",        "=1",         "-a=1",
        "a=",    "a= 1",   "a =1",   "a=:",     "a=:AA",     "a=:A A=:", "a=:A_A:", "a=:AA:x",    "a=:AA::",    "a=\"",
        "a=\"x", "a=\"\\x\"", "a=\"\\", "a=\"\x7f\"", "a=\"\xc3\xa4\"", "a=?", "a=?2", "a=?t",     "a=-",        "a=--1",
        "a=1.",  "a=.5",   "a=1.2345", "a=1234567890123456", "a=1234567890123.1", "a=1e3", "a=(", "a=(1", "a=(1,2)", "a=(1\t2)",
        "a=(\"x\"\"y\")", "a=)", "a;",     "a;A",      "a;b=",      "a=1;b=:",  "a=1; ;b",  "a=@1",       "a=\x01",     "a=1\xff",
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        unsigned members;

        cr_expect_eq(read_all(bad[i], &members), ITEM_MALFORMED, "%zu: %s", i, bad[i]);
    }
}

/* Reads no byte after the end: the sanitizer watches. */
Test(structured, every_prefix_of_a_value)
{
    static const char text[] = "sha-256=:YWJj:;a=\"b\\\"\";c, d=(1 2.5;e=?1), f=tok, g=-12;h=:AA==:";

    for (size_t n = 0; n < sizeof text; n++) {
        char                   *copy = n ? strndup(text, n) : strdup("");
        struct field_dictionary d;
        struct field_member     m;
        unsigned                rounds = 0;

        field_dictionary_init(&d, (struct span){copy, n < sizeof text - 1 ? n : sizeof text - 1});
        while (field_dictionary_next(&d, &m) != ITEM_NONE && m.item != ITEM_MALFORMED)
            cr_assert_lt(++rounds, 10);
        free(copy);
    }
}
