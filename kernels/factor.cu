/* Triangular factors of square matrices, by which linear equations are solved: LU, Cholesky's, and substitution.
 *
 * Method: a block of threads for each matrix of a batch. 16 columns are factored at a time, in scratch memory; then each thread brings its column up
 * to date, 16 products for each element read and written (LAPACK's getrf, potrf, trtrs).
 * lu: rows are exchanged so that each pivot is the greatest of its column in size. Row i of L U is row order[i] of x; out has U on and above the diagonal, and L
 * below, whose diagonal is 1. A pivot of 0 does not stop it: info is the place of the first, counted from 1, and the matrix is singular.
 * cholesky: only the lower triangle of x is read; out = L with x = L L', 0 above. It stops at a pivot that is 0 or below: info is its place, counted
 * from 1, and out has no meaning.
 * triangular_solve: what stands on the other side of a's diagonal is not read. A diagonal element of 0 divides by 0.
 * Numbers: computed in T. The factors are those of a matrix that differs from x by some n roundings of its elements. NaN goes on into results. */
#include "matrix.cuh"

/* ---- LU ---- */

struct pivot {
    f64 size;
    u64 row;
};

/* The row with the greatest number in size in column p of a panel, from row p on, into thread 0. NaN is greater than all. */
template <class T> DEVICE pivot find_pivot(const T *panel, u64 rows, int p)
{
    pivot best = {-1.0, (u64)p};

    for (u64 i = p + threadIdx.x; i < rows; i += blockDim.x) {
        f64 size = (f64)absolute(panel[i * PANEL + p]);
        size = is_nan(size) ? (f64)INFINITE : size;
        if (size > best.size)
            best = {size, i};
    }
    return block_reduce(best, [](pivot a, pivot b) { return b.size > a.size || (b.size == a.size && b.row < a.row) ? b : a; });
}

template <class T> struct lu_factors {
    T   *out, *panel;
    i32 *order, *exchanges, *info;
    u64  n;

    DEVICE void exchange_rows(u64 k, int p, u64 row)
    {
        if (threadIdx.x == 0 && row != p) {
            i32 kept = order[k + p];
            order[k + p] = order[k + row];
            order[k + row] = kept;
            *exchanges += 1;
        }
        if (threadIdx.x < PANEL && row != p) {
            T kept = panel[p * PANEL + threadIdx.x];
            panel[p * PANEL + threadIdx.x] = panel[row * PANEL + threadIdx.x];
            panel[row * PANEL + threadIdx.x] = kept;
        }
    }

    /* Rows k and behind of columns k to k + width; chosen[p] is the row, counted from k, that was exchanged with row p. */
    DEVICE void factor_panel(u64 k, int width, u64 *chosen)
    {
        u64 rows = n - k;

        for (int p = 0; p < width; p++) {
            pivot best = find_pivot(panel, rows, p);
            if (threadIdx.x == 0) {
                chosen[p] = best.row;
                if (best.size == 0.0 && *info == 0)
                    *info = (i32)(k + p + 1);
            }
            __syncthreads();
            exchange_rows(k, p, chosen[p]);
            __syncthreads();
            T head = panel[p * PANEL + p];
            for (u64 i = p + 1 + threadIdx.x; i < rows && absolute(head) != 0; i += blockDim.x) {
                T factor = panel[i * PANEL + p] / head;
                panel[i * PANEL + p] = factor;
                for (int q = p + 1; q < width; q++)
                    panel[i * PANEL + q] -= factor * panel[p * PANEL + q];
            }
            __syncthreads();
        }
    }

    /* A thread's column behind the panel: PANEL elements of U, then what they take from the rows below. */
    DEVICE void update_column(u64 k, u64 j)
    {
        T u[PANEL];

#pragma unroll
        for (int p = 0; p < PANEL; p++)
            u[p] = out[(k + p) * n + j];
#pragma unroll
        for (int p = 1; p < PANEL; p++)
#pragma unroll
            for (int q = 0; q < p; q++)
                u[p] -= panel[p * PANEL + q] * u[q];
#pragma unroll
        for (int p = 0; p < PANEL; p++)
            out[(k + p) * n + j] = u[p];
        for (u64 i = PANEL; i < n - k; i++) {
            T x = out[(k + i) * n + j];
            panel_row(panel, i, [&](int p, T factor) { x -= factor * u[p]; });
            out[(k + i) * n + j] = x;
        }
    }

    DEVICE void other_columns(u64 k, int width, const u64 *chosen)
    {
        for (u64 j = threadIdx.x; j < n; j += blockDim.x) {
            if (j >= k && j < k + width)
                continue;
            for (int p = 0; p < width; p++) {
                T kept = out[(k + p) * n + j];
                out[(k + p) * n + j] = out[(k + chosen[p]) * n + j];
                out[(k + chosen[p]) * n + j] = kept;
            }
            if (j >= k + width)
                update_column(k, j);
        }
    }

    DEVICE void all(const T *x)
    {
        __shared__ u64 chosen[PANEL];

        each_element(n, n, [&](u64 i, u64 j) { out[i * n + j] = x[i * n + j]; });
        for (u64 i = threadIdx.x; i < n; i += blockDim.x)
            order[i] = (i32)i;
        if (threadIdx.x == 0)
            *exchanges = *info = 0;
        for (u64 k = 0; k < n; k += PANEL) {
            int width = n - k < PANEL ? (int)(n - k) : PANEL;
            __syncthreads();
            panel_fill(panel, n - k, width, [&](u64 i, int p) { return out[(k + i) * n + k + p]; });
            __syncthreads();
            factor_panel(k, width, chosen);
            for (u64 at = threadIdx.x; at < (n - k) * PANEL; at += blockDim.x)
                if ((int)(at % PANEL) < width)
                    out[(k + at / PANEL) * n + k + at % PANEL] = panel[at];
            other_columns(k, width, chosen);
        }
        __syncthreads();
    }
};

template <class T>
__global__ void __launch_bounds__(1024) lu(const T *x, T *out, i32 *order, i32 *exchanges, i32 *info, u64 n, u64 batch, T *scratch)
{
    for (u64 b = blockIdx.x; b < batch; b += gridDim.x)
        lu_factors<T>{out + b * n * n, scratch + blockIdx.x * n * PANEL, order + b * n, exchanges + b, info + b, n}.all(x + b * n * n);
}

/* ---- Cholesky ---- */

template <class T> struct cholesky_factor {
    typedef part_t<T> R;
    T  *out, *panel;
    u64 n;

    /* 0, or the place of the first pivot that is 0 or below, from 1. diagonal[p]: of L. */
    DEVICE int factor_panel(u64 rows, int width, R *diagonal)
    {
        for (int p = 0; p < width; p++) {
            R square = real_of(panel[p * PANEL + p]), root = sqrt(square);
            if (square <= (R)0)
                return p + 1;
            if (threadIdx.x == 0)
                diagonal[p] = root;
            for (u64 i = p + 1 + threadIdx.x; i < rows; i += blockDim.x)
                panel[i * PANEL + p] /= root;
            __syncthreads();
            for (u64 i = p + 1 + threadIdx.x; i < rows; i += blockDim.x) {
                T factor = panel[i * PANEL + p];
                for (int q = p + 1; q < width; q++)
                    panel[i * PANEL + q] -= factor * conjugate(panel[q * PANEL + p]);
            }
            __syncthreads();
        }
        return 0;
    }

    /* All rows behind the panel: what stands above the diagonal then is not read. */
    DEVICE void other_columns(u64 k)
    {
        for (u64 j = k + PANEL + threadIdx.x; j < n; j += blockDim.x) {
            T own[PANEL];
            panel_row(panel, j - k, [&](int p, T factor) { own[p] = conjugate(factor); });
            for (u64 i = PANEL; i < n - k; i++) {
                T x = out[(k + i) * n + j];
                panel_row(panel, i, [&](int p, T factor) { x -= factor * own[p]; });
                out[(k + i) * n + j] = x;
            }
        }
    }

    DEVICE int all(const T *x)
    {
        __shared__ R diagonal[PANEL];

        each_element(n, n, [&](u64 i, u64 j) { out[i * n + j] = i >= j ? x[i * n + j] : (T)0; });
        for (u64 k = 0; k < n; k += PANEL) {
            int width = n - k < PANEL ? (int)(n - k) : PANEL;
            __syncthreads();
            panel_fill(panel, n - k, width, [&](u64 i, int p) { return out[(k + i) * n + k + p]; });
            __syncthreads();
            int bad = factor_panel(n - k, width, diagonal);
            if (bad)
                return (int)k + bad;
            for (u64 at = threadIdx.x; at < (n - k) * PANEL; at += blockDim.x) {
                u64 i = at / PANEL, p = at % PANEL;
                if (p < width && i >= p)
                    out[(k + i) * n + k + p] = i == p ? (T)diagonal[p] : panel[at];
            }
            other_columns(k);
        }
        __syncthreads();
        each_element(n, n, [&](u64 i, u64 j) {
            if (i < j)
                out[i * n + j] = (T)0;
        });
        return 0;
    }
};

template <class T> __global__ void __launch_bounds__(1024) cholesky(const T *x, T *out, i32 *info, u64 n, u64 batch, T *scratch)
{
    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        int bad = cholesky_factor<T>{out + b * n * n, scratch + blockIdx.x * n * PANEL, n}.all(x + b * n * n);
        if (threadIdx.x == 0)
            info[b] = bad;
        __syncthreads();
    }
}

/* ---- substitution ---- */

/* Element (i, j) of the triangular matrix stands at i * down + j * across. */
template <class T> struct triangle {
    const T *a;
    u64      n, down, across;
    bool     lower, unit;

    DEVICE T at(u64 i, u64 j) const { return a[i * down + j * across]; }

    /* PANEL unknowns of one column, the rows from k on, of which there are `width`. */
    DEVICE void solve_panel(T *column, u64 stride, u64 k, int width) const
    {
        for (int step = 0; step < width; step++) {
            int p = lower ? step : width - 1 - step;
            T   x = column[(k + p) * stride];
            for (int before = 0; before < step; before++) {
                int q = lower ? before : width - 1 - before;
                x -= at(k + p, k + q) * column[(k + q) * stride];
            }
            column[(k + p) * stride] = unit ? x : x / at(k + p, k + p);
        }
    }

    /* Takes these unknowns out of row `from`, from + by, ... up to `to`. */
    DEVICE void take_out(T *column, u64 stride, u64 k, int width, u64 from, u64 to, u64 by) const
    {
        T x[PANEL];

#pragma unroll
        for (int p = 0; p < PANEL; p++)
            x[p] = p < width ? column[(k + p) * stride] : (T)0;
        for (u64 i = from; i < to; i += by) {
            T rest = column[i * stride];
#pragma unroll
            for (int p = 0; p < PANEL; p++)
                if (p < width)
                    rest -= at(i, k + p) * x[p];
            column[i * stride] = rest;
        }
    }

    /* out holds the right sides. `lanes` columns at a time, as many threads as there are share each. */
    DEVICE void solve(T *out, u64 columns, u32 lanes) const
    {
        u32 lane = threadIdx.x % lanes, part = threadIdx.x / lanes, parts = blockDim.x / lanes;
        u64 panels = (n + PANEL - 1) / PANEL;

        for (u64 first = 0; first < columns; first += lanes) {
            T   *column = out + first + lane;
            bool active = first + lane < columns;
            for (u64 step = 0; step < panels; step++) {
                u64 k = (lower ? step : panels - 1 - step) * PANEL;
                int width = n - k < PANEL ? (int)(n - k) : PANEL;
                if (active && part == 0)
                    solve_panel(column, columns, k, width);
                __syncthreads();
                if (active)
                    take_out(column, columns, k, width, (lower ? k + width : 0) + part, lower ? n : k, parts);
                __syncthreads();
            }
        }
    }
};

template <class T>
__global__ void __launch_bounds__(1024)
    triangular_solve(const T *a, const T *b, T *out, u64 n, u64 columns, u64 batch, bool lower, bool transposed, bool unit)
{
    u32 lanes = blockDim.x;

    while (lanes > 1 && lanes / 2 >= columns)
        lanes /= 2;
    for (u64 at = blockIdx.x; at < batch; at += gridDim.x) {
        triangle<T> t = {a + at * n * n, n, transposed ? 1 : n, transposed ? n : 1, lower != transposed, unit};
        T          *to = out + at * n * columns;
        for (u64 i = threadIdx.x; i < n * columns; i += blockDim.x)
            to[i] = b[at * n * columns + i];
        __syncthreads();
        t.solve(to, columns, lanes);
    }
}
