/* For the latency of a launch. */
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) writeonly buffer To { float to[]; };

void main()
{
    to[0] = 1.0;
}
