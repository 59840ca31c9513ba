/* Softmax and its logarithm over the rows of a matrix as shaders, in f16, f32 and f64.
 *
 * Method: a block per row, which is read three times. exp(x - greatest) / sum, so that nothing overflows.
 * Numbers: a NaN or +inf in a row makes all of it NaN, as does a row of -inf alone. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#if defined(T_f64)
#include "real64.glsl"
#else
#include "real.glsl"
#endif

layout(binding = 0) readonly buffer X { STORED x[]; };
layout(binding = 1) writeonly buffer Out { STORED o[]; };
layout(push_constant) uniform Push { uint64_t rows, columns; };
shared T room[THREADS];

T greater_one(T a, T b) { return is_nan(a) || a > b ? a : b; }

void halve(uint to, bool sum)
{
    uint i = gl_LocalInvocationID.x;

    barrier();
    if (i < to)
        room[i] = sum ? room[i] + room[i + to] : greater_one(room[i], room[i + to]);
}

/* The sum, or the greatest, of all threads' values, for all of them. */
T together(T own, bool sum)
{
    barrier();
    room[gl_LocalInvocationID.x] = own;
    halve(128u, sum);
    halve(64u, sum);
    halve(32u, sum);
    halve(16u, sum);
    halve(8u, sum);
    halve(4u, sum);
    halve(2u, sum);
    halve(1u, sum);
    barrier();
    return room[0];
}

void main()
{
    uint width = uint(columns), own = gl_LocalInvocationID.x;

    for (uint row = gl_WorkGroupID.x; row < uint(rows); row += gl_NumWorkGroups.x) {
        uint begin = row * width;
        T    greatest = LOWEST, sum = T(0);

        for (uint i = own; i < width; i += THREADS)
            greatest = greater_one(greatest, LOADED(x[begin + i]));
        greatest = together(greatest, false);
        for (uint i = own; i < width; i += THREADS)
            sum += exact_exp(LOADED(x[begin + i]) - greatest);
        sum = together(sum, true);
#if defined(KERNEL_log_softmax)
        T total = exact_log(sum);
        for (uint i = own; i < width; i += THREADS)
            o[begin + i] = TO_STORED(LOADED(x[begin + i]) - greatest - total);
#else
        T total = T(1) / sum;
        for (uint i = own; i < width; i += THREADS)
            o[begin + i] = TO_STORED(exact_exp(LOADED(x[begin + i]) - greatest) * total);
#endif
    }
}
