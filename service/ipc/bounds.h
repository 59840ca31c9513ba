/* Bounds of ipc/ alone, each with its unit in its name. What a user meets, or several folders share, is in limits.h. */
#pragma once

#include "limits.h"

enum {
    GLOBALS_PER_MODULE_MAX = 4096,
    COMMAND_BYTES_MAX = KERNEL_PARAM_BYTES_MAX + 512,
    COMPLETION_BYTES_MAX = 640,
    DEVICE_UUID_BYTES = 64, /* with the NUL */
    TEXTURE_LINEAR_TEXELS_MAX = 1 << 27, /* of a 1d texture over a buffer */
    TEXTURE_PITCH_ALIGN = 32,            /* bytes: CUDA's own, as the next */
    TEXTURE_PITCH_BYTES_MAX = 2097120,
};
