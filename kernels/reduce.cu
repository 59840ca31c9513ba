/* Reductions: of all elements to one, and along one axis of outer x length x inner.
 *
 * Method: every thread combines vectors of 16 bytes, several in flight, then warps by shuffles and blocks through shared memory. Of the whole array
 * every block leaves its result in the module's own memory, and the last block to arrive (a counter tells) combines them: one launch. When the axis is
 * the last one, rows of up to 2,048 elements are a warp's, longer ones a block's; else a block has 32 neighbouring columns, or, where there are
 * enough of them, 32 vectors of up to 16 bytes.
 * Numbers: sums of f16, bf16 and f32 are kept in f32 as pairs (sum, what was lost), by the error-free addition of two numbers (Knuth, TAOCP 2,
 * 4.2.2): the result is as good as if rounded a few times only, whatever the number of elements. Sums of integers are 64 bits wide and wrap around.
 * var is that of merged means and squared deviations (Chan, Golub and LeVeque, 1983), which does not cancel. min, max and the places of them take
 * the first NaN for the least and the greatest, as NumPy does; places are those of the first of equals. Sums are the same from run to run on one
 * device, as every combination happens in a fixed order. */
#include "common.cuh"

/* ---- states: what elements are combined into ---- */

/* sum + lost is the exact sum but for the rounding of `lost`. */
template <class C> struct exact {
    C sum, lost;
};
template <class C> DEVICE void exact_add(exact<C> &s, C x)
{
    C t = s.sum + x, b = t - s.sum;
    s.lost += (s.sum - (t - b)) + (x - b);
    s.sum = t;
}
/* Infinities and NaN leave NaN in `lost`. */
template <class C> DEVICE C exact_value(const exact<C> &s) { return is_nan(s.lost) ? s.sum : s.sum + s.lost; }

template <class T, bool REAL = traits<T>::real> struct sum_of {
    typedef typename traits<T>::sum     C;
    typedef exact<C>                    state;
    typedef typename traits<T>::sum_out out;
    static DEVICE state empty() { return {(C)0, (C)0}; }
    static DEVICE void  add(state &s, T x, u64) { exact_add(s, (C)x); }
    static DEVICE state merge(state a, state b)
    {
        exact_add(a, b.sum);
        a.lost += b.lost;
        return a;
    }
    static DEVICE out result(state s, u64, f64) { return (out)exact_value(s); }
};
template <class T> struct sum_of<T, false> {
    typedef typename traits<T>::sum C;
    typedef C                       state;
    typedef C                       out;
    static DEVICE state empty() { return 0; }
    static DEVICE void  add(state &s, T x, u64) { s += (C)x; }
    static DEVICE state merge(state a, state b) { return a + b; }
    static DEVICE out   result(state s, u64, f64) { return s; }
};

template <class T> struct prod_of {
    typedef typename traits<T>::sum     state;
    typedef typename traits<T>::sum_out out;
    static DEVICE state empty() { return (state)1; }
    static DEVICE void  add(state &s, T x, u64) { s *= (state)x; }
    static DEVICE state merge(state a, state b) { return a * b; }
    static DEVICE out   result(state s, u64, f64) { return (out)s; }
};

/* Means of integers are of their exact 64-bit sums. */
template <class T> struct mean_of : sum_of<T> {
    typedef typename traits<T>::mean_out out;
    static DEVICE out result(typename sum_of<T>::state s, u64 n, f64)
    {
        if constexpr (traits<T>::real)
            return (out)(exact_value(s) / (typename traits<T>::sum)n);
        else
            return (f64)s / (f64)n;
    }
};

template <class T> struct alignas(16) moments {
    typename traits<T>::mean mean, squares; /* of deviations from the mean */
    u64                      n;
};
template <class T> struct var_of {
    typedef typename traits<T>::mean     C;
    typedef moments<T>                   state;
    typedef typename traits<T>::mean_out out;
    static DEVICE state empty() { return {(C)0, (C)0, 0}; }
    static DEVICE void  add(state &s, T x, u64)
    {
        C by = (C)x - s.mean;
        s.n++;
        s.mean += by / (C)s.n;
        s.squares += by * ((C)x - s.mean);
    }
    static DEVICE state merge(state a, state b)
    {
        if (a.n == 0 || b.n == 0)
            return a.n ? a : b;
        C n = (C)a.n + (C)b.n, by = b.mean - a.mean;
        return {a.mean + by * ((C)b.n / n), a.squares + b.squares + by * by * ((C)a.n * ((C)b.n / n)), a.n + b.n};
    }
    static DEVICE out result(state s, u64, f64 ddof) { return (out)(s.squares / (C)((f64)s.n - ddof)); }
};

template <class T> struct extreme {
    static DEVICE bool before(bool greatest, T a, T b)
    {
        typedef compute_t<T> C;
        C p = (C)a, q = (C)b;
        return !(greatest ? p <= q : p >= q) && !is_nan(q);
    }
};
template <class T, bool GREATEST> struct extreme_of {
    struct alignas(8) state {
        T    best;
        bool any;
    };
    typedef T out;
    static DEVICE state empty()
    {
        state s;
        s.any = false;
        s.best = (T)(compute_t<T>)0;
        return s;
    }
    static DEVICE void add(state &s, T x, u64)
    {
        if (!s.any || extreme<T>::before(GREATEST, x, s.best))
            s.best = x;
        s.any = true;
    }
    static DEVICE state merge(state a, state b)
    {
        if (b.any)
            add(a, b.best, 0);
        return a;
    }
    static DEVICE out result(state s, u64, f64) { return s.best; }
};
template <class T> using min_of = extreme_of<T, false>;
template <class T> using max_of = extreme_of<T, true>;

template <class T, bool GREATEST> struct place_of {
    struct alignas(8) state {
        u64 at; /* ~0: nothing yet */
        T   best;
    };
    typedef i64 out;
    static DEVICE state empty()
    {
        state s;
        s.at = ~(u64)0;
        s.best = (T)(compute_t<T>)0;
        return s;
    }
    static DEVICE void add(state &s, T x, u64 i)
    {
        bool better = s.at == ~(u64)0 || extreme<T>::before(GREATEST, x, s.best);
        bool equal = !better && i < s.at && !extreme<T>::before(GREATEST, s.best, x);
        if (better || equal) {
            s.best = x;
            s.at = i;
        }
    }
    static DEVICE state merge(state a, state b)
    {
        if (b.at != ~(u64)0)
            add(a, b.best, b.at);
        return a;
    }
    static DEVICE out result(state s, u64, f64) { return (i64)s.at; }
};
template <class T> using argmin_of = place_of<T, false>;
template <class T> using argmax_of = place_of<T, true>;

template <class T, bool ALL> struct truth_of {
    typedef u32  state;
    typedef bool out;
    static DEVICE state empty() { return ALL; }
    static DEVICE void  add(state &s, T x, u64)
    {
        bool is = (compute_t<T>)x != (compute_t<T>)0;
        s = ALL ? s & (u32)is : s | (u32)is;
    }
    static DEVICE state merge(state a, state b) { return ALL ? a & b : a | b; }
    static DEVICE out   result(state s, u64, f64) { return s != 0; }
};
template <class T> using any_of = truth_of<T, false>;
template <class T> using all_of = truth_of<T, true>;

/* ---- vectors ---- */

/* U vectors of N elements, which begin at place `first` and `step` apart. */
template <class R, class T, int N, int U> struct take {
    static DEVICE void vectors(typename R::state &s, const pack<T, N> (&p)[U], u64 first, u64 step)
    {
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int e = 0; e < N; e++)
                R::add(s, p[u].v[e], first + u * step + e);
    }
};
/* One division for all of them. */
template <class T, int N, int U> struct take<var_of<T>, T, N, U> {
    static DEVICE void vectors(moments<T> &s, const pack<T, N> (&p)[U], u64, u64)
    {
        typedef typename traits<T>::mean C;
        C total = (C)0, squares = (C)0;
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int e = 0; e < N; e++)
                total += (C)p[u].v[e];
        C mean = total / (C)(N * U);
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int e = 0; e < N; e++) {
                C by = (C)p[u].v[e] - mean;
                squares += by * by;
            }
        s = var_of<T>::merge(s, moments<T>{mean, squares, N * U});
    }
};
/* Places ascend here, so only a strictly better element replaces the state, and 32 bits are enough for its place. */
template <class T, bool GREATEST, int N, int U> struct take<place_of<T, GREATEST>, T, N, U> {
    static DEVICE void vectors(typename place_of<T, GREATEST>::state &s, const pack<T, N> (&p)[U], u64 first, u64 step)
    {
        u32 which = ~0u;
        if (s.at == ~(u64)0) {
            s.best = p[0].v[0];
            s.at = first;
        }
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int e = 0; e < N; e++)
                if (extreme<T>::before(GREATEST, p[u].v[e], s.best)) {
                    s.best = p[u].v[e];
                    which = u * N + e;
                }
        if (which != ~0u)
            s.at = first + which / N * step + which % N;
    }
};

/* The threads that share elements: this thread is number `rank` of the `width` of team `number`. */
struct team {
    u32 rank, width;
    u64 number, teams;
};
DEVICE team grid_team() { return {threadIdx.x, blockDim.x, blockIdx.x, gridDim.x}; }
DEVICE team block_team() { return {threadIdx.x, blockDim.x, 0, 1}; }
DEVICE team warp_team() { return {threadIdx.x % 32, 32, 0, 1}; }

/* This thread's share of n elements, several vectors of 16 bytes in flight. */
template <class R, class T> DEVICE typename R::state share_of(const T *x, u64 n, team t)
{
    constexpr int N = 16 / sizeof(T), UNROLL = sizeof(T) == 1 ? 2 : 4;
    typename R::state s = R::empty();
    u64 vectors = aligned<T, N>(x) ? n / N : 0;
    u64 at = t.number * t.width * UNROLL + t.rank, step = t.teams * t.width * UNROLL;

    for (; at + (UNROLL - 1) * t.width < vectors; at += step) {
        pack<T, N> p[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            p[u] = pack_load<T, N>(x, at + u * t.width);
        take<R, T, N, UNROLL>::vectors(s, p, at * N, (u64)t.width * N);
    }
    for (int u = 0; u < UNROLL - 1 && at < vectors; u++, at += t.width) {
        pack<T, N> p[1] = {pack_load<T, N>(x, at)};
        take<R, T, N, 1>::vectors(s, p, at * N, 0);
    }
    for (u64 i = vectors * N + t.number * t.width + t.rank; i < n; i += t.teams * t.width)
        R::add(s, x[i], i);
    return s;
}

/* ---- all elements ---- */

/* The results of blocks for the last one, by slot. */
template <class S> __device__ u32 shares[SLOTS][BLOCKS_AT_ONCE_MAX * sizeof(S) / 4];
static __device__ u32 arrivals[SLOTS];

/* True in the block that arrives last: it sees what the others wrote. */
DEVICE bool last_to_arrive(u32 slot)
{
    __shared__ bool last;

    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicInc(&arrivals[slot], gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    return last;
}

template <class T, class R> DEVICE void reduce_all(const T *x, typename R::out *out, u64 n, f64 ddof, u32 slot)
{
    typedef typename R::state S;
    static_assert(sizeof(S) % 4 == 0, "a state is made of words");
    volatile u32 *to = &shares<S>[slot][blockIdx.x * sizeof(S) / 4];
    S             s = block_reduce(share_of<R>(x, n, grid_team()), R::merge);

    if (gridDim.x > 1) {
        if (threadIdx.x == 0)
            for (int i = 0; i < (int)(sizeof(S) / 4); i++)
                to[i] = ((const u32 *)&s)[i];
        if (!last_to_arrive(slot))
            return;
        s = R::empty();
        for (u32 b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
            S other;
            volatile u32 *from = &shares<S>[slot][b * sizeof(S) / 4];
            for (int i = 0; i < (int)(sizeof(S) / 4); i++)
                ((u32 *)&other)[i] = from[i];
            s = R::merge(s, other);
        }
        __syncthreads();
        s = block_reduce(s, R::merge);
    }
    if (threadIdx.x == 0)
        *out = R::result(s, n, ddof);
}

template <class T, class R> __global__ void __launch_bounds__(512) reduce(const T *x, typename R::out *out, u64 n, u32 slot)
{
    reduce_all<T, R>(x, out, n, 0, slot);
}
template <class T, class R> __global__ void __launch_bounds__(512) reduce_ddof(const T *x, typename R::out *out, u64 n, f64 ddof, u32 slot)
{
    reduce_all<T, R>(x, out, n, ddof, slot);
}

/* ---- along an axis ---- */

/* Rows of up to so many elements go to one warp, longer ones to a block. */
#ifndef ROW_OF_WARP
#define ROW_OF_WARP 2048
#endif
/* Warps of a block. Where they share one result, its sum depends on their number; short rows have one warp each. */
enum { WARPS = 8, THREADS = 32 * WARPS, STRIPS_FOR_VECTORS = 256 };

template <class T, class R> DEVICE void reduce_short_rows(const T *x, typename R::out *out, u64 rows, u64 length, f64 ddof)
{
    u64 warps = (u64)gridDim.x * WARPS;

    for (u64 row = (u64)blockIdx.x * WARPS + threadIdx.x / 32; row < rows; row += warps) {
        typename R::state s = warp_reduce(share_of<R>(x + row * length, length, warp_team()), 32, R::merge);
        if (threadIdx.x % 32 == 0)
            out[row] = R::result(s, length, ddof);
    }
}

template <class T, class R> DEVICE void reduce_long_rows(const T *x, typename R::out *out, u64 rows, u64 length, f64 ddof)
{
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        typename R::state s = block_reduce(share_of<R>(x + row * length, length, block_team()), R::merge);
        if (threadIdx.x == 0)
            out[row] = R::result(s, length, ddof);
        __syncthreads();
    }
}

/* The warps share the axis, every lane has V neighbouring columns, UNROLL elements of each in flight. */
template <class T, class R, int V> DEVICE void reduce_columns(const T *x, typename R::out *out, u64 outer, u64 length, u64 inner, f64 ddof)
{
    constexpr int UNROLL = 4, STRIP = 32 * V;
    typedef typename R::state S;
    __shared__ alignas(16) char room[WARPS * STRIP * sizeof(S)];
    S  *parts = (S *)room;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u64 strips = (inner + STRIP - 1) / STRIP;

    for (u64 job = blockIdx.x; job < outer * strips; job += gridDim.x) {
        u64      first = job % strips * STRIP, column = first + lane * V;
        const T *of = x + job / strips * length * inner + column;
        S        s[V];
#pragma unroll
        for (int e = 0; e < V; e++)
            s[e] = R::empty();
        for (u64 i = warp; column < inner && i < length; i += WARPS * UNROLL) {
            pack<T, V> p[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                if (i + u * WARPS < length)
                    p[u] = pack_load<T, V>(of + (i + u * WARPS) * inner, 0);
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
#pragma unroll
                for (int e = 0; e < V; e++)
                    if (i + u * WARPS < length)
                        R::add(s[e], p[u].v[e], i + u * WARPS);
        }
#pragma unroll
        for (int e = 0; e < V; e++)
            parts[warp * STRIP + lane * V + e] = s[e];
        __syncthreads();
        for (u32 c = threadIdx.x; c < STRIP && first + c < inner; c += THREADS) {
            S sum = parts[c];
            for (int w = 1; w < WARPS; w++)
                sum = R::merge(sum, parts[w * STRIP + c]);
            out[job / strips * inner + first + c] = R::result(sum, length, ddof);
        }
        __syncthreads();
    }
}

template <class T, class R> DEVICE void reduce_along(const T *x, typename R::out *out, u64 outer, u64 length, u64 inner, f64 ddof)
{
    constexpr int V = 16 / sizeof(T) < 4 ? 16 / sizeof(T) : 4;

    if (inner == 1 && length <= ROW_OF_WARP)
        reduce_short_rows<T, R>(x, out, outer, length, ddof);
    else if (inner == 1)
        reduce_long_rows<T, R>(x, out, outer, length, ddof);
    else if (inner % V == 0 && aligned<T, V>(x) && gridDim.x >= STRIPS_FOR_VECTORS * V)
        reduce_columns<T, R, V>(x, out, outer, length, inner, ddof);
    else
        reduce_columns<T, R, 1>(x, out, outer, length, inner, ddof);
}
template <class T, class R>
__global__ void __launch_bounds__(THREADS) reduce_axis(const T *x, typename R::out *out, u64 outer, u64 length, u64 inner)
{
    reduce_along<T, R>(x, out, outer, length, inner, 0);
}
template <class T, class R>
__global__ void __launch_bounds__(THREADS) reduce_axis_ddof(const T *x, typename R::out *out, u64 outer, u64 length, u64 inner, f64 ddof)
{
    reduce_along<T, R>(x, out, outer, length, inner, ddof);
}
