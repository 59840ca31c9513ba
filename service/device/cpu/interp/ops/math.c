/* Directed rounding of operations by the host, of conversions by the sign of the error; halves. */
#include "device/cpu/interp/ops/math.h"

#include <fenv.h>

/* Moves a result rounded to nearest to the neighbour that the rounding mode asks for; `error` has the sign of (exact - r). */
static float direct_f32(float r, double error, enum rounding mode)
{
    if (error != error || error == 0 || mode == ROUND_NEAREST)
        return r;
    if (mode == ROUND_ZERO)
        mode = (r > 0 || (r == 0 && error > 0)) ? ROUND_DOWN : ROUND_UP;
    if (mode == ROUND_DOWN)
        return error < 0 ? nextafterf(r, -INFINITY) : r;
    return error > 0 ? nextafterf(r, INFINITY) : r;
}

/* The rounding error of s = a + b, exact in double (Knuth). */
static double sum_error(double a, double b, double s)
{
    double bb = s - a;

    return (a - (s - bb)) + (b - bb);
}

/* A finite exact value overflowed: directed rounding may return the largest number. */
static double overflow_error(double r)
{
    return r > 0 ? -1 : 1;
}

/* Rounds the exact value high + low. */
static float round_pair_f32(double high, double low, enum rounding mode)
{
    float  r = (float)high;
    double error;

    if (isinf(r) && !isinf(high))
        return direct_f32(r, overflow_error(r), mode);
    error = high - (double)r;
    return direct_f32(r, error != 0 ? error : low, mode);
}

#if defined(__x86_64__)
/* fesetround sets the x87 unit, too, which nothing here uses and which takes several times as long. */
enum { MXCSR_ROUNDING = 3 << 13 };

int rounding_enter(enum rounding r)
{
    static const unsigned modes[] = {0, 3 << 13, 1 << 13, 2 << 13};
    unsigned              before = __builtin_ia32_stmxcsr();

    __builtin_ia32_ldmxcsr((before & ~(unsigned)MXCSR_ROUNDING) | modes[r]);
    return (int)before;
}

void rounding_leave(int before)
{
    __builtin_ia32_ldmxcsr((unsigned)before);
}
#else
int rounding_enter(enum rounding r)
{
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    int              before = fegetround();

    fesetround(modes[r]);
    return before;
}

void rounding_leave(int before)
{
    fesetround(before);
}
#endif

/* Volatile, so that the sum stays between the two calls. */
static double add_rounded_f64(double a, double b, enum rounding r)
{
    int             before = rounding_enter(r);
    volatile double x = a, y = b, sum = x + y;

    rounding_leave(before);
    return sum;
}

double fma_odd(double a, double b, double c)
{
    double p = a * b, s = p + c, error = sum_error(p, c, s);

    if (!isfinite(s) || error == 0 || (bits_of_f64(s) & 1))
        return s;
    return error > 0 ? nextafter(s, INFINITY) : nextafter(s, -INFINITY);
}

float f32_from_f64(double d, enum rounding r)
{
    return isfinite(d) ? round_pair_f32(d, 0, r) : (float)d;
}

/* A 64-bit integer is the exact sum of its upper and lower 32 bits as doubles. */
static float f32_from_parts(double upper, uint32_t lower, enum rounding r)
{
    double high = upper * 4294967296.0, s = high + (double)lower;

    return round_pair_f32(s, sum_error(high, (double)lower, s), r);
}

float f32_from_s64(int64_t v, enum rounding r)
{
    return r == ROUND_NEAREST ? (float)v : f32_from_parts((double)(v >> 32), (uint32_t)v, r);
}

float f32_from_u64(uint64_t v, enum rounding r)
{
    return r == ROUND_NEAREST ? (float)v : f32_from_parts((double)(v >> 32), (uint32_t)v, r);
}

double f64_from_s64(int64_t v, enum rounding r)
{
    return add_rounded_f64((double)(v >> 32) * 4294967296.0, (double)(uint32_t)v, v ? r : ROUND_NEAREST);
}

double f64_from_u64(uint64_t v, enum rounding r)
{
    return add_rounded_f64((double)(v >> 32) * 4294967296.0, (double)(uint32_t)v, v ? r : ROUND_NEAREST);
}

double round_f64(double d, enum rounding r)
{
    switch (r) {
    case ROUND_NEAREST: return rint(d);
    case ROUND_ZERO:    return trunc(d);
    case ROUND_DOWN:    return floor(d);
    case ROUND_UP:      return ceil(d);
    }
    return d;
}

uint16_t bf16_from_f64(double d, enum rounding r)
{
    float f = f32_from_f64(d, ROUND_ZERO);

    if (isfinite(d) && (double)f != d) /* what is cut off shows in the last bit: far below the kept bits */
        f = f32_of_bits(bits_of_f32(f) | 1);
    return bf16_from_f32(f, r);
}

int64_t s64_from_f64(double v, unsigned bits)
{
    double top = ldexp(1.0, (int)bits - 1);

    if (v != v)
        return 0;
    if (v >= top)
        return (int64_t)((1ull << (bits - 1)) - 1);
    if (v < -top)
        return bits == 64 ? INT64_MIN : -(int64_t)(1ull << (bits - 1));
    return (int64_t)v;
}

uint64_t u64_from_f64(double v, unsigned bits)
{
    if (!(v > 0))
        return 0;
    if (v >= ldexp(1.0, (int)bits))
        return bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
    return (uint64_t)v;
}

float f32_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, fraction = h & 0x3ff;

    if (exponent == 31)
        return f32_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0)
        return f32_of_bits(sign | bits_of_f32((float)fraction * 0x1p-24f));
    return f32_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

/* Whether the magnitude must be one step larger. `rest`: the bits cut off; `half`: their middle. */
static bool round_away(uint64_t kept, uint64_t rest, uint64_t half, bool negative, enum rounding r)
{
    switch (r) {
    case ROUND_NEAREST: return rest > half || (rest == half && (kept & 1));
    case ROUND_ZERO:    return false;
    case ROUND_DOWN:    return negative && rest;
    case ROUND_UP:      return !negative && rest;
    }
    return false;
}

static uint16_t overflow_f16(bool negative, enum rounding r)
{
    bool infinite = r == ROUND_NEAREST || r == (negative ? ROUND_DOWN : ROUND_UP);

    return (uint16_t)((negative ? 0x8000 : 0) | (infinite ? 0x7c00 : 0x7bff));
}

uint16_t f16_from_f64(double d, enum rounding r)
{
    uint64_t u = bits_of_f64(d), fraction = u & 0xfffffffffffffull, kept, rest;
    bool     negative = u >> 63;
    int      exponent = (int)(u >> 52 & 0x7ff) - 1023, cut = 42;
    uint16_t sign = negative ? 0x8000 : 0;

    if (exponent == 1024)
        return fraction ? 0x7fff : (uint16_t)(sign | 0x7c00);
    if (exponent > 15)
        return overflow_f16(negative, r);
    if (exponent < -40) /* below half of the smallest subnormal; zero has nothing to round */
        return (uint16_t)(sign | round_away(0, u << 1 ? 1 : 0, 2, negative, r));
    fraction |= 1ull << 52;
    if (exponent < -14)
        cut += -14 - exponent;
    if (cut > 63) {
        rest = 1;
        return (uint16_t)(sign | round_away(0, rest, 2, negative, r));
    }
    kept = fraction >> cut;
    rest = fraction & ((1ull << cut) - 1);
    kept += round_away(kept, rest, 1ull << (cut - 1), negative, r);
    if (exponent >= -14) /* the hidden bit counts as one step of the exponent */
        kept += (uint64_t)(exponent + 14) << 10;
    return kept >= 0x7c00 ? overflow_f16(negative, r) : (uint16_t)(sign | kept);
}

uint16_t f16_from_f32(float f, enum rounding r)
{
    return f16_from_f64((double)f, r);
}

float f32_from_bf16(uint16_t h)
{
    return f32_of_bits((uint32_t)h << 16);
}

uint16_t bf16_from_f32(float f, enum rounding r)
{
    uint32_t u = bits_of_f32(f);

    if (f != f)
        return 0x7fff;
    if (isinf(f))
        return (uint16_t)(u >> 16);
    return (uint16_t)((u >> 16) + round_away(u >> 16, u & 0xffff, 0x8000, u >> 31, r));
}

uint64_t mul_high_u64(uint64_t a, uint64_t b)
{
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t low = al * bl, m1 = ah * bl + (low >> 32), m2 = al * bh + (uint32_t)m1;

    return ah * bh + (m1 >> 32) + (m2 >> 32);
}

int64_t mul_high_s64(int64_t a, int64_t b)
{
    uint64_t high = mul_high_u64((uint64_t)a, (uint64_t)b);

    if (a < 0)
        high -= (uint64_t)b;
    if (b < 0)
        high -= (uint64_t)a;
    return (int64_t)high;
}
