/* Occupancy, computed here of the kernel's and the device's figures. Registers are given out in units, as on devices since compute capability 7. */
#include "shim.h"

enum {
    DEVICE_MAX_THREADS = 1,
    DEVICE_SHARED_PER_BLOCK = 8,
    DEVICE_WARP = 10,
    DEVICE_REGISTERS_PER_BLOCK = 12,
    DEVICE_PROCESSORS = 16,
    DEVICE_THREADS_PER_PROCESSOR = 39,
    DEVICE_SHARED_PER_PROCESSOR = 81,
    DEVICE_REGISTERS_PER_PROCESSOR = 82,
    DEVICE_BLOCKS_PER_PROCESSOR = 106,
    DEVICE_SHARED_RESERVED = 111,
    REGISTER_UNIT = 256,
    SHARED_UNIT = 128,
    PARTS = 4, /* of a processor: a warp's registers are all in one */
    OCCUPANCY_FLAGS = 1,
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static int64_t shared_of(const struct function *f, size_t dynamic)
{
    return round_up((int64_t)f->info.shared_bytes + (int64_t)dynamic + f->module->context->gpu->attributes[DEVICE_SHARED_RESERVED],
                    SHARED_UNIT);
}

static int64_t warp_of(const int64_t *device)
{
    return device[DEVICE_WARP] ? device[DEVICE_WARP] : 32;
}

static int64_t registers_per_warp(const struct function *f)
{
    return round_up((int64_t)f->info.registers * warp_of(f->module->context->gpu->attributes), REGISTER_UNIT);
}

bool occupancy_registers_suffice(const struct function *f, int64_t threads)
{
    const int64_t *d = f->module->context->gpu->attributes;

    return round_up(threads, warp_of(d)) / warp_of(d) * registers_per_warp(f) <= d[DEVICE_REGISTERS_PER_BLOCK];
}

static int64_t blocks_of(const struct function *f, int block, size_t dynamic)
{
    const int64_t *d = f->module->context->gpu->attributes;
    int64_t        warp = warp_of(d), warps = (block + warp - 1) / warp, blocks = d[DEVICE_THREADS_PER_PROCESSOR] / (warps * warp);
    int64_t        registers = registers_per_warp(f), shared = shared_of(f, dynamic);

    if (block > (int)f->info.max_threads)
        return 0;
    if (d[DEVICE_BLOCKS_PER_PROCESSOR])
        blocks = least(blocks, d[DEVICE_BLOCKS_PER_PROCESSOR]);
    if (registers)
        blocks = least(blocks, d[DEVICE_REGISTERS_PER_PROCESSOR] / PARTS / registers * PARTS / warps);
    if (shared)
        blocks = least(blocks, d[DEVICE_SHARED_PER_PROCESSOR] / shared);
    return blocks;
}

CUresult shim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize)
{
    const struct function *f = function_of(func);

    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!numBlocks || blockSize <= 0 || dynamicSMemSize > INT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *numBlocks = (int)blocks_of(f, blockSize, dynamicSMemSize);
    return CUDA_SUCCESS;
}

CUresult shim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize,
                                                                   unsigned int flags)
{
    return flags & ~(unsigned)OCCUPANCY_FLAGS
               ? CUDA_ERROR_INVALID_VALUE
               : shim_cuOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, func, blockSize, dynamicSMemSize);
}

/* The largest block among those with the most threads at once. */
CUresult shim_cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                               CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit)
{
    const struct function *f = function_of(func);
    int64_t                warp, most, best = 0, best_blocks = 0, best_size = 0;

    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!minGridSize || !blockSize || blockSizeLimit < 0)
        return CUDA_ERROR_INVALID_VALUE;
    warp = warp_of(f->module->context->gpu->attributes);
    most = least(f->info.max_threads, f->module->context->gpu->attributes[DEVICE_MAX_THREADS]);
    if (blockSizeLimit)
        most = least(most, blockSizeLimit);
    for (int64_t rounded = round_up(most, warp); rounded > 0; rounded -= warp) {
        int64_t size = least(rounded, most);
        size_t  dynamic = blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize((int)size) : dynamicSMemSize;
        int64_t blocks = blocks_of(f, (int)size, dynamic);

        if (blocks * size > best) {
            best = blocks * size;
            best_blocks = blocks;
            best_size = size;
        }
    }
    *minGridSize = (int)(best_blocks * f->module->context->gpu->attributes[DEVICE_PROCESSORS]);
    *blockSize = (int)best_size;
    return CUDA_SUCCESS;
}

CUresult shim_cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
                                                        CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
                                                        int blockSizeLimit, unsigned int flags)
{
    return flags & ~(unsigned)OCCUPANCY_FLAGS
               ? CUDA_ERROR_INVALID_VALUE
               : shim_cuOccupancyMaxPotentialBlockSize(minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize,
                                                       blockSizeLimit);
}

CUresult shim_cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func, int numBlocks, int blockSize)
{
    const struct function *f = function_of(func);
    const int64_t         *d;
    int64_t                share;

    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    d = f->module->context->gpu->attributes;
    share =
        d[DEVICE_SHARED_PER_PROCESSOR] / numBlocks / SHARED_UNIT * SHARED_UNIT - d[DEVICE_SHARED_RESERVED] - (int64_t)f->info.shared_bytes;
    share = least(share, d[DEVICE_SHARED_PER_BLOCK] - (int64_t)f->info.shared_bytes);
    *dynamicSmemSize = share > 0 ? (size_t)share : 0;
    return CUDA_SUCCESS;
}
