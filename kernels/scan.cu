/* Scans: every element of the result combines all elements up to its place, or, exclusive, all before it.
 *
 * Method: decoupled look-back (Merrill and Garland, 2016): tiles are scanned in one pass; a tile says its own total at once, and its running total
 * as soon as the tiles before it have said theirs, so every element is read once and written once. All blocks run at the same time (a cooperative
 * launch) and take tiles in ascending order, so that whoever is waited for is at work.
 * Numbers: sums and products of f16, bf16 and f32 are kept in f32, of integers in 64 bits, which wrap around. The order of combination is that of a
 * tree whose upper levels depend on timing: the last bits of sums of real numbers may differ from run to run. An exclusive minimum begins with the
 * greatest value of the type (or infinity), a maximum with the least. NaN stays once it has come up. */
#include "common.cuh"

template <class T> struct scan_sum {
    typedef typename traits<T>::sum     C;
    typedef typename traits<T>::sum_out out;
    static DEVICE C none() { return (C)0; }
    static DEVICE C both(C a, C b) { return a + b; }
};
template <class T> struct scan_prod {
    typedef typename traits<T>::sum     C;
    typedef typename traits<T>::sum_out out;
    static DEVICE C none() { return (C)1; }
    static DEVICE C both(C a, C b) { return a * b; }
};
/* Small integers are kept in registers of 32 bits. */
template <class T> struct wide_enough { typedef compute_t<T> type; };
template <> struct wide_enough<i8> { typedef i32 type; };
template <> struct wide_enough<i16> { typedef i32 type; };
template <> struct wide_enough<u8> { typedef u32 type; };
template <> struct wide_enough<u16> { typedef u32 type; };
template <> struct wide_enough<bool> { typedef u32 type; };
template <class T> struct scan_min {
    typedef typename wide_enough<T>::type C;
    typedef T                             out;
    static DEVICE C none() { return (C)limit<compute_t<T>>::highest(); }
    static DEVICE C both(C a, C b) { return is_nan(a) || a < b ? a : b; }
};
template <class T> struct scan_max {
    typedef typename wide_enough<T>::type C;
    typedef T                             out;
    static DEVICE C none() { return (C)limit<compute_t<T>>::lowest(); }
    static DEVICE C both(C a, C b) { return is_nan(a) || a > b ? a : b; }
};

/* What a tile publishes, in scratch memory. */
enum { NOTHING = 0, OWN_TOTAL = 1, RUNNING_TOTAL = 2 };
template <class C, int BYTES = sizeof(C)> struct tile_word;

/* Four bytes and their meaning fit one word. */
template <class C> struct tile_word<C, 4> {
    u64 word;

    DEVICE void clear() { word = NOTHING; }
    DEVICE void say(u32 what, C value)
    {
        union {
            C   value;
            u32 bits;
        } u;
        u.value = value;
        *(volatile u64 *)&word = (u64)u.bits << 32 | what;
    }
    DEVICE u32 said(C &value) const
    {
        u64 w = *(const volatile u64 *)&word;
        union {
            u32 bits;
            C   value;
        } u;
        u.bits = (u32)(w >> 32);
        value = u.value;
        return (u32)w;
    }
};
/* Longer values are written before the word that announces them, each in a place of its own. */
template <class C> struct alignas(32) tile_word<C, 8> {
    u32 what;
    u32 unused;
    C   own, running;

    DEVICE void clear() { what = NOTHING; }
    DEVICE void say(u32 is, C value)
    {
        *(volatile C *)(is == OWN_TOTAL ? &own : &running) = value;
        __threadfence();
        *(volatile u32 *)&what = is;
    }
    DEVICE u32 said(C &value) const
    {
        u32 is = *(const volatile u32 *)&what;
        __threadfence();
        if (is != NOTHING)
            value = *(const volatile C *)(is == OWN_TOTAL ? &own : &running);
        return is;
    }
};

/* A whole warp: the combination of all tiles before this one. */
template <class S> DEVICE typename S::C look_back(const tile_word<typename S::C> *words, u64 tile)
{
    typedef typename S::C C;
    int lane = threadIdx.x % 32;
    C   before = S::none();

    for (i64 nearest = (i64)tile - 1;; nearest -= 32) {
        i64 at = nearest - lane;
        C   value = S::none();
        u32 said = at < 0 ? RUNNING_TOTAL : words[at].said(value);
        while (__any_sync(FULL_WARP, said == NOTHING))
            said = at < 0 ? RUNNING_TOTAL : words[at].said(value);
        u32 whole = __ballot_sync(FULL_WARP, said == RUNNING_TOTAL);
        int last = whole ? __ffs((int)whole) - 1 : 31;
        if (lane > last)
            value = S::none();
        for (int by = 1; by < 32; by *= 2) {
            C earlier = __shfl_down_sync(FULL_WARP, value, by);
            if (lane + by < 32)
                value = S::both(earlier, value);
        }
        before = S::both(__shfl_sync(FULL_WARP, value, 0), before);
        if (whole)
            return before;
    }
}

enum { SCAN_THREADS = 512, WARPS = SCAN_THREADS / 32, KEPT_BYTES = 128 };

/* Inclusive, over the first `lanes` lanes of a warp. */
template <class S> DEVICE typename S::C warp_scan(typename S::C value, int lanes)
{
    int lane = threadIdx.x % 32;

    for (int by = 1; by < lanes; by *= 2) {
        typename S::C other = __shfl_up_sync(FULL_WARP, value, by);
        if (lane >= by)
            value = S::both(other, value);
    }
    return value;
}

/* A warp's part of a tile: VECTORS vectors of N elements for each lane, one vector of all lanes after the other. */
template <class T, class S, int N> struct warp_part {
    typedef typename S::C C;
    static constexpr int VECTORS = KEPT_BYTES / (N * (int)sizeof(C));
    C v[VECTORS][N];

    DEVICE void load(const T *x, u64 from, u64 n, bool wide)
    {
        int lane = threadIdx.x % 32;
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            u64 at = from + ((u64)k * 32 + lane) * N;
            if (wide && at + N <= n) {
                pack<T, N> p = pack_load<T, N>(x, at / N);
#pragma unroll
                for (int e = 0; e < N; e++)
                    v[k][e] = (C)(compute_t<T>)p.v[e];
            } else {
#pragma unroll
                for (int e = 0; e < N; e++)
                    v[k][e] = at + e < n ? (C)(compute_t<T>)x[at + e] : S::none();
            }
        }
    }

    /* Inclusive; the warp's total is the result, in all lanes. */
    DEVICE C scan()
    {
        int lane = threadIdx.x % 32;
        C   total[VECTORS], before = S::none();
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
#pragma unroll
            for (int e = 1; e < N; e++)
                v[k][e] = S::both(v[k][e - 1], v[k][e]);
            total[k] = v[k][N - 1];
        }
#pragma unroll
        for (int by = 1; by < 32; by *= 2)
#pragma unroll
            for (int k = 0; k < VECTORS; k++) {
                C other = __shfl_up_sync(FULL_WARP, total[k], by);
                if (lane >= by)
                    total[k] = S::both(other, total[k]);
            }
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            C left = __shfl_up_sync(FULL_WARP, total[k], 1);
            left = lane ? S::both(before, left) : before;
#pragma unroll
            for (int e = 0; e < N; e++)
                v[k][e] = S::both(left, v[k][e]);
            before = S::both(before, __shfl_sync(FULL_WARP, total[k], 31));
        }
        return before;
    }

    /* Each element is replaced by the one before; `first` comes before all. */
    DEVICE void shift(C first)
    {
        int lane = threadIdx.x % 32;
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            C last = v[k][N - 1], left = __shfl_up_sync(FULL_WARP, last, 1);
            if (lane == 0)
                left = first;
            first = __shfl_sync(FULL_WARP, last, 31);
#pragma unroll
            for (int e = N - 1; e > 0; e--)
                v[k][e] = v[k][e - 1];
            v[k][0] = left;
        }
    }

    DEVICE void store(typename S::out *out, u64 from, u64 n, C before, bool wide) const
    {
        typedef typename S::out O;
        int lane = threadIdx.x % 32;
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            u64 at = from + ((u64)k * 32 + lane) * N;
            pack<O, N> p;
#pragma unroll
            for (int e = 0; e < N; e++)
                p.v[e] = (O)S::both(before, v[k][e]);
            if (wide && at + N <= n)
                pack_store<O, N>(out, at / N, p);
            else
                for (int e = 0; e < N; e++)
                    if (at + e < n)
                        out[at + e] = p.v[e];
        }
    }
};

/* The first warp replaces each warp's total by the combination of what comes before it. */
template <class S> DEVICE void place_tile(typename S::C *of_warp, tile_word<typename S::C> *words, u64 tile)
{
    typedef typename S::C C;
    int lane = threadIdx.x % 32;
    C   up_to = warp_scan<S>(lane < WARPS ? of_warp[lane] : S::none(), WARPS), all = __shfl_sync(FULL_WARP, up_to, WARPS - 1);

    if (lane == 0)
        words[tile].say(tile ? OWN_TOTAL : RUNNING_TOTAL, all);
    C earlier = tile ? look_back<S>(words, tile) : S::none();
    if (lane == 0 && tile)
        words[tile].say(RUNNING_TOTAL, S::both(earlier, all));
    up_to = __shfl_up_sync(FULL_WARP, up_to, 1);
    if (lane < WARPS)
        of_warp[lane] = lane ? S::both(earlier, up_to) : earlier;
}

template <class T, class S>
__global__ void __launch_bounds__(SCAN_THREADS, 2) scan(const T *x, typename S::out *out, u64 n, bool exclusive, u32 slot, void *scratch)
{
    typedef typename S::C C;
    constexpr int  N = 16 / sizeof(typename S::out) < KEPT_BYTES / sizeof(C) ? 16 / sizeof(typename S::out) : KEPT_BYTES / sizeof(C);
    typedef warp_part<T, S, N> part_of_warp;
    constexpr u64  PER_WARP = part_of_warp::VECTORS * 32 * N, PER_TILE = PER_WARP * WARPS;
    __shared__ C   of_warp[WARPS];
    tile_word<C>  *words = (tile_word<C> *)scratch;
    bool           wide = aligned<T, N>(x) && aligned<typename S::out, N>(out);
    int            warp = threadIdx.x / 32;
    u64            tiles = (n + PER_TILE - 1) / PER_TILE;

    for (u64 t = global_thread(); t < tiles; t += global_threads())
        words[t].clear();
    grid_wait(slot);
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        part_of_warp part;
        u64          from = tile * PER_TILE + warp * PER_WARP;
        part.load(x, from, n, wide);
        C total = part.scan();
        if (threadIdx.x % 32 == 0)
            of_warp[warp] = total;
        __syncthreads();
        if (warp == 0)
            place_tile<S>(of_warp, words, tile);
        __syncthreads();
        if (exclusive)
            part.shift(S::none());
        part.store(out, from, n, of_warp[warp], wide);
        __syncthreads();
    }
}
