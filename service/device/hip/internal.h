/* What the parts of the hip backend share. Its device and its objects are those of device/cuda/. */
#pragma once

#include "device/cuda/internal.h"
#include "device/hip/driver.h"

enum status hip_info(struct device *d, struct device_info *out);
void        hip_identify(unsigned index, char out[DEVICE_UUID_BYTES]);
enum status hip_module_load(struct device *d, const char *image, size_t bytes, struct device_module **out, struct problem *why);
