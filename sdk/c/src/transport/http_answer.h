/* An incremental parser of HTTP/1.1 answers. */
#ifndef GPUREST_SDK_HTTP_ANSWER_H
#define GPUREST_SDK_HTTP_ANSWER_H

#include "transport/exchange.h"

enum answer_state {
    ANSWER_HEAD,
    ANSWER_LENGTH,
    ANSWER_CHUNK_SIZE,
    ANSWER_CHUNK,
    ANSWER_CHUNK_END,
    ANSWER_TRAILER,
    ANSWER_UNTIL_CLOSE,
    ANSWER_DONE
};

struct http_answer {
    struct exchange  *x;
    enum answer_state state;
    struct buf        lines;  /* incomplete chunk size or trailer; a head is put together in x->head */
    uint64_t          left;   /* of the body, or of the chunk */
    bool              closes; /* the server closes the connection after this answer */
};

void http_answer_init(struct http_answer *a, struct exchange *x);
void http_answer_finish(struct http_answer *a);
/* Consumes all of `data`; data after the end is a protocol error. */
gpurest_status http_answer_feed(struct http_answer *a, const char *data, size_t bytes);
/* Where to receive body bytes directly; NULL: use http_answer_feed. */
void          *http_answer_place(struct http_answer *a, size_t *room);
gpurest_status http_answer_placed(struct http_answer *a, size_t bytes);
/* The peer closed the connection. */
gpurest_status http_answer_closed(struct http_answer *a);

#endif
