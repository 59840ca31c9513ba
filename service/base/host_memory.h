/* Memory of this host. */
#pragma once

#include <stdint.h>

/* What processes can still take without swapping, as the kernel estimates it; UINT64_MAX: it does not tell. */
uint64_t host_memory_free(void);
