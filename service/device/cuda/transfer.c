/* Writes, reads, copies and fills device memory in the order of a stream. */
#include "device/cuda/internal.h"

enum { FILL_SEED_ELEMENTS = 4096 }; /* 8-byte elements that are set one by one before copying takes over */

/* The word's device address, for cuda_mark(); unavailable where the driver cannot tell it. */
static uint64_t device_address(const struct device *d, void *base)
{
    cuda_address at = 0;

    if (!d->cu->cuMemHostGetDevicePointer_v2 || !d->cu->cuStreamWriteValue32_v2)
        return 0;
    return d->cu->cuMemHostGetDevicePointer_v2(&at, base, 0) == CUDA_RESULT_SUCCESS ? at : 0;
}

enum status cuda_host_register(struct device *d, void *base, size_t bytes)
{
    enum status st = cuda_alive(d, NULL);

    if (st)
        return st;
    if (d->registered)
        return STATUS_INTERNAL;
    st = cuda_check(d, d->cu->cuMemHostRegister_v2(base, bytes, CUDA_HOST_REGISTER_PORTABLE), NULL, "registering host memory");
    if (st)
        return st;
    d->registered = base;
    d->registered_bytes = bytes;
    d->registered_at = device_address(d, base);
    return STATUS_OK;
}

enum status cuda_host_attach(struct device *d, void *base, size_t bytes)
{
    enum status st = cuda_alive(d, NULL);

    return st ? st : cuda_check(d, d->cu->cuMemHostRegister_v2(base, bytes, CUDA_HOST_REGISTER_PORTABLE), NULL, "registering host memory");
}

/* In a lost context there is nothing left to undo. */
void cuda_host_detach(struct device *d, void *base)
{
    if (!cuda_alive(d, NULL))
        cuda_check(d, d->cu->cuMemHostUnregister(base), NULL, "unregistering host memory");
}

/* Every queueing call starts here: the stream has unfinished work from now on. */
static enum status begin_copy(struct device *d, struct device_stream **s)
{
    *s = cuda_stream_of(d, *s);
    (*s)->busy = true;
    return cuda_alive(d, NULL);
}

enum status cuda_mem_write(struct device *d, struct device_stream *s, uint64_t to, const void *from, size_t bytes)
{
    enum status st = begin_copy(d, &s);

    if (st || !bytes)
        return st;
    if (cuda_is_texels(to))
        return cuda_texels_copy(d, s, to, &(struct cuda_linear){.host = (unsigned char *)(uintptr_t)from}, bytes, true);
    return cuda_check(d, d->cu->cuMemcpyHtoDAsync_v2(to, from, bytes, s->handle), NULL, "writing memory");
}

enum status cuda_mem_read(struct device *d, struct device_stream *s, void *to, uint64_t from, size_t bytes)
{
    enum status st = begin_copy(d, &s);

    if (st || !bytes)
        return st;
    if (cuda_is_texels(from))
        return cuda_texels_copy(d, s, from, &(struct cuda_linear){.host = to}, bytes, false);
    return cuda_check(d, d->cu->cuMemcpyDtoHAsync_v2(to, from, bytes, s->handle), NULL, "reading memory");
}

static enum status copy_bytes(struct device *d, struct device_stream *s, uint64_t to, uint64_t from, uint64_t bytes)
{
    if (cuda_is_texels(to) || cuda_is_texels(from))
        return cuda_texels_copy(d, s, cuda_is_texels(to) ? to : from, &(struct cuda_linear){.address = cuda_is_texels(to) ? from : to},
                                bytes, cuda_is_texels(to));
    return cuda_check(d, d->cu->cuMemcpyDtoDAsync_v2(to, from, bytes, s->handle), NULL, "copying memory");
}

/* The driver leaves overlapping copies undefined, and two arrays may have rows of other lengths: they go through a temporary allocation. */
static enum status copy_between(struct device *d, struct device_stream *s, uint64_t to, uint64_t from, uint64_t bytes)
{
    uint64_t    between;
    enum status freed;
    enum status st = cuda_mem_alloc(d, bytes, &between);

    if (st)
        return st;
    st = copy_bytes(d, s, between, from, bytes);
    if (!st)
        st = copy_bytes(d, s, to, between, bytes);
    freed = cuda_mem_free(d, between);
    return st ? st : freed;
}

enum status cuda_mem_copy(struct device *d, struct device_stream *s, uint64_t to, uint64_t from, uint64_t bytes)
{
    uint64_t    apart = to > from ? to - from : from - to;
    enum status st = begin_copy(d, &s);

    if (st || !bytes || !apart)
        return st;
    return apart < bytes || (cuda_is_texels(to) && cuda_is_texels(from)) ? copy_between(d, s, to, from, bytes)
                                                                         : copy_bytes(d, s, to, from, bytes);
}

static enum status fill_words(struct device *d, struct device_stream *s, uint64_t to, uint32_t word, uint64_t count)
{
    return cuda_check(d, d->cu->cuMemsetD32Async(to, word, count, s->handle), NULL, "filling memory");
}

/* One of the two halves of each of `count` 8-byte elements: a column of words, 8 bytes apart. A driver without columns fills one. */
static enum status fill_half(struct device *d, struct device_stream *s, uint64_t to, uint32_t word, uint64_t count)
{
    if (count == 1)
        return fill_words(d, s, to, word, 1);
    return cuda_check(d, d->cu->cuMemsetD2D32Async(to, 8, word, 1, count, s->handle), NULL, "filling memory");
}

/* The driver has no 8-byte fill: some elements are set by halves, then copied to what follows, twice as many each time. */
static enum status fill_long(struct device *d, struct device_stream *s, uint64_t to, uint64_t pattern, uint64_t count)
{
    uint64_t    seed = d->cu->cuMemsetD2D32Async ? FILL_SEED_ELEMENTS : 1;
    uint64_t    done = count < seed ? count : seed;
    enum status st;

    if ((uint32_t)pattern == (uint32_t)(pattern >> 32))
        return fill_words(d, s, to, (uint32_t)pattern, 2 * count);
    st = fill_half(d, s, to, (uint32_t)pattern, done);
    if (!st)
        st = fill_half(d, s, to + 4, (uint32_t)(pattern >> 32), done);
    while (!st && done < count) {
        uint64_t more = done < count - done ? done : count - done;

        st = copy_bytes(d, s, to + 8 * done, to, 8 * more);
        done += more;
    }
    return st;
}

enum status cuda_mem_fill(struct device *d, struct device_stream *s, uint64_t to, uint64_t pattern, uint32_t pattern_bytes, uint64_t count)
{
    enum status st = begin_copy(d, &s);

    if (st || !count)
        return st;
    if (!pattern_bytes || count > d->total_bytes / pattern_bytes || cuda_is_texels(to))
        return STATUS_INTERNAL;
    switch (pattern_bytes) {
    case 1:
        return cuda_check(d, d->cu->cuMemsetD8Async(to, (unsigned char)pattern, count, s->handle), NULL, "filling memory");
    case 2:
        return cuda_check(d, d->cu->cuMemsetD16Async(to, (unsigned short)pattern, count, s->handle), NULL, "filling memory");
    case 4:
        return fill_words(d, s, to, (uint32_t)pattern, count);
    case 8:
        return fill_long(d, s, to, pattern, count);
    default:
        return STATUS_INTERNAL;
    }
}
