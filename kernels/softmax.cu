/* Softmax and its logarithm over the rows of a matrix.
 *
 * Method: a block per row. exp(x - greatest) / sum, so that nothing overflows. Rows of up to 20 elements per thread (10 of
 * f64, 16 of f16 and bf16) stay in registers and are read once; longer ones are read three times, the second and third time mostly from cache.
 * Numbers: computed in f32 (f64 for f64) and rounded once. A NaN or +inf in a row makes all of it NaN, as does a row of -inf alone. */
#include "common.cuh"

template <class T, int N, bool LOG> DEVICE void row_in_registers(const T *row, T *out, u64 columns, compute_t<T> *room)
{
    typedef compute_t<T> C;
    C v[row_slots<T>()], greatest = limit<C>::lowest(), sum = (C)0;

    row_load<T, N>(row, columns, (T)limit<C>::lowest(), [&](int slot, C x) {
        v[slot] = x;
        greatest = greater_one()(greatest, x);
    });
    greatest = block_all(greatest, room, greater_one());
#pragma unroll
    for (int slot = 0; slot < row_slots<T>(); slot++) {
        C power = exp(v[slot] - greatest); /* 0 where there is no element */
        v[slot] = LOG ? v[slot] : power;
        sum += power;
    }
    sum = block_all(sum, room, plus());
    C total = LOG ? log(sum) : (C)1 / sum;
    row_store<T, N>(out, columns, [&](int slot, u64) { return LOG ? v[slot] - greatest - total : v[slot] * total; });
}

template <class T, bool LOG> DEVICE void row_again(const T *row, T *out, u64 columns, compute_t<T> *room)
{
    typedef compute_t<T> C;
    C greatest = limit<C>::lowest(), sum = (C)0;

    for (u64 i = threadIdx.x; i < columns; i += blockDim.x)
        greatest = greater_one()(greatest, (C)row[i]);
    greatest = block_all(greatest, room, greater_one());
    for (u64 i = threadIdx.x; i < columns; i += blockDim.x)
        sum += exp((C)row[i] - greatest);
    sum = block_all(sum, room, plus());
    if (LOG)
        sum = log(sum);
    for (u64 i = threadIdx.x; i < columns; i += blockDim.x)
        out[i] = (T)(LOG ? (C)row[i] - greatest - sum : exp((C)row[i] - greatest) / sum);
}

template <class T, bool LOG> __global__ void __launch_bounds__(1024) softmax(const T *x, T *out, u64 rows, u64 columns)
{
    constexpr int N = 16 / sizeof(T);
    __shared__ compute_t<T> room[32];
    bool wide = columns % N == 0 && aligned<T, N>(x) && aligned<T, N>(out);

    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const T *from = x + row * columns;
        T       *to = out + row * columns;
        if (!row_fits<T>(columns))
            row_again<T, LOG>(from, to, columns, room);
        else if (wide)
            row_in_registers<T, N, LOG>(from, to, columns, room);
        else
            row_in_registers<T, 1, LOG>(from, to, columns, room);
        __syncthreads();
    }
}
