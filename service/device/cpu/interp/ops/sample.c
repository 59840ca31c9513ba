/* Which texels a coordinate means, what they hold, and how they are weighed. Fractions have 8 bits, as on a GPU; products of weights are
 * exact, and sums are rounded once. */
#include "device/cpu/interp/ops/sample.h"

#include <math.h>

#include "device/cpu/interp/decode/decode.h"

enum { FRACTION_BITS = 8, FRACTION_ONE = 1 << FRACTION_BITS, NO_TEXEL = -1 };

static const double COORDINATE_MAX = 1e12; /* beyond it, all are alike */

static const float linear_of_srgb[UINT8_MAX + 1] = {
#define SRGB_ROW(...) __VA_ARGS__,
#include "device/cpu/interp/ops/srgb.def"
#undef SRGB_ROW
};

/* Along one axis: one texel, or two and the weight of the second. */
struct taps {
    unsigned count;
    int64_t  index[2];  /* NO_TEXEL: the border, which is 0 */
    uint32_t weight[2]; /* in 1 / FRACTION_ONE */
};

static int64_t addressed(int64_t i, int64_t size, uint32_t how)
{
    if (i >= 0 && i < size)
        return i;
    switch ((enum texture_addressing)how) {
    case TEXTURE_CLAMP:
        return i < 0 ? 0 : size - 1;
    case TEXTURE_WRAP:
        return (i % size + size) % size;
    case TEXTURE_MIRROR:
        i = (i % (2 * size) + 2 * size) % (2 * size);
        return i < size ? i : 2 * size - 1 - i;
    case TEXTURE_BORDER:
    case TEXTURE_ADDRESSINGS:
        break;
    }
    return NO_TEXEL;
}

/* Texels of linear memory have no neighbours beyond its ends, and the faces of a cube end at their edges. */
static uint32_t addressing_of(const struct cpu_texture *t, unsigned axis)
{
    if (t->desc.address && t->desc.dimension == TEXTURE_1D)
        return TEXTURE_BORDER;
    return texture_dimension_of(&t->desc)->faces > 1 ? TEXTURE_CLAMP : t->desc.addressing[axis];
}

/* The coordinate in texels. */
static double position_of(const struct sample_point *p, unsigned axis)
{
    double at = (double)p->at[axis] * (p->normalized ? (double)p->texture->extent[axis] : 1.0);

    return isnan(at) ? 0 : at > COORDINATE_MAX ? COORDINATE_MAX : at < -COORDINATE_MAX ? -COORDINATE_MAX : at;
}

static struct taps find_taps(const struct sample_point *p, unsigned axis, bool linear)
{
    const struct cpu_texture *t = p->texture;
    uint32_t                  how = addressing_of(t, axis);
    struct taps               r = {.count = 1, .weight = {FRACTION_ONE, 0}};
    int64_t                   fixed, i = p->integers ? p->index[axis] : 0;

    if (!p->integers && !linear)
        i = (int64_t)floor(position_of(p, axis));
    if (!p->integers && linear) {
        fixed = (int64_t)floor((position_of(p, axis) - 0.5) * FRACTION_ONE + 0.5);
        i = fixed >> FRACTION_BITS;
        r.count = 2;
        r.weight[1] = (uint32_t)(fixed & (FRACTION_ONE - 1));
        r.weight[0] = FRACTION_ONE - r.weight[1];
        r.index[1] = addressed(i + 1, t->extent[axis], how);
    }
    r.index[0] = addressed(i, t->extent[axis], how);
    return r;
}

/* ---- texels ---- */

uint64_t sample_address(const struct cpu_texture *t, uint64_t image, uint64_t x_bytes, uint64_t y, uint64_t z)
{
    return t->base + (image + z) * t->image_bytes + y * t->row_bytes + x_bytes;
}

static float signed_part(int32_t v, float most)
{
    float f = (float)v / most;

    return f < -1.0f ? -1.0f : f;
}

/* The last of two or four channels is linear in sRGB, too: so it is on an H200. */
static float byte_float(const struct cpu_texture *t, uint8_t byte, unsigned channel)
{
    return t->desc.read == TEXTURE_READ_SRGB && (channel == 0 || channel + 1 < t->desc.channels) ? linear_of_srgb[byte]
                                                                                                 : (float)byte / 255.0f;
}

static float channel_float(const struct cpu_texture *t, const uint8_t *texel, unsigned channel)
{
    uint16_t wide;
    float    f;

    switch ((enum texture_format)t->desc.format) {
    case TEXTURE_FORMAT_U8:
        return byte_float(t, texel[channel], channel);
    case TEXTURE_FORMAT_S8:
        return signed_part((int8_t)texel[channel], 127.0f);
    case TEXTURE_FORMAT_F32:
        memcpy(&f, texel + 4 * (size_t)channel, sizeof f);
        return f;
    case TEXTURE_FORMAT_U16:
    case TEXTURE_FORMAT_S16:
    case TEXTURE_FORMAT_F16:
    case TEXTURE_FORMAT_U32:
    case TEXTURE_FORMAT_S32:
    case TEXTURE_FORMATS:
        break;
    }
    memcpy(&wide, texel + 2 * (size_t)channel, sizeof wide);
    if (t->desc.format == TEXTURE_FORMAT_F16)
        return f32_from_f16(wide);
    return t->desc.format == TEXTURE_FORMAT_S16 ? signed_part((int16_t)wide, 32767.0f) : (float)wide / 65535.0f;
}

static uint32_t channel_integer(const struct cpu_texture *t, const uint8_t *texel, unsigned channel)
{
    uint32_t v = 0;
    unsigned bytes = texture_format_of(&t->desc)->bytes;

    memcpy(&v, texel + (size_t)bytes * channel, bytes);
    if (t->desc.format == TEXTURE_FORMAT_S8)
        return (uint32_t)(int32_t)(int8_t)v;
    return t->desc.format == TEXTURE_FORMAT_S16 ? (uint32_t)(int32_t)(int16_t)v : v;
}

static const uint8_t *texel_at(struct lanes *l, uint32_t lane, const struct sample_point *p, int64_t x, int64_t y, int64_t z)
{
    const struct cpu_texture *t = p->texture;
    uint64_t                  at;

    if (x == NO_TEXEL || y == NO_TEXEL || z == NO_TEXEL)
        return NULL;
    at = sample_address(t, p->image, (uint64_t)x * t->texel_bytes, (uint64_t)y, (uint64_t)z);
    check_now(l, OP_GLOBAL, at, t->texel_bytes, CHECK_READ, lane);
    return lane_pointer(l, OP_GLOBAL, at, t->texel_bytes, lane);
}

/* As 32 bits; `texel` NULL: the border. Channels that the texture does not have are 0, all four, as an H100 has them. */
KERNEL_MEMORY static uint32_t channel_bits(const struct cpu_texture *t, const uint8_t *texel, unsigned channel)
{
    if (!texel || channel >= t->desc.channels)
        return 0;
    return texture_reads_float(&t->desc) ? bits_of_f32(channel_float(t, texel, channel)) : channel_integer(t, texel, channel);
}

/* ---- samples ---- */

/* All texels that are weighed, their weights' product exact. */
KERNEL_MEMORY static void weigh(struct lanes *l, uint32_t lane, const struct sample_point *p, const struct taps *a, uint32_t *out)
{
    double sum[TEXEL_CHANNELS] = {0};

    for (unsigned k = 0; k < a[0].count * a[1].count * a[2].count; k++) {
        unsigned       x = k % a[0].count, y = k / a[0].count % a[1].count, z = k / a[0].count / a[1].count;
        double         w = (double)a[0].weight[x] * a[1].weight[y] * a[2].weight[z] / ((double)FRACTION_ONE * FRACTION_ONE * FRACTION_ONE);
        const uint8_t *texel = w == 0 ? NULL : texel_at(l, lane, p, a[0].index[x], a[1].index[y], a[2].index[z]);

        for (unsigned c = 0; texel && c < p->texture->desc.channels; c++)
            sum[c] += w * (double)channel_float(p->texture, texel, c);
    }
    for (unsigned c = 0; c < TEXEL_CHANNELS; c++)
        out[c] = c < p->texture->desc.channels ? bits_of_f32((float)sum[c]) : 0;
}

void sample_read(struct lanes *l, uint32_t lane, const struct sample_point *p, uint32_t out[TEXEL_CHANNELS])
{
    bool        linear = p->texture->desc.filter == TEXTURE_FILTER_LINEAR && !p->integers;
    struct taps a[3];

    for (unsigned axis = 0; axis < 3; axis++) {
        bool there = axis == 0 || p->texture->extent[axis] > 1 || axis < texture_dimension_of(&p->texture->desc)->axes;

        a[axis] = there ? find_taps(p, axis, linear) : (struct taps){.count = 1, .weight = {FRACTION_ONE}};
    }
    if (linear) {
        weigh(l, lane, p, a, out);
    } else {
        const uint8_t *texel = texel_at(l, lane, p, a[0].index[0], a[1].index[0], a[2].index[0]);

        for (unsigned c = 0; c < TEXEL_CHANNELS; c++)
            out[c] = channel_bits(p->texture, texel, c);
    }
}

void sample_gather(struct lanes *l, uint32_t lane, const struct sample_point *p, unsigned channel, uint32_t out[TEXEL_CHANNELS])
{
    static const uint8_t order[TEXEL_CHANNELS][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    struct taps          x = find_taps(p, 0, true), y = find_taps(p, 1, true);

    for (unsigned k = 0; k < TEXEL_CHANNELS; k++)
        out[k] = channel_bits(p->texture, texel_at(l, lane, p, x.index[order[k][0]], y.index[order[k][1]], 0), channel);
}

unsigned sample_face(float at[3])
{
    float    x = at[0], y = at[1], z = at[2], m, s, t;
    unsigned face;

    if (fabsf(x) >= fabsf(y) && fabsf(x) >= fabsf(z)) {
        face = x >= 0 ? 0 : 1;
        m = fabsf(x);
        s = x >= 0 ? -z : z;
        t = -y;
    } else if (fabsf(y) >= fabsf(z)) {
        face = y >= 0 ? 2 : 3;
        m = fabsf(y);
        s = x;
        t = y >= 0 ? z : -z;
    } else {
        face = z >= 0 ? 4 : 5;
        m = fabsf(z);
        s = z >= 0 ? x : -x;
        t = -y;
    }
    at[0] = (s / m + 1.0f) / 2.0f;
    at[1] = (t / m + 1.0f) / 2.0f;
    at[2] = 0;
    return face;
}
