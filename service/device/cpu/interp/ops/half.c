/* Arithmetic in binary16 and bfloat16, single and in pairs: each element is computed in a wider type and rounded once. */
#include "device/cpu/interp/ops/ops.h"

enum half_op {
    HALF_ADD, HALF_SUB, HALF_MUL, HALF_FMA, HALF_FMA_RELU, HALF_NEG, HALF_ABS, HALF_EX2, HALF_TANH,
    HALF_MIN, HALF_MIN_NAN, HALF_MIN_SIGN, HALF_MIN_NAN_SIGN, HALF_MAX, HALF_MAX_NAN, HALF_MAX_SIGN, HALF_MAX_NAN_SIGN,
};
enum { HALF_FTZ = 32, HALF_SAT = 64, HALF_BF16 = 128, HALF_OP_MASK = 31, HALF_NAN = 0x7fff };

#define FLUSH_H(h) (((h) & 0x7c00) ? (h) : (uint16_t)((h) & 0x8000))

static float widen_half(bool brain, uint16_t h)
{
    return brain ? f32_from_bf16(h) : f32_from_f16(h);
}

static uint16_t narrow_half(bool brain, double d)
{
    return brain ? bf16_from_f64(d, ROUND_NEAREST) : f16_from_f64(d, ROUND_NEAREST);
}

/* Exact, or with an odd last bit when it is not: see fma_odd. */
static double sum_or_product(enum half_op op, double x, double y, double z)
{
    switch (op) {
    case HALF_ADD: return fma_odd(x, 1, y);
    case HALF_SUB: return fma_odd(x, 1, -y);
    case HALF_MUL: return x * y;
    case HALF_EX2: return exp2(x);
    case HALF_TANH: return tanh(x);
    case HALF_FMA: case HALF_FMA_RELU: break;
    /* These never round: see their handlers. */
    case HALF_NEG: case HALF_ABS: case HALF_MIN: case HALF_MIN_NAN: case HALF_MIN_SIGN: case HALF_MIN_NAN_SIGN: break;
    case HALF_MAX: case HALF_MAX_NAN: case HALF_MAX_SIGN: case HALF_MAX_NAN_SIGN: break;
    }
    return fma_odd(x, y, z);
}

/* mode holds the operation: which of two, what NaN means, and whether the magnitudes are compared. */
static uint16_t choose_half(enum half_op op, bool brain, uint16_t a, uint16_t b)
{
    unsigned kind = (unsigned)op - (op >= HALF_MAX ? HALF_MAX : HALF_MIN);
    bool     by_magnitude = kind >= 2, keep_nan = kind & 1;
    float    x = widen_half(brain, by_magnitude ? a & 0x7fff : a), y = widen_half(brain, by_magnitude ? b & 0x7fff : b);
    float    r = op >= HALF_MAX ? max_f32(x, y) : min_f32(x, y);

    if ((keep_nan && (x != x || y != y)) || r != r)
        return HALF_NAN;
    return (uint16_t)(narrow_half(brain, (double)r) | (by_magnitude ? (a ^ b) & 0x8000 : 0));
}

static uint16_t relu_half(uint16_t h, uint16_t infinity)
{
    return (h & 0x7fff) > infinity ? HALF_NAN : h & 0x8000 ? 0 : h;
}

/* A product or sum below the normal numbers is flushed even when rounding makes it the smallest of them. */
static uint16_t compute_half(unsigned mode, uint16_t a, uint16_t b, uint16_t c)
{
    enum half_op op = (enum half_op)(mode & HALF_OP_MASK);
    bool         brain = mode & HALF_BF16;
    double       r = sum_or_product(op, (double)widen_half(brain, a), (double)widen_half(brain, b), (double)widen_half(brain, c));
    uint16_t     h = narrow_half(brain, r);

    if ((mode & HALF_FTZ) && !brain && fabs(r) < 0x1p-14)
        h &= 0x8000;
    if (mode & HALF_SAT)
        h = narrow_half(brain, (double)saturate_f32(widen_half(brain, h)));
    return op == HALF_FMA_RELU ? relu_half(h, brain ? 0x7f80 : 0x7c00) : h;
}

static uint16_t half_once(unsigned mode, uint16_t a, uint16_t b, uint16_t c)
{
    enum half_op op = (enum half_op)(mode & HALF_OP_MASK);

    if ((mode & HALF_FTZ) && !(mode & HALF_BF16)) {
        a = FLUSH_H(a);
        b = FLUSH_H(b);
        c = FLUSH_H(c);
    }
    if (op == HALF_NEG)
        return a ^ 0x8000;
    if (op == HALF_ABS)
        return a & 0x7fff;
    return op >= HALF_MIN ? choose_half(op, mode & HALF_BF16, a, b) : compute_half(mode, a, b, c);
}

/* Absent operands have arbitrary places: the result does not depend on them. */
static void half_single(struct lanes *l, const struct op *o)
{
    const uint16_t *a_ = LANE(uint16_t, o->a), *b_ = LANE(uint16_t, o->b), *c_ = LANE(uint16_t, o->c);
    uint16_t       *d_ = LANE(uint16_t, o->d);

    LANES_EACH(d_[i] = half_once(o->mode, a_[i], b_[i], c_[i]));
}

static void half_pair(struct lanes *l, const struct op *o)
{
    const uint32_t *a_ = LANE(uint32_t, o->a), *b_ = LANE(uint32_t, o->b), *c_ = LANE(uint32_t, o->c);
    uint32_t       *d_ = LANE(uint32_t, o->d);

    LANES_EACH(uint32_t low = half_once(o->mode, (uint16_t)a_[i], (uint16_t)b_[i], (uint16_t)c_[i]);
               uint32_t high = half_once(o->mode, (uint16_t)(a_[i] >> 16), (uint16_t)(b_[i] >> 16), (uint16_t)(c_[i] >> 16));
               d_[i] = high << 16 | low);
}

static const struct { uint8_t opcode; enum half_op op; } rows[] = {
    {PTX_OP_ADD, HALF_ADD}, {PTX_OP_SUB, HALF_SUB}, {PTX_OP_MUL, HALF_MUL}, {PTX_OP_FMA, HALF_FMA}, {PTX_OP_MIN, HALF_MIN},
    {PTX_OP_MAX, HALF_MAX}, {PTX_OP_NEG, HALF_NEG}, {PTX_OP_ABS, HALF_ABS}, {PTX_OP_EX2, HALF_EX2}, {PTX_OP_TANH, HALF_TANH},
};

op_fn half_handler(const struct ptx_insn *in, uint8_t *mode)
{
    bool two = in->type == PTX_F16X2 || in->type == PTX_BF16X2, brain = in->type == PTX_BF16 || in->type == PTX_BF16X2;

    if (brain && in->sat)
        return NULL;
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned op = rows[i].op;

        if (rows[i].opcode != in->opcode)
            continue;
        if ((in->relu && op != HALF_FMA) || ((in->nan || in->xorsign) && op != HALF_MIN && op != HALF_MAX))
            return NULL;
        op += (in->relu ? HALF_FMA_RELU - HALF_FMA : 0) + (in->nan ? 1 : 0) + (in->xorsign ? 2 : 0);
        *mode = (uint8_t)(op | (in->ftz ? HALF_FTZ : 0) | (in->sat ? HALF_SAT : 0) | (brain ? HALF_BF16 : 0));
        return two ? half_pair : half_single;
    }
    return NULL;
}

/* Between one 32-bit register and its two halves. */
void low_half(struct lanes *l, const struct op *o)
{
    const uint32_t *a_ = LANE(uint32_t, o->a);

    LANES_SET(uint16_t, o->d, , a_[i]);
}

void high_half(struct lanes *l, const struct op *o)
{
    const uint32_t *a_ = LANE(uint32_t, o->a);

    LANES_SET(uint16_t, o->d, , a_[i] >> 16);
}

void join_halves(struct lanes *l, const struct op *o)
{
    const uint16_t *low = LANE(uint16_t, o->a), *high = LANE(uint16_t, o->b);

    LANES_SET(uint32_t, o->d, , (uint32_t)high[i] << 16 | low[i]);
}

/* What cvt does to a half afterwards. mode: FINISH_...; immediate: the bits of infinity in its type. */
void finish_half(struct lanes *l, const struct op *o)
{
    uint16_t *d_ = LANE(uint16_t, o->d);
    uint16_t  infinity = (uint16_t)o->immediate;

    if (o->mode & FINISH_RELU)
        LANES_EACH(d_[i] = relu_half(d_[i], infinity));
    if (o->mode & FINISH_FINITE)
        LANES_EACH(d_[i] = (d_[i] & 0x7fff) == infinity ? (uint16_t)(d_[i] - 1) : d_[i]);
}

/* tf32 keeps 10 bits behind the point; halves are rounded away from zero (mode 0) or to even. */
void round_tf32(struct lanes *l, const struct op *o)
{
    const uint32_t *a_ = LANE(uint32_t, o->a);

    LANES_SET(uint32_t, o->d, const uint32_t u = a_[i],
              (u & 0x7fffffffu) > 0x7f800000u ? (o->mode ? 0x7fffe000u : u & ~0x1fffu)
                                              : (u + (o->mode ? 0xfffu + (u >> 13 & 1) : 0x1000u)) & ~0x1fffu);
}
