// The canary of the vulkan device: out[i] = in[i] * 3 + 7. canary.h has its SPIR-V; tests/unit/device/vulkan compares them.
#version 450
layout(local_size_x = 128) in;
layout(binding = 0) readonly buffer In { uint numbers[]; } given;
layout(binding = 1) writeonly buffer Out { uint numbers[]; } made;
layout(push_constant) uniform Push { uint count; };
void main()
{
    uint i = gl_GlobalInvocationID.x;

    if (i < count)
        made.numbers[i] = given.numbers[i] * 3 + 7;
}
