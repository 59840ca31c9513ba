/* Random numbers from a seed and a place: the same everywhere, whatever the grid.
 *
 * Method: Philox 4x32 with 10 rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011). The seed is the key; number
 * i of the stream comes from counter i / 4, word i % 4 (f64, i64, u64 and random_integers: counter i / 2, two words, the first of them the high one). `offset` is the place in the stream of the first number.
 * Uniform numbers are in [0, 1), of as many bits as the type's fraction holds (f16 11, bf16 8, f32 24, f64 53). Normal ones are Box and Muller's
 * (1958), both of a pair, computed in f32 (f64 for f64). Integers of a range come from 64 bits each. */
#include "common.cuh"

struct bits4 {
    u32 w[4];
};

DEVICE bits4 philox(u64 key, u64 counter)
{
    u32 k0 = (u32)key, k1 = (u32)(key >> 32), c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = 0, c3 = 0;

#pragma unroll
    for (int round = 0; round < 10; round++) {
        u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
        c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
        c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
        c1 = (u32)p1;
        c3 = (u32)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

template <class T> struct fraction_bits;
template <> struct fraction_bits<f16> { enum { value = 11 }; };
template <> struct fraction_bits<bf16> { enum { value = 8 }; };
template <> struct fraction_bits<f32> { enum { value = 24 }; };

template <class T> struct uniform_of {
    enum { EACH = 4 };
    static DEVICE void make(const bits4 &b, T *v)
    {
        constexpr int BITS = fraction_bits<T>::value;
        for (int i = 0; i < 4; i++)
            v[i] = (T)((f32)(b.w[i] >> (32 - BITS)) * (1.0f / (f32)(1 << BITS)));
    }
};
DEVICE f64 unit(u32 high, u32 low) { return (f64)(((u64)high << 32 | low) >> 11) * (1.0 / 9007199254740992.0); }
template <> struct uniform_of<f64> {
    enum { EACH = 2 };
    static DEVICE void make(const bits4 &b, f64 *v)
    {
        v[0] = unit(b.w[0], b.w[1]);
        v[1] = unit(b.w[2], b.w[3]);
    }
};

/* 1 - u, so that the logarithm's argument is not 0. */
template <class T> struct normal_of {
    enum { EACH = 4 };
    static DEVICE void make(const bits4 &b, T *v)
    {
        for (int i = 0; i < 4; i += 2) {
            f32 radius = sqrt(-2.0f * log(1.0f - (f32)(b.w[i] >> 8) * (1.0f / 16777216.0f))), s, c;
            sincospif((f32)(b.w[i + 1] >> 8) * (1.0f / 8388608.0f), &s, &c);
            v[i] = (T)(radius * c);
            v[i + 1] = (T)(radius * s);
        }
    }
};
template <> struct normal_of<f64> {
    enum { EACH = 2 };
    static DEVICE void make(const bits4 &b, f64 *v)
    {
        f64 radius = sqrt(-2.0 * log(1.0 - unit(b.w[0], b.w[1]))), s, c;
        sincospi(2.0 * unit(b.w[2], b.w[3]), &s, &c);
        v[0] = radius * c;
        v[1] = radius * s;
    }
};

DEVICE u64 word64(const bits4 &b, int i) { return (u64)b.w[2 * i] << 32 | b.w[2 * i + 1]; }

template <class T> struct bits_of {
    enum { EACH = sizeof(T) == 8 ? 2 : 4 };
    static DEVICE void make(const bits4 &b, T *v)
    {
        for (int i = 0; i < EACH; i++)
            v[i] = sizeof(T) == 8 ? (T)word64(b, i) : (T)b.w[i & 3];
    }
};

/* The high half of a product: no value is more likely than another by more than range / 2^64. */
template <class T> struct integers_of {
    enum { EACH = 2 };
    u64 low, range;
    DEVICE void make(const bits4 &b, T *v) const
    {
        for (int i = 0; i < 2; i++)
            v[i] = (T)(low + __umul64hi(word64(b, i), range));
    }
};

/* Whole vectors first, without checks; then, one by one, the elements outside of vectors or of the alignment. */
template <class T, class R> DEVICE void fill_with(const R &numbers, T *out, u64 n, u64 seed, u64 offset)
{
    constexpr int N = R::EACH;
    u64 first = offset / N, skipped = offset % N, groups = n ? (skipped + n + N - 1) / N : 0;
    u64 whole = skipped == 0 && aligned<T, N>(out) ? n / N : 0;
    pack<T, N> p;

    for (u64 g = global_thread(); g < whole; g += global_threads()) {
        numbers.make(philox(seed, first + g), p.v);
        pack_store<T, N>(out, g, p);
    }
    for (u64 g = whole + global_thread(); g < groups; g += global_threads()) {
        numbers.make(philox(seed, first + g), p.v);
        u64 at = g * N - skipped; /* wraps around below 0 in the first group, where those elements are left out */
        for (int e = 0; e < N; e++)
            if (at + e < n)
                out[at + e] = p.v[e];
    }
}

template <class T, class R> __global__ void __launch_bounds__(256) random_numbers(T *out, u64 n, u64 seed, u64 offset)
{
    fill_with(R(), out, n, seed, offset);
}
template <class T> __global__ void __launch_bounds__(256) random_integers(T *out, u64 n, u64 seed, u64 offset, T low, T high)
{
    fill_with(integers_of<T>{(u64)low, (u64)high - (u64)low}, out, n, seed, offset);
}
