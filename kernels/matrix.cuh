/* What the factorizations of matrices share: panels of columns, reflectors, rotations of rows, and scaling by powers of two.
 *
 * A block of threads does a matrix. Matrices are in C order, so a thread has a column: neighbours are read together, and what belongs to a row is
 * the same for all threads. PANEL columns are done at a time; then each thread applies them to its column in registers, reading it once or
 * twice for all of them. */
#pragma once
#include "common.cuh"

enum { PANEL = 16 };

/* ---- complex numbers, and real ones by the same names ---- */

template <class R> struct alignas(2 * sizeof(R)) complex {
    R re, im;
    complex() = default;
    DEVICE complex(R re, R im = (R)0) : re(re), im(im) {}
    DEVICE friend complex operator-(complex a) { return complex(-a.re, -a.im); }
    DEVICE friend complex operator+(complex a, complex b) { return complex(a.re + b.re, a.im + b.im); }
    DEVICE friend complex operator-(complex a, complex b) { return complex(a.re - b.re, a.im - b.im); }
    DEVICE friend complex operator*(complex a, complex b) { return complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re); }
    DEVICE friend complex operator*(R a, complex b) { return complex(a * b.re, a * b.im); }
    DEVICE friend complex operator/(complex a, R b) { return complex(a.re / b, a.im / b); }
    /* Smith's method: the divisor's square may be beyond the type. */
    DEVICE friend complex operator/(complex a, complex b)
    {
        if (fabs(b.re) >= fabs(b.im)) {
            R ratio = b.im / b.re, by = b.re + b.im * ratio;
            return b.re == (R)0 ? complex(a.re / b.re, a.im / b.re) : complex((a.re + a.im * ratio) / by, (a.im - a.re * ratio) / by);
        }
        R ratio = b.re / b.im, by = b.im + b.re * ratio;
        return complex((a.re * ratio + a.im) / by, (a.im * ratio - a.re) / by);
    }
    DEVICE complex &operator+=(complex b) { return *this = *this + b; }
    DEVICE complex &operator-=(complex b) { return *this = *this - b; }
    DEVICE complex &operator*=(complex b) { return *this = *this * b; }
    DEVICE complex &operator/=(R b) { return *this = *this / b; }
};

template <class T> struct part {
    typedef T type;
};
template <class R> struct part<complex<R>> {
    typedef R type;
};
/* The type of a number's real part, which also sizes, norms and the like have. */
template <class T> using part_t = typename part<T>::type;

template <class R> DEVICE R conjugate(R x) { return x; }
template <class R> DEVICE complex<R> conjugate(complex<R> x) { return complex<R>(x.re, -x.im); }
template <class R> DEVICE R real_of(R x) { return x; }
template <class R> DEVICE R real_of(complex<R> x) { return x.re; }
template <class R> DEVICE R imaginary_of(R) { return (R)0; }
template <class R> DEVICE R imaginary_of(complex<R> x) { return x.im; }
template <class R> DEVICE R square_of(R x) { return x * x; }
template <class R> DEVICE R square_of(complex<R> x) { return x.re * x.re + x.im * x.im; }
/* The size of a real number; of a complex one the sum of its parts' sizes, by which LAPACK compares them. */
template <class R> DEVICE R absolute(R x) { return x < (R)0 ? -x : x; }
template <class R> DEVICE R absolute(complex<R> x) { return absolute(x.re) + absolute(x.im); }

DEVICE f32 scaled(f32 x, int exponent) { return scalbnf(x, exponent); }
DEVICE f64 scaled(f64 x, int exponent) { return scalbn(x, exponent); }
DEVICE int exponent_of(f32 x) { return ilogbf(x); }
DEVICE int exponent_of(f64 x) { return ilogb(x); }
template <class R> DEVICE complex<R> scaled(complex<R> x, int exponent) { return complex<R>(scaled(x.re, exponent), scaled(x.im, exponent)); }
template <class T> DEVICE T unit_roundoff() { return sizeof(T) == 4 ? (T)1.1920928955078125e-7 : (T)2.220446049250313e-16; }
/* What is 0 beside a matrix whose greatest element is 1, and near the smallest numbers of the type. */
template <class R> DEVICE R limit_tiny() { return sizeof(R) == 4 ? (R)1e-36 : (R)1e-300; }

/* sqrt(a * a + b * b), without overflow, and without losing digits to numbers that are too small. */
template <class T> DEVICE T length_of(T a, T b)
{
    T greater = absolute(a), lesser = absolute(b);
    if (greater < lesser) {
        T kept = greater;
        greater = lesser;
        lesser = kept;
    }
    if (greater == (T)0)
        return (T)0;
    T ratio = lesser / greater;
    return greater * sqrt((T)1 + ratio * ratio);
}

/* f(i, j) for all elements of rows x columns. Where rows are long every thread keeps its columns, which needs no division. */
template <class F> DEVICE void each_element(u64 rows, u64 columns, F f)
{
    if (columns >= blockDim.x / 2) {
        for (u64 i = 0; i < rows; i++)
            for (u64 j = threadIdx.x; j < columns; j += blockDim.x)
                f(i, j);
        return;
    }
    for (u64 at = threadIdx.x; at < rows * columns; at += blockDim.x)
        f(at / columns, at % columns);
}

/* The exponent of the greatest of rows x columns elements in size, 0 if all are 0; false if one of them is not finite. */
template <class R, class F> DEVICE bool greatest_exponent(u64 rows, u64 columns, R *room, int &exponent, F element)
{
    R greatest = (R)0;

    each_element(rows, columns, [&](u64 i, u64 j) { greatest = greater_one()(greatest, absolute(element(i, j))); });
    greatest = block_all(greatest, room, greater_one());
    exponent = greatest > (R)0 && greatest < limit<R>::highest() ? exponent_of(greatest) : 0;
    return greatest < limit<R>::highest();
}

/* The sum of all threads' numbers, in all threads. */
template <class R> DEVICE R block_sum(R value, R *room) { return block_all(value, room, plus()); }
template <class R> DEVICE complex<R> block_sum(complex<R> value, R *room)
{
    R re = block_all(value.re, room, plus());
    return complex<R>(re, block_all(value.im, room, plus()));
}
/* The sum of a warp's, in all its lanes. */
template <class R> DEVICE R warp_sum(R value)
{
    for (int by = 16; by; by /= 2)
        value += __shfl_xor_sync(FULL_WARP, value, by);
    return value;
}
template <class R> DEVICE complex<R> warp_sum(complex<R> value) { return complex<R>(warp_sum(value.re), warp_sum(value.im)); }

/* ---- panels ---- */

/* Row i of a panel: PANEL numbers side by side, 16 bytes at a time. f(p, number) */
template <class T, class F> DEVICE void panel_row(const T *panel, u64 i, F f)
{
    constexpr int N = pack_of<T>();
#pragma unroll
    for (int word = 0; word < PANEL / N; word++) {
        pack<T, N> v = pack_load<T, N>(panel, i * (PANEL / N) + word);
#pragma unroll
        for (int e = 0; e < N; e++)
            f(word * N + e, v.v[e]);
    }
}

/* panel[i][p] = element(i, p) for p < width, else 0. */
template <class T, class F> DEVICE void panel_fill(T *panel, u64 rows, int width, F element)
{
    for (u64 at = threadIdx.x; at < rows * PANEL; at += blockDim.x) {
        int p = (int)(at % PANEL);
        panel[at] = p < width ? element(at / PANEL, p) : (T)0;
    }
}

/* ---- reflectors ---- */

/* Householder's H = 1 - tau v v' with v[0] = 1, for which H' x = (beta, 0, ..., 0) and beta is real, as LAPACK's larfg chooses it. v' and H' are
 * conjugates, too. */
template <class T> struct reflector {
    part_t<T> beta;
    T         tau, scale;
    int       shift; /* of x before it is scaled: scale itself may be beyond the type */

    DEVICE T behind(T x) const { return (shift ? scaled(x, shift) : x) * scale; } /* v[i] of x[i] */
};
/* `squares`: of what follows x[0] = alpha. */
template <class T> DEVICE reflector<T> reflector_of_squares(T alpha, part_t<T> squares)
{
    typedef part_t<T> R;

    if (!(squares > (R)0) && imaginary_of(alpha) == (R)0)
        return {real_of(alpha), (T)0, (T)0, 0};
    R norm = sqrt(square_of(alpha) + squares), beta = real_of(alpha) >= (R)0 ? -norm : norm;
    return {beta, ((T)beta - alpha) / beta, (T)1 / (alpha - (T)beta), 0};
}

/* By all threads of a block, which give the same; element(i) is x[i], i from 1 to count - 1, of which `squares` is the sum of squares. Where that leaves
 * the type at either end, v would be no reflector: H would not be orthogonal. Then x is scaled by a power of two first. */
template <class T, class F> DEVICE reflector<T> reflector_of(T alpha, part_t<T> squares, u64 count, part_t<T> *room, F element)
{
    typedef part_t<T> R;
    const R least = sizeof(R) == 4 ? (R)1e-30 : (R)1e-290; /* the smallest normal number / the unit roundoff, roughly */
    R       all = squares + square_of(alpha);
    int     exponent;

    if (all >= least && all < limit<R>::highest())
        return reflector_of_squares(alpha, squares);
    if (!greatest_exponent(count, 1, room, exponent, [&](u64 i, u64) { return i ? element(i) : alpha; }))
        return reflector_of_squares(alpha, squares);
    squares = (R)0;
    for (u64 i = 1 + threadIdx.x; i < count; i += blockDim.x)
        squares += square_of(scaled(element(i), -exponent));
    reflector<T> h = reflector_of_squares(scaled(alpha, -exponent), block_sum(squares, room));
    h.beta = scaled(h.beta, exponent);
    h.shift = -exponent;
    return h;
}

/* gram[p][q] = v_p' v_q of the reflectors in a panel, a warp for each. Ends with all threads together. */
template <class T> DEVICE void panel_gram(const T *panel, u64 rows, T (*gram)[PANEL])
{
    u32 lane = threadIdx.x % 32;

    for (u32 pair = threadIdx.x / 32; pair < PANEL * PANEL; pair += blockDim.x / 32) {
        u32 p = pair / PANEL, q = pair % PANEL;
        T   sum = (T)0;
        if (q >= p)
            continue;
        for (u64 i = lane; i < rows; i += 32)
            sum += conjugate(panel[i * PANEL + p]) * panel[i * PANEL + q];
        sum = warp_sum(sum);
        if (lane == 0) {
            gram[p][q] = sum;
            gram[q][p] = conjugate(sum);
        }
    }
    __syncthreads();
}

/* Applies the PANEL reflectors of a panel to rows x columns of c: conjugated and the first one first, or the last one first. Each needs what those before
 * it left of its product with the column, which follows from their products with each other. */
template <bool FIRST_FIRST, class T>
DEVICE void panel_apply(const T *panel, const T *tau, const T (*gram)[PANEL], T *c, u64 stride, u64 rows, u64 columns)
{
    for (u64 j = threadIdx.x; j < columns; j += blockDim.x) {
        T w[PANEL];
#pragma unroll
        for (int p = 0; p < PANEL; p++)
            w[p] = (T)0;
        for (u64 i = 0; i < rows; i++) {
            T x = c[i * stride + j];
            panel_row(panel, i, [&](int p, T v) { w[p] += conjugate(v) * x; });
        }
#pragma unroll
        for (int step = 0; step < PANEL; step++) {
            int p = FIRST_FIRST ? step : PANEL - 1 - step;
#pragma unroll
            for (int before = 0; before < step; before++) {
                int q = FIRST_FIRST ? before : PANEL - 1 - before;
                w[p] -= gram[p][q] * w[q];
            }
            w[p] *= FIRST_FIRST ? conjugate(tau[p]) : tau[p];
        }
        for (u64 i = 0; i < rows; i++) {
            T x = c[i * stride + j];
            panel_row(panel, i, [&](int p, T v) { x -= v * w[p]; });
            c[i * stride + j] = x;
        }
    }
}

/* The product of `count` reflectors, applied to the rows x columns of c: H_0 H_1 ... c, or with FIRST_FIRST ... H_1' H_0' c. Reflector k is 1 at
 * row k + below, 0 before, and element(k, i) behind. */
template <bool FIRST_FIRST, class T, class F>
DEVICE void reflectors_apply(T *panel, u64 count, u64 below, const T *tau, T *c, u64 rows, u64 columns, F element)
{
    __shared__ T gram[PANEL][PANEL], factors[PANEL];
    u64 panels = (count + PANEL - 1) / PANEL;

    for (u64 step = 0; step < panels; step++) {
        u64 k = (FIRST_FIRST ? step : panels - 1 - step) * PANEL, first = k + below;
        int width = count - k < PANEL ? (int)(count - k) : PANEL;
        __syncthreads();
        panel_fill(panel, rows - first, width, [&](u64 i, int p) { return i < p ? (T)0 : i == p ? (T)1 : element(k + p, first + i); });
        if (threadIdx.x < PANEL)
            factors[threadIdx.x] = (int)threadIdx.x < width ? tau[k + threadIdx.x] : (T)0;
        __syncthreads();
        panel_gram(panel, rows - first, gram);
        panel_apply<FIRST_FIRST>(panel, factors, gram, c + first * columns, columns, rows - first, columns);
    }
    __syncthreads();
}

/* ---- rotations of rows ---- */

/* `count` rotations (c, s), each of which makes of two rows a and b: a = c a + s b, b = c b - s a. The first a is row `first`, the next ones are `step`
 * behind each other. Their b is the row `held`, the same for all, or with `chain` the next one's a. */
struct rotations {
    u64  count, first, step, held;
    bool chain;

    template <class R, class T> DEVICE void apply(const R *cosine, const R *sine, T *rows, u64 length) const
    {
        for (u64 j = threadIdx.x; j < length; j += blockDim.x) {
            u64 at = first * length + j, last = (chain ? first : held) * length + j;
            T   kept = rows[last];
            for (u64 r = 0; r < count; r++, at += step * length) {
                R c = cosine[r], s = sine[r];
                T other = rows[chain ? at + step * length : at];
                rows[at] = chain ? c * kept + s * other : c * other + s * kept;
                kept = chain ? c * other - s * kept : c * kept - s * other;
            }
            rows[chain ? at : last] = kept;
        }
    }
};

/* c and s that turn (a, b) into (r, 0); r is returned. */
template <class T> DEVICE T rotation_of(T a, T b, T &c, T &s)
{
    T r = length_of(a, b);
    c = r == (T)0 ? (T)1 : a / r;
    s = r == (T)0 ? (T)0 : b / r;
    return r;
}

/* place[i] = how many of n values come before the i-th in order, which is without equals: of those the first comes first. */
template <class T, class F> DEVICE void places_of(const T *values, u64 n, u64 *place, F before)
{
    for (u64 i = threadIdx.x; i < n; i += blockDim.x) {
        T   own = values[i];
        u64 count = 0;
        for (u64 j = 0; j < n; j++) {
            T other = values[j];
            count += before(other, own) || (other == own && j < i);
        }
        place[i] = count;
    }
    __syncthreads();
}
