/* Every configured limit, and the caller's present use of those that are counted. */
#include <string.h>

#include "api/call.h"
#include "api/endpoints.h"
#include "api/limits_table.h"

static const struct {
    const char *name;
    uint64_t    max;
} fixed[] = {
#define LIMIT(name, greatest) {#name, greatest},
#include "api/limits.def"
#undef LIMIT
};

static const uint64_t UNCOUNTED = UINT64_MAX;

bool limit_find(const char *name, uint64_t *max)
{
    for (size_t i = 0; i < COUNT(fixed); i++)
        if (strcmp(fixed[i].name, name) == 0) {
            *max = fixed[i].max;
            return true;
        }
    return false;
}

static void add(struct json_writer *w, const char *name, uint64_t max, uint64_t used)
{
    json_open_object(w, name);
    add_limit(w, "max", max);
    add_limit(w, "used", used);
    json_close_object(w);
}

/* None reads as null. */
static uint64_t rate_of(const struct request *r)
{
    uint32_t own = __atomic_load_n(&r->caller->requests_per_s, __ATOMIC_RELAXED);
    uint64_t rate = own == REQUESTS_PER_S_UNSET ? app_of(r)->config->rate : own;

    return rate ? rate : UNCOUNTED;
}

static void add_counted(struct json_writer *w, const struct request *r)
{
    const struct app *app = app_of(r);
    struct tenant     t = tenant_of(r);

    add(w, "sessions", t.sessions_max, registry_count_of(app->registry, &t));
    add(w, "caller_memory_bytes", t.memory_max_bytes, registry_memory_of(app->registry, &t));
    add(w, "requests_in_flight", REQUESTS_IN_FLIGHT_PER_CALLER_MAX, atomic_load(&r->caller->in_flight));
    add(w, "requests_per_s", rate_of(r), UNCOUNTED);
    add(w, "faults", app->config->crash_budget ? app->config->crash_budget : UNCOUNTED, registry_faults_of(app->registry, &t));
    add(w, "event_streams", EVENT_STREAMS_PER_CALLER_MAX, atomic_load(&r->caller->event_streams));
    add(w, "idempotency_keys", IDEMPOTENCY_KEYS_PER_CALLER_MAX, atomic_load(&r->caller->idempotency_keys));
    add(w, "connections", app->config->connections, UNCOUNTED);
    add(w, "connections_per_address", app->config->connections_per_address, UNCOUNTED);
    add(w, "workers", app->config->workers_max, UNCOUNTED);
    add(w, "body_stall_s", app->config->body_stall_s, UNCOUNTED);
    add(w, "shared_bytes", app->config->local_sharing ? app->config->local_sharing_mib * 1024 * 1024 : 0, UNCOUNTED);
    add(w, "result_ttl_s", app->config->result_ttl_s, UNCOUNTED);
}

enum status limits_get(struct request *r)
{
    struct answer a;
    enum status   st = query_check(r, NULL);

    if (st)
        return st;
    answer_begin(&a);
    json_open_object(&a.w, "limits");
    add_counted(&a.w, r);
    for (size_t i = 0; i < COUNT(fixed); i++)
        add(&a.w, fixed[i].name, fixed[i].max, UNCOUNTED);
    json_close_object(&a.w);
    return answer_end(&a, r, 200);
}
