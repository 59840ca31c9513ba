/* Settings of devices, which operators change through the device monitor. What was set is kept here. */
#include "base/log/log.h"
#include "pool/devices/devices.h"

struct range {
    uint64_t    least, most;
    const char *unit;
};

/* 0 where the device does not tell. */
static uint64_t figure(const struct device_info *info, enum device_sensor s)
{
    int32_t value = device_sensor(info, s);

    return value < 0 ? 0 : (uint64_t)value; /* DEVICE_SENSOR_UNKNOWN is the least of all */
}

/* False: the device does not tell one, and its driver decides. */
static bool range_of(const struct device_info *info, enum device_setting s, struct range *out)
{
    *out = (struct range){0};
    switch (s) {
    case DEVICE_SETTING_CLOCKS:
        *out = (struct range){1, figure(info, DEVICE_SENSOR_CLOCK_MAX_KHZ) / 1000, "MHz"};
        break;
    case DEVICE_SETTING_MEMORY_CLOCKS:
        *out = (struct range){1, figure(info, DEVICE_SENSOR_MEMORY_CLOCK_MAX_KHZ) / 1000, "MHz"};
        break;
    case DEVICE_SETTING_POWER_LIMIT:
        *out = (struct range){figure(info, DEVICE_SENSOR_POWER_LIMIT_MIN_W), figure(info, DEVICE_SENSOR_POWER_LIMIT_MAX_W), "W"};
        break;
    case DEVICE_SETTING_FAN:
        *out = (struct range){0, 100, "percent"};
        break;
    case DEVICE_SETTING_PERSISTENCE_MODE:
    case DEVICE_SETTING_COUNT:
        return false;
    }
    return out->most > 0;
}

enum status pool_device_setting_fits(struct pool *p, unsigned i, enum device_setting s, const struct device_setting_value *v,
                                     struct problem *why)
{
    uint64_t     high = device_setting_shape_of(s) == DEVICE_SETTING_PAIR ? v->high : v->low;
    struct range r;
    bool         known;

    assert(i < p->devices_count);
    pthread_mutex_lock(&p->lock);
    known = range_of(&p->devices[i].public.info, s, &r);
    pthread_mutex_unlock(&p->lock);
    if (v->set && v->low > high)
        return problem_set(why, STATUS_INVALID_FIELD, "the lowest value must not be above the highest");
    if (v->set && known && (v->low < r.least || high > r.most))
        return problem_set(why, STATUS_INVALID_FIELD, "must be from %llu to %llu %s on this device", (unsigned long long)r.least,
                           (unsigned long long)r.most, r.unit);
    return STATUS_OK;
}

static void keep_setting(struct pool *p, struct device_slot *d, enum device_setting s, const struct device_setting_value *v)
{
    pthread_mutex_lock(&p->lock);
    d->public.settings[s] = *v;
    pthread_mutex_unlock(&p->lock);
}

enum status pool_device_configure(struct pool *p, unsigned i, enum device_setting s, const struct device_setting_value *v,
                                  struct problem *why)
{
    struct device_slot *d = &p->devices[i];
    enum status         st = pool_device_setting_fits(p, i, s, v, why);

    if (st)
        return st;
    if (atomic_load(&d->lost))
        return device_lost_problem(d, why);
    if (atomic_load(&d->resetting))
        return problem_set(why, STATUS_DEVICE_BUSY, "device %s is being reset", d->public.id);
    pthread_mutex_lock(&d->settings_lock);
    st = device_monitor_set(p, d, s, v, why);
    if (!st)
        keep_setting(p, d, s, v);
    pthread_mutex_unlock(&d->settings_lock);
    return st;
}

/* Under settings_lock. Without an answer it stays noted: the next device monitor tries again. */
static void set_again(struct pool *p, struct device_slot *d, enum device_setting s)
{
    const struct device_setting_value none = {0};
    struct device_setting_value       v;
    struct problem                    why = {0};
    enum status                       st;

    pthread_mutex_lock(&p->lock);
    v = d->public.settings[s];
    pthread_mutex_unlock(&p->lock);
    st = v.set ? device_monitor_set(p, d, s, &v, &why) : STATUS_OK;
    if (!st || st == STATUS_NO_WORKER || st == STATUS_DEVICE_ERROR)
        return;
    log_error("pool", "device %s: %s cannot be set again: %s", d->public.id, device_setting_name(s), why.detail);
    keep_setting(p, d, s, &none);
}

void device_settings_again(struct pool *p, struct device_slot *d)
{
    for (unsigned s = 0; s < DEVICE_SETTING_COUNT; s++) {
        pthread_mutex_lock(&d->settings_lock);
        set_again(p, d, (enum device_setting)s);
        pthread_mutex_unlock(&d->settings_lock);
    }
}
