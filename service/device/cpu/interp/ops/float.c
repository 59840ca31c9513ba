/* Floating-point arithmetic in binary32 and binary64. */
#include "device/cpu/interp/ops/ops.h"

/* Every f32 handler exists twice: PLAIN keeps subnormals, FLUSH (`.ftz`) flushes operands and result. */
#define KEEP(f) (f)

#define UNARY(name, suffix, T, IN, OUT, EXPRESSION)                       \
    static void op_##name##_##suffix(struct lanes *l, const struct op *o)      \
    {                                                                     \
        const T *a_ = LANE(T, o->a);                                      \
        LANES_SET(T, o->d, const T x = IN(a_[i]), OUT(EXPRESSION));       \
    }
#define BINARY(name, suffix, T, IN, OUT, EXPRESSION)                      \
    static void op_##name##_##suffix(struct lanes *l, const struct op *o)      \
    {                                                                     \
        const T *a_ = LANE(T, o->a), *b_ = LANE(T, o->b);                 \
        LANES_SET(T, o->d, const T x = IN(a_[i]); const T y = IN(b_[i]), OUT(EXPRESSION)); \
    }
#define TERNARY(name, suffix, T, IN, OUT, EXPRESSION)                     \
    static void op_##name##_##suffix(struct lanes *l, const struct op *o)      \
    {                                                                     \
        const T *a_ = LANE(T, o->a), *b_ = LANE(T, o->b), *c_ = LANE(T, o->c); \
        LANES_SET(T, o->d, const T x = IN(a_[i]); const T y = IN(b_[i]); const T z = IN(c_[i]), OUT(EXPRESSION)); \
    }
/* Calls into libm: only for active lanes. */
#define SLOW1(name, suffix, T, IN, OUT, EXPRESSION)                       \
    static void op_##name##_##suffix(struct lanes *l, const struct op *o)      \
    {                                                                     \
        const T *a_ = LANE(T, o->a);                                      \
        T       *d_ = LANE(T, o->d);                                      \
        LANES_EACH(const T x = IN(a_[i]); d_[i] = OUT(EXPRESSION));       \
    }
/* The host rounds as mode says while these run. */
#define ROUNDED(KIND, name, suffix, T, IN, OUT, EXPRESSION)               \
    KIND(name##_in_mode, suffix, T, IN, OUT, EXPRESSION)                  \
    static void op_##name##_##suffix(struct lanes *l, const struct op *o) \
    {                                                                     \
        int before = rounding_enter((enum rounding)o->mode);              \
        op_##name##_in_mode_##suffix(l, o);                               \
        rounding_leave(before);                                           \
    }
#define ROUNDED1(name, suffix, T, IN, OUT, EXPRESSION) ROUNDED(UNARY, name, suffix, T, IN, OUT, EXPRESSION)
#define ROUNDED2(name, suffix, T, IN, OUT, EXPRESSION) ROUNDED(BINARY, name, suffix, T, IN, OUT, EXPRESSION)
#define ROUNDED3(name, suffix, T, IN, OUT, EXPRESSION) ROUNDED(TERNARY, name, suffix, T, IN, OUT, EXPRESSION)

#define ALL_FLOATS(KIND, name, F32, F64)                                  \
    KIND(name, f32, float, KEEP, KEEP, F32)                               \
    KIND(name, f32_ftz, float, flush_f32, flush_f32, F32)                 \
    KIND(name, f64, double, KEEP, KEEP, F64)
/* As ALL_FLOATS, with the exact result, or one on the same side of every power of two, for what `.ftz` flushes. */
#define FLUSHED_FLOATS(KIND, name, F32, EXACT, F64)                              \
    KIND(name, f32, float, KEEP, KEEP, F32)                                      \
    KIND(name, f32_ftz, float, flush_f32, flush_f32, flush_rounded(F32, EXACT))  \
    KIND(name, f64, double, KEEP, KEEP, F64)
#define BY_FLOAT(name) {op_##name##_f32, op_##name##_f32_ftz, op_##name##_f64}

/* `.ftz` flushes what is too small before rounding, even if rounding makes it the smallest normal number. GPUs do so in every rounding
 * (seen on an H200 for products, sums with products and quotients). */
static inline float flush_rounded(float r, double exact)
{
    return fabs(exact) < 0x1p-126 ? copysignf(0.0f, r) : r;
}

/* `.xorsign.abs`: min or max of the magnitudes, with the product's sign. */
static inline float under_sign_f32(float magnitude, float x, float y)
{
    uint32_t sign = (bits_of_f32(x) ^ bits_of_f32(y)) & 0x80000000u;

    return magnitude != magnitude ? magnitude : f32_of_bits(bits_of_f32(magnitude) | sign);
}

#define NAN_OR(x, y, r) ((x) != (x) || (y) != (y) ? NAN : (r))

ALL_FLOATS(BINARY, add, x + y, x + y)
ALL_FLOATS(BINARY, sub, x - y, x - y)
FLUSHED_FLOATS(BINARY, mul, x * y, (double)x * (double)y, x * y)
FLUSHED_FLOATS(BINARY, div, x / y, (double)x / (double)y, x / y)
FLUSHED_FLOATS(TERNARY, fma, fmaf(x, y, z), fma_odd((double)x, (double)y, (double)z), fma(x, y, z))
ALL_FLOATS(BINARY, min, min_f32(x, y), min_f64(x, y))
ALL_FLOATS(BINARY, max, max_f32(x, y), max_f64(x, y))
ALL_FLOATS(BINARY, min_nan, x != x || y != y ? NAN : min_f32(x, y), x != x || y != y ? (double)NAN : min_f64(x, y))
ALL_FLOATS(BINARY, max_nan, x != x || y != y ? NAN : max_f32(x, y), x != x || y != y ? (double)NAN : max_f64(x, y))
ALL_FLOATS(UNARY, neg, -x, -x)
ALL_FLOATS(UNARY, abs, fabsf(x), fabs(x))
ALL_FLOATS(UNARY, sqrt, sqrtf(x), sqrt(x))
ALL_FLOATS(UNARY, rcp, 1.0f / x, 1.0 / x)
ALL_FLOATS(UNARY, rsqrt, 1.0f / sqrtf(x), 1.0 / sqrt(x))
/* copysign d, a, b: the sign of a on the magnitude of b */
ALL_FLOATS(BINARY, copysign, copysignf(y, x), copysign(y, x))
#define MAGNITUDES(FTZ, IN)                                                                                     \
    BINARY(min_sign, FTZ, float, IN, IN, under_sign_f32(min_f32(fabsf(x), fabsf(y)), x, y))                     \
    BINARY(max_sign, FTZ, float, IN, IN, under_sign_f32(max_f32(fabsf(x), fabsf(y)), x, y))                     \
    BINARY(min_nan_sign, FTZ, float, IN, IN, NAN_OR(x, y, under_sign_f32(min_f32(fabsf(x), fabsf(y)), x, y)))   \
    BINARY(max_nan_sign, FTZ, float, IN, IN, NAN_OR(x, y, under_sign_f32(max_f32(fabsf(x), fabsf(y)), x, y)))
MAGNITUDES(f32, KEEP)
MAGNITUDES(f32_ftz, flush_f32)
UNARY(saturate, f32_op, float, KEEP, KEEP, saturate_f32(x))
UNARY(saturate, f64_op, double, KEEP, KEEP, saturate_f64(x))

ALL_FLOATS(ROUNDED2, add_rounded, x + y, x + y)
ALL_FLOATS(ROUNDED2, sub_rounded, x - y, x - y)
FLUSHED_FLOATS(ROUNDED2, mul_rounded, x * y, (double)x * (double)y, x * y)
FLUSHED_FLOATS(ROUNDED3, fma_rounded, fmaf(x, y, z), fma_odd((double)x, (double)y, (double)z), fma(x, y, z))
FLUSHED_FLOATS(ROUNDED2, div_rounded, x / y, (double)x / (double)y, x / y)
ALL_FLOATS(ROUNDED1, sqrt_rounded, sqrtf(x), sqrt(x))
FLUSHED_FLOATS(ROUNDED1, rcp_rounded, 1.0f / x, 1.0 / (double)x, 1.0 / x)

UNARY(ex2, f32, float, KEEP, KEEP, exp2_f32(x))
UNARY(ex2, f32_ftz, float, flush_f32, flush_f32, exp2_f32(x))
ALL_FLOATS(SLOW1, lg2, log2f(x), log2(x))
ALL_FLOATS(SLOW1, sin, sinf(x), sin(x))
ALL_FLOATS(SLOW1, cos, cosf(x), cos(x))
ALL_FLOATS(SLOW1, tanh, tanhf(x), tanh(x))

/* rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 keep the upper 32 bits of operand and result, and no subnormals: a seed for Newton steps. */
static double upper_half(double d)
{
    uint64_t u = bits_of_f64(d);

    return f64_of_bits(u & (u & 0x7ff0000000000000ull ? 0xffffffff00000000ull : 0x8000000000000000ull));
}
UNARY(rcp, f64_seed, double, upper_half, upper_half, 1.0 / x)
UNARY(rsqrt, f64_seed, double, upper_half, upper_half, 1.0 / sqrt(x))

struct float_row {
    uint8_t opcode;
    op_fn   nearest[3]; /* f32, f32.ftz, f64 */
    op_fn   rounded[3]; /* other roundings, given by mode; NULL: the operation has none */
};
static const struct float_row rows[] = {
    {PTX_OP_ADD, BY_FLOAT(add), BY_FLOAT(add_rounded)}, {PTX_OP_SUB, BY_FLOAT(sub), BY_FLOAT(sub_rounded)},
    {PTX_OP_MUL, BY_FLOAT(mul), BY_FLOAT(mul_rounded)}, {PTX_OP_FMA, BY_FLOAT(fma), BY_FLOAT(fma_rounded)},
    {PTX_OP_MAD, BY_FLOAT(fma), BY_FLOAT(fma_rounded)}, {PTX_OP_DIV, BY_FLOAT(div), BY_FLOAT(div_rounded)},
    {PTX_OP_SQRT, BY_FLOAT(sqrt), BY_FLOAT(sqrt_rounded)}, {PTX_OP_RCP, BY_FLOAT(rcp), BY_FLOAT(rcp_rounded)},
    {PTX_OP_MIN, BY_FLOAT(min), {0}}, {PTX_OP_MAX, BY_FLOAT(max), {0}}, {PTX_OP_NEG, BY_FLOAT(neg), {0}},
    {PTX_OP_ABS, BY_FLOAT(abs), {0}}, {PTX_OP_RSQRT, BY_FLOAT(rsqrt), {0}}, {PTX_OP_COPYSIGN, BY_FLOAT(copysign), {0}},
    {PTX_OP_EX2, {op_ex2_f32, op_ex2_f32_ftz, NULL}, {0}}, {PTX_OP_LG2, BY_FLOAT(lg2), {0}}, {PTX_OP_SIN, BY_FLOAT(sin), {0}},
    {PTX_OP_COS, BY_FLOAT(cos), {0}}, {PTX_OP_TANH, BY_FLOAT(tanh), {0}},
};

enum rounding rounding_of(uint8_t modifier)
{
    switch ((int)modifier) {
    case PTX_RZ: case PTX_RZI: return ROUND_ZERO;
    case PTX_RM: case PTX_RMI: return ROUND_DOWN;
    case PTX_RP: case PTX_RPI: return ROUND_UP;
    default:                   return ROUND_NEAREST;
    }
}

/* The seed forms of f64 are the only approximations in that type. */
static op_fn special_form(const struct ptx_insn *in, unsigned kind)
{
    static const op_fn least[3] = BY_FLOAT(min_nan), most[3] = BY_FLOAT(max_nan);

    if (in->nan)
        return in->opcode == PTX_OP_MIN ? least[kind] : in->opcode == PTX_OP_MAX ? most[kind] : NULL;
    if (in->type == PTX_F64 && in->approx && in->ftz)
        return in->opcode == PTX_OP_RCP ? op_rcp_f64_seed : in->opcode == PTX_OP_RSQRT ? op_rsqrt_f64_seed : NULL;
    return NULL;
}

static op_fn sign_form(const struct ptx_insn *in)
{
    static const op_fn least[2][2] = {{op_min_sign_f32, op_min_sign_f32_ftz}, {op_min_nan_sign_f32, op_min_nan_sign_f32_ftz}};
    static const op_fn most[2][2] = {{op_max_sign_f32, op_max_sign_f32_ftz}, {op_max_nan_sign_f32, op_max_nan_sign_f32_ftz}};

    if (in->type != PTX_F32)
        return NULL;
    return (in->opcode == PTX_OP_MIN ? least : most)[in->nan != 0][in->ftz != 0];
}

op_fn float_handler(const struct ptx_insn *in, uint8_t *mode)
{
    unsigned kind = in->type == PTX_F64 ? 2 : in->ftz ? 1 : 0;

    *mode = (uint8_t)rounding_of(in->rounding);
    if (in->type != PTX_F32 && in->type != PTX_F64)
        return half_handler(in, mode);
    if (in->relu)
        return NULL;
    if (in->xorsign)
        return sign_form(in);
    if (in->nan || (in->type == PTX_F64 && in->approx && in->ftz))
        return special_form(in, kind);
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (rows[i].opcode == in->opcode)
            return *mode == ROUND_NEAREST ? rows[i].nearest[kind] : rows[i].rounded[kind];
    }
    return NULL;
}

op_fn saturate_handler(enum ptx_type t)
{
    return t == PTX_F32 ? op_saturate_f32_op : t == PTX_F64 ? op_saturate_f64_op : NULL;
}
