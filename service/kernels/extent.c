/* Evaluates the expressions of kernels.def over a launch's arguments. */
#include "kernels/kernels.h"

enum { NUMBER_DIGITS_MAX = 9 };

#define EXTENT_MAX (UINT64_C(1) << 62)

struct evaluation {
    const struct builtin *kernel;
    const uint64_t       *values;
    uint64_t              blocks;
    enum builtin_dtype    dtype;
    struct span           rest;
    bool                  failed; /* beyond EXTENT_MAX, or a malformed row */
};

static bool take_char(struct evaluation *e, char c)
{
    if (e->rest.bytes == 0 || *e->rest.data != c)
        return false;
    e->rest = span_from(e->rest, 1);
    return true;
}

static uint64_t number(struct evaluation *e)
{
    uint64_t n = 0;

    for (unsigned digits = 0; e->rest.bytes && *e->rest.data >= '0' && *e->rest.data <= '9'; digits++) {
        e->failed = e->failed || digits == NUMBER_DIGITS_MAX;
        n = n * 10 + (uint64_t)(*e->rest.data - '0');
        e->rest = span_from(e->rest, 1);
    }
    return n;
}

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static uint64_t named_value(struct evaluation *e)
{
    struct span name = {e->rest.data, 0};

    while (name.bytes < e->rest.bytes && in_name(name.data[name.bytes]))
        name.bytes++;
    e->rest = span_from(e->rest, name.bytes);
    for (unsigned i = 0; i < e->kernel->params_count; i++)
        if (e->kernel->params[i].access == BUILTIN_VALUE && span_is(name, e->kernel->params[i].name))
            return e->values[i];
    if (span_is(name, "blocks"))
        return e->blocks;
    if (span_is(name, "sizeof_T"))
        return builtin_type_bytes(&(struct builtin_param){.type = BUILTIN_TYPE_T}, e->dtype);
    if (span_is(name, "sizeof_accumulator"))
        return builtin_type_bytes(&(struct builtin_param){.type = BUILTIN_TYPE_ACCUMULATOR}, e->dtype);
    e->failed = true;
    return 0;
}

/* A number, a name, or "(name-1)", which is 0 if the name's value is 0. */
static uint64_t factor(struct evaluation *e)
{
    uint64_t value;

    if (e->rest.bytes && *e->rest.data >= '0' && *e->rest.data <= '9')
        return number(e);
    if (!take_char(e, '('))
        return named_value(e);
    value = named_value(e);
    if (!take_char(e, '-') || !take_char(e, '1') || !take_char(e, ')'))
        e->failed = true;
    return value ? value - 1 : 0;
}

static uint64_t term(struct evaluation *e)
{
    uint64_t value = factor(e);
    uint64_t by;

    for (;;) {
        if (take_char(e, '*')) {
            by = factor(e);
            if (__builtin_mul_overflow(value, by, &value))
                e->failed = true;
        } else if (take_char(e, '/')) {
            by = number(e);
            value = by ? value / by : 0;
        } else {
            return value;
        }
    }
}

bool builtin_extent(const struct builtin *k, const char *expression, enum builtin_dtype dtype, const uint64_t *values, uint64_t blocks,
                    uint64_t *out)
{
    struct evaluation e = {.kernel = k, .values = values, .blocks = blocks, .dtype = dtype, .rest = span_of(expression)};
    uint64_t          sum = 0, value;

    do {
        value = term(&e);
        if (value > EXTENT_MAX || sum > EXTENT_MAX - value)
            e.failed = true;
        sum += value;
    } while (!e.failed && take_char(&e, '+'));
    *out = sum;
    return !e.failed && e.rest.bytes == 0;
}
