/* Counts of elements in bins of equal width.
 *
 * Method: each block counts in shared memory up to 4096 bins, and adds what it found to the result at its end; beyond, all add to the result directly.
 * The counts are added to what stands there: fill them with 0 first.
 * Numbers: as numpy.histogram. Bin i holds low + i * width <= x < low + (i + 1) * width, computed in f64; the last one holds high too. What lies outside,
 * and NaN, is not counted. For whole numbers one each: low 0, high = bins. */
#include "common.cuh"

enum { SHARED_BINS = 4096 };

struct bin_rule {
    f64 low, high, width;
    u64 bins;

    DEVICE f64 edge(u64 i) const { return i == bins ? high : low + (f64)i * width; }
    /* `bins`: the element is not counted. */
    DEVICE u64 of(f64 x) const
    {
        if (!(x >= low && x <= high))
            return bins;
        u64 i = (u64)((x - low) / (high - low) * (f64)bins);
        i = i >= bins ? bins - 1 : i;
        if (x < edge(i))
            i--;
        else if (i + 1 < bins && x >= edge(i + 1))
            i++;
        return i;
    }
};

template <class T> __global__ void __launch_bounds__(512) histogram(const T *x, u64 *counts, u64 n, u64 bins, f64 low, f64 high, u32)
{
    __shared__ u32 own[SHARED_BINS];
    bin_rule rule = {low, high, (high - low) / (f64)bins, bins};
    bool     in_shared = bins <= SHARED_BINS;

    if (!(low < high))
        return;
    for (u64 i = threadIdx.x; in_shared && i < bins; i += blockDim.x)
        own[i] = 0;
    __syncthreads();
    for (u64 i = global_thread(); i < n; i += global_threads()) {
        u64 bin = rule.of((f64)(compute_t<T>)x[i]);
        if (bin >= bins)
            continue;
        if (in_shared)
            atomicAdd(&own[bin], 1);
        else
            atomicAdd(&counts[bin], (u64)1);
    }
    __syncthreads();
    for (u64 i = threadIdx.x; in_shared && i < bins; i += blockDim.x)
        if (own[i])
            atomicAdd(&counts[i], (u64)own[i]);
}
