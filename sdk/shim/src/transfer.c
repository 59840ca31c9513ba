/* Bytes to, from and within memory of a device, by the queue; long ones by requests of their own. */
#include "batch/batch.h"
#include "shim.h"

static CUresult entry_of(const struct device_range *p, const gpurest_batch *b, struct buffer_entry *out)
{
    return session_buffer(p->gpu->session, p->buffer, b, out) ? gpu_failed(p->gpu) : CUDA_SUCCESS;
}

CUresult range_upload(const struct device_range *to, const void *from, size_t bytes)
{
    struct buffer_entry e;
    gpurest_batch      *b;
    CUresult            r;

    if (bytes > QUEUE_BYTES_MAX / 2) {
        r = queue_flush(to->gpu);
        return r ? r : queue_end(to->gpu, gpurest_write(to->gpu->session, to->buffer, to->offset, from, bytes));
    }
    b = queue_begin(to->gpu, bytes, &r);
    r = b ? entry_of(to, b, &e) : r;
    return r ? r : queue_end(to->gpu, batch_write(b, &e, to->offset, from, bytes));
}

CUresult range_download(void *to, const struct device_range *from, size_t bytes, bool now)
{
    struct buffer_entry e;
    gpurest_batch      *b;
    CUresult            r;

    if (bytes > READ_IN_FRAME_BYTES_MAX) {
        r = queue_flush(from->gpu);
        return r ? r : queue_end(from->gpu, gpurest_read(from->gpu->session, from->buffer, from->offset, to, bytes));
    }
    b = queue_begin(from->gpu, 0, &r);
    r = b ? entry_of(from, b, &e) : r;
    if (!r)
        r = queue_end(from->gpu, batch_read(b, &e, from->offset, to, bytes));
    if (r)
        return r;
    return now ? queue_flush(from->gpu) : queue_note_read(from->gpu, bytes);
}

/* Ranges that overlap have no defined result in CUDA; the service refuses them, so that they are refused here at once. */
CUresult range_copy(const struct device_range *to, const struct device_range *from, size_t bytes)
{
    struct buffer_entry e, source;
    gpurest_batch      *b;
    CUresult            r;

    if (to->gpu != from->gpu)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (to->buffer.id == from->buffer.id && to->offset == from->offset)
        return CUDA_SUCCESS;
    if (to->buffer.id == from->buffer.id && to->offset < from->offset + bytes && from->offset < to->offset + bytes)
        return CUDA_ERROR_INVALID_VALUE;
    b = queue_begin(to->gpu, 0, &r);
    r = b ? entry_of(to, b, &e) : r;
    r = r ? r : entry_of(from, b, &source);
    return r ? r : queue_end(to->gpu, batch_copy(b, &e, to->offset, &source, from->offset, bytes, ""));
}
