/* Textures and surfaces: texels that kernels sample by coordinates, or write. The rules of gpurest.h apply. */
#ifndef GPUREST_TEXTURE_H
#define GPUREST_TEXTURE_H

#include <gpurest/gpurest.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ==== textures: sampled by kernels ====
 * Not in a batch, which takes their handles. */

/* Texts are borrowed for the call; NULL: the default, which comes first below. */
typedef struct gpurest_texture_desc {
    size_t         struct_size;
    const char    *dimension;     /* "2d", "1d", "3d", "1d_layered", "2d_layered", "cube", "cube_layered" */
    const char    *format;        /* "f32", "f16", "u8", "s8", "u16", "s16", "u32", "s32" */
    uint32_t       channels;      /* of a texel: 1, 2 or 4 */
    uint32_t       extent[3];     /* texels along x, y, z, as many as the dimension has; a cube's edge */
    uint32_t       layers;        /* of layered ones; of cube_layered the cubes */
    const char    *addressing[3]; /* of coordinates outside, for each axis: "clamp", "border"; normalized also "wrap", "mirror" */
    const char    *filter;        /* "point", "linear" */
    const char    *read;          /* "element"; "normalized_float": integers of 8 and 16 bits as floats up to 1; "srgb": see below */
    int            normalized_coordinates; /* non-zero: from 0 to 1. Those of cubes always are */
    int            surface;                /* non-zero: kernels may write it */
    gpurest_buffer buffer; /* whose memory it reads: a buffer's, 1d or 2d, or a texture's; {0}: its own. It is freed later */
    size_t         offset; /* in the buffer, a multiple of 512 */
    size_t         pitch;  /* bytes from row to row in the buffer, a multiple of 32; 0: a row of texels */
} gpurest_texture_desc;
/* "srgb", of "u8": as "normalized_float", and converted from sRGB to linear light before the filter, but for the last of two or four channels. */
#define GPUREST_TEXTURE_DESC_INIT                                                                                                          \
    {                                                                                                                                      \
        sizeof(gpurest_texture_desc), 0, 0, 1, {1, 1, 1}, 1, {0, 0, 0}, 0, 0, 0, 0, {0}, 0, 0                                              \
    }

/* Makes a texture with undefined texels. *out is a handle to them, row after row, x fastest: a buffer for gpurest_write, gpurest_read and
 * gpurest_copy, in whole texels; gpurest_fill, gpurest_free and the functions that share refuse it. */
GPUREST_API gpurest_status gpurest_texture_create(gpurest_session *session, gpurest_buffer *out, const gpurest_texture_desc *desc);
/* A handle to an existing texture of the session, by its name at the service. */
GPUREST_API gpurest_status gpurest_texture_open(gpurest_session *session, gpurest_buffer *out, const char *name);
/* The handle becomes stale; the texture is freed after kernels that use it end. */
GPUREST_API gpurest_status gpurest_texture_free(gpurest_session *session, gpurest_buffer texture);

/* Arguments: a cudaTextureObject_t; a cudaSurfaceObject_t, of a texture made with `surface`. */
static inline gpurest_arg gpurest_arg_texture(gpurest_arg_kind kind, gpurest_buffer texture)
{
    gpurest_arg a = gpurest_arg_make(kind);

    a.value.buffer = texture;
    return a;
}
#define GPUREST_TEX(t)  gpurest_arg_texture(GPUREST_ARG_TEXTURE, (t))
#define GPUREST_SURF(t) gpurest_arg_texture(GPUREST_ARG_SURFACE, (t))

#ifdef __cplusplus
}
#endif

#endif
