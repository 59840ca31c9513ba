/* Scans as shaders: every element of the result combines all elements up to its place, or, exclusive, all before it.
 *
 * Method: blocks of a shader cannot wait for each other, so that one block takes all tiles, of 16 elements for each thread; the threads' totals are
 * scanned in shared memory.
 * Numbers: sums and products of real numbers are kept in their own type, of integers in 64 bits, which wrap around. The order of combination is
 * always the same. NaN stays once it has come up. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#if defined(KERNEL_scan_sum)
#define OUT WIDE
#define NONE WIDE(0)
OUT both(OUT a, OUT b) { return a + b; }
#elif defined(KERNEL_scan_prod)
#define OUT WIDE
#define NONE WIDE(1)
OUT both(OUT a, OUT b) { return a * b; }
#elif defined(KERNEL_scan_min)
#define OUT T
#define NONE HIGHEST
OUT both(OUT a, OUT b) { return is_nan(a) || a < b ? a : b; }
#else
#define OUT T
#define NONE LOWEST
OUT both(OUT a, OUT b) { return is_nan(a) || a > b ? a : b; }
#endif

#if defined(T_f16)
#define OUT_STORED STORED
#else
#define OUT_STORED OUT
#endif
layout(binding = 0) readonly buffer X { STORED x[]; };
layout(binding = 1) writeonly buffer Out { OUT_STORED o[]; };
layout(push_constant) uniform Push { uint64_t n; uint exclusive; };
shared OUT totals[THREADS];

void add_left(uint by)
{
    uint i = gl_LocalInvocationID.x;

    barrier();
    OUT left = i >= by ? totals[i - by] : NONE;
    barrier();
    totals[i] = both(left, totals[i]);
}

/* totals[i] becomes the combination of those up to i. */
void scan_totals(OUT own)
{
    barrier();
    totals[gl_LocalInvocationID.x] = own;
    add_left(1u);
    add_left(2u);
    add_left(4u);
    add_left(8u);
    add_left(16u);
    add_left(32u);
    add_left(64u);
    add_left(128u);
    barrier();
}

void main()
{
    uint count = uint(n), own = gl_LocalInvocationID.x;
    OUT  before = NONE, v[16];

    for (uint tile = 0u; tile < count; tile += 16u * THREADS) {
        uint at = tile + own * 16u;
        OUT  sum = NONE;

        /* v is what the result has: with or without the place itself. */
#define TAKE(j) \
    { \
        OUT next = both(sum, at + j < count ? OUT(LOADED(x[at + j])) : NONE); \
        v[j] = exclusive != 0u ? sum : next; \
        sum = next; \
    }
        SIXTEEN(TAKE)
        scan_totals(sum);
        OUT left = own > 0u ? both(before, totals[own - 1u]) : before;
        before = both(before, totals[THREADS - 1]);
#define GIVE(j) \
    if (at + j < count) \
        o[at + j] = TO_STORED(both(left, v[j]));
        SIXTEEN(GIVE)
    }
}
