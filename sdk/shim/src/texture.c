/* Textures and surfaces of programs: how kernels read an array or memory. Each is a texture of the service, whose number the kernels take. */
#include <stdlib.h>

#include "session/session.h"
#include "shim.h"

enum { OFFSET_ALIGN = 512 }; /* CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, on every device */

struct texture {
    uint64_t              number;
    bool                  surface, ended; /* ended: what it read was freed; the program may still destroy it */
    const struct context *context;
    struct gpu           *gpu;
    gpurest_buffer        at_service, memory;
    struct texture       *next;

    CUDA_RESOURCE_DESC      resource;
    CUDA_TEXTURE_DESC       sampling;
    CUDA_RESOURCE_VIEW_DESC view; /* without one: 0 */
};

static struct texture *textures; /* the newest first: numbers come again */

/* ---- what they read ---- */

/* The array; NULL: it is none. */
static const struct array *array_in(const CUDA_RESOURCE_DESC *r)
{
    return r->resType == RESOURCE_ARRAY ? array_of(r->res.array) : NULL;
}

static CUresult describe_memory(CUdeviceptr address, size_t bytes, gpurest_texture_desc *out)
{
    struct device_range at;

    if (!memory_range(address, bytes, &at) || at.offset % OFFSET_ALIGN || at.gpu != context_current()->gpu)
        return CUDA_ERROR_INVALID_VALUE;
    out->buffer = at.buffer;
    out->offset = at.offset;
    return memory_is_variable(address) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

static CUresult describe_linear(const struct linear_resource *l, gpurest_texture_desc *out)
{
    size_t texel = texel_of(l->format, l->numChannels, &out->format), texels = texel ? l->sizeInBytes / texel : 0;

    if (texels == 0 || texels > UINT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    out->dimension = "1d";
    out->channels = l->numChannels;
    out->extent[0] = (uint32_t)texels;
    return describe_memory(l->devPtr, texels * texel, out);
}

static CUresult describe_rows(const struct pitch2d_resource *p, gpurest_texture_desc *out)
{
    size_t texel = texel_of(p->format, p->numChannels, &out->format), bytes;

    if (texel == 0 || p->width == 0 || p->height == 0 || p->width > UINT32_MAX || p->height > UINT32_MAX ||
        p->pitchInBytes < p->width * texel || __builtin_mul_overflow(p->pitchInBytes, p->height - 1, &bytes) ||
        __builtin_add_overflow(bytes, p->width * texel, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    out->dimension = "2d";
    out->channels = p->numChannels;
    out->extent[0] = (uint32_t)p->width;
    out->extent[1] = (uint32_t)p->height;
    out->pitch = p->pitchInBytes;
    return describe_memory(p->devPtr, bytes, out);
}

CUresult texture_refuse(enum refused_texture what)
{
    static const char *const names[] = {[REFUSED_LEVELS] = "mip levels",
                                        [REFUSED_BORDER] = "a border of another color than 0",
                                        [REFUSED_SAMPLING] =
                                            "sRGB of other texels than bytes read as floats, seamless cubes and anisotropic filters",
                                        [REFUSED_VIEW] = "a view in another format or of some layers",
                                        [REFUSED_ARRAY] = "an array of this format or with these flags"};
    static bool              told[COUNT(names)];

    if (!told[what])
        tell("textures: %s: not supported, CUDA_ERROR_NOT_SUPPORTED", names[what]);
    told[what] = true;
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult describe_resource(const CUDA_RESOURCE_DESC *r, gpurest_texture_desc *out)
{
    const struct array *a = array_in(r);

    if (r->flags)
        return CUDA_ERROR_INVALID_VALUE;
    switch (r->resType) {
    case RESOURCE_ARRAY:
        if (!a || a->gpu != context_current()->gpu)
            return CUDA_ERROR_INVALID_VALUE;
        array_describe(a, out);
        return CUDA_SUCCESS;
    case RESOURCE_LINEAR:
        return describe_linear(&r->res.linear, out);
    case RESOURCE_PITCH2D:
        return describe_rows(&r->res.pitch2D, out);
    case RESOURCE_MIPMAPPED_ARRAY:
        return texture_refuse(REFUSED_LEVELS);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* ---- how they read it ---- */

static CUarray_format format_of(const CUDA_RESOURCE_DESC *r)
{
    switch (r->resType) {
    case RESOURCE_ARRAY:
        return array_in(r)->desc.Format;
    case RESOURCE_LINEAR:
        return r->res.linear.format;
    default:
        return r->res.pitch2D.format;
    }
}

/* Integers of 32 bits and floats are read as they are, whatever the flags say. */
static bool reads_normalized(const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t)
{
    CUarray_format f = format_of(r);

    return !(t->flags & SAMPLING_INTEGERS) && (f == FORMAT_U8 || f == FORMAT_S8 || f == FORMAT_U16 || f == FORMAT_S16);
}

static bool reads_floats(const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t)
{
    return format_of(r) == FORMAT_F16 || format_of(r) == FORMAT_F32 || reads_normalized(r, t);
}

/* What NVIDIA's driver makes of the flag with other texels is not known. */
static bool is_srgb(const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t)
{
    return t->flags & SAMPLING_SRGB && format_of(r) == FORMAT_U8 && reads_normalized(r, t);
}

static bool is_black(const CUDA_TEXTURE_DESC *t)
{
    for (size_t i = 0; i < COUNT(t->borderColor); i++)
        if (t->borderColor[i] < 0 || t->borderColor[i] > 0)
            return false;
    return true;
}

/* Without normalized coordinates, nothing wraps. */
static CUresult describe_addressing(const CUDA_TEXTURE_DESC *t, gpurest_texture_desc *out)
{
    static const char *const words[] = {
        [ADDRESS_WRAP] = "wrap", [ADDRESS_CLAMP] = "clamp", [ADDRESS_MIRROR] = "mirror", [ADDRESS_BORDER] = "border"};

    for (size_t i = 0; i < COUNT(t->addressMode); i++) {
        CUaddress_mode m = t->addressMode[i];

        if (m < 0 || (size_t)m >= COUNT(words))
            return CUDA_ERROR_INVALID_VALUE;
        if (m == ADDRESS_BORDER && !is_black(t))
            return texture_refuse(REFUSED_BORDER);
        out->addressing[i] = out->normalized_coordinates || m == ADDRESS_BORDER ? words[m] : "clamp";
    }
    return CUDA_SUCCESS;
}

/* What would change the texels that are read, and is not there, is refused; what is about mip levels changes nothing. */
static CUresult describe_sampling(const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t, gpurest_texture_desc *out)
{
    if (t->flags & ~(unsigned)SAMPLING_KNOWN || t->filterMode < FILTER_POINT || t->filterMode > FILTER_LINEAR)
        return CUDA_ERROR_INVALID_VALUE;
    if ((t->flags & SAMPLING_SRGB && !is_srgb(r, t)) || t->flags & SAMPLING_SEAMLESS || t->maxAnisotropy > 1)
        return texture_refuse(REFUSED_SAMPLING);
    out->read = is_srgb(r, t) ? "srgb" : reads_normalized(r, t) ? "normalized_float" : "element";
    if (r->resType == RESOURCE_LINEAR) /* read by index: the rest has no meaning */
        return CUDA_SUCCESS;
    if (t->filterMode == FILTER_LINEAR && !reads_floats(r, t))
        return CUDA_ERROR_INVALID_VALUE;
    out->filter = t->filterMode == FILTER_LINEAR ? "linear" : "point";
    out->normalized_coordinates |= (t->flags & SAMPLING_NORMALIZED) != 0;
    return describe_addressing(t, out);
}

/* CUresourceViewFormat of an array's own format: three for each kind of number. */
static CUresourceViewFormat view_format(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    static const CUarray_format order[] = {FORMAT_U8, FORMAT_S8, FORMAT_U16, FORMAT_S16, FORMAT_U32, FORMAT_S32, FORMAT_F16, FORMAT_F32};
    int                         i = 0;

    while (order[i] != d->Format)
        i++;
    return 1 + 3 * i + (d->NumChannels == 1 ? 0 : d->NumChannels == 2 ? 1 : 2);
}

/* A view of everything in the array's own format is what there is without one. */
static CUresult check_view(const CUDA_RESOURCE_DESC *r, const CUDA_RESOURCE_VIEW_DESC *v)
{
    const struct array *a = array_in(r);
    bool                layered;

    if (!v || !a)
        return CUDA_SUCCESS; /* NVIDIA's driver takes no notice of views of memory */
    if (v->width != a->desc.Width || v->height != a->desc.Height || v->depth != a->desc.Depth)
        return CUDA_ERROR_INVALID_VALUE;
    if (v->firstMipmapLevel || v->lastMipmapLevel)
        return CUDA_ERROR_INVALID_VALUE;
    layered = a->desc.Flags & ARRAY_LAYERED;
    if (!layered && (v->firstLayer || v->lastLayer))
        return CUDA_ERROR_INVALID_VALUE;
    if (layered && (v->firstLayer || v->lastLayer + 1u != a->desc.Depth))
        return texture_refuse(REFUSED_VIEW);
    return v->format == 0 || v->format == view_format(&a->desc) ? CUDA_SUCCESS : texture_refuse(REFUSED_VIEW);
}

/* ---- make and end ---- */

static void drop(struct texture *t)
{
    struct texture **link = &textures;

    while (*link != t)
        link = &(*link)->next;
    *link = t->next;
    free(t);
}

static struct texture *find(uint64_t number, bool surface)
{
    const struct gpu *g = context_current()->gpu;
    struct texture   *t = textures;

    while (t && (t->number != number || t->surface != surface || t->gpu != g))
        t = t->next;
    return t;
}

static CUresult make(struct texture *t, const gpurest_texture_desc *d, uint64_t *out)
{
    struct buffer_entry e;
    struct texture     *old;

    if (gpurest_texture_create(t->gpu->session, &t->at_service, d))
        return gpu_failed(t->gpu);
    if (session_buffer(t->gpu->session, t->at_service, NULL, &e))
        return gpu_failed(t->gpu);
    t->number = t->surface ? e.surface : e.object;
    if (t->number == 0) {
        tell("the service does not tell the numbers of textures: it is older than this library");
        gpurest_texture_free(t->gpu->session, t->at_service);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    old = find(t->number, t->surface); /* one that has ended */
    if (old)
        drop(old);
    t->memory = d->buffer;
    t->next = textures;
    textures = t;
    *out = t->number;
    return CUDA_SUCCESS;
}

static CUresult create(bool surface, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *how, const CUDA_RESOURCE_VIEW_DESC *view,
                       const gpurest_texture_desc *d, uint64_t *out)
{
    struct context *c = context_current();
    struct texture *t = calloc(1, sizeof *t);
    CUresult        result = t ? gpu_session(c->gpu) : CUDA_ERROR_OUT_OF_MEMORY;

    if (!result) {
        *t = (struct texture){.surface = surface, .context = c, .gpu = c->gpu, .resource = *r};
        if (how)
            t->sampling = *how;
        if (view)
            t->view = *view;
        result = make(t, d, out);
    }
    if (result)
        free(t);
    return result;
}

/* Behind the kernels that use it. */
static CUresult end(struct texture *t)
{
    CUresult r = t->ended ? CUDA_SUCCESS : queue_flush(t->gpu);

    if (!r && !t->ended && gpurest_texture_free(t->gpu->session, t->at_service))
        r = gpu_failed(t->gpu);
    t->ended = true;
    return r;
}

CUresult textures_leave(struct gpu *g, gpurest_buffer buffer)
{
    CUresult r = CUDA_SUCCESS;

    for (struct texture *t = textures; t && !r; t = t->next)
        if (t->gpu == g && !t->ended && t->memory.id == buffer.id)
            r = end(t);
    return r;
}

void textures_forget(const struct gpu *g, const struct context *c)
{
    for (struct texture *t = textures, *next; t; t = next) {
        next = t->next;
        if (t->gpu != g || (c && t->context != c))
            continue;
        if (g->session && !g->sticky)
            end(t);
        drop(t);
    }
}

static CUresult destroy(uint64_t number, bool surface)
{
    struct texture *t = find(number, surface);
    CUresult        r = t ? end(t) : CUDA_SUCCESS; /* as NVIDIA's driver, for one that is gone */

    if (t)
        drop(t);
    return r;
}

/* ---- the functions ---- */

CUresult shim_cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc, const CUDA_TEXTURE_DESC *pTexDesc,
                                const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
    gpurest_texture_desc d = GPUREST_TEXTURE_DESC_INIT;
    uint64_t             number = 0;
    CUresult             r;

    if (!pTexObject || !pResDesc || !pTexDesc)
        return CUDA_ERROR_INVALID_VALUE;
    r = describe_resource(pResDesc, &d);
    r = r ? r : check_view(pResDesc, pResViewDesc);
    r = r ? r : describe_sampling(pResDesc, pTexDesc, &d);
    d.surface = 0;
    r = r ? r : create(false, pResDesc, pTexDesc, pResViewDesc, &d, &number);
    if (!r)
        *pTexObject = number;
    return r;
}

CUresult shim_cuTexObjectDestroy(CUtexObject texObject)
{
    return destroy(texObject, false);
}

CUresult shim_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
    const struct texture *t = find(texObject, false);

    if (!t || !pResDesc)
        return CUDA_ERROR_INVALID_VALUE;
    *pResDesc = t->resource;
    return CUDA_SUCCESS;
}

CUresult shim_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
    const struct texture *t = find(texObject, false);

    if (!t || !pTexDesc)
        return CUDA_ERROR_INVALID_VALUE;
    *pTexDesc = t->sampling;
    return CUDA_SUCCESS;
}

/* Without a view all of it is 0. */
CUresult shim_cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject)
{
    const struct texture *t = find(texObject, false);

    if (!t || !pResViewDesc)
        return CUDA_ERROR_INVALID_VALUE;
    *pResViewDesc = t->view;
    return CUDA_SUCCESS;
}

/* Of arrays alone, which were made for it. */
CUresult shim_cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
    gpurest_texture_desc d = GPUREST_TEXTURE_DESC_INIT;
    uint64_t             number = 0;
    CUresult             r;

    if (pSurfObject && pResDesc && pResDesc->resType == RESOURCE_MIPMAPPED_ARRAY)
        return texture_refuse(REFUSED_LEVELS);
    if (!pSurfObject || !pResDesc || pResDesc->resType != RESOURCE_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    r = describe_resource(pResDesc, &d);
    if (!r && !d.surface)
        r = CUDA_ERROR_INVALID_VALUE;
    r = r ? r : create(true, pResDesc, NULL, NULL, &d, &number);
    if (!r)
        *pSurfObject = number;
    return r;
}

CUresult shim_cuSurfObjectDestroy(CUsurfObject surfObject)
{
    return destroy(surfObject, true);
}

CUresult shim_cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
    const struct texture *t = find(surfObject, true);

    if (!t || !pResDesc)
        return CUDA_ERROR_INVALID_VALUE;
    *pResDesc = t->resource;
    return CUDA_SUCCESS;
}
