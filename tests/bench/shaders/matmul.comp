/* c = a b of n x n numbers, n a multiple of 64. A block makes a tile of 64 x 64, a thread 4 x 4 of it; the next pieces of a and b are on
 * their way from memory while these are used. */
#version 450
layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer A { vec4 a[]; };
layout(binding = 1) readonly buffer B { vec4 b[]; };
layout(binding = 2) writeonly buffer C { vec4 c[]; };
layout(push_constant) uniform Push { uint n; };

#define DEPTH 16u
shared vec4 left[DEPTH][17]; /* by columns */
shared vec4 right[DEPTH][16];

void main()
{
    uint t = gl_LocalInvocationID.x, x = t % 16u, y = t / 16u, quads = n / 4u;
    uint from_a = (gl_WorkGroupID.y * 64u + t / 4u) * quads + t % 4u;
    uint from_b = y * quads + gl_WorkGroupID.x * 16u + x;
    vec4 next_a = a[from_a], next_b = b[from_b];
    vec4 s0 = vec4(0), s1 = vec4(0), s2 = vec4(0), s3 = vec4(0);

    for (uint k = 0u; k < n; k += DEPTH) {
        uint column = t % 4u * 4u, row = t / 4u;
        left[column][row / 4u][row % 4u] = next_a.x;
        left[column + 1u][row / 4u][row % 4u] = next_a.y;
        left[column + 2u][row / 4u][row % 4u] = next_a.z;
        left[column + 3u][row / 4u][row % 4u] = next_a.w;
        right[y][x] = next_b;
        barrier();
        if (k + DEPTH < n) {
            from_a += DEPTH / 4u;
            from_b += DEPTH * quads;
            next_a = a[from_a];
            next_b = b[from_b];
        }
        for (uint i = 0u; i < DEPTH; i++) {
            vec4 p = left[i][y], q = right[i][x];
            s0 += p.x * q;
            s1 += p.y * q;
            s2 += p.z * q;
            s3 += p.w * q;
        }
        barrier();
    }
    uint to = (gl_WorkGroupID.y * 64u + y * 4u) * quads + gl_WorkGroupID.x * 16u + x;
    c[to] = s0;
    c[to + quads] = s1;
    c[to + 2u * quads] = s2;
    c[to + 3u * quads] = s3;
}
