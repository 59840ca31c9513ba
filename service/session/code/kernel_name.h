/* A module's kernels by name. Pure functions. */
#ifndef GPUREST_SESSION_KERNEL_NAME_H
#define GPUREST_SESSION_KERNEL_NAME_H

#include "base/span.h"
#include "ipc/kernel_table.h"

/* Index of the kernel called so: its name in the image, or the source's (which is in the image's where C++ mangled it). -1: none; -2: several. */
int kernel_index(const struct kernel_table *table, struct span name);

#endif
