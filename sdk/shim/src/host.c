/* Memory of the host that programs want locked in place. There is no device here that would read it: it is plain memory. */
#include <stdlib.h>
#include <string.h>

#include "shim.h"

enum { HOST_FLAGS = 7, FLAG_DEVICE_MAP = 2, PAGE = 4096 };

struct host_range {
    void    *start;
    size_t   bytes;
    unsigned flags;
    bool     registered; /* the program's own memory */
};

static struct host_range *ranges;
static size_t             count, room;

static struct host_range *find(const void *start)
{
    for (size_t i = 0; i < count; i++)
        if (ranges[i].start == start)
            return &ranges[i];
    return NULL;
}

bool host_is_pinned(const void *start, size_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        uintptr_t offset = (uintptr_t)start - (uintptr_t)ranges[i].start;

        if (offset < ranges[i].bytes && bytes <= ranges[i].bytes - offset)
            return true;
    }
    return false;
}

static bool add(const struct host_range *r)
{
    size_t             more = room ? 2 * room : 16;
    struct host_range *larger = count < room ? ranges : realloc(ranges, more * sizeof *ranges);

    if (!larger)
        return false;
    room = count < room ? room : more;
    ranges = larger;
    ranges[count++] = *r;
    return true;
}

static void drop(struct host_range *r)
{
    *r = ranges[--count];
}

/* A device elsewhere cannot map it: programs that ask for that get told. */
CUresult shim_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    struct host_range r = {.bytes = bytesize, .flags = Flags};

    if (!pp || bytesize == 0 || Flags & ~(unsigned)HOST_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    if (Flags & FLAG_DEVICE_MAP)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (bytesize > SIZE_MAX - PAGE || posix_memalign(&r.start, PAGE, bytesize))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!add(&r)) {
        free(r.start);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pp = r.start;
    return CUDA_SUCCESS;
}

CUresult shim_cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    return shim_cuMemHostAlloc(pp, bytesize, 0);
}

CUresult shim_cuMemFreeHost(void *p)
{
    struct host_range *r = find(p);

    if (!p)
        return CUDA_SUCCESS;
    if (!r || r->registered)
        return CUDA_ERROR_INVALID_VALUE;
    gpus_flush(); /* copies to it may be queued */
    free(r->start);
    drop(r);
    return CUDA_SUCCESS;
}

CUresult shim_cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    const struct host_range *r = find(p);

    if (!pFlags || !r)
        return CUDA_ERROR_INVALID_VALUE;
    *pFlags = r->flags;
    return CUDA_SUCCESS;
}

CUresult shim_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    struct host_range r = {.start = p, .bytes = bytesize, .flags = Flags, .registered = true};

    if (!p || bytesize == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (Flags & ~1u)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (find(p))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return add(&r) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult shim_cuMemHostUnregister(void *p)
{
    struct host_range *r = find(p);

    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (!r || !r->registered)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    gpus_flush();
    drop(r);
    return CUDA_SUCCESS;
}
