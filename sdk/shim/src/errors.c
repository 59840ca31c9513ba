/* Errors: names and texts of CUDA's, and which of them an error of the SDK is. */
#include <string.h>

#include "shim.h"

static const struct {
    CUresult    number;
    const char *name, *text;
} errors[] = {
#define ERROR(name, number, text) {number, #name, text},
#include "errors.def"
#undef ERROR
};

static size_t find(CUresult error)
{
    size_t i = 0;

    while (i < COUNT(errors) && errors[i].number != error)
        i++;
    return i;
}

CUresult shim_cuGetErrorName(CUresult error, const char **pStr)
{
    size_t i = find(error);

    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = i < COUNT(errors) ? errors[i].name : NULL;
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuGetErrorString(CUresult error, const char **pStr)
{
    size_t i = find(error);

    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = i < COUNT(errors) ? errors[i].text : NULL;
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static const struct {
    gpurest_status status;
    CUresult       result;
} statuses[] = {
    {GPUREST_E_INVAL, CUDA_ERROR_INVALID_VALUE},
    {GPUREST_E_NOMEM_HOST, CUDA_ERROR_OUT_OF_MEMORY},
    {GPUREST_E_CONNECT, CUDA_ERROR_DEVICE_UNAVAILABLE},
    {GPUREST_E_TIMEOUT, CUDA_ERROR_DEVICE_UNAVAILABLE},
    {GPUREST_E_AUTH, CUDA_ERROR_NOT_PERMITTED},
    {GPUREST_E_NOTFOUND, CUDA_ERROR_NOT_FOUND},
    {GPUREST_E_BUSY, CUDA_ERROR_DEVICE_UNAVAILABLE},
    {GPUREST_E_OOM_DEVICE, CUDA_ERROR_OUT_OF_MEMORY},
    {GPUREST_E_COMPILE, CUDA_ERROR_INVALID_PTX},
    {GPUREST_E_CUDA, CUDA_ERROR_LAUNCH_FAILED},
    {GPUREST_E_SESSION_LOST, CUDA_ERROR_DEVICE_UNAVAILABLE},
    {GPUREST_E_CANCELLED, CUDA_ERROR_LAUNCH_FAILED},
    {GPUREST_E_UNSUPPORTED, CUDA_ERROR_NOT_SUPPORTED},
    {GPUREST_E_FORK, CUDA_ERROR_NOT_INITIALIZED},
    {GPUREST_E_LIMIT, CUDA_ERROR_OUT_OF_MEMORY},
};

CUresult result_of_failure(void)
{
    const gpurest_error *e = gpurest_last_error();

    if (strcmp(e->code, "execution_timeout") == 0)
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    if (e->cuda_result > 0)
        return e->cuda_result;
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (statuses[i].status == e->status)
            return statuses[i].result;
    return CUDA_ERROR_UNKNOWN;
}
