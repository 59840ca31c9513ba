/* Rarer integer operations: carry chains, byte permutation, dot products, three-input logic, masks, tests of floats. */
#include "device/cpu/interp/ops/ops.h"

/* Carry chains: mode says whether the condition code is read and written. x - y is x + ~y + 1, and subc puts the code in the place of the 1: it is 1
 * after a subtraction without borrow (measured on an H100, 2026-11-25; PTX speaks of a borrow). */
enum { CARRY_IN = 1, CARRY_OUT = 2, CARRY_SUBTRACT = 4, CARRY_HIGH = 8, CARRY_SIGNED = 16 };

#define CARRY_ADD(bits, T)                                                \
    static T chain_##bits(T x, T y, uint8_t mode, uint8_t *carry)         \
    {                                                                     \
        T    in = mode & CARRY_IN ? *carry & 1u : (mode & CARRY_SUBTRACT) != 0; \
        T    sum, all;                                                    \
        bool c1 = __builtin_add_overflow(x, mode & CARRY_SUBTRACT ? (T)~y : y, &sum); \
        bool c2 = __builtin_add_overflow(sum, in, &all);                  \
        if (mode & CARRY_OUT)                                             \
            *carry = c1 | c2;                                             \
        return all;                                                       \
    }                                                                     \
    static void add_carry_##bits(struct lanes *l, const struct op *o)     \
    {                                                                     \
        const T *a_ = LANE(T, o->a), *b_ = LANE(T, o->b);                 \
        T       *d_ = LANE(T, o->d);                                      \
        LANES_EACH(d_[i] = chain_##bits(a_[i], b_[i], o->mode, &l->carry[i])); \
    }
CARRY_ADD(32, uint32_t)
CARRY_ADD(64, uint64_t)

static uint32_t product_32(uint32_t x, uint32_t y, uint8_t mode)
{
    if (!(mode & CARRY_HIGH))
        return x * y;
    return mode & CARRY_SIGNED ? (uint32_t)(((int64_t)(int32_t)x * (int32_t)y) >> 32) : (uint32_t)(((uint64_t)x * y) >> 32);
}

static uint64_t product_64(uint64_t x, uint64_t y, uint8_t mode)
{
    if (!(mode & CARRY_HIGH))
        return x * y;
    return mode & CARRY_SIGNED ? (uint64_t)mul_high_s64((int64_t)x, (int64_t)y) : mul_high_u64(x, y);
}

#define CARRY_MAD(bits, T)                                                \
    static void mad_carry_##bits(struct lanes *l, const struct op *o)     \
    {                                                                     \
        const T *a_ = LANE(T, o->a), *b_ = LANE(T, o->b), *c_ = LANE(T, o->c); \
        T       *d_ = LANE(T, o->d);                                      \
        LANES_EACH(d_[i] = chain_##bits(product_##bits(a_[i], b_[i], o->mode), c_[i], o->mode, &l->carry[i])); \
    }
CARRY_MAD(32, uint32_t)
CARRY_MAD(64, uint64_t)

static bool carries(const struct ptx_insn *in)
{
    return in->carry || in->opcode == PTX_OP_ADDC || in->opcode == PTX_OP_SUBC || in->opcode == PTX_OP_MADC;
}

static op_fn carry_handler(const struct ptx_insn *in, uint8_t *mode)
{
    bool eight = ptx_type_bytes((enum ptx_type)in->type) == 8;

    *mode = in->carry ? CARRY_OUT : 0;
    if (ptx_type_bytes((enum ptx_type)in->type) < 4 || in->part == PTX_WIDE)
        return NULL;
    if (in->part == PTX_HI)
        *mode |= CARRY_HIGH;
    if (lane_type_is_signed(lane_type_of((enum ptx_type)in->type)))
        *mode |= CARRY_SIGNED;
    switch ((int)in->opcode) {
    case PTX_OP_ADDC: *mode |= CARRY_IN; return eight ? add_carry_64 : add_carry_32;
    case PTX_OP_ADD:  return eight ? add_carry_64 : add_carry_32;
    case PTX_OP_SUBC: *mode |= CARRY_IN | CARRY_SUBTRACT; return eight ? add_carry_64 : add_carry_32;
    case PTX_OP_SUB:  *mode |= CARRY_SUBTRACT; return eight ? add_carry_64 : add_carry_32;
    case PTX_OP_MADC: *mode |= CARRY_IN; return eight ? mad_carry_64 : mad_carry_32;
    case PTX_OP_MAD:  return eight ? mad_carry_64 : mad_carry_32;
    default:          return NULL;
    }
}

/* The selector of byte k in the special modes, from prmt's table: an index into the eight bytes of {b, a}. */
static unsigned special_selector(uint8_t action, unsigned k, unsigned c)
{
    switch ((int)action) {
    case PTX_DO_F4E:  return (c + k) & 7;
    case PTX_DO_B4E:  return (c - k) & 7;
    case PTX_DO_RC8:  return c;
    case PTX_DO_ECL:  return k < c ? c : k;
    case PTX_DO_ECR:  return k < c ? k : c;
    default:          return (c & 1) * 2 + (k & 1);
    }
}

static uint32_t permute(uint32_t a, uint32_t b, uint32_t c, uint8_t action)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;

    for (unsigned k = 0; k < 4; k++) {
        unsigned s = action ? special_selector(action, k, c & 3) : c >> (4 * k) & 15;
        uint32_t byte = (uint32_t)(bytes >> (8 * (s & 7))) & 255;
        if (!action && (s & 8))
            byte = byte & 0x80 ? 255 : 0;
        result |= byte << (8 * k);
    }
    return result;
}

static int64_t element(uint32_t x, unsigned k, unsigned bits, bool is_signed)
{
    uint32_t v = x >> (k * bits) & ((1u << bits) - 1);

    return is_signed && v >> (bits - 1) ? (int64_t)v - (1 << bits) : (int64_t)v;
}

enum { DOT_A_SIGNED = 1, DOT_B_SIGNED = 2, DOT_HIGH = 4 };

static uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, uint8_t mode)
{
    for (unsigned k = 0; k < 4; k++)
        c += (uint32_t)(element(a, k, 8, mode & DOT_A_SIGNED) * element(b, k, 8, mode & DOT_B_SIGNED));
    return c;
}

static uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, uint8_t mode)
{
    for (unsigned k = 0; k < 2; k++)
        c += (uint32_t)(element(a, k, 16, mode & DOT_A_SIGNED)
                        * element(b, k + (mode & DOT_HIGH ? 2 : 0), 8, mode & DOT_B_SIGNED));
    return c;
}

static uint32_t logic3(uint32_t a, uint32_t b, uint32_t c, uint8_t function)
{
    uint32_t result = 0;

    for (unsigned k = 0; k < 8; k++) {
        if (function >> k & 1)
            result |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    }
    return result;
}

static uint32_t extend_low(uint32_t x, uint32_t bits, bool wrap, bool is_signed)
{
    bits = wrap ? bits & 31 : bits > 32 ? 32 : bits;
    if (bits == 0)
        return 0;
    if (bits == 32)
        return x;
    return is_signed ? (uint32_t)((int32_t)(x << (32 - bits)) >> (32 - bits)) : x & ((1u << bits) - 1);
}

static uint32_t bit_mask(uint32_t at, uint32_t bits, bool wrap)
{
    at = wrap ? at & 31 : at > 32 ? 32 : at;
    bits = wrap ? bits & 31 : bits > 32 ? 32 : bits;
    return (uint32_t)((((uint64_t)1 << bits) - 1) << at);
}

#define THREE(name, CALL)                                                 \
    static void name##_op(struct lanes *l, const struct op *o)            \
    {                                                                     \
        const uint32_t *a_ = LANE(uint32_t, o->a), *b_ = LANE(uint32_t, o->b), *c_ = LANE(uint32_t, o->c); \
        LANES_SET(uint32_t, o->d, , CALL(a_[i], b_[i], c_[i], o->mode));  \
    }
THREE(permute, permute)
THREE(dot4, dot4)
THREE(dot2, dot2)
THREE(logic3, logic3)

enum { FIT_WRAP = 1, FIT_SIGNED = 2 };

static void extend_op(struct lanes *l, const struct op *o)
{
    const uint32_t *a_ = LANE(uint32_t, o->a), *b_ = LANE(uint32_t, o->b);

    LANES_SET(uint32_t, o->d, , extend_low(a_[i], b_[i], o->mode & FIT_WRAP, o->mode & FIT_SIGNED));
}

static void bit_mask_op(struct lanes *l, const struct op *o)
{
    const uint32_t *a_ = LANE(uint32_t, o->a), *b_ = LANE(uint32_t, o->b);

    LANES_SET(uint32_t, o->d, , bit_mask(a_[i], b_[i], o->mode & FIT_WRAP));
}

static bool test(uint8_t what, int class)
{
    switch ((int)what) {
    case PTX_TESTP_FINITE:     return class != FP_NAN && class != FP_INFINITE;
    case PTX_TESTP_INFINITE:   return class == FP_INFINITE;
    case PTX_TESTP_NUMBER:     return class != FP_NAN;
    case PTX_TESTP_NOTANUMBER: return class == FP_NAN;
    case PTX_TESTP_NORMAL:     return class == FP_NORMAL || class == FP_ZERO; /* PTX counts zeros in */
    default:                   return class == FP_SUBNORMAL;
    }
}

static void test_f32(struct lanes *l, const struct op *o)
{
    LANES_EACH(LANE(uint8_t, o->d)[i] = test(o->mode, fpclassify(LANE(float, o->a)[i])));
}

static void test_f64(struct lanes *l, const struct op *o)
{
    LANES_EACH(LANE(uint8_t, o->d)[i] = test(o->mode, fpclassify(LANE(double, o->a)[i])));
}

/* slct: the sign of c chooses; s32 or f32. */
#define CHOOSE(bits, name, C, FLUSHED)                                    \
    static void choose_##bits##_##name(struct lanes *l, const struct op *o) \
    {                                                                     \
        const uint##bits##_t *a_ = LANE(uint##bits##_t, o->a), *b_ = LANE(uint##bits##_t, o->b); \
        const C *c_ = LANE(C, o->c);                                      \
        LANES_SET(uint##bits##_t, o->d, , FLUSHED(c_[i]) >= 0 ? a_[i] : b_[i]); \
    }
#define CHOOSE_ALL_WIDTHS(name, C, FLUSHED) CHOOSE(16, name, C, FLUSHED) CHOOSE(32, name, C, FLUSHED) CHOOSE(64, name, C, FLUSHED)
CHOOSE_ALL_WIDTHS(s32, int32_t, )
CHOOSE_ALL_WIDTHS(f32, float, )
/* A subnormal that `.ftz` flushes to -0 counts as not below 0, as -0 itself does. */
CHOOSE_ALL_WIDTHS(ftz, float, flush_f32)

static op_fn choose_handler(const struct ptx_insn *in)
{
    unsigned bytes = ptx_type_bytes((enum ptx_type)in->type);

    if (in->stype == PTX_S32)
        return bytes == 2 ? choose_16_s32 : bytes == 4 ? choose_32_s32 : bytes == 8 ? choose_64_s32 : NULL;
    if (in->stype == PTX_F32 && in->ftz)
        return bytes == 2 ? choose_16_ftz : bytes == 4 ? choose_32_ftz : bytes == 8 ? choose_64_ftz : NULL;
    if (in->stype == PTX_F32)
        return bytes == 2 ? choose_16_f32 : bytes == 4 ? choose_32_f32 : bytes == 8 ? choose_64_f32 : NULL;
    return NULL;
}

static uint8_t dot_mode(const struct ptx_insn *in)
{
    return (uint8_t)((in->type == PTX_S32 ? DOT_A_SIGNED : 0) | (in->stype == PTX_S32 ? DOT_B_SIGNED : 0)
                     | (in->part == PTX_HI ? DOT_HIGH : 0));
}

op_fn bits_handler(const struct ptx_insn *in, uint8_t *mode)
{
    uint8_t fit = (uint8_t)((in->wrap == PTX_WRAP ? FIT_WRAP : 0) | (in->type == PTX_S32 ? FIT_SIGNED : 0));

    if (carries(in))
        return carry_handler(in, mode);
    switch ((int)in->opcode) {
    case PTX_OP_PRMT:  *mode = in->action; return permute_op;
    case PTX_OP_DP4A:  *mode = dot_mode(in); return dot4_op;
    case PTX_OP_DP2A:  *mode = dot_mode(in); return dot2_op;
    case PTX_OP_LOP3:  *mode = (uint8_t)in->operands[4].value; return in->operands[4].kind == PTX_IMMEDIATE ? logic3_op : NULL;
    case PTX_OP_SZEXT: *mode = fit; return extend_op;
    case PTX_OP_BMSK:  *mode = fit; return bit_mask_op;
    case PTX_OP_TESTP: *mode = in->compare; return in->type == PTX_F32 ? test_f32 : in->type == PTX_F64 ? test_f64 : NULL;
    case PTX_OP_SLCT:  return choose_handler(in);
    default:           return NULL;
    }
}
