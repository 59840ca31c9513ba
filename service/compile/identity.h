/* What tells the compiler of this process from every other that may make other code of the same source. Runs in a compile worker, as compiler.h. */
#ifndef GPUREST_COMPILE_IDENTITY_H
#define GPUREST_COMPILE_IDENTITY_H

#include "base/digest.h"

/* A digest, in hex, over the build id of everything that this process has loaded (this executable, the compiler, its helpers, and the C library,
 * by whose functions constants are folded), or without a build id its name, size and time; and over path, and names, sizes and times of all
 * files, of the tree of headers (NULL: none). Installers and editors change size or time of what they change, and another release of the headers
 * changes many files: so the 28 MB of CUDA's headers need not be read at every start. A tree that cannot be looked through whole makes an
 * identity that no other process has: then nothing that was compiled earlier is used. */
void identity_make(const char *header_folder, char out[SHA256_HEX_BYTES]);

#endif
