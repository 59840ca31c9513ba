/* Memory that clients of the same host map: for a buffer, a sealed memfd of its size, and copies between the two.
 *
 * The service never maps it, it reads and writes it by system calls: whatever a client does to that memory, the worst is an error. Its bytes
 * count as memory of the session and against shared_bytes_max of the whole process. It ends with its buffer; the memory is then taken
 * back from those who still map it, who find zeros there. */
#ifndef GPUREST_SESSION_SHARE_H
#define GPUREST_SESSION_SHARE_H

#include "session/session.h"

enum share_direction { SHARE_TO_DEVICE, SHARE_FROM_DEVICE };

/* *fd, the caller's, is a descriptor of the buffer's memory, made at the first call (*created): all zeros then. FEATURE_DISABLED;
 * QUOTA_EXCEEDED; OVERLOADED when the process shares too much already. Blocks while the memory is taken from the host. */
enum status share_open(struct session *s, struct span buffer, int *fd, uint64_t *bytes, bool *created, struct problem *why);
/* Copies that range between the memory and the buffer, ordered as an upload or download is. Blocks. SHARE_NOT_FOUND. */
enum status share_move(struct session *s, struct span buffer, enum share_direction direction, uint64_t offset, uint64_t bytes,
                       struct problem *why);
/* The memory goes back to the host before it returns, unless it is being copied from or to. SHARE_NOT_FOUND. */
enum status share_close(struct session *s, struct span buffer, struct problem *why);

#endif
