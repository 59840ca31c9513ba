/* The answer of the role `count`: which devices exist. One row per backend, through a pipe. */
#ifndef GPUREST_IPC_DEVICE_COUNT_H
#define GPUREST_IPC_DEVICE_COUNT_H

#include <stdint.h>

struct device_count {
    char     backend[16];
    uint32_t count;
    char     why[236]; /* why there is none; "" if there are some */
};

#endif
