/* c = a + b, of n numbers, four at a time. */
#version 450
layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer A { vec4 a[]; };
layout(binding = 1) readonly buffer B { vec4 b[]; };
layout(binding = 2) writeonly buffer C { vec4 c[]; };
layout(push_constant) uniform Push { uint n; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < n / 4u)
        c[i] = a[i] + b[i];
}
