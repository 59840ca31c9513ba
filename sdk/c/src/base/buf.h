/* A byte buffer that grows up to a limit. Failures stick: check `failed` once at the end. */
#ifndef GPUREST_SDK_BUF_H
#define GPUREST_SDK_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char  *data; /* NUL-terminated; NULL: nothing was added */
    size_t bytes, room, max;
    bool   failed; /* out of memory or over max; data is missing */
};

void buf_init(struct buf *b, size_t max);
void buf_finish(struct buf *b);
/* Empties it, keeps its memory. */
void buf_clear(struct buf *b);
bool buf_add(struct buf *b, const void *data, size_t bytes);
bool buf_add_u64(struct buf *b, uint64_t value);
bool buf_add_text(struct buf *b, const char *text);
bool buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Room for `bytes` more, NULL on failure; buf_added() then says how many were written. */
char *buf_reserve(struct buf *b, size_t bytes);
void  buf_added(struct buf *b, size_t bytes);
/* "" when empty. */
const char *buf_text(const struct buf *b);
/* Moves the contents to the caller, who frees them. NULL: out of memory. */
char *buf_take(struct buf *b);

/* Adds data as base64. */
bool buf_add_base64(struct buf *b, const void *data, size_t bytes);

/* ---- JSON, written member by member with automatic commas ---- */

/* name NULL: in an array. */
void json_open(struct buf *b, const char *name, char bracket);
void json_close(struct buf *b, char bracket);
/* Passes invalid UTF-8 on; the service refuses it. */
void json_string(struct buf *b, const char *name, const char *text);
void json_string_n(struct buf *b, const char *name, const char *text, size_t bytes);
/* A decimal string beyond 2^53, as the API requires. */
void json_u64(struct buf *b, const char *name, uint64_t value);
void json_i64(struct buf *b, const char *name, int64_t value);
void json_bool(struct buf *b, const char *name, bool value);
/* Finite; exact for the type. */
void json_f64(struct buf *b, const char *name, double value);
void json_f32(struct buf *b, const char *name, float value);
void json_base64(struct buf *b, const char *name, const void *data, size_t bytes);

#endif
