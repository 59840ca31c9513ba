/* Module specifications from JSON. */
#include "api/modules.h"

struct decoding {
    struct arena   *arena;
    struct problem *why;
};

enum { LANGUAGE_BYTES_MAX = 16 };

struct module_request {
    struct span        source, arch, language;
    const struct json *options, *headers, *name_expressions;
};
static const struct json_field create_fields[] = {
    JSON_FIELD(FIELD_STRING, struct module_request, source, true, SOURCE_BODY_BYTES_MAX),
    JSON_FIELD(FIELD_ANY, struct module_request, options, false, 0),
    JSON_FIELD(FIELD_ANY, struct module_request, headers, false, 0),
    JSON_FIELD(FIELD_ANY, struct module_request, name_expressions, false, 0),
    JSON_FIELD(FIELD_STRING, struct module_request, language, false, LANGUAGE_BYTES_MAX),
    JSON_FIELD(FIELD_STRING, struct module_request, arch, false, COMPILE_ARCH_BYTES - 1),
};

static enum status wrong(const struct decoding *d, const char *pointer, const char *what)
{
    return problem_field(d->why, STATUS_INVALID_FIELD, pointer, "type", "expected %s", what);
}

static enum status decode_texts(struct decoding *d, const struct json *v, const char *pointer, const struct span **out, unsigned *count)
{
    struct span *texts = arena_array(d->arena, json_count(v), sizeof *texts);
    unsigned     n = 0;

    if (v && json_type_of(v) != JSON_ARRAY)
        return wrong(d, pointer, "an array of strings");
    if (!texts)
        return problem_set(d->why, STATUS_OUT_OF_MEMORY, "not enough memory for the request");
    for (const struct json *e = json_first(v); e; e = json_next(e)) {
        if (json_type_of(e) != JSON_STRING)
            return wrong(d, pointer, "an array of strings");
        texts[n++] = json_text(e);
    }
    *out = texts;
    *count = n;
    return STATUS_OK;
}

static enum status decode_headers(struct decoding *d, const struct json *v, struct module_spec *spec)
{
    struct compile_header *headers = arena_array(d->arena, json_count(v), sizeof *headers);
    unsigned               n = 0;

    if (v && json_type_of(v) != JSON_OBJECT)
        return wrong(d, "/headers", "an object of strings");
    if (!headers)
        return problem_set(d->why, STATUS_OUT_OF_MEMORY, "not enough memory for the request");
    for (const struct json *m = json_first(v); m; m = json_next(m)) {
        if (json_type_of(m) != JSON_STRING)
            return wrong(d, "/headers", "an object of strings");
        headers[n++] = (struct compile_header){json_name(m), json_text(m)};
    }
    spec->headers = headers;
    spec->headers_count = n;
    return STATUS_OK;
}

static enum status decode_parts(struct decoding *d, const struct module_request *q, struct module_spec *out)
{
    enum status st = decode_texts(d, q->options, "/options", &out->options, &out->options_count);

    if (!st)
        st = decode_texts(d, q->name_expressions, "/name_expressions", &out->name_expressions, &out->name_expressions_count);
    if (!st)
        st = decode_headers(d, q->headers, out);
    return st ? st : module_spec_check(out, d->arena, d->why);
}

/* SPIR-V comes as base64. */
static enum status decode_source(const struct decoding *d, const struct module_request *q, struct module_spec *out)
{
    bool glsl = span_is(q->language, "glsl"), spirv = span_is(q->language, "spirv");

    if (q->language.bytes && !glsl && !spirv && !span_is(q->language, "cuda"))
        return problem_field(d->why, STATUS_INVALID_FIELD, "/language", "value", "language must be cuda, glsl or spirv");
    out->kind = glsl ? IMAGE_GLSL : spirv ? IMAGE_SPIRV : IMAGE_CUDA;
    out->source = q->source;
    if (spirv && !base64_decode(q->source, d->arena, &out->source))
        return problem_field(d->why, STATUS_INVALID_FIELD, "/source", "base64", "SPIR-V in JSON must be base64");
    return STATUS_OK;
}

enum status module_decode(const struct json *object, const char *pointer, bool lenient, struct arena *a, struct module_spec *out,
                          struct problem *why)
{
    struct decoding       d = {a, why};
    struct module_request q = {0};
    enum status           st = json_decode(object, create_fields, COUNT(create_fields), pointer, lenient, &q, why);

    if (st)
        return st;
    out->arch = q.arch;
    st = decode_source(&d, &q, out);
    if (!st)
        st = decode_parts(&d, &q, out);
    if (st)
        problem_within(why, pointer);
    return st;
}
