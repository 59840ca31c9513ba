/* Powers, logarithms, roots and remainders of f32 for the shaders of the built-in kernels, as exact as CUDA's: GLSL promises less.
 *
 * Polynomials, unless something else is said: Moshier's Cephes library, single precision (1992). Where `precise` is missing, a compiler may round
 * less often than is written. */

/* ---- powers of two and e ---- */

/* 2 to the k, k from -126 to 127. */
float power_of_two(int k) { return uintBitsToFloat(uint(k + 127) << 23); }

/* x 2^k in two steps, so that neither overflows before the result does. */
float scaled(float x, int k)
{
    int half_k = k / 2;
    return x * power_of_two(half_k) * power_of_two(k - half_k);
}

/* e to the r, less 1, with r from -ln 2 / 2 to ln 2 / 2. */
float expm1_near_0(float r)
{
    float p = ((((1.9875691500e-4 * r + 1.3981999507e-3) * r + 8.3334519073e-3) * r + 4.1665795894e-2) * r + 1.6666665459e-1) * r + 5.0000001201e-1;
    return p * r * r + r;
}

/* e to the (x + low) times 2^by: x = k ln 2 + r with k whole, ln 2 in two parts of which the first times k is exact. */
float exp_times(float x, float low, int by)
{
    if (is_nan(x))
        return x;
    if (x > 90.0)
        return INFINITE;
    if (x < -105.0)
        return 0.0;
    float         k = roundEven(x * 1.44269504);
    precise float r = x - k * 0.693359375;
    r = r + k * 2.12194440e-4;
    r = r + low;
    return scaled(1.0 + expm1_near_0(r), int(k) + by);
}
float exact_exp(float x) { return exp_times(x, 0.0, 0); }

float exact_exp2(float x)
{
    if (is_nan(x))
        return x;
    if (x >= 128.0 || x < -151.0)
        return x < 0.0 ? 0.0 : INFINITE;
    float k = roundEven(x), r = x - k;
    float p = (((((1.535336188319500e-4 * r + 1.339887440266574e-3) * r + 9.618437357674640e-3) * r + 5.550332471162809e-2) * r + 2.402264791363012e-1) * r +
               6.931472028550421e-1) * r;
    return scaled(1.0 + p, int(k));
}

/* 2^k (1 + p) - 1, in the order that keeps what is small. */
float exact_expm1(float x)
{
    if (is_nan(x) || x == 0.0)
        return x;
    if (x > 89.0)
        return INFINITE;
    if (x < -18.0)
        return -1.0;
    float         k = roundEven(x * 1.44269504);
    precise float r = x - k * 0.693359375;
    r = r + k * 2.12194440e-4;
    float p = expm1_near_0(r);
    if (k == 0.0)
        return p;
    if (k < 0.0)
        return p * power_of_two(int(k)) + (power_of_two(int(k)) - 1.0);
    return scaled(p + (1.0 - power_of_two(-min(int(k), 100))), int(k));
}

/* ---- logarithms ---- */

/* x = (1 + f) 2^e, x positive and finite, 1 + f from sqrt(1/2) to sqrt(2). */
float split(float x, out float e)
{
    int k = -126;
    if (floatBitsToUint(x) < 0x00800000u) {
        x = float(floatBitsToUint(x)); /* times 2^149, whether the device knows such numbers or not */
        k -= 149;
    }
    uint  bits = floatBitsToUint(x);
    float m = uintBitsToFloat((bits & 0x007fffffu) | 0x3f000000u);
    k += int(bits >> 23);
    if (m < 0.707106781) {
        k--;
        m += m;
    }
    e = float(k);
    return m - 1.0;
}

/* log(1 + f), less f. */
float log_rest(float f)
{
    float z = f * f;
    float p = ((((((((7.0376836292e-2 * f - 1.1514610310e-1) * f + 1.1676998740e-1) * f - 1.2420140846e-1) * f + 1.4249322787e-1) * f - 1.6668057665e-1) * f +
                 2.0000714765e-1) * f - 2.4999993993e-1) * f + 3.3333331174e-1) * f * z;
    return p - 0.5 * z;
}

/* Whether x has no logarithm that is a number; then it is in `value`. */
bool log_is_special(float x, out float value)
{
    bool zero = (floatBitsToUint(x) & 0x7fffffffu) == 0u, negative = floatBitsToUint(x) >= 0x80000000u;
    value = zero ? -INFINITE : is_nan(x) || negative ? NOT_A_NUMBER : x;
    return zero || negative || !is_finite(x);
}

float exact_log(float x)
{
    float e, value;
    if (log_is_special(x, value))
        return value;
    float f = split(x, e);
    return f + (log_rest(f) + e * -2.12194440e-4) + e * 0.693359375;
}
float exact_log2(float x)
{
    float e, value;
    if (log_is_special(x, value))
        return value;
    float f = split(x, e), y = log_rest(f);
    return y * 0.44269504088896340736 + f * 0.44269504088896340736 + y + f + e;
}
float exact_log10(float x)
{
    float e, value;
    if (log_is_special(x, value))
        return value;
    float f = split(x, e), y = log_rest(f);
    return (f + y) * 7.00731903251827651129e-4 + y * 4.3359375e-1 + f * 4.3359375e-1 + e * 2.48745663981195213739e-4 + e * 3.0078125e-1;
}

/* log(u) of u = 1 + x, and what rounding took from u. */
float exact_log1p(float x)
{
    if (x > -0.29 && x < 0.41)
        return x == 0.0 ? x : x + log_rest(x);
    precise float u = 1.0 + x;
    precise float lost = x > 1.0 ? 1.0 - (u - x) : x - (u - 1.0);
    float         y = exact_log(u);
    return is_finite(y) ? y + lost / u : y;
}

/* ---- powers ---- */

/* a + b and a b without rounding, as two numbers (Knuth; Dekker). */
vec2 exact_sum(float a, float b)
{
    precise float sum = a + b;
    precise float part = sum - a;
    precise float low = (a - (sum - part)) + (b - part);
    return vec2(sum, low);
}
vec2 exact_product(float a, float b)
{
    precise float product = a * b;
    float         a1 = uintBitsToFloat(floatBitsToUint(a) & 0xfffff000u), b1 = uintBitsToFloat(floatBitsToUint(b) & 0xfffff000u);
    precise float a2 = a - a1, b2 = b - b1;
    precise float low = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2;
    return vec2(product, low);
}

/* log(x) of x positive and finite, as two numbers: the series of 2 atanh(r), r = (m - 1) / (m + 1), with what the division leaves. */
vec2 log_parts(float x)
{
    float e, f = split(x, e), r, s;
    vec2  d = exact_sum(2.0, f);

    r = f / d.x;
    vec2          back = exact_product(r, d.x);
    precise float left = (f - back.x) - back.y - r * d.y;
    s = r * r;
    float         rest = s * (1.0 / 3.0 + s * (1.0 / 5.0 + s * (1.0 / 7.0 + s * (1.0 / 9.0 + s * (1.0 / 11.0 + s * (1.0 / 13.0))))));
    precise float low = 2.0 * (left / d.x) + 2.0 * r * rest;
    vec2          high = exact_sum(e * 0.693359375, 2.0 * r);
    precise float lower = high.y + (low + e * -2.12194440e-4);
    return exact_sum(high.x, lower);
}

float exact_pow(float a, float b)
{
    float size = abs(a);
    bool  whole = !is_finite(b) || b == trunc(b), odd = whole && abs(b) < 16777216.0 && (int(b) & 1) != 0;
    bool  negative = floatBitsToUint(a) >= 0x80000000u;

    if (b == 0.0 || a == 1.0)
        return 1.0;
    if (is_nan(a) || is_nan(b))
        return NOT_A_NUMBER;
    if (!is_finite(b))
        return size == 1.0 ? 1.0 : (size > 1.0) == (b > 0.0) ? INFINITE : 0.0;
    if ((floatBitsToUint(a) & 0x7fffffffu) == 0u || !is_finite(a)) {
        float value = (size > 1.0) == (b > 0.0) ? INFINITE : 0.0;
        return negative && odd ? -value : value;
    }
    if (negative && !whole)
        return NOT_A_NUMBER;
    vec2          of_size = log_parts(uintBitsToFloat(floatBitsToUint(a) & 0x7fffffffu));
    float         by = clamp(b, -1e12, 1e12);
    vec2          high = exact_product(of_size.x, by);
    precise float low = high.y + of_size.y * by;
    float         value = exp_times(high.x, abs(high.x) < 105.0 ? low : 0.0, 0);
    return negative && odd ? -value : value;
}

/* ---- roots ---- */

/* An estimate by a third of the exponent (Kahan), two steps of Halley's, one of Newton's. */
float exact_cbrt(float x)
{
    uint bits = floatBitsToUint(x) & 0x7fffffffu;
    int  back = 0;

    if (bits == 0u || !is_finite(x))
        return x;
    if (bits < 0x00800000u) {
        bits = floatBitsToUint(float(bits) * 2.0); /* times 2^150 */
        back = -50;
    } else if (bits >= 0x70000000u) { /* which times 3 may be too great */
        bits -= 99u << 23;
        back = 33;
    }
    float size = uintBitsToFloat(bits), t = uintBitsToFloat(bits / 3u + 709958130u);
    float cube = t * t * t;
    t = t * ((size + size + cube) / (size + cube + cube));
    cube = t * t * t;
    t = t * ((size + size + cube) / (size + cube + cube));
    t = t - (t - size / (t * t)) * (1.0 / 3.0);
    t *= power_of_two(back);
    return floatBitsToUint(x) >= 0x80000000u ? -t : t;
}

float exact_hypot(float a, float b)
{
    a = abs(a);
    b = abs(b);
    if (a == INFINITE || b == INFINITE)
        return INFINITE;
    float most = max(a, b);
    int   by = most > 1e15 ? -100 : most < 1e-15 ? 100 : 0;
    precise float p = a * power_of_two(by), q = b * power_of_two(by); /* before they are squared */
    return sqrt(p * p + q * q) * power_of_two(-by);
}

/* ---- quotients and what they leave ---- */

/* a / b. GLSL promises nothing of divisors beyond 2^126, whose reciprocal a device may take for 0. */
float quotient(float a, float b)
{
    precise float x = a * 0.25, y = b * 0.25;
    return abs(b) > 8.5e37 ? x / y : a / b;
}

/* What a / b, rounded towards 0, leaves: exact, digit by digit of 40 bits. */
float exact_remainder(float a, float b)
{
    uint size = floatBitsToUint(a) & 0x7fffffffu, by = floatBitsToUint(b) & 0x7fffffffu, sign = floatBitsToUint(a) & 0x80000000u;

    if (!is_finite(a) || is_nan(b) || by == 0u)
        return NOT_A_NUMBER;
    if (size < by)
        return a;
    uint     e = max(size >> 23, 1u), least = max(by >> 23, 1u);
    uint64_t r = uint64_t((size & 0x007fffffu) | (size >> 23 != 0u ? 0x00800000u : 0u));
    uint64_t d = uint64_t((by & 0x007fffffu) | (by >> 23 != 0u ? 0x00800000u : 0u));
    r -= r / d * d;
    for (uint left = e - least; left > 0u && r != 0UL;) {
        uint now = min(left, 40u);
        r <<= now;
        r -= r / d * d;
        left -= now;
    }
    uint low = uint(r);
    if (low == 0u)
        return uintBitsToFloat(sign);
    uint up = 23u - uint(findMSB(low));
    if (up >= least)
        return uintBitsToFloat(sign | low << (least - 1u));
    return uintBitsToFloat(sign | ((low << up & 0x007fffffu) | (least - up) << 23));
}

/* By their bits: a device may take numbers below 2^-126 for 0 where it compares. */
bool is_zero(float x) { return (floatBitsToUint(x) & 0x7fffffffu) == 0u; }
bool below_zero(float x) { return floatBitsToUint(x) > 0x80000000u; }

float quotient_down(float a, float b)
{
    precise float plain = a / b; /* a may be a product with b, which a compiler would take out */
    if (b == 0.0)
        return plain;
    float         r = exact_remainder(a, b);
    precise float q = quotient(a - r, b);
    if (is_nan(q))
        return q;
    if (!is_zero(r) && (b < 0.0) != below_zero(r))
        q -= 1.0;
    if (q == 0.0)
        return uintBitsToFloat((floatBitsToUint(a) ^ floatBitsToUint(b)) & 0x80000000u);
    float w = floor(q);
    return q - w > 0.5 ? w + 1.0 : w;
}
float remainder_of(float a, float b)
{
    float r = exact_remainder(a, b);
    if (is_nan(r))
        return r;
    if (is_zero(r))
        return uintBitsToFloat(floatBitsToUint(b) & 0x80000000u);
    return below_zero(b) != below_zero(r) ? r + b : r;
}
