/* Launches: parameters by the kernel's own table, because programs give neither their number nor their sizes. */
#include "batch/batch.h"
#include "code/args.h"
#include "shim.h"

enum {
    DEVICE_MAX_THREADS = 1,
    DEVICE_BLOCK_X = 2,
    DEVICE_GRID_X = 5,
    DEVICE_SHARED_PER_BLOCK = 8,
    DEVICE_PROCESSORS = 16,

};
/* Tags in `extra`. */
#define EXTRA_END    ((void *)0)
#define EXTRA_BUFFER ((void *)1)
#define EXTRA_BYTES  ((void *)2)

static bool between(uint32_t value, int64_t most)
{
    return value >= 1 && (int64_t)value <= most;
}

/* CUDA finds these at once; the service would when the frame comes. */
CUresult launch_check(const struct function *f, const gpurest_launch_config *c)
{
    const int64_t *device = f->module->context->gpu->attributes;
    uint64_t       threads = (uint64_t)c->block.x * c->block.y * c->block.z;
    int64_t dynamic_max = f->dynamic_shared_max ? f->dynamic_shared_max : device[DEVICE_SHARED_PER_BLOCK] - (int64_t)f->info.shared_bytes;

    if (!between(c->grid.x, device[DEVICE_GRID_X]) || !between(c->grid.y, device[DEVICE_GRID_X + 1]) ||
        !between(c->grid.z, device[DEVICE_GRID_X + 2]) || !between(c->block.x, device[DEVICE_BLOCK_X]) ||
        !between(c->block.y, device[DEVICE_BLOCK_X + 1]) || !between(c->block.z, device[DEVICE_BLOCK_X + 2]) ||
        threads > (uint64_t)device[DEVICE_MAX_THREADS] || (int64_t)c->shared_bytes > dynamic_max)
        return CUDA_ERROR_INVALID_VALUE;
    if (threads <= f->info.max_threads)
        return CUDA_SUCCESS;
    /* Either the kernel's own bound (__launch_bounds__), or its registers: the service tells the lower one. */
    return occupancy_registers_suffice(f, (int64_t)threads) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

static CUresult args_of_pointers(const gpurest_kernel *k, void **pointers, gpurest_arg *out)
{
    for (size_t i = 0; i < k->params_count; i++) {
        if (!pointers || !pointers[i])
            return CUDA_ERROR_INVALID_VALUE;
        out[i] = gpurest_arg_host(GPUREST_ARG_BYTES, pointers[i], NULL, k->params[i].bytes);
    }
    return CUDA_SUCCESS;
}

static CUresult args_of_extra(const gpurest_kernel *k, void **extra, gpurest_arg *out)
{
    const void   *block = NULL;
    const size_t *bytes = NULL;

    for (; *extra != EXTRA_END; extra += 2) {
        if (*extra == EXTRA_BUFFER)
            block = extra[1];
        else if (*extra == EXTRA_BYTES)
            bytes = extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    return block && bytes && args_of_block(k, block, *bytes, out) == GPUREST_OK ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult launch_args(const gpurest_kernel *k, void **pointers, void **extra, gpurest_arg *out)
{
    bool block = extra && *extra != EXTRA_END;

    if (pointers && block)
        return CUDA_ERROR_INVALID_VALUE;
    return block ? args_of_extra(k, extra, out) : args_of_pointers(k, pointers, out);
}

CUresult launch_kernel(CUfunction function, const gpurest_launch_config *config, CUstream stream, void **params, void **extra)
{
    const struct function *f = function_of(function);
    gpurest_arg            args[PARAMS_MAX];
    struct launch          l = {.config = *config, .args = args};
    struct gpu            *g;
    gpurest_batch         *b;
    CUresult               r;

    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    g = f->module->context->gpu;
    if (g != context_current()->gpu)
        return CUDA_ERROR_INVALID_CONTEXT;
    r = stream_check(stream);
    if (!r && capture_on(stream))
        return capture_launch(stream, function, config, params, extra);
    l.kernel = f->kernel;
    l.args_count = f->kernel->params_count;
    r = r ? r : launch_check(f, config);
    r = r ? r : launch_args(f->kernel, params, extra, args);
    if (r)
        return r;
    b = queue_begin(g, 0, &r);
    return b ? queue_end(g, batch_launch(b, &l)) : r;
}

CUresult shim_cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
                             unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                             void **kernelParams, void **extra)
{
    gpurest_launch_config c = GPUREST_LAUNCH_CONFIG_INIT;

    c.grid = GPUREST_3D(gridDimX, gridDimY, gridDimZ);
    c.block = GPUREST_3D(blockDimX, blockDimY, blockDimZ);
    c.shared_bytes = sharedMemBytes;
    return launch_kernel(f, &c, hStream, kernelParams, extra);
}

/* How many blocks there is room for, the occupancy tells. */
static bool has_room(const struct function *f, CUfunction handle, const gpurest_launch_config *c)
{
    uint64_t blocks = (uint64_t)c->grid.x * c->grid.y * c->grid.z;
    int      resident = 0;

    return shim_cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, handle, (int)(c->block.x * c->block.y * c->block.z),
                                                            c->shared_bytes) == CUDA_SUCCESS &&
           blocks <= (uint64_t)resident * (uint64_t)f->module->context->gpu->attributes[DEVICE_PROCESSORS];
}

CUresult shim_cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
                                        CUstream hStream, void **kernelParams)
{
    gpurest_launch_config  c = GPUREST_LAUNCH_CONFIG_INIT;
    const struct function *function = function_of(f);
    CUresult               r;

    c.grid = GPUREST_3D(gridDimX, gridDimY, gridDimZ);
    c.block = GPUREST_3D(blockDimX, blockDimY, blockDimZ);
    c.shared_bytes = sharedMemBytes;
    c.cooperative = 1;
    r = function ? launch_check(function, &c) : CUDA_ERROR_INVALID_HANDLE;
    if (!r && !has_room(function, f, &c))
        r = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return r ? r : launch_kernel(f, &c, hStream, kernelParams, NULL);
}

/* Attributes that are preferences, or that say what is so anyway. */
enum {
    ATTRIBUTE_IGNORE = 0,
    ATTRIBUTE_COOPERATIVE = 2,
    ATTRIBUTE_STREAM_SERIALIZATION = 6,
    ATTRIBUTE_PRIORITY = 8,
    ATTRIBUTE_CARVEOUT = 14
};

static CUresult check_attributes(const CUlaunchConfig *config, bool *cooperative)
{
    *cooperative = false;
    for (unsigned i = 0; i < config->numAttrs; i++)
        switch (config->attrs[i].id) {
        case ATTRIBUTE_IGNORE:
        case ATTRIBUTE_STREAM_SERIALIZATION:
        case ATTRIBUTE_PRIORITY:
        case ATTRIBUTE_CARVEOUT:
            break;
        case ATTRIBUTE_COOPERATIVE:
            *cooperative = config->attrs[i].value.cooperative;
            break;
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    return CUDA_SUCCESS;
}

CUresult shim_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
    bool     cooperative;
    CUresult r;

    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    r = check_attributes(config, &cooperative);
    if (r)
        return r;
    if (cooperative)
        return shim_cuLaunchCooperativeKernel(f, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX, config->blockDimY,
                                              config->blockDimZ, config->sharedMemBytes, config->hStream, kernelParams);
    return shim_cuLaunchKernel(f, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX, config->blockDimY,
                               config->blockDimZ, config->sharedMemBytes, config->hStream, kernelParams, extra);
}
