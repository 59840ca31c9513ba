/* libLLVM, opened at run time. */
#pragma once

#include "device/cpu/jit/abi.h"

struct llvm {
#define LLVM(result, name, arguments) result(*name) arguments;
#include "device/cpu/jit/llvm.def"
#undef LLVM
    unsigned     version; /* its first number */
    char        *triple;
    llvm_machine machine; /* of this host */
    llvm_layout  layout;
    llvm_jit     jit;
};

/* Opens the newest libLLVM that is known and there, and makes its compiler for this host: before the jail closes. Once per process, any
 * number of calls, one at a time. NULL: *why tells in a few words why there is none. */
const struct llvm *llvm_open(const char **why);
/* How many numbers of 32 bits a vector register of this host has, 8 or 16; 0: its processor has no instructions that make it worthwhile. */
unsigned llvm_lanes(void);
