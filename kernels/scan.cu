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
/* Small integers travel in registers of 32 bits. */
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

/* What a tile has said. 32 bytes each in scratch memory. */
enum { NOTHING = 0, OWN_TOTAL = 1, RUNNING_TOTAL = 2 };
template <class C> struct alignas(32) tile_word {
    u32 said;
    u32 unused;
    C   own, running;
};

template <class C> DEVICE void say(volatile tile_word<C> *w, u32 what, C value)
{
    if (what == OWN_TOTAL)
        w->own = value;
    else
        w->running = value;
    __threadfence();
    w->said = what;
}

/* By a whole warp: the combination of all tiles before this one. */
template <class S> DEVICE typename S::C look_back(volatile tile_word<typename S::C> *words, u64 tile)
{
    typedef typename S::C C;
    int lane = threadIdx.x % 32;
    C   before = S::none();

    for (i64 nearest = (i64)tile - 1;; nearest -= 32) {
        i64 at = nearest - lane;
        u32 said = at < 0 ? RUNNING_TOTAL : words[at].said;
        while (__any_sync(FULL_WARP, said == NOTHING))
            said = at < 0 ? RUNNING_TOTAL : words[at].said;
        __threadfence();
        u32 whole = __ballot_sync(FULL_WARP, said == RUNNING_TOTAL);
        int last = whole ? __ffs((int)whole) - 1 : 31;
        C   value = at < 0 || lane > last ? S::none() : said == RUNNING_TOTAL ? words[at].running : words[at].own;
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

enum { SCAN_THREADS = 256, WARPS = SCAN_THREADS / 32, VECTORS = 4 };

/* A warp's part of a tile: VECTORS vectors of N elements for each lane, one vector of all lanes behind the other. */
template <class T, class S, int N> struct warp_part {
    typedef typename S::C C;
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
        C   before = S::none();
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
#pragma unroll
            for (int e = 1; e < N; e++)
                v[k][e] = S::both(v[k][e - 1], v[k][e]);
            C total = v[k][N - 1];
            for (int by = 1; by < 32; by *= 2) {
                C other = __shfl_up_sync(FULL_WARP, total, by);
                if (lane >= by)
                    total = S::both(other, total);
            }
            C left = __shfl_up_sync(FULL_WARP, total, 1);
            left = lane ? S::both(before, left) : before;
#pragma unroll
            for (int e = 0; e < N; e++)
                v[k][e] = S::both(left, v[k][e]);
            before = S::both(before, __shfl_sync(FULL_WARP, total, 31));
        }
        return before;
    }

    /* The element before each takes its place; `first` before them all. */
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

template <class T, class S>
__global__ void __launch_bounds__(SCAN_THREADS, 4) scan(const T *x, typename S::out *out, u64 n, bool exclusive, u32 slot, void *scratch)
{
    typedef typename S::C C;
    constexpr int  N = 16 / sizeof(typename S::out);
    constexpr u64  PER_WARP = VECTORS * 32 * N, PER_TILE = PER_WARP * WARPS;
    __shared__ C   of_warp[WARPS], before_tile;
    tile_word<C>  *words = (tile_word<C> *)scratch;
    bool           wide = aligned<T, N>(x) && aligned<typename S::out, N>(out);
    int            warp = threadIdx.x / 32;
    u64            tiles = (n + PER_TILE - 1) / PER_TILE;

    for (u64 t = global_thread(); t < tiles; t += global_threads())
        words[t].said = NOTHING;
    grid_wait(slot);
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        warp_part<T, S, N> part;
        u64                from = tile * PER_TILE + warp * PER_WARP;
        part.load(x, from, n, wide);
        C total = part.scan(), before = S::none();
        if (threadIdx.x % 32 == 0)
            of_warp[warp] = total;
        __syncthreads();
        for (int w = 0; w < WARPS; w++)
            before = w < warp ? S::both(before, of_warp[w]) : before;
        if (warp == WARPS - 1) {
            C all = S::both(before, total);
            if (threadIdx.x % 32 == 0)
                say(&words[tile], tile ? OWN_TOTAL : RUNNING_TOTAL, all);
            C earlier = tile ? look_back<S>(words, tile) : S::none();
            if (threadIdx.x % 32 == 0) {
                if (tile)
                    say(&words[tile], RUNNING_TOTAL, S::both(earlier, all));
                before_tile = earlier;
            }
        }
        __syncthreads();
        before = S::both(before_tile, before);
        if (exclusive)
            part.shift(S::none());
        part.store(out, from, n, before, wide);
        __syncthreads();
    }
}
