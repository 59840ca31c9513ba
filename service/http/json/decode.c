/* Fills a struct from a JSON object by a table of members. */
#include <stdio.h>

#include "http/bounds.h"
#include "http/json/json.h"

struct decoding {
    const char     *pointer; /* of the object */
    void           *out;
    struct problem *why;
};

/* A member's JSON pointer (RFC 6901): '~' and '/' in the name are escaped. Truncated at PROBLEM_POINTER_BYTES. */
static void member_pointer(const char *base, struct span name, char out[PROBLEM_POINTER_BYTES])
{
    size_t at = (size_t)snprintf(out, PROBLEM_POINTER_BYTES, "%.*s/", PROBLEM_POINTER_BYTES / 2, base);

    for (size_t i = 0; i < name.bytes && at + 3 < PROBLEM_POINTER_BYTES; i++) {
        char c = name.data[i];
        if (c == '~' || c == '/') {
            out[at++] = '~';
            c = c == '~' ? '0' : '1';
        }
        out[at++] = c;
    }
    out[at] = '\0';
}

static enum status refuse_member(const struct decoding *d, struct span name, enum status st, const char *code, const char *text)
{
    char pointer[PROBLEM_POINTER_BYTES];

    member_pointer(d->pointer, name, pointer);
    return problem_field(d->why, st, pointer, code, "%s: %s", pointer, text);
}

static enum status refuse_above(const struct decoding *d, const struct json_field *f, const char *what)
{
    char text[96];

    snprintf(text, sizeof text, "at most %llu %s", (unsigned long long)f->max, what);
    return refuse_member(d, span_of(f->name), STATUS_INVALID_FIELD, "range", text);
}

static enum status decode_integer(const struct decoding *d, const struct json_field *f, const struct json *v, void *to)
{
    uint64_t max = f->type == FIELD_U32 && f->max > UINT32_MAX ? UINT32_MAX : f->max;
    uint64_t value;
    uint32_t narrow;

    if (!json_u64(v, &value))
        return refuse_member(d, span_of(f->name), STATUS_INVALID_FIELD, "type", JSON_U64_EXPECTED);
    if (value > max)
        return refuse_above(d, f, "is allowed");
    narrow = (uint32_t)value;
    if (f->type == FIELD_U32)
        memcpy(to, &narrow, sizeof narrow);
    else
        memcpy(to, &value, sizeof value);
    return STATUS_OK;
}

static enum status decode_string(const struct decoding *d, const struct json_field *f, const struct json *v, void *to)
{
    struct span text = json_text(v);

    if (json_type_of(v) != JSON_STRING)
        return refuse_member(d, span_of(f->name), STATUS_INVALID_FIELD, "type", "must be a string");
    if (text.bytes > f->max)
        return refuse_above(d, f, "bytes are allowed");
    memcpy(to, &text, sizeof text);
    return STATUS_OK;
}

static enum status decode_bool(const struct decoding *d, const struct json_field *f, const struct json *v, void *to)
{
    bool value = json_bool(v);

    if (json_type_of(v) != JSON_BOOL)
        return refuse_member(d, span_of(f->name), STATUS_INVALID_FIELD, "type", "must be true or false");
    memcpy(to, &value, sizeof value);
    return STATUS_OK;
}

static enum status decode_value(const struct decoding *d, const struct json_field *f, const struct json *v, void *to)
{
    switch (f->type) {
    case FIELD_U64:
    case FIELD_U32:
        return decode_integer(d, f, v, to);
    case FIELD_BOOL:
        return decode_bool(d, f, v, to);
    case FIELD_STRING:
        return decode_string(d, f, v, to);
    case FIELD_ANY:
        memcpy(to, &v, sizeof v);
        return STATUS_OK;
    }
    return problem_set(d->why, STATUS_INTERNAL, "unknown type of a field");
}

static enum status decode_field(const struct decoding *d, const struct json *v, const struct json_field *f)
{
    const bool  seen = true;
    enum status st;

    if (!v || json_type_of(v) == JSON_NULL)
        return f->required ? refuse_member(d, span_of(f->name), STATUS_INVALID_FIELD, "required", "is required") : STATUS_OK;
    st = decode_value(d, f, v, (char *)d->out + f->offset);
    if (!st && f->present != SIZE_MAX)
        memcpy((char *)d->out + f->present, &seen, sizeof seen);
    return st;
}

/* Index of the field with that name, a C string; `count` if there is none. */
static size_t field_of(const char *name, const struct json_field *fields, size_t count)
{
    size_t i = 0;

    while (i < count && (fields[i].name[0] != name[0] || strcmp(fields[i].name, name) != 0))
        i++;
    return i;
}

/* Looks up each member once; the parser has checked that the names are unique. */
static enum status find_members(const struct decoding *d, const struct json *object, const struct json_field *fields, size_t count,
                                bool lenient, const struct json **members)
{
    for (const struct json *m = json_first(object); m; m = json_next(m)) {
        struct span name = json_name(m);
        size_t      i = field_of(name.data, fields, count);

        if (i < count)
            members[i] = m;
        else if (!lenient)
            return refuse_member(d, name, STATUS_UNKNOWN_FIELD, "unknown", "is not a known field");
    }
    return STATUS_OK;
}

enum status json_decode(const struct json *object, const struct json_field *fields, size_t count, const char *pointer, bool lenient,
                        void *out, struct problem *why)
{
    struct decoding    d = {pointer, out, why};
    const struct json *members[JSON_FIELDS_MAX]; /* of those in the table */
    enum status        st;

    if (json_type_of(object) != JSON_OBJECT)
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "type", "%s%smust be an object", pointer, *pointer ? ": " : "");
    if (count > COUNT(members))
        return problem_set(why, STATUS_INTERNAL, "an object has too many fields");
    memset(members, 0, count * sizeof members[0]);
    st = find_members(&d, object, fields, count, lenient, members);
    for (size_t i = 0; i < count && !st; i++)
        st = decode_field(&d, members[i], &fields[i]);
    return st;
}
