/* Eigenvalues and eigenvectors of general matrices, real and complex.
 *
 * Method: a block of threads for each matrix of a batch. Rows and columns are scaled by powers of two until they are alike (Parlett and Reinsch, 1969;
 * LAPACK's gebal). Householder's reflectors make the matrix zero below the diagonal beside it (gehrd). QR steps with implicit shifts, two at a time for real
 * matrices (Francis, 1961) and one for complex ones, make it triangular but for blocks of two with conjugate eigenvalues (lahqr); all threads apply each
 * reflector of a step. Each thread then finds the eigenvectors of the triangle by substitution (trevc), and turns them back.
 * values are in no order, those of a pair of a real matrix beside each other; row i of vectors is the eigenvector of values[i], of length 1, its greatest
 * element being real if the value or the matrix is complex. Both are complex, (real, imaginary) pairs; real eigenvalues of a real matrix, and their vectors,
 * have imaginary parts of 0. Where `wanted` is 0 vectors is not written, and needs no element. info is 0, or 1 if x has an element that is not finite or
 * more than 30 steps for each value are needed; the results are then NaN.
 * Numbers: computed in T after scaling by a power of two; off as the eigenvalues of a matrix that differs from x by some n roundings of its greatest element. */
#include "matrix.cuh"

template <class R> DEVICE complex<R> root_of(complex<R> x)
{
    R size = length_of(x.re, x.im), re, im;

    if (size == (R)0)
        return complex<R>((R)0);
    re = sqrt((size + absolute(x.re)) / (R)2);
    im = x.im / ((R)2 * re);
    return x.re >= (R)0 ? complex<R>(re, im) : complex<R>(absolute(im), x.im < (R)0 ? -re : re);
}

template <class T> struct general {
    typedef part_t<T>  R;
    typedef complex<R> C;
    static constexpr int SHIFTS = sizeof(T) == sizeof(R) ? 2 : 1, REFLECTED = SHIFTS + 1;

    T   *h;     /* n x n: the matrix, at last a triangle with blocks of two */
    T   *z;     /* n x n: row i is column i of what turns it back; NULL: no vectors */
    C   *y;     /* n x n: column j is the eigenvector of the triangle for value j; NULL: none */
    T   *v;     /* n */
    int *power; /* n: x's column i was multiplied by 2 to that, its row i divided */
    u64  n;

    DEVICE T &at(u64 i, u64 j) const { return h[i * n + j]; }

    /* ---- alike rows and columns ---- */

    DEVICE void scale(u64 i, int by) const
    {
        for (u64 j = threadIdx.x; j < n; j += blockDim.x)
            if (j != i) {
                at(i, j) = scaled(at(i, j), -by);
                at(j, i) = scaled(at(j, i), by);
            }
        if (threadIdx.x == 0)
            power[i] += by;
    }

    /* True: nothing had to be scaled. */
    DEVICE bool balance_once(R *room) const
    {
        const int most = sizeof(R) == 4 ? 60 : 500; /* so that eigenvectors can be scaled back */
        bool      balanced = true;

        for (u64 i = 0; i < n; i++) {
            R column = (R)0, row = (R)0;
            for (u64 j = threadIdx.x; j < n; j += blockDim.x)
                if (j != i) {
                    column += absolute(at(j, i));
                    row += absolute(at(i, j));
                }
            column = block_sum(column, room);
            row = block_sum(row, room);
            int by = column > (R)0 && row > (R)0 ? (exponent_of(row) - exponent_of(column)) / 2 : 0, kept = power[i];
            __syncthreads();
            if (by && kept + by <= most && kept + by >= -most && scaled(column, by) + scaled(row, -by) < (R)0.95 * (column + row)) {
                scale(i, by);
                balanced = false;
            }
            __syncthreads();
        }
        return balanced;
    }

    DEVICE void balance(R *room) const
    {
        for (u64 i = threadIdx.x; i < n; i += blockDim.x)
            power[i] = 0;
        __syncthreads();
        for (int sweeps = 0; sweeps < 16 && !balance_once(room); sweeps++)
            ;
    }

    /* ---- zero below what is beside the diagonal ---- */

    /* v: the reflector that clears column k; what it makes of the element beside the diagonal is stored. */
    DEVICE T reflect_column(u64 k, R *room) const
    {
        R squares = (R)0;

        for (u64 i = k + 2 + threadIdx.x; i < n; i += blockDim.x)
            squares += square_of(at(i, k));
        squares = block_sum(squares, room);
        reflector<T> r = reflector_of(at(k + 1, k), squares, n - k - 1, room, [&](u64 i) { return at(k + 1 + i, k); });
        __syncthreads();
        for (u64 i = k + 1 + threadIdx.x; i < n; i += blockDim.x) {
            v[i] = i == k + 1 ? (T)1 : r.behind(at(i, k));
            at(i, k) = i == k + 1 ? (T)r.beta : (T)0;
        }
        __syncthreads();
        return r.tau;
    }

    DEVICE void reduce(R *room) const
    {
        const u32 lane = threadIdx.x % 32;

        if (z)
            each_element(n, n, [&](u64 i, u64 j) { z[i * n + j] = i == j ? (T)1 : (T)0; });
        __syncthreads();
        for (u64 k = 0; k + 2 < n; k++) {
            const T tau = reflect_column(k, room);
            if (absolute(tau) == (R)0)
                continue;
            for (u64 j = k + 1 + threadIdx.x; j < n; j += blockDim.x) {
                T w = (T)0;
                for (u64 i = k + 1; i < n; i++)
                    w += conjugate(v[i]) * at(i, j);
                w *= conjugate(tau);
                for (u64 i = k + 1; i < n; i++)
                    at(i, j) -= v[i] * w;
            }
            __syncthreads();
            for (u64 i = threadIdx.x / 32; i < n; i += blockDim.x / 32) {
                T w = (T)0;
                for (u64 j = k + 1 + lane; j < n; j += 32)
                    w += at(i, j) * v[j];
                w = tau * warp_sum(w);
                for (u64 j = k + 1 + lane; j < n; j += 32)
                    at(i, j) -= w * conjugate(v[j]);
            }
            for (u64 j = threadIdx.x; z && j < n; j += blockDim.x) {
                T w = (T)0;
                for (u64 i = k + 1; i < n; i++)
                    w += z[i * n + j] * v[i];
                w *= tau;
                for (u64 i = k + 1; i < n; i++)
                    z[i * n + j] -= w * conjugate(v[i]);
            }
            __syncthreads();
        }
    }

    /* ---- QR steps ---- */

    /* The first column of (h - shift)(h - other shift), from row `low` on: the eigenvalues of the last two rows, or when these do not help, others. */
    DEVICE void first_column(u64 low, u64 high, bool other, R *first) const
    {
        R a = at(high - 1, high - 1), b = at(high - 1, high), c = at(high, high - 1), d = at(high, high);

        if (other) {
            R size = absolute(c) + (high - 1 > low ? absolute(at(high - 1, high - 2)) : (R)0);
            a = d = (R)0.75 * size + d;
            b = (R)-0.4375 * size;
            c = size;
        }
        R sum = a + d, product = a * d - b * c, corner = at(low, low), below = at(low + 1, low);
        first[0] = corner * (corner - sum) + product + at(low, low + 1) * below;
        first[1] = below * (corner + at(low + 1, low + 1) - sum);
        first[2] = below * at(low + 2, low + 1);
    }
    DEVICE void first_column(u64 low, u64 high, bool other, C *first) const
    {
        C shift = at(high, high), b = at(high - 1, high), c = at(high, high - 1);

        if (other) {
            shift += C((R)0.75 * absolute(c));
        } else {
            C half = (at(high - 1, high - 1) - shift) / (R)2, root = root_of(half * half + b * c);
            C sum = real_of(half * conjugate(root)) >= (R)0 ? half + root : half - root;
            if (absolute(sum) > (R)0)
                shift -= b * c / sum;
        }
        first[0] = at(low, low) - shift;
        first[1] = at(low + 1, low);
    }

    /* The reflector of a few numbers; by every thread alike. */
    DEVICE static T small_reflector(const T *x, int count, T *out, R &beta)
    {
        R size = (R)0, squares = (R)0;

        for (int i = 0; i < count; i++)
            size = greater_one()(size, absolute(x[i]));
        const int exponent = size > (R)0 ? exponent_of(size) : 0;
        for (int i = 1; i < count; i++)
            squares += square_of(scaled(x[i], -exponent));
        reflector<T> r = reflector_of_squares(scaled(x[0], -exponent), squares);
        out[0] = (T)1;
        for (int i = 1; i < count; i++)
            out[i] = scaled(x[i], -exponent) * r.scale;
        beta = scaled(r.beta, exponent);
        return r.tau;
    }

    /* Rows and columns k, k + 1, ... `count` of them: of the rows from column `from` on, of the columns down to row `last`. */
    DEVICE void apply(u64 k, int count, const T *u, T tau, u64 from, u64 last) const
    {
        for (u64 j = from + threadIdx.x; j < n; j += blockDim.x) {
            T w = (T)0;
            for (int i = 0; i < count; i++)
                w += conjugate(u[i]) * at(k + i, j);
            w *= conjugate(tau);
            for (int i = 0; i < count; i++)
                at(k + i, j) -= u[i] * w;
        }
        __syncthreads();
        for (u64 i = threadIdx.x; i <= last; i += blockDim.x) {
            T w = (T)0;
            for (int j = 0; j < count; j++)
                w += at(i, k + j) * u[j];
            w *= tau;
            for (int j = 0; j < count; j++)
                at(i, k + j) -= w * conjugate(u[j]);
        }
        for (u64 j = threadIdx.x; z && j < n; j += blockDim.x) {
            T w = (T)0;
            for (int i = 0; i < count; i++)
                w += z[(k + i) * n + j] * u[i];
            w *= tau;
            for (int i = 0; i < count; i++)
                z[(k + i) * n + j] -= w * conjugate(u[i]);
        }
        __syncthreads();
    }

    /* One QR step on rows and columns `low` to `high`, which are more than SHIFTS. */
    DEVICE void step(u64 low, u64 high, bool other) const
    {
        T x[REFLECTED], u[REFLECTED];
        R beta;

        first_column(low, high, other, x);
        for (u64 k = low; k < high; k++) {
            const int count = high - k + 1 < REFLECTED ? (int)(high - k + 1) : REFLECTED;
            if (k > low)
                for (int i = 0; i < count; i++)
                    x[i] = at(k + i, k - 1);
            const T tau = small_reflector(x, count, u, beta);
            __syncthreads();
            if (k > low && threadIdx.x < (u32)count)
                at(k + threadIdx.x, k - 1) = threadIdx.x ? (T)0 : (T)beta;
            apply(k, count, u, tau, k, k + REFLECTED < high ? k + REFLECTED : high);
        }
    }

    /* Makes two rows of a real matrix a triangle where their eigenvalues are real. */
    DEVICE void split(u64 k, R) const
    {
        const R b = at(k, k + 1), c = at(k + 1, k), half = (at(k, k) - at(k + 1, k + 1)) / (R)2, square = half * half + b * c;

        __syncthreads();
        if (square < (R)0)
            return;
        /* (root, c) is an eigenvector: of what the matrix is beside its second diagonal element */
        const R root = half + (half >= (R)0 ? sqrt(square) : -sqrt(square));
        R       u[2], beta, x[2] = {root, c};
        const R tau = small_reflector(x, 2, u, beta);
        apply(k, 2, u, tau, k, k + 1);
        if (threadIdx.x == 0)
            at(k + 1, k) = (R)0;
        __syncthreads();
    }
    DEVICE void split(u64, C) const {}

    /* What is so small beside the diagonal that it is 0, from row `high` up: where the last block begins. */
    DEVICE u64 block_begin(u64 high) const
    {
        u64 low = high;

        for (; low > 0; low--) {
            R around = absolute(at(low - 1, low - 1)) + absolute(at(low, low)), beside = absolute(at(low, low - 1));
            if (beside <= unit_roundoff<R>() * around || beside < limit_tiny<R>())
                break;
        }
        return low;
    }

    /* False: it does not end. */
    DEVICE bool triangulate() const
    {
        u64 high = n - 1, steps = 0;

        for (int tries = 1; high != (u64)-1;) {
            const u64 low = block_begin(high);
            __syncthreads();
            if (low > 0 && threadIdx.x == 0)
                at(low, low - 1) = (T)0;
            __syncthreads();
            if (high - low < SHIFTS) {
                if (low < high)
                    split(low, (T)0);
                high = low - 1; /* of 0: -1 */
                tries = 1;
                continue;
            }
            if (steps++ > 30 * n)
                return false;
            step(low, high, tries++ % 10 == 0);
        }
        return true;
    }

    /* ---- values and vectors ---- */

    DEVICE bool is_block(u64 i) const { return SHIFTS == 2 && i + 1 < n && absolute(at(i + 1, i)) > (R)0; }

    DEVICE C value(u64 i) const
    {
        const bool second = i > 0 && is_block(i - 1);
        const u64  k = second ? i - 1 : i;

        if (!is_block(k))
            return C(real_of(at(i, i)), imaginary_of(at(i, i)));
        R half = real_of(at(k, k) - at(k + 1, k + 1)) / (R)2, square = half * half + real_of(at(k, k + 1)) * real_of(at(k + 1, k));
        R part = sqrt(square < (R)0 ? -square : (R)0);
        return C(real_of(at(k + 1, k + 1)) + half, second ? -part : part);
    }

    DEVICE static C as_complex(T x) { return C(real_of(x), imaginary_of(x)); }

    /* What a difference to this value is at least, lest numbers leave the type: the greatest element of the matrix is between 1 and 2. */
    DEVICE static R least_beside(C own)
    {
        const R roundoff = unit_roundoff<R>();

        return greater_one()(roundoff * absolute(own), roundoff * roundoff);
    }
    DEVICE static C divisor(C x, R least) { return absolute(x) < least ? C(least) : x; }

    /* What rows i of the triangle, behind column k, make of column j of y. */
    DEVICE C behind(u64 i, u64 k, u64 j, u64 last) const
    {
        C sum((R)0);

        for (; k <= last; k++)
            sum += as_complex(at(i, k)) * y[k * n + j];
        return sum;
    }

    /* Keeps the numbers of a column far from the type's end. */
    DEVICE void tame(u64 i, u64 j, u64 last) const
    {
        const R most = sizeof(R) == 4 ? (R)1e12 : (R)1e60;

        if (absolute(y[i * n + j]) < most)
            return;
        const int by = exponent_of(absolute(y[i * n + j]));
        for (; i <= last; i++)
            y[i * n + j] = scaled(y[i * n + j], -by);
    }

    /* The eigenvector of the triangle for value j, by one thread: its rows behind `last` are 0. */
    DEVICE void substitute(u64 j) const
    {
        const C    own = value(j);
        const bool second = j > 0 && is_block(j - 1);
        const u64  first = second ? j - 1 : j, last = is_block(first) ? first + 1 : first;
        const R    least = least_beside(own);

        for (u64 i = last + 1; i < n; i++)
            y[i * n + j] = C((R)0);
        y[last * n + j] = C((R)1);
        if (last > first) { /* by the one of two rows that says more */
            C a = as_complex(at(first, first)) - own, b = as_complex(at(first, last)), c = as_complex(at(last, first)), d = as_complex(at(last, last)) - own;
            y[first * n + j] = absolute(c) > absolute(b) ? -(d / c) : -(b / a);
        }
        for (u64 i = first; i-- > 0;) {
            if (i == 0 || !is_block(i - 1)) {
                y[i * n + j] = -behind(i, i + 1, j, last) / divisor(as_complex(at(i, i)) - own, least);
                tame(i, j, last);
                continue;
            }
            C a = as_complex(at(i - 1, i - 1)) - own, b = as_complex(at(i - 1, i)), c = as_complex(at(i, i - 1)), d = as_complex(at(i, i)) - own;
            C upper = -behind(i - 1, i + 1, j, last), lower = -behind(i, i + 1, j, last);
            C by = divisor(a * d - b * c, least * greater_one()(absolute(a) + absolute(b) + absolute(c) + absolute(d), least));
            y[i * n + j] = (a * lower - c * upper) / by;
            y[(i - 1) * n + j] = (d * upper - b * lower) / by;
            tame(i, j, last);
            tame(i - 1, j, last);
            i--;
        }
    }

    /* From the triangle's vector to x's, of length 1. */
    DEVICE void turn_back(u64 j, C *out) const
    {
        R   greatest = (R)0, squares = (R)0;
        u64 at_greatest = 0;
        int most = -(1 << 20);

        for (u64 i = 0; i < n; i++) {
            C sum((R)0);
            for (u64 k = 0; k < n; k++)
                sum += as_complex(z[k * n + i]) * y[k * n + j];
            out[i] = sum;
            if (absolute(sum) > (R)0) {
                int size = exponent_of(absolute(sum)) + power[i];
                most = size > most ? size : most;
            }
        }
        for (u64 i = 0; i < n; i++) {
            out[i] = scaled(out[i], power[i] - most);
            R size = square_of(out[i]);
            squares += size;
            if (size > greatest) {
                greatest = size;
                at_greatest = i;
            }
        }
        const bool turns = SHIFTS == 1 || value(j).im != (R)0;
        const C    kept = out[at_greatest], by = turns ? conjugate(kept) / length_of(kept.re, kept.im) : C((R)1);
        for (u64 i = 0; i < n; i++)
            out[i] = out[i] * by / sqrt(squares);
        if (turns)
            out[at_greatest].im = (R)0;
    }

    DEVICE bool all(const T *x, C *values, C *vectors) const
    {
        __shared__ R room[32];
        int          exponent, balanced;

        if (!greatest_exponent(n, n, room, exponent, [&](u64 i, u64 j) { return x[i * n + j]; }))
            return false;
        each_element(n, n, [&](u64 i, u64 j) { at(i, j) = scaled(x[i * n + j], -exponent); });
        __syncthreads();
        balance(room);
        greatest_exponent(n, n, room, balanced, [&](u64 i, u64 j) { return at(i, j); });
        each_element(n, n, [&](u64 i, u64 j) { at(i, j) = scaled(at(i, j), -balanced); });
        exponent += balanced;
        __syncthreads();
        reduce(room);
        if (!triangulate())
            return false;
        for (u64 j = threadIdx.x; j < n; j += blockDim.x)
            values[j] = scaled(value(j), exponent);
        for (u64 j = threadIdx.x; vectors && j < n; j += blockDim.x)
            substitute(j);
        __syncthreads();
        for (u64 j = threadIdx.x; vectors && j < n; j += blockDim.x)
            turn_back(j, vectors + j * n);
        return true;
    }
};

template <class T>
__global__ void __launch_bounds__(1024)
    eig(const T *x, complex<part_t<T>> *values, complex<part_t<T>> *vectors, i32 *info, u64 n, u64 batch, u64 wanted, complex<part_t<T>> *scratch)
{
    typedef part_t<T>  R;
    typedef complex<R> C;

    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        C *y = scratch + blockIdx.x * n * n * wanted; /* the widest first: they are aligned */
        T *h = (T *)(scratch + gridDim.x * n * n * wanted) + blockIdx.x * n * n, *z = (T *)(scratch + gridDim.x * n * n * wanted) + gridDim.x * n * n;
        T *v = z + gridDim.x * n * n * wanted + blockIdx.x * n;
        int *power = (int *)(z + gridDim.x * n * n * wanted + gridDim.x * n) + blockIdx.x * n;
        general<T> m = {h, wanted ? z + blockIdx.x * n * n : nullptr, y, v, power, n};
        C         *found = wanted ? vectors + b * n * n : nullptr;
        bool       good = m.all(x + b * n * n, values + b * n, found);
        if (threadIdx.x == 0)
            info[b] = !good;
        for (u64 i = threadIdx.x; !good && i < n; i += blockDim.x)
            values[b * n + i] = C((R)0 / (R)0, (R)0 / (R)0);
        if (!good && found)
            each_element(n, n, [&](u64 i, u64 j) { found[i * n + j] = C((R)0 / (R)0, (R)0 / (R)0); });
        __syncthreads();
    }
}
