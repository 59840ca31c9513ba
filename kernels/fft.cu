/* Fourier transforms of complex numbers, of lengths that are powers of two, one or many.
 *
 * Method: Stockham's self-sorting transform (Cochran et al., 1967) in steps of eight, four or two, each thread with its points in registers. Transforms of up to
 * 2048 points (1024 in f64) happen in the shared memory of a block; longer ones go through device memory, all blocks waiting for each other between steps (a
 * cooperative launch), from one of two arrays to the other.
 * Numbers: complex numbers are pairs (real, imaginary). Factors are computed where they are used, exact but for one rounding; errors grow with the logarithm
 * of the length. The forward transform has exp(-2 pi i j k / n); the inverse one divides by n, as NumPy's. */
#include "common.cuh"

template <class T> struct alignas(2 * sizeof(T)) complex {
    T re, im;
};
template <class T> DEVICE complex<T> operator+(complex<T> a, complex<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T> DEVICE complex<T> operator-(complex<T> a, complex<T> b) { return {a.re - b.re, a.im - b.im}; }
template <class T> DEVICE complex<T> operator*(complex<T> a, complex<T> b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

DEVICE void sine_and_cosine(f32 x, f32 *s, f32 *c) { sincospif(x, s, c); }
DEVICE void sine_and_cosine(f64 x, f64 *s, f64 *c) { sincospi(x, s, c); }

/* exp(sign * 2 pi i * part / whole); the quotient is exact, as whole is a power of two. */
template <class T> DEVICE complex<T> unit_root(u64 part, u64 whole, T sign)
{
    complex<T> r;
    sine_and_cosine(sign * (T)2 * ((T)part / (T)whole), &r.im, &r.re);
    return r;
}

/* The transform of R points in registers, in natural order. */
template <class T, int R> struct small {
    static DEVICE void transform(complex<T> *v, T sign)
    {
        complex<T> even[R / 2], odd[R / 2];
#pragma unroll
        for (int i = 0; i < R / 2; i++) {
            even[i] = v[2 * i];
            odd[i] = v[2 * i + 1];
        }
        small<T, R / 2>::transform(even, sign);
        small<T, R / 2>::transform(odd, sign);
#pragma unroll
        for (int i = 0; i < R / 2; i++) {
            complex<T> turned = turn(odd[i], i, sign);
            v[i] = even[i] + turned;
            v[i + R / 2] = even[i] - turned;
        }
    }
    /* By i / R of a circle, R up to 8. */
    static DEVICE complex<T> turn(complex<T> x, int i, T sign)
    {
        const T half = (T)0.70710678118654752440;
        switch (i * 8 / R) {
        case 1:
            return complex<T>{half, sign * half} * x;
        case 2:
            return {-sign * x.im, sign * x.re};
        case 3:
            return complex<T>{-half, sign * half} * x;
        default:
            return x;
        }
    }
};
template <class T> struct small<T, 1> {
    static DEVICE void transform(complex<T> *, T) {}
};

/* One step of a transform of n points for the thread's butterfly j of n / R: strides have been transformed in blocks of `done` before.
 * load(i), store(first, r, x): x goes to first + r * done. */
template <class T, int R, class L, class S> DEVICE void butterfly(u64 n, u64 done, u64 j, T sign, L load, S store)
{
    complex<T> v[R];
    u64        within = j & (done - 1);

#pragma unroll
    for (int r = 0; r < R; r++) {
        v[r] = load(j + r * (n / R));
        if (r && done > 1)
            v[r] = v[r] * unit_root<T>(r * within, done * R, sign);
    }
    small<T, R>::transform(v, sign);
    u64 to = (j - within) * R + within;
#pragma unroll
    for (int r = 0; r < R; r++)
        store(to, r, v[r]);
}

DEVICE int radix_of(u64 n, u64 done) { return n / done >= 8 ? 8 : n / done >= 4 ? 4 : 2; }

enum { THREADS = 256 };
template <class T> struct in_shared { enum { POINTS = 16384 / sizeof(complex<T>) }; };

/* Of one transform that lies in shared memory; two barriers a step, as it goes in place. */
template <class T, int R> DEVICE void shared_step(complex<T> *room, u64 n, u64 done, T sign)
{
    constexpr int EACH = in_shared<T>::POINTS / R / THREADS > 0 ? in_shared<T>::POINTS / R / THREADS : 1;
    complex<T> v[EACH][R];
    u64        to[EACH];

#pragma unroll
    for (int e = 0; e < EACH; e++) {
        u64 j = threadIdx.x + e * THREADS;
        if (j < n / R)
            butterfly<T, R>(n, done, j, sign, [&](u64 i) { return room[i]; },
                            [&](u64 first, int r, complex<T> x) {
                                to[e] = first;
                                v[e][r] = x;
                            });
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (threadIdx.x + e * THREADS < n / R)
#pragma unroll
            for (int r = 0; r < R; r++)
                room[to[e] + r * done] = v[e][r];
    __syncthreads();
}

template <class T> DEVICE void transform_in_shared(const complex<T> *x, complex<T> *out, u64 n, u64 batch, T sign, T scale, complex<T> *room)
{
    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        for (u64 i = threadIdx.x; i < n; i += THREADS)
            room[i] = x[b * n + i];
        __syncthreads();
        for (u64 done = 1; done < n;) {
            int radix = radix_of(n, done);
            if (radix == 8)
                shared_step<T, 8>(room, n, done, sign);
            else if (radix == 4)
                shared_step<T, 4>(room, n, done, sign);
            else
                shared_step<T, 2>(room, n, done, sign);
            done *= radix;
        }
        for (u64 i = threadIdx.x; i < n; i += THREADS)
            out[b * n + i] = {room[i].re * scale, room[i].im * scale};
        __syncthreads();
    }
}

template <class T, int R> DEVICE void global_step(const complex<T> *from, complex<T> *to, u64 n, u64 batch, u64 done, T sign, T scale)
{
    for (u64 t = global_thread(); t < batch * (n / R); t += global_threads()) {
        u64 j = t & (n / R - 1), base = (t - j) * R;
        butterfly<T, R>(n, done, j, sign, [&](u64 i) { return from[base + i]; },
                        [&](u64 first, int r, complex<T> x) { to[base + first + r * done] = {x.re * scale, x.im * scale}; });
    }
}

/* x -> scratch -> out -> scratch ... -> out: so that the last step writes the result, the first one goes where the number of steps asks for. */
template <class T> DEVICE void transform_in_global(const complex<T> *x, complex<T> *out, complex<T> *scratch, u64 n, u64 batch, T sign, T scale, u32 slot)
{
    int steps = 0;
    for (u64 done = 1; done < n; done *= radix_of(n, done))
        steps++;
    const complex<T> *from = x;
    for (u64 done = 1; done < n; steps--) {
        complex<T> *to = steps % 2 ? out : scratch;
        int         radix = radix_of(n, done);
        T           by = steps == 1 ? scale : (T)1;
        if (radix == 8)
            global_step<T, 8>(from, to, n, batch, done, sign, by);
        else if (radix == 4)
            global_step<T, 4>(from, to, n, batch, done, sign, by);
        else
            global_step<T, 2>(from, to, n, batch, done, sign, by);
        done *= radix;
        from = to;
        if (steps > 1)
            grid_wait(slot);
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS, 2) fft(const complex<T> *x, complex<T> *out, u64 n, u64 batch, bool inverse, u32 slot, void *scratch)
{
    __shared__ alignas(16) char room[16384];
    T sign = inverse ? (T)1 : (T)-1, scale = inverse ? (T)1 / (T)n : (T)1;

    if (n <= in_shared<T>::POINTS)
        transform_in_shared<T>(x, out, n, batch, sign, scale, (complex<T> *)room);
    else
        transform_in_global<T>(x, out, (complex<T> *)scratch, n, batch, sign, scale, slot);
}
