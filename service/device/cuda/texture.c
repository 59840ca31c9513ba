/* Textures: arrays of the driver, or linear memory that it reads as a texture. An array has no addresses. So that its texels are written, read
 * and copied as other memory is, they get addresses that no memory has: rows follow each other from there on. */
#include "device/cuda/bounds.h"
#include "device/cuda/internal.h"

#include <stdlib.h>

enum { TEXEL_ADDRESS_UNIT = 256 }; /* as of other allocations */

static const uint64_t TEXELS_BASE = 1ull << 62; /* no processor and no GPU has addresses there */

struct cuda_texture {
    cuda_object object, surface;
    cuda_array  array;   /* NULL: linear memory */
    bool        view;    /* the array is another texture's */
    uint64_t    address; /* of the first texel */
    uint64_t    bytes, row_bytes, image_bytes;
    LIST_ENTRY(cuda_texture) in_device; /* not of those that are freed */
};

static const unsigned formats[TEXTURE_FORMATS] = {
    [TEXTURE_FORMAT_U8] = CUDA_FORMAT_U8,   [TEXTURE_FORMAT_S8] = CUDA_FORMAT_S8,   [TEXTURE_FORMAT_U16] = CUDA_FORMAT_U16,
    [TEXTURE_FORMAT_S16] = CUDA_FORMAT_S16, [TEXTURE_FORMAT_U32] = CUDA_FORMAT_U32, [TEXTURE_FORMAT_S32] = CUDA_FORMAT_S32,
    [TEXTURE_FORMAT_F16] = CUDA_FORMAT_F16, [TEXTURE_FORMAT_F32] = CUDA_FORMAT_F32,
};

static const unsigned addressings[TEXTURE_ADDRESSINGS] = {
    [TEXTURE_WRAP] = CUDA_ADDRESS_WRAP,
    [TEXTURE_CLAMP] = CUDA_ADDRESS_CLAMP,
    [TEXTURE_MIRROR] = CUDA_ADDRESS_MIRROR,
    [TEXTURE_BORDER] = CUDA_ADDRESS_BORDER,
};

static bool has_functions(const struct cuda_driver *cu)
{
    return cu->cuArray3DCreate_v2 && cu->cuArrayDestroy && cu->cuTexObjectCreate && cu->cuTexObjectDestroy && cu->cuSurfObjectCreate &&
           cu->cuSurfObjectDestroy && cu->cuMemcpy3DAsync_v2;
}

/* ---- making ---- */

/* What the driver does not take, the device has no texture for; the context lives on. */
static enum status refused(enum status st, const char *doing, struct problem *why)
{
    return st == STATUS_INTERNAL
               ? problem_set(why, STATUS_INVALID_FIELD, "the driver refuses the texture: %s failed: CUDA_ERROR_INVALID_VALUE", doing)
               : st;
}

static unsigned array_flags(const struct texture_desc *t)
{
    const struct texture_dimension_row *row = texture_dimension_of(t);
    bool gathers = t->dimension == TEXTURE_2D && t->extent[0] <= CUDA_GATHER_TEXELS_MAX && t->extent[1] <= CUDA_GATHER_TEXELS_MAX;

    return (row->layered ? CUDA_ARRAY_LAYERED : 0u) | (row->faces > 1 ? CUDA_ARRAY_CUBE : 0u) | (t->surface ? CUDA_ARRAY_SURFACE : 0u) |
           (gathers ? CUDA_ARRAY_GATHER : 0u);
}

/* Axes that a dimension does not have are 0; layers and faces stand in the depth. */
static enum status make_array(struct device *d, const struct texture_desc *t, cuda_array *out, struct problem *why)
{
    const struct texture_dimension_row *row = texture_dimension_of(t);
    unsigned                            faces = row->faces;
    struct cuda_array_props             props = {.width = t->extent[0],
                                                 .height = faces > 1       ? t->extent[0]
                                                           : row->axes > 1 ? t->extent[1]
                                                                           : 0,
                                                 .depth = row->axes > 2               ? t->extent[2]
                                                          : row->layered || faces > 1 ? (size_t)t->layers * faces
                                                                                      : 0,
                                                 .format = formats[t->format],
                                                 .channels = t->channels,
                                                 .flags = array_flags(t)};

    enum status st = cuda_check(d, d->cu->cuArray3DCreate_v2(out, &props), NULL, "creating an array");

    if (st == STATUS_DEVICE_MEMORY_EXHAUSTED && !cuda_mem_trim(d)) /* the pool may hold what it needs */
        st = cuda_check(d, d->cu->cuArray3DCreate_v2(out, &props), NULL, "creating an array");
    return refused(st, "creating an array", why);
}

/* The array of the texture whose texels a view reads. */
static cuda_array array_at(const struct device *d, uint64_t address)
{
    const struct cuda_texture *x;

    LIST_FOREACH(x, &d->textures, in_device)
        if (x->array && !x->view && x->address == address)
            return x->array;
    return NULL;
}

static struct cuda_resource resource_of(const struct texture_desc *t, cuda_array array)
{
    struct cuda_resource r = {.kind = CUDA_RESOURCE_ARRAY};

    if (array) {
        r.of.array = array;
        return r;
    }
    r.kind = t->dimension == TEXTURE_1D ? CUDA_RESOURCE_LINEAR : CUDA_RESOURCE_PITCHED;
    r.of.linear.address = t->address;
    r.of.linear.format = formats[t->format];
    r.of.linear.channels = t->channels;
    r.of.linear.bytes_or_width = t->dimension == TEXTURE_1D ? texture_bytes(t) : t->extent[0];
    r.of.linear.height = t->extent[1];
    r.of.linear.pitch = texture_row_bytes(t);
    return r;
}

static struct cuda_sampling sampling_of(const struct texture_desc *t)
{
    struct cuda_sampling s = {.filter = t->filter == TEXTURE_FILTER_LINEAR ? CUDA_FILTER_LINEAR : CUDA_FILTER_POINT};

    for (unsigned i = 0; i < 3; i++)
        s.addressing[i] = addressings[t->addressing[i]];
    if (t->read == TEXTURE_READ_ELEMENT && !texture_format_of(t)->floating)
        s.flags |= CUDA_SAMPLE_INTEGERS;
    if (t->normalized)
        s.flags |= CUDA_SAMPLE_NORMALIZED;
    if (t->read == TEXTURE_READ_SRGB)
        s.flags |= CUDA_SAMPLE_SRGB;
    return s;
}

static enum status make_objects(struct device *d, const struct texture_desc *t, struct cuda_texture *x, struct problem *why)
{
    const struct cuda_resource resource = resource_of(t, x->array);
    const struct cuda_sampling sampling = sampling_of(t);
    enum status st = cuda_check(d, d->cu->cuTexObjectCreate(&x->object, &resource, &sampling, NULL), why, "creating a texture object");

    if (st || !t->surface)
        return refused(st, "creating a texture object", why);
    st = cuda_check(d, d->cu->cuSurfObjectCreate(&x->surface, &resource), why, "creating a surface object");
    return refused(st, "creating a surface object", why);
}

static void end_objects(struct device *d, const struct cuda_texture *x)
{
    if (x->surface)
        cuda_check(d, d->cu->cuSurfObjectDestroy(x->surface), NULL, "freeing a surface object");
    if (x->object)
        cuda_check(d, d->cu->cuTexObjectDestroy(x->object), NULL, "freeing a texture object");
}

static bool owns_array(const struct cuda_texture *x)
{
    return x->array && !x->view;
}

static enum status make_parts(struct device *d, const struct texture_desc *t, struct cuda_texture *x, struct problem *why)
{
    enum status st = t->address ? STATUS_OK : make_array(d, t, &x->array, why);

    if (t->view)
        x->array = array_at(d, t->address);
    if (!st && t->view && !x->array)
        st = problem_set(why, STATUS_INTERNAL, "the texture whose texels it reads is not there");
    if (!st)
        st = make_objects(d, t, x, why);
    if (!st && owns_array(x))
        st = cuda_memory_remember(d, &(struct cuda_allocation){.address = x->address, .bytes = x->bytes, .texture = x});
    if (!st)
        return st;
    end_objects(d, x);
    if (owns_array(x))
        cuda_check(d, d->cu->cuArrayDestroy(x->array), NULL, "freeing an array");
    return st;
}

static struct cuda_texture *describe(struct device *d, const struct texture_desc *t)
{
    struct cuda_texture *x = calloc(1, sizeof *x);

    if (!x)
        return NULL;
    x->row_bytes = texture_row_bytes(t);
    x->image_bytes = x->row_bytes * (texture_dimension_of(t)->faces > 1 ? t->extent[0] : t->extent[1]);
    x->bytes = texture_bytes(t);
    x->address = t->address;
    x->view = t->view;
    if (!x->address) {
        x->address = TEXELS_BASE + d->texel_addresses;
        d->texel_addresses += (x->bytes + TEXEL_ADDRESS_UNIT - 1) / TEXEL_ADDRESS_UNIT * TEXEL_ADDRESS_UNIT; /* never given twice */
    }
    return x;
}

enum status cuda_texture_create(struct device *d, const struct texture_desc *t, struct device_texture *out, struct problem *why)
{
    struct cuda_texture *x;
    enum status          st = cuda_alive(d, why);

    if (st)
        return st;
    if (!has_functions(d->cu))
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "the driver has no textures");
    if (!t->address && texture_bytes(t) > d->total_bytes)
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    x = describe(d, t);
    if (!x)
        return STATUS_OUT_OF_MEMORY;
    st = make_parts(d, t, x, why);
    if (st) {
        free(x);
        return st;
    }
    LIST_INSERT_HEAD(&d->textures, x, in_device);
    if (owns_array(x))
        d->memory.array_bytes += x->bytes;
    *out = (struct device_texture){x->address, x->object, x->surface};
    return STATUS_OK;
}

/* ---- ending ---- */

/* Its array, at once or when nothing can use it any more: freeing one waits for kernels. */
enum status cuda_texture_destroy(struct device *d, uint64_t texture)
{
    enum status          st = cuda_alive(d, NULL);
    struct cuda_texture *x;

    LIST_FOREACH(x, &d->textures, in_device)
        if (x->object == texture)
            break;
    if (st || !x)
        return st ? st : STATUS_INTERNAL;
    LIST_REMOVE(x, in_device);
    end_objects(d, x);
    if (owns_array(x))
        return cuda_mem_free(d, x->address);
    free(x);
    return STATUS_OK;
}

enum status cuda_texture_release(struct device *d, struct cuda_texture *x)
{
    enum status st = cuda_check(d, d->cu->cuArrayDestroy(x->array), NULL, "freeing an array");

    d->memory.array_bytes -= x->bytes;
    free(x);
    return st;
}

/* Those with arrays are among the allocations, which end after this. */
void cuda_textures_stop(struct device *d)
{
    struct cuda_texture *x;

    while ((x = LIST_FIRST(&d->textures)) != NULL) {
        LIST_REMOVE(x, in_device);
        end_objects(d, x);
        if (!owns_array(x))
            free(x);
    }
}

/* ---- texels ---- */

bool cuda_is_texels(uint64_t address)
{
    return address >= TEXELS_BASE;
}

static const struct cuda_texture *find_texels(const struct device *d, uint64_t address, uint64_t bytes)
{
    const struct cuda_texture *x;

    LIST_FOREACH(x, &d->textures, in_device)
        if (x->array && address >= x->address && bytes <= x->bytes && address - x->address <= x->bytes - bytes)
            return x;
    return NULL;
}

/* A box of the array: a part of a row, whole rows or whole images. */
static uint64_t copy_box(const struct cuda_texture *x, uint64_t offset, uint64_t bytes, struct cuda_array_place *at, struct cuda_box *box)
{
    uint64_t row = x->row_bytes, image = x->image_bytes;

    *at = (struct cuda_array_place){.x_bytes = offset % row, .y = offset % image / row, .z = offset / image};
    *box = (struct cuda_box){1, 1, 1};
    if (at->x_bytes || bytes < row) {
        box->width_bytes = bytes < row - at->x_bytes ? bytes : row - at->x_bytes;
    } else {
        box->width_bytes = row;
        box->height = at->y || bytes < image ? bytes / row : image / row;
        box->height = box->height < image / row - at->y ? box->height : image / row - at->y;
        box->depth = at->y || bytes < image ? 1 : bytes / image;
    }
    return box->width_bytes * box->height * box->depth;
}

enum status cuda_texels_copy(struct device *d, struct device_stream *s, uint64_t texels, const struct cuda_linear *other, uint64_t bytes,
                             bool write)
{
    const struct cuda_texture *x = find_texels(d, texels, bytes);
    uint64_t                   done = 0;
    enum status                st = x ? STATUS_OK : STATUS_INTERNAL;

    while (!st && done < bytes) {
        struct cuda_copy        c = {.box = {0, 0, 0}};
        struct cuda_array_place at;
        uint64_t                part = copy_box(x, texels - x->address + done, bytes - done, &at, &c.box);
        struct cuda_copy_side   array = {.place = at, .kind = CUDA_MEMORY_ARRAY, .array = x->array};
        struct cuda_copy_side   line = {.kind = other->host ? CUDA_MEMORY_HOST : CUDA_MEMORY_DEVICE,
                                        .host = other->host ? other->host + done : NULL,
                                        .address = other->host ? 0 : other->address + done,
                                        .pitch = c.box.width_bytes,
                                        .height = c.box.height};

        c.from = write ? line : array;
        c.to = write ? array : line;
        st = cuda_check(d, d->cu->cuMemcpy3DAsync_v2(&c, s->handle), NULL, "copying texels");
        done += part;
    }
    return st;
}
