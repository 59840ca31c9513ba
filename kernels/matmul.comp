/* Products of matrices as shaders, in f16, f32, i32, u32, f64, i64 and u64.
 *
 * Method: a block makes a tile of 32 x 32 results, four for each thread, from pieces of 32 x 16 and 16 x 32 in shared memory.
 * Numbers: real numbers are summed along k in their own type, of f16 in f32; integers wrap around. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

#define TILE 32u
#define DEPTH 16u

layout(binding = 0) readonly buffer A { STORED a[]; };
layout(binding = 1) readonly buffer B { STORED b[]; };
layout(binding = 2) writeonly buffer Out { STORED o[]; };
#if defined(KERNEL_matmul_strided)
layout(push_constant) uniform Push { uint64_t m64, n64, k64, batch64, lda64, ldb64, ldc64, a_batch, b_batch, out_batch; };
#define LDA uint(lda64)
#define LDB uint(ldb64)
#define LDC uint(ldc64)
#define A_BATCH uint(a_batch)
#define B_BATCH uint(b_batch)
#define OUT_BATCH uint(out_batch)
#else
layout(push_constant) uniform Push { uint64_t m64, n64, k64, batch64; };
#define LDA uint(k64)
#define LDB uint(n64)
#define LDC uint(n64)
#define A_BATCH uint(m64 * k64)
#define B_BATCH uint(k64 * n64)
#define OUT_BATCH uint(m64 * n64)
#endif
shared T left[TILE * (DEPTH + 1u)];
shared T right[DEPTH * TILE];

void load(uint matrix, uint row, uint column, uint at, uint m, uint n, uint k)
{
    for (uint i = gl_LocalInvocationID.x; i < TILE * DEPTH; i += THREADS) {
        uint r = i / DEPTH, c = i % DEPTH, y = i / TILE, z = i % TILE;
        left[r * (DEPTH + 1u) + c] = row + r < m && at + c < k ? LOADED(a[matrix * A_BATCH + (row + r) * LDA + at + c]) : T(0);
        right[y * TILE + z] = at + y < k && column + z < n ? LOADED(b[matrix * B_BATCH + (at + y) * LDB + column + z]) : T(0);
    }
}

void main()
{
    uint m = uint(m64), n = uint(n64), k = uint(k64), own = gl_LocalInvocationID.x;
    uint across = (n + TILE - 1u) / TILE, down = (m + TILE - 1u) / TILE, tiles = across * down * uint(batch64);
    uint x = own % 16u, y = own / 16u;

    for (uint t = gl_WorkGroupID.x; t < tiles; t += gl_NumWorkGroups.x) {
        uint matrix = t / (across * down), row = t / across % down * TILE, column = t % across * TILE;
        T    s00 = T(0), s01 = T(0), s10 = T(0), s11 = T(0);

        for (uint at = 0u; at < k; at += DEPTH) {
            load(matrix, row, column, at, m, n, k);
            barrier();
            for (uint i = 0u; i < DEPTH; i++) {
                T p = left[y * (DEPTH + 1u) + i], q = left[(y + 16u) * (DEPTH + 1u) + i], v = right[i * TILE + x], w = right[i * TILE + x + 16u];
                s00 += p * v;
                s01 += p * w;
                s10 += q * v;
                s11 += q * w;
            }
            barrier();
        }
        uint r = row + y, c = column + x, first = matrix * OUT_BATCH + r * LDC + c;
        if (r < m && c < n)
            o[first] = TO_STORED(s00);
        if (r < m && c + 16u < n)
            o[first + 16u] = TO_STORED(s01);
        if (r + 16u < m && c < n)
            o[first + 16u * LDC] = TO_STORED(s10);
        if (r + 16u < m && c + 16u < n)
            o[first + 16u * LDC + 16u] = TO_STORED(s11);
    }
}
