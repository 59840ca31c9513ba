/* The specification of a built-in kernel's module. */
#include "session/code/builtin_source.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

static void add_option(struct builtin_source_spec *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add_option(struct builtin_source_spec *s, const char *format, ...)
{
    unsigned i = s->spec.options_count++;
    va_list  values;
    int      n;

    assert(i < BUILTIN_OPTIONS);
    va_start(values, format);
    n = vsnprintf(s->texts[i], BUILTIN_OPTION_BYTES, format, values);
    va_end(values);
    assert(n > 0 && n < BUILTIN_OPTION_BYTES);
    s->options[i] = (struct span){s->texts[i], (size_t)n};
}

static void add_options(struct builtin_source_spec *s, unsigned vectors, bool on_host)
{
    add_option(s, "--std=c++17");
    add_option(s, "-DSLOTS=%d", STREAMS_PER_SESSION_MAX + 1);
    add_option(s, "-DBLOCKS_AT_ONCE_MAX=%d", BUILTIN_BLOCKS_AT_ONCE_MAX);
    add_option(s, "-DWARPGROUP_BYTES=%d", BUILTIN_WARPGROUP_BYTES);
    add_option(s, "-DROW_OF_WARP=%d", BUILTIN_ROW_OF_WARP);
    add_option(s, "-DFLAT_VECTORS=%u", vectors);
    add_option(s, "-DON_HOST=%d", on_host);
}

static void add_headers(struct builtin_source_spec *s, const struct builtin_source *header_at(unsigned index))
{
    const struct builtin_source *header;
    unsigned                    *n = &s->spec.headers_count;

    for (; *n < BUILTIN_HEADERS_MAX && (header = header_at(*n)) != NULL; (*n)++)
        s->headers[*n] = (struct compile_header){span_of(header->name), header->text};
}

static enum status make_shader(const struct builtin *k, enum builtin_dtype dtype, struct builtin_source_spec *out, struct problem *why)
{
    const struct builtin_source *source = builtin_shader_source(k);

    *out = (struct builtin_source_spec){.spec = {.kind = IMAGE_GLSL}};
    add_headers(out, builtin_shader_header_at);
    if (!builtin_shader_of(k, dtype) || !source || !out->spec.headers_count)
        return problem_set(why, STATUS_INTERNAL, "the shader of %s is missing", k->name);
    snprintf(out->expression, sizeof out->expression, "%s", SHADER_KERNEL);
    add_option(out, "-DKERNEL_%s", k->name);
    add_option(out, "-DT_%s", builtin_dtype_name(dtype));
    out->spec.source = source->text;
    out->spec.options = out->options;
    out->spec.headers = out->headers;
    return STATUS_OK;
}

enum status builtin_source_spec_make(const struct builtin *k, enum builtin_dtype dtype, const struct device_facts *facts,
                                     struct builtin_source_spec *out, struct problem *why)
{
    const struct builtin_source *source = builtin_source_of(k);

    if (facts->wants_spirv)
        return make_shader(k, dtype, out, why);
    *out = (struct builtin_source_spec){.spec = {.kind = IMAGE_CUDA, .name_expressions_count = 1}};
    if (!builtin_expression(k, dtype, out->expression, sizeof out->expression))
        return problem_set(why, STATUS_INTERNAL, "the expression of %s is too long", k->name);
    add_options(out, builtin_vectors(k, facts->on_host), facts->on_host);
    add_headers(out, builtin_header_at);
    if (!source || !out->spec.headers_count)
        return problem_set(why, STATUS_INTERNAL, "the source of %s is missing", k->name);
    out->expression_span = span_of(out->expression);
    out->spec.source = source->text;
    out->spec.options = out->options;
    out->spec.headers = out->headers;
    out->spec.name_expressions = &out->expression_span;
    return STATUS_OK;
}

void builtin_arch(const struct device_facts *facts, char out[COMPILE_ARCH_BYTES])
{
    bool own = strcmp(facts->arch, BUILTIN_WARPGROUP_ARCH) == 0;

    snprintf(out, COMPILE_ARCH_BYTES, "%s%s", facts->arch, own ? "a" : "");
}
