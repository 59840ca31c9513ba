/* What a texture is: its shape, what its texels hold, and how kernels sample it. Made by the front-end, checked by both sides. */
#pragma once

#include "base/problem.h"

enum texture_dimension {
#define TEXTURE_DIMENSION(NAME, ...) TEXTURE_##NAME,
#include "ipc/texture_dimensions.def"
#undef TEXTURE_DIMENSION
    TEXTURE_DIMENSIONS
};

enum texture_format {
#define TEXTURE_FORMAT(NAME, ...) TEXTURE_FORMAT_##NAME,
#include "ipc/texture_formats.def"
#undef TEXTURE_FORMAT
    TEXTURE_FORMATS
};

enum texture_addressing {
#define TEXTURE_ADDRESSING(NAME, name) TEXTURE_##NAME,
#include "ipc/texture_modes.def"
#undef TEXTURE_ADDRESSING
    TEXTURE_ADDRESSINGS
};

enum texture_filter {
#define TEXTURE_FILTER(NAME, name) TEXTURE_FILTER_##NAME,
#include "ipc/texture_modes.def"
#undef TEXTURE_FILTER
    TEXTURE_FILTERS
};

enum texture_read {
#define TEXTURE_READ(NAME, name) TEXTURE_READ_##NAME,
#include "ipc/texture_modes.def"
#undef TEXTURE_READ
    TEXTURE_READS
};

/* `address` 0: it has memory of its own. Else it reads device memory of somebody else: texels one after the other (1d), or rows of them
 * every `pitch` bytes (2d); or, as a `view`, the texels of another texture of the same shape that has memory of its own. */
struct texture_desc {
    uint32_t dimension; /* enum texture_dimension */
    uint32_t format;    /* enum texture_format */
    uint32_t channels;  /* 1, 2 or 4 */
    uint32_t extent[3]; /* texels; 1 where the dimension has no such axis */
    uint32_t layers;    /* 1 unless layered; of cubes, six faces each */
    uint32_t addressing[3];
    uint32_t filter, read;
    uint32_t normalized; /* 1: coordinates from 0 to 1 */
    uint32_t surface;    /* 1: kernels may also write it */
    uint64_t address;
    uint64_t pitch; /* bytes; 0: rows follow each other */
    uint64_t view;  /* 1: `address` is that of another texture's texels */
};

struct texture_dimension_row {
    const char *name;
    unsigned    axes, coordinates;
    bool        layered;
    unsigned    faces;
    uint32_t    extent_max[3], layers_max; /* 0: there is no such axis */
};

struct texture_format_row {
    const char *name;
    unsigned    bytes;
    bool        floating;
};

/* Of a checked description. */
const struct texture_dimension_row *texture_dimension_of(const struct texture_desc *t);
const struct texture_format_row    *texture_format_of(const struct texture_desc *t);
unsigned                            texture_texel_bytes(const struct texture_desc *t);
uint64_t                            texture_row_bytes(const struct texture_desc *t); /* from one row to the next */
uint64_t                            texture_bytes(const struct texture_desc *t);
/* What kernels read is a float, so that it can be filtered. */
bool texture_reads_float(const struct texture_desc *t);

/* The words of the tables; -1: there is none such. NULL past the end. */
enum texture_word { TEXTURE_WORD_DIMENSION, TEXTURE_WORD_FORMAT, TEXTURE_WORD_ADDRESSING, TEXTURE_WORD_FILTER, TEXTURE_WORD_READ };
int         texture_word_find(enum texture_word of, struct span word);
const char *texture_word_at(enum texture_word of, unsigned i);

/* Their texels lie alike. */
bool texture_same_shape(const struct texture_desc *a, const struct texture_desc *b);

/* INVALID_FIELD names the member of the request that is wrong: "/extent/1". */
enum status texture_check(const struct texture_desc *t, struct problem *why);
