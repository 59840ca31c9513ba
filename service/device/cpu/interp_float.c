/* Floating-point arithmetic in binary32, binary64, and binary16 through binary32. */
#include "device/cpu/interp_ops.h"

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
/* Calls into libm or rounding helpers: only for active lanes. mode is the rounding. */
#define SLOW1(name, suffix, T, IN, OUT, EXPRESSION)                       \
    static void op_##name##_##suffix(struct lanes *l, const struct op *o)      \
    {                                                                     \
        const T *a_ = LANE(T, o->a);                                      \
        T       *d_ = LANE(T, o->d);                                      \
        LANES_EACH(const T x = IN(a_[i]); d_[i] = OUT(EXPRESSION));       \
    }
#define SLOW2(name, suffix, T, IN, OUT, EXPRESSION)                       \
    static void op_##name##_##suffix(struct lanes *l, const struct op *o)      \
    {                                                                     \
        const T *a_ = LANE(T, o->a), *b_ = LANE(T, o->b);                 \
        T       *d_ = LANE(T, o->d);                                      \
        LANES_EACH(const T x = IN(a_[i]); const T y = IN(b_[i]); d_[i] = OUT(EXPRESSION)); \
    }
#define SLOW3(name, suffix, T, IN, OUT, EXPRESSION)                       \
    static void op_##name##_##suffix(struct lanes *l, const struct op *o)      \
    {                                                                     \
        const T *a_ = LANE(T, o->a), *b_ = LANE(T, o->b), *c_ = LANE(T, o->c); \
        T       *d_ = LANE(T, o->d);                                      \
        LANES_EACH(const T x = IN(a_[i]); const T y = IN(b_[i]); const T z = IN(c_[i]); d_[i] = OUT(EXPRESSION)); \
    }

#define ALL_FLOATS(KIND, name, F32, F64)                                  \
    KIND(name, f32, float, KEEP, KEEP, F32)                               \
    KIND(name, f32_ftz, float, flush_f32, flush_f32, F32)                 \
    KIND(name, f64, double, KEEP, KEEP, F64)
#define BY_FLOAT(name) {op_##name##_f32, op_##name##_f32_ftz, op_##name##_f64}

ALL_FLOATS(BINARY, add, x + y, x + y)
ALL_FLOATS(BINARY, sub, x - y, x - y)
ALL_FLOATS(BINARY, mul, x * y, x * y)
ALL_FLOATS(BINARY, div, x / y, x / y)
ALL_FLOATS(TERNARY, fma, fmaf(x, y, z), fma(x, y, z))
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
UNARY(saturate, f32_op, float, KEEP, KEEP, saturate_f32(x))
UNARY(saturate, f64_op, double, KEEP, KEEP, saturate_f64(x))

#define MODE ((enum rounding)o->mode)
ALL_FLOATS(SLOW2, add_rounded, add_rounded_f32(x, y, MODE), add_rounded_f64(x, y, MODE))
ALL_FLOATS(SLOW2, sub_rounded, add_rounded_f32(x, -y, MODE), add_rounded_f64(x, -y, MODE))
ALL_FLOATS(SLOW2, mul_rounded, mul_rounded_f32(x, y, MODE), mul_rounded_f64(x, y, MODE))
ALL_FLOATS(SLOW3, fma_rounded, fma_rounded_f32(x, y, z, MODE), fma_rounded_f64(x, y, z, MODE))
ALL_FLOATS(SLOW2, div_rounded, div_rounded_f32(x, y, MODE), div_rounded_f64(x, y, MODE))
ALL_FLOATS(SLOW1, sqrt_rounded, sqrt_rounded_f32(x, MODE), sqrt_rounded_f64(x, MODE))
ALL_FLOATS(SLOW1, rcp_rounded, div_rounded_f32(1.0f, x, MODE), div_rounded_f64(1.0, x, MODE))

ALL_FLOATS(SLOW1, ex2, exp2f(x), exp2(x))
ALL_FLOATS(SLOW1, lg2, log2f(x), log2(x))
ALL_FLOATS(SLOW1, sin, sinf(x), sin(x))
ALL_FLOATS(SLOW1, cos, cosf(x), cos(x))
ALL_FLOATS(SLOW1, tanh, tanhf(x), tanh(x))

/* rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 keep the upper 32 bits of operand and result: a seed for Newton steps. */
static double upper_half(double d)
{
    return f64_of_bits(bits_of_f64(d) & 0xffffffff00000000ull);
}
UNARY(rcp, f64_seed, double, upper_half, upper_half, 1.0 / x)
UNARY(rsqrt, f64_seed, double, upper_half, upper_half, 1.0 / sqrt(x))

/* Halves: each element goes through binary32 (fma through binary64, where the product is exact) and is rounded once. */
static inline uint16_t half_of(float f)
{
    return f16_from_f32(f, ROUND_NEAREST);
}
#define FLUSH_H(h) (((h) & 0x7c00) ? (h) : (uint16_t)((h) & 0x8000))

enum half_op { HALF_ADD, HALF_SUB, HALF_MUL, HALF_FMA, HALF_MIN, HALF_MAX, HALF_NEG, HALF_ABS, HALF_EX2, HALF_TANH, HALF_FMA_RELU };
enum { HALF_FTZ = 32, HALF_SAT = 64, HALF_BF16 = 128, HALF_OP_MASK = 31 };

static float half_result(enum half_op op, float x, float y, float z)
{
    switch (op) {
    case HALF_ADD:      return x + y;
    case HALF_SUB:      return x - y;
    case HALF_MUL:      return x * y;
    case HALF_MIN:      return min_f32(x, y);
    case HALF_MAX:      return max_f32(x, y);
    case HALF_NEG:      return -x;
    case HALF_ABS:      return fabsf(x);
    case HALF_EX2:      return exp2f(x);
    case HALF_TANH:     return tanhf(x);
    case HALF_FMA:
    case HALF_FMA_RELU: return fmaf(x, y, z);
    }
    return 0;
}

/* The exact product and a nearly exact sum in binary64, rounded once to binary16. */
static uint16_t half_fma(float x, float y, float z, bool relu)
{
    double r = (double)x * (double)y + (double)z;

    return f16_from_f64(relu && !(r > 0) ? (r != r ? r : 0.0) : r, ROUND_NEAREST);
}

static uint16_t half_once(unsigned mode, uint16_t a, uint16_t b, uint16_t c)
{
    enum half_op op = (enum half_op)(mode & HALF_OP_MASK);
    float        r;

    if (mode & HALF_BF16) {
        r = half_result(op, f32_from_bf16(a), f32_from_bf16(b), f32_from_bf16(c));
        return bf16_from_f32(op == HALF_FMA_RELU && r < 0 ? 0 : r, ROUND_NEAREST);
    }
    if (op == HALF_NEG)
        return a ^ 0x8000;
    if (op == HALF_ABS)
        return a & 0x7fff;
    if (mode & HALF_FTZ) {
        a = FLUSH_H(a);
        b = FLUSH_H(b);
        c = FLUSH_H(c);
    }
    if (op == HALF_FMA || op == HALF_FMA_RELU)
        a = half_fma(f32_from_f16(a), f32_from_f16(b), f32_from_f16(c), op == HALF_FMA_RELU);
    else
        a = half_of(half_result(op, f32_from_f16(a), f32_from_f16(b), f32_from_f16(c)));
    if (mode & HALF_SAT)
        a = half_of(saturate_f32(f32_from_f16(a)));
    return mode & HALF_FTZ ? FLUSH_H(a) : a;
}

/* Absent operands are places that hold anything: the result does not depend on them. */
static void half_f16(struct lanes *l, const struct op *o)
{
    const uint16_t *a_ = LANE(uint16_t, o->a), *b_ = LANE(uint16_t, o->b), *c_ = LANE(uint16_t, o->c);
    uint16_t       *d_ = LANE(uint16_t, o->d);

    LANES_EACH(d_[i] = half_once(o->mode, a_[i], b_[i], c_[i]));
}

static void half_f16x2(struct lanes *l, const struct op *o)
{
    const uint32_t *a_ = LANE(uint32_t, o->a), *b_ = LANE(uint32_t, o->b), *c_ = LANE(uint32_t, o->c);
    uint32_t       *d_ = LANE(uint32_t, o->d);

    LANES_EACH(uint32_t low = half_once(o->mode, (uint16_t)a_[i], (uint16_t)b_[i], (uint16_t)c_[i]);
               uint32_t high = half_once(o->mode, (uint16_t)(a_[i] >> 16), (uint16_t)(b_[i] >> 16), (uint16_t)(c_[i] >> 16));
               d_[i] = high << 16 | low);
}

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
    {PTX_OP_EX2, BY_FLOAT(ex2), {0}}, {PTX_OP_LG2, BY_FLOAT(lg2), {0}}, {PTX_OP_SIN, BY_FLOAT(sin), {0}},
    {PTX_OP_COS, BY_FLOAT(cos), {0}}, {PTX_OP_TANH, BY_FLOAT(tanh), {0}},
};

static const struct { uint8_t opcode; enum half_op op; } half_rows[] = {
    {PTX_OP_ADD, HALF_ADD}, {PTX_OP_SUB, HALF_SUB}, {PTX_OP_MUL, HALF_MUL}, {PTX_OP_FMA, HALF_FMA}, {PTX_OP_MIN, HALF_MIN},
    {PTX_OP_MAX, HALF_MAX}, {PTX_OP_NEG, HALF_NEG}, {PTX_OP_ABS, HALF_ABS}, {PTX_OP_EX2, HALF_EX2}, {PTX_OP_TANH, HALF_TANH},
};

static op_fn half_handler(const struct ptx_insn *in, uint8_t *mode)
{
    bool two = in->type == PTX_F16X2 || in->type == PTX_BF16X2, brain = in->type == PTX_BF16 || in->type == PTX_BF16X2;

    if (in->nan || in->xorsign || (brain && in->sat))
        return NULL;
    for (size_t i = 0; i < COUNT(half_rows); i++) {
        enum half_op op = half_rows[i].op;
        if (half_rows[i].opcode != in->opcode)
            continue;
        if (in->relu && op != HALF_FMA)
            return NULL;
        op = in->relu ? HALF_FMA_RELU : op;
        *mode = (uint8_t)(op | (in->ftz ? HALF_FTZ : 0) | (in->sat ? HALF_SAT : 0) | (brain ? HALF_BF16 : 0));
        return two ? half_f16x2 : half_f16;
    }
    return NULL;
}

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

op_fn float_handler(const struct ptx_insn *in, uint8_t *mode)
{
    unsigned kind = in->type == PTX_F64 ? 2 : in->ftz ? 1 : 0;

    *mode = (uint8_t)rounding_of(in->rounding);
    if (in->type != PTX_F32 && in->type != PTX_F64)
        return half_handler(in, mode);
    if (in->xorsign || in->relu)
        return NULL;
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
