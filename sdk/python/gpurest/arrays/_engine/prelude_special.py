"""Functions of scipy.special that CUDA does not have, for generated kernels; in double, by series, continued fractions and Euler-Maclaurin sums. They go into
modules that use them."""

SOURCE = r"""
constexpr double SPECIAL_EPSILON = 1.1102230246251565e-16;
constexpr int SPECIAL_TERMS_MAX = 20000;
__device__ inline double special_nan() { return __longlong_as_double(0x7ff8000000000000LL); }
__device__ inline double special_inf() { return __longlong_as_double(0x7ff0000000000000LL); }

__device__ inline double special_digamma(double x)
{
    if (x == 0) return copysign(special_inf(), -x);
    if (x < 0 && x == floor(x)) return special_nan();
    double result = 0;
    if (x < 0) {
        result = -3.141592653589793 * cospi(x) / sinpi(x);
        x = 1 - x;
    }
    for (; x < 12; x += 1) result -= 1 / x;
    double s = 1 / (x * x);
    double tail = s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760 - s / 12))))));
    return result + log(x) - 0.5 / x - (x < 1e150 ? tail : 0);
}

/* The sum of (q + k)^-x over all k >= 0. */
__device__ inline double special_zeta(double x, double q)
{
    constexpr double factors[] = {12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1892437580.3183792, 74724249600.0, -2950130727918.164,
                                  116467828143500.67, -4597978722407472.6, 1.8152105401943547e17, -7.166165256175667e18}; /* (2k)! over Bernoulli's B(2k) */
    if (x != x || q != q) return x + q;
    if (x == 1) return special_inf();
    if (x < 1) return special_nan();
    if (q <= 0) {
        if (q == floor(q)) return special_inf();
        if (x != floor(x)) return special_nan();
    }
    double sum = 0, at = q, term = 0;
    for (int k = 0; k < 12 || at <= 12; k++, at += 1) {
        term = pow(at, -x);
        sum += term;
        if (k > 0 && fabs(term) <= SPECIAL_EPSILON * fabs(sum)) return sum;
    }
    term = pow(at, -x);
    sum += term * at / (x - 1) + 0.5 * term;
    double rising = x;
    term /= at;
    for (int k = 0; k < 12; k++) {
        double part = rising * term / factors[k];
        sum += part;
        if (fabs(part) <= SPECIAL_EPSILON * fabs(sum)) break;
        rising *= (x + 2 * k + 1) * (x + 2 * k + 2);
        term /= at * at;
    }
    return sum;
}

__device__ inline double special_polygamma(double n, double x)
{
    if (n == 0) return special_digamma(x);
    return (fmod(n, 2.0) == 0 ? -1 : 1) * tgamma(n + 1) * special_zeta(n + 1, x);
}

/* The regularized incomplete gamma functions: of [0, x], or with `upper` of what is above. */
__device__ inline double special_gammainc(double a, double x, bool upper)
{
    if (a != a || x != x) return a + x;
    if (a < 0 || x < 0) return special_nan();
    if (a == 0) return x > 0 ? !upper : special_nan();
    if (x == 0) return upper;
    if (isinf(a)) return isinf(x) ? special_nan() : upper;
    if (isinf(x)) return !upper;
    double scale = exp(a * log(x) - x - lgamma(a));
    if (x < a + 1) {
        double term = 1 / a, sum = term;
        for (int k = 1; k < SPECIAL_TERMS_MAX && term > SPECIAL_EPSILON * sum; k++) {
            term *= x / (a + k);
            sum += term;
        }
        return upper ? 1 - scale * sum : scale * sum;
    }
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d; /* Lentz's way of continued fractions */
    for (int k = 1; k < SPECIAL_TERMS_MAX; k++) {
        double an = -k * (k - a);
        b += 2;
        d = an * d + b;
        d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
        c = b + an / c;
        c = fabs(c) < 1e-300 ? 1e-300 : c;
        h *= d * c;
        if (fabs(d * c - 1) <= 2 * SPECIAL_EPSILON) break;
    }
    return upper ? scale * h : 1 - scale * h;
}

__device__ inline double special_beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
    double h = d;
    for (int m = 1; m < SPECIAL_TERMS_MAX; m++) {
        double steps[2] = {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))}, last = 0;
        for (int k = 0; k < 2; k++) {
            d = 1 + steps[k] * d;
            d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
            c = 1 + steps[k] / c;
            c = fabs(c) < 1e-300 ? 1e-300 : c;
            h *= last = d * c;
        }
        if (fabs(last - 1) <= 2 * SPECIAL_EPSILON) break;
    }
    return h;
}

/* The regularized incomplete beta function. */
__device__ inline double special_betainc(double a, double b, double x)
{
    if (a != a || b != b || x != x) return a + b + x;
    if (a <= 0 || b <= 0 || x < 0 || x > 1) return special_nan();
    if (x == 0 || x == 1) return x;
    double scale = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? scale * special_beta_fraction(a, b, x) / a : 1 - scale * special_beta_fraction(b, a, 1 - x) / b;
}

__device__ inline double special_exp1(double x)
{
    if (x < 0 || x != x) return special_nan();
    if (x == 0) return special_inf();
    if (x > 1) {
        double b = x + 1, c = 1e300, d = 1 / b, h = d;
        for (int k = 1; k < 500; k++) {
            double an = -(double)k * k;
            b += 2;
            d = 1 / (an * d + b);
            c = b + an / c;
            h *= c * d;
            if (fabs(c * d - 1) <= 2 * SPECIAL_EPSILON) break;
        }
        return h * exp(-x);
    }
    double sum = -0.5772156649015329 - log(x), term = -1;
    for (int k = 1; k < 100; k++) {
        term *= -x / k;
        sum += term / k;
        if (fabs(term / k) <= SPECIAL_EPSILON * fabs(sum)) break;
    }
    return sum;
}

/* The complete elliptic integral of the first kind of m = 1 - p, by the arithmetic and geometric mean. */
__device__ inline double special_ellipkm1(double p)
{
    if (p < 0 || p != p) return special_nan();
    if (p == 0) return special_inf();
    double a = 1, g = sqrt(p);
    for (int k = 0; k < 40 && fabs(a - g) > 2 * SPECIAL_EPSILON * a; k++) {
        double mean = (a + g) / 2;
        g = sqrt(a * g);
        a = mean;
    }
    return 3.141592653589793 / (a + g);
}
"""
