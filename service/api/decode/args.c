/* Decodes kernel arguments. The session checks whether they match the kernel. */
#include "api/decode/args.h"
#include "api/bounds.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "api/decode/floats.h"

enum kind { SIGNED, UNSIGNED, FLOAT, BOOL };

struct arg_type {
    const char *name;
    enum kind   kind;
    unsigned    bytes;
};

static const struct arg_type types[] = {
#define ARG_TYPE(name, kind, bytes) {#name, kind, bytes},
#include "api/decode/args.def"
#undef ARG_TYPE
};

static const struct arg_type *type_of(struct span name)
{
    for (size_t i = 0; i < COUNT(types); i++)
        if (span_is(name, types[i].name))
            return &types[i];
    return NULL;
}

static enum status arg_wrong(struct problem *why, const char *pointer, const char *what)
{
    return problem_field(why, STATUS_INVALID_FIELD, pointer, "value", "%s", what);
}

static enum status out_of_range(struct problem *why, const char *pointer, const struct arg_type *t)
{
    return problem_field(why, STATUS_INVALID_FIELD, pointer, "range", "the value is out of the range of %s", t->name);
}

static enum status decode_signed(const struct json *v, const struct arg_type *t, const char *pointer, uint64_t *out, struct problem *why)
{
    unsigned spare = 64 - 8 * t->bytes;
    int64_t  n;

    if (!json_i64(v, &n))
        return arg_wrong(why, pointer, "expected an integer; above 2^53 as a decimal string");
    if (n > INT64_MAX >> spare || n < INT64_MIN >> spare)
        return out_of_range(why, pointer, t);
    *out = (uint64_t)n & (UINT64_MAX >> spare);
    return STATUS_OK;
}

static enum status decode_unsigned(const struct json *v, const struct arg_type *t, const char *pointer, uint64_t *out, struct problem *why)
{
    int64_t negative;

    if (!json_u64(v, out))
        return json_i64(v, &negative) ? out_of_range(why, pointer, t)
                                      : arg_wrong(why, pointer, "expected an integer; above 2^53 as a decimal string");
    return *out > UINT64_MAX >> (64 - 8 * t->bytes) ? out_of_range(why, pointer, t) : STATUS_OK;
}

static bool bits_of(double value, const struct arg_type *t, uint64_t *out)
{
    if (t->bytes == 8) {
        memcpy(out, &value, sizeof value);
        return true;
    }
    if (t->bytes == 4)
        return float_bits(value, FLOAT_F32, out);
    return float_bits(value, strcmp(t->name, "bf16") == 0 ? FLOAT_BF16 : FLOAT_F16, out);
}

static enum status decode_float(const struct json *v, const struct arg_type *t, const char *pointer, uint64_t *out, struct problem *why)
{
    double value;

    if (json_type_of(v) == JSON_NUMBER)
        value = json_double(v);
    else if (json_type_of(v) != JSON_STRING || !float_text(json_text(v), &value))
        return arg_wrong(why, pointer, "expected a number, or a string with a decimal number, nan, inf or -inf");
    if (json_type_of(v) == JSON_NUMBER && !isfinite(value))
        return out_of_range(why, pointer, t);
    return bits_of(value, t, out) ? STATUS_OK : out_of_range(why, pointer, t);
}

static enum status decode_bool(const struct json *v, const char *pointer, uint64_t *out, struct problem *why)
{
    if (json_type_of(v) != JSON_BOOL)
        return arg_wrong(why, pointer, "expected true or false");
    *out = json_bool(v);
    return STATUS_OK;
}

static enum status decode_scalar(const struct json *v, const struct arg_type *t, const char *pointer, struct launch_arg *out,
                                 struct problem *why)
{
    *out = (struct launch_arg){.kind = ARG_SCALAR, .scalar_bytes = t->bytes, .type = t->name};
    switch (t->kind) {
    case SIGNED:
        return decode_signed(v, t, pointer, &out->value, why);
    case UNSIGNED:
        return decode_unsigned(v, t, pointer, &out->value, why);
    case FLOAT:
        return decode_float(v, t, pointer, &out->value, why);
    case BOOL:
        return decode_bool(v, pointer, &out->value, why);
    }
    return STATUS_INTERNAL;
}

enum status scalar_decode(const struct json *value, const char *pointer, struct launch_arg *out, struct problem *why)
{
    const struct json     *only = json_first(value);
    const struct arg_type *t = only ? type_of(json_name(only)) : NULL;

    if (json_type_of(value) != JSON_OBJECT || json_count(value) != 1 || !t)
        return arg_wrong(why, pointer, "expected an object with one scalar, such as {\"u32\": 0}");
    return decode_scalar(only, t, pointer, out, why);
}

static enum status decode_buffer(const struct json *object, const char *pointer, struct launch_arg *out, struct problem *why)
{
    const struct json *offset = json_member(object, "offset");

    *out = (struct launch_arg){.kind = ARG_BUFFER, .buffer = json_text(json_member(object, "buf"))};
    if (out->buffer.bytes == 0 || json_count(object) != (offset ? 2u : 1u))
        return arg_wrong(why, pointer, "expected {\"buf\": \"id\"} with an optional \"offset\"");
    if (offset && !json_u64(offset, &out->offset))
        return arg_wrong(why, pointer, "offset " JSON_U64_EXPECTED);
    return STATUS_OK;
}

/* A number that the device gave the texture: "<texture>.tex" among the buffers (session/memory/texture.c). */
static enum status decode_texture(const struct json *v, const char *part, struct arena *a, const char *pointer, struct launch_arg *out,
                                  struct problem *why)
{
    struct span id = json_text(v);
    size_t      bytes = id.bytes + strlen(part) + 2;
    char       *name;

    if (json_type_of(v) != JSON_STRING || id.bytes == 0 || id.bytes >= ID_BYTES || memchr(id.data, '.', id.bytes))
        return arg_wrong(why, pointer, "expected {\"tex\": \"id\"} or {\"surf\": \"id\"} with the id of a texture");
    name = arena_alloc(a, bytes);
    if (!name)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the arguments");
    snprintf(name, bytes, "%.*s.%s", SPAN_ARG(id), part);
    *out = (struct launch_arg){.kind = ARG_BUFFER, .buffer = span_of(name)};
    return STATUS_OK;
}

static enum status decode_base64(const struct json *v, struct arena *a, const char *pointer, struct span *out, struct problem *why)
{
    if (json_type_of(v) != JSON_STRING || !base64_decode(json_text(v), a, out))
        return arg_wrong(why, pointer, "bytes must be a base64 string");
    if (out->bytes > KERNEL_PARAM_BYTES_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "range",
                             "the argument has %zu bytes; the parameters of a kernel have at most %d bytes", out->bytes,
                             KERNEL_PARAM_BYTES_MAX);
    return STATUS_OK;
}

static enum status decode_bytes(const struct json *v, struct arena *a, const char *pointer, struct launch_arg *out, struct problem *why)
{
    enum status st;

    *out = (struct launch_arg){.kind = ARG_BYTES};
    st = decode_base64(v, a, pointer, &out->bytes, why);
    if (!st && out->bytes.bytes == 0)
        st = arg_wrong(why, pointer, "bytes must be a non-empty base64 string: no parameter has 0 bytes");
    return st;
}

/* `pointer` and `why` may be NULL, here and in what is above: then nobody asks what is wrong, and no pointers are written. */
static enum status decode_list(const struct json *array, struct arena *a, const char *pointer, unsigned depth,
                               const struct launch_arg **out, unsigned *count, struct problem *why);

static enum status decode_struct(const struct json *v, struct arena *a, const char *pointer, unsigned depth, struct launch_arg *out,
                                 struct problem *why)
{
    char inner[PROBLEM_POINTER_BYTES];

    *out = (struct launch_arg){.kind = ARG_STRUCT};
    if (json_type_of(v) != JSON_ARRAY || json_count(v) == 0)
        return arg_wrong(why, pointer, "struct must be a non-empty array of members");
    if (depth >= LAUNCH_ARG_DEPTH_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "depth", "structs can be nested at most %d deep", LAUNCH_ARG_DEPTH_MAX);
    if (pointer)
        snprintf(inner, sizeof inner, "%.100s/struct", pointer);
    return decode_list(v, a, pointer ? inner : NULL, depth + 1, &out->members, &out->members_count, why);
}

static enum status decode_one(const struct json *v, struct arena *a, const char *pointer, unsigned depth, struct launch_arg *out,
                              struct problem *why)
{
    const struct json     *only = json_first(v);
    const struct arg_type *t = only ? type_of(json_name(only)) : NULL;

    if (json_type_of(v) == JSON_OBJECT && json_member(v, "buf"))
        return decode_buffer(v, pointer, out, why);
    if (json_type_of(v) != JSON_OBJECT || json_count(v) != 1)
        return arg_wrong(why, pointer, "expected an object with one member, such as {\"i32\": 5} or {\"buf\": \"id\"}");
    if (t)
        return decode_scalar(only, t, pointer, out, why);
    if (span_is(json_name(only), "tex"))
        return decode_texture(only, "tex", a, pointer, out, why);
    if (span_is(json_name(only), "surf"))
        return decode_texture(only, "surf", a, pointer, out, why);
    if (span_is(json_name(only), "bytes"))
        return decode_bytes(only, a, pointer, out, why);
    if (span_is(json_name(only), "struct"))
        return decode_struct(only, a, pointer, depth, out, why);
    return problem_field(why, STATUS_UNKNOWN_FIELD, pointer, "unknown", "unknown argument type");
}

static enum status decode_list(const struct json *array, struct arena *a, const char *pointer, unsigned depth,
                               const struct launch_arg **out, unsigned *count, struct problem *why)
{
    size_t             n = json_count(array);
    struct launch_arg *args;
    enum status        st = STATUS_OK;
    unsigned           i = 0;

    if (n > LAUNCH_ARGS_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "count", "too many arguments, at most %d are possible", LAUNCH_ARGS_MAX);
    args = arena_array(a, n, sizeof *args);
    if (!args)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the arguments");
    for (const struct json *v = json_first(array); v && !st; v = json_next(v), i++) {
        char inner[PROBLEM_POINTER_BYTES];
        if (pointer)
            problem_pointer(inner, pointer, i);
        st = decode_one(v, a, pointer ? inner : NULL, depth, &args[i], why);
    }
    *out = args;
    *count = (unsigned)n;
    return st;
}

/* Of a kernel without parameters it has 0 bytes. */
static enum status decode_block(const struct json *object, struct arena *a, struct span *out, struct problem *why)
{
    if (json_count(object) != 1 || !json_member(object, "bytes"))
        return arg_wrong(why, "/args", "expected an array of arguments, or an object {\"bytes\": all parameters as base64}");
    return decode_base64(json_first(object), a, "/args", out, why);
}

enum status args_decode(const struct json *args, struct arena *a, struct launch_spec *out, struct problem *why)
{
    enum json_type type = json_type_of(args);
    enum status    st;

    if (type == JSON_ABSENT || type == JSON_NULL)
        return STATUS_OK;
    if (type == JSON_OBJECT && !out->dtype.bytes)
        return decode_block(args, a, &out->params, why);
    if (type != JSON_ARRAY)
        return arg_wrong(why, "/args", "expected an array");
    st = decode_list(args, a, NULL, 0, &out->args, &out->args_count, NULL);
    return st ? decode_list(args, a, "/args", 0, &out->args, &out->args_count, why) : STATUS_OK;
}
