/* The fixed limits by name (limits.def). */
#ifndef GPUREST_API_ABOUT_LIMITS_TABLE_H
#define GPUREST_API_ABOUT_LIMITS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* The greatest value of a limit in limits.def; false for an unknown name. */
bool limit_find(const char *name, uint64_t *max);

#endif
