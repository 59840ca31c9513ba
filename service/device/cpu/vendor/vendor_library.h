/* The host's own libraries for products, factorizations and transforms, opened at run time where a machine has them. Not thread-safe: one
 * thread of a worker opens them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "device/cpu/vendor/fftw_abi.h"
#include "device/cpu/vendor/openblas_abi.h"

/* Sets the path of "openblas", "fftw" or "fftwf", borrowed; "": the usual places; NULL: unused (default). False: another name. */
bool cpu_library_choose(struct span name, const char *path);
/* Opens what was chosen, for the life of the process, with one thread: call it before the process gives up opening files. */
void cpu_libraries_open(void);
/* Once: the libraries have so many threads from now on, the caller's included. OpenBLAS starts them here. */
void cpu_libraries_start(unsigned threads);

/* NULL: not opened. Borrowed for the life of the process. */
const struct openblas_functions *openblas_functions(void);
const struct fftw_functions     *fftw_functions(bool wide); /* of f64, else of f32; both are there, or none is */
/* For transforms that are long enough to be worth it. */
unsigned fftw_threads(void);
/* Before a call of so many multiplications, on the thread that makes it: OpenBLAS 0.3.21 wakes its threads for products that are done before. */
void openblas_use_threads(uint64_t multiplications);

/* "0.3.21"; "" when it is not opened. Static. */
const char *openblas_version(void);
const char *fftw_version_text(void);
