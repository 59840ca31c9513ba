/* Convolution of planes, as neural networks have it (the weights are not turned round):
 * out[b][g][o][i][j] = sum over c, r, s of weights[g][o][c][r][s] * x[b][g][c][i * stride_rows + r * dilation_rows - padding_rows][...columns].
 *
 * Shapes, all with the last axis in memory: x is batch x groups x channels x height x width, weights groups x out_channels x channels x
 * kernel_height x kernel_width, out batch x groups x out_channels x out_height x out_width; channels and out_channels are those of one group.
 * x is 0 outside, so that any out_height and out_width may be asked for; usual is
 * out_height = (height + 2 padding_rows - dilation_rows (kernel_height - 1) - 1) / stride_rows + 1, and so for the width. out overlaps nothing.
 * Method: implicit matrix product (as in Chetlur et al., cuDNN, 2014): a block takes 64 channels of 128 places, a thread eight of four, and gathers what
 * these multiply, 16 summands at a time (8 of f64), into two alternating buffers of shared memory; no tensor cores.
 * Numbers: sums in order of c, r, s, by fma, in f64 for f64 and f32 for the others, rounded once. */
#include "common.cuh"

enum { THREADS = 256, CHANNELS = 64, PLACES = 128, EACH_CHANNELS = 8, EACH_PLACES = 4, ACROSS = PLACES / EACH_PLACES };
/* Summands at a time. */
template <class C> constexpr __device__ int depth_of() { return sizeof(C) == 8 ? 8 : 16; }

DEVICE f32 multiply_add(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }
DEVICE f64 multiply_add(f64 a, f64 b, f64 c) { return fma(a, b, c); }

struct planes {
    u64 channels, height, width, out_channels, out_height, out_width, kernel_height, kernel_width;
    u64 stride_rows, stride_columns, padding_rows, padding_columns, dilation_rows, dilation_columns;
};

/* A summand: which weight of which channel. */
struct summand {
    u64 channel;
    u32 row, column;
};
DEVICE summand summand_at(const planes &p, u64 k)
{
    return {k / (p.kernel_height * p.kernel_width), (u32)(k / p.kernel_width % p.kernel_height), (u32)(k % p.kernel_width)};
}
/* The sum of two without a division. */
DEVICE void advance(summand &s, const summand &by, const planes &p)
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

/* A thread's share of one step: weights of channel threadIdx.x / DEPTH and on, and what lies under one place. */
template <class T> struct share {
    typedef compute_t<T> C;
    static constexpr int DEPTH = depth_of<C>(), WEIGHTS = CHANNELS * DEPTH / THREADS, FETCHES = PLACES * DEPTH / THREADS;
    C       a[WEIGHTS], b[FETCHES];
    u64     row, column; /* of the place, in x and before padding */
    bool    has_place;
    summand at, step; /* of the next to be fetched, and from one of this thread's to the next */

    DEVICE void begin(const planes &p, u64 place)
    {
        has_place = place < p.out_height * p.out_width;
        row = has_place ? place / p.out_width * p.stride_rows : 0;
        column = has_place ? place % p.out_width * p.stride_columns : 0;
        step = summand_at(p, THREADS / PLACES);
        at = summand_at(p, threadIdx.x / PLACES);
    }

    DEVICE void fetch(const planes &p, const T *x, const T *weights, u64 channel, u64 k, u64 depth)
    {
#pragma unroll
        for (int i = 0; i < WEIGHTS; i++) {
            u64 o = channel + threadIdx.x / DEPTH + i * (THREADS / DEPTH), c = k + threadIdx.x % DEPTH;
            a[i] = o < p.out_channels && c < depth ? (C)weights[o * depth + c] : (C)0;
        }
#pragma unroll
        for (int i = 0; i < FETCHES; i++) {
            u64 r = row + at.row * p.dilation_rows - p.padding_rows, s = column + at.column * p.dilation_columns - p.padding_columns;
            bool inside = has_place && at.channel < p.channels && r < p.height && s < p.width; /* below 0 it has wrapped around */
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

template <class C> DEVICE void multiply(C (&sum)[EACH_CHANNELS][EACH_PLACES], const operands<C> &from, int half, int down, int across)
{
#pragma unroll
    for (int k = 0; k < operands<C>::DEPTH; k++) {
        C a[EACH_CHANNELS], b[EACH_PLACES];
#pragma unroll
        for (int i = 0; i < EACH_CHANNELS; i++)
            a[i] = from.a[half][k][down * EACH_CHANNELS + i];
#pragma unroll
        for (int j = 0; j < EACH_PLACES; j++)
            b[j] = from.b[half][k][across + j * ACROSS];
#pragma unroll
        for (int i = 0; i < EACH_CHANNELS; i++)
#pragma unroll
            for (int j = 0; j < EACH_PLACES; j++)
                sum[i][j] = multiply_add(a[i], b[j], sum[i][j]);
    }
}

/* One tile: channels from `channel`, places from `place`. */
template <class T> DEVICE void convolve(operands<compute_t<T>> &shared, const T *x, const T *weights, T *out, const planes &p, u64 channel, u64 place)
{
    typedef compute_t<T> C;
    int      down = threadIdx.x / ACROSS, across = threadIdx.x % ACROSS, half = 0;
    u64      depth = p.channels * p.kernel_height * p.kernel_width, places = p.out_height * p.out_width;
    C        sum[EACH_CHANNELS][EACH_PLACES] = {};
    share<T> mine;

    mine.begin(p, place + threadIdx.x % PLACES);
    mine.fetch(p, x, weights, channel, 0, depth);
    mine.keep(shared, 0);
    __syncthreads();
    for (u64 k = 0; k < depth; k += operands<C>::DEPTH, half ^= 1) {
        mine.fetch(p, x, weights, channel, k + operands<C>::DEPTH, depth);
        multiply(sum, shared, half, down, across);
        mine.keep(shared, half ^ 1);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < EACH_CHANNELS; i++)
#pragma unroll
        for (int j = 0; j < EACH_PLACES; j++) {
            u64 o = channel + down * EACH_CHANNELS + i, at = place + across + j * ACROSS;
            if (o < p.out_channels && at < places)
                out[o * places + at] = (T)sum[i][j];
        }
}

template <class T> __global__ void __launch_bounds__(THREADS, 2)
    conv2d(const T *x, const T *weights, T *out, u64 batch, u64 groups, u64 channels, u64 height, u64 width, u64 out_channels, u64 out_height,
           u64 out_width, u64 kernel_height, u64 kernel_width, u64 stride_rows, u64 stride_columns, u64 padding_rows, u64 padding_columns,
           u64 dilation_rows, u64 dilation_columns)
{
    __shared__ operands<compute_t<T>> shared;
    planes p = {channels, height, width, out_channels, out_height, out_width, kernel_height, kernel_width,
                stride_rows, stride_columns, padding_rows, padding_columns, dilation_rows, dilation_columns};
    u64 places = out_height * out_width;

    for (u64 z = blockIdx.z; z < batch * groups; z += gridDim.z)
        for (u64 channel = (u64)blockIdx.y * CHANNELS; channel < out_channels; channel += (u64)gridDim.y * CHANNELS)
            for (u64 place = (u64)blockIdx.x * PLACES; place < places; place += (u64)gridDim.x * PLACES)
                convolve(shared, x + z * channels * height * width, weights + z % groups * out_channels * channels * kernel_height * kernel_width,
                         out + z * out_channels * places, p, channel, place);
}
