/* Every configured limit, and the caller's present use of the counted ones. */
#include <string.h>

#include "api/about/limits_table.h"
#include "api/call.h"
#include "api/endpoints.h"
#include "session/code/warm.h"

/* Written as null. */
static const uint64_t UNCOUNTED = UINT64_MAX;

/* ---- the caller's use of shared bounds and of its own ---- */

static struct registry_use use_of(const struct request *r)
{
    struct tenant t = tenant_of(r);

    return registry_use_of(app_of(r)->registry, &t);
}

static uint64_t all_sessions_of(const struct request *r)
{
    return use_of(r).sessions;
}

static uint64_t runs_of(const struct request *r)
{
    return use_of(r).runs;
}

static uint64_t shares_of(const struct request *r)
{
    return use_of(r).shares;
}

static uint64_t batch_bytes_of(const struct request *r)
{
    return use_of(r).batch_bytes;
}

static uint64_t compilations_of(const struct request *r)
{
    return compile_service_waiting(app_of(r)->compiler, r->caller->name);
}

static uint64_t warms_of(const struct request *r)
{
    struct tenant t = tenant_of(r);

    return warm_jobs_of(app_of(r)->registry, &t);
}

static uint64_t domains_of(const struct request *r)
{
    return use_of(r).domains;
}

static uint64_t keys_of(const struct request *r)
{
    return atomic_load(&r->caller->idempotency_keys);
}

/* ---- the table ---- */

static const struct {
    const char *name;
    uint64_t    max;
    uint64_t (*used)(const struct request *r); /* NULL: not counted */
} fixed[] = {
#define LIMIT(name, greatest)              {#name, greatest, NULL},
#define LIMIT_COUNTED(name, greatest, use) {#name, greatest, use},
#include "api/about/limits.def"
#undef LIMIT
#undef LIMIT_COUNTED
};

bool limit_find(const char *name, uint64_t *max)
{
    for (size_t i = 0; i < COUNT(fixed); i++)
        if (strcmp(fixed[i].name, name) == 0) {
            *max = fixed[i].max;
            return true;
        }
    return false;
}

static void write_limit(struct json_writer *w, const char *name, uint64_t max, uint64_t used)
{
    json_open_object(w, name);
    json_add_u64_or_null(w, "max", max);
    json_add_u64_or_null(w, "used", used);
    json_close_object(w);
}

static uint64_t rate_of(const struct request *r)
{
    uint32_t own = __atomic_load_n(&r->caller->requests_per_s, __ATOMIC_RELAXED);
    uint64_t rate = own == REQUESTS_PER_S_UNSET ? server_rate(atomic_load(&app_of(r)->server)) : own;

    return rate ? rate : UNCOUNTED;
}

static void add_counted(struct json_writer *w, const struct request *r)
{
    const struct app *app = app_of(r);
    struct tenant     t = tenant_of(r);

    write_limit(w, "sessions", t.sessions_max, use_of(r).own);
    write_limit(w, "caller_memory_bytes", t.memory_max_bytes, registry_use_of(app->registry, &t).memory_bytes);
    write_limit(w, "requests_in_flight", REQUESTS_IN_FLIGHT_PER_CALLER_MAX, atomic_load(&r->caller->in_flight));
    write_limit(w, "requests_per_s", rate_of(r), UNCOUNTED);
    write_limit(w, "faults", app->config->crash_budget ? app->config->crash_budget : UNCOUNTED, registry_faults_of(app->registry, &t));
    write_limit(w, "event_streams", EVENT_STREAMS_PER_CALLER_MAX, atomic_load(&r->caller->event_streams));
    write_limit(w, "idempotency_keys", IDEMPOTENCY_KEYS_PER_CALLER_MAX, keys_of(r));
    write_limit(w, "connections", app->config->connections, UNCOUNTED);
    write_limit(w, "connections_per_address", app->config->connections_per_address, UNCOUNTED);
    write_limit(w, "workers", app->config->workers_max, UNCOUNTED);
    write_limit(w, "body_stall_s", app->config->body_stall_s, UNCOUNTED);
    write_limit(w, "idle_timeout_max_s", app->config->idle_timeout_max_s, UNCOUNTED);
    write_limit(w, "lifetime_max_s", app->config->lifetime_max_s, UNCOUNTED);
    write_limit(w, "hibernated_bytes", app->config->hibernate_mib * 1024 * 1024, use_of(r).hibernated_bytes);
    write_limit(w, "shared_bytes", app->config->local_sharing ? app->config->local_sharing_mib * 1024 * 1024 : 0, use_of(r).shared_bytes);
    write_limit(w, "result_ttl_s", app->config->result_ttl_s, UNCOUNTED);
}

enum status limits_get(struct request *r)
{
    struct answer a;

    answer_begin(&a);
    json_open_object(&a.w, "limits");
    add_counted(&a.w, r);
    for (size_t i = 0; i < COUNT(fixed); i++)
        write_limit(&a.w, fixed[i].name, fixed[i].max, fixed[i].used ? fixed[i].used(r) : UNCOUNTED);
    json_close_object(&a.w);
    return answer_end(&a, r, 200);
}
