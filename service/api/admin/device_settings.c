/* PATCH of a device: its settings, for operators. All values are checked before the first is set. */
#include <stdio.h>

#include "api/call.h"
#include "api/devices.h"
#include "api/endpoints.h"
#include "base/log/log.h"

/* What the request asks for. */
struct wishes {
    bool                        asked[DEVICE_SETTING_COUNT];
    struct device_setting_value values[DEVICE_SETTING_COUNT];
};

struct patch_request {
    const struct json *settings;
};

static const struct json_field patch_fields[] = {
    JSON_FIELD(FIELD_ANY, struct patch_request, settings, true, 0),
};

static void point_to(struct span name, char pointer[PROBLEM_POINTER_BYTES])
{
    snprintf(pointer, PROBLEM_POINTER_BYTES, "/settings/%.*s", (int)span_first(name, 64).bytes, name.data);
}

/* One that is too large for any device stays too large. */
static bool setting_number(const struct json *v, uint32_t *out)
{
    uint64_t n;

    if (!json_u64(v, &n))
        return false;
    *out = n < INT32_MAX ? (uint32_t)n : INT32_MAX;
    return true;
}

/* False: it has another shape. */
static bool decode_value(const struct json *v, enum device_setting_shape shape, struct device_setting_value *out)
{
    *out = (struct device_setting_value){.set = 1};
    switch (shape) {
    case DEVICE_SETTING_PAIR:
        return json_type_of(v) == JSON_ARRAY && json_count(v) == 2 && setting_number(json_first(v), &out->low) &&
               setting_number(json_next(json_first(v)), &out->high);
    case DEVICE_SETTING_ONE:
        return setting_number(v, &out->low);
    case DEVICE_SETTING_SWITCH:
        out->low = json_bool(v);
        return json_type_of(v) == JSON_BOOL;
    }
    return false;
}

static enum status decode_setting(const struct json *v, struct wishes *out, struct problem *why)
{
    static const char *const shapes[] = {[DEVICE_SETTING_PAIR] = "must be [lowest, highest], or null for the device's own",
                                         [DEVICE_SETTING_ONE] = "must be a non-negative integer, or null for the device's own",
                                         [DEVICE_SETTING_SWITCH] = "must be true, false, or null for the driver's own"};
    char                     pointer[PROBLEM_POINTER_BYTES];
    unsigned                 s = 0;
    bool                     fits;

    point_to(json_name(v), pointer);
    while (s < DEVICE_SETTING_COUNT && !span_is(json_name(v), device_setting_name((enum device_setting)s)))
        s++;
    if (s == DEVICE_SETTING_COUNT)
        return problem_field(why, STATUS_UNKNOWN_FIELD, pointer, "unknown", "unknown setting");
    out->asked[s] = true;
    if (json_type_of(v) == JSON_NULL)
        return STATUS_OK;
    fits = decode_value(v, device_setting_shape_of((enum device_setting)s), &out->values[s]);
    return fits ? STATUS_OK
                : problem_field(why, STATUS_INVALID_FIELD, pointer, "type", "%s", shapes[device_setting_shape_of((enum device_setting)s)]);
}

static enum status decode_patch(struct request *r, struct wishes *out)
{
    struct patch_request q = {0};
    enum status          st = body_decode(r, patch_fields, COUNT(patch_fields), &q);

    if (!st && json_type_of(q.settings) != JSON_OBJECT)
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "/settings", "type", "settings must be an object");
    for (const struct json *v = st ? NULL : json_first(q.settings); v && !st; v = json_next(v))
        st = decode_setting(v, out, &r->problem);
    return st;
}

/* Names the setting. What a device does not have is the request's fault, too. */
static enum status name_setting(enum device_setting s, enum status st, struct problem *why)
{
    struct problem as = *why;
    char           pointer[PROBLEM_POINTER_BYTES];

    if (st != STATUS_NOT_IMPLEMENTED && st != STATUS_INVALID_FIELD)
        return st;
    point_to(span_of(device_setting_name(s)), pointer);
    return problem_field(why, STATUS_INVALID_FIELD, pointer, st == STATUS_INVALID_FIELD ? "range" : "unsupported", "%s", as.detail);
}

static enum status for_each(struct request *r, unsigned device, const struct wishes *w,
                            enum status (*act)(struct pool *, unsigned, enum device_setting, const struct device_setting_value *,
                                               struct problem *))
{
    enum status st = STATUS_OK;

    for (unsigned s = 0; s < DEVICE_SETTING_COUNT && !st; s++)
        if (w->asked[s] && (st = act(app_of(r)->pool, device, (enum device_setting)s, &w->values[s], &r->problem)))
            st = name_setting((enum device_setting)s, st, &r->problem);
    return st;
}

enum status devices_patch(struct request *r)
{
    struct wishes w = {0};
    unsigned      device = 0;
    enum status   st = decode_patch(r, &w);

    if (!st)
        st = device_find(r, &device);
    if (!st && !app_of(r)->config->allow_device_settings)
        st = problem_set(&r->problem, STATUS_FEATURE_DISABLED,
                         "settings of devices are read-only: the service was started without --allow-device-settings");
    if (!st)
        st = for_each(r, device, &w, pool_device_setting_fits);
    if (st)
        return st;
    log_warn("frontend", "%s changes settings of device %.*s", r->caller->name, (int)r->params[0].bytes, r->params[0].data);
    st = for_each(r, device, &w, pool_device_configure);
    return st ? st : device_answer(r, device);
}
