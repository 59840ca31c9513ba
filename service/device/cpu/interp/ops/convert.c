/* cvt: between all number types, with rounding and saturation. Sources and destinations are at their exact widths. */
#include "device/cpu/interp/ops/ops.h"

#define MODE ((enum rounding)(o->mode & 3))
enum { CONVERT_FTZ = 4, CONVERT_SAT = 8, CONVERT_INTEGRAL = 16 };

/* Fast versions of frequent conversions; the host rounds to nearest. */
#define FAST(name, S, T, EXPRESSION)                                      \
    static void fast_##name(struct lanes *l, const struct op *o)          \
    {                                                                     \
        const S *a_ = LANE(S, o->a);                                      \
        LANES_SET(T, o->d, const S x = a_[i], EXPRESSION);                \
    }
FAST(f32_s32, int32_t, float, x)
FAST(f32_u32, uint32_t, float, x)
FAST(f64_s32, int32_t, double, x)
FAST(f64_u32, uint32_t, double, x)
FAST(f64_f32, float, double, x)
FAST(f32_f64, double, float, x)

static int32_t s32_toward_zero(float f)
{
    return f != f ? 0 : f >= 2147483648.0f ? INT32_MAX : f < -2147483648.0f ? INT32_MIN : (int32_t)f;
}
FAST(s32_f32_rzi, float, int32_t, s32_toward_zero(x))
FAST(s32_f32_rni, float, int32_t, s32_toward_zero(rintf(x)))
FAST(f32_sat, float, float, saturate_f32(x))
FAST(f32_rni, float, float, rintf(x))
FAST(f32_rzi, float, float, truncf(x))
FAST(f32_rmi, float, float, floorf(x))
FAST(f32_rpi, float, float, ceilf(x))

/* An intermediate number: floats as double (every float type fits exactly), integers as 64 bits. */
struct number {
    enum { IS_SIGNED, IS_UNSIGNED, IS_FLOAT } kind;
    int64_t  s;
    uint64_t u;
    double   f;
};

static struct number read_number(struct lanes *l, enum lane_type t, uint32_t place, uint32_t i, bool ftz)
{
    switch (t) {
    case LANE_PRED:
    case LANE_U8:  return (struct number){IS_UNSIGNED, .u = LANE(uint8_t, place)[i]};
    case LANE_S8:  return (struct number){IS_SIGNED, .s = LANE(int8_t, place)[i]};
    case LANE_U16: return (struct number){IS_UNSIGNED, .u = LANE(uint16_t, place)[i]};
    case LANE_S16: return (struct number){IS_SIGNED, .s = LANE(int16_t, place)[i]};
    case LANE_U32: return (struct number){IS_UNSIGNED, .u = LANE(uint32_t, place)[i]};
    case LANE_S32: return (struct number){IS_SIGNED, .s = LANE(int32_t, place)[i]};
    case LANE_U64: return (struct number){IS_UNSIGNED, .u = LANE(uint64_t, place)[i]};
    case LANE_S64: return (struct number){IS_SIGNED, .s = LANE(int64_t, place)[i]};
    case LANE_F16: return (struct number){IS_FLOAT, .f = (double)f32_from_f16(LANE(uint16_t, place)[i])};
    case LANE_BF16: return (struct number){IS_FLOAT, .f = (double)f32_from_bf16(LANE(uint16_t, place)[i])};
    case LANE_F32: return (struct number){IS_FLOAT, .f = (double)(ftz ? flush_f32(LANE(float, place)[i]) : LANE(float, place)[i])};
    case LANE_F64: return (struct number){IS_FLOAT, .f = LANE(double, place)[i]};
    case LANE_TYPES: break;
    }
    return (struct number){IS_UNSIGNED, .u = 0};
}

static const struct { unsigned char bytes; bool is_signed, is_float; } shapes[LANE_TYPES + 1] = {
    [LANE_PRED] = {1, false, false}, [LANE_U8] = {1, false, false}, [LANE_S8] = {1, true, false},
    [LANE_U16] = {2, false, false},  [LANE_S16] = {2, true, false}, [LANE_U32] = {4, false, false},
    [LANE_S32] = {4, true, false},   [LANE_U64] = {8, false, false}, [LANE_S64] = {8, true, false},
    [LANE_F16] = {2, true, true},    [LANE_BF16] = {2, true, true}, [LANE_F32] = {4, true, true},
    [LANE_F64] = {8, true, true},
};

enum lane_type lane_type_of(enum ptx_type t)
{
    static const unsigned char types[PTX_TYPE_COUNT] = {
        [PTX_NO_TYPE] = LANE_TYPES, [PTX_B128] = LANE_TYPES,
        [PTX_B8] = LANE_U8, [PTX_U8] = LANE_U8, [PTX_S8] = LANE_S8, [PTX_B16] = LANE_U16, [PTX_U16] = LANE_U16, [PTX_S16] = LANE_S16,
        [PTX_B32] = LANE_U32, [PTX_U32] = LANE_U32, [PTX_S32] = LANE_S32, [PTX_B64] = LANE_U64, [PTX_U64] = LANE_U64,
        [PTX_S64] = LANE_S64, [PTX_F16] = LANE_F16, [PTX_BF16] = LANE_BF16, [PTX_F16X2] = LANE_U32, [PTX_BF16X2] = LANE_U32,
        [PTX_F32] = LANE_F32, [PTX_F64] = LANE_F64, [PTX_PRED] = LANE_PRED, [PTX_U16X2] = LANE_U32, [PTX_S16X2] = LANE_U32,
        [PTX_TF32] = LANE_TYPES, [PTX_E4M3X2] = LANE_TYPES, [PTX_E5M2X2] = LANE_TYPES,
    };

    return (enum lane_type)types[t];
}

unsigned lane_type_bytes(enum lane_type t)
{
    return shapes[t].bytes;
}

bool lane_type_is_float(enum lane_type t)
{
    return shapes[t].is_float;
}

bool lane_type_is_signed(enum lane_type t)
{
    return shapes[t].is_signed;
}

/* `.sat` clamps to the target's range; otherwise integers are truncated, as in C. */
static uint64_t integer_result(const struct number *n, enum lane_type t, bool saturate)
{
    unsigned bits = 8u * shapes[t].bytes;
    int64_t  top = bits == 64 ? INT64_MAX : (int64_t)((1ull << (bits - 1)) - 1);
    uint64_t utop = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;

    if (!saturate)
        return n->kind == IS_SIGNED ? (uint64_t)n->s : n->u;
    if (shapes[t].is_signed && n->kind == IS_SIGNED)
        return (uint64_t)(n->s > top ? top : n->s < -top - 1 ? -top - 1 : n->s);
    if (shapes[t].is_signed)
        return n->u > (uint64_t)top ? (uint64_t)top : n->u;
    if (n->kind == IS_SIGNED)
        return n->s < 0 ? 0 : (uint64_t)n->s > utop ? utop : (uint64_t)n->s;
    return n->u > utop ? utop : n->u;
}

static float to_f32(const struct number *n, enum rounding r)
{
    return n->kind == IS_FLOAT ? f32_from_f64(n->f, r) : n->kind == IS_SIGNED ? f32_from_s64(n->s, r) : f32_from_u64(n->u, r);
}

static double to_f64(const struct number *n, enum rounding r)
{
    return n->kind == IS_FLOAT ? n->f : n->kind == IS_SIGNED ? f64_from_s64(n->s, r) : f64_from_u64(n->u, r);
}

/* Integers of more than 53 bits are truncated with a sticky last bit: rounding them to a half afterwards is exact. */
static double to_f64_odd(const struct number *n)
{
    double d = to_f64(n, ROUND_ZERO);
    bool   cut = n->kind == IS_SIGNED ? (int64_t)d != n->s : n->kind == IS_UNSIGNED && (uint64_t)d != n->u;

    return cut ? f64_of_bits(bits_of_f64(d) | 1) : d;
}

static void write_float(struct lanes *l, const struct op *o, uint32_t i, enum lane_type t, struct number n)
{
    enum rounding r = MODE;
    bool          saturate = o->mode & CONVERT_SAT, ftz = o->mode & CONVERT_FTZ;

    if (o->mode & CONVERT_INTEGRAL)
        n.f = round_f64(n.f, r);
    if (t == LANE_F64) {
        double d = to_f64(&n, r);
        lane_write(l, o->d, 8, i, bits_of_f64(saturate ? saturate_f64(d) : d));
    } else if (t == LANE_F32) {
        float f = to_f32(&n, r);
        f = saturate ? saturate_f32(f) : f;
        lane_write(l, o->d, 4, i, bits_of_f32(ftz ? flush_f32(f) : f));
    } else {
        double d = to_f64_odd(&n);
        d = saturate ? saturate_f64(d) : d;
        lane_write(l, o->d, 2, i, t == LANE_F16 ? f16_from_f64(d, r) : bf16_from_f64(d, r));
    }
}

/* NaN becomes 0, or only the highest bit where 64 bits are involved. */
static uint64_t integer_of_float(double f, enum lane_type to, enum lane_type from, enum rounding r)
{
    unsigned bits = 8u * shapes[to].bytes;
    double   v = round_f64(f, r);

    if (f != f && (bits == 64 || from == LANE_F64))
        return 1ull << (bits - 1);
    return shapes[to].is_signed ? (uint64_t)s64_from_f64(v, bits) : u64_from_f64(v, bits);
}

/* Any type to any type; extra is unused, b and c carry the types. */
static void convert_any(struct lanes *l, const struct op *o)
{
    enum lane_type to = (enum lane_type)o->b, from = (enum lane_type)o->c;

    for (uint32_t i = l->low; i < l->high; i++) {
        struct number n;

        if (!l->m[i])
            continue;
        n = read_number(l, from, o->a, i, o->mode & CONVERT_FTZ);
        if (shapes[to].is_float) {
            write_float(l, o, i, to, n);
        } else if (n.kind == IS_FLOAT) {
            lane_write(l, o->d, shapes[to].bytes, i, integer_of_float(n.f, to, from, MODE));
        } else {
            lane_write(l, o->d, shapes[to].bytes, i, integer_result(&n, to, o->mode & CONVERT_SAT));
        }
    }
}

/* width: bits of a result; mode 1: signed. a above b, and c above both. */
void pack_clamped(struct lanes *l, const struct op *o)
{
    const int32_t *a_ = LANE(int32_t, o->a), *b_ = LANE(int32_t, o->b);
    const uint32_t *c_ = LANE(uint32_t, o->c);
    const unsigned width = o->width, above = 2 * width;
    const int32_t  top = (int32_t)((1u << (width - o->mode)) - 1), bottom = o->mode ? -top - 1 : 0;
    const uint32_t mask = (1u << width) - 1;

    LANES_SET(uint32_t, o->d, const int32_t x = a_[i] > top ? top : a_[i] < bottom ? bottom : a_[i];
              const int32_t y = b_[i] > top ? top : b_[i] < bottom ? bottom : b_[i],
              (uint32_t)((uint64_t)c_[i] << above) | ((uint32_t)x & mask) << width | ((uint32_t)y & mask));
}

struct fast_row {
    enum lane_type to, from;
    uint8_t        mode;
    op_fn          run;
};
static const struct fast_row fast[] = {
    {LANE_F32, LANE_S32, ROUND_NEAREST, fast_f32_s32}, {LANE_F32, LANE_U32, ROUND_NEAREST, fast_f32_u32},
    {LANE_F64, LANE_S32, ROUND_NEAREST, fast_f64_s32}, {LANE_F64, LANE_U32, ROUND_NEAREST, fast_f64_u32},
    {LANE_F64, LANE_F32, ROUND_NEAREST, fast_f64_f32}, {LANE_F32, LANE_F64, ROUND_NEAREST, fast_f32_f64},
    {LANE_S32, LANE_F32, ROUND_ZERO, fast_s32_f32_rzi},
    {LANE_S32, LANE_F32, ROUND_NEAREST, fast_s32_f32_rni},
    {LANE_F32, LANE_F32, ROUND_NEAREST | CONVERT_SAT, fast_f32_sat},
    {LANE_F32, LANE_F32, ROUND_NEAREST | CONVERT_INTEGRAL, fast_f32_rni},
    {LANE_F32, LANE_F32, ROUND_ZERO | CONVERT_INTEGRAL, fast_f32_rzi},
    {LANE_F32, LANE_F32, ROUND_DOWN | CONVERT_INTEGRAL, fast_f32_rmi},
    {LANE_F32, LANE_F32, ROUND_UP | CONVERT_INTEGRAL, fast_f32_rpi},
};

void convert_prepare(struct op *o, enum lane_type to, enum lane_type from, enum rounding r, bool ftz, bool saturate, bool integral)
{
    bool plain = !shapes[to].is_float && !shapes[from].is_float && !saturate;

    o->mode = (uint8_t)(r | (ftz ? CONVERT_FTZ : 0) | (saturate ? CONVERT_SAT : 0) | (integral ? CONVERT_INTEGRAL : 0));
    o->run = plain ? resize_handler(shapes[from].bytes, shapes[to].bytes, shapes[from].is_signed) : convert_any;
    for (size_t i = 0; !plain && i < COUNT(fast); i++) {
        if (fast[i].to == to && fast[i].from == from && fast[i].mode == o->mode)
            o->run = fast[i].run;
    }
    if (o->run == convert_any) {
        o->b = to;
        o->c = from;
    }
}
