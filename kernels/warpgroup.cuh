/* Products of matrices of f16 and bf16 by warpgroups (wgmma), which compute capability 9.0 alone has, and what those of f32 (matmul_tf32_transposed.cuh) share with
 * them. Included by matmul.cu, whose sizes and places it takes.
 *
 * Method: a block of three warpgroups has nearly all of a multiprocessor's shared memory ("warp specialised", as NVIDIA's CUTLASS calls it). One
 * warpgroup fetches the operands, stage after stage, each as much as lies in 128 bytes of every row; two multiply, 64 rows of the result each, by
 * instructions that take both operands from shared memory. Two barriers for each stage tell when it is full and when it may be filled again, so that
 * fetching runs ahead by all stages, into the next tile too. 16-byte pieces are permuted within their 128 bytes as the instructions expect
 * (128-byte swizzle). b is taken as it lies in memory. The result, of which a thread has two neighbours at a time, goes through shared memory, so
 * that it is written in 16-byte pieces. */
#pragma once

#ifndef WARPGROUP_BYTES
#define WARPGROUP_BYTES (4 * 48 * 1024 + 1024)
#endif

enum { WARPGROUP = 128, MULTIPLIERS = 2, WARPGROUP_THREADS = WARPGROUP * (1 + MULTIPLIERS), ROW_BYTES = 128, ATOM_BYTES = 8 * ROW_BYTES };

/* ---- the instructions ---- */

#define TEN(t) "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9"
#define SUM8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUM32(i) SUM8(i), SUM8(i + 8), SUM8(i + 16), SUM8(i + 24)

/* d += a b for 64 rows and N columns, 32 bytes deep; a and b are descriptors. Not complete before group_wait(). */
template <class T, int N> struct warpgroup_step;
#define WARPGROUP_STEP(T, N, shape, operands, list, next, sums) \
    template <> struct warpgroup_step<T, N> { \
        static DEVICE void add(f32 (&d)[N / 2], u64 a, u64 b) \
        { \
            asm volatile("wgmma.mma_async.sync.aligned." shape " {" list "}, " next ", 1, 1, 1" operands ";" : sums : "l"(a), "l"(b)); \
        } \
    };
#define LIST32 TEN() "," TEN(1) "," TEN(2) ",%30,%31"
#define LIST64 TEN() "," TEN(1) "," TEN(2) "," TEN(3) "," TEN(4) "," TEN(5) ",%60,%61,%62,%63"
#define LIST128 LIST64 ",%64,%65,%66,%67,%68,%69," TEN(7) "," TEN(8) "," TEN(9) "," TEN(10) "," TEN(11) ",%120,%121,%122,%123,%124,%125,%126,%127"
#define WARPGROUP_STEPS(T, deep, types, operands) \
    WARPGROUP_STEP(T, 64, "m64n64" deep types, operands, LIST32, "%32, %33", SUM32(0)) \
    WARPGROUP_STEP(T, 128, "m64n128" deep types, operands, LIST64, "%64, %65", SUM32(0) COMMA SUM32(32)) \
    WARPGROUP_STEP(T, 256, "m64n256" deep types, operands, LIST128, "%128, %129", SUM32(0) COMMA SUM32(32) COMMA SUM32(64) COMMA SUM32(96))
#define COMMA ,
/* a along k, b along n. */
WARPGROUP_STEPS(f16, "k16", ".f32.f16.f16", ", 0, 1")
WARPGROUP_STEPS(bf16, "k16", ".f32.bf16.bf16", ", 0, 1")

/* An operand in shared memory, in rows of 128 permuted bytes; `lead` and `stride` are bytes between its atoms of eight rows. */
DEVICE u64 descriptor(u32 address, u32 lead, u32 stride)
{
    return (u64)(address >> 4 & 0x3fff) | (u64)(lead >> 4) << 16 | (u64)(stride >> 4) << 32 | (u64)1 << 62;
}
DEVICE u32 permuted(u32 row, u32 piece) { return row * ROW_BYTES + (piece ^ (row & 7)) * 16; }

DEVICE void group_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void group_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING> DEVICE void group_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory"); }
/* Keeps the compiler from moving uses of the sums across a wait. */
template <int N> DEVICE void settle(f32 (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}
/* Makes ordinary stores and copies visible to the instructions above. */
DEVICE void show_stores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

template <int N> DEVICE void registers_take() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> DEVICE void registers_give() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }

/* ---- hints for the compiler ---- */

/* Hides where a value comes from. Otherwise the compiler replaces additions by products, all in registers at once, and computes
 * available values again. */
template <class T> DEVICE void as_it_is(const T *&p) { asm volatile("" : "+l"(p)); }
DEVICE void as_it_is(u32 &x) { asm volatile("" : "+r"(x)); }
/* A value that all threads of a warp share, known as such to the compiler. */
DEVICE u32 of_warp(u32 x) { return __shfl_sync(~0u, x, 0); }

/* ---- barriers ---- */

DEVICE void barrier_init(u32 barrier, u32 arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory"); }
DEVICE void barrier_arrive(u32 barrier) { asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }
/* Arrives as soon as this thread's copies are complete. */
DEVICE void barrier_arrive_with_copies(u32 barrier) { asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory"); }
DEVICE void barrier_wait(u32 barrier, u32 phase)
{
    u32 done;
    do
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                     : "=r"(done) : "r"(barrier), "r"(phase) : "memory");
    while (!done);
}

/* Where a product's stages and their barriers lie, from the first stage on; barriers are 8 bytes each. */
struct stages {
    u32 room, full, empty;
};
template <int STAGES> DEVICE stages stages_at(const char *dynamic, const u64 *barriers)
{
    stages s = {(shared_address(dynamic) + ATOM_BYTES - 1) / ATOM_BYTES * ATOM_BYTES, shared_address(barriers), 0};

    as_it_is(s.room), as_it_is(s.full);
    s.empty = s.full + STAGES * 8;
    return s;
}

/* A block: a product p of STAGES stages. One warpgroup fetches, the others multiply and have this many registers per thread, of the 168
 * for each of 384 threads. */
template <int STAGES, int FETCHING, int MULTIPLYING, class P> DEVICE void run_specialised(const P &p)
{
    static_assert(FETCHING + MULTIPLIERS * MULTIPLYING <= 168 * (1 + MULTIPLIERS), "there are so many registers");
    if (threadIdx.x == 0)
        for (int i = 0; i < STAGES; i++) {
            barrier_init(p.at.full + i * 8, WARPGROUP);
            barrier_init(p.at.empty + i * 8, MULTIPLIERS * WARPGROUP / 32);
        }
    __syncthreads();
    if (threadIdx.x < WARPGROUP) {
        registers_give<FETCHING>();
        p.fetch_all();
    } else {
        registers_take<MULTIPLYING>();
        p.multiply_all();
    }
}

/* ---- fetching ---- */

DEVICE void store_piece(u32 to, u32 x, u32 y, u32 z, u32 w)
{
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

DEVICE uint4 load_piece(u32 from)
{
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(from) : "memory");
    return v;
}

/* 16 bytes of row `row`, those beyond the matrix 0. `wide`: every row begins on 16 bytes. */
template <class T> DEVICE void fetch_piece(u32 to, const T *x, u64 stride, u64 row, u64 rows, u64 column, u64 columns, bool wide)
{
    constexpr u32 V = 16 / sizeof(T);
    u64 left = row < rows && column < columns ? columns - column : 0;
    u32 n = left < V ? (u32)left : V;

    if (wide) {
        copy_begin(to, n ? x + row * stride + column : x, n * sizeof(T));
        return;
    }
    pack<T, V> v;
    v.raw = make_uint4(0, 0, 0, 0);
    for (u32 e = 0; e < n; e++)
        v.v[e] = x[row * stride + column + e];
    store_piece(to, v.raw.x, v.raw.y, v.raw.z, v.raw.w);
}

/* Rows of ACROSS pieces, by a warpgroup: a thread's pieces lie in one column, STEP rows apart. */
template <class T, int ROWS, int ACROSS> struct rectangle {
    static constexpr int V = 16 / sizeof(T), STEP = WARPGROUP / ACROSS, EACH = ROWS / STEP;

    static DEVICE u32 row() { return threadIdx.x / ACROSS; }
    static DEVICE u32 column() { return threadIdx.x % ACROSS; }
    /* This thread's first piece. */
    static DEVICE const T *first(const T *x, u64 stride, u64 row0, u64 column0) { return x + (row0 + row()) * stride + column0 + column() * V; }

    /* at(row, piece) is the place of a piece; it repeats with every other step. `from`: the result of first(). */
    template <class F> static DEVICE void copy(const T *from, u64 stride, F at)
    {
        u32 even = at(row(), column()), odd = at(row() + STEP, column()), two = at(row() + 2 * STEP, column()) - even;
#pragma unroll
        for (int i = 0; i < EACH; i++, from += STEP * stride) {
            as_it_is(from);
            copy_begin((i % 2 ? odd : even) + i / 2 * two, from, 16);
        }
    }
    /* Where a part may lie beyond the matrix, or rows begin anywhere. */
    template <class F> static DEVICE void fetch(const T *x, u64 stride, u64 row0, u64 rows, u64 column0, u64 columns, bool wide, F at)
    {
#pragma unroll 1
        for (int i = 0; i < EACH; i++)
            fetch_piece(at(row() + i * STEP, column()), x, stride, row0 + row() + i * STEP, rows, column0 + column() * V, columns, wide);
    }
};

template <class T> struct tile_operands {
    const T *a, *b;
    sizes    z;
    place    p;
    bool     wide;
};

/* A thread's first pieces of the next stage; `whole` where no row or column of the tile lies beyond the matrices and all begin on 16 bytes. */
template <class T> struct walk {
    const T *a, *b;
    bool     whole;
};

/* ROWS rows of a and COLUMNS columns of b, as deep as 128 bytes. */
template <class T, int ROWS, int COLUMNS> struct fetch {
    static constexpr int DEEP = ROW_BYTES / sizeof(T), A_BYTES = ROWS * ROW_BYTES, BYTES = A_BYTES + COLUMNS * ROW_BYTES;

    typedef rectangle<T, ROWS, 8>                        of_a;
    typedef rectangle<T, DEEP, COLUMNS * sizeof(T) / 16> of_b;

    static DEVICE walk<T> walk_begin(const tile_operands<T> &o)
    {
        return {of_a::first(o.a, o.z.a.row, o.p.row, 0), of_b::first(o.b, o.z.b.row, 0, o.p.column),
                o.wide && o.p.row + ROWS <= o.z.m && o.p.column + COLUMNS <= o.z.n};
    }
    /* at_b(row, piece) is a place behind a's. */
    template <class F> static DEVICE void begin(const tile_operands<T> &o, walk<T> &w, u32 to, u64 k, F at_b)
    {
        auto place_a = [=](u32 row, u32 piece) { return to + permuted(row, piece); };
        auto place_b = [=](u32 row, u32 piece) { return to + A_BYTES + at_b(row, piece); };

        if (w.whole && k + DEEP <= o.z.k) {
            of_a::copy(w.a, o.z.a.row, place_a);
            of_b::copy(w.b, o.z.b.row, place_b);
        } else {
            of_a::fetch(o.a, o.z.a.row, o.p.row, o.z.m, k, o.z.k, o.wide, place_a);
            of_b::fetch(o.b, o.z.b.row, k, o.z.k, o.p.column, o.z.n, o.wide, place_b);
        }
        w.a += DEEP;
        w.b += DEEP * o.z.b.row;
    }
};

/* ---- the result ---- */

template <class T> DEVICE u32 rounded_pair(f32 x, f32 y)
{
    pack<T, 2> v;
    v.v[0] = (T)x;
    v.v[1] = (T)y;
    return v.raw;
}

/* Four 8 x 8 matrices of two bytes each, as the sums of products lie in registers; a lane tells the place of a row. */
DEVICE void matrices_store(u32 to, u32 x, u32 y, u32 z, u32 w)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

enum { WARP_ROWS = 16, PIECES_BYTES = WARP_ROWS * ROW_BYTES };

/* A warp's 16 rows of the result, 64 columns at a time, by way of PIECES_BYTES of shared memory that no other warp uses. */
template <class T> struct leaving {
    T     *out; /* of the batch's matrix */
    sizes  z;
    u32    room;
    bool   straight; /* rows begin on 16 bytes */

    DEVICE void lay(const f32 *d) const
    {
        u32 lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 4; i++, d += 8)
            matrices_store(room + permuted(lane % 16, i * 2 + lane / 16), rounded_pair<T>(d[0], d[1]), rounded_pair<T>(d[2], d[3]),
                           rounded_pair<T>(d[4], d[5]), rounded_pair<T>(d[6], d[7]));
    }
    DEVICE void write_piece(u64 row, u64 column, u32 from) const
    {
        pack<T, 8> v;

        if (row >= z.m || column >= z.n)
            return;
        T *to = out + row * z.out.row + column;
        v.raw = load_piece(from);
        if (straight && column + 8 <= z.n) {
            pack_store<T, 8>(to, 0, v);
            return;
        }
#pragma unroll
        for (int e = 0; e < 8; e++)
            if (column + e < z.n)
                to[e] = v.v[e];
    }
    DEVICE void write(u64 row, u64 column) const
    {
        u32 lane = threadIdx.x % 32;
#pragma unroll
        for (u32 i = lane / 8; i < WARP_ROWS; i += 4)
            write_piece(row + i, column + lane % 8 * 8, room + permuted(i, lane % 8));
    }
};

/* ---- the product ---- */

/* Tiles of 128 x N. A stage is PARTS times as deep as 128 bytes: with small tiles, what is done once for each stage takes longer than a part's
 * products. */
template <class T, int N, int STAGES, int PARTS> struct warpgroup_product {
    static constexpr int TILE_M = 64 * MULTIPLIERS;
    typedef fetch<T, TILE_M, N> fetcher;
    static constexpr int PART_DEEP = fetcher::DEEP, DEEP = PARTS * PART_DEEP, STAGE_BYTES = PARTS * fetcher::BYTES, PANEL_BYTES = PART_DEEP * ROW_BYTES;
    static_assert(STAGES * STAGE_BYTES + ATOM_BYTES <= WARPGROUP_BYTES, "the stages have room");

    const T *a, *b;
    T       *out;
    sizes    z;
    stages   at;
    u32      pieces;         /* PIECES_BYTES for each warp that multiplies */
    bool     wide, straight; /* rows of the operands, of the result begin on 16 bytes */

    DEVICE u64 steps() const { return (z.k + DEEP - 1) / DEEP; }

    /* b lies in panels of 64 columns, a row of k in each row. */
    static DEVICE u32 at_b(u32 row, u32 piece) { return piece / 8 * PANEL_BYTES + permuted(row, piece % 8); }
    static DEVICE u64 descriptor_b(u32 b, int step) { return descriptor(b + step * 2 * ATOM_BYTES, PANEL_BYTES, ATOM_BYTES); }

    DEVICE void fetch_all() const
    {
        u64 tiles = tiles_of(z, TILE_M, N);
        u32 slot = 0, round = 0;

        for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            place            p = place_of(tile, z, TILE_M, N);
            tile_operands<T> o = {a + p.batch * z.a.matrix, b + p.batch * z.b.matrix, z, p, wide};
            walk<T>          w = fetcher::walk_begin(o);
            for (u64 k = 0; k < z.k; k += DEEP) {
                if (round)
                    barrier_wait(at.empty + slot * 8, (round - 1) & 1);
#pragma unroll
                for (int part = 0; part < PARTS; part++)
                    fetcher::begin(o, w, at.room + slot * STAGE_BYTES + part * fetcher::BYTES, k + part * PART_DEEP, at_b);
                /* Both kinds of arrival come after this thread's stores or copies. */
                if (wide)
                    barrier_arrive_with_copies(at.full + slot * 8);
                else
                    barrier_arrive(at.full + slot * 8);
                if (++slot == STAGES) {
                    slot = 0;
                    round++;
                }
            }
        }
    }

    DEVICE void store(const f32 (&d)[N / 2], place p, u32 warp) const
    {
        leaving<T> by = {out + p.batch * z.out.matrix, z, pieces + warp * PIECES_BYTES, straight};
#pragma unroll
        for (int i = 0; i < N / 64; i++) {
            __syncwarp();
            by.lay(d + i * 32);
            __syncwarp();
            by.write(p.row + warp * WARP_ROWS, p.column + i * 64);
        }
    }

    /* The products of a stage, which are complete when the group is. */
    DEVICE void multiply(f32 (&d)[N / 2], u32 stage, u32 rows) const
    {
        group_begin();
#pragma unroll
        for (int part = 0; part < PARTS; part++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                u32 from = stage + part * fetcher::BYTES;
                warpgroup_step<T, N>::add(d, descriptor(from + rows * ROW_BYTES + i * 32, 16, ATOM_BYTES), descriptor_b(from + fetcher::A_BYTES, i));
            }
        group_commit();
    }
    /* A stage is released when the next one's product has begun and its own is complete. */
    DEVICE void multiply_all() const
    {
        u64 tiles = tiles_of(z, TILE_M, N);
        u32 slot = 0, phase = 0, before = STAGES - 1, warp = of_warp(threadIdx.x / 32) - WARPGROUP / 32, rows = warp / 4 * 64;

        for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            f32 d[N / 2];
#pragma unroll
            for (int i = 0; i < N / 2; i++)
                d[i] = 0;
            settle(d);
#pragma unroll 1
            for (u64 s = 0; s < steps(); s++) {
                barrier_wait(at.full + slot * 8, phase);
                show_stores();
                multiply(d, at.room + slot * STAGE_BYTES, rows);
                group_wait<1>();
                if (s && threadIdx.x % 32 == 0)
                    barrier_arrive(at.empty + before * 8);
                before = slot;
                if (++slot == STAGES) {
                    slot = 0;
                    phase ^= 1;
                }
            }
            group_wait<0>();
            settle(d);
            if (z.k && threadIdx.x % 32 == 0)
                barrier_arrive(at.empty + before * 8);
            store(d, place_of(tile, z, TILE_M, N), warp);
        }
    }

    static DEVICE void all(const T *a, const T *b, T *out, const sizes &z)
    {
        extern __shared__ char      dynamic[];
        __shared__ u64              barriers[2 * STAGES];
        __shared__ alignas(16) char pieces[MULTIPLIERS * WARPGROUP / 32 * PIECES_BYTES];
        bool                        wide = rows_aligned<T, 8>(a, z.a) && rows_aligned<T, 8>(b, z.b);

        warpgroup_product p = {a, b, out, z, stages_at<STAGES>(dynamic, barriers), shared_address(pieces), wide, rows_aligned<T, 8>(out, z.out)};
        run_specialised<STAGES, 88, 208>(p);
    }
};
