"""Random numbers on the device: Philox, and exact methods for each distribution. They go into modules whose kernels draw.

An element has a stream of its own: Philox' counter is the element's number in its low half and the number of the block drawn for it in the
high one. So what a rejection loop draws depends on the seed and the element only, not on the grid or on what other elements drew."""

from __future__ import annotations

from typing import Dict, NamedTuple

# Each distribution as a C expression: {s} is the element's stream; {c} {d} {e} are its parameters, doubles.
DISTRIBUTIONS: Dict[str, str] = {
    "random_bits": "{s}.bits()",
    "random_standard_normal": "{s}.normal()",
    "random_normal": "{c} + {d} * {s}.normal()",
    "random_lognormal": "exp({c} + {d} * {s}.normal())",
    "random_uniform": "{c} + ({d} - {c}) * {s}.unit()",
    "random_standard_exponential": "{c} * {s}.exponential()",
    "random_standard_gamma": "{d} * {s}.gamma({c})",
    "random_log_gamma": "{s}.log_gamma({c})",
    "random_beta": "{s}.beta({c}, {d})",
    "random_chisquare": "{s}.chisquare({c})",
    "random_noncentral_chisquare": "{s}.noncentral_chisquare({c}, {d})",
    "random_f": "{s}.noncentral_f({c}, {d}, 0)",
    "random_noncentral_f": "{s}.noncentral_f({c}, {d}, {e})",
    "random_standard_t": "{s}.student({c})",
    "random_standard_cauchy": "{s}.cauchy()",
    "random_pareto": "expm1({s}.exponential() / {c})",
    "random_power": "pow(-expm1(-{s}.exponential()), 1 / {c})",
    "random_weibull": "{s}.weibull({c})",
    "random_rayleigh": "{c} * sqrt(2 * {s}.exponential())",
    "random_laplace": "{c} + {d} * {s}.laplace()",
    "random_gumbel": "{c} - {d} * log({s}.exponential())",
    "random_logistic": "{c} + {d} * {s}.logistic()",
    "random_wald": "{s}.wald({c}, {d})",
    "random_triangular": "{s}.triangular({c}, {d}, {e})",
    "random_vonmises": "{s}.vonmises({c}, {d})",
    "random_poisson": "{s}.poisson({c})",
    "random_binomial": "{s}.binomial(trunc({c}), {d})",
    "random_geometric": "{s}.geometric({c})",
    "random_negative_binomial": "{s}.negative_binomial({c}, {d})",
    "random_hypergeometric": "{s}.hypergeometric(trunc({c}), trunc({d}), trunc({e}))",
    "random_logseries": "{s}.logseries({c})",
    "random_zipf": "{s}.zipf({c})",
}


class Rule(NamedTuple):
    """What a parameter that is on the device has to fulfil: {a} is the parameter, {b} a bound."""

    holds: str
    text: str


# The parameter is passed on; one that breaks the rule fails the arrays computed from it.
RULES: Dict[str, Rule] = {
    "nonnegative": Rule("!({a} < 0)", "a parameter of a distribution is negative"),
    "positive": Rule("!({a} <= 0)", "a parameter of a distribution is not positive"),
    "from_0_to_1": Rule("{a} >= 0 && {a} <= 1", "a probability of a distribution is < 0, > 1 or NaN"),
    "above_0_to_1": Rule("{a} > 0 && {a} <= 1", "a probability of a distribution is <= 0, > 1 or NaN"),
    "from_0_below_1": Rule("{a} >= 0 && {a} < 1", "a probability of a distribution is < 0, >= 1 or NaN"),
    "above_1": Rule("{a} > 1", "a parameter of a distribution is <= 1 or NaN"),
    "countable": Rule("{a} >= 0 && {a} <= 9.223372006484771e18", "the mean of a distribution is negative, too large or NaN"),
    "at_most": Rule("{a} <= {b}", "a parameter of a distribution is above its bound"),
    "at_least": Rule("{a} >= {b}", "a parameter of a distribution is below its bound"),
    "finite": Rule("{a} - {a} == 0", "a bound of a distribution is not finite"),
}
FIRST_CODE = 16  # of the words in which kernels report; those below are of other operations


def rule_template(rule: str) -> str:
    code = FIRST_CODE + list(RULES).index(rule)
    return f"random_checked(({RULES[rule].holds}), {{a}}, {{flag}}, {code})"


def distribution_template(name: str) -> str:
    return "({T})(" + DISTRIBUTIONS[name].replace("{s}", "random_stream({a}, {b} + {i})") + ")"


SOURCE = r"""
/* Philox 4x32, 10 rounds (Salmon et al., 2011): 128 random bits per key and counter. */
struct philox_bits { u32_t w[4]; };
__device__ inline philox_bits philox(u64_t key, u64_t low, u64_t high)
{
    u32_t k0 = (u32_t)key, k1 = (u32_t)(key >> 32);
    u32_t c0 = (u32_t)low, c1 = (u32_t)(low >> 32), c2 = (u32_t)high, c3 = (u32_t)(high >> 32);
    for (int round = 0; round < 10; round++) {
        u64_t p0 = (u64_t)0xD2511F53u * c0, p1 = (u64_t)0xCD9E8D57u * c2;
        u32_t n0 = (u32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (u32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (u32_t)p1; c3 = (u32_t)p0; c0 = n0; c2 = n2;
        k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
    }
    philox_bits r = {{c0, c1, c2, c3}};
    return r;
}
__device__ inline double unit_double(u32_t high, u32_t low) { return (double)(((u64_t)high << 32 | low) >> 11) * (1.0 / 9007199254740992.0); }
/* In [0, 1). */
template <typename T> __device__ inline T random_uniform(u64_t key, u64_t counter);
template <> __device__ inline float random_uniform<float>(u64_t key, u64_t counter)
{
    return (float)(philox(key, counter, 0).w[0] >> 8) * (1.0f / 16777216.0f);
}
template <> __device__ inline double random_uniform<double>(u64_t key, u64_t counter)
{
    philox_bits r = philox(key, counter, 0);
    return unit_double(r.w[0], r.w[1]);
}
/* Every number below `range` alike (Lemire, 2019); 0 stands for 2^64. */
__device__ inline u64_t random_below(u64_t key, u64_t counter, u64_t range)
{
    for (u64_t attempt = 0;; attempt++) {
        philox_bits r = philox(key, counter, attempt);
        u64_t bits = (u64_t)r.w[0] << 32 | r.w[1];
        if (range == 0) return bits;
        if (bits * range >= (0 - range) % range) return __umul64hi(bits, range);
    }
}

template <typename T> __device__ inline T random_checked(bool holds, T value, int *flag, int code)
{
    if (holds) return value;
    *flag = code;
    return (T)0;
}
/* log(n!) less Stirling's formula; n is a whole number. */
__device__ inline double stirling_rest(double n)
{
    if (n < 16) return lgamma(n + 1) - (n + 0.5) * log(n) + n - 0.9189385332046727;
    double s = n * n;
    return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - (1.0 / 1680 - 1.0 / 1188 / s) / s) / s) / s) / n;
}
/* x log(x / m) + m - x without cancellation (Loader, 2000). */
__device__ inline double deviance(double x, double m)
{
    if (fabs(x - m) >= 0.1 * (x + m)) return x * log(x / m) + m - x;
    double v = (x - m) / (x + m), sum = (x - m) * v, power = 2 * x * v;
    for (int j = 3; j < 1000; j += 2) {
        power *= v * v;
        double next = sum + power / j;
        if (next == sum) break;
        sum = next;
    }
    return sum;
}
__device__ inline double log_poisson(double k, double mean)
{
    return k == 0 ? -mean : -stirling_rest(k) - deviance(k, mean) - 0.5 * log(6.283185307179586 * k);
}
__device__ inline double log_binomial(double k, double n, double p)
{
    if (k == 0) return n * log1p(-p);
    if (k == n) return n * log(p);
    return stirling_rest(n) - stirling_rest(k) - stirling_rest(n - k) - deviance(k, n * p) - deviance(n - k, n * (1 - p))
        + 0.5 * log(n / (6.283185307179586 * k * (n - k)));
}
__device__ inline bool finite_number(double x) { return x - x == 0; }

struct random_stream {
    u64_t key, element, block, kept;
    bool full;

    __device__ inline random_stream(u64_t key, u64_t element) : key(key), element(element), block(0), kept(0), full(false) {}
    __device__ inline u64_t bits()
    {
        if (full) { full = false; return kept; }
        philox_bits r = philox(key, element, block++);
        kept = (u64_t)r.w[2] << 32 | r.w[3];
        full = true;
        return (u64_t)r.w[0] << 32 | r.w[1];
    }
    /* In [0, 1). */
    __device__ inline double unit() { return (double)(bits() >> 11) * (1.0 / 9007199254740992.0); }
    /* In (0, 1), and as far from 0 as from 1. */
    __device__ inline double open() { return ((double)(bits() >> 12) + 0.5) * (1.0 / 4503599627370496.0); }
    /* Every whole number below `range` alike (Lemire, 2019). */
    __device__ inline u64_t below(u64_t range)
    {
        for (;;) {
            u64_t b = bits();
            if (b * range >= (0 - range) % range) return __umul64hi(b, range);
        }
    }
    /* Box and Muller; 1 - u keeps the logarithm's argument above 0. */
    __device__ inline double normal()
    {
        double radius = sqrt(-2.0 * log(1.0 - unit()));
        return radius * cospi(2.0 * unit());
    }
    __device__ inline double exponential() { return -log(open()); }
    __device__ inline double cauchy() { double u = open(); return -cospi(u) / sinpi(u); }
    __device__ inline double laplace() { double u = open(); return u < 0.5 ? log(2 * u) : -log(2 - 2 * u); }
    __device__ inline double logistic() { double u = open(); return log(u) - log1p(-u); }
    __device__ inline double weibull(double a) { return a == 0 ? 0 : pow(exponential(), 1 / a); }

    /* Marsaglia and Tsang, 2000; a >= 1 and finite. */
    __device__ inline double gamma_from_1(double a)
    {
        double d = a - 1.0 / 3, c = 1 / sqrt(9 * d);
        for (;;) {
            double x = normal(), t = c * x;
            if (t <= -1) continue;
            if (log(open()) < 0.5 * x * x + d * (3 * (log1p(t) - t) - t * t * (3 + t))) return d * (1 + t) * (1 + t) * (1 + t);
        }
    }
    __device__ inline double gamma(double a)
    {
        if (!(a > 0) || !finite_number(a)) return a;
        if (a >= 1) return gamma_from_1(a);
        double u = open();
        return pow(u, 1 / a) * gamma_from_1(a + 1);
    }
    /* Its logarithm, which is there where the number itself is too small to be one. */
    __device__ inline double log_gamma(double a)
    {
        if (!(a > 0) || !finite_number(a)) return log(a);
        if (a >= 1) return log(gamma_from_1(a));
        double u = open();
        return log(u) / a + log(gamma_from_1(a + 1));
    }
    __device__ inline double beta(double a, double b)
    {
        if (!finite_number(a) || !finite_number(b)) return a / (a + b);
        double x = log_gamma(a), y = log_gamma(b), most = x > y ? x : y;
        double p = exp(x - most), q = exp(y - most);
        return p / (p + q);
    }
    __device__ inline double chisquare(double df) { return 2 * gamma(df / 2); }
    __device__ inline double noncentral_chisquare(double df, double nonc)
    {
        if (!finite_number(nonc) || df != df) return nonc + df;
        if (df > 1) {
            double shifted = normal() + sqrt(nonc);
            return chisquare(df - 1) + shifted * shifted;
        }
        return chisquare(df + 2 * poisson(nonc / 2));
    }
    __device__ inline double noncentral_f(double n, double d, double nonc)
    {
        double above = nonc == 0 ? chisquare(n) : noncentral_chisquare(n, nonc);
        return above / n / (finite_number(d) ? chisquare(d) / d : d == d ? 1 : d);
    }
    __device__ inline double student(double df)
    {
        double z = normal();
        return !finite_number(df) && df == df ? z : z * sqrt(df / 2) / sqrt(gamma(df / 2));
    }
    /* Michael, Schucany and Haas, 1976. */
    __device__ inline double wald(double mean, double scale)
    {
        double z = normal(), t = mean * z * z / (2 * scale), ratio = 1 + t + sqrt(t * (2 + t));
        double lesser = mean / ratio;
        return unit() * (mean + lesser) <= mean ? lesser : mean * ratio;
    }
    __device__ inline double triangular(double left, double mode, double right)
    {
        double base = right - left, first = mode - left, u = unit();
        if (base == 0) return left;
        return u * base <= first ? left + sqrt(u * first * base) : right - sqrt((1 - u) * (right - mode) * base);
    }
    /* Best and Fisher, 1979. */
    __device__ inline double vonmises(double mu, double kappa)
    {
        const double pi = 3.141592653589793;
        if (mu != mu || kappa != kappa) return mu + kappa;
        if (kappa < 1e-8) return pi * (2 * unit() - 1);
        double turned;
        if (kappa > 1e6) {
            turned = mu + sqrt(1 / kappa) * normal();
        } else {
            double r = 1 + sqrt(1 + 4 * kappa * kappa), rho = (r - sqrt(2 * r)) / (2 * kappa);
            double s = kappa < 1e-5 ? 1 / kappa + kappa : (1 + rho * rho) / (2 * rho), w;
            for (;;) {
                double z = cospi(open());
                w = (1 + s * z) / (s + z);
                double y = kappa * (s - w), v = open();
                if (y * (2 - y) - v >= 0 || log(y / v) + 1 - y >= 0) break;
            }
            w = acos(w > 1 ? 1 : w < -1 ? -1 : w);
            turned = mu + (unit() < 0.5 ? -w : w);
        }
        return remainder(turned, 2 * pi);
    }

    /* Below a mean of 10 by products of uniform numbers, above by transformed rejection (Hoermann, 1993). */
    __device__ inline double poisson(double mean)
    {
        if (!(mean > 0)) return 0;
        if (mean < 10) {
            double least = exp(-mean), product = unit(), k = 0;
            for (; product > least; k++) product *= unit();
            return k;
        }
        double root = sqrt(mean), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b, inverse = 1.1239 + 1.1328 / (b - 3.4);
        double sure = 0.9277 - 3.6224 / (b - 2);
        for (;;) {
            double u = open() - 0.5, v = open(), us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + mean + 0.43);
            if (us >= 0.07 && v <= sure) return k;
            if (k < 0 || (us < 0.013 && v > us)) continue;
            if (log(v * inverse / (a / (us * us) + b)) <= log_poisson(k, mean)) return k;
        }
    }
    __device__ inline double binomial(double n, double p)
    {
        if (!(n > 0) || !(p > 0)) return 0;
        if (p >= 1) return n;
        return p > 0.5 ? n - binomial_half(n, 1 - p) : binomial_half(n, p);
    }
    /* p <= 1/2: below a mean of 10 by inversion, above by transformed rejection (Hoermann, 1993). */
    __device__ inline double binomial_half(double n, double p)
    {
        double q = 1 - p, mean = n * p;
        if (mean < 10) {
            double most = n < 110 ? n : 110; /* what lies beyond is less likely than 2^-200 */
            for (;;) {
                double u = unit(), at = exp(n * log1p(-p)), k = 0;
                while (u > at && k < most) {
                    u -= at;
                    k++;
                    at *= (n - k + 1) * p / (k * q);
                }
                if (u <= at) return k;
            }
        }
        double spread = sqrt(mean * q), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p, sure = 0.92 - 4.2 / b;
        double alpha = (2.83 + 5.1 / b) * spread, peak = log_binomial(floor((n + 1) * p), n, p);
        for (;;) {
            double u = open() - 0.5, v = open(), us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + mean + 0.5);
            if (us >= 0.07 && v <= sure) return k;
            if (k < 0 || k > n) continue;
            if (log(v * alpha / (a / (us * us) + b)) <= log_binomial(k, n, p) - peak) return k;
        }
    }
    __device__ inline double geometric(double p)
    {
        if (p >= 1) return 1;
        double k = ceil(-exponential() / log1p(-p));
        return k < 9223372036854774784.0 ? k : 9223372036854774784.0;
    }
    __device__ inline double negative_binomial(double n, double p) { return poisson(gamma(n) * ((1 - p) / p)); }
    /* Drawn one by one when there are few to draw or to leave, else by the ratio of uniforms (Stadlober, 1990). */
    __device__ inline double hypergeometric(double good, double bad, double count)
    {
        if (!(good >= 0 && bad >= 0 && count >= 0 && count <= good + bad)) return 0;
        double total = good + bad, drawn = count < total - count ? count : total - count;
        double found = drawn < 10 ? hypergeometric_few(good, total, drawn) : hypergeometric_many(good, bad, drawn);
        return drawn < count ? good - found : found;
    }
    __device__ inline double hypergeometric_few(double good, double total, double count)
    {
        double left = good;
        for (; count > 0 && left > 0; count--, total--)
            if ((double)below((u64_t)total) < left) left--;
        return good - left;
    }
    __device__ inline double hypergeometric_many(double good, double bad, double count)
    {
        double total = good + bad, few = good < bad ? good : bad, many = good < bad ? bad : good, p = few / total;
        double centre = count * p + 0.5, spread = sqrt((total - count) * count * p * (1 - p) / (total - 1) + 0.5);
        double wide = 1.7155277699214135 * spread + 0.8989161620588988, m = floor((count + 1) * (few + 1) / (total + 2));
        double peak = lgamma(m + 1) + lgamma(few - m + 1) + lgamma(count - m + 1) + lgamma(many - count + m + 1);
        double least = (count < few ? count : few) + 1, end = floor(centre + 16 * spread), k;
        end = end < least ? end : least;
        for (;;) {
            double u = open(), v = open(), x = centre + wide * (v - 0.5) / u;
            if (x < 0 || x >= end) continue;
            k = floor(x);
            double t = peak - (lgamma(k + 1) + lgamma(few - k + 1) + lgamma(count - k + 1) + lgamma(many - count + k + 1));
            if (u * (4 - u) - 3 <= t) break;
            if (u * (u - t) < 1 && 2 * log(u) <= t) break;
        }
        return good > bad ? count - k : k;
    }
    /* Kemp, 1981. */
    __device__ inline double logseries(double p)
    {
        double r = log1p(-p);
        for (;;) {
            double v = open();
            if (!(v < p)) return 1;
            double q = -expm1(r * open());
            if (v > q * q) return v >= q ? 1 : 2;
            double k = floor(1 + log(v) / log(q));
            if (k >= 1) return k < 9223372036854774784.0 ? k : 9223372036854774784.0;
        }
    }
    /* Devroye, 1986. */
    __device__ inline double zipf(double a)
    {
        if (!(a > 1)) return 0;
        if (a >= 1025) return 1;
        double less = a - 1, b = exp2(less), least = pow(9223372036854775807.0, -less);
        for (;;) {
            double u = open(), v = unit(), x = floor(pow(u * least + (1 - u), -1 / less));
            if (!(x >= 1 && x < 9223372036854774784.0)) continue;
            double grown = expm1(less * log1p(1 / x));
            if (v * x * grown / (b - 1) <= (grown + 1) / b) return x;
        }
    }
};
"""
