/* One thread that asks device monitors about their devices, first when they have come up. A device that is too hot takes no new work
 * until it has cooled down. One whose hardware failed takes none until it was reset through this service (reset.c), or the service restarts: nothing else tells. */
#include "base/log/log.h"
#include "pool/bounds.h"
#include "pool/devices/devices.h"

/* The setting overrides the device's own limit. 0: no limit. */
static int32_t temperature_max(const struct pool *p, const struct device_info *info)
{
    if (p->config.temperature_max_c)
        return (int32_t)p->config.temperature_max_c;
    return device_sensor(info, DEVICE_SENSOR_TEMPERATURE_MAX_C) == DEVICE_SENSOR_UNKNOWN
               ? 0
               : device_sensor(info, DEVICE_SENSOR_TEMPERATURE_MAX_C);
}

/* 0: no limit. */
static int32_t temperature_stop(const struct pool *p, const struct device_info *info)
{
    int32_t own = device_sensor(info, DEVICE_SENSOR_TEMPERATURE_MAX_C);

    if (p->config.temperature_stop_c)
        return (int32_t)p->config.temperature_stop_c;
    return own <= 0 || own > INT32_MAX - TEMPERATURE_STOP_ABOVE_C ? 0 : own + TEMPERATURE_STOP_ABOVE_C;
}

/* Under the pool's lock. A device that is too hot for its work is too hot for new work, too. */
static void judge_overheating(struct device_slot *d, int32_t stop, int32_t now)
{
    if (stop && now > stop && !d->overheated) {
        log_error("pool", "device %s overheats: %d degrees Celsius, at most %d; running work ends", d->public.id, now, stop);
        d->overheated = true;
        atomic_store(&d->hot, true);
    }
    if (d->overheated && (!stop || now <= stop - TEMPERATURE_HYSTERESIS_C)) {
        log_info("pool", "device %s no longer overheats: %d degrees Celsius", d->public.id, now);
        d->overheated = false;
    }
}

/* Under the pool's lock. A temperature that cannot be read changes nothing. */
static void judge_temperature(struct pool *p, struct device_slot *d, const struct device_info *info)
{
    int32_t max = temperature_max(p, info), now = device_sensor(info, DEVICE_SENSOR_TEMPERATURE_C);
    bool    hot;

    if (now == DEVICE_SENSOR_UNKNOWN)
        return;
    judge_overheating(d, temperature_stop(p, info), now);
    hot = atomic_load(&d->hot);
    if (max && now >= max && !hot) {
        log_error("pool", "device %s is too hot: %d degrees Celsius, at most %d; it accepts no new work", d->public.id, now, max);
        atomic_store(&d->hot, true);
    }
    if (hot && !d->overheated && (!max || now <= max - TEMPERATURE_HYSTERESIS_C)) {
        log_info("pool", "device %s has cooled down to %d degrees Celsius", d->public.id, now);
        atomic_store(&d->hot, false);
    }
}

void device_judge_hardware(struct device_slot *d, const struct device_health *h)
{
    if (h->action <= d->verdict || h->action > DEVICE_ACTION_END)
        return;
    d->verdict = (enum device_action)h->action;
    if (h->xid)
        problem_set(&d->last_problem, STATUS_DEVICE_ERROR, "device %s reports Xid %u and needs a reset", d->public.id, h->xid);
    else
        problem_set(&d->last_problem, STATUS_DEVICE_ERROR, "device %s no longer answers its management library", d->public.id);
    log_error("pool", "%s: it accepts no new work%s", d->last_problem.detail,
              d->verdict == DEVICE_ACTION_END ? ", and its sessions fault" : "");
}

static void look_at_device(struct pool *p, struct device_slot *d)
{
    struct device_info info;

    if (!device_monitor_info(p, d, DEVICE_MONITOR_ANSWER_MS, &info))
        return; /* a device monitor that hangs is killed at its call's deadline, and the refiller handles its death */
    pthread_mutex_lock(&p->lock);
    device_keep_info(d, &info);
    if (!atomic_load(&d->lost) && (info.health.watched || d->verdict)) {
        device_judge_hardware(d, &info.health);
        judge_temperature(p, d, &info);
    }
    pool_note_change(p);
    pthread_mutex_unlock(&p->lock);
}

/* Under the pool's lock. */
static bool is_watched(const struct pool *p)
{
    for (unsigned i = 0; i < p->devices_count; i++)
        if (p->devices[i].device_monitor_known && p->devices[i].public.info.health.watched)
            return true;
    return false;
}

/* Under the pool's lock. True: there was one to handle. */
static bool device_monitors_notice(struct pool *p)
{
    bool any = false;

    for (unsigned i = 0; i < p->devices_count && !p->stopping; i++)
        any = device_monitor_notice(p, &p->devices[i]) || any;
    return any;
}

void *health_run(void *pool)
{
    struct pool *p = pool;

    pthread_mutex_lock(&p->lock);
    while (!p->stopping) {
        uint64_t next = deadline_after_ms(HEALTH_PERIOD_MS);

        while (!p->stopping && (deadline_left_ns(next) > 0 || !is_watched(p)))
            if (!device_monitors_notice(p))
                pool_wait(p, is_watched(p) ? next : DEADLINE_NEVER);
        for (unsigned i = 0; i < p->devices_count && !p->stopping; i++) {
            if (!p->devices[i].public.info.health.watched)
                continue;
            pthread_mutex_unlock(&p->lock);
            look_at_device(p, &p->devices[i]);
            pthread_mutex_lock(&p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- what others ask ---- */

enum status pool_device_accepts(struct pool *p, unsigned i, struct problem *why)
{
    if (i < p->devices_count && atomic_load_explicit(&p->devices[i].lost, memory_order_relaxed))
        return device_lost_problem(&p->devices[i], why);
    if (i < p->devices_count && atomic_load_explicit(&p->devices[i].hot, memory_order_relaxed))
        return problem_set(why, STATUS_OVERLOADED, "device %s is too hot for new work", p->devices[i].public.id);
    if (i < p->devices_count && atomic_load_explicit(&p->devices[i].resetting, memory_order_relaxed))
        return problem_set(why, STATUS_OVERLOADED, "device %s is being reset", p->devices[i].public.id);
    return STATUS_OK;
}

enum status pool_device_verdict(struct pool *p, unsigned i, struct problem *why)
{
    const struct device_slot *d;
    enum status               st = STATUS_OK;

    if (i >= p->devices_count)
        return STATUS_OK;
    pthread_mutex_lock(&p->lock);
    d = &p->devices[i];
    if (atomic_load(&d->lost)) {
        st = device_lost_problem(d, why);
    } else if (d->reset.phase > RESET_DRAINING) {
        st = problem_set(why, STATUS_DEVICE_RESET, "device %s was reset", d->public.id);
    } else if (d->verdict == DEVICE_ACTION_END) {
        st = STATUS_DEVICE_ERROR;
        if (why)
            *why = d->last_problem;
    } else if (d->overheated) {
        st = problem_set(why, STATUS_DEVICE_OVERHEATED, "device %s overheated: running work was ended", d->public.id);
    }
    pthread_mutex_unlock(&p->lock);
    return st;
}
