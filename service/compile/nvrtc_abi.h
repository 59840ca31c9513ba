/* The part of NVRTC's binary interface that is used, declared here so that building needs no CUDA header.
 * tests/unit/compile/nvrtc_abi_test.c compares it with the real nvrtc.h where a toolkit exists. */
#pragma once

#include <stddef.h>

enum nvrtc_result {
    NVRTC_OK = 0,
    NVRTC_OUT_OF_MEMORY = 1,
    NVRTC_PROGRAM_CREATION_FAILURE = 2,
    NVRTC_INVALID_INPUT = 3,
    NVRTC_INVALID_OPTION = 5,
    NVRTC_COMPILATION = 6,
    NVRTC_BUILTIN_OPERATION_FAILURE = 7,
    NVRTC_NAME_EXPRESSION_NOT_VALID = 10,
    NVRTC_INTERNAL_ERROR = 11,
};

typedef struct nvrtc_program *nvrtc_program; /* opaque */

typedef int nvrtc_code; /* an enum nvrtc_result, or a value that only a newer library has */

struct nvrtc_functions {
#define NVRTC_FUNCTION(member, symbol, result, parameters) result(*member) parameters;
#include "compile/nvrtc.def"
#undef NVRTC_FUNCTION
};
