/* Copies of rows and of volumes: to, from and within devices. */
#include <string.h>

#include "shim.h"

/* One side of a copy: where it begins, how far its rows and its slices are from each other. */
struct side {
    char               *host; /* NULL: of the device */
    struct device_range device;
    size_t              pitch, slice;
};

struct extent {
    size_t width, rows, slices;
};

struct place {
    CUmemorytype type;
    const void  *host;
    CUdeviceptr  device;
    CUarray      array;
    size_t       pitch, height, x, y, z;
};

/* The bytes from the first to the last that a side touches; false: more than there are addresses. */
static bool span_of(const struct side *s, const struct extent *e, size_t *out)
{
    size_t slices, rows;

    return !__builtin_mul_overflow(e->slices - 1, s->slice, &slices) && !__builtin_mul_overflow(e->rows - 1, s->pitch, &rows) &&
           !__builtin_add_overflow(slices, rows, &rows) && !__builtin_add_overflow(rows, e->width, out);
}

static bool is_within(size_t at, size_t count, size_t of)
{
    return at <= of && count <= of - at;
}

/* Whole texels of an array, whose rows have no gaps here. */
static CUresult array_side(const struct place *p, const struct extent *e, struct side *out)
{
    const struct array *a = array_of(p->array);

    if (!a || p->x % a->texel_bytes || e->width % a->texel_bytes || !is_within(p->x, e->width, a->row_bytes) ||
        !is_within(p->y, e->rows, a->rows) || !is_within(p->z, e->slices, a->slices))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct side){.device = {a->gpu, a->texels, 0}, .pitch = a->row_bytes};
    out->slice = a->row_bytes * a->rows;
    out->device.offset = p->z * out->slice + p->y * out->pitch + p->x;
    return CUDA_SUCCESS;
}

static CUresult side_of(const struct place *p, const struct extent *e, struct side *out)
{
    uint64_t            base = p->type == MEMORY_HOST ? (uint64_t)(uintptr_t)p->host : p->device, start;
    size_t              row_end, rows, offset, z, bytes;
    struct device_range any;

    if (p->type == MEMORY_ARRAY)
        return array_side(p, e, out);
    if (p->type < MEMORY_HOST || p->type > MEMORY_UNIFIED || base == 0 || __builtin_add_overflow(p->x, e->width, &row_end) ||
        __builtin_add_overflow(p->y, e->rows, &rows) || (p->pitch && p->pitch < row_end) || (p->height && p->height < rows))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct side){.pitch = p->pitch ? p->pitch : row_end};
    if (__builtin_mul_overflow(out->pitch, p->height ? p->height : rows, &out->slice) || __builtin_mul_overflow(out->slice, p->z, &z) ||
        __builtin_mul_overflow(out->pitch, p->y, &offset) || __builtin_add_overflow(offset, z, &offset) ||
        __builtin_add_overflow(offset, p->x, &offset) || !span_of(out, e, &bytes) || __builtin_add_overflow(base, offset, &start))
        return CUDA_ERROR_INVALID_VALUE;
    if (p->type == MEMORY_HOST || (p->type == MEMORY_UNIFIED && !memory_range(base, 1, &any)))
        out->host = (char *)(uintptr_t)start;
    return out->host || memory_range(start, bytes, &out->device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Rows without gaps are one row, slices without gaps are one slice. */
static void join(struct side *to, struct side *from, struct extent *e)
{
    if (to->slice == to->pitch * e->rows && from->slice == from->pitch * e->rows) {
        e->rows *= e->slices;
        e->slices = 1;
    }
    if (e->rows > 1 && to->pitch == e->width && from->pitch == e->width) {
        e->width *= e->rows;
        e->rows = 1;
    }
}

static struct device_range moved(const struct side *s, size_t by)
{
    struct device_range r = s->device;

    r.offset += by;
    return r;
}

static CUresult copy_row(const struct side *to, size_t to_at, const struct side *from, size_t from_at, size_t bytes)
{
    struct device_range place = moved(to, to_at), source = moved(from, from_at);

    if (to->host && from->host) {
        memmove(to->host + to_at, from->host + from_at, bytes);
        return CUDA_SUCCESS;
    }
    if (to->host)
        return range_download(to->host + to_at, &source, bytes, false);
    return from->host ? range_upload(&place, from->host + from_at, bytes) : range_copy(&place, &source, bytes);
}

static CUresult copy(const struct place *to_place, const struct place *from_place, struct extent e)
{
    struct side to, from;
    struct gpu *g = context_current()->gpu;
    CUresult    r;

    if (e.width == 0 || e.rows == 0 || e.slices == 0)
        return CUDA_SUCCESS;
    r = side_of(to_place, &e, &to);
    r = r ? r : side_of(from_place, &e, &from);
    if (r)
        return r;
    g = from.host ? g : from.device.gpu;
    if (to.host && from.host)
        r = queue_flush(g);
    join(&to, &from, &e);
    for (size_t z = 0; z < e.slices && !r; z++)
        for (size_t y = 0; y < e.rows && !r; y++)
            r = copy_row(&to, z * to.slice + y * to.pitch, &from, z * from.slice + y * from.pitch, e.width);
    return !r && to.host ? queue_flush(g) : r; /* of rows that were read */
}

CUresult rows_copy(const CUDA_MEMCPY3D *c)
{
    struct place to = {c->dstMemoryType, c->dstHost,     c->dstDevice, c->dstArray, c->dstPitch,
                       c->dstHeight,     c->dstXInBytes, c->dstY,      c->dstZ};
    struct place from = {c->srcMemoryType, c->srcHost,     c->srcDevice, c->srcArray, c->srcPitch,
                         c->srcHeight,     c->srcXInBytes, c->srcY,      c->srcZ};

    return copy(&to, &from, (struct extent){c->WidthInBytes, c->Height, c->Depth});
}

bool rows_known(const CUDA_MEMCPY3D *c)
{
    return (c->srcMemoryType != MEMORY_ARRAY || array_of(c->srcArray)) && (c->dstMemoryType != MEMORY_ARRAY || array_of(c->dstArray));
}

/* ---- the functions ---- */

static CUDA_MEMCPY3D volume_of(const CUDA_MEMCPY2D *c)
{
    return (CUDA_MEMCPY3D){.srcXInBytes = c->srcXInBytes,
                           .srcY = c->srcY,
                           .srcMemoryType = c->srcMemoryType,
                           .srcHost = c->srcHost,
                           .srcDevice = c->srcDevice,
                           .srcArray = c->srcArray,
                           .srcPitch = c->srcPitch,
                           .dstXInBytes = c->dstXInBytes,
                           .dstY = c->dstY,
                           .dstMemoryType = c->dstMemoryType,
                           .dstHost = c->dstHost,
                           .dstDevice = c->dstDevice,
                           .dstArray = c->dstArray,
                           .dstPitch = c->dstPitch,
                           .WidthInBytes = c->WidthInBytes,
                           .Height = c->Height,
                           .Depth = 1};
}

CUresult shim_cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
    return pCopy ? rows_copy(pCopy) : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
    CUresult r = stream_check(hStream);

    if (!r && capture_on(hStream))
        return capture_copy(hStream, pCopy);
    return r ? r : shim_cuMemcpy3D_v2(pCopy);
}

CUresult shim_cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
    CUDA_MEMCPY3D c;

    if (!pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    c = volume_of(pCopy);
    return rows_copy(&c);
}

CUresult shim_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
    return shim_cuMemcpy2D_v2(pCopy);
}

CUresult shim_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    CUDA_MEMCPY3D c;

    if (!pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    c = volume_of(pCopy);
    return shim_cuMemcpy3DAsync_v2(&c, hStream);
}
