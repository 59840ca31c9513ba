/* Types of NVIDIA's management library that its tools share with it, by their binary form, and what the files here share. */
#ifndef GPUREST_SHIM_NVML_H
#define GPUREST_SHIM_NVML_H

#include <stdbool.h>

#include "base/json.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef int                   nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;

typedef struct {
    char     busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char     busId[32];
} nvmlPciInfo_t;

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned           version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
    unsigned gpu, memory;
} nvmlUtilization_t;

enum {
#define ERROR(name, number, text) name = number,
#include "nvml_errors.def"
#undef ERROR
};

/* ---- devices.c: the service's devices; callers hold the lock ---- */

void         devices_lock(void);
void         devices_unlock(void);
nvmlReturn_t devices_open(void);
/* NVML_ERROR_UNINITIALIZED: not open. */
nvmlReturn_t devices_close(void);
/* Reads them anew if the last answer is older than MAX_AGE_MS. */
nvmlReturn_t devices_read(void);
unsigned     devices_count(void);
nvmlDevice_t devices_at(unsigned index);
/* NULL: the handle is none. */
const struct json *devices_json(nvmlDevice_t device, unsigned *index);

#define SUPPORTED(symbol, parameters, names) nvmlReturn_t nv_##symbol parameters;
#define FIGURE(symbol, member, unit)
#define SAME(symbol, other)
#include "nvml.def"
#undef SUPPORTED
#undef FIGURE
#undef SAME

#endif
