/* Arrays: each is a texture of the service, whose texels lie row after row. Textures and surfaces of programs are views of it. */
#include <stdlib.h>

#include "shim.h"

enum { FACES = 6 };

static const struct {
    CUarray_format number;
    size_t         bytes;
    const char    *word;
} formats[] = {
    {FORMAT_U8, 1, "u8"},   {FORMAT_U16, 2, "u16"}, {FORMAT_U32, 4, "u32"}, {FORMAT_S8, 1, "s8"},
    {FORMAT_S16, 2, "s16"}, {FORMAT_S32, 4, "s32"}, {FORMAT_F16, 2, "f16"}, {FORMAT_F32, 4, "f32"},
};

size_t texel_of(CUarray_format format, unsigned channels, const char **word)
{
    for (size_t i = 0; i < COUNT(formats); i++)
        if (formats[i].number == format && (channels == 1 || channels == 2 || channels == 4)) {
            *word = formats[i].word;
            return formats[i].bytes * channels;
        }
    return 0;
}

struct array *array_of(const void *handle)
{
    return handle_get(HANDLE_ARRAY, handle);
}

/* ---- what an array is for the service ---- */

/* Cubes are six squares, in order; layered ones have a multiple of it. */
static CUresult describe_cube(const CUDA_ARRAY3D_DESCRIPTOR *d, gpurest_texture_desc *out)
{
    bool layered = d->Flags & ARRAY_LAYERED;

    if (d->Width != d->Height || d->Depth == 0 || d->Depth % FACES || (!layered && d->Depth != FACES))
        return CUDA_ERROR_INVALID_VALUE;
    out->dimension = layered ? "cube_layered" : "cube";
    out->layers = (uint32_t)(d->Depth / FACES);
    out->normalized_coordinates = 1;
    return CUDA_SUCCESS;
}

static CUresult describe_layers(const CUDA_ARRAY3D_DESCRIPTOR *d, gpurest_texture_desc *out)
{
    if (d->Depth == 0)
        return CUDA_ERROR_INVALID_VALUE;
    out->dimension = d->Height ? "2d_layered" : "1d_layered";
    out->layers = (uint32_t)d->Depth;
    out->extent[1] = (uint32_t)d->Height;
    return CUDA_SUCCESS;
}

static CUresult describe_plain(const CUDA_ARRAY3D_DESCRIPTOR *d, gpurest_texture_desc *out)
{
    if (d->Depth && !d->Height)
        return CUDA_ERROR_INVALID_VALUE;
    out->dimension = d->Depth ? "3d" : d->Height ? "2d" : "1d";
    out->extent[1] = (uint32_t)d->Height;
    out->extent[2] = (uint32_t)d->Depth;
    return CUDA_SUCCESS;
}

static CUresult describe(const CUDA_ARRAY3D_DESCRIPTOR *d, gpurest_texture_desc *out)
{
    if (d->Width == 0 || d->Width > INT32_MAX || d->Height > INT32_MAX || d->Depth > INT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    out->extent[0] = (uint32_t)d->Width;
    out->channels = d->NumChannels;
    out->surface = (d->Flags & ARRAY_SURFACE) != 0;
    if (d->Flags & ARRAY_CUBE)
        return describe_cube(d, out);
    return d->Flags & ARRAY_LAYERED ? describe_layers(d, out) : describe_plain(d, out);
}

void array_describe(const struct array *a, gpurest_texture_desc *out)
{
    describe(&a->desc, out); /* it was made of this */
    texel_of(a->desc.Format, a->desc.NumChannels, &out->format);
    out->buffer = a->texels;
}

/* ---- make and end ---- */

/* Memory that is freed in the queue may be what is missing. */
static CUresult make_texture(struct gpu *g, const gpurest_texture_desc *d, gpurest_buffer *out)
{
    CUresult r = gpu_session(g);

    if (!r && gpurest_texture_create(g->session, out, d)) {
        r = gpu_failed(g);
        if (r != CUDA_ERROR_OUT_OF_MEMORY)
            return r;
        r = queue_flush(g);
        if (!r && gpurest_texture_create(g->session, out, d))
            r = gpu_failed(g);
    }
    return r;
}

static CUresult keep(struct array *made, CUarray *out)
{
    struct array *a = malloc(sizeof *a);

    if (a) {
        *a = *made;
        a->handle = handle_add(HANDLE_ARRAY, a);
    }
    if (!a || !a->handle) {
        free(a);
        gpurest_texture_free(made->gpu->session, made->texels);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = a->handle;
    return CUDA_SUCCESS;
}

static CUresult create(const CUDA_ARRAY3D_DESCRIPTOR *d, CUarray *out)
{
    struct context      *c = context_current();
    struct array         a = {.desc = *d, .context = c, .gpu = c->gpu};
    gpurest_texture_desc t = GPUREST_TEXTURE_DESC_INIT;
    CUresult             r;

    if (d->Flags & ~(unsigned)ARRAY_FLAGS_KNOWN || d->NumChannels == 0 || d->NumChannels > 4 || d->NumChannels == 3 || d->Format <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    a.texel_bytes = texel_of(d->Format, d->NumChannels, &t.format);
    if (!a.texel_bytes || d->Flags & ~(unsigned)(ARRAY_LAYERED | ARRAY_SURFACE | ARRAY_CUBE))
        return texture_refuse(REFUSED_ARRAY);
    r = describe(d, &t);
    r = r ? r : make_texture(c->gpu, &t, &a.texels);
    if (r)
        return r;
    a.row_bytes = d->Width * a.texel_bytes;
    a.rows = d->Height ? d->Height : 1;
    a.slices = d->Depth ? d->Depth : 1;
    return keep(&a, out);
}

CUresult shim_cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    return pHandle && pAllocateArray ? create(pAllocateArray, pHandle) : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    const CUDA_ARRAY_DESCRIPTOR *d = pAllocateArray;

    if (!pHandle || !d)
        return CUDA_ERROR_INVALID_VALUE;
    return create(&(CUDA_ARRAY3D_DESCRIPTOR){.Width = d->Width, .Height = d->Height, .Format = d->Format, .NumChannels = d->NumChannels},
                  pHandle);
}

/* Kernels that were launched before still use it. */
CUresult shim_cuArrayDestroy(CUarray hArray)
{
    struct array *a = array_of(hArray);
    struct gpu   *g;
    CUresult      r;

    if (!a)
        return CUDA_ERROR_INVALID_HANDLE;
    g = a->gpu;
    r = textures_leave(g, a->texels);
    r = r ? r : queue_flush(g);
    if (!r && gpurest_texture_free(g->session, a->texels))
        r = gpu_failed(g);
    handle_remove(a->handle);
    free(a);
    return r;
}

struct forgotten {
    const struct gpu     *gpu;
    const struct context *context;
};

static void forget(void *handle, void *object, void *arg)
{
    const struct forgotten *f = arg;
    struct array           *a = object;

    if (a->gpu != f->gpu || (f->context && a->context != f->context))
        return;
    if (a->gpu->session && !a->gpu->sticky && !textures_leave(a->gpu, a->texels) && !queue_flush(a->gpu))
        gpurest_texture_free(a->gpu->session, a->texels);
    handle_remove(handle);
    free(a);
}

void arrays_forget(const struct gpu *g, const struct context *c)
{
    handle_each(HANDLE_ARRAY, forget, &(struct forgotten){g, c});
}

CUresult shim_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    const struct array *a = array_of(hArray);

    if (!a || !pArrayDescriptor)
        return a ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){a->desc.Width, a->desc.Height, a->desc.Format, a->desc.NumChannels};
    return CUDA_SUCCESS;
}

CUresult shim_cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    const struct array *a = array_of(hArray);

    if (!a || !pArrayDescriptor)
        return a ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    *pArrayDescriptor = a->desc;
    return CUDA_SUCCESS;
}

/* ---- copies of one row ---- */

static bool is_one_row(CUarray handle)
{
    const struct array *a = array_of(handle);

    return a && a->rows == 1 && a->slices == 1;
}

/* The ends of a copy are named by what is not NULL or 0. */
static CUDA_MEMCPY3D row_copy(CUarray to, size_t to_at, CUarray from, size_t from_at, size_t bytes)
{
    return (CUDA_MEMCPY3D){.dstMemoryType = MEMORY_ARRAY,
                           .dstArray = to,
                           .dstXInBytes = to_at,
                           .srcMemoryType = MEMORY_ARRAY,
                           .srcArray = from,
                           .srcXInBytes = from_at,
                           .WidthInBytes = bytes,
                           .Height = 1,
                           .Depth = 1};
}

static CUresult host_to_row(CUarray to, size_t at, const void *from, size_t bytes, CUstream stream)
{
    CUDA_MEMCPY3D c = row_copy(to, at, NULL, 0, bytes);

    c.srcMemoryType = MEMORY_HOST;
    c.srcHost = from;
    return is_one_row(to) ? shim_cuMemcpy3DAsync_v2(&c, stream) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult row_to_host(void *to, CUarray from, size_t at, size_t bytes, CUstream stream)
{
    CUDA_MEMCPY3D c = row_copy(NULL, 0, from, at, bytes);

    c.dstMemoryType = MEMORY_HOST;
    c.dstHost = to;
    return is_one_row(from) ? shim_cuMemcpy3DAsync_v2(&c, stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount)
{
    return host_to_row(dstArray, dstOffset, srcHost, ByteCount, NULL);
}

CUresult shim_cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount, CUstream hStream)
{
    return host_to_row(dstArray, dstOffset, srcHost, ByteCount, hStream);
}

CUresult shim_cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    return row_to_host(dstHost, srcArray, srcOffset, ByteCount, NULL);
}

CUresult shim_cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream)
{
    return row_to_host(dstHost, srcArray, srcOffset, ByteCount, hStream);
}

CUresult shim_cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount)
{
    CUDA_MEMCPY3D c = row_copy(dstArray, dstOffset, NULL, 0, ByteCount);

    c.srcMemoryType = MEMORY_DEVICE;
    c.srcDevice = srcDevice;
    return is_one_row(dstArray) ? rows_copy(&c) : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    CUDA_MEMCPY3D c = row_copy(NULL, 0, srcArray, srcOffset, ByteCount);

    c.dstMemoryType = MEMORY_DEVICE;
    c.dstDevice = dstDevice;
    return is_one_row(srcArray) ? rows_copy(&c) : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    CUDA_MEMCPY3D c = row_copy(dstArray, dstOffset, srcArray, srcOffset, ByteCount);

    return is_one_row(dstArray) && is_one_row(srcArray) ? rows_copy(&c) : CUDA_ERROR_INVALID_VALUE;
}
