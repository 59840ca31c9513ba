/* The PTX lexer: one pass, no copies, no allocation. */
#include "device/cpu/ptx/lex.h"

#include <stdlib.h>

static bool starts_word(char c)
{
    return is_letter(c) || c == '_' || c == '$' || c == '%' || c == '.';
}

void ptx_lexer_init(struct ptx_lexer *l, struct span text)
{
    *l = (struct ptx_lexer){text.data, text.data + text.bytes, 1};
}

static void skip_comment(struct ptx_lexer *l)
{
    for (l->at += 2; l->at < l->end && !(l->at[0] == '*' && l->at + 1 < l->end && l->at[1] == '/'); l->at++)
        l->line += *l->at == '\n';
    l->at = l->end - l->at > 2 ? l->at + 2 : l->end;
}

static void skip_blanks(struct ptx_lexer *l)
{
    while (l->at < l->end) {
        if (*l->at == '\n')
            l->line++;
        if (*l->at == ' ' || *l->at == '\t' || *l->at == '\r' || *l->at == '\n') {
            l->at++;
        } else if (*l->at == '/' && l->end - l->at > 1 && l->at[1] == '/') {
            while (l->at < l->end && *l->at != '\n')
                l->at++;
        } else if (*l->at == '/' && l->end - l->at > 1 && l->at[1] == '*') {
            skip_comment(l);
        } else {
            return;
        }
    }
}

static void read_word(struct ptx_lexer *l, struct ptx_token *t)
{
    const char *start = l->at;

    t->kind = TOKEN_WORD;
    while (l->at < l->end) {
        /* ".reg.b32": directives are tokens of their own; an opcode and its modifiers are one token. */
        if (l->at > start && *l->at == '.' && *start == '.')
            break;
        if (starts_word(*l->at) || is_digit(*l->at))
            l->at++;
        else if (l->at[0] == ':' && l->end - l->at > 2 && l->at[1] == ':' && (starts_word(l->at[2]) || is_digit(l->at[2])))
            l->at += 2;
        else
            break;
    }
}

/* Digits of `base` from l->at; false when there are none or the value does not fit 64 bits. */
static bool read_digits(struct ptx_lexer *l, unsigned base, uint64_t *value)
{
    const char *start = l->at;

    *value = 0;
    for (; l->at < l->end; l->at++) {
        int digit = hex_digit(*l->at);
        if (digit < 0 || (unsigned)digit >= base)
            break;
        if (__builtin_mul_overflow(*value, base, value) || __builtin_add_overflow(*value, (unsigned)digit, value))
            return false;
    }
    return l->at > start;
}

static bool is_decimal_float(const struct ptx_lexer *l)
{
    const char *p = l->at;

    while (p < l->end && is_digit(*p))
        p++;
    return p < l->end && (*p == '.' || *p == 'e' || *p == 'E');
}

static void read_decimal_float(struct ptx_lexer *l, struct ptx_token *t)
{
    char  *stop;
    double d = strtod(l->at, &stop); /* the text ends with a NUL */

    l->at = stop;
    t->kind = TOKEN_FLOAT64;
    memcpy(&t->value, &d, sizeof d);
}

static void read_bits_float(struct ptx_lexer *l, struct ptx_token *t)
{
    bool        single = l->at[1] == 'f' || l->at[1] == 'F';
    const char *start = l->at += 2;

    t->kind = read_digits(l, 16, &t->value) && l->at - start == (single ? 8 : 16) ? (single ? TOKEN_FLOAT32 : TOKEN_FLOAT64) : TOKEN_BAD;
}

static void read_number(struct ptx_lexer *l, struct ptx_token *t)
{
    char     second = l->end - l->at > 1 ? l->at[1] : '\0';
    unsigned base = 10;

    if (*l->at == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
        read_bits_float(l, t);
        return;
    }
    if (*l->at == '0' && (second == 'x' || second == 'X' || second == 'b' || second == 'B')) {
        base = second == 'x' || second == 'X' ? 16 : 2;
        l->at += 2;
    } else if (is_decimal_float(l)) {
        read_decimal_float(l, t);
        return;
    } else if (*l->at == '0' && is_digit(second)) {
        base = 8;
    }
    t->kind = read_digits(l, base, &t->value) ? TOKEN_INTEGER : TOKEN_BAD;
    if (l->at < l->end && *l->at == 'U')
        l->at++;
}

static void read_string(struct ptx_lexer *l, struct ptx_token *t)
{
    const char *start = ++l->at;

    while (l->at < l->end && *l->at != '"' && *l->at != '\n')
        l->at++;
    t->kind = l->at < l->end && *l->at == '"' ? TOKEN_STRING : TOKEN_BAD;
    t->text = (struct span){start, (size_t)(l->at - start)};
    if (l->at < l->end)
        l->at++;
}

void ptx_lexer_next(struct ptx_lexer *l, struct ptx_token *out)
{
    const char *start;

    skip_blanks(l);
    start = l->at;
    *out = (struct ptx_token){.line = l->line};
    if (l->at >= l->end)
        return;
    if (*l->at == '"') {
        read_string(l, out);
        return;
    }
    if (starts_word(*l->at))
        read_word(l, out);
    else if (is_digit(*l->at))
        read_number(l, out);
    else {
        out->kind = TOKEN_MARK;
        l->at++;
    }
    out->text = (struct span){start, (size_t)(l->at - start)};
}
