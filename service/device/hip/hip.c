/* The hip backend: the cuda backend's parts over AMD's library. */
#include "device/hip/internal.h"

static unsigned count_devices(struct problem *why)
{
    const struct cuda_driver *cu = hip_driver_load(why);

    return cu ? cuda_count_on(cu, why) : 0;
}

/* Without its name no code could be checked against the device. */
static enum status check_arch(const struct device *d, struct problem *why)
{
    char arch[HIP_ARCH_BYTES];

    return hip_arch(d->ordinal, arch) ? STATUS_OK
                                      : problem_set(why, STATUS_DEVICE_ERROR, "the HIP library does not tell the device's architecture");
}

static enum status open_device(struct device **out, unsigned index, struct problem *why)
{
    const struct cuda_driver *cu = hip_driver_load(why);
    struct device            *d;
    enum status               st = cu ? cuda_open_on(cu, &d, index, why) : STATUS_DEVICE_NOT_FOUND;

    if (st)
        return st;
    st = check_arch(d, why);
    if (st) {
        cuda_close(d);
        return st;
    }
    *out = d;
    return STATUS_OK;
}

static bool set(struct span name, const char *value)
{
    if (!span_is(name, "libamdhip64"))
        return false;
    hip_driver_choose(value);
    return true;
}

static const char *driver_build(struct device *d)
{
    (void)d;
    return ""; /* no list of system calls has been learnt for any driver */
}

static const char *const          driver_files[] = {"kfd", "dri", NULL};
static const char *const          driver_reads[] = {"/etc/OpenCL", "/proc/cpuinfo", "/proc/meminfo", NULL};
static const struct device_driver driver = {.build = driver_build, .reads = driver_reads, .device_files = driver_files};

static const struct device_driver *driver_of(unsigned index)
{
    (void)index;
    return &driver;
}

static enum status launch(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why)
{
    if (l->cooperative)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "devices of the backend hip have no cooperative launches");
    return cuda_launch(d, s, l, why);
}

const struct device_ops device_hip = {
    .name = "hip",
    .only_if_named = true,
    .canary_copies = true,
    .set = set,
    .count = count_devices,
    .identify = hip_identify,
    .open = open_device,
    .driver = driver_of,
    .info = hip_info,
    .module_load = hip_module_load,
    .launch = launch,
#include "device/cuda/shared.def"
};
