/* Describes a device of AMD's. */
#include "device/hip/internal.h"

#include <stdio.h>

enum { VERSION_MAJOR = 10000000, VERSION_MINOR = 100000 }; /* of HIP, in the number that stands for it */

static void fill_versions(const struct device *d, struct device_info *out)
{
    int version = 0, major = 0, minor = 0;

    d->cu->cuDeviceGetAttribute(&major, CUDA_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d->ordinal);
    d->cu->cuDeviceGetAttribute(&minor, CUDA_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d->ordinal);
    snprintf(out->compute_capability, sizeof out->compute_capability, "%d.%d", major % 1000, minor % 1000);
    if (d->cu->cuDriverGetVersion(&version) == CUDA_RESULT_SUCCESS)
        snprintf(out->driver, sizeof out->driver, "hip %d.%d.%d", version / VERSION_MAJOR, version % VERSION_MAJOR / VERSION_MINOR,
                 version % VERSION_MINOR);
}

enum status hip_info(struct device *d, struct device_info *out)
{
    enum status st = cuda_info_common(d, out);

    if (st)
        return st;
    if (!hip_arch(d->ordinal, out->compile_arch))
        return STATUS_DEVICE_ERROR;
    fill_versions(d, out);
    snprintf(out->vendor, sizeof out->vendor, "AMD");
    snprintf(out->compiler, sizeof out->compiler, "hiprtc");
    out->code_format = DEVICE_CODE_AMDGPU;
    snprintf(out->unsupported, sizeof out->unsupported, "textures,printf,cooperative,memcheck,libraries");
    for (unsigned i = 0; i < DEVICE_SENSORS; i++)
        out->sensors[i] = (struct device_reading){.state = SENSOR_NOT_OFFERED};
    return STATUS_OK;
}

void hip_identify(unsigned index, char out[DEVICE_UUID_BYTES])
{
    const struct cuda_driver *cu = hip_driver_load(NULL);

    out[0] = '\0';
    if (cu)
        cuda_identify_on(cu, index, out);
}
