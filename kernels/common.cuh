/* What all built-in kernels share: types of fixed width, half precision without the toolkit's headers, wide loads, and cooperation of
 * the threads of a warp, a block and a whole grid.
 *
 * f16 is IEEE binary16, bf16 is binary32 cut to 16 bits; both are computed in f32 and rounded to nearest even when stored. Element
 * counts are 64 bits wide everywhere. */
#pragma once

typedef signed char        i8;
typedef short              i16;
typedef int                i32;
typedef long long          i64;
typedef unsigned char      u8;
typedef unsigned short     u16;
typedef unsigned int       u32;
typedef unsigned long long u64;
typedef float              f32;
typedef double             f64;

#define DEVICE __device__ __forceinline__
#define FULL_WARP 0xffffffffu
#define INFINITE __int_as_float(0x7f800000)

/* ---- half precision ---- */

struct f16 {
    u16 bits;
    f16() = default;
    DEVICE f16(f32 x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
    DEVICE operator f32() const
    {
        f32 x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
        return x;
    }
};

struct bf16 {
    u16 bits;
    bf16() = default;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    DEVICE bf16(f32 x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
#else
    DEVICE bf16(f32 x)
    {
        u32 u = __float_as_uint(x);
        bits = (u & 0x7fffffffu) > 0x7f800000u ? 0x7fff : (u16)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
    }
#endif
    DEVICE operator f32() const { return __uint_as_float((u32)bits << 16); }
};

/* The type in which a T is computed. */
template <class T> struct compute { typedef T type; };
template <> struct compute<f16> { typedef f32 type; };
template <> struct compute<bf16> { typedef f32 type; };
template <> struct compute<bool> { typedef u8 type; };
template <class T> using compute_t = typename compute<T>::type;

/* The types of sums of T, and of means. */
template <class T> struct traits;
template <> struct traits<f16> { typedef f32 sum; typedef f32 mean; typedef f16 sum_out; typedef f16 mean_out; enum { real = 1, is_signed = 1 }; };
template <> struct traits<bf16> { typedef f32 sum; typedef f32 mean; typedef bf16 sum_out; typedef bf16 mean_out; enum { real = 1, is_signed = 1 }; };
template <> struct traits<f32> { typedef f32 sum; typedef f32 mean; typedef f32 sum_out; typedef f32 mean_out; enum { real = 1, is_signed = 1 }; };
template <> struct traits<f64> { typedef f64 sum; typedef f64 mean; typedef f64 sum_out; typedef f64 mean_out; enum { real = 1, is_signed = 1 }; };
#define INTEGER_TRAITS(T, wide, has_sign) \
    template <> struct traits<T> { typedef wide sum; typedef f64 mean; typedef wide sum_out; typedef f64 mean_out; enum { real = 0, is_signed = has_sign }; };
INTEGER_TRAITS(i8, i64, 1)
INTEGER_TRAITS(i16, i64, 1)
INTEGER_TRAITS(i32, i64, 1)
INTEGER_TRAITS(i64, i64, 1)
INTEGER_TRAITS(u8, u64, 0)
INTEGER_TRAITS(u16, u64, 0)
INTEGER_TRAITS(u32, u64, 0)
INTEGER_TRAITS(u64, u64, 0)
INTEGER_TRAITS(bool, u64, 0)

template <class T> struct is_bool { enum { value = 0 }; };
template <> struct is_bool<bool> { enum { value = 1 }; };

template <class T> DEVICE bool is_nan(T x) { return x != x; }

/* Least and greatest values; infinities where the type has them. */
template <class T> struct limit {
    static DEVICE T lowest() { return traits<T>::is_signed ? (T)((u64)1 << (8 * sizeof(T) - 1)) : (T)0; }
    static DEVICE T highest() { return traits<T>::is_signed ? (T)(((u64)1 << (8 * sizeof(T) - 1)) - 1) : (T)~(u64)0; }
};
template <> struct limit<f32> {
    static DEVICE f32 lowest() { return -INFINITE; }
    static DEVICE f32 highest() { return INFINITE; }
};
template <> struct limit<f64> {
    static DEVICE f64 lowest() { return -(f64)INFINITE; }
    static DEVICE f64 highest() { return (f64)INFINITE; }
};

/* ---- wide loads and stores ---- */

struct alignas(16) word16 { u32 x, y, z, w; };
struct alignas(8) word8 { u32 x, y; };
template <int BYTES> struct word;
template <> struct word<16> { typedef uint4 type; };
template <> struct word<8> { typedef uint2 type; };
template <> struct word<4> { typedef u32 type; };
template <> struct word<2> { typedef u16 type; };
template <> struct word<1> { typedef u8 type; };

/* N elements that move as one word. */
template <class T, int N> union pack {
    typename word<sizeof(T) * N>::type raw;
    T                                  v[N];
};

template <class T, int N> DEVICE pack<T, N> pack_load(const T *from, u64 index)
{
    pack<T, N> p;
    p.raw = ((const decltype(p.raw) *)from)[index];
    return p;
}
template <class T, int N> DEVICE void pack_store(T *to, u64 index, pack<T, N> p)
{
    ((decltype(p.raw) *)to)[index] = p.raw;
}
template <class T, int N> DEVICE bool aligned(const T *p) { return (u64)p % (sizeof(T) * N) == 0; }

template <class T> __device__ constexpr int pack_of() { return 16 / (int)sizeof(T); }
__device__ constexpr int least(int a, int b) { return a < b ? a : b; }

/* Block width of kernels that work with any width and give the same results with each. */
#define FLAT_THREADS 256

DEVICE u64 global_thread() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE u64 global_threads() { return (u64)gridDim.x * blockDim.x; }

/* ---- together ---- */

template <class S> DEVICE S shuffle_down(S value, int by)
{
    static_assert(sizeof(S) % 4 == 0, "whole registers");
    union {
        S   value;
        u32 part[sizeof(S) / 4];
    } u;
    u.value = value;
    for (int i = 0; i < (int)(sizeof(S) / 4); i++)
        u.part[i] = __shfl_down_sync(FULL_WARP, u.part[i], by);
    return u.value;
}
template <class S> DEVICE S shuffle_up(S value, int by)
{
    union {
        S   value;
        u32 part[sizeof(S) / 4];
    } u;
    u.value = value;
    for (int i = 0; i < (int)(sizeof(S) / 4); i++)
        u.part[i] = __shfl_up_sync(FULL_WARP, u.part[i], by);
    return u.value;
}
template <class S> DEVICE S shuffle_to_all(S value, int from)
{
    union {
        S   value;
        u32 part[sizeof(S) / 4];
    } u;
    u.value = value;
    for (int i = 0; i < (int)(sizeof(S) / 4); i++)
        u.part[i] = __shfl_sync(FULL_WARP, u.part[i], from);
    return u.value;
}

/* Combines the states of the first `lanes` lanes of a warp, into lane 0 alone. merge(a, b) is associative and a comes before b. All
 * lanes call it. */
template <class S, class M> DEVICE S warp_reduce(S state, int lanes, M merge)
{
    int lane = threadIdx.x % 32;

    for (int by = 1; by < lanes; by *= 2) {
        S other = shuffle_down(state, by);
        if (lane % (2 * by) == 0 && lane + by < lanes)
            state = merge(state, other);
    }
    return state;
}

/* Combines the states of all threads, into thread 0 alone. blockDim.x is a multiple of 32, at most 1024; all threads call it. */
template <class S, class M> DEVICE S block_reduce(S state, M merge)
{
    __shared__ alignas(16) char room[32 * sizeof(S)];
    S  *of_warp = (S *)room;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;

    state = warp_reduce(state, 32, merge);
    if (warps == 1)
        return state;
    __syncthreads();
    if (lane == 0)
        of_warp[warp] = state;
    __syncthreads();
    return warp == 0 ? warp_reduce(of_warp[lane < warps ? lane : 0], warps, merge) : state;
}

/* Bounds of a module's scratch memory. It has one part for each slot (a stream of the session), so that launches of different streams do
 * not meet. */
#ifndef SLOTS
#define SLOTS 65
#endif
#ifndef BLOCKS_AT_ONCE_MAX
#define BLOCKS_AT_ONCE_MAX 1056
#endif

/* For a cooperative grid: all threads wait until all have arrived; later reads see earlier writes. */
struct grid_gate {
    u32 arrived, generation;
};
static __device__ grid_gate grid_gates[SLOTS];

DEVICE void grid_wait(u32 slot)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        volatile u32 *generation = &grid_gates[slot].generation;
        u32           before = *generation;
        __threadfence();
        if (atomicAdd(&grid_gates[slot].arrived, 1) == gridDim.x - 1) {
            grid_gates[slot].arrived = 0;
            __threadfence();
            atomicAdd(&grid_gates[slot].generation, 1);
        } else {
            while (*generation == before)
                ;
        }
        __threadfence();
    }
    __syncthreads();
}

/* ---- rows in registers ---- */

/* Elements of a row that a thread can keep in registers: five vectors of 16 bytes, or two of halves, which take twice the space when
 * computed. */
template <class T> __device__ constexpr int row_slots() { return (sizeof(T) == 2 ? 2 : 5) * pack_of<T>(); }

/* Combines the values of all threads, into all threads. `room` holds 32 values; blockDim.x is a multiple of 32. All threads get the same
 * bits. */
template <class C, class F> DEVICE C block_all(C value, C *room, F combine)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;

    for (int by = 16; by; by /= 2)
        value = combine(value, __shfl_xor_sync(FULL_WARP, value, by));
    if (warps == 1)
        return value;
    __syncthreads();
    if (lane == 0)
        room[warp] = value;
    __syncthreads();
    value = room[lane < warps ? lane : 0];
    for (int by = 16; by; by /= 2) {
        C other = __shfl_xor_sync(FULL_WARP, value, by);
        if ((lane ^ by) < warps)
            value = lane < warps ? combine(value, other) : other;
    }
    return __shfl_sync(FULL_WARP, value, 0);
}

/* f(slot, value) for this thread's elements of a row, after all of them were requested; slots without an element get `none`. */
template <class T, int N, class F> DEVICE void row_load(const T *row, u64 columns, T none, F f)
{
    constexpr int VECTORS = row_slots<T>() / N;
    pack<T, N>    p[VECTORS];
    u32           count = (u32)(columns / N);
#pragma unroll
    for (int k = 0; k < VECTORS; k++) {
        u32 at = threadIdx.x + k * blockDim.x;
#pragma unroll
        for (int e = 0; e < N; e++)
            p[k].v[e] = none;
        if (at < count)
            p[k] = pack_load<T, N>(row, at);
    }
#pragma unroll
    for (int k = 0; k < VECTORS; k++)
#pragma unroll
        for (int e = 0; e < N; e++)
            f(k * N + e, (compute_t<T>)p[k].v[e]);
}
/* f(slot) for each slot with an element. */
template <class T, int N, class F> DEVICE void row_each(u64 columns, F f)
{
    u32 count = (u32)(columns / N);
#pragma unroll
    for (int k = 0; k < row_slots<T>() / N; k++)
        if (threadIdx.x + k * blockDim.x < count)
#pragma unroll
            for (int e = 0; e < N; e++)
                f(k * N + e);
}
/* Stores f(slot, place) as the element. */
template <class T, int N, class F> DEVICE void row_store(T *row, u64 columns, F f)
{
    u32 count = (u32)(columns / N);
#pragma unroll
    for (int k = 0; k < row_slots<T>() / N; k++) {
        u32 at = threadIdx.x + k * blockDim.x;
        if (at >= count)
            continue;
        pack<T, N> p;
#pragma unroll
        for (int e = 0; e < N; e++)
            p.v[e] = (T)f(k * N + e, (u64)at * N + e);
        pack_store<T, N>(row, at, p);
    }
}
template <class T> DEVICE bool row_fits(u64 columns) { return columns <= (u64)blockDim.x * row_slots<T>(); }

struct plus {
    template <class C> DEVICE C operator()(C a, C b) const { return a + b; }
};
struct greater_one {
    template <class C> DEVICE C operator()(C a, C b) const { return is_nan(a) || a > b ? a : b; }
};
