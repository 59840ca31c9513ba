/* A growing byte buffer with an obligatory maximum. Not thread-safe. */
#ifndef GPUREST_BASE_BUF_H
#define GPUREST_BASE_BUF_H

#include "base/span.h"

struct buf {
    char  *data;   /* owned; NULL while nothing was added */
    size_t bytes;  /* in use; data[bytes] is always NUL once data is set */
    size_t room;
    size_t max;
    bool   failed; /* something did not fit or memory ran out; sticky: nothing more is added, and a run of adds is checked once */
};

void buf_init(struct buf *b, size_t max_bytes);
/* Frees; the buf is as after buf_init. A zeroed buf is fine. */
void buf_finish(struct buf *b);
void buf_clear(struct buf *b);

/* All adders answer false, and set failed, when the maximum or host memory is exceeded; what was there stays. */
bool buf_add(struct buf *b, const void *data, size_t bytes);
bool buf_add_span(struct buf *b, struct span s);
bool buf_add_text(struct buf *b, const char *text);
bool buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Room for `bytes` more; NULL when that is impossible. buf_grew() then takes over what was written there. */
char *buf_reserve(struct buf *b, size_t bytes);
void  buf_grew(struct buf *b, size_t bytes);

/* Borrowed, valid until the next add or buf_finish. */
static inline struct span buf_span(const struct buf *b)
{
    return (struct span){b->data, b->bytes};
}

#endif
