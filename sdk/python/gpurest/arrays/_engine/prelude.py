"""Device functions that generated kernels call. They go into every generated module; what a kernel does not use costs nothing there."""

PRELUDE = r"""
typedef unsigned long long u64_t;
typedef unsigned int u32_t;

__device__ inline float half_load(unsigned short h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
__device__ inline unsigned short half_store(float f) { unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f)); return h; }
__device__ inline float half_rounded(float f) { return half_load(half_store(f)); }
/* Rounding twice would err: round to odd on the way. */
__device__ inline float half_rounded_once(double x)
{
    float f = __double2float_rz(x);
    if ((double)f != x && f - f == 0)
        f = __int_as_float(__float_as_int(f) | 1);
    return half_rounded(f);
}

template <typename T> __device__ inline T floor_divide_signed(T a, T b)
{
    if (b == 0) return 0;
    if (b == -1) return (T)(0 - (u64_t)a);
    T q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? (T)(q - 1) : q;
}
template <typename T> __device__ inline T remainder_signed(T a, T b)
{
    if (b == 0 || b == -1) return 0;
    T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
}
template <typename T> __device__ inline T fmod_signed(T a, T b) { return b == 0 || b == -1 ? (T)0 : (T)(a % b); }
template <typename T> __device__ inline T remainder_float(T a, T b)
{
    T r = fmod(a, b);
    if (b == 0) return r;
    if (r == 0) return copysign((T)0, b);
    return (b < 0) != (r < 0) ? r + b : r;
}
template <typename T> __device__ inline T floor_divide_float(T a, T b)
{
    if (b == 0) return a / b;
    T r = fmod(a, b), q = (a - r) / b;
    if (r != 0 && (b < 0) != (r < 0)) q -= 1;
    if (q == 0) return copysign((T)0, a / b);
    T whole = floor(q);
    return q - whole > (T)0.5 ? whole + 1 : whole;
}
template <typename T> __device__ inline T power_unsigned(T base, T exponent)
{
    u64_t result = 1, square = (u64_t)base;
    for (u64_t e = (u64_t)exponent; e; e >>= 1, square *= square)
        if (e & 1) result *= square;
    return (T)result;
}
template <typename T> __device__ inline T power_signed(T base, T exponent, int *flag)
{
    if (exponent < 0) { *flag = 2; return 0; }
    return (T)power_unsigned<u64_t>((u64_t)base, (u64_t)exponent);
}
template <typename T> __device__ inline T shift_left(T a, T b)
{
    return (u64_t)b < 8 * sizeof(T) ? (T)((u64_t)a << (u64_t)b) : (T)0;
}
template <typename T> __device__ inline T shift_right(T a, T b)
{
    return (u64_t)b < 8 * sizeof(T) ? (T)(a >> b) : (a < (T)0 ? (T)-1 : (T)0);
}
/* <0, 0 or >0: the sign of a - b, with nothing lost. */
__device__ inline int compare_mixed(long long a, u64_t b) { return a < 0 ? -1 : ((u64_t)a > b) - ((u64_t)a < b); }
__device__ inline int compare_mixed(u64_t a, long long b) { return -compare_mixed(b, a); }
template <typename T> __device__ inline T log_add_exp(T a, T b)
{
    if (a == b) return a + (T)0.6931471805599453;
    T high = a > b ? a : b, low = a > b ? b : a;
    return a != a || b != b ? a + b : high + log1p(exp(low - high));
}

template <typename T> __device__ inline T log_add_exp2(T a, T b)
{
    if (a == b) return a + 1;
    T high = a > b ? a : b, low = a > b ? b : a;
    return a != a || b != b ? a + b : high + log1p(exp2(low - high)) * (T)1.4426950408889634;
}
template <typename T> __device__ inline u64_t magnitude(T a) { return a < 0 ? 0 - (u64_t)(long long)a : (u64_t)a; }
__device__ inline u64_t greatest_common(u64_t a, u64_t b)
{
    while (b) { u64_t rest = a % b; a = b; b = rest; }
    return a;
}
template <typename T> __device__ inline T greatest_common_signed(T a, T b) { return (T)greatest_common(magnitude(a), magnitude(b)); }
__device__ inline u64_t least_common(u64_t a, u64_t b) { return a && b ? a / greatest_common(a, b) * b : 0; }
/* The next half from a towards b, and the distance to the next greater one, which is spacing() of halves. */
__device__ inline float half_next(float a, float b)
{
    if (a != a || b != b) return a + b;
    if (a == b) return b;
    unsigned short bits = half_store(a);
    if (a == 0) return half_load(b > 0 ? 1 : 0x8001);
    return half_load((unsigned short)((a > 0) == (b > a) ? bits + 1 : bits - 1));
}
__device__ inline float half_spacing(float a)
{
    if (a != a || a - a != 0) return a - a;
    return half_next(a, __int_as_float(0x7f800000)) - a;
}
template <typename T> __device__ inline T spacing_of(T a)
{
    if (a != a || a - a != 0) return a - a;
    T size = fabs(a), far = nextafter(size, (T)__int_as_float(0x7f800000));
    return copysign(far - size, a);
}
template <typename T> __device__ inline T modf_fraction(T a) { return a - a == 0 ? copysign(a - trunc(a), a) : a != a ? a : copysign((T)0, a); }
template <typename T> __device__ inline T frexp_mantissa(T a) { int e; return frexp(a, &e); }
template <typename T> __device__ inline int frexp_exponent(T a) { int e; frexp(a, &e); return a - a == 0 ? e : 0; }

__device__ inline long long index_checked(long long number, long long extent, int *flag)
{
    long long place = number < 0 ? number + extent : number;
    if (place >= 0 && place < extent) return place;
    *flag = 1;
    return 0;
}

template <typename T> __device__ inline bool is_nan(T a) { return a != a; }
/* Whether (a, i) comes before (b, j) as a place of the greatest or least: the first NaN, else the first of the best. */
template <typename T> __device__ inline bool arg_before(bool greatest, T a, long long i, T b, long long j)
{
    if (is_nan(a) != is_nan(b)) return is_nan(a);
    if (is_nan(a) || a == b) return i < j;
    return greatest ? a > b : a < b;
}
/* The order of sorting: NaN behind everything. */
template <typename T> __device__ inline bool sorts_before(T a, T b) { return a < b || (is_nan(b) && !is_nan(a)); }
template <typename T> __device__ inline T nan_max(T a, T b) { return a >= b || is_nan(a) ? a : b; }
template <typename T> __device__ inline T nan_min(T a, T b) { return a <= b || is_nan(a) ? a : b; }
"""
