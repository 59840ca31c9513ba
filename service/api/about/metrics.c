/* /metrics: all measurements as Prometheus text. */
#include "base/metrics.h"
#include "api/bounds.h"

#include "api/about/process.h"
#include "api/call.h"
#include "api/devices.h"
#include "api/endpoints.h"
#include "base/version.h"
#include "session/hibernate/hibernate.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

static const char *metric_label(struct buf *labels, const char *name, const char *value)
{
    metrics_label(labels, name, value);
    return labels->data ? labels->data : "";
}

/* With that label alone. */
static void add_sample(struct buf *out, struct buf *labels, enum metric m, const char *name, const char *value, double figure)
{
    buf_clear(labels);
    metrics_sample(out, m, metric_label(labels, name, value), figure);
}

static const char *device_label(struct buf *labels, const struct pool_device *d)
{
    buf_clear(labels);
    return metric_label(labels, "device", d->id);
}

static void add_sessions(struct buf *out, struct buf *labels, struct registry *registry)
{
    struct registry_survey all = registry_survey(registry, DEVICES_MAX);

    metrics_head(out, METRIC_SESSIONS);
    for (unsigned i = 0; i < SESSION_STATES; i++)
        add_sample(out, labels, METRIC_SESSIONS, "state", session_state_name(i), all.states[i]);
}

static void add_hibernation(struct buf *out, struct buf *labels, struct registry *registry)
{
    struct hibernation_use use;

    hibernation_use_of(registry, &use);
    metrics_head(out, METRIC_HIBERNATED_BYTES);
    add_sample(out, labels, METRIC_HIBERNATED_BYTES, "kind", "used", (double)use.bytes);
    add_sample(out, labels, METRIC_HIBERNATED_BYTES, "kind", "max", (double)use.bytes_max);
}

static void add_queues(struct buf *out, struct buf *labels, struct registry *registry)
{
    struct waiting_work waiting = registry_waiting(registry);

    metrics_head(out, METRIC_QUEUE_DEPTH);
    add_sample(out, labels, METRIC_QUEUE_DEPTH, "kind", "launch", waiting.launches);
    add_sample(out, labels, METRIC_QUEUE_DEPTH, "kind", "batch", waiting.batches);
}

static void add_workers(struct buf *out, struct buf *labels, const struct pool_device *devices, unsigned count)
{
    metrics_head(out, METRIC_WORKERS);
    for (unsigned i = 0; i < count; i++) {
        device_label(labels, &devices[i]);
        metrics_sample(out, METRIC_WORKERS, metric_label(labels, "state", "warm"), devices[i].workers_warm);
        device_label(labels, &devices[i]);
        metrics_sample(out, METRIC_WORKERS, metric_label(labels, "state", "used"), devices[i].workers_used);
    }
}

static void add_memory(struct buf *out, struct buf *labels, const struct pool_device *devices, unsigned count)
{
    metrics_head(out, METRIC_DEVICE_MEMORY);
    for (unsigned i = 0; i < count; i++) {
        if (devices[i].state == DEVICE_LOST) /* none is free, yet none is in use */
            continue;
        device_label(labels, &devices[i]);
        metrics_sample(out, METRIC_DEVICE_MEMORY, metric_label(labels, "kind", "total"), (double)devices[i].info.total_bytes);
        device_label(labels, &devices[i]);
        metrics_sample(out, METRIC_DEVICE_MEMORY, metric_label(labels, "kind", "free"), (double)device_free_bytes(&devices[i].info));
    }
}

static void add_states(struct buf *out, struct buf *labels, const struct pool_device *devices, unsigned count)
{
    metrics_head(out, METRIC_DEVICE_STATE);
    for (unsigned i = 0; i < count; i++)
        for (unsigned s = 0; s < DEVICE_STATES; s++) {
            device_label(labels, &devices[i]);
            metrics_sample(out, METRIC_DEVICE_STATE, metric_label(labels, "state", device_state_name((enum device_state)s)),
                           devices[i].state == (enum device_state)s);
        }
    metrics_head(out, METRIC_DEVICE_ECC);
    for (unsigned i = 0; i < count; i++)
        if (devices[i].info.health.watched && devices[i].info.health.ecc_uncorrected >= 0)
            metrics_sample(out, METRIC_DEVICE_ECC, device_label(labels, &devices[i]), (double)devices[i].info.health.ecc_uncorrected);
}

static void add_sensors(struct buf *out, struct buf *labels, const struct pool_device *devices, unsigned count)
{
    static const struct {
        enum metric        metric;
        enum device_sensor sensor;
    } rows[] = {{METRIC_DEVICE_TEMPERATURE, DEVICE_SENSOR_TEMPERATURE_C},
                {METRIC_DEVICE_POWER, DEVICE_SENSOR_POWER_W},
                {METRIC_DEVICE_UTILIZATION, DEVICE_SENSOR_UTILIZATION_PCT},
                {METRIC_DEVICE_FAN, DEVICE_SENSOR_FAN_PCT}};

    for (size_t row = 0; row < COUNT(rows); row++) {
        metrics_head(out, rows[row].metric);
        for (unsigned i = 0; i < count; i++) {
            int32_t value = device_sensor(&devices[i].info, rows[row].sensor);

            if (value != DEVICE_SENSOR_UNKNOWN)
                metrics_sample(out, rows[row].metric, device_label(labels, &devices[i]), value);
        }
    }
}

static void add_budgets(struct buf *out, struct buf *labels, struct registry *registry, const struct pool_device *devices, unsigned count)
{
    metrics_head(out, METRIC_CALLERS_HELD_OFF);
    for (unsigned i = 0; i < count; i++)
        metrics_sample(out, METRIC_CALLERS_HELD_OFF, device_label(labels, &devices[i]), registry_budgets_spent(registry, i));
}

static void add_devices(struct request *r, struct buf *out, struct buf *labels)
{
    struct pool        *pool = app_of(r)->pool;
    unsigned            count = pool_device_count(pool), known = 0;
    struct pool_device *devices = arena_array(&r->arena, count, sizeof *devices);

    while (devices && known < count && pool_device_refresh(pool, known, &devices[known]))
        known++;
    out->failed = out->failed || (count && !devices);
    add_workers(out, labels, devices, known);
    add_memory(out, labels, devices, known);
    add_states(out, labels, devices, known);
    add_sensors(out, labels, devices, known);
    add_budgets(out, labels, app_of(r)->registry, devices, known);
}

static const char *caller_label(struct buf *labels, const struct caller_info *c)
{
    buf_clear(labels);
    return metric_label(labels, "caller", c->name);
}

static void caller_samples(struct buf *out, struct buf *labels, enum metric metric, const struct caller_info *items, unsigned count)
{
    metrics_head(out, metric);
    for (unsigned i = 0; i < count; i++) {
        const char *caller = caller_label(labels, &items[i]);

        if (metric == METRIC_CALLER_TIME)
            metrics_sample(out, metric, caller, (double)items[i].device_ns / 1e9);
        else if (metric == METRIC_CALLER_LAUNCHES)
            metrics_sample(out, metric, caller, (double)items[i].launches);
        else {
            metrics_sample(out, metric, metric_label(labels, "direction", "to_device"), (double)items[i].to_device_bytes);
            caller_label(labels, &items[i]);
            metrics_sample(out, metric, metric_label(labels, "direction", "from_device"), (double)items[i].from_device_bytes);
        }
    }
}

/* The newest come first: those beyond the bound are the newest, so that a caller's own series, once there, stays. */
static unsigned merge_callers(struct caller_info *items, unsigned count)
{
    unsigned            more = count > CALLERS_IN_METRICS_MAX ? count - CALLERS_IN_METRICS_MAX : 0;
    struct caller_info *rest = &items[more ? more - 1 : 0];

    for (unsigned i = 0; more && i + 1 < more; i++) {
        rest->device_ns += items[i].device_ns;
        rest->launches += items[i].launches;
        rest->to_device_bytes += items[i].to_device_bytes;
        rest->from_device_bytes += items[i].from_device_bytes;
    }
    if (more)
        rest->name[0] = '\0';
    return more ? more - 1 : 0;
}

static void add_callers(struct request *r, struct buf *out, struct buf *labels)
{
    static const enum metric families[] = {METRIC_CALLER_TIME, METRIC_CALLER_LAUNCHES, METRIC_CALLER_BYTES};
    unsigned                 room = caller_count(app_of(r)->registry), count, first;
    struct caller_info      *items = arena_array(&r->arena, room ? room : 1, sizeof *items);

    out->failed = out->failed || !items;
    if (!items)
        return;
    count = caller_list(app_of(r)->registry, items, room);
    first = merge_callers(items, count);
    for (size_t i = 0; i < COUNT(families); i++)
        caller_samples(out, labels, families[i], items + first, count - first);
}

static void add_domains(struct request *r, struct buf *out)
{
    metrics_head(out, METRIC_FAULT_DOMAINS);
    metrics_sample(out, METRIC_FAULT_DOMAINS, "", registry_domains(app_of(r)->registry));
    metrics_head(out, METRIC_MPS_SERVERS);
    metrics_sample(out, METRIC_MPS_SERVERS, "", pool_servers(app_of(r)->pool));
}

static void add_service(struct request *r, struct buf *out, struct buf *labels)
{
    struct app *app = app_of(r);
    bool        ready = !atomic_load(&app->draining) && pool_ready(app->pool, READY_FRESH_MS, NULL) == STATUS_OK;

    metrics_head(out, METRIC_READY);
    metrics_sample(out, METRIC_READY, "", ready);
    metrics_head(out, METRIC_BUILD_INFO);
    buf_clear(labels);
    metric_label(labels, "version", GPUREST_VERSION);
    if (app->config->node[0])
        metric_label(labels, "node", app->config->node);
    metrics_sample(out, METRIC_BUILD_INFO, metric_label(labels, "compiler", compile_service_version(app->compiler)), 1);
}

static enum status answer_metrics(struct request *r, struct buf *out)
{
    if (out->failed)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the metrics");
    return reply_text(&r->reply, 200, METRICS_TYPE, buf_span(out));
}

enum status metrics_get(struct request *r)
{
    const struct server *server = atomic_load(&app_of(r)->server);
    struct buf           out, labels;
    enum status          st;

    buf_init(&out, METRICS_BYTES_MAX);
    buf_init(&labels, METRIC_LABELS_BYTES_MAX);
    if (server)
        server_write_metrics(server, &out);
    metrics_write(&out);
    add_sessions(&out, &labels, app_of(r)->registry);
    add_hibernation(&out, &labels, app_of(r)->registry);
    add_queues(&out, &labels, app_of(r)->registry);
    add_devices(r, &out, &labels);
    add_callers(r, &out, &labels);
    add_domains(r, &out);
    process_write_metrics(&out, app_of(r)->started_wall_ns);
    add_service(r, &out, &labels);
    out.failed = out.failed || labels.failed;
    st = answer_metrics(r, &out);
    buf_finish(&labels);
    buf_finish(&out);
    return st;
}
