/* libLLVM, opened at run time. */
#pragma once

#include <stdbool.h>

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
    bool         neon; /* for NEON's vectors: they have no masks, and LLVM's conversions of 64 bits to binary32 round twice there */
};

/* Opens the newest libLLVM that is known and there, and makes its compiler for this host: before the jail closes. Once per process, any
 * number of calls, one at a time. NULL: *why tells in a few words why there is none. */
const struct llvm *llvm_open(const char **why);
/* How many numbers of 32 bits one step of compiled code takes, 8 or 16: a vector register of the host, or two of NEON's; 0: its processor has no
 * instructions that make it worthwhile. */
unsigned llvm_lanes(void);
/* For tests, before it is opened: code that is fit for NEON, too, whatever the host. */
void llvm_use_neon(void);
