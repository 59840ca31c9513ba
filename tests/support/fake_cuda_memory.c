/* The fake driver's memory: host memory behind a guard that knows every live allocation. */
#include "support/fake_cuda.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* As the real one, a pool keeps what was freed until it is trimmed. */
struct CUmemPoolHandle_st {
    size_t used;
    size_t reserved;
};

static struct block {
    struct block *next;
    size_t        bytes;
    void         *data;
    cuda_pool     pool;
} * blocks;

static size_t used_bytes;
static size_t cached_bytes; /* of all pools: reserved and not in use */
static size_t lost_bytes;   /* with ".keeps" beside the library: what pools were trimmed of, and the device did not get back */
static bool   keeps;

__attribute__((constructor)) static void look_whether_it_keeps(void)
{
    char text[8];

    keeps = fake_read_beside(".keeps", text, sizeof text);
}

static struct room {
    _Atomic uint64_t total, used;
} * room;

__attribute__((constructor)) static void find_room(void)
{
    room = fake_map_beside(".room", sizeof *room);
}

bool fake_room_take(size_t bytes)
{
    if (!room || atomic_fetch_add(&room->used, bytes) + bytes <= atomic_load(&room->total))
        return true;
    fake_room_give(bytes);
    return false;
}

void fake_room_give(size_t bytes)
{
    if (room)
        atomic_fetch_sub(&room->used, bytes);
}

static size_t device_bytes(void)
{
    const char *mib = getenv("FAKE_CUDA_MEMORY_MIB");
    return (mib ? strtoul(mib, NULL, 10) : 256) << 20;
}

bool fake_is_memory(cuda_address address, size_t bytes)
{
    for (struct block *b = blocks; b; b = b->next) {
        cuda_address start = (cuda_address)(uintptr_t)b->data;

        if (address >= start && bytes <= b->bytes && address - start <= b->bytes - bytes)
            return true;
    }
    return fake_is_variable(address, bytes);
}

bool fake_memory_add(void *data, size_t bytes)
{
    struct block *b;

    if (bytes > device_bytes() - used_bytes)
        return false;
    b = calloc(1, sizeof *b);
    *b = (struct block){blocks, bytes, data, NULL};
    blocks = b;
    used_bytes += bytes;
    return true;
}

bool fake_memory_remove(const void *data)
{
    struct block **link = &blocks;
    struct block  *b;

    while (*link && (*link)->data != data)
        link = &(*link)->next;
    b = *link;
    if (!b || b->pool)
        return false;
    *link = b->next;
    used_bytes -= b->bytes;
    free(b);
    return true;
}

cuda_result cuDeviceTotalMem_v2(size_t *bytes, cuda_ordinal device)
{
    (void)device;
    *bytes = device_bytes();
    return fake_step_free(__func__);
}

cuda_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    *total_bytes = device_bytes();
    *free_bytes = device_bytes() - used_bytes - cached_bytes - lost_bytes;
    if (room && *free_bytes > atomic_load(&room->total) - atomic_load(&room->used))
        *free_bytes = atomic_load(&room->total) - atomic_load(&room->used);
    return fake_step(__func__);
}

cuda_result cuMemPoolCreate(cuda_pool *pool, const struct cuda_pool_props *props)
{
    cuda_result r = fake_step(__func__);

    if (r)
        return r;
    if (props->allocation_type != CUDA_ALLOCATION_PINNED || props->location.type != CUDA_LOCATION_DEVICE)
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    *pool = calloc(1, sizeof **pool);
    fake_live(1);
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuMemPoolDestroy(cuda_pool pool)
{
    cuda_result r = fake_step(__func__);

    cached_bytes -= pool->reserved - pool->used;
    free(pool);
    fake_live(-1);
    return r;
}

cuda_result cuMemPoolSetAttribute(cuda_pool pool, unsigned attribute, void *value)
{
    (void)pool;
    (void)attribute;
    (void)value;
    return fake_step(__func__);
}

cuda_result cuMemPoolGetAttribute(cuda_pool pool, unsigned attribute, void *value)
{
    uint64_t bytes = attribute == CUDA_POOL_USED_CURRENT ? pool->used : pool->reserved;

    if (attribute == CUDA_POOL_RESERVED_CURRENT || attribute == CUDA_POOL_USED_CURRENT)
        memcpy(value, &bytes, sizeof bytes);
    return fake_step(__func__);
}

cuda_result cuMemPoolTrimTo(cuda_pool pool, size_t bytes_to_keep)
{
    cuda_result r = fake_step(__func__);
    size_t      kept = pool->used > bytes_to_keep ? pool->used : bytes_to_keep;

    if (r || kept > pool->reserved)
        return r;
    cached_bytes -= pool->reserved - kept;
    if (keeps)
        lost_bytes += pool->reserved - kept;
    pool->reserved = kept;
    return r;
}

cuda_result cuMemAllocFromPoolAsync(cuda_address *address, size_t bytes, cuda_pool pool, cuda_stream stream)
{
    cuda_result   r = fake_step(__func__);
    struct block *b;

    (void)stream;
    if (r)
        return r;
    if (bytes > device_bytes() - used_bytes - lost_bytes)
        return CUDA_RESULT_ERROR_OUT_OF_MEMORY;
    b = calloc(1, sizeof *b);
    *b = (struct block){blocks, bytes, aligned_alloc(512, (bytes + 511) / 512 * 512), pool};
    blocks = b;
    used_bytes += bytes;
    pool->used += bytes;
    cached_bytes -= bytes < pool->reserved - (pool->used - bytes) ? bytes : pool->reserved - (pool->used - bytes);
    if (pool->used > pool->reserved)
        pool->reserved = pool->used;
    fake_live(1);
    *address = (cuda_address)(uintptr_t)b->data;
    return CUDA_RESULT_SUCCESS;
}

/* A lost context gives its memory back too. */
cuda_result cuMemFreeAsync(cuda_address address, cuda_stream stream)
{
    cuda_result    r = fake_step(__func__);
    struct block **link = &blocks;
    struct block  *b;

    (void)stream;
    while (*link && (cuda_address)(uintptr_t)(*link)->data != address)
        link = &(*link)->next;
    b = *link;
    if (!b || !b->pool)
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    *link = b->next;
    used_bytes -= b->bytes;
    cached_bytes += b->bytes;
    b->pool->used -= b->bytes;
    free(b->data);
    free(b);
    fake_live(-1);
    return r;
}

cuda_result cuMemHostRegister_v2(void *base, size_t bytes, unsigned flags)
{
    cuda_result r = fake_step(__func__);

    (void)base;
    (void)bytes;
    (void)flags;
    if (!r)
        fake_live(1);
    return r;
}

/* Host memory is device memory here. */
cuda_result cuMemHostGetDevicePointer_v2(cuda_address *address, void *host, unsigned flags)
{
    cuda_result r = fake_step(__func__);

    *address = (cuda_address)(uintptr_t)host;
    return r ? r : flags ? CUDA_RESULT_ERROR_INVALID_VALUE : CUDA_RESULT_SUCCESS;
}

cuda_result cuMemHostUnregister(void *base)
{
    (void)base;
    fake_live(-1);
    return fake_step(__func__);
}

/* Nothing behind an endless kernel happens. */
static bool happens(cuda_stream stream)
{
    return !fake_stuck(stream->stuck);
}

static cuda_result bad_range(cuda_address address, size_t bytes)
{
    return fake_is_memory(address, bytes) ? CUDA_RESULT_SUCCESS : CUDA_RESULT_ERROR_INVALID_VALUE;
}

cuda_result cuMemcpyHtoDAsync_v2(cuda_address to, const void *from, size_t bytes, cuda_stream stream)
{
    cuda_result r = fake_step(__func__);

    if (!r)
        r = bad_range(to, bytes);
    if (!r && happens(stream))
        memcpy((void *)(uintptr_t)to, from, bytes);
    return r;
}

cuda_result cuMemcpyDtoHAsync_v2(void *to, cuda_address from, size_t bytes, cuda_stream stream)
{
    cuda_result r = fake_step(__func__);

    if (!r)
        r = bad_range(from, bytes);
    if (!r && happens(stream))
        memcpy(to, (void *)(uintptr_t)from, bytes);
    return r;
}

/* Overlapping copies go wrong on purpose, as they may on a device. */
cuda_result cuMemcpyDtoDAsync_v2(cuda_address to, cuda_address from, size_t bytes, cuda_stream stream)
{
    cuda_result r = fake_step(__func__);

    if (!r)
        r = bad_range(from, bytes);
    if (!r)
        r = bad_range(to, bytes);
    for (size_t i = 0; !r && happens(stream) && i < bytes; i++)
        ((unsigned char *)(uintptr_t)to)[i] = ((unsigned char *)(uintptr_t)from)[i];
    return r;
}

/* `bytes`: some values, at least one. Doubles what is there: a sanitizer checks each copy, which for each value takes most of a test's time. */
static void repeat(char *to, const void *value, size_t value_bytes, size_t bytes)
{
    memcpy(to, value, value_bytes);
    for (size_t done = value_bytes; done < bytes; done *= 2)
        memcpy(to + done, to, done < bytes - done ? done : bytes - done);
}

/* `height` rows of `width` elements, `pitch` bytes apart. */
static cuda_result set(const char *name, cuda_address to, size_t pitch, const void *value, size_t value_bytes, size_t width, size_t height,
                       cuda_stream stream)
{
    cuda_result r = fake_step(name);

    if (r || width == 0 || height == 0)
        return r;
    if (to % value_bytes != 0)
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    r = bad_range(to, pitch * (height - 1) + width * value_bytes);
    for (size_t y = 0; !r && happens(stream) && y < height; y++)
        repeat((char *)(uintptr_t)to + y * pitch, value, value_bytes, width * value_bytes);
    return r;
}

cuda_result cuMemsetD8Async(cuda_address to, unsigned char value, size_t count, cuda_stream stream)
{
    return set(__func__, to, 0, &value, sizeof value, count, 1, stream);
}

cuda_result cuMemsetD16Async(cuda_address to, unsigned short value, size_t count, cuda_stream stream)
{
    return set(__func__, to, 0, &value, sizeof value, count, 1, stream);
}

cuda_result cuMemsetD32Async(cuda_address to, unsigned value, size_t count, cuda_stream stream)
{
    return set(__func__, to, 0, &value, sizeof value, count, 1, stream);
}

cuda_result cuMemsetD2D32Async(cuda_address to, size_t pitch, unsigned value, size_t width, size_t height, cuda_stream stream)
{
    return set(__func__, to, pitch, &value, sizeof value, width, height, stream);
}
