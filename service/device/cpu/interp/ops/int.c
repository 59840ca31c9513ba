/* Integer and bit operations: one loop over the lanes per operation and type. */
#include "device/cpu/interp/decode/decode.h"

/* UNARY, BINARY and TERNARY(name, suffix, type, expression in x, y, z) make one handler. */
#define UNARY(name, suffix, T, EXPRESSION)                                \
    static void name##_##suffix(struct lanes *l, const struct op *o)      \
    {                                                                     \
        const T *a_ = LANE(T, o->a);                                      \
        LANES_SET(T, o->d, const T x = a_[i], EXPRESSION);                \
    }
#define BINARY(name, suffix, T, EXPRESSION)                               \
    static void name##_##suffix(struct lanes *l, const struct op *o)      \
    {                                                                     \
        const T *a_ = LANE(T, o->a), *b_ = LANE(T, o->b);                 \
        LANES_SET(T, o->d, const T x = a_[i]; const T y = b_[i], EXPRESSION); \
    }
#define TERNARY(name, suffix, T, EXPRESSION)                              \
    static void name##_##suffix(struct lanes *l, const struct op *o)      \
    {                                                                     \
        const T *a_ = LANE(T, o->a), *b_ = LANE(T, o->b), *c_ = LANE(T, o->c); \
        LANES_SET(T, o->d, const T x = a_[i]; const T y = b_[i]; const T z = c_[i], EXPRESSION); \
    }

/* Signless: computed on unsigned types, where overflow wraps. */
#define ALL_WIDTHS(KIND, name, EXPRESSION)                                \
    KIND(name, 16, uint16_t, EXPRESSION)                                  \
    KIND(name, 32, uint32_t, EXPRESSION)                                  \
    KIND(name, 64, uint64_t, EXPRESSION)
#define BY_WIDTH(name) {name##_16, name##_32, name##_64}

#define BOTH_SIGNS(KIND, name, U_EXPRESSION, S_EXPRESSION)                \
    KIND(name, u16, uint16_t, U_EXPRESSION) KIND(name, s16, int16_t, S_EXPRESSION) \
    KIND(name, u32, uint32_t, U_EXPRESSION) KIND(name, s32, int32_t, S_EXPRESSION) \
    KIND(name, u64, uint64_t, U_EXPRESSION) KIND(name, s64, int64_t, S_EXPRESSION)
#define BY_SIGN(name) {{name##_u16, name##_u32, name##_u64}, {name##_s16, name##_s32, name##_s64}}

ALL_WIDTHS(BINARY, add, x + y)
ALL_WIDTHS(BINARY, sub, x - y)
ALL_WIDTHS(BINARY, and, x & y)
ALL_WIDTHS(BINARY, or, x | y)
ALL_WIDTHS(BINARY, xor, x ^ y)
ALL_WIDTHS(UNARY, not, ~x)
ALL_WIDTHS(UNARY, neg, 0u - x)
ALL_WIDTHS(UNARY, cnot, x == 0)
BINARY(and, 8, uint8_t, x & y)
BINARY(or, 8, uint8_t, x | y)
BINARY(xor, 8, uint8_t, x ^ y)
UNARY(not, 8, uint8_t, x ^ 1)

/* The product of two 16-bit numbers is computed in 32 unsigned bits: int would overflow. */
BINARY(mullo, 16, uint16_t, (uint32_t)x * y)
BINARY(mullo, 32, uint32_t, x * y)
BINARY(mullo, 64, uint64_t, x * y)
TERNARY(madlo, 16, uint16_t, (uint32_t)x * y + z)
TERNARY(madlo, 32, uint32_t, x * y + z)
TERNARY(madlo, 64, uint64_t, x * y + z)

BINARY(mulhi, u16, uint16_t, ((uint32_t)x * y) >> 16)
BINARY(mulhi, s16, int16_t, ((int32_t)x * y) >> 16)
BINARY(mulhi, u32, uint32_t, ((uint64_t)x * y) >> 32)
BINARY(mulhi, s32, int32_t, ((int64_t)x * y) >> 32)
BINARY(mulhi, u64, uint64_t, mul_high_u64(x, y))
BINARY(mulhi, s64, int64_t, mul_high_s64(x, y))
TERNARY(madhi, u16, uint16_t, (((uint32_t)x * y) >> 16) + z)
TERNARY(madhi, s16, int16_t, (((int32_t)x * y) >> 16) + z)
TERNARY(madhi, u32, uint32_t, (uint32_t)(((uint64_t)x * y) >> 32) + z)
TERNARY(madhi, s32, int32_t, (uint32_t)(((int64_t)x * y) >> 32) + (uint32_t)z)
TERNARY(madhi, u64, uint64_t, mul_high_u64(x, y) + z)
TERNARY(madhi, s64, int64_t, (uint64_t)mul_high_s64(x, y) + (uint64_t)z)

#define WIDE(suffix, T, W, UW)                                            \
    static void mulwide_##suffix(struct lanes *l, const struct op *o)     \
    {                                                                     \
        const T *a_ = LANE(T, o->a), *b_ = LANE(T, o->b);                 \
        LANES_SET(UW, o->d, const T x = a_[i]; const T y = b_[i], (W)x * (W)y); \
    }                                                                     \
    static void madwide_##suffix(struct lanes *l, const struct op *o)     \
    {                                                                     \
        const T *a_ = LANE(T, o->a), *b_ = LANE(T, o->b);                 \
        const UW *c_ = LANE(UW, o->c);                                    \
        LANES_SET(UW, o->d, const T x = a_[i]; const T y = b_[i]; const UW z = c_[i], (UW)((W)x * (W)y) + z); \
    }
WIDE(u16, uint16_t, uint32_t, uint32_t)
WIDE(s16, int16_t, int32_t, uint32_t)
WIDE(u32, uint32_t, uint64_t, uint64_t)
WIDE(s32, int32_t, int64_t, uint64_t)

/* Division by zero gives all ones, and so does the remainder; the most negative number by -1 wraps. No lane traps on the host. */
#define NEGATE(v) (0 - (uint64_t)(v))
#define DIVIDE_U (y ? x / (y ? y : 1) : UINT64_MAX)
#define REMAIN_U (y ? x % (y ? y : 1) : UINT64_MAX)
#define SAFE_S   (y == 0 || y == -1 ? 1 : y)
#define DIVIDE_S (y == 0 ? UINT64_MAX : y == -1 ? NEGATE(x) : (uint64_t)(x / SAFE_S))
#define REMAIN_S (y == 0 ? UINT64_MAX : y == -1 ? 0 : (uint64_t)(x % SAFE_S))
#define BOTH_SIGNS_BUT_32(KIND, name, U_EXPRESSION, S_EXPRESSION)         \
    KIND(name, u16, uint16_t, U_EXPRESSION) KIND(name, s16, int16_t, S_EXPRESSION) \
    KIND(name, u64, uint64_t, U_EXPRESSION) KIND(name, s64, int64_t, S_EXPRESSION)
BOTH_SIGNS_BUT_32(BINARY, div, DIVIDE_U, DIVIDE_S)
BOTH_SIGNS_BUT_32(BINARY, rem, REMAIN_U, REMAIN_S)

/* 32-bit division in binary64, which vectors support. A true quotient below the next integer stays below it when rounded: they are at
 * least 1 / y > 2^-32 apart, and the rounding error is less than x / y * 2^-53. */
#define QUOTIENT ((uint32_t)(int64_t)((double)x / (double)(y ? y : 1)))
BINARY(div, u32, uint32_t, y ? QUOTIENT : UINT32_MAX)
BINARY(rem, u32, uint32_t, y ? x - QUOTIENT * y : UINT32_MAX)
BINARY(div, s32, int32_t, y ? QUOTIENT : UINT32_MAX)
BINARY(rem, s32, int32_t, y ? (uint32_t)x - QUOTIENT * (uint32_t)y : UINT32_MAX)

BOTH_SIGNS(BINARY, min, x < y ? x : y, x < y ? x : y)
BOTH_SIGNS(BINARY, max, x > y ? x : y, x > y ? x : y)
BOTH_SIGNS(UNARY, abs, x, x < 0 ? NEGATE(x) : (uint64_t)x)
BOTH_SIGNS(TERNARY, sad, (x > y ? x - y : y - x) + z,
           (x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x) + (uint64_t)z)

/* Shift amounts are 32-bit and clamp at the width. */
#define SHIFT(name, suffix, T, BITS, EXPRESSION)                          \
    static void name##_##suffix(struct lanes *l, const struct op *o)      \
    {                                                                     \
        const T *a_ = LANE(T, o->a);                                      \
        const uint32_t *b_ = LANE(uint32_t, o->b);                        \
        LANES_SET(T, o->d, const T x = a_[i]; const uint32_t y = b_[i]; const bool over = y >= BITS; \
                  const uint32_t s = y & (BITS - 1), EXPRESSION);         \
    }
#define SHIFTS(width, U, S)                                               \
    SHIFT(shl, width, U, width, over ? 0 : (U)((uint64_t)x << s))         \
    SHIFT(shr, u##width, U, width, over ? 0 : x >> s)                     \
    SHIFT(shr, s##width, S, width, x >> (over ? width - 1 : s))
SHIFTS(16, uint16_t, int16_t)
SHIFTS(32, uint32_t, int32_t)
SHIFTS(64, uint64_t, int64_t)

static uint32_t funnel(uint32_t low, uint32_t high, uint32_t by, bool left)
{
    uint64_t both = (uint64_t)high << 32 | low;

    return left ? (uint32_t)((both << by) >> 32) : (uint32_t)(both >> by);
}

#define FUNNEL(name, LEFT, AMOUNT) TERNARY(shf, name, uint32_t, funnel(x, y, AMOUNT, LEFT))
FUNNEL(left_wrap, true, z & 31)
FUNNEL(left_clamp, true, z > 32 ? 32 : z)
FUNNEL(right_wrap, false, z & 31)
FUNNEL(right_clamp, false, z > 32 ? 32 : z)

/* The multiplicands are the low 24 bits. */
#define LOW24_U(v) ((uint64_t)((v) & 0xffffffu))
#define LOW24_S(v) ((int64_t)((int32_t)((uint32_t)(v) << 8) >> 8))
BINARY(mul24lo, u32, uint32_t, LOW24_U(x) * LOW24_U(y))
BINARY(mul24lo, s32, uint32_t, (uint64_t)(LOW24_S(x) * LOW24_S(y)))
BINARY(mul24hi, u32, uint32_t, (LOW24_U(x) * LOW24_U(y)) >> 16)
BINARY(mul24hi, s32, uint32_t, (uint64_t)(LOW24_S(x) * LOW24_S(y)) >> 16)
TERNARY(mad24lo, u32, uint32_t, LOW24_U(x) * LOW24_U(y) + z)
TERNARY(mad24lo, s32, uint32_t, (uint64_t)(LOW24_S(x) * LOW24_S(y)) + z)
TERNARY(mad24hi, u32, uint32_t, ((LOW24_U(x) * LOW24_U(y)) >> 16) + z)
TERNARY(mad24hi, s32, uint32_t, ((uint64_t)(LOW24_S(x) * LOW24_S(y)) >> 16) + z)

static uint32_t clamped(int64_t v)
{
    return (uint32_t)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}
BINARY(addsat, s32, int32_t, clamped((int64_t)x + y))
BINARY(subsat, s32, int32_t, clamped((int64_t)x - y))
TERNARY(madsat, s32, int32_t, clamped((((int64_t)x * y) >> 32) + z))
TERNARY(mad24sat, s32, int32_t, clamped(((LOW24_S(x) * LOW24_S(y)) >> 16) + z))

/* Two 16-bit numbers in 32 bits. RELU: negative results become 0. */
#define PAIRS(name, T, EXPRESSION)                                        \
    static uint32_t pair_##name(uint32_t a, uint32_t b)                   \
    {                                                                     \
        uint32_t d = 0;                                                   \
        for (unsigned k = 0; k < 32; k += 16) {                           \
            const T x = (T)(a >> k), y = (T)(b >> k);                     \
            d |= (uint32_t)(uint16_t)(EXPRESSION) << k;                   \
        }                                                                 \
        return d;                                                         \
    }                                                                     \
    BINARY(name, x2, uint32_t, pair_##name(x, y))
#define RELU(v) ((v) > 0 ? (v) : 0)
PAIRS(add_pair, uint16_t, x + y)
PAIRS(min_pair_u, uint16_t, x < y ? x : y)
PAIRS(max_pair_u, uint16_t, x > y ? x : y)
PAIRS(min_pair_s, int16_t, x < y ? x : y)
PAIRS(max_pair_s, int16_t, x > y ? x : y)
PAIRS(min_pair_relu, int16_t, RELU(x < y ? x : y))
PAIRS(max_pair_relu, int16_t, RELU(x > y ? x : y))
BINARY(min_relu, s32, int32_t, RELU(x < y ? x : y))
BINARY(max_relu, s32, int32_t, RELU(x > y ? x : y))

/* fns: the position of the n-th set bit from `base`, upwards, or downwards for n < 0; n = 0: is the bit at base set? */
static uint32_t nth_set(uint32_t mask, uint32_t base, int32_t n)
{
    int32_t step = n < 0 ? -1 : 1, left = n < 0 ? -(n + 1) : n - 1;

    if (base > 31)
        return UINT32_MAX;
    if (n == 0)
        return mask >> base & 1 ? base : UINT32_MAX;
    for (int32_t at = (int32_t)base; at >= 0 && at < 32; at += step) {
        if ((mask >> at & 1) && left-- == 0)
            return (uint32_t)at;
    }
    return UINT32_MAX;
}
TERNARY(fns, b32, uint32_t, nth_set(x, y, (int32_t)z))

/* The result has 32 bits whatever the operand. */
#define COUNTING(name, suffix, T, EXPRESSION)                             \
    static void name##_##suffix(struct lanes *l, const struct op *o)      \
    {                                                                     \
        const T *a_ = LANE(T, o->a);                                      \
        LANES_SET(uint32_t, o->d, const T x = a_[i], EXPRESSION);         \
    }
COUNTING(popc, 32, uint32_t, __builtin_popcount(x))
COUNTING(popc, 64, uint64_t, __builtin_popcountll(x))
COUNTING(clz, 32, uint32_t, x ? __builtin_clz(x) : 32)
COUNTING(clz, 64, uint64_t, x ? __builtin_clzll(x) : 64)

/* The highest bit that differs from the sign; all ones when there is none. `shift`: counted from the top. */
static uint32_t find_bit(uint64_t x, unsigned bits, bool shift)
{
    unsigned at;

    if (!x)
        return UINT32_MAX;
    at = 63 - (unsigned)__builtin_clzll(x);
    return shift ? bits - 1 - at : at;
}
COUNTING(bfind, u32, uint32_t, find_bit(x, 32, o->mode))
COUNTING(bfind, u64, uint64_t, find_bit(x, 64, o->mode))
COUNTING(bfind, s32, int32_t, find_bit((uint32_t)(x < 0 ? ~x : x), 32, o->mode))
COUNTING(bfind, s64, int64_t, find_bit((uint64_t)(x < 0 ? ~x : x), 64, o->mode))

static uint64_t reverse_bits(uint64_t x)
{
    x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
    x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0fu) | (x & 0x0f0f0f0f0f0f0f0fu) << 4;
    return __builtin_bswap64(x);
}
UNARY(brev, 32, uint32_t, reverse_bits(x) >> 32)
UNARY(brev, 64, uint64_t, reverse_bits(x))

/* Position and length of bit fields in 32 bits are the low 8 bits of their operands; in 64 bits all of them count. */
#define FIELD(BITS, v) ((BITS) == 32 ? (v) & 255 : (v) > 255 ? 255 : (v))

static uint64_t extract_field(uint64_t x, unsigned bits, unsigned at, unsigned length, bool is_signed)
{
    unsigned last = at + length > bits ? bits - 1 : at + length - 1;
    bool     fill = is_signed && length && (x >> last & 1);
    uint64_t kept = at < bits ? x >> at : 0;

    length = at >= bits ? 0 : length > bits - at ? bits - at : length;
    if (length < 64)
        kept = (kept & ((1ull << length) - 1)) | (fill ? ~0ull << length : 0);
    return kept;
}
#define EXTRACT(suffix, T, BITS, SIGNED)                                  \
    static void bfe_##suffix(struct lanes *l, const struct op *o)         \
    {                                                                     \
        const T *a_ = LANE(T, o->a);                                      \
        const uint32_t *b_ = LANE(uint32_t, o->b), *c_ = LANE(uint32_t, o->c); \
        LANES_SET(T, o->d, const T x = a_[i], extract_field(x, BITS, FIELD(BITS, b_[i]), FIELD(BITS, c_[i]), SIGNED)); \
    }
EXTRACT(u32, uint32_t, 32, false)
EXTRACT(s32, uint32_t, 32, true)
EXTRACT(u64, uint64_t, 64, false)
EXTRACT(s64, uint64_t, 64, true)

static uint64_t insert_field(uint64_t from, uint64_t into, unsigned bits, unsigned at, unsigned length)
{
    uint64_t field;

    if (length == 0 || at >= bits)
        return into;
    if (length > bits - at)
        length = bits - at;
    field = (length == 64 ? ~0ull : (1ull << length) - 1) << at;
    return (into & ~field) | (from << at & field);
}
#define INSERT(suffix, T)                                                 \
    static void bfi_##suffix(struct lanes *l, const struct op *o)         \
    {                                                                     \
        const T *a_ = LANE(T, o->a), *b_ = LANE(T, o->b);                 \
        const uint32_t *c_ = LANE(uint32_t, o->c), *e_ = LANE(uint32_t, o->e); \
        LANES_SET(T, o->d, , insert_field(a_[i], b_[i], suffix, FIELD(suffix, c_[i]), FIELD(suffix, e_[i]))); \
    }
INSERT(32, uint32_t)
INSERT(64, uint64_t)

/* 16, 32, 64 bits as 0, 1, 2; 3: no such integer. */
static unsigned width_index(unsigned bytes)
{
    return bytes == 2 ? 0 : bytes == 4 ? 1 : bytes == 8 ? 2 : 3;
}

struct signless_row {
    uint8_t opcode;
    op_fn   by_width[3];
};
static const struct signless_row signless[] = {
    {PTX_OP_ADD, BY_WIDTH(add)}, {PTX_OP_SUB, BY_WIDTH(sub)}, {PTX_OP_AND, BY_WIDTH(and)},
    {PTX_OP_OR, BY_WIDTH(or)},   {PTX_OP_XOR, BY_WIDTH(xor)}, {PTX_OP_NOT, BY_WIDTH(not)},
    {PTX_OP_NEG, BY_WIDTH(neg)}, {PTX_OP_CNOT, BY_WIDTH(cnot)}, {PTX_OP_SHL, BY_WIDTH(shl)},
    {PTX_OP_POPC, {NULL, popc_32, popc_64}}, {PTX_OP_CLZ, {NULL, clz_32, clz_64}},
    {PTX_OP_BREV, {NULL, brev_32, brev_64}}, {PTX_OP_BFI, {NULL, bfi_32, bfi_64}},
};

/* [signed][width] */
struct signed_row {
    uint8_t opcode;
    op_fn   by_sign[2][3];
};
static const struct signed_row with_sign[] = {
    {PTX_OP_DIV, BY_SIGN(div)}, {PTX_OP_REM, BY_SIGN(rem)}, {PTX_OP_MIN, BY_SIGN(min)}, {PTX_OP_MAX, BY_SIGN(max)},
    {PTX_OP_ABS, BY_SIGN(abs)}, {PTX_OP_SAD, BY_SIGN(sad)}, {PTX_OP_SHR, BY_SIGN(shr)},
    {PTX_OP_BFE, {{NULL, bfe_u32, bfe_u64}, {NULL, bfe_s32, bfe_s64}}},
    {PTX_OP_BFIND, {{NULL, bfind_u32, bfind_u64}, {NULL, bfind_s32, bfind_s64}}},
};

static op_fn product_handler(const struct ptx_insn *in, bool mad, bool is_signed, unsigned w)
{
    static const op_fn low[2][3] = {BY_WIDTH(mullo), BY_WIDTH(madlo)};
    static const op_fn high[2][2][3] = {BY_SIGN(mulhi), BY_SIGN(madhi)};
    static const op_fn wide[2][2][2] = {{{mulwide_u16, mulwide_u32}, {mulwide_s16, mulwide_s32}},
                                        {{madwide_u16, madwide_u32}, {madwide_s16, madwide_s32}}};

    if (in->part == PTX_LO)
        return low[mad][w];
    if (in->part == PTX_HI)
        return high[mad][is_signed][w];
    return in->part == PTX_WIDE && w < 2 ? wide[mad][is_signed][w] : NULL;
}

static op_fn product24_handler(const struct ptx_insn *in, bool mad, bool is_signed)
{
    static const op_fn low[2][2] = {{mul24lo_u32, mul24lo_s32}, {mad24lo_u32, mad24lo_s32}};
    static const op_fn high[2][2] = {{mul24hi_u32, mul24hi_s32}, {mad24hi_u32, mad24hi_s32}};

    return in->part == PTX_HI ? high[mad][is_signed] : low[mad][is_signed];
}

static op_fn funnel_handler(const struct ptx_insn *in)
{
    bool clamp = in->wrap == PTX_CLAMP;

    return in->action == PTX_DO_LEFT ? (clamp ? shf_left_clamp : shf_left_wrap) : clamp ? shf_right_clamp : shf_right_wrap;
}

static op_fn pair_handler(const struct ptx_insn *in)
{
    bool is_signed = in->type == PTX_S16X2;

    switch ((int)in->opcode) {
    case PTX_OP_ADD: return in->relu ? NULL : add_pair_x2;
    case PTX_OP_MIN: return !is_signed ? (in->relu ? NULL : min_pair_u_x2) : in->relu ? min_pair_relu_x2 : min_pair_s_x2;
    case PTX_OP_MAX: return !is_signed ? (in->relu ? NULL : max_pair_u_x2) : in->relu ? max_pair_relu_x2 : max_pair_s_x2;
    default:         return NULL;
    }
}

/* `.sat` and `.relu` of integers; NULL: there is no such form. */
static op_fn bounded_handler(const struct ptx_insn *in)
{
    if (in->type != PTX_S32)
        return NULL;
    switch ((int)in->opcode) {
    case PTX_OP_ADD:   return in->sat ? addsat_s32 : NULL;
    case PTX_OP_SUB:   return in->sat ? subsat_s32 : NULL;
    case PTX_OP_MAD:   return in->sat && in->part == PTX_HI ? madsat_s32 : NULL;
    case PTX_OP_MAD24: return in->sat && in->part == PTX_HI ? mad24sat_s32 : NULL;
    case PTX_OP_MIN:   return in->relu ? min_relu_s32 : NULL;
    case PTX_OP_MAX:   return in->relu ? max_relu_s32 : NULL;
    default:           return NULL;
    }
}

static op_fn pred_handler(const struct ptx_insn *in)
{
    switch ((int)in->opcode) {
    case PTX_OP_AND: return and_8;
    case PTX_OP_OR:  return or_8;
    case PTX_OP_XOR: return xor_8;
    case PTX_OP_NOT: return not_8;
    default:         return NULL;
    }
}

op_fn int_handler(const struct ptx_insn *in)
{
    bool     is_signed = lane_type_is_signed(lane_type_of((enum ptx_type)in->type));
    unsigned w = width_index(ptx_type_bytes((enum ptx_type)in->type));

    if (in->type == PTX_PRED)
        return pred_handler(in);
    if (in->type == PTX_U16X2 || in->type == PTX_S16X2)
        return in->sat ? NULL : pair_handler(in);
    if (in->sat || in->relu)
        return bounded_handler(in);
    if (w > 2)
        return NULL;
    switch ((int)in->opcode) {
    case PTX_OP_MUL:   return product_handler(in, false, is_signed, w);
    case PTX_OP_MAD:   return product_handler(in, true, is_signed, w);
    case PTX_OP_MUL24: return w == 1 ? product24_handler(in, false, is_signed) : NULL;
    case PTX_OP_MAD24: return w == 1 ? product24_handler(in, true, is_signed) : NULL;
    case PTX_OP_FNS:   return w == 1 ? fns_b32 : NULL;
    case PTX_OP_SHF:   return w == 1 ? funnel_handler(in) : NULL;
    default: break;
    }
    for (size_t i = 0; i < COUNT(signless); i++) {
        if (signless[i].opcode == in->opcode)
            return signless[i].by_width[w];
    }
    for (size_t i = 0; i < COUNT(with_sign); i++) {
        if (with_sign[i].opcode == in->opcode)
            return with_sign[i].by_sign[is_signed][w];
    }
    return NULL;
}
