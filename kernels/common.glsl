/* What the shaders of the built-in kernels share: the element type as T, its limits, numbers that are none, and the blocks. The service defines
 * T_ with the dtype's name, and KERNEL_ with the kernel's. */
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_8bit_storage : require
#if defined(T_f16) || defined(KERNEL_cast_f16)
#extension GL_EXT_shader_16bit_storage : require
#endif

#define THREADS 256
layout(local_size_x = THREADS) in;

/* WIDE is what sums of T are kept in, BITS an unsigned integer of its size or more, SINGLE: T is computed in f32. */
#if defined(T_f32) || defined(T_f16)
#define T float
#define WIDE float
#define BITS uint
#define REAL
#define SINGLE
#define LOWEST (-INFINITE)
#define HIGHEST INFINITE
#elif defined(T_f64)
#define T double
#define WIDE double
#define BITS uint64_t
#define REAL
#define LOWEST (-packDouble2x32(uvec2(0u, 0x7ff00000u)))
#define HIGHEST packDouble2x32(uvec2(0u, 0x7ff00000u))
#elif defined(T_i32)
#define T int
#define WIDE int64_t
#define BITS uint
#define SIGNED
#define LOWEST (-2147483647 - 1)
#define HIGHEST 2147483647
#elif defined(T_u32)
#define T uint
#define WIDE uint64_t
#define BITS uint
#define LOWEST 0u
#define HIGHEST 0xffffffffu
#elif defined(T_i64)
#define T int64_t
#define WIDE int64_t
#define BITS uint64_t
#define SIGNED
#define LOWEST (-9223372036854775807L - 1L)
#define HIGHEST 9223372036854775807L
#else
#define T uint64_t
#define WIDE uint64_t
#define BITS uint64_t
#define LOWEST 0UL
#define HIGHEST 0xffffffffffffffffUL
#endif
#if defined(T_f64) || defined(T_i64) || defined(T_u64)
#define BYTES 8
#elif defined(T_f16)
#define BYTES 2
#else
#define BYTES 4
#endif

#define INFINITE uintBitsToFloat(0x7f800000u)
#define NOT_A_NUMBER uintBitsToFloat(0x7fc00000u)

/* By bits: compilers of shaders may assume that there are none. */
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
bool is_finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }
#if defined(T_f64)
bool is_nan(double x)
{
    uvec2 bits = unpackDouble2x32(x);
    uint  high = bits.y & 0x7fffffffu;
    return high > 0x7ff00000u || (high == 0x7ff00000u && bits.x != 0u);
}
bool is_finite(double x) { return (unpackDouble2x32(x).y & 0x7ff00000u) != 0x7ff00000u; }
#elif !defined(SINGLE)
bool is_nan(T x) { return false; }
#endif

/* What lies in buffers, its bits alone, and what comes as a value: of f16 the bits. */
#if defined(T_f16) || defined(KERNEL_cast_f16)
#include "half.glsl"
#endif
#if defined(T_f16)
#define STORED uint16_t
#define BITS_STORED uint16_t
#define GIVEN uint
#define LOADED(stored) half_load(uint(stored))
#define TO_STORED(value) uint16_t(half_store(value))
#define VALUE_OF(given) half_load(given)
#else
#define STORED T
#define BITS_STORED BITS
#define GIVEN T
#define LOADED(stored) stored
#define TO_STORED(value) value
#define VALUE_OF(given) given
#endif

/* F of 0 to 15, without a loop: lavapipe counts their turns. */
#define SIXTEEN(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
