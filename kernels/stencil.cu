/* One step of a five-point stencil on a grid: out = centre * x + north * above + south * below + west * left + east * right.
 *
 * Method: neighbouring threads are neighbouring columns; what rows share comes from the caches. Points on the border are copied.
 * Numbers: summed in f32 (f64 for f64) in that order, rounded once. x and out must not overlap. */
#include "common.cuh"

/* Rows of the grid that a block has, each a warp's. */
#define TILE_ROWS 8

template <class T>
__global__ void __launch_bounds__(32 * TILE_ROWS) stencil2d(const T *x, T *out, u64 rows, u64 columns, T centre, T north, T south, T west, T east)
{
    typedef compute_t<T> C;
    u32 lane = threadIdx.x % 32, first = threadIdx.x / 32;

    for (u64 ty = blockIdx.y; ty * TILE_ROWS < rows; ty += gridDim.y)
        for (u64 tx = blockIdx.x; tx * 32 < columns; tx += gridDim.x) {
            u64 row = ty * TILE_ROWS + first, column = tx * 32 + lane, at = row * columns + column;
            if (row >= rows || column >= columns)
                continue;
            if (row == 0 || column == 0 || row == rows - 1 || column == columns - 1)
                out[at] = x[at];
            else
                out[at] = (T)((C)centre * (C)x[at] + (C)north * (C)x[at - columns] + (C)south * (C)x[at + columns] + (C)west * (C)x[at - 1] +
                              (C)east * (C)x[at + 1]);
        }
}
