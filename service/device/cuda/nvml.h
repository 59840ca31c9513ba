/* Live clocks and sensors of a GPU from the driver's management library, and its settings. One thread of a worker uses it. */
#pragma once

#include "device/cuda/bounds.h"
#include "ipc/message.h"

/* Fills the sensors, the two clocks and the health of the GPU that info->uuid names. A sensor that cannot be read says why.
 * Health keeps the errors that the driver reported since the first call. Loads the library at the first call. After a read that took
 * longer than NVML_READ_MS_MAX it does not read for NVML_REST_MS: sensors are unknown meanwhile, and health is unchanged. */
void nvml_read(struct device_info *info);
/* Changes a setting of the GPU with that UUID; see device_ops.configure. */
enum status nvml_set(const char *uuid, enum device_setting s, const struct device_setting_value *v, struct problem *why);
/* Names another library before the first read; NULL = "libnvidia-ml.so.1". */
void nvml_library(const char *path);
