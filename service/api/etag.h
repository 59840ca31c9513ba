/* The entity tag of buffer contents: "<generation>.<write epoch of the session>". */
#ifndef GPUREST_API_ETAG_H
#define GPUREST_API_ETAG_H

#include <inttypes.h>
#include <stdio.h>

#include "session/session.h"

enum { ETAG_BYTES = 64 };

static inline struct span etag_of(struct session *s, char out[ETAG_BYTES])
{
    int n = snprintf(out, ETAG_BYTES, "\"%" PRIu64 ".%" PRIu64 "\"", session_generation(s), session_epoch(s));
    return (struct span){out, (size_t)n};
}

#endif
