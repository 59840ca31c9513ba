/* Singular values and vectors of matrices of any shape: x = U S V'.
 *
 * Method: a block of threads for each matrix of a batch; a matrix with more columns than rows is transposed. Householder's reflectors from both sides make it
 * bidiagonal (Golub and Kahan, 1965; LAPACK's gebrd), then QR steps with implicit shifts diagonal (Golub and Reinsch, 1970; LINPACK's dsvdc): one
 * thread finds the rotations of a step, all apply them, a thread for each element of a singular vector.
 * values: min(rows, columns) of them in descending order; those behind, up to columns, are 0. Row i of left is a column of U, row i of right a row of V'. `lefts`
 * and `rights` say how many are wanted: those of the greatest values come first, and those beyond min(rows, columns) complete the basis, up to
 * rows and columns. 0: none. info is 0, or 1 if x has an element that is not finite or more than 75 steps for each value are needed, which does not
 * happen otherwise; the results are then NaN.
 * Numbers: computed in T after scaling by a power of two. Values and residuals are off by some n roundings of the greatest value. */
#include "matrix.cuh"

/* A matrix with at least as many rows as columns. */
template <class T> struct singular {
    typedef part_t<T> R;
    u64 rows, columns, lefts, rights; /* lefts: 0, or from columns to rows; rights: 0 or columns */
    T  *a;                            /* rows x columns: then right reflector k in row k behind column k + 1 */
    T  *reflectors;                   /* columns x rows: left reflector k in row k behind column k */
    T  *formed;                       /* singular vectors as columns, on the way */
    T  *left, *right;                 /* as rows: lefts x rows, rights x columns */
    T  *panel, *row, *product;        /* product, row: of a step */
    T  *left_tau, *right_tau;         /* columns each, as those that follow */
    R  *d, *e, *left_cosine, *left_sine, *right_cosine, *right_sine;

    /* ---- to two diagonals ---- */

    DEVICE void reflect_column(u64 k, R *room)
    {
        T *v = reflectors + k * rows;
        R  squares = (R)0;

        for (u64 i = k + threadIdx.x; i < rows; i += blockDim.x) {
            T x = a[i * columns + k];
            v[i] = x;
            squares += i > k ? square_of(x) : (R)0;
        }
        squares = block_sum(squares, room);
        __syncthreads();
        reflector<T> h = reflector_of(v[k], squares, rows - k, room, [&](u64 i) { return v[k + i]; });
        __syncthreads();
        for (u64 i = k + threadIdx.x; i < rows; i += blockDim.x)
            v[i] = i == k ? (T)1 : h.behind(v[i]);
        if (threadIdx.x == 0) {
            d[k] = h.beta;
            left_tau[k] = h.tau;
        }
        __syncthreads();
    }

    /* product = tau v' a behind column k. Row k of a is then its last but for the right reflector, which it gives: in `row`, with its 1. */
    DEVICE void reflect_row(u64 k, R *room)
    {
        const T *v = reflectors + k * rows;
        T        factor = conjugate(left_tau[k]);
        R        squares = (R)0;

        for (u64 j = k + 1 + threadIdx.x; j < columns; j += blockDim.x) {
            T sum = (T)0;
            for (u64 i = k; i < rows; i++)
                sum += conjugate(v[i]) * a[i * columns + j];
            sum *= factor;
            T x = a[k * columns + j] - sum;
            product[j] = sum;
            row[j] = conjugate(x);
            squares += j > k + 1 ? square_of(x) : (R)0;
        }
        squares = block_sum(squares, room);
        __syncthreads();
        reflector<T> h = reflector_of(row[k + 1], squares, columns - k - 1, room, [&](u64 i) { return row[k + 1 + i]; });
        __syncthreads();
        for (u64 j = k + 1 + threadIdx.x; j < columns; j += blockDim.x) {
            T x = j == k + 1 ? (T)1 : h.behind(row[j]);
            row[j] = x;
            a[k * columns + j] = x;
        }
        if (threadIdx.x == 0) {
            e[k] = h.beta;
            right_tau[k] = h.tau;
        }
        __syncthreads();
    }

    /* Both reflectors on the rest, a warp for each row. */
    DEVICE void apply_both(u64 k)
    {
        const T *v = reflectors + k * rows;
        T        factor = right_tau[k];

        for (u64 i = k + 1 + threadIdx.x / 32; i < rows; i += blockDim.x / 32) {
            T *own = a + i * columns, left_factor = v[i], sum = (T)0;
            for (u64 j = k + 1 + threadIdx.x % 32; j < columns; j += 32) {
                T x = own[j] - left_factor * product[j];
                own[j] = x;
                sum += x * row[j];
            }
            sum = factor * warp_sum(sum);
            for (u64 j = k + 1 + threadIdx.x % 32; j < columns; j += 32)
                own[j] -= sum * conjugate(row[j]);
        }
        __syncthreads();
    }

    DEVICE void reduce(R *room)
    {
        for (u64 k = 0; k < columns; k++) {
            reflect_column(k, room);
            if (k + 1 < columns) {
                reflect_row(k, room);
                apply_both(k);
            } else if (threadIdx.x == 0) {
                e[k] = (R)0;
                right_tau[k] = (T)0;
            }
        }
        __syncthreads();
    }

    /* ---- the vectors, before rotations ---- */

    /* The first columns of the product of a side's reflectors, as rows. In a loop over the sides: the code is there once. */
    DEVICE void form_both()
    {
#pragma unroll 1
        for (int side = 0; side < 2; side++) {
            bool     of_left = side == 1;
            T       *to = of_left ? left : right;
            const T *from = of_left ? reflectors : a;
            u64      length = of_left ? rows : columns, count = of_left ? lefts : rights, reflected = of_left ? columns : columns - 1;
            if (!count)
                continue;
            each_element(length, count, [&](u64 i, u64 j) { formed[i * count + j] = i == j ? (T)1 : (T)0; });
            reflectors_apply<false>(panel, reflected, !of_left, of_left ? left_tau : right_tau, formed, length, count,
                                    [&](u64 k, u64 i) { return from[k * length + i]; });
            each_element(count, length, [&](u64 i, u64 j) { to[i * length + j] = formed[j * count + i]; });
            __syncthreads();
        }
    }

    /* ---- to one diagonal: all of it by one thread ---- */

    struct sweep {
        rotations of_left, of_right; /* count 0: none */
    };

    DEVICE bool negligible(R x, R around) const { return absolute(x) <= unit_roundoff<R>() * around || absolute(x) < limit_tiny<R>(); }

    /* The last value of first ... end - 1 is 0: e[end - 2] goes into the others. */
    DEVICE void clear_last(u64 first, u64 end, sweep &out)
    {
        R f = e[end - 2];

        e[end - 2] = (R)0;
        out.of_right = {end - 1 - first, end - 2, (u64)-1, end - 1, false};
        for (u64 j = end - 1, r = 0; j-- > first; r++) {
            R &c = right_cosine[r], &s = right_sine[r];
            d[j] = rotation_of(d[j], f, c, s);
            if (j != first) {
                f = -s * e[j - 1];
                e[j - 1] *= c;
            }
        }
    }

    /* The value before `first` is 0: e[first - 1] goes into those behind. */
    DEVICE void clear_before(u64 first, u64 end, sweep &out)
    {
        R f = e[first - 1];

        e[first - 1] = (R)0;
        out.of_left = {end - first, first, 1, first - 1, false};
        for (u64 j = first, r = 0; j < end; j++, r++) {
            R &c = left_cosine[r], &s = left_sine[r];
            d[j] = rotation_of(d[j], f, c, s);
            f = -s * e[j];
            e[j] *= c;
        }
    }

    /* The eigenvalue of the last two rows of B'B that is nearer to their last element, as what is taken from d[first]^2. */
    DEVICE R shift_of(u64 first, u64 end, R scale) const
    {
        R last = d[end - 1] / scale, before = d[end - 2] / scale, beside = e[end - 2] / scale;
        R b = ((before + last) * (before - last) + beside * beside) / (R)2, c = last * beside * (last * beside);
        if (b == (R)0 && c == (R)0)
            return (R)0;
        R root = sqrt(b * b + c);
        return c / (b + (b < (R)0 ? -root : root));
    }

    DEVICE void qr_step(u64 first, u64 end, sweep &out)
    {
        R scale = absolute(d[end - 1]), candidates[4] = {d[end - 2], e[end - 2], d[first], e[first]};
        for (int i = 0; i < 4; i++)
            scale = absolute(candidates[i]) > scale ? absolute(candidates[i]) : scale;
        R head = d[first] / scale, last = d[end - 1] / scale;
        R f = (head + last) * (head - last) + shift_of(first, end, scale), g = head * (e[first] / scale);

        out.of_left = out.of_right = {end - 1 - first, first, 1, 0, true};
        for (u64 j = first, r = 0; j + 1 < end; j++, r++) {
            R &c = right_cosine[r], &s = right_sine[r], &c_left = left_cosine[r], &s_left = left_sine[r];
            R length = rotation_of(f, g, c, s);
            if (j != first)
                e[j - 1] = length;
            f = c * d[j] + s * e[j];
            e[j] = c * e[j] - s * d[j];
            g = s * d[j + 1];
            d[j + 1] *= c;
            d[j] = rotation_of(f, g, c_left, s_left);
            f = c_left * e[j] + s_left * d[j + 1];
            d[j + 1] = c_left * d[j + 1] - s_left * e[j];
            g = s_left * e[j + 1];
            e[j + 1] *= c_left;
        }
        e[end - 2] = f;
    }

    /* The next step on what comes before `end`, which moves before what has become diagonal. False: all has. */
    DEVICE bool next(u64 &end, sweep &out)
    {
        out.of_left.count = out.of_right.count = 0;
        for (; end > 1; end--) {
            u64 first = end - 1;
            while (first > 0 && !negligible(e[first - 1], absolute(d[first - 1]) + absolute(d[first])))
                first--;
            if (first > 0)
                e[first - 1] = (R)0;
            if (first == end - 1)
                continue;
            u64 zero = end;
            while (zero > first && !negligible(d[zero - 1], (zero < end ? absolute(e[zero - 1]) : (R)0) + (zero - 1 > first ? absolute(e[zero - 2]) : (R)0)))
                zero--;
            if (zero > first)
                d[zero - 1] = (R)0;
            if (zero == first)
                qr_step(first, end, out);
            else if (zero == end)
                clear_last(first, end, out);
            else
                clear_before(zero, end, out);
            return true;
        }
        return false;
    }

    DEVICE bool diagonalize()
    {
        __shared__ sweep found;
        __shared__ bool  more;
        u64              end = columns;

        for (u64 steps = 0; steps <= 75 * columns; steps++) {
            __syncthreads();
            if (threadIdx.x == 0)
                more = next(end, found);
            __syncthreads();
            if (!more)
                return true;
            if (lefts && found.of_left.count)
                found.of_left.apply(left_cosine, left_sine, left, rows);
            if (rights && found.of_right.count)
                found.of_right.apply(right_cosine, right_sine, right, columns);
        }
        return false;
    }

    /* ---- from the matrix to its values, which are not sorted, and may be negative ---- */

    DEVICE bool all(R *room)
    {
        reduce(room);
        form_both();
        return diagonalize();
    }
};

/* The first `count` of the rows of `from`, of which those of the values are in the order of their places. With `signs`: conjugated, and with a sign
 * where the value has one. */
template <class T> DEVICE void vectors_out(T *to, const T *from, u64 count, u64 there, u64 length, u64 values, const u64 *place, const part_t<T> *signs)
{
    each_element(there, length, [&](u64 i, u64 j) {
        u64 at = i < values ? place[i] : i;
        T   x = signs ? conjugate(from[i * length + j]) : from[i * length + j];
        if (at < count)
            to[at * length + j] = signs && i < values && signs[i] < 0 ? -x : x;
    });
    each_element(count, length, [&](u64 i, u64 j) {
        if (i >= there)
            to[i * length + j] = (T)0;
    });
}

/* What one block computes with. */
template <class T> struct svd_of_one {
    typedef part_t<T> R;
    u64      rows, columns, lefts, rights;
    bool     turned; /* the matrix is transposed */
    singular<T> m;

    DEVICE svd_of_one(u64 rows, u64 columns, u64 lefts, u64 rights, T *scratch) : rows(rows), columns(columns), lefts(lefts), rights(rights)
    {
        u64 all = rows * columns, wide = all + lefts * rows + rights * columns, blocks = gridDim.x, block = blockIdx.x;
        turned = rows < columns;
        m.rows = turned ? columns : rows;
        m.columns = turned ? rows : columns;
        u64 of_long = turned ? rights : lefts, of_short = turned ? lefts : rights;
        m.lefts = of_long == 0 ? 0 : of_long < m.columns ? m.columns : of_long > m.rows ? m.rows : of_long;
        m.rights = of_short ? m.columns : 0;
        m.panel = scratch + block * m.rows * PANEL; /* panels come first: they are aligned */
        scratch += blocks * m.rows * PANEL + block * (3 * all + 2 * wide + 16 * (rows + columns));
        m.a = scratch;
        m.reflectors = m.a + all;
        m.right = m.reflectors + all;
        m.formed = m.right + all;
        m.left = m.formed + wide;
        T *small = m.left + wide;
        T **parts[] = {&m.row, &m.product, &m.left_tau, &m.right_tau};
        for (int i = 0; i < 4; i++)
            *parts[i] = small + i * m.columns;
        R **reals[] = {&m.d, &m.e, &m.left_cosine, &m.left_sine, &m.right_cosine, &m.right_sine};
        for (int i = 0; i < 6; i++)
            *reals[i] = (R *)(small + 4 * m.columns) + i * m.columns;
    }

    DEVICE bool all(const T *x, T *left, R *values, T *right)
    {
        __shared__ R room[32];
        int          exponent;
        u64         *place = (u64 *)m.panel; /* 16 numbers of T for each row: there is room */

        if (!greatest_exponent(rows, columns, room, exponent, [&](u64 i, u64 j) { return x[i * columns + j]; }))
            return false;
        each_element(m.rows, m.columns, [&](u64 i, u64 j) { m.a[i * m.columns + j] = scaled(x[turned ? j * columns + i : i * columns + j], -exponent); });
        __syncthreads();
        if (m.columns && !m.all(room))
            return false;
        __syncthreads();
        for (u64 i = threadIdx.x; i < m.columns; i += blockDim.x)
            m.e[i] = absolute(m.d[i]);
        __syncthreads();
        places_of(m.e, m.columns, place, [](R a, R b) { return a > b; });
        for (u64 i = threadIdx.x; i < columns; i += blockDim.x)
            values[i < m.columns ? place[i] : i] = i < m.columns ? scaled(m.e[i], exponent) : (R)0;
        vectors_out(turned ? right : left, m.left, turned ? rights : lefts, m.lefts, m.rows, m.columns, place, (const R *)nullptr);
        vectors_out(turned ? left : right, m.right, turned ? lefts : rights, m.rights, m.columns, m.columns, place, m.d);
        return true;
    }

    DEVICE void fill(T *left, R *values, T *right)
    {
        R nothing = (R)0 / (R)0;
        each_element(lefts, rows, [&](u64 i, u64 j) { left[i * rows + j] = nothing; });
        each_element(rights, columns, [&](u64 i, u64 j) { right[i * columns + j] = nothing; });
        each_element(1, columns, [&](u64, u64 j) { values[j] = nothing; });
    }
};

template <class T>
__global__ void __launch_bounds__(1024)
    svd(const T *x, T *left, part_t<T> *values, T *right, i32 *info, u64 rows, u64 columns, u64 lefts, u64 rights, u64 batch, T *scratch)
{
    svd_of_one<T> one(rows, columns, lefts, rights, scratch);

    for (u64 b = blockIdx.x; b < batch; b += gridDim.x) {
        T         *own_left = left + b * lefts * rows, *own_right = right + b * rights * columns;
        part_t<T> *own_values = values + b * columns;
        bool       good = one.all(x + b * rows * columns, own_left, own_values, own_right);
        if (threadIdx.x == 0)
            info[b] = !good;
        if (!good)
            one.fill(own_left, own_values, own_right);
        __syncthreads();
    }
}
