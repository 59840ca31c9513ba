/* Sorting of keys, alone or with values.
 *
 * Method: radix sort from the lowest digit, eight bits at a time (Satish, Harris and Garland, "Designing efficient sorting algorithms for manycore GPUs", 2009), in
 * one cooperative launch. For each digit every block counts its share, all wait, every block finds its places from all counts, and moves its share tile by tile:
 * within a tile, equal digits are ranked warp by warp with ballots, so that their order stays; the tile is put in order in shared memory first, and leaves it in
 * runs of neighbours.
 * Numbers: real numbers are ordered by their bits, with the sign taken into account: -0 comes before +0, and every NaN behind +inf (before, when descending), as
 * one and the same NaN. Equal keys keep their order. */
#include "common.cuh"

enum { SORT_THREADS = 256, SORT_WARPS = SORT_THREADS / 32, DIGITS = 256 };

template <int BYTES> struct bits_of_size;
template <> struct bits_of_size<1> { typedef u8 type; };
template <> struct bits_of_size<2> { typedef u16 type; };
template <> struct bits_of_size<4> { typedef u32 type; };
template <> struct bits_of_size<8> { typedef u64 type; };

/* Keys as unsigned integers in the same order, and back. */
template <class T> struct ordered {
    typedef typename bits_of_size<sizeof(T)>::type B;
    static constexpr B TOP = (B)((B)1 << (8 * sizeof(T) - 1));

    static DEVICE B from(B bits, bool nan, bool descending)
    {
        B o = traits<T>::real ? (nan ? (B)~(B)0 : bits & TOP ? (B)~bits : (B)(bits | TOP)) : traits<T>::is_signed ? (B)(bits ^ TOP) : bits;
        return descending ? (B)~o : o;
    }
    static DEVICE B back(B o, bool descending)
    {
        if (descending)
            o = (B)~o;
        return traits<T>::real ? (o & TOP ? (B)(o ^ TOP) : (B)~o) : traits<T>::is_signed ? (B)(o ^ TOP) : o;
    }
};
template <class T> DEVICE typename ordered<T>::B ordered_key(T x, bool descending)
{
    union {
        T                      x;
        typename ordered<T>::B bits;
    } u;
    u.x = x;
    return ordered<T>::from(u.bits, traits<T>::real && is_nan((compute_t<T>)x), descending);
}

/* Lanes with the same digit. */
DEVICE u32 same_digit(u32 digit, bool here)
{
    u32 same = __ballot_sync(FULL_WARP, here);
#pragma unroll
    for (int bit = 0; bit < 8; bit++) {
        u32 set = __ballot_sync(FULL_WARP, digit >> bit & 1);
        same &= digit >> bit & 1 ? set : ~set;
    }
    return same;
}

/* All SORT_THREADS threads: the sum of the values of the threads before. */
DEVICE u32 sum_before(u32 value, u32 *of_warp)
{
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = value;
    for (int by = 1; by < 32; by *= 2) {
        u32 other = __shfl_up_sync(FULL_WARP, sum, by);
        sum += lane >= by ? other : 0;
    }
    __syncthreads();
    if (lane == 31)
        of_warp[warp] = sum;
    __syncthreads();
    for (u32 w = 0; w < warp; w++)
        sum += of_warp[w];
    return sum - value;
}

/* Keys of a pass: the first reads T, the last writes T, those between use the integers. */
template <class T, bool PAIRS> struct sorting {
    typedef typename ordered<T>::B B;
    static constexpr int ITEMS = PAIRS || sizeof(T) == 8 ? 8 : 16, TILE = SORT_THREADS * ITEMS, PASSES = sizeof(T);

    struct room {
        u32 counts[SORT_WARPS][DIGITS];
        u32 counted[DIGITS], first[DIGITS], shift[DIGITS], of_warp[SORT_WARPS];
        B   keys[TILE];
        u32 values[PAIRS ? TILE : 1];
    };

    const T *x;
    T       *out;
    B       *scratch_keys;
    const u32 *values;
    u32     *values_out, *scratch_values, *histogram;
    u64      n, begin, end; /* this block's share */
    bool     descending;
    int      pass;

    DEVICE bool to_out() const { return (PASSES - pass) % 2 == 1; }
    DEVICE B key(u64 i) const
    {
        return pass == 0 ? ordered_key(x[i], descending) : to_out() ? scratch_keys[i] : ((const B *)out)[i];
    }
    DEVICE u32 value(u64 i) const { return pass == 0 ? values[i] : to_out() ? scratch_values[i] : values_out[i]; }
    DEVICE u32 digit(B key) const { return (u32)(key >> (8 * pass)) & (DIGITS - 1); }
    DEVICE void put(u64 i, B key, u32 value) const
    {
        B *to = to_out() ? (B *)out : scratch_keys;
        to[i] = pass == PASSES - 1 ? ordered<T>::back(key, descending) : key;
        if (PAIRS)
            (to_out() ? values_out : scratch_values)[i] = value;
    }

    /* Starts AT_ONCE loads per thread before waiting for the first: additions to shared memory between them would make each wait for the
     * one before. */
    enum { AT_ONCE = 8 };

    DEVICE void count(room &r) const
    {
        u64 i = begin + threadIdx.x;

        r.counted[threadIdx.x] = 0;
        __syncthreads();
        for (; i + (AT_ONCE - 1) * SORT_THREADS < end; i += AT_ONCE * SORT_THREADS) {
            B keys[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
                keys[j] = key(i + j * SORT_THREADS);
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
                atomicAdd(&r.counted[digit(keys[j])], 1);
        }
        for (; i < end; i += SORT_THREADS)
            atomicAdd(&r.counted[digit(key(i))], 1);
        __syncthreads();
        histogram[blockIdx.x * DIGITS + threadIdx.x] = r.counted[threadIdx.x];
    }

    /* Of this thread's digit, as block b counted it; past the first-level cache, which may hold what an earlier pass counted. */
    DEVICE u32 counted_by(u32 b) const { return __ldcg(histogram + b * DIGITS + threadIdx.x); }

    /* Where this block's elements of this thread's digit begin. */
    DEVICE u32 find_place(room &r) const
    {
        u32 total = 0, before = 0, b = 0;

        for (; b + AT_ONCE <= gridDim.x; b += AT_ONCE) {
            u32 c[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
                c[j] = counted_by(b + j);
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++) {
                before += b + j < blockIdx.x ? c[j] : 0;
                total += c[j];
            }
        }
        for (; b < gridDim.x; b++) {
            u32 c = counted_by(b);
            before += b < blockIdx.x ? c : 0;
            total += c;
        }
        return sum_before(total, r.of_warp) + before;
    }

    /* `offset` is the next place of this thread's digit. No barrier is needed after a tile. The next tile changes what its writing reads
     * (keys, values, shift) only after barriers of its own; counts, which the next tile changes first, were last read before this tile's
     * last barrier. */
    DEVICE void move_tile(room &r, u64 from, u32 &offset) const
    {
        u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, count = end - from < TILE ? (u32)(end - from) : TILE;
        B   keys[ITEMS];
        u32 carried[ITEMS], rank[ITEMS];

#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            u32 at = warp * 32 * ITEMS + i * 32 + lane;
            if (at < count) {
                keys[i] = key(from + at);
                if (PAIRS)
                    carried[i] = value(from + at);
            }
        }
        for (int w = 0; w < SORT_WARPS; w++)
            r.counts[w][threadIdx.x] = 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            bool here = warp * 32 * ITEMS + i * 32 + lane < count;
            u32  d = here ? digit(keys[i]) : 0, same = same_digit(d, here), earlier = same & ((1u << lane) - 1);
            rank[i] = here ? r.counts[warp][d] + __popc(earlier) : 0;
            __syncwarp();
            if (here && !earlier)
                r.counts[warp][d] += __popc(same);
            __syncwarp();
        }
        __syncthreads();
        u32 sum = 0;
        for (int w = 0; w < SORT_WARPS; w++) {
            u32 c = r.counts[w][threadIdx.x];
            r.counts[w][threadIdx.x] = sum;
            sum += c;
        }
        u32 first = sum_before(sum, r.of_warp);
        r.first[threadIdx.x] = first;
        r.shift[threadIdx.x] = offset - first;
        offset += sum;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            if (warp * 32 * ITEMS + i * 32 + lane < count) {
                u32 d = digit(keys[i]), at = r.first[d] + r.counts[warp][d] + rank[i];
                r.keys[at] = keys[i];
                if (PAIRS)
                    r.values[at] = carried[i];
            }
        __syncthreads();
        /* All of a thread's elements are read before the first is written, for the same reason as when counting. */
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            u32 at = threadIdx.x + i * SORT_THREADS;
            if (at < count) {
                keys[i] = r.keys[at];
                if (PAIRS)
                    carried[i] = r.values[at];
                rank[i] = at + r.shift[digit(keys[i])];
            }
        }
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            if (threadIdx.x + i * SORT_THREADS < count)
                put(rank[i], keys[i], PAIRS ? carried[i] : 0);
    }

    DEVICE void run(u32 slot)
    {
        __shared__ room r;
        u64 tiles = (n + TILE - 1) / TILE, share = (tiles + gridDim.x - 1) / gridDim.x * TILE;

        begin = blockIdx.x * share < n ? blockIdx.x * share : n;
        end = begin + share < n ? begin + share : n;
        for (pass = 0; pass < PASSES; pass++) {
            count(r);
            grid_wait(slot);
            u32 offset = find_place(r);
            for (u64 tile = begin; tile < end; tile += TILE)
                move_tile(r, tile, offset);
            grid_wait(slot);
        }
    }
};

DEVICE char *after(char *p, u64 bytes) { return p + (bytes + 255) / 256 * 256; }

template <class T> __global__ void __launch_bounds__(SORT_THREADS, 2) sort(const T *x, T *out, u64 n, bool descending, u32 slot, void *scratch)
{
    typedef typename ordered<T>::B B;
    sorting<T, false> s = {x, out, (B *)scratch, nullptr, nullptr, nullptr, (u32 *)after((char *)scratch, n * sizeof(T)), n, 0, 0, descending, 0};
    s.run(slot);
}
template <class T>
__global__ void __launch_bounds__(SORT_THREADS, 2)
    sort_pairs(const T *x, const u32 *values, T *out, u32 *values_out, u64 n, bool descending, u32 slot, void *scratch)
{
    typedef typename ordered<T>::B B;
    char *values_at = after((char *)scratch, n * sizeof(T));
    sorting<T, true> s = {x, out, (B *)scratch, values, values_out, (u32 *)values_at, (u32 *)after(values_at, n * 4), n, 0, 0, descending, 0};
    s.run(slot);
}
