/* One thread that starts all workers, and the ladder of device states after deaths.
 *
 * Every worker must pass its own canary before it is READY. A failed start makes its device suspect: its warm workers and its device
 * monitor are replaced, and after a pause only a fresh device monitor is tried. When that fails, too, the device is reset (reset.c), and in
 * the end quarantined: a device monitor is tried every QUARANTINE_RETRY_MS, and the first one that comes up makes the device healthy. A start that fails for
 * lack of memory, files or processes, or from outside, says nothing about the device: it makes a pause, longer each time, and /readyz
 * reports it as long as no worker waits for a session. */
#include "base/log/log.h"
#include "base/metrics.h"
#include "base/threads/held.h"
#include "pool/bounds.h"
#include "pool/devices/devices.h"

/* ---- small things, under the pool's lock ---- */

bool list_remove(struct worker **list, struct worker *w)
{
    for (; *list; list = &(*list)->next) {
        if (*list != w)
            continue;
        *list = w->next;
        w->next = NULL;
        return true;
    }
    return false;
}

void list_push(struct worker **list, struct worker *w)
{
    w->next = *list;
    *list = w;
}

unsigned list_count(const struct worker *list, enum worker_state state)
{
    unsigned n = 0;

    for (; list; list = list->next)
        n += worker_state_of(list) == state;
    return n;
}

void pool_wait(struct pool *p, uint64_t deadline_ns)
{
    struct timespec until = timespec_of_ns(deadline_ns);

    assert(held(&p->lock));
    if (deadline_ns == DEADLINE_NEVER)
        pthread_cond_wait(&p->changed, &p->lock);
    else
        pthread_cond_clockwait(&p->changed, &p->lock, CLOCK_MONOTONIC, &until);
}

void discard_worker(struct pool *p, struct worker *w)
{
    assert(held(&p->lock));
    assert(!w->discarded);
    w->discarded = true;
    list_push(&p->discarded_workers, w);
}

unsigned list_count_living(const struct worker *list)
{
    return list_count(list, WORKER_STARTING) + list_count(list, WORKER_READY);
}

bool worker_is_over(const struct worker *w)
{
    enum worker_state s = worker_state_of(w);

    return s == WORKER_DEAD || s == WORKER_STOPPING;
}

uint64_t pause_ns(unsigned failures)
{
    uint64_t ms = RESPAWN_BACKOFF_MIN_MS;

    for (unsigned i = 0; i < failures && ms < RESPAWN_BACKOFF_MAX_MS; i++)
        ms *= 2;
    return deadline_after_ms(ms < RESPAWN_BACKOFF_MAX_MS ? ms : RESPAWN_BACKOFF_MAX_MS);
}

static bool is_shortage(enum status st)
{
    return st == STATUS_OUT_OF_MEMORY || st == STATUS_DEVICE_MEMORY_EXHAUSTED || st == STATUS_OVERLOADED || st == STATUS_NO_WORKER;
}

/* ---- the ladder, under the pool's lock ---- */

bool discard_warm(struct pool *p, struct worker **warm)
{
    struct worker *w = *warm;

    if (!w)
        return false;
    *warm = w->next;
    assert(p->workers > 0);
    p->workers--;
    discard_worker(p, w);
    return true;
}

void device_discard_all(struct pool *p, struct device_slot *d)
{
    while (discard_warm(p, &d->warm))
        continue;
    if (d->device_monitor)
        discard_worker(p, d->device_monitor);
    d->device_monitor = NULL;
    d->device_monitor_known = false;
}

/* One step down at a time, and all the way up. HOT is no rung: see state_of(). */
static void device_set_state(struct device_slot *d, enum device_state next)
{
    static const bool may[DEVICE_HOT][DEVICE_HOT] = {
        [DEVICE_HEALTHY] = {[DEVICE_HEALTHY] = 1, [DEVICE_SUSPECT] = 1},
        [DEVICE_SUSPECT] = {[DEVICE_HEALTHY] = 1, [DEVICE_SUSPECT] = 1, [DEVICE_QUARANTINED] = 1},
        [DEVICE_QUARANTINED] = {[DEVICE_HEALTHY] = 1, [DEVICE_QUARANTINED] = 1},
    };

    assert(may[d->public.state][next]);
    d->public.state = next;
}

void device_forget_trouble(struct device_slot *d)
{
    if (d->public.state == DEVICE_HEALTHY)
        device_set_state(d, DEVICE_SUSPECT); /* until a device monitor is up */
    d->failures = d->shortages = 0;
    d->next_try_ns = 0;
    d->canary_ns = 0;
    if (!d->verdict)
        d->last_problem = (struct problem){0};
}

static uint64_t recovery_pause_ms(enum recovery_step step)
{
    static const uint64_t ms[] = {[RECOVERY_NONE] = QUARANTINE_RETRY_MS,
                                  [RECOVERY_WORKER] = 2 * RESPAWN_BACKOFF_MIN_MS,
                                  [RECOVERY_SOFT_RESET] = RECOVERY_SOFT_PAUSE_MS,
                                  [RECOVERY_HARD_RESET] = RECOVERY_HARD_PAUSE_MS};

    return ms[step];
}

/* What comes after the failure that was just counted. */
static void climb_down(struct pool *p, struct device_slot *d, enum recovery_step step, const struct problem *why)
{
    assert(held(&p->lock));
    device_set_state(d, step ? DEVICE_SUSPECT : DEVICE_QUARANTINED);
    d->settled = d->settled || !step;
    d->next_try_ns = deadline_after_ms(recovery_pause_ms(step));
    log_error("pool", "device %s is %s: %s: %s", d->public.id, step ? "suspect" : "quarantined", status_code(why->status), why->detail);
    device_discard_all(p, d);
    if (step)
        recovery_begin(d, step);
}

/* `computed`: it was not for the device's computing. EXECUTION_TIMEOUT: it took too long. */
static void start_failed(struct pool *p, struct device_slot *d, bool computed, const struct problem *why)
{
    bool slow = why->status == STATUS_EXECUTION_TIMEOUT; /* as on a machine under load: sessions that compute are not ended for it */

    assert(held(&p->lock));
    counter_add(COUNTER_RESTARTS_START_FAILED, 1);
    d->last_problem = *why;
    if (slow)
        d->last_problem.status = STATUS_DEVICE_ERROR;
    d->failed_starts++;
    pthread_cond_broadcast(&p->changed);
    d->public.restarts++;
    if (is_shortage(why->status)) {
        d->next_try_ns = pause_ns(d->shortages++);
        d->settled = true;
        log_warn("pool", "device %s: a worker did not start: %s", d->public.id, why->detail);
        return;
    }
    d->failures++;
    d->canary_ns = 0;
    device_reset_failed(d, why);
    climb_down(p, d, recovery_next(p, d, computed || slow), why);
}

static void record_death(struct device_slot *d)
{
    counter_add(COUNTER_RESTARTS_DIED, 1);
    d->public.restarts++;
    d->canary_ns = 0;
    d->next_try_ns = pause_ns(0);
}

/* Releases the lock for a moment: a worker's own lock may not be taken under the pool's. */
static void discard_dead(struct pool *p, struct device_slot *d, struct worker *w)
{
    struct problem why;
    bool           failed;

    assert(held(&p->lock));
    pthread_mutex_unlock(&p->lock);
    failed = worker_start_failed(w, &why);
    pthread_mutex_lock(&p->lock);
    discard_worker(p, w);
    if (failed)
        start_failed(p, d, false, &why);
    else
        record_death(d);
}

/* True when there was one. */
static bool deaths_look(struct pool *p, struct device_slot *d)
{
    struct worker *w = d->device_monitor;

    assert(held(&p->lock));
    if (w && worker_is_over(w)) {
        d->device_monitor = NULL;
        d->device_monitor_known = false;
        discard_dead(p, d, w);
        return true;
    }
    for (w = d->warm; w; w = w->next) {
        if (!worker_is_over(w))
            continue;
        list_remove(&d->warm, w);
        assert(p->workers > 0);
        p->workers--;
        discard_dead(p, d, w);
        return true;
    }
    return false;
}

static void shortage_end(const struct pool *p, struct device_slot *d)
{
    if (d->shortages == 0 || !d->device_monitor || p->config.warm_per_device == 0 ||
        list_count(d->warm, WORKER_READY) < p->config.warm_per_device)
        return;
    d->shortages = 0;
    log_info("pool", "device %s: workers can start again", d->public.id);
}

/* ---- starting, under the pool's lock ---- */

struct worker *start_pool_worker(struct pool *p, struct device_slot *d, uint64_t staging, bool device_monitor, const char *mps)
{
    struct worker_options o = {.executable = p->config.executable,
                               .backend = d->public.backend,
                               .device_arguments = p->config.device_arguments,
                               .visible = p->visible,
                               .index = d->index,
                               .uuid = d->uuid,
                               .device = (unsigned)(d - p->devices),
                               .staging_bytes = staging,
                               .start_deadline_ms = p->config.start_deadline_ms,
                               .device_monitor = device_monitor,
                               .sharing = p->config.sharing && !device_monitor,
                               .allow_no_sandbox = p->config.allow_no_sandbox,
                               .monitor = p->monitor,
                               .changed = pool_changed,
                               .context = p};
    struct worker        *w = NULL;
    struct problem        why;
    enum status           st;

    assert(held(&p->lock));
    if (mps)
        span_copy(span_of(mps), o.mps, sizeof o.mps); /* its server may end meanwhile */
    pthread_mutex_unlock(&p->lock);
    st = worker_start(&w, &o);
    pthread_mutex_lock(&p->lock);
    if (!st)
        return w;
    problem_set(&why, STATUS_OUT_OF_MEMORY, "not enough memory, file descriptors or processes for a worker");
    start_failed(p, d, false, &why);
    return NULL;
}

static bool device_monitor_start(struct pool *p, struct device_slot *d)
{
    assert(held(&p->lock));
    if (d->device_monitor || !device_may_start_monitor(d))
        return false;
    d->device_monitor = start_pool_worker(p, d, DEVICE_MONITOR_STAGING_BYTES, true, NULL);
    return true;
}

static void device_monitor_mute(struct pool *p, struct device_slot *d)
{
    struct problem why;

    assert(held(&p->lock));
    assert(d->device_monitor);
    discard_worker(p, d->device_monitor);
    d->device_monitor = NULL;
    problem_set(&why, STATUS_DEVICE_ERROR, "the device monitor sent no report");
    start_failed(p, d, true, &why); /* its canary was right: sessions can go on */
}

/* The device is well. */
static void device_monitor_welcome(struct device_slot *d, const struct device_info *info)
{
    if (d->public.state != DEVICE_HEALTHY)
        log_info("pool", "device %s is healthy: %s", d->public.id, info->name);
    d->device_monitor_known = true;
    d->public.info = *info;
    if (!d->sandbox_known)
        d->public.sandbox = worker_sandbox_of(d->device_monitor);
    device_set_state(d, DEVICE_HEALTHY); /* but for a verdict, see state_of() */
    d->failures = 0;
    d->next_try_ns = 0;
    d->settled = true;
    d->came_up = true;
    d->canary_ns = now_ns(); /* it computed a canary to become ready */
    device_reset_came_up(d, info);
}

bool device_monitor_notice(struct pool *p, struct device_slot *d)
{
    struct worker     *w = d->device_monitor;
    struct device_info info;
    bool               known, late, again = false;
    uint64_t           deadline = deadline_after_ms(CANARY_DEADLINE_MS);

    assert(held(&p->lock));
    if (!w || d->device_monitor_known || worker_state_of(w) != WORKER_READY)
        return false;
    w->pins++; /* so that no other process can take its place */
    pthread_mutex_unlock(&p->lock);
    known =
        device_monitor_info(p, d, CANARY_DEADLINE_MS, &info); /* the first reading loads the management library: slow on a busy machine */
    late = deadline_left_ns(deadline) == 0; /* then it may have been ended for just that, by its own deadline: it hangs and did not die */
    pthread_mutex_lock(&p->lock);
    assert(w->pins > 0);
    w->pins--;
    if (d->device_monitor == w && known) {
        device_monitor_welcome(d, &info);
        again = true;
    } else if (d->device_monitor == w && (late || !worker_is_over(w)))
        device_monitor_mute(p, d);
    pool_note_change(p);
    if (again) {
        pthread_mutex_unlock(&p->lock);
        device_settings_again(p, d);
        pthread_mutex_lock(&p->lock);
    }
    return true;
}

/* Those of the device itself are what is waited for, unless it is a domain that waits. NULL: there are none. */
static struct worker **find_spare(struct pool *p, const struct device_slot *d, const struct pool_domain *domain)
{
    for (unsigned i = 0; i < p->devices_count; i++) {
        struct device_slot *other = &p->devices[i];

        if ((other != d || domain) && other->demand == 0 && other->warm)
            return &other->warm;
    }
    return domains_spare(p, domain);
}

bool may_make_room(struct pool *p, const struct device_slot *d, const struct pool_domain *domain)
{
    return find_spare(p, d, domain) != NULL;
}

bool evict_for(struct pool *p, const struct device_slot *d, const struct pool_domain *domain)
{
    struct worker **warm = find_spare(p, d, domain);

    assert(held(&p->lock));
    return warm && discard_warm(p, warm);
}

bool device_has_plenty(const struct pool *p, const struct device_slot *d, unsigned workers)
{
    const struct device_info *i = &d->public.info;
    unsigned                  most = p->config.workers_max;

    assert(held(&p->lock));
    return workers < most - (most + PLENTY_DIVISOR - 1) / PLENTY_DIVISOR && i->free_bytes >= i->total_bytes / PLENTY_DIVISOR;
}

/* Half of what one more may begin with: so that none comes and goes. */
static bool has_little(const struct device_slot *d)
{
    return d->public.info.free_bytes < d->public.info.total_bytes / PLENTY_DIVISOR / 2;
}

/* As the setting says, or as many as are used; an operator who keeps none has none. */
static unsigned warm_wanted(const struct pool *p, const struct device_slot *d)
{
    unsigned least = p->config.warm_per_device, used = least ? reserve_wanted(&d->reserve, now_ns()) : 0;

    return used > least && device_has_plenty(p, d, p->workers) ? used : least;
}

/* Those that were kept because of their use, when that is over, or memory is short. */
static bool surplus_end(struct pool *p, struct device_slot *d)
{
    unsigned least = p->config.warm_per_device;

    if (!d->surplus || (reserve_wanted(&d->reserve, now_ns()) > least && !has_little(d)))
        return false;
    d->surplus = list_count_living(d->warm) > least + d->demand && discard_warm(p, &d->warm);
    return d->surplus;
}

static bool warm_start(struct pool *p, struct device_slot *d)
{
    unsigned       have = list_count_living(d->warm);
    struct worker *w;

    if (d->failures > 0 || d->verdict || d->reset.phase != RESET_NONE || have >= warm_wanted(p, d) + d->demand)
        return false;
    if (p->workers >= p->config.workers_max && !(have < d->demand && evict_for(p, d, NULL)))
        return false;
    p->workers++;
    d->surplus = d->surplus || have >= p->config.warm_per_device + d->demand;
    d->starting = true;
    w = start_pool_worker(p, d, p->config.staging_bytes, false, NULL);
    d->starting = false;
    if (w && d->failures == 0) {
        list_push(&d->warm, w);
    } else {
        if (w) /* the device has become suspect meanwhile */
            discard_worker(p, w);
        assert(p->workers > 0);
        p->workers--;
    }
    return true;
}

static bool device_care(struct pool *p, struct device_slot *d)
{
    if (deaths_look(p, d) ||
        (d->verdict && discard_warm(p, &d->warm)) || /* under a verdict only the device monitor stays, to report on it */
        device_reset_care(p, d))
        return true;
    shortage_end(p, d);
    if (p->stopping || atomic_load(&d->lost) || deadline_left_ns(d->next_try_ns) > 0)
        return false;
    return device_monitor_start(p, d) || surplus_end(p, d) || warm_start(p, d);
}

/* ---- the dead ---- */

/* Destroys workers that nobody pins; kills those that still live. Never waits for a death: the monitor announces it. */
static bool graveyard_clear(struct pool *p)
{
    for (struct worker *w = p->discarded_workers; w; w = w->next) {
        enum worker_state state = worker_state_of(w);

        if (w->pins > 0 && state == WORKER_DEAD)
            continue;
        if (state == WORKER_DEAD) {
            list_remove(&p->discarded_workers, w);
            pthread_mutex_unlock(&p->lock);
            worker_destroy(w);
            pthread_mutex_lock(&p->lock);
            return true;
        }
        if (state == WORKER_STOPPING)
            continue;
        pthread_mutex_unlock(&p->lock); /* only this thread takes workers out of the discarded_workers */
        worker_kill(w, STATUS_WORKER_LOST, NULL);
        pthread_mutex_lock(&p->lock);
        return true;
    }
    return false;
}

static uint64_t next_look(const struct pool *p)
{
    uint64_t now = now_ns(), counted = devices_count_next_look(p), first = domains_next_look(p);

    first = counted < first ? counted : first;

    for (unsigned i = 0; i < p->devices_count; i++) {
        uint64_t reset = device_reset_next_look(&p->devices[i]);

        if (p->devices[i].next_try_ns > now && p->devices[i].next_try_ns < first)
            first = p->devices[i].next_try_ns;
        if (p->devices[i].surplus && p->devices[i].reserve.until_ns > now && p->devices[i].reserve.until_ns < first)
            first = p->devices[i].reserve.until_ns;
        first = reset < first ? reset : first;
    }
    return first;
}

void *refiller_run(void *pool)
{
    struct pool *p = pool;

    pthread_mutex_lock(&p->lock);
    while (!p->stopping) {
        bool     acted = graveyard_clear(p);
        uint64_t seen = p->changes;

        acted = devices_count_care(p) || acted;
        for (unsigned i = 0; i < p->devices_count && !p->stopping; i++)
            acted = device_care(p, &p->devices[i]) || acted;
        acted = (!p->stopping && domains_care(p)) || acted;
        if (acted) /* a worker may have been ready before it was listed */
            pthread_cond_broadcast(&p->changed);
        else if (!p->stopping && seen == p->changes)
            pool_wait(p, next_look(p));
    }
    for (unsigned i = 0; i < p->devices_count; i++)
        device_reset_stop(&p->devices[i]);
    counter_drop(&p->counter);
    p->refiller_idle = true;
    pthread_cond_broadcast(&p->changed);
    while (!p->released) /* its workers would die with this thread, unannounced */
        pool_wait(p, DEADLINE_NEVER);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}
