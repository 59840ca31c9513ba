/* The table of backends, made from devices.def, and the check that each offers what it must. */
#include "device/device.h"

#include "base/log.h"

#define DEVICE(name) extern const struct device_ops device_##name;
#include "device/devices.def"
#undef DEVICE

static const struct device_ops *const backends[] = {
#define DEVICE(name) &device_##name,
#include "device/devices.def"
#undef DEVICE
};

static const struct {
    const char *name;
    size_t      offset; /* of a pointer in struct device_ops */
} needed[] = {
#define NEED(member) {#member, offsetof(struct device_ops, member)},
#include "device/members.def"
#undef NEED
};

const char *device_ops_missing(const struct device_ops *ops)
{
    for (size_t i = 0; i < COUNT(needed); i++) {
        void *member;

        memcpy(&member, (const char *)ops + needed[i].offset, sizeof member);
        if (!member)
            return needed[i].name;
    }
    return NULL;
}

const struct device_ops *device_ops_at(unsigned i)
{
    return i < COUNT(backends) ? backends[i] : NULL;
}

const struct device_ops *device_ops_find(struct span name)
{
    for (unsigned i = 0; i < COUNT(backends); i++) {
        const char *missing;

        if (!backends[i]->name || !span_is(name, backends[i]->name))
            continue;
        missing = device_ops_missing(backends[i]);
        if (!missing)
            return backends[i];
        log_error("device", "the backend %s lacks %s", backends[i]->name, missing);
        return NULL;
    }
    return NULL;
}

void device_set(struct span name, const char *value)
{
    for (unsigned i = 0; i < COUNT(backends); i++)
        if (backends[i]->set && backends[i]->set(name, value))
            return;
}
