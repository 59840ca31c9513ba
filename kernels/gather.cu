/* Rows of a matrix taken by index, and put by index.
 *
 * Method: threads go along the rows that move, so that both sides are read and written side by side. A negative index counts from the end.
 * An index out of range ends the launch with a fault, and with it the session: nothing wrong is answered. scatter with an index that occurs twice
 * leaves one of the rows, none knows which; scatter_add adds all of them, in no fixed order. */
#include "common.cuh"

DEVICE u64 place_of(i64 index, u64 rows)
{
    u64 place = (u64)(index < 0 ? index + (i64)rows : index);

    if (place >= rows)
        __trap();
    return place;
}

/* f(place in the array by index, place among the moving rows) for every element that moves. */
template <class F> DEVICE void each_moved(const i64 *index, u64 n, u64 rows, u64 width, F f)
{
    u64 all = n * width;

    for (u64 i = global_thread(); i < all; i += global_threads()) {
        u64 row = all <= 0xffffffffu ? (u32)i / (u32)width : i / width;
        f(place_of(index[row], rows) * width + (i - row * width), i);
    }
}

template <class T> __global__ void __launch_bounds__(FLAT_THREADS) gather(const T *x, const i64 *index, T *out, u64 n, u64 rows, u64 width)
{
    each_moved(index, n, rows, width, [=](u64 from, u64 to) { out[to] = x[from]; });
}
template <class T> __global__ void __launch_bounds__(FLAT_THREADS) scatter(const T *x, const i64 *index, T *out, u64 n, u64 rows, u64 width)
{
    each_moved(index, n, rows, width, [=](u64 to, u64 from) { out[to] = x[from]; });
}

DEVICE void add_to(f32 *to, f32 x) { atomicAdd(to, x); }
DEVICE void add_to(f64 *to, f64 x) { atomicAdd(to, x); }
DEVICE void add_to(i32 *to, i32 x) { atomicAdd(to, x); }
DEVICE void add_to(u32 *to, u32 x) { atomicAdd(to, x); }
DEVICE void add_to(i64 *to, i64 x) { atomicAdd((u64 *)to, (u64)x); }
DEVICE void add_to(u64 *to, u64 x) { atomicAdd(to, x); }

template <class T> __global__ void __launch_bounds__(FLAT_THREADS) scatter_add(const T *x, const i64 *index, T *out, u64 n, u64 rows, u64 width)
{
    each_moved(index, n, rows, width, [=](u64 to, u64 from) { add_to(&out[to], x[from]); });
}
