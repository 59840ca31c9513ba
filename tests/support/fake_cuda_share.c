/* The fake driver's memory that several processes map: each share is a memory file, filled with rubbish as memory that others had. */
#include "support/fake_cuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { UNIT_BYTES = 2 * 1024 * 1024, RUBBISH = 0xa5 };

/* A handle is the descriptor and one, so that none is 0. */
static int file_of(cuda_share share)
{
    return (int)share - 1;
}

cuda_result cuMemGetAllocationGranularity(size_t *bytes, const struct cuda_share_props *props, unsigned option)
{
    cuda_result r = fake_step_free(__func__);

    *bytes = UNIT_BYTES;
    return r                                                                                    ? r
           : props->location.type == CUDA_LOCATION_DEVICE && option == CUDA_GRANULARITY_MINIMUM ? CUDA_RESULT_SUCCESS
                                                                                                : CUDA_RESULT_ERROR_INVALID_VALUE;
}

static bool fill(int fd, size_t bytes)
{
    void *at = ftruncate(fd, (off_t)bytes) ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        return false;
    memset(at, RUBBISH, bytes);
    munmap(at, bytes);
    return true;
}

cuda_result cuMemCreate(cuda_share *share, size_t bytes, const struct cuda_share_props *props, unsigned long long flags)
{
    cuda_result r = fake_step(__func__);
    int         fd;

    if (r)
        return r;
    if (flags || !bytes || bytes % UNIT_BYTES || props->allocation_type != CUDA_ALLOCATION_PINNED ||
        (props->handle_types && props->handle_types != CUDA_HANDLE_POSIX_DESCRIPTOR))
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    if (!fake_memory_add(NULL, bytes)) /* only asks whether there is room */
        return CUDA_RESULT_ERROR_OUT_OF_MEMORY;
    fake_memory_remove(NULL);
    if (!fake_room_take(bytes))
        return CUDA_RESULT_ERROR_OUT_OF_MEMORY;
    fake_room_give(bytes);
    fd = memfd_create("fake-share", MFD_CLOEXEC);
    if (fd < 0 || !fill(fd, bytes))
        abort();
    fake_live(1);
    *share = (cuda_share)fd + 1;
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuMemRelease(cuda_share share)
{
    cuda_result r = fake_step_free(__func__);

    if (close(file_of(share)) == 0)
        fake_live(-1);
    return r;
}

cuda_result cuMemAddressReserve(cuda_address *address, size_t bytes, size_t alignment, cuda_address wish, unsigned long long flags)
{
    cuda_result r = fake_step(__func__);
    void       *at;

    if (r)
        return r;
    at = alignment || wish || flags ? MAP_FAILED : mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    fake_live(1);
    *address = (cuda_address)(uintptr_t)at;
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuMemAddressFree(cuda_address address, size_t bytes)
{
    cuda_result r = fake_step_free(__func__);

    munmap((void *)(uintptr_t)address, bytes);
    fake_live(-1);
    return r;
}

/* Nobody can touch it before cuMemSetAccess(). */
cuda_result cuMemMap(cuda_address address, size_t bytes, size_t offset, cuda_share share, unsigned long long flags)
{
    cuda_result r = fake_step(__func__);
    void       *at = (void *)(uintptr_t)address;

    if (r)
        return r;
    if (offset || flags || mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file_of(share), 0) == MAP_FAILED)
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    if (!fake_room_take(bytes))
        return CUDA_RESULT_ERROR_OUT_OF_MEMORY;
    if (!fake_memory_add(at, bytes)) {
        fake_room_give(bytes);
        return CUDA_RESULT_ERROR_OUT_OF_MEMORY;
    }
    fake_live(1);
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuMemUnmap(cuda_address address, size_t bytes)
{
    cuda_result r = fake_step_free(__func__);
    void       *at = (void *)(uintptr_t)address;

    if (r)
        return r;
    if (!fake_memory_remove(at))
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    fake_room_give(bytes);
    fake_live(-1);
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuMemSetAccess(cuda_address address, size_t bytes, const struct cuda_access *access, size_t count)
{
    cuda_result r = fake_step(__func__);

    if (r)
        return r;
    if (count != 1 || access->flags != CUDA_ACCESS_READ_WRITE || mprotect((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE))
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuMemExportToShareableHandle(void *descriptor, cuda_share share, unsigned type, unsigned long long flags)
{
    cuda_result r = fake_step(__func__);
    int         fd;

    if (r)
        return r;
    fd = type == CUDA_HANDLE_POSIX_DESCRIPTOR && !flags ? dup(file_of(share)) : -1;
    if (fd < 0)
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    memcpy(descriptor, &fd, sizeof fd);
    return CUDA_RESULT_SUCCESS;
}
