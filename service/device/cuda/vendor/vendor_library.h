/* Libraries of the GPU's maker, loaded at run time where a machine has them. Not thread-safe: one thread of a worker uses them. */
#ifndef GPUREST_DEVICE_CUDA_VENDOR_VENDOR_LIBRARY_H
#define GPUREST_DEVICE_CUDA_VENDOR_VENDOR_LIBRARY_H

#include "device/cuda/vendor/cublaslt_abi.h"
#include "device/cuda/vendor/cufft_abi.h"

#include <stdbool.h>

/* Loads what device_cuda_vendor() named, for the life of the process. It opens files: call it before the lock-down. */
void vendor_libraries_load(void);

/* NULL: not loaded. Borrowed for the life of the process. */
const struct cublaslt_functions *cublaslt_functions(void);
const struct cufft_functions    *cufft_functions(void);

/* "13.1.0"; "" when it is not loaded. Static. */
const char *cublaslt_version(void);
const char *cufft_version(void);

#endif
