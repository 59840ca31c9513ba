/* An answer in the making. */
#pragma once

#include "base/buf.h"
#include "base/problem.h"
#include "http/bounds.h"
#include "limits.h"

struct waker;

/* Bytes of a long body, pulled by the server on the loop's thread, or on an I/O thread when it is offloaded. A source has read, or lend and
 * release; if it has all, it lends only to an I/O thread. */
struct body_source {
    /* Writes up to `room` bytes to `to`. PENDING with *bytes = 0 when there is none yet; `w` is then registered. A failure closes the
     * connection: the header is already sent. */
    enum status (*read)(struct body_source *s, char *to, size_t room, size_t *bytes, struct waker *w);
    /* Called once, on the loop, also when the client is gone. Afterwards w is not touched. */
    void (*close)(struct body_source *s);
    /* The source's own memory, which is copied, or sent when the answer is offloaded.
     * lend: the next bytes, never none; called only while bytes are left. Outcomes as of read. A wake of `w` while they are lent says
     * that they are wanted back at once.
     * release: `bytes` of them were sent, maybe 0. Follows every successful lend before anything else is called. */
    enum status (*lend)(struct body_source *s, struct span *out, struct waker *w);
    void (*release)(struct body_source *s, size_t bytes);
    bool wants_inline; /* it must not be offloaded */
};

/* Up to `room` bytes into `to`, in either way. Outcomes as of read. */
enum status body_source_read(struct body_source *s, char *to, size_t room, size_t *bytes, struct waker *w);

/* The length of a source that ends when its read() gives OK and no bytes. */
#define REPLY_BYTES_UNKNOWN UINT64_MAX

struct reply_header {
    char *name; /* owned; the value is in the same allocation */
    char *value;
};

struct reply {
    unsigned            http_status;                /* 0 until set */
    struct reply_header headers[REPLY_HEADERS_MAX]; /* owned */
    unsigned            headers_count;
    struct buf          body;
    struct body_source *source;       /* instead of body; owned: reply_finish closes it if the server did not */
    uint64_t            source_bytes; /* its exact length, or REPLY_BYTES_UNKNOWN */
    int                 descriptor;   /* sent with the answer; owned; -1 = none */
};

void reply_init(struct reply *r);
void reply_finish(struct reply *r);

/* Adds a header, even if that name exists. Too many headers, or no memory: marks body.failed, and the server answers 503. */
void reply_header(struct reply *r, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* As reply_header(), for a value that needs no formatting. NULL: the value's maker had no memory. */
void reply_header_text(struct reply *r, const char *name, const char *text);
/* Appends to the value of a Server-Timing: ", name;dur=", down to the microsecond. */
void duration_add(struct buf *text, const char *name, double ms);
/* For 204 and similar. */
enum status reply_empty(struct reply *r, unsigned http_status);
enum status reply_text(struct reply *r, unsigned http_status, const char *media_type, struct span body);
/* Copies `body` (JSON text). */
enum status reply_json(struct reply *r, unsigned http_status, struct span body);
/* Takes the text; *body is empty afterwards. */
enum status reply_json_take(struct reply *r, unsigned http_status, struct buf *body);
/* Takes the source, even on failure. */
enum status reply_source_take(struct reply *r, unsigned http_status, struct body_source *source, uint64_t bytes);
/* Takes the descriptor; only if request.is_local. Call it after setting the body: any other body drops the descriptor. */
void reply_descriptor_take(struct reply *r, int fd);
