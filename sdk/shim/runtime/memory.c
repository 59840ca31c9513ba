/* Memory: the runtime's forms of the driver's functions. */
#include "runtime.h"

enum { ELEMENT_BYTES = 4, POINTER_MEMORY_TYPE = 2, POINTER_DEVICE_ORDINAL = 9, TYPE_UNREGISTERED = 0, NO_DEVICE = -2 };

/* ---- allocate and free ---- */

cudaError_t run_cudaMalloc(void **devPtr, size_t size)
{
    CUdeviceptr address = 0;
    cudaError_t r = !devPtr ? cudaErrorInvalidValue : size ? cuMemAlloc_v2(&address, size) : cudaSuccess;

    if (!r)
        *devPtr = POINTER(address);
    return r;
}

cudaError_t run_cudaFree(void *devPtr)
{
    return cuMemFree_v2(ADDRESS(devPtr));
}

cudaError_t run_cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
    CUdeviceptr address = 0;
    cudaError_t r = devPtr && pitch ? cudaSuccess : cudaErrorInvalidValue;

    if (!r && width && height)
        r = cuMemAllocPitch_v2(&address, pitch, width, height, ELEMENT_BYTES);
    if (!r)
        *devPtr = POINTER(address);
    return r;
}

cudaError_t run_cudaMalloc3D(cudaPitchedPtr *pitchedDevPtr, cudaExtent extent)
{
    size_t      rows, pitch = 0;
    void       *at = NULL;
    cudaError_t r;

    if (!pitchedDevPtr || __builtin_mul_overflow(extent.height, extent.depth, &rows))
        return cudaErrorInvalidValue;
    r = run_cudaMallocPitch(&at, &pitch, extent.width, rows);
    if (!r)
        *pitchedDevPtr = (cudaPitchedPtr){at, pitch, extent.width, extent.height};
    return r;
}

cudaError_t run_cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
    return run_cudaMallocFromPoolAsync(devPtr, size, NULL, hStream);
}

/* Without a pool: of the device's own. */
cudaError_t run_cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream)
{
    CUdeviceptr address = 0;
    cudaError_t r = ptr ? cudaSuccess : cudaErrorInvalidValue;

    if (!r && size)
        r = memPool ? cuMemAllocFromPoolAsync(&address, size, memPool, stream) : cuMemAllocAsync(&address, size, stream);
    if (!r)
        *ptr = POINTER(address);
    return r;
}

cudaError_t run_cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
    return devPtr ? cuMemFreeAsync(ADDRESS(devPtr), hStream) : cudaSuccess;
}

/* ---- copies ---- */

static cudaError_t copy(void *dst, const void *src, size_t count, cudaMemcpyKind kind, cudaStream_t stream)
{
    switch (kind) {
    case COPY_TO_DEVICE:
        return cuMemcpyHtoDAsync_v2(ADDRESS(dst), src, count, stream);
    case COPY_TO_HOST:
        return cuMemcpyDtoHAsync_v2(dst, ADDRESS(src), count, stream);
    case COPY_ON_DEVICE:
        return cuMemcpyDtoDAsync_v2(ADDRESS(dst), ADDRESS(src), count, stream);
    case COPY_HOST_TO_HOST:
    case COPY_DEFAULT:
        return cuMemcpyAsync(ADDRESS(dst), ADDRESS(src), count, stream);
    default:
        return cudaErrorInvalidMemcpyDirection;
    }
}

/* The bytes are there when it returns; an asynchronous copy to pinned memory has them when the stream is waited for. */
cudaError_t run_cudaMemcpy(void *dst, const void *src, size_t count, cudaMemcpyKind kind)
{
    switch (kind) {
    case COPY_TO_DEVICE:
        return cuMemcpyHtoD_v2(ADDRESS(dst), src, count);
    case COPY_TO_HOST:
        return cuMemcpyDtoH_v2(dst, ADDRESS(src), count);
    case COPY_ON_DEVICE:
        return cuMemcpyDtoD_v2(ADDRESS(dst), ADDRESS(src), count);
    case COPY_HOST_TO_HOST:
    case COPY_DEFAULT:
        return cuMemcpy(ADDRESS(dst), ADDRESS(src), count);
    default:
        return cudaErrorInvalidMemcpyDirection;
    }
}

cudaError_t run_cudaMemcpyAsync(void *dst, const void *src, size_t count, cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy(dst, src, count, kind, stream);
}

/* Between devices there is no way but through the program. */
cudaError_t run_cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice, size_t count, cudaStream_t stream)
{
    return dstDevice == srcDevice ? copy(dst, src, count, COPY_ON_DEVICE, stream) : cudaErrorNotSupported;
}

cudaError_t run_cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice, size_t count)
{
    return run_cudaMemcpyPeerAsync(dst, dstDevice, src, srcDevice, count, NULL);
}

static const struct {
    CUmemorytype from, to;
} types_of[] = {
    [COPY_HOST_TO_HOST] = {MEMORY_HOST, MEMORY_HOST},  [COPY_TO_DEVICE] = {MEMORY_HOST, MEMORY_DEVICE},
    [COPY_TO_HOST] = {MEMORY_DEVICE, MEMORY_HOST},     [COPY_ON_DEVICE] = {MEMORY_DEVICE, MEMORY_DEVICE},
    [COPY_DEFAULT] = {MEMORY_UNIFIED, MEMORY_UNIFIED},
};

cudaError_t memory_types(cudaMemcpyKind kind, CUmemorytype *from, CUmemorytype *to)
{
    if (kind < 0 || kind > COPY_DEFAULT)
        return cudaErrorInvalidMemcpyDirection;
    *from = types_of[kind].from;
    *to = types_of[kind].to;
    return cudaSuccess;
}

cudaError_t run_cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                                  cudaMemcpyKind kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D c = {.srcHost = src,
                       .srcDevice = ADDRESS(src),
                       .srcPitch = spitch,
                       .dstHost = dst,
                       .dstDevice = ADDRESS(dst),
                       .dstPitch = dpitch,
                       .WidthInBytes = width,
                       .Height = height};
    cudaError_t   r = memory_types(kind, &c.srcMemoryType, &c.dstMemoryType);

    if (r)
        return r;
    if (width > dpitch || width > spitch)
        return cudaErrorInvalidPitchValue;
    return cuMemcpy2DAsync_v2(&c, stream);
}

cudaError_t run_cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, cudaMemcpyKind kind)
{
    return run_cudaMemcpy2DAsync(dst, dpitch, src, spitch, width, height, kind, NULL);
}

/* One side of a copy: its array, or memory; not both. `along`: how the copy goes at this side. */
static cudaError_t check_side(cudaArray_t array, const void *memory, bool along)
{
    if (array && memory)
        return cudaErrorInvalidValue;
    return array && !along ? cudaErrorInvalidMemcpyDirection : cudaSuccess;
}

/* Extents count texels of an array, if there is one, and bytes otherwise; positions count what they are in. */
static cudaError_t scale_to_texels(const cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out)
{
    size_t      from = 1, to = 1;
    cudaError_t r = p->srcArray ? array_texel(p->srcArray, &from) : cudaSuccess;

    if (!r && p->dstArray)
        r = array_texel(p->dstArray, &to);
    if (r)
        return r;
    if ((p->srcArray && p->dstArray && from != to) || __builtin_mul_overflow(p->srcPos.x, from, &out->srcXInBytes) ||
        __builtin_mul_overflow(p->dstPos.x, to, &out->dstXInBytes) ||
        __builtin_mul_overflow(p->extent.width, p->srcArray ? from : to, &out->WidthInBytes))
        return cudaErrorInvalidValue;
    out->srcMemoryType = p->srcArray ? MEMORY_ARRAY : out->srcMemoryType;
    out->dstMemoryType = p->dstArray ? MEMORY_ARRAY : out->dstMemoryType;
    return cudaSuccess;
}

cudaError_t memory_volume(const cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out)
{
    cudaError_t  r = p ? cudaSuccess : cudaErrorInvalidValue;
    CUmemorytype from = 0, to = 0;

    r = r ? r : memory_types(p->kind, &from, &to);
    r = r ? r : check_side(p->srcArray, p->srcPtr.ptr, from != MEMORY_HOST);
    r = r ? r : check_side(p->dstArray, p->dstPtr.ptr, to != MEMORY_HOST);
    if (r)
        return r;
    *out = (CUDA_MEMCPY3D){.srcY = p->srcPos.y,
                           .srcZ = p->srcPos.z,
                           .srcMemoryType = from,
                           .srcHost = p->srcPtr.ptr,
                           .srcDevice = ADDRESS(p->srcPtr.ptr),
                           .srcArray = p->srcArray,
                           .srcPitch = p->srcPtr.pitch,
                           .srcHeight = p->srcPtr.ysize,
                           .dstY = p->dstPos.y,
                           .dstZ = p->dstPos.z,
                           .dstMemoryType = to,
                           .dstHost = p->dstPtr.ptr,
                           .dstDevice = ADDRESS(p->dstPtr.ptr),
                           .dstArray = p->dstArray,
                           .dstPitch = p->dstPtr.pitch,
                           .dstHeight = p->dstPtr.ysize,
                           .Height = p->extent.height,
                           .Depth = p->extent.depth};
    return scale_to_texels(p, out);
}

cudaError_t run_cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, cudaStream_t stream)
{
    CUDA_MEMCPY3D c;
    cudaError_t   r = memory_volume(p, &c);

    return r ? r : cuMemcpy3DAsync_v2(&c, stream);
}

cudaError_t run_cudaMemcpy3D(const cudaMemcpy3DParms *p)
{
    return run_cudaMemcpy3DAsync(p, NULL);
}

/* ---- variables ---- */

cudaError_t memory_part(const void *symbol, size_t offset, size_t count, void **out)
{
    CUdeviceptr address = 0;
    size_t      bytes = 0;
    cudaError_t r = symbol_variable(symbol, &address, &bytes);

    if (!r && (offset > bytes || count > bytes - offset))
        r = cudaErrorInvalidValue;
    if (!r)
        *out = POINTER(address + offset);
    return r;
}

static cudaError_t place_to(const void *symbol, size_t count, size_t offset, cudaMemcpyKind kind, void **out)
{
    return kind == COPY_TO_HOST || kind == COPY_HOST_TO_HOST ? cudaErrorInvalidMemcpyDirection : memory_part(symbol, offset, count, out);
}

static cudaError_t place_from(const void *symbol, size_t count, size_t offset, cudaMemcpyKind kind, void **out)
{
    return kind == COPY_TO_DEVICE || kind == COPY_HOST_TO_HOST ? cudaErrorInvalidMemcpyDirection : memory_part(symbol, offset, count, out);
}

cudaError_t run_cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count, size_t offset, cudaMemcpyKind kind,
                                        cudaStream_t stream)
{
    void       *at = NULL;
    cudaError_t r = place_to(symbol, count, offset, kind, &at);

    return r ? r : copy(at, src, count, kind, stream);
}

cudaError_t run_cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count, size_t offset, cudaMemcpyKind kind,
                                          cudaStream_t stream)
{
    void       *at = NULL;
    cudaError_t r = place_from(symbol, count, offset, kind, &at);

    return r ? r : copy(dst, at, count, kind, stream);
}

cudaError_t run_cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset, cudaMemcpyKind kind)
{
    void       *at = NULL;
    cudaError_t r = place_to(symbol, count, offset, kind, &at);

    return r ? r : run_cudaMemcpy(at, src, count, kind);
}

cudaError_t run_cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset, cudaMemcpyKind kind)
{
    void       *at = NULL;
    cudaError_t r = place_from(symbol, count, offset, kind, &at);

    return r ? r : run_cudaMemcpy(dst, at, count, kind);
}

/* ---- memset ---- */

cudaError_t run_cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
    return cuMemsetD8Async(ADDRESS(devPtr), (unsigned char)value, count, stream);
}

cudaError_t run_cudaMemset(void *devPtr, int value, size_t count)
{
    return run_cudaMemsetAsync(devPtr, value, count, NULL);
}

cudaError_t run_cudaMemset2DAsync(void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
    return cuMemsetD2D8Async(ADDRESS(devPtr), pitch, (unsigned char)value, width, height, stream);
}

cudaError_t run_cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height)
{
    return run_cudaMemset2DAsync(devPtr, pitch, value, width, height, NULL);
}

/* Rows of a slice, and slices ysize rows apart. */
cudaError_t run_cudaMemset3DAsync(cudaPitchedPtr pitchedDevPtr, int value, cudaExtent extent, cudaStream_t stream)
{
    size_t      slice;
    cudaError_t r = cudaSuccess;

    if (__builtin_mul_overflow(pitchedDevPtr.pitch, pitchedDevPtr.ysize, &slice))
        return cudaErrorInvalidValue;
    for (size_t z = 0; z < extent.depth && !r; z++)
        r = run_cudaMemset2DAsync((char *)pitchedDevPtr.ptr + z * slice, pitchedDevPtr.pitch, value, extent.width, extent.height, stream);
    return r;
}

cudaError_t run_cudaMemset3D(cudaPitchedPtr pitchedDevPtr, int value, cudaExtent extent)
{
    return run_cudaMemset3DAsync(pitchedDevPtr, value, extent, NULL);
}

/* ---- pointers ---- */

cudaError_t run_cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *ptr)
{
    void    *place = POINTER(ptr);
    unsigned flags;
    int      type = 0, device = 0;

    if (!attributes)
        return cudaErrorInvalidValue;
    *attributes = (cudaPointerAttributes){.type = TYPE_UNREGISTERED, .device = NO_DEVICE};
    if (cuPointerGetAttribute(&type, POINTER_MEMORY_TYPE, ADDRESS(ptr)) == CUDA_SUCCESS &&
        cuPointerGetAttribute(&device, POINTER_DEVICE_ORDINAL, ADDRESS(ptr)) == CUDA_SUCCESS)
        *attributes = (cudaPointerAttributes){.type = type, .device = device, .devicePointer = place};
    else if (cuMemHostGetFlags(&flags, place) == CUDA_SUCCESS && cuCtxGetDevice(&device) == CUDA_SUCCESS)
        *attributes = (cudaPointerAttributes){.type = MEMORY_HOST, .device = device, .hostPointer = place};
    else
        attributes->hostPointer = place;
    return cudaSuccess;
}
