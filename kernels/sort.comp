/* Sorting of keys, alone or with values, as shaders.
 *
 * Method: radix sort from the lowest digit, four bits at a time (Satish, Harris and Garland, 2009). Blocks of a shader cannot wait for each other, so
 * that one block counts each digit and then moves one tile after the other, of 16 elements for each thread, which counts its own in shared memory.
 * Numbers: as sort.cu has it. Real numbers are ordered by their bits, with the sign taken into account: -0 comes before +0, and every NaN behind
 * +inf (before, when descending), as one and the same NaN. Equal keys keep their order. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#if defined(KERNEL_sort_pairs)
#define PAIRS
#define SCRATCH 4
#else
#define SCRATCH 2
#endif
#define DIGITS 16u
#define PASSES (2u * BYTES)
#define WORDS (BYTES == 8 ? 2u : 1u) /* of a key in scratch memory */

#if defined(PAIRS)
layout(binding = 0) readonly buffer X { STORED x[]; };
layout(binding = 1) readonly buffer Values { uint values[]; };
layout(binding = 2) coherent buffer Out { BITS_STORED o[]; };
layout(binding = 3) coherent buffer ValuesOut { uint values_out[]; };
#else
layout(binding = 0) readonly buffer X { STORED x[]; };
layout(binding = 1) coherent buffer Out { BITS_STORED o[]; };
#endif
/* Keys, in words of 32 bits, and behind them the values. */
layout(binding = SCRATCH) coherent buffer Scratch { uint scratch[]; };
layout(push_constant) uniform Push { uint64_t n64; uint descending; };

/* Of eight digits and the eight behind them, in halves of a word, for each thread: digit by digit. */
shared uint counts[8 * THREADS];
shared uint sums[THREADS];
shared uint places[DIGITS];     /* where the next element of a digit goes */
shared uint begins[DIGITS + 1]; /* of a digit within the tile */

/* ---- keys as unsigned integers in the same order, and back ---- */

#define TOP (BITS(1) << (BYTES * 8 - 1))

#if defined(T_f16)
BITS bits_of(float v) { return half_store(v); }
#elif defined(T_f32)
BITS bits_of(float v) { return floatBitsToUint(v); }
#elif defined(T_f64)
BITS bits_of(double v)
{
    uvec2 bits = unpackDouble2x32(v);
    return uint64_t(bits.y) << 32 | uint64_t(bits.x);
}
#else
BITS bits_of(T v) { return BITS(v); }
#endif

BITS ordered(T v)
{
    BITS bits = bits_of(v);
#if defined(REAL)
    bits = is_nan(v) ? ~BITS(0) : (bits & TOP) != BITS(0) ? ~bits : bits | TOP;
#elif defined(SIGNED)
    bits ^= TOP;
#endif
    return descending != 0u ? ~bits : bits;
}

BITS back(BITS bits)
{
    if (descending != 0u)
        bits = ~bits;
#if defined(REAL)
    return (bits & TOP) != BITS(0) ? bits ^ TOP : ~bits;
#elif defined(SIGNED)
    return bits ^ TOP;
#else
    return bits;
#endif
}

/* ---- elements of a pass: the first reads x, the last writes keys, and so does every second one; those between use the integers ---- */

BITS key(uint i, uint pass)
{
    if (pass == 0u)
        return ordered(LOADED(x[i]));
    if ((pass & 1u) == 0u)
        return BITS(o[i]);
#if BYTES == 8
    return uint64_t(scratch[2u * i + 1u]) << 32 | uint64_t(scratch[2u * i]);
#else
    return scratch[i];
#endif
}

void put(uint from, uint to, BITS k, uint n, uint pass)
{
    bool into_out = (pass & 1u) != 0u;
#if defined(PAIRS)
    uint first = n * WORDS, value = pass == 0u ? values[from] : into_out ? scratch[first + from] : values_out[from];
    if (into_out)
        values_out[to] = value;
    else
        scratch[first + to] = value;
#endif
    if (into_out)
        o[to] = BITS_STORED(pass == PASSES - 1u ? back(k) : k);
    else {
#if BYTES == 8
        scratch[2u * to] = uint(k);
        scratch[2u * to + 1u] = uint(k >> 32);
#else
        scratch[to] = k;
#endif
    }
}

uint digit(BITS k, uint pass) { return uint(k >> (4u * pass)) & (DIGITS - 1u); }

/* ---- the threads together ---- */

void add_left(uint by)
{
    uint i = gl_LocalInvocationID.x;

    barrier();
    uint left = i >= by ? sums[i - by] : 0u;
    barrier();
    sums[i] += left;
}

/* The sum of the values of the threads before. */
uint sum_before(uint own)
{
    barrier();
    sums[gl_LocalInvocationID.x] = own;
    add_left(1u);
    add_left(2u);
    add_left(4u);
    add_left(8u);
    add_left(16u);
    add_left(32u);
    add_left(64u);
    add_left(128u);
    barrier();
    return sums[gl_LocalInvocationID.x] - own;
}

/* Makes places from how often each digit is there. */
void find_places(uint n, uint pass)
{
    uint own = gl_LocalInvocationID.x;

    if (own < DIGITS)
        places[own] = 0u;
    barrier();
    for (uint tile = 0u; tile < n; tile += 16u * THREADS) {
        uint at = tile + own;
#define COUNT(j) \
    if (at + j * THREADS < n) \
        atomicAdd(places[digit(key(at + j * THREADS, pass), pass)], 1u);
        SIXTEEN(COUNT)
    }
    barrier();
    uint count = own < DIGITS ? places[own] : 0u;
    uint before = sum_before(count);
    if (own < DIGITS)
        places[own] = before;
    barrier();
}

/* counts becomes, for each digit and thread, where the thread's first element of the digit goes within the tile. */
void scan_counts(uint in_tile)
{
    uint first = gl_LocalInvocationID.x * 8u, w;
    uint c0 = counts[first], c1 = counts[first + 1u], c2 = counts[first + 2u], c3 = counts[first + 3u], c4 = counts[first + 4u];
    uint c5 = counts[first + 5u], c6 = counts[first + 6u], c7 = counts[first + 7u];
    uint before = sum_before(c0 + c1 + c2 + c3 + c4 + c5 + c6 + c7);
    uint lower = sums[THREADS - 1] & 0xffffu; /* elements of the first eight digits */

    w = before + (lower << 16);
    counts[first] = w;
    counts[first + 1u] = w += c0;
    counts[first + 2u] = w += c1;
    counts[first + 3u] = w += c2;
    counts[first + 4u] = w += c3;
    counts[first + 5u] = w += c4;
    counts[first + 6u] = w += c5;
    counts[first + 7u] = w += c6;
    barrier();
    uint d = gl_LocalInvocationID.x;
    if (d < DIGITS)
        begins[d] = counts[(d & 7u) * THREADS] >> (d >> 3 << 4) & 0xffffu;
    if (d == DIGITS)
        begins[d] = in_tile;
    barrier();
}

void move_tile(uint tile, uint n, uint pass)
{
    uint own = gl_LocalInvocationID.x, at = tile + own * 16u;
    BITS keys[16];

#define CLEAR(j) counts[(j & 7) * THREADS + own] = 0u;
    SIXTEEN(CLEAR)
#define TAKE(j) \
    if (at + j < n) { \
        keys[j] = key(at + j, pass); \
        uint d = digit(keys[j], pass); \
        counts[(d & 7u) * THREADS + own] += 1u << (d >> 3 << 4); \
    }
    SIXTEEN(TAKE)
    barrier();
    scan_counts(min(n - tile, 16u * THREADS));
#define MOVE(j) \
    if (at + j < n) { \
        uint d = digit(keys[j], pass), half_word = d >> 3 << 4, c = (d & 7u) * THREADS + own; \
        put(at + j, places[d] - begins[d] + (counts[c] >> half_word & 0xffffu), keys[j], n, pass); \
        counts[c] += 1u << half_word; \
    }
    SIXTEEN(MOVE)
    barrier();
    if (own < DIGITS)
        places[own] += begins[own + 1u] - begins[own];
    barrier();
}

void main()
{
    uint n = uint(n64);

    for (uint pass = 0u; pass < PASSES; pass++) {
        find_places(n, pass);
        for (uint tile = 0u; tile < n; tile += 16u * THREADS)
            move_tile(tile, n, pass);
        memoryBarrierBuffer();
        barrier();
    }
}
