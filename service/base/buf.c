/* Doubling growth up to the maximum. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/digits.h"

enum { BUF_FIRST_BYTES = 1024 }; /* the answer to a launch is half of it; what is larger the allocator has not at hand */

void buf_init(struct buf *b, size_t max_bytes)
{
    *b = (struct buf){.max = max_bytes};
}

void buf_finish(struct buf *b)
{
    free(b->data);
    buf_init(b, b->max);
}

void buf_clear(struct buf *b)
{
    b->bytes = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

static char *fail_buf(struct buf *b)
{
    b->failed = true;
    return NULL;
}

char *buf_make_room(struct buf *b, size_t bytes)
{
    size_t room = b->room ? b->room : BUF_FIRST_BYTES;
    char  *grown;

    if (b->failed || bytes > b->max - b->bytes)
        return fail_buf(b);
    while (room - 1 < b->bytes + bytes)
        room = room > SIZE_MAX / 2 ? b->bytes + bytes + 1 : room * 2;
    if (room == b->room)
        return b->data + b->bytes;
    grown = realloc(b->data, room);
    if (!grown)
        return fail_buf(b);
    b->data = grown;
    b->room = room;
    b->data[b->bytes] = '\0';
    return b->data + b->bytes;
}

bool buf_add_u64(struct buf *b, uint64_t value)
{
    char room[DIGITS_MAX];

    return buf_add_span(b, digits_of(value, 10, room));
}

bool buf_add_thousandths(struct buf *b, uint64_t thousandths)
{
    enum { PLACES = 3 };
    char        room[DIGITS_MAX + 1 + PLACES];
    struct span whole = digits_of(thousandths / 1000, 10, room); /* they end where the point is put */

    room[DIGITS_MAX] = '.';
    digits_put(room + DIGITS_MAX + 1, PLACES, thousandths);
    return buf_add(b, whole.data, whole.bytes + 1 + PLACES);
}

bool buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    char   *at;
    int     n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    at = n < 0 ? fail_buf(b) : buf_reserve(b, (size_t)n);
    if (!at)
        return false;
    va_start(args, format);
    vsnprintf(at, (size_t)n + 1, format, args);
    va_end(args);
    buf_grew(b, (size_t)n);
    return true;
}
