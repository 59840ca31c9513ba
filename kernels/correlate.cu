/* Correlations of planes with any weights up to 15 x 15 (stencils, filters of pictures): out[i][j] = sum of weights[r][s] * x[i + r - radius_rows][j + s - radius_columns].
 *
 * Shapes: x and out are batch x rows x columns, weights (2 radius_rows + 1) x (2 radius_columns + 1), all with their rows in memory and the same
 * dtype; out does not overlap x. What lies outside the plane, by `boundary`: 0 is 0, 1 is the nearest element, 2 goes on at the other side
 * (wrap), 3 is mirrored with the edge repeated (c b a | a b c), also where a radius is larger than the plane.
 * Method: a block takes 64 x 32 results; it reads their surroundings and the weights into shared memory once.
 * Numbers: sums in order of the weights, by fma, in f64 for f64 and f32 for the others, rounded once. */
#include "common.cuh"

enum { THREADS = 256, TILE_COLUMNS = 64, TILE_ROWS = 32, RADIUS_MAX = 7, THREAD_ROWS = THREADS / TILE_COLUMNS };
enum { SIDE_MAX = 2 * RADIUS_MAX + 1, HELD_COLUMNS = TILE_COLUMNS + 2 * RADIUS_MAX, HELD_ROWS = TILE_ROWS + 2 * RADIUS_MAX };
enum { OUTSIDE_ZERO, OUTSIDE_NEAREST, OUTSIDE_WRAP, OUTSIDE_MIRROR };

DEVICE f32 multiply_add(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
DEVICE f64 multiply_add(f64 a, f64 b, f64 c) { return fma(a, b, c); }

/* The index in 0..n-1 where place `at` finds its element; -1: outside. */
DEVICE i64 inside(i64 at, i64 n, u32 boundary)
{
    if (at >= 0 && at < n)
        return at;
    if (boundary == OUTSIDE_ZERO)
        return -1;
    if (boundary == OUTSIDE_NEAREST)
        return at < 0 ? 0 : n - 1;
    i64 period = boundary == OUTSIDE_WRAP ? n : 2 * n;
    at %= period;
    if (at < 0)
        at += period;
    return at < n ? at : period - 1 - at;
}

template <class C> struct surroundings {
    C weights[SIDE_MAX * SIDE_MAX];
    C x[HELD_ROWS][HELD_COLUMNS];
};

template <class T, class C>
DEVICE void hold(surroundings<C> &s, const T *x, i64 rows, i64 columns, i64 row, i64 column, int radius_rows, int radius_columns, u32 boundary)
{
    int across = TILE_COLUMNS + 2 * radius_columns, down = TILE_ROWS + 2 * radius_rows;

    for (int r = threadIdx.x / TILE_COLUMNS; r < down; r += THREAD_ROWS) {
        i64 from_row = inside(row + r - radius_rows, rows, boundary);
        for (int c = threadIdx.x % TILE_COLUMNS; c < across; c += TILE_COLUMNS) {
            i64 from = inside(column + c - radius_columns, columns, boundary);
            s.x[r][c] = from_row < 0 || from < 0 ? (C)0 : (C)x[from_row * columns + from];
        }
    }
}

template <class C> DEVICE C weighted(const surroundings<C> &s, int row, int column, int height, int width)
{
    C sum = (C)0;
    for (int r = 0; r < height; r++)
        for (int c = 0; c < width; c++)
            sum = multiply_add(s.weights[r * width + c], s.x[row + r][column + c], sum);
    return sum;
}

template <class T> __global__ void __launch_bounds__(THREADS)
    correlate2d(const T *x, const T *weights, T *out, u64 batch, u64 rows, u64 columns, u32 radius_rows, u32 radius_columns, u32 boundary)
{
    typedef compute_t<T> C;
    __shared__ surroundings<C> s;
    int height = 2 * (int)radius_rows + 1, width = 2 * (int)radius_columns + 1;

    for (int i = threadIdx.x; i < height * width; i += THREADS)
        s.weights[i] = (C)weights[i];
    for (u64 plane = blockIdx.z; plane < batch; plane += gridDim.z)
        for (u64 row = (u64)blockIdx.y * TILE_ROWS; row < rows; row += (u64)gridDim.y * TILE_ROWS)
            for (u64 column = (u64)blockIdx.x * TILE_COLUMNS; column < columns; column += (u64)gridDim.x * TILE_COLUMNS) {
                u64 c = column + threadIdx.x % TILE_COLUMNS;
                __syncthreads();
                hold(s, x + plane * rows * columns, (i64)rows, (i64)columns, (i64)row, (i64)column, (int)radius_rows, (int)radius_columns, boundary);
                __syncthreads();
                for (int r = threadIdx.x / TILE_COLUMNS; r < TILE_ROWS && row + r < rows; r += THREAD_ROWS)
                    if (c < columns)
                        out[(plane * rows + row + r) * columns + c] = (T)weighted(s, r, threadIdx.x % TILE_COLUMNS, height, width);
            }
}
