/* Shared by the files of libcudart.so.13: the CUDA runtime on top of libcuda.so.1 of this folder's neighbour, by its visible functions alone.
 * Files above others: entry -> the files of calls -> symbol -> state. Thread safety: the driver's own, and symbol's lock. */
#ifndef GPUREST_SHIM_RUNTIME_H
#define GPUREST_SHIM_RUNTIME_H

#include <stdbool.h>
#include <string.h>

#include "types.h"

enum { RUNTIME_VERSION = 13000, CONFIGURATIONS_MAX = 32 };

enum {
#define ERROR(name, number, text) name = number,
#include "errors.def"
#undef ERROR
};

#define EXPORT        __attribute__((visibility("default")))
#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))
#define ADDRESS(p)    ((CUdeviceptr)(uintptr_t)(p))
#define POINTER(addr) ((void *)(uintptr_t)(addr))

/* ---- the driver ---- */

#define SUPPORTED(symbol, name, version, needs, parameters, names) CUresult symbol parameters;
#define REFUSED(symbol, name, version, needs, parameters, names)
#define SAME(symbol, name, version, other)
#include "../src/driver.def"
#undef SUPPORTED
#undef REFUSED
#undef SAME

/* ---- state.c: the device and the last error of each thread ---- */

enum needs { NEEDS_NOTHING, NEEDS_INIT, NEEDS_CONTEXT };

/* cudaSuccess: the call may go on. */
cudaError_t state_begin(enum needs needs);
/* Notes the result as the thread's error, if it is one; returns it. */
cudaError_t state_end(cudaError_t result);
/* One line on standard error. */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- symbol.c: kernels and variables that the program's code has registered under addresses of its own ---- */

/* A kernel of the current context. `kernel`: its registered address, what __cudaGetKernel() gave, or the driver's own handle. */
cudaError_t symbol_function(const void *kernel, CUfunction *out);
/* A variable of the current context. */
cudaError_t symbol_variable(const void *variable, CUdeviceptr *address, size_t *bytes);

/* ---- memory.c ---- */

cudaError_t memory_volume(const cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out);
/* The driver's types of memory of a copy. */
cudaError_t memory_types(cudaMemcpyKind kind, CUmemorytype *from, CUmemorytype *to);
/* The device's address of `count` bytes of a variable. */
cudaError_t memory_part(const void *variable, size_t offset, size_t count, void **out);

/* ---- array.c ---- */

/* The driver's format of a texel's channels. */
cudaError_t           array_format(const cudaChannelFormatDesc *d, CUarray_format *format, unsigned *channels);
cudaChannelFormatDesc array_channels(CUarray_format format, unsigned channels);
/* Bytes of a texel. */
cudaError_t array_texel(cudaArray_const_t array, size_t *out);

/* ---- the functions ---- */

#define SUPPORTED(symbol, needs, parameters, names)       cudaError_t run_##symbol parameters;
#define FORWARD(symbol, needs, parameters, names, driver) EXPORT cudaError_t symbol parameters;
#define OWN(symbol, needs, parameters, names)             EXPORT cudaError_t symbol parameters;
#define REFUSED(symbol, needs, parameters, names)
#define SAME(symbol, other)
#include "runtime.def"
#undef SUPPORTED
#undef FORWARD
#undef OWN
#undef REFUSED
#undef SAME

#endif
