/* For programs that use the runtime's interface as nvcc's output does: its functions, the calls that register code, and a check that says where a
 * call failed. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "types.h"

#define SUPPORTED(symbol, needs, parameters, names)       cudaError_t symbol parameters;
#define FORWARD(symbol, needs, parameters, names, driver) cudaError_t symbol parameters;
#define OWN(symbol, needs, parameters, names)             cudaError_t symbol parameters;
#define REFUSED(symbol, needs, parameters, names)         cudaError_t symbol(void);
#define SAME(symbol, other)
#include "runtime.def"
#undef SUPPORTED
#undef FORWARD
#undef OWN
#undef REFUSED
#undef SAME

enum {
#define ERROR(name, number, text) name = number,
#include "../../../sdk/shim/runtime/errors.def"
#undef ERROR
};

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
void      **__cudaRegisterFatBinary(void *image);
void        __cudaRegisterFatBinaryEnd(void **handle);
void        __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid, void *bid, dim3 *block,
                            dim3 *grid, int *warps);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext, size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext, size_t size, int constant, int global);
char __cudaInitModule(void **handle);
unsigned    __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *entry);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream);

static inline void expect_at(int line, const char *call, cudaError_t wanted, cudaError_t result)
{
    if (result == wanted)
        return;
    fprintf(stderr, "line %d: %s = %d (%s), expected %d\n", line, call, result, cudaGetErrorName(result), wanted);
    exit(1);
}
#define EXPECT(wanted, call) expect_at(__LINE__, #call, wanted, call)
#define OK(call)             EXPECT(cudaSuccess, call)
#define CHECK(condition)                                                                                                                   \
    do                                                                                                                                     \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);                                                                \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    while (0)

/* The image of kernels.c in a fatbin, in a wrapper: what nvcc puts into a program. */
struct fatbin_wrapper {
    int         magic, version;
    const void *fatbin, *unused;
};
const struct fatbin_wrapper *kernels_fatbin(void);
