/* Fourier transforms of complex numbers, of lengths that are powers of two, one or many, or along the middle axis of outer x n x inner:
 * out[o][f][j] = sum over t of x[o][t][j] exp(-2 pi i f t / n); the inverse has + in the exponent and is divided by n, as NumPy's.
 *
 * Shapes: complex numbers are pairs (real, imaginary), f32 or f64. Transforms of two and more axes are a launch for each axis.
 * Method: Stockham's self-sorting transform (as in Govindaraju et al., "High performance discrete Fourier transforms on graphics processors", 2008). A
 * block has 4,096 points (2,048 of f64), 16 (8) in the registers of each thread, of one long transform or many short ones: they come from device memory
 * straight into registers, go through stages of radix 16 (8, 4, 2) which exchange them in shared memory, and leave from registers. Longer transforms take
 * several such passes of radices up to 1,024, all blocks waiting for each other in between (a cooperative launch); the columns of a pass that lie side by
 * side are read together.
 * Numbers: a sine and cosine for each butterfly and stage, and two between passes, the powers of them by multiplication; errors grow with the logarithm
 * of the length. */
#include "common.cuh"

enum { THREADS = 256, LARGE_LOG = 10 };

template <class C> struct alignas(2 * sizeof(C)) complex {
    C re, im;
};
template <class C> DEVICE complex<C> operator+(complex<C> a, complex<C> b) { return {a.re + b.re, a.im + b.im}; }
template <class C> DEVICE complex<C> operator-(complex<C> a, complex<C> b) { return {a.re - b.re, a.im - b.im}; }
template <class C> DEVICE complex<C> operator*(complex<C> a, complex<C> b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

DEVICE void sine_cosine(f32 half_turns, f32 &s, f32 &c) { sincospif(half_turns, &s, &c); }
DEVICE void sine_cosine(f64 half_turns, f64 &s, f64 &c) { sincospi(half_turns, &s, &c); }

/* exp(-2 pi i part / 2^log_whole), part below that. */
template <class C> DEVICE complex<C> turned(u64 part, int log_whole)
{
    i64        whole = (i64)1 << log_whole, nearest = 2 * (i64)part > whole ? (i64)part - whole : (i64)part;
    complex<C> w;
    sine_cosine((C)nearest * ((C)-2 / (C)whole), w.im, w.re);
    return w;
}

/* ---- in registers ---- */

template <int R> struct radix;
template <> struct radix<2> {
    enum { log = 1 };
    template <class C> static DEVICE void transform(complex<C> (&v)[2])
    {
        complex<C> a = v[0] + v[1];
        v[1] = v[0] - v[1];
        v[0] = a;
    }
    /* exp(-2 pi i k / 4) times x, for k = 0 and 1. */
    template <class C> static DEVICE complex<C> turn(complex<C> x, int k) { return k == 0 ? x : complex<C>{x.im, -x.re}; }
};
template <> struct radix<4> {
    enum { log = 2 };
    template <class C> static DEVICE void transform(complex<C> (&v)[4]);
    /* exp(-2 pi i k / 8) times x, for k = 0 to 3. */
    template <class C> static DEVICE complex<C> turn(complex<C> x, int k)
    {
        const C root = (C)0.70710678118654752440;
        if (k == 1)
            return {(x.re + x.im) * root, (x.im - x.re) * root};
        if (k == 3)
            return {(x.im - x.re) * root, -(x.re + x.im) * root};
        return radix<2>::turn(x, k / 2);
    }
};
template <> struct radix<8> {
    enum { log = 3 };
    template <class C> static DEVICE void transform(complex<C> (&v)[8]);
    /* exp(-2 pi i k / 16) times x, for k = 0 to 7. */
    template <class C> static DEVICE complex<C> turn(complex<C> x, int k)
    {
        const C cosine = (C)0.92387953251128675613, sine = (C)0.38268343236508977173;
        if (k % 2 == 0)
            return radix<4>::turn(x, k / 2);
        C re = k == 1 ? cosine : k == 3 ? sine : k == 5 ? -sine : -cosine, im = k == 1 || k == 7 ? -sine : -cosine;
        return x * complex<C>{re, im};
    }
};
template <> struct radix<16> {
    enum { log = 4 };
    template <class C> static DEVICE void transform(complex<C> (&v)[16]);
};

/* From the transforms of the even and the odd elements. */
template <int R, class C> DEVICE void transform_by_halves(complex<C> (&v)[R])
{
    complex<C> even[R / 2], odd[R / 2];
#pragma unroll
    for (int i = 0; i < R / 2; i++) {
        even[i] = v[2 * i];
        odd[i] = v[2 * i + 1];
    }
    radix<R / 2>::transform(even);
    radix<R / 2>::transform(odd);
#pragma unroll
    for (int i = 0; i < R / 2; i++) {
        complex<C> o = radix<R / 2>::turn(odd[i], i);
        v[i] = even[i] + o;
        v[i + R / 2] = even[i] - o;
    }
}
template <class C> DEVICE void radix<4>::transform(complex<C> (&v)[4]) { transform_by_halves(v); }
template <class C> DEVICE void radix<8>::transform(complex<C> (&v)[8]) { transform_by_halves(v); }
template <class C> DEVICE void radix<16>::transform(complex<C> (&v)[16]) { transform_by_halves(v); }

/* v[r] times the r-th power of w. */
template <int R, class C> DEVICE void turn_all(complex<C> (&v)[R], complex<C> w)
{
    constexpr int HALF = R / 2;
    complex<C> power[HALF + 1];
    power[1] = w;
#pragma unroll
    for (int r = 2; r <= HALF; r++)
        power[r] = power[r / 2] * power[r - r / 2];
#pragma unroll
    for (int r = 1; r <= HALF; r++)
        v[r] = v[r] * power[r];
#pragma unroll
    for (int r = HALF + 1; r < R; r++)
        v[r] = v[r] * (power[HALF] * power[r - HALF]);
}

/* ---- across memory ---- */

/* A pass combines 2^log_radix elements that lie 2^log_step apart, after passes whose radices have the product 2^log_p. */
struct pass {
    u64  outer, inner;
    int  log_n, log_radix, log_p;
    bool inverse, first, last;
};

struct column {
    u64 from, from_step, to, to_step; /* elements */
    u64 turn;                         /* the r-th element is turned by turn * r parts of 2^(log_p + log_radix) */
};

DEVICE column column_at(const pass &p, u64 at)
{
    int log_step = p.log_n - p.log_radix;
    u64 line = p.inner == 1 ? at : at / p.inner, j = p.inner == 1 ? 0 : at % p.inner;
    u64 o = line >> log_step, k = line & (((u64)1 << log_step) - 1), low = k & (((u64)1 << p.log_p) - 1);
    u64 start = o << p.log_n;
    return {(start + k) * p.inner + j, p.inner << log_step, (start + (k >> p.log_p << (p.log_p + p.log_radix)) + low) * p.inner + j,
            p.inner << p.log_p, low};
}

template <class C> DEVICE complex<C> swapped(complex<C> a) { return {a.im, a.re}; }

/* ---- a block's points ---- */

/* The inverse is the transform with real and imaginary parts exchanged before and after. */
template <class C> struct tile {
    static constexpr int HELD = sizeof(C) == 4 ? 16 : 8, LOG = sizeof(C) == 4 ? 12 : 11, PADDED = (1 << LOG) + (1 << LOG) / 16;
    typedef complex<C> point;

    const pass  &p;
    const point *x;
    point       *out, *kept;
    u64          base, columns; /* the tile's first column, and the columns of all tiles */
    C            scale;

    DEVICE int log_columns() const { return LOG - p.log_radix; }
    /* Neighbouring threads have neighbouring columns, unless those are whole transforms. */
    DEVICE bool across() const { return p.inner > 1 || p.log_n > p.log_radix; }
    /* A column's results lie side by side, those of neighbouring columns apart: threads exchange them before storing. */
    DEVICE bool exchanged_last() const { return across() && p.inner == 1 && p.log_p == 0; }
    static DEVICE int padded(int at) { return at + at / 16; }
    DEVICE int place(int c, int element) const { return padded(across() ? element << log_columns() | c : c << p.log_radix | element); }

    template <int R> DEVICE void fetch(point (&v)[R], int c, int k, int log_step) const
    {
        if (base + c >= columns) {
#pragma unroll
            for (int r = 0; r < R; r++)
                v[r] = {0, 0};
            return;
        }
        column       from = column_at(p, base + c);
        const point *at = x + from.from + (u64)k * from.from_step;
#pragma unroll
        for (int r = 0; r < R; r++, at += from.from_step << log_step)
            v[r] = *at;
        if (p.inverse && p.first)
#pragma unroll
            for (int r = 0; r < R; r++)
                v[r] = swapped(v[r]);
        if (p.log_p == 0)
            return;
        turn_all(v, turned<C>(from.turn << log_step, p.log_p + p.log_radix));
        point w = turned<C>(from.turn * k, p.log_p + p.log_radix);
#pragma unroll
        for (int r = 0; r < R; r++)
            v[r] = v[r] * w;
    }

    /* R results of a column, from `element` on and `step` apart. */
    template <int R> DEVICE void leave(const point (&v)[R], int c, int element, int step) const
    {
        if (base + c >= columns)
            return;
        column to = column_at(p, base + c);
        point *at = out + to.to + (u64)element * to.to_step;
#pragma unroll
        for (int r = 0; r < R; r++, at += (u64)step * to.to_step) {
            point scaled = {v[r].re * scale, v[r].im * scale};
            *at = p.inverse && p.last ? swapped(scaled) : scaled;
        }
    }

    /* One stage of all columns; 2^log_p is the product of the radices before. */
    template <int R> DEVICE void stage(int log_p) const
    {
        constexpr int LOG_R = radix<R>::log, EACH = HELD / R;
        int   log_step = p.log_radix - LOG_R;
        bool  first = log_p == 0, last = log_p + LOG_R == p.log_radix;
        point v[EACH][R];
        int   c[EACH], to[EACH];
#pragma unroll
        for (int b = 0; b < EACH; b++) {
            int i = threadIdx.x + b * THREADS;
            c[b] = across() ? i & ((1 << log_columns()) - 1) : i >> log_step;
            int k = across() ? i >> log_columns() : i & ((1 << log_step) - 1), j = k & ((1 << log_p) - 1);
            if (first) {
                fetch<R>(v[b], c[b], k, log_step);
            } else {
#pragma unroll
                for (int r = 0; r < R; r++)
                    v[b][r] = kept[place(c[b], k + (r << log_step))];
                turn_all(v[b], turned<C>((u64)j, log_p + LOG_R));
            }
            radix<R>::transform(v[b]);
            to[b] = (k >> log_p << (log_p + LOG_R)) + j;
        }
        if (!first)
            __syncthreads();
        bool turned_over = last && exchanged_last();
#pragma unroll
        for (int b = 0; b < EACH; b++)
            if (last && !turned_over) {
                leave(v[b], c[b], to[b], 1 << log_p);
            } else {
#pragma unroll
                for (int r = 0; r < R; r++)
                    kept[turned_over ? padded(c[b] << p.log_radix | (to[b] + (r << log_p))) : place(c[b], to[b] + (r << log_p))] = v[b][r];
            }
        __syncthreads();
    }

    DEVICE void run() const
    {
        for (int log_p = 0; log_p < p.log_radix;) {
            int rest = p.log_radix - log_p;
            if (HELD == 16 && rest >= 4) {
                if constexpr (HELD == 16)
                    stage<16>(log_p);
                log_p += 4;
            } else if (rest >= 3) {
                stage<8>(log_p);
                log_p += 3;
            } else if (rest == 2) {
                stage<4>(log_p);
                log_p += 2;
            } else {
                stage<2>(log_p);
                log_p += 1;
            }
        }
        if (!exchanged_last())
            return;
#pragma unroll 4
        for (int h = 0; h < HELD; h++) {
            int i = threadIdx.x + h * THREADS;
            leave<1>({kept[padded(i)]}, i >> p.log_radix, i & ((1 << p.log_radix) - 1), 0);
        }
        __syncthreads();
    }
};

template <class C> DEVICE void run(const pass &p, const complex<C> *x, complex<C> *out, complex<C> *kept)
{
    u64 columns = p.outer * p.inner << (p.log_n - p.log_radix), at_once = (u64)1 << tile<C>::LOG >> p.log_radix;
    C   scale = p.inverse && p.last ? (C)1 / (C)((u64)1 << p.log_n) : (C)1;

    for (u64 base = blockIdx.x * at_once; base < columns; base += gridDim.x * at_once)
        tile<C>{p, x, out, kept, base, columns, scale}.run();
}

/* Up to 2^tile::LOG elements in one pass, more in passes that go to out and to the scratch memory in turn, the last one to out. */
template <class T> DEVICE void transform(const T *x, T *out, u64 outer, u64 n, u64 inner, bool inverse, u32 slot, void *scratch)
{
    __shared__ complex<T> kept[tile<T>::PADDED];
    int               log_n = 63 - __clzll((i64)n), passes = log_n <= tile<T>::LOG ? 1 : (log_n + LARGE_LOG - 1) / LARGE_LOG, log_p = 0;
    const complex<T> *from = (const complex<T> *)x;

    if (n == 1)
        for (u64 i = global_thread(); i < outer * inner; i += global_threads())
            ((complex<T> *)out)[i] = from[i];
    for (int i = passes - 1; n > 1 && i >= 0; i--) {
        complex<T> *to = (complex<T> *)(i % 2 ? scratch : out);
        int         log_radix = (log_n - log_p) / (i + 1);
        run(pass{outer, inner, log_n, log_radix, log_p, inverse, log_p == 0, i == 0}, from, to, kept);
        from = to;
        log_p += log_radix;
        if (i)
            grid_wait(slot);
    }
}

template <class T> __global__ void __launch_bounds__(THREADS, 2) fft(const T *x, T *out, u64 n, u64 batch, bool inverse, u32 slot, void *scratch)
{
    transform(x, out, batch, n, 1, inverse, slot, scratch);
}
template <class T>
__global__ void __launch_bounds__(THREADS, 2) fft_axis(const T *x, T *out, u64 outer, u64 n, u64 inner, bool inverse, u32 slot, void *scratch)
{
    transform(x, out, outer, n, inner, inverse, slot, scratch);
}
