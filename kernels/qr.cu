/* Orthogonal factors of matrices of any shape, x = Q R, by Householder's reflectors.
 *
 * Method: a block of threads for each matrix of a batch. 16 columns are reduced at a time, in scratch memory; the 16 reflectors are then applied together,
 * by a thread for each column of the rest (LAPACK's geqrf and orgqr).
 * qr: out has R on and above the diagonal. Below it column k has reflector k, whose 1 on the diagonal is left out: H_k = 1 - tau[k] v v'. There are
 * min(rows, columns) of them; tau is 0 behind.
 * qr_q: the first `size` columns of Q = H_0 H_1 ..., from what qr leaves; they are orthonormal.
 * Numbers: computed in T; Q R is x but for some n roundings. The diagonal of R may have either sign, as LAPACK's has. */
#include "matrix.cuh"

template <class T> struct qr_factors {
    typedef part_t<T> R;
    T  *out, *panel, *tau;
    u64 rows, columns;

    /* Makes reflector p of the panel. Its 1 is kept apart while others are made. */
    DEVICE void reflect(u64 count, int p, R *room, R *beta, T *factors)
    {
        R squares = (R)0;

        for (u64 i = p + 1 + threadIdx.x; i < count; i += blockDim.x)
            squares += square_of(panel[i * PANEL + p]);
        squares = block_sum(squares, room);
        reflector<T> h = reflector_of(panel[p * PANEL + p], squares, count - p, room, [&](u64 i) { return panel[(p + i) * PANEL + p]; });
        __syncthreads();
        for (u64 i = p + 1 + threadIdx.x; i < count; i += blockDim.x)
            panel[i * PANEL + p] = h.behind(panel[i * PANEL + p]);
        if (threadIdx.x == 0) {
            beta[p] = h.beta;
            factors[p] = h.tau;
            panel[p * PANEL + p] = (T)1;
        }
        __syncthreads();
    }

    /* Applies it to the panel's columns behind it, a warp for each. */
    DEVICE void reflect_columns(u64 count, int p, int width, T factor)
    {
        u64 lane = threadIdx.x % 32;

        for (int q = p + 1 + threadIdx.x / 32; q < width; q += blockDim.x / 32) {
            T sum = (T)0;
            for (u64 i = p + lane; i < count; i += 32)
                sum += conjugate(panel[i * PANEL + p]) * panel[i * PANEL + q];
            sum = conjugate(factor) * warp_sum(sum);
            for (u64 i = p + lane; i < count; i += 32)
                panel[i * PANEL + q] -= panel[i * PANEL + p] * sum;
        }
        __syncthreads();
    }

    /* The panel's columns go back; its upper triangle becomes reflectors' zeros. */
    DEVICE void store(u64 k, int width, const R *beta)
    {
        u64 count = rows - k;

        for (u64 at = threadIdx.x; at < count * PANEL; at += blockDim.x) {
            u64 i = at / PANEL, p = at % PANEL;
            if (p < width)
                out[(k + i) * columns + k + p] = i == p ? (T)beta[p] : panel[at];
            if (i < p)
                panel[at] = (T)0;
        }
        __syncthreads();
    }

    DEVICE void all(const T *x)
    {
        __shared__ R room[32], beta[PANEL];
        __shared__ T factors[PANEL], gram[PANEL][PANEL];
        u64 all = rows < columns ? rows : columns;

        each_element(rows, columns, [&](u64 i, u64 j) { out[i * columns + j] = x[i * columns + j]; });
        for (u64 p = threadIdx.x; p < columns; p += blockDim.x)
            tau[p] = (T)0;
        for (u64 k = 0; k < all; k += PANEL) {
            int width = all - k < PANEL ? (int)(all - k) : PANEL;
            __syncthreads();
            panel_fill(panel, rows - k, width, [&](u64 i, int p) { return out[(k + i) * columns + k + p]; });
            if (threadIdx.x < PANEL)
                factors[threadIdx.x] = (T)0;
            __syncthreads();
            for (int p = 0; p < width; p++) {
                reflect(rows - k, p, room, beta, factors);
                reflect_columns(rows - k, p, width, factors[p]);
            }
            store(k, width, beta);
            if (threadIdx.x < width)
                tau[k + threadIdx.x] = factors[threadIdx.x];
            if (k + width >= columns)
                continue;
            panel_gram(panel, rows - k, gram);
            panel_apply<true>(panel, factors, gram, out + k * columns + k + width, columns, rows - k, columns - k - width);
        }
        __syncthreads();
    }
};

template <class T> __global__ void __launch_bounds__(1024) qr(const T *x, T *out, T *tau, u64 rows, u64 columns, u64 batch, T *scratch)
{
    for (u64 b = blockIdx.x; b < batch; b += gridDim.x)
        qr_factors<T>{out + b * rows * columns, scratch + blockIdx.x * rows * PANEL, tau + b * columns, rows, columns}.all(x + b * rows * columns);
}

template <class T>
__global__ void __launch_bounds__(1024) qr_q(const T *x, const T *tau, T *out, u64 rows, u64 columns, u64 size, u64 batch, T *scratch)
{
    u64 count = rows < columns ? rows : columns;

    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        const T *h = x + b * rows * columns;
        T       *to = out + b * rows * size;
        each_element(rows, size, [&](u64 i, u64 j) { to[i * size + j] = i == j ? (T)1 : (T)0; });
        reflectors_apply<false>(scratch + blockIdx.x * rows * PANEL, count, 0, tau + b * columns, to, rows, size,
                                [&](u64 k, u64 i) { return h[i * columns + k]; });
    }
}
