/* What the host says about itself. */
#ifndef GPUREST_DEVICE_CPU_INFO_H
#define GPUREST_DEVICE_CPU_INFO_H

#include "ipc/message.h"

/* Everything but memory; reads /proc and /sys, which a worker may be locked out of later: once, when the device is opened. */
void cpu_info_read(struct device_info *out);

#endif
