/* Arithmetic that C's operators lack: directed rounding, halves, saturating conversions, approximations. All functions are pure.
 * Compiled without contraction: every operation rounds once. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum rounding { ROUND_NEAREST, ROUND_ZERO, ROUND_DOWN, ROUND_UP };

static inline uint32_t bits_of_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float f32_of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint64_t bits_of_f64(double f)
{
    uint64_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline double f64_of_bits(uint64_t u)
{
    double f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Subnormals become zero of the same sign: `.ftz`. */
static inline float flush_f32(float f)
{
    uint32_t u = bits_of_f32(f);
    return (u & 0x7f800000u) ? f : f32_of_bits(u & 0x80000000u);
}

/* Clamped to [0, 1], NaN becomes 0: `.sat`. */
static inline float saturate_f32(float f)
{
    return f > 0.0f ? (f < 1.0f ? f : 1.0f) : 0.0f;
}

static inline double saturate_f64(double f)
{
    return f > 0.0 ? (f < 1.0 ? f : 1.0) : 0.0;
}

/* The other operand when one is NaN; -0 < +0, as PTX orders them. */
#define MIN_AND_MAX(suffix, T)                                                                                                             \
    static inline T min_##suffix(T a, T b)                                                                                                 \
    {                                                                                                                                      \
        if (a == b)                                                                                                                        \
            return suffix##_of_bits(bits_of_##suffix(a) | bits_of_##suffix(b));                                                            \
        return a < b || b != b ? a : b;                                                                                                    \
    }                                                                                                                                      \
    static inline T max_##suffix(T a, T b)                                                                                                 \
    {                                                                                                                                      \
        if (a == b)                                                                                                                        \
            return suffix##_of_bits(bits_of_##suffix(a) & bits_of_##suffix(b));                                                            \
        return a > b || b != b ? a : b;                                                                                                    \
    }
MIN_AND_MAX(f32, float)
MIN_AND_MAX(f64, double)

/* 2 to the power of f, off by little more than half a unit in the last place. Uses only operations that vectors have, and no branch. */
static inline float exp2_f32(float f)
{
    const double whole_at = 0x1.8p52; /* adding it leaves no bits behind the point */
    double       x = (double)f, clamped = x > 200 ? 200 : x < -200 ? -200 : x == x ? x : 0;
    double       shifted = clamped + whole_at, whole = shifted - whole_at, r = clamped - whole, p;
    uint64_t     scale = (bits_of_f64(shifted) + 1023) << 52;

    p = 0x1.b5253d395e7c4p-24; /* ln(2)^k / k!, from k = 9 on */
    p = p * r + 0x1.62c0223a5c824p-20;
    p = p * r + 0x1.ffcbfc588b0c7p-17;
    p = p * r + 0x1.430912f86c787p-13;
    p = p * r + 0x1.5d87fe78a6731p-10;
    p = p * r + 0x1.3b2ab6fba4e77p-7;
    p = p * r + 0x1.c6b08d704a0cp-5;
    p = p * r + 0x1.ebfbdff82c58fp-3;
    p = p * r + 0x1.62e42fefa39efp-1;
    p = p * r + 1;
    return x == x ? (float)(p * f64_of_bits(scale)) : f;
}

/* From here on the calling thread's host arithmetic rounds so, until rounding_leave gets the returned value. Operands must be loaded
 * from memory and results stored in between: compilers order arithmetic only by calls. */
int  rounding_enter(enum rounding r);
void rounding_leave(int before);
/* a * b exactly (both have at most 26 significant bits) plus c; inexact results have an odd last bit. Rounding it once more to a
 * narrower type gives the exact result rounded once. */
double fma_odd(double a, double b, double c);

float  f32_from_f64(double d, enum rounding r);
float  f32_from_s64(int64_t v, enum rounding r);
float  f32_from_u64(uint64_t v, enum rounding r);
double f64_from_s64(int64_t v, enum rounding r);
double f64_from_u64(uint64_t v, enum rounding r);

/* To an integral value; nearest means ties to even. */
double round_f64(double d, enum rounding r);
/* `v` is integral already. Clamped to `bits` bits; NaN becomes 0. */
int64_t  s64_from_f64(double v, unsigned bits);
uint64_t u64_from_f64(double v, unsigned bits);

/* IEEE binary16 in the low bits. */
float    f32_from_f16(uint16_t h);
uint16_t f16_from_f32(float f, enum rounding r);
/* Rounds once. */
uint16_t f16_from_f64(double d, enum rounding r);
/* bfloat16: the upper half of a binary32. */
float    f32_from_bf16(uint16_t h);
uint16_t bf16_from_f32(float f, enum rounding r);
uint16_t bf16_from_f64(double d, enum rounding r);

/* High half of the product. */
uint64_t mul_high_u64(uint64_t a, uint64_t b);
int64_t  mul_high_s64(int64_t a, int64_t b);
