/* A module of its own, libgpurest_llvm.so: the parts of LLVM that compile kernels, linked from its static libraries. It is a third of a
 * distribution's libLLVM, needs none of its other libraries, and takes a fourth of the memory in each worker. Nothing of it is part of the service's
 * executable: a worker opens it (llvm.c). */
#include "device/cpu/jit/llvm.h"

#define LLVM(result, name, arguments) extern result name arguments;
#include "device/cpu/jit/llvm.def"
#undef LLVM

extern const struct llvm gpurest_llvm __attribute__((visibility("default")));

const struct llvm gpurest_llvm = {
#define LLVM(result, name, arguments) .name = name,
#include "device/cpu/jit/llvm.def"
#undef LLVM
    .version = GPUREST_LLVM_VERSION,
};
