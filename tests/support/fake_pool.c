/* Scripts of the fake device and counts of what it and the pool hold. What only the operating system or another user of the pool could do is done in
 * the functions behind it: a process that takes its time to die, a worker that somebody else took. The program is linked with --wrap= for them. */
#include "support/fake_pool.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pool/devices/devices.h"

enum { NAP_US = 100, USED_MAX = 16 };

static struct pool *pool;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all to pool_starts */
static bool            lingers;
static struct spawned  lingering[USED_MAX];
static unsigned        lingering_count;
static enum status     fail_take;
static bool            take_failed;

static void nap(void)
{
    usleep(NAP_US);
}

/* ---- ends of processes ---- */

void __real_spawn_kill(const struct spawned *s);
void __wrap_spawn_kill(const struct spawned *s);
void __real_spawn_reap(struct spawned *s, int *wait_status);
void __wrap_spawn_reap(struct spawned *s, int *wait_status);

/* Under lock. */
static bool is_lingering(pid_t pid)
{
    for (unsigned i = 0; i < lingering_count; i++)
        if (lingering[i].pid == pid)
            return true;
    return false;
}

void __wrap_spawn_kill(const struct spawned *s)
{
    pthread_mutex_lock(&lock);
    if (lingers && !is_lingering(s->pid)) {
        if (lingering_count == USED_MAX)
            abort();
        lingering[lingering_count++] = *s;
        kill(s->pid, SIGSTOP);
    }
    if (!is_lingering(s->pid))
        __real_spawn_kill(s);
    pthread_mutex_unlock(&lock);
}

/* What it held is the device's again. */
void __wrap_spawn_reap(struct spawned *s, int *wait_status)
{
    struct fake_script *f = fake_script();

    __real_spawn_reap(s, wait_status);
    for (unsigned i = 0; i < FAKE_WORKERS_MAX; i++) {
        struct fake_holdings *h = &f->workers[i];

        if (h->pid != (int)s->pid)
            continue;
        if (h->allocations)
            f->late_left = f->late;
        h->allocations = h->cached = h->modules = h->graphs = h->hosts = 0;
        h->waits = false;
        h->pid = 0;
    }
}

void fake_linger(bool on)
{
    pthread_mutex_lock(&lock);
    lingers = on;
    pthread_mutex_unlock(&lock);
}

void fake_end_lingering(void)
{
    pthread_mutex_lock(&lock);
    lingers = false;
    while (lingering_count)
        __real_spawn_kill(&lingering[--lingering_count]);
    pthread_mutex_unlock(&lock);
}

/* ---- taking workers ---- */

enum status __real_pool_take(struct pool *p, unsigned device, struct worker **out, struct problem *why);
enum status __wrap_pool_take(struct pool *p, unsigned device, struct worker **out, struct problem *why);
bool        __real_pool_take_ready(struct pool *p, unsigned device, struct worker **out);
bool        __wrap_pool_take_ready(struct pool *p, unsigned device, struct worker **out);

enum status __wrap_pool_take(struct pool *p, unsigned device, struct worker **out, struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&lock);
    st = fail_take;
    take_failed = take_failed || st;
    pthread_mutex_unlock(&lock);
    return st ? problem_set(why, st, "fake: no worker") : __real_pool_take(p, device, out, why);
}

bool __wrap_pool_take_ready(struct pool *p, unsigned device, struct worker **out)
{
    bool none;

    pthread_mutex_lock(&lock);
    none = fail_take != STATUS_OK;
    pthread_mutex_unlock(&lock);
    return !none && __real_pool_take_ready(p, device, out);
}

void fake_fail_take(enum status st)
{
    pthread_mutex_lock(&lock);
    fail_take = st;
    pthread_mutex_unlock(&lock);
}

void fake_await_take(void)
{
    bool failed = false;

    while (!failed) {
        pthread_mutex_lock(&lock);
        failed = take_failed;
        pthread_mutex_unlock(&lock);
        nap();
    }
}

void fake_spare(unsigned ready, unsigned room)
{
    struct device_slot *d = &pool->devices[0];
    struct worker      *w;

    pthread_mutex_lock(&pool->lock);
    pool->config.warm_per_device = ready;
    pool->changes++;
    pthread_cond_broadcast(&pool->changed);
    while (d->starting || list_count(d->warm, WORKER_STARTING) || list_count(d->warm, WORKER_READY) < ready)
        pool_wait(pool, deadline_after_ms(10));
    pthread_mutex_unlock(&pool->lock);
    while (!ready && __real_pool_take_ready(pool, 0, &w))
        pool_give_back(pool, w);
    pthread_mutex_lock(&pool->lock);
    pool->config.workers_max = pool->workers + room;
    pthread_mutex_unlock(&pool->lock);
}

/* ---- the pool ---- */

struct pool *fake_pool(void)
{
    return pool;
}

static void pool_start(uint64_t staging_bytes)
{
    struct pool_config config = {.workers_max = USED_MAX, .staging_bytes = staging_bytes, .sharing = true};
    struct problem     why = {0};

    if (!fake_pool_create(&pool, config, &why))
        return;
    fprintf(stderr, "no pool: %s\n", why.detail);
    abort();
}

void fake_pool_start(unsigned slices)
{
    const uint64_t      bytes = slices * (uint64_t)STAGING_SLICE_BYTES;
    struct fake_script *f = fake_script();

    memset(f, 0, sizeof *f);
    f->fail_at = f->die_at = -1;
    f->told = true;
    f->gpu_us = 2.5f;
    f->sharing = DEVICE_SHARES_FILE;
    f->memory.total_bytes = f->memory.free_bytes = 1 << 30;
    if (pool && pool->config.staging_bytes != bytes) {
        pool_destroy(pool);
        pool = NULL;
    }
    if (!pool)
        pool_start(bytes);
}

/* Of all workers in use. A worker's lock comes before the pool's, and no worker goes while that is held. */
static unsigned total(unsigned (*of)(struct worker *w))
{
    unsigned n = 0;
    bool     all;

    do {
        n = 0;
        all = true;
        pthread_mutex_lock(&pool->lock);
        for (struct worker *w = pool->used; w && all; w = w->next) {
            all = pthread_mutex_trylock(&w->lock) == 0;
            if (!all)
                continue;
            n += of(w);
            pthread_mutex_unlock(&w->lock);
        }
        pthread_mutex_unlock(&pool->lock);
        if (!all)
            sched_yield();
    } while (!all);
    return n;
}

static unsigned slices_of(struct worker *w)
{
    unsigned n = 0;

    pthread_mutex_lock(&w->staging.lock);
    for (unsigned i = 0; i < w->staging.slices_count; i++)
        n += w->staging.used[i];
    pthread_mutex_unlock(&w->staging.lock);
    return n;
}

static unsigned unfinished_of(struct worker *w)
{
    return w->unfinished;
}

unsigned fake_slices_used(void)
{
    return total(slices_of);
}

unsigned fake_live_workers(void)
{
    struct pool_device d;

    pool_device_at(pool, 0, &d);
    return d.workers_used;
}

/* ---- the device ---- */

static unsigned held(size_t member)
{
    struct fake_script *f = fake_script();
    unsigned            n = 0;

    for (unsigned i = 0; i < FAKE_WORKERS_MAX; i++)
        n += f->workers[i].pid ? *(_Atomic unsigned *)(void *)((char *)&f->workers[i] + member) : 0;
    return n;
}

static unsigned running(void)
{
    struct fake_script *f = fake_script();
    unsigned            n = 0;

    for (unsigned i = 0; i < FAKE_WORKERS_MAX; i++)
        n += f->workers[i].pid && f->workers[i].waits;
    return n;
}

unsigned fake_live_allocations(void)
{
    return held(offsetof(struct fake_holdings, allocations));
}

unsigned fake_modules_loaded(void)
{
    return held(offsetof(struct fake_holdings, modules));
}

unsigned fake_graphs(void)
{
    return held(offsetof(struct fake_holdings, graphs));
}

unsigned fake_hosts_mapped(void)
{
    return held(offsetof(struct fake_holdings, hosts));
}

void fake_fail_at(int n, enum status st)
{
    fake_script()->fail_status = st;
    fake_script()->fail_at = n;
}

bool fake_fault_unused(void)
{
    while (total(unfinished_of))
        nap();
    return fake_script()->fail_at >= 0 || fake_script()->die_at >= 0;
}

/* As the device monitor tells it. */
void fake_sharing(enum device_sharing sharing)
{
    struct pool_device unused;

    fake_script()->sharing = sharing;
    pool_device_refresh(pool, 0, &unused);
}

void fake_await_refusal(void)
{
    while (!fake_script()->refused)
        nap();
}

/* And until the front-end knows. No worker is given back meanwhile. */
void fake_await_running(void)
{
    struct worker *all[USED_MAX];
    unsigned       n = 0;

    while (!running())
        nap();
    pthread_mutex_lock(&pool->lock);
    for (struct worker *w = pool->used; w && n < USED_MAX; w = w->next)
        all[n++] = w;
    pthread_mutex_unlock(&pool->lock);
    while (n)
        calls_last(all[--n]);
}

void fake_await_queued(unsigned n)
{
    while (total(unfinished_of) < n + running())
        nap();
}

/* What the health thread would find. */
void fake_device_state(enum device_state state)
{
    pthread_mutex_lock(&pool->lock);
    pool->devices[0].hot = state == DEVICE_HOT;
    pool->devices[0].public.state = state == DEVICE_HOT ? DEVICE_HEALTHY : state;
    pthread_mutex_unlock(&pool->lock);
}

void fake_device_fail(void)
{
    pthread_mutex_lock(&pool->lock);
    pool->devices[0].verdict = DEVICE_ACTION_END;
    problem_set(&pool->devices[0].last_problem, STATUS_DEVICE_ERROR, "fake: the device failed");
    pthread_mutex_unlock(&pool->lock);
}
