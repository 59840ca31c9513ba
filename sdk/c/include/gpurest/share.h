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
/* As gpurest_alloc, an allocation of its own whose memory other processes can map, all zeros; it counts with what it takes. Where a device's
 * memory is the host's (cpu), gpurest_share gives that very memory: nothing is copied, gpurest_share_to_device and _from_device wait for what
 * was submitted before, and gpurest_share_end finds nothing to end (GPUREST_E_NOTFOUND). Not in a batch. */
GPUREST_API gpurest_status gpurest_alloc_shareable(gpurest_session *session, gpurest_buffer *out, size_t bytes);

/* Memory of a GPU for this process's own CUDA context. */
typedef struct gpurest_cuda_memory {
    int    fd;              /* the caller's: for cuMemImportFromShareableHandle, as a POSIX file descriptor; to be closed after that */
    size_t allocation_size; /* bytes to be mapped; the buffer is the first of them */
    size_t granularity;     /* what that is a multiple of */
} gpurest_cuda_memory;
/* Of a buffer that gpurest_alloc_shareable made, on a GPU of this host; else GPUREST_E_INVAL. What is imported stays valid after the buffer's
 * end. Nothing orders the two sides but the program: it synchronises its stream before launches that read what it wrote; what a launch wrote
 * is there once that was waited for. */
GPUREST_API gpurest_status gpurest_share_cuda(gpurest_session *session, gpurest_buffer buffer, gpurest_cuda_memory *out);
/* Local. The mapping ends; the memory stays the service's until gpurest_share_end, the buffer's end, or a reset: whoever maps it then finds
 * zeros. NULL is fine. `bytes` is the buffer's size. */
GPUREST_API void gpurest_unshare(void *memory, size_t bytes);
/* The service takes the memory back from all who map it. */
GPUREST_API gpurest_status gpurest_share_end(gpurest_session *session, gpurest_buffer buffer);

#ifdef __cplusplus
}
#endif

#endif
