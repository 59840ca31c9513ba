/* Layer norm and root-mean-square norm over the rows of a matrix.
 *
 * Method: a block per row, which stays in registers up to 20 elements per thread (10 of f64, 16 of f16 and bf16). The variance is the mean
 * of squared deviations from the mean, in a second pass, so it does not cancel; it is that of the whole population.
 * Numbers: computed in f32 (f64 for f64) and rounded once. gamma and beta have one element per column. */
#include "common.cuh"

/* CENTRED: layer norm. */
template <class T, bool CENTRED> struct row_norm {
    typedef compute_t<T> C;
    const T *gamma, *beta;
    C        epsilon;

    DEVICE C result(C x, C mean, C scale, u64 column) const
    {
        C y = (x - mean) * scale * (C)gamma[column];
        return CENTRED ? y + (C)beta[column] : y;
    }

    template <int N> DEVICE void in_registers(const T *row, T *out, u64 columns, C *room) const
    {
        C v[row_slots<T>()], sum = (C)0, squares = (C)0;
        row_load<T, N>(row, columns, (T)(C)0, [&](int slot, C x) {
            v[slot] = x;
            sum += x;
        });
        C mean = CENTRED ? block_all(sum, room, plus()) / (C)columns : (C)0;
        row_each<T, N>(columns, [&](int slot) { squares += (v[slot] - mean) * (v[slot] - mean); });
        C scale = (C)1 / sqrt(block_all(squares, room, plus()) / (C)columns + epsilon);
        row_store<T, N>(out, columns, [&](int slot, u64 column) { return result(v[slot], mean, scale, column); });
    }

    DEVICE void again(const T *row, T *out, u64 columns, C *room) const
    {
        C sum = (C)0, squares = (C)0;
        for (u64 i = threadIdx.x; CENTRED && i < columns; i += blockDim.x)
            sum += (C)row[i];
        C mean = CENTRED ? block_all(sum, room, plus()) / (C)columns : (C)0;
        for (u64 i = threadIdx.x; i < columns; i += blockDim.x)
            squares += ((C)row[i] - mean) * ((C)row[i] - mean);
        C scale = (C)1 / sqrt(block_all(squares, room, plus()) / (C)columns + epsilon);
        for (u64 i = threadIdx.x; i < columns; i += blockDim.x)
            out[i] = (T)result((C)row[i], mean, scale, i);
    }

    DEVICE void all(const T *x, T *out, u64 rows, u64 columns) const
    {
        constexpr int N = 16 / sizeof(T);
        __shared__ C room[32];
        bool wide = columns % N == 0 && aligned<T, N>(x) && aligned<T, N>(out);

        for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
            if (!row_fits<T>(columns))
                again(x + row * columns, out + row * columns, columns, room);
            else if (wide)
                in_registers<N>(x + row * columns, out + row * columns, columns, room);
            else
                in_registers<1>(x + row * columns, out + row * columns, columns, room);
            __syncthreads();
        }
    }
};

template <class T>
__global__ void __launch_bounds__(1024) layer_norm(const T *x, const T *gamma, const T *beta, T *out, u64 rows, u64 columns, f64 epsilon)
{
    row_norm<T, true>{gamma, beta, (compute_t<T>)epsilon}.all(x, out, rows, columns);
}
template <class T> __global__ void __launch_bounds__(1024) rms_norm(const T *x, const T *gamma, T *out, u64 rows, u64 columns, f64 epsilon)
{
    row_norm<T, false>{gamma, nullptr, (compute_t<T>)epsilon}.all(x, out, rows, columns);
}
