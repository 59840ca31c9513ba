/* JSON output into a buf; always valid UTF-8 and valid JSON, whatever the values are. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/digits.h"
#include "base/utf8.h"
#include "http/json/json.h"

#define REPLACEMENT_CHARACTER "\xef\xbf\xbd"

void json_writer_init(struct json_writer *w, struct buf *out)
{
    *w = (struct json_writer){.out = out};
}

/* Eight bytes at once: a bit for each that is below 0x20, 0x7f or above, a quote or a backslash. A carry may mark one more behind such a one. */
static uint64_t special_bytes(uint64_t eight)
{
    const uint64_t ones = UINT64_MAX / 255, tops = ones << 7;
    const uint64_t quotes = eight ^ '"' * ones, backslashes = eight ^ '\\' * ones;

    return ((eight - 0x20 * ones) | (eight + ones) | eight | (quotes - ones) | (backslashes - ones)) & tops;
}

static uint64_t eight_at(const char *at)
{
    uint64_t eight;

    memcpy(&eight, at, sizeof eight);
    return eight;
}

/* One to seven bytes, and others of them again to make eight. */
static uint64_t few_at(const char *at, size_t bytes)
{
    const uint64_t      zeros = UINT64_MAX / 255 * '0';
    const unsigned char begin = (unsigned char)at[0], middle = (unsigned char)at[bytes / 2], end = (unsigned char)at[bytes - 1];
    uint32_t            first, last;

    if (bytes < sizeof first)
        return zeros << 24 | (uint64_t)begin << 16 | (uint64_t)middle << 8 | end;
    memcpy(&first, at, sizeof first);
    memcpy(&last, at + bytes - sizeof last, sizeof last);
    return (uint64_t)first << 32 | last;
}

/* Needs no escaping in a JSON string. What is left of eights is looked at as the last eight, not byte by byte: most names and values are
 * shorter than two of them. */
static bool is_plain(struct span s)
{
    size_t n = 0;

    for (; s.bytes - n >= sizeof(uint64_t); n += sizeof(uint64_t))
        if (special_bytes(eight_at(s.data + n)))
            return false;
    if (n == s.bytes)
        return true;
    return !special_bytes(n ? eight_at(s.data + s.bytes - sizeof(uint64_t)) : few_at(s.data, s.bytes));
}

/* Length of the prefix that needs none. */
static size_t plain_bytes(struct span s)
{
    size_t n = 0;

    while (s.bytes - n >= sizeof(uint64_t) && !special_bytes(eight_at(s.data + n)))
        n += sizeof(uint64_t);
    while (n < s.bytes && (unsigned char)s.data[n] >= 0x20 && (unsigned char)s.data[n] < 0x7f && s.data[n] != '"' && s.data[n] != '\\')
        n++;
    return n;
}

static void put_escaped(struct buf *out, unsigned char c)
{
    static const char named[] = "\b\f\n\r\t\"\\";
    const char       *at = c ? strchr(named, c) : NULL;

    if (at)
        buf_printf(out, "\\%c", "bfnrt\"\\"[at - named]);
    else
        buf_printf(out, "\\u%04x", c);
}

static char *put_byte(char *at, char c)
{
    *at = c;
    return at + (c != '\0');
}

/* Fast path of most strings: appends all of it, or nothing. '\0': nothing stands before or behind it. */
static bool put_plain(struct buf *out, char before, struct span s, char behind)
{
    char *from = is_plain(s) ? buf_reserve(out, s.bytes + 2 + (before != '\0') + (behind != '\0')) : NULL;
    char *at = from;

    if (!at)
        return false;
    at = put_byte(put_byte(at, before), '"');
    if (s.bytes)
        memcpy(at, s.data, s.bytes);
    at = put_byte(put_byte(at + s.bytes, '"'), behind);
    buf_grew(out, (size_t)(at - from));
    return true;
}

static void put_string(struct buf *out, char before, struct span s, char behind)
{
    if (put_plain(out, before, s, behind))
        return;
    buf_add(out, &before, before != '\0');
    buf_add_text(out, "\"");
    while (s.bytes && !out->failed) {
        size_t n = plain_bytes(s);

        buf_add(out, s.data, n);
        s = span_from(s, n);
        if (!s.bytes)
            break;
        n = utf8_char_bytes(s);
        if (n == 1)
            put_escaped(out, (unsigned char)s.data[0]);
        else if (n)
            buf_add(out, s.data, n);
        else
            buf_add_text(out, REPLACEMENT_CHARACTER);
        s = span_from(s, n ? n : 1);
    }
    buf_add_text(out, "\"");
    buf_add(out, &behind, behind != '\0');
}

/* Writes the comma and name before a value. */
static void start_value(struct json_writer *w, const char *name)
{
    if (name)
        put_string(w->out, w->comma ? ',' : '\0', span_of(name), ':');
    else if (w->comma)
        buf_add(w->out, ",", 1);
    w->comma = true;
}

static void open_level(struct json_writer *w, const char *name, const char *bracket)
{
    start_value(w, name);
    buf_add_text(w->out, bracket);
    w->comma = false;
    w->depth++;
}

static void close_level(struct json_writer *w, const char *bracket)
{
    buf_add_text(w->out, bracket);
    w->comma = true;
    w->depth--;
}

void json_open_object(struct json_writer *w, const char *name)
{
    open_level(w, name, "{");
}

void json_open_array(struct json_writer *w, const char *name)
{
    open_level(w, name, "[");
}

void json_close_object(struct json_writer *w)
{
    close_level(w, "}");
}

void json_close_array(struct json_writer *w)
{
    close_level(w, "]");
}

void json_add_u64(struct json_writer *w, const char *name, uint64_t value)
{
    start_value(w, name);
    buf_add_u64(w->out, value);
}

void json_add_exact(struct json_writer *w, const char *name, uint64_t value)
{
    char text[24];

    if (value <= JSON_INTEGER_MAX) {
        json_add_u64(w, name, value);
        return;
    }
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    json_add_text(w, name, text);
}

void json_add_i64(struct json_writer *w, const char *name, int64_t value)
{
    start_value(w, name);
    buf_printf(w->out, "%" PRId64, value);
}

/* Fast path for times in microseconds or milliseconds: up to 12 digits, three of them after the point. Prints the same as "%.15g". */
static bool put_thousandths(struct buf *out, double value)
{
    double   scaled = value * 1000;
    uint64_t n = scaled >= 0 && scaled < 1e12 ? (uint64_t)(scaled + 0.5) : 0;
    char     digits[4] = {'.'};
    size_t   kept = sizeof digits;

    if ((double)n / 1000 != value || signbit(value))
        return false;
    digits_put(digits + 1, 3, n);
    buf_add_u64(out, n / 1000);
    while (kept > 1 && digits[kept - 1] == '0')
        kept--;
    buf_add(out, digits, kept > 1 ? kept : 0);
    return true;
}

void json_add_double(struct json_writer *w, const char *name, double value)
{
    char text[40];

    start_value(w, name);
    if (!isfinite(value)) {
        buf_add_text(w->out, "null");
        return;
    }
    if (put_thousandths(w->out, value))
        return;
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    buf_add_text(w->out, text);
}

void json_add_bool(struct json_writer *w, const char *name, bool value)
{
    start_value(w, name);
    buf_add_text(w->out, value ? "true" : "false");
}

void json_add_null(struct json_writer *w, const char *name)
{
    start_value(w, name);
    buf_add_text(w->out, "null");
}

void json_add_u64_or_null(struct json_writer *w, const char *name, uint64_t value)
{
    if (value <= JSON_INTEGER_MAX)
        json_add_u64(w, name, value);
    else
        json_add_null(w, name);
}

void json_add_string(struct json_writer *w, const char *name, struct span value)
{
    start_value(w, name);
    put_string(w->out, '\0', value, '\0');
}

void json_add_text(struct json_writer *w, const char *name, const char *value)
{
    json_add_string(w, name, span_of(value));
}

void json_add_text_or_null(struct json_writer *w, const char *name, const char *value)
{
    if (value && *value)
        json_add_text(w, name, value);
    else
        json_add_null(w, name);
}

void json_add_time(struct json_writer *w, const char *name, uint64_t wall_ns_since_1970)
{
    char text[TIME_TEXT_BYTES];

    if (wall_ns_since_1970)
        json_add_string(w, name, time_text(wall_ns_since_1970, text));
    else
        json_add_null(w, name);
}

void json_add_base64(struct json_writer *w, const char *name, struct span bytes)
{
    start_value(w, name);
    buf_add_text(w->out, "\"");
    base64_add(w->out, bytes);
    buf_add_text(w->out, "\"");
}

void json_add_raw(struct json_writer *w, const char *name, struct span text)
{
    start_value(w, name);
    buf_add_span(w->out, text);
}
