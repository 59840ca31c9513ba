/* Elementwise kernels as shaders: the numbers of elementwise.cu, in f16, f32, i32, u32, f64, i64 and u64. Those of f16 are computed in f32 and rounded once.
 *
 * Method: a thread takes an element at a time; a grid smaller than the work goes round again. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#if defined(SINGLE)
#include "real.glsl"
#include "circular.glsl"
#elif defined(T_f64)
#include "real64.glsl"
#include "circular64.glsl"
#endif

/* ---- operations: what they are made of, and the expression ---- */

#if defined(KERNEL_fill)
#define FILL
#elif defined(KERNEL_iota)
#define IOTA
#elif defined(KERNEL_axpy)
#define AXPY
#elif defined(KERNEL_scale)
#define SCALE
#elif defined(KERNEL_clip)
#define CLIP
#elif defined(KERNEL_where)
#define WHERE
#elif defined(KERNEL_copy)
#define UNARY_OF x
#elif defined(KERNEL_neg)
#define UNARY_OF -x
#elif defined(KERNEL_abs)
#define UNARY_OF (x < T(0) ? -x : x == T(0) ? T(0) : x)
#elif defined(KERNEL_sign)
#define UNARY_OF (is_nan(x) ? x : x == T(0) ? T(0) : x > T(0) ? T(1) : T(-1)) /* a function sign() may keep the sign of 0 */
#elif defined(KERNEL_square)
#define UNARY_OF x * x
#elif defined(KERNEL_relu)
#define UNARY_OF (x < T(0) ? T(0) : x)
#elif defined(KERNEL_reciprocal)
#define UNARY_OF 1.0 / x
#elif defined(KERNEL_sqrt)
#define UNARY_OF sqrt(x)
#elif defined(KERNEL_rsqrt)
#define UNARY_OF 1.0 / sqrt(x)
#elif defined(KERNEL_exp)
#define UNARY_OF exact_exp(x)
#elif defined(KERNEL_log)
#define UNARY_OF exact_log(x)
#elif defined(KERNEL_cbrt)
#define UNARY_OF exact_cbrt(x)
#elif defined(KERNEL_exp2)
#define UNARY_OF exact_exp2(x)
#elif defined(KERNEL_expm1)
#define UNARY_OF exact_expm1(x)
#elif defined(KERNEL_log2)
#define UNARY_OF exact_log2(x)
#elif defined(KERNEL_log10)
#define UNARY_OF exact_log10(x)
#elif defined(KERNEL_log1p)
#define UNARY_OF exact_log1p(x)
#elif defined(KERNEL_sin)
#define UNARY_OF exact_sin(x)
#elif defined(KERNEL_cos)
#define UNARY_OF exact_cos(x)
#elif defined(KERNEL_tan)
#define UNARY_OF exact_tan(x)
#elif defined(KERNEL_asin)
#define UNARY_OF exact_asin(x)
#elif defined(KERNEL_acos)
#define UNARY_OF exact_acos(x)
#elif defined(KERNEL_atan)
#define UNARY_OF exact_atan(x)
#elif defined(KERNEL_sinh)
#define UNARY_OF exact_sinh(x)
#elif defined(KERNEL_cosh)
#define UNARY_OF exact_cosh(x)
#elif defined(KERNEL_tanh)
#define UNARY_OF exact_tanh(x)
#elif defined(KERNEL_asinh)
#define UNARY_OF exact_asinh(x)
#elif defined(KERNEL_acosh)
#define UNARY_OF exact_acosh(x)
#elif defined(KERNEL_atanh)
#define UNARY_OF exact_atanh(x)
#elif defined(KERNEL_erf)
#define UNARY_OF exact_erf(x)
#elif defined(KERNEL_gelu)
#define UNARY_OF 0.5 * x * exact_erfc(x * -0.70710678118654752440)
#elif defined(KERNEL_sigmoid)
#define UNARY_OF T(1) / (T(1) + exact_exp(-x))
#elif defined(KERNEL_silu)
#define UNARY_OF x / (T(1) + exact_exp(-x))
#elif defined(KERNEL_floor)
#define UNARY_OF floor(x)
#elif defined(KERNEL_ceil)
#define UNARY_OF ceil(x)
#elif defined(KERNEL_round)
#define UNARY_OF roundEven(x)
#elif defined(KERNEL_trunc)
#define UNARY_OF trunc(x)
#elif defined(KERNEL_bit_not)
#define UNARY_OF ~x
#elif defined(KERNEL_isnan)
#define TEST_OF is_nan(x)
#elif defined(KERNEL_isinf)
#define TEST_OF !is_nan(x) && !is_finite(x)
#elif defined(KERNEL_isfinite)
#define TEST_OF is_finite(x)
#elif defined(KERNEL_not)
#define TEST_OF x == T(0)
#elif defined(KERNEL_add)
#define BINARY_OF a + b
#elif defined(KERNEL_sub)
#define BINARY_OF a - b
#elif defined(KERNEL_mul)
#define BINARY_OF a * b
#elif defined(KERNEL_div)
#if defined(SINGLE)
#define BINARY_OF quotient(a, b)
#else
#define BINARY_OF a / b
#endif
#elif defined(KERNEL_floor_div)
#define BINARY_OF quotient_down(a, b)
#elif defined(KERNEL_mod)
#define BINARY_OF remainder_of(a, b)
#elif defined(KERNEL_min)
#define BINARY_OF (is_nan(a) || a < b ? a : b)
#elif defined(KERNEL_max)
#define BINARY_OF (is_nan(a) || a > b ? a : b)
#elif defined(KERNEL_pow)
#define BINARY_OF exact_pow(a, b)
#elif defined(KERNEL_hypot)
#define BINARY_OF exact_hypot(a, b)
#elif defined(KERNEL_atan2)
#define BINARY_OF exact_atan2(a, b)
#elif defined(KERNEL_copysign)
#define BINARY_OF with_sign_of(a, b)
#elif defined(KERNEL_bit_and)
#define BINARY_OF a & b
#elif defined(KERNEL_bit_or)
#define BINARY_OF a | b
#elif defined(KERNEL_bit_xor)
#define BINARY_OF a ^ b
#elif defined(KERNEL_shl)
#define BINARY_OF (BITS(b) < BITS(BYTES * 8) ? a << uint(b) : T(0))
#elif defined(KERNEL_shr)
#define BINARY_OF (BITS(b) < BITS(BYTES * 8) ? a >> uint(b) : a < T(0) ? T(-1) : T(0))
#elif defined(KERNEL_eq)
#define COMPARE_OF a == b
#elif defined(KERNEL_ne)
#define COMPARE_OF is_nan(a) || is_nan(b) || a != b
#elif defined(KERNEL_lt)
#define COMPARE_OF a < b
#elif defined(KERNEL_le)
#define COMPARE_OF a <= b
#elif defined(KERNEL_gt)
#define COMPARE_OF a > b
#elif defined(KERNEL_ge)
#define COMPARE_OF a >= b
#elif defined(KERNEL_and)
#define COMPARE_OF is_true(a) && is_true(b)
#elif defined(KERNEL_or)
#define COMPARE_OF is_true(a) || is_true(b)
#elif defined(KERNEL_xor)
#define COMPARE_OF is_true(a) != is_true(b)
#elif defined(KERNEL_cast_f16)
#define CAST_TO uint16_t
#define CAST_OF uint16_t(half_store(TO_SINGLE(x)))
#elif defined(KERNEL_cast_f32)
#define CAST_TO float
#define CAST_OF float(x)
#elif defined(KERNEL_cast_f64)
#define CAST_TO double
#define CAST_OF double(x)
#elif defined(KERNEL_cast_i32)
#define CAST_TO int
#define CAST_OF WHOLE(int, -2147483648.0, 2147483648.0, -2147483647 - 1, 2147483647)
#elif defined(KERNEL_cast_u32)
#define CAST_TO uint
#define CAST_OF WHOLE(uint, 0.0, 4294967296.0, 0u, 0xffffffffu)
#elif defined(KERNEL_cast_i64)
#define CAST_TO int64_t
#define CAST_OF WHOLE(int64_t, -9223372036854775808.0, 9223372036854775808.0, -9223372036854775807L - 1L, 9223372036854775807L)
#elif defined(KERNEL_cast_u64)
#define CAST_TO uint64_t
#define CAST_OF WHOLE(uint64_t, 0.0, 18446744073709551616.0, 0UL, 0xffffffffffffffffUL)
#elif defined(KERNEL_cast_bool)
#define TEST_OF is_true(x)
#endif

bool is_true(T x) { return is_nan(x) || x != T(0); }

#if defined(SINGLE)
float with_sign_of(float a, float b) { return uintBitsToFloat(floatBitsToUint(a) & 0x7fffffffu | floatBitsToUint(b) & 0x80000000u); }
#elif defined(T_f64)
double with_sign_of(double a, double b)
{
    uvec2 bits = unpackDouble2x32(a);
    return packDouble2x32(uvec2(bits.x, bits.y & 0x7fffffffu | unpackDouble2x32(b).y & 0x80000000u));
}
#else
T quotient_down(T a, T b)
{
    if (b == T(0))
        return T(0);
#if defined(SIGNED)
    if (b == T(-1))
        return T(BITS(0) - BITS(a));
    BITS q = (a < T(0) ? BITS(0) - BITS(a) : BITS(a)) / (b < T(0) ? BITS(0) - BITS(b) : BITS(b)); /* of negative numbers GLSL says nothing */
    bool less = (a < T(0)) != (b < T(0));
    T    down = less ? T(BITS(0) - q) : T(q);
    return less && down * b != a ? down - T(1) : down;
#else
    return a / b;
#endif
}

T remainder_of(T a, T b)
{
#if defined(SIGNED)
    return b == T(0) || b == T(-1) ? T(0) : a - quotient_down(a, b) * b;
#else
    return b == T(0) ? T(0) : a - a / b * b;
#endif
}
#endif

#if defined(KERNEL_cast_f16) && defined(T_f64)
#include "half64.glsl"
#define TO_SINGLE(x) half_rounded_once(x)
#else
#define TO_SINGLE(x) float(x)
#endif

/* The nearest limit where it does not fit; NaN becomes 0. */
#if defined(REAL)
#define WHOLE(to, low, high, least, most) (is_nan(x) ? to(0) : x >= high ? most : x <= low ? least : to(x))
#else
#define WHOLE(to, low, high, least, most) to(x)
#endif

/* ---- parameters, and one element ---- */

#if defined(FILL)
layout(binding = 0) writeonly buffer Out { STORED o[]; };
layout(push_constant) uniform Push { uint64_t n; GIVEN value; };
void element(uint i) { o[i] = TO_STORED(VALUE_OF(value)); }
#elif defined(IOTA)
layout(binding = 0) writeonly buffer Out { STORED o[]; };
layout(push_constant) uniform Push { uint64_t n; GIVEN start, step; };
void element(uint i) { o[i] = TO_STORED(VALUE_OF(start) + T(i) * VALUE_OF(step)); }
#elif defined(AXPY)
layout(binding = 0) readonly buffer X { STORED x[]; };
layout(binding = 1) buffer Y { STORED y[]; };
layout(push_constant) uniform Push { GIVEN alpha; uint64_t n; };
void element(uint i) { y[i] = TO_STORED(VALUE_OF(alpha) * LOADED(x[i]) + LOADED(y[i])); }
#elif defined(SCALE)
layout(binding = 0) readonly buffer X { STORED x[]; };
layout(binding = 1) writeonly buffer Out { STORED o[]; };
layout(push_constant) uniform Push { GIVEN alpha, beta; uint64_t n; };
void element(uint i) { o[i] = TO_STORED(VALUE_OF(alpha) * LOADED(x[i]) + VALUE_OF(beta)); }
#elif defined(CLIP)
layout(binding = 0) readonly buffer X { STORED x[]; };
layout(binding = 1) writeonly buffer Out { STORED o[]; };
layout(push_constant) uniform Push { GIVEN low, high; uint64_t n; };
void element(uint i)
{
    T v = LOADED(x[i]), least = VALUE_OF(low), most = VALUE_OF(high);
    o[i] = TO_STORED(is_nan(v) ? v : v < least ? least : v > most ? most : v);
}
#elif defined(WHERE)
layout(binding = 0) readonly buffer Condition { uint8_t condition[]; };
layout(binding = 1) readonly buffer A { STORED a[]; };
layout(binding = 2) readonly buffer B { STORED b[]; };
layout(binding = 3) writeonly buffer Out { STORED o[]; };
layout(push_constant) uniform Push { uint64_t n; };
void element(uint i) { o[i] = TO_STORED(uint(condition[i]) != 0u ? LOADED(a[i]) : LOADED(b[i])); }
#elif defined(BINARY_OF) || defined(COMPARE_OF)
layout(binding = 0) readonly buffer A { STORED left[]; };
layout(binding = 1) readonly buffer B { STORED right[]; };
layout(push_constant) uniform Push { uint64_t n; };
#if defined(BINARY_OF)
layout(binding = 2) writeonly buffer Out { STORED o[]; };
T result(T a, T b) { return BINARY_OF; }
void element(uint i) { o[i] = TO_STORED(result(LOADED(left[i]), LOADED(right[i]))); }
#else
layout(binding = 2) writeonly buffer Out { uint8_t o[]; };
bool result(T a, T b) { return COMPARE_OF; }
void element(uint i) { o[i] = uint8_t(result(LOADED(left[i]), LOADED(right[i])) ? 1u : 0u); }
#endif
#else
layout(binding = 0) readonly buffer X { STORED from[]; };
layout(push_constant) uniform Push { uint64_t n; };
#if defined(UNARY_OF)
layout(binding = 1) writeonly buffer Out { STORED o[]; };
T result(T x) { return UNARY_OF; }
void element(uint i) { o[i] = TO_STORED(result(LOADED(from[i]))); }
#elif defined(TEST_OF)
layout(binding = 1) writeonly buffer Out { uint8_t o[]; };
bool result(T x) { return TEST_OF; }
void element(uint i) { o[i] = uint8_t(result(LOADED(from[i])) ? 1u : 0u); }
#else
layout(binding = 1) writeonly buffer Out { CAST_TO o[]; };
CAST_TO result(T x) { return CAST_OF; }
void element(uint i) { o[i] = result(LOADED(from[i])); }
#endif
#endif

void main()
{
    for (uint i = gl_GlobalInvocationID.x; i < n; i += gl_NumWorkGroups.x * THREADS)
        element(i);
}
