/* The two formats of a line: key=value, with quoted values if needed, and JSON. */
#include "base/log/log_lines.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/digits.h"

enum { LOG_LINE_TAIL_BYTES = 3 }; /* a closing quotation mark, a closing brace, the line feed */

static void add_byte(struct log_line *l, char c)
{
    if (l->bytes < sizeof l->text - LOG_LINE_TAIL_BYTES)
        l->text[l->bytes++] = c;
}

static void add_span(struct log_line *l, struct span text)
{
    for (size_t i = 0; i < text.bytes; i++)
        add_byte(l, text.data[i]);
}

static void add_text(struct log_line *l, const char *text)
{
    add_span(l, span_of(text));
}

/* Replaces bytes that are not printable ASCII by '?', so that any value gives one line of valid JSON. */
static void add_quoted(struct log_line *l, struct span value)
{
    add_byte(l, '"');
    for (size_t i = 0; i < value.bytes && l->bytes + 1 < sizeof l->text - LOG_LINE_TAIL_BYTES; i++) {
        char c = value.data[i];
        if (c == '"' || c == '\\')
            add_byte(l, '\\');
        add_byte(l, c < 0x20 || c > 0x7e ? '?' : c);
    }
    if (l->bytes < sizeof l->text)
        l->text[l->bytes++] = '"';
}

static bool is_plain(struct span value)
{
    for (size_t i = 0; i < value.bytes; i++) {
        char c = value.data[i];
        if (c <= 0x20 || c > 0x7e || c == '"' || c == '=' || c == '\\')
            return false;
    }
    return value.bytes > 0;
}

/* False: no room for a key and a value. */
static bool add_key(struct log_line *l, const char *key)
{
    if (l->bytes + strlen(key) + 8 > sizeof l->text - LOG_LINE_TAIL_BYTES)
        return false;
    if (l->format == LOG_FORMAT_TEXT) {
        if (l->bytes)
            add_byte(l, ' ');
        add_text(l, key);
        add_byte(l, '=');
        return true;
    }
    if (l->bytes > 1)
        add_byte(l, ',');
    add_byte(l, '"');
    add_text(l, key);
    add_text(l, "\":");
    return true;
}

void log_line_begin(struct log_line *l, enum log_format format)
{
    l->format = format;
    l->bytes = 0;
    if (format == LOG_FORMAT_JSON)
        add_byte(l, '{');
}

void log_line_text(struct log_line *l, const char *key, struct span value)
{
    if (!add_key(l, key))
        return;
    if (l->format == LOG_FORMAT_JSON || !is_plain(value))
        add_quoted(l, value);
    else
        add_span(l, value);
}

void log_line_number(struct log_line *l, const char *key, double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.12g", isfinite(value) ? value : 0.0);
    if (l->bytes + strlen(text) + 8 < sizeof l->text - LOG_LINE_TAIL_BYTES && add_key(l, key))
        add_text(l, text);
}

void log_line_count(struct log_line *l, const char *key, uint64_t value)
{
    char room[DIGITS_MAX];

    if (add_key(l, key))
        add_span(l, digits_of(value, 10, room));
}

void log_line_end(struct log_line *l)
{
    if (l->format == LOG_FORMAT_JSON)
        l->text[l->bytes++] = '}';
    l->text[l->bytes++] = '\n';
}

static const char WIRE_MARK[] = "gpurest-log ";

void log_line_wire(struct log_line *l, enum log_level level, enum log_category category, const char *message)
{
    log_line_begin(l, LOG_FORMAT_RELAY);
    add_text(l, WIRE_MARK);
    add_text(l, log_level_name(level));
    add_byte(l, ' ');
    add_text(l, log_category_name(category));
    add_byte(l, ' ');
    for (; *message; message++)
        add_byte(l, *message == '\n' ? ' ' : *message);
    log_line_end(l);
}

bool log_line_unwire(struct span line, enum log_level *level, enum log_category *category, struct span *message)
{
    if (!span_starts(line, WIRE_MARK))
        return false;
    *message = span_from(line, sizeof WIRE_MARK - 1);
    return log_level_parse(span_cut(message, ' '), level) && log_category_parse(span_cut(message, ' '), category);
}
