/* The module level of the PTX parser, its errors, and what all levels use. */
#include "device/cpu/bounds.h"
#include "device/cpu/ptx/parser.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHARED_ALIGN_LEAST = 16 };

bool ptx_fail(struct ptx_parser *p, uint32_t line, const char *format, ...)
{
    char    text[PROBLEM_DETAIL_BYTES];
    va_list args;

    if (p->status != STATUS_OK)
        return false;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c; c++)
        *c = (unsigned char)*c < ' ' || (unsigned char)*c >= 127 ? '?' : *c;
    if (p->own) /* what the caller declared does not fit it: the place is told in the words */
        p->status = problem_set(p->why, STATUS_MODULE_INVALID, "%s, unlike the device's own function", text);
    else if (p->images > 1)
        p->status = problem_set(p->why, STATUS_MODULE_INVALID, "%s, image %u, PTX line %u", text, p->image, line);
    else
        p->status = problem_set(p->why, STATUS_MODULE_INVALID, "%s, PTX line %u", text, line);
    return false;
}

bool ptx_fail_memory(struct ptx_parser *p)
{
    if (p->status == STATUS_OK)
        p->status = problem_set(p->why, STATUS_OUT_OF_MEMORY, "the module is too large for the device, PTX line %u", p->now.line);
    return false;
}

enum { QUOTED_BYTES = 64 };

bool ptx_expected(struct ptx_parser *p, const char *what)
{
    if (p->now.kind == TOKEN_END)
        return ptx_fail(p, p->now.line, "expected %s, got the end of the text", what);
    return ptx_fail(p, p->now.line, "expected %s, got `%.*s`", what, SPAN_ARG(span_first(p->now.text, QUOTED_BYTES)));
}

bool ptx_fail_unsupported(struct ptx_parser *p, uint32_t line, struct span text)
{
    return ptx_fail(p, line, "`%.*s` is not supported on device cpu%s", SPAN_ARG(span_first(text, QUOTED_BYTES)), ptx_feature_of(text));
}

bool ptx_fail_twice(struct ptx_parser *p, struct span name)
{
    return ptx_fail(p, p->now.line, "`%.*s` is declared twice", SPAN_ARG(span_first(name, QUOTED_BYTES)));
}

void ptx_next(struct ptx_parser *p)
{
    ptx_lexer_next(&p->lexer, &p->now);
}

bool ptx_is_mark(const struct ptx_parser *p, char c)
{
    return p->now.kind == TOKEN_MARK && p->now.text.data[0] == c;
}

bool ptx_is_word(const struct ptx_parser *p, const char *word)
{
    return p->now.kind == TOKEN_WORD && span_is(p->now.text, word);
}

bool ptx_accept(struct ptx_parser *p, char c)
{
    if (!ptx_is_mark(p, c))
        return false;
    ptx_next(p);
    return true;
}

bool ptx_accept_word(struct ptx_parser *p, const char *word)
{
    if (!ptx_is_word(p, word))
        return false;
    ptx_next(p);
    return true;
}

bool ptx_expect(struct ptx_parser *p, char c)
{
    char what[] = {'`', c, '`', '\0'};

    return ptx_accept(p, c) || ptx_expected(p, what);
}

bool ptx_take_name(struct ptx_parser *p, struct span *out, const char *what)
{
    if (p->now.kind != TOKEN_WORD || p->now.text.data[0] == '.')
        return ptx_expected(p, what);
    *out = p->now.text;
    ptx_next(p);
    return true;
}

bool ptx_take_integer(struct ptx_parser *p, uint64_t max, uint64_t *out, const char *what)
{
    if (p->now.kind != TOKEN_INTEGER)
        return ptx_expected(p, what);
    if (p->now.value > max)
        return ptx_fail(p, p->now.line, "%s is too large", what);
    *out = p->now.value;
    ptx_next(p);
    return true;
}

bool ptx_take_type(struct ptx_parser *p, enum ptx_type *out)
{
    if (p->now.kind != TOKEN_WORD || p->now.text.data[0] != '.')
        return ptx_expected(p, "a type");
    *out = ptx_type_find(span_from(p->now.text, 1));
    if (*out == PTX_NO_TYPE)
        return ptx_feature_of(p->now.text)[0] ? ptx_fail_unsupported(p, p->now.line, p->now.text) : ptx_expected(p, "a type");
    ptx_next(p);
    return true;
}

void *ptx_copy_array(struct ptx_parser *p, const void *from, size_t count, size_t element_bytes)
{
    void *to = arena_array(&p->module->arena, count, element_bytes);

    if (!to)
        ptx_fail_memory(p);
    else if (count)
        memcpy(to, from, count * element_bytes);
    return to;
}

void ptx_skip_line(struct ptx_parser *p, uint32_t line)
{
    while (p->now.kind != TOKEN_END && p->now.line == line)
        ptx_next(p);
}

static void skip_braces(struct ptx_parser *p)
{
    while (p->now.kind != TOKEN_END && !ptx_is_mark(p, '}'))
        ptx_next(p);
    ptx_next(p);
}

bool ptx_skip_directive(struct ptx_parser *p)
{
    if (ptx_is_word(p, ".file")) {
        ptx_parse_file(p);
    } else if (ptx_is_word(p, ".loc")) {
        ptx_parse_loc(p);
    } else if (ptx_is_word(p, ".section")) {
        skip_braces(p);
    } else if (ptx_is_word(p, ".pragma")) {
        while (p->now.kind != TOKEN_END && !ptx_is_mark(p, ';'))
            ptx_next(p);
        ptx_next(p);
    } else {
        return false;
    }
    return true;
}

static bool version_exists(struct span text)
{
    static const struct {
        uint64_t major, minor;
    } last[] = {
#define PTX_VERSIONS(major, minor) {major, minor},
#include "device/cpu/ptx/tables/versions.def"
#undef PTX_VERSIONS
    };
    struct span rest = text, whole = span_cut(&rest, '.');
    uint64_t    major, minor;

    if (!span_u64(whole, &major) || !span_u64(rest, &minor))
        return false;
    for (size_t i = 0; i < COUNT(last); i++)
        if (last[i].major == major)
            return minor <= last[i].minor;
    return false;
}

static bool parse_head(struct ptx_parser *p)
{
    if (!ptx_accept_word(p, ".version"))
        return ptx_expected(p, "`.version`");
    if (p->now.kind != TOKEN_FLOAT64)
        return ptx_expected(p, "a version such as 7.8");
    if (!version_exists(p->now.text))
        return ptx_fail(p, p->now.line, "PTX has no version %.*s, or device cpu does not know it yet",
                        SPAN_ARG(span_first(p->now.text, 16)));
    ptx_next(p);
    if (!ptx_accept_word(p, ".target"))
        return ptx_expected(p, "`.target`");
    if (p->now.kind != TOKEN_WORD)
        return ptx_expected(p, "a target such as sm_75");
    ptx_skip_line(p, p->now.line);
    return true;
}

static bool parse_address_size(struct ptx_parser *p, uint32_t line)
{
    uint64_t bits = 0;

    if (!ptx_take_integer(p, UINT32_MAX, &bits, "64"))
        return false;
    return bits == 64 || ptx_fail(p, line, "only `.address_size 64` is supported on device cpu");
}

static bool take_linkage(struct ptx_parser *p, enum ptx_linkage *out)
{
    static const struct {
        const char      *word;
        enum ptx_linkage linkage;
    } rows[] = {{".visible", LINK_VISIBLE}, {".extern", LINK_EXTERN}, {".weak", LINK_WEAK}, {".common", LINK_COMMON}};

    for (unsigned i = 0; i < COUNT(rows); i++) {
        if (!ptx_accept_word(p, rows[i].word))
            continue;
        *out = *out == LINK_EXTERN ? LINK_EXTERN : rows[i].linkage;
        return true;
    }
    return false;
}

static bool parse_declaration(struct ptx_parser *p)
{
    enum ptx_linkage linkage = LINK_LOCAL;
    bool             entry;

    while (take_linkage(p, &linkage))
        ;
    entry = ptx_accept_word(p, ".entry");
    if (entry || ptx_accept_word(p, ".func"))
        return ptx_parse_function(p, entry, linkage);
    if (p->now.kind == TOKEN_WORD && ptx_space_word(p->now.text) != PTX_GENERIC)
        return ptx_parse_variable(p, linkage);
    if (p->now.kind == TOKEN_WORD && p->now.text.data[0] == '.')
        return ptx_fail_unsupported(p, p->now.line, p->now.text);
    return ptx_expected(p, "a variable, `.func` or `.entry`");
}

static bool parse_module(struct ptx_parser *p)
{
    ptx_next(p);
    if (!parse_head(p))
        return false;
    while (p->now.kind != TOKEN_END) {
        uint32_t line = p->now.line;
        bool     ok = true;

        if (ptx_is_mark(p, '@'))
            ptx_skip_line(p, line); /* @@DWARF */
        else if (ptx_accept_word(p, ".address_size"))
            ok = parse_address_size(p, line);
        else if (!ptx_accept(p, ';') && !ptx_skip_directive(p))
            ok = parse_declaration(p);
        if (!ok)
            return false;
    }
    return true;
}

bool ptx_parse_text(struct ptx_parser *p, struct span text)
{
    ptx_lexer_init(&p->lexer, text);
    if (!parse_module(p) || !ptx_resolve_initialisers(p))
        return false;
    ptx_names_release(&p->names, 0);
    return true;
}

static void place_operand(const struct ptx_parser *p, struct ptx_operand *o, uint32_t entry_base)
{
    if (o->kind != PTX_ADDRESS || o->space != PTX_SHARED)
        return;
    if (o->index == SHARED_OF_ENTRY)
        o->value += entry_base;
    else if (o->index == SHARED_DYNAMIC)
        o->value += p->module->dynamic_shared_offset;
    o->index = PTX_NO_INDEX;
}

/* The window holds first the module's static variables, then the kernel's own, then the dynamic ones, at the same place for all kernels. */
static bool place_shared(struct ptx_parser *p)
{
    uint64_t base = p->shared_module, dynamic;

    ptx_align_up(&base, p->shared_align, UINT32_MAX);
    dynamic = base;
    for (uint32_t f = 0; f < p->functions_count; f++) {
        struct ptx_function *function = &p->functions[f];
        if (!function->entry)
            continue;
        function->shared_bytes = function->shared_bytes ? (uint32_t)base + function->shared_bytes : p->shared_module;
        if (function->shared_bytes > CPU_STATIC_SHARED_BYTES_MAX)
            return ptx_fail(p, p->now.line, "`%.*s` needs %u bytes of shared memory, %d are allowed", SPAN_ARG(function->name),
                            function->shared_bytes, CPU_STATIC_SHARED_BYTES_MAX);
        dynamic = function->shared_bytes > dynamic ? function->shared_bytes : dynamic;
    }
    ptx_align_up(&dynamic, p->shared_align, UINT32_MAX);
    p->module->dynamic_shared_offset = (uint32_t)dynamic;
    for (uint32_t f = 0; f < p->functions_count; f++) {
        struct ptx_insn *insns = (struct ptx_insn *)p->functions[f].insns;
        for (uint32_t i = 0; i < p->functions[f].insns_count; i++) {
            for (unsigned o = 0; o < insns[i].operands_count; o++)
                place_operand(p, &insns[i].operands[o], (uint32_t)base);
        }
    }
    return true;
}

static bool check_externs(struct ptx_parser *p)
{
    for (uint32_t i = 0; i < p->symbols_count; i++) {
        const struct ptx_symbol *s = &p->symbols[i];

        if (!p->externs[i])
            continue;
        p->image = s->image;
        return ptx_fail(p, s->line, "`%.*s` is declared `.extern` but not defined", SPAN_ARG(span_first(s->name, QUOTED_BYTES)));
    }
    return true;
}

static bool complete_module(struct ptx_parser *p)
{
    struct ptx_module *m = p->module;

    if (!place_shared(p) || !check_externs(p) || !ptx_link_hide(p))
        return false;
    m->functions = ptx_copy_array(p, p->functions, p->functions_count, sizeof *p->functions);
    m->symbols = ptx_copy_array(p, p->symbols, p->symbols_count, sizeof *p->symbols);
    m->functions_count = p->functions_count;
    m->symbols_count = p->symbols_count;
    m->files = ptx_copy_array(p, p->files, p->files_count, sizeof *p->files);
    m->files_count = p->files_count;
    return m->functions && m->symbols && m->files;
}

static void parser_finish(struct ptx_parser *p)
{
    ptx_body_finish(&p->body);
    ptx_names_finish(&p->names);
    ptx_names_finish(&p->linked);
    free(p->functions);
    free(p->symbols);
    free(p->externs);
    free(p->files);
    free(p->pending);
}

static bool parse_all(struct ptx_parser *p, const struct span *texts, unsigned count)
{
    for (p->image = 1; p->image <= count; p->image++) {
        struct span text;

        if (!texts[p->image - 1].data)
            continue;
        text = span_first(texts[p->image - 1], strnlen(texts[p->image - 1].data, texts[p->image - 1].bytes));

        text = arena_copy(&p->module->arena, text);
        if (!text.data)
            return ptx_fail_memory(p);
        if (!ptx_parse_text(p, text))
            return false;
    }
    p->image = count; /* the problems of the whole are told at its end */
    return ptx_link_runtime(p) && complete_module(p);
}

static enum status parse_into(struct ptx_module *m, const struct span *texts, unsigned count, struct problem *why)
{
    struct ptx_parser p = {.module = m, .why = why, .shared_align = SHARED_ALIGN_LEAST, .images = count};

    if (ptx_names_init(&p.names) && ptx_names_init(&p.linked))
        parse_all(&p, texts, count);
    else
        p.status = problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    parser_finish(&p);
    return p.status;
}

enum status ptx_link(const struct span *texts, unsigned count, struct ptx_module **out, struct problem *why)
{
    struct ptx_module *m = calloc(1, sizeof *m);
    enum status        st;

    assert(count >= 1 && count <= LINKED_IMAGES_MAX);
    if (!m)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    arena_init(&m->arena, PTX_MODULE_BYTES_MAX);
    st = parse_into(m, texts, count, why);
    if (st == STATUS_OK)
        *out = m;
    else
        ptx_module_destroy(m);
    return st;
}

enum status ptx_parse(struct span text, struct ptx_module **out, struct problem *why)
{
    return ptx_link(&text, 1, out, why);
}

void ptx_module_destroy(struct ptx_module *m)
{
    if (!m)
        return;
    arena_finish(&m->arena);
    free(m);
}

uint32_t ptx_find_function(const struct ptx_module *m, struct span name)
{
    for (uint32_t i = 0; i < m->functions_count; i++) {
        if (span_equal(m->functions[i].name, name))
            return i;
    }
    return PTX_NO_INDEX;
}

uint32_t ptx_find_symbol(const struct ptx_module *m, struct span name)
{
    for (uint32_t i = 0; i < m->symbols_count; i++) {
        if (span_equal(m->symbols[i].name, name))
            return i;
    }
    return PTX_NO_INDEX;
}
