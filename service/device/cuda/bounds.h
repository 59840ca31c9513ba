/* Bounds of device/cuda/ alone, each with its unit in its name. What a user meets, or several folders share, is in limits.h. */
#pragma once

#include "limits.h"

enum {
    DEVICE_ALLOCATIONS_MAX = 4 * BUFFERS_PER_SESSION_MAX, /* buffers and the temporary ones of batches */
    CUDA_GATHER_TEXELS_MAX = 32768, /* of an edge of a texture that tex2Dgather reads */
    FREE_WAIT_MS = 20, /* how long an allocation that found no memory waits for pending frees */
    MARKED_OTHERS_MAX = 16, /* launches of other kernels in a row, of which the last gets the graph: making one takes as long as some launches */
    MARKED_PARAM_BYTES_MAX = 4096, /* a launch with more of them does not become a graph with its mark: they were not tried there */
    JIT_LOG_BYTES = 8 * 1024,
    NVML_READ_MS_MAX = 250, /* a slower management library is not asked for NVML_REST_MS */
    NVML_REST_MS = 5000, /* a device that handles faults makes it slow for a while */
};
