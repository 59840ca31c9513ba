/* Declarations of variables, in a module and in a body: .global, .const, .shared, .local, .param, .reg. */
#include "device/cpu/bounds.h"
#include "device/cpu/ptx/parser.h"

bool ptx_align_up(uint64_t *offset, uint64_t align, uint64_t max)
{
    uint64_t padded;

    if (__builtin_add_overflow(*offset, align - 1, &padded))
        return false;
    *offset = padded & ~(align - 1);
    return *offset <= max;
}

enum ptx_space ptx_space_word(struct span word)
{
    static const struct {
        const char    *word;
        enum ptx_space space;
    } rows[] = {
        {".global", PTX_GLOBAL}, {".const", PTX_CONST}, {".shared", PTX_SHARED}, {".local", PTX_LOCAL}, {".param", PTX_PARAM},
    };

    for (unsigned i = 0; i < COUNT(rows); i++) {
        if (span_is(word, rows[i].word))
            return rows[i].space;
    }
    return PTX_GENERIC;
}

static bool take_align(struct ptx_parser *p, uint32_t *align)
{
    uint64_t value;

    if (!ptx_accept_word(p, ".align"))
        return true;
    if (!ptx_take_integer(p, PTX_ALIGN_MAX, &value, "an alignment"))
        return false;
    if (!value || (value & (value - 1)))
        return ptx_fail(p, p->now.line, "an alignment must be a power of two");
    *align = (uint32_t)value;
    return true;
}

/* ".ptr .global .align 4": what a pointer parameter points to; no effect here. */
static bool skip_pointer(struct ptx_parser *p)
{
    uint32_t ignored;

    if (!ptx_accept_word(p, ".ptr"))
        return true;
    if (p->now.kind == TOKEN_WORD && ptx_space_word(p->now.text) != PTX_GENERIC)
        ptx_next(p);
    return take_align(p, &ignored);
}

/* ".attribute(.managed)": memory that the host may reach, too, is ordinary device memory here. */
static bool skip_attribute(struct ptx_parser *p)
{
    while (ptx_accept_word(p, ".attribute")) {
        if (!ptx_expect(p, '('))
            return false;
        if (!ptx_accept_word(p, ".managed"))
            return ptx_fail(p, p->now.line, "the attribute `%.*s` is not supported on device cpu", SPAN_ARG(span_first(p->now.text, 64)));
        if (!ptx_expect(p, ')'))
            return false;
    }
    return true;
}

static unsigned take_vector(struct ptx_parser *p)
{
    return ptx_accept_word(p, ".v2") ? 2 : ptx_accept_word(p, ".v4") ? 4 : 1;
}

static bool take_dimensions(struct ptx_parser *p, struct ptx_declaration *d)
{
    while (ptx_accept(p, '[')) {
        if (d->dimensions_count == PTX_DIMENSIONS_MAX)
            return ptx_fail(p, p->now.line, "too many dimensions, at most %d are supported", PTX_DIMENSIONS_MAX);
        if (ptx_accept(p, ']')) {
            if (d->dimensions_count)
                return ptx_fail(p, p->now.line, "only the first dimension can be left open");
            d->open = true;
            d->dimensions[d->dimensions_count++] = 0;
            continue;
        }
        if (!ptx_take_integer(p, UINT64_MAX >> 16, &d->dimensions[d->dimensions_count++], "a dimension") || !ptx_expect(p, ']'))
            return false;
    }
    return true;
}

static bool take_name_and_size(struct ptx_parser *p, struct ptx_declaration *d)
{
    d->dimensions_count = 0;
    d->open = false;
    if (!ptx_take_name(p, &d->name, "a name") || !take_dimensions(p, d))
        return false;
    d->bytes = (uint64_t)ptx_type_bytes(d->type) * d->vector;
    for (unsigned i = 0; i < d->dimensions_count; i++) {
        if (__builtin_mul_overflow(d->bytes, d->dimensions[i], &d->bytes) || d->bytes > UINT64_MAX >> 16)
            return ptx_fail(p, p->now.line, "the variable is too large");
    }
    return true;
}

bool ptx_take_declaration(struct ptx_parser *p, struct ptx_declaration *d)
{
    *d = (struct ptx_declaration){0};
    if (!skip_attribute(p) || !take_align(p, &d->align))
        return false;
    d->vector = take_vector(p);
    if (!ptx_take_type(p, &d->type) || !skip_pointer(p) || !take_align(p, &d->align))
        return false;
    if (d->type == PTX_PRED)
        return ptx_fail(p, p->now.line, "a variable cannot have type .pred");
    if (!d->align)
        d->align = ptx_type_bytes(d->type) * d->vector;
    return take_name_and_size(p, d);
}

static struct ptx_name *add_variable(struct ptx_parser *p, const struct ptx_declaration *d, enum ptx_space space)
{
    uint32_t         mark = p->body.function ? p->body.scopes[p->body.scope].names : 0;
    struct ptx_name *name;

    if (ptx_names_has_since(&p->names, d->name, mark)) {
        ptx_fail_twice(p, d->name);
        return NULL;
    }
    name = ptx_names_add(&p->names, d->name, NAME_VARIABLE);
    if (!name) {
        ptx_fail_memory(p);
        return NULL;
    }
    name->bytes = d->bytes;
    name->operand = (struct ptx_operand){.kind = PTX_ADDRESS, .space = (uint8_t)space, .reg = PTX_NO_REG, .index = PTX_NO_INDEX};
    return name;
}

/* Gives the variable its place behind *used. */
static bool place_variable(struct ptx_parser *p, const struct ptx_declaration *d, uint32_t *used, uint32_t max, uint64_t *offset)
{
    *offset = *used;
    if (!ptx_align_up(offset, d->align, max) || d->bytes > max - *offset)
        return ptx_fail(p, p->now.line, "`%.*s` is too large: %u bytes are allowed", SPAN_ARG(span_first(d->name, 64)), max);
    *used = (uint32_t)(*offset + d->bytes);
    return true;
}

static bool declare_shared(struct ptx_parser *p, const struct ptx_declaration *d, bool external)
{
    struct ptx_name     *name = add_variable(p, d, PTX_SHARED);
    struct ptx_function *f = p->body.function;
    bool                 own = f && f->entry;

    if (!name)
        return false;
    if (d->align > p->shared_align)
        p->shared_align = d->align;
    if (external && d->bytes && p->images > 1)
        return ptx_fail(p, p->now.line,
                        "`%.*s`: device cpu links no `.shared` variables; of those of a launch, `.extern`, the size is open",
                        SPAN_ARG(span_first(d->name, 64)));
    if (external || d->open) {
        name->operand.index = SHARED_DYNAMIC;
        name->bytes = 0;
        return true;
    }
    name->operand.index = own ? SHARED_OF_ENTRY : SHARED_OF_MODULE;
    return place_variable(p, d, own ? &f->shared_bytes : &p->shared_module, CPU_STATIC_SHARED_BYTES_MAX, &name->operand.value);
}

#define RESERVED "%reserved_smem_offset_"

bool ptx_is_reserved_shared(struct span word)
{
    return span_starts(word, RESERVED);
}

bool ptx_take_reserved_shared(struct ptx_parser *p, uint64_t *value)
{
    static const struct {
        const char *word;
        uint32_t    offset;
    } places[] = {{"begin", 0}, {"0", 0}, {"1", PTX_RESERVED_SHARED_BYTES / 2}, {"end", PTX_RESERVED_SHARED_BYTES}};
    struct ptx_declaration all = {.name = p->now.text, .align = PTX_RESERVED_SHARED_ALIGN, .bytes = PTX_RESERVED_SHARED_BYTES};
    struct span            which = span_from(p->now.text, strlen(RESERVED));
    uint64_t               offset = 0;

    if (!p->reserves) {
        if (!place_variable(p, &all, &p->shared_module, CPU_STATIC_SHARED_BYTES_MAX, &offset))
            return false;
        p->reserves = true;
        p->shared_reserved = (uint32_t)offset;
        p->shared_align = all.align > p->shared_align ? all.align : p->shared_align;
    }
    for (unsigned i = 0; i < COUNT(places); i++)
        if (span_is(which, places[i].word)) {
            *value = p->shared_reserved + places[i].offset;
            return true;
        }
    *value = PTX_RESERVED_SHARED_BYTES;
    return span_is(which, "cap") || ptx_fail_unsupported(p, p->now.line, p->now.text);
}

static bool declare_in_frame(struct ptx_parser *p, const struct ptx_declaration *d, enum ptx_space space)
{
    struct ptx_function *f = p->body.function;
    struct ptx_name     *name;

    if (!f)
        return ptx_fail(p, p->now.line, "`.local` and `.param` variables must be in a function");
    name = add_variable(p, d, space);
    if (!name)
        return false;
    if (space == PTX_LOCAL)
        return place_variable(p, d, &f->local_bytes, CPU_LOCAL_BYTES_MAX, &name->operand.value);
    if (!place_variable(p, d, &p->body.params_used, CPU_LOCAL_BYTES_MAX, &name->operand.value))
        return false;
    if (p->body.params_used > f->param_frame_bytes)
        f->param_frame_bytes = p->body.params_used;
    return true;
}

static uint32_t add_symbol(struct ptx_parser *p, const struct ptx_declaration *d, enum ptx_space space, enum ptx_linkage linkage)
{
    struct ptx_name *name = add_variable(p, d, space);

    if (!name)
        return PTX_NO_INDEX;
    if (!ptx_grow((void **)&p->symbols, &p->symbols_room, p->symbols_count, sizeof *p->symbols, PTX_SYMBOLS_MAX) ||
        !ptx_grow((void **)&p->externs, &p->externs_room, p->symbols_count, sizeof *p->externs, PTX_SYMBOLS_MAX)) {
        ptx_fail_memory(p);
        return PTX_NO_INDEX;
    }
    name->operand.index = p->symbols_count;
    p->externs[p->symbols_count] = true;
    p->symbols[p->symbols_count] = (struct ptx_symbol){
        .name = d->name, .space = space, .bytes = d->bytes, .align = d->align, .linkage = linkage, .image = p->image, .line = p->now.line};
    if (linkage != LINK_LOCAL && !ptx_link_add(p, d->name, NAME_VARIABLE, p->symbols_count))
        return PTX_NO_INDEX;
    return p->symbols_count++;
}

/* That another text knows; PTX_NO_INDEX with a problem recorded when it cannot be the same. */
static uint32_t take_linked(struct ptx_parser *p, const struct ptx_declaration *d, enum ptx_space space, const struct ptx_name *linked)
{
    uint32_t         index = linked->first;
    struct ptx_name *name;

    if (linked->kind != NAME_VARIABLE || p->symbols[index].space != space) {
        ptx_fail(p, p->now.line, "`%.*s` is something else in another image", SPAN_ARG(span_first(d->name, 64)));
        return PTX_NO_INDEX;
    }
    name = add_variable(p, d, space);
    if (!name)
        return PTX_NO_INDEX;
    name->operand.index = index;
    return index;
}

/* Of that name: declared before in this text or another one, or new. PTX_NO_INDEX: a problem is recorded. */
static uint32_t find_symbol(struct ptx_parser *p, const struct ptx_declaration *d, enum ptx_space space, enum ptx_linkage linkage)
{
    struct ptx_name       *known = ptx_names_find(&p->names, d->name);
    const struct ptx_name *linked = known ? NULL : ptx_link_find(p, d->name, linkage);

    if (known && known->kind == NAME_VARIABLE && known->operand.space == space && known->operand.index < p->symbols_count)
        return known->operand.index;
    return linked ? take_linked(p, d, space, linked) : add_symbol(p, d, space, linkage);
}

/* Where another text's definition counts: this one is read for its size alone. */
static bool compare_definition(struct ptx_parser *p, struct ptx_declaration *d, enum ptx_linkage linkage, uint32_t index)
{
    struct ptx_symbol counts = p->symbols[index];
    uint32_t          pending = p->pending_count;
    uint64_t          bytes = d->bytes;

    if (ptx_accept(p, '=')) {
        if (!ptx_parse_initialiser(p, d, index))
            return false;
        bytes = d->open ? p->symbols[index].bytes : bytes;
        p->pending_count = pending;
        p->symbols[index] = counts;
    }
    if (d->align > counts.align)
        p->symbols[index].align = d->align;
    return ptx_link_same_size(p, &p->symbols[index], bytes, linkage);
}

static bool define_symbol(struct ptx_parser *p, struct ptx_declaration *d, enum ptx_space space, enum ptx_linkage linkage, uint32_t index)
{
    struct ptx_symbol *s = &p->symbols[index], known = *s;

    linkage = ptx_link_join(s->image == p->image ? s->linkage : LINK_EXTERN, linkage);
    if (!p->externs[index]) {
        enum ptx_choice choice = s->image == p->image ? PTX_CLASH : ptx_link_choose_symbol(p, s, d->bytes, linkage);

        if (choice == PTX_CLASH)
            return ptx_fail_twice(p, d->name);
        if (choice == PTX_KEEP)
            return compare_definition(p, d, linkage, index);
    }
    *s = (struct ptx_symbol){.name = d->name, .space = space, .bytes = d->bytes, .align = d->align, .linkage = linkage, .image = p->image};
    s->align = known.align > d->align ? known.align : d->align;
    p->externs[index] = false;
    if (ptx_accept(p, '='))
        return ptx_parse_initialiser(p, d, index) && ptx_link_same_size(p, &known, s->bytes, linkage);
    return !d->open || ptx_fail(p, p->now.line, "an open dimension needs an initialiser");
}

static bool declare_symbol(struct ptx_parser *p, struct ptx_declaration *d, enum ptx_space space, enum ptx_linkage linkage)
{
    uint32_t index = find_symbol(p, d, space, linkage);

    if (index == PTX_NO_INDEX || !ptx_link_same_size(p, &p->symbols[index], d->bytes, linkage))
        return false;
    if (linkage != LINK_EXTERN)
        return define_symbol(p, d, space, linkage, index);
    return !ptx_is_mark(p, '=') || ptx_fail(p, p->now.line, "an `.extern` variable must not have an initialiser");
}

static bool declare_variable(struct ptx_parser *p, struct ptx_declaration *d, enum ptx_space space, enum ptx_linkage linkage)
{
    if (space == PTX_GLOBAL || space == PTX_CONST)
        return declare_symbol(p, d, space, linkage);
    if (space == PTX_SHARED)
        return declare_shared(p, d, linkage == LINK_EXTERN);
    if (d->open)
        return ptx_fail(p, p->now.line, "a `.local` or `.param` variable needs its size");
    return declare_in_frame(p, d, space);
}

bool ptx_parse_variable(struct ptx_parser *p, enum ptx_linkage linkage)
{
    enum ptx_space         space = ptx_space_word(p->now.text);
    struct ptx_declaration d;

    ptx_next(p);
    if (!ptx_take_declaration(p, &d) || !declare_variable(p, &d, space, linkage))
        return false;
    while (ptx_accept(p, ',')) {
        if (!take_name_and_size(p, &d) || !declare_variable(p, &d, space, linkage))
            return false;
    }
    return ptx_expect(p, ';');
}
