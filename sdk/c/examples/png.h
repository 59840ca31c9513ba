/* 8-bit PNG pictures (ISO 15948), the part that the example needs. */
#ifndef GPUREST_EXAMPLES_PNG_H
#define GPUREST_EXAMPLES_PNG_H

#include <stddef.h>

/* The width * height grey values of a picture that is not interlaced, freed by the caller. NULL: *why is the reason.
 * Sides are at most `side_max`. */
unsigned char *png_decode(const unsigned char *file, size_t bytes, int side_max, int *width, int *height, const char **why);
/* An uncompressed PNG file of a grey picture, freed by the caller. NULL: out of memory. */
unsigned char *png_encode(const unsigned char *pixels, int width, int height, size_t *bytes);

#endif
