/* A growing byte buffer with a mandatory maximum. Not thread-safe. */
#pragma once

#include "base/span.h"

struct buf {
    char  *data;  /* owned; NULL while empty */
    size_t bytes; /* in use; data[bytes] is always NUL once data is set */
    size_t room;
    size_t max;
    bool   failed; /* an add did not fit or memory ran out; sticky: later adds do nothing, so check once after a series of adds */
};

void buf_init(struct buf *b, size_t max_bytes);
/* Over memory of the caller's, for a short text without an allocation: it does not grow, and is not finished. */
static inline void buf_over(struct buf *b, char *room, size_t bytes)
{
    *b = (struct buf){.data = room, .room = bytes, .max = bytes - 1};
    room[0] = '\0';
}
/* Frees; the buf is then as after buf_init. Accepts a zeroed buf. */
void buf_finish(struct buf *b);
void buf_clear(struct buf *b);

/* All add functions return false and set `failed` beyond the maximum or without host memory; the contents stay. */
static inline bool buf_add(struct buf *b, const void *data, size_t bytes);
static inline bool buf_add_span(struct buf *b, struct span s);
static inline bool buf_add_text(struct buf *b, const char *text);
/* In decimal digits, without printf, which is slow for answers full of numbers. */
bool buf_add_u64(struct buf *b, uint64_t value);
/* `thousandths` / 1000 with three decimal places. */
bool buf_add_thousandths(struct buf *b, uint64_t thousandths);
bool buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Like buf_reserve(), if it must grow. */
char *buf_make_room(struct buf *b, size_t bytes);

/* Room for `bytes` more; NULL if impossible. buf_grew() then adds the bytes written there. */
static inline char *buf_reserve(struct buf *b, size_t bytes)
{
    bool fits = !b->failed && bytes <= b->max - b->bytes && b->room > b->bytes && b->room - b->bytes > bytes;

    return fits ? b->data + b->bytes : buf_make_room(b, bytes);
}

static inline void buf_grew(struct buf *b, size_t bytes)
{
    b->bytes += bytes;
    b->data[b->bytes] = '\0';
}

static inline bool buf_add(struct buf *b, const void *data, size_t bytes)
{
    char *at = buf_reserve(b, bytes);

    if (!at)
        return false;
    if (bytes)
        memcpy(at, data, bytes);
    buf_grew(b, bytes);
    return true;
}

static inline bool buf_add_span(struct buf *b, struct span s)
{
    return buf_add(b, s.data, s.bytes);
}

static inline bool buf_add_text(struct buf *b, const char *text)
{
    return buf_add(b, text, strlen(text));
}

/* Borrowed, valid until the next add or buf_finish. */
static inline struct span buf_span(const struct buf *b)
{
    return (struct span){b->data, b->bytes};
}
