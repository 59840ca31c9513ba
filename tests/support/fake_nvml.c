/* A management library for machines without one: it knows the fake driver's one GPU. FAKE_NVML_WITHOUT=power makes that reading fail. */
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, ERROR_INVALID_ARGUMENT = 2, ERROR_NOT_SUPPORTED = 3 };

struct nvmlDevice_st;

struct utilization {
    unsigned gpu, memory;
};

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvmlDevice_st **device);
EXPORT int nvmlDeviceGetTemperature(struct nvmlDevice_st *device, unsigned sensor, unsigned *celsius);
EXPORT int nvmlDeviceGetPowerUsage(struct nvmlDevice_st *device, unsigned *milliwatts);
EXPORT int nvmlDeviceGetUtilizationRates(struct nvmlDevice_st *device, struct utilization *rates);
EXPORT int nvmlDeviceGetClockInfo(struct nvmlDevice_st *device, unsigned clock, unsigned *mhz);

static char gpu;

int nvmlInit_v2(void)
{
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvmlDevice_st **device)
{
    if (strcmp(uuid, "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff") != 0)
        return ERROR_INVALID_ARGUMENT;
    *device = (struct nvmlDevice_st *)(void *)&gpu;
    return SUCCESS;
}

static int known(const struct nvmlDevice_st *device)
{
    return (const void *)device == &gpu ? SUCCESS : ERROR_INVALID_ARGUMENT;
}

int nvmlDeviceGetTemperature(struct nvmlDevice_st *device, unsigned sensor, unsigned *celsius)
{
    *celsius = 41;
    return sensor ? ERROR_INVALID_ARGUMENT : known(device);
}

int nvmlDeviceGetPowerUsage(struct nvmlDevice_st *device, unsigned *milliwatts)
{
    const char *without = getenv("FAKE_NVML_WITHOUT");

    *milliwatts = 123456;
    return without && strcmp(without, "power") == 0 ? ERROR_NOT_SUPPORTED : known(device);
}

int nvmlDeviceGetUtilizationRates(struct nvmlDevice_st *device, struct utilization *rates)
{
    *rates = (struct utilization){57, 12};
    return known(device);
}

int nvmlDeviceGetClockInfo(struct nvmlDevice_st *device, unsigned clock, unsigned *mhz)
{
    static const unsigned clocks[] = {1200, 1980, 3201};

    if (clock >= sizeof clocks / sizeof clocks[0])
        return ERROR_INVALID_ARGUMENT;
    *mhz = clocks[clock];
    return known(device);
}
