/* The part of cuFFT's binary interface that is used, declared here so that building needs no CUDA header. It is the same in versions 11
 * and 12. tests/unit/device/cuda/vendor/abi_test.c compares it with the real cufft.h where a toolkit exists. */
#pragma once

#include "device/cuda/abi.h"

#include <stddef.h>

typedef int cufft_result;
typedef int cufft_plan;

enum {
    CUFFT_OK = 0,
    CUFFT_OUT_OF_MEMORY = 2, /* the library's ALLOC_FAILED */
    CUFFT_VALUE_INVALID = 4, /* ... INVALID_VALUE */
    CUFFT_SIZE_INVALID = 8,  /* ... INVALID_SIZE */
    CUFFT_NOT_DONE = 14,     /* ... NOT_IMPLEMENTED */
    CUFFT_NOT_OFFERED = 16,  /* ... NOT_SUPPORTED */
};

/* Complex to complex, of f32 and of f64. */
enum cufft_kind { CUFFT_KIND_C2C = 0x29, CUFFT_KIND_Z2Z = 0x69 };

enum cufft_direction { CUFFT_DIRECTION_FORWARD = -1, CUFFT_DIRECTION_INVERSE = 1 };

struct cufft_functions {
#define CUFFT(name, parameters) cufft_result(*name) parameters;
#include "device/cuda/vendor/cufft.def"
#undef CUFFT
};
