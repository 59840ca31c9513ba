/* Transposition of matrices, and copies between any two strided layouts of up to four axes.
 *
 * Method: a tile of 32 x 32 elements goes through shared memory, so that both sides of the copy are read and written along rows; one column more
 * keeps its columns in different banks. The strided copy takes each element by its place in the shape; neighbours of the last axis are neighbouring
 * threads. Strides are in elements and not negative; those of the result must give every element a place of its own. */
#include "common.cuh"

enum { TILE = 32 };

template <class T> __global__ void __launch_bounds__(256) transpose(const T *x, T *out, u64 rows, u64 columns, u64 batch)
{
    __shared__ T tile[TILE][TILE + 1];
    u32 lane = threadIdx.x % TILE, first = threadIdx.x / TILE;
    u64 tiles_x = (columns + TILE - 1) / TILE, tiles_y = (rows + TILE - 1) / TILE;

    for (u64 b = blockIdx.z; b < batch; b += gridDim.z)
        for (u64 ty = blockIdx.y; ty < tiles_y; ty += gridDim.y)
            for (u64 tx = blockIdx.x; tx < tiles_x; tx += gridDim.x) {
                const T *from = x + b * rows * columns;
                T       *to = out + b * rows * columns;
#pragma unroll
                for (u32 r = 0; r < TILE; r += 8) {
                    u64 row = ty * TILE + first + r, column = tx * TILE + lane;
                    if (row < rows && column < columns)
                        tile[first + r][lane] = from[row * columns + column];
                }
                __syncthreads();
#pragma unroll
                for (u32 r = 0; r < TILE; r += 8) {
                    u64 row = tx * TILE + first + r, column = ty * TILE + lane;
                    if (row < columns && column < rows)
                        to[row * rows + column] = tile[lane][first + r];
                }
                __syncthreads();
            }
}

template <class T>
__global__ void __launch_bounds__(256) copy_strided(const T *x, T *out, u64 n0, u64 n1, u64 n2, u64 n3, u64 x0, u64 x1, u64 x2, u64 x3, u64 out0,
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
