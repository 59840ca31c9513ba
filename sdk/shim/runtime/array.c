/* Arrays: made, described, and copied. */
#include "runtime.h"

enum { BITS_PER_BYTE = 8 };

static const struct {
    CUarray_format format;
    int            kind, bits;
} formats[] = {
    {FORMAT_S8, KIND_SIGNED, 8},     {FORMAT_S16, KIND_SIGNED, 16},   {FORMAT_S32, KIND_SIGNED, 32}, {FORMAT_U8, KIND_UNSIGNED, 8},
    {FORMAT_U16, KIND_UNSIGNED, 16}, {FORMAT_U32, KIND_UNSIGNED, 32}, {FORMAT_F16, KIND_FLOAT, 16},  {FORMAT_F32, KIND_FLOAT, 32},
};

/* ---- formats ---- */

/* Channels are of one width, without a gap. */
static unsigned channels_of(const cudaChannelFormatDesc *d)
{
    const int bits[] = {d->x, d->y, d->z, d->w};
    unsigned  n = 0;

    while (n < COUNT(bits) && bits[n] > 0 && bits[n] == bits[0])
        n++;
    for (size_t i = n; i < COUNT(bits); i++)
        if (bits[i])
            return 0;
    return n;
}

cudaError_t array_format(const cudaChannelFormatDesc *d, CUarray_format *format, unsigned *channels)
{
    unsigned n = channels_of(d);

    if (d->f > KIND_FLOAT && d->f <= KIND_LAST)
        return d->f == KIND_FLOAT + 1 ? cudaErrorInvalidChannelDescriptor : cudaErrorNotSupported;
    for (size_t i = 0; i < COUNT(formats); i++)
        if (formats[i].kind == d->f && formats[i].bits == d->x && (n == 1 || n == 2 || n == 4)) {
            *format = formats[i].format;
            *channels = n;
            return cudaSuccess;
        }
    return cudaErrorInvalidChannelDescriptor;
}

cudaChannelFormatDesc array_channels(CUarray_format format, unsigned channels)
{
    size_t i = 0;
    int    bits;

    while (i + 1 < COUNT(formats) && formats[i].format != format)
        i++;
    bits = formats[i].bits;
    return (cudaChannelFormatDesc){bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0, formats[i].kind};
}

cudaError_t array_texel(cudaArray_const_t array, size_t *out)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    cudaError_t             r = cuArray3DGetDescriptor_v2(&d, array);

    if (r)
        return cudaErrorInvalidValue;
    *out = (size_t)array_channels(d.Format, 1).x / BITS_PER_BYTE * d.NumChannels;
    return cudaSuccess;
}

/* ---- make, describe, end ---- */

cudaError_t run_cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, cudaExtent extent, unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = extent.width, .Height = extent.height, .Depth = extent.depth, .Flags = flags};
    cudaError_t             r = array && desc ? cudaSuccess : cudaErrorInvalidValue;

    r = r ? r : array_format(desc, &d.Format, &d.NumChannels);
    return r ? r : cuArray3DCreate_v2(array, &d);
}

cudaError_t run_cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, size_t width, size_t height, unsigned int flags)
{
    return run_cudaMalloc3DArray(array, desc, (cudaExtent){width, height, 0}, flags);
}

cudaError_t run_cudaFreeArray(cudaArray_t array)
{
    cudaError_t r = array ? cuArrayDestroy(array) : cudaSuccess;

    return r == cudaErrorInvalidResourceHandle ? cudaErrorInvalidValue : r; /* as it is documented */
}

cudaError_t run_cudaArrayGetInfo(cudaChannelFormatDesc *desc, cudaExtent *extent, unsigned int *flags, cudaArray_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    cudaError_t             r = cuArray3DGetDescriptor_v2(&d, array);

    if (r)
        return r;
    if (desc)
        *desc = array_channels(d.Format, d.NumChannels);
    if (extent)
        *extent = (cudaExtent){d.Width, d.Height, d.Depth};
    if (flags)
        *flags = d.Flags;
    return cudaSuccess;
}

cudaError_t run_cudaGetChannelDesc(cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
    return desc ? run_cudaArrayGetInfo(desc, NULL, NULL, array) : cudaErrorInvalidValue;
}

/* ---- copies of rows: offsets and widths count bytes ---- */

static cudaError_t start_copy(cudaMemcpyKind kind, bool from_array, bool to_array, CUDA_MEMCPY2D *out)
{
    CUmemorytype from = 0, to = 0;
    cudaError_t  r = memory_types(kind, &from, &to);

    if (!r && ((from_array && from == MEMORY_HOST) || (to_array && to == MEMORY_HOST)))
        r = cudaErrorInvalidMemcpyDirection;
    *out = (CUDA_MEMCPY2D){.srcMemoryType = from_array ? MEMORY_ARRAY : from, .dstMemoryType = to_array ? MEMORY_ARRAY : to};
    return r;
}

cudaError_t run_cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch, size_t width,
                                         size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D c;
    cudaError_t   r = start_copy(kind, false, true, &c);

    if (r || width > spitch)
        return r ? r : cudaErrorInvalidValue;
    c.srcHost = src;
    c.srcDevice = ADDRESS(src);
    c.srcPitch = spitch;
    c.dstArray = dst;
    c.dstXInBytes = wOffset;
    c.dstY = hOffset;
    c.WidthInBytes = width;
    c.Height = height;
    return cuMemcpy2DAsync_v2(&c, stream);
}

cudaError_t run_cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch, size_t width,
                                    size_t height, cudaMemcpyKind kind)
{
    return run_cudaMemcpy2DToArrayAsync(dst, wOffset, hOffset, src, spitch, width, height, kind, NULL);
}

cudaError_t run_cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t width,
                                           size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D c;
    cudaError_t   r = start_copy(kind, true, false, &c);

    if (r || width > dpitch)
        return r ? r : cudaErrorInvalidValue;
    c.dstHost = dst;
    c.dstDevice = ADDRESS(dst);
    c.dstPitch = dpitch;
    c.srcArray = src;
    c.srcXInBytes = wOffset;
    c.srcY = hOffset;
    c.WidthInBytes = width;
    c.Height = height;
    return cuMemcpy2DAsync_v2(&c, stream);
}

cudaError_t run_cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t width,
                                      size_t height, cudaMemcpyKind kind)
{
    return run_cudaMemcpy2DFromArrayAsync(dst, dpitch, src, wOffset, hOffset, width, height, kind, NULL);
}

cudaError_t run_cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src, size_t wOffsetSrc,
                                         size_t hOffsetSrc, size_t width, size_t height, cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D c;
    cudaError_t   r = start_copy(kind, true, true, &c);

    if (r)
        return r;
    c.dstArray = dst;
    c.dstXInBytes = wOffsetDst;
    c.dstY = hOffsetDst;
    c.srcArray = src;
    c.srcXInBytes = wOffsetSrc;
    c.srcY = hOffsetSrc;
    c.WidthInBytes = width;
    c.Height = height;
    return cuMemcpy2D_v2(&c);
}

/* ---- copies of bytes, which go on in the next row where one ends ---- */

struct rows {
    size_t row_bytes, x, y;
};

static cudaError_t start_rows(cudaArray_const_t array, size_t x, size_t y, struct rows *out)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    size_t                  texel = 0;
    cudaError_t             r = array_texel(array, &texel);

    if (r || cuArray3DGetDescriptor_v2(&d, array))
        return cudaErrorInvalidValue;
    *out = (struct rows){d.Width * texel, x, y};
    return x < out->row_bytes ? cudaSuccess : cudaErrorInvalidValue;
}

/* The next piece: the rest of a row, or whole rows. */
static void next_piece(const struct rows *at, size_t left, size_t *width, size_t *height)
{
    size_t rest = at->row_bytes - at->x;

    *width = left < rest ? left : rest;
    *height = at->x == 0 && left >= at->row_bytes ? left / at->row_bytes : 1;
}

static void go_on(struct rows *at, size_t width, size_t height)
{
    at->y += at->x + width == at->row_bytes ? height : 0;
    at->x = at->x + width == at->row_bytes ? 0 : at->x + width;
}

cudaError_t run_cudaMemcpyToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count, cudaMemcpyKind kind,
                                       cudaStream_t stream)
{
    struct rows at = {0};
    cudaError_t r = start_rows(dst, wOffset, hOffset, &at);
    size_t      width, height;

    for (size_t done = 0; done < count && !r; done += width * height) {
        next_piece(&at, count - done, &width, &height);
        r = run_cudaMemcpy2DToArrayAsync(dst, at.x, at.y, (const char *)src + done, width, width, height, kind, stream);
        go_on(&at, width, height);
    }
    return r;
}

cudaError_t run_cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count, cudaMemcpyKind kind)
{
    return run_cudaMemcpyToArrayAsync(dst, wOffset, hOffset, src, count, kind, NULL);
}

cudaError_t run_cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                                         cudaMemcpyKind kind, cudaStream_t stream)
{
    struct rows at = {0};
    cudaError_t r = start_rows(src, wOffset, hOffset, &at);
    size_t      width, height;

    for (size_t done = 0; done < count && !r; done += width * height) {
        next_piece(&at, count - done, &width, &height);
        r = run_cudaMemcpy2DFromArrayAsync((char *)dst + done, width, src, at.x, at.y, width, height, kind, stream);
        go_on(&at, width, height);
    }
    return r;
}

cudaError_t run_cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count, cudaMemcpyKind kind)
{
    return run_cudaMemcpyFromArrayAsync(dst, src, wOffset, hOffset, count, kind, NULL);
}

/* A piece is what neither array breaks. */
cudaError_t run_cudaMemcpyArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src, size_t wOffsetSrc,
                                       size_t hOffsetSrc, size_t count, cudaMemcpyKind kind)
{
    struct rows to = {0}, from = {0};
    cudaError_t r = start_rows(dst, wOffsetDst, hOffsetDst, &to);

    r = r ? r : start_rows(src, wOffsetSrc, hOffsetSrc, &from);
    for (size_t done = 0; done < count && !r;) {
        size_t width, other, height;

        next_piece(&to, count - done, &width, &height);
        next_piece(&from, count - done, &other, &height);
        width = other < width ? other : width;
        r = run_cudaMemcpy2DArrayToArray(dst, to.x, to.y, src, from.x, from.y, width, 1, kind);
        go_on(&to, width, 1);
        go_on(&from, width, 1);
        done += width;
    }
    return r;
}
