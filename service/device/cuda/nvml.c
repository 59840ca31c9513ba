/* Reads live clocks and sensors, and changes settings, through libnvidia-ml, which is optional and must never delay a worker for long. */
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
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_FUNCTION_NOT_FOUND = 13,
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

static enum device_sensor_state state_of(int result)
{
    switch (result) {
    case 0:
        return SENSOR_READ;
    case NVML_NOT_SUPPORTED:
    case NVML_FUNCTION_NOT_FOUND:
        return SENSOR_NOT_SUPPORTED;
    case NVML_NO_PERMISSION:
        return SENSOR_NOT_ALLOWED;
    default:
        return SENSOR_FAILED;
    }
}

/* *value times factor_1000 / 1000, if the call that gave it succeeded. */
static void set_sensor(struct device_info *info, enum device_sensor s, int result, const unsigned *value, unsigned factor_1000)
{
    struct device_reading reading = {.state = state_of(result)};
    uint64_t              scaled = result == 0 ? (uint64_t)*value * factor_1000 / 1000 : 0;

    if (scaled > INT32_MAX)
        reading.state = SENSOR_FAILED;
    else
        reading.value = (int32_t)scaled;
    info->sensors[s] = reading;
}

static void set_all_sensors(struct device_info *info, enum device_sensor_state why)
{
    for (unsigned i = 0; i < DEVICE_SENSORS; i++)
        info->sensors[i] = (struct device_reading){.state = why};
}

/* Functions of these shapes, which the library may lack. */
static int get(int (*f)(struct nvmlDevice_st *, unsigned *), struct nvmlDevice_st *gpu, unsigned *value)
{
    return f ? f(gpu, value) : NVML_FUNCTION_NOT_FOUND;
}

static int get_kind(int (*f)(struct nvmlDevice_st *, unsigned, unsigned *), struct nvmlDevice_st *gpu, unsigned kind, unsigned *value)
{
    return f ? f(gpu, kind, value) : NVML_FUNCTION_NOT_FOUND;
}

static int get_two(int (*f)(struct nvmlDevice_st *, unsigned *, unsigned *), struct nvmlDevice_st *gpu, unsigned *a, unsigned *b)
{
    return f ? f(gpu, a, b) : NVML_FUNCTION_NOT_FOUND;
}

static void read_utilization(struct nvmlDevice_st *gpu, struct device_info *info)
{
    struct nvml_utilization rates = {0};
    unsigned                pct, period_us;
    int result = nvml.call.nvmlDeviceGetUtilizationRates ? nvml.call.nvmlDeviceGetUtilizationRates(gpu, &rates) : NVML_FUNCTION_NOT_FOUND;

    set_sensor(info, DEVICE_SENSOR_UTILIZATION_PCT, result, &rates.gpu_pct, 1000);
    set_sensor(info, DEVICE_SENSOR_MEMORY_UTILIZATION_PCT, result, &rates.memory_pct, 1000);
    set_sensor(info, DEVICE_SENSOR_ENCODER_UTILIZATION_PCT, get_two(nvml.call.nvmlDeviceGetEncoderUtilization, gpu, &pct, &period_us), &pct,
               1000);
    set_sensor(info, DEVICE_SENSOR_DECODER_UTILIZATION_PCT, get_two(nvml.call.nvmlDeviceGetDecoderUtilization, gpu, &pct, &period_us), &pct,
               1000);
}

static void read_power(struct nvmlDevice_st *gpu, struct device_info *info)
{
    unsigned value, least, most;
    int      result = get_two(nvml.call.nvmlDeviceGetPowerManagementLimitConstraints, gpu, &least, &most);

    set_sensor(info, DEVICE_SENSOR_POWER_W, get(nvml.call.nvmlDeviceGetPowerUsage, gpu, &value), &value, 1);
    set_sensor(info, DEVICE_SENSOR_POWER_LIMIT_W, get(nvml.call.nvmlDeviceGetEnforcedPowerLimit, gpu, &value), &value, 1);
    set_sensor(info, DEVICE_SENSOR_POWER_LIMIT_MIN_W, result, &least, 1);
    set_sensor(info, DEVICE_SENSOR_POWER_LIMIT_MAX_W, result, &most, 1);
    set_sensor(info, DEVICE_SENSOR_PERFORMANCE_STATE, get(nvml.call.nvmlDeviceGetPerformanceState, gpu, &value), &value, 1000);
}

static void read_heat(struct nvmlDevice_st *gpu, struct device_info *info)
{
    unsigned value;

    set_sensor(info, DEVICE_SENSOR_TEMPERATURE_C, get_kind(nvml.call.nvmlDeviceGetTemperature, gpu, NVML_SENSOR_GPU, &value), &value, 1000);
    set_sensor(info, DEVICE_SENSOR_TEMPERATURE_MAX_C,
               get_kind(nvml.call.nvmlDeviceGetTemperatureThreshold, gpu, NVML_THRESHOLD_SLOWDOWN, &value), &value, 1000);
    set_sensor(info, DEVICE_SENSOR_FAN_PCT, get(nvml.call.nvmlDeviceGetFanSpeed, gpu, &value), &value, 1000);
}

static void read_link(struct nvmlDevice_st *gpu, struct device_info *info)
{
    unsigned value;

    set_sensor(info, DEVICE_SENSOR_PCIE_GENERATION, get(nvml.call.nvmlDeviceGetCurrPcieLinkGeneration, gpu, &value), &value, 1000);
    set_sensor(info, DEVICE_SENSOR_PCIE_GENERATION_MAX, get(nvml.call.nvmlDeviceGetMaxPcieLinkGeneration, gpu, &value), &value, 1000);
    set_sensor(info, DEVICE_SENSOR_PCIE_WIDTH, get(nvml.call.nvmlDeviceGetCurrPcieLinkWidth, gpu, &value), &value, 1000);
    set_sensor(info, DEVICE_SENSOR_PCIE_WIDTH_MAX, get(nvml.call.nvmlDeviceGetMaxPcieLinkWidth, gpu, &value), &value, 1000);
}

static void read_clocks(struct nvmlDevice_st *gpu, struct device_info *info)
{
    unsigned mhz, khz = 1000 * 1000; /* in thousandths */

    if (get_kind(nvml.call.nvmlDeviceGetClockInfo, gpu, NVML_CLOCK_SM, &mhz) == 0 && mhz <= UINT32_MAX / 1000)
        info->clock_khz = mhz * 1000;
    if (get_kind(nvml.call.nvmlDeviceGetClockInfo, gpu, NVML_CLOCK_MEMORY, &mhz) == 0 && mhz <= UINT32_MAX / 1000)
        info->memory_clock_khz = mhz * 1000;
    set_sensor(info, DEVICE_SENSOR_CLOCK_MAX_KHZ, get_kind(nvml.call.nvmlDeviceGetMaxClockInfo, gpu, NVML_CLOCK_SM, &mhz), &mhz, khz);
    set_sensor(info, DEVICE_SENSOR_MEMORY_CLOCK_MAX_KHZ, get_kind(nvml.call.nvmlDeviceGetMaxClockInfo, gpu, NVML_CLOCK_MEMORY, &mhz), &mhz,
               khz);
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

    if (!events_tried)
        listen_to(gpu);
    take_events();
    known.watched = 1;
    known.ecc_uncorrected = -1;
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
    set_all_sensors(info, SENSOR_NO_LIBRARY);
    if (state == NVML_OFF)
        return;
    if (deadline_left_ns(paused_until_ns) > 0) {
        set_all_sensors(info, SENSOR_PAUSED);
        info->health = known;
        return;
    }
    began = now_ns();
    found = nvml.call.nvmlDeviceGetHandleByUUID(info->uuid, &gpu);
    if (found == NVML_GPU_IS_LOST)
        record_xid(DEVICE_ACTION_END, 0);
    if (found == 0 && gpu) {
        read_heat(gpu, info);
        read_power(gpu, info);
        read_utilization(gpu, info);
        read_link(gpu, info);
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

/* ---- settings ---- */

static int set_clocks(int (*lock)(struct nvmlDevice_st *, unsigned, unsigned), int (*release)(struct nvmlDevice_st *),
                      struct nvmlDevice_st *gpu, const struct device_setting_value *v)
{
    if (!lock || !release)
        return NVML_FUNCTION_NOT_FOUND;
    return v->set ? lock(gpu, v->low, v->high) : release(gpu);
}

static int set_power_limit(struct nvmlDevice_st *gpu, const struct device_setting_value *v)
{
    unsigned milliwatts = 0;
    int      result = v->set ? 0 : get(nvml.call.nvmlDeviceGetPowerManagementDefaultLimit, gpu, &milliwatts);

    if (result)
        return result;
    if (!nvml.call.nvmlDeviceSetPowerManagementLimit)
        return NVML_FUNCTION_NOT_FOUND;
    if (v->set && v->low > UINT32_MAX / 1000)
        return NVML_INVALID_ARGUMENT;
    return nvml.call.nvmlDeviceSetPowerManagementLimit(gpu, v->set ? v->low * 1000 : milliwatts);
}

/* All fans alike. */
static int set_fans(struct nvmlDevice_st *gpu, const struct device_setting_value *v)
{
    unsigned count = 0;
    int      result = get(nvml.call.nvmlDeviceGetNumFans, gpu, &count);

    if (!result && count == 0)
        result = NVML_NOT_SUPPORTED;
    if (!result && !(nvml.call.nvmlDeviceSetFanSpeed_v2 && nvml.call.nvmlDeviceSetDefaultFanSpeed_v2))
        result = NVML_FUNCTION_NOT_FOUND;
    for (unsigned i = 0; i < count && !result; i++)
        result = v->set ? nvml.call.nvmlDeviceSetFanSpeed_v2(gpu, i, v->low) : nvml.call.nvmlDeviceSetDefaultFanSpeed_v2(gpu, i);
    return result;
}

static int set_persistence(struct nvmlDevice_st *gpu, const struct device_setting_value *v)
{
    return nvml.call.nvmlDeviceSetPersistenceMode ? nvml.call.nvmlDeviceSetPersistenceMode(gpu, v->set && v->low) : NVML_FUNCTION_NOT_FOUND;
}

static int set_one(struct nvmlDevice_st *gpu, enum device_setting s, const struct device_setting_value *v)
{
    switch (s) {
    case DEVICE_SETTING_CLOCKS:
        return set_clocks(nvml.call.nvmlDeviceSetGpuLockedClocks, nvml.call.nvmlDeviceResetGpuLockedClocks, gpu, v);
    case DEVICE_SETTING_MEMORY_CLOCKS:
        return set_clocks(nvml.call.nvmlDeviceSetMemoryLockedClocks, nvml.call.nvmlDeviceResetMemoryLockedClocks, gpu, v);
    case DEVICE_SETTING_POWER_LIMIT:
        return set_power_limit(gpu, v);
    case DEVICE_SETTING_PERSISTENCE_MODE:
        return set_persistence(gpu, v);
    case DEVICE_SETTING_FAN:
        return set_fans(gpu, v);
    case DEVICE_SETTING_COUNT:
        break;
    }
    return NVML_NOT_SUPPORTED;
}

enum status nvml_set(const char *uuid, enum device_setting s, const struct device_setting_value *v, struct problem *why)
{
    struct nvmlDevice_st *gpu = NULL;
    int                   result;

    if (state == NVML_UNTRIED)
        state = start_nvml() ? NVML_READY : NVML_OFF;
    if (state == NVML_OFF)
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "the driver's management library is missing");
    result = nvml.call.nvmlDeviceGetHandleByUUID(uuid, &gpu);
    if (!result)
        result = set_one(gpu, s, v);
    switch (result) {
    case 0:
        return STATUS_OK;
    case NVML_NOT_SUPPORTED:
    case NVML_FUNCTION_NOT_FOUND:
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "the driver does not offer this setting for this device");
    case NVML_NO_PERMISSION:
        return problem_set(why, STATUS_FEATURE_DISABLED,
                           "the driver lets only root change this setting, and the service runs as another user");
    case NVML_INVALID_ARGUMENT:
        return problem_set(why, STATUS_INVALID_FIELD, "the driver does not accept this value");
    default:
        return problem_set(why, STATUS_INTERNAL, "the driver's management library failed to change it (error %d)", result);
    }
}
