// Source of wmma.ptx (for compute_90). d = a b + c for one warp; la, lb, lc, ld are the layouts of the four matrices in memory.
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda::wmma;

#define GEMM(name, m, n, k, T, MT, ST, LA, LB, LC, LD, lda, ldb, ldc)                                            \
    extern "C" __global__ void name(const MT *a, const MT *b, const ST *c, ST *d)                               \
    {                                                                                                            \
        fragment<matrix_a, m, n, k, T, LA> fa;                                                                   \
        fragment<matrix_b, m, n, k, T, LB> fb;                                                                   \
        fragment<accumulator, m, n, k, ST> fc;                                                                   \
        load_matrix_sync(fa, a, lda);                                                                            \
        load_matrix_sync(fb, b, ldb);                                                                            \
        load_matrix_sync(fc, c, ldc, LC);                                                                        \
        mma_sync(fc, fa, fb, fc);                                                                                \
        store_matrix_sync(d, fc, ldc, LD);                                                                       \
    }

GEMM(f16_16_rc, 16, 16, 16, half, half, float, row_major, col_major, mem_row_major, mem_row_major, 16, 16, 16)
GEMM(f16_16_cr, 16, 16, 16, half, half, float, col_major, row_major, mem_col_major, mem_row_major, 16, 16, 16)
GEMM(f16_32_rr, 32, 8, 16, half, half, float, row_major, row_major, mem_row_major, mem_col_major, 16, 8, 32)
GEMM(f16_8_cc, 8, 32, 16, half, half, float, col_major, col_major, mem_col_major, mem_col_major, 8, 16, 8)
GEMM(h16_16_rc, 16, 16, 16, half, half, half, row_major, col_major, mem_row_major, mem_row_major, 16, 16, 16)
GEMM(h16_32_cr, 32, 8, 16, half, half, half, col_major, row_major, mem_row_major, mem_row_major, 32, 8, 8)
GEMM(bf_16_rc, 16, 16, 16, __nv_bfloat16, __nv_bfloat16, float, row_major, col_major, mem_row_major, mem_row_major, 16, 16, 16)
GEMM(bf_32_cc, 32, 8, 16, __nv_bfloat16, __nv_bfloat16, float, col_major, col_major, mem_row_major, mem_row_major, 32, 16, 8)
GEMM(bf_8_rr, 8, 32, 16, __nv_bfloat16, __nv_bfloat16, float, row_major, row_major, mem_row_major, mem_row_major, 16, 32, 32)
GEMM(s8_16_rc, 16, 16, 16, signed char, signed char, int, row_major, col_major, mem_row_major, mem_row_major, 16, 16, 16)
GEMM(u8_32_cr, 32, 8, 16, unsigned char, unsigned char, int, col_major, row_major, mem_row_major, mem_row_major, 32, 8, 8)
GEMM(s8_8_rr, 8, 32, 16, signed char, signed char, int, row_major, row_major, mem_row_major, mem_row_major, 16, 32, 32)
GEMM(tf_16_rc, 16, 16, 8, precision::tf32, float, float, row_major, col_major, mem_row_major, mem_row_major, 8, 8, 16)
GEMM(f64_8_cr, 8, 8, 4, double, double, double, col_major, row_major, mem_row_major, mem_row_major, 8, 8, 8)
GEMM(s4_8, 8, 8, 32, experimental::precision::s4, void, int, row_major, col_major, mem_row_major, mem_row_major, 32, 32, 8)
GEMM(u4_8, 8, 8, 32, experimental::precision::u4, void, int, row_major, col_major, mem_row_major, mem_row_major, 32, 32, 8)

#define BITS(name, operation)                                                                                    \
    extern "C" __global__ void name(const void *a, const void *b, const int *c, int *d)                         \
    {                                                                                                            \
        fragment<matrix_a, 8, 8, 128, experimental::precision::b1, row_major> fa;                                \
        fragment<matrix_b, 8, 8, 128, experimental::precision::b1, col_major> fb;                                \
        fragment<accumulator, 8, 8, 128, int> fc;                                                                \
        load_matrix_sync(fa, a, 128);                                                                            \
        load_matrix_sync(fb, b, 128);                                                                            \
        load_matrix_sync(fc, c, 8, mem_row_major);                                                               \
        bmma_sync(fc, fa, fb, fc, operation);                                                                    \
        store_matrix_sync(d, fc, 8, mem_row_major);                                                              \
    }
BITS(b1_xor, experimental::bmmaBitOpXOR)
BITS(b1_and, experimental::bmmaBitOpAND)

// Through shared memory, two warps, each with its own tile; the sum is scaled element by element in between.
extern "C" __global__ void scaled(const half *a, const half *b, float *d)
{
    __shared__ half sa[2][256];
    fragment<matrix_a, 16, 16, 16, half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, half, col_major> fb;
    fragment<accumulator, 16, 16, 16, float> fc;
    int warp = threadIdx.x / 32;

    for (int i = threadIdx.x % 32; i < 256; i += 32)
        sa[warp][i] = a[warp * 256 + i];
    __syncthreads();
    fill_fragment(fc, 1.0f);
    load_matrix_sync(fa, sa[warp], 16);
    load_matrix_sync(fb, b, 16);
    for (int i = 0; i < fa.num_elements; i++)
        fa.x[i] = __hadd(fa.x[i], fa.x[i]);
    mma_sync(fc, fa, fb, fc);
    for (int i = 0; i < fc.num_elements; i++)
        fc.x[i] *= 0.5f;
    store_matrix_sync(d + warp * 256, fc, 16, mem_row_major);
}
