/* Parsed JSON. The strict scanner checks the text; then one pass makes the values of a copy of it, in which strings and names stay where they
 * stand. A document is one allocation: its values, whose number the scanner knows, and the copy. With cJSON behind the scanner a launch of a
 * batch took 21,100 instructions here, of 33,000 of the front-end, so it takes 6,400 (valgrind); of 1,000 empty launches what is not the
 * operations took 0.9 us each, so 0.6 (load 12, five runs in turns, 2026-11-28). */
#include "http/json/json.h"
#include "http/bounds.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "http/json/number.h"
#include "http/json/scan.h"
#include "limits.h"

enum {
    FEW_MEMBERS = 16,  /* up to this many members comparing all pairs is faster than sorting */
    PLAIN_DIGITS = 15, /* all numbers of so many are below 2^53 */
};

struct json {
    unsigned char type;       /* enum json_type */
    bool          truth;      /* BOOL */
    bool          is_integer; /* NUMBER: of at most 2^53 in magnitude */
    uint32_t      name_bytes;
    uint32_t      count; /* STRING: bytes; ARRAY, OBJECT: elements or members */
    const char   *name;  /* NULL: no member. As strings: NUL-terminated */
    union {
        const char  *text;
        double       number;
        struct json *first;
    };
    struct json *next;
};

struct json_document {
    struct json *root;
    struct json  values[]; /* in the order of the text, which is behind them */
};

/* ---- names ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum status refuse_twice(const char *name, struct problem *why)
{
    return problem_set(why, STATUS_INVALID_JSON, "duplicate name \"%.100s\" in an object", name);
}

static bool same_name(const struct json *a, const struct json *b)
{
    return a->name_bytes == b->name_bytes && a->name[0] == b->name[0] && memcmp(a->name, b->name, a->name_bytes) == 0;
}

static enum status check_few(const struct json *object, struct problem *why)
{
    for (const struct json *m = object->first; m; m = m->next)
        for (const struct json *later = m->next; later; later = later->next)
            if (same_name(m, later))
                return refuse_twice(m->name, why);
    return STATUS_OK;
}

static enum status check_many(const struct json *object, struct problem *why)
{
    const char **names = calloc(object->count, sizeof *names);
    enum status  st = STATUS_OK;
    size_t       n = 0;

    if (!names)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory to check the JSON text");
    for (const struct json *m = object->first; m; m = m->next)
        names[n++] = m->name;
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 1; i < n && !st; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            st = refuse_twice(names[i], why);
    free(names);
    return st;
}

/* Compares decoded names: "a" and "\u0061" are the same. */
static enum status check_unique(const struct json *object, struct problem *why)
{
    return object->count <= FEW_MEMBERS ? check_few(object, why) : check_many(object, why);
}

/* ---- making values; the scanner has accepted the text ---- */

struct making {
    char           *at;    /* in the copy, which ends with a NUL */
    struct json    *value; /* the next one */
    struct json    *open[JSON_DEPTH_MAX];
    struct json   **tail[JSON_DEPTH_MAX]; /* where the next element of the same level goes */
    unsigned        depth;
    struct problem *why;
};

static void skip_blanks(struct making *m)
{
    while (*m->at == ' ' || *m->at == '\t' || *m->at == '\n' || *m->at == '\r')
        m->at++;
}

static unsigned take_hex4(const char *at)
{
    unsigned unit = 0;

    for (int i = 0; i < 4; i++)
        unit = unit << 4 | (unsigned)hex_digit(at[i]);
    return unit;
}

static char *put_utf8(char *to, unsigned c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (c & 0x3f));
    return to;
}

/* *from stands behind "\u". What it stands for is shorter than the escape. */
static char *put_escaped_unit(char *to, char **from)
{
    unsigned unit = take_hex4(*from);

    *from += 4;
    if (unit >= 0xd800 && unit <= 0xdbff) {
        unit = 0x10000 + ((unit - 0xd800) << 10 | (take_hex4(*from + 2) - 0xdc00));
        *from += 6;
    }
    return put_utf8(to, unit);
}

/* From the first backslash to the closing quote; the end of what it stands for. */
static char *unescape(char *to, char **from)
{
    static const char letters[] = "bfnrt", controls[] = "\b\f\n\r\t";

    while (**from != '"') {
        char        c = *(*from)++;
        const char *letter;

        if (c != '\\') {
            *to++ = c;
            continue;
        }
        c = *(*from)++;
        letter = strchr(letters, c);
        if (c == 'u')
            to = put_escaped_unit(to, from);
        else
            *to++ = letter ? controls[letter - letters] : c;
    }
    return to;
}

/* Behind the opening quote; leaves m->at behind the closing one, which becomes a NUL where nothing was shortened. */
static const char *take_string(struct making *m, uint32_t *bytes)
{
    char *from = m->at, *end = from;

    while (*end != '"' && *end != '\\')
        end++;
    m->at = end;
    if (*end == '\\')
        end = unescape(end, &m->at);
    m->at++;
    *end = '\0';
    *bytes = (uint32_t)(end - from);
    return from;
}

/* A whole number of few digits, as most are: strtod() takes as long as the rest of a value. */
static bool take_plain_number(struct making *m, double *out)
{
    const bool negative = *m->at == '-';
    char      *from = m->at + negative, *at = from;
    int64_t    value = 0;

    while (is_digit(*at) && at - from < PLAIN_DIGITS)
        value = value * 10 + (*at++ - '0');
    if (is_digit(*at) || *at == '.' || *at == 'e' || *at == 'E')
        return false;
    m->at = at;
    *out = negative ? -(double)value : (double)value;
    return true;
}

/* The service has the locale "C", whose decimal point is JSON's. */
static enum status take_number(struct making *m, struct json *v)
{
    char *end;

    v->type = JSON_NUMBER;
    v->is_integer = take_plain_number(m, &v->number);
    if (v->is_integer)
        return STATUS_OK;
    v->number = strtod(m->at, &end);
    if (!isfinite(v->number))
        return problem_set(m->why, STATUS_INVALID_JSON, "a number is too large");
    v->is_integer = json_number_is_integer((struct span){m->at, (size_t)(end - m->at)});
    m->at = end;
    return STATUS_OK;
}

static void take_word(struct making *m, struct json *v)
{
    v->type = *m->at == 'n' ? JSON_NULL : JSON_BOOL;
    v->truth = *m->at == 't';
    m->at += *m->at == 'f' ? strlen("false") : strlen("true"); /* "null" is as long */
}

static void open_level(struct making *m, struct json *v)
{
    assert(m->depth < JSON_DEPTH_MAX);
    v->type = *m->at++ == '{' ? JSON_OBJECT : JSON_ARRAY;
    v->first = NULL;
    m->open[m->depth] = v;
    m->tail[m->depth++] = &v->first;
}

/* A value without what is in it, and its name in an object. */
static enum status take_value(struct making *m)
{
    struct json *v = m->value++;
    bool         named = m->depth && m->open[m->depth - 1]->type == JSON_OBJECT;

    *v = (struct json){.next = NULL};
    skip_blanks(m);
    if (named) {
        m->at++;
        v->name = take_string(m, &v->name_bytes);
        skip_blanks(m);
        m->at++;
        skip_blanks(m);
    }
    if (m->depth) {
        *m->tail[m->depth - 1] = v;
        m->tail[m->depth - 1] = &v->next;
        m->open[m->depth - 1]->count++;
    }
    if (*m->at == '{' || *m->at == '[') {
        open_level(m, v);
    } else if (*m->at == '"') {
        m->at++;
        v->type = JSON_STRING;
        v->text = take_string(m, &v->count);
    } else if (*m->at == '-' || is_digit(*m->at)) {
        return take_number(m, v);
    } else {
        take_word(m, v);
    }
    return STATUS_OK;
}

/* Closes the levels that end here. */
static enum status close_levels(struct making *m)
{
    enum status st = STATUS_OK;

    while (m->depth && !st) {
        const struct json *v = m->open[m->depth - 1];

        skip_blanks(m);
        if (*m->at != '}' && *m->at != ']')
            break;
        m->at++;
        m->depth--;
        if (v->type == JSON_OBJECT)
            st = check_unique(v, m->why);
    }
    return st;
}

static enum status make_values(struct json *values, size_t count, char *text, struct problem *why)
{
    struct making m = {.at = text, .value = values, .why = why};
    enum status   st;

    do {
        st = take_value(&m);
        if (!st)
            st = close_levels(&m);
        if (!st && *m.at == ',')
            m.at++;
    } while (!st && m.depth);
    assert(st || m.value == values + count);
    return st;
}

enum status json_parse(struct span text, struct json_document **out, struct problem *why)
{
    return json_parse_up_to(text, JSON_VALUES_MAX, out, why);
}

enum status json_parse_up_to(struct span text, size_t values_max, struct json_document **out, struct problem *why)
{
    struct json_scan_error error;
    struct json_document  *d;
    size_t                 values;
    char                  *copy;
    enum status            st;

    if (!json_scan(text, values_max, &values, &error))
        return problem_set(why, STATUS_INVALID_JSON, "at byte %zu: %s", error.offset, error.reason);
    d = text.bytes < UINT32_MAX ? malloc(sizeof *d + values * sizeof *d->values + text.bytes + 1) : NULL;
    if (!d)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the JSON text");
    d->root = d->values;
    copy = memcpy(d->values + values, text.data, text.bytes);
    copy[text.bytes] = '\0';
    st = make_values(d->values, values, copy, why);
    if (st) {
        json_document_destroy(d);
        return st;
    }
    *out = d;
    return STATUS_OK;
}

void json_document_destroy(struct json_document *d)
{
    free(d);
}

const struct json *json_root(const struct json_document *d)
{
    return d ? d->root : NULL;
}

/* ---- reading ---- */

enum json_type json_type_of(const struct json *v)
{
    return v ? (enum json_type)v->type : JSON_ABSENT;
}

const struct json *json_member(const struct json *object, const char *name)
{
    const struct json *m = json_type_of(object) == JSON_OBJECT ? object->first : NULL;

    while (m && (m->name[0] != name[0] || strcmp(m->name, name) != 0))
        m = m->next;
    return m;
}

const struct json *json_first(const struct json *v)
{
    enum json_type type = json_type_of(v);

    return type == JSON_ARRAY || type == JSON_OBJECT ? v->first : NULL;
}

const struct json *json_next(const struct json *element)
{
    return element ? element->next : NULL;
}

size_t json_count(const struct json *v)
{
    enum json_type type = json_type_of(v);

    return type == JSON_ARRAY || type == JSON_OBJECT ? v->count : 0;
}

struct span json_name(const struct json *member)
{
    return member && member->name ? (struct span){member->name, member->name_bytes} : (struct span){NULL, 0};
}

struct span json_text(const struct json *v)
{
    return json_type_of(v) == JSON_STRING ? (struct span){v->text, v->count} : (struct span){NULL, 0};
}

bool json_bool(const struct json *v)
{
    return json_type_of(v) == JSON_BOOL && v->truth;
}

double json_double(const struct json *v)
{
    return json_type_of(v) == JSON_NUMBER ? v->number : 0;
}

static bool exact_integer(const struct json *v)
{
    return json_type_of(v) == JSON_NUMBER && v->is_integer;
}

bool json_u64(const struct json *v, uint64_t *out)
{
    double value = json_double(v);

    if (json_type_of(v) == JSON_STRING)
        return span_u64(json_text(v), out);
    if (!exact_integer(v) || value < 0)
        return false;
    *out = (uint64_t)value;
    return true;
}

static bool text_i64(struct span text, int64_t *out)
{
    bool     negative = span_starts(text, "-");
    uint64_t magnitude;

    if (!span_u64(span_from(text, negative), &magnitude) || magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

bool json_i64(const struct json *v, int64_t *out)
{
    double value = json_double(v);

    if (json_type_of(v) == JSON_STRING)
        return text_i64(json_text(v), out);
    if (!exact_integer(v))
        return false;
    *out = (int64_t)value;
    return true;
}
