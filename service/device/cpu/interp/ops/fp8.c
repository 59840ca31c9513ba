/* cvt between pairs of 8-bit floats and binary32 or pairs of binary16. 8-bit numbers are rounded to nearest even once, from the exact
 * value, and saturate at the largest finite one, as PTX requires. */
#include "device/cpu/interp/decode/decode.h"

#include <math.h>

struct fp8_shape {
    int     mantissa; /* bits behind the point */
    int     least;    /* exponent of the smallest normal number */
    uint8_t most;     /* the largest finite number */
};
static const struct fp8_shape e4m3 = {3, -6, 0x7e}, e5m2 = {2, -14, 0x7b};

enum { FP8_NAN = 0x7f, F16_NAN = 0x7fff, FP8_E5M2 = 1, FP8_RELU = 2 };

static uint8_t fp8_from(const struct fp8_shape *s, double v, bool relu)
{
    uint8_t sign = signbit(v) ? 0x80 : 0;
    double  a = fabs(v);
    int     exponent, steps;

    if (v != v)
        return FP8_NAN;
    if (relu && sign)
        return 0;
    if (a > 65536.0)
        return sign | s->most;
    frexp(a, &exponent);
    exponent = exponent - 1 < s->least || a == 0 ? s->least : exponent - 1;
    /* Exact until rint rounds: an integral number of the format's steps at that exponent. A carry runs into the exponent's bits. */
    steps = (int)rint(ldexp(a, s->mantissa - exponent)) + ((exponent - s->least) << s->mantissa);
    return sign | (uint8_t)(steps > s->most ? s->most : steps);
}

static double value_of(const struct fp8_shape *s, uint8_t b)
{
    int    exponent = (b & 0x7f) >> s->mantissa, mantissa = b & ((1 << s->mantissa) - 1);
    double a = exponent ? ldexp((double)(mantissa + (1 << s->mantissa)), s->least + exponent - 1 - s->mantissa)
                        : ldexp((double)mantissa, s->least - s->mantissa);

    return b & 0x80 ? -a : a;
}

/* Binary16 represents every 8-bit number exactly. */
static uint16_t half_of(const struct fp8_shape *s, uint8_t b, bool relu)
{
    if (s == &e5m2 ? (b & 0x7f) > 0x7c : (b & 0x7f) == FP8_NAN)
        return F16_NAN;
    if (relu && b & 0x80)
        return 0;
    if (s == &e5m2)
        return (uint16_t)(b << 8);
    return f16_from_f32((float)value_of(s, b), ROUND_NEAREST);
}

static void fp8_of_numbers(struct lanes *l, const struct op *o)
{
    const struct fp8_shape *s = o->mode & FP8_E5M2 ? &e5m2 : &e4m3;
    const float            *high = LANE(float, o->a), *low = LANE(float, o->b);
    uint16_t               *to = LANE(uint16_t, o->d);

    LANES_EACH(to[i] = (uint16_t)(fp8_from(s, (double)high[i], o->mode & FP8_RELU) << 8 | fp8_from(s, (double)low[i], o->mode & FP8_RELU)));
}

static void fp8_of_halves(struct lanes *l, const struct op *o)
{
    const struct fp8_shape *s = o->mode & FP8_E5M2 ? &e5m2 : &e4m3;
    const uint32_t         *pair = LANE(uint32_t, o->a);
    uint16_t               *to = LANE(uint16_t, o->d);

    LANES_EACH(const double high = (double)f32_from_f16((uint16_t)(pair[i] >> 16));
               const double low = (double)f32_from_f16((uint16_t)pair[i]);
               to[i] = (uint16_t)(fp8_from(s, high, o->mode & FP8_RELU) << 8 | fp8_from(s, low, o->mode & FP8_RELU)));
}

static void halves_of_fp8(struct lanes *l, const struct op *o)
{
    const struct fp8_shape *s = o->mode & FP8_E5M2 ? &e5m2 : &e4m3;
    const uint16_t         *pair = LANE(uint16_t, o->a);
    uint32_t               *to = LANE(uint32_t, o->d);

    LANES_EACH(to[i] = (uint32_t)half_of(s, (uint8_t)(pair[i] >> 8), o->mode & FP8_RELU) << 16 |
                       half_of(s, (uint8_t)pair[i], o->mode & FP8_RELU));
}

bool is_fp8_pair(uint8_t type)
{
    return type == PTX_E4M3X2 || type == PTX_E5M2X2;
}

bool translate_fp8(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    bool                   narrow = is_fp8_pair(in->type), two = in->stype == PTX_F32;
    struct op              o = {.run = !narrow ? halves_of_fp8 : two ? fp8_of_numbers : fp8_of_halves};

    if (in->rounding != PTX_RN || in->ftz || in->operands_count != (two ? 3u : 2u) || operand(d, 1)->kind == PTX_VECTOR ||
        operand(d, 2)->kind == PTX_VECTOR)
        return false;
    if (narrow ? in->sat != PTX_SATFINITE || (!two && in->stype != PTX_F16X2) : in->sat || in->type != PTX_F16X2)
        return false;
    o.a = decode_source(d, operand(d, 1), narrow ? 4 : 2);
    o.b = two ? decode_source(d, operand(d, 2), 4) : o.a;
    o.mode = (uint8_t)(((narrow ? in->type : in->stype) == PTX_E5M2X2 ? FP8_E5M2 : 0) | (in->relu ? FP8_RELU : 0));
    return decode_result(d, o, narrow ? 2 : 4, false);
}
