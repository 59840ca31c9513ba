/* A byte buffer that grows up to a bound. A failure sticks: check `failed` once at the end. */
#ifndef GPUREST_SDK_BUF_H
#define GPUREST_SDK_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char  *data; /* NUL-terminated once something was added; NULL: nothing yet */
    size_t bytes, room, max;
    bool   failed; /* no memory, or past max: what was to be added is missing */
};

void buf_init(struct buf *b, size_t max);
void buf_finish(struct buf *b);
/* Empty again; keeps its memory. */
void buf_clear(struct buf *b);
bool buf_add(struct buf *b, const void *data, size_t bytes);
bool buf_add_text(struct buf *b, const char *text);
bool buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Room for `bytes` more behind the contents, NULL when there is none; buf_added() says how many were put there. */
char *buf_reserve(struct buf *b, size_t bytes);
void  buf_added(struct buf *b, size_t bytes);
/* "" when empty. */
const char *buf_text(const struct buf *b);
/* The contents, to be freed by the caller; the buffer is empty then. NULL when there is no memory. */
char *buf_take(struct buf *b);

/* As base64. */
bool buf_add_base64(struct buf *b, const void *data, size_t bytes);

/* ---- JSON, written member by member; commas are set by themselves ---- */

/* "name": in front of a member; NULL within arrays. */
void json_open(struct buf *b, const char *name, char bracket);
void json_close(struct buf *b, char bracket);
/* Invalid UTF-8 is passed on as it is: the service refuses it. */
void json_string(struct buf *b, const char *name, const char *text);
void json_string_n(struct buf *b, const char *name, const char *text, size_t bytes);
/* Beyond 2^53 as a decimal string, as the contract wants it. */
void json_u64(struct buf *b, const char *name, uint64_t value);
void json_i64(struct buf *b, const char *name, int64_t value);
void json_bool(struct buf *b, const char *name, bool value);
/* Finite; exact for the type. */
void json_f64(struct buf *b, const char *name, double value);
void json_f32(struct buf *b, const char *name, float value);
void json_base64(struct buf *b, const char *name, const void *data, size_t bytes);

#endif
