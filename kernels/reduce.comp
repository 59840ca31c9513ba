/* Reductions as shaders: of all elements, and along an axis, in f16, f32, i32, u32, f64, i64 and u64.
 *
 * Method: one block takes all elements, 16 a turn for each thread; along an axis a block takes one result after the other. The states of the
 * threads are put together in shared memory.
 * Numbers: sums of real numbers, of f16 in f32, carry what each addition rounds away; integers are summed in 64 bits, which wrap around. NaN counts as least and
 * greatest; argmin and argmax take the first of equals. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#if defined(KERNEL_reduce_mean) || defined(KERNEL_reduce_mean_axis)
#define SUM
#define MEAN
#elif defined(KERNEL_reduce_sum) || defined(KERNEL_reduce_sum_axis)
#define SUM
#elif defined(KERNEL_reduce_var) || defined(KERNEL_reduce_var_axis)
#define VARIANCE
#elif defined(KERNEL_reduce_prod) || defined(KERNEL_reduce_prod_axis)
#define PROD
#elif defined(KERNEL_reduce_min) || defined(KERNEL_reduce_min_axis)
#define LEAST
#elif defined(KERNEL_reduce_max) || defined(KERNEL_reduce_max_axis)
#define GREATEST
#elif defined(KERNEL_reduce_argmin) || defined(KERNEL_reduce_argmin_axis)
#define LEAST
#define PLACE
#elif defined(KERNEL_reduce_argmax) || defined(KERNEL_reduce_argmax_axis)
#define GREATEST
#define PLACE
#elif defined(KERNEL_reduce_any) || defined(KERNEL_reduce_any_axis)
#define ANY
#else
#define ALL
#endif

#if defined(KERNEL_reduce_sum) || defined(KERNEL_reduce_prod) || defined(KERNEL_reduce_min) || defined(KERNEL_reduce_max) || \
    defined(KERNEL_reduce_argmin) || defined(KERNEL_reduce_argmax) || defined(KERNEL_reduce_any) || defined(KERNEL_reduce_all) || defined(KERNEL_reduce_mean) || \
    defined(KERNEL_reduce_var)
#define WHOLE
#endif

/* ---- states ---- */

#if defined(SUM) && defined(REAL)
#define OUT T
struct state {
    T sum, carried;
};
state nothing() { return state(T(0), T(0)); }
state of(T x, uint at) { return state(x, T(0)); }
state merge(state a, state b)
{
    precise T sum = a.sum + b.sum;
    precise T part = sum - a.sum;
    precise T carried = (a.sum - (sum - part)) + (b.sum - part);
    return state(sum, carried + (a.carried + b.carried));
}
T total(state s) { return is_finite(s.sum) ? s.sum + s.carried : s.sum; }
#if defined(MEAN)
OUT value(state s, uint count) { return total(s) / T(count); }
#else
OUT value(state s, uint count) { return total(s); }
#endif
#elif defined(VARIANCE)
#if defined(SINGLE)
#define OUT float
#else
#define OUT double
#endif
/* Of the mean, and the squares of the deviations from it (Chan, Golub and LeVeque, 1979). */
struct state {
    OUT  mean, squares;
    uint n;
};
state nothing() { return state(OUT(0), OUT(0), 0u); }
state of(T x, uint at) { return state(OUT(x), OUT(0), 1u); }
state merge(state a, state b)
{
    if (a.n == 0u || b.n == 0u)
        return a.n == 0u ? b : a;
    OUT share = OUT(b.n) / (OUT(a.n) + OUT(b.n)), by = b.mean - a.mean;
    return state(a.mean + by * share, a.squares + b.squares + by * by * (OUT(a.n) * share), a.n + b.n);
}
#elif defined(SUM) || defined(PROD)
#if defined(MEAN)
#define OUT double
#else
#define OUT WIDE
#endif
struct state {
    WIDE v;
};
#if defined(SUM)
state nothing() { return state(WIDE(0)); }
state merge(state a, state b) { return state(a.v + b.v); }
#else
state nothing() { return state(WIDE(1)); }
state merge(state a, state b) { return state(a.v * b.v); }
#endif
state of(T x, uint at) { return state(WIDE(x)); }
#if defined(MEAN)
OUT value(state s, uint count) { return double(s.v) / double(count); }
#else
OUT value(state s, uint count) { return s.v; }
#endif
#elif defined(LEAST) || defined(GREATEST)
struct state {
    T    v;
    uint at;
};
#define NOWHERE 0xffffffffu
#if defined(LEAST)
state nothing() { return state(HIGHEST, NOWHERE); }
bool  before(T a, T b) { return a < b; }
#else
state nothing() { return state(LOWEST, NOWHERE); }
bool  before(T a, T b) { return a > b; }
#endif
state of(T x, uint at) { return state(x, at); }
state merge(state a, state b)
{
    if (a.at == NOWHERE || b.at == NOWHERE)
        return a.at == NOWHERE ? b : a;
    bool of_a = is_nan(a.v), of_b = is_nan(b.v);
    if (of_a != of_b)
        return of_a ? a : b;
    if (!of_a && before(a.v, b.v))
        return a;
    if (!of_a && before(b.v, a.v))
        return b;
    return a.at < b.at ? a : b;
}
#if defined(PLACE)
#define OUT int64_t
OUT value(state s, uint count) { return int64_t(s.at); }
#else
#define OUT T
OUT value(state s, uint count) { return s.v; }
#endif
#else
#define OUT uint8_t
struct state {
    bool v;
};
#if defined(ANY)
state nothing() { return state(false); }
state merge(state a, state b) { return state(a.v || b.v); }
#else
state nothing() { return state(true); }
state merge(state a, state b) { return state(a.v && b.v); }
#endif
state of(T x, uint at) { return state(is_nan(x) || x != T(0)); }
OUT   value(state s, uint count) { return uint8_t(s.v ? 1u : 0u); }
#endif

/* ---- the threads together ---- */

shared state states[THREADS];

void halve(uint to)
{
    barrier();
    if (gl_LocalInvocationID.x < to)
        states[gl_LocalInvocationID.x] = merge(states[gl_LocalInvocationID.x], states[gl_LocalInvocationID.x + to]);
}

/* All threads call it; the result is thread 0's. No loop: lavapipe counts their turns. */
state together(state own)
{
    barrier();
    states[gl_LocalInvocationID.x] = own;
    halve(128u);
    halve(64u);
    halve(32u);
    halve(16u);
    halve(8u);
    halve(4u);
    halve(2u);
    halve(1u);
    return states[0];
}

/* What a variance's divisor is less than the count by: an f64, by its bits, as not every device has such numbers. */
#if defined(VARIANCE)
#define DDOF , ddof
#if defined(SINGLE)
/* Cut to the 24 bits of f32: whole numbers up to 2^24 are exact. */
float less_of(uint64_t bits)
{
    int  e = int(bits >> 52 & 0x7ffUL) - 1023;
    uint sign = uint(bits >> 32) & 0x80000000u, size = uint(bits >> 29) & 0x007fffffu;
    return e < -126 ? 0.0 : uintBitsToFloat(sign | (e > 127 ? 0x7f800000u : uint(e + 127) << 23 | size));
}
#else
double less_of(uint64_t bits) { return packDouble2x32(uvec2(uint(bits), uint(bits >> 32))); }
#endif
#define VALUE_OF_VARIANCE OUT value(state s, uint length) { return s.squares / (OUT(s.n) - less_of(ddof)); }
#else
#define DDOF
#define VALUE_OF_VARIANCE
#endif

#if defined(T_f16) && !defined(PLACE) && !defined(ANY) && !defined(ALL)
#define OUT_STORED STORED
#define TO_OUT(value) TO_STORED(value)
#else
#define OUT_STORED OUT
#define TO_OUT(value) value
#endif
layout(binding = 0) readonly buffer X { STORED x[]; };
layout(binding = 1) writeonly buffer Out { OUT_STORED o[]; };

#if defined(WHOLE)
layout(push_constant) uniform Push { uint64_t n DDOF; };
VALUE_OF_VARIANCE

void take(inout state own, uint i)
{
    if (i < n)
        own = merge(own, of(LOADED(x[i]), i));
}

void main()
{
    state own = nothing();
    uint  count = uint(n);

    for (uint i = gl_LocalInvocationID.x; i < count; i += 16u * THREADS) {
        take(own, i);
        take(own, i + THREADS);
        take(own, i + 2u * THREADS);
        take(own, i + 3u * THREADS);
        take(own, i + 4u * THREADS);
        take(own, i + 5u * THREADS);
        take(own, i + 6u * THREADS);
        take(own, i + 7u * THREADS);
        take(own, i + 8u * THREADS);
        take(own, i + 9u * THREADS);
        take(own, i + 10u * THREADS);
        take(own, i + 11u * THREADS);
        take(own, i + 12u * THREADS);
        take(own, i + 13u * THREADS);
        take(own, i + 14u * THREADS);
        take(own, i + 15u * THREADS);
    }
    own = together(own);
    if (gl_LocalInvocationID.x == 0u)
        o[0] = TO_OUT(value(own, count));
}
#else
layout(push_constant) uniform Push { uint64_t outer, count, inner DDOF; };
VALUE_OF_VARIANCE

/* Of this length on, a block takes a result (SHADER_SHORT of the service); before, a thread has 4 turns for one. */
#define LONG 33u

state element(uint at, uint i, uint length)
{
    return i < length ? of(LOADED(x[at]), i) : nothing();
}

void alone(uint results, uint length, uint step)
{
    for (uint r = gl_GlobalInvocationID.x; r < results; r += gl_NumWorkGroups.x * THREADS) {
        uint  at = r / step * length * step + r % step;
        state own = nothing();

        for (uint i = 0u; i < length; i += 8u, at += 8u * step) {
            own = merge(own, element(at, i, length));
            own = merge(own, element(at + step, i + 1u, length));
            own = merge(own, element(at + 2u * step, i + 2u, length));
            own = merge(own, element(at + 3u * step, i + 3u, length));
            own = merge(own, element(at + 4u * step, i + 4u, length));
            own = merge(own, element(at + 5u * step, i + 5u, length));
            own = merge(own, element(at + 6u * step, i + 6u, length));
            own = merge(own, element(at + 7u * step, i + 7u, length));
        }
        o[r] = TO_OUT(value(own, length));
    }
}

void main()
{
    uint results = uint(outer * inner), length = uint(count), step = uint(inner);

    if (length < LONG) {
        alone(results, length, step);
        return;
    }
    for (uint r = gl_WorkGroupID.x; r < results; r += gl_NumWorkGroups.x) {
        uint  begin = r / step * length * step + r % step;
        state own = nothing();

        for (uint i = gl_LocalInvocationID.x; i < length; i += THREADS)
            own = merge(own, of(LOADED(x[begin + i * step]), i));
        own = together(own);
        if (gl_LocalInvocationID.x == 0u)
            o[r] = TO_OUT(value(own, length));
    }
}
#endif
