/* Memory that clients of the same host map.
 *
 * For an ordinary buffer: a sealed memfd of its size, and copies between the two. The front-end never maps it, only the session's worker
 * does: whatever a client does to that memory affects only that session's bytes. It counts as the session's memory. It ends with its
 * buffer; the memory is then taken from clients that still map it, and reads as zeros there.
 *
 * For a shareable buffer: the buffer's own memory. Where device memory is host memory, that is the memfd of share_open(), and a copy only
 * waits. Otherwise it is the descriptor of share_export(), for processes that use the device's driver; it cannot be taken back, and the
 * device gets the memory back once the last process releases it.
 *
 * Host memory counts against shared_bytes_max of the whole process. */
#pragma once

#include "session/session.h"

enum share_direction { SHARE_TO_DEVICE, SHARE_FROM_DEVICE };

struct share_view {
    int      fd;      /* the caller's to close */
    uint64_t bytes;   /* of the buffer */
    uint64_t offset;  /* of the buffer's first byte in the descriptor's memory */
    bool     created; /* this call created it: all zeros */
    bool     direct;  /* it is the buffer's own memory */
};

struct share_handle {
    int      fd; /* the caller's to close */
    uint64_t bytes;
    uint64_t taken; /* size of the allocation, to be mapped as a whole */
    uint64_t unit;  /* the size is a multiple of this */
};

/* FEATURE_DISABLED; QUOTA_EXCEEDED; OVERLOADED when the process shares too much already. Blocks while the host's memory is allocated. */
enum status share_open(struct session *s, struct span buffer, struct share_view *out, struct problem *why);
/* FEATURE_DISABLED; INVALID_FIELD when the buffer is not shareable, or its device has no such descriptors. Each call creates a new
 * descriptor. */
enum status share_export(struct session *s, struct span buffer, struct share_handle *out, struct problem *why);
/* Copies the range between the memory and the buffer, ordered like an upload or download. Blocks. SHARE_NOT_FOUND. */
enum status share_move(struct session *s, struct span buffer, enum share_direction direction, uint64_t offset, uint64_t bytes,
                       struct problem *why);
/* Frees the memory before it returns, unless a copy is in progress. SHARE_NOT_FOUND, also for a buffer's own memory. */
enum status share_close(struct session *s, struct span buffer, struct problem *why);
