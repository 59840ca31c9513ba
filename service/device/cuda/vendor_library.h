/* Libraries of the GPU's maker that are used where a machine has them, loaded at run time. Not thread-safe: one thread of a worker uses
 * them. */
#ifndef GPUREST_DEVICE_VENDOR_LIBRARY_H
#define GPUREST_DEVICE_VENDOR_LIBRARY_H

#include "base/span.h"
#include "device/cuda/cublaslt_abi.h"
#include "device/cuda/cufft_abi.h"

#include <stdbool.h>

/* The path of "cublaslt" or "cufft", borrowed; "": the usual places, NULL: it is not used, which is the default. False: the name is none of these. */
bool vendor_library_choose(struct span name, const char *path);
/* Loads what was chosen, for the life of the process. It opens files: before the worker locks itself. */
void vendor_libraries_load(void);

/* NULL: not loaded. Borrowed for the life of the process. */
const struct cublaslt_functions *cublaslt_functions(void);
const struct cufft_functions    *cufft_functions(void);

/* "13.1.0"; "" when it is not loaded. Static. */
const char *cublaslt_version(void);
const char *cufft_version(void);

#endif
