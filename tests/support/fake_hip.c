/* The fake driver under the names of HIP: functions that agree are the same ones (CMakeLists.txt names them so), the others are here.
 * Its script has CUDA's names. The device is a gfx90a. */
#include "support/fake_cuda.h"

#include <stdio.h>
#include <string.h>

enum { LAUNCH_END = 3, ARCH_AT = 1160, ERROR_INVALID_CONFIGURATION = 9, BLOCK_THREADS_MAX = 1024, SHARED_BYTES_MAX = 65536 };

#define OWN(name, need, result, arguments) FAKE_EXPORT result name arguments;
#define SHARED(member, symbol, need)
#include "device/hip/functions.def"
#undef OWN
#undef SHARED

/* Some releases say so where there is no device. */
cuda_result hipInit(unsigned flags)
{
    cuda_result r = cuInit(flags);

    return r == CUDA_RESULT_ERROR_NO_DEVICE ? CUDA_RESULT_ERROR_INVALID_DEVICE : r;
}

cuda_result hipSetDevice(int device)
{
    cuda_ordinal ordinal;

    return cuDeviceGet(&ordinal, device);
}

const char *hipGetErrorName(cuda_result result)
{
    return result == CUDA_RESULT_ERROR_ILLEGAL_ADDRESS ? "hipErrorIllegalAddress"
           : result == CUDA_RESULT_ERROR_OUT_OF_MEMORY ? "hipErrorOutOfMemory"
           : result == CUDA_RESULT_ERROR_INVALID_VALUE ? "hipErrorInvalidValue"
                                                       : "hipErrorUnknown";
}

/* By the numbers of hip_runtime_api.h. */
cuda_result hipDeviceGetAttribute(int *value, unsigned attribute, int device)
{
    static const struct {
        unsigned number;
        int      value;
    } known[] = {{5, 1700000},
                 {16, 0},
                 {19, 8 << 20},
                 {23, 9},
                 {26, 1024},
                 {27, 1024},
                 {28, 1024},
                 {29, 2147483647},
                 {30, 65536},
                 {31, 65536},
                 {56, BLOCK_THREADS_MAX},
                 {60, 1600000},
                 {61, 0},
                 {63, 104},
                 {74, SHARED_BYTES_MAX},
                 {85, 1},
                 {87, 64}};
    cuda_result r = fake_step_free("cuDeviceGetAttribute");

    (void)device;
    for (size_t i = 0; i < sizeof known / sizeof known[0] && !r; i++)
        if (known[i].number == attribute) {
            *value = known[i].value;
            return CUDA_RESULT_SUCCESS;
        }
    return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
}

cuda_result hipModuleLaunchKernel(cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                  unsigned block_y, unsigned block_z, unsigned shared_bytes, cuda_stream stream, void **params,
                                  void **extra)
{
    void *words[5] = {0};

    if ((uint64_t)grid_x * block_x > UINT32_MAX || block_x * block_y * block_z > BLOCK_THREADS_MAX)
        return ERROR_INVALID_CONFIGURATION;
    if (extra && (extra[0] != CUDA_LAUNCH_BUFFER || extra[2] != CUDA_LAUNCH_BYTES || extra[4] != (void *)LAUNCH_END))
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    if (extra)
        memcpy(words, extra, 4 * sizeof words[0]);
    if (shared_bytes <= SHARED_BYTES_MAX) /* none has to be asked for */
        function->dynamic_shared_bytes = (int)shared_bytes;
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params, extra ? words : NULL);
}

cuda_result hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block, cuda_function function, size_t shared_bytes, int block_limit)
{
    return cuOccupancyMaxPotentialBlockSize(grid, block, function, NULL, shared_bytes, block_limit);
}

cuda_result hipGetDevicePropertiesR0600(void *properties, int device)
{
    (void)device;
    snprintf((char *)properties + ARCH_AT, 256, "gfx90a:sramecc+:xnack-");
    return CUDA_RESULT_SUCCESS;
}

/* As libraries have it for programs that were built before: nothing may ask it where the other is. */
cuda_result hipGetDeviceProperties(void *properties, int device)
{
    (void)properties, (void)device;
    return CUDA_RESULT_ERROR_NOT_SUPPORTED;
}
