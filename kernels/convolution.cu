/* Two-dimensional convolution as of neural networks (a cross-correlation): images batch x channels x height x width, filters
 * filters x channels x filter_height x filter_width, results batch x filters x out_height x out_width.
 *
 * Method: direct. A thread computes eight filters at one place, so that an element of the image is used eight times once it is in a register; those of
 * the filters are the same for a whole warp. Beyond the image it is 0, `padding` on each side and more where out_height and out_width ask for it.
 * Numbers: summed in f32 (f64 for f64), channel by channel, row by row, rounded once. */
#include "common.cuh"

enum { FILTERS = 8 };

template <class T>
__global__ void __launch_bounds__(256) conv2d(const T *x, const T *filter, T *out, u64 batch, u64 channels, u64 height, u64 width, u64 filters,
                                              u64 filter_height, u64 filter_width, u64 out_height, u64 out_width, u64 stride, u64 padding)
{
    typedef compute_t<T> C;
    u64 places = out_height * out_width, each = channels * filter_height * filter_width;

    for (u64 b = blockIdx.z; b < batch; b += gridDim.z)
        for (u64 f0 = (u64)blockIdx.y * FILTERS; f0 < filters; f0 += (u64)gridDim.y * FILTERS)
            for (u64 place = global_thread(); place < places; place += global_threads()) {
                i64 top = (i64)(place / out_width * stride) - (i64)padding, left = (i64)(place % out_width * stride) - (i64)padding;
                C   sum[FILTERS] = {};
                u64 at = 0;
                for (u64 c = 0; c < channels; c++)
                    for (u64 fy = 0; fy < filter_height; fy++)
                        for (u64 fx = 0; fx < filter_width; fx++, at++) {
                            u64 row = (u64)(top + (i64)fy), column = (u64)(left + (i64)fx); /* below 0 is beyond the end */
                            if (row >= height || column >= width)
                                continue;
                            C value = (C)x[((b * channels + c) * height + row) * width + column];
#pragma unroll
                            for (int f = 0; f < FILTERS; f++)
                                if (f0 + f < filters)
                                    sum[f] += value * (C)filter[(f0 + f) * each + at];
                        }
#pragma unroll
                for (int f = 0; f < FILTERS; f++)
                    if (f0 + f < filters)
                        out[(b * filters + f0 + f) * places + place] = (T)sum[f];
            }
}
