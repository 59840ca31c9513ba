/* Expands messages.def into names and sizes. */
#include "ipc/message.h"

#include <stddef.h>

static const struct {
    const char *name;
    size_t      bytes;
} rows[] = {
#define MESSAGE(NAME, call) {#call, sizeof(struct msg_##call)},
#include "ipc/messages.def"
#undef MESSAGE
};

const char *message_name(enum message m)
{
    return (unsigned)m < MESSAGE_COUNT ? rows[m].name : "unknown";
}

size_t message_bytes(enum message m)
{
    if (m == MESSAGE_LAUNCH)
        return offsetof(struct msg_launch, params);
    return (unsigned)m < MESSAGE_COUNT ? rows[m].bytes : 0;
}

size_t completion_bytes(const struct completion *c)
{
    if (c->status == STATUS_OK)
        return offsetof(struct completion, cuda_name);
    return c->access.error == ACCESS_NONE ? offsetof(struct completion, access) : sizeof *c;
}

bool message_status_fits(uint32_t status)
{
    switch (status) {
#define WORKER_STATUS(name) case STATUS_##name:
#include "ipc/worker_statuses.def"
#undef WORKER_STATUS
        return true;
    default:
        return false;
    }
}

bool message_fits(uint32_t message, const void *body, size_t bytes)
{
    const struct msg_launch *launch = body;
    size_t                   fixed;

    if (message >= MESSAGE_COUNT)
        return false;
    fixed = message_bytes((enum message)message);
    if (message != MESSAGE_LAUNCH)
        return bytes == fixed;
    return bytes >= fixed && launch->params_bytes <= KERNEL_PARAM_BYTES_MAX && bytes == fixed + launch->params_bytes;
}

const char *device_sensor_name(enum device_sensor s)
{
    static const char *const names[DEVICE_SENSORS] = {
#define SENSOR(NAME, name) #name,
#include "ipc/device_sensors.def"
#undef SENSOR
    };

    return names[s];
}

const char *device_sensor_reason(enum device_sensor_state state)
{
    static const char *const reasons[SENSOR_STATES] = {
        [SENSOR_NOT_OFFERED] = "devices of this backend have no such sensor",
        [SENSOR_NO_LIBRARY] = "the driver's management library is missing or does not know this device",
        [SENSOR_NOT_SUPPORTED] = "the driver does not report it for this device",
        [SENSOR_NOT_ALLOWED] = "the driver does not report it to the service's user",
        [SENSOR_FAILED] = "the driver failed to read it",
        [SENSOR_DEVICE_LOST] = "the device is lost",
        [SENSOR_PAUSED] = "the driver's management library was slow and is not asked at the moment",
    };

    return reasons[state];
}

static const struct {
    const char               *name;
    enum device_setting_shape shape;
} settings[DEVICE_SETTING_COUNT] = {
#define DEVICE_SETTING(NAME, name, SHAPE) {#name, DEVICE_SETTING_##SHAPE},
#include "ipc/device_settings.def"
#undef DEVICE_SETTING
};

const char *device_setting_name(enum device_setting s)
{
    return settings[s].name;
}

enum device_setting_shape device_setting_shape_of(enum device_setting s)
{
    return settings[s].shape;
}
