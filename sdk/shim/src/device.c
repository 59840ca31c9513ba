/* Devices and their attributes, answered from what was read of the service once. */
#include <stdio.h>
#include <string.h>

#include "shim.h"

enum {
    ATTRIBUTE_PCI_BUS = 33,
    ATTRIBUTE_PCI_DEVICE = 34,
    ATTRIBUTE_PCI_DOMAIN = 50,
    ATTRIBUTE_CAPABILITY_MAJOR = 75,
    ATTRIBUTE_CAPABILITY_MINOR = 76,
    LOADING_LAZY = 2,
};

CUresult shim_cuInit(unsigned int Flags)
{
    return call_init(Flags);
}

CUresult shim_cuDriverGetVersion(int *driverVersion)
{
    if (!driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

CUresult shim_cuDeviceGetCount(int *count)
{
    CUresult r = count ? gpus_find() : CUDA_ERROR_INVALID_VALUE;

    if (!r)
        *count = gpus_count();
    return r;
}

CUresult shim_cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult r = device ? gpus_find() : CUDA_ERROR_INVALID_VALUE;

    if (!r && !gpu_at(ordinal))
        r = CUDA_ERROR_INVALID_DEVICE;
    if (!r)
        *device = ordinal;
    return r;
}

/* CUDA looks at the pointers first. */
static CUresult look_up(struct gpu **g, CUdevice dev, const void *out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *g = gpu_at(dev);
    return *g ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult shim_cuDeviceGetName(char *name, int len, CUdevice dev)
{
    struct gpu *g;
    CUresult    r = len ? look_up(&g, dev, name) : CUDA_ERROR_INVALID_VALUE;

    if (!r)
        snprintf(name, len > 0 ? (size_t)len : sizeof g->name, "%s", g->name); /* a negative length bounds nothing in NVIDIA's either */
    return r;
}

CUresult shim_cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    struct gpu *g;
    CUresult    r = look_up(&g, dev, uuid);

    if (!r)
        *uuid = g->uuid;
    return r;
}

CUresult shim_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    return shim_cuDeviceGetUuid(uuid, dev);
}

CUresult shim_cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    struct gpu *g;
    CUresult    r = look_up(&g, dev, bytes);

    if (!r)
        *bytes = (size_t)g->total_bytes;
    return r;
}

CUresult shim_cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    struct gpu *g;
    CUresult    r = attrib > 0 && attrib < ATTRIBUTES_MAX ? look_up(&g, dev, pi) : CUDA_ERROR_INVALID_VALUE;

    if (!r)
        *pi = (int)g->attributes[attrib];
    return r;
}

CUresult shim_cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
    CUresult r = shim_cuDeviceGetAttribute(major, ATTRIBUTE_CAPABILITY_MAJOR, dev);

    return r ? r : shim_cuDeviceGetAttribute(minor, ATTRIBUTE_CAPABILITY_MINOR, dev);
}

CUresult shim_cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    struct gpu *g;
    CUresult    r = len > 0 ? look_up(&g, dev, pciBusId) : CUDA_ERROR_INVALID_VALUE;

    if (!r)
        snprintf(pciBusId, (size_t)len, "%04x:%02x:%02x.0", (unsigned)g->attributes[ATTRIBUTE_PCI_DOMAIN],
                 (unsigned)g->attributes[ATTRIBUTE_PCI_BUS], (unsigned)g->attributes[ATTRIBUTE_PCI_DEVICE]);
    return r;
}

/* "domain:bus:device.function", "domain:bus:device" or "bus:device.function", in hexadecimal. */
CUresult shim_cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    unsigned domain = 0, bus, device;
    CUresult r = dev && pciBusId ? gpus_find() : CUDA_ERROR_INVALID_VALUE;

    if (r)
        return r;
    if (sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &device) != 3) {
        domain = 0;
        if (sscanf(pciBusId, "%x:%x", &bus, &device) != 2)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (int i = 0; i < gpus_count(); i++) {
        const int64_t *a = gpu_at(i)->attributes;

        if (a[ATTRIBUTE_PCI_DOMAIN] == domain && a[ATTRIBUTE_PCI_BUS] == bus && a[ATTRIBUTE_PCI_DEVICE] == device) {
            *dev = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

/* Sessions of two devices do not see each other's memory. */
CUresult shim_cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    struct gpu *g;
    CUresult    r = look_up(&g, dev, canAccessPeer);

    if (!r)
        r = look_up(&g, peerDev, canAccessPeer);
    if (!r)
        *canAccessPeer = 0;
    return r;
}

CUresult shim_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = LOADING_LAZY;
    return CUDA_SUCCESS;
}

/* A profiler that listens to the genuine driver does not listen here. */
CUresult shim_cuProfilerStart(void)
{
    return CUDA_SUCCESS;
}

CUresult shim_cuProfilerStop(void)
{
    return CUDA_SUCCESS;
}
