/* Convolution of planes, as neural networks have it (the weights are not turned round):
 * out[b][g][o][i][j] = sum over c, r, s of weights[g][o][c][r][s] * x[b][g][c][i * stride_rows + r * dilation_rows - padding_rows][...columns].
 *
 * Shapes, all with the last axis in memory: x is batch x groups x channels x height x width, weights groups x out_channels x channels x
 * kernel_height x kernel_width, out batch x groups x out_channels x out_height x out_width; channels and out_channels are those of one group.
 * x is 0 outside, so that any out_height and out_width may be asked for; usual is
 * out_height = (height + 2 padding_rows - dilation_rows (kernel_height - 1) - 1) / stride_rows + 1, and so for the width. out overlaps nothing.
 * Method: implicit matrix product (as in Chetlur et al., cuDNN, 2014): a block takes 64 channels of 128 places, a thread eight of four, and gathers what
 * these multiply, 16 summands at a time (8 of f64), into two alternating buffers of shared memory; no tensor cores. Places go on from one image to the
 * next, so that only the last tile of a group is cut off; where all offsets fit 30 bits, they are computed with in 32.
 * Numbers: sums in order of c, r, s, by fma, in f64 for f64 and f32 for the others, rounded once. */
#include "common.cuh"

enum { THREADS = 256, CHANNELS = 64, PLACES = 128, EACH_CHANNELS = 8, EACH_PLACES = 4, ACROSS = PLACES / EACH_PLACES };
/* Summands at a time. */
template <class C> constexpr __device__ int depth_of() { return sizeof(C) == 8 ? 8 : 16; }
/* The places of a tile that belong to a thread: neighbours where one load covers all of them, else such that a warp's loads are of
 * neighbours. */
template <class C> DEVICE u32 place_in_tile(int j)
{
    u32 across = threadIdx.x % ACROSS;
    return sizeof(C) * EACH_PLACES <= 16 ? across * EACH_PLACES + j : across + j * ACROSS;
}

DEVICE f32 multiply_add(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
DEVICE f64 multiply_add(f64 a, f64 b, f64 c) { return fma(a, b, c); }

/* I: the integer type of offsets. */
template <class I> struct planes {
    I batch, groups, channels, height, width, out_channels, out_height, out_width, kernel_height, kernel_width;
    I stride_rows, stride_columns, padding_rows, padding_columns, dilation_rows, dilation_columns;

    DEVICE I places() const { return out_height * out_width; }
    DEVICE I depth() const { return channels * kernel_height * kernel_width; }
    DEVICE I of_image() const { return channels * height * width; }
};

/* Whether every offset, and the reach of a place into x, is below 2^30, so that even the next tile of a grid stays below 2^32. Products
 * of all sides of a buffer are at most 2^62: else the launch was refused. */
DEVICE bool is_small(const planes<u64> &p)
{
    u64 sides = p.batch | p.groups | p.channels | p.height | p.width | p.out_channels | p.out_height | p.out_width;
    if (sides >> 30)
        return false;
    u64 images = p.batch * p.groups, of_x = images * p.of_image(), of_weights = p.groups * p.out_channels * p.depth();
    u64 of_out = images * p.out_channels * p.places();
    u64 down = p.out_height * p.stride_rows + p.kernel_height * p.dilation_rows, across = p.out_width * p.stride_columns + p.kernel_width * p.dilation_columns;
    return (of_x | of_weights | of_out | down | across | p.batch * p.places() | p.depth()) >> 30 == 0;
}

/* A summand: which weight of which channel. */
template <class I> struct summand {
    I   channel;
    u32 row, column;
};
template <class I> DEVICE summand<I> summand_at(const planes<I> &p, u32 k)
{
    return {k / (p.kernel_height * p.kernel_width), (u32)(k / p.kernel_width % p.kernel_height), (u32)(k % p.kernel_width)};
}
/* Adds two, without a division. */
template <class I> DEVICE void advance(summand<I> &s, const summand<I> &by, const planes<I> &p)
{
    s.column += by.column;
    s.row += by.row;
    s.channel += by.channel;
    if (s.column >= p.kernel_width) {
        s.column -= (u32)p.kernel_width;
        s.row++;
    }
    if (s.row >= p.kernel_height) {
        s.row -= (u32)p.kernel_height;
        s.channel++;
    }
}

template <class C> struct operands {
    static constexpr int DEPTH = depth_of<C>();
    alignas(16) C a[2][DEPTH][CHANNELS + 16 / sizeof(C)];
    alignas(16) C b[2][DEPTH][PLACES];
};

/* Where the images of a group begin: `next` is the distance between them. */
template <class T, class I> struct images {
    T *first;
    I  next;
};

/* A thread's share of one step: weights of channel threadIdx.x / DEPTH and following, and the elements under one place. */
template <class T, class I> struct share {
    typedef compute_t<T> C;
    static constexpr int DEPTH = depth_of<C>(), WEIGHTS = CHANNELS * DEPTH / THREADS, FETCHES = PLACES * DEPTH / THREADS;
    C          a[WEIGHTS], b[FETCHES];
    const T   *x; /* the place's image */
    I          row, column; /* of the place, in x; outside, above and left, they have wrapped around */
    I          weights_at[WEIGHTS]; /* of the step's first summand */
    summand<I> at, step; /* of the next to fetch, and the distance between two of this thread's */

    /* Channels and places beyond the last, whose results are not stored, use the first one's operands. */
    DEVICE void begin(const planes<I> &p, const images<const T, I> &of, I channel, I place)
    {
#pragma unroll
        for (int i = 0; i < WEIGHTS; i++) {
            I o = channel + threadIdx.x / DEPTH + i * (THREADS / DEPTH);
            weights_at[i] = (o < p.out_channels ? o : 0) * p.depth() + threadIdx.x % DEPTH;
        }
        place = place < p.batch * p.places() ? place : 0;
        I image = place / p.places(), inside = place % p.places();
        x = of.first + image * of.next;
        row = inside / p.out_width * p.stride_rows - p.padding_rows;
        column = inside % p.out_width * p.stride_columns - p.padding_columns;
        step = summand_at(p, THREADS / PLACES);
        at = summand_at(p, threadIdx.x / PLACES);
    }

    DEVICE void fetch(const planes<I> &p, const T *weights, I k)
    {
        bool more = k + threadIdx.x % DEPTH < p.depth();
#pragma unroll
        for (int i = 0; i < WEIGHTS; i++)
            a[i] = more ? (C)weights[weights_at[i] + k] : (C)0;
#pragma unroll
        for (int i = 0; i < FETCHES; i++) {
            I r = row + at.row * p.dilation_rows, s = column + at.column * p.dilation_columns;
            bool inside = at.channel < p.channels && r < p.height && s < p.width;
            b[i] = inside ? (C)x[(at.channel * p.height + r) * p.width + s] : (C)0;
            advance(at, step, p);
        }
    }

    DEVICE void keep(operands<C> &to, int half) const
    {
#pragma unroll
        for (int i = 0; i < WEIGHTS; i++)
            to.a[half][threadIdx.x % DEPTH][threadIdx.x / DEPTH + i * (THREADS / DEPTH)] = a[i];
#pragma unroll
        for (int i = 0; i < FETCHES; i++)
            to.b[half][threadIdx.x / PLACES + i * (THREADS / PLACES)][threadIdx.x % PLACES] = b[i];
    }
};

template <class C> DEVICE void multiply(C (&sum)[EACH_CHANNELS][EACH_PLACES], const operands<C> &from, int half, int down)
{
#pragma unroll
    for (int k = 0; k < operands<C>::DEPTH; k++) {
        C a[EACH_CHANNELS], b[EACH_PLACES];
#pragma unroll
        for (int i = 0; i < EACH_CHANNELS; i++)
            a[i] = from.a[half][k][down * EACH_CHANNELS + i];
#pragma unroll
        for (int j = 0; j < EACH_PLACES; j++)
            b[j] = from.b[half][k][place_in_tile<C>(j)];
#pragma unroll
        for (int i = 0; i < EACH_CHANNELS; i++)
#pragma unroll
            for (int j = 0; j < EACH_PLACES; j++)
                sum[i][j] = multiply_add(a[i], b[j], sum[i][j]);
    }
}

/* Where a thread's places are neighbours of one image, they are written as one word. */
template <class T, class I, class C>
DEVICE void store(const planes<I> &p, const images<T, I> &out, I first, I place, const C (&sum)[EACH_CHANNELS][EACH_PLACES])
{
    constexpr bool NEIGHBOURS = sizeof(C) * EACH_PLACES <= 16;

    if constexpr (NEIGHBOURS)
        if (p.places() % EACH_PLACES == 0 && aligned<T, EACH_PLACES>(out.first)) {
            I at = place + place_in_tile<C>(0), image = at / p.places();
            T *to = out.first + image * out.next + first * p.places() + at % p.places();
#pragma unroll
            for (int i = 0; i < EACH_CHANNELS; i++)
                if (image < p.batch && first + i < p.out_channels) {
                    pack<T, EACH_PLACES> v;
#pragma unroll
                    for (int j = 0; j < EACH_PLACES; j++)
                        v.v[j] = (T)sum[i][j];
                    pack_store<T, EACH_PLACES>(to + i * p.places(), 0, v);
                }
            return;
        }
#pragma unroll
    for (int j = 0; j < EACH_PLACES; j++) {
        I  at = place + place_in_tile<C>(j), image = at / p.places();
        T *to = out.first + image * out.next + first * p.places() + at % p.places();
#pragma unroll
        for (int i = 0; i < EACH_CHANNELS; i++)
            if (image < p.batch && first + i < p.out_channels)
                to[i * p.places()] = (T)sum[i][j];
    }
}

/* One tile of a group: channels from `channel`, places from `place`. */
template <class T, class I>
DEVICE void convolve(operands<compute_t<T>> &shared, const planes<I> &p, const images<const T, I> &x, const T *weights, const images<T, I> &out, I channel, I place)
{
    typedef compute_t<T> C;
    int         down = threadIdx.x / ACROSS, half = 0;
    C           sum[EACH_CHANNELS][EACH_PLACES] = {};
    share<T, I> mine;

    mine.begin(p, x, channel, place + threadIdx.x % PLACES);
    mine.fetch(p, weights, 0);
    mine.keep(shared, 0);
    __syncthreads();
    /* The next step's operands overwrite those of the step before this one: all threads have passed the barrier after reading them. */
    for (I k = 0; k < p.depth(); k += operands<C>::DEPTH, half ^= 1) {
        mine.fetch(p, weights, k + operands<C>::DEPTH);
        multiply(sum, shared, half, down);
        mine.keep(shared, half ^ 1);
        __syncthreads();
    }
    store(p, out, channel + down * EACH_CHANNELS, place, sum);
}

template <class T, class I> DEVICE void convolve_all(operands<compute_t<T>> &shared, const planes<I> &p, const T *x, const T *weights, T *out)
{
    I of_x = p.of_image(), of_out = p.out_channels * p.places(), places = p.batch * p.places();

    for (I g = blockIdx.z; g < p.groups; g += gridDim.z)
        for (I channel = (I)blockIdx.y * CHANNELS; channel < p.out_channels; channel += (I)gridDim.y * CHANNELS)
            for (I place = (I)blockIdx.x * PLACES; place < places; place += (I)gridDim.x * PLACES)
                convolve<T, I>(shared, p, {x + g * of_x, p.groups * of_x}, weights + g * p.out_channels * p.depth(), {out + g * of_out, p.groups * of_out},
                               channel, place);
}

template <class T> __global__ void __launch_bounds__(THREADS, 2)
    conv2d(const T *x, const T *weights, T *out, u64 batch, u64 groups, u64 channels, u64 height, u64 width, u64 out_channels, u64 out_height,
           u64 out_width, u64 kernel_height, u64 kernel_width, u64 stride_rows, u64 stride_columns, u64 padding_rows, u64 padding_columns,
           u64 dilation_rows, u64 dilation_columns)
{
    __shared__ operands<compute_t<T>> shared;
    planes<u64> p = {batch, groups, channels, height, width, out_channels, out_height, out_width, kernel_height, kernel_width,
                     stride_rows, stride_columns, padding_rows, padding_columns, dilation_rows, dilation_columns};

    if (!is_small(p)) {
        convolve_all<T, u64>(shared, p, x, weights, out);
        return;
    }
    planes<u32> q = {(u32)batch, (u32)groups, (u32)channels, (u32)height, (u32)width, (u32)out_channels, (u32)out_height, (u32)out_width, (u32)kernel_height,
                     (u32)kernel_width, (u32)stride_rows, (u32)stride_columns, (u32)padding_rows, (u32)padding_columns, (u32)dilation_rows, (u32)dilation_columns};
    convolve_all<T, u32>(shared, q, x, weights, out);
}
