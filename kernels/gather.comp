/* Rows of a matrix taken by index, and put by index, as shaders, of elements of 16, 32 and 64 bits, which scatter_add takes of the latter two.
 *
 * Method: threads go along the rows that move. A negative index counts from the end. An index out of range writes to an address that no memory has:
 * where the device answers that with a fault, as lavapipe does, it ends the launch and its session; on any other, such a row is not written.
 * scatter with an index that occurs twice leaves one of the rows; scatter_add adds all of them, in no fixed order. */
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#include "common.glsl"
#if BYTES == 8 && defined(KERNEL_scatter_add)
#extension GL_EXT_shader_atomic_int64 : require
#endif

#if defined(KERNEL_gather)
layout(binding = 0) readonly buffer X { BITS_STORED x[]; };
layout(binding = 2) writeonly buffer Out { BITS_STORED o[]; };
#else
layout(binding = 0) readonly buffer X { BITS_STORED x[]; };
layout(binding = 2) buffer Out { BITS_STORED o[]; };
#endif
layout(binding = 1) readonly buffer Index { int64_t index[]; };
layout(push_constant) uniform Push { uint64_t count, rows, width64; };
layout(buffer_reference, std430) buffer Nowhere { uint word; };

#if defined(KERNEL_scatter_add)
#if defined(T_f32)
#define ADDED(old, by) floatBitsToUint(uintBitsToFloat(old) + uintBitsToFloat(by))
#elif defined(T_f64)
#define ADDED(old, by) bits_of(double_of(old) + double_of(by))
double   double_of(uint64_t bits) { return packDouble2x32(uvec2(uint(bits), uint(bits >> 32))); }
uint64_t bits_of(double x)
{
    uvec2 bits = unpackDouble2x32(x);
    return uint64_t(bits.y) << 32 | uint64_t(bits.x);
}
#endif
void add_to(uint at, BITS by)
{
#if defined(ADDED)
    BITS old = o[at], seen = ~old;
    for (; seen != old;) { /* as often as others are faster */
        seen = old;
        old = atomicCompSwap(o[at], seen, ADDED(seen, by));
    }
#else
    atomicAdd(o[at], by);
#endif
}
#endif

void main()
{
    uint width = uint(width64), all = uint(count) * width;

    for (uint i = gl_GlobalInvocationID.x; i < all; i += gl_NumWorkGroups.x * THREADS) {
        uint     row = i / width;
        int64_t  at = index[row];
        uint64_t place = uint64_t(at < 0L ? at + int64_t(rows) : at);
        if (place >= rows) {
            Nowhere nowhere = Nowhere(uint64_t(64));
            nowhere.word = row;
            continue;
        }
        uint there = uint(place) * width + (i - row * width);
#if defined(KERNEL_gather)
        o[i] = x[there];
#elif defined(KERNEL_scatter)
        o[there] = x[i];
#else
        add_to(there, x[i]);
#endif
    }
}
