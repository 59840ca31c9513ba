/* The entity tag of a buffer's contents: "<generation>.<write epoch of the session>.<the buffer's number>". */
#pragma once

#include <inttypes.h>
#include <stdio.h>

#include "http/message/reply.h"
#include "session/session.h"

enum { ETAG_BYTES = 80 };

static inline struct span etag_of(struct contents c, char out[ETAG_BYTES])
{
    int n = snprintf(out, ETAG_BYTES, "\"%" PRIu64 ".%" PRIu64 ".%" PRIu64 "\"", c.generation, c.epoch, c.buffer);
    return (struct span){out, (size_t)n};
}

static inline void etag_add(struct reply *r, struct contents c)
{
    char tag[ETAG_BYTES];

    etag_of(c, tag);
    reply_header_text(r, "ETag", tag);
}
