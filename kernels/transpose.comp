/* Transposition of matrices and copies with strides as shaders, of elements of 16, 32 and 64 bits.
 *
 * Method: a tile of 64 x 32 elements, of 64 bits 32 x 32, goes through shared memory, so that both sides of the copy are read and written along rows.
 * Copies with strides take an element for each thread. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

/* Of a tile; the service counts those of 64 x 32 (kernels.def), and blocks go on. */
#define ACROSS 32u
#define DOWN (BYTES == 8 ? 32u : 64u)

layout(binding = 0) readonly buffer X { BITS_STORED x[]; };
layout(binding = 1) writeonly buffer Out { BITS_STORED o[]; };
#if defined(KERNEL_copy_strided)
layout(push_constant) uniform Push { uint64_t n0, n1, n2, n3, x0, x1, x2, x3, out0, out1, out2, out3; };

void main()
{
    uint across = uint(n3), down = uint(n2), deep = uint(n1), n = uint(n0 * n1 * n2 * n3);

    for (uint i = gl_GlobalInvocationID.x; i < n; i += gl_NumWorkGroups.x * THREADS) {
        uint i3 = i % across, rest = i / across, i2 = rest % down, i1 = rest / down % deep, i0 = rest / down / deep;
        o[i0 * uint(out0) + i1 * uint(out1) + i2 * uint(out2) + i3 * uint(out3)] = x[i0 * uint(x0) + i1 * uint(x1) + i2 * uint(x2) + i3 * uint(x3)];
    }
}
#else
layout(push_constant) uniform Push { uint64_t rows64, columns64, batch64; };
shared BITS tile[DOWN * (ACROSS + 1u)];

void main()
{
    uint rows = uint(rows64), columns = uint(columns64), batch = uint(batch64), own = gl_LocalInvocationID.x;
    uint tiles_x = (columns + ACROSS - 1u) / ACROSS, tiles_y = (rows + DOWN - 1u) / DOWN;

    for (uint b = gl_WorkGroupID.z; b < batch; b += gl_NumWorkGroups.z)
        for (uint ty = gl_WorkGroupID.y; ty < tiles_y; ty += gl_NumWorkGroups.y)
            for (uint tx = gl_WorkGroupID.x; tx < tiles_x; tx += gl_NumWorkGroups.x) {
                uint base = b * rows * columns;

                for (uint i = own; i < ACROSS * DOWN; i += THREADS) {
                    uint row = ty * DOWN + i / ACROSS, column = tx * ACROSS + i % ACROSS;
                    if (row < rows && column < columns)
                        tile[i / ACROSS * (ACROSS + 1u) + i % ACROSS] = BITS(x[base + row * columns + column]);
                }
                barrier();
                for (uint i = own; i < ACROSS * DOWN; i += THREADS) {
                    uint row = ty * DOWN + i % DOWN, column = tx * ACROSS + i / DOWN;
                    if (row < rows && column < columns)
                        o[base + column * rows + row] = BITS_STORED(tile[i % DOWN * (ACROSS + 1u) + i / DOWN]);
                }
                barrier();
            }
}
#endif
