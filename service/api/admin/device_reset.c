/* Resets of devices, for operators. */
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

/* A reset over several calls of its handler. In the request's arena. */
struct reset {
    unsigned device;
    uint64_t until_ns; /* running work may finish until then */
    bool     goes_on;  /* it cannot be given up any more */
    uint64_t ticket;   /* of pool_reset_outcome(); valid once it goes on */
};

/* The end of the request. Who leaves while running work may still finish gives the reset up. */
static void leave_reset(struct request *r)
{
    const struct reset *q = r->progress;

    if (q->goes_on)
        return;
    log_warn("frontend", "the reset of device %.*s was given up", SPAN_ARG(r->params[0]));
    pool_reset_cancel(app_of(r)->pool, q->device);
}

static enum status begin_reset(struct request *r)
{
    struct reset *q = arena_alloc(&r->arena, sizeof *q);
    bool          hard;
    uint64_t      timeout_s;
    enum status   st;

    if (!q)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the request");
    st = decode_reset(r, &hard, &timeout_s);
    if (!st)
        st = device_find(r, &q->device);
    if (!st)
        st = pool_reset_begin(app_of(r)->pool, q->device, hard, &r->problem);
    if (st)
        return st;
    q->until_ns = deadline_after_ns(timeout_s * NS_PER_S);
    r->progress = q;
    r->on_finish = leave_reset;
    log_warn("frontend", "%s started a %s reset of device %.*s", r->caller->name, hard ? "hard" : "soft", SPAN_ARG(r->params[0]));
    return STATUS_OK;
}

/* No thread waits meanwhile. */
static enum status look_later(struct request *r)
{
    r->wake_at_ns = deadline_after_ms(RESET_LOOK_MS);
    return STATUS_PENDING;
}

/* OK: it goes on. DRAINING: the service leaves. */
static enum status await_idle(struct request *r, struct reset *q)
{
    struct app *app = app_of(r);

    if (registry_survey(app->registry, q->device).busy && deadline_left_ns(q->until_ns) > 0) {
        if (atomic_load(&app->leaving))
            return problem_set(&r->problem, STATUS_DRAINING, "the service is shutting down: the device was not reset");
        if (request_gone(r))
            return problem_set(&r->problem, STATUS_CANCELLED, "the client has disconnected");
        if (request_revoked(r))
            return problem_set(&r->problem, STATUS_UNAUTHENTICATED, "the token was revoked or expired while the request waited");
        return look_later(r);
    }
    q->ticket = pool_reset_go_on(app->pool, q->device);
    q->goes_on = true;
    return STATUS_OK;
}

static enum status await_reset(struct request *r, const struct reset *q)
{
    struct app *app = app_of(r);
    enum status st = pool_reset_outcome(app->pool, q->device, q->ticket, &r->problem);

    if (st != STATUS_PENDING)
        return st;
    if (atomic_load(&app->leaving))
        return problem_set(&r->problem, STATUS_DRAINING, "the service is shutting down: whether the device was reset is unknown");
    return request_gone(r) ? problem_set(&r->problem, STATUS_CANCELLED, "the client has disconnected") : look_later(r);
}

enum status devices_reset(struct request *r)
{
    enum status   st = r->progress ? STATUS_OK : begin_reset(r);
    struct reset *q = r->progress;

    r->wake_at_ns = DEADLINE_NEVER;
    if (!st && !q->goes_on)
        st = await_idle(r, q);
    if (!st)
        st = await_reset(r, q);
    return st ? st : device_answer(r, q->device);
}
