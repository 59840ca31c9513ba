/* Reads live clocks and sensors through libnvidia-ml, which is optional and must never hold a worker up for long. */
#include "device/nvml.h"

#include "base/deadline.h"
#include "base/log.h"
#include "device/cuda_driver.h"

struct nvmlDevice_st;

struct nvml_utilization {
    unsigned gpu_pct;
    unsigned memory_pct;
};

enum { NVML_SENSOR_GPU = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };

struct nvml_functions {
#define NVML(name, arguments) int(*name) arguments;
#include "device/nvml.def"
#undef NVML
};

static union {
    struct nvml_functions call;
    void                 *slots[sizeof(struct nvml_functions) / sizeof(void *)]; /* the same pointers, by number */
} nvml;

static const char *const names[] = {
#define NVML(name, arguments) #name,
#include "device/nvml.def"
#undef NVML
};

static_assert(sizeof nvml == sizeof(void *) * COUNT(names), "a slot per function");

static const char *library = "libnvidia-ml.so.1";
static enum { NVML_UNTRIED, NVML_READY, NVML_OFF } state;

void nvml_library(const char *path)
{
    library = path ? path : "libnvidia-ml.so.1";
}

static bool start(void)
{
    return library_symbols(library, names, nvml.slots, COUNT(names)) && nvml.call.nvmlInit_v2 && nvml.call.nvmlDeviceGetHandleByUUID &&
           nvml.call.nvmlInit_v2() == 0;
}

static void read_sensors(struct nvmlDevice_st *gpu, struct device_info *info)
{
    struct nvml_utilization rates;
    unsigned                value;

    if (nvml.call.nvmlDeviceGetTemperature && nvml.call.nvmlDeviceGetTemperature(gpu, NVML_SENSOR_GPU, &value) == 0)
        info->temperature_c = (int32_t)value;
    if (nvml.call.nvmlDeviceGetPowerUsage && nvml.call.nvmlDeviceGetPowerUsage(gpu, &value) == 0)
        info->power_w = (int32_t)(value / 1000);
    if (nvml.call.nvmlDeviceGetUtilizationRates && nvml.call.nvmlDeviceGetUtilizationRates(gpu, &rates) == 0)
        info->utilization_pct = (int32_t)rates.gpu_pct;
}

static void read_clocks(struct nvmlDevice_st *gpu, struct device_info *info)
{
    unsigned mhz;

    if (!nvml.call.nvmlDeviceGetClockInfo)
        return;
    if (nvml.call.nvmlDeviceGetClockInfo(gpu, NVML_CLOCK_SM, &mhz) == 0 && mhz <= UINT32_MAX / 1000)
        info->clock_khz = mhz * 1000;
    if (nvml.call.nvmlDeviceGetClockInfo(gpu, NVML_CLOCK_MEMORY, &mhz) == 0 && mhz <= UINT32_MAX / 1000)
        info->memory_clock_khz = mhz * 1000;
}

void nvml_read(struct device_info *info)
{
    struct nvmlDevice_st *gpu = NULL;
    uint64_t              began;

    if (state == NVML_UNTRIED)
        state = start() ? NVML_READY : NVML_OFF;
    if (state == NVML_OFF)
        return;
    began = now_ns();
    if (nvml.call.nvmlDeviceGetHandleByUUID(info->uuid, &gpu) == 0 && gpu) {
        read_sensors(gpu, info);
        read_clocks(gpu, info);
    }
    if (now_ns() - began > NVML_READ_MS_MAX * NS_PER_MS) {
        log_warn("device", "the management library is slow; sensors are not read any more");
        state = NVML_OFF;
    }
}
