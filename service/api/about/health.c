/* Liveness, readiness, the version and the texts of problem types. */
#include <inttypes.h>

#include "api/about/web.h"
#include "api/bounds.h"
#include "api/call.h"
#include "api/devices.h"
#include "api/endpoints.h"
#include "base/version.h"

static enum status reply_line(struct request *r, unsigned http_status, const char *text)
{
    return reply_text(&r->reply, http_status, "text/plain; charset=utf-8", span_of(text));
}

enum status livez_get(struct request *r)
{
    struct server *server = atomic_load(&app_of(r)->server);
    uint64_t       now = now_ns(), turned = server ? server_last_turn_ns(server) : now;

    if (now > turned && now - turned > LOOP_STALL_S * NS_PER_S)
        return problem_set(&r->problem, STATUS_NOT_READY, "an event loop does not respond");
    return reply_line(r, 200, "ok\n");
}

/* An instance that is not ready answers probes with 503, whatever the reason. It is ready while at least one device works; *out then
 * describes the devices that do not. */
static enum status ready(struct request *r, struct problem *out)
{
    struct app *app = app_of(r);
    enum status st;

    *out = (struct problem){0};
    if (atomic_load(&app->draining))
        return problem_set(&r->problem, STATUS_DRAINING, "the service is draining and accepts no new sessions");
    st = pool_ready(app->pool, READY_FRESH_MS, out);
    return st ? problem_set(&r->problem, STATUS_NOT_READY, "%s", out->detail[0] ? out->detail : status_title(st)) : STATUS_OK;
}

static enum status reply_ready(struct request *r)
{
    struct problem out;
    enum status    st = ready(r, &out);
    char          *text;

    if (st)
        return st;
    text = out.detail[0] ? arena_printf(&r->arena, "ok\n%s\n", out.detail) : NULL;
    return reply_line(r, 200, text ? text : "ok\n");
}

/* The endpoint is open to everyone, so the server has not checked the token. */
static enum status check_token(struct request *r, unsigned scope)
{
    struct caller *caller = NULL;
    enum status    st = auth_check(app_of(r)->auth, request_header(r, "Authorization"), &caller, &r->problem);

    if (!st && (caller->scopes & scope) != scope)
        st = problem_set(&r->problem, STATUS_INSUFFICIENT_SCOPE, "verbose needs the scope admin");
    return st;
}

static void add_device_state(struct json_writer *w, const struct pool_device *d)
{
    json_open_object(w, NULL);
    json_add_text(w, "id", d->id);
    json_add_text(w, "state", device_state_name(d->state));
    json_add_u64(w, "workers_warm", d->workers_warm);
    json_add_u64(w, "workers_used", d->workers_used);
    json_add_u64(w, "restarts", d->restarts);
    json_close_object(w);
}

static enum status reply_verbose(struct request *r)
{
    struct app          *app = app_of(r);
    const struct server *server = atomic_load(&app->server);
    struct problem       out;
    enum status          readiness = ready(r, &out);
    struct pool_device   d;
    struct answer        a;

    answer_begin(&a);
    json_add_bool(&a.w, "ready", readiness == STATUS_OK);
    json_add_bool(&a.w, "draining", atomic_load(&app->draining));
    json_add_text(&a.w, "reason", readiness ? r->problem.detail : out.detail);
    json_add_u64(&a.w, "sessions", registry_count(app->registry));
    json_add_u64(&a.w, "failures_last_minute", server ? server_failures_last_minute(server) : 0);
    json_add_text(&a.w, "compiler", compile_service_version(app->compiler));
    json_open_array(&a.w, "devices");
    for (unsigned i = 0; pool_device_at(app->pool, i, &d); i++)
        add_device_state(&a.w, &d);
    json_close_array(&a.w);
    return answer_end(&a, r, readiness ? 503 : 200);
}

enum status readyz_get(struct request *r)
{
    bool        verbose;
    enum status st = flag_of(r, "verbose", &verbose);

    if (!st && !verbose)
        return reply_ready(r);
    if (!st)
        st = check_token(r, SCOPE_ADMIN);
    return st ? st : reply_verbose(r);
}

/* A load balancer reads 404 as "leaving on purpose", not as an outage. */
enum status lbz_get(struct request *r)
{
    if (atomic_load(&app_of(r)->draining))
        return problem_set(&r->problem, STATUS_NOT_FOUND, "the service is draining and accepts no new sessions");
    return readyz_get(r);
}

/* Devices that were found later stand behind those of other backends. */
static bool is_first_of_backend(struct pool *pool, unsigned device, const char *backend)
{
    unsigned first = 0;

    while (first < device && !pool_device_fits(pool, first, span_of(backend)))
        first++;
    return first == device;
}

static void add_backends(struct json_writer *w, struct pool *pool)
{
    struct pool_device d;

    json_open_array(w, "backends");
    for (unsigned i = 0; pool_device_at(pool, i, &d); i++) {
        if (!is_first_of_backend(pool, i, d.backend))
            continue;
        json_open_object(w, NULL);
        json_add_text(w, "name", d.backend);
        json_add_text_or_null(w, "driver", d.info.driver);
        json_close_object(w);
    }
    json_close_array(w);
}

enum status version_get(struct request *r)
{
    struct answer a;

    answer_begin(&a);
    json_add_text(&a.w, "server", "gpurestd");
    json_add_text(&a.w, "version", GPUREST_VERSION);
    json_add_text(&a.w, "instance", app_of(r)->instance);
    add_node(&a.w, r);
    json_open_object(&a.w, "api");
    json_add_text(&a.w, "least", "v1");
    json_add_text(&a.w, "most", "v1");
    json_close_object(&a.w);
    json_add_text_or_null(&a.w, "compiler", compile_service_version(app_of(r)->compiler));
    add_backends(&a.w, app_of(r)->pool);
    return answer_end(&a, r, 200);
}

enum status root_get(struct request *r)
{
    static const char *const links[][2] = {{"version", "/version"},          {"live", "/livez"},           {"ready", "/readyz"},
                                           {"devices", "/v1/devices"},       {"limits", "/v1/limits"},     {"sessions", "/v1/sessions"},
                                           {"problems", "/problems/{code}"}, {"openapi", "/openapi.json"}, {"docs", "/docs"}};
    struct answer            a;
    enum status              st;

    reply_header_text(&r->reply, "Vary", "Accept");
    if (web_is_wanted(r))
        return web_dashboard(r);
    st = check_token(r, 0);
    if (st)
        return st;
    answer_begin(&a);
    json_add_text(&a.w, "name", "gpurest");
    json_add_text(&a.w, "version", GPUREST_VERSION);
    json_open_object(&a.w, "links");
    for (size_t i = 0; i < COUNT(links); i++)
        json_add_text(&a.w, links[i][0], links[i][1]);
    json_close_object(&a.w);
    return answer_end(&a, r, 200);
}

enum status problems_get(struct request *r)
{
    char *text;

    for (unsigned i = STATUS_PENDING + 1; i < STATUS_COUNT; i++) {
        if (!span_is(r->params[0], status_code(i)))
            continue;
        text = arena_printf(&r->arena, "%s\n\n%s.\nHTTP status: %u\nSame request may succeed later: %s\n", status_code(i), status_title(i),
                            status_http(i), status_retryable(i) ? "yes" : "no");
        return text ? reply_line(r, 200, text) : problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the text");
    }
    return problem_set(&r->problem, STATUS_NOT_FOUND, "unknown problem code");
}
