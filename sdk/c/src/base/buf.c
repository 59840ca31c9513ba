/* Byte buffers, and JSON text in them. */
#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_MIN = 256, NUMBER_BYTES = 40, INTEGER_BYTES = 24 };

static const uint64_t JSON_INTEGER_MAX = 1ull << 53;

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_finish(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.max = b->max};
}

void buf_clear(struct buf *b)
{
    b->bytes = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

/* Room for `bytes` more and a NUL. */
static bool grow_buf(struct buf *b, size_t bytes)
{
    size_t want, room = b->room ? b->room : ROOM_MIN;
    char  *data;

    if (b->failed || bytes > b->max || b->bytes > b->max - bytes || b->max == SIZE_MAX) {
        b->failed = true;
        return false;
    }
    want = b->bytes + bytes + 1;
    if (want <= b->room)
        return true;
    while (room < want)
        room = room > SIZE_MAX / 2 ? want : room * 2;
    data = realloc(b->data, room);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->room = room;
    return true;
}

char *buf_reserve(struct buf *b, size_t bytes)
{
    return grow_buf(b, bytes) ? b->data + b->bytes : NULL;
}

void buf_added(struct buf *b, size_t bytes)
{
    b->bytes += bytes;
    b->data[b->bytes] = '\0';
}

bool buf_add(struct buf *b, const void *data, size_t bytes)
{
    if (!grow_buf(b, bytes))
        return false;
    if (bytes)
        memcpy(b->data + b->bytes, data, bytes);
    buf_added(b, bytes);
    return true;
}

bool buf_add_text(struct buf *b, const char *text)
{
    return buf_add(b, text, strlen(text));
}

bool buf_printf(struct buf *b, const char *format, ...)
{
    va_list arguments, again;
    int     n;

    va_start(arguments, format);
    va_copy(again, arguments);
    n = vsnprintf(NULL, 0, format, arguments);
    if (n >= 0 && grow_buf(b, (size_t)n)) {
        vsnprintf(b->data + b->bytes, (size_t)n + 1, format, again);
        b->bytes += (size_t)n;
    } else {
        b->failed = true;
    }
    va_end(again);
    va_end(arguments);
    return !b->failed;
}

const char *buf_text(const struct buf *b)
{
    return b->data ? b->data : "";
}

char *buf_take(struct buf *b)
{
    char *data = b->data ? b->data : calloc(1, 1);

    *b = (struct buf){.max = b->max};
    return data;
}

/* The digits stand before `end`; returns the first. */
static char *put_digits(char *end, uint64_t value)
{
    do
        *--end = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    return end;
}

bool buf_add_u64(struct buf *b, uint64_t value)
{
    char text[INTEGER_BYTES], *end = text + sizeof text, *at = put_digits(end, value);

    return buf_add(b, at, (size_t)(end - at));
}

static void put_base64(char *to, const unsigned char *p, size_t left)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t          bits = (uint32_t)p[0] << 16 | (left > 1 ? (uint32_t)p[1] << 8 : 0) | (left > 2 ? p[2] : 0);

    to[0] = digits[bits >> 18];
    to[1] = digits[bits >> 12 & 63];
    to[2] = left > 1 ? digits[bits >> 6 & 63] : '=';
    to[3] = left > 2 ? digits[bits & 63] : '=';
}

bool buf_add_base64(struct buf *b, const void *data, size_t bytes)
{
    size_t all = bytes / 3 * 4 + (bytes % 3 ? 4 : 0); /* cannot overflow: they are in memory */
    char  *to = bytes <= b->max ? buf_reserve(b, all) : NULL;

    if (!to) {
        b->failed = true;
        return false;
    }
    for (size_t i = 0; i < bytes; i += 3, to += 4)
        put_base64(to, (const unsigned char *)data + i, bytes - i);
    buf_added(b, all);
    return true;
}

/* ---- JSON ---- */

static bool needs_escape(unsigned char c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

static void add_slowly(struct buf *b, const char *text, size_t bytes)
{
    size_t from = 0;

    buf_add(b, "\"", 1);
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!needs_escape(c))
            continue;
        buf_add(b, text + from, i - from);
        buf_printf(b, "\\u%04x", c);
        from = i + 1;
    }
    buf_add(b, text + from, bytes - from);
    buf_add(b, "\"", 1);
}

/* A comma if one is due, the text in quotes, and `behind` unless it is NUL: most texts need no escape and are one piece. */
static void add_quoted(struct buf *b, bool comma, const char *text, size_t bytes, char behind)
{
    size_t plain = 0, all = (size_t)comma + bytes + 2 + (behind != '\0');
    char  *to;

    while (plain < bytes && !needs_escape((unsigned char)text[plain]))
        plain++;
    if (plain < bytes) {
        buf_add(b, ",", comma);
        add_slowly(b, text, bytes);
        buf_add(b, &behind, behind != '\0');
        return;
    }
    to = buf_reserve(b, all);
    if (!to)
        return;
    if (comma)
        *to++ = ',';
    *to++ = '"';
    if (bytes)
        memcpy(to, text, bytes);
    to[bytes] = '"';
    if (behind)
        to[bytes + 1] = behind;
    buf_added(b, all);
}

static bool comma_is_due(const struct buf *b)
{
    char before = b->bytes ? b->data[b->bytes - 1] : '{';

    return before != '{' && before != '[' && before != ':';
}

static void begin_member(struct buf *b, const char *name)
{
    if (name)
        add_quoted(b, comma_is_due(b), name, strlen(name), ':');
    else if (comma_is_due(b))
        buf_add(b, ",", 1);
}

void json_open(struct buf *b, const char *name, char bracket)
{
    begin_member(b, name);
    buf_add(b, &bracket, 1);
}

void json_close(struct buf *b, char bracket)
{
    buf_add(b, &bracket, 1);
}

void json_string_n(struct buf *b, const char *name, const char *text, size_t bytes)
{
    begin_member(b, name);
    add_quoted(b, false, text, bytes, '\0');
}

void json_string(struct buf *b, const char *name, const char *text)
{
    json_string_n(b, name, text, strlen(text));
}

/* By hand, and texts in one piece: a launch of the CUDA shim took 17,500 instructions of its program with vsnprintf() and a piece for each
 * comma and quote, and takes 6,000 so (valgrind, 2026-11-28). */
static void add_integer(struct buf *b, const char *name, uint64_t magnitude, bool negative)
{
    char text[INTEGER_BYTES], *end = text + sizeof text, *at = end;
    bool quoted = magnitude > JSON_INTEGER_MAX;

    if (quoted)
        *--at = '"';
    at = put_digits(at, magnitude);
    if (negative)
        *--at = '-';
    if (quoted)
        *--at = '"';
    begin_member(b, name);
    buf_add(b, at, (size_t)(end - at));
}

static_assert(INTEGER_BYTES >= 20 + 1 + 2, "the longest magnitude, its sign and quotes");

void json_u64(struct buf *b, const char *name, uint64_t value)
{
    add_integer(b, name, value, false);
}

void json_i64(struct buf *b, const char *name, int64_t value)
{
    add_integer(b, name, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

void json_bool(struct buf *b, const char *name, bool value)
{
    begin_member(b, name);
    buf_add_text(b, value ? "true" : "false");
}

/* Replaces the locale's decimal point. */
static void add_number(struct buf *b, const char *name, double value, int digits)
{
    char text[NUMBER_BYTES];

    begin_member(b, name);
    snprintf(text, sizeof text, "%.*g", digits, value);
    for (char *p = text; *p; p++)
        if (!strchr("+-0123456789eE", *p))
            *p = '.';
    buf_add_text(b, text);
}

void json_f64(struct buf *b, const char *name, double value)
{
    add_number(b, name, value, 17);
}

void json_f32(struct buf *b, const char *name, float value)
{
    add_number(b, name, (double)value, 9);
}

void json_base64(struct buf *b, const char *name, const void *data, size_t bytes)
{
    begin_member(b, name);
    buf_add(b, "\"", 1);
    buf_add_base64(b, data, bytes);
    buf_add(b, "\"", 1);
}
