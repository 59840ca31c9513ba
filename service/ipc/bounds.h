/* Bounds of ipc/ alone, each with its unit in its name. What a user meets, or several folders share, is in limits.h. */
#pragma once

#include "limits.h"

enum {
    GLOBALS_PER_MODULE_MAX = 4096,
    COMMAND_BYTES_MAX = KERNEL_PARAM_BYTES_MAX + 512,
    COMPLETION_BYTES_MAX = 512,
    DEVICE_UUID_BYTES = 64, /* with the NUL */
};
