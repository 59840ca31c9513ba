/* An answer's parts, owned until the server has sent them. */
#include "http/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

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

static void free_header(struct reply_header *h)
{
    free(h->name);
    free(h->value);
}

void reply_finish(struct reply *r)
{
    close_source(r);
    close_descriptor(r);
    for (unsigned i = 0; i < r->headers_count; i++)
        free_header(&r->headers[i]);
    buf_finish(&r->body);
    reply_init(r);
}

/* A header must stay one line, whatever its value was made of. */
static void replace_controls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

void reply_header(struct reply *r, const char *name, const char *format, ...)
{
    struct reply_header h = {.name = strdup(name)};
    va_list             args;
    int                 n;

    va_start(args, format);
    n = vasprintf(&h.value, format, args);
    va_end(args);
    if (n < 0)
        h.value = NULL;
    if (!h.name || !h.value || r->headers_count == REPLY_HEADERS_MAX) {
        r->body.failed = true;
        free_header(&h);
        return;
    }
    replace_controls(h.value);
    r->headers[r->headers_count++] = h;
}

static void drop_header(struct reply *r, const char *name)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < r->headers_count; i++) {
        if (strcasecmp(r->headers[i].name, name) == 0)
            free_header(&r->headers[i]);
        else
            r->headers[kept++] = r->headers[i];
    }
    r->headers_count = kept;
}

/* A failure sticks: it may be that of a header. */
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

enum status reply_text(struct reply *r, unsigned http_status, const char *media_type, struct span body)
{
    reply_empty(r, http_status);
    drop_header(r, "Content-Type");
    reply_header(r, "Content-Type", "%s", media_type);
    buf_add_span(&r->body, body);
    return STATUS_OK;
}

enum status reply_json(struct reply *r, unsigned http_status, struct span body)
{
    return reply_text(r, http_status, "application/json", body);
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
