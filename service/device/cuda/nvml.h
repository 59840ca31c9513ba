/* Live clocks and sensors of a GPU from the driver's management library. One thread of a worker uses it. */
#ifndef GPUREST_DEVICE_NVML_H
#define GPUREST_DEVICE_NVML_H

#include "device/cuda/bounds.h"
#include "ipc/message.h"

/* Fills temperature, power, utilisation, the two clocks and the health of the GPU that info->uuid names, each as far as it can be read. Errors that
 * the driver reported since the first call stay in its health.
 * Loads the library at the first call. After a read that took longer than NVML_READ_MS_MAX there is none for NVML_REST_MS: sensors are unknown
 * meanwhile, and health is as it was. */
void nvml_read(struct device_info *info);
/* Names another library before the first read; NULL = "libnvidia-ml.so.1". */
void nvml_library(const char *path);

#endif
