/* JSON in and out. Input is strict RFC 8259: UTF-8, unique names, no NUL, bounded depth and number of values. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/problem.h"
#include "http/bounds.h"

/* A parsed value, borrowed from its document; NULL means "absent", and every reader below accepts it. */
struct json;
struct json_document;

enum json_type { JSON_ABSENT, JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* INVALID_JSON with the byte offset and the reason in *why. The caller owns *out. */
enum status json_parse(struct span text, struct json_document **out, struct problem *why);
/* As json_parse(), with another bound than JSON_VALUES_MAX. */
enum status        json_parse_up_to(struct span text, size_t values_max, struct json_document **out, struct problem *why);
void               json_document_destroy(struct json_document *d); /* NULL is a no-op */
const struct json *json_root(const struct json_document *d);

enum json_type     json_type_of(const struct json *v);
const struct json *json_member(const struct json *object, const char *name); /* case-sensitive; NULL if absent */
size_t             json_count(const struct json *v);                         /* of an array or object, else 0 */
const struct json *json_first(const struct json *v);                         /* element or member; NULL if empty */
const struct json *json_next(const struct json *element);
struct span        json_name(const struct json *member); /* a member's name */
struct span        json_text(const struct json *v);      /* a string's bytes; empty for other types */
bool               json_bool(const struct json *v);
double             json_double(const struct json *v);
/* Numbers that are integers of at most 2^53 in magnitude, also written as 1e3 or 1.0, or decimal strings of the full 64-bit range. False
 * for numbers that only round to an integer. */
bool json_u64(const struct json *v, uint64_t *out);
bool json_i64(const struct json *v, int64_t *out);
#define JSON_U64_EXPECTED "must be a non-negative integer; above 2^53 as a decimal string"

/* One member of a request object; a table of them describes the whole object. */
enum json_field_type {
    FIELD_U64,
    FIELD_U32,
    FIELD_BOOL,
    FIELD_STRING /* struct span, borrowed */,
    FIELD_ANY /* const struct json *, borrowed */
};
struct json_field {
    const char          *name;
    enum json_field_type type;
    size_t               offset;
    bool                 required;
    uint64_t             max;     /* U64, U32: greatest value; STRING: most bytes; ANY: ignored */
    size_t               present; /* offset of a bool to set when the member is present; SIZE_MAX = none */
};
#define JSON_FIELD(type, owner, member, is_required, maximum)                                                                              \
    {                                                                                                                                      \
#member, type, offsetof(owner, member), is_required, maximum, SIZE_MAX                                                             \
    }
#define JSON_FIELD_SEEN(type, owner, member, seen, maximum)                                                                                \
    {                                                                                                                                      \
#member, type, offsetof(owner, member), false, maximum, offsetof(owner, seen)                                                      \
    }

/* Fills *out, which the caller has preset to defaults, from an object. `pointer` is the object's own JSON pointer ("" for the root).
 * INVALID_FIELD with a pointer for a wrong type or value or a missing member; UNKNOWN_FIELD for unknown members unless `lenient`. null
 * counts as absent. */
enum status json_decode(const struct json *object, const struct json_field *fields, size_t count, const char *pointer, bool lenient,
                        void *out, struct problem *why);

/* Output. A writer appends to a buf and sets commas itself; check buf.failed once at the end. */
struct json_writer {
    struct buf *out;
    bool        comma;
    unsigned    depth;
};
void json_writer_init(struct json_writer *w, struct buf *out);
/* name is NULL inside arrays and for the root. */
void json_open_object(struct json_writer *w, const char *name);
void json_open_array(struct json_writer *w, const char *name);
void json_close_object(struct json_writer *w);
void json_close_array(struct json_writer *w);
void json_add_u64(struct json_writer *w, const char *name, uint64_t value); /* as a number; callers keep it at most 2^53 */
void json_add_exact(struct json_writer *w, const char *name, uint64_t value); /* above 2^53 as a decimal string, as requests have it */
void json_add_i64(struct json_writer *w, const char *name, int64_t value);
void json_add_double(struct json_writer *w, const char *name,
                     double value); /* shortest text that reads back the same; NaN and infinities as null */
void json_add_bool(struct json_writer *w, const char *name, bool value);
void json_add_null(struct json_writer *w, const char *name);
void json_add_u64_or_null(struct json_writer *w, const char *name, uint64_t value); /* null above 2^53 */
/* Replaces invalid UTF-8 by U+FFFD and escapes control characters, so that the output is always valid. */
void json_add_string(struct json_writer *w, const char *name, struct span value);
void json_add_text(struct json_writer *w, const char *name, const char *value);
void json_add_text_or_null(struct json_writer *w, const char *name, const char *value); /* null for "" and NULL */
/* RFC 3339 in UTC with milliseconds; null for 0. */
void json_add_time(struct json_writer *w, const char *name, uint64_t wall_ns_since_1970);
/* As base64 in a string. */
void json_add_base64(struct json_writer *w, const char *name, struct span bytes);
/* `text` must be valid JSON. */
void json_add_raw(struct json_writer *w, const char *name, struct span text);
/* base64 (RFC 4648, padded). False: the text is none; with out->data NULL there is no memory. */
bool base64_decode(struct span text, struct arena *a, struct span *out);
/* Appends; false, with out->failed set, when it does not fit. */
bool base64_add(struct buf *out, struct span bytes);
