/* Fourier transforms of complex numbers, of lengths that are powers of two, one or many, or along the middle axis of outer x n x inner:
 * out[o][f][j] = sum over t of x[o][t][j] exp(-2 pi i f t / n); the inverse has + in the exponent and is divided by n, as NumPy's.
 *
 * Shapes: complex numbers are pairs (real, imaginary), f32 or f64. Transforms of two and more axes are a launch for each axis.
 * Method: Stockham's self-sorting transform (as in Govindaraju et al., "High performance discrete Fourier transforms on graphics processors", 2008). A
 * block keeps 2,048 points, eight for each thread, of one long transform or many short ones, and goes through them by radix 8 (4 or 2 at the end) in
 * shared memory. Longer transforms take several such passes of radices up to 512 across device memory, all blocks waiting for each other in between (a
 * cooperative launch); the columns of a pass that lie side by side are read together.
 * Numbers: a sine and cosine for each eight points and stage and for each point between passes, the powers of the former by multiplication; errors grow
 * with the logarithm of the length. */
#include "common.cuh"

enum { THREADS = 256, HELD = 8, TILE_LOG = 11, TILE = 1 << TILE_LOG, PADDED = TILE + TILE / 8, LARGE_LOG = 9 };

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
    sine_cosine(-2 * (C)nearest / (C)whole, w.im, w.re);
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

/* v[r] times the r-th power of w. */
template <int R, class C> DEVICE void turn_all(complex<C> (&v)[R], complex<C> w)
{
    complex<C> power[R];
    power[1] = w;
#pragma unroll
    for (int r = 2; r < R; r++)
        power[r] = power[r / 2] * power[r - r / 2];
#pragma unroll
    for (int r = 1; r < R; r++)
        v[r] = v[r] * power[r];
}

/* ---- in shared memory ---- */

DEVICE int place(int at) { return at + at / 8; }

/* One stage of all transforms of 2^log_n elements that the block keeps; 2^log_p is the product of the radices before. */
template <int R, class C> DEVICE void stage(complex<C> *kept, int log_n, int log_p)
{
    complex<C> v[HELD / R][R];
    int        to[HELD / R];
#pragma unroll
    for (int b = 0; b < HELD / R; b++) {
        int i = threadIdx.x + b * THREADS, log_step = log_n - radix<R>::log;
        int transform = i >> log_step << log_n, k = i & ((1 << log_step) - 1), j = k & ((1 << log_p) - 1);
#pragma unroll
        for (int r = 0; r < R; r++)
            v[b][r] = kept[place(transform + k + (r << log_step))];
        if (log_p)
            turn_all(v[b], turned<C>((u64)j, log_p + radix<R>::log));
        radix<R>::transform(v[b]);
        to[b] = transform + (k >> log_p << (log_p + radix<R>::log)) + j;
    }
    __syncthreads();
#pragma unroll
    for (int b = 0; b < HELD / R; b++)
#pragma unroll
        for (int r = 0; r < R; r++)
            kept[place(to[b] + (r << log_p))] = v[b][r];
    __syncthreads();
}

template <class C> DEVICE void transform_kept(complex<C> *kept, int log_n)
{
    for (int log_p = 0; log_p < log_n;) {
        int rest = log_n - log_p;
        if (rest >= 3)
            stage<8>(kept, log_n, log_p);
        else if (rest == 2)
            stage<4>(kept, log_n, log_p);
        else
            stage<2>(kept, log_n, log_p);
        log_p += rest < 3 ? rest : 3;
    }
}

/* ---- across memory ---- */

/* A pass takes elements that lie 2^log_step apart (2^log_radix of them), after passes whose radices have the product 2^log_p. */
struct pass {
    u64  outer, inner;
    int  log_n, log_radix, log_p;
    bool inverse, first, last;
};

template <class C> struct column {
    u64 from, from_step, to, to_step; /* elements */
    u64 turn;                         /* the r-th element is turned by turn * r parts of 2^(log_p + log_radix) */
};

template <class C> DEVICE column<C> column_at(const pass &p, u64 at)
{
    int log_step = p.log_n - p.log_radix;
    u64 line = p.inner == 1 ? at : at / p.inner, j = p.inner == 1 ? 0 : at % p.inner;
    u64 o = line >> log_step, k = line & (((u64)1 << log_step) - 1), low = k & (((u64)1 << p.log_p) - 1);
    u64 start = o << p.log_n;
    return {(start + k) * p.inner + j, p.inner << log_step, (start + (k >> p.log_p << (p.log_p + p.log_radix)) + low) * p.inner + j,
            p.inner << p.log_p, low};
}

template <class C> DEVICE complex<C> swapped(complex<C> a, bool really) { return really ? complex<C>{a.im, a.re} : a; }

/* A block's elements: neighbours in memory to neighbouring threads, along the columns or across them. */
template <class F> DEVICE void each_kept(int log_radix, bool along, F f)
{
#pragma unroll
    for (int h = 0; h < HELD; h++) {
        int i = threadIdx.x + h * THREADS, log_columns = TILE_LOG - log_radix;
        if (along)
            f(i & ((1 << log_radix) - 1), i >> log_radix);
        else
            f(i >> log_columns, i & ((1 << log_columns) - 1));
    }
}

/* The inverse is the transform with real and imaginary parts exchanged before and after. */
template <class C> DEVICE void run(const pass &p, const complex<C> *x, complex<C> *out, complex<C> *kept)
{
    u64 columns = p.outer * p.inner << (p.log_n - p.log_radix), at_once = TILE >> p.log_radix;
    C   scale = p.inverse && p.last ? (C)1 / (C)((u64)1 << p.log_n) : (C)1;

    for (u64 base = blockIdx.x * at_once; base < columns; base += gridDim.x * at_once) {
        each_kept(p.log_radix, p.inner == 1 && p.log_n == p.log_radix, [&](int r, int c) {
            complex<C> v = {0, 0};
            if (base + c < columns) {
                column<C> from = column_at<C>(p, base + c);
                v = swapped(x[from.from + r * from.from_step], p.inverse && p.first);
                if (from.turn)
                    v = v * turned<C>(from.turn * r, p.log_p + p.log_radix);
            }
            kept[place((c << p.log_radix) + r)] = v;
        });
        __syncthreads();
        transform_kept(kept, p.log_radix);
        each_kept(p.log_radix, p.inner == 1 && p.log_p == 0, [&](int r, int c) {
            if (base + c < columns) {
                column<C>  to = column_at<C>(p, base + c);
                complex<C> v = kept[place((c << p.log_radix) + r)];
                out[to.to + r * to.to_step] = swapped(complex<C>{v.re * scale, v.im * scale}, p.inverse && p.last);
            }
        });
        __syncthreads();
    }
}

/* Up to 2^TILE_LOG elements in one pass, more in passes that go to out and to the scratch memory in turn, the last one to out. */
template <class T> DEVICE void transform(const T *x, T *out, u64 outer, u64 n, u64 inner, bool inverse, u32 slot, void *scratch)
{
    __shared__ complex<T> kept[PADDED];
    int               log_n = 63 - __clzll((i64)n), passes = log_n <= TILE_LOG ? 1 : (log_n + LARGE_LOG - 1) / LARGE_LOG, log_p = 0;
    const complex<T> *from = (const complex<T> *)x;

    for (int i = passes - 1; i >= 0; i--) {
        complex<T> *to = (complex<T> *)(i % 2 ? scratch : out);
        int         log_radix = (log_n - log_p) / (i + 1);
        run(pass{outer, inner, log_n, log_radix, log_p, inverse, log_p == 0, i == 0}, from, to, kept);
        from = to;
        log_p += log_radix;
        if (i)
            grid_wait(slot);
    }
}

template <class T> __global__ void __launch_bounds__(THREADS, 4) fft(const T *x, T *out, u64 n, u64 batch, bool inverse, u32 slot, void *scratch)
{
    transform(x, out, batch, n, 1, inverse, slot, scratch);
}
template <class T>
__global__ void __launch_bounds__(THREADS, 4) fft_axis(const T *x, T *out, u64 outer, u64 n, u64 inner, bool inverse, u32 slot, void *scratch)
{
    transform(x, out, outer, n, inner, inverse, slot, scratch);
}
