/* Powers and logarithms of f64 for the shaders of the built-in kernels: GLSL has none.
 *
 * Methods and numbers: Sun's fdlibm (1993), e_exp.c and e_log.c; within 1 unit of the last place, those to other bases within 2. */

#define LN2_HIGH 6.93147180369123816490e-01LF
#define LN2_LOW 1.90821492927058770002e-10LF
#define INFINITE_64 packDouble2x32(uvec2(0u, 0x7ff00000u))
#define NOT_A_NUMBER_64 packDouble2x32(uvec2(0u, 0x7ff80000u))

/* x 2^k, k from -1100 to 1100: in two steps, so that neither overflows before the result does. */
double scaled(double x, int k)
{
    int half_k = k / 2;
    return x * packDouble2x32(uvec2(0u, uint(half_k + 1023) << 20)) * packDouble2x32(uvec2(0u, uint(k - half_k + 1023) << 20));
}

/* e to the (high - low), which is from -ln 2 / 2 to ln 2 / 2. */
double exp_near_0(double high, double low)
{
    precise double r = high - low;
    double         t = r * r;
    double         c = r - t * (1.66666666666666019037e-01LF + t * (-2.77777777770155933842e-03LF + t * (6.61375632143793436117e-05LF +
                           t * (-1.65339022054652515390e-06LF + t * 4.13813679705723846039e-08LF))));
    precise double rest = low - r * c / (2.0LF - c);
    precise double y = 1.0LF - (rest - high);
    return y;
}

double exact_exp(double x)
{
    if (is_nan(x))
        return x;
    if (x > 710.0LF || x < -746.0LF)
        return x < 0.0LF ? 0.0LF : INFINITE_64;
    double         k = roundEven(x * 1.44269504088896338700LF);
    precise double high = x - k * LN2_HIGH;
    return scaled(exp_near_0(high, k * LN2_LOW), int(k));
}
double exact_exp2(double x)
{
    if (is_nan(x))
        return x;
    if (x >= 1024.0LF || x < -1076.0LF)
        return x < 0.0LF ? 0.0LF : INFINITE_64;
    double k = roundEven(x);
    return scaled(exp_near_0((x - k) * 6.93147180559945286227e-01LF, 0.0LF), int(k));
}

/* x = (1 + f) 2^e, x positive and finite, 1 + f from sqrt(1/2) to sqrt(2). */
double split(double x, out double e)
{
    int k = -1022;
    if (unpackDouble2x32(x).y < 0x00100000u) {
        uvec2 small = unpackDouble2x32(x);
        x = double(small.y) * 4294967296.0LF + double(small.x); /* times 2^1074, whether the device knows such numbers or not */
        k -= 1074;
    }
    uvec2  bits = unpackDouble2x32(x);
    double m = packDouble2x32(uvec2(bits.x, (bits.y & 0x000fffffu) | 0x3fe00000u));
    k += int(bits.y >> 20);
    if (m < 0.70710678118654752440LF) {
        k--;
        m += m;
    }
    e = double(k);
    return m - 1.0LF;
}

/* log(1 + f), and with it e ln 2. */
double log_near_1(double f, double e)
{
    double         s = f / (2.0LF + f), z = s * s, w = z * z;
    double         odd = z * (6.666666666666735130e-01LF + w * (2.857142874366239149e-01LF + w * (1.818357216161805012e-01LF + w * 1.479819860511658591e-01LF)));
    double         even = w * (3.999999999940941908e-01LF + w * (2.222219843214978396e-01LF + w * 1.531383769920937332e-01LF));
    precise double half_square = 0.5LF * f * f;
    precise double rest = half_square - (s * (half_square + (odd + even)) + e * LN2_LOW);
    precise double y = e * LN2_HIGH - (rest - f);
    return y;
}

/* Whether x has no logarithm that is a number; then it is in `value`. */
bool log_is_special(double x, out double value)
{
    uvec2 bits = unpackDouble2x32(x);
    bool  negative = bits.y >= 0x80000000u, zero = ((bits.y & 0x7fffffffu) | bits.x) == 0u;
    value = zero ? -INFINITE_64 : is_nan(x) || negative ? NOT_A_NUMBER_64 : x;
    return zero || negative || !is_finite(x);
}

double exact_log(double x)
{
    double e, value;
    if (log_is_special(x, value))
        return value;
    double f = split(x, e);
    return log_near_1(f, e);
}
double exact_log2(double x)
{
    double e, value;
    if (log_is_special(x, value))
        return value;
    double f = split(x, e);
    return log_near_1(f, 0.0LF) * 1.44269504088896338700LF + e;
}
double exact_log10(double x)
{
    double e, value;
    if (log_is_special(x, value))
        return value;
    double f = split(x, e);
    return (log_near_1(f, 0.0LF) * 4.34294481903251816668e-01LF + e * 3.69423907715893078616e-13LF) + e * 3.01029995663611771306e-01LF;
}
/* log(u) of u = 1 + x, and what rounding took from u. */
double exact_log1p(double x)
{
    if (x > -0.29LF && x < 0.41LF)
        return x == 0.0LF ? x : log_near_1(x, 0.0LF);
    precise double u = 1.0LF + x;
    precise double lost = x > 1.0LF ? 1.0LF - (u - x) : x - (u - 1.0LF);
    double         y = exact_log(u);
    return is_finite(y) ? y + lost / u : y;
}
