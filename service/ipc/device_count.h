/* The answer of the role `count`: which devices exist. One row per backend, through a pipe. */
#pragma once

#include <stdint.h>

#include "ipc/bounds.h"

struct device_count {
    char     backend[16];
    uint32_t count;
    uint32_t unknown;                               /* 1: they could not be counted */
    char     why[232];                              /* why there is none; "" if there are some */
    char     uuids[DEVICES_MAX][DEVICE_UUID_BYTES]; /* by index; "" where the driver does not tell */
};
