/* The fixed limits by name (limits.def). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The greatest value of a limit in limits.def; false for an unknown name. */
bool limit_find(const char *name, uint64_t *max);
