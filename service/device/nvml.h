/* Live clocks and sensors of a GPU from the driver's management library. One thread of a worker uses it. */
#ifndef GPUREST_DEVICE_NVML_H
#define GPUREST_DEVICE_NVML_H

#include "ipc/message.h"

/* Fills temperature, power, utilisation, the two clocks and the health of the GPU that info->uuid names, each as far as it can be read. Errors that
 * the driver reported since the first call stay in its health.
 * Loads the library at the first call. A read that took longer than NVML_READ_MS_MAX is the last one of this process. */
void nvml_read(struct device_info *info);
/* Names another library before the first read; NULL = "libnvidia-ml.so.1". */
void nvml_library(const char *path);

#endif
