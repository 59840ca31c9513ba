/* PNG pictures (ISO 15948) of 8 bits, as much of it as the example needs. */
#ifndef GPUREST_EXAMPLES_PNG_H
#define GPUREST_EXAMPLES_PNG_H

#include <stddef.h>

/* The grey values of a grey or colour picture that is not interlaced, width * height of them, to be freed; NULL: *why says what it is not.
 * Sides are at most `side_max`. */
unsigned char *png_decode(const unsigned char *file, size_t bytes, int side_max, int *width, int *height, const char **why);
/* A grey picture as a file's contents, to be freed: not compressed, which every reader takes. NULL: no memory. */
unsigned char *png_encode(const unsigned char *pixels, int width, int height, size_t *bytes);

#endif
