/* The cuda backend: finds the devices, opens and closes a context, remembers how it was lost. */
#include "base/log/log.h"
#include "device/cuda/vendor/vendor.h"
#include "device/cuda/vendor/vendor_library.h"

#include <stdlib.h>

enum status cuda_check(struct device *d, cuda_result r, struct problem *why, const char *doing)
{
    struct problem told;
    enum status    st;

    if (r == CUDA_RESULT_SUCCESS)
        return STATUS_OK;
    st = cuda_problem(d->cu, r, &told, doing);
    if (st == STATUS_PENDING)
        return st;
    if (st == STATUS_KERNEL_FAULT || st == STATUS_DEVICE_ERROR || st == STATUS_EXECUTION_TIMEOUT || st == STATUS_FAULT_DOMAIN_LOST) {
        if (!d->lost.status) {
            log_warn("device", "the context is lost: %s", told.detail);
            problem_cuda(&d->lost, st, (int)r, told.cuda_name, "the device reports %s", told.cuda_name);
        }
        told = d->lost;
    }
    if (why)
        *why = told;
    return told.status;
}

enum status cuda_alive(const struct device *d, struct problem *why)
{
    if (d->lost.status && why)
        *why = d->lost;
    return d->lost.status;
}

unsigned cuda_count_on(const struct cuda_driver *cu, struct problem *why)
{
    int         count = 0;
    cuda_result r = cu->cuInit(0);

    if (r != CUDA_RESULT_ERROR_NO_DEVICE &&
        (cuda_problem(cu, r, why, "starting the driver") || cuda_problem(cu, cu->cuDeviceGetCount(&count), why, "counting devices")))
        return 0;
    if (count <= 0)
        problem_set(why, STATUS_DEVICE_NOT_FOUND, "the driver found no device");
    return count > 0 ? (unsigned)count : 0;
}

static unsigned count_devices(struct problem *why)
{
    const struct cuda_driver *cu = cuda_driver_load(why);

    if (!cu && why)
        why->status = STATUS_DEVICE_ERROR; /* it is not here, or is just being replaced: that tells nothing about devices */
    return cu ? cuda_count_on(cu, why) : 0;
}

static enum status context_limit(struct device *d, unsigned which, uint32_t *out, struct problem *why)
{
    int         value = 0;
    enum status st = cuda_check(d, d->cu->cuDeviceGetAttribute(&value, which, d->ordinal), why, "reading the device's limits");

    *out = value > 0 ? (uint32_t)value : 0;
    return st;
}

/* Devices before 7.0 have no opt-in. */
static enum status shared_limit(struct device *d, struct problem *why)
{
    int value = 0;

    if (d->cu->cuDeviceGetAttribute(&value, CUDA_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, d->ordinal) != CUDA_RESULT_SUCCESS ||
        value <= 0)
        return context_limit(d, CUDA_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &d->max_shared_bytes, why);
    d->max_shared_bytes = (uint32_t)value;
    return STATUS_OK;
}

static enum status read_limits(struct device *d, struct problem *why)
{
    static const unsigned blocks[] = {CUDA_ATTRIBUTE_MAX_BLOCK_DIM_X, CUDA_ATTRIBUTE_MAX_BLOCK_DIM_Y, CUDA_ATTRIBUTE_MAX_BLOCK_DIM_Z};
    static const unsigned grids[] = {CUDA_ATTRIBUTE_MAX_GRID_DIM_X, CUDA_ATTRIBUTE_MAX_GRID_DIM_Y, CUDA_ATTRIBUTE_MAX_GRID_DIM_Z};
    enum status           st = context_limit(d, CUDA_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &d->max_block_threads, why);

    for (int i = 0; i < 3 && !st; i++) {
        st = context_limit(d, blocks[i], &d->max_block[i], why);
        if (!st)
            st = context_limit(d, grids[i], &d->max_grid[i], why);
    }
    return st ? st : shared_limit(d, why);
}

static enum status select_device(struct device *d, unsigned index, struct problem *why)
{
    size_t      total = 0;
    enum status st = cuda_check(d, d->cu->cuInit(0), why, "starting the driver");

    if (!st)
        st = cuda_check(d, d->cu->cuDeviceGet(&d->ordinal, (int)index), why, "selecting the device");
    if (!st)
        st = cuda_check(d, d->cu->cuDeviceTotalMem_v2(&total, d->ordinal), why, "reading the memory size");
    d->total_bytes = total;
    return st;
}

static const char *server; /* the folder of the MPS server that the process is to be a client of; NULL: of none */

/* A client that does not reach its server works without it, and says nothing. */
static enum status check_server(struct device *d, struct problem *why)
{
    int on = 0;

    if (!server)
        return STATUS_OK;
    if (d->cu->cuDeviceGetAttribute(&on, CUDA_ATTRIBUTE_MPS_ENABLED, d->ordinal) == CUDA_RESULT_SUCCESS && on)
        return STATUS_OK;
    return problem_set(why, STATUS_FAULT_DOMAIN_UNAVAILABLE, "the CUDA driver does not use the MPS server of the fault domain");
}

static enum status make_context(struct device *d, struct problem *why)
{
    cuda_context context = NULL;
    enum status  st = cuda_check(d, d->cu->cuDevicePrimaryCtxRetain(&context, d->ordinal), why, "creating the context");

    if (st)
        return st;
    d->context = context;
    st = cuda_check(d, d->cu->cuCtxSetCurrent(context), why, "selecting the context");
    if (!st && d->cu->cuCtxSetLimit)
        st = cuda_check(d, d->cu->cuCtxSetLimit(CUDA_LIMIT_PRINTF_FIFO_BYTES, KERNEL_OUTPUT_BYTES_MAX), why, "sizing the printf buffer");
    return st;
}

void cuda_close(struct device *d)
{
    if (!d)
        return;
    while (!LIST_EMPTY(&d->graphs))
        cuda_graph_destroy(d, LIST_FIRST(&d->graphs));
    while (!LIST_EMPTY(&d->modules))
        cuda_module_unload(d, LIST_FIRST(&d->modules));
    cuda_vendor_stop(d);
    cuda_streams_stop(d);
    if (d->context) {
        cuda_textures_stop(d);
        cuda_memory_stop(d);
        if (d->registered)
            d->cu->cuMemHostUnregister(d->registered);
        d->cu->cuDevicePrimaryCtxRelease_v2(d->ordinal);
    }
    cuda_output_stop(&d->output);
    free(d);
}

enum status cuda_open_on(const struct cuda_driver *cu, struct device **out, unsigned index, struct problem *why)
{
    struct device *d = calloc(1, sizeof *d);
    enum status    st;

    if (!d)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the device");
    d->cu = cu;
    d->output = (struct cuda_output){-1, -1};
    st = select_device(d, index, why);
    if (!st)
        st = read_limits(d, why);
    if (st)
        goto failed;
    st = make_context(d, why);
    if (st)
        goto failed;
    st = check_server(d, why);
    if (!st)
        st = cuda_memory_start(d, why);
    if (st)
        goto failed;
    st = cuda_stream_create(d, &d->default_stream);
    if (st) {
        problem_set(why, st, "cannot create the default stream");
        goto failed;
    }
    cuda_output_start(&d->output);
    *out = d;
    return STATUS_OK;
failed:
    cuda_close(d);
    return st;
}

static enum status open_device(struct device **out, unsigned index, struct problem *why)
{
    const struct cuda_driver *cu = cuda_driver_load(why);
    enum status               st = cu ? cuda_open_on(cu, out, index, why) : STATUS_DEVICE_NOT_FOUND;

    if (!st)
        vendor_libraries_load();
    return st;
}

/* The driver reads the environment at its start. Which GPUs there are, the server has been told: they are numbered as it sees them. */
static void choose_server(const char *folder)
{
    server = folder;
    setenv("CUDA_MPS_PIPE_DIRECTORY", folder, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static bool set(struct span name, const char *value)
{
    if (span_is(name, "mps")) {
        choose_server(value);
        return true;
    }
    if (span_is(name, "visible-devices")) { /* no server: the driver is not loaded yet, and no other thread reads the environment */
        if (!server)
            setenv("CUDA_VISIBLE_DEVICES", value, 1);
        return true;
    }
    if (span_is(name, "hibernation")) {
        cuda_paging_choose(value && strcmp(value, "on") == 0);
        return true;
    }
    if (!span_is(name, "libcuda"))
        return vendor_library_choose(name, value);
    cuda_driver_choose(value);
    return true;
}

static const char *driver_build(struct device *d)
{
    (void)d;
    return cuda_driver_build();
}

static const char *const          driver_files[] = {"nvidia", NULL};
static const char *const          driver_reads[] = {"/etc/nvidia", "/proc/driver", NULL};
static const struct device_driver driver = {.build = driver_build, .reads = driver_reads, .device_files = driver_files};

static const struct device_driver *driver_of(unsigned index)
{
    (void)index;
    return &driver;
}

const struct device_ops device_cuda = {
    .name = "cuda",
    .set = set,
    .count = count_devices,
    .identify = cuda_identify,
    .open = open_device,
    .driver = driver_of,
    .info = cuda_info,
    .configure = cuda_configure,
    .mem_alloc_shared = cuda_mem_alloc_shared,
    .mem_export = cuda_mem_export,
    .mem_evict = cuda_mem_evict,
    .mem_restore = cuda_mem_restore,
    .texture_create = cuda_texture_create,
    .texture_destroy = cuda_texture_destroy,
    .module_load = cuda_module_load,
    .vendor_load = cuda_vendor_load,
    .launch = cuda_launch,
    .mark = cuda_mark,
#include "device/cuda/shared.def"
};
