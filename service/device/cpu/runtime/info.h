/* Describes the host as a device. */
#pragma once

#include "ipc/message.h"

/* Everything but memory. Reads /proc and /sys, which the lock-down may close later: call it once, when the device is opened. */
void cpu_info_read(struct device_info *out);
