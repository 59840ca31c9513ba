/* Memory shared with a service on the same host, instead of transfers. The rules of gpurest.h apply. */
#ifndef GPUREST_SHARE_H
#define GPUREST_SHARE_H

#include <gpurest/gpurest.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ==== share: map a buffer's memory into this process ====
 * Needs Linux, a Unix socket and a service with --local-sharing; else GPUREST_E_UNSUPPORTED. Not in a batch. */

/* Maps shared memory of the buffer's size: zeros at first, the same for every caller. Copies are explicit. It counts as memory of the session.
 * *memory is released by gpurest_unshare. */
GPUREST_API gpurest_status gpurest_share(gpurest_session *session, gpurest_buffer buffer, void **memory);
/* Copies between the memory and the buffer, in the order of gpurest_write and gpurest_read. 0 bytes are fine. Several threads may copy
 * disjoint ranges at once. */
GPUREST_API gpurest_status gpurest_share_to_device(gpurest_session *session, gpurest_buffer buffer, size_t offset, size_t bytes);
GPUREST_API gpurest_status gpurest_share_from_device(gpurest_session *session, gpurest_buffer buffer, size_t offset, size_t bytes);
/* Allocates a zeroed buffer whose memory other processes can map; its whole allocation counts. On cpu devices gpurest_share maps the buffer
 * itself: nothing is copied, gpurest_share_to_device and _from_device only wait for earlier work, and gpurest_share_end returns
 * GPUREST_E_NOTFOUND. Not in a batch. */
GPUREST_API gpurest_status gpurest_alloc_shareable(gpurest_session *session, gpurest_buffer *out, size_t bytes);

/* GPU memory for import into this process's own CUDA context. */
typedef struct gpurest_cuda_memory {
    int    fd;              /* owned by the caller: import with cuMemImportFromShareableHandle, then close it */
    size_t allocation_size; /* bytes to map; the buffer is at their start */
    size_t granularity;     /* allocation_size is a multiple of it */
} gpurest_cuda_memory;
/* For a buffer made by gpurest_alloc_shareable on a GPU of this host; else GPUREST_E_INVAL. Imported memory stays valid after the buffer is
 * freed. The program must order both sides: synchronize its own stream before launches that read its writes, and wait for launches before it
 * reads theirs. */
GPUREST_API gpurest_status gpurest_share_cuda(gpurest_session *session, gpurest_buffer buffer, gpurest_cuda_memory *out);
/* Local. Unmaps the memory. The service keeps it until gpurest_share_end, gpurest_free or a reset; mappings that remain
 * then read zeros. NULL is fine. `bytes` is the buffer's size. */
GPUREST_API void gpurest_unshare(void *memory, size_t bytes);
/* Ends the sharing; remaining mappings read zeros. */
GPUREST_API gpurest_status gpurest_share_end(gpurest_session *session, gpurest_buffer buffer);

#ifdef __cplusplus
}
#endif

#endif
