/* Bytes from and to a buffer at the service: over one connection, or shared by several. */
#ifndef GPUREST_SDK_TRANSFER_H
#define GPUREST_SDK_TRANSFER_H

#include "session/session.h"

/* The range is checked. Exactly one of src and dst is set. c may be NULL. */
struct transfer {
    const struct buffer_entry *buffer;
    size_t                     offset, bytes;
    const char                *src;
    char                      *dst;
    struct cancel             *cancel;
};

gpurest_status transfer_run(gpurest_session *s, const struct transfer *t);

#endif
