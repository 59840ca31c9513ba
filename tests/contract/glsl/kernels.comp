// The kernels of ptx/kernels.ptx that Vulkan can have, with the same parameters: addresses stand in push constants. Compiled once for
// each, with its name as a macro; CMakeLists.txt says how.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float at[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Longs { uint64_t at[]; };

#if defined(vadd)
layout(push_constant) uniform Push { Floats a, b, c; uint n; };
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < n)
        c.at[i] = a.at[i] + b.at[i];
}
#elif defined(add)
layout(push_constant) uniform Push { Words p; uint n, k; };
void main()
{
    uint i = gl_GlobalInvocationID.x;
    if (i < n)
        p.at[i] = p.at[i] * 2 + k;
}
#elif defined(layout_)
struct Three { uint64_t x, y, z; };
layout(push_constant) uniform Push { uint8_t a; uint64_t b; Three s; uint16_t c; double d; Longs to; };
void main()
{
    to.at[0] = uint64_t(a);
    to.at[1] = b;
    to.at[2] = s.x;
    to.at[3] = s.y;
    to.at[4] = s.z;
    to.at[5] = uint64_t(c);
    to.at[6] = doubleBitsToUint64(d);
}
#elif defined(corners)
layout(push_constant) uniform Push { Words p; };
void main()
{
    atomicAdd(p.at[1], 1);
    if (gl_WorkGroupID == gl_NumWorkGroups - 1 && gl_LocalInvocationID.z == gl_WorkGroupSize.z - 1)
        atomicAdd(p.at[0], 1);
}
#elif defined(nothing)
void main()
{
}
#elif defined(illegal)
layout(push_constant) uniform Push { Words p; };
void main()
{
    p.at[0] = 1;
}
#elif defined(endless)
layout(push_constant) uniform Push { uint64_t p; };
shared uint never;
void main()
{
    never = uint(p);
    while (atomicAdd(never, 0) == 0)
        ;
}
#elif defined(loops)
layout(push_constant) uniform Push { Words p; uint n, m; };
void main()
{
    uint sum = 0;
    for (uint i = 0; i < n; i++)
        for (uint k = 0; k < m; k++)
            sum += p.at[1];
    p.at[0] = sum;
}
#elif defined(bound)
// Takes two bound buffers: to[i] = from[i] + k, for as many as the grid has threads, whatever the buffers have.
layout(binding = 3) readonly buffer From { uint at[]; } from;
layout(binding = 7) buffer To { uint at[]; } to;
layout(push_constant) uniform Push { uint k; };
void main()
{
    uint i = gl_GlobalInvocationID.x;
    to.at[i] = from.at[i] + k + (i == 0 ? to.at.length() : 0);
}
#endif
