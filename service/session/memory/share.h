/* Memory that clients of the same host map.
 *
 * Of any buffer: a sealed memfd of its size, and copies between the two. The front-end never maps it, the session's worker does: whatever a
 * client does to that memory, it is that session's bytes alone that suffer. It counts as memory of the session. It ends with its buffer;
 * the memory is then taken back from those who still map it, who find zeros there.
 * Of a shareable buffer: the buffer's own memory. Where a device's memory is the host's that is the memfd of share_open(), and copies have
 * nothing to do but wait. Else it is what share_export() hands out, for processes that use the device's driver; it is never taken back, but
 * the device's again once the last of them lets go.
 * Host memory counts against shared_bytes_max of the whole process. */
#ifndef GPUREST_SESSION_SHARE_H
#define GPUREST_SESSION_SHARE_H

#include "session/session.h"

enum share_direction { SHARE_TO_DEVICE, SHARE_FROM_DEVICE };

struct share_view {
    int      fd;      /* the caller's */
    uint64_t bytes;   /* of the buffer */
    uint64_t offset;  /* of its first byte in what the descriptor is of */
    bool     created; /* by this call: all zeros */
    bool     direct;  /* it is the buffer's own memory */
};

struct share_handle {
    int      fd; /* the caller's */
    uint64_t bytes;
    uint64_t taken; /* bytes of the allocation: what is to be mapped */
    uint64_t unit;  /* what that is a multiple of */
};

/* FEATURE_DISABLED; QUOTA_EXCEEDED; OVERLOADED when the process shares too much already. Blocks while the memory is taken from the host. */
enum status share_open(struct session *s, struct span buffer, struct share_view *out, struct problem *why);
/* FEATURE_DISABLED; INVALID_FIELD when the buffer is not shareable, or its device has no such descriptors. Each call makes a new one. */
enum status share_export(struct session *s, struct span buffer, struct share_handle *out, struct problem *why);
/* Copies that range between the memory and the buffer, ordered as an upload or download is. Blocks. SHARE_NOT_FOUND. */
enum status share_move(struct session *s, struct span buffer, enum share_direction direction, uint64_t offset, uint64_t bytes,
                       struct problem *why);
/* The memory goes back to the host before it returns, unless it is being copied from or to. SHARE_NOT_FOUND, also for a buffer's own. */
enum status share_close(struct session *s, struct span buffer, struct problem *why);

#endif
