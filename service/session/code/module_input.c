/* What a module is made from: checked by one set of rules whichever way it came, put in one order, and hashed once. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/digests/digest.h"
#include "base/utf8.h"
#include "ipc/linked_images.h"
#include "session/bounds.h"
#include "session/code/options.h"
#include "session/session.h"

enum { SHOWN_OPTION_BYTES = 100 };

/* ---- texts ---- */

static bool has_control(struct span s)
{
    for (size_t i = 0; i < s.bytes; i++)
        if ((unsigned char)s.data[i] < 0x20 || s.data[i] == 0x7f)
            return true;
    return false;
}

/* What is wrong with a text for a compiler, NULL if nothing. It reads C strings: what stands behind a NUL would be in the digest but
 * not in the code. */
static const char *text_fault(struct span s)
{
    return s.bytes && memchr(s.data, '\0', s.bytes) ? "has a NUL character" : NULL;
}

/* Bytes that are no UTF-8 make the compiler of CUDA C++ lose its place without a word. */
static const char *cuda_fault(struct span s)
{
    const char *fault = text_fault(s);

    return fault || utf8_valid(s) ? fault : "is not UTF-8";
}

static enum status check_images(struct module_spec *spec, struct problem *why)
{
    struct linked_images images;
    enum status          st = linked_images_read(spec->source, &images, why);

    for (unsigned i = 0; i < images.count && !st; i++)
        spec->binary |= images.all[i].kind != LINKED_PTX;
    return st;
}

static enum status check_source(struct module_spec *spec, struct problem *why)
{
    const char *fault = NULL;

    if (spec->source.bytes > SOURCE_BODY_BYTES_MAX)
        return problem_limit(why, STATUS_BODY_TOO_LARGE, "source_bytes", SOURCE_BODY_BYTES_MAX, 0, spec->source.bytes);
    spec->binary = spec->kind == IMAGE_BINARY;
    if (spec->kind == IMAGE_LINKED)
        return check_images(spec, why);
    if (spec->source.bytes == 0)
        fault = "is empty";
    else if (spec->kind == IMAGE_CUDA || spec->kind == IMAGE_GLSL)
        fault = cuda_fault(spec->source);
    else if (spec->kind == IMAGE_PTX)
        fault = text_fault(spec->source);
    return fault ? problem_field(why, STATUS_INVALID_FIELD, "/source", "text", "The source %s", fault) : STATUS_OK;
}

/* ---- headers ---- */

/* Plain relative names: no empty part, no "." or "..", nothing that could be a path of the machine. */
static bool header_name_safe(struct span name)
{
    struct span rest = name;

    if (name.bytes == 0 || name.bytes > COMPILE_HEADER_NAME_BYTES_MAX || has_control(name) || memchr(name.data, '\\', name.bytes) ||
        name.data[name.bytes - 1] == '/' || !utf8_valid(name))
        return false;
    while (rest.bytes) {
        struct span part = span_cut(&rest, '/');
        if (part.bytes == 0 || span_is(part, ".") || span_is(part, ".."))
            return false;
    }
    return true;
}

static enum status check_header(const struct compile_header *h, unsigned number, struct problem *why)
{
    const char *fault = cuda_fault(h->text);

    if (!header_name_safe(h->name))
        return problem_field(why, STATUS_INVALID_FIELD, "/headers", "name",
                             "The name of header number %u must be a plain relative path of at most %d bytes", number,
                             (int)COMPILE_HEADER_NAME_BYTES_MAX);
    return fault ? problem_field(why, STATUS_INVALID_FIELD, "/headers", "text", "Header number %u %s", number, fault) : STATUS_OK;
}

static int by_name(const void *a, const void *b)
{
    struct span x = ((const struct compile_header *)a)->name;
    struct span y = ((const struct compile_header *)b)->name;
    int         order = memcmp(x.data, y.data, x.bytes < y.bytes ? x.bytes : y.bytes);

    return order ? order : (x.bytes > y.bytes) - (x.bytes < y.bytes);
}

/* Sorted, so that their order in the request does not matter. */
static enum status take_headers(struct module_spec *spec, struct arena *arena, struct problem *why)
{
    struct compile_header *list;
    enum status            st = STATUS_OK;

    if (spec->headers_count == 0)
        return STATUS_OK;
    if (spec->headers_count > COMPILE_HEADERS_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/headers", "too_many", "Too many headers, at most %d are possible",
                             (int)COMPILE_HEADERS_MAX);
    for (unsigned i = 0; i < spec->headers_count && !st; i++)
        st = check_header(&spec->headers[i], i + 1, why);
    if (st)
        return st;
    list = arena_array(arena, spec->headers_count, sizeof *list);
    if (!list)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "Not enough memory for the headers");
    memcpy(list, spec->headers, spec->headers_count * sizeof *list);
    qsort(list, spec->headers_count, sizeof *list, by_name);
    for (unsigned i = 1; i < spec->headers_count; i++)
        if (span_equal(list[i - 1].name, list[i].name))
            return problem_field(why, STATUS_INVALID_FIELD, "/headers", "duplicate", "Duplicate header name");
    spec->headers = list;
    return STATUS_OK;
}

/* ---- the rest ---- */

static enum status take_options(struct module_spec *spec, struct arena *arena, struct problem *why)
{
    size_t      count = 0;
    enum status st = options_canonical(spec->options, spec->options_count, arena, &spec->options, &count, why);

    if (!st)
        spec->options_count = (unsigned)count;
    return st;
}

/* Of the options that are canonical, takes out what says the architecture. The list is the arena's. */
static enum status take_architecture(struct module_spec *spec, struct arena *arena, struct problem *why)
{
    struct span *kept = arena_array(arena, spec->options_count, sizeof *kept), said;
    unsigned     n = 0;

    if (!kept)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "Not enough memory for the options");
    for (unsigned i = 0; i < spec->options_count; i++) {
        if (!options_architecture(spec->options[i], &said)) {
            kept[n++] = spec->options[i];
            continue;
        }
        if (spec->arch.bytes && !span_equal(spec->arch, said))
            return problem_field(why, STATUS_INVALID_FIELD, "/arch", "conflict", "The request names two architectures, %.*s and %.*s",
                                 SPAN_ARG(span_first(spec->arch, COMPILE_ARCH_BYTES)), SPAN_ARG(said));
        spec->arch = said;
    }
    spec->options = kept;
    spec->options_count = n;
    if (spec->arch.bytes && !options_knows_architecture(spec->arch))
        return problem_field(why, STATUS_INVALID_FIELD, "/arch", "value",
                             "An architecture must be compute_75, compute_80, compute_86, "
                             "compute_87, compute_89 or compute_90");
    return STATUS_OK;
}

/* Specialisation constants are set in shaders alone, and these have no other options but GLSL its macros. */
static enum status check_language(const struct module_spec *spec, struct problem *why)
{
    const char *language = spec->kind == IMAGE_GLSL ? "GLSL" : spec->kind == IMAGE_SPIRV ? "SPIR-V" : "CUDA C++";
    char        pointer[PROBLEM_POINTER_BYTES];

    for (unsigned i = 0; i < spec->options_count; i++) {
        bool specialises = span_starts(spec->options[i], "--specialize="), defines = span_starts(spec->options[i], "--define-macro=");

        snprintf(pointer, sizeof pointer, "/options/%u", i);
        if (image_is_shader(spec->kind) ? !specialises && !(defines && spec->kind == IMAGE_GLSL) : specialises)
            return problem_field(why, STATUS_OPTION_NOT_ALLOWED, pointer, "option", "The option %.*s is not for %s",
                                 SPAN_ARG(utf8_first(spec->options[i], SHOWN_OPTION_BYTES)), language);
    }
    if (image_is_shader(spec->kind) && spec->arch.bytes)
        return problem_field(why, STATUS_INVALID_FIELD, "/arch", "language", "%s is compiled for no architecture", language);
    if (image_is_shader(spec->kind) && spec->name_expressions_count)
        return problem_field(why, STATUS_INVALID_FIELD, "/name_expressions", "language", "%s has no name expressions", language);
    if (spec->kind == IMAGE_SPIRV && spec->headers_count)
        return problem_field(why, STATUS_INVALID_FIELD, "/headers", "language", "SPIR-V has no headers");
    return STATUS_OK;
}

static enum status check_expressions(const struct module_spec *spec, struct problem *why)
{
    char pointer[PROBLEM_POINTER_BYTES];

    if (spec->name_expressions_count > COMPILE_NAME_EXPRESSIONS_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/name_expressions", "too_many",
                             "Too many name expressions, at most %d are possible", (int)COMPILE_NAME_EXPRESSIONS_MAX);
    for (unsigned i = 0; i < spec->name_expressions_count; i++) {
        struct span s = spec->name_expressions[i];
        snprintf(pointer, sizeof pointer, "/name_expressions/%u", i);
        if (s.bytes == 0 || s.bytes >= KERNEL_NAME_BYTES || has_control(s) || !utf8_valid(s))
            return problem_field(why, STATUS_INVALID_FIELD, pointer, "name", "A name expression must be one line of 1 to %d bytes",
                                 (int)KERNEL_NAME_BYTES - 1);
    }
    return STATUS_OK;
}

static void digest_list(struct sha256 *h, const struct span *items, unsigned count)
{
    digest_add_u64(h, count);
    for (unsigned i = 0; i < count; i++)
        digest_add_field(h, items[i]);
}

/* Every list with its count and every field with its length: no two different inputs make the same bytes. */
static void take_digest(struct module_spec *spec)
{
    struct sha256 h;
    unsigned char kind = (unsigned char)spec->kind;

    digest_span(spec->source, spec->source_digest);
    digest_init(&h);
    digest_add(&h, &kind, 1);
    digest_add(&h, spec->source_digest, SHA256_BYTES);
    digest_add_u64(&h, spec->headers_count);
    for (unsigned i = 0; i < spec->headers_count; i++) {
        digest_add_field(&h, spec->headers[i].name);
        digest_add_field(&h, spec->headers[i].text);
    }
    digest_list(&h, spec->options, spec->options_count);
    digest_list(&h, spec->name_expressions, spec->name_expressions_count);
    digest_add_field(&h, spec->arch);
    digest_end(&h, spec->digest);
}

enum status module_spec_check(struct module_spec *spec, struct arena *arena, struct problem *why)
{
    enum status st = check_source(spec, why);

    assert(!spec->checked && spec->kind != IMAGE_PLAN);
    assert(spec->kind == IMAGE_CUDA || image_is_shader(spec->kind) ||
           (!spec->headers_count && !spec->options_count && !spec->name_expressions_count && !spec->arch.bytes));
    if (!st)
        st = take_options(spec, arena, why);
    if (!st)
        st = check_language(spec, why);
    if (!st)
        st = take_architecture(spec, arena, why);
    if (!st)
        st = take_headers(spec, arena, why);
    if (!st)
        st = check_expressions(spec, why);
    if (st)
        return st;
    take_digest(spec);
    spec->checked = true;
    return STATUS_OK;
}

/* ---- copies ---- */

static bool copy_texts(struct arena *a, const struct span **list, unsigned count)
{
    struct span *own = arena_array(a, count, sizeof *own);

    for (unsigned i = 0; own && i < count; i++) {
        own[i] = arena_copy(a, (*list)[i]);
        if (!own[i].data)
            return false;
    }
    *list = own;
    return own != NULL;
}

static bool copy_headers(struct arena *a, struct module_spec *s)
{
    struct compile_header *own = arena_array(a, s->headers_count, sizeof *own);

    for (unsigned i = 0; own && i < s->headers_count; i++) {
        own[i] = (struct compile_header){arena_copy(a, s->headers[i].name), arena_copy(a, s->headers[i].text)};
        if (!own[i].name.data || !own[i].text.data)
            return false;
    }
    s->headers = own;
    return own != NULL;
}

bool module_spec_copy(struct arena *a, struct module_spec *s)
{
    assert(s->checked && (s->kind == IMAGE_CUDA || s->kind == IMAGE_LINKED || image_is_shader(s->kind)));
    s->source = arena_copy(a, s->source);
    if (s->arch.bytes)
        s->arch = arena_copy(a, s->arch);
    return s->source.data && (!s->arch.bytes || s->arch.data) && copy_headers(a, s) && copy_texts(a, &s->options, s->options_count) &&
           copy_texts(a, &s->name_expressions, s->name_expressions_count);
}
