/* A kernel's printf. The conversions are parsed here; only numbers go through snprintf, with a format made here from checked parts. */
#include "device/cpu/runtime/printf_format.h"
#include "device/cpu/bounds.h"

#include <stdio.h>

enum { FLAGS_MAX = 6 };

struct conversion {
    char flags[FLAGS_MAX];
    int  width;
    int  precision; /* -1: none */
    char length;    /* 0, 'h', 'H' for hh, 'l' for 64 bits */
    char letter;
};

struct arguments {
    const uint8_t   *at;
    size_t           bytes, used;
    output_string_fn string;
    void            *context;
};

/* Arguments stand aligned to their size, as vprintf's caller packs them. */
static bool take_argument(struct arguments *a, size_t size, uint64_t *out)
{
    size_t start = (a->used + size - 1) / size * size;

    *out = 0;
    if (start > a->bytes || size > a->bytes - start)
        return false;
    memcpy(out, a->at + start, size);
    a->used = start + size;
    return true;
}

static int bounded_int(int64_t n)
{
    return n > PRINTF_ITEM_BYTES_MAX ? PRINTF_ITEM_BYTES_MAX : (int)n;
}

static void add_flag(struct conversion *c, char flag)
{
    size_t n = strlen(c->flags);

    if (!strchr(c->flags, flag) && n + 1 < sizeof c->flags)
        c->flags[n] = flag;
}

static const char *parse_flags(const char *p, struct conversion *c)
{
    for (; *p && strchr("-+ #0", *p); p++)
        add_flag(c, *p);
    return p;
}

/* Digits or '*'; false when the argument is missing. */
static bool parse_number(const char **p, struct arguments *a, int64_t *out)
{
    uint64_t v;

    *out = 0;
    if (**p == '*') {
        ++*p;
        if (!take_argument(a, 4, &v))
            return false;
        *out = (int32_t)(uint32_t)v;
        return true;
    }
    for (; **p >= '0' && **p <= '9'; ++*p)
        *out = bounded_int(*out * 10 + (**p - '0'));
    return true;
}

static const char *parse_length(const char *p, struct conversion *c)
{
    while (*p && strchr("hlLjzt", *p)) {
        c->length = *p == 'h' ? (c->length == 'h' ? 'H' : 'h') : 'l';
        p++;
    }
    return p;
}

/* Parses what follows '%'; NULL when an argument is missing. */
static const char *parse_conversion(const char *p, struct conversion *c, struct arguments *a)
{
    int64_t n;

    *c = (struct conversion){.precision = -1};
    p = parse_flags(p, c);
    if (!parse_number(&p, a, &n))
        return NULL;
    if (n < 0) {
        add_flag(c, '-');
        n = -n;
    }
    c->width = bounded_int(n);
    if (*p == '.') {
        p++;
        if (!parse_number(&p, a, &n))
            return NULL;
        c->precision = n < 0 ? -1 : bounded_int(n);
    }
    p = parse_length(p, c);
    c->letter = *p;
    return *p ? p + 1 : p;
}

/* "%-0*.*" with the given letters; there is room for all. A negative precision counts as none. */
static void make_format(const struct conversion *c, const char *length, char out[24])
{
    snprintf(out, 24, "%%%s*.*%s%c", c->flags, length, c->letter);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* make_format made them from the conversion's own parts */
static bool            put_integer(struct buf *out, const struct conversion *c, uint64_t v, bool is_signed)
{
    char format[24];

    make_format(c, "j", format);
    if (is_signed)
        return buf_printf(out, format, c->width, c->precision, (intmax_t)v);
    return buf_printf(out, format, c->width, c->precision, (uintmax_t)v);
}

static bool put_float(struct buf *out, const struct conversion *c, uint64_t bits)
{
    char   format[24];
    double d;

    memcpy(&d, &bits, sizeof d);
    make_format(c, "", format);
    return buf_printf(out, format, c->width, c->precision, d);
}
#pragma GCC diagnostic pop

static bool write_padded(struct buf *out, const struct conversion *c, struct span text)
{
    size_t blanks = (size_t)c->width > text.bytes ? (size_t)c->width - text.bytes : 0;
    bool   left = strchr(c->flags, '-') != NULL;
    bool   ok = true;

    for (size_t i = 0; ok && !left && i < blanks; i++)
        ok = buf_add(out, " ", 1);
    ok = ok && buf_add_span(out, text);
    for (size_t i = 0; ok && left && i < blanks; i++)
        ok = buf_add(out, " ", 1);
    return ok;
}

static bool put_string(struct buf *out, const struct conversion *c, struct arguments *a, uint64_t address)
{
    char        text[PRINTF_ITEM_BYTES_MAX + 1];
    size_t      room = c->precision >= 0 ? (size_t)c->precision + 1 : sizeof text;
    struct span shown;

    if (room > sizeof text)
        room = sizeof text;
    if (!address)
        shown = SPAN_LITERAL("(null)");
    else if (a->string && a->string(a->context, address, text, room))
        shown = (struct span){text, strnlen(text, room - 1)};
    else
        shown = SPAN_LITERAL("(illegal address)");
    return write_padded(out, c, shown);
}

static bool put_pointer(struct buf *out, const struct conversion *c, uint64_t v)
{
    char text[24];

    snprintf(text, sizeof text, "0x%llx", (unsigned long long)v);
    return write_padded(out, c, span_of(text));
}

static uint64_t narrow_to_length(const struct conversion *c, uint64_t v, bool is_signed)
{
    switch (c->length) {
    case 'H':
        return is_signed ? (uint64_t)(int64_t)(int8_t)v : (uint8_t)v;
    case 'h':
        return is_signed ? (uint64_t)(int64_t)(int16_t)v : (uint16_t)v;
    case 'l':
        return v;
    default:
        return is_signed ? (uint64_t)(int64_t)(int32_t)v : (uint32_t)v;
    }
}

/* False: its argument is missing. The buffer drops text that does not fit, and remembers that. */
static bool write_conversion(struct buf *out, struct conversion *c, struct arguments *a)
{
    bool     is_signed = c->letter == 'd' || c->letter == 'i';
    bool     whole = is_signed || strchr("uxXo", c->letter);
    uint64_t v;

    if (!take_argument(a, whole && c->length != 'l' ? 4 : c->letter == 'c' ? 4 : 8, &v))
        return false;
    if (whole)
        put_integer(out, c, narrow_to_length(c, v, is_signed), is_signed);
    else if (c->letter == 'c')
        write_padded(out, c, (struct span){(const char[]){(char)v}, 1});
    else if (c->letter == 's')
        put_string(out, c, a, v);
    else if (c->letter == 'p')
        put_pointer(out, c, v);
    else
        put_float(out, c, v);
    return true;
}

int printf_format(struct buf *out, const char *format, const uint8_t *args, size_t args_bytes, output_string_fn string, void *context)
{
    struct arguments a = {args, args_bytes, 0, string, context};
    int              count = 0;

    while (*format) {
        const char       *percent = strchrnul(format, '%'), *next;
        struct conversion c;

        buf_add(out, format, (size_t)(percent - format));
        if (!*percent)
            break;
        next = parse_conversion(percent + 1, &c, &a);
        if (!next)
            return -1;
        if (c.letter == '%') {
            buf_add(out, "%", 1);
        } else if (!c.letter || !strchr("diuxXocspfFeEgGaA", c.letter)) {
            buf_add(out, percent, (size_t)(next - percent));
        } else {
            if (!write_conversion(out, &c, &a))
                return -1;
            count++;
        }
        format = next;
    }
    return count;
}
