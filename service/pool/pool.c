/* The sessions' view of the pool: take a worker, give it back, ask about devices. */
#include <stdio.h>
#include <stdlib.h>

#include "base/threads/held.h"
#include "pool/bounds.h"
#include "pool/devices/devices.h"

void pool_note_change(struct pool *p)
{
    assert(held(&p->lock));
    p->changes++;
    pthread_cond_broadcast(&p->changed);
}

void pool_changed(void *pool)
{
    struct pool *p = pool;

    pthread_mutex_lock(&p->lock);
    pool_note_change(p);
    pthread_mutex_unlock(&p->lock);
}

/* ---- create and destroy ---- */

/* Waits until each device is known to be healthy or not; returns the number of healthy ones. */
static unsigned settle_devices(struct pool *p, struct problem *why)
{
    unsigned healthy = 0;

    pthread_mutex_lock(&p->lock);
    for (unsigned i = 0; i < p->devices_count; i++) {
        struct device_slot *d = &p->devices[i];

        while (!d->settled)
            pool_wait(p, DEADLINE_NEVER);
        healthy += d->public.state == DEVICE_HEALTHY;
        if (d->public.state != DEVICE_HEALTHY && why)
            *why = d->last_problem;
    }
    pthread_mutex_unlock(&p->lock);
    return healthy;
}

static enum status start_threads(struct pool *p, struct problem *why)
{
    enum status st = monitor_create(&p->monitor);

    if (st)
        return problem_set(why, st, "cannot start the thread that watches workers");
    if ((st = devices_discover(p, why)))
        return st;
    p->refiller_runs = pthread_create(&p->refiller, NULL, refiller_run, p) == 0;
    if (!p->refiller_runs)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "cannot start the thread that starts workers");
    p->health_runs = pthread_create(&p->health, NULL, health_run, p) == 0;
    if (!p->health_runs)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "cannot start the thread that watches devices");
    return settle_devices(p, why) > 0 ? STATUS_OK : why && why->status ? why->status : STATUS_DEVICE_ERROR;
}

enum status pool_create(struct pool **out, const struct pool_config *config, struct problem *why)
{
    struct pool *p = calloc(1, sizeof *p);
    enum status  st;

    if (!p)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the pool");
    p->config = *config;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    domains_create(p);
    if (devices_set_visible(p, config->visible_devices))
        st = start_threads(p, why);
    else
        st = problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the pool");
    if (st)
        pool_destroy(p);
    else
        *out = p;
    return st;
}

/* Takes any worker out of any list; NULL when none is left. The refiller is idle. */
static struct worker *any_worker(struct pool *p)
{
    struct worker **lists[DEVICES_MAX + 2] = {&p->used, &p->discarded_workers};
    struct worker  *w;

    for (unsigned i = 0; i < p->devices_count; i++) {
        lists[i + 2] = &p->devices[i].warm;
        if ((w = p->devices[i].device_monitor)) {
            p->devices[i].device_monitor = NULL;
            return w;
        }
    }
    for (unsigned i = 0; i < p->devices_count + 2; i++)
        if ((w = *lists[i])) {
            *lists[i] = w->next;
            return w;
        }
    return domains_any_worker(p);
}

/* An open question ends now, with its worker. */
static void asks_end(struct pool *p)
{
    for (unsigned i = 0; i < p->devices_count; i++) {
        struct ask *a = &p->devices[i].ask;

        if (a->worker) {
            worker_kill(a->worker, STATUS_WORKER_LOST, NULL);
            call_wait(a->worker, &a->call);
        }
        pthread_mutex_destroy(&p->devices[i].ask_lock);
        pthread_mutex_destroy(&p->devices[i].settings_lock);
    }
}

/* Nobody waits for their answers any more. The refiller is idle, so that none is freed meanwhile. */
static void device_monitors_kill(struct pool *p)
{
    for (unsigned i = 0; i < p->devices_count; i++) {
        struct worker *w;

        pthread_mutex_lock(&p->lock);
        w = p->devices[i].device_monitor;
        pthread_mutex_unlock(&p->lock);
        if (w)
            worker_kill(w, STATUS_WORKER_LOST, NULL);
    }
}

static void list_kill(struct worker *list)
{
    for (; list; list = list->next)
        worker_kill(list, STATUS_WORKER_LOST, NULL);
}

/* Kills all before it waits for any: a driver may take its time, but they end together. Nobody else is left. */
static void workers_kill(struct pool *p)
{
    for (unsigned i = 0; i < p->devices_count; i++)
        list_kill(p->devices[i].warm);
    for (unsigned i = 0; i < FAULT_DOMAINS_MAX; i++)
        list_kill(p->domains.slots[i].warm);
    list_kill(p->used);
    list_kill(p->discarded_workers);
}

void pool_destroy(struct pool *p)
{
    struct worker *w;

    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->changed);
    while (p->refiller_runs && !p->refiller_idle)
        pool_wait(p, DEADLINE_NEVER);
    pthread_mutex_unlock(&p->lock);
    device_monitors_kill(p);
    if (p->health_runs)
        pthread_join(p->health, NULL);
    asks_end(p);
    workers_kill(p);
    while ((w = any_worker(p)))
        worker_destroy(w);
    domains_destroy(p);
    pthread_mutex_lock(&p->lock);
    p->released = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (p->refiller_runs)
        pthread_join(p->refiller, NULL);
    monitor_destroy(p->monitor);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p->visible);
    free(p->visible_counted);
    free(p->visible_wanted);
    free(p);
}

/* ---- devices ---- */

unsigned pool_device_count(const struct pool *p)
{
    return p->devices_count;
}

/* Under lock. The state from starts and deaths, and on top of it the state from sensors and hardware errors. */
static enum device_state state_of(const struct device_slot *d)
{
    if (atomic_load(&d->lost))
        return DEVICE_LOST;
    if (d->reset.phase != RESET_NONE)
        return DEVICE_RESETTING;
    if (d->verdict)
        return DEVICE_QUARANTINED;
    if (d->public.state != DEVICE_HEALTHY || !atomic_load(&d->hot))
        return d->public.state;
    return d->overheated ? DEVICE_OVERHEATED : DEVICE_HOT;
}

/* Under lock. Of the devices that could serve a caller; as known before, while there are none. */
static void sandbox_look(struct pool *p, unsigned i)
{
    struct device_slot  *d = &p->devices[i];
    const struct worker *lists[] = {d->warm, p->used};
    enum worker_sandbox  least = WORKER_SANDBOX_ALLOW_LIST;
    bool                 any = false;

    assert(held(&p->lock));
    assert(i < p->devices_count);
    for (unsigned k = 0; k < COUNT(lists); k++)
        for (const struct worker *w = lists[k]; w; w = w->next) {
            if (worker_device(w) != i || worker_state_of(w) != WORKER_READY)
                continue;
            any = true;
            least = worker_sandbox_of(w) < least ? worker_sandbox_of(w) : least;
        }
    if (any)
        d->public.sandbox = least;
    d->sandbox_known = d->sandbox_known || any;
}

bool pool_device_at(struct pool *p, unsigned i, struct pool_device *out)
{
    if (i >= p->devices_count)
        return false;
    pthread_mutex_lock(&p->lock);
    sandbox_look(p, i);
    *out = p->devices[i].public;
    out->state = state_of(&p->devices[i]);
    out->workers_warm = list_count(p->devices[i].warm, WORKER_READY);
    pthread_mutex_unlock(&p->lock);
    return true;
}

enum device_state pool_device_state(struct pool *p, unsigned i)
{
    enum device_state state = DEVICE_QUARANTINED;

    pthread_mutex_lock(&p->lock);
    if (i < p->devices_count)
        state = state_of(&p->devices[i]);
    pthread_mutex_unlock(&p->lock);
    return state;
}

uint64_t pool_device_recovery(struct pool *p, unsigned i, enum recovery_step *last)
{
    uint64_t steps = 0;

    *last = RECOVERY_NONE;
    pthread_mutex_lock(&p->lock);
    if (i < p->devices_count) {
        steps = p->devices[i].steps;
        *last = p->devices[i].step;
    }
    pthread_mutex_unlock(&p->lock);
    return steps;
}

int pool_device_find(struct pool *p, struct span id)
{
    for (unsigned i = 0; i < p->devices_count; i++)
        if (span_is(id, p->devices[i].public.id))
            return (int)i;
    return -1;
}

bool pool_device_fits(const struct pool *p, unsigned i, struct span wish)
{
    if (i >= p->devices_count)
        return false;
    return !wish.bytes || span_is(wish, p->devices[i].public.id) || span_is(wish, p->devices[i].public.backend);
}

/* Under lock. */
static bool is_better(const struct device_slot *d, const struct device_slot *than)
{
    if (state_of(d) != DEVICE_HEALTHY)
        return false;
    return !than || d->rank < than->rank || (d->rank == than->rank && d->public.workers_used < than->public.workers_used);
}

int pool_device_choose(struct pool *p, struct span wish)
{
    int best = wish.bytes ? pool_device_find(p, wish) : -1;

    if (best >= 0)
        return best;
    pthread_mutex_lock(&p->lock);
    for (unsigned i = 0; i < p->devices_count; i++)
        if (pool_device_fits(p, i, wish) && is_better(&p->devices[i], best < 0 ? NULL : &p->devices[best]))
            best = (int)i;
    pthread_mutex_unlock(&p->lock);
    return best;
}

void device_keep_info(struct device_slot *d, const struct device_info *info)
{
    if (!atomic_load(&d->lost))
        d->public.info = *info;
}

bool pool_device_refresh(struct pool *p, unsigned i, struct pool_device *out)
{
    struct device_info info;

    if (i >= p->devices_count)
        return false;
    if (device_monitor_info(p, &p->devices[i], DEVICE_MONITOR_ANSWER_MS, &info)) {
        pthread_mutex_lock(&p->lock);
        device_keep_info(&p->devices[i], &info);
        pthread_mutex_unlock(&p->lock);
    }
    return pool_device_at(p, i, out);
}

/* Under lock. No worker waits for a session or none watches the device, and none can be started, for reasons that are neither the
 * device's nor a caller's. */
static bool is_short(const struct pool *p, const struct device_slot *d)
{
    assert(held(&p->lock));
    if (d->shortages == 0 || d->last_problem.status == STATUS_DEVICE_MEMORY_EXHAUSTED)
        return false;
    if (!d->device_monitor)
        return true;
    if (list_count(d->warm, WORKER_READY) > 0)
        return false;
    return deadline_left_ns(d->next_try_ns) > 0 || (p->config.warm_per_device > 0 && p->workers < p->config.workers_max);
}

bool pool_device_wants_memory(struct pool *p, unsigned i)
{
    const struct device_slot *d = &p->devices[i];
    bool                      wants;

    pthread_mutex_lock(&p->lock);
    wants = d->shortages > 0 && d->last_problem.status == STATUS_DEVICE_MEMORY_EXHAUSTED;
    pthread_mutex_unlock(&p->lock);
    return wants;
}

void pool_device_got_memory(struct pool *p, unsigned i)
{
    pthread_mutex_lock(&p->lock);
    p->devices[i].next_try_ns = 0;
    pool_note_change(p);
    pthread_mutex_unlock(&p->lock);
}

static const char *out_because(enum device_state state)
{
    if (state == DEVICE_LOST)
        return "is lost";
    if (state == DEVICE_RESETTING)
        return "is being reset";
    return state == DEVICE_HOT || state == DEVICE_OVERHEATED ? "is too hot" : "is not healthy";
}

enum status pool_device_missing(struct pool *p, struct span wish, struct problem *why)
{
    const struct device_slot *d = NULL;

    for (unsigned i = 0; i < p->devices_count && !d; i++)
        d = pool_device_fits(p, i, wish) ? &p->devices[i] : NULL;
    if (!d)
        return problem_set(why, STATUS_DEVICE_NOT_FOUND, "unknown device");
    pthread_mutex_lock(&p->lock);
    problem_set(why, STATUS_NOT_READY, "no device takes sessions now: device %s %s", d->public.id, out_because(state_of(d)));
    pthread_mutex_unlock(&p->lock);
    return STATUS_NOT_READY;
}

static enum status device_ready(struct pool *p, struct device_slot *d, uint64_t fresh_ms, struct problem *why)
{
    uint64_t          canary_ns;
    enum device_state state;
    bool              no_worker;

    pthread_mutex_lock(&p->lock);
    state = state_of(d);
    canary_ns = d->canary_ns;
    no_worker = is_short(p, d);
    if (no_worker)
        problem_set(why, STATUS_NO_WORKER, "device %s: no worker can be started: %s", d->public.id, d->last_problem.detail);
    pthread_mutex_unlock(&p->lock);
    if (state != DEVICE_HEALTHY)
        return problem_set(why, STATUS_DEVICE_ERROR, "device %s %s", d->public.id, out_because(state));
    if (no_worker)
        return STATUS_NO_WORKER;
    if ((canary_ns == 0 || (now_ns() - canary_ns) / NS_PER_MS > fresh_ms) && !device_monitor_canary(p, d, why))
        return STATUS_DEVICE_ERROR;
    return STATUS_OK;
}

/* Appends as far as there is room. */
static void add_reason(struct problem *all, const struct problem *one)
{
    size_t used = strlen(all->detail);

    snprintf(all->detail + used, sizeof all->detail - used, "%s%s", used ? "; " : "", one->detail);
}

enum status pool_ready(struct pool *p, uint64_t fresh_ms, struct problem *why)
{
    struct problem all = {0}, one = {0};
    bool           any = false;

    for (unsigned i = 0; i < p->devices_count; i++) {
        enum status st = device_ready(p, &p->devices[i], fresh_ms, &one);

        any = any || !st;
        if (!st)
            continue;
        all.status = all.status ? all.status : st;
        add_reason(&all, &one);
    }
    if (any)
        all.status = STATUS_OK;
    if (why)
        *why = all;
    return all.status;
}

/* ---- workers ---- */

/* None of a device that failed. */
static struct worker *warm_ready(struct device_slot *d)
{
    struct worker *w = d->verdict || d->reset.phase != RESET_NONE ? NULL : d->warm;

    while (w && worker_state_of(w) != WORKER_READY)
        w = w->next;
    return w;
}

/* Under lock, with no worker ready. One may come up: it is starting or being replaced, or there is room, or room can be made. */
static bool may_come(struct pool *p, const struct device_slot *d)
{
    return p->workers < p->config.workers_max || d->warm || d->starting || may_make_room(p, d, NULL);
}

enum status device_refuses(const struct pool *p, const struct device_slot *d, struct problem *why)
{
    assert(held(&p->lock));
    if (p->stopping)
        return problem_set(why, STATUS_DRAINING, "the service is shutting down");
    if (atomic_load(&d->lost))
        return device_lost_problem(d, why);
    if (d->reset.phase == RESET_DRAINING)
        return problem_set(why, STATUS_OVERLOADED, "device %s is being reset", d->public.id);
    if (d->verdict && d->reset.phase == RESET_NONE)
        return problem_set(why, STATUS_DEVICE_ERROR, "%s", d->last_problem.detail);
    if (d->public.state == DEVICE_QUARANTINED && d->reset.phase == RESET_NONE)
        return problem_set(why, STATUS_DEVICE_ERROR, "device %s is quarantined", d->public.id);
    return STATUS_OK;
}

/* Under lock; waits for a worker that comes up. */
static enum status warm_wait(struct pool *p, struct device_slot *d, struct worker **out, struct problem *why)
{
    uint64_t deadline = deadline_after_ms(p->config.start_deadline_ms);
    uint64_t failed_starts = d->failed_starts;

    while (!(*out = warm_ready(d))) {
        enum status st = device_refuses(p, d, why);

        if (st)
            return st;
        if (d->failed_starts != failed_starts && d->public.state == DEVICE_HEALTHY)
            return problem_set(why, STATUS_NO_WORKER, "no worker can be started: %s", d->last_problem.detail);
        if (!may_come(p, d))
            return problem_limit(why, STATUS_NO_WORKER, "workers", p->config.workers_max, p->workers, 1);
        if (deadline_left_ns(deadline) == 0)
            return problem_set(why, STATUS_NO_WORKER, "no worker was ready in time");
        pool_wait(p, deadline);
    }
    return STATUS_OK;
}

/* Under lock. */
void pool_hand_out(struct pool *p, struct device_slot *d, struct worker **list, struct worker *w)
{
    assert(held(&p->lock));
    list_remove(list, w);
    if (list == &d->warm) /* a fault domain has warm ones of its own */
        reserve_note(&d->reserve, now_ns());
    w->next = p->used;
    p->used = w;
    d->public.workers_used++;
    d->shortages = 0;
}

bool pool_take_ready(struct pool *p, unsigned device, struct worker **out)
{
    struct device_slot *d = &p->devices[device];
    struct worker      *w = NULL;

    if (device >= p->devices_count)
        return false;
    pthread_mutex_lock(&p->lock);
    if (!p->stopping && d->public.state != DEVICE_QUARANTINED)
        w = warm_ready(d);
    if (w) {
        pool_hand_out(p, d, &d->warm, w);
        pool_note_change(p);
    }
    pthread_mutex_unlock(&p->lock);
    *out = w;
    return w != NULL;
}

bool pool_has_room(struct pool *p)
{
    bool room;

    pthread_mutex_lock(&p->lock);
    room = p->workers < p->config.workers_max;
    pthread_mutex_unlock(&p->lock);
    return room;
}

bool pool_has_plenty(struct pool *p, unsigned device)
{
    unsigned used = 0;
    bool     plenty;

    assert(device < p->devices_count);
    pthread_mutex_lock(&p->lock);
    for (unsigned i = 0; i < p->devices_count; i++)
        used += p->devices[i].public.workers_used; /* those that are ending, too */
    plenty = device_has_plenty(p, &p->devices[device], used);
    pthread_mutex_unlock(&p->lock);
    return plenty;
}

enum status pool_take(struct pool *p, unsigned device, struct worker **out, struct problem *why)
{
    struct device_slot *d = &p->devices[device];
    struct worker      *w = NULL;
    enum status         st;

    if (device >= p->devices_count)
        return problem_set(why, STATUS_DEVICE_NOT_FOUND, "unknown device");
    pthread_mutex_lock(&p->lock);
    d->demand++;
    pthread_cond_broadcast(&p->changed);
    st = warm_wait(p, d, &w, why);
    d->demand--;
    if (!st) {
        pool_hand_out(p, d, &d->warm, w);
        *out = w;
    }
    pool_note_change(p);
    pthread_mutex_unlock(&p->lock);
    return st;
}

void pool_give_back(struct pool *p, struct worker *w)
{
    struct device_slot *d;
    bool                died;

    if (!w)
        return;
    d = &p->devices[worker_device(w)];
    died = worker_state_of(w) != WORKER_READY;
    pthread_mutex_lock(&p->lock);
    list_remove(&p->used, w);
    pthread_mutex_unlock(&p->lock);
    worker_destroy(w);
    pthread_mutex_lock(&p->lock);
    p->workers--;
    d->public.workers_used--;
    if (d->shortages)
        d->next_try_ns = 0; /* a call that failed for lack of it may succeed now */
    if (died) {
        d->public.restarts++;
        d->canary_ns = 0; /* its death may be the device's fault: ask */
    }
    pool_note_change(p);
    pthread_mutex_unlock(&p->lock);
}
