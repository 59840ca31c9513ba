/* Products of matrices, out = a b, for a batch of them: a is m x k, b is k x n, out is m x n, all in rows without gaps; those named strided have
 * lda, ldb and ldc elements from one row to the next (at least k, n, n) and a_batch, b_batch and out_batch from one matrix to the next, where 0 takes
 * the same operand for all. out must overlap neither operand nor, by its strides, itself.
 *
 * Method: blocks take tiles of the result in turn, neighbouring ones at the same time, so that they find each other's operands in the cache.
 * f16, bf16 and, as matmul_tf32, f32 use tensor cores: on compute capability 9.0 by warpgroups (warpgroup.cuh; matmul_tf32_transposed.cuh), from 8.0 on by mma.sync in tiles of
 * 256 x 128, or 128 x 64 where those would leave multiprocessors idle; a warp has 64 x 64 or 32 x 32 of it; the operands come by asynchronous copies,
 * four stages deep, into shared memory whose 16-byte pieces are permuted so that no two rows of a fragment share a bank, and into registers one stage
 * ahead. Everything else is computed by ordinary arithmetic: tiles of 128 x 128 or 64 x 64, 8 x 8 or 4 x 4 of it in the registers of each thread, the
 * next piece of the operands being loaded meanwhile. Small results of long sums, which would leave most of such a tile empty, are computed in tiles of
 * 8 x 4, each thread of a block having a part of all their sums.
 * On the cpu device, which has no use for tiles in shared memory, a thread has 8 rows of one column or 8 columns of one row (host_product).
 * Numbers: f16 and bf16 are summed in f32 and rounded once; f32 in f32, f64 in f64, one product after the other; integers wrap around. matmul_tf32 rounds
 * the operands to 11 significant bits (TF32) where tensor cores are used, and is matmul elsewhere. */
#include "common.cuh"

#if (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800) || defined(TENSOR_CORES)
#define HAS_TENSOR_CORES 1
#else
#define HAS_TENSOR_CORES 0
#endif

/* Whether host processors run the threads; the service says so of the cpu device. */
#ifndef ON_HOST
#define ON_HOST 0
#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && !defined(TENSOR_CORES)
#define HAS_WARPGROUPS 1
#else
#define HAS_WARPGROUPS 0
#endif

enum { THREADS = 256, BAND = 8 };

/* Distances in elements: between rows, and between matrices of the batch. */
struct layout {
    u64 row, matrix;
};
struct sizes {
    u64    m, n, k, batch;
    layout a, b, out;
};
DEVICE sizes without_gaps(u64 m, u64 n, u64 k, u64 batch) { return {m, n, k, batch, {k, m * k}, {n, k * n}, {n, m * n}}; }

/* Every row begins at a multiple of V elements. */
template <class T, int V> DEVICE bool rows_aligned(const T *p, layout l) { return aligned<T, V>(p) && l.row % V == 0 && l.matrix % V == 0; }

/* The place of a tile: in bands of BAND rows of tiles, column by column. */
struct place {
    u64 row, column, batch;
};
template <class I> DEVICE place place_among(I tile, I down, I across, u32 tile_m, u32 tile_n)
{
    I each = down * across, batch = 0, band = 0;

    /* Skips divisions whose result is known. */
    if (tile >= each) {
        batch = tile / each;
        tile -= batch * each;
    }
    if (tile >= BAND * across) {
        band = tile / (BAND * across);
        tile -= band * (BAND * across);
    }
    I rows = down - band * BAND < BAND ? down - band * BAND : BAND, column = tile / rows;

    return {(u64)(band * BAND + tile - column * rows) * tile_m, (u64)column * tile_n, batch};
}
/* 64-bit divisions are slow, and nothing can be fetched before them. */
DEVICE place place_of(u64 tile, const sizes &s, u32 tile_m, u32 tile_n)
{
    u64 down = (s.m + tile_m - 1) / tile_m, across = (s.n + tile_n - 1) / tile_n;

    /* Then BAND rows of tiles are below 2^32, too. */
    if (down * across * s.batch >> 28 == 0)
        return place_among<u32>((u32)tile, (u32)down, (u32)across, tile_m, tile_n);
    return place_among<u64>(tile, down, across, tile_m, tile_n);
}
DEVICE u64 tiles_of(const sizes &s, u32 tile_m, u32 tile_n) { return (s.m + tile_m - 1) / tile_m * ((s.n + tile_n - 1) / tile_n) * s.batch; }

/* ---- ordinary arithmetic ---- */

/* What products are summed in: integers as unsigned ones, which may wrap around. */
template <class T> struct sum_in { typedef compute_t<T> type; };
template <> struct sum_in<i8> { typedef u32 type; };
template <> struct sum_in<i16> { typedef u32 type; };
template <> struct sum_in<i32> { typedef u32 type; };
template <> struct sum_in<i64> { typedef u64 type; };
template <> struct sum_in<u8> { typedef u32 type; };
template <> struct sum_in<u16> { typedef u32 type; };

enum { DEEP = 16 };

/* G groups of four rows and columns for each thread. */
template <class C, int G> struct shared_pieces {
    alignas(16) C a[2][DEEP][64 * G + 16 / sizeof(C)];
    alignas(16) C b[2][DEEP][64 * G];
};

/* A piece of `rows` x `columns` of a matrix in registers: each thread has PER vectors of V elements. */
template <class T, class C, int PER, int V> struct carried {
    C v[PER][V];

    DEVICE void load(const T *x, u64 stride, u64 row0, u64 rows, u64 column0, u64 columns, u32 per_row, bool wide)
    {
#pragma unroll
        for (int i = 0; i < PER; i++) {
            u32 at = threadIdx.x + i * THREADS;
            u64 row = row0 + at / per_row, column = column0 + (u64)(at % per_row) * V;
            if (wide && row < rows && column + V <= columns) {
                pack<T, V> p;
                p.raw = *(const decltype(p.raw) *)(x + row * stride + column);
#pragma unroll
                for (int e = 0; e < V; e++)
                    v[i][e] = (C)(compute_t<T>)p.v[e];
            } else {
#pragma unroll
                for (int e = 0; e < V; e++)
                    v[i][e] = row < rows && column + e < columns ? (C)(compute_t<T>)x[row * stride + column + e] : (C)0;
            }
        }
    }
};

template <class T, class C, int G> struct plain_product {
    static constexpr int V = 16 / sizeof(C), TILE = 64 * G, PER = TILE * DEEP / V / THREADS;
    typedef shared_pieces<C, G> pieces;

    static DEVICE void put(pieces &s, int stage, const carried<T, C, PER, V> &a, const carried<T, C, PER, V> &b)
    {
#pragma unroll
        for (int i = 0; i < PER; i++) {
            u32 at = threadIdx.x + i * THREADS;
#pragma unroll
            for (int e = 0; e < V; e++) {
                s.a[stage][at % (DEEP / V) * V + e][at / (DEEP / V)] = a.v[i][e];
                s.b[stage][at / (TILE / V)][at % (TILE / V) * V + e] = b.v[i][e];
            }
        }
    }

    static DEVICE void one(const T *a, const T *b, T *out, const sizes &z, place p, pieces &s)
    {
        C   sum[4 * G][4 * G] = {};
        u32 ty = threadIdx.x / 16, tx = threadIdx.x % 16;
        /* Vectors of an element type narrower than C are narrower too. */
        bool wide_a = rows_aligned<T, V>(a, z.a), wide_b = rows_aligned<T, V>(b, z.b);
        carried<T, C, PER, V> next_a, next_b;
        int stage = 0;

        a += p.batch * z.a.matrix;
        b += p.batch * z.b.matrix;
        out += p.batch * z.out.matrix;
        next_a.load(a, z.a.row, p.row, z.m, 0, z.k, DEEP / V, wide_a);
        next_b.load(b, z.b.row, 0, z.k, p.column, z.n, TILE / V, wide_b);
        put(s, 0, next_a, next_b);
        __syncthreads();
        for (u64 k = 0; k < z.k; k += DEEP) {
            bool more = k + DEEP < z.k;
            if (more) {
                next_a.load(a, z.a.row, p.row, z.m, k + DEEP, z.k, DEEP / V, wide_a);
                next_b.load(b, z.b.row, k + DEEP, z.k, p.column, z.n, TILE / V, wide_b);
            }
#pragma unroll
            for (int d = 0; d < DEEP; d++) {
                C left[4 * G], right[4 * G];
#pragma unroll
                for (int g = 0; g < G; g++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        left[g * 4 + e] = s.a[stage][d][g * 64 + ty * 4 + e];
                        right[g * 4 + e] = s.b[stage][d][g * 64 + tx * 4 + e];
                    }
#pragma unroll
                for (int i = 0; i < 4 * G; i++)
#pragma unroll
                    for (int j = 0; j < 4 * G; j++)
                        sum[i][j] += left[i] * right[j];
            }
            stage ^= 1;
            if (more)
                put(s, stage, next_a, next_b);
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < 4 * G; i++) {
            u64 row = p.row + i / 4 * 64 + ty * 4 + i % 4;
#pragma unroll
            for (int j = 0; j < 4 * G; j++) {
                u64 column = p.column + j / 4 * 64 + tx * 4 + j % 4;
                if (row < z.m && column < z.n)
                    out[row * z.out.row + column] = (T)sum[i][j];
            }
        }
    }

    static DEVICE void all(const T *a, const T *b, T *out, const sizes &z, void *room)
    {
        u64 tiles = tiles_of(z, TILE, TILE);
        for (u64 t = blockIdx.x; t < tiles; t += gridDim.x) {
            one(a, b, out, z, place_of(t, z, TILE, TILE), *(pieces *)room);
            __syncthreads();
        }
    }
};

/* ---- small results of long sums ---- */

/* Each thread takes every so many columns of a and rows of b. */
template <class T, class C> struct thin_product {
    static constexpr int ROWS = 8, COLUMNS = 4, WARPS = THREADS / 32;
    static constexpr u64 LONG = 2 * THREADS; /* shorter sums leave threads without work */
    typedef C pieces[WARPS][ROWS * COLUMNS];

    /* Whether larger tiles would be less than a quarter full. */
    static DEVICE bool suits(const sizes &z)
    {
        return z.k >= LONG && tiles_of(z, ROWS, COLUMNS) * (ROWS * COLUMNS * 4) <= tiles_of(z, 64, 64) * (64 * 64);
    }

    static DEVICE void one(const T *a, const T *b, T *out, const sizes &z, place p, pieces &s)
    {
        C   sum[ROWS][COLUMNS] = {};
        u32 rows = z.m - p.row < ROWS ? (u32)(z.m - p.row) : ROWS, columns = z.n - p.column < COLUMNS ? (u32)(z.n - p.column) : COLUMNS;

        a += p.batch * z.a.matrix + p.row * z.a.row;
        b += p.batch * z.b.matrix + p.column;
        out += p.batch * z.out.matrix + p.row * z.out.row + p.column;
        for (u64 k = threadIdx.x; k < z.k; k += THREADS) {
            C left[ROWS], right[COLUMNS];
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                left[i] = i < rows ? (C)(compute_t<T>)a[i * z.a.row + k] : (C)0;
#pragma unroll
            for (int j = 0; j < COLUMNS; j++)
                right[j] = j < columns ? (C)(compute_t<T>)b[k * z.b.row + j] : (C)0;
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int j = 0; j < COLUMNS; j++)
                    sum[i][j] += left[i] * right[j];
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                C part = warp_reduce(sum[i][j], 32, [](C x, C y) { return x + y; });
                if (threadIdx.x % 32 == 0)
                    s[threadIdx.x / 32][i * COLUMNS + j] = part;
            }
        __syncthreads();
        u32 i = threadIdx.x / COLUMNS, j = threadIdx.x % COLUMNS;
        if (i < rows && j < columns) {
            C total = s[0][threadIdx.x];
            for (int w = 1; w < WARPS; w++)
                total += s[w][threadIdx.x];
            out[i * z.out.row + j] = (T)total;
        }
    }

    static DEVICE void all(const T *a, const T *b, T *out, const sizes &z, void *room)
    {
        u64 tiles = tiles_of(z, ROWS, COLUMNS);
        for (u64 t = blockIdx.x; t < tiles; t += gridDim.x) {
            one(a, b, out, z, place_of(t, z, ROWS, COLUMNS), *(pieces *)room);
            __syncthreads();
        }
    }
};

/* ---- host processors ---- */

/* The cpu device runs neighbouring threads as lanes of vectors, and finds in caches what shared memory is for elsewhere. Lanes have neighbouring columns of
 * the result, or rows where columns are few, so that one operand's element is the same for all of them; or, of small results of long sums, parts of the
 * sums. It is kept small: long kernels are left to the interpreter. */
template <class T, class C> struct host_product {
    static constexpr u32 EACH = 8, FEW = 32; /* of a thread: rows of its column, or columns of its row */
    static constexpr u32 ROWS = 8, COLUMNS = 4, PARTS = 1024 / sizeof(C);
    typedef C pieces[ROWS * COLUMNS][PARTS];

    static DEVICE C at(const T *x) { return (C)(compute_t<T>)*x; }

    static DEVICE void rows_of_column(const T *a, const T *b, T *out, const sizes &z, place p)
    {
        C        sum[EACH] = {};
        u64      column = p.column + threadIdx.x;
        u32      rows = z.m - p.row < EACH ? (u32)(z.m - p.row) : EACH;
        const T *left[EACH];

        if (column >= z.n)
            return;
#pragma unroll
        for (u32 i = 0; i < EACH; i++)
            left[i] = a + (p.row + (i < rows ? i : 0)) * z.a.row;
        b += column;
#pragma unroll 1
        for (u64 d = 0; d < z.k; d++) {
            C right = at(b + d * z.b.row);
#pragma unroll
            for (u32 i = 0; i < EACH; i++)
                sum[i] += at(left[i] + d) * right;
        }
#pragma unroll
        for (u32 i = 0; i < EACH; i++)
            if (i < rows)
                out[(p.row + i) * z.out.row + column] = (T)sum[i];
    }

    static DEVICE void columns_of_row(const T *a, const T *b, T *out, const sizes &z, place p)
    {
        C        sum[EACH] = {};
        u64      row = p.row + threadIdx.x;
        u32      columns = z.n - p.column < EACH ? (u32)(z.n - p.column) : EACH;
        const T *right[EACH];

        if (row >= z.m)
            return;
#pragma unroll
        for (u32 j = 0; j < EACH; j++)
            right[j] = b + p.column + (j < columns ? j : 0);
        a += row * z.a.row;
#pragma unroll 1
        for (u64 d = 0; d < z.k; d++) {
            C left = at(a + d);
#pragma unroll
            for (u32 j = 0; j < EACH; j++)
                sum[j] += left * at(right[j] + d * z.b.row);
        }
#pragma unroll
        for (u32 j = 0; j < EACH; j++)
            if (j < columns)
                out[row * z.out.row + p.column + j] = (T)sum[j];
    }

    static DEVICE void parts_of_sums(const T *a, const T *b, T *out, const sizes &z, place p, pieces &s)
    {
        u32 rows = z.m - p.row < ROWS ? (u32)(z.m - p.row) : ROWS, columns = z.n - p.column < COLUMNS ? (u32)(z.n - p.column) : COLUMNS;

        a += p.row * z.a.row;
        b += p.column;
        if (threadIdx.x < PARTS) {
            C        sum[ROWS][COLUMNS] = {};
            const T *left[ROWS];
#pragma unroll
            for (u32 i = 0; i < ROWS; i++)
                left[i] = a + (i < rows ? i : 0) * z.a.row;
#pragma unroll 1
            for (u64 d = threadIdx.x; d < z.k; d += PARTS) {
                C right[COLUMNS];
#pragma unroll
                for (u32 j = 0; j < COLUMNS; j++)
                    right[j] = at(b + d * z.b.row + (j < columns ? j : 0));
#pragma unroll
                for (u32 i = 0; i < ROWS; i++) {
                    C x = at(left[i] + d);
#pragma unroll
                    for (u32 j = 0; j < COLUMNS; j++)
                        sum[i][j] += x * right[j];
                }
            }
#pragma unroll
            for (u32 i = 0; i < ROWS * COLUMNS; i++)
                s[i][threadIdx.x] = sum[i / COLUMNS][i % COLUMNS];
        }
        __syncthreads();
        u32 i = threadIdx.x / COLUMNS, j = threadIdx.x % COLUMNS;
        if (i < rows && j < columns) {
            C total = s[threadIdx.x][0];
#pragma unroll 1
            for (u32 part = 1; part < PARTS; part++)
                total += s[threadIdx.x][part];
            out[(p.row + i) * z.out.row + p.column + j] = (T)total;
        }
        __syncthreads();
    }

    static DEVICE void all(const T *a, const T *b, T *out, const sizes &z, void *room)
    {
        bool thin = thin_product<T, C>::suits(z), few = z.n < FEW && z.n < z.m;
        u32  tile_m = thin ? ROWS : few ? (u32)THREADS : EACH, tile_n = thin ? COLUMNS : few ? EACH : (u32)THREADS;
        u64  tiles = tiles_of(z, tile_m, tile_n);

#pragma unroll 1
        for (u64 t = blockIdx.x; t < tiles; t += gridDim.x) {
            place    p = place_of(t, z, tile_m, tile_n);
            const T *x = a + p.batch * z.a.matrix, *y = b + p.batch * z.b.matrix;
            T       *to = out + p.batch * z.out.matrix;
            if (thin)
                parts_of_sums(x, y, to, z, p, *(pieces *)room);
            else if (few)
                columns_of_row(x, y, to, z, p);
            else
                rows_of_column(x, y, to, z, p);
        }
    }
};

/* ---- tensor cores ---- */

#if HAS_TENSOR_CORES
DEVICE u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

/* 16 bytes; those beyond `bytes` are 0. */
DEVICE void copy_begin(u32 to, const void *from, u32 bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes) : "memory");
}
DEVICE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> DEVICE void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }

DEVICE void load_four(u32 *r, u32 from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}
DEVICE void load_four_turned(u32 *r, u32 from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}

template <class T> struct tensor;
#define TENSOR_PRODUCT(T, instruction) \
    template <> struct tensor<T> { \
        static DEVICE void product(f32 *c, const u32 *a, const u32 *b) \
        { \
            asm("mma.sync.aligned." instruction " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                         : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
        } \
    };
TENSOR_PRODUCT(f16, "m16n8k16.row.col.f32.f16.f16.f32")
TENSOR_PRODUCT(bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
TENSOR_PRODUCT(f32, "m16n8k8.row.col.f32.tf32.tf32.f32")

DEVICE u32 rounded_to_tf32(u32 x)
{
    u32 y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(__uint_as_float(x)));
    return y;
}

/* W x W of the result for each of 4 x 2 warps. A stage holds 32 bytes of every row of a, and that many rows of b. */
template <class T, int W> struct tensor_product {
    static constexpr int V = 16 / sizeof(T), STEP = 2 * V, TILE_M = 4 * W, TILE_N = 2 * W, STAGES = 4;
    static constexpr int A_BYTES = TILE_M * 32, ROW_BYTES = TILE_N * (int)sizeof(T), B_BYTES = STEP * ROW_BYTES, STAGE_BYTES = A_BYTES + B_BYTES;

    /* Of one stage, in registers. */
    struct operands {
        u32 left[W / 16][4], right[W / 8][2];
    };

    const T *a, *b;
    T       *out;
    sizes    z;
    place    p;
    u32      room;
    bool     wide;

    /* Offsets of 16-byte pieces: rows that are read together lie in different banks. */
    static DEVICE u32 at_a(u32 row, u32 piece) { return row * 32 + (piece ^ (row >> 2 & 1)) * 16; }
    static DEVICE u32 at_b(u32 row, u32 piece) { return A_BYTES + row * ROW_BYTES + (piece ^ (sizeof(T) == 2 ? row & 7 : (row & 3) * 2)) * 16; }

    DEVICE void fetch(u32 to, const T *x, u64 stride, u64 row, u64 rows, u64 column, u64 columns) const
    {
        u64 left = row < rows && column < columns ? columns - column : 0;
        u32 n = left < V ? (u32)left : V;
        if (wide) {
            copy_begin(to, n ? x + row * stride + column : x, n * sizeof(T));
            return;
        }
        pack<T, V> piece;
        piece.raw = make_uint4(0, 0, 0, 0);
        for (u32 e = 0; e < n; e++)
            piece.v[e] = x[row * stride + column + e];
        asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(piece.raw.x), "r"(piece.raw.y), "r"(piece.raw.z), "r"(piece.raw.w) : "memory");
    }

    DEVICE void stage_begin(u64 step) const
    {
        u32 to = room + (u32)(step % STAGES) * STAGE_BYTES;
        u64 k = step * STEP;
        if (k < z.k) {
#pragma unroll
            for (u32 at = threadIdx.x; at < TILE_M * 2; at += THREADS)
                fetch(to + at_a(at / 2, at % 2), a, z.a.row, p.row + at / 2, z.m, k + at % 2 * V, z.k);
#pragma unroll
            for (u32 at = threadIdx.x; at < STEP * (TILE_N / V); at += THREADS)
                fetch(to + at_b(at / (TILE_N / V), at % (TILE_N / V)), b, z.b.row, k + at / (TILE_N / V), z.k, p.column + (u64)(at % (TILE_N / V)) * V, z.n);
        }
        copy_commit();
    }

    DEVICE void fragment_a(u32 *r, u32 from, u32 row) const
    {
        u32 lane = threadIdx.x % 32;
        load_four(r, from + at_a(row + lane % 16, lane / 16));
        if (sizeof(T) == 4)
            for (int i = 0; i < 4; i++)
                r[i] = rounded_to_tf32(r[i]);
    }
    /* Of two neighbouring strips of eight columns. */
    DEVICE void fragment_b(u32 (*r)[2], u32 from, u32 column) const
    {
        u32 lane = threadIdx.x % 32;
        if constexpr (sizeof(T) == 2) {
            load_four_turned(&r[0][0], from + at_b(lane % 16, column / 8 + lane / 16));
        } else {
            for (u32 strip = 0; strip < 2; strip++)
                for (u32 half = 0; half < 2; half++) {
                    u32 row = lane % 4 + half * 4, c = column + strip * 8 + lane / 4, x;
                    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(from + at_b(row, c / 4) + c % 4 * 4) : "memory");
                    r[strip][half] = rounded_to_tf32(x);
                }
        }
    }

    DEVICE void take(operands &to, u64 step) const
    {
        u32 from = room + (u32)(step % STAGES) * STAGE_BYTES, warp = threadIdx.x / 32;
#pragma unroll
        for (int i = 0; i < W / 16; i++)
            fragment_a(to.left[i], from, warp / 2 * W + i * 16);
#pragma unroll
        for (int j = 0; j < W / 8; j += 2)
            fragment_b(&to.right[j], from, warp % 2 * W + j * 8);
    }

    static DEVICE void multiply(f32 (&sum)[W / 16][W / 8][4], const operands &by)
    {
#pragma unroll
        for (int i = 0; i < W / 16; i++)
#pragma unroll
            for (int j = 0; j < W / 8; j++)
                tensor<T>::product(sum[i][j], by.left[i], by.right[j]);
    }

    DEVICE void store_two(u64 row, u64 column, f32 x, f32 y) const
    {
        if (row >= z.m || column >= z.n)
            return;
        T *to = out + row * z.out.row + column;
        if (wide && column + 1 < z.n) {
            pack<T, 2> v;
            v.v[0] = (T)x;
            v.v[1] = (T)y;
            *(decltype(v.raw) *)to = v.raw;
            return;
        }
        to[0] = (T)x;
        if (column + 1 < z.n)
            to[1] = (T)y;
    }

    DEVICE void one() const
    {
        f32 sum[W / 16][W / 8][4] = {};
        u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        u64 steps = (z.k + STEP - 1) / STEP;
        operands held[2];

        for (u64 s = 0; s < STAGES; s++)
            stage_begin(s);
        copy_wait<STAGES - 1>();
        __syncthreads();
        take(held[0], 0);
        /* The next stage is loaded into registers while this one is multiplied; its shared memory is free from here on. */
        for (u64 s = 0; s < steps; s += 2)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                if (s + half >= steps)
                    break;
                copy_wait<STAGES - 2>();
                __syncthreads();
                stage_begin(s + half + STAGES);
                take(held[1 - half], s + half + 1);
                multiply(sum, held[half]);
            }
        copy_wait<0>();
        __syncthreads();
#pragma unroll
        for (int i = 0; i < W / 16; i++)
#pragma unroll
            for (int j = 0; j < W / 8; j++) {
                u64 row = p.row + warp / 2 * W + i * 16 + lane / 4, column = p.column + warp % 2 * W + j * 8 + lane % 4 * 2;
                store_two(row, column, sum[i][j][0], sum[i][j][1]);
                store_two(row + 8, column, sum[i][j][2], sum[i][j][3]);
            }
    }

    static DEVICE void all(const T *a, const T *b, T *out, const sizes &z, void *room)
    {
        u64  tiles = tiles_of(z, TILE_M, TILE_N);
        bool wide = rows_aligned<T, V>(a, z.a) && rows_aligned<T, V>(b, z.b) && rows_aligned<T, 2>(out, z.out);

        for (u64 t = blockIdx.x; t < tiles; t += gridDim.x) {
            place p = place_of(t, z, TILE_M, TILE_N);
            tensor_product one_tile = {a + p.batch * z.a.matrix, b + p.batch * z.b.matrix, out + p.batch * z.out.matrix, z, p, shared_address(room), wide};
            one_tile.one();
        }
    }
};
#endif

#if HAS_WARPGROUPS
#include "warpgroup.cuh"
#include "matmul_tf32_transposed.cuh"
#else
enum { WARPGROUP_THREADS = THREADS };
#endif

/* ---- kernels ---- */

/* The grid is two blocks per multiprocessor: larger tiles only where they keep all of them busy. */
template <class T> DEVICE bool many(const sizes &z, u32 tile_m, u32 tile_n)
{
    return tiles_of(z, tile_m, tile_n) >= gridDim.x / 2;
}

template <class T, bool TENSOR> DEVICE void product(const T *a, const T *b, T *out, const sizes &z)
{
    typedef typename sum_in<T>::type C;
#if HAS_WARPGROUPS
    if constexpr (TENSOR && sizeof(T) == 4) {
        if (tiles_of(z, 256, 128) >= gridDim.x * 3 / 4)
            turned_product<256, 4, 1, 2>::all(a, b, out, z);
        else
            turned_product<64, 4, 2, 1>::all(a, b, out, z);
        return;
    } else if constexpr (TENSOR) {
        if (tiles_of(z, 128, 256) >= gridDim.x * 3 / 4)
            warpgroup_product<T, 256, 4, 1>::all(a, b, out, z);
        else
            warpgroup_product<T, 64, 4, 2>::all(a, b, out, z);
        return;
    }
#endif
    __shared__ alignas(16) char room[48 * 1024];

#if HAS_TENSOR_CORES
    if constexpr (TENSOR) {
        if (many<T>(z, 256, 128))
            tensor_product<T, 64>::all(a, b, out, z, room);
        else
            tensor_product<T, 32>::all(a, b, out, z, room);
        return;
    }
#endif
    if constexpr (ON_HOST) {
        host_product<T, C>::all(a, b, out, z, room);
        return;
    }
    if (thin_product<T, C>::suits(z)) {
        thin_product<T, C>::all(a, b, out, z, room);
        return;
    }
    if constexpr (sizeof(C) == 4)
        if (many<T>(z, 128, 128)) {
            plain_product<T, C, 2>::all(a, b, out, z, room);
            return;
        }
    plain_product<T, C, 1>::all(a, b, out, z, room);
}

template <class T, bool TENSOR> constexpr __device__ int threads_of() { return TENSOR ? (int)WARPGROUP_THREADS : (int)THREADS; }
template <class T> constexpr __device__ bool half() { return sizeof(T) == 2 && traits<T>::real; }

template <class T>
__global__ void __launch_bounds__((threads_of<T, half<T>()>()), half<T>() ? 1 : 2)
    matmul(const T *a, const T *b, T *out, u64 m, u64 n, u64 k, u64 batch)
{
    product<T, half<T>()>(a, b, out, without_gaps(m, n, k, batch));
}
template <class T> __global__ void __launch_bounds__((threads_of<T, true>()), 1) matmul_tf32(const T *a, const T *b, T *out, u64 m, u64 n, u64 k, u64 batch)
{
    product<T, true>(a, b, out, without_gaps(m, n, k, batch));
}
template <class T, bool TENSOR>
__global__ void __launch_bounds__((threads_of<T, TENSOR || half<T>()>()), 1)
    matmul_strided(const T *a, const T *b, T *out, u64 m, u64 n, u64 k, u64 batch, u64 lda, u64 ldb, u64 ldc, u64 a_batch, u64 b_batch, u64 out_batch)
{
    product<T, TENSOR || half<T>()>(a, b, out, {m, n, k, batch, {lda, a_batch}, {ldb, b_batch}, {ldc, out_batch}});
}
