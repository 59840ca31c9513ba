/* Questions to a device monitor, with a limited wait: a slow device must not hold up a health check. */
#include "pool/bounds.h"
#include "pool/devices/devices.h"

#include "base/threads/held.h"

static struct worker *device_monitor_pin(struct pool *p, struct device_slot *d)
{
    struct worker *w;

    pthread_mutex_lock(&p->lock);
    w = d->device_monitor;
    if (w)
        w->pins++;
    pthread_mutex_unlock(&p->lock);
    return w;
}

/* The question is closed. */
static void end_ask(struct pool *p, struct ask *a)
{
    if (a->slice.data)
        staging_give(a->worker, &a->slice);
    pthread_mutex_lock(&p->lock);
    a->worker->pins--;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    a->worker = NULL;
}

/* Under ask_lock. True: no question is open. */
static bool collect_answer(struct pool *p, struct device_slot *d, uint64_t deadline_ns)
{
    struct ask *a = &d->ask;

    assert(held(&d->ask_lock));
    if (!a->worker)
        return true;
    if (!call_wait_until(a->worker, &a->call, deadline_ns))
        return false;
    end_ask(p, a);
    return true;
}

static enum status submit_ask(struct ask *a, const struct msg_device_set *set)
{
    struct msg_canary      canary = {0};
    struct msg_device_info info;
    enum status            st;

    if (a->message == MESSAGE_DEVICE_SET)
        return worker_submit_device_set(a->worker, set, &a->call);
    if (a->message == MESSAGE_CANARY)
        return worker_submit_canary(a->worker, &canary, &a->call);
    st = staging_take(a->worker, sizeof(struct device_info), &a->slice, NULL);
    if (st)
        return st;
    info.to = a->slice.ref;
    return worker_submit_device_info(a->worker, &info, &a->call);
}

/* Under ask_lock; no question is open. `set`: of DEVICE_SET. */
static enum status ask_monitor(struct pool *p, struct device_slot *d, enum message m, const struct msg_device_set *set,
                               uint64_t deadline_ns)
{
    struct ask *a = &d->ask;
    enum status st;

    assert(held(&d->ask_lock));
    assert(!d->ask.worker);
    *a = (struct ask){.message = m, .worker = device_monitor_pin(p, d)};
    if (!a->worker)
        return STATUS_NO_WORKER;
    a->call.deadline_ns = deadline_after_ms(CANARY_DEADLINE_MS);
    st = submit_ask(a, set);
    if (!st)
        return call_wait_until(a->worker, &a->call, deadline_ns) ? a->call.status : STATUS_PENDING;
    end_ask(p, a);
    return st;
}

bool device_monitor_canary(struct pool *p, struct device_slot *d, struct problem *why)
{
    uint64_t    deadline = deadline_after_ms(DEVICE_MONITOR_ANSWER_MS);
    enum status st = STATUS_PENDING;

    pthread_mutex_lock(&d->ask_lock);
    if (collect_answer(p, d, deadline))
        st = ask_monitor(p, d, MESSAGE_CANARY, NULL, deadline);
    if (st == STATUS_PENDING)
        problem_set(why, STATUS_DEVICE_ERROR, "device %s did not answer within %d ms", d->public.id, DEVICE_MONITOR_ANSWER_MS);
    else if (st)
        problem_set(why, STATUS_DEVICE_ERROR, "device %s failed its health check", d->public.id);
    collect_answer(p, d, 0);
    pthread_mutex_unlock(&d->ask_lock);
    if (st)
        return false;
    pthread_mutex_lock(&p->lock);
    d->canary_ns = now_ns();
    pthread_mutex_unlock(&p->lock);
    return true;
}

/* The worker wrote it: terminate the strings and bound the count before use. */
static void info_take(const struct slice *from, struct device_info *out)
{
    memcpy(out, from->data, sizeof *out);
    out->name[sizeof out->name - 1] = '\0';
    out->vendor[sizeof out->vendor - 1] = '\0';
    out->uuid[sizeof out->uuid - 1] = '\0';
    out->compute_capability[sizeof out->compute_capability - 1] = '\0';
    out->driver[sizeof out->driver - 1] = '\0';
    out->compile_arch[sizeof out->compile_arch - 1] = '\0';
    out->compiler[sizeof out->compiler - 1] = '\0';
    if (out->code_format >= DEVICE_CODES)
        out->code_format = DEVICE_CODE_PTX;
    for (unsigned i = 0; i < DEVICE_LIBRARIES_MAX; i++) {
        out->libraries[i].name[sizeof out->libraries[i].name - 1] = '\0';
        out->libraries[i].version[sizeof out->libraries[i].version - 1] = '\0';
    }
    for (unsigned i = 0; i < DEVICE_SENSORS; i++)
        if (out->sensors[i].state >= SENSOR_STATES)
            out->sensors[i].state = SENSOR_FAILED;
    out->unsupported[sizeof out->unsupported - 1] = '\0';
    if (out->attributes_count > DEVICE_ATTRIBUTES_MAX)
        out->attributes_count = DEVICE_ATTRIBUTES_MAX;
    for (unsigned i = 0; i < out->attributes_count; i++)
        out->attributes[i].name[sizeof out->attributes[i].name - 1] = '\0';
}

bool device_monitor_info(struct pool *p, struct device_slot *d, uint64_t patience_ms, struct device_info *out)
{
    uint64_t deadline = deadline_after_ms(patience_ms);
    bool     ok;

    pthread_mutex_lock(&d->ask_lock);
    ok = collect_answer(p, d, deadline) && ask_monitor(p, d, MESSAGE_DEVICE_INFO, NULL, deadline) == STATUS_OK;
    if (ok)
        info_take(&d->ask.slice, out);
    collect_answer(p, d, 0);
    pthread_mutex_unlock(&d->ask_lock);
    return ok;
}

/* The answer to a wait that was given up may come late: then nobody knows. */
static enum status set_outcome(const struct device_slot *d, enum status st, struct problem *why)
{
    if (st == STATUS_NO_WORKER)
        return problem_set(why, st, "device %s has no device monitor at the moment", d->public.id);
    if (st == STATUS_PENDING || st == STATUS_WORKER_LOST)
        return problem_set(why, STATUS_DEVICE_ERROR, "device %s did not answer: whether the setting was changed is unknown", d->public.id);
    if (st && why)
        *why = d->ask.call.problem;
    return st;
}

enum status device_monitor_set(struct pool *p, struct device_slot *d, enum device_setting s, const struct device_setting_value *v,
                               struct problem *why)
{
    const struct msg_device_set m = {.setting = s, .value = *v};
    uint64_t                    deadline = deadline_after_ms(CANARY_DEADLINE_MS);
    enum status                 st = STATUS_PENDING;

    pthread_mutex_lock(&d->ask_lock);
    if (collect_answer(p, d, deadline))
        st = ask_monitor(p, d, MESSAGE_DEVICE_SET, &m, deadline);
    st = set_outcome(d, st, why);
    collect_answer(p, d, 0);
    pthread_mutex_unlock(&d->ask_lock);
    return st;
}
