/* The strict scanner against the classic texts that lenient parsers accept. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "http/bounds.h"
#include "http/json/scan.h"
#include "limits.h"

static bool scans(struct span text, struct json_scan_error *error)
{
    /* A copy without a final NUL, so that reads past the end are detected. */
    char  *exact = malloc(text.bytes ? text.bytes : 1);
    size_t values;
    bool   ok;

    memcpy(exact, text.data, text.bytes);
    ok = json_scan((struct span){exact, text.bytes}, JSON_VALUES_MAX, &values, error);
    free(exact);
    return ok;
}

Test(json_scan, takes_what_the_grammar_takes)
{
    static const char *const good[] = {
        "0",
        "-0",
        "-0.5e-10",
        "1E+2",
        "true",
        "false",
        "null",
        "\"\"",
        "[]",
        "{}",
        " [ ] ",
        "{ \"a\" : [ 1 , { } ] }",
        "\t\r\n1\n",
        "\"\\u00e9\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
        "[[],[{}],{\"\":{}}]",
        "\"\x7f\"",
        "[0,1]",
        "{\"a\":1,\"b\":2}",
    };
    struct json_scan_error error;

    for (size_t i = 0; i < COUNT(good); i++)
        cr_assert(scans(span_of(good[i]), &error), "%s: %s", good[i], error.reason);
}

Test(json_scan, refuses_what_it_does_not)
{
    static const char *const bad[] = {
        "",
        " ",
        "01",
        "-01",
        "1.",
        ".5",
        "+1",
        "1e",
        "1e+",
        "-",
        "0x1",
        "NaN",
        "Infinity",
        "tru",
        "nul",
        "truex",
        "1 2",
        "[1,]",
        "[,1]",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{'a':1}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\" 1}",
        "[1 2]",
        "[",
        "{",
        "]",
        "}",
        "[}",
        "{]",
        "[1}",
        "\"",
        "\"a",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud800x\"",
        "\"a\nb\"",
        "\"\t\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xc3\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xe0\x80\x80\"",
        "\"\xf0\x80\x80\x80\"",
        "\"\x80\"",
        "\xef\xbb\xbf{}",
        "/**/1",
        "1//",
        "[1]x",
        "\x0c 1",
        "{\"a\":1 \"b\":2}",
    };
    struct json_scan_error error;

    for (size_t i = 0; i < COUNT(bad); i++)
        cr_assert_not(scans(span_of(bad[i]), &error), "%s", bad[i]);
    cr_assert_not(scans((struct span){"\0", 1}, &error));
    cr_assert_not(scans((struct span){"[1]\0", 4}, &error));
    cr_assert_not(scans((struct span){"\"a\0b\"", 5}, &error));
}

Test(json_scan, tells_where)
{
    struct json_scan_error error;

    cr_assert_not(scans(SPAN_LITERAL("{\"a\": 01}"), &error));
    cr_assert_eq(error.offset, 7);
    cr_assert_not(scans(SPAN_LITERAL("[1, \"\\u0000\"]"), &error));
    cr_assert_eq(error.offset, 5);
}

Test(json_scan, bounds_depth_values_and_numbers)
{
    struct json_scan_error error;
    char                  *text = malloc(3 * JSON_VALUES_MAX);
    size_t                 at = 0;

    memset(text, '[', 64);
    memset(text + JSON_DEPTH_MAX, ']', 64);
    cr_assert(scans((struct span){text, 2 * JSON_DEPTH_MAX}, &error));
    memset(text, '[', 2 * JSON_DEPTH_MAX);
    memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
    cr_assert_not(scans((struct span){text, 2 * JSON_DEPTH_MAX + 2}, &error));
    cr_assert_str_eq(error.reason, "nested too deeply");
    text[at++] = '[';
    for (int i = 0; i < JSON_VALUES_MAX - 1; i++, at += 2)
        memcpy(text + at, "1,", 2);
    text[at - 1] = ']';
    cr_assert(scans((struct span){text, at}, &error)); /* with the array itself exactly the maximum */
    memcpy(text + at - 1, ",1]", 3);
    cr_assert_not(scans((struct span){text, at + 2}, &error));
    memset(text, '1', 64);
    cr_assert(scans((struct span){text, JSON_NUMBER_CHARS_MAX}, &error));
    cr_assert_not(scans((struct span){text, JSON_NUMBER_CHARS_MAX + 1}, &error));
    free(text);
}
