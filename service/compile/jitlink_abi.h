/* The part of nvJitLink's binary interface that is used, declared here so that building needs no CUDA header.
 * tests/unit/compile/jitlink_abi_test.c compares it with the real nvJitLink.h where a toolkit exists. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum jitlink_result {
    JITLINK_OK = 0,
    JITLINK_UNRECOGNIZED_ARCH = 16,
    JITLINK_UNSUPPORTED_ARCH = 17,
};

enum jitlink_input { JITLINK_PTX = 2 };

typedef struct jitlink *jitlink_handle; /* opaque */

struct jitlink_functions {
#define JITLINK_FUNCTION(member, symbol, parameters) int(*member) parameters;
#include "compile/jitlink.def"
#undef JITLINK_FUNCTION
};
