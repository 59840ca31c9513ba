/* A kernel's name as in its source. Pure. */
#ifndef GPUREST_API_KERNEL_NAME_H
#define GPUREST_API_KERNEL_NAME_H

#include "base/arena.h"

/* "_Z4vaddPKfi" -> "vadd", "_ZN2ns4vaddEv" -> "ns::vadd" (Itanium C++ ABI §5.1). Other names, such as templates', stay mangled: such
 * kernels are launched by their name expression. NULL data when the arena is full. */
struct span kernel_plain_name(struct span mangled, struct arena *a);

#endif
