/* Kernels by the names that they have in the source. Pure functions. */
#pragma once

#include "base/span.h"
#include "ipc/kernel_table.h"

/* Writes "ns::vadd" for "_ZN2ns4vaddEv" (Itanium C++ ABI §5.1) to `to`; *is_template: without its arguments. False: another name, or no room. */
bool kernel_source_name(struct span mangled, char *to, size_t room, struct span *out, bool *is_template);
/* Index of the kernel called so: its name in the image, or the source's (which is in the image's where C++ mangled it). -1: none; -2: several. */
int kernel_index(const struct kernel_table *table, struct span name);
/* What may be launched, for an error's text: "vadd, ns::scale and 3 more" by the source's names, "none" without kernels. What does not fit into
 * `room`, at least 64 bytes, is counted. */
void kernel_names(const struct kernel_table *table, char *out, size_t room);
