/* A borrowed run of bytes. Never owns, not NUL-terminated; {NULL, 0} is the empty span. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
    const char *data;
    size_t      bytes;
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* For printf("%.*s", SPAN_ARG(s)); the caller guarantees fewer than INT_MAX bytes. */
#define SPAN_ARG(s)        (int)(s).bytes, (s).data ? (s).data : ""
#define SPAN_LITERAL(text) ((struct span){text, sizeof(text) - 1})

static inline struct span span_of(const char *text)
{
    return (struct span){text, text ? strlen(text) : 0};
}

static inline bool span_equal(struct span a, struct span b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

static inline bool span_is(struct span a, const char *text)
{
    return span_equal(a, span_of(text));
}

static inline bool span_starts(struct span a, const char *prefix)
{
    size_t n = strlen(prefix);
    return a.bytes >= n && memcmp(a.data, prefix, n) == 0;
}

static inline struct span span_from(struct span a, size_t offset)
{
    if (offset > a.bytes)
        offset = a.bytes;
    return offset ? (struct span){a.data + offset, a.bytes - offset} : a; /* no arithmetic on NULL */
}

static inline struct span span_first(struct span a, size_t bytes)
{
    return (struct span){a.data, bytes < a.bytes ? bytes : a.bytes};
}

/* The bytes at [offset, offset + bytes); false: they are not all inside. */
bool span_slice(struct span from, uint64_t offset, uint64_t bytes, struct span *out);
/* Copies them out, for they may be unaligned. */
bool span_read(struct span from, uint64_t offset, void *to, size_t bytes);

/* `bytes` of both. */
bool bytes_equal_nocase(const char *a, const char *b, size_t bytes);

/* Ignores the case of ASCII letters, for header names and media types. Compares lengths first, because most differ. */
static inline bool span_equal_nocase(struct span a, struct span b)
{
    return a.bytes == b.bytes && bytes_equal_nocase(a.data, b.data, a.bytes);
}

/* Removes leading and trailing spaces and tabs. */
struct span span_trim(struct span a);

/* Without the quotation marks around it, if it has both. */
struct span span_unquote(struct span a);

/* Splits *rest at the first `separator` and returns the part before it. Without a separator returns all of *rest and empties it. */
struct span span_cut(struct span *rest, char separator);

/* All bytes are ASCII letters, digits or in `more`. */
bool span_holds_only(struct span a, const char *more);

enum { EIGHT_BYTES = sizeof(uint64_t) };

/* None of eight bytes is below 0x20 or 0x7f. May say no where it is so: then they are looked at one by one. */
static inline bool eight_without_controls(const void *at)
{
    const uint64_t ones = UINT64_MAX / 255, tops = ones << 7;
    uint64_t       v, deleted;

    memcpy(&v, at, sizeof v);
    deleted = v ^ ones * 0x7f;
    return (((v - ones * 0x20) | (deleted - ones)) & tops) == 0;
}

/* Of ASCII, whatever the locale. */
static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static inline bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The value of a hexadecimal digit; -1: it is none. */
int hex_digit(char c);

/* Parses the whole span as an unsigned decimal number: digits only, no sign, no overflow. */
bool span_u64(struct span a, uint64_t *out);

/* The same, but an overflow becomes UINT64_MAX. */
bool span_u64_saturated(struct span a, uint64_t *out);

/* Copies into dst, NUL-terminated. False if it does not fit; dst is then empty. */
bool span_copy(struct span a, char *dst, size_t room);
