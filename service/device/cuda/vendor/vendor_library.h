/* Libraries of the GPU's maker, loaded at run time where a machine has them. Not thread-safe: one thread of a worker uses them. */
#pragma once

#include "base/span.h"
#include "device/cuda/vendor/cublaslt_abi.h"
#include "device/cuda/vendor/cufft_abi.h"
#include "device/cuda/vendor/cusolver_abi.h"

#include <stdbool.h>

/* Sets the path of "cublaslt", "cufft" or "cusolver", borrowed; "": the usual places; NULL: unused (default). False: another name. */
bool vendor_library_choose(struct span name, const char *path);
/* Loads what was chosen, for the life of the process. It opens files: call it before the lock-down. */
void vendor_libraries_load(void);

/* NULL: not loaded. Borrowed for the life of the process. */
const struct cublaslt_functions *cublaslt_functions(void);
const struct cufft_functions    *cufft_functions(void);
const struct cusolver_functions *cusolver_functions(void);

/* Of one of these names. "13.1.0"; "" when it is not loaded. Static. */
const char *vendor_library_version(const char *name);
