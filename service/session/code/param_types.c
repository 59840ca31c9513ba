/* Reads the heads of kernels in PTX: ".entry name ( .param .f32 a, .param .align 4 .b8 b[12] )". All else is passed over. */
#include "session/code/param_types.h"

/* What one declaration says. */
struct declared {
    char     type[sizeof((struct kernel_param *)0)->type]; /* "f32"; "" = none that is known */
    uint64_t bytes;                                        /* of one element */
    uint64_t elements;
};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%' || c == '.';
}

/* Behind the end of what begins there and ends with `end`; nothing is left when that does not come. */
static struct span behind(struct span rest, const char *end)
{
    size_t      n = strlen(end);
    const char *at = rest.bytes ? memmem(rest.data, rest.bytes, end, n) : NULL;

    return at ? span_from(rest, (size_t)(at - rest.data) + n) : (struct span){NULL, 0};
}

static struct span skip_blank(struct span rest)
{
    for (;;) {
        while (rest.bytes && (unsigned char)rest.data[0] <= ' ')
            rest = span_from(rest, 1);
        if (span_starts(rest, "//"))
            rest = behind(rest, "\n");
        else if (span_starts(rest, "/*"))
            rest = behind(span_from(rest, 2), "*/");
        else
            return rest;
    }
}

/* A word, a quoted text, or one other character; empty at the end. */
static struct span next_token(struct span *rest)
{
    struct span from = skip_blank(*rest), token;
    size_t      n = 0;

    while (n < from.bytes && is_word(from.data[n]))
        n++;
    if (from.bytes && from.data[0] == '"')
        n = from.bytes - behind(span_from(from, 1), "\"").bytes;
    token = span_first(from, n ? n : from.bytes ? 1 : 0);
    *rest = span_from(from, token.bytes);
    return token;
}

/* ".f32" and the like: a letter or two, and a width. */
static bool take_type(struct span word, struct declared *d)
{
    static const struct {
        const char *word;
        unsigned    bytes;
    } types[] = {{".u8", 1}, {".u16", 2}, {".u32", 4}, {".u64", 8}, {".s8", 1},  {".s16", 2}, {".s32", 4}, {".s64", 8},
                 {".b8", 1}, {".b16", 2}, {".b32", 4}, {".b64", 8}, {".f16", 2}, {".f32", 4}, {".f64", 8}, {".bf16", 2}};

    for (size_t i = 0; i < COUNT(types); i++)
        if (span_is(word, types[i].word)) {
            span_copy(span_from(word, 1), d->type, sizeof d->type);
            d->bytes = types[i].bytes;
            return true;
        }
    return false;
}

/* Up to the ',' or ')' that ends it, which is taken too. False when the text ends, or goes on as no declaration does. */
static bool take_declaration(struct span *rest, struct declared *d, bool *last)
{
    struct span token = next_token(rest);

    *d = (struct declared){.elements = 1};
    if (!span_is(token, ".param"))
        return false;
    while ((token = next_token(rest)).bytes && !span_is(token, ",") && !span_is(token, ")")) {
        if (span_is(token, "[") && !span_u64(next_token(rest), &d->elements))
            return false;
        if (!d->type[0])
            take_type(token, d);
    }
    *last = span_is(token, ")");
    return token.bytes != 0;
}

static bool agrees(const struct declared *d, const struct kernel_param *p)
{
    return d->type[0] && d->elements <= p->size && d->bytes * d->elements == p->size;
}

/* Behind the kernel's name. False: its parameters are not those of the table. */
static bool read_head(struct span *rest, const struct kernel_desc *k, struct declared *found)
{
    struct span at = *rest;
    bool        last = false;
    uint32_t    n = 0;

    if (!span_is(next_token(&at), "("))
        return false;
    for (; n < k->params_count && !last; n++)
        if (!take_declaration(&at, &found[n], &last) || !agrees(&found[n], &k->params[n]))
            return false;
    *rest = at;
    return last && n == k->params_count;
}

static void fill(struct kernel_desc *k, const struct declared *found)
{
    for (uint32_t i = 0; i < k->params_count; i++)
        if (!k->params[i].type[0])
            memcpy(k->params[i].type, found[i].type, sizeof k->params[i].type);
}

static bool lacks_types(const struct kernel_table *t)
{
    for (uint32_t k = 0; k < t->kernels_count; k++)
        for (uint32_t i = 0; i < t->kernels[k].params_count; i++)
            if (!t->kernels[k].params[i].type[0])
                return true;
    return false;
}

void param_types_read(struct kernel_table *t, struct span ptx)
{
    struct declared found[KERNEL_PARAMS_MAX];

    while (ptx.bytes && lacks_types(t)) {
        struct span token = next_token(&ptx);
        int         i = span_is(token, ".entry") ? kernel_table_find(t, next_token(&ptx)) : -1;

        if (i >= 0 && read_head(&ptx, &t->kernels[i], found))
            fill(&t->kernels[i], found);
    }
}
