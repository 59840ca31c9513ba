/* Memory: of the device, by its own addresses, and of the host. */
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "batch/batch.h"
#include "shim.h"

static struct allocation *allocations; /* sorted by address */
static size_t             count, room;
static uint64_t           allocations_made;

/* ---- the table ---- */

/* The number of allocations that begin at `address` or below it. */
static size_t count_below(uint64_t address)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (allocations[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* NULL: the address is none of the device's. */
static struct allocation *find(uint64_t address)
{
    size_t i = count_below(address);

    return i && address - allocations[i - 1].address < allocations[i - 1].bytes ? &allocations[i - 1] : NULL;
}

bool memory_put(const struct allocation *a)
{
    size_t             at = count_below(a->address), more = room ? 2 * room : 64;
    struct allocation *larger = count < room ? allocations : realloc(allocations, more * sizeof *allocations);

    if (!larger)
        return false;
    room = count < room ? room : more;
    allocations = larger;
    memmove(&allocations[at + 1], &allocations[at], (count - at) * sizeof *allocations);
    allocations[at] = *a;
    count++;
    return true;
}

static void drop(struct allocation *a)
{
    size_t at = (size_t)(a - allocations);

    memmove(a, a + 1, (--count - at) * sizeof *allocations);
}

/* ---- allocate and free ---- */

/* The service's answer to a new buffer has its address. */
static CUresult allocate(struct gpu *g, size_t bytes, struct allocation *out)
{
    struct buffer_entry e;
    CUresult            r = gpu_session(g);

    if (r)
        return r;
    if (gpurest_alloc(g->session, &out->buffer, bytes) || session_buffer(g->session, out->buffer, NULL, &e))
        return gpu_failed(g);
    if (e.address)
        out->address = e.address;
    else {
        tell("the service does not tell addresses of buffers: it is older than this library");
        r = CUDA_ERROR_NOT_SUPPORTED;
    }
    return r;
}

/* Memory that is freed in the queue may be what is missing. */
static CUresult allocate_or_flush(struct gpu *g, size_t bytes, struct allocation *out)
{
    CUresult r = allocate(g, bytes, out);

    if (r != CUDA_ERROR_OUT_OF_MEMORY)
        return r;
    r = queue_flush(g);
    return r ? r : allocate(g, bytes, out);
}

/* An address where this process has memory of its own is of no use; it is kept until another one is found, so that it does not come again. */
static CUresult allocate_apart(struct gpu *g, size_t bytes, struct allocation *out)
{
    gpurest_buffer taken[ADDRESS_TRIES];
    size_t         tries = 0;
    CUresult       r;

    for (;;) {
        r = allocate_or_flush(g, bytes, out);
        if (r || address_reserve(out->address, bytes))
            break;
        taken[tries++] = out->buffer;
        r = CUDA_ERROR_OUT_OF_MEMORY;
        if (tries == ADDRESS_TRIES)
            break;
    }
    while (tries)
        gpurest_free(g->session, taken[--tries]);
    return r;
}

CUresult memory_allocate(size_t bytes, struct pool *pool, struct allocation *out)
{
    struct context *c = context_current();
    CUresult        r;

    *out = (struct allocation){.bytes = bytes, .context = c, .gpu = c->gpu, .pool = pool, .number = ++allocations_made};
    if (bytes > c->gpu->total_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = allocate_apart(c->gpu, bytes, out);
    if (r || memory_put(out))
        return r;
    gpurest_free(c->gpu->session, out->buffer);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult shim_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct allocation a;
    CUresult          r = dptr && bytesize ? memory_allocate(bytesize, NULL, &a) : CUDA_ERROR_INVALID_VALUE;

    if (!r)
        *dptr = a.address;
    return r;
}

enum { PITCH_ALIGN = 512 };

CUresult shim_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes)
{
    size_t   pitch = (WidthInBytes + PITCH_ALIGN - 1) / PITCH_ALIGN * PITCH_ALIGN, bytes;
    CUresult r;

    if (!pPitch || WidthInBytes == 0 || Height == 0 || (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
        return CUDA_ERROR_INVALID_VALUE;
    if (pitch < WidthInBytes || __builtin_mul_overflow(pitch, Height, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    r = shim_cuMemAlloc_v2(dptr, bytes);
    if (!r)
        *pPitch = pitch;
    return r;
}

/* Queued, so that kernels that were launched before still find it. */
CUresult memory_release(const struct allocation *a)
{
    struct buffer_entry e;
    CUresult            r = textures_leave(a->gpu, a->buffer);
    gpurest_batch      *b = r ? NULL : queue_begin(a->gpu, 0, &r);
    gpurest_status      st;

    if (!b)
        return r;
    st = session_buffer(a->gpu->session, a->buffer, b, &e);
    return queue_end(a->gpu, st ? st : batch_free(b, a->buffer, &e));
}

bool memory_take(uint64_t address, struct allocation *out)
{
    struct allocation *a = find(address);

    if (!a || a->address != address || a->variable)
        return false;
    *out = *a;
    drop(a);
    return true;
}

void memory_leave_pool(const struct pool *p)
{
    for (size_t i = 0; i < count; i++)
        if (allocations[i].pool == p)
            allocations[i].pool = NULL;
}

CUresult shim_cuMemFree_v2(CUdeviceptr dptr)
{
    struct allocation a;
    CUresult          r;

    if (dptr == 0)
        return CUDA_SUCCESS;
    if (graph_memory_free(dptr, &r))
        return r;
    if (!memory_take(dptr, &a))
        return CUDA_ERROR_INVALID_VALUE;
    if (a.pool)
        pool_freed(a.pool, &a);
    return memory_release(&a);
}

void memory_forget(const struct gpu *g, const struct context *c)
{
    graph_memories_forget(g, c);
    for (size_t i = count; i-- > 0;)
        if (allocations[i].gpu == g && (!c || allocations[i].context == c)) {
            struct allocation a = allocations[i];

            drop(&allocations[i]);
            if (a.pool)
                pool_freed(a.pool, &a);
            if (g->session && !g->sticky && c && !a.variable)
                memory_release(&a);
        }
}

/* ---- variables of modules ---- */

CUresult memory_add_variable(struct context *c, gpurest_buffer buffer, uint64_t *address, uint64_t *bytes)
{
    struct allocation   a = {.context = c, .gpu = c->gpu, .buffer = buffer, .number = ++allocations_made, .variable = true};
    struct buffer_entry e;

    if (session_buffer(c->gpu->session, buffer, NULL, &e))
        return gpu_failed(c->gpu);
    a.address = *address = e.address;
    a.bytes = *bytes = e.bytes;
    if (!e.address)
        return CUDA_ERROR_NOT_SUPPORTED;
    return address_reserve(e.address, e.bytes) && memory_put(&a) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void memory_remove_variable(uint64_t address)
{
    struct allocation *a = find(address);

    if (!a || !a->variable)
        return;
    session_remove_buffer(a->gpu->session, a->buffer);
    drop(a);
}

CUresult shim_cuMemGetInfo_v2(size_t *free, size_t *total)
{
    struct gpu           *g = context_current()->gpu;
    gpurest_memory_info_t info = GPUREST_MEMORY_INFO_INIT;
    CUresult              r;

    if (!free || !total)
        return CUDA_ERROR_INVALID_VALUE;
    r = queue_flush(g); /* it has frees */
    if (!r && gpurest_memory_info(g->session, &info))
        r = gpu_failed(g);
    if (r)
        return r;
    *free = (size_t)(info.free_bytes < g->total_bytes ? info.free_bytes : g->total_bytes); /* the cpu device's memory comes and goes */
    *total = (size_t)g->total_bytes;
    return CUDA_SUCCESS;
}

CUresult shim_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    const struct allocation *a = find(dptr);

    if (!a)
        return CUDA_ERROR_NOT_FOUND;
    if (pbase)
        *pbase = a->address;
    if (psize)
        *psize = (size_t)a->bytes;
    return CUDA_SUCCESS;
}

/* ---- copies ---- */

/* The allocation that has all of the range. */
static const struct allocation *range(uint64_t address, size_t bytes)
{
    const struct allocation *a = find(address);

    return a && bytes <= a->bytes - (address - a->address) ? a : NULL;
}

bool memory_range(uint64_t address, size_t bytes, struct device_range *out)
{
    const struct allocation *a = range(address, bytes);

    if (a)
        *out = (struct device_range){a->gpu, a->buffer, address - a->address};
    return a != NULL;
}

bool memory_is_variable(uint64_t address)
{
    const struct allocation *a = find(address);

    return a && a->variable;
}

static CUresult memory_upload(uint64_t to, const void *from, size_t bytes)
{
    struct device_range place;

    if (bytes == 0)
        return CUDA_SUCCESS;
    return from && memory_range(to, bytes, &place) ? range_upload(&place, from, bytes) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult memory_download(void *to, uint64_t from, size_t bytes, bool now)
{
    struct device_range place;

    if (bytes == 0)
        return CUDA_SUCCESS;
    return to && memory_range(from, bytes, &place) ? range_download(to, &place, bytes, now) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult memory_copy(uint64_t to, uint64_t from, size_t bytes)
{
    struct device_range place, source;

    if (bytes == 0 || to == from)
        return CUDA_SUCCESS;
    return memory_range(to, bytes, &place) && memory_range(from, bytes, &source) ? range_copy(&place, &source, bytes)
                                                                                 : CUDA_ERROR_INVALID_VALUE;
}

/* Where an address points tells the direction. */
static CUresult copy_any(uint64_t to, uint64_t from, size_t bytes, bool now)
{
    CUresult r;

    if (find(to))
        return find(from) ? memory_copy(to, from, bytes) : memory_upload(to, (const void *)(uintptr_t)from, bytes);
    if (find(from))
        return memory_download((void *)(uintptr_t)to, from, bytes, now || !host_is_pinned((void *)(uintptr_t)to, bytes));
    if (bytes && (!to || !from))
        return CUDA_ERROR_INVALID_VALUE;
    r = queue_flush(context_current()->gpu);
    if (!r)
        memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return r;
}

CUresult shim_cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    return memory_upload(dstDevice, srcHost, ByteCount);
}

CUresult shim_cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
    CUresult r = stream_check(hStream);

    if (!r && capture_on(hStream))
        return capture_bytes(hStream, dstDevice, MEMORY_DEVICE, (uint64_t)(uintptr_t)srcHost, MEMORY_HOST, ByteCount);
    return r ? r : memory_upload(dstDevice, srcHost, ByteCount);
}

CUresult shim_cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    return memory_download(dstHost, srcDevice, ByteCount, true);
}

CUresult shim_cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
    CUresult r = stream_check(hStream);

    if (!r && capture_on(hStream))
        return capture_bytes(hStream, (uint64_t)(uintptr_t)dstHost, MEMORY_HOST, srcDevice, MEMORY_DEVICE, ByteCount);
    return r ? r : memory_download(dstHost, srcDevice, ByteCount, !host_is_pinned(dstHost, ByteCount));
}

CUresult shim_cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    return memory_copy(dstDevice, srcDevice, ByteCount);
}

CUresult shim_cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
    CUresult r = stream_check(hStream);

    if (!r && capture_on(hStream))
        return capture_bytes(hStream, dstDevice, MEMORY_DEVICE, srcDevice, MEMORY_DEVICE, ByteCount);
    return r ? r : memory_copy(dstDevice, srcDevice, ByteCount);
}

CUresult shim_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_any(dst, src, ByteCount, true);
}

CUresult shim_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    CUresult r = stream_check(hStream);

    if (!r && capture_on(hStream))
        return capture_bytes(hStream, dst, MEMORY_UNIFIED, src, MEMORY_UNIFIED, ByteCount);
    return r ? r : copy_any(dst, src, ByteCount, false);
}

/* ---- memset ---- */

static CUresult fill(uint64_t to, uint32_t value, unsigned width, size_t items)
{
    static const char *const types[] = {[1] = "u8", [2] = "u16", [4] = "u32"};
    const struct allocation *a;
    struct buffer_entry      e;
    size_t                   bytes;
    gpurest_batch           *b;
    CUresult                 r;

    if (__builtin_mul_overflow(items, (size_t)width, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0)
        return CUDA_SUCCESS;
    a = range(to, bytes);
    if (!a || to % width)
        return CUDA_ERROR_INVALID_VALUE;
    b = queue_begin(a->gpu, 0, &r);
    r = b && session_buffer(a->gpu->session, a->buffer, b, &e) ? gpu_failed(a->gpu) : r;
    return r ? r : queue_end(a->gpu, batch_fill(b, &e, to - a->address, types[width], value, bytes, ""));
}

static CUresult fill_rows(uint64_t to, size_t pitch, uint32_t value, unsigned width, size_t items, size_t rows)
{
    CUresult r = CUDA_SUCCESS;

    if (rows > 1 && (pitch % width || pitch / width < items))
        return CUDA_ERROR_INVALID_VALUE;
    if (pitch == items * width && !__builtin_mul_overflow(items, rows, &items))
        rows = 1;
    for (size_t i = 0; i < rows && !r; i++)
        r = fill(to + i * pitch, value, width, items);
    return r;
}

static CUresult fill_in_order(CUstream stream, const CUDA_MEMSET_NODE_PARAMS *p)
{
    CUresult r = stream_check(stream);

    if (!r && capture_on(stream))
        return capture_fill(stream, p);
    return r ? r : fill_rows(p->dst, p->pitch, p->value, p->elementSize, p->width, p->height);
}

#define MEMSET(bits, type)                                                                                                                 \
    CUresult shim_cuMemsetD##bits##_v2(CUdeviceptr dstDevice, type value, size_t N)                                                        \
    {                                                                                                                                      \
        return fill(dstDevice, value, bits / 8, N);                                                                                        \
    }                                                                                                                                      \
    CUresult shim_cuMemsetD##bits##Async(CUdeviceptr dstDevice, type value, size_t N, CUstream hStream)                                    \
    {                                                                                                                                      \
        return fill_in_order(hStream, &(CUDA_MEMSET_NODE_PARAMS){dstDevice, 0, value, bits / 8, N, 1});                                    \
    }                                                                                                                                      \
    CUresult shim_cuMemsetD2D##bits##_v2(CUdeviceptr dstDevice, size_t dstPitch, type value, size_t Width, size_t Height)                  \
    {                                                                                                                                      \
        return fill_rows(dstDevice, dstPitch, value, bits / 8, Width, Height);                                                             \
    }                                                                                                                                      \
    CUresult shim_cuMemsetD2D##bits##Async(CUdeviceptr dstDevice, size_t dstPitch, type value, size_t Width, size_t Height,                \
                                           CUstream hStream)                                                                               \
    {                                                                                                                                      \
        return fill_in_order(hStream, &(CUDA_MEMSET_NODE_PARAMS){dstDevice, dstPitch, value, bits / 8, Width, Height});                    \
    }
MEMSET(8, unsigned char)
MEMSET(16, unsigned short)
MEMSET(32, unsigned int)

/* ---- pointers ---- */

enum {
    POINTER_CONTEXT = 1,
    POINTER_MEMORY_TYPE = 2,
    POINTER_DEVICE_POINTER = 3,
    POINTER_HOST_POINTER = 4,
    POINTER_SYNC_MEMOPS = 6,
    POINTER_BUFFER_ID = 7,
    POINTER_IS_MANAGED = 8,
    POINTER_DEVICE_ORDINAL = 9,
    POINTER_RANGE_START = 11,
    POINTER_RANGE_SIZE = 12,
    POINTER_MAPPED = 13,
    POINTER_ACCESS_FLAGS = 16,
    POINTER_ATTRIBUTES_LAST = 22,
    ACCESS_READ_WRITE = 3,
};

/* What an attribute of an address of the device is. */
static CUresult describe(const struct allocation *a, CUdeviceptr ptr, CUpointer_attribute attribute, void *data)
{
    switch (attribute) {
    case POINTER_CONTEXT:
        *(CUcontext *)data = a->context->handle;
        break;
    case POINTER_MEMORY_TYPE:
        *(int *)data = MEMORY_DEVICE;
        break;
    case POINTER_DEVICE_POINTER:
        *(CUdeviceptr *)data = ptr;
        break;
    case POINTER_SYNC_MEMOPS:
        *(int *)data = 0;
        break;
    case POINTER_BUFFER_ID:
        *(unsigned long long *)data = a->number;
        break;
    case POINTER_IS_MANAGED:
        *(int *)data = 0;
        break;
    case POINTER_DEVICE_ORDINAL:
        *(int *)data = a->gpu->ordinal;
        break;
    case POINTER_RANGE_START:
        *(CUdeviceptr *)data = a->address;
        break;
    case POINTER_RANGE_SIZE:
        *(size_t *)data = (size_t)a->bytes;
        break;
    case POINTER_MAPPED:
        *(int *)data = 1;
        break;
    case POINTER_ACCESS_FLAGS:
        *(int *)data = ACCESS_READ_WRITE;
        break;
    case POINTER_HOST_POINTER:
        return CUDA_ERROR_INVALID_VALUE;
    default:
        return attribute > 0 && attribute <= POINTER_ATTRIBUTES_LAST ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult shim_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    const struct allocation *a = find(ptr);

    return data && a ? describe(a, ptr, attribute, data) : CUDA_ERROR_INVALID_VALUE;
}

/* Of plain host memory, all attributes are 0, and that is no error. */
static void describe_host(CUpointer_attribute attribute, void *data)
{
    switch (attribute) {
    case POINTER_CONTEXT:
        *(CUcontext *)data = NULL;
        break;
    case POINTER_DEVICE_ORDINAL:
        *(int *)data = -2;
        break;
    case POINTER_DEVICE_POINTER:
    case POINTER_HOST_POINTER:
    case POINTER_BUFFER_ID:
    case POINTER_RANGE_START:
    case POINTER_RANGE_SIZE:
        *(uint64_t *)data = 0;
        break;
    default:
        *(int *)data = 0;
        break;
    }
}

CUresult shim_cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
    const struct allocation *a = find(ptr);
    CUresult                 r = CUDA_SUCCESS;

    if (!attributes || !data || numAttributes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < numAttributes && !r; i++) {
        if (!data[i])
            return CUDA_ERROR_INVALID_VALUE;
        if (!a || attributes[i] == POINTER_HOST_POINTER)
            describe_host(attributes[i], data[i]);
        else
            r = describe(a, ptr, attributes[i], data[i]);
    }
    return r;
}
