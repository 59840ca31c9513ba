/* Initialisers of .global and .const variables: numbers, nested lists, and addresses, which are resolved at the end of the text. */
#include "device/cpu/bounds.h"
#include "device/cpu/ptx/parser.h"

#include <stdlib.h>

struct filling {
    struct ptx_parser            *p;
    const struct ptx_declaration *d;
    uint32_t                      symbol;
    uint8_t                      *bytes; /* owned */
    uint64_t                      room;
    uint64_t                      used;  /* past the last byte that was written */
    uint64_t                      limit; /* of the variable; UINT64_MAX while its first dimension is open */
};

static bool make_room(struct filling *f, uint64_t end)
{
    uint64_t wanted = f->room ? f->room : 64;
    uint8_t *bigger;

    if (end > f->limit || end > PTX_MODULE_BYTES_MAX)
        return ptx_fail(f->p, f->p->now.line, "the initialiser is larger than its variable");
    if (end > f->room) {
        while (wanted < end)
            wanted *= 2;
        bigger = realloc(f->bytes, wanted);
        if (!bigger)
            return ptx_fail_memory(f->p);
        memset(bigger + f->room, 0, wanted - f->room);
        f->bytes = bigger;
        f->room = wanted;
    }
    if (end > f->used)
        f->used = end;
    return true;
}

static bool add_pending(struct filling *f, struct ptx_pending pending)
{
    struct ptx_parser *p = f->p;

    if (!ptx_grow((void **)&p->pending, &p->pending_room, p->pending_count, sizeof *p->pending, PTX_NAMES_MAX))
        return ptx_fail_memory(p);
    p->pending[p->pending_count++] = pending;
    return true;
}

/* "+ n" or "- n" after a symbol. */
static bool take_addend(struct ptx_parser *p, int64_t *out)
{
    uint64_t value;
    bool     minus = ptx_accept(p, '-');

    *out = 0;
    if (!minus && !ptx_accept(p, '+'))
        return true;
    if (!ptx_take_integer(p, INT64_MAX, &value, "an offset"))
        return false;
    *out = minus ? -(int64_t)value : (int64_t)value;
    return true;
}

/* "name", "generic(name)", each with "+ n". */
static bool take_symbol(struct filling *f, struct ptx_pending *out)
{
    struct ptx_parser *p = f->p;
    bool               generic = ptx_accept_word(p, "generic");

    if (generic && !ptx_expect(p, '('))
        return false;
    out->line = p->now.line;
    out->relocation.generic = generic;
    if (!ptx_take_name(p, &out->name, "a symbol") || !take_addend(p, &out->relocation.addend) || (generic && !ptx_expect(p, ')')))
        return false;
    return out->relocation.addend || take_addend(p, &out->relocation.addend);
}

static bool add_symbol(struct filling *f, uint64_t offset, uint32_t bytes)
{
    struct ptx_pending pending = {.symbol = f->symbol, .relocation = {.offset = offset, .bytes = bytes}};

    if (bytes != 8 && bytes != 4)
        return ptx_fail(f->p, f->p->now.line, "an address needs an element of 8 bytes");
    return take_symbol(f, &pending) && add_pending(f, pending);
}

/* "0xFF00(symbol)": the byte of an address that the mask selects. */
static bool add_masked(struct filling *f, uint64_t offset, uint64_t mask)
{
    struct ptx_pending pending = {.symbol = f->symbol, .relocation = {.offset = offset, .bytes = 1}};
    uint32_t           shift = mask ? (uint32_t)__builtin_ctzll(mask) / 8 * 8 : 0;

    if (mask != 0xffull << shift)
        return ptx_fail(f->p, f->p->now.line, "the mask of an address must select one byte");
    pending.relocation.shift = shift;
    ptx_next(f->p);
    return take_symbol(f, &pending) && ptx_expect(f->p, ')') && add_pending(f, pending);
}

static bool fill_number(struct filling *f, uint64_t offset, unsigned bytes)
{
    struct ptx_parser *p = f->p;
    bool               minus = ptx_accept(p, '-');
    struct ptx_token   number = p->now;
    uint64_t           value;

    if (number.kind != TOKEN_INTEGER && number.kind != TOKEN_FLOAT32 && number.kind != TOKEN_FLOAT64)
        return ptx_expected(p, "a number or a symbol");
    ptx_next(p);
    if (number.kind == TOKEN_INTEGER && ptx_is_mark(p, '('))
        return add_masked(f, offset, number.value);
    if (!ptx_literal(number.kind, number.value, minus, f->d->type, &value))
        return ptx_fail(p, number.line, "`%.*s` is not a value of type .%s", SPAN_ARG(span_first(number.text, 64)),
                        ptx_type_word(f->d->type));
    memcpy(f->bytes + offset, &value, bytes < sizeof value ? bytes : sizeof value);
    return true;
}

static bool fill_element(struct filling *f, uint64_t offset)
{
    unsigned bytes = ptx_type_bytes(f->d->type);
    uint64_t end;

    if (__builtin_add_overflow(offset, (uint64_t)bytes, &end) || !make_room(f, end))
        return false;
    if (f->p->now.kind == TOKEN_WORD)
        return add_symbol(f, offset, bytes);
    return fill_number(f, offset, bytes);
}

/* Bytes enclosed by one brace at that depth. */
static uint64_t stride_at(const struct ptx_declaration *d, unsigned level)
{
    uint64_t bytes = ptx_type_bytes(d->type);

    for (unsigned i = level + 1; i < d->dimensions_count; i++)
        bytes *= d->dimensions[i];
    return level + 1 > d->dimensions_count ? bytes : bytes * d->vector;
}

/* Inner lists may be shorter than their row, or absent. Depth is bounded by the dimensions, plus one for vectors. */
static bool fill_list(struct filling *f, uint64_t offset, unsigned level)
{
    struct ptx_parser *p = f->p;
    uint64_t           start = offset, stride = stride_at(f->d, level);

    if (level > f->d->dimensions_count)
        return ptx_fail(p, p->now.line, "the initialiser is nested deeper than its variable");
    if (ptx_accept(p, '}'))
        return true;
    do {
        if (ptx_accept(p, '{')) {
            if (!stride || (offset - start) % stride)
                return ptx_fail(p, p->now.line, "an inner list must start at a row");
            if (!fill_list(f, offset, level + 1))
                return false;
            offset += stride;
        } else {
            if (!fill_element(f, offset))
                return false;
            offset += ptx_type_bytes(f->d->type);
        }
    } while (ptx_accept(p, ','));
    return ptx_expect(p, '}');
}

static bool store_value(struct filling *f)
{
    struct ptx_symbol *s = &f->p->symbols[f->symbol];

    if (f->d->open) {
        uint64_t row = stride_at(f->d, 0);
        s->bytes = row ? (f->used + row - 1) / row * row : f->used;
    }
    s->init = ptx_copy_array(f->p, f->bytes, f->used, 1);
    s->init_bytes = f->used;
    return s->init != NULL;
}

bool ptx_parse_initialiser(struct ptx_parser *p, const struct ptx_declaration *d, uint32_t symbol)
{
    struct filling f = {.p = p, .d = d, .symbol = symbol, .limit = d->open ? UINT64_MAX : d->bytes};
    bool           ok = ptx_accept(p, '{') ? fill_list(&f, 0, 0) : fill_element(&f, 0);

    ok = ok && store_value(&f);
    free(f.bytes);
    return ok;
}

static bool resolve_address(struct ptx_parser *p, struct ptx_pending *pending)
{
    const struct ptx_name *name = ptx_names_find(&p->names, pending->name);

    pending->relocation.symbol = pending->relocation.function = PTX_NO_INDEX;
    if (name && name->kind == NAME_FUNCTION)
        pending->relocation.function = name->first;
    else if (name && name->kind == NAME_VARIABLE && name->operand.index < p->symbols_count)
        pending->relocation.symbol = name->operand.index;
    else
        return ptx_fail(p, pending->line, "`%.*s` is not a variable or function with an address", SPAN_ARG(span_first(pending->name, 64)));
    return true;
}

bool ptx_resolve_initialisers(struct ptx_parser *p)
{
    struct ptx_relocation *all = arena_array(&p->module->arena, p->pending_count, sizeof *all);

    if (!all)
        return ptx_fail_memory(p);
    /* In the order of declaration, so the relocations of a symbol are consecutive. */
    for (uint32_t i = 0; i < p->pending_count; i++) {
        struct ptx_symbol *s = &p->symbols[p->pending[i].symbol];

        if (!resolve_address(p, &p->pending[i]))
            return false;
        all[i] = p->pending[i].relocation;
        if (!s->relocations_count++)
            s->relocations = &all[i];
    }
    p->pending_count = 0;
    return true;
}
