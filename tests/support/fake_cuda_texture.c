/* The fake driver's arrays: host memory, rows one after the other, filled with rubbish. Textures and surfaces are only numbers. */
#include "support/fake_cuda.h"

#include <stdlib.h>
#include <string.h>

enum { RUBBISH = 0xa5, OBJECTS_MAX = 4096 };

struct CUarray_st {
    size_t         row, rows, images, element;
    unsigned       objects; /* that read it */
    unsigned       flags;
    unsigned char *data;
};

static struct {
    bool         surface;
    cuda_array   array; /* NULL: linear memory */
    cuda_address address;
    bool         used;
} objects[OBJECTS_MAX];

static unsigned sampling_flags; /* of the texture made last */

static size_t format_bytes(unsigned format)
{
    switch (format) {
    case CUDA_FORMAT_U8:
    case CUDA_FORMAT_S8:
        return 1;
    case CUDA_FORMAT_U16:
    case CUDA_FORMAT_S16:
    case CUDA_FORMAT_F16:
        return 2;
    case CUDA_FORMAT_U32:
    case CUDA_FORMAT_S32:
    case CUDA_FORMAT_F32:
        return 4;
    default:
        return 0;
    }
}

static bool props_fit(const struct cuda_array_props *p)
{
    bool layered = p->flags & CUDA_ARRAY_LAYERED, cube = p->flags & CUDA_ARRAY_CUBE;

    if (!p->width || !format_bytes(p->format) || (p->channels != 1 && p->channels != 2 && p->channels != 4))
        return false;
    if (cube && (p->width != p->height || (layered ? p->depth % 6 != 0 || !p->depth : p->depth != 6)))
        return false;
    if ((p->flags & CUDA_ARRAY_GATHER) && (p->depth || !p->height || p->width > 32768 || p->height > 32768))
        return false;
    return layered || cube ? p->depth > 0 : !p->depth || p->height;
}

cuda_result cuArray3DCreate_v2(cuda_array *array, const struct cuda_array_props *props)
{
    cuda_result r = fake_step(__func__);
    cuda_array  a;
    size_t      bytes;

    if (r)
        return r;
    if (!props_fit(props))
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    a = calloc(1, sizeof *a);
    a->element = format_bytes(props->format) * props->channels;
    a->row = props->width * a->element;
    a->rows = props->height ? props->height : 1;
    a->images = props->depth ? props->depth : 1;
    a->flags = props->flags;
    bytes = a->row * a->rows * a->images;
    a->data = malloc(bytes);
    memset(a->data, RUBBISH, bytes);
    if (!fake_memory_add(a->data, bytes)) {
        free(a->data);
        free(a);
        return CUDA_RESULT_ERROR_OUT_OF_MEMORY;
    }
    fake_live(1);
    *array = a;
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuArrayDestroy(cuda_array array)
{
    cuda_result r = fake_step(__func__);

    if (array->objects)
        abort(); /* what still reads it would read freed memory */
    fake_memory_remove(array->data);
    free(array->data);
    free(array);
    fake_live(-1);
    return r;
}

static cuda_result make_object(const char *name, cuda_object *object, const struct cuda_resource *resource, bool surface)
{
    cuda_result r = fake_step(name);
    cuda_array  a = resource->kind == CUDA_RESOURCE_ARRAY ? resource->of.array : NULL;

    if (r)
        return r;
    if ((surface && (!a || !(a->flags & CUDA_ARRAY_SURFACE))) || resource->flags)
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    if (!a &&
        (resource->of.linear.address % 512 || !format_bytes(resource->of.linear.format) ||
         !fake_is_memory(resource->of.linear.address, resource->kind == CUDA_RESOURCE_LINEAR ? resource->of.linear.bytes_or_width : 1)))
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    for (size_t i = 1; i < OBJECTS_MAX; i++) {
        if (objects[i].used)
            continue;
        objects[i].used = true;
        objects[i].surface = surface;
        objects[i].array = a;
        objects[i].address = a ? 0 : resource->of.linear.address;
        if (a)
            a->objects++;
        fake_live(1);
        *object = i;
        return CUDA_RESULT_SUCCESS;
    }
    return CUDA_RESULT_ERROR_OUT_OF_MEMORY;
}

static cuda_result end_object(const char *name, cuda_object object, bool surface)
{
    cuda_result r = fake_step(name);

    if (object >= OBJECTS_MAX || !objects[object].used || objects[object].surface != surface)
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    if (objects[object].array)
        objects[object].array->objects--;
    objects[object].used = false;
    fake_live(-1);
    return r;
}

cuda_result cuTexObjectCreate(cuda_object *object, const struct cuda_resource *resource, const struct cuda_sampling *sampling,
                              const struct cuda_view *view)
{
    if (view || sampling->filter > CUDA_FILTER_LINEAR || sampling->addressing[0] > CUDA_ADDRESS_BORDER)
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    sampling_flags = sampling->flags;
    return make_object(__func__, object, resource, false);
}

unsigned fake_cuda_sampling(void)
{
    return sampling_flags;
}

cuda_result cuTexObjectDestroy(cuda_object object)
{
    return end_object(__func__, object, false);
}

cuda_result cuSurfObjectCreate(cuda_object *object, const struct cuda_resource *resource)
{
    return make_object(__func__, object, resource, true);
}

cuda_result cuSurfObjectDestroy(cuda_object object)
{
    return end_object(__func__, object, true);
}

void *fake_texels(cuda_object object, size_t bytes)
{
    if (object >= OBJECTS_MAX || !objects[object].used)
        return NULL;
    if (!objects[object].array)
        return fake_is_memory(objects[object].address, bytes) ? (void *)(uintptr_t)objects[object].address : NULL;
    return objects[object].array->row * objects[object].array->rows >= bytes ? objects[object].array->data : NULL;
}

/* ---- copies ---- */

static bool side_fits(const struct cuda_copy_side *s, const struct cuda_box *b)
{
    const struct CUarray_st *a = s->array;

    if (s->place.level || s->reserved)
        return false;
    if (s->kind == CUDA_MEMORY_ARRAY)
        return s->place.x_bytes % a->element == 0 && b->width_bytes % a->element == 0 && s->place.x_bytes + b->width_bytes <= a->row &&
               s->place.y + b->height <= a->rows && s->place.z + b->depth <= a->images;
    if (s->place.x_bytes || s->place.y || s->place.z || s->pitch < b->width_bytes || s->height < b->height)
        return false;
    return s->kind == CUDA_MEMORY_HOST ? s->host != NULL
                                       : s->kind == CUDA_MEMORY_DEVICE && fake_is_memory(s->address, s->pitch * s->height * b->depth);
}

static unsigned char *row_of(const struct cuda_copy_side *s, size_t y, size_t z)
{
    const struct CUarray_st *a = s->array;

    if (s->kind == CUDA_MEMORY_ARRAY)
        return a->data + ((s->place.z + z) * a->rows + s->place.y + y) * a->row + s->place.x_bytes;
    return (s->kind == CUDA_MEMORY_HOST ? s->host : (unsigned char *)(uintptr_t)s->address) + (z * s->height + y) * s->pitch;
}

cuda_result cuMemcpy3DAsync_v2(const struct cuda_copy *copy, cuda_stream stream)
{
    cuda_result r = fake_step(__func__);

    if (r)
        return r;
    if (!side_fits(&copy->from, &copy->box) || !side_fits(&copy->to, &copy->box))
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    for (size_t z = 0; !fake_stuck(stream->stuck) && z < copy->box.depth; z++)
        for (size_t y = 0; y < copy->box.height; y++)
            memcpy(row_of(&copy->to, y, z), row_of(&copy->from, y, z), copy->box.width_bytes);
    return CUDA_RESULT_SUCCESS;
}
