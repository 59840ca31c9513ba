/* Random numbers as shaders: the same Philox stream as random.cu, in u32, i32, u64, i64, f32, and uniform ones in f64.
 *
 * Method: Philox 4x32 with 10 rounds (Salmon, Moraes, Dror and Shaw, 2011). A thread makes the numbers of one counter at a time.
 * Numbers: bits, integers and uniform numbers are exactly those of other devices; normal ones are within some roundings of them. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#if defined(KERNEL_random_normal)
#include "real.glsl"
#include "circular.glsl"
#endif

/* Numbers from one counter. */
#if defined(KERNEL_random_integers) || BYTES == 8
#define EACH 2
#else
#define EACH 4
#endif

layout(binding = 0) writeonly buffer Out { T o[]; };
#if defined(KERNEL_random_integers)
layout(push_constant) uniform Push { uint64_t n, seed, offset; T low, high; };
#else
layout(push_constant) uniform Push { uint64_t n, seed, offset; };
#endif

uvec4 mixed(uvec4 c, uvec2 key)
{
    uint high0, low0, high2, low2;
    umulExtended(0xD2511F53u, c.x, high0, low0);
    umulExtended(0xCD9E8D57u, c.z, high2, low2);
    return uvec4(high2 ^ c.y ^ key.x, low2, high0 ^ c.w ^ key.y, low0);
}

uvec4 philox(uint64_t key, uint64_t counter)
{
    uvec2 k = uvec2(uint(key), uint(key >> 32)), by = uvec2(0x9E3779B9u, 0xBB67AE85u);
    uvec4 c = mixed(uvec4(uint(counter), uint(counter >> 32), 0u, 0u), k);
    c = mixed(c, k + by);
    c = mixed(c, k + 2u * by);
    c = mixed(c, k + 3u * by);
    c = mixed(c, k + 4u * by);
    c = mixed(c, k + 5u * by);
    c = mixed(c, k + 6u * by);
    c = mixed(c, k + 7u * by);
    c = mixed(c, k + 8u * by);
    return mixed(c, k + 9u * by);
}

void put(uint64_t at, T value)
{
    if (at < n)
        o[uint(at)] = value;
}

#if defined(KERNEL_random_integers)
/* The high half of bits * range. */
T within_range(uvec2 bits)
{
    uint64_t range = uint64_t(high) - uint64_t(low), r0 = range & 0xffffffffUL, r1 = range >> 32;
    uint64_t middle = bits.x * r0 + (bits.y * r0 >> 32), other = bits.y * r1 + (middle & 0xffffffffUL);
    return T(uint64_t(low) + bits.x * r1 + (middle >> 32) + (other >> 32));
}
void make(uint64_t at, uvec4 w)
{
    put(at, within_range(w.xy));
    put(at + 1UL, within_range(w.zw));
}
#elif defined(KERNEL_random_normal)
/* Box and Muller's: the angle is `w` turns, of which a quarter is taken away exactly. */
void make_pair(uint64_t at, uint of_radius, uint of_angle)
{
    float radius = sqrt(-2.0 * exact_log(1.0 - float(of_radius >> 8) * (1.0 / 16777216.0)));
    uint  angle = of_angle >> 8, quarter = (angle + 0x200000u) >> 22;
    float r = float(int(angle) - int(quarter << 22)) * (HALF_PI / 4194304.0);
    put(at, radius * sin_of(r, quarter + 1u));
    put(at + 1UL, radius * sin_of(r, quarter));
}
void make(uint64_t at, uvec4 w)
{
    make_pair(at, w.x, w.y);
    make_pair(at + 2UL, w.z, w.w);
}
#elif defined(T_f32)
float unit(uint w) { return float(w >> 8) * (1.0 / 16777216.0); }
void  make(uint64_t at, uvec4 w)
{
    put(at, unit(w.x));
    put(at + 1UL, unit(w.y));
    put(at + 2UL, unit(w.z));
    put(at + 3UL, unit(w.w));
}
#elif defined(T_f64)
/* Both halves are whole, so that no conversion rounds. */
double unit(uint high, uint low) { return (double(high) * 2097152.0LF + double(low >> 11)) * (1.0LF / 9007199254740992.0LF); }
void   make(uint64_t at, uvec4 w)
{
    put(at, unit(w.x, w.y));
    put(at + 1UL, unit(w.z, w.w));
}
#elif BYTES == 8
void make(uint64_t at, uvec4 w)
{
    put(at, T(uint64_t(w.x) << 32 | uint64_t(w.y)));
    put(at + 1UL, T(uint64_t(w.z) << 32 | uint64_t(w.w)));
}
#else
void make(uint64_t at, uvec4 w)
{
    put(at, T(w.x));
    put(at + 1UL, T(w.y));
    put(at + 2UL, T(w.z));
    put(at + 3UL, T(w.w));
}
#endif

void main()
{
    uint64_t first = offset / EACH, skipped = offset - first * EACH, groups = n > 0UL ? (skipped + n + uint64_t(EACH - 1)) / EACH : 0UL;

    for (uint64_t g = gl_GlobalInvocationID.x; g < groups; g += gl_NumWorkGroups.x * THREADS)
        make(g * EACH - skipped, philox(seed, first + g)); /* of those before the first place, which wraps around, none is put */
}
