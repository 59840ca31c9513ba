/* Eigenvalues and eigenvectors of symmetric and Hermitian matrices.
 *
 * Method: a block of threads for each matrix of a batch. Householder's reflectors make it tridiagonal; each step reads and writes the rest of the
 * matrix once, applying the step before and multiplying for the next (as LAPACK's sytrd does). Then QL steps with implicit shifts (LAPACK's steqr; Martin and
 * Wilkinson, 1968): one thread finds the rotations of a step, all apply them, a thread for each element of an eigenvector.
 * Only the lower triangle of x is read. values are in ascending order; row i of vectors is the eigenvector of values[i], of length 1, with either sign. Where
 * `wanted` is 0 vectors is not written, and needs no element. info is 0, or 1 if x has an element that is not finite or more than 30 steps for each value
 * are needed, which does not happen otherwise; the results are then NaN.
 * Numbers: computed in T after scaling by a power of two. Values and residuals are off by some n roundings of the greatest value in size. */
#include "matrix.cuh"

template <class T> struct eigen {
    typedef part_t<T> R;
    T  *w;                      /* n x n: the matrix, then reflector k in row k behind column k + 1 */
    T  *z;                      /* n x n: eigenvectors as rows, conjugated until they are sorted; NULL: not wanted */
    T  *panel, *tau, *product;
    T  *v, *before_v, *before_w; /* the step's reflector, and what the last one still takes from the matrix: v w' + w v' */
    R  *d, *e;                  /* n each: the diagonal, and what stands beside it */
    R  *cosine, *sine;
    u64 n;

    /* ---- to three diagonals ---- */

    /* Row k at last, the reflector that clears it, and d[k], e[k], tau[k]. */
    DEVICE void reflect_row(u64 k, R *room)
    {
        T v_k = before_v[k], w_k = before_w[k];
        R squares = (R)0;

        for (u64 j = k + threadIdx.x; j < n; j += blockDim.x) {
            T x = w[k * n + j] - v_k * conjugate(before_w[j]) - w_k * conjugate(before_v[j]);
            w[k * n + j] = x;
            squares += j > k + 1 ? square_of(x) : (R)0;
        }
        squares = block_sum(squares, room);
        __syncthreads();
        if (threadIdx.x == 0)
            d[k] = real_of(w[k * n + k]);
        if (k + 1 == n)
            return;
        reflector<T> h = reflector_of(conjugate(w[k * n + k + 1]), squares, n - k - 1, room, [&](u64 i) { return conjugate(w[k * n + k + 1 + i]); }); /* of column k */
        for (u64 j = k + 1 + threadIdx.x; j < n; j += blockDim.x) {
            T x = j == k + 1 ? (absolute(h.tau) == (R)0 ? (T)0 : (T)1) : h.behind(conjugate(w[k * n + j]));
            v[j] = x;
            if (j > k + 1)
                w[k * n + j] = x;
        }
        if (threadIdx.x == 0) {
            e[k] = h.beta;
            tau[k] = h.tau;
        }
        __syncthreads();
    }

    /* What the last step left is taken from the rows behind k, and they are multiplied by the reflector: before_v and before_w are then this step's. */
    DEVICE void multiply(u64 k, R *room)
    {
        T factor = tau[k], sum = (T)0;

        for (u64 j = k + 1 + threadIdx.x; j < n; j += blockDim.x) {
            T v_j = conjugate(before_v[j]), w_j = conjugate(before_w[j]), y = (T)0;
            for (u64 i = k + 1; i < n; i++) {
                T x = w[i * n + j] - before_v[i] * w_j - before_w[i] * v_j;
                w[i * n + j] = x;
                y += conjugate(x) * v[i];
            }
            product[j] = factor * y;
            sum += conjugate(factor * y) * v[j];
        }
        sum = block_sum(sum, room) * factor / (R)2;
        __syncthreads();
        for (u64 j = k + 1 + threadIdx.x; j < n; j += blockDim.x) {
            before_v[j] = v[j];
            before_w[j] = product[j] - sum * v[j];
        }
        __syncthreads();
    }

    DEVICE void reduce(R *room)
    {
        for (u64 j = threadIdx.x; j < n; j += blockDim.x)
            before_v[j] = before_w[j] = (T)0;
        __syncthreads();
        for (u64 k = 0; k < n; k++) {
            reflect_row(k, room);
            if (k + 1 < n)
                multiply(k, room);
        }
        if (z) {
            each_element(n, n, [&](u64 i, u64 j) { z[i * n + j] = i == j ? (T)1 : (T)0; });
            reflectors_apply<true>(panel, n - 1, 1, tau, z, n, n, [&](u64 k, u64 i) { return w[k * n + i]; });
        }
    }

    /* ---- to one ---- */

    /* One QL step on rows `low` to `high`, by one thread. */
    DEVICE rotations step(u64 low, u64 high)
    {
        R g = (d[low + 1] - d[low]) / ((R)2 * e[low]), r = length_of(g, (R)1), s = (R)1, c = (R)1, p = (R)0;

        g = d[high] - d[low] + e[low] / (g + (g >= (R)0 ? r : -r));
        for (u64 i = high; i-- > low;) {
            R f = s * e[i], b = c * e[i];
            r = rotation_of(g, f, c, s);
            e[i + 1] = r;
            if (r == (R)0) {
                d[i + 1] -= p;
                e[high] = (R)0;
                return {high - 1 - i, high, (u64)-1, 0, true};
            }
            g = d[i + 1] - p;
            r = (d[i] - g) * s + (R)2 * c * b;
            p = s * r;
            d[i + 1] = g + p;
            g = c * r - b;
            cosine[high - 1 - i] = c;
            sine[high - 1 - i] = s;
        }
        d[low] -= p;
        e[low] = g;
        e[high] = (R)0;
        return {high - low, high, (u64)-1, 0, true};
    }

    /* The next step: `low` moves behind what has become diagonal. False: all has. */
    DEVICE bool next(u64 &low, rotations &found)
    {
        for (; low + 1 < n; low++) {
            u64 high = low;
            for (; high + 1 < n; high++) {
                R around = absolute(d[high]) + absolute(d[high + 1]);
                if (absolute(e[high]) + around == around || absolute(e[high]) < limit_tiny<R>()) /* the matrix is scaled: see all() */
                    break;
            }
            if (high != low) {
                found = step(low, high);
                return true;
            }
        }
        return false;
    }

    /* False: it does not end. */
    DEVICE bool diagonalize()
    {
        __shared__ rotations found;
        __shared__ bool      more;
        u64                  low = 0;

        for (u64 steps = 0; steps <= 30 * n; steps++) {
            __syncthreads();
            if (threadIdx.x == 0)
                more = next(low, found);
            __syncthreads();
            if (!more)
                return true;
            if (z)
                found.apply(cosine, sine, z, n);
        }
        return false;
    }

    /* In ascending order; eigenvectors by way of w. */
    DEVICE void sort(R *values, int exponent)
    {
        u64 *place = (u64 *)panel; /* 16 numbers of T for each row: there is room */

        __syncthreads();
        places_of(d, n, place, [](R a, R b) { return a < b; });
        for (u64 i = threadIdx.x; i < n; i += blockDim.x)
            values[place[i]] = scaled(d[i], exponent);
        if (!z)
            return;
        each_element(n, n, [&](u64 i, u64 j) { w[place[i] * n + j] = conjugate(z[i * n + j]); });
        __syncthreads();
        each_element(n, n, [&](u64 i, u64 j) { z[i * n + j] = w[i * n + j]; });
    }

    DEVICE bool all(const T *x, R *values)
    {
        __shared__ R room[32];
        int          exponent;

        if (!greatest_exponent(n, n, room, exponent, [&](u64 i, u64 j) { return i >= j ? x[i * n + j] : (T)0; }))
            return false;
        each_element(n, n, [&](u64 i, u64 j) {
            T lower = i >= j ? x[i * n + j] : conjugate(x[j * n + i]);
            w[i * n + j] = scaled(i == j ? (T)real_of(lower) : lower, -exponent);
        });
        __syncthreads();
        reduce(room);
        if (!diagonalize())
            return false;
        sort(values, exponent);
        return true;
    }
};

template <class T>
__global__ void __launch_bounds__(1024) eigh(const T *x, part_t<T> *values, T *vectors, i32 *info, u64 n, u64 batch, u64 wanted, T *scratch)
{
    typedef part_t<T> R;
    T *of_block = scratch + gridDim.x * n * PANEL + blockIdx.x * n * (n + 9); /* panels come first: they are aligned */

    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        T       *z = wanted ? vectors + b * n * n : nullptr, *part = of_block + n * n;
        R       *reals = (R *)(part + 5 * n);
        eigen<T> m = {of_block, z, scratch + blockIdx.x * n * PANEL, part, part + n, part + 2 * n, part + 3 * n, part + 4 * n, reals, reals + n, reals + 2 * n, reals + 3 * n, n};
        bool     good = m.all(x + b * n * n, values + b * n);
        if (threadIdx.x == 0)
            info[b] = !good;
        for (u64 i = threadIdx.x; !good && i < n; i += blockDim.x)
            values[b * n + i] = (R)0 / (R)0;
        if (!good && z)
            each_element(n, n, [&](u64 i, u64 j) { z[i * n + j] = (T)0 / (R)0; });
        __syncthreads();
    }
}
