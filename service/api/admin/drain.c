/* Draining on request: what SIGTERM does, but the process ends only if that is requested. */
#include "api/admin/drain.h"

#include <signal.h>
#include <unistd.h>

#include "api/call.h"
#include "api/endpoints.h"
#include "base/log/log.h"

/* For readers without the lock. Under phase_lock. */
static void set_draining(struct app *app, bool on)
{
    atomic_store(&app->draining, on);
    if (on)
        registry_drain(app->registry, true);
    else
        registry_drain(app->registry, false);
}

/* True: the service was not leaving before. */
static bool leave_first(struct app *app)
{
    bool first;

    pthread_mutex_lock(&app->phase_lock);
    first = !atomic_load(&app->leaving);
    atomic_store(&app->leaving, true);
    set_draining(app, true);
    pthread_mutex_unlock(&app->phase_lock);
    return first;
}

void app_leave(struct app *app)
{
    leave_first(app);
}

void app_drain(struct app *app)
{
    pthread_mutex_lock(&app->phase_lock);
    set_draining(app, true);
    pthread_mutex_unlock(&app->phase_lock);
}

static enum status resume_sessions(struct app *app, struct problem *why)
{
    bool leaving;

    pthread_mutex_lock(&app->phase_lock);
    leaving = atomic_load(&app->leaving);
    if (!leaving)
        set_draining(app, false);
    pthread_mutex_unlock(&app->phase_lock);
    return leaving ? problem_set(why, STATUS_DRAINING, "the service is shutting down and cannot resume") : STATUS_OK;
}

static enum status answer_phase(struct request *r)
{
    struct app   *app = app_of(r);
    struct answer a;

    answer_begin(&a);
    json_add_bool(&a.w, "draining", atomic_load(&app->draining));
    json_add_bool(&a.w, "exit", atomic_load(&app->leaving));
    json_add_u64(&a.w, "sessions", registry_count(app->registry));
    return answer_end(&a, r, 200);
}

struct drain_request {
    bool exit;
};

static const struct json_field drain_fields[] = {
    JSON_FIELD(FIELD_BOOL, struct drain_request, exit, false, 0),
};

/* The main thread, which waits for signals, ends the process. A second signal would end it at once, so only the first request sends one. */
enum status drain_post(struct request *r)
{
    struct drain_request q = {0};
    enum status          st = body_decode(r, drain_fields, COUNT(drain_fields), &q);

    if (st)
        return st;
    log_info("frontend", "%s started a drain%s", r->caller->name, q.exit ? ", then exit" : "");
    if (!q.exit)
        app_drain(app_of(r));
    else if (leave_first(app_of(r)))
        kill(getpid(), SIGTERM);
    return answer_phase(r);
}

enum status resume_post(struct request *r)
{
    enum status st = nothing_check(r);

    if (!st)
        st = resume_sessions(app_of(r), &r->problem);
    if (st)
        return st;
    log_info("frontend", "%s ended the drain", r->caller->name);
    return answer_phase(r);
}
