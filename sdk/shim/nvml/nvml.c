/* The symbols of libnvidia-ml.so.1, made of nvml.def, and what they answer. */
#include "nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { CUDA_VERSION = 13000, MEMORY_V2 = 0x02000028, KHZ_PER_MHZ = 1000, MW_PER_W = 1000 };
#define NVML_VERSION "13.0"

/* ---- a device's figures ---- */

static nvmlReturn_t device_of(nvmlDevice_t device, const void *out, const struct json **json)
{
    nvmlReturn_t r = devices_read();
    unsigned     index = UINT32_MAX;

    if (r)
        return r;
    *json = devices_json(device, &index);
    if (index == UINT32_MAX || !out)
        return NVML_ERROR_INVALID_ARGUMENT;
    return *json ? NVML_SUCCESS : NVML_ERROR_GPU_IS_LOST;
}

/* null: the device, or its driver, does not tell. */
static nvmlReturn_t figure(const struct json *value, unsigned unit, unsigned *out)
{
    uint64_t number;

    if (!json_integer(value, &number) || number > UINT32_MAX / unit)
        return NVML_ERROR_NOT_SUPPORTED;
    *out = (unsigned)number * unit;
    return NVML_SUCCESS;
}

static nvmlReturn_t figure_of(nvmlDevice_t device, const char *member, unsigned unit, unsigned *out)
{
    const struct json *json;
    nvmlReturn_t       r = device_of(device, out, &json);

    return r ? r : figure(json_member(json, member), unit, out);
}

static nvmlReturn_t attribute_of(nvmlDevice_t device, const char *name, unsigned *out)
{
    const struct json *json;
    nvmlReturn_t       r = device_of(device, out, &json);

    return r ? r : figure(json_member(json_member(json, "attributes"), name), 1, out);
}

static nvmlReturn_t write_text(const char *text, char *out, unsigned room)
{
    if (!out)
        return NVML_ERROR_INVALID_ARGUMENT;
    return snprintf(out, room, "%s", text) < (int)room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

/* ---- the symbols ---- */

#define SUPPORTED(symbol, parameters, names) EXPORT nvmlReturn_t symbol parameters;
#define FIGURE(symbol, member, unit)         EXPORT nvmlReturn_t symbol(nvmlDevice_t device, unsigned *out);
#define SAME(symbol, other)
#include "nvml.def"
#undef SUPPORTED
#undef FIGURE
#undef SAME

static nvmlReturn_t leave(nvmlReturn_t r)
{
    devices_unlock();
    return r;
}

#define SUPPORTED(symbol, parameters, names)                                                                                               \
    nvmlReturn_t symbol parameters                                                                                                         \
    {                                                                                                                                      \
        devices_lock();                                                                                                                    \
        return leave(nv_##symbol names);                                                                                                   \
    }
#define FIGURE(symbol, member, unit)                                                                                                       \
    nvmlReturn_t symbol(nvmlDevice_t device, unsigned *out)                                                                                \
    {                                                                                                                                      \
        devices_lock();                                                                                                                    \
        return leave(figure_of(device, #member, unit, out));                                                                               \
    }
#define SAME(symbol, other) __asm__(".globl " #symbol "\n.set " #symbol ", " #other "\n.type " #symbol ", %function");
#include "nvml.def"
#undef SUPPORTED
#undef FIGURE
#undef SAME

EXPORT const char *nvmlErrorString(nvmlReturn_t result);

const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
#define ERROR(name, number, text)                                                                                                          \
    case number:                                                                                                                           \
        return text;
#include "nvml_errors.def"
#undef ERROR
    default:
        return "unknown error";
    }
}

/* ---- the library ---- */

nvmlReturn_t nv_nvmlInitWithFlags(unsigned flags)
{
    (void)flags; /* about devices that cannot be attached */
    return devices_open();
}

nvmlReturn_t nv_nvmlInit_v2(void)
{
    return devices_open();
}

nvmlReturn_t nv_nvmlShutdown(void)
{
    return devices_close();
}

nvmlReturn_t nv_nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    return write_text(NVML_VERSION, version, length);
}

nvmlReturn_t nv_nvmlSystemGetCudaDriverVersion(int *version)
{
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = CUDA_VERSION;
    return NVML_SUCCESS;
}

/* There is no driver on this machine, and the service does not tell the version of its own. */
nvmlReturn_t nv_nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    (void)length;
    return version ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
}

/* ---- finding devices ---- */

nvmlReturn_t nv_nvmlDeviceGetCount_v2(unsigned *count)
{
    nvmlReturn_t r = devices_read();

    if (r || !count)
        return r ? r : NVML_ERROR_INVALID_ARGUMENT;
    *count = devices_count();
    return NVML_SUCCESS;
}

nvmlReturn_t nv_nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    nvmlReturn_t r = devices_read();

    if (r || !device || index >= devices_count())
        return r ? r : NVML_ERROR_INVALID_ARGUMENT;
    *device = devices_at(index);
    return NVML_SUCCESS;
}

static nvmlReturn_t find(const char *wanted, nvmlDevice_t *device, nvmlReturn_t (*get)(nvmlDevice_t, char *, unsigned))
{
    char         text[96];
    nvmlReturn_t r = devices_read();

    if (r || !wanted || !device)
        return r ? r : NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < devices_count(); i++)
        if (get(devices_at(i), text, sizeof text) == NVML_SUCCESS && strcmp(text, wanted) == 0) {
            *device = devices_at(i);
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nv_nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return find(uuid, device, nv_nvmlDeviceGetUUID);
}

static nvmlReturn_t bus_of(nvmlDevice_t device, char *out, unsigned length)
{
    nvmlPciInfo_t pci;
    nvmlReturn_t  r = nv_nvmlDeviceGetPciInfo_v3(device, &pci);

    return r ? r : write_text(pci.busId, out, length);
}

nvmlReturn_t nv_nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device)
{
    unsigned domain = 0, bus, slot;
    char     whole[32];

    if (!id || (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3 && (domain = 0, sscanf(id, "%x:%x", &bus, &slot) != 2)))
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(whole, sizeof whole, "%08X:%02X:%02X.0", domain, bus, slot);
    return find(whole, device, bus_of);
}

/* ---- what they are ---- */

nvmlReturn_t nv_nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    const struct json *json;
    nvmlReturn_t       r = device_of(device, index, &json);

    if (!r)
        devices_json(device, index);
    return r;
}

static nvmlReturn_t text_of(nvmlDevice_t device, const char *member, char *out, unsigned room)
{
    const struct json *json;
    nvmlReturn_t       r = device_of(device, out, &json);

    return r ? r : write_text(json_text_or(json_member(json, member), ""), out, room);
}

nvmlReturn_t nv_nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
    return text_of(device, "name", name, length);
}

nvmlReturn_t nv_nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
    return text_of(device, "uuid", uuid, length);
}

/* Devices that are not on a bus, as cpu devices, have zeros. */
nvmlReturn_t nv_nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    unsigned     domain = 0, bus = 0, slot = 0;
    nvmlReturn_t r = attribute_of(device, "pci_bus_id", &bus);

    if (r && r != NVML_ERROR_NOT_SUPPORTED)
        return r;
    if (!pci)
        return NVML_ERROR_INVALID_ARGUMENT;
    attribute_of(device, "pci_domain_id", &domain);
    attribute_of(device, "pci_device_id", &slot);
    *pci = (nvmlPciInfo_t){.domain = domain, .bus = bus, .device = slot};
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", domain & 0xffff, bus & 0xff, slot & 0xff);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", domain, bus & 0xff, slot & 0xff);
    return NVML_SUCCESS;
}

nvmlReturn_t nv_nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    unsigned     high = 0, low = 0;
    nvmlReturn_t r = major && minor ? attribute_of(device, "compute_capability_major", &high) : NVML_ERROR_INVALID_ARGUMENT;

    r = r ? r : attribute_of(device, "compute_capability_minor", &low);
    if (r)
        return r;
    *major = (int)high;
    *minor = (int)low;
    return NVML_SUCCESS;
}

/* NVML's numbers of generations, by the first compute capability of each. */
nvmlReturn_t nv_nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned *architecture)
{
    static const struct {
        int      capability;
        unsigned number;
    } generations[] = {{100, 10}, {90, 9}, {89, 8}, {80, 7}, {75, 6}, {70, 5}, {60, 4}, {50, 3}};
    int          major = 0, minor = 0;
    nvmlReturn_t r = architecture ? nv_nvmlDeviceGetCudaComputeCapability(device, &major, &minor) : NVML_ERROR_INVALID_ARGUMENT;

    for (size_t i = 0; !r && i < COUNT(generations); i++)
        if (10 * major + minor >= generations[i].capability) {
            *architecture = generations[i].number;
            return NVML_SUCCESS;
        }
    return r ? r : NVML_ERROR_NOT_SUPPORTED;
}

/* ---- how they are ---- */

nvmlReturn_t nv_nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    const struct json *json, *of_device;
    nvmlReturn_t       r = device_of(device, memory, &json);

    if (r)
        return r;
    of_device = json_member(json, "memory");
    memory->total = json_integer_or(json_member(of_device, "total_bytes"), 0);
    memory->free = json_integer_or(json_member(of_device, "free_bytes"), 0);
    memory->used = memory->total > memory->free ? memory->total - memory->free : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nv_nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlMemory_t m;
    nvmlReturn_t r = memory && memory->version == MEMORY_V2 ? nv_nvmlDeviceGetMemoryInfo(device, &m) : NVML_ERROR_INVALID_ARGUMENT;

    if (!r)
        *memory = (nvmlMemory_v2_t){.version = MEMORY_V2, .total = m.total, .free = m.free, .used = m.used};
    return r;
}

nvmlReturn_t nv_nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    nvmlUtilization_t u;
    nvmlReturn_t      r = utilization ? figure_of(device, "utilization_pct", 1, &u.gpu) : NVML_ERROR_INVALID_ARGUMENT;

    r = r ? r : figure_of(device, "memory_utilization_pct", 1, &u.memory);
    if (!r)
        *utilization = u;
    return r;
}

/* The service does not tell over which time. */
static nvmlReturn_t coder(nvmlDevice_t device, const char *member, unsigned *utilization, unsigned *period_us)
{
    nvmlReturn_t r = period_us ? figure_of(device, member, 1, utilization) : NVML_ERROR_INVALID_ARGUMENT;

    if (!r)
        *period_us = 0;
    return r;
}

nvmlReturn_t nv_nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned *utilization, unsigned *period_us)
{
    return coder(device, "encoder_utilization_pct", utilization, period_us);
}

nvmlReturn_t nv_nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned *utilization, unsigned *period_us)
{
    return coder(device, "decoder_utilization_pct", utilization, period_us);
}

nvmlReturn_t nv_nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned *temperature)
{
    return sensor == 0 ? figure_of(device, "temperature_c", 1, temperature) : NVML_ERROR_INVALID_ARGUMENT;
}

enum { THRESHOLD_SLOWDOWN = 1, THRESHOLDS = 8 };

nvmlReturn_t nv_nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, int threshold, unsigned *temperature)
{
    if (threshold < 0 || threshold >= THRESHOLDS)
        return NVML_ERROR_INVALID_ARGUMENT;
    return threshold == THRESHOLD_SLOWDOWN ? figure_of(device, "temperature_max_c", 1, temperature) : NVML_ERROR_NOT_SUPPORTED;
}

enum { CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY, CLOCK_VIDEO };

static nvmlReturn_t clock_of(nvmlDevice_t device, int clock, const char *of_processors, const char *of_memory, unsigned *mhz)
{
    nvmlReturn_t r;

    if (clock < CLOCK_GRAPHICS || clock > CLOCK_VIDEO)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (clock == CLOCK_VIDEO)
        return NVML_ERROR_NOT_SUPPORTED;
    r = figure_of(device, clock == CLOCK_MEMORY ? of_memory : of_processors, 1, mhz);
    if (!r && *mhz == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!r)
        *mhz /= KHZ_PER_MHZ;
    return r;
}

nvmlReturn_t nv_nvmlDeviceGetClockInfo(nvmlDevice_t device, int clock, unsigned *mhz)
{
    return clock_of(device, clock, "clock_khz", "memory_clock_khz", mhz);
}

nvmlReturn_t nv_nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int clock, unsigned *mhz)
{
    return clock_of(device, clock, "clock_max_khz", "memory_clock_max_khz", mhz);
}

nvmlReturn_t nv_nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned *min_mw, unsigned *max_mw)
{
    nvmlReturn_t r = figure_of(device, "power_limit_min_w", MW_PER_W, min_mw);

    return r ? r : figure_of(device, "power_limit_max_w", MW_PER_W, max_mw);
}

/* Of a device without the setting it is off. */
nvmlReturn_t nv_nvmlDeviceGetPersistenceMode(nvmlDevice_t device, int *mode)
{
    const struct json *json;
    nvmlReturn_t       r = device_of(device, mode, &json);

    if (!r)
        *mode = json_true(json_member(json_member(json, "settings"), "persistence_mode"));
    return r;
}

nvmlReturn_t nv_nvmlDeviceGetComputeMode(nvmlDevice_t device, int *mode)
{
    unsigned     number = 0;
    nvmlReturn_t r = mode ? attribute_of(device, "compute_mode", &number) : NVML_ERROR_INVALID_ARGUMENT;

    if (!r)
        *mode = (int)number;
    return r;
}

nvmlReturn_t nv_nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned *bits)
{
    return attribute_of(device, "global_memory_bus_width", bits);
}

enum { ECC_UNCORRECTED = 1, ECC_VOLATILE = 0 };

nvmlReturn_t nv_nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int error, int counter, unsigned long long *count)
{
    unsigned     number = 0;
    nvmlReturn_t r =
        count && (error == 0 || error == ECC_UNCORRECTED) ? figure_of(device, "ecc_uncorrected", 1, &number) : NVML_ERROR_INVALID_ARGUMENT;

    if (r)
        return r;
    if (error != ECC_UNCORRECTED || counter != ECC_VOLATILE)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = number;
    return NVML_SUCCESS;
}

/* Who uses the device are sessions of the service, and no processes of this machine. */
nvmlReturn_t nv_nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, void *infos)
{
    const struct json *json;
    nvmlReturn_t       r = device_of(device, count, &json);

    (void)infos;
    return r ? r : NVML_ERROR_NOT_SUPPORTED;
}
