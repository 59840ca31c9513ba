/* Parsed values, tables, and the writer. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "http/json/json.h"

static struct json_document *parse(const char *text)
{
    struct json_document *d = NULL;
    struct problem        why = {0};

    cr_assert_eq(json_parse(span_of(text), &d, &why), STATUS_OK, "%s: %s", text, why.detail);
    return d;
}

static void refuses(const char *text, const char *detail)
{
    struct json_document *d = NULL;
    struct problem        why = {0};

    cr_assert_eq(json_parse(span_of(text), &d, &why), STATUS_INVALID_JSON, "%s", text);
    cr_assert_not_null(strstr(why.detail, detail), "%s: %s", text, why.detail);
    cr_assert_null(d);
}

Test(json, refuses_duplicates_and_huge_numbers)
{
    refuses("{\"a\":1,\"b\":2,\"a\":3}", "duplicate name");
    refuses("[{\"x\":{\"a\":1,\"\\u0061\":3}}]", "duplicate name");
    refuses("[1e999]", "too large");
    refuses("[1", "at byte 2");
    json_document_destroy(parse("{\"a\":1,\"A\":2,\"b\":{\"a\":1}}"));
    json_document_destroy(NULL);
}

Test(json, refuses_duplicates_among_many)
{
    char   text[2048] = "{";
    size_t at = 1;

    for (int i = 0; i < 100; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "\"m%d\":%d,", i, i);
    strcpy(text + at, "\"m100\":0}");
    json_document_destroy(parse(text));
    strcpy(text + at, "\"m7\":0}");
    refuses(text, "duplicate name \"m7\"");
}

Test(json, reads_values)
{
    struct json_document *d = parse("{\"s\":\"h\\u00e9\",\"n\":null,\"t\":true,\"f\":false,\"a\":[1,2,3],\"o\":{\"k\":1.5}}");
    const struct json    *root = json_root(d);

    cr_assert(span_is(json_text(json_member(root, "s")), "h\xc3\xa9"));
    cr_assert_eq(json_type_of(json_member(root, "n")), JSON_NULL);
    cr_assert_eq(json_type_of(json_member(root, "S")), JSON_ABSENT);
    cr_assert(json_bool(json_member(root, "t")));
    cr_assert_not(json_bool(json_member(root, "f")));
    cr_assert_eq(json_count(json_member(root, "a")), 3);
    cr_assert_eq(json_count(root), 6);
    cr_assert(span_is(json_name(json_next(json_first(root))), "n"));
    cr_assert_eq(json_double(json_member(json_member(root, "o"), "k")), 1.5);
    cr_assert_null(json_first(json_member(root, "s")));
    cr_assert_null(json_member(NULL, "s"));
    json_document_destroy(d);
}

Test(json, takes_only_exact_integers)
{
    static const struct {
        const char *text;
        bool        is_u64, is_i64;
        uint64_t    u64;
    } cases[] = {
        {"0", true, true, 0},
        {"-0", true, true, 0},
        {"1e3", true, true, 1000},
        {"1.0", true, true, 1},
        {"9007199254740992", true, true, 1ull << 53},
        {"9007199254740993", false, false, 0}, /* its double is 2^53 */
        {"9007199254740994", false, false, 0},
        {"-9007199254740992", false, true, (uint64_t) - (1ll << 53)},
        {"-9007199254740993", false, false, 0},
        {"9007199254740991", true, true, (1ull << 53) - 1},
        {"9007199254740991.0", true, true, (1ull << 53) - 1},
        {"9007199254740992.000000000000001", false, false, 0},
        {"4503599627370497.4999", false, false, 0},
        {"0.9999999999999999999999", false, false, 0},
        {"1.00000000000000000000001", false, false, 0},
        {"-1.00000000000000000000001", false, false, 0},
        {"1e-400", false, false, 0}, /* its double is 0 */
        {"0e-400", true, true, 0},
        {"0.000e99999999999999999999", true, true, 0},
        {"1500e-2", true, true, 15},
        {"1505e-2", false, false, 0},
        {"0.0000012e7", true, true, 12},
        {"9.007199254740993E+15", false, false, 0},
        {"9.007199254740992E+15", true, true, 1ull << 53},
        {"1e16", false, false, 0},
        {"18446744073709551615", false, false, 0},
        {"99999999999999999999", false, false, 0},
        {"1.5", false, false, 0},
        {"-1", false, true, (uint64_t)-1},
        {"\"18446744073709551615\"", true, false, UINT64_MAX},
        {"\"18446744073709551616\"", false, false, 0},
        {"\"9223372036854775807\"", true, true, INT64_MAX},
        {"\"-9223372036854775808\"", false, true, (uint64_t)INT64_MIN},
        {"\"-9223372036854775809\"", false, false, 0},
        {"\"\"", false, false, 0},
        {"\"+1\"", false, false, 0},
        {"\" 1\"", false, false, 0},
        {"\"-\"", false, false, 0},
        {"\"1x\"", false, false, 0},
        {"true", false, false, 0},
        {"null", false, false, 0},
        {"[]", false, false, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct json_document *d = parse(cases[i].text);
        uint64_t              u = 0;
        int64_t               s = 0;

        cr_assert_eq(json_u64(json_root(d), &u), cases[i].is_u64, "%s", cases[i].text);
        cr_assert_eq(json_i64(json_root(d), &s), cases[i].is_i64, "%s", cases[i].text);
        cr_assert(!cases[i].is_u64 || u == cases[i].u64, "%s", cases[i].text);
        cr_assert(!cases[i].is_i64 || (uint64_t)s == cases[i].u64, "%s", cases[i].text);
        json_document_destroy(d);
    }
}

/* Each number keeps its own flag, whatever is between them. */
Test(json, tells_rounded_numbers_apart)
{
    struct json_document *d =
        parse("{\"9007199254740993\":\"\\\\\\\"-1e5\",\"a\":[9007199254740993,{\"b\":9007199254740992},1e-400,-0],\"c\":3}");
    const struct json *e = json_first(json_member(json_root(d), "a"));
    uint64_t           u;

    cr_assert_not(json_u64(e, &u));
    cr_assert_eq(json_double(e), 9007199254740992.0);
    cr_assert_eq(json_type_of(e), JSON_NUMBER);
    e = json_next(e);
    cr_assert(json_u64(json_member(e, "b"), &u) && u == 1ull << 53);
    e = json_next(e);
    cr_assert_not(json_u64(e, &u));
    cr_assert(json_u64(json_next(e), &u) && u == 0);
    cr_assert(json_u64(json_member(json_root(d), "c"), &u) && u == 3);
    json_document_destroy(d);
}

struct shape {
    uint64_t           size;
    uint32_t           count;
    bool               flag, has_name;
    struct span        name;
    const struct json *any;
};
static const struct json_field shape_fields[] = {
    JSON_FIELD(FIELD_U64, struct shape, size, true, UINT64_MAX), JSON_FIELD(FIELD_U32, struct shape, count, false, UINT64_MAX),
    JSON_FIELD(FIELD_BOOL, struct shape, flag, false, 0),        JSON_FIELD_SEEN(FIELD_STRING, struct shape, name, has_name, 4),
    JSON_FIELD(FIELD_ANY, struct shape, any, false, 0),
};

static enum status decode(const char *text, bool lenient, struct problem *why)
{
    struct json_document *d = parse(text);
    struct shape          q = {.count = 7};
    enum status           st = json_decode(json_root(d), shape_fields, COUNT(shape_fields), "/ops/1", lenient, &q, why);

    json_document_destroy(d);
    return st;
}

Test(json_decode, fills_a_struct_and_keeps_defaults)
{
    struct json_document *d = parse("{\"size\":\"18446744073709551615\",\"flag\":true,\"name\":\"abcd\",\"any\":[1],\"count\":null}");
    struct shape          q = {.count = 7};
    struct problem        why;

    cr_assert_eq(json_decode(json_root(d), shape_fields, COUNT(shape_fields), "", false, &q, &why), STATUS_OK);
    cr_assert_eq(q.size, UINT64_MAX);
    cr_assert_eq(q.count, 7);
    cr_assert(q.flag && q.has_name);
    cr_assert(span_is(q.name, "abcd"));
    cr_assert_eq(json_count(q.any), 1);
    json_document_destroy(d);
}

Test(json_decode, names_the_wrong_member)
{
    static const struct {
        const char *text, *pointer, *code;
        enum status st;
    } cases[] = {
        {"{}", "/ops/1/size", "required", STATUS_INVALID_FIELD},
        {"{\"size\":null}", "/ops/1/size", "required", STATUS_INVALID_FIELD},
        {"{\"size\":-1}", "/ops/1/size", "type", STATUS_INVALID_FIELD},
        {"{\"size\":1,\"count\":4294967296}", "/ops/1/count", "range", STATUS_INVALID_FIELD},
        {"{\"size\":1,\"flag\":1}", "/ops/1/flag", "type", STATUS_INVALID_FIELD},
        {"{\"size\":1,\"name\":\"abcde\"}", "/ops/1/name", "range", STATUS_INVALID_FIELD},
        {"{\"size\":1,\"name\":1}", "/ops/1/name", "type", STATUS_INVALID_FIELD},
        {"{\"size\":1,\"a/b~\":1}", "/ops/1/a~1b~0", "unknown", STATUS_UNKNOWN_FIELD},
        {"{\"size\":1,\"Size\":1}", "/ops/1/Size", "unknown", STATUS_UNKNOWN_FIELD},
        {"[]", "/ops/1", "type", STATUS_INVALID_FIELD},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct problem why = {0};

        cr_assert_eq(decode(cases[i].text, false, &why), cases[i].st, "%s", cases[i].text);
        cr_assert(why.has_field);
        cr_assert_str_eq(why.field.pointer, cases[i].pointer);
        cr_assert_str_eq(why.field.code, cases[i].code);
    }
    cr_assert_eq(decode("{\"size\":1,\"more\":1}", true, NULL), STATUS_OK);
}

Test(json_decode, survives_long_names)
{
    char           text[600] = "{\"";
    struct problem why = {0};

    memset(text + 2, '~', 500);
    strcpy(text + 502, "\":1}");
    cr_assert_eq(decode(text, false, &why), STATUS_UNKNOWN_FIELD);
    cr_assert_lt(strlen(why.field.pointer), PROBLEM_POINTER_BYTES);
}

static struct buf         written;
static struct json_writer w;

static void write_start(void)
{
    buf_init(&written, 4096);
    json_writer_init(&w, &written);
}

static void write_again(void)
{
    buf_clear(&written);
    json_writer_init(&w, &written);
}

static void write_end(void)
{
    buf_finish(&written);
}

TestSuite(json_writer, .init = write_start, .fini = write_end);

Test(json_writer, writes_nested_values_with_commas)
{
    json_open_object(&w, NULL);
    json_add_u64(&w, "u", 1ull << 53);
    json_add_i64(&w, "i", INT64_MIN);
    json_open_array(&w, "a");
    json_close_array(&w);
    json_open_array(&w, "b");
    json_add_bool(&w, NULL, true);
    json_open_object(&w, NULL);
    json_close_object(&w);
    json_add_null(&w, NULL);
    json_close_array(&w);
    json_add_raw(&w, "r", SPAN_LITERAL("[1]"));
    json_add_time(&w, "t", 1700000000123456789ull);
    json_add_time(&w, "z", 0);
    json_add_text(&w, "n", NULL);
    json_close_object(&w);
    cr_assert_str_eq(written.data, "{\"u\":9007199254740992,\"i\":-9223372036854775808,\"a\":[],\"b\":[true,{},null],\"r\":[1],"
                                   "\"t\":\"2023-11-14T22:13:20.123Z\",\"z\":null,\"n\":\"\"}");
    cr_assert_eq(w.depth, 0);
}

Test(json_writer, makes_any_bytes_valid)
{
    struct json_document *d = NULL;
    char                  every[256];

    for (int i = 0; i < 256; i++)
        every[i] = (char)i;
    json_open_array(&w, NULL);
    json_add_string(&w, NULL, SPAN_LITERAL("a\"\\\n\x01\xff\xed\xa0\x80\xc3\xa9\x7f"));
    json_add_string(&w, NULL, (struct span){"\xe2\x82\xac", 2}); /* cut in the middle */
    json_close_array(&w);
    cr_assert_str_eq(written.data, "[\"a\\\"\\\\\\n\\u0001\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9\\u007f\","
                                   "\"\xef\xbf\xbd\xef\xbf\xbd\"]");
    write_again();
    json_add_string(&w, NULL, (struct span){every + 1, 255});
    cr_assert_eq(json_parse(buf_span(&written), &d, NULL), STATUS_OK);
    json_document_destroy(d);
}

/* Strings are looked through by eight bytes at once. */
Test(json_writer, writes_bytes_as_base64)
{
    struct buf         text;
    struct json_writer writer;

    buf_init(&text, 4096);
    json_writer_init(&writer, &text);
    json_open_object(&writer, NULL);
    json_add_base64(&writer, "none", (struct span){NULL, 0});
    json_add_base64(&writer, "two", (struct span){"\xff\x00", 2});
    json_close_object(&writer);
    cr_assert_not(text.failed);
    cr_assert(span_is(buf_span(&text), "{\"none\":\"\",\"two\":\"/wA=\"}"));
    buf_finish(&text);
    buf_init(&text, 8);
    json_writer_init(&writer, &text);
    json_add_base64(&writer, NULL, SPAN_LITERAL("too much"));
    cr_assert(text.failed);
    buf_finish(&text);
}

Test(json_writer, finds_what_needs_an_escape_wherever_it_stands)
{
    for (int c = 0; c < 256; c++)
        for (size_t at = 0; at < 20; at++) {
            char        text[20], want[64], shown[16];
            bool        plain = c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
            const char *named = c ? strchr("\bb\ff\nn\rr\tt\"\"\\\\", c) : NULL;

            memset(text, 'a', sizeof text);
            text[at] = (char)c;
            if (plain)
                snprintf(shown, sizeof shown, "%c", c);
            else if (c >= 0x80)
                snprintf(shown, sizeof shown, "\xef\xbf\xbd");
            else if (named && strchr("\b\f\n\r\t\"\\", c))
                snprintf(shown, sizeof shown, "\\%c", named[1]);
            else
                snprintf(shown, sizeof shown, "\\u%04x", c);
            snprintf(want, sizeof want, "\"%.*s%s%.*s\"", (int)at, "aaaaaaaaaaaaaaaaaaaa", shown, (int)(19 - at), "aaaaaaaaaaaaaaaaaaaa");
            write_again();
            json_add_string(&w, NULL, (struct span){text, sizeof text});
            cr_assert_str_eq(written.data, want, "byte %d at %zu", c, at);
        }
}

Test(json_writer, writes_doubles_that_read_back_the_same)
{
    static const double values[] = {0.1, 0.30000000000000004, 9007199254740991.0, 1e300, 5e-324, -1.5, 7.8, 1.0 / 3};

    for (size_t i = 0; i < COUNT(values); i++) {
        write_again();
        json_add_double(&w, NULL, values[i]);
        cr_assert_eq(strtod(written.data, NULL), values[i]);
    }
    write_again();
    json_open_array(&w, NULL);
    json_add_double(&w, NULL, 7.8);
    json_add_double(&w, NULL, NAN);
    json_add_double(&w, NULL, -INFINITY);
    json_close_array(&w);
    cr_assert_str_eq(written.data, "[7.8,null,null]");
}

Test(json_writer, marks_what_does_not_fit)
{
    buf_finish(&written);
    buf_init(&written, 10);
    json_writer_init(&w, &written);
    json_add_text(&w, NULL, "0123456789");
    cr_assert(written.failed);
}

Test(base64, decodes_strictly)
{
    static const char *const bad[] = {"A", "AA", "AAA", "AA=A", "A===", "====", "AA==A", "AAB=", "AB==", "A-_A", "AA A", "AAA\n"};
    struct arena             a;
    struct span              out;

    arena_init(&a, 4096);
    cr_assert(base64_decode(SPAN_LITERAL(""), &a, &out));
    cr_assert_eq(out.bytes, 0);
    cr_assert(base64_decode(SPAN_LITERAL("Zm9vYmE="), &a, &out));
    cr_assert(span_is(out, "fooba"));
    cr_assert(base64_decode(SPAN_LITERAL("Zm9vYg=="), &a, &out));
    cr_assert(span_is(out, "foob"));
    cr_assert(base64_decode(SPAN_LITERAL("//79"), &a, &out));
    cr_assert(span_is(out, "\xff\xfe\xfd"));
    for (size_t i = 0; i < COUNT(bad); i++)
        cr_assert_not(base64_decode(span_of(bad[i]), &a, &out), "%s", bad[i]);
    arena_finish(&a);
}

/* As printf would, with as few digits as identify the number. */
static void expected_double(double value, char *out, size_t room)
{
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(out, room, "%.*g", precision, value);
        if (strtod(out, NULL) == value)
            break;
    }
}

Test(json_writer, numbers_are_written_as_printf_writes_them)
{
    uint64_t state = 88172645463325252u;

    for (int i = 0; i < 200000; i++) {
        char   want[80], number[40];
        double value;

        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        value = i % 3 == 0   ? (double)(state % 1000000000000000u) / 1000
                : i % 3 == 1 ? (double)(state % 100000) / 1000
                             : (double)state / 3e9;
        if (i % 7 == 0)
            value = -value;
        write_again();
        json_open_array(&w, NULL);
        json_add_double(&w, NULL, value);
        json_add_u64(&w, NULL, state >> (i % 64));
        json_close_array(&w);
        expected_double(value, number, sizeof number);
        snprintf(want, sizeof want, "[%s,%llu]", number, (unsigned long long)(state >> (i % 64)));
        cr_assert_eq(written.bytes, strlen(want), "%s", want);
        cr_assert_eq(memcmp(written.data, want, written.bytes), 0, "%.*s is not %s", (int)written.bytes, written.data, want);
    }
}

static void expect_time(uint64_t wall_ns, const char *want)
{
    write_again();
    json_add_time(&w, NULL, wall_ns);
    cr_assert_eq(written.bytes, strlen(want));
    cr_assert_eq(memcmp(written.data, want, written.bytes), 0, "%.*s", (int)written.bytes, written.data);
}

Test(json_writer, times_of_one_second_and_of_others)
{
    const uint64_t second = 1000000000u;

    expect_time(0, "null");
    expect_time(1, "\"1970-01-01T00:00:00.000Z\"");
    expect_time(1700000000u * second + 7000000, "\"2023-11-14T22:13:20.007Z\"");
    expect_time(1700000000u * second + 999999999, "\"2023-11-14T22:13:20.999Z\"");
    expect_time(1700000001u * second, "\"2023-11-14T22:13:21.000Z\"");
    expect_time(1700000000u * second, "\"2023-11-14T22:13:20.000Z\"");
}
