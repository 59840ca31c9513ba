/* Reads live clocks and sensors through libnvidia-ml, which is optional and must never delay a worker for long. */
#include "device/cuda/nvml.h"
#include "device/cuda/bounds.h"

#include "base/deadline.h"
#include "base/log/log.h"
#include "device/cuda/driver.h"

struct nvmlDevice_st;
struct nvmlEventSet_st;

struct nvml_event {
    struct nvmlDevice_st *device;
    unsigned long long    kind;
    unsigned long long    data; /* of an Xid: its number */
    unsigned              gpu_instance, compute_instance;
};

struct nvml_utilization {
    unsigned gpu_pct;
    unsigned memory_pct;
};

enum {
    NVML_GPU_IS_LOST = 15,
    NVML_EVENT_XID = 8,
    NVML_THRESHOLD_SLOWDOWN = 1,
    NVML_ECC_UNCORRECTED = 1,
    NVML_ECC_VOLATILE = 0, /* since the driver was loaded */
    EVENTS_AT_ONCE = 64,
};

enum { NVML_SENSOR_GPU = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };

struct nvml_functions {
#define NVML(name, arguments) int(*name) arguments;
#include "device/cuda/nvml.def"
#undef NVML
};

static union {
    struct nvml_functions call;
    void                 *slots[sizeof(struct nvml_functions) / sizeof(void *)]; /* the same pointers, by number */
} nvml;

static const char *const names[] = {
#define NVML(name, arguments) #name,
#include "device/cuda/nvml.def"
#undef NVML
};

static_assert(sizeof nvml == sizeof(void *) * COUNT(names), "a slot per function");

static const char *library = "libnvidia-ml.so.1";
static enum { NVML_UNTRIED, NVML_READY, NVML_OFF } state;

void nvml_library(const char *path)
{
    library = path ? path : "libnvidia-ml.so.1";
}

static bool start_nvml(void)
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

/* ---- errors of the hardware ---- */

static const struct {
    unsigned           xid;
    enum device_action action;
} actions[] = {
#define XID(number, action) {number, DEVICE_ACTION_##action},
#include "device/cuda/xid.def"
#undef XID
};

static struct nvmlEventSet_st *events; /* NULL: not requested, or not offered */
static bool                    events_tried;
static struct device_health    known; /* since the start */

static enum device_action action_of(unsigned long long xid)
{
    for (size_t i = 0; i < COUNT(actions); i++)
        if (actions[i].xid == xid)
            return actions[i].action;
    return DEVICE_ACTION_NONE;
}

static void record_xid(enum device_action action, uint32_t xid)
{
    if (action <= known.action)
        return;
    known.action = action;
    known.xid = xid;
}

static void listen_to(struct nvmlDevice_st *gpu)
{
    events_tried = true;
    if (!nvml.call.nvmlEventSetCreate || !nvml.call.nvmlDeviceRegisterEvents || !nvml.call.nvmlEventSetWait_v2)
        return;
    if (nvml.call.nvmlEventSetCreate(&events) != 0)
        events = NULL;
    else if (nvml.call.nvmlDeviceRegisterEvents(gpu, NVML_EVENT_XID, events) != 0)
        log_info("device", "the management library does not report errors of this device");
}

/* Events so far, without waiting. */
static void take_events(void)
{
    for (unsigned i = 0; events && i < EVENTS_AT_ONCE; i++) {
        struct nvml_event e = {0};

        if (nvml.call.nvmlEventSetWait_v2(events, &e, 0) != 0)
            return;
        if (e.kind != NVML_EVENT_XID)
            continue;
        log_info("device", "the driver reports Xid %llu", e.data);
        record_xid(action_of(e.data), (uint32_t)e.data);
    }
}

static void read_health(struct nvmlDevice_st *gpu, struct device_info *info)
{
    unsigned long long count;
    unsigned           value;

    if (!events_tried)
        listen_to(gpu);
    take_events();
    known.watched = 1;
    known.temperature_max_c = DEVICE_SENSOR_UNKNOWN;
    known.ecc_uncorrected = -1;
    if (nvml.call.nvmlDeviceGetTemperatureThreshold &&
        nvml.call.nvmlDeviceGetTemperatureThreshold(gpu, NVML_THRESHOLD_SLOWDOWN, &value) == 0 && value <= INT32_MAX)
        known.temperature_max_c = (int32_t)value;
    if (nvml.call.nvmlDeviceGetTotalEccErrors &&
        nvml.call.nvmlDeviceGetTotalEccErrors(gpu, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE, &count) == 0 && count <= INT64_MAX)
        known.ecc_uncorrected = (int64_t)count;
    info->health = known;
}

void nvml_read(struct device_info *info)
{
    struct nvmlDevice_st *gpu = NULL;
    static uint64_t       paused_until_ns;
    uint64_t              began;
    int                   found;

    if (state == NVML_UNTRIED)
        state = start_nvml() ? NVML_READY : NVML_OFF;
    if (state == NVML_OFF)
        return;
    if (deadline_left_ns(paused_until_ns) > 0) {
        info->health = known;
        return;
    }
    began = now_ns();
    found = nvml.call.nvmlDeviceGetHandleByUUID(info->uuid, &gpu);
    if (found == NVML_GPU_IS_LOST)
        record_xid(DEVICE_ACTION_END, 0);
    if (found == 0 && gpu) {
        read_sensors(gpu, info);
        read_clocks(gpu, info);
        read_health(gpu, info);
    } else {
        info->health = known; /* who was watched stays so */
    }
    if (now_ns() - began > NVML_READ_MS_MAX * NS_PER_MS) {
        log_warn("device", "the management library is slow; it is not queried for %d s", NVML_REST_MS / 1000);
        paused_until_ns = deadline_after_ms(NVML_REST_MS);
    }
}
