/* libamdhip64 as the table of functions that the parts shared with device/cuda/ call. Not thread-safe: one thread of a worker uses it. */
#pragma once

#include "device/cuda/driver.h"

enum {
    HIP_ARCH_BYTES = 16,
    HIP_LAUNCH_END = 3,                  /* ends the `extra` list of a launch; CUDA's end is 0 */
    HIP_ERROR_INVALID_CONFIGURATION = 9, /* of a launch; the driver of CUDA says INVALID_VALUE */
    HIP_ARCH_AT_R0600 = 1160,            /* gcnArchName in hipDeviceProp_t, as hipGetDevicePropertiesR0600() fills it */
    HIP_ARCH_AT_R0000 = 396,             /* ... and hipGetDeviceProperties() */
    HIP_ARCH_TEXT_BYTES = 256,
};

/* The path of the library, before it is loaded; NULL or "": the usual places. Borrowed. */
void hip_driver_choose(const char *path);
/* At the first call, loads the library; borrowed for the life of the process. Members that this backend does not use are NULL. NULL, with
 * DEVICE_NOT_FOUND in *why: it is not there or lacks a required function; a later call tries again. */
const struct cuda_driver *hip_driver_load(struct problem *why);
/* "gfx90a" of device `index`, without the features behind it. False: the library does not tell it. Behind hip_driver_load(). */
bool hip_arch(int index, char out[HIP_ARCH_BYTES]);
