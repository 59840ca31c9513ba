/* Transposition of matrices, and copies between any two strided layouts of up to four axes.
 *
 * Method: a tile of 64 x 32 elements goes through shared memory, so that both sides of the copy are read and written along rows; one column more
 * keeps its columns in different banks. The strided copy takes each element by its place in the shape; neighbours of the last axis are neighbouring
 * threads. Strides are in elements and not negative; those of the result must give every element a place of its own. */
#include "common.cuh"

/* Rows of a tile, a multiple of 32, and the warps that move it, a divisor of 32. */
enum { ACROSS = 32, DOWN = 64, WARPS = 8 };

/* The tile of x whose first element is (row, column); all its elements are requested before the first is stored. WHOLE: all of it lies
 * in x. */
template <class T, bool WHOLE>
DEVICE void transpose_tile(T (&tile)[DOWN][ACROSS + 1], const T *x, T *out, u64 rows, u64 columns, u64 row, u64 column)
{
    u32      lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const T *from = x + (row + warp) * columns + column + lane;
    T       *to = out + (column + warp) * rows + row + lane;
    T        v[DOWN / WARPS];

#pragma unroll
    for (u32 i = 0; i < DOWN / WARPS; i++, from += WARPS * columns)
        if (WHOLE || (row + warp + i * WARPS < rows && column + lane < columns))
            v[i] = *from;
#pragma unroll
    for (u32 i = 0; i < DOWN / WARPS; i++)
        tile[warp + i * WARPS][lane] = v[i];
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ACROSS / WARPS; i++, to += WARPS * rows)
#pragma unroll
        for (u32 j = 0; j < DOWN; j += 32)
            if (WHOLE || (column + warp + i * WARPS < columns && row + j + lane < rows))
                to[j] = tile[j + lane][warp + i * WARPS];
}

template <class T> __global__ void __launch_bounds__(32 * WARPS) transpose(const T *x, T *out, u64 rows, u64 columns, u64 batch)
{
    __shared__ T tile[DOWN][ACROSS + 1];
    u64          tiles_x = (columns + ACROSS - 1) / ACROSS, tiles_y = (rows + DOWN - 1) / DOWN;

    for (u64 b = blockIdx.z; b < batch; b += gridDim.z)
        for (u64 ty = blockIdx.y; ty < tiles_y; ty += gridDim.y)
            for (u64 tx = blockIdx.x; tx < tiles_x; tx += gridDim.x) {
                const T *from = x + b * rows * columns;
                T       *to = out + b * rows * columns;
                if ((ty + 1) * DOWN <= rows && (tx + 1) * ACROSS <= columns)
                    transpose_tile<T, true>(tile, from, to, rows, columns, ty * DOWN, tx * ACROSS);
                else
                    transpose_tile<T, false>(tile, from, to, rows, columns, ty * DOWN, tx * ACROSS);
                __syncthreads();
            }
}

template <class T>
__global__ void __launch_bounds__(FLAT_THREADS) copy_strided(const T *x, T *out, u64 n0, u64 n1, u64 n2, u64 n3, u64 x0, u64 x1, u64 x2, u64 x3, u64 out0,
                                                    u64 out1, u64 out2, u64 out3)
{
    u64 n = n0 * n1 * n2 * n3;

    for (u64 i = global_thread(); i < n; i += global_threads()) {
        u64 i3, i2, i1, i0;
        if (n <= 0xffffffffu) { /* divisions of 32 bits are much cheaper */
            u32 rest = (u32)i;
            i3 = rest % (u32)n3, rest /= (u32)n3;
            i2 = rest % (u32)n2, rest /= (u32)n2;
            i1 = rest % (u32)n1, i0 = rest / (u32)n1;
        } else {
            u64 rest = i;
            i3 = rest % n3, rest /= n3;
            i2 = rest % n2, rest /= n2;
            i1 = rest % n1, i0 = rest / n1;
        }
        out[i0 * out0 + i1 * out1 + i2 * out2 + i3 * out3] = x[i0 * x0 + i1 * x1 + i2 * x2 + i3 * x3];
    }
}
