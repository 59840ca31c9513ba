/* Launches, and what is asked about kernels. */
#include "runtime.h"

enum {
    DEVICE_MAX_THREADS = 1,
    DEVICE_BLOCK_X = 2,
    DEVICE_GRID_X = 5,
};

/* ---- the configuration between <<<>>> ---- */

struct configuration {
    dim3         grid, block;
    size_t       shared_bytes;
    cudaStream_t stream;
};

static _Thread_local struct configuration stack[CONFIGURATIONS_MAX];
static _Thread_local unsigned             depth;

EXPORT unsigned    __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream);
EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream);

/* Not 0: the launch is left out. */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream)
{
    if (depth == CONFIGURATIONS_MAX)
        return 1;
    stack[depth++] = (struct configuration){grid, block, shared_bytes, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    const struct configuration *c;

    if (depth == 0)
        return state_end(cudaErrorMissingConfiguration);
    c = &stack[--depth];
    *grid = c->grid;
    *block = c->block;
    *shared_bytes = c->shared_bytes;
    memcpy(stream, &c->stream, sizeof c->stream);
    return cudaSuccess;
}

/* ---- launches ---- */

static bool within(const unsigned *sizes, int first_attribute, CUdevice device)
{
    int most = 0;

    for (int i = 0; i < 3; i++)
        if (cuDeviceGetAttribute(&most, first_attribute + i, device) || sizes[i] == 0 || sizes[i] > (unsigned)most)
            return false;
    return true;
}

/* What the driver calls an invalid value has an error of its own in the runtime if it is the shape. Of the driver's own handles it does not. */
static cudaError_t explain(cudaError_t r, bool of_symbol, dim3 grid, dim3 block)
{
    unsigned g[] = {grid.x, grid.y, grid.z}, b[] = {block.x, block.y, block.z};
    CUdevice device;
    int      threads = 0;

    if (r != cudaErrorInvalidValue || !of_symbol || cuCtxGetDevice(&device) || cuDeviceGetAttribute(&threads, DEVICE_MAX_THREADS, device))
        return r;
    return within(g, DEVICE_GRID_X, device) && within(b, DEVICE_BLOCK_X, device) && (uint64_t)b[0] * b[1] * b[2] <= (uint64_t)threads
               ? r
               : cudaErrorInvalidConfiguration;
}

static bool is_symbol(const void *func, CUfunction f)
{
    return memcmp(&func, &f, sizeof f) != 0;
}

static cudaError_t launch(CUfunction f, bool of_symbol, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream)
{
    return explain(cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared_bytes, stream, args, NULL),
                   of_symbol, grid, block);
}

cudaError_t run_cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream)
{
    CUfunction  f;
    cudaError_t r = sharedMem > UINT32_MAX ? cudaErrorInvalidValue : symbol_function(func, &f);

    return r ? r : launch(f, is_symbol(func, f), gridDim, blockDim, args, sharedMem, stream);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream)
{
    CUfunction  f;
    cudaError_t r = state_begin(NEEDS_CONTEXT);

    if (!r)
        r = shared_bytes > UINT32_MAX ? cudaErrorInvalidValue : symbol_function(kernel, &f);
    return state_end(r ? r : launch(f, true, grid, block, args, shared_bytes, stream)); /* of <<<>>> */
}
__asm__(".globl __cudaLaunchKernel_ptsz\n.set __cudaLaunchKernel_ptsz, __cudaLaunchKernel\n.type __cudaLaunchKernel_ptsz, %function");

cudaError_t run_cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                                            cudaStream_t stream)
{
    CUfunction  f;
    cudaError_t r = sharedMem > UINT32_MAX ? cudaErrorInvalidValue : symbol_function(func, &f);

    return r ? r
             : explain(cuLaunchCooperativeKernel(f, gridDim.x, gridDim.y, gridDim.z, blockDim.x, blockDim.y, blockDim.z,
                                                 (unsigned)sharedMem, stream, args),
                       is_symbol(func, f), gridDim, blockDim);
}

cudaError_t run_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
    CUlaunchConfig c;
    CUfunction     f;
    cudaError_t    r;

    if (!config || config->dynamicSmemBytes > UINT32_MAX)
        return cudaErrorInvalidValue;
    c = (CUlaunchConfig){.gridDimX = config->gridDim.x,
                         .gridDimY = config->gridDim.y,
                         .gridDimZ = config->gridDim.z,
                         .blockDimX = config->blockDim.x,
                         .blockDimY = config->blockDim.y,
                         .blockDimZ = config->blockDim.z,
                         .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
                         .hStream = config->stream,
                         .attrs = config->attrs,
                         .numAttrs = config->numAttrs};
    r = symbol_function(func, &f);
    return r ? r : explain(cuLaunchKernelEx(&c, f, args, NULL), is_symbol(func, f), config->gridDim, config->blockDim);
}

/* ---- kernels ---- */

static const struct {
    int    number;
    size_t offset;
} int_attributes[] = {
    {FUNCTION_MAX_THREADS, offsetof(cudaFuncAttributes, maxThreadsPerBlock)},
    {FUNCTION_REGISTERS, offsetof(cudaFuncAttributes, numRegs)},
    {FUNCTION_PTX_VERSION, offsetof(cudaFuncAttributes, ptxVersion)},
    {FUNCTION_BINARY_VERSION, offsetof(cudaFuncAttributes, binaryVersion)},
    {FUNCTION_CACHE_MODE, offsetof(cudaFuncAttributes, cacheModeCA)},
    {FUNCTION_DYNAMIC_SHARED_MAX, offsetof(cudaFuncAttributes, maxDynamicSharedSizeBytes)},
    {FUNCTION_CARVEOUT, offsetof(cudaFuncAttributes, preferredShmemCarveout)},
};
static const struct {
    int    number;
    size_t offset;
} size_attributes[] = {
    {FUNCTION_SHARED_BYTES, offsetof(cudaFuncAttributes, sharedSizeBytes)},
    {FUNCTION_CONST_BYTES, offsetof(cudaFuncAttributes, constSizeBytes)},
    {FUNCTION_LOCAL_BYTES, offsetof(cudaFuncAttributes, localSizeBytes)},
};

cudaError_t run_cudaFuncGetAttributes(cudaFuncAttributes *attr, const void *func)
{
    CUfunction  f;
    cudaError_t r = attr ? symbol_function(func, &f) : cudaErrorInvalidValue;
    int         value = 0;

    if (r)
        return r;
    memset(attr, 0, sizeof *attr);
    for (size_t i = 0; i < COUNT(int_attributes) && !r; i++) {
        r = cuFuncGetAttribute(&value, int_attributes[i].number, f);
        memcpy((char *)attr + int_attributes[i].offset, &value, sizeof value);
    }
    for (size_t i = 0; i < COUNT(size_attributes) && !r; i++) {
        size_t bytes;

        r = cuFuncGetAttribute(&value, size_attributes[i].number, f);
        bytes = (size_t)value;
        memcpy((char *)attr + size_attributes[i].offset, &bytes, sizeof bytes);
    }
    return r;
}

cudaError_t run_cudaFuncSetAttribute(const void *func, cudaFuncAttribute attr, int value)
{
    CUfunction  f;
    cudaError_t r = symbol_function(func, &f);

    return r ? r : cuFuncSetAttribute(f, attr, value);
}

cudaError_t run_cudaFuncSetCacheConfig(const void *func, cudaFuncCache cacheConfig)
{
    CUfunction  f;
    cudaError_t r = symbol_function(func, &f);

    return r ? r : cuFuncSetCacheConfig(f, cacheConfig);
}

/* Banks of shared memory have four bytes on every device since compute capability 5. */
enum { BANKS_OF_FOUR_BYTES = 1, BANKS_LAST = 2 };

cudaError_t run_cudaFuncSetSharedMemConfig(const void *func, cudaSharedMemConfig config)
{
    CUfunction f;

    return config < 0 || config > BANKS_LAST ? cudaErrorInvalidValue : symbol_function(func, &f);
}

cudaError_t run_cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config)
{
    return config < 0 || config > BANKS_LAST ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t run_cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *pConfig)
{
    if (!pConfig)
        return cudaErrorInvalidValue;
    *pConfig = BANKS_OF_FOUR_BYTES;
    return cudaSuccess;
}

cudaError_t run_cudaFuncGetName(const char **name, const void *func)
{
    CUfunction  f;
    cudaError_t r = symbol_function(func, &f);

    return r ? r : cuFuncGetName(name, f);
}

cudaError_t run_cudaFuncGetParamInfo(const void *func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
    CUfunction  f;
    cudaError_t r = symbol_function(func, &f);

    return r ? r : cuFuncGetParamInfo(f, paramIndex, paramOffset, paramSize);
}

cudaError_t run_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize)
{
    CUfunction  f;
    cudaError_t r = symbol_function(func, &f);

    return r ? r : cuOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, f, blockSize, dynamicSMemSize);
}

cudaError_t run_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, const void *func, int blockSize,
                                                                       size_t dynamicSMemSize, unsigned int flags)
{
    CUfunction  f;
    cudaError_t r = symbol_function(func, &f);

    return r ? r : cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, f, blockSize, dynamicSMemSize, flags);
}

cudaError_t run_cudaOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, const void *func, int numBlocks, int blockSize)
{
    CUfunction  f;
    cudaError_t r = symbol_function(func, &f);

    return r ? r : cuOccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize, f, numBlocks, blockSize);
}
