/* What a module is made from: checked, and as a digest that tells equal input from other. */
#include "session/bounds.h"
#include "session/code/internal.h"

static enum status no_nul(struct span s, const char *pointer, struct problem *why)
{
    if (s.bytes && memchr(s.data, '\0', s.bytes))
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "format", "the text has a NUL byte");
    return STATUS_OK;
}

static bool header_name_valid(struct span name)
{
    struct span rest = name;

    if (name.bytes == 0 || name.bytes > COMPILE_HEADER_NAME_BYTES_MAX || name.data[0] == '/' || memchr(name.data, '\\', name.bytes))
        return false;
    while (rest.bytes)
        if (span_is(span_cut(&rest, '/'), ".."))
            return false;
    return memchr(name.data, '\0', name.bytes) == NULL;
}

static enum status check_counts(const struct module_spec *spec, struct problem *why)
{
    if (spec->headers_count > COMPILE_HEADERS_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/headers", "range", "too many headers, at most %d are possible",
                             COMPILE_HEADERS_MAX);
    if (spec->options_count > COMPILE_OPTIONS_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/options", "range", "too many options, at most %d are possible",
                             COMPILE_OPTIONS_MAX);
    if (spec->name_expressions_count > COMPILE_NAME_EXPRESSIONS_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/name_expressions", "range", "too many name expressions, at most %d are possible",
                             COMPILE_NAME_EXPRESSIONS_MAX);
    if (spec->source.bytes == 0)
        return problem_field(why, STATUS_INVALID_FIELD, "/source", "range", "the source is empty");
    if (spec->source.bytes > SOURCE_BODY_BYTES_MAX)
        return problem_limit(why, STATUS_BODY_TOO_LARGE, "source_bytes", SOURCE_BODY_BYTES_MAX, 0, spec->source.bytes);
    if (spec->kind != IMAGE_CUDA && (spec->headers_count || spec->options_count || spec->name_expressions_count))
        return problem_field(why, STATUS_INVALID_FIELD, "/options", "conflict", "a binary image is not compiled; omit the options");
    return STATUS_OK;
}

enum status module_input_check(const struct module_spec *spec, struct problem *why)
{
    enum status st = check_counts(spec, why);

    if (!st && spec->kind != IMAGE_BINARY)
        st = no_nul(spec->source, "/source", why);
    for (unsigned i = 0; i < spec->headers_count && !st; i++) {
        if (!header_name_valid(spec->header_names[i]))
            return problem_field(why, STATUS_INVALID_FIELD, "/headers", "format", "a header's name must be a plain relative path");
        st = no_nul(spec->header_texts[i], "/headers", why);
    }
    for (unsigned i = 0; i < spec->options_count && !st; i++)
        st = no_nul(spec->options[i], "/options", why);
    for (unsigned i = 0; i < spec->name_expressions_count && !st; i++)
        st = no_nul(spec->name_expressions[i], "/name_expressions", why);
    return st;
}

static void digest_list(struct sha256 *h, const struct span *items, unsigned count)
{
    uint64_t n = count;

    digest_add(h, &n, sizeof n);
    for (unsigned i = 0; i < count; i++)
        digest_add_field(h, items[i]);
}

void module_input_digest(const struct module_spec *spec, unsigned char out[SHA256_BYTES])
{
    struct sha256 h;
    unsigned char kind = (unsigned char)spec->kind;

    digest_init(&h);
    digest_add(&h, &kind, 1);
    digest_add_field(&h, spec->source);
    digest_list(&h, spec->header_names, spec->headers_count);
    digest_list(&h, spec->header_texts, spec->headers_count);
    digest_list(&h, spec->options, spec->options_count);
    digest_list(&h, spec->name_expressions, spec->name_expressions_count);
    digest_end(&h, out);
}
