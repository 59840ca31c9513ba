/* The strict JSON scanner: one pass over the bytes; its stack of open brackets is one bit per level. */
#include "http/json/scan.h"
#include "base/utf8.h"
#include "http/bounds.h"

#include "limits.h"

struct scan {
    size_t                  values_max;
    struct span             text;
    size_t                  at;
    unsigned                depth;
    size_t                  values;
    uint64_t                objects; /* bit n: the bracket open at level n + 1 is '{' */
    struct json_scan_error *error;
};

static_assert(JSON_DEPTH_MAX <= 64, "one bit per level");

static bool fail_at(struct scan *s, size_t offset, const char *reason)
{
    *s->error = (struct json_scan_error){offset, reason};
    return false;
}

static bool fail_scan(struct scan *s, const char *reason)
{
    return fail_at(s, s->at, reason);
}

/* -1 at the end of the text. */
static int peek(const struct scan *s)
{
    return s->at < s->text.bytes ? (unsigned char)s->text.data[s->at] : -1;
}

static bool take_char(struct scan *s, char c)
{
    if (peek(s) != c)
        return false;
    s->at++;
    return true;
}

static void skip_blanks(struct scan *s)
{
    while (peek(s) == ' ' || peek(s) == '\t' || peek(s) == '\n' || peek(s) == '\r')
        s->at++;
}

static bool scan_hex4(struct scan *s, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int c = peek(s), digit = c < 0 ? -1 : hex_digit((char)c);
        if (digit < 0)
            return fail_scan(s, "\\u needs four hexadecimal digits");
        *out = *out << 4 | (unsigned)digit;
        s->at++;
    }
    return true;
}

/* Starts after "\u". */
static bool scan_unicode_escape(struct scan *s)
{
    size_t   start = s->at - 2;
    unsigned unit;

    if (!scan_hex4(s, &unit))
        return false;
    if (unit == 0)
        return fail_at(s, start, "\\u0000 is not accepted");
    if (unit >= 0xdc00 && unit <= 0xdfff)
        return fail_at(s, start, "low surrogate without a high one");
    if (unit < 0xd800 || unit > 0xdbff)
        return true;
    if (!take_char(s, '\\') || !take_char(s, 'u'))
        return fail_at(s, start, "high surrogate without a low one");
    if (!scan_hex4(s, &unit))
        return false;
    return (unit >= 0xdc00 && unit <= 0xdfff) || fail_at(s, start, "high surrogate without a low one");
}

/* Starts after the backslash. */
static bool scan_escape(struct scan *s)
{
    int c = peek(s);

    if (c < 0)
        return fail_scan(s, "text ends inside a string");
    if (c == 0 || !strchr("\"\\/bfnrtu", c))
        return fail_scan(s, "unknown escape in a string");
    s->at++;
    return c != 'u' || scan_unicode_escape(s);
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Starts after the opening quote. */
static bool scan_string(struct scan *s)
{
    for (;;) {
        int    c;
        size_t n;

        while (s->at < s->text.bytes && is_plain((unsigned char)s->text.data[s->at]))
            s->at++;
        c = peek(s);

        if (c < 0)
            return fail_scan(s, "text ends inside a string");
        if (c == '"') {
            s->at++;
            return true;
        }
        if (c < 0x20)
            return fail_scan(s, "control character in a string");
        if (c == '\\') {
            s->at++;
            if (!scan_escape(s))
                return false;
            continue;
        }
        n = utf8_char_bytes(span_from(s->text, s->at));
        if (n == 0)
            return fail_scan(s, "invalid UTF-8");
        s->at += n;
    }
}

static bool scan_digits(struct scan *s)
{
    size_t start = s->at;

    while (peek(s) >= '0' && peek(s) <= '9')
        s->at++;
    return s->at > start || fail_scan(s, "a number lacks a digit");
}

static bool scan_number(struct scan *s)
{
    size_t start = s->at;

    take_char(s, '-');
    if (!take_char(s, '0') && !scan_digits(s))
        return false;
    if (take_char(s, '.') && !scan_digits(s))
        return false;
    if (take_char(s, 'e') || take_char(s, 'E')) {
        if (!take_char(s, '+'))
            take_char(s, '-');
        if (!scan_digits(s))
            return false;
    }
    if (peek(s) >= '0' && peek(s) <= '9')
        return fail_scan(s, "a number has a leading zero");
    return s->at - start <= JSON_NUMBER_CHARS_MAX || fail_at(s, start, "a number is too long");
}

static bool scan_word(struct scan *s, const char *word)
{
    if (!span_starts(span_from(s->text, s->at), word))
        return fail_scan(s, "expected a value");
    s->at += strlen(word);
    return true;
}

static bool in_object(const struct scan *s)
{
    return s->depth > 0 && (s->objects >> (s->depth - 1) & 1);
}

static bool open_level(struct scan *s, bool object)
{
    if (s->depth == JSON_DEPTH_MAX)
        return fail_scan(s, "nested too deeply");
    s->objects = (s->objects & ~(1ull << s->depth)) | (uint64_t)object << s->depth;
    s->depth++;
    s->at++;
    return true;
}

static bool scan_name(struct scan *s)
{
    skip_blanks(s);
    if (!take_char(s, '"'))
        return fail_scan(s, "expected a name in quotes");
    if (!scan_string(s))
        return false;
    skip_blanks(s);
    return take_char(s, ':') || fail_scan(s, "expected a colon");
}

/* One value, or the opening of an array or object: then *opened is set and a first element or name may follow. */
static bool scan_value_start(struct scan *s, bool *opened)
{
    int c;

    *opened = false;
    skip_blanks(s);
    c = peek(s);
    if (++s->values > s->values_max)
        return fail_scan(s, "too many values");
    if (c == '{' || c == '[') {
        *opened = true;
        return open_level(s, c == '{');
    }
    if (c == '"') {
        s->at++;
        return scan_string(s);
    }
    if (c == '-' || (c >= '0' && c <= '9'))
        return scan_number(s);
    return scan_word(s, c == 't' ? "true" : c == 'f' ? "false" : "null");
}

/* Closes as many levels as end here; sets *more when a comma announces another element or member. */
static bool scan_after_value(struct scan *s, bool *more)
{
    *more = false;
    while (s->depth) {
        skip_blanks(s);
        if (take_char(s, ',')) {
            *more = true;
            return true;
        }
        if (!take_char(s, in_object(s) ? '}' : ']'))
            return fail_scan(s, peek(s) < 0 ? "unexpected end of text" : "expected a comma or closing bracket");
        s->depth--;
    }
    return true;
}

/* Right after an opening bracket: sets *empty when it closes at once. */
static void close_if_empty(struct scan *s, bool *empty)
{
    skip_blanks(s);
    *empty = take_char(s, in_object(s) ? '}' : ']');
    if (*empty)
        s->depth--;
}

static bool scan_all(struct scan *s)
{
    bool more = true, opened;

    while (more) {
        if (in_object(s) && !scan_name(s))
            return false;
        if (!scan_value_start(s, &opened))
            return false;
        if (opened) {
            bool empty;
            close_if_empty(s, &empty);
            if (!empty)
                continue;
        }
        if (!scan_after_value(s, &more))
            return false;
    }
    skip_blanks(s);
    return peek(s) < 0 || fail_scan(s, "unexpected text after the value");
}

bool json_scan(struct span text, size_t values_max, size_t *values, struct json_scan_error *error)
{
    struct scan s = {.values_max = values_max, .text = text, .error = error};
    bool        ok = scan_all(&s);

    *values = s.values;
    return ok;
}
