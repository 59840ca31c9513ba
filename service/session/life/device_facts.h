/* What a session knows about its worker's device. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Constant for the life of a device; sizes in bytes. */
struct device_facts {
    char     arch[16];
    bool     compiles_cuda; /* from CUDA C++ */
    bool     wants_ptx;     /* code is loaded as PTX, not as a cubin */
    bool     wants_spirv;   /* code is SPIR-V, also from GLSL */
    bool     wants_amdgpu;  /* code is a code object for AMD GPUs, also from HIP C++ */
    bool     on_host;       /* the host's processors run the kernels */
    uint32_t multiprocessors;
    uint32_t max_threads_per_block;
    uint32_t max_block[3];
    uint32_t max_grid[3];
    uint64_t max_shared_bytes_per_block;
    uint32_t sharing;      /* enum device_sharing */
    uint64_t sharing_unit; /* bytes; sizes of shared allocations are multiples of it */
    uint32_t libraries;    /* that compute there: a bit for each enum builtin_library */
};
