/* Comparisons (setp, set), selections (selp, slct) and moves. */
#include "device/cpu/interp/ops/ops.h"

/* One handler per comparison and type; the combination with a third predicate is a step of its own (combine below). */
#define COMPARE(name, suffix, T, EXPRESSION)                              \
    static void compare_##name##_##suffix(struct lanes *l, const struct op *o) \
    {                                                                     \
        const T *a_ = LANE(T, o->a), *b_ = LANE(T, o->b);                 \
        LANES_SET(uint8_t, o->d, const T x = a_[i]; const T y = b_[i], EXPRESSION); \
    }
#define ORDERED(suffix, T)                                                \
    COMPARE(eq, suffix, T, x == y) COMPARE(ne, suffix, T, x != y)         \
    COMPARE(lt, suffix, T, x < y) COMPARE(le, suffix, T, x <= y)          \
    COMPARE(gt, suffix, T, x > y) COMPARE(ge, suffix, T, x >= y)
ORDERED(u8, uint8_t)
ORDERED(u16, uint16_t)
ORDERED(s16, int16_t)
ORDERED(u32, uint32_t)
ORDERED(s32, int32_t)
ORDERED(u64, uint64_t)
ORDERED(s64, int64_t)

/* The plain forms are false when an operand is NaN, the ..u forms true. C's != is true for NaN: ne needs the test. */
#define COMPARE_F(name, suffix, T, V, LOAD, EXPRESSION)                   \
    static void compare_##name##_##suffix(struct lanes *l, const struct op *o) \
    {                                                                     \
        const T *a_ = LANE(T, o->a), *b_ = LANE(T, o->b);                 \
        LANES_SET(uint8_t, o->d, const V x = (V)LOAD(a_[i]); const V y = (V)LOAD(b_[i]), EXPRESSION); \
    }
#define SAME(v) (v)
#define EITHER_NAN (x != x || y != y)
#define EACH_FLOAT_COMPARISON(KIND)                                       \
    KIND(eq, x == y) KIND(ne, x < y || x > y)                             \
    KIND(lt, x < y) KIND(le, x <= y) KIND(gt, x > y) KIND(ge, x >= y)     \
    KIND(equ, !(x < y || x > y)) KIND(neu, x != y)                        \
    KIND(ltu, !(x >= y)) KIND(leu, !(x > y)) KIND(gtu, !(x <= y)) KIND(geu, !(x < y)) \
    KIND(num, !EITHER_NAN) KIND(nan, EITHER_NAN)
#define F32(name, EXPRESSION) COMPARE_F(name, f32, float, float, SAME, EXPRESSION)
#define F32_FTZ(name, EXPRESSION) COMPARE_F(name, f32_ftz, float, float, flush_f32, EXPRESSION)
#define F64(name, EXPRESSION) COMPARE_F(name, f64, double, double, SAME, EXPRESSION)
#define F16(name, EXPRESSION) COMPARE_F(name, f16, uint16_t, double, f32_from_f16, EXPRESSION)
#define FLUSHED_F16(h) f32_from_f16((uint16_t)(((h) & 0x7c00) ? (h) : ((h) & 0x8000)))
#define F16_FTZ(name, EXPRESSION) COMPARE_F(name, f16_ftz, uint16_t, double, FLUSHED_F16, EXPRESSION)
#define BF16(name, EXPRESSION) COMPARE_F(name, bf16, uint16_t, double, f32_from_bf16, EXPRESSION)
EACH_FLOAT_COMPARISON(F32)
EACH_FLOAT_COMPARISON(F32_FTZ)
EACH_FLOAT_COMPARISON(F64)
EACH_FLOAT_COMPARISON(F16)
EACH_FLOAT_COMPARISON(F16_FTZ)
EACH_FLOAT_COMPARISON(BF16)

/* Indexed by enum compare; unsigned and signed names of the same order share an entry. */
#define INT_ROW(s) {compare_eq_##s, compare_ne_##s, compare_lt_##s, compare_le_##s, compare_gt_##s, compare_ge_##s}
#define FLOAT_ROW(s)                                                                                             \
    {compare_eq_##s, compare_ne_##s, compare_lt_##s, compare_le_##s, compare_gt_##s, compare_ge_##s, compare_equ_##s, \
     compare_neu_##s, compare_ltu_##s, compare_leu_##s, compare_gtu_##s, compare_geu_##s, compare_num_##s, compare_nan_##s}
static const op_fn table[LANE_TYPES][COMPARES] = {
    [LANE_PRED] = INT_ROW(u8),  [LANE_U16] = INT_ROW(u16), [LANE_S16] = INT_ROW(s16), [LANE_U32] = INT_ROW(u32),
    [LANE_S32] = INT_ROW(s32),  [LANE_U64] = INT_ROW(u64), [LANE_S64] = INT_ROW(s64), [LANE_F16] = FLOAT_ROW(f16),
    [LANE_BF16] = FLOAT_ROW(bf16), [LANE_F32] = FLOAT_ROW(f32), [LANE_F64] = FLOAT_ROW(f64),
};
static const op_fn table_ftz[COMPARES] = FLOAT_ROW(f32_ftz), table_f16_ftz[COMPARES] = FLOAT_ROW(f16_ftz);

op_fn compare_handler(enum lane_type type, enum compare how, bool ftz)
{
    if (ftz && (type == LANE_F32 || type == LANE_F16))
        return (type == LANE_F32 ? table_ftz : table_f16_ftz)[how];
    return table[type][how];
}

/* mode 1: a is negated first */
#define COMBINE(name, OP)                                                                  \
    void combine_##name(struct lanes *l, const struct op *o)                               \
    {                                                                                      \
        const uint8_t *a_ = LANE(uint8_t, o->a), *c_ = LANE(uint8_t, o->c);                \
        LANES_SET(uint8_t, o->d, , (a_[i] ^ o->mode) OP c_[i]);                            \
    }
COMBINE(and, &)
COMBINE(or, |)
COMBINE(xor, ^)

void negate_pred(struct lanes *l, const struct op *o)
{
    const uint8_t *a_ = LANE(uint8_t, o->a);

    LANES_SET(uint8_t, o->d, , a_[i] ^ 1);
}

/* set: the predicate at `a` becomes all ones, or 1.0 of the width's float type (immediate holds the bits). */
#define SET(bits)                                                         \
    static void set_value_##bits(struct lanes *l, const struct op *o)            \
    {                                                                     \
        const uint8_t *a_ = LANE(uint8_t, o->a);                          \
        LANES_SET(uint##bits##_t, o->d, , a_[i] ? (uint##bits##_t)o->immediate : 0); \
    }                                                                     \
    static void select_##bits(struct lanes *l, const struct op *o)               \
    {                                                                     \
        const uint##bits##_t *a_ = LANE(uint##bits##_t, o->a), *b_ = LANE(uint##bits##_t, o->b); \
        const uint8_t *c_ = LANE(uint8_t, o->c), flip = o->mode;          \
        LANES_SET(uint##bits##_t, o->d, , (c_[i] ^ flip) ? a_[i] : b_[i]); \
    }                                                                     \
    static void move_##bits(struct lanes *l, const struct op *o)                 \
    {                                                                     \
        const uint##bits##_t *a_ = LANE(uint##bits##_t, o->a);            \
        LANES_SET(uint##bits##_t, o->d, , a_[i]);                         \
    }
SET(8)
SET(16)
SET(32)
SET(64)

/* Between registers of different widths: cut off, or zero- or sign-extended. */
#define RESIZE(from, to, F, T)                                            \
    static void resize_##from##_##to(struct lanes *l, const struct op *o) \
    {                                                                     \
        const F *a_ = LANE(F, o->a);                                      \
        LANES_SET(T, o->d, , (T)a_[i]);                                   \
    }
RESIZE(u8, 16, uint8_t, uint16_t)
RESIZE(u8, 32, uint8_t, uint32_t)
RESIZE(u8, 64, uint8_t, uint64_t)
RESIZE(s8, 16, int8_t, uint16_t)
RESIZE(s8, 32, int8_t, uint32_t)
RESIZE(s8, 64, int8_t, uint64_t)
RESIZE(u16, 8, uint16_t, uint8_t)
RESIZE(u16, 32, uint16_t, uint32_t)
RESIZE(u16, 64, uint16_t, uint64_t)
RESIZE(s16, 32, int16_t, uint32_t)
RESIZE(s16, 64, int16_t, uint64_t)
RESIZE(u32, 8, uint32_t, uint8_t)
RESIZE(u32, 16, uint32_t, uint16_t)
RESIZE(u32, 64, uint32_t, uint64_t)
RESIZE(s32, 64, int32_t, uint64_t)
RESIZE(u64, 8, uint64_t, uint8_t)
RESIZE(u64, 16, uint64_t, uint16_t)
RESIZE(u64, 32, uint64_t, uint32_t)

/* [log2 of from][log2 of to] */
op_fn resize_handler(unsigned from, unsigned to, bool is_signed)
{
    static const op_fn of_unsigned[4][4] = {{move_8, resize_u8_16, resize_u8_32, resize_u8_64},
                                            {resize_u16_8, move_16, resize_u16_32, resize_u16_64},
                                            {resize_u32_8, resize_u32_16, move_32, resize_u32_64},
                                            {resize_u64_8, resize_u64_16, resize_u64_32, move_64}};
    static const op_fn of_signed[4][4] = {{move_8, resize_s8_16, resize_s8_32, resize_s8_64},
                                          {resize_u16_8, move_16, resize_s16_32, resize_s16_64},
                                          {resize_u32_8, resize_u32_16, move_32, resize_s32_64},
                                          {resize_u64_8, resize_u64_16, resize_u64_32, move_64}};
    unsigned f = (unsigned)__builtin_ctz(from), t = (unsigned)__builtin_ctz(to);

    return f > 3 || t > 3 ? NULL : is_signed ? of_signed[f][t] : of_unsigned[f][t];
}

/* The moves and selections of a width; NULL for widths that no register has. */
static op_fn by_width(unsigned bytes, op_fn w8, op_fn w16, op_fn w32, op_fn w64)
{
    return bytes == 1 ? w8 : bytes == 2 ? w16 : bytes == 4 ? w32 : bytes == 8 ? w64 : NULL;
}

op_fn move_handler(unsigned bytes)
{
    return by_width(bytes, move_8, move_16, move_32, move_64);
}

op_fn select_handler(unsigned bytes)
{
    return by_width(bytes, select_8, select_16, select_32, select_64);
}

op_fn set_value_handler(unsigned bytes)
{
    return by_width(bytes, set_value_8, set_value_16, set_value_32, set_value_64);
}
