/* Textures and surfaces: the runtime's descriptions in the driver's form, and back. */
#include "runtime.h"

enum { READ_ELEMENT = 0, READ_NORMALIZED = 1 };

/* ---- what they read ---- */

static cudaError_t resource_of(const cudaResourceDesc *r, CUDA_RESOURCE_DESC *out)
{
    *out = (CUDA_RESOURCE_DESC){.resType = r->resType, .flags = r->flags};
    switch (r->resType) {
    case RESOURCE_ARRAY:
        out->res.array = r->res.array;
        return r->res.array ? cudaSuccess : cudaErrorInvalidValue;
    case RESOURCE_LINEAR:
        out->res.linear.devPtr = ADDRESS(r->res.linear.devPtr);
        out->res.linear.sizeInBytes = r->res.linear.sizeInBytes;
        return array_format(&r->res.linear.desc, &out->res.linear.format, &out->res.linear.numChannels);
    case RESOURCE_PITCH2D:
        out->res.pitch2D.devPtr = ADDRESS(r->res.pitch2D.devPtr);
        out->res.pitch2D.width = r->res.pitch2D.width;
        out->res.pitch2D.height = r->res.pitch2D.height;
        out->res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
        return array_format(&r->res.pitch2D.desc, &out->res.pitch2D.format, &out->res.pitch2D.numChannels);
    case RESOURCE_MIPMAPPED_ARRAY: /* the driver's library refuses it, and says so */
        return cudaSuccess;
    default:
        return cudaErrorInvalidValue;
    }
}

static cudaResourceDesc resource_from(const CUDA_RESOURCE_DESC *r)
{
    cudaResourceDesc out = {.resType = r->resType, .flags = r->flags};

    switch (r->resType) {
    case RESOURCE_LINEAR:
        out.res.linear.devPtr = POINTER(r->res.linear.devPtr);
        out.res.linear.sizeInBytes = r->res.linear.sizeInBytes;
        out.res.linear.desc = array_channels(r->res.linear.format, r->res.linear.numChannels);
        break;
    case RESOURCE_PITCH2D:
        out.res.pitch2D.devPtr = POINTER(r->res.pitch2D.devPtr);
        out.res.pitch2D.width = r->res.pitch2D.width;
        out.res.pitch2D.height = r->res.pitch2D.height;
        out.res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
        out.res.pitch2D.desc = array_channels(r->res.pitch2D.format, r->res.pitch2D.numChannels);
        break;
    default:
        out.res.array = r->res.array;
        break;
    }
    return out;
}

/* ---- how they read it ---- */

static CUDA_TEXTURE_DESC sampling_of(const cudaTextureDesc *t)
{
    CUDA_TEXTURE_DESC out = {.filterMode = t->filterMode,
                             .maxAnisotropy = t->maxAnisotropy,
                             .mipmapFilterMode = t->mipmapFilterMode,
                             .mipmapLevelBias = t->mipmapLevelBias,
                             .minMipmapLevelClamp = t->minMipmapLevelClamp,
                             .maxMipmapLevelClamp = t->maxMipmapLevelClamp};

    memcpy(out.addressMode, t->addressMode, sizeof out.addressMode);
    memcpy(out.borderColor, t->borderColor, sizeof out.borderColor);
    out.flags = (t->readMode == READ_ELEMENT ? SAMPLING_INTEGERS : 0) | (t->normalizedCoords ? SAMPLING_NORMALIZED : 0) |
                (t->sRGB ? SAMPLING_SRGB : 0) | (t->disableTrilinearOptimization ? SAMPLING_NOT_TRILINEAR : 0) |
                (t->seamlessCubemap ? SAMPLING_SEAMLESS : 0);
    return out;
}

static cudaTextureDesc sampling_from(const CUDA_TEXTURE_DESC *t)
{
    cudaTextureDesc out = {.filterMode = t->filterMode,
                           .readMode = t->flags & SAMPLING_INTEGERS ? READ_ELEMENT : READ_NORMALIZED,
                           .sRGB = (t->flags & SAMPLING_SRGB) != 0,
                           .normalizedCoords = (t->flags & SAMPLING_NORMALIZED) != 0,
                           .maxAnisotropy = t->maxAnisotropy,
                           .mipmapFilterMode = t->mipmapFilterMode,
                           .mipmapLevelBias = t->mipmapLevelBias,
                           .minMipmapLevelClamp = t->minMipmapLevelClamp,
                           .maxMipmapLevelClamp = t->maxMipmapLevelClamp,
                           .disableTrilinearOptimization = (t->flags & SAMPLING_NOT_TRILINEAR) != 0,
                           .seamlessCubemap = (t->flags & SAMPLING_SEAMLESS) != 0};

    memcpy(out.addressMode, t->addressMode, sizeof out.addressMode);
    memcpy(out.borderColor, t->borderColor, sizeof out.borderColor);
    return out;
}

/* ---- the functions ---- */

cudaError_t run_cudaCreateTextureObject(cudaTextureObject_t *pTexObject, const cudaResourceDesc *pResDesc, const cudaTextureDesc *pTexDesc,
                                        const cudaResourceViewDesc *pResViewDesc)
{
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC  sampling;
    cudaError_t        r = pTexObject && pResDesc ? cudaSuccess : cudaErrorInvalidValue;

    if (!r && !pTexDesc)
        r = cudaErrorInvalidResourceHandle; /* NVIDIA's library calls it that */
    r = r ? r : resource_of(pResDesc, &resource);
    if (r || pTexDesc->readMode < READ_ELEMENT || pTexDesc->readMode > READ_NORMALIZED)
        return r ? r : cudaErrorInvalidValue;
    sampling = sampling_of(pTexDesc);
    return cuTexObjectCreate(pTexObject, &resource, &sampling, pResViewDesc);
}

cudaError_t run_cudaGetTextureObjectResourceDesc(cudaResourceDesc *pResDesc, cudaTextureObject_t texObject)
{
    CUDA_RESOURCE_DESC d;
    cudaError_t        r = pResDesc ? cuTexObjectGetResourceDesc(&d, texObject) : cudaErrorInvalidValue;

    if (!r)
        *pResDesc = resource_from(&d);
    return r;
}

cudaError_t run_cudaGetTextureObjectTextureDesc(cudaTextureDesc *pTexDesc, cudaTextureObject_t texObject)
{
    CUDA_TEXTURE_DESC d;
    cudaError_t       r = pTexDesc ? cuTexObjectGetTextureDesc(&d, texObject) : cudaErrorInvalidResourceHandle;

    if (!r)
        *pTexDesc = sampling_from(&d);
    return r;
}

cudaError_t run_cudaCreateSurfaceObject(cudaSurfaceObject_t *pSurfObject, const cudaResourceDesc *pResDesc)
{
    CUDA_RESOURCE_DESC d;
    cudaError_t        r = pSurfObject && pResDesc ? resource_of(pResDesc, &d) : cudaErrorInvalidValue;

    return r ? r : cuSurfObjectCreate(pSurfObject, &d);
}

cudaError_t run_cudaGetSurfaceObjectResourceDesc(cudaResourceDesc *pResDesc, cudaSurfaceObject_t surfObject)
{
    CUDA_RESOURCE_DESC d;
    cudaError_t        r = pResDesc ? cuSurfObjectGetResourceDesc(&d, surfObject) : cudaErrorInvalidValue;

    if (!r)
        *pResDesc = resource_from(&d);
    return r;
}
