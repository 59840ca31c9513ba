/* All outcomes. A CUresult or errno is translated where it arises and not passed on. */
#pragma once

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
/* Whether an answer of 5xx is the fault of the service or its devices, and not of what its callers asked for. */
bool status_blames_service(enum status st);
