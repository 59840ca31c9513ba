/* How the role `count` answers which devices are here: rows of this struct through a pipe, one per backend. */
#ifndef GPUREST_IPC_DEVICE_COUNT_H
#define GPUREST_IPC_DEVICE_COUNT_H

#include <stdint.h>

struct device_count {
    char     backend[16];
    uint32_t count;
    char     why[236]; /* why there is none; "" if there are some */
};

#endif
