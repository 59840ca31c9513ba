/* The parts of an answer, owned until the server has sent them. */
#include "http/message/reply.h"
#include "http/bounds.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "base/deadline.h"

#define JSON_TYPE "application/json"

enum { HEADER_VALUE_USUAL_BYTES = 128 }; /* longer values are formatted twice */

enum status body_source_read(struct body_source *s, char *to, size_t room, size_t *bytes, struct waker *w)
{
    struct span piece;
    enum status st;

    *bytes = 0;
    if (s->read)
        return s->read(s, to, room, bytes, w);
    st = s->lend(s, &piece, w);
    if (st)
        return st;
    piece = span_first(piece, room);
    memcpy(to, piece.data, piece.bytes);
    *bytes = piece.bytes;
    s->release(s, piece.bytes);
    return STATUS_OK;
}

void reply_init(struct reply *r)
{
    *r = (struct reply){.descriptor = -1};
    buf_init(&r->body, REPLY_BODY_BYTES_MAX);
}

static void close_source(struct reply *r)
{
    struct body_source *source = r->source;

    r->source = NULL;
    if (source)
        source->close(source);
}

static void close_descriptor(struct reply *r)
{
    if (r->descriptor >= 0)
        close(r->descriptor);
    r->descriptor = -1;
}

void reply_finish(struct reply *r)
{
    close_source(r);
    close_descriptor(r);
    for (unsigned i = 0; i < r->headers_count; i++)
        free(r->headers[i].name);
    buf_finish(&r->body);
    reply_init(r);
}

/* A header must stay one line, whatever its value contains. */
static void replace_controls(char *text, size_t bytes)
{
    size_t at = 0;

    while (at < bytes) {
        if (bytes - at >= EIGHT_BYTES && eight_without_controls(text + at)) {
            at += EIGHT_BYTES;
            continue;
        }
        if ((unsigned char)text[at] < 0x20 || text[at] == 0x7f)
            text[at] = '?';
        at++;
    }
}

/* Allocates name and value together and writes the name; NULL, with the failure marked, without memory. */
static char *add_header(struct reply *r, const char *name, size_t value_bytes)
{
    size_t name_bytes = strlen(name) + 1;
    char  *both = r->headers_count < REPLY_HEADERS_MAX ? malloc(name_bytes + value_bytes + 1) : NULL;

    if (!both) {
        r->body.failed = true;
        return NULL;
    }
    memcpy(both, name, name_bytes);
    r->headers[r->headers_count++] = (struct reply_header){both, both + name_bytes};
    return both + name_bytes;
}

void reply_header(struct reply *r, const char *name, const char *format, ...)
{
    char    few[HEADER_VALUE_USUAL_BYTES];
    va_list args;
    char   *value;
    int     n;

    va_start(args, format);
    n = vsnprintf(few, sizeof few, format, args);
    va_end(args);
    if (n < 0) {
        r->body.failed = true;
        return;
    }
    value = add_header(r, name, (size_t)n);
    if (!value)
        return;
    if ((size_t)n < sizeof few) {
        memcpy(value, few, (size_t)n + 1);
    } else {
        va_start(args, format);
        vsnprintf(value, (size_t)n + 1, format, args);
        va_end(args);
    }
    replace_controls(value, strlen(value));
}

void reply_header_text(struct reply *r, const char *name, const char *text)
{
    size_t bytes = text ? strlen(text) : 0;
    char  *value;

    r->body.failed = r->body.failed || !text;
    value = text ? add_header(r, name, bytes) : NULL;
    if (!value)
        return;
    memcpy(value, text, bytes + 1);
    replace_controls(value, bytes);
}

void duration_add(struct buf *text, const char *name, double ms)
{
    if (text->bytes)
        buf_add_text(text, ", ");
    buf_add_text(text, name);
    buf_add_text(text, ";dur=");
    buf_add_thousandths(text, ms > 0 && ms < (double)(UINT64_MAX / NS_PER_MS) ? (uint64_t)(ms * 1000 + 0.5) : 0);
}

static void drop_header(struct reply *r, const char *name)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < r->headers_count; i++) {
        if (strcasecmp(r->headers[i].name, name) == 0)
            free(r->headers[i].name);
        else
            r->headers[kept++] = r->headers[i];
    }
    r->headers_count = kept;
}

/* An earlier failure stays: a header may be missing. */
enum status reply_empty(struct reply *r, unsigned http_status)
{
    bool failed = r->body.failed;

    close_source(r);
    close_descriptor(r);
    buf_clear(&r->body);
    r->body.failed = failed;
    r->http_status = http_status;
    return STATUS_OK;
}

static void begin_text(struct reply *r, unsigned http_status, const char *media_type)
{
    reply_empty(r, http_status);
    drop_header(r, "Content-Type");
    reply_header_text(r, "Content-Type", media_type);
}

enum status reply_text(struct reply *r, unsigned http_status, const char *media_type, struct span body)
{
    begin_text(r, http_status, media_type);
    buf_add_span(&r->body, body);
    return STATUS_OK;
}

enum status reply_json(struct reply *r, unsigned http_status, struct span body)
{
    return reply_text(r, http_status, JSON_TYPE, body);
}

/* An earlier failure stays, as in reply_empty(). */
enum status reply_json_take(struct reply *r, unsigned http_status, struct buf *body)
{
    bool failed;

    begin_text(r, http_status, JSON_TYPE);
    failed = r->body.failed || body->failed;
    buf_finish(&r->body);
    r->body = *body;
    r->body.failed = failed;
    buf_init(body, body->max);
    return STATUS_OK;
}

enum status reply_source_take(struct reply *r, unsigned http_status, struct body_source *source, uint64_t bytes)
{
    reply_empty(r, http_status);
    r->source = source;
    r->source_bytes = bytes;
    return STATUS_OK;
}

void reply_descriptor_take(struct reply *r, int fd)
{
    close_descriptor(r);
    r->descriptor = fd;
}
