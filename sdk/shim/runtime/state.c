/* What the runtime keeps beside the driver: each thread's device and last error. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "runtime.h"

enum { MESSAGE_ROOM = 1024, DEVICE_FLAGS = 0xff };

static _Thread_local int         device;
static _Thread_local cudaError_t last_error;

void tell(const char *format, ...)
{
    char    text[MESSAGE_ROOM];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "gpurest: %s\n", text);
}

/* ---- around calls ---- */

/* Of all threads; again is fine. */
static cudaError_t initialize(void)
{
    static atomic_bool done;
    cudaError_t        r = atomic_load(&done) ? cudaSuccess : cuInit(0);

    if (!r)
        atomic_store(&done, true);
    return r;
}

/* The primary context of the thread's device becomes current. It is kept until the end of the process, as the genuine runtime does. */
static cudaError_t use_device(int wanted)
{
    CUcontext   primary;
    cudaError_t r = cuDevicePrimaryCtxRetain(&primary, wanted);

    return r ? r : cuCtxSetCurrent(primary);
}

/* A context that the program has made current by the driver's interface is used, too. One that is gone, by cudaDeviceReset(), is replaced. */
static cudaError_t bind(void)
{
    CUdevice    current;
    cudaError_t r = cuCtxGetDevice(&current);

    return r == CUDA_ERROR_INVALID_CONTEXT || r == CUDA_ERROR_CONTEXT_IS_DESTROYED ? use_device(device) : r;
}

cudaError_t state_begin(enum needs needs)
{
    cudaError_t r = needs == NEEDS_NOTHING ? cudaSuccess : initialize();

    return r || needs != NEEDS_CONTEXT ? r : bind();
}

cudaError_t state_end(cudaError_t result)
{
    if (result)
        last_error = result;
    return result;
}

/* ---- errors ---- */

cudaError_t cudaGetLastError(void)
{
    cudaError_t r = last_error;

    last_error = cudaSuccess;
    return r;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

static const struct {
    cudaError_t number;
    const char *name, *text;
} errors[] = {
#define ERROR(name, number, text) {number, #name, text},
#include "errors.def"
#undef ERROR
};

static size_t find(cudaError_t error)
{
    size_t i = 0;

    while (i < COUNT(errors) && errors[i].number != error)
        i++;
    return i;
}

EXPORT const char *cudaGetErrorName(cudaError_t error);
EXPORT const char *cudaGetErrorString(cudaError_t error);

const char *cudaGetErrorName(cudaError_t error)
{
    size_t i = find(error);

    return i < COUNT(errors) ? errors[i].name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    size_t i = find(error);

    return i < COUNT(errors) ? errors[i].text : "unrecognized error code";
}

/* ---- the thread's device ---- */

cudaError_t run_cudaSetDevice(int wanted)
{
    int         count = 0;
    cudaError_t r = cuDeviceGetCount(&count);

    if (!r && (wanted < 0 || wanted >= count))
        r = cudaErrorInvalidDevice;
    r = r ? r : use_device(wanted);
    if (!r)
        device = wanted;
    return r;
}

cudaError_t run_cudaGetDevice(int *out)
{
    CUdevice current;

    if (!out)
        return cudaErrorInvalidValue;
    *out = cuCtxGetDevice(&current) == CUDA_SUCCESS ? current : device;
    return cudaSuccess;
}

cudaError_t run_cudaInitDevice(int wanted, unsigned int deviceFlags, unsigned int flags)
{
    CUcontext   primary;
    cudaError_t r;

    if (flags & ~1u) /* 1: deviceFlags count */
        return cudaErrorInvalidValue;
    r = flags ? cuDevicePrimaryCtxSetFlags_v2(wanted, deviceFlags) : cudaSuccess;
    return r ? r : cuDevicePrimaryCtxRetain(&primary, wanted);
}

cudaError_t run_cudaSetDeviceFlags(unsigned int flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(device, flags & DEVICE_FLAGS);
}

cudaError_t run_cudaGetDeviceFlags(unsigned int *flags)
{
    int active;

    return flags ? cuDevicePrimaryCtxGetState(device, flags, &active) : cudaErrorInvalidValue;
}

cudaError_t run_cudaDeviceReset(void)
{
    CUcontext primary;
    int       current;

    run_cudaGetDevice(&current);
    if (cuDevicePrimaryCtxRetain(&primary, current) == CUDA_SUCCESS)
        symbol_forget(primary);
    return cuDevicePrimaryCtxReset_v2(current);
}
