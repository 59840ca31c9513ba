/* Circular and hyperbolic functions of f32, their inverses, and the functions of errors, for the shaders of the built-in kernels, as exact as
 * CUDA's: GLSL promises less, or has none. It stands behind real.glsl.
 *
 * Polynomials, unless something else is said: Moshier's Cephes library, single precision (1992). */

/* ---- circular functions ---- */

/* 2 / pi, behind 32 bits of zero. */
const uint TWO_BY_PI[8] = uint[8](0u, 0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u, 0x3C439041u, 0xFE5163ABu);

/* The high half of a product. */
uint64_t high_half(uint64_t a, uint64_t b)
{
    uint64_t a0 = a & 0xffffffffUL, a1 = a >> 32, b0 = b & 0xffffffffUL, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & 0xffffffffUL);
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* x = quarter pi / 2 + r, r from -pi / 4 to pi / 4, for every x that is finite: 96 bits of 2 / pi, of which the first are worth 2 and 1, times the
 * 24 of x (Payne and Hanek, 1983). `quarter` counts from 0 to 3. */
float reduced(float x, out uint quarter)
{
    uint size = floatBitsToUint(x) & 0x7fffffffu, at, word, by;

    quarter = 0u;
    if (size <= 0x3f490fdbu)
        return x;
    at = (size >> 23) - 120u;
    word = at / 32u;
    by = at % 32u;
    uint64_t bits0 = uint64_t(TWO_BY_PI[word]) << 32 | TWO_BY_PI[word + 1u], bits1 = uint64_t(TWO_BY_PI[word + 1u]) << 32 | TWO_BY_PI[word + 2u];
    uint64_t bits2 = uint64_t(TWO_BY_PI[word + 2u]) << 32 | TWO_BY_PI[word + 3u];
    uint64_t m = uint64_t((size & 0x007fffffu) | 0x00800000u);
    uint64_t w0 = bits0 << by >> 32, w1 = bits1 << by >> 32, w2 = bits2 << by >> 32;
    uint64_t all = (w0 * m << 32) + w1 * m + (w2 * m >> 32); /* in units of 2^-62 */
    uint64_t up = all + 0x2000000000000000UL;

    quarter = uint(up >> 62);
    int64_t  rest = int64_t(all - (uint64_t(quarter) << 62));
    bool     down = rest < 0L;
    uint64_t near = high_half(uint64_t(down ? -rest : rest), 0xC90FDAA22168C235UL); /* pi / 2 in units of 2^-63 */
    float    r = float(near) * 4.3368086899420177e-19; /* 2^-61 */
    if (floatBitsToUint(x) >= 0x80000000u) {
        quarter = (0u - quarter) & 3u;
        down = !down;
    }
    return down ? -r : r;
}

float sin_near_0(float r)
{
    float z = r * r;
    return ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * r + r;
}
float cos_near_0(float r)
{
    float z = r * r;
    return ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - 0.5 * z + 1.0;
}

/* The sine of r + quarter pi / 2. */
float sin_of(float r, uint quarter)
{
    float size = (quarter & 1u) != 0u ? cos_near_0(r) : sin_near_0(r);
    return (quarter & 2u) != 0u ? -size : size;
}

float exact_sin(float x)
{
    uint quarter;
    if (!is_finite(x) || x == 0.0)
        return is_finite(x) ? x : NOT_A_NUMBER;
    float r = reduced(x, quarter);
    return sin_of(r, quarter);
}
float exact_cos(float x)
{
    uint quarter;
    if (!is_finite(x))
        return NOT_A_NUMBER;
    float r = reduced(x, quarter);
    return sin_of(r, quarter + 1u);
}
float exact_tan(float x)
{
    uint quarter;
    if (!is_finite(x) || x == 0.0)
        return is_finite(x) ? x : NOT_A_NUMBER;
    float r = reduced(x, quarter), z = r * r;
    float p = ((((((9.38540185543e-3 * z + 3.11992232697e-3) * z + 2.44301354525e-2) * z + 5.34112807005e-2) * z + 1.33387994085e-1) * z +
                3.33331568548e-1) * z) * r + r;
    return (quarter & 1u) != 0u ? -1.0 / p : p;
}

/* ---- their inverses ---- */

#define HALF_PI 1.57079632679489661923

float asin_near_0(float x)
{
    float z = x * x;
    return ((((4.2163199048e-2 * z + 2.4181311049e-2) * z + 4.5470025998e-2) * z + 7.4953002686e-2) * z + 1.6666752422e-1) * z * x + x;
}
float exact_asin(float x)
{
    float size = abs(x);
    if (is_nan(x) || size > 1.0)
        return NOT_A_NUMBER;
    if (size <= 0.5)
        return x == 0.0 ? x : asin_near_0(x);
    float y = HALF_PI - 2.0 * asin_near_0(sqrt(0.5 * (1.0 - size)));
    return x < 0.0 ? -y : y;
}
float exact_acos(float x)
{
    if (is_nan(x) || abs(x) > 1.0)
        return NOT_A_NUMBER;
    if (abs(x) <= 0.5)
        return HALF_PI - asin_near_0(x);
    float y = 2.0 * asin_near_0(sqrt(0.5 * (1.0 - abs(x))));
    return x < 0.0 ? 2.0 * HALF_PI - y : y;
}

/* Of a positive number, or of a quotient of two. */
float atan_of(float a, float b)
{
    float begin = 0.0, x, q = a / b;
    if (q > 2.414213562373095) {
        begin = HALF_PI;
        x = -b / a;
    } else if (q > 0.4142135623730950) {
        begin = 0.5 * HALF_PI;
        x = (a - b) / (a + b);
    } else
        x = q;
    float z = x * x;
    return begin + ((((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z - 3.33329491539e-1) * z * x + x);
}
float exact_atan(float x)
{
    if (is_nan(x) || x == 0.0)
        return x;
    float y = is_finite(x) ? atan_of(abs(x), 1.0) : HALF_PI;
    return x < 0.0 ? -y : y;
}
float exact_atan2(float y, float x)
{
    float a = abs(y), b = abs(x), angle;

    if (is_nan(x) || is_nan(y))
        return NOT_A_NUMBER;
    if (a == INFINITE && b == INFINITE)
        angle = 0.5 * HALF_PI;
    else if (a == 0.0 || b == INFINITE)
        angle = 0.0;
    else if (b == 0.0 || a == INFINITE)
        angle = HALF_PI;
    else {
        float         most = max(a, b), by = power_of_two(most > 1e37 ? -3 : most < 1e-15 ? 60 : 0);
        precise float p = a * by, q = b * by; /* else a compiler may make (a + b) * by of their sum */
        angle = atan_of(p, q);
    }
    if (floatBitsToUint(x) >= 0x80000000u)
        angle = 2.0 * HALF_PI - angle;
    return floatBitsToUint(y) >= 0x80000000u ? -angle : angle;
}

/* ---- hyperbolic functions and their inverses ---- */

float exact_sinh(float x)
{
    float size = abs(x), z = x * x, half_e;
    if (is_nan(x) || x == 0.0)
        return x;
    if (size < 1.0)
        return ((2.03721912945e-4 * z + 8.33028376239e-3) * z + 1.66667160211e-1) * z * x + x;
    half_e = exp_times(size, 0.0, -1);
    half_e = half_e - 0.25 / half_e;
    return x < 0.0 ? -half_e : half_e;
}
float exact_cosh(float x)
{
    float half_e = exp_times(abs(x), 0.0, -1);
    return half_e + 0.25 / half_e;
}
float exact_tanh(float x)
{
    float size = abs(x), z = x * x;
    if (is_nan(x) || x == 0.0)
        return x;
    if (size < 0.625)
        return ((((-5.70498872745e-3 * z + 2.06390887954e-2) * z - 5.37397155531e-2) * z + 1.33314422036e-1) * z - 3.33332819422e-1) * z * x + x;
    float y = size > 9.5 ? 1.0 : 1.0 - 2.0 / (exact_exp(size + size) + 1.0);
    return x < 0.0 ? -y : y;
}
float exact_asinh(float x)
{
    float size = abs(x), y;
    if (is_nan(x) || x == 0.0)
        return x;
    y = size > 1e9 ? exact_log(size) + 0.69314718 : exact_log1p(size + size * size / (1.0 + sqrt(1.0 + size * size)));
    return x < 0.0 ? -y : y;
}
float exact_acosh(float x)
{
    float t = x - 1.0;
    if (is_nan(x) || x < 1.0)
        return NOT_A_NUMBER;
    return x > 1e9 ? exact_log(x) + 0.69314718 : exact_log1p(t + sqrt(t * (2.0 + t)));
}
float exact_atanh(float x)
{
    float size = abs(x);
    if (is_nan(x) || size > 1.0)
        return NOT_A_NUMBER;
    if (x == 0.0)
        return x;
    float y = size == 1.0 ? INFINITE : 0.5 * exact_log1p(2.0 * size / (1.0 - size));
    return x < 0.0 ? -y : y;
}

/* ---- the functions of errors: polynomials fitted to them, with a relative error below 2^-24 ---- */

/* Up to 1. */
float erf_near_0(float x)
{
    float z = x * x;
    float p = ((((-0.000566013692 * z + 0.00492478495) * z - 0.0267177034) * z + 0.112804115) * z - 0.376123557) * z + 0.128379129;
    return p * x + x;
}
/* From 0.9 on: e^(-x^2) / (1 + 2 x) times a polynomial of (x - 2) / (x + 2). x^2 is two numbers, of which the first is exact. */
float erfc_far(float x)
{
    if (x > 10.2)
        return 0.0;
    float high = uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u), t = (x - 2.0) / (x + 2.0);
    float p = (((((((-0.00151241307 * t + 0.00110652547) * t + 0.00876299626) * t - 0.00801234775) * t - 0.0542254191) * t + 0.164050147) * t -
                0.166030186) * t - 0.0927638089) * t + 1.27697838;
    return exp_times(-high * high, (high - x) * (high + x), 0) * (p / (1.0 + 2.0 * x));
}
float exact_erf(float x)
{
    float size = abs(x);
    if (is_nan(x) || x == 0.0)
        return x;
    if (size < 1.0)
        return erf_near_0(x);
    return x < 0.0 ? erfc_far(size) - 1.0 : 1.0 - erfc_far(size);
}
float exact_erfc(float x)
{
    if (is_nan(x))
        return x;
    return abs(x) < 0.9 ? 1.0 - erf_near_0(x) : x < 0.0 ? 2.0 - erfc_far(-x) : erfc_far(x);
}
