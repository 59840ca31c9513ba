/* Launches as before CUDA 4, which PyCUDA still makes: the function itself holds block, parameters and shared memory for its next launch. */
#include <string.h>

#include "shim.h"

static bool has_room(size_t offset, size_t bytes)
{
    return offset <= LEGACY_PARAMS_BYTES && bytes <= LEGACY_PARAMS_BYTES - offset;
}

CUresult shim_cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
    struct function *f = function_of(hfunc);

    if (!f || x <= 0 || y <= 0 || z <= 0)
        return f ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    f->legacy.block[0] = (unsigned)x;
    f->legacy.block[1] = (unsigned)y;
    f->legacy.block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

CUresult shim_cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
    struct function *f = function_of(hfunc);

    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    f->legacy.shared_bytes = bytes;
    return CUDA_SUCCESS;
}

CUresult shim_cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
    struct function *f = function_of(hfunc);

    if (!f || !has_room(0, numbytes))
        return f ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    f->legacy.params_bytes = numbytes;
    return CUDA_SUCCESS;
}

CUresult shim_cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
    struct function *f = function_of(hfunc);

    if (!f || !ptr || offset < 0 || !has_room((size_t)offset, numbytes))
        return f ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    memcpy(f->legacy.params + offset, ptr, numbytes);
    return CUDA_SUCCESS;
}

CUresult shim_cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
    return shim_cuParamSetv(hfunc, offset, &value, sizeof value);
}

CUresult shim_cuParamSetf(CUfunction hfunc, int offset, float value)
{
    return shim_cuParamSetv(hfunc, offset, &value, sizeof value);
}

/* Parameters end where the last one does, which cuParamSetSize() may have rounded. */
static CUresult launch(CUfunction hfunc, int width, int height, CUstream stream)
{
    struct function      *f = function_of(hfunc);
    gpurest_launch_config c = GPUREST_LAUNCH_CONFIG_INIT;
    size_t                bytes = f ? f->legacy.params_bytes : 0;
    void                 *extra[] = {(void *)1, f ? f->legacy.params : NULL, (void *)2, &bytes, NULL};

    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (width <= 0 || height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    c.grid = GPUREST_3D((unsigned)width, (unsigned)height, 1);
    c.block = GPUREST_3D(f->legacy.block[0], f->legacy.block[1], f->legacy.block[2]);
    c.shared_bytes = f->legacy.shared_bytes;
    return launch_kernel(hfunc, &c, stream, NULL, extra);
}

CUresult shim_cuLaunch(CUfunction f)
{
    return launch(f, 1, 1, NULL);
}

CUresult shim_cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
    return launch(f, grid_width, grid_height, NULL);
}

CUresult shim_cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
    return launch(f, grid_width, grid_height, hStream);
}
