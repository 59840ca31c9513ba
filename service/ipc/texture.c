/* Descriptions of textures: their words and sizes, and which of them there can be. */
#include "ipc/texture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ipc/bounds.h"

static const struct texture_dimension_row dimensions[TEXTURE_DIMENSIONS] = {
#define TEXTURE_DIMENSION(NAME, name, axes, coordinates, layered, faces, width, height, depth, layers)                                     \
    {name, axes, coordinates, layered, faces, {width, height, depth}, layers},
#include "ipc/texture_dimensions.def"
#undef TEXTURE_DIMENSION
};

static const struct texture_format_row formats[TEXTURE_FORMATS] = {
#define TEXTURE_FORMAT(NAME, name, bytes, floating) {name, bytes, floating},
#include "ipc/texture_formats.def"
#undef TEXTURE_FORMAT
};

static const char *const addressings[TEXTURE_ADDRESSINGS] = {
#define TEXTURE_ADDRESSING(NAME, name) name,
#include "ipc/texture_modes.def"
#undef TEXTURE_ADDRESSING
};

static const char *const filters[TEXTURE_FILTERS] = {
#define TEXTURE_FILTER(NAME, name) name,
#include "ipc/texture_modes.def"
#undef TEXTURE_FILTER
};

static const char *const reads[TEXTURE_READS] = {
#define TEXTURE_READ(NAME, name) name,
#include "ipc/texture_modes.def"
#undef TEXTURE_READ
};

const struct texture_dimension_row *texture_dimension_of(const struct texture_desc *t)
{
    return &dimensions[t->dimension];
}

const struct texture_format_row *texture_format_of(const struct texture_desc *t)
{
    return &formats[t->format];
}

unsigned texture_texel_bytes(const struct texture_desc *t)
{
    return formats[t->format].bytes * t->channels;
}

uint64_t texture_row_bytes(const struct texture_desc *t)
{
    return t->pitch ? t->pitch : (uint64_t)t->extent[0] * texture_texel_bytes(t);
}

/* Of all images together. */
static uint64_t texture_rows(const struct texture_desc *t)
{
    uint64_t height = dimensions[t->dimension].faces > 1 ? t->extent[0] : t->extent[1];

    return height * t->extent[2] * t->layers * dimensions[t->dimension].faces;
}

uint64_t texture_bytes(const struct texture_desc *t)
{
    return texture_row_bytes(t) * texture_rows(t);
}

bool texture_reads_float(const struct texture_desc *t)
{
    return formats[t->format].floating || t->read != TEXTURE_READ_ELEMENT;
}

bool texture_same_shape(const struct texture_desc *a, const struct texture_desc *b)
{
    return a->dimension == b->dimension && a->format == b->format && a->channels == b->channels && a->layers == b->layers &&
           memcmp(a->extent, b->extent, sizeof a->extent) == 0;
}

/* ---- words ---- */

const char *texture_word_at(enum texture_word of, unsigned i)
{
    switch (of) {
    case TEXTURE_WORD_DIMENSION:
        return i < TEXTURE_DIMENSIONS ? dimensions[i].name : NULL;
    case TEXTURE_WORD_FORMAT:
        return i < TEXTURE_FORMATS ? formats[i].name : NULL;
    case TEXTURE_WORD_ADDRESSING:
        return i < TEXTURE_ADDRESSINGS ? addressings[i] : NULL;
    case TEXTURE_WORD_FILTER:
        return i < TEXTURE_FILTERS ? filters[i] : NULL;
    case TEXTURE_WORD_READ:
        return i < TEXTURE_READS ? reads[i] : NULL;
    }
    return NULL;
}

int texture_word_find(enum texture_word of, struct span word)
{
    const char *at;

    for (unsigned i = 0; (at = texture_word_at(of, i)) != NULL; i++)
        if (span_is(word, at))
            return (int)i;
    return -1;
}

/* ---- checks ---- */

static enum status wrong(struct problem *why, const char *pointer, const char *what)
{
    return problem_field(why, STATUS_INVALID_FIELD, pointer, "value", "%s", what);
}

static enum status check_words(const struct texture_desc *t, struct problem *why)
{
    if (t->dimension >= TEXTURE_DIMENSIONS)
        return wrong(why, "/dimension", "unknown dimension");
    if (t->format >= TEXTURE_FORMATS)
        return wrong(why, "/format", "unknown format");
    if (t->channels != 1 && t->channels != 2 && t->channels != 4)
        return wrong(why, "/channels", "a texel has 1, 2 or 4 channels");
    for (unsigned i = 0; i < 3; i++)
        if (t->addressing[i] >= TEXTURE_ADDRESSINGS)
            return wrong(why, "/addressing", "unknown addressing");
    if (t->filter >= TEXTURE_FILTERS)
        return wrong(why, "/filter", "unknown filter");
    if (t->read >= TEXTURE_READS)
        return wrong(why, "/read", "unknown read mode");
    return STATUS_OK;
}

static enum status check_extent(const struct texture_desc *t, struct problem *why)
{
    const struct texture_dimension_row *row = &dimensions[t->dimension];
    bool                                linear = t->address && !t->view && t->dimension == TEXTURE_1D;

    for (unsigned i = 0; i < 3; i++) {
        uint32_t max = i >= row->axes ? 1 : linear ? TEXTURE_LINEAR_TEXELS_MAX : row->extent_max[i];
        char     at[32];

        snprintf(at, sizeof at, "/extent/%u", i);
        if (t->extent[i] < 1 || t->extent[i] > max)
            return problem_field(why, STATUS_INVALID_FIELD, at, "range", "must be 1 to %" PRIu32 " in a texture that is %s", max,
                                 row->name);
    }
    if (!row->layered && t->layers != 1)
        return problem_field(why, STATUS_INVALID_FIELD, "/layers", "value", "a texture that is %s has no layers", row->name);
    if (row->layered && (t->layers < 1 || t->layers > row->layers_max))
        return problem_field(why, STATUS_INVALID_FIELD, "/layers", "range", "must be 1 to %" PRIu32 " in a texture that is %s",
                             row->layers_max, row->name);
    return STATUS_OK;
}

/* What CUDA would silently read otherwise is refused. */
static enum status check_sampling(const struct texture_desc *t, struct problem *why)
{
    const struct texture_format_row *format = &formats[t->format];

    if (t->read == TEXTURE_READ_NORMALIZED_FLOAT && (format->floating || format->bytes > 2))
        return wrong(why, "/read", "only integers of 8 or 16 bits can be read as normalized_float");
    if (t->read == TEXTURE_READ_SRGB && t->format != TEXTURE_FORMAT_U8)
        return wrong(why, "/read", "only texels of u8 can be read as srgb");
    if (t->filter == TEXTURE_FILTER_LINEAR && !texture_reads_float(t))
        return wrong(why, "/filter",
                     "linear needs a texture that is read as floats: of f16 or f32, or with \"read\": \"normalized_float\" or \"srgb\"");
    for (unsigned i = 0; i < dimensions[t->dimension].axes && !t->normalized; i++)
        if (t->addressing[i] == TEXTURE_WRAP || t->addressing[i] == TEXTURE_MIRROR)
            return wrong(why, "/addressing", "wrap and mirror need \"normalized_coordinates\": true");
    if (dimensions[t->dimension].faces > 1 && !t->normalized)
        return wrong(why, "/normalized_coordinates", "the coordinates of a cube are normalized: send true");
    return STATUS_OK;
}

static enum status check_linear(const struct texture_desc *t, struct problem *why)
{
    if (t->dimension != TEXTURE_1D && t->dimension != TEXTURE_2D)
        return wrong(why, "/dimension", "a texture over a buffer is 1d or 2d");
    if (t->surface)
        return wrong(why, "/surface", "a texture over a buffer is no surface; kernels write to the buffer");
    if (t->dimension == TEXTURE_1D && (t->filter == TEXTURE_FILTER_LINEAR || t->normalized))
        return wrong(why, t->normalized ? "/normalized_coordinates" : "/filter",
                     "a 1d texture over a buffer is read by index (tex1Dfetch), without filter and normalized coordinates");
    if (t->dimension == TEXTURE_1D && t->pitch)
        return wrong(why, "/pitch", "only a 2d texture has a pitch");
    if (t->dimension == TEXTURE_2D && (texture_row_bytes(t) % TEXTURE_PITCH_ALIGN || texture_row_bytes(t) > TEXTURE_PITCH_BYTES_MAX ||
                                       texture_row_bytes(t) < (uint64_t)t->extent[0] * texture_texel_bytes(t)))
        return problem_field(why, STATUS_INVALID_FIELD, "/pitch", "range",
                             "rows of %" PRIu64 " bytes: must be a multiple of %d, hold a row, and be at most %d", texture_row_bytes(t),
                             TEXTURE_PITCH_ALIGN, TEXTURE_PITCH_BYTES_MAX);
    return STATUS_OK;
}

enum status texture_check(const struct texture_desc *t, struct problem *why)
{
    enum status st = check_words(t, why);

    if (!st)
        st = check_extent(t, why);
    if (!st)
        st = check_sampling(t, why);
    if (st)
        return st;
    if (t->address && !t->view)
        return check_linear(t, why);
    return t->pitch ? wrong(why, "/pitch", "only a texture over a buffer of bytes has a pitch") : STATUS_OK;
}
