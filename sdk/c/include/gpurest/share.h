/* Memory shared with a service on the same host: what gpurest.h has for bytes that travel, for bytes that need not. The rules of gpurest.h on
 * threads, errors and blocking hold here, too. */
#ifndef GPUREST_SHARE_H
#define GPUREST_SHARE_H

#include <gpurest/gpurest.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ==== share: a buffer's bytes as memory of this process ====
 * Over a Unix socket, from a service with --local-sharing; else GPUREST_E_UNSUPPORTED. Not in a batch. */

/* Maps memory of the buffer's size, which the service shares with whoever maps it: zeros at first, the same for all who ask. Nothing is
 * copied by itself. It counts as memory of the session. *memory is released by gpurest_unshare. */
GPUREST_API gpurest_status gpurest_share(gpurest_session *session, gpurest_buffer buffer, void **memory);
/* Copies between the memory and the buffer; ordered as gpurest_write and gpurest_read are. 0 bytes are fine. Several threads may copy
 * ranges apart from each other at once. */
GPUREST_API gpurest_status gpurest_share_to_device(gpurest_session *session, gpurest_buffer buffer, size_t offset, size_t bytes);
GPUREST_API gpurest_status gpurest_share_from_device(gpurest_session *session, gpurest_buffer buffer, size_t offset, size_t bytes);
/* Local. The mapping ends; the memory stays the service's until gpurest_share_end, the buffer's end, or a reset: whoever maps it then finds
 * zeros. NULL is fine. `bytes` is the buffer's size. */
GPUREST_API void gpurest_unshare(void *memory, size_t bytes);
/* The service takes the memory back from all who map it. */
GPUREST_API gpurest_status gpurest_share_end(gpurest_session *session, gpurest_buffer buffer);

#ifdef __cplusplus
}
#endif

#endif
