/* The sum of n numbers: each block's goes to to[block]. Dispatched again with one block, it adds these up. */
#version 450
layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer From { float from[]; };
layout(binding = 1) writeonly buffer To { float to[]; };
layout(push_constant) uniform Push { uint n; };
shared float part[256];

void main()
{
    uint  t = gl_LocalInvocationID.x;
    float sum = 0.0;

    for (uint i = gl_GlobalInvocationID.x; i < n; i += 256u * gl_NumWorkGroups.x)
        sum += from[i];
    part[t] = sum;
    barrier();
    for (uint step = 128u; step > 0u; step /= 2u) {
        if (t < step)
            part[t] += part[t + step];
        barrier();
    }
    if (t == 0u)
        to[gl_WorkGroupID.x] = part[0];
}
