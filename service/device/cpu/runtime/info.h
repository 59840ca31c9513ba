/* Describes the host as a device. */
#ifndef GPUREST_DEVICE_CPU_INFO_H
#define GPUREST_DEVICE_CPU_INFO_H

#include "ipc/message.h"

/* Everything but memory. Reads /proc and /sys, which the lock-down may close later: call it once, when the device is opened. */
void cpu_info_read(struct device_info *out);

#endif
