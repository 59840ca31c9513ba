/* Devices and their figures. */
#include "api/devices.h"

#include "api/call.h"
#include "api/endpoints.h"
#include "base/host_memory.h"
#include "kernels/kernels.h"

const char *device_state_name(enum device_state s)
{
    static const char *const names[] = {
        [DEVICE_HEALTHY] = "healthy", [DEVICE_SUSPECT] = "suspect",       [DEVICE_QUARANTINED] = "quarantined",
        [DEVICE_HOT] = "hot",         [DEVICE_OVERHEATED] = "overheated", [DEVICE_RESETTING] = "resetting",
        [DEVICE_LOST] = "lost"};

    return names[s];
}

uint64_t device_free_bytes(const struct device_info *i)
{
    uint64_t host = i->on_host ? host_memory_free() : UINT64_MAX;

    return host < i->free_bytes ? host : i->free_bytes;
}

static const char *const sandbox_names[] = {
    [WORKER_SANDBOX_NONE] = "none", [WORKER_SANDBOX_DENY_LIST] = "deny-list", [WORKER_SANDBOX_ALLOW_LIST] = "allow-list"};

/* A sensor without a value is null, and `unavailable` says why. */
static void add_sensors(struct json_writer *w, const struct device_info *info)
{
    for (unsigned i = 0; i < DEVICE_SENSORS; i++)
        if (info->sensors[i].state == SENSOR_READ)
            json_add_i64(w, device_sensor_name(i), info->sensors[i].value);
        else
            json_add_null(w, device_sensor_name(i));
    json_open_object(w, "unavailable");
    for (unsigned i = 0; i < DEVICE_SENSORS; i++)
        if (info->sensors[i].state != SENSOR_READ)
            json_add_text(w, device_sensor_name(i), device_sensor_reason(info->sensors[i].state));
    json_close_object(w);
}

static void add_attributes(struct json_writer *w, const struct device_info *info)
{
    json_open_object(w, "attributes");
    for (uint32_t i = 0; i < info->attributes_count && i < DEVICE_ATTRIBUTES_MAX; i++)
        json_add_i64(w, info->attributes[i].name, info->attributes[i].value);
    json_close_object(w);
}

static void add_unsupported(struct json_writer *w, const char *list)
{
    struct span rest = span_of(list);

    json_open_array(w, "unsupported");
    while (rest.bytes) {
        struct span word = span_trim(span_cut(&rest, ','));
        if (word.bytes)
            json_add_string(w, NULL, word);
    }
    json_close_array(w);
}

static void add_health(struct json_writer *w, const struct device_health *h)
{
    if (h->watched && h->ecc_uncorrected >= 0)
        json_add_i64(w, "ecc_uncorrected", h->ecc_uncorrected);
    else
        json_add_null(w, "ecc_uncorrected");
    if (h->xid)
        json_add_u64(w, "xid", h->xid);
    else
        json_add_null(w, "xid");
}

static const char *library_version(const struct device_info *i, const char *name)
{
    for (unsigned l = 0; l < DEVICE_LIBRARIES_MAX; l++)
        if (strcmp(i->libraries[l].name, name) == 0)
            return i->libraries[l].version;
    return NULL;
}

/* Those that can do built-in kernels, with their versions; null: this device does not use it. */
static void add_libraries(struct json_writer *w, const struct device_info *i)
{
    json_open_object(w, "libraries");
    for (unsigned l = BUILTIN_LIBRARY_NONE + 1; l < BUILTIN_LIBRARIES; l++) {
        const char *name = builtin_library_name(l);

        json_add_text_or_null(w, name, library_version(i, name));
    }
    json_close_object(w);
}

/* What this service has set; null: nothing. */
static void add_settings(struct json_writer *w, const struct device_setting_value *settings)
{
    json_open_object(w, "settings");
    for (unsigned i = 0; i < DEVICE_SETTING_COUNT; i++) {
        const char               *name = device_setting_name((enum device_setting)i);
        enum device_setting_shape shape = device_setting_shape_of((enum device_setting)i);

        if (!settings[i].set) {
            json_add_null(w, name);
        } else if (shape == DEVICE_SETTING_PAIR) {
            json_open_array(w, name);
            json_add_u64(w, NULL, settings[i].low);
            json_add_u64(w, NULL, settings[i].high);
            json_close_array(w);
        } else if (shape == DEVICE_SETTING_SWITCH) {
            json_add_bool(w, name, settings[i].low != 0);
        } else {
            json_add_u64(w, name, settings[i].low);
        }
    }
    json_close_object(w);
}

static void add_members(struct json_writer *w, const char *node, const struct pool_device *d)
{
    const struct device_info *i = &d->info;

    json_add_text(w, "id", d->id);
    if (node[0])
        json_add_text(w, "node", node);
    json_add_text(w, "backend", d->backend);
    json_add_text(w, "vendor", i->vendor);
    json_add_text(w, "kind", i->on_host ? "cpu" : "gpu");
    json_add_text(w, "name", i->name);
    json_add_text(w, "uuid", i->uuid);
    json_add_text(w, "compute_capability", i->compute_capability);
    json_add_text(w, "state", device_state_name(d->state));
    json_add_text(w, "worker_sandbox", sandbox_names[d->sandbox]);
    json_open_object(w, "memory");
    json_add_u64(w, "total_bytes", i->total_bytes);
    json_add_u64(w, "free_bytes", device_free_bytes(i));
    json_close_object(w);
    json_add_u64(w, "multiprocessors", i->multiprocessors);
    json_add_u64(w, "clock_khz", i->clock_khz);
    json_add_u64(w, "memory_clock_khz", i->memory_clock_khz);
    json_add_u64(w, "l2_cache_bytes", i->l2_cache_bytes);
    json_add_u64(w, "warp_size", i->warp_size);
    json_add_u64(w, "max_threads_per_block", i->max_threads_per_block);
    json_add_u64(w, "max_shared_bytes_per_block", i->max_shared_bytes_per_block);
    json_add_bool(w, "unified_addressing", i->unified_addressing != 0);
    json_add_bool(w, "unified_memory", i->unified_memory != 0);
    json_add_text(w, "compile_arch", i->compile_arch);
    json_add_text_or_null(w, "compiler", i->compiler);
    add_settings(w, d->settings);
    add_sensors(w, i);
    add_health(w, &i->health);
    add_libraries(w, i);
    add_attributes(w, i);
    add_unsupported(w, i->unsupported);
}

static void add_devices(struct list *l)
{
    struct pool       *pool = app_of(l->request)->pool;
    struct pool_device d;
    unsigned           i = 0, sent = 0;

    if (l->page.cursor.bytes) {
        int at = pool_device_find(pool, l->page.cursor);
        i = at < 0 ? pool_device_count(pool) : (unsigned)at + 1;
    }
    for (; sent < l->page.limit && pool_device_refresh(pool, i, &d); i++, sent++) {
        json_open_object(l->w, NULL);
        add_members(l->w, app_of(l->request)->config->node, &d);
        json_close_object(l->w);
    }
    if (sent && i < pool_device_count(pool))
        span_copy(span_of(d.id), l->page.next, sizeof l->page.next);
}

enum status devices_list(struct request *r)
{
    return answer_list(r, 0, 0, add_devices);
}

enum status device_answer(struct request *r, unsigned device)
{
    struct pool_device d;
    struct answer      a;

    if (!pool_device_refresh(app_of(r)->pool, device, &d))
        return problem_set(&r->problem, STATUS_DEVICE_NOT_FOUND, "no such device");
    answer_begin(&a);
    add_members(&a.w, app_of(r)->config->node, &d);
    return answer_end(&a, r, 200);
}

enum status device_find(struct request *r, unsigned *out)
{
    int i = pool_device_find(app_of(r)->pool, r->params[0]);

    if (i < 0)
        return problem_set(&r->problem, STATUS_DEVICE_NOT_FOUND, "no such device");
    *out = (unsigned)i;
    return STATUS_OK;
}

enum status devices_get(struct request *r)
{
    unsigned    device = 0;
    enum status st = device_find(r, &device);

    return st ? st : device_answer(r, device);
}
