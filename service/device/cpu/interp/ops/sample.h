/* Reading one texel, or several that are weighed, as CUDA's programming guide says it in "Texture Fetching". */
#pragma once

#include "device/cpu/interp/ops/ops.h"

enum { TEXEL_CHANNELS = 4 };

/* A place in a texture: coordinates as the kernel gave them, of its image. */
struct sample_point {
    const struct cpu_texture *texture;
    uint64_t                  image;    /* layer and face */
    bool                      integers; /* of `index`; else of `at` */
    float                     at[3];
    int32_t                   index[3];
    bool                      normalized; /* `at` goes from 0 to 1 */
};

/* The four channels as 32 bits each: floats where the texture is read as floats, else integers. Channels that it does not have are 0, the
 * fourth 1. A texel outside of device memory is a fault of the lane. */
void sample_read(struct lanes *l, uint32_t lane, const struct sample_point *p, uint32_t out[TEXEL_CHANNELS]);
/* One channel of each of the four texels that linear filtering would weigh, against the clock from the lower left. */
void sample_gather(struct lanes *l, uint32_t lane, const struct sample_point *p, unsigned channel, uint32_t out[TEXEL_CHANNELS]);
/* The face that the direction points to, and where: `at` becomes the two coordinates on it. */
unsigned sample_face(float at[3]);
/* Where a texel lies. */
uint64_t sample_address(const struct cpu_texture *t, uint64_t image, uint64_t x_bytes, uint64_t y, uint64_t z);
