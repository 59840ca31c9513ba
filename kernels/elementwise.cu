/* Elementwise kernels: every element of the result from the elements of the same place.
 *
 * Method: each thread moves vectors of 16 bytes, FLAT_VECTORS of them in flight for each operand; a grid smaller than the work goes round
 * again. Pointers that are not on 16 bytes take a plain loop, and so do blocks of another width than FLAT_THREADS. In place is allowed; partly
 * overlapping buffers are not.
 * Numbers: f16 and bf16 are computed with in f32 and rounded once. min and max give NaN when either is NaN, as NumPy's minimum and maximum.
 * Integers wrap around; floor_div and mod by 0 give 0, and mod has the sign of the divisor. Casts from a real number to an integer cut off the
 * fraction and take the nearest limit of the type; NaN becomes 0. shl and shr by the width or more give 0 (shr of a negative number -1). */

/* Vectors that a thread handles at a time; the service sets it from the kernel's row in kernels.def. */
#ifndef FLAT_VECTORS
#define FLAT_VECTORS 1
#endif
#include "common.cuh"

/* ---- the loop ---- */

template <int N, class O, class F, class... I> DEVICE void one_vector(u64 at, O *out, F f, pack<I, N>... in)
{
    pack<O, N> r;
#pragma unroll
    for (int e = 0; e < N; e++)
        r.v[e] = f(in.v[e]...);
    pack_store<O, N>(out, at, r);
}

/* V vectors of one operand, a block's width apart: all are requested before the first is used. */
template <class T, int N, int V> struct operand {
    pack<T, N> part[V];

    DEVICE operand(const T *from, u64 at)
    {
#pragma unroll
        for (int k = 0; k < V; k++)
            part[k] = pack_load<T, N>(from, at + k * FLAT_THREADS);
    }
};

template <int N, int V, class O, class F, class... I> DEVICE void step(u64 at, O *out, F f, operand<I, N, V>... in)
{
#pragma unroll
    for (int k = 0; k < V; k++)
        one_vector<N>(at + k * FLAT_THREADS, out, f, in.part[k]...);
}

/* A block has FLAT_THREADS threads and handles V vectors for each at a time; only the last of all such pieces may be incomplete. */
template <int N, int V, class O, class F, class... I> DEVICE void vectors(u64 count, O *out, F f, const I *... in)
{
    u64 at = (u64)blockIdx.x * (FLAT_THREADS * V) + threadIdx.x;

    for (; at + (V - 1) * FLAT_THREADS < count; at += (u64)gridDim.x * (FLAT_THREADS * V))
        step<N, V>(at, out, f, operand<I, N, V>(in, at)...);
    if constexpr (V > 1)
        for (; at < count; at += FLAT_THREADS)
            step<N, 1>(at, out, f, operand<I, N, 1>(in, at)...);
}

template <class T> __device__ constexpr int widest() { return (int)sizeof(T); }
template <class T, class U, class... R> __device__ constexpr int widest() { return (int)sizeof(T) > widest<U, R...>() ? (int)sizeof(T) : widest<U, R...>(); }

template <class O, class F, class... I> DEVICE void elementwise(u64 n, O *out, F f, const I *... in)
{
    constexpr int N = 16 / widest<O, I...>();
    bool wide = blockDim.x == FLAT_THREADS && aligned<O, N>(out);
    bool each[] = {true, aligned<I, N>(in)...};

    for (bool one : each)
        wide = wide && one;
    /* A number instead of a branch: requests one after the other are a large part of a small array's time. */
    u64 whole = wide ? n / N : 0, done = whole * N;
    vectors<N, FLAT_VECTORS>(whole, out, f, in...);
    if (done == n)
        return;
    for (u64 i = done + global_thread(); i < n; i += global_threads())
        out[i] = f(in[i]...);
}

/* ---- kernels ---- */

template <class T> __global__ void __launch_bounds__(FLAT_THREADS) fill(T *out, u64 n, T value)
{
    elementwise(n, out, [=]() { return value; });
}

template <class T> __global__ void __launch_bounds__(FLAT_THREADS) iota(T *out, u64 n, T start, T step)
{
    for (u64 i = global_thread(); i < n; i += global_threads())
        out[i] = (T)((compute_t<T>)start + (compute_t<T>)i * (compute_t<T>)step);
}

template <class T> __global__ void __launch_bounds__(FLAT_THREADS) copy(const T *x, T *out, u64 n)
{
    elementwise(n, out, [](T a) { return a; }, x);
}

template <class To, class From> struct converted {
    static DEVICE To of(From x) { return (To)(compute_t<To>)(compute_t<From>)x; }
};
template <class From> struct converted<bool, From> {
    static DEVICE bool of(From x) { return (compute_t<From>)x != (compute_t<From>)0; }
};
template <class To, class From> DEVICE To whole(From x)
{
    typedef compute_t<From> C;
    C c = (C)x;
    if (is_nan(c))
        return (To)0;
    /* 2^63 and the like are representable; the greatest integer below may not be. */
    C top = (C)((u64)1 << (8 * sizeof(To) - 1 - (traits<To>::is_signed ? 1 : 0))) * (C)2;
    if (c >= top)
        return limit<To>::highest();
    if (c <= (traits<To>::is_signed ? -top : (C)0))
        return limit<To>::lowest();
    return (To)c;
}
template <class To, class From> DEVICE To convert(From x)
{
    if constexpr (!traits<To>::real && traits<From>::real && !is_bool<To>::value)
        return whole<To>(x);
    else
        return converted<To, From>::of(x);
}

template <class From, class To> __global__ void __launch_bounds__(FLAT_THREADS) cast(const From *x, To *out, u64 n)
{
    elementwise(n, out, [](From a) { return convert<To, From>(a); }, x);
}

template <class T, class Op> __global__ void __launch_bounds__(FLAT_THREADS) unary(const T *x, T *out, u64 n)
{
    elementwise(n, out, [](T a) { return (T)Op::of((compute_t<T>)a); }, x);
}

template <class T, class Op> __global__ void __launch_bounds__(FLAT_THREADS) test(const T *x, bool *out, u64 n)
{
    elementwise(n, out, [](T a) { return (bool)Op::of((compute_t<T>)a); }, x);
}

template <class T, class Op> __global__ void __launch_bounds__(FLAT_THREADS) binary(const T *a, const T *b, T *out, u64 n)
{
    elementwise(n, out, [](T p, T q) { return (T)Op::of((compute_t<T>)p, (compute_t<T>)q); }, a, b);
}

template <class T, class Op> __global__ void __launch_bounds__(FLAT_THREADS) compare(const T *a, const T *b, bool *out, u64 n)
{
    elementwise(n, out, [](T p, T q) { return (bool)Op::of((compute_t<T>)p, (compute_t<T>)q); }, a, b);
}

template <class T> __global__ void __launch_bounds__(FLAT_THREADS) axpy(T alpha, const T *x, T *y, u64 n)
{
    typedef compute_t<T> C;
    elementwise(n, y, [=](T p, T q) { return (T)((C)alpha * (C)p + (C)q); }, x, (const T *)y);
}

template <class T> __global__ void __launch_bounds__(FLAT_THREADS) scale(const T *x, T alpha, T beta, T *out, u64 n)
{
    typedef compute_t<T> C;
    elementwise(n, out, [=](T p) { return (T)((C)alpha * (C)p + (C)beta); }, x);
}

template <class T> __global__ void __launch_bounds__(FLAT_THREADS) clip(const T *x, T low, T high, T *out, u64 n)
{
    typedef compute_t<T> C;
    elementwise(n, out, [=](T p) { C c = (C)p; return (T)(is_nan(c) ? c : c < (C)low ? (C)low : c > (C)high ? (C)high : c); }, x);
}

template <class T> __global__ void __launch_bounds__(FLAT_THREADS) where(const bool *condition, const T *a, const T *b, T *out, u64 n)
{
    elementwise(n, out, [](bool c, T p, T q) { return c ? p : q; }, condition, a, b);
}

/* ---- operations ---- */

#define UNARY_OP(name, expression) \
    struct op_##name { template <class C> static DEVICE C of(C x) { return (C)(expression); } };
#define TEST_OP(name, expression) \
    struct op_##name { template <class C> static DEVICE bool of(C x) { return expression; } };
#define BINARY_OP(name, expression) \
    struct op_##name { template <class C> static DEVICE C of(C a, C b) { return (C)(expression); } };
#define COMPARE_OP(name, expression) \
    struct op_##name { template <class C> static DEVICE bool of(C a, C b) { return expression; } };

UNARY_OP(neg, -x)
UNARY_OP(abs, x < (C)0 ? -x : x == (C)0 ? (C)0 : x)
UNARY_OP(sign, is_nan(x) ? x : (C)((x > (C)0) - (x < (C)0)))
UNARY_OP(square, x * x)
UNARY_OP(reciprocal, (C)1 / x)
UNARY_OP(sqrt, sqrt(x))
UNARY_OP(rsqrt, (C)1 / sqrt(x))
UNARY_OP(cbrt, cbrt(x))
UNARY_OP(exp, exp(x))
UNARY_OP(exp2, exp2(x))
UNARY_OP(expm1, expm1(x))
UNARY_OP(log, log(x))
UNARY_OP(log2, log2(x))
UNARY_OP(log10, log10(x))
UNARY_OP(log1p, log1p(x))
UNARY_OP(sin, sin(x))
UNARY_OP(cos, cos(x))
UNARY_OP(tan, tan(x))
UNARY_OP(asin, asin(x))
UNARY_OP(acos, acos(x))
UNARY_OP(atan, atan(x))
UNARY_OP(sinh, sinh(x))
UNARY_OP(cosh, cosh(x))
UNARY_OP(tanh, tanh(x))
UNARY_OP(asinh, asinh(x))
UNARY_OP(acosh, acosh(x))
UNARY_OP(atanh, atanh(x))
UNARY_OP(floor, floor(x))
UNARY_OP(ceil, ceil(x))
UNARY_OP(round, rint(x))
UNARY_OP(trunc, trunc(x))
UNARY_OP(erf, erf(x))
UNARY_OP(relu, x < (C)0 ? (C)0 : x)
UNARY_OP(sigmoid, (C)1 / ((C)1 + exp(-x)))
UNARY_OP(silu, x / ((C)1 + exp(-x)))
UNARY_OP(gelu, (C)0.5 * x * erfc(x * (C)-0.70710678118654752440))
UNARY_OP(bit_not, ~x)
TEST_OP(isnan, is_nan(x))
TEST_OP(isinf, !is_nan(x) && is_nan(x - x))
TEST_OP(isfinite, !is_nan(x - x))
TEST_OP(not, x == (C)0)

template <class C> DEVICE C quotient_down(C a, C b)
{
    if constexpr (traits<C>::real) {
        C r = fmod(a, b), q;
        if (b == (C)0)
            return a / b;
        q = (a - r) / b;
        if (r != (C)0 && (b < (C)0) != (r < (C)0))
            q -= (C)1;
        if (q == (C)0)
            return copysign((C)0, a / b);
        C w = floor(q);
        return q - w > (C)0.5 ? w + (C)1 : w;
    } else {
        if (b == (C)0)
            return (C)0;
        if (traits<C>::is_signed && b == (C)-1)
            return (C)(0 - (u64)a);
        C q = (C)(a / b);
        return (C)(a % b != 0 && (a < (C)0) != (b < (C)0) ? q - 1 : q);
    }
}
template <class C> DEVICE C remainder_of(C a, C b)
{
    if constexpr (traits<C>::real) {
        C r = fmod(a, b);
        if (r == (C)0)
            return b == (C)0 ? r : copysign((C)0, b);
        return (b < (C)0) != (r < (C)0) ? r + b : r;
    } else {
        if (b == (C)0 || (traits<C>::is_signed && b == (C)-1))
            return (C)0;
        C r = (C)(a % b);
        return (C)(r != 0 && (r < (C)0) != (b < (C)0) ? r + b : r);
    }
}
template <class C> DEVICE C shifted_left(C a, C b) { return (u64)b < 8 * sizeof(C) ? (C)((u64)a << (u64)b) : (C)0; }
template <class C> DEVICE C shifted_right(C a, C b) { return (u64)b < 8 * sizeof(C) ? (C)(a >> b) : a < (C)0 ? (C)-1 : (C)0; }

BINARY_OP(add, a + b)
BINARY_OP(sub, a - b)
BINARY_OP(mul, a * b)
BINARY_OP(div, a / b)
BINARY_OP(floor_div, quotient_down(a, b))
BINARY_OP(mod, remainder_of(a, b))
BINARY_OP(pow, pow(a, b))
BINARY_OP(min, is_nan(a) || a < b ? a : b)
BINARY_OP(max, is_nan(a) || a > b ? a : b)
BINARY_OP(hypot, hypot(a, b))
BINARY_OP(atan2, atan2(a, b))
BINARY_OP(copysign, copysign(a, b))
BINARY_OP(bit_and, a & b)
BINARY_OP(bit_or, a | b)
BINARY_OP(bit_xor, a ^ b)
BINARY_OP(shl, shifted_left(a, b))
BINARY_OP(shr, shifted_right(a, b))
COMPARE_OP(eq, a == b)
COMPARE_OP(ne, a != b)
COMPARE_OP(lt, a < b)
COMPARE_OP(le, a <= b)
COMPARE_OP(gt, a > b)
COMPARE_OP(ge, a >= b)
COMPARE_OP(and, a != (C)0 && b != (C)0)
COMPARE_OP(or, a != (C)0 || b != (C)0)
COMPARE_OP(xor, (a != (C)0) != (b != (C)0))
