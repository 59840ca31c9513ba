/* The C SDK's base/json.h without cJSON, whose symbols a stranger's process could see and replace. */
#include "base/json.h"

#include <ctype.h>
#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, BLOCK_BYTES = 2048 };

enum kind { KIND_NULL, KIND_FALSE, KIND_TRUE, KIND_NUMBER, KIND_TEXT, KIND_ARRAY, KIND_OBJECT };

struct block;

struct json {
    enum kind     kind;
    double        number;
    char         *text; /* of KIND_TEXT */
    char         *name; /* of members */
    struct json  *first, *next;
    struct block *blocks; /* of the outermost value: what all of it lies in */
};

/* A whole text has one life, and most are short: one piece of memory instead of one for each value and name. */
struct block {
    struct block *before;
    size_t        used, room;
    alignas(max_align_t) char data[];
};

struct parser {
    const char   *at, *end;
    struct block *blocks;
};

/* ---- memory ---- */

static void destroy_blocks(struct block *b)
{
    while (b) {
        struct block *before = b->before;

        free(b);
        b = before;
    }
}

void json_destroy(struct json *v)
{
    if (v)
        destroy_blocks(v->blocks);
}

/* Not cleared. NULL: no memory. */
static void *take_memory(struct parser *p, size_t bytes)
{
    struct block *b = p->blocks;
    size_t        wanted = (bytes + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);

    if (!b || wanted > b->room - b->used) {
        size_t room = wanted > BLOCK_BYTES ? wanted : BLOCK_BYTES;

        b = malloc(sizeof *b + room);
        if (!b)
            return NULL;
        *b = (struct block){.before = p->blocks, .room = room};
        p->blocks = b;
    }
    b->used += wanted;
    return b->data + b->used - wanted;
}

/* ---- words ---- */

static void skip_blanks(struct parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r' || *p->at == '\n'))
        p->at++;
}

static bool take(struct parser *p, char c)
{
    skip_blanks(p);
    if (p->at >= p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

static bool take_word(struct parser *p, const char *word)
{
    size_t chars = strlen(word);

    if ((size_t)(p->end - p->at) < chars || memcmp(p->at, word, chars) != 0)
        return false;
    p->at += chars;
    return true;
}

/* ---- texts ---- */

static bool take_hex(struct parser *p, uint32_t *out)
{
    *out = 0;
    if (p->end - p->at < 4)
        return false;
    for (int i = 0; i < 4; i++, p->at++) {
        char c = *p->at;

        if (!isxdigit((unsigned char)c))
            return false;
        *out = *out << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return true;
}

static size_t put_utf8(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* After \u: one unit, or a pair of surrogates. */
static bool take_code_point(struct parser *p, uint32_t *out)
{
    uint32_t low;

    if (!take_hex(p, out) || *out == 0 || (*out >= 0xdc00 && *out < 0xe000))
        return false;
    if (*out < 0xd800 || *out >= 0xdc00)
        return true;
    if (!take_word(p, "\\u") || !take_hex(p, &low) || low < 0xdc00 || low >= 0xe000)
        return false;
    *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

/* Writes at most as many bytes as it reads. */
static bool take_escape(struct parser *p, char *out, size_t *length)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char       *found;
    uint32_t          c;

    if (p->at >= p->end)
        return false;
    if (*p->at == 'u') {
        p->at++;
        if (!take_code_point(p, &c))
            return false;
        *length += put_utf8(c, out + *length);
        return true;
    }
    found = *p->at ? strchr(from, *p->at++) : NULL;
    if (!found)
        return false;
    out[(*length)++] = to[found - from];
    return true;
}

static char *take_text(struct parser *p)
{
    const char *close = p->at;
    char       *out;
    size_t      length = 0;
    bool        valid = true;

    if (!take(p, '"'))
        return NULL;
    for (close = p->at; close < p->end && *close != '"'; close++)
        close += *close == '\\' && close + 1 < p->end;
    out = take_memory(p, (size_t)(close - p->at) + 1);
    while (out && valid && p->at < p->end && *p->at != '"') {
        char c = *p->at++;

        valid = (unsigned char)c >= ' ' && (c != '\\' || take_escape(p, out, &length));
        if (c != '\\')
            out[length++] = c;
    }
    if (!out || !valid || !take_word(p, "\""))
        return NULL;
    out[length] = '\0';
    return out;
}

/* ---- values ---- */

static struct json *take_value(struct parser *p, int depth);

/* The members of an object or the items of an array up to `close`. */
static bool take_list(struct parser *p, struct json *list, char close, int depth)
{
    struct json **last = &list->first;

    if (take(p, close))
        return true;
    do {
        char        *name = list->kind == KIND_OBJECT ? take_text(p) : NULL;
        struct json *v;

        if (list->kind == KIND_OBJECT && (!name || !take(p, ':')))
            return false;
        v = take_value(p, depth + 1);
        if (!v)
            return false;
        v->name = name;
        *last = v;
        last = &v->next;
    } while (take(p, ','));
    return take(p, close);
}

/* At most 15 digits and nothing else: exact, and most numbers are so. */
static bool take_count(const char *text, size_t chars, double *out)
{
    uint64_t value = 0;

    if (chars == 0 || chars > 15)
        return false;
    for (size_t i = 0; i < chars; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
        value = 10 * value + (uint64_t)(text[i] - '0');
    }
    *out = (double)value;
    return true;
}

/* strtod reads more than JSON has, such as hexadecimal numbers and "inf"; the characters are checked first. */
static bool take_number(struct parser *p, struct json *v)
{
    char   text[64];
    size_t chars = 0;
    char  *end;

    while (p->at + chars < p->end && chars < sizeof text - 1 && strchr("+-.0123456789eE", p->at[chars]) && p->at[chars])
        chars++;
    memcpy(text, p->at, chars);
    text[chars] = '\0';
    if (chars == 0 || (text[0] != '-' && !isdigit((unsigned char)text[0])))
        return false;
    v->kind = KIND_NUMBER;
    if (take_count(text, chars, &v->number)) {
        p->at += chars;
        return true;
    }
    v->number = strtod(text, &end);
    p->at += chars;
    return *end == '\0';
}

static bool fill_value(struct parser *p, struct json *v, int depth)
{
    skip_blanks(p);
    if (p->at >= p->end || depth > DEPTH_MAX)
        return false;
    if (*p->at == '"') {
        v->kind = KIND_TEXT;
        v->text = take_text(p);
        return v->text != NULL;
    }
    v->kind = *p->at == '{' ? KIND_OBJECT : *p->at == '[' ? KIND_ARRAY : KIND_NULL;
    if (v->kind != KIND_NULL) {
        p->at++;
        return take_list(p, v, v->kind == KIND_OBJECT ? '}' : ']', depth);
    }
    if (take_word(p, "null"))
        return true;
    v->kind = KIND_TRUE;
    if (take_word(p, "true"))
        return true;
    v->kind = KIND_FALSE;
    return take_word(p, "false") || take_number(p, v);
}

static struct json *take_value(struct parser *p, int depth)
{
    struct json *v = take_memory(p, sizeof *v);

    if (!v)
        return NULL;
    *v = (struct json){0};
    return fill_value(p, v, depth) ? v : NULL;
}

struct json *json_parse(const char *text, size_t bytes)
{
    struct parser p = {.at = text, .end = text ? text + bytes : NULL};
    struct json  *v = text && bytes ? take_value(&p, 0) : NULL;

    skip_blanks(&p);
    if (v && p.at == p.end) {
        v->blocks = p.blocks;
        return v;
    }
    destroy_blocks(p.blocks);
    return NULL;
}

/* ---- what it holds ---- */

const struct json *json_first(const struct json *list)
{
    return list ? list->first : NULL;
}

const struct json *json_next(const struct json *value)
{
    return value ? value->next : NULL;
}

const struct json *json_member(const struct json *object, const char *name)
{
    const struct json *v = json_is_object(object) ? object->first : NULL;

    while (v && strcmp(v->name, name) != 0)
        v = v->next;
    return v;
}

bool json_is_object(const struct json *value)
{
    return value && value->kind == KIND_OBJECT;
}

const char *json_name(const struct json *value)
{
    return value && value->name ? value->name : "";
}

const char *json_text_or(const struct json *value, const char *otherwise)
{
    return value && value->kind == KIND_TEXT ? value->text : otherwise;
}

double json_number_or(const struct json *value, double otherwise)
{
    return value && value->kind == KIND_NUMBER ? value->number : otherwise;
}

bool json_true(const struct json *value)
{
    return value && value->kind == KIND_TRUE;
}
