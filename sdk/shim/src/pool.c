/* Memory pools: memory that is freed in a stream's order stays here, and the next allocation of the device takes it. All streams run in the order
 * of the calls, so that it may be taken at once. What a pool keeps beyond its threshold goes back when the program waits for the device. */
#include <stdlib.h>
#include <string.h>

#include "shim.h"

enum {
    ATTRIBUTE_REUSE_FIRST = 1, /* three switches about reuse: there is one order here */
    ATTRIBUTE_REUSE_LAST = 3,
    ATTRIBUTE_THRESHOLD = 4,
    ATTRIBUTE_RESERVED = 5,
    ATTRIBUTE_RESERVED_HIGH = 6,
    ATTRIBUTE_USED = 7,
    ATTRIBUTE_USED_HIGH = 8,
    ALLOCATION_PINNED = 1,
    LOCATION_DEVICE = 1,
    ACCESS_NONE = 0,
    ACCESS_READ = 1,
    ACCESS_READ_WRITE = 3,
    UNIT = 512, /* sizes are multiples of it, so that memory fits again */
};

struct pool {
    struct gpu        *gpu;
    void              *handle;
    struct allocation *kept; /* free memory; the service has it still */
    size_t             kept_count, kept_room;
    uint64_t           threshold, reserved, reserved_high, used, used_high;
    int                reuse[ATTRIBUTE_REUSE_LAST + 1];
    bool               of_device;
};

static struct pool *pool_of(const void *handle)
{
    return handle_get(HANDLE_POOL, handle);
}

static struct pool *make(struct gpu *g)
{
    struct pool *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    *p = (struct pool){.gpu = g, .reuse = {0, 1, 1, 1}};
    p->handle = handle_add(HANDLE_POOL, p);
    if (p->handle)
        return p;
    free(p);
    return NULL;
}

/* Made when it is first needed; NULL: out of memory. */
static struct pool *default_of(struct gpu *g)
{
    if (!g->default_pool)
        g->default_pool = make(g);
    if (g->default_pool)
        g->default_pool->of_device = true;
    if (!g->pool)
        g->pool = g->default_pool;
    return g->default_pool;
}

static struct pool *current_of(struct gpu *g)
{
    return default_of(g) ? g->pool : NULL;
}

/* ---- what a pool keeps ---- */

static void note(uint64_t *current, uint64_t *high, uint64_t more)
{
    *current += more;
    *high = *current > *high ? *current : *high;
}

/* The smallest that is large enough, and not twice as large. Checked memory is never taken again, so that its use after the free is found. */
static struct allocation *find_kept(const struct pool *p, uint64_t bytes)
{
    struct allocation *best = NULL;

    for (size_t i = 0; i < p->kept_count; i++)
        if (p->kept[i].bytes >= bytes && p->kept[i].bytes <= 2 * bytes && (!best || p->kept[i].bytes < best->bytes))
            best = &p->kept[i];
    return best;
}

static bool keep(struct pool *p, const struct allocation *a)
{
    size_t             more = p->kept_room ? 2 * p->kept_room : 16;
    struct allocation *larger = p->kept_count < p->kept_room ? p->kept : realloc(p->kept, more * sizeof *larger);

    if (!larger)
        return false;
    p->kept_room = p->kept_count < p->kept_room ? p->kept_room : more;
    p->kept = larger;
    p->kept[p->kept_count++] = *a;
    return true;
}

static CUresult trim(struct pool *p, uint64_t bytes_to_keep)
{
    CUresult r = CUDA_SUCCESS;

    while (p->kept_count && p->reserved > bytes_to_keep && !r) {
        struct allocation a = p->kept[--p->kept_count];

        p->reserved -= a.bytes;
        r = memory_release(&a);
    }
    return r;
}

static void trim_if_of(void *handle, void *object, void *arg)
{
    struct pool *p = object;

    (void)handle;
    if (p->gpu == arg)
        trim(p, p->threshold);
}

void pools_trim(struct gpu *g)
{
    handle_each(HANDLE_POOL, trim_if_of, g);
}

static void forget_if_of(void *handle, void *object, void *arg)
{
    struct pool *p = object;

    (void)handle;
    if (p->gpu == arg)
        p->kept_count = p->reserved = p->used = 0;
}

void pools_forget(struct gpu *g)
{
    handle_each(HANDLE_POOL, forget_if_of, g);
}

void pool_freed(struct pool *p, const struct allocation *a)
{
    p->used -= a->bytes;
    p->reserved -= a->bytes;
}

/* ---- allocate and free ---- */

static CUresult allocate(struct pool *p, size_t bytes, CUdeviceptr *out)
{
    struct allocation *kept, a;
    size_t             rounded;
    CUresult           r;

    if (!out || __builtin_add_overflow(bytes, (size_t)UNIT - 1, &rounded))
        return CUDA_ERROR_INVALID_VALUE;
    rounded = bytes ? rounded / UNIT * UNIT : UNIT; /* no bytes are fine for NVIDIA's driver; here they have a place that can be freed */
    if (p->gpu != context_current()->gpu)
        return CUDA_ERROR_NOT_SUPPORTED;
    kept = find_kept(p, rounded);
    if (kept) {
        a = *kept;
        *kept = p->kept[--p->kept_count];
        a.context = context_current();
        r = memory_put(&a) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        if (r)
            keep(p, &a);
    } else {
        r = memory_allocate(gpu_checks_memory() && bytes ? bytes : rounded, p, &a);
        if (r == CUDA_ERROR_OUT_OF_MEMORY && p->kept_count && trim(p, 0) == CUDA_SUCCESS)
            r = memory_allocate(rounded, p, &a);
        if (!r)
            note(&p->reserved, &p->reserved_high, a.bytes);
    }
    if (r)
        return r;
    note(&p->used, &p->used_high, a.bytes);
    *out = a.address;
    return CUDA_SUCCESS;
}

CUresult shim_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    struct pool *p;
    CUresult     r = stream_check(hStream);

    if (r)
        return r;
    if (capture_on(hStream))
        return capture_allocation(hStream, bytesize, dptr);
    p = current_of(context_current()->gpu);
    return p ? allocate(p, bytesize, dptr) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult shim_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
    struct pool *p = pool_of(pool);
    CUresult     r = stream_check(hStream);

    if (!r && p && capture_on(hStream))
        return p->gpu == context_current()->gpu ? capture_allocation(hStream, bytesize, dptr) : CUDA_ERROR_NOT_SUPPORTED;
    return r ? r : p ? allocate(p, bytesize, dptr) : CUDA_ERROR_INVALID_VALUE;
}

/* Memory of no pool may be freed so, too. */
CUresult shim_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct allocation a;
    CUresult          r = stream_check(hStream);

    if (r || dptr == 0)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (capture_on(hStream))
        return capture_free(hStream, dptr);
    if (graph_memory_free(dptr, &r))
        return r;
    if (!memory_take(dptr, &a))
        return CUDA_ERROR_INVALID_VALUE;
    if (!a.pool)
        return memory_release(&a);
    if (!gpu_checks_memory() && keep(a.pool, &a)) {
        a.pool->used -= a.bytes;
        return CUDA_SUCCESS;
    }
    pool_freed(a.pool, &a);
    return memory_release(&a);
}

/* ---- pools ---- */

CUresult shim_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    struct pool *p;
    struct gpu  *g;

    if (!pool || !poolProps || poolProps->allocType != ALLOCATION_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (poolProps->handleTypes || poolProps->location.type != LOCATION_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED; /* nobody else has the memory */
    g = gpu_at(poolProps->location.id);
    if (!g)
        return CUDA_ERROR_INVALID_VALUE;
    p = make(g);
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pool = p->handle;
    return CUDA_SUCCESS;
}

/* Memory that the program still has stays its own: it belongs to no pool from now on. */
CUresult shim_cuMemPoolDestroy(CUmemoryPool pool)
{
    struct pool *p = pool_of(pool);
    CUresult     r;

    if (!p || p->of_device)
        return CUDA_ERROR_INVALID_VALUE;
    r = trim(p, 0);
    memory_leave_pool(p);
    if (p->gpu->pool == p)
        p->gpu->pool = p->gpu->default_pool;
    handle_remove(p->handle);
    free(p->kept);
    free(p);
    return r;
}

CUresult shim_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    struct pool *p = pool_of(pool);

    return p ? trim(p, minBytesToKeep) : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    const struct pool *p = pool_of(pool);
    const uint64_t    *numbers[] = {[ATTRIBUTE_THRESHOLD] = p ? &p->threshold : NULL,
                                    [ATTRIBUTE_RESERVED] = p ? &p->reserved : NULL,
                                    [ATTRIBUTE_RESERVED_HIGH] = p ? &p->reserved_high : NULL,
                                    [ATTRIBUTE_USED] = p ? &p->used : NULL,
                                    [ATTRIBUTE_USED_HIGH] = p ? &p->used_high : NULL};

    if (!p || !value || attr < ATTRIBUTE_REUSE_FIRST || attr > ATTRIBUTE_USED_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    if (attr <= ATTRIBUTE_REUSE_LAST)
        *(int *)value = p->reuse[attr];
    else
        *(cuuint64_t *)value = *numbers[attr];
    return CUDA_SUCCESS;
}

/* The highest values can be set to 0 alone. */
CUresult shim_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    struct pool *p = pool_of(pool);

    if (!p || !value)
        return CUDA_ERROR_INVALID_VALUE;
    if (attr >= ATTRIBUTE_REUSE_FIRST && attr <= ATTRIBUTE_REUSE_LAST)
        p->reuse[attr] = *(const int *)value;
    else if (attr == ATTRIBUTE_THRESHOLD)
        p->threshold = *(const cuuint64_t *)value;
    else if (attr == ATTRIBUTE_RESERVED_HIGH && *(const cuuint64_t *)value == 0)
        p->reserved_high = p->reserved;
    else if (attr == ATTRIBUTE_USED_HIGH && *(const cuuint64_t *)value == 0)
        p->used_high = p->used;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* The pool's own device reads and writes it, and no other can. */
CUresult shim_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    const struct pool *p = pool_of(pool);

    if (!p || (count && !map))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        CUmemAccess_flags f = map[i].flags;

        if (map[i].location.type != LOCATION_DEVICE || !gpu_at(map[i].location.id))
            return CUDA_ERROR_INVALID_VALUE;
        if (f != ACCESS_NONE && f != ACCESS_READ && f != ACCESS_READ_WRITE)
            return CUDA_ERROR_INVALID_VALUE;
        if (gpu_at(map[i].location.id) != p->gpu && f)
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

CUresult shim_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
    const struct pool *p = pool_of(memPool);

    if (!p || !flags || !location || location->type != LOCATION_DEVICE || !gpu_at(location->id))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = gpu_at(location->id) == p->gpu ? ACCESS_READ_WRITE : ACCESS_NONE;
    return CUDA_SUCCESS;
}

/* ---- of devices ---- */

static CUresult give(CUmemoryPool *out, CUdevice dev, struct pool *(*which)(struct gpu *))
{
    struct gpu  *g = gpu_at(dev);
    struct pool *p = g && out ? which(g) : NULL;

    if (!out || !g)
        return out ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = p->handle;
    return CUDA_SUCCESS;
}

CUresult shim_cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    return give(pool_out, dev, default_of);
}

CUresult shim_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    return give(pool, dev, current_of);
}

CUresult shim_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    struct gpu  *g = gpu_at(dev);
    struct pool *p = pool_of(pool);

    if (!g || !p || p->gpu != g)
        return g ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    if (!default_of(g))
        return CUDA_ERROR_OUT_OF_MEMORY;
    g->pool = p;
    return CUDA_SUCCESS;
}

/* Pools of the host's memory are none of ours. */
static CUresult check_location(const CUmemLocation *location, CUmemAllocationType type)
{
    if (!location || type != ALLOCATION_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    return location->type == LOCATION_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult shim_cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult r = check_location(location, type);

    return r ? r : shim_cuDeviceGetDefaultMemPool(pool_out, location->id);
}

CUresult shim_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult r = check_location(location, type);

    return r ? r : shim_cuDeviceGetMemPool(pool, location->id);
}

CUresult shim_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    CUresult r = check_location(location, type);

    return r ? r : shim_cuDeviceSetMemPool(location->id, pool);
}
