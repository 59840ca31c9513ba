/* Products of f32 by warpgroups as TF32. Included by matmul.cu behind warpgroup.cuh, whose fetching and barriers it takes.
 *
 * Method: out's transpose is computed, b's from registers and a's from shared memory as it lies, so that b is neither transposed nor rounded in shared
 * memory. Of a tile of NA x 128, a warpgroup has 64 columns; b's words are loaded and rounded by those who multiply; a is rounded in its place by the
 * thread that copied it, which needs no barrier between fetchers: cp.async.wait_group is for a thread's own copies, and each rounds its own. What the
 * others see: the thread's arrival at `full` (release) comes after its wait and its stores; who multiplies waits for it (acquire), then for its own
 * proxy (show_stores) before a product reads a. A stage is given back when its products are complete; while one warpgroup takes b into registers, the
 * other one's products run, so that the tensor cores wait for neither (registers loaded while a product of the same warpgroup runs would make the
 * assembler run all of them one by one: its warning C7513). */
#pragma once

#define STEP_REGISTERS(N, list, a4, next, sums) \
    template <> DEVICE void step_with_registers<N>(f32 (&d)[N / 2], const u32 (&a)[4], u64 b) \
    { \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k8.f32.tf32.tf32 {" list "}, {" a4 "}, " next ", 1, 1, 1;" \
                     : sums : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)); \
    }
template <int N> DEVICE void step_with_registers(f32 (&d)[N / 2], const u32 (&a)[4], u64 b);
STEP_REGISTERS(64, LIST32, "%32, %33, %34, %35", "%36", SUM32(0))
STEP_REGISTERS(128, LIST64, "%64, %65, %66, %67", "%68", SUM32(0) COMMA SUM32(32))
STEP_REGISTERS(256, LIST128, "%128, %129, %130, %131", "%132", SUM32(0) COMMA SUM32(32) COMMA SUM32(64) COMMA SUM32(96))

DEVICE u32 load_word(u32 from)
{
    u32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
    return x;
}

DEVICE void store_rounded(u32 to, uint4 v)
{
    store_piece(to, rounded_to_tf32(v.x), rounded_to_tf32(v.y), rounded_to_tf32(v.z), rounded_to_tf32(v.w));
}

/* Tiles of NA x 128; stages PARTS times as deep as 128 bytes. A stage is rounded AHEAD stages after its copies began. */
template <int NA, int STAGES, int PARTS, int AHEAD> struct turned_product {
    static constexpr int COLUMNS = 64 * MULTIPLIERS;
    typedef fetch<f32, NA, COLUMNS> fetcher;
    typedef typename fetcher::of_a  of_a;
    static constexpr int PART_DEEP = fetcher::DEEP, DEEP = PARTS * PART_DEEP, A_BYTES = fetcher::A_BYTES, STAGE_BYTES = PARTS * fetcher::BYTES, B_ROW = COLUMNS * 4;
    static_assert(STAGES * STAGE_BYTES + ATOM_BYTES <= WARPGROUP_BYTES, "the stages have room");
    static_assert(STAGES >= AHEAD + 2, "a stage is full before its predecessor's place is waited for");

    const f32 *a, *b;
    f32       *out;
    sizes      z;
    stages     at;
    bool       wide;

    DEVICE u64 steps() const { return (z.k + DEEP - 1) / DEEP; }
    /* Four rows of b that are read together, eight words of each, lie in different banks. */
    static DEVICE u32 at_b(u32 row, u32 piece) { return row * B_ROW + (piece ^ (row & 3) * 2) * 16; }

    static DEVICE void round_own(u32 a)
    {
        constexpr int AT_ONCE = 4; /* with more, the indices of a tile would go to local memory */
#pragma unroll
        for (int i = 0; i < of_a::EACH; i += AT_ONCE) {
            uint4 v[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
                v[j] = load_piece(a + permuted(of_a::row() + (i + j) * of_a::STEP, of_a::column()));
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
                store_rounded(a + permuted(of_a::row() + (i + j) * of_a::STEP, of_a::column()), v[j]);
        }
    }
    DEVICE void finish(u32 &late) const
    {
        copy_wait<AHEAD>();
#pragma unroll
        for (int part = 0; part < PARTS; part++)
            round_own(at.room + late * STAGE_BYTES + part * fetcher::BYTES);
        barrier_arrive(at.full + late * 8);
        if (++late == STAGES)
            late = 0;
    }
    DEVICE void fetch_all() const
    {
        u64 tiles = tiles_of(z, NA, COLUMNS);
        u32 slot = 0, late = 0, begun = 0, round = 0;

        for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            place              p = place_of(tile, z, NA, COLUMNS);
            tile_operands<f32> o = {a + p.batch * z.a.matrix, b + p.batch * z.b.matrix, z, p, wide};
            walk<f32>          w = fetcher::walk_begin(o);
            for (u64 k = 0; k < z.k; k += DEEP) {
                if (round)
                    barrier_wait(at.empty + slot * 8, (round - 1) & 1);
#pragma unroll
                for (int part = 0; part < PARTS; part++)
                    fetcher::begin(o, w, at.room + slot * STAGE_BYTES + part * fetcher::BYTES, k + part * PART_DEEP, at_b);
                copy_commit();
                if (++slot == STAGES) {
                    slot = 0;
                    round++;
                }
                if (++begun > AHEAD) {
                    begun--;
                    finish(late);
                }
            }
        }
        for (; begun; begun--) {
            copy_commit();
            finish(late);
        }
    }

    /* This thread's words of b, for four products: columns lane / 4 and 8 more of a warp's 16, rows lane % 4 and 4 more of each eight. */
    static DEVICE void take(u32 (&to)[4][4], u32 from, u32 column)
    {
        u32 lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                u32 row = i * 8 + e / 2 * 4 + lane % 4, c = column + e % 2 * 8 + lane / 4;
                to[i][e] = rounded_to_tf32(load_word(from + A_BYTES + at_b(row, c / 4) + c % 4 * 4));
            }
    }
    static DEVICE void multiply(f32 (&d)[NA / 2], const u32 (&held)[4][4], u32 from)
    {
        show_stores();
        group_begin();
#pragma unroll
        for (int i = 0; i < 4; i++)
            step_with_registers<NA>(d, held[i], descriptor(from + i * 32, 16, ATOM_BYTES));
        group_commit();
    }
    DEVICE void multiply_all() const
    {
        u64 tiles = tiles_of(z, NA, COLUMNS);
        u32 slot = 0, phase = 0, warp = of_warp(threadIdx.x / 32) - WARPGROUP / 32;

        for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            f32 d[NA / 2];
#pragma unroll
            for (int i = 0; i < NA / 2; i++)
                d[i] = 0;
            settle(d);
#pragma unroll 1
            for (u64 s = 0; s < steps(); s++) {
                barrier_wait(at.full + slot * 8, phase);
#pragma unroll
                for (int part = 0; part < PARTS; part++) {
                    u32 from = at.room + slot * STAGE_BYTES + part * fetcher::BYTES, held[4][4];
                    take(held, from, warp * 16);
                    multiply(d, held, from);
                    group_wait<0>();
                    settle(d);
                }
                if (threadIdx.x % 32 == 0)
                    barrier_arrive(at.empty + slot * 8);
                if (++slot == STAGES) {
                    slot = 0;
                    phase ^= 1;
                }
            }
            store(d, place_of(tile, z, NA, COLUMNS), warp);
        }
    }
    DEVICE void store(const f32 (&d)[NA / 2], place p, u32 warp) const
    {
        u32  lane = threadIdx.x % 32;
        u64  row = p.row + lane % 4 * 2, column = p.column + warp * 16 + lane / 4;
        bool all = p.row + NA <= z.m && p.column + COLUMNS <= z.n;
        f32 *to = out + p.batch * z.out.matrix + row * z.out.row + column;
#pragma unroll
        for (int j = 0; j < NA / 8; j++, to += 8 * z.out.row)
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (all || (row + j * 8 + e % 2 < z.m && column + e / 2 * 8 < z.n))
                    to[e % 2 * z.out.row + e / 2 * 8] = d[j * 4 + e];
    }

    static DEVICE void all(const f32 *a, const f32 *b, f32 *out, const sizes &z)
    {
        extern __shared__ char dynamic[];
        __shared__ u64         barriers[2 * STAGES];
        bool                   wide = rows_aligned<f32, 4>(a, z.a) && rows_aligned<f32, 4>(b, z.b);

        turned_product p = {a, b, out, z, stages_at<STAGES>(dynamic, barriers), wide};
        run_specialised<STAGES, 104, 200>(p);
    }
};
