/* Resets of devices, for operators. */
#include <time.h>

#include "api/bounds.h"
#include "api/call.h"
#include "api/devices.h"
#include "api/endpoints.h"
#include "base/log/log.h"

struct reset_request {
    struct span kind;
    uint64_t    timeout_s;
};

static const struct json_field reset_fields[] = {
    JSON_FIELD(FIELD_STRING, struct reset_request, kind, true, DEVICE_ID_BYTES),
    JSON_FIELD(FIELD_U64, struct reset_request, timeout_s, false, RESET_TIMEOUT_S_MAX),
};

static enum status decode_reset(struct request *r, bool *hard, uint64_t *timeout_s)
{
    struct reset_request q = {.timeout_s = RESET_TIMEOUT_S_DEFAULT};
    enum status          st = body_decode(r, reset_fields, COUNT(reset_fields), &q);

    *hard = !st && span_is(q.kind, "hard");
    *timeout_s = q.timeout_s;
    if (!st && !*hard && !span_is(q.kind, "soft"))
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "/kind", "value", "kind must be soft or hard");
    return st;
}

static void nap(void)
{
    const struct timespec ms = {0, RESET_LOOK_MS * 1000000L};

    nanosleep(&ms, NULL);
}

/* Running work may finish. DRAINING: the service leaves. */
static enum status await_idle(struct request *r, unsigned device, uint64_t timeout_s)
{
    struct app *app = app_of(r);
    uint64_t    until = deadline_after_ms(timeout_s * 1000);

    while (registry_busy_on(app->registry, device) && deadline_left_ns(until) > 0) {
        if (atomic_load(&app->leaving))
            return problem_set(&r->problem, STATUS_DRAINING, "the service is shutting down: the device was not reset");
        nap();
    }
    return STATUS_OK;
}

static enum status await_reset(struct request *r, unsigned device, uint64_t ticket)
{
    struct app *app = app_of(r);
    enum status st;

    do {
        st = pool_reset_wait(app->pool, device, ticket, deadline_after_ms(RESET_LOOK_MS), &r->problem);
    } while (st == STATUS_PENDING && !atomic_load(&app->leaving));
    if (st == STATUS_PENDING)
        st = problem_set(&r->problem, STATUS_DRAINING, "the service is shutting down: whether the device was reset is unknown");
    return st;
}

static enum status reset_device(struct request *r, unsigned device, bool hard, uint64_t timeout_s)
{
    struct pool *pool = app_of(r)->pool;
    enum status  st = pool_reset_begin(pool, device, hard, &r->problem);

    if (st)
        return st;
    log_warn("frontend", "%s started a %s reset of device %.*s", r->caller->name, hard ? "hard" : "soft", (int)r->params[0].bytes,
             r->params[0].data);
    st = await_idle(r, device, timeout_s);
    if (st) {
        pool_reset_cancel(pool, device);
        return st;
    }
    return await_reset(r, device, pool_reset_go_on(pool, device));
}

enum status devices_reset(struct request *r)
{
    bool        hard;
    uint64_t    timeout_s;
    unsigned    device = 0;
    enum status st = decode_reset(r, &hard, &timeout_s);

    if (!st)
        st = device_find(r, &device);
    if (!st)
        st = reset_device(r, device, hard, timeout_s);
    return st ? st : device_answer(r, device);
}
