/* What PTX says of kernels' parameters, for devices whose own tables know sizes alone. Pure: no locks, no worker. */
#pragma once

#include "ipc/kernel_table.h"

/* Fills in the types that the table lacks, of kernels whose parameters are in the text as many and as large as in the table; all others
 * stay unknown. The text is anybody's, and need not be PTX. */
void param_types_read(struct kernel_table *t, struct span ptx);
