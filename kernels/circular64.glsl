/* Circular and hyperbolic functions of f64, their inverses, powers and roots, for the shaders of the built-in kernels: GLSL has none. It stands
 * behind real64.glsl.
 *
 * Methods and numbers, unless something else is said: Sun's fdlibm (1993), the files named below; within 3 units of the last place. */

#define HALF_PI_64 1.57079632679489655800LF
#define HALF_PI_64_LOW 6.12323399573676603587e-17LF
#define LN2_64 6.93147180559945286227e-01LF

uint high_word(double x) { return unpackDouble2x32(x).y; }
bool is_below_0(double x) { return high_word(x) >= 0x80000000u; }
double size_of(double x)
{
    uvec2 bits = unpackDouble2x32(x);
    return packDouble2x32(uvec2(bits.x, bits.y & 0x7fffffffu));
}
double signed_as(double size, double like)
{
    uvec2 bits = unpackDouble2x32(size);
    return packDouble2x32(uvec2(bits.x, bits.y & 0x7fffffffu | high_word(like) & 0x80000000u));
}
/* 2 to the k, k from -1022 to 1023. */
double power_of_two_64(int k) { return packDouble2x32(uvec2(0u, uint(k + 1023) << 20)); }

/* ---- sums and products as two numbers, of which the first is the rounded one (Dekker, 1971) ---- */

dvec2 exact_sum(double a, double b)
{
    precise double sum = a + b, second = sum - a, first = sum - second;
    precise double low = (a - first) + (b - second);
    return dvec2(sum, low);
}
dvec2 exact_product(double a, double b)
{
    precise double product = a * b, a0 = a * 134217729.0LF, b0 = b * 134217729.0LF;
    precise double a1 = a0 - (a0 - a), b1 = b0 - (b0 - b);
    precise double a2 = a - a1, b2 = b - b1;
    precise double low = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2;
    return dvec2(product, low);
}

/* ---- circular functions ---- */

/* 2 / pi, behind 64 bits of zero. */
const uint TWO_BY_PI_64[40] = uint[40](
    0u, 0u, 0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u, 0x3C439041u, 0xFE5163ABu, 0xDEBBC561u, 0xB7246E3Au, 0x424DD2E0u,
    0x06492EEAu, 0x09D1921Cu, 0xFE1DEB1Cu, 0xB129A73Eu, 0xE88235F5u, 0x2EBB4484u, 0xE99C7026u, 0xB45F7E41u, 0x3991D639u, 0x835339F4u, 0x9C845F8Bu,
    0xBDF9283Bu, 0x1FF897FFu, 0xDE05980Fu, 0xEF2F118Bu, 0x5A0A6D1Fu, 0x6D367ECFu, 0x27CB09B7u, 0x4F463F66u, 0x9E5FEA2Du, 0x7527BAC7u, 0xEBE5F17Bu,
    0x3D0739F7u, 0x8A5292EAu, 0x6BFB5FB1u, 0x1F8D5D08u, 0x56033046u, 0xFC7B6BABu);

/* The high half of a product. */
uint64_t product_high(uint64_t a, uint64_t b)
{
    uint64_t a0 = a & 0xffffffffUL, a1 = a >> 32, b0 = b & 0xffffffffUL, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & 0xffffffffUL);
    return a1 * b1 + (middle >> 32) + (other >> 32);
}
/* 64 bits of 2 / pi from that one on. */
uint64_t two_by_pi_from(uint at)
{
    uint     word = at / 32u, by = at % 32u;
    uint64_t bits = uint64_t(TWO_BY_PI_64[word]) << 32 | uint64_t(TWO_BY_PI_64[word + 1u]);
    return by == 0u ? bits : bits << by | uint64_t(TWO_BY_PI_64[word + 2u] >> (32u - by));
}
uint zeros_before(uint64_t x)
{
    uint high = uint(x >> 32);
    return high != 0u ? 31u - uint(findMSB(high)) : 63u - uint(findMSB(uint(x & 0xffffffffUL)));
}

/* x = quarter pi / 2 + r, r from -pi / 4 to pi / 4 as two numbers, for every x that is finite: 192 bits of 2 / pi, of which the first are worth 2
 * and 1, times the 53 of x (Payne and Hanek, 1983). `quarter` counts from 0 to 3. */
dvec2 reduced(double x, out uint quarter)
{
    uint  high = high_word(x) & 0x7fffffffu;
    uvec2 bits = unpackDouble2x32(x);

    quarter = 0u;
    if (high <= 0x3fe921fau)
        return dvec2(x, 0.0LF);
    uint     at = (high >> 20) - 1013u;
    uint64_t m = uint64_t((high & 0x000fffffu) | 0x00100000u) << 32 | uint64_t(bits.x);
    uint64_t w0 = two_by_pi_from(at), w1 = two_by_pi_from(at + 64u), w2 = two_by_pi_from(at + 128u);
    uint64_t low = w1 * m, carried = product_high(w2, m), second = low + carried;
    uint64_t first = w0 * m + product_high(w1, m) + (second < carried ? 1UL : 0UL); /* in units of 2^-62, and `second` behind it */

    quarter = uint(first + 0x2000000000000000UL >> 62);
    first -= uint64_t(quarter) << 62;
    bool down = first >= 0x8000000000000000UL;
    if (down) {
        first = ~first + (second == 0UL ? 1UL : 0UL);
        second = 0UL - second;
    }
    int by = 0;
    if (first == 0UL) {
        first = second;
        second = 0UL;
        by = 64;
    }
    if (first == 0UL)
        return dvec2(0.0LF, 0.0LF);
    uint shift = zeros_before(first);
    if (shift != 0u)
        first = first << shift | second >> (64u - shift);
    by += int(shift);
    uint64_t near = product_high(first, 0xC90FDAA22168C235UL); /* pi / 2 in units of 2^-63 */
    double   unit = power_of_two_64(-61 - by), a = double(near >> 11) * 2048.0LF * unit, b = double(uint(near & 0x7ffUL)) * unit;
    if (is_below_0(x)) {
        quarter = (0u - quarter) & 3u;
        down = !down;
    }
    return down ? dvec2(-a, -b) : dvec2(a, b);
}

/* k_sin.c and k_cos.c */
double sin_near_0(dvec2 r)
{
    double z = r.x * r.x, v = z * r.x;
    double p = 8.33333333332248946124e-03LF + z * (-1.98412698298579493134e-04LF + z * (2.75573137070700676789e-06LF + z * (-2.50507602534068634195e-08LF +
               z * 1.58969099521155010221e-10LF)));
    precise double y = r.x - ((z * (0.5LF * r.y - v * p) - r.y) + v * 1.66666666666666324348e-01LF);
    return y;
}
double cos_near_0(dvec2 r)
{
    double z = r.x * r.x;
    double p = z * (4.16666666666666019037e-02LF + z * (-1.38888888888741095749e-03LF + z * (2.48015872894767294178e-05LF + z * (-2.75573143513906633035e-07LF +
               z * (2.08757232129817482790e-09LF + z * -1.13596475577881948265e-11LF)))));
    precise double half_square = 0.5LF * z, w = 1.0LF - half_square;
    precise double y = w + (((1.0LF - w) - half_square) + (z * p - r.x * r.y));
    return y;
}
/* The sine of r + quarter pi / 2. */
double sin_of(dvec2 r, uint quarter)
{
    double size = (quarter & 1u) != 0u ? cos_near_0(r) : sin_near_0(r);
    return (quarter & 2u) != 0u ? -size : size;
}

double exact_sin(double x)
{
    uint quarter;
    if (!is_finite(x) || x == 0.0LF)
        return is_finite(x) ? x : NOT_A_NUMBER_64;
    dvec2 r = reduced(x, quarter);
    return sin_of(r, quarter);
}
double exact_cos(double x)
{
    uint quarter;
    if (!is_finite(x))
        return NOT_A_NUMBER_64;
    dvec2 r = reduced(x, quarter);
    return sin_of(r, quarter + 1u);
}
double exact_tan(double x)
{
    uint quarter;
    if (!is_finite(x) || x == 0.0LF)
        return is_finite(x) ? x : NOT_A_NUMBER_64;
    dvec2 r = reduced(x, quarter);
    double s = sin_near_0(r), c = cos_near_0(r);
    return (quarter & 1u) != 0u ? -c / s : s / c;
}

/* ---- their inverses: e_asin.c, e_acos.c, s_atan.c, e_atan2.c ---- */

/* (asin(x) - x) / x of x^2 = z, z up to 1 / 4. */
double asin_rest(double z)
{
    double p = z * (1.66666666666666657415e-01LF + z * (-3.25565818622400915405e-01LF + z * (2.01212532134862925881e-01LF + z * (-4.00555345006794114027e-02LF +
               z * (7.91534994289814532176e-04LF + z * 3.47933107596021167570e-05LF)))));
    double q = 1.0LF + z * (-2.40339491173441421878e+00LF + z * (2.02094576023350569471e+00LF + z * (-6.88283971605453293030e-01LF + z * 7.70381505559019352791e-02LF)));
    return p / q;
}
/* The square root of z = (1 - |x|) / 2 without its last bits, and what they would add. */
double root_cut(double z, out double rest)
{
    double         s = sqrt(z);
    precise double f = packDouble2x32(uvec2(0u, high_word(s)));
    precise double left = z - f * f;
    rest = s == 0.0LF ? 0.0LF : left / (s + f);
    return f;
}
double exact_asin(double x)
{
    double size = size_of(x), rest;
    if (is_nan(x) || size > 1.0LF)
        return NOT_A_NUMBER_64;
    if (size < 0.5LF)
        return size < 1e-8LF ? x : x + x * asin_rest(x * x);
    precise double z = 0.5LF * (1.0LF - size), f = root_cut(z, rest);
    precise double low = 2.0LF * (f + rest) * asin_rest(z) - (HALF_PI_64_LOW - 2.0LF * rest), y = 0.5LF * HALF_PI_64 - (low - (0.5LF * HALF_PI_64 - 2.0LF * f));
    return signed_as(y, x);
}
double exact_acos(double x)
{
    double size = size_of(x), rest;
    if (is_nan(x) || size > 1.0LF)
        return NOT_A_NUMBER_64;
    if (size < 0.5LF) {
        precise double y = HALF_PI_64 - (x - (HALF_PI_64_LOW - x * asin_rest(x * x)));
        return y;
    }
    precise double z = 0.5LF * (1.0LF - size), f = root_cut(z, rest), low = rest + (f + rest) * asin_rest(z);
    precise double y = 2.0LF * (f + low), other = 2.0LF * (HALF_PI_64 - (f + (low - HALF_PI_64_LOW)));
    return is_below_0(x) ? other : y;
}

/* Of a number that is not negative. */
double atan_of(double x)
{
    double high = 0.0LF, low = 0.0LF;
    if (x > 1e19LF)
        return HALF_PI_64;
    if (x < 1e-8LF)
        return x;
    if (x >= 2.4375LF) {
        x = -1.0LF / x;
        high = HALF_PI_64;
        low = HALF_PI_64_LOW;
    } else if (x >= 1.1875LF) {
        x = (x - 1.5LF) / (1.0LF + 1.5LF * x);
        high = 9.82793723247329054082e-01LF;
        low = 1.39033110312309984516e-17LF;
    } else if (x >= 0.6875LF) {
        x = (x - 1.0LF) / (x + 1.0LF);
        high = 7.85398163397448278999e-01LF;
        low = 3.06161699786838301793e-17LF;
    } else if (x >= 0.4375LF) {
        x = (2.0LF * x - 1.0LF) / (2.0LF + x);
        high = 4.63647609000806093515e-01LF;
        low = 2.26987774529616870924e-17LF;
    }
    double z = x * x, w = z * z;
    double odd = z * (3.33333333333329318027e-01LF + w * (1.42857142725034663711e-01LF + w * (9.09088713343650656196e-02LF + w * (6.66107313738753120669e-02LF +
                 w * (4.97687799461593236017e-02LF + w * 1.62858201153657823623e-02LF)))));
    double even = w * (-1.99999999998764832476e-01LF + w * (-1.11111104054623557880e-01LF + w * (-7.69187620504482999495e-02LF + w * (-5.83357013379057348645e-02LF +
                  w * -3.65315727442169155270e-02LF))));
    if (high == 0.0LF)
        return x - x * (odd + even);
    precise double y = high - ((x * (odd + even) - low) - x);
    return y;
}
double exact_atan(double x)
{
    return is_nan(x) ? x : signed_as(atan_of(size_of(x)), x);
}
double exact_atan2(double y, double x)
{
    double a = size_of(y), b = size_of(x), angle;

    if (is_nan(x) || is_nan(y))
        return NOT_A_NUMBER_64;
    if (!is_finite(a) && !is_finite(b))
        angle = 0.5LF * HALF_PI_64;
    else if (a == 0.0LF || !is_finite(b))
        angle = 0.0LF;
    else if (b == 0.0LF || !is_finite(a))
        angle = HALF_PI_64;
    else {
        double         most = max(a, b), by = most > 1e300LF ? 0.125LF : most < 1e-290LF ? power_of_two_64(110) : 1.0LF;
        precise double p = a * by, q = b * by; /* so that neither a quotient's parts nor it are too small to be exact */
        angle = atan_of(p / q);
    }
    if (is_below_0(x)) {
        precise double other = 2.0LF * HALF_PI_64 - (angle - 2.0LF * HALF_PI_64_LOW);
        angle = other;
    }
    return signed_as(angle, y);
}

/* ---- e^x - 1: s_expm1.c ---- */

double exact_expm1(double x)
{
    if (is_nan(x) || size_of(x) < 1e-17LF)
        return x;
    if (x > 709.9LF || x < -40.0LF)
        return x < 0.0LF ? -1.0LF : INFINITE_64;
    double         k = size_of(x) > 0.5LF * LN2_64 ? roundEven(x * 1.44269504088896338700LF) : 0.0LF;
    precise double high = x - k * LN2_HIGH, low = k * LN2_LOW;
    precise double r = high - low, lost = (high - r) - low;
    double         half_r = 0.5LF * r, z = r * half_r;
    double         p = 1.0LF + z * (-3.33333333333331316428e-02LF + z * (1.58730158725481460165e-03LF + z * (-7.93650757867487942473e-05LF +
                   z * (4.00821782732936239552e-06LF + z * -2.01099218183624371326e-07LF))));
    double         t = 3.0LF - p * half_r;
    precise double e = z * ((p - t) / (6.0LF - r * t));
    if (k == 0.0LF) {
        precise double y = r - (r * e - z);
        return y;
    }
    precise double rest = (r * (e - lost) - lost) - z, y;
    if (k == -1.0LF)
        y = 0.5LF * (r - rest) - 0.5LF;
    else if (k == 1.0LF && r < -0.25LF)
        y = -2.0LF * (rest - (r + 0.5LF));
    else if (k == 1.0LF)
        y = 1.0LF + 2.0LF * (r - rest);
    else if (k < 0.0LF || k > 56.0LF) {
        y = 1.0LF - (rest - r);
        y = scaled(y, int(k)) - 1.0LF;
    } else {
        double small = power_of_two_64(-int(k));
        if (k < 20.0LF)
            y = (1.0LF - small) - (rest - r);
        else {
            y = r - (rest + small);
            y = y + 1.0LF;
        }
        y = scaled(y, int(k));
    }
    return y;
}

/* ---- hyperbolic functions and their inverses: e_sinh.c, e_cosh.c, s_tanh.c, s_asinh.c, e_acosh.c, e_atanh.c ---- */

double exact_sinh(double x)
{
    double size = size_of(x), t;
    if (is_nan(x) || size < 1e-8LF)
        return x;
    if (size < 22.0LF) {
        t = exact_expm1(size);
        t = size < 1.0LF ? 0.5LF * (2.0LF * t - t * t / (t + 1.0LF)) : 0.5LF * (t + t / (t + 1.0LF));
    } else {
        double root = size > 709.0LF ? exact_exp(0.5LF * size) : 0.0LF; /* e^x is too great before its half is */
        precise double half_root = 0.5LF * root, large = half_root * root; /* in this order: half of root * root is half of infinity */
        t = size > 709.0LF ? large : 0.5LF * exact_exp(size);
    }
    return signed_as(t, x);
}
double exact_cosh(double x)
{
    double size = size_of(x), t;
    if (is_nan(x))
        return x;
    if (size < 0.5LF * LN2_64) {
        t = exact_expm1(size);
        return 1.0LF + t * t / (2.0LF + 2.0LF * t);
    }
    t = exact_exp(size > 709.0LF ? 0.5LF * size : size);
    precise double half_t = 0.5LF * t, large = half_t * t; /* as in exact_sinh */
    return size > 709.0LF ? large : size > 22.0LF ? half_t : half_t + 0.5LF / t;
}
double exact_tanh(double x)
{
    double size = size_of(x), t;
    if (is_nan(x) || size < 1e-17LF)
        return x;
    if (size < 1.0LF) {
        t = exact_expm1(-2.0LF * size);
        t = -t / (t + 2.0LF);
    } else
        t = size > 22.0LF ? 1.0LF : 1.0LF - 2.0LF / (exact_expm1(2.0LF * size) + 2.0LF);
    return signed_as(t, x);
}
double exact_asinh(double x)
{
    double size = size_of(x), z = x * x, y;
    if (!is_finite(x) || size < 1e-9LF)
        return x;
    if (size > 268435456.0LF)
        y = exact_log(size) + LN2_64;
    else
        y = size > 2.0LF ? exact_log(2.0LF * size + 1.0LF / (sqrt(z + 1.0LF) + size)) : exact_log1p(size + z / (1.0LF + sqrt(1.0LF + z)));
    return signed_as(y, x);
}
double exact_acosh(double x)
{
    double t = x - 1.0LF;
    if (is_nan(x) || x < 1.0LF)
        return NOT_A_NUMBER_64;
    if (x > 268435456.0LF)
        return exact_log(x) + LN2_64;
    return x > 2.0LF ? exact_log(2.0LF * x - 1.0LF / (x + sqrt(x * x - 1.0LF))) : exact_log1p(t + sqrt(2.0LF * t + t * t));
}
double exact_atanh(double x)
{
    double size = size_of(x), t = size + size;
    if (is_nan(x) || size > 1.0LF)
        return NOT_A_NUMBER_64;
    if (size == 1.0LF)
        return signed_as(INFINITE_64, x);
    if (size < 1e-9LF)
        return x;
    return signed_as(0.5LF * exact_log1p(size < 0.5LF ? t + t * size / (1.0LF - size) : t / (1.0LF - size)), x);
}

/* ---- powers ---- */

/* log(x) of x positive and finite, as two numbers within 2^-65: the series of 2 atanh(r), r = (m - 1) / (m + 1), with what the division leaves; its
 * first two terms as two numbers each. */
dvec2 log_parts(double x)
{
    double e, f = split(x, e);
    dvec2  d = exact_sum(2.0LF, f);
    double r = f / d.x;
    dvec2  back = exact_product(r, d.x);

    precise double left = ((f - back.x) - back.y - r * d.y) / d.x;
    dvec2          z = exact_product(r, r);
    precise double z_low = z.y + 2.0LF * r * left;
    double         s = z.x;
    double         rest = s * s * (1.0LF / 5.0LF + s * (1.0LF / 7.0LF + s * (1.0LF / 9.0LF + s * (1.0LF / 11.0LF + s * (1.0LF / 13.0LF + s * (1.0LF / 15.0LF +
                          s * (1.0LF / 17.0LF + s * (1.0LF / 19.0LF + s * (1.0LF / 21.0LF)))))))));
    /* t = z / 3 + rest, then 2 r (1 + t) */
    dvec2          third = exact_product(z.x, 3.33333333333333314830e-01LF);
    precise double third_low = third.y + z.x * 1.85037170770859413132e-17LF + z_low * 3.33333333333333314830e-01LF;
    dvec2          t = exact_sum(third.x, rest);
    precise double t_low = t.y + third_low;
    dvec2          cubic = exact_product(2.0LF * r, t.x);
    precise double cubic_low = cubic.y + 2.0LF * (r * t_low + left * t.x) + 2.0LF * left;
    dvec2          high = exact_sum(e * LN2_HIGH, 2.0LF * r), with_cubic = exact_sum(high.x, cubic.x);
    precise double low = ((high.y + with_cubic.y) + cubic_low) + e * LN2_LOW;
    return exact_sum(with_cubic.x, low);
}

double exact_pow(double a, double b)
{
    double size = size_of(a), by = size_of(b);
    bool   whole = !is_finite(b) || b == trunc(b), odd = whole && by < 9007199254740992.0LF && 2.0LF * trunc(0.5LF * by) != by;
    bool   negative = is_below_0(a);

    if (b == 0.0LF || a == 1.0LF)
        return 1.0LF;
    if (is_nan(a) || is_nan(b))
        return NOT_A_NUMBER_64;
    if (!is_finite(b))
        return size == 1.0LF ? 1.0LF : (size > 1.0LF) == (b > 0.0LF) ? INFINITE_64 : 0.0LF;
    if (size == 0.0LF || !is_finite(a)) {
        double value = (size > 1.0LF) == (b > 0.0LF) ? INFINITE_64 : 0.0LF;
        return negative && odd ? -value : value;
    }
    if (negative && !whole)
        return NOT_A_NUMBER_64;
    if (size == 1.0LF)
        return negative && odd ? -1.0LF : 1.0LF;
    dvec2          of_size = log_parts(size);
    double         times = clamp(b, -1e25LF, 1e25LF);
    dvec2          high = exact_product(of_size.x, times);
    precise double low = high.y + of_size.y * times;
    double         value = high.x > 0.0LF ? INFINITE_64 : 0.0LF;
    if (high.x < 710.0LF && high.x > -746.0LF) {
        double         k = roundEven(high.x * 1.44269504088896338700LF);
        precise double r = high.x - k * LN2_HIGH, less = k * LN2_LOW - low;
        value = scaled(exp_near_0(r, less), int(k));
    }
    return negative && odd ? -value : value;
}

/* ---- roots ---- */

/* s_cbrt.c: an estimate by a third of the exponent, a polynomial for 23 bits, one step of Newton's. */
double exact_cbrt(double x)
{
    double size = size_of(x), back = 1.0LF;
    if (!is_finite(x) || size == 0.0LF)
        return x;
    if (high_word(size) < 0x00100000u) {
        uvec2 small = unpackDouble2x32(size);
        size = double(small.y) * 4294967296.0LF + double(small.x); /* times 2^1074, whether the device knows such numbers or not */
        back = power_of_two_64(-358);
    }
    double t = packDouble2x32(uvec2(0u, high_word(size) / 3u + 715094163u)), r = t * t * (t / size);
    t = t * ((1.87595182427177009643LF + r * (-1.88497979543377169875LF + r * 1.621429720105354466140LF)) + r * r * r * (-0.758397934778766047437LF +
             r * 0.145996192886612446982LF));
    uvec2 bits = unpackDouble2x32(t);
    t = packDouble2x32(uvec2(bits.x & 0xc0000000u, bits.y));
    precise double s = t * t, q = size / s;
    precise double step = (q - t) / (t + t + q), y = t + t * step;
    return signed_as(y * back, x);
}

double exact_hypot(double a, double b)
{
    a = size_of(a);
    b = size_of(b);
    if (a == INFINITE_64 || b == INFINITE_64)
        return INFINITE_64;
    if (is_nan(a) || is_nan(b))
        return NOT_A_NUMBER_64;
    double         most = max(a, b);
    int            by = most > 1e150LF ? -600 : most < 1e-150LF ? 600 : 0;
    precise double p = a * power_of_two_64(by), q = b * power_of_two_64(by); /* before they are squared */
    return sqrt(p * p + q * q) * power_of_two_64(-by);
}
