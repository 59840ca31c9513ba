/* Module specifications from JSON. */
#include "api/modules.h"

struct decoding {
    struct arena   *arena;
    struct problem *why;
};

struct module_request {
    struct span        source;
    const struct json *options, *headers, *name_expressions;
};
static const struct json_field create_fields[] = {
    JSON_FIELD(FIELD_STRING, struct module_request, source, true, SOURCE_BODY_BYTES_MAX),
    JSON_FIELD(FIELD_ANY, struct module_request, options, false, 0),
    JSON_FIELD(FIELD_ANY, struct module_request, headers, false, 0),
    JSON_FIELD(FIELD_ANY, struct module_request, name_expressions, false, 0),
};

static enum status wrong(const struct decoding *d, const char *pointer, const char *what, unsigned most)
{
    return problem_field(d->why, STATUS_INVALID_FIELD, pointer, "value", "expected %s with at most %u items", what, most);
}

static enum status decode_texts(struct decoding *d, const struct json *v, const char *pointer, unsigned most, const struct span **out,
                                unsigned *count)
{
    struct span *texts;
    unsigned     n = 0;

    if (!v)
        return STATUS_OK;
    if (json_type_of(v) != JSON_ARRAY || json_count(v) > most)
        return wrong(d, pointer, "an array of strings", most);
    texts = arena_array(d->arena, json_count(v), sizeof *texts);
    if (!texts)
        return problem_set(d->why, STATUS_OUT_OF_MEMORY, "not enough memory for the request");
    for (const struct json *e = json_first(v); e; e = json_next(e)) {
        if (json_type_of(e) != JSON_STRING)
            return wrong(d, pointer, "an array of strings", most);
        texts[n++] = json_text(e);
    }
    *out = texts;
    *count = n;
    return STATUS_OK;
}

static enum status decode_headers(struct decoding *d, const struct json *v, struct module_spec *spec)
{
    struct span *names, *texts;
    unsigned     n = 0;

    if (!v)
        return STATUS_OK;
    if (json_type_of(v) != JSON_OBJECT || json_count(v) > COMPILE_HEADERS_MAX)
        return wrong(d, "/headers", "an object of strings", COMPILE_HEADERS_MAX);
    names = arena_array(d->arena, json_count(v), sizeof *names);
    texts = arena_array(d->arena, json_count(v), sizeof *texts);
    if (!names || !texts)
        return problem_set(d->why, STATUS_OUT_OF_MEMORY, "not enough memory for the request");
    for (const struct json *m = json_first(v); m; m = json_next(m), n++) {
        if (json_type_of(m) != JSON_STRING)
            return wrong(d, "/headers", "an object of strings", COMPILE_HEADERS_MAX);
        names[n] = json_name(m);
        texts[n] = json_text(m);
    }
    spec->header_names = names;
    spec->header_texts = texts;
    spec->headers_count = n;
    return STATUS_OK;
}

static enum status decode_parts(struct decoding *d, const struct module_request *q, struct module_spec *out)
{
    enum status st = decode_texts(d, q->options, "/options", COMPILE_OPTIONS_MAX, &out->options, &out->options_count);

    if (!st)
        st = decode_texts(d, q->name_expressions, "/name_expressions", COMPILE_NAME_EXPRESSIONS_MAX, &out->name_expressions,
                          &out->name_expressions_count);
    return st ? st : decode_headers(d, q->headers, out);
}

enum status module_decode(const struct json *object, const char *pointer, bool lenient, struct arena *a, struct module_spec *out,
                          struct problem *why)
{
    struct decoding       d = {a, why};
    struct module_request q = {0};
    enum status           st = json_decode(object, create_fields, COUNT(create_fields), pointer, lenient, &q, why);

    if (st)
        return st;
    out->kind = IMAGE_CUDA;
    out->source = q.source;
    st = decode_parts(&d, &q, out);
    if (st)
        problem_within(why, pointer);
    return st;
}
