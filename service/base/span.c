/* The longer span functions. */
#include "base/span.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool bytes_equal_nocase(const char *a, const char *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (a[i] != b[i] && lower(a[i]) != lower(b[i]))
            return false;
    return true;
}

bool span_slice(struct span from, uint64_t offset, uint64_t bytes, struct span *out)
{
    if (offset > from.bytes || bytes > from.bytes - offset)
        return false;
    *out = (struct span){from.data + offset, (size_t)bytes};
    return true;
}

bool span_read(struct span from, uint64_t offset, void *to, size_t bytes)
{
    struct span at;

    if (!span_slice(from, offset, bytes, &at))
        return false;
    memcpy(to, at.data, bytes);
    return true;
}

struct span span_trim(struct span a)
{
    while (a.bytes && (a.data[0] == ' ' || a.data[0] == '\t'))
        a = span_from(a, 1);
    while (a.bytes && (a.data[a.bytes - 1] == ' ' || a.data[a.bytes - 1] == '\t'))
        a.bytes--;
    return a;
}

struct span span_unquote(struct span a)
{
    bool quoted = a.bytes >= 2 && a.data[0] == '"' && a.data[a.bytes - 1] == '"';

    return quoted ? span_first(span_from(a, 1), a.bytes - 2) : a;
}

struct span span_cut(struct span *rest, char separator)
{
    const char *at = rest->bytes ? memchr(rest->data, separator, rest->bytes) : NULL;
    size_t      n = at ? (size_t)(at - rest->data) : rest->bytes;
    struct span head = {rest->data, n};

    *rest = at ? span_from(*rest, n + 1) : (struct span){NULL, 0};
    return head;
}

bool span_holds_only(struct span a, const char *more)
{
    for (size_t i = 0; i < a.bytes; i++) {
        char small = lower(a.data[i]);
        bool alnum = (small >= '0' && small <= '9') || (small >= 'a' && small <= 'z');

        if (!alnum && (!small || !strchr(more, small)))
            return false;
    }
    return true;
}

int hex_digit(char c)
{
    char small = lower(c);

    if (is_digit(c))
        return c - '0';
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

bool span_u64(struct span a, uint64_t *out)
{
    uint64_t value = 0;

    if (a.bytes == 0)
        return false;
    for (size_t i = 0; i < a.bytes; i++) {
        unsigned digit = (unsigned)(unsigned char)a.data[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, 10u, &value) || __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *out = value;
    return true;
}

bool span_u64_saturated(struct span a, uint64_t *out)
{
    for (size_t i = 0; i < a.bytes; i++)
        if (a.data[i] < '0' || a.data[i] > '9')
            return false;
    if (!span_u64(a, out))
        *out = UINT64_MAX;
    return a.bytes > 0;
}

bool span_copy(struct span a, char *dst, size_t room)
{
    if (room == 0)
        return false;
    if (a.bytes >= room) {
        dst[0] = '\0';
        return false;
    }
    if (a.bytes)
        memcpy(dst, a.data, a.bytes);
    dst[a.bytes] = '\0';
    return true;
}
