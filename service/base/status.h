/* All outcomes. A CUresult or errno is translated where it arises and not passed on. */
#ifndef GPUREST_BASE_STATUS_H
#define GPUREST_BASE_STATUS_H

#include <stdbool.h>

enum status {
#define STATUS(name, http, code, title, retryable) STATUS_##name,
#include "base/status.def"
#undef STATUS
    STATUS_COUNT
};

/* All four treat an out-of-range value as STATUS_INTERNAL. Static strings, thread-safe. */
unsigned    status_http(enum status st);
const char *status_code(enum status st);
const char *status_title(enum status st);
bool        status_retryable(enum status st);

#endif
