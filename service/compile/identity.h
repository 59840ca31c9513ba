/* The identity of this process's compiler: it differs from that of any compiler that may make other code of the same source. Runs in a
 * compile worker, as compiler.h. */
#pragma once

#include "base/digests/digest.h"

/* A hex digest of everything loaded (this executable, the compiler, its helpers, and the C library, which folds constants): of each
 * object its build id, or else its name, size and time. Added are the path of the tree of headers (NULL: none) and the names, sizes and
 * times of its files. The contents of CUDA's headers, 28 MB, need not be read at every start: installers and editors change size or
 * time, and another release changes many files. A tree that cannot be read whole gives an identity that no other process has: then no
 * earlier code is used. */
void identity_make(const char *header_folder, char out[SHA256_HEX_BYTES]);
