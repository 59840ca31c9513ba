/* Fault domains in the pool: a server each, workers that wait in it, and takers. What happens in a domain says nothing about the device:
 * its failures stay its own, so that callers without it notice none of them. */
#include "pool/domains/domains.h"

#include <errno.h>

#include "base/log/log.h"
#include "base/metrics.h"
#include "base/threads/held.h"
#include "pool/devices/devices.h"

static struct device_slot *device_of(struct pool *p, const struct pool_domain *m)
{
    return &p->devices[m->device];
}

static struct pool_domain *find(struct pool *p, const void *key)
{
    for (unsigned i = 0; i < FAULT_DOMAINS_MAX; i++)
        if (p->domains.slots[i].key == key)
            return &p->domains.slots[i];
    return NULL;
}

/* ---- servers, under the pool's lock ---- */

static void end_server(struct pool *p, struct mps_server *s)
{
    mps_server_end(s);
    s->next = p->domains.ending;
    p->domains.ending = s;
    p->domains.ending_count++;
}

static bool free_ended(struct pool *p)
{
    for (struct mps_server **at = &p->domains.ending; *at; at = &(*at)->next) {
        struct mps_server *s = *at;

        if (!mps_server_gone(s))
            continue;
        *at = s->next;
        assert(p->domains.ending_count > 0);
        p->domains.ending_count--;
        mps_server_free(s);
        return true;
    }
    return false;
}

/* What waits in it goes, too. */
static void leave_server(struct pool *p, struct pool_domain *m)
{
    while (discard_warm(p, &m->warm))
        continue;
    if (m->server)
        end_server(p, m->server);
    m->server = NULL;
    m->ended = false;
}

static void start_failed(struct pool *p, struct pool_domain *m, const struct problem *why)
{
    counter_add(COUNTER_RESTARTS_START_FAILED, 1);
    m->last_problem = *why;
    m->failed_starts++;
    m->next_try_ns = pause_ns(m->failures++);
    log_warn("pool", "a fault domain on device %s: a start failed: %s", device_of(p, m)->public.id, why->detail);
    pthread_cond_broadcast(&p->changed);
}

static void server_ended(struct pool *p, struct pool_domain *m)
{
    struct mps_server *s = m->server;
    bool               was_up = atomic_load(&s->up);
    struct problem     why;

    leave_server(p, m);
    problem_set(&why, STATUS_FAULT_DOMAIN_LOST, "the MPS server of the fault domain %s", was_up ? "ended" : "did not start");
    if (!was_up) {
        start_failed(p, m, &why);
        return;
    }
    m->ended = true;
    m->last_problem = why;
    counter_add(COUNTER_MPS_SERVERS_LOST, 1);
    log_warn("pool", "an MPS server on device %s ended", device_of(p, m)->public.id);
    pool_note_change(p);
}

static bool server_is_late(struct pool *p, struct pool_domain *m)
{
    struct problem why;

    if (!m->server || atomic_load(&m->server->up) || deadline_left_ns(m->server->start_deadline_ns) > 0)
        return false;
    leave_server(p, m);
    problem_set(&why, STATUS_FAULT_DOMAIN_UNAVAILABLE, "the MPS control daemon accepted no clients within %d s", SERVER_START_MS / 1000);
    start_failed(p, m, &why);
    return true;
}

static bool device_is_well(const struct device_slot *d)
{
    return d->failures == 0 && !d->verdict && !atomic_load(&d->lost) && d->reset.phase == RESET_NONE;
}

/* Releases the lock for a moment, in which the domain may end. */
static bool start_server(struct pool *p, struct pool_domain *m)
{
    struct mps_options o = {.executable = p->config.executable,
                            .control = p->config.mps_control,
                            .visible = p->visible,
                            .base = p->domains.base,
                            .device = m->device,
                            .number = ++p->domains.numbers,
                            .monitor = p->monitor,
                            .changed = pool_changed,
                            .context = p};
    struct mps_server *s = NULL;
    const void        *key = m->key;
    struct problem     why;
    enum status        st;

    if (m->server || m->ended || !device_is_well(device_of(p, m)) || p->domains.ending_count >= SERVERS_ENDING_MAX)
        return false;
    pthread_mutex_unlock(&p->lock);
    st = mps_server_start(&s, &o);
    pthread_mutex_lock(&p->lock);
    if (st) {
        problem_set(&why, st == STATUS_OUT_OF_MEMORY ? st : STATUS_FAULT_DOMAIN_UNAVAILABLE, "the MPS control daemon cannot be started");
        start_failed(p, m, &why);
        return true;
    }
    counter_add(COUNTER_MPS_SERVERS_STARTED, 1);
    if (m->key == key)
        m->server = s;
    else
        end_server(p, s);
    return true;
}

/* ---- workers that wait, under the pool's lock ---- */

/* Releases the lock for a moment, in which the domain or its server may end. */
static bool start_warm(struct pool *p, struct pool_domain *m)
{
    unsigned           have = list_count_living(m->warm);
    unsigned           spare = p->config.warm_per_device < SERVER_WARM_MAX ? p->config.warm_per_device : SERVER_WARM_MAX;
    struct mps_server *s = m->server;
    const void        *key = m->key;
    struct worker     *w;

    if (!s || !atomic_load(&s->up) || have >= m->demand + spare || !device_is_well(device_of(p, m)))
        return false;
    if (p->workers >= p->config.workers_max && !(have < m->demand && evict_for(p, device_of(p, m), m)))
        return false;
    p->workers++;
    m->starting = true;
    w = start_pool_worker(p, device_of(p, m), p->config.staging_bytes, false, s->pipe);
    m->starting = false;
    if (w && m->key == key && m->server == s) {
        list_push(&m->warm, w);
        return true;
    }
    if (w)
        discard_worker(p, w);
    assert(p->workers > 0);
    p->workers--;
    return true;
}

/* Releases the lock for a moment: a worker's own lock may not be taken under the pool's. */
static bool look_at_deaths(struct pool *p, struct pool_domain *m)
{
    struct worker *w = m->warm;
    struct problem why;
    bool           failed;

    while (w && !worker_is_over(w))
        w = w->next;
    if (!w)
        return false;
    list_remove(&m->warm, w);
    assert(p->workers > 0);
    p->workers--;
    pthread_mutex_unlock(&p->lock);
    failed = worker_start_failed(w, &why);
    pthread_mutex_lock(&p->lock);
    discard_worker(p, w);
    if (failed)
        start_failed(p, m, &why);
    else
        counter_add(COUNTER_RESTARTS_DIED, 1);
    return true;
}

static bool care(struct pool *p, struct pool_domain *m)
{
    if (m->server && mps_server_gone(m->server)) {
        server_ended(p, m);
        return true;
    }
    if (look_at_deaths(p, m) || server_is_late(p, m))
        return true;
    if (!m->key || p->stopping || deadline_left_ns(m->next_try_ns) > 0)
        return false;
    return start_server(p, m) || start_warm(p, m);
}

bool domains_care(struct pool *p)
{
    bool acted = free_ended(p);

    assert(held(&p->lock));
    for (unsigned i = 0; i < FAULT_DOMAINS_MAX; i++)
        acted = care(p, &p->domains.slots[i]) || acted;
    return acted;
}

uint64_t domains_next_look(const struct pool *p)
{
    uint64_t now = now_ns(), first = DEADLINE_NEVER;

    for (unsigned i = 0; i < FAULT_DOMAINS_MAX; i++) {
        const struct pool_domain *m = &p->domains.slots[i];

        if (m->key && m->next_try_ns > now && m->next_try_ns < first)
            first = m->next_try_ns;
        if (m->server && !atomic_load(&m->server->up) && m->server->start_deadline_ns < first)
            first = m->server->start_deadline_ns;
    }
    return first;
}

struct worker **domains_spare(struct pool *p, const struct pool_domain *but)
{
    for (unsigned i = 0; i < FAULT_DOMAINS_MAX; i++) {
        struct pool_domain *m = &p->domains.slots[i];

        if (m != but && m->demand == 0 && m->warm)
            return &m->warm;
    }
    return NULL;
}

bool domains_leave_device(struct pool *p, unsigned device)
{
    bool any = false;

    for (unsigned i = 0; i < FAULT_DOMAINS_MAX; i++) {
        struct pool_domain *m = &p->domains.slots[i];

        if (m->device != device || !(m->server || m->warm))
            continue;
        leave_server(p, m);
        any = true;
    }
    return any;
}

bool domains_on_device(const struct pool *p, unsigned device)
{
    for (const struct mps_server *s = p->domains.ending; s; s = s->next)
        if (s->device == device)
            return true;
    for (unsigned i = 0; i < FAULT_DOMAINS_MAX; i++)
        if (p->domains.slots[i].server && p->domains.slots[i].device == device)
            return true;
    return false;
}

struct worker *domains_any_worker(struct pool *p)
{
    for (unsigned i = 0; i < FAULT_DOMAINS_MAX; i++) {
        struct worker *w = p->domains.slots[i].warm;

        if (w) {
            p->domains.slots[i].warm = w->next;
            return w;
        }
    }
    return NULL;
}

void domains_create(struct pool *p)
{
    p->domains.lock_fd = -1;
    if (!p->config.mps_control || mps_base_create(p->domains.base, &p->domains.lock_fd))
        return;
    log_warn("pool", "fault domains have no MPS servers: no private folder can be made: %s", strerror(errno));
    p->config.mps_control = NULL;
    p->config.mps_missing = "the service cannot make a private folder for it";
}

void domains_destroy(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    for (unsigned i = 0; i < FAULT_DOMAINS_MAX; i++)
        leave_server(p, &p->domains.slots[i]);
    while (p->domains.ending)
        if (!free_ended(p))
            pool_wait(p, DEADLINE_NEVER);
    pthread_mutex_unlock(&p->lock);
    mps_base_remove(p->domains.base, &p->domains.lock_fd);
}

/* ---- takers ---- */

enum pool_server_offer pool_server_offer(struct pool *p, unsigned device, struct problem *why)
{
    bool has = false;

    pthread_mutex_lock(&p->lock);
    if (device < p->devices_count)
        has = p->devices[device].public.info.has_server;
    pthread_mutex_unlock(&p->lock);
    if (!has)
        return SERVER_NEEDLESS;
    if (p->config.mps_control)
        return SERVER_OFFERED;
    problem_set(why, STATUS_FAULT_DOMAIN_UNAVAILABLE, "a fault domain on this device needs NVIDIA's MPS, and %s", p->config.mps_missing);
    return SERVER_MISSING;
}

/* Under lock. There are as many places as domains; that of one that has just ended may not be free yet. */
static struct pool_domain *claim(struct pool *p, unsigned device, const void *key)
{
    struct pool_domain *m = find(p, key);

    if (!m && (m = find(p, NULL)))
        *m = (struct pool_domain){.key = key, .device = device};
    return m;
}

static struct worker *first_ready(struct pool *p, const struct pool_domain *m)
{
    struct worker *w = device_is_well(device_of(p, m)) && !m->ended ? m->warm : NULL;

    while (w && worker_state_of(w) != WORKER_READY)
        w = w->next;
    return w;
}

static enum status cannot_start(const struct pool_domain *m, struct problem *why)
{
    enum status st = m->last_problem.status == STATUS_OVERLOADED || m->last_problem.status == STATUS_OUT_OF_MEMORY ||
                             m->last_problem.status == STATUS_DEVICE_MEMORY_EXHAUSTED
                         ? m->last_problem.status
                         : STATUS_FAULT_DOMAIN_UNAVAILABLE;

    return problem_set(why, st, "the fault domain cannot start a worker: %s", m->last_problem.detail);
}

/* Why no worker comes; PENDING: one may. */
static enum status why_not(struct pool *p, const struct pool_domain *m, uint64_t failed_starts, struct problem *why)
{
    enum status st = device_refuses(p, device_of(p, m), why);

    if (st)
        return st;
    if (m->failed_starts != failed_starts)
        return cannot_start(m, why);
    if (p->workers >= p->config.workers_max && !m->warm && !m->starting && !may_make_room(p, device_of(p, m), m))
        return problem_limit(why, STATUS_NO_WORKER, "workers", p->config.workers_max, p->workers, 1);
    return STATUS_PENDING;
}

/* Under lock. */
static enum status await_worker(struct pool *p, struct pool_domain *m, struct worker **out, struct problem *why)
{
    uint64_t    deadline = deadline_after_ms(p->config.start_deadline_ms + SERVER_START_MS), failed_starts = m->failed_starts;
    enum status st;

    while (!(*out = first_ready(p, m))) {
        if ((st = why_not(p, m, failed_starts, why)) != STATUS_PENDING)
            return st;
        if (deadline_left_ns(deadline) == 0)
            return problem_set(why, STATUS_NO_WORKER, "no worker of the fault domain was ready in time");
        pool_wait(p, deadline);
    }
    return STATUS_OK;
}

static void hand_out(struct pool *p, struct pool_domain *m, struct worker *w)
{
    pool_hand_out(p, device_of(p, m), &m->warm, w);
    m->failures = 0;
    pool_note_change(p);
}

enum status pool_domain_take(struct pool *p, unsigned device, const void *domain, struct worker **out, struct problem *why)
{
    struct pool_domain *m;
    uint64_t            deadline = deadline_after_ms(p->config.start_deadline_ms);
    enum status         st;

    assert(device < p->devices_count);
    pthread_mutex_lock(&p->lock);
    while (!(m = claim(p, device, domain)) && deadline_left_ns(deadline) > 0 && !p->stopping)
        pool_wait(p, deadline);
    if (!m) {
        pthread_mutex_unlock(&p->lock);
        return problem_limit(why, STATUS_OVERLOADED, "fault_domains", FAULT_DOMAINS_MAX, FAULT_DOMAINS_MAX, 1);
    }
    m->demand++;
    pool_note_change(p);
    st = await_worker(p, m, out, why);
    m->demand--;
    if (st)
        pool_note_change(p);
    else
        hand_out(p, m, *out);
    pthread_mutex_unlock(&p->lock);
    return st;
}

bool pool_domain_take_ready(struct pool *p, const void *domain, struct worker **out)
{
    struct pool_domain *m;

    *out = NULL;
    pthread_mutex_lock(&p->lock);
    m = find(p, domain);
    if (m && !p->stopping && (*out = first_ready(p, m)))
        hand_out(p, m, *out);
    pthread_mutex_unlock(&p->lock);
    return *out != NULL;
}

void pool_domain_leave(struct pool *p, const void *domain, bool for_good)
{
    struct pool_domain *m;

    pthread_mutex_lock(&p->lock);
    m = find(p, domain);
    if (m) {
        leave_server(p, m);
        if (for_good)
            m->key = NULL;
        pool_note_change(p);
    }
    pthread_mutex_unlock(&p->lock);
}

enum status pool_domain_verdict(struct pool *p, const void *domain, struct problem *why)
{
    struct pool_domain *m;
    bool                ended;

    pthread_mutex_lock(&p->lock);
    m = find(p, domain);
    ended = m && m->ended;
    if (ended)
        *why = m->last_problem;
    pthread_mutex_unlock(&p->lock);
    return ended ? STATUS_FAULT_DOMAIN_LOST : STATUS_OK;
}

unsigned pool_servers(struct pool *p)
{
    unsigned n;

    pthread_mutex_lock(&p->lock);
    n = p->domains.ending_count;
    for (unsigned i = 0; i < FAULT_DOMAINS_MAX; i++)
        n += p->domains.slots[i].server != NULL;
    pthread_mutex_unlock(&p->lock);
    return n;
}
