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
    .close = cuda_close,
    .driver = driver_of,
    .info = hip_info,
    .memory = cuda_memory_info,
    .memory_reset_peak = cuda_memory_reset_peak,
    .host_register = cuda_host_register,
    .host_attach = cuda_host_attach,
    .host_detach = cuda_host_detach,
    .mem_alloc = cuda_mem_alloc,
    .mem_free = cuda_mem_free,
    .mem_trim = cuda_mem_trim,
    .mem_keep = cuda_mem_keep,
    .mem_write = cuda_mem_write,
    .mem_read = cuda_mem_read,
    .mem_copy = cuda_mem_copy,
    .mem_fill = cuda_mem_fill,
    .module_load = hip_module_load,
    .module_unload = cuda_module_unload,
    .module_table = cuda_module_table,
    .launch = launch,
    .best_block = cuda_best_block,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .faults_late_ms = FAULT_TOLD_MS,
    .event_query = cuda_event_query,
    .stream_query = cuda_stream_query,
    .event_elapsed = cuda_event_elapsed,
    .stream_wait = cuda_stream_wait,
    .graph_create = cuda_graph_create,
    .graph_set = cuda_graph_set,
    .graph_run = cuda_graph_run,
    .graph_destroy = cuda_graph_destroy,
    .take_output = cuda_take_output,
};
