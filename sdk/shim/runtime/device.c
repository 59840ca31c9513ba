/* What devices are, versions, and the driver's functions by name. */
#include "runtime.h"

cudaError_t run_cudaRuntimeGetVersion(int *runtimeVersion)
{
    if (!runtimeVersion)
        return cudaErrorInvalidValue;
    *runtimeVersion = RUNTIME_VERSION;
    return cudaSuccess;
}

static cudaError_t fill(cudaDeviceProp *p, int device)
{
    cudaError_t r = cuDeviceGetName(p->name, sizeof p->name, device);
    int         value = 0;

    r = r ? r : cuDeviceGetUuid_v2(&p->uuid, device);
    r = r ? r : cuDeviceTotalMem_v2(&p->totalGlobalMem, device);
#define PROPERTY(member, attribute)                                                                                                        \
    r = r ? r : cuDeviceGetAttribute(&value, attribute, device);                                                                           \
    p->member = (__typeof__(p->member))value;
#include "properties.def"
#undef PROPERTY
    return r;
}

cudaError_t run_cudaGetDeviceProperties(cudaDeviceProp *prop, int device)
{
    if (!prop)
        return cudaErrorInvalidValue;
    memset(prop, 0, sizeof *prop);
    return fill(prop, device);
}

/* The first that has at least the memory and the compute capability that are asked for; without one, the first. */
cudaError_t run_cudaChooseDevice(int *device, const cudaDeviceProp *prop)
{
    cudaDeviceProp found;
    int            count = 0;
    cudaError_t    r = device && prop ? cuDeviceGetCount(&count) : cudaErrorInvalidValue;

    if (r)
        return r;
    *device = 0;
    for (int i = count - 1; i >= 0 && !r; i--) {
        r = run_cudaGetDeviceProperties(&found, i);
        if (!r && found.totalGlobalMem >= prop->totalGlobalMem && 10 * found.major + found.minor >= 10 * prop->major + prop->minor)
            *device = i;
    }
    return r;
}

cudaError_t run_cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr, unsigned int cudaVersion, unsigned long long flags,
                                                 cudaDriverEntryPointQueryResult *driverStatus)
{
    if (cudaVersion > RUNTIME_VERSION)
        return cudaErrorInvalidValue;
    return cuGetProcAddress_v2(symbol, funcPtr, (int)cudaVersion, flags, driverStatus);
}

cudaError_t run_cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
                                        cudaDriverEntryPointQueryResult *driverStatus)
{
    return run_cudaGetDriverEntryPointByVersion(symbol, funcPtr, RUNTIME_VERSION, flags, driverStatus);
}

/* Private tables: there are none here, as in the driver. */
cudaError_t run_cudaGetExportTable(const void **ppExportTable, const cudaUUID_t *pExportTableId)
{
    return cuGetExportTable(ppExportTable, pExportTableId);
}

EXPORT cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int f);
EXPORT cudaError_t           __cudaGetProcAddress(const char *symbol, void **out, int version, unsigned long long flags, int *status);

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int f)
{
    return (cudaChannelFormatDesc){x, y, z, w, f};
}

cudaError_t __cudaGetProcAddress(const char *symbol, void **out, int version, unsigned long long flags, int *status)
{
    return state_end(cuGetProcAddress_v2(symbol, out, version, flags, status));
}
