/* Kernel arguments from JSON: every type at its edges, pointers in problems, structs, bytes. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "api/bounds.h"
#include "api/decode/args.h"

static struct json_document    *doc;
static struct arena             arena;
static struct problem           why;
static const struct launch_arg *args;
static unsigned                 count;
static struct span              params;
static const char              *dtype = ""; /* of a built-in kernel */

static enum status decode_into(const struct json *v)
{
    struct launch_spec spec = {.dtype = span_of(dtype)};
    enum status        st = args_decode(v, &arena, &spec, &why);

    args = spec.args;
    count = spec.args_count;
    params = spec.params;
    return st;
}

static enum status decode(const char *text)
{
    if (!arena.cap)
        arena_init(&arena, 1 << 20);
    json_document_destroy(doc);
    why = (struct problem){0};
    cr_assert_eq(json_parse(span_of(text), &doc, &why), STATUS_OK, "%s", text);
    return decode_into(json_root(doc));
}

static void done(void)
{
    json_document_destroy(doc);
    arena_finish(&arena);
}

static uint64_t scalar(const char *text, unsigned bytes)
{
    cr_assert_eq(decode(text), STATUS_OK, "%s: %s", text, why.detail);
    cr_assert(count == 1 && args[0].kind == ARG_SCALAR && args[0].scalar_bytes == bytes, "%s", text);
    return args[0].value;
}

static void refused(const char *text, enum status st, const char *pointer)
{
    cr_assert_eq(decode(text), st, "%s", text);
    cr_assert(why.has_field, "%s", text);
    cr_assert_str_eq(why.field.pointer, pointer);
}

Test(args, integers_at_their_edges, .fini = done)
{
    cr_assert_eq(scalar("[{\"i8\":-128}]", 1), 0x80);
    cr_assert_eq(scalar("[{\"i8\":127}]", 1), 0x7f);
    cr_assert_eq(scalar("[{\"i16\":-1}]", 2), 0xffff);
    cr_assert_eq(scalar("[{\"i32\":-2147483648}]", 4), 0x80000000u);
    cr_assert_eq(scalar("[{\"i64\":\"-9223372036854775808\"}]", 8), 1ull << 63);
    cr_assert_eq(scalar("[{\"u8\":255}]", 1), 255);
    cr_assert_eq(scalar("[{\"u16\":65535}]", 2), 65535);
    cr_assert_eq(scalar("[{\"u32\":4294967295}]", 4), UINT32_MAX);
    cr_assert_eq(scalar("[{\"u64\":\"18446744073709551615\"}]", 8), UINT64_MAX);
    cr_assert_eq(scalar("[{\"bool\":true}]", 1), 1);
    cr_assert_eq(scalar("[{\"bool\":false}]", 1), 0);
}

Test(args, integers_beyond_their_edges, .fini = done)
{
    static const char *const bad[] = {"[{\"i8\":128}]",
                                      "[{\"i8\":-129}]",
                                      "[{\"u8\":256}]",
                                      "[{\"u8\":-1}]",
                                      "[{\"u16\":65536}]",
                                      "[{\"i32\":2147483648}]",
                                      "[{\"u32\":4294967296}]",
                                      "[{\"i32\":1.5}]",
                                      "[{\"i32\":true}]",
                                      "[{\"i32\":null}]",
                                      "[{\"i32\":\"0x1\"}]",
                                      "[{\"u64\":18446744073709551615}]",
                                      "[{\"bool\":1}]",
                                      "[{\"u64\":\"18446744073709551616\"}]",
                                      "[{\"i64\":\"9223372036854775808\"}]"};

    for (size_t i = 0; i < COUNT(bad); i++)
        refused(bad[i], STATUS_INVALID_FIELD, "/args/0");
}

Test(args, floats, .fini = done)
{
    cr_assert_eq(scalar("[{\"f32\":1.5}]", 4), 0x3fc00000u);
    cr_assert_eq(scalar("[{\"f32\":\"nan\"}]", 4) & 0x7fc00000u, 0x7fc00000u);
    cr_assert_eq(scalar("[{\"f32\":\"-inf\"}]", 4), 0xff800000u);
    cr_assert_eq(scalar("[{\"f64\":\"0.1\"}]", 8), 0x3fb999999999999aull);
    cr_assert_eq(scalar("[{\"f64\":1}]", 8), 0x3ff0000000000000ull);
    cr_assert_eq(scalar("[{\"f16\":1.0}]", 2), 0x3c00);
    cr_assert_eq(scalar("[{\"bf16\":1.0}]", 2), 0x3f80);
    refused("[{\"f32\":1e39}]", STATUS_INVALID_FIELD, "/args/0");
    refused("[{\"f16\":65520}]", STATUS_INVALID_FIELD, "/args/0");
    refused("[{\"f32\":\"one\"}]", STATUS_INVALID_FIELD, "/args/0");
    refused("[{\"f32\":{}}]", STATUS_INVALID_FIELD, "/args/0");
}

Test(args, scalars_tell_their_types, .fini = done)
{
    cr_assert_eq(decode("[{\"i32\":1},{\"f32\":1},{\"bf16\":1},{\"bool\":true},{\"struct\":[{\"f64\":1}]}]"), STATUS_OK);
    cr_assert_str_eq(args[0].type, "i32");
    cr_assert_str_eq(args[1].type, "f32");
    cr_assert_str_eq(args[2].type, "bf16");
    cr_assert_str_eq(args[3].type, "bool");
    cr_assert_str_eq(args[4].members[0].type, "f64");
}

Test(args, buffers, .fini = done)
{
    cr_assert_eq(decode("[{\"buf\":\"a\"},{\"offset\":16,\"buf\":\"b_1\"}]"), STATUS_OK);
    cr_assert(count == 2 && args[0].kind == ARG_BUFFER && args[0].offset == 0 && span_is(args[0].buffer, "a"));
    cr_assert(args[1].offset == 16 && span_is(args[1].buffer, "b_1"));
    refused("[{\"buf\":\"a\",\"size\":1}]", STATUS_INVALID_FIELD, "/args/0");
    refused("[{\"i32\":1},{\"buf\":\"a\",\"offset\":-1}]", STATUS_INVALID_FIELD, "/args/1");
    refused("[{\"buf\":7}]", STATUS_INVALID_FIELD, "/args/0");
}

Test(args, bytes_and_structs, .fini = done)
{
    cr_assert_eq(decode("[{\"bytes\":\"AQID\"},{\"struct\":[{\"buf\":\"a\"},{\"struct\":[{\"i8\":1}]}]}]"), STATUS_OK);
    cr_assert(args[0].kind == ARG_BYTES && args[0].bytes.bytes == 3 && memcmp(args[0].bytes.data, "\1\2\3", 3) == 0);
    cr_assert(args[1].kind == ARG_STRUCT && args[1].members_count == 2 && args[1].members[1].members[0].value == 1);
    refused("[{\"bytes\":\"A\"}]", STATUS_INVALID_FIELD, "/args/0");
    refused("[{\"bytes\":\"\"}]", STATUS_INVALID_FIELD, "/args/0");
    refused("[{\"struct\":[]}]", STATUS_INVALID_FIELD, "/args/0");
    refused("[{\"struct\":[{\"i8\":1},{\"i8\":999}]}]", STATUS_INVALID_FIELD, "/args/0/struct/1");
}

Test(args, structs_nest_to_a_limit, .fini = done)
{
    char   text[1024] = "[";
    size_t n = 1;

    for (int i = 0; i < LAUNCH_ARG_DEPTH_MAX + 1; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "{\"struct\":[");
    n += (size_t)snprintf(text + n, sizeof text - n, "{\"i8\":1}");
    for (int i = 0; i < LAUNCH_ARG_DEPTH_MAX + 1; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "]}");
    snprintf(text + n, sizeof text - n, "]");
    cr_assert_eq(decode(text), STATUS_INVALID_FIELD);
    cr_assert_str_eq(why.field.code, "depth");
}

Test(args, shapes, .fini = done)
{
    cr_assert_eq(decode("[]"), STATUS_OK);
    cr_assert_eq(count, 0);
    cr_assert_eq(decode("null"), STATUS_OK);
    refused("{}", STATUS_INVALID_FIELD, "/args");
    refused("[5]", STATUS_INVALID_FIELD, "/args/0");
    refused("[{}]", STATUS_INVALID_FIELD, "/args/0");
    refused("[{\"i32\":1,\"i64\":2}]", STATUS_INVALID_FIELD, "/args/0");
    refused("[{\"i128\":1}]", STATUS_UNKNOWN_FIELD, "/args/0");
    cr_assert_eq(decode_into(NULL), STATUS_OK);
}

Test(args, all_parameters_as_one_block, .fini = done)
{
    cr_assert_eq(decode("{\"bytes\":\"AAH//g==\"}"), STATUS_OK, "%s", why.detail);
    cr_assert(count == 0 && span_equal(params, (struct span){"\0\1\xff\xfe", 4}));
    cr_assert(decode("{\"bytes\":\"\"}") == STATUS_OK && params.data && params.bytes == 0, "a block of no parameters");
    cr_assert(decode("[]") == STATUS_OK && !params.data);
    refused("{\"bytes\":\"AAH//g=\"}", STATUS_INVALID_FIELD, "/args");
    refused("{\"bytes\":\"AAH/_g==\"}", STATUS_INVALID_FIELD, "/args");
    refused("{\"bytes\":\"AAH//h==\"}", STATUS_INVALID_FIELD, "/args"); /* unused bits */
    refused("{\"bytes\":5}", STATUS_INVALID_FIELD, "/args");
    refused("{\"bytes\":\"AAAA\",\"offset\":4}", STATUS_INVALID_FIELD, "/args");
    refused("{\"u64\":\"18446744073709551615\"}", STATUS_INVALID_FIELD, "/args");
    refused("\"AAAA\"", STATUS_INVALID_FIELD, "/args");
    dtype = "f32";
    refused("{\"bytes\":\"AAAA\"}", STATUS_INVALID_FIELD, "/args");
    dtype = "";
}

Test(args, too_many, .fini = done)
{
    static char text[LAUNCH_ARGS_MAX * 16 + 64] = "[{\"i8\":1}";
    size_t      n = strlen(text);

    for (int i = 0; i < LAUNCH_ARGS_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ",{\"i8\":1}");
    snprintf(text + n, sizeof text - n, "]");
    refused(text, STATUS_INVALID_FIELD, "/args");
}

Test(args, one_scalar, .fini = done)
{
    struct launch_arg out;

    decode("[]");
    json_document_destroy(doc);
    cr_assert_eq(json_parse(SPAN_LITERAL("{\"u16\":513}"), &doc, &why), STATUS_OK);
    cr_assert_eq(scalar_decode(json_root(doc), "/pattern", &out, &why), STATUS_OK);
    cr_assert(out.value == 513 && out.scalar_bytes == 2);
    json_document_destroy(doc);
    cr_assert_eq(json_parse(SPAN_LITERAL("{\"buf\":\"a\"}"), &doc, &why), STATUS_OK);
    cr_assert_eq(scalar_decode(json_root(doc), "/pattern", &out, &why), STATUS_INVALID_FIELD);
    cr_assert_str_eq(why.field.pointer, "/pattern");
}
