/* Atomic operations, lane after lane: real host atomics, since other blocks run on other threads. */
#include "device/cpu/interp/ops/access.h"

/* Sequentially consistent, which covers all that PTX asks for: relaxed, acquire and release. */
#define ORDER __ATOMIC_SEQ_CST

/* surveyed: all addresses are in bounds, and in memory that lanes share. */
#define BEGIN(T)                                                          \
    const uint64_t *address = LANE(uint64_t, o->a);                       \
    const T        *b_ = LANE(T, o->b);                                   \
    T              *d_ = LANE(T, o->d);                                   \
    struct access   at;                                                   \
    const enum access_pattern pattern = survey_access(l, o, sizeof(T), &at); \
    const bool      surveyed = pattern != ASTRAY && pattern != LANEWISE;  \
    enum op_space   space = (enum op_space)o->mode;
#define POINTER(T) \
    (surveyed ? ACCESSED(T, i) : (T *)(void *)lane_pointer(l, space, address[i] + (uint64_t)o->immediate, sizeof(T), i))
/* Only this host thread accesses that memory: no bus lock is needed. */
#define OURS (surveyed && ((at.origin == l->run->shared && !l->run->cluster) || !l->run->grid->contended))
/* All of [low, high) use one address: they access it at one instant, in their order. */
#define TOGETHER (pattern == SAME)

/* One host instruction per access. NEW is associative, so operands can be combined before the access. */
#define DIRECT(name, suffix, T, CALL, NEW)                                \
    static void all_##name##_##suffix(T *p, const T *b, T *d, uint32_t count) \
    {                                                                     \
        T x = b[0], y;                                                    \
        for (uint32_t i = 1; i < count; i++) {                            \
            y = b[i];                                                     \
            x = (T)(NEW);                                                 \
        }                                                                 \
        x = CALL(p, x, ORDER);                                            \
        for (uint32_t i = 0; i < count; i++) {                            \
            y = b[i];                                                     \
            d[i] = x;                                                     \
            x = (T)(NEW);                                                 \
        }                                                                 \
    }                                                                     \
    static void atom_##name##_##suffix(struct lanes *l, const struct op *o) \
    {                                                                     \
        BEGIN(T)                                                          \
        if (OURS)                                                         \
            LANES_EACH(T *p = ACCESSED(T, i); const T x = *p; const T y = b_[i]; *p = (T)(NEW); d_[i] = x); \
        else if (TOGETHER)                                                \
            all_##name##_##suffix((T *)(void *)at.first, b_ + l->low, d_ + l->low, l->high - l->low); \
        else                                                              \
            LANES_EACH(T *p = POINTER(T); d_[i] = CALL(p, b_[i], ORDER)); \
    }
#define DIRECT_SET(suffix, T)                                             \
    DIRECT(add, suffix, T, __atomic_fetch_add, x + y)                     \
    DIRECT(and, suffix, T, __atomic_fetch_and, x & y)                     \
    DIRECT(or, suffix, T, __atomic_fetch_or, x | y)                       \
    DIRECT(xor, suffix, T, __atomic_fetch_xor, x ^ y)                     \
    DIRECT(exch, suffix, T, __atomic_exchange_n, y)
DIRECT_SET(32, uint32_t)
DIRECT_SET(64, uint64_t)
DIRECT(exch, 16, uint16_t, __atomic_exchange_n, y)

/* By compare and swap of the bits: x is the old value, y the operand. V is the value's type, T its bits. */
#define LOOPED(name, suffix, T, V, OF_BITS, TO_BITS, EXPRESSION)          \
    static inline T next_##name##_##suffix(T old, T operand)              \
    {                                                                     \
        V x = OF_BITS(old), y = OF_BITS(operand);                         \
        return TO_BITS(EXPRESSION);                                       \
    }                                                                     \
    /* Of several operands, one after the other. */                       \
    static void all_##name##_##suffix(T *p, const T *b, T *d, uint32_t count) \
    {                                                                     \
        T old = __atomic_load_n(p, __ATOMIC_RELAXED), next;               \
        do {                                                              \
            next = old;                                                   \
            for (uint32_t i = 0; i < count; i++)                          \
                next = next_##name##_##suffix(next, b[i]);                \
        } while (!__atomic_compare_exchange_n(p, &old, next, false, ORDER, __ATOMIC_RELAXED)); \
        for (uint32_t i = 0; i < count; i++) {                            \
            next = next_##name##_##suffix(old, b[i]);                     \
            d[i] = old;                                                   \
            old = next;                                                   \
        }                                                                 \
    }                                                                     \
    static void atom_##name##_##suffix(struct lanes *l, const struct op *o) \
    {                                                                     \
        BEGIN(T)                                                          \
        if (OURS)                                                         \
            LANES_EACH(T *p = ACCESSED(T, i); const T old = *p; *p = next_##name##_##suffix(old, b_[i]); d_[i] = old); \
        else if (TOGETHER)                                                \
            all_##name##_##suffix((T *)(void *)at.first, b_ + l->low, d_ + l->low, l->high - l->low); \
        else                                                              \
            LANES_EACH(T *p = POINTER(T); all_##name##_##suffix(p, b_ + i, d_ + i, 1)); \
    }
#define TO_U32(v) ((uint32_t)(v))
#define TO_S32(v) ((int32_t)(v))
#define TO_U64(v) ((uint64_t)(v))
#define TO_S64(v) ((int64_t)(v))
#define HALF_BITS(v) f16_from_f32(v, ROUND_NEAREST)
#define MIN_OF (x < y ? x : y)
#define MAX_OF (x > y ? x : y)
LOOPED(min, u32, uint32_t, uint32_t, TO_U32, TO_U32, MIN_OF)
LOOPED(max, u32, uint32_t, uint32_t, TO_U32, TO_U32, MAX_OF)
LOOPED(min, s32, uint32_t, int32_t, TO_S32, TO_U32, MIN_OF)
LOOPED(max, s32, uint32_t, int32_t, TO_S32, TO_U32, MAX_OF)
LOOPED(min, u64, uint64_t, uint64_t, TO_U64, TO_U64, MIN_OF)
LOOPED(max, u64, uint64_t, uint64_t, TO_U64, TO_U64, MAX_OF)
LOOPED(min, s64, uint64_t, int64_t, TO_S64, TO_U64, MIN_OF)
LOOPED(max, s64, uint64_t, int64_t, TO_S64, TO_U64, MAX_OF)
LOOPED(inc, u32, uint32_t, uint32_t, TO_U32, TO_U32, x >= y ? 0 : x + 1)
LOOPED(dec, u32, uint32_t, uint32_t, TO_U32, TO_U32, x == 0 || x > y ? y : x - 1)
LOOPED(add, f32, uint32_t, float, f32_of_bits, bits_of_f32, x + y)
LOOPED(add, f64, uint64_t, double, f64_of_bits, bits_of_f64, x + y)
LOOPED(add, f16, uint16_t, float, f32_from_f16, HALF_BITS, x + y)

/* A vector of two halves in 32 bits. PTX does not require that both elements are added at one instant. */
static uint32_t add_halves(uint32_t x, uint32_t y)
{
    uint32_t low = f16_from_f32(f32_from_f16((uint16_t)x) + f32_from_f16((uint16_t)y), ROUND_NEAREST);
    uint32_t high = f16_from_f32(f32_from_f16((uint16_t)(x >> 16)) + f32_from_f16((uint16_t)(y >> 16)), ROUND_NEAREST);

    return high << 16 | low;
}
#define BRAIN_BITS(v) bf16_from_f64(v, ROUND_NEAREST)
#define BRAIN(h) ((double)f32_from_bf16(h))
LOOPED(add, bf16, uint16_t, double, BRAIN, BRAIN_BITS, fma_odd(x, 1, y))

static uint32_t add_brains(uint32_t x, uint32_t y)
{
    uint32_t low = BRAIN_BITS(fma_odd(BRAIN((uint16_t)x), 1, BRAIN((uint16_t)y)));
    uint32_t high = BRAIN_BITS(fma_odd(BRAIN((uint16_t)(x >> 16)), 1, BRAIN((uint16_t)(y >> 16))));

    return high << 16 | low;
}
LOOPED(add, bf16x2, uint32_t, uint32_t, TO_U32, TO_U32, add_brains(x, y))
LOOPED(add, f16x2, uint32_t, uint32_t, TO_U32, TO_U32, add_halves(x, y))

#define SWAP(suffix, T)                                                   \
    static void atom_cas_##suffix(struct lanes *l, const struct op *o)    \
    {                                                                     \
        BEGIN(T)                                                          \
        const T *c_ = LANE(T, o->c);                                      \
        LANES_EACH(T *p = POINTER(T); T old = b_[i];                      \
                   __atomic_compare_exchange_n(p, &old, c_[i], false, ORDER, ORDER); d_[i] = old); \
    }
SWAP(16, uint16_t)
SWAP(32, uint32_t)
SWAP(64, uint64_t)

struct atom_row {
    enum atom_op   op;
    enum atom_type type; /* bits only, where the operation does not care */
    op_fn          run;
};
static const struct atom_row atoms[] = {
    {ATOM_ADD, ATOM_B32, atom_add_32},   {ATOM_ADD, ATOM_S32, atom_add_32},   {ATOM_ADD, ATOM_B64, atom_add_64},
    {ATOM_ADD, ATOM_S64, atom_add_64},   {ATOM_ADD, ATOM_F32, atom_add_f32},  {ATOM_ADD, ATOM_F64, atom_add_f64},
    {ATOM_ADD, ATOM_F16, atom_add_f16},  {ATOM_ADD, ATOM_F16X2, atom_add_f16x2},
    {ATOM_ADD, ATOM_BF16, atom_add_bf16}, {ATOM_ADD, ATOM_BF16X2, atom_add_bf16x2},
    {ATOM_AND, ATOM_B32, atom_and_32},   {ATOM_AND, ATOM_B64, atom_and_64},   {ATOM_OR, ATOM_B32, atom_or_32},
    {ATOM_OR, ATOM_B64, atom_or_64},     {ATOM_XOR, ATOM_B32, atom_xor_32},   {ATOM_XOR, ATOM_B64, atom_xor_64},
    {ATOM_EXCH, ATOM_B16, atom_exch_16}, {ATOM_EXCH, ATOM_B32, atom_exch_32}, {ATOM_EXCH, ATOM_B64, atom_exch_64},
    {ATOM_CAS, ATOM_B16, atom_cas_16},   {ATOM_CAS, ATOM_B32, atom_cas_32},   {ATOM_CAS, ATOM_B64, atom_cas_64},
    {ATOM_MIN, ATOM_B32, atom_min_u32},  {ATOM_MAX, ATOM_B32, atom_max_u32},  {ATOM_MIN, ATOM_S32, atom_min_s32},
    {ATOM_MAX, ATOM_S32, atom_max_s32},  {ATOM_MIN, ATOM_B64, atom_min_u64},  {ATOM_MAX, ATOM_B64, atom_max_u64},
    {ATOM_MIN, ATOM_S64, atom_min_s64},  {ATOM_MAX, ATOM_S64, atom_max_s64},  {ATOM_INC, ATOM_B32, atom_inc_u32},
    {ATOM_DEC, ATOM_B32, atom_dec_u32},
};

op_fn atom_handler(enum atom_op op, enum atom_type type)
{
    for (size_t i = 0; i < COUNT(atoms); i++) {
        if (atoms[i].op == op && atoms[i].type == type)
            return atoms[i].run;
    }
    return NULL;
}

void check_alignment(struct lanes *l, const struct op *o)
{
    const uint64_t *address = LANE(uint64_t, o->a);

    LANES_EACH(lane_pointer(l, (enum op_space)o->mode, address[i] + (uint64_t)o->immediate, o->width, i));
}

void fence_acquire(struct lanes *l, const struct op *o)
{
    (void)l;
    (void)o;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

void fence_release(struct lanes *l, const struct op *o)
{
    (void)l;
    (void)o;
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

void fence_all(struct lanes *l, const struct op *o)
{
    (void)l;
    (void)o;
    __sync_synchronize();
}
