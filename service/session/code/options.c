/* Recognises an option in any of its spellings, checks its value by kind, and writes it in its one canonical form. */
#include "session/code/options.h"
#include "session/bounds.h"

#include <stdio.h>

#include "limits.h"

enum option_kind { FLAG, BOOL, WORD, NUMBER, NUMBERS, TOKEN, DEFINE, NAME, SPECIALIZE };

enum { TOKEN_CHARS_MAX = 64, SPECIALISATION_CHARS_MAX = 40, SHOWN_NAME_BYTES = 64 };

struct option {
    const char      *name;
    const char      *short_name;
    enum option_kind kind;
    const char      *values;
};

static const struct option options[] = {
#define OPTION(name, short_name, kind, values) {name, short_name, kind, values},
#include "session/code/options.def"
#undef OPTION
};

#define ARCHITECTURE "--gpu-architecture"

/* An option as found: whether a value came with it, and which. */
struct found {
    const struct option *option; /* NULL: none of ours */
    struct span          value;
    bool                 has_value;
};

struct check {
    const struct span *sent;
    size_t             count;
    size_t             at; /* the next to look at */
    struct arena      *arena;
    struct span       *out;
    size_t             out_count;
    unsigned           defines;
    struct problem    *why;
};

/* ---- recognising ---- */

static bool attaches(const struct option *o)
{
    return o->kind == DEFINE || o->kind == NAME;
}

/* `spelling` alone, or followed by "=value". */
static bool spelled(struct span s, const char *spelling, struct found *f)
{
    size_t n = strlen(spelling);

    if (n == 0 || !span_starts(s, spelling) || (s.bytes > n && s.data[n] != '='))
        return false;
    f->has_value = s.bytes > n;
    f->value = f->has_value ? span_from(s, n + 1) : (struct span){NULL, 0};
    return true;
}

/* "-DNAME": the value follows without a sign between. */
static bool spelled_attached(struct span s, const struct option *o, struct found *f)
{
    if (!attaches(o) || !span_starts(s, o->short_name))
        return false;
    f->value = span_from(s, strlen(o->short_name));
    f->has_value = f->value.bytes > 0;
    return true;
}

static struct found find(struct span s)
{
    struct found f = {0};

    for (size_t i = 0; i < COUNT(options); i++) {
        const struct option *o = &options[i];
        if (spelled(s, o->name, &f) || spelled(s, o->name + 1, &f) || spelled_attached(s, o, &f) ||
            (!attaches(o) && spelled(s, o->short_name, &f))) {
            f.option = o;
            return f;
        }
    }
    return f;
}

bool options_architecture(struct span option, struct span *out)
{
    struct found f = {0};

    if (!spelled(option, ARCHITECTURE, &f) || !f.has_value)
        return false;
    *out = f.value;
    return true;
}

/* ---- values ---- */

static bool is_name(struct span s)
{
    for (size_t i = 0; i < s.bytes; i++)
        if (!is_letter(s.data[i]) && s.data[i] != '_' && (i == 0 || !is_digit(s.data[i])))
            return false;
    return s.bytes > 0 && s.bytes < COMPILE_OPTION_TEXT_BYTES_MAX - 32;
}

static bool is_one_of(struct span s, const char *values)
{
    struct span rest = span_of(values);

    while (rest.bytes)
        if (span_equal(span_cut(&rest, ' '), s))
            return true;
    return false;
}

static bool is_number_within(struct span s, const char *least_most)
{
    struct span rest = span_of(least_most);
    uint64_t    least, most, value;

    return span_u64(span_cut(&rest, ' '), &least) && span_u64(rest, &most) && s.bytes <= 4 && span_u64(s, &value) && value >= least &&
           value <= most;
}

static bool is_numbers(struct span s)
{
    uint64_t ignored;

    if (s.bytes == 0 || s.bytes >= COMPILE_OPTION_TEXT_BYTES_MAX - 32 || s.data[s.bytes - 1] == ',')
        return false;
    while (s.bytes)
        if (!span_u64(span_cut(&s, ','), &ignored) || ignored > 99999)
            return false;
    return true;
}

static bool is_token(struct span s)
{
    for (size_t i = 0; i < s.bytes; i++)
        if (!is_letter(s.data[i]) && !is_digit(s.data[i]))
            return false;
    return s.bytes > 0 && s.bytes <= TOKEN_CHARS_MAX;
}

static bool is_macro_value(struct span s)
{
    return s.bytes <= COMPILE_DEFINE_VALUE_BYTES_MAX &&
           (s.bytes == 0 || (!memchr(s.data, '\n', s.bytes) && !memchr(s.data, '\r', s.bytes) && !memchr(s.data, '\0', s.bytes)));
}

/* "(a, b, ...)": only what a parameter list may hold. */
static bool is_macro_parameters(struct span s)
{
    if (s.bytes < 2 || s.bytes >= COMPILE_OPTION_TEXT_BYTES_MAX || s.data[0] != '(' || s.data[s.bytes - 1] != ')')
        return false;
    for (size_t i = 1; i + 1 < s.bytes; i++)
        if (!is_letter(s.data[i]) && !is_digit(s.data[i]) && !strchr("_,. ", s.data[i]))
            return false;
    return true;
}

static bool is_macro(struct span s)
{
    struct span value = s;
    struct span head = span_cut(&value, '=');
    size_t      open = 0;

    while (open < head.bytes && head.data[open] != '(')
        open++;
    return is_name(span_first(head, open)) && (open == head.bytes || is_macro_parameters(span_from(head, open))) && is_macro_value(value);
}

/* Whether the constant has such a value, the compile worker finds out. */
static bool is_specialisation(struct span s)
{
    struct span value = s, number = span_cut(&value, '=');
    uint64_t    ignored;

    for (size_t i = 0; i < value.bytes; i++)
        if (!is_letter(value.data[i]) && !is_digit(value.data[i]) && !strchr("+-.", value.data[i]))
            return false;
    return span_u64(number, &ignored) && ignored <= UINT32_MAX && value.bytes > 0 && value.bytes <= SPECIALISATION_CHARS_MAX;
}

static bool value_fits(const struct option *o, struct span value)
{
    switch (o->kind) {
    case FLAG:
        return false;
    case BOOL:
        return is_one_of(value, "true false");
    case WORD:
        return is_one_of(value, o->values);
    case NUMBER:
        return is_number_within(value, o->values);
    case NUMBERS:
        return is_numbers(value);
    case TOKEN:
        return is_token(value);
    case DEFINE:
        return is_macro(value);
    case NAME:
        return is_name(value);
    case SPECIALIZE:
        return is_specialisation(value);
    }
    return false;
}

bool options_knows_architecture(struct span arch)
{
    for (size_t i = 0; i < COUNT(options); i++)
        if (strcmp(options[i].name, ARCHITECTURE) == 0)
            return value_fits(&options[i], arch);
    return false;
}

/* ---- refusing ---- */

/* The option's name without its value, in printable ASCII. */
static void shown_name(struct span s, char out[SHOWN_NAME_BYTES])
{
    struct span rest = s;
    struct span name = span_first(span_cut(&rest, '='), SHOWN_NAME_BYTES - 1);

    for (size_t i = 0; i < name.bytes; i++)
        out[i] = name.data[i] > ' ' && name.data[i] < 0x7f ? name.data[i] : '?';
    out[name.bytes] = '\0';
}

static enum status refuse(struct check *c, size_t index, const char *reason)
{
    char pointer[PROBLEM_POINTER_BYTES];
    char name[SHOWN_NAME_BYTES];

    snprintf(pointer, sizeof pointer, "/options/%zu", index);
    shown_name(c->sent[index], name);
    return problem_field(c->why, STATUS_OPTION_NOT_ALLOWED, pointer, "option_not_allowed", "Compiler option %s %s", name, reason);
}

static const char *const reasons_of_values[] = {
    [FLAG] = "takes no value",
    [BOOL] = "must be true or false",
    [WORD] = "has a value that is not allowed",
    [NUMBER] = "has a number outside its range",
    [NUMBERS] = "must be diagnostic numbers separated by commas",
    [TOKEN] = "must be up to 64 letters and digits",
    [DEFINE] = "must be NAME or NAME=VALUE, the value on one line of at most 4096 bytes",
    [NAME] = "must be an identifier",
    [SPECIALIZE] = "must be NUMBER=VALUE, the number that of a specialisation constant",
};

/* ---- all of it ---- */

static enum status keep(struct check *c, const struct found *f)
{
    char *text = f->has_value ? arena_printf(c->arena, "%s=%.*s", f->option->name, SPAN_ARG(f->value))
                              : arena_printf(c->arena, "%s", f->option->name);

    if (!text)
        return problem_set(c->why, STATUS_OUT_OF_MEMORY, "Not enough memory for the options");
    c->out[c->out_count++] = span_of(text);
    return STATUS_OK;
}

static enum status check_next(struct check *c)
{
    size_t       index = c->at++;
    struct found f = find(c->sent[index]);

    if (!f.option)
        return refuse(c, index, "is not allowed");
    if (!f.has_value && f.option->kind != FLAG) {
        if (c->at >= c->count)
            return refuse(c, index, "needs a value");
        f.value = c->sent[c->at++];
        f.has_value = true;
    }
    if (f.has_value && !value_fits(f.option, f.value))
        return refuse(c, index, reasons_of_values[f.option->kind]);
    if (f.option->kind == DEFINE && ++c->defines > COMPILE_DEFINES_MAX)
        return refuse(c, index, "appears too often");
    return keep(c, &f);
}

enum status options_canonical(const struct span *sent, size_t count, struct arena *arena, const struct span **out, size_t *out_count,
                              struct problem *why)
{
    struct check c = {.sent = sent, .count = count, .arena = arena, .why = why};
    enum status  st = STATUS_OK;

    if (count > COMPILE_OPTIONS_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/options", "too_many", "Too many compiler options, at most %d are possible",
                             (int)COMPILE_OPTIONS_MAX);
    c.out = arena_array(arena, count, sizeof *c.out);
    if (!c.out)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "Not enough memory for the options");
    while (!st && c.at < count)
        st = check_next(&c);
    if (st)
        return st;
    *out = c.out;
    *out_count = c.out_count;
    return STATUS_OK;
}
