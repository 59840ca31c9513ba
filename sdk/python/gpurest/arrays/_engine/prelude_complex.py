"""Complex numbers for generated kernels: the type, and its functions by the names that real numbers have. They go into modules that use them,
COMPLEX_ORDER behind PRELUDE.

Operators are NumPy's: products by the plain formula, quotients by Smith's method, order by real part and then imaginary part. Functions have the branch
cuts and the special values of C99's Annex G. The inverse ones are Kahan's ("Branch cuts for complex elementary functions", 1987), with logarithms where
the number is so large that 1 beside it is nothing. Where float would lose digits or overflow on the way, it computes in double."""

COMPLEX = r"""
template <typename F> struct alignas(2 * sizeof(F)) complex {
    F re, im;
    complex() = default;
    __device__ complex(F real, F imaginary = 0) : re(real), im(imaginary) {}
    template <typename G> __device__ explicit complex(const complex<G> &other) : re((F)other.re), im((F)other.im) {}
    __device__ F real() const { return re; }
    __device__ F imag() const { return im; }
    __device__ friend complex operator-(complex a) { return complex(-a.re, -a.im); }
    __device__ friend complex operator+(complex a, complex b) { return complex(a.re + b.re, a.im + b.im); }
    __device__ friend complex operator-(complex a, complex b) { return complex(a.re - b.re, a.im - b.im); }
    __device__ friend complex operator*(complex a, complex b) { return complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re); }
    __device__ friend complex operator/(complex a, complex b)
    {
        F wide = fabs(b.re), high = fabs(b.im);
        if (wide == 0 && high == 0) return complex(a.re / wide, a.im / wide);
        if (wide >= high) {
            F ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);
            return complex((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale);
        }
        F ratio = b.re / b.im, scale = 1 / (b.im + b.re * ratio);
        return complex((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale);
    }
    __device__ complex &operator+=(complex b) { return *this = *this + b; }
    __device__ complex &operator-=(complex b) { return *this = *this - b; }
    __device__ complex &operator*=(complex b) { return *this = *this * b; }
    __device__ complex &operator/=(complex b) { return *this = *this / b; }
    __device__ friend bool operator==(complex a, complex b) { return a.re == b.re && a.im == b.im; }
    __device__ friend bool operator!=(complex a, complex b) { return !(a == b); }
    __device__ friend bool operator<(complex a, complex b) { return (a.re < b.re && a.im == a.im && b.im == b.im) || (a.re == b.re && a.im < b.im); }
    __device__ friend bool operator<=(complex a, complex b) { return (a.re < b.re && a.im == a.im && b.im == b.im) || (a.re == b.re && a.im <= b.im); }
    __device__ friend bool operator>(complex a, complex b) { return b < a; }
    __device__ friend bool operator>=(complex a, complex b) { return b <= a; }
};

template <typename F> __device__ inline F real(complex<F> z) { return z.re; }
template <typename F> __device__ inline F imag(complex<F> z) { return z.im; }
template <typename F> __device__ inline F abs(complex<F> z) { return hypot(z.re, z.im); }
template <typename F> __device__ inline F arg(complex<F> z) { return atan2(z.im, z.re); }
template <typename F> __device__ inline F norm(complex<F> z) { return z.re * z.re + z.im * z.im; }
template <typename F> __device__ inline complex<F> conj(complex<F> z) { return complex<F>(z.re, -z.im); }
template <typename F> __device__ inline complex<F> times_i(complex<F> z) { return complex<F>(-z.im, z.re); }
template <typename F> __device__ inline complex<F> over_i(complex<F> z) { return complex<F>(z.im, -z.re); }
template <typename F> __device__ inline complex<F> rint(complex<F> z) { return complex<F>(rint(z.re), rint(z.im)); }
template <typename F> __device__ inline F infinite() { return (F)__int_as_float(0x7f800000); }
template <typename F> __device__ inline F no_number() { return (F)__int_as_float(0x7fc00000); }
template <typename F> __device__ inline bool is_finite(F a) { return a - a == 0; }
template <typename F> __device__ inline bool is_infinite(F a) { return a == a && a - a != 0; }

template <typename F> __device__ inline complex<F> complex_sign(complex<F> z)
{
    F size = abs(z);
    if (size != size) return complex<F>(size, size);
    if (size == 0) return complex<F>(0, 0);
    if (is_finite(size)) return complex<F>(z.re / size, z.im / size);
    if (!is_infinite(z.re)) return complex<F>(0, copysign((F)1, z.im));
    return is_infinite(z.im) ? complex<F>(no_number<F>(), no_number<F>()) : complex<F>(copysign((F)1, z.re), 0);
}
template <typename F> __device__ inline complex<F> complex_reciprocal(complex<F> z)
{
    if (fabs(z.im) <= fabs(z.re)) {
        F ratio = z.im / z.re, whole = z.re + z.im * ratio;
        return complex<F>(1 / whole, -ratio / whole);
    }
    F ratio = z.re / z.im, whole = z.re * ratio + z.im;
    return complex<F>(ratio / whole, -1 / whole);
}

/* From where on exp() overflows, a product with a sine may not: then in two steps. */
__device__ inline float exp_limit(float) { return 88; }
__device__ inline double exp_limit(double) { return 709; }
template <typename F> __device__ inline complex<F> exp(complex<F> z)
{
    if (z.im == 0) return complex<F>(exp(z.re), z.im);
    if (!is_finite(z.im)) {
        if (is_infinite(z.re)) return z.re > 0 ? complex<F>(z.re, no_number<F>()) : complex<F>(0, copysign((F)0, z.im));
        return complex<F>(no_number<F>(), no_number<F>());
    }
    F s, c;
    sincos(z.im, &s, &c);
    if (z.re <= exp_limit(z.re)) {
        F size = exp(z.re);
        return complex<F>(size * c, size * s);
    }
    F root = exp(z.re / 2);
    return complex<F>(root * c * root, root * s * root);
}
__device__ inline complex<double> exp2(complex<double> z) { return exp(complex<double>(z.re * 0.6931471805599453, z.im * 0.6931471805599453)); }
template <typename F> __device__ inline complex<F> expm1(complex<F> z)
{
    if (z.im == 0) return complex<F>(expm1(z.re) + 0, z.im); /* 0, not -0, of both zeros */
    if (!is_finite(z.im) || z.re > exp_limit(z.re) || is_infinite(z.re)) return exp(z) - complex<F>(1);
    F half = sin(z.im / 2);
    return complex<F>(expm1(z.re) * cos(z.im) - 2 * half * half, exp(z.re) * sin(z.im));
}

template <typename F> __device__ inline complex<F> sinh(complex<F> z)
{
    if (z.im == 0) return complex<F>(sinh(z.re), z.im);
    if (!is_finite(z.im)) {
        F part = z.re == 0 ? z.re : is_infinite(z.re) ? fabs(z.re) : no_number<F>();
        return complex<F>(part, no_number<F>());
    }
    F s, c;
    sincos(z.im, &s, &c);
    if (fabs(z.re) <= exp_limit(z.re)) return complex<F>(sinh(z.re) * c, cosh(z.re) * s);
    F root = exp(fabs(z.re) / 2);
    return complex<F>(copysign(root, z.re) / 2 * c * root, root / 2 * s * root);
}
template <typename F> __device__ inline complex<F> cosh(complex<F> z)
{
    if (z.im == 0) return complex<F>(cosh(z.re), z.im * copysign((F)1, z.re));
    if (!is_finite(z.im)) {
        if (z.re == 0) return complex<F>(no_number<F>(), z.re);
        return complex<F>(is_infinite(z.re) ? fabs(z.re) : no_number<F>(), no_number<F>());
    }
    F s, c;
    sincos(z.im, &s, &c);
    if (fabs(z.re) <= exp_limit(z.re)) return complex<F>(cosh(z.re) * c, sinh(z.re) * s);
    F root = exp(fabs(z.re) / 2);
    return complex<F>(root / 2 * c * root, copysign(root, z.re) / 2 * s * root);
}
template <typename F> __device__ inline complex<F> tanh(complex<F> z)
{
    if (z.im == 0) return complex<F>(tanh(z.re), z.im);
    if (is_infinite(z.re)) return complex<F>(copysign((F)1, z.re), copysign((F)0, is_finite(z.im) ? sin(2 * z.im) : z.im));
    if (!is_finite(z.im) || z.re != z.re) return complex<F>(z.re == 0 ? z.re : no_number<F>(), no_number<F>());
    F s, c;
    sincos(z.im, &s, &c);
    if (fabs(z.re) > 22) return complex<F>(copysign((F)1, z.re), 4 * s * c * exp(-2 * fabs(z.re)));
    F wave = sinh(z.re), whole = c * c + wave * wave;
    return complex<F>(wave * cosh(z.re) / whole, s * c / whole);
}
template <typename F> __device__ inline complex<F> sin(complex<F> z) { return over_i(sinh(times_i(z))); }
template <typename F> __device__ inline complex<F> cos(complex<F> z) { return cosh(times_i(z)); }
template <typename F> __device__ inline complex<F> tan(complex<F> z) { return over_i(tanh(times_i(z))); }

/* x x + y y - 1 with the roundings of squares and sums put back. */
__device__ inline double square_less_one(double x, double y)
{
    double a = x * x, b = y * y, rest = fma(x, x, -a) + fma(y, y, -b), left = a - 1, whole = left + b, back = whole - left;
    return whole + ((left - (whole - back)) + (b - back) + rest);
}
__device__ inline double log_size(double x, double y)
{
    double wide = fmax(fabs(x), fabs(y)), high = fmin(fabs(x), fabs(y));
    if (wide > 1e300) return log(hypot(x / 4, y / 4)) + 1.3862943611198906;
    if (wide < 1e-290 && wide > 0) return log(hypot(x * 1e100, y * 1e100)) - 230.25850929940458;
    double size = hypot(x, y);
    return size > 0.5 && size < 2 ? log1p(square_less_one(wide, high)) / 2 : log(size);
}
__device__ inline complex<double> log(complex<double> z) { return complex<double>(log_size(z.re, z.im), arg(z)); }
__device__ inline complex<double> log1p(complex<double> z) { return log(complex<double>(1 + z.re, z.im)); }
__device__ inline complex<double> log2(complex<double> z)
{
    complex<double> made = log(z);
    return complex<double>(made.re * 1.4426950408889634, made.im * 1.4426950408889634);
}
__device__ inline complex<double> log10(complex<double> z)
{
    complex<double> made = log(z);
    return complex<double>(made.re * 0.4342944819032518, made.im * 0.4342944819032518);
}

__device__ inline complex<double> sqrt(complex<double> z)
{
    if (z.re == 0 && z.im == 0) return complex<double>(0, z.im);
    if (is_infinite(z.im)) return complex<double>(fabs(z.im), z.im);
    if (is_infinite(z.re)) {
        double part = z.im == z.im ? 0 : z.im;
        return z.re > 0 ? complex<double>(z.re, copysign(part, z.im)) : complex<double>(part, copysign(z.re, z.im));
    }
    double wide = fmax(fabs(z.re), fabs(z.im)), scale = wide > 1e300 ? 0.25 : wide < 1e-290 ? 0x1p200 : 1, back = wide > 1e300 ? 2 : wide < 1e-290 ? 0x1p-100 : 1;
    double x = z.re * scale, y = z.im * scale, t = sqrt((fabs(x) + hypot(x, y)) / 2);
    return x >= 0 ? complex<double>(t * back, y / (2 * t) * back) : complex<double>(fabs(y) / (2 * t) * back, copysign(t, y) * back);
}

/* Of the transform of pairs (x0, x1), (x2, x3) ... two numbers whose places add up to its length, and what is turned by the first one's place: the
   transform of all numbers at this place. split_halves() is the way back; where nothing is turned, both numbers count as real. */
template <typename F> __device__ inline complex<F> join_halves(complex<F> a, complex<F> b, complex<F> turn)
{
    complex<F> odd = turn * complex<F>(a.im + b.im, b.re - a.re);
    return complex<F>((a.re + b.re + odd.re) / 2, (a.im - b.im + odd.im) / 2);
}
template <typename F> __device__ inline complex<F> split_halves(complex<F> a, complex<F> b, complex<F> turn)
{
    if (turn.im == 0) return complex<F>((a.re + b.re) / 2, (a.re - b.re) / 2);
    complex<F> odd = turn * complex<F>(a.re - b.re, a.im + b.im);
    return complex<F>((a.re + b.re - odd.im) / 2, (a.im - b.im + odd.re) / 2);
}

/* Whether 1 beside it is nothing. */
__device__ inline bool is_huge(complex<double> z) { return fabs(z.re) > 1e17 || fabs(z.im) > 1e17; }
__device__ inline double log_twice(complex<double> z) { return log_size(z.re, z.im) + 0.6931471805599453; }
__device__ inline complex<double> acos(complex<double> z)
{
    if (is_huge(z)) return complex<double>(atan2(fabs(z.im), z.re), -copysign(log_twice(z), z.im));
    if (z.re == 0 && z.im != z.im) return complex<double>(1.5707963267948966, z.im);
    complex<double> less = sqrt(complex<double>(1 - z.re, -z.im)), more = sqrt(complex<double>(1 + z.re, z.im));
    return complex<double>(2 * atan2(less.re, more.re), asinh(more.re * less.im - more.im * less.re));
}
__device__ inline complex<double> asin(complex<double> z)
{
    if (is_huge(z)) return complex<double>(atan2(z.re, fabs(z.im)), copysign(log_twice(z), z.im));
    if (z.re == 0 && z.im != z.im) return z;
    complex<double> less = sqrt(complex<double>(1 - z.re, -z.im)), more = sqrt(complex<double>(1 + z.re, z.im));
    return complex<double>(atan2(z.re, less.re * more.re - less.im * more.im), asinh(less.re * more.im - less.im * more.re));
}
__device__ inline complex<double> acosh(complex<double> z)
{
    complex<double> turned = acos(z);
    return complex<double>(fabs(turned.im), copysign(turned.re, z.im));
}
__device__ inline complex<double> asinh(complex<double> z) { return over_i(asin(times_i(z))); }
__device__ inline complex<double> atanh(complex<double> z)
{
    double x = fabs(z.re), y = fabs(z.im), re, im;
    if (is_huge(z)) {
        double size = hypot(x / 2, y / 2);
        if (size != size) return complex<double>(size, size);
        re = is_finite(size) ? x / 4 / size / size : 0;
        im = z.im == z.im ? 1.5707963267948966 : z.im;
    } else {
        re = x == 0 ? 0 : x == 1 && y < 1e-160 ? (y == 0 ? infinite<double>() : (0.6931471805599453 - log(y)) / 2)
                                               : log1p(4 * x / ((1 - x) * (1 - x) + y * y)) / 4;
        im = y == 0 && x <= 1 ? 0 : atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2;
    }
    return complex<double>(copysign(re, z.re), copysign(im, z.im));
}
__device__ inline complex<double> atan(complex<double> z) { return over_i(atanh(times_i(z))); }

template <typename F> __device__ inline complex<F> complex_power(complex<F> a, long long whole)
{
    if (whole == 1) return a;
    if (whole == 2) return a * a;
    if (whole == 3) return a * (a * a);
    complex<F> made = 1;
    for (long long left = whole < 0 ? -whole : whole; left; left >>= 1, a = a * a)
        if (left & 1) made = made * a;
    return whole < 0 ? complex<F>(1) / made : made;
}
__device__ inline complex<double> power_of_logarithm(complex<double> a, complex<double> b) { return exp(b * log(a)); }
/* Small whole powers are products; 0 has no negative and no complex powers. */
template <typename F> __device__ inline complex<F> pow(complex<F> a, complex<F> b)
{
    if (b == 0) return 1;
    if (a == 0) return b.re > 0 ? complex<F>(0) : complex<F>(no_number<F>(), no_number<F>());
    if (b.im == 0 && fabs(b.re) < 100 && rint(b.re) == b.re) return complex_power(a, (long long)b.re);
    return complex<F>(power_of_logarithm(complex<double>(a), complex<double>(b)));
}

__device__ inline complex<float> exp2(complex<float> z) { return complex<float>(exp2(complex<double>(z))); }
__device__ inline complex<float> log(complex<float> z) { return complex<float>(log(complex<double>(z))); }
__device__ inline complex<float> log1p(complex<float> z) { return complex<float>(log1p(complex<double>(z))); }
__device__ inline complex<float> log2(complex<float> z) { return complex<float>(log2(complex<double>(z))); }
__device__ inline complex<float> log10(complex<float> z) { return complex<float>(log10(complex<double>(z))); }
__device__ inline complex<float> sqrt(complex<float> z) { return complex<float>(sqrt(complex<double>(z))); }
__device__ inline complex<float> asin(complex<float> z) { return complex<float>(asin(complex<double>(z))); }
__device__ inline complex<float> acos(complex<float> z) { return complex<float>(acos(complex<double>(z))); }
__device__ inline complex<float> atan(complex<float> z) { return complex<float>(atan(complex<double>(z))); }
__device__ inline complex<float> asinh(complex<float> z) { return complex<float>(asinh(complex<double>(z))); }
__device__ inline complex<float> acosh(complex<float> z) { return complex<float>(acosh(complex<double>(z))); }
__device__ inline complex<float> atanh(complex<float> z) { return complex<float>(atanh(complex<double>(z))); }
"""

COMPLEX_ORDER = r"""
/* In the order of sorting NaN is behind all numbers: of real parts first, then of imaginary ones. */
template <typename F> __device__ inline bool complex_sorts_before(complex<F> a, complex<F> b)
{
    if (a.re == b.re || (a.re != a.re && b.re != b.re)) return sorts_before<F>(a.im, b.im);
    bool nan_a = a.im != a.im, nan_b = b.im != b.im;
    if (a.re == a.re && b.re == b.re && nan_a != nan_b) return nan_b;
    return sorts_before<F>(a.re, b.re);
}
template <> __device__ inline bool sorts_before<complex<float>>(complex<float> a, complex<float> b) { return complex_sorts_before(a, b); }
template <> __device__ inline bool sorts_before<complex<double>>(complex<double> a, complex<double> b) { return complex_sorts_before(a, b); }
"""
