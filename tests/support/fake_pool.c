/* The fake's pool, its staging memory, and what a test asks it. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/waker.h"
#include "support/fake_state.h"

struct pool {
    int unused;
};

static struct pool               the_pool;
static _Atomic unsigned          slices_used;
static _Atomic enum device_state device_state; /* healthy */
static atomic_bool               device_failed;

void fake_device_state(enum device_state state)
{
    atomic_store(&device_state, state);
}

enum device_state pool_device_state(struct pool *p, unsigned i)
{
    (void)p, (void)i;
    return atomic_load(&device_state);
}

enum status pool_device_accepts(struct pool *p, unsigned i, struct problem *why)
{
    (void)p, (void)i;
    return atomic_load(&device_state) == DEVICE_HOT ? problem_set(why, STATUS_OVERLOADED, "fake: too hot") : STATUS_OK;
}

enum status pool_device_verdict(struct pool *p, unsigned i, struct problem *why)
{
    (void)p, (void)i;
    return atomic_load(&device_failed) ? problem_set(why, STATUS_DEVICE_ERROR, "fake: the device failed") : STATUS_OK;
}

void fake_device_fail(bool failed)
{
    atomic_store(&device_failed, failed);
}

struct pool *fake_pool(void)
{
    return &the_pool;
}

/* ---- scripts ---- */

static void set(void (*change)(void))
{
    pthread_mutex_lock(&fake.lock);
    change();
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
}

static void release(void)
{
    fake.released = true;
}

static void hold(void)
{
    fake.held = true;
}

static void go(void)
{
    fake.held = false;
}

void fake_release(void)
{
    set(release);
}

void fake_hold(void)
{
    set(hold);
}

void fake_go(void)
{
    set(go);
}

void fake_reset(unsigned slices)
{
    pthread_mutex_lock(&fake.lock);
    fake.fail_at = fake.die_at = -1;
    fake.fail_take = STATUS_OK;
    fake.released = fake.held = fake.no_spare = fake.room = fake.returns_held = fake.caches = fake.linger = fake.linger_over =
        fake.take_failed = false;
    fake.allocations_max = fake.refused = fake.late = fake.late_left = fake.cached = 0;
    fake.sharing = DEVICE_SHARES_FILE;
    fake.lies = false;
    fake.gpu_us = 2.5f;
    fake.slices = slices;
    fake.compiles = 0;
    pthread_mutex_unlock(&fake.lock);
}

void fake_memory(const struct device_memory *memory)
{
    pthread_mutex_lock(&fake.lock);
    fake.memory = *memory;
    pthread_mutex_unlock(&fake.lock);
}

void fake_gpu_us(float us)
{
    pthread_mutex_lock(&fake.lock);
    fake.gpu_us = us;
    pthread_mutex_unlock(&fake.lock);
}

void fake_fail_at(int n, enum status st)
{
    pthread_mutex_lock(&fake.lock);
    fake.fail_at = n;
    fake.fail_status = st;
    pthread_mutex_unlock(&fake.lock);
}

void fake_die_at(int n)
{
    pthread_mutex_lock(&fake.lock);
    fake.die_at = n;
    pthread_mutex_unlock(&fake.lock);
}

bool fake_fault_unused(void)
{
    bool unused;

    pthread_mutex_lock(&fake.lock);
    unused = fake.fail_at >= 0 || fake.die_at >= 0;
    pthread_mutex_unlock(&fake.lock);
    return unused;
}

void fake_fail_take(enum status st)
{
    pthread_mutex_lock(&fake.lock);
    fake.fail_take = st;
    pthread_mutex_unlock(&fake.lock);
}

void fake_no_spare(void)
{
    pthread_mutex_lock(&fake.lock);
    fake.no_spare = true;
    pthread_mutex_unlock(&fake.lock);
}

void fake_allocations_max(unsigned n)
{
    pthread_mutex_lock(&fake.lock);
    fake.allocations_max = n;
    pthread_mutex_unlock(&fake.lock);
}

static unsigned peek(const unsigned *value)
{
    unsigned n;

    pthread_mutex_lock(&fake.lock);
    n = *value;
    pthread_mutex_unlock(&fake.lock);
    return n;
}

void fake_late(unsigned refusals)
{
    pthread_mutex_lock(&fake.lock);
    fake.late = refusals;
    pthread_mutex_unlock(&fake.lock);
}

void fake_caches(void)
{
    pthread_mutex_lock(&fake.lock);
    fake.caches = true;
    pthread_mutex_unlock(&fake.lock);
}

unsigned fake_refusals(void)
{
    return peek(&fake.refused);
}

void fake_await_refusal(void)
{
    pthread_mutex_lock(&fake.lock);
    while (!fake.refused)
        pthread_cond_wait(&fake.changed, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
}

void fake_room(void)
{
    pthread_mutex_lock(&fake.lock);
    fake.no_spare = fake.room = true;
    pthread_mutex_unlock(&fake.lock);
}

void fake_linger(bool on)
{
    pthread_mutex_lock(&fake.lock);
    fake.linger = on;
    pthread_mutex_unlock(&fake.lock);
}

/* Under fake.lock. One whose return is held is not gone yet. */
static bool is_gone(const struct worker *w)
{
    return w->dead && !fake.returns_held && (!w->lingers || fake.linger_over);
}

/* Tells of all that are gone, each once. */
static void tell_ends(void)
{
    struct worker **at, *w;

    do {
        pthread_mutex_lock(&fake.lock);
        for (at = &fake.watched; *at && !is_gone(*at);)
            at = &(*at)->next_watched;
        w = *at;
        if (w)
            *at = w->next_watched;
        pthread_mutex_unlock(&fake.lock);
        if (w)
            w->end_waker->wake(w->end_waker);
    } while (w);
}

void fake_end_lingering(void)
{
    pthread_mutex_lock(&fake.lock);
    fake.linger_over = true;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
    tell_ends();
}

void fake_await_take(void)
{
    pthread_mutex_lock(&fake.lock);
    while (!fake.take_failed)
        pthread_cond_wait(&fake.changed, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
}

void fake_hold_returns(bool held)
{
    pthread_mutex_lock(&fake.lock);
    fake.returns_held = held;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
    tell_ends();
}

void fake_await_running(void)
{
    pthread_mutex_lock(&fake.lock);
    while (!fake.running)
        pthread_cond_wait(&fake.changed, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
}

void fake_await_queued(unsigned n)
{
    pthread_mutex_lock(&fake.lock);
    while (fake.queued < n)
        pthread_cond_wait(&fake.changed, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
}

void fake_await_compiling(void)
{
    pthread_mutex_lock(&fake.lock);
    while (!fake.compiles)
        pthread_cond_wait(&fake.changed, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
}

void fake_sharing(enum device_sharing sharing)
{
    pthread_mutex_lock(&fake.lock);
    fake.sharing = sharing;
    pthread_mutex_unlock(&fake.lock);
}

void fake_lie(void)
{
    pthread_mutex_lock(&fake.lock);
    fake.lies = true;
    pthread_mutex_unlock(&fake.lock);
}

unsigned fake_hosts_mapped(void)
{
    return peek(&fake.hosts);
}

unsigned fake_live_allocations(void)
{
    return peek(&fake.allocations);
}

unsigned fake_live_workers(void)
{
    return peek(&fake.workers);
}

unsigned fake_modules_loaded(void)
{
    return peek(&fake.modules_loaded);
}

unsigned fake_graphs(void)
{
    return peek(&fake.graphs);
}

unsigned fake_slices_used(void)
{
    return atomic_load(&slices_used);
}

uint64_t fake_compiles(void)
{
    uint64_t n;

    pthread_mutex_lock(&fake.lock);
    n = fake.compiles;
    pthread_mutex_unlock(&fake.lock);
    return n;
}

/* ---- the pool ---- */

int pool_device_find(struct pool *p, struct span id)
{
    (void)p;
    return span_is(id, "fake:0") ? 0 : -1;
}

int pool_device_choose(struct pool *p, struct span wish)
{
    return pool_device_fits(p, 0, wish) ? 0 : -1;
}

bool pool_device_fits(const struct pool *p, unsigned i, struct span wish)
{
    (void)p;
    return i == 0 && (wish.bytes == 0 || span_is(wish, "fake:0"));
}

unsigned pool_device_count(const struct pool *p)
{
    (void)p;
    return 1;
}

bool pool_device_at(struct pool *p, unsigned i, struct pool_device *out)
{
    (void)p;
    if (i)
        return false;
    memset(out, 0, sizeof *out);
    snprintf(out->id, sizeof out->id, "fake:0");
    snprintf(out->info.compile_arch, sizeof out->info.compile_arch, "compute_75");
    out->info.code_format = DEVICE_CODE_PTX;
    out->info.on_host = 1;
    snprintf(out->info.compiler, sizeof out->info.compiler, "nvrtc");
    out->info.max_threads_per_block = FAKE_MAX_THREADS;
    for (unsigned d = 0; d < 3; d++) {
        out->info.max_block[d] = FAKE_MAX_THREADS;
        out->info.max_grid[d] = FAKE_MAX_GRID;
    }
    out->info.max_shared_bytes_per_block = FAKE_MAX_SHARED;
    out->info.sharing = fake.sharing;
    out->info.sharing_unit = FAKE_SHARING_UNIT;
    return true;
}

enum status pool_take(struct pool *p, unsigned device, struct worker **out, struct problem *why)
{
    struct worker *w;
    enum status    st;

    (void)p;
    (void)device;
    pthread_mutex_lock(&fake.lock);
    st = fake.fail_take;
    fake.fail_take = STATUS_OK;
    fake.workers += !st;
    fake.take_failed = fake.take_failed || st;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
    if (st)
        return problem_set(why, st, "fake: no worker");
    w = calloc(1, sizeof *w);
    w->slices = fake.slices;
    w->staging = malloc(((size_t)w->slices + 1) * STAGING_SLICE_BYTES);
    pthread_mutex_init(&w->drain, NULL);
    pthread_mutex_init(&w->staging_lock, NULL);
    pthread_create(&w->thread, NULL, fake_worker_main, w);
    *out = w;
    return STATUS_OK;
}

bool pool_take_ready(struct pool *p, unsigned device, struct worker **out)
{
    bool none;

    pthread_mutex_lock(&fake.lock);
    none = fake.fail_take != STATUS_OK || fake.no_spare;
    pthread_mutex_unlock(&fake.lock);
    return !none && pool_take(p, device, out, NULL) == STATUS_OK;
}

bool pool_has_room(struct pool *p)
{
    bool room;

    (void)p;
    pthread_mutex_lock(&fake.lock);
    room = fake.room;
    pthread_mutex_unlock(&fake.lock);
    return room;
}

void worker_watch_end(struct worker *w, struct waker *waker)
{
    pthread_mutex_lock(&fake.lock);
    w->end_waker = waker;
    w->next_watched = fake.watched;
    fake.watched = w;
    pthread_mutex_unlock(&fake.lock);
    tell_ends();
}

static void wake_staging(struct worker *w)
{
    while (w->waiters) {
        struct waker *at = w->waiters;
        w->waiters = at->next;
        at->next = NULL;
        at->wake(at);
    }
}

void worker_kill(struct worker *w, enum status st, const struct problem *why)
{
    pthread_mutex_lock(&fake.lock);
    if (!w->dead) {
        w->dead = true;
        w->lingers = fake.linger;
        w->end = *why;
        w->end.status = st;
    }
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
}

void pool_give_back(struct pool *p, struct worker *w)
{
    struct problem why;

    (void)p;
    problem_set(&why, STATUS_WORKER_LOST, "fake: given back");
    worker_kill(w, STATUS_WORKER_LOST, &why);
    pthread_join(w->thread, NULL);
    if (w->unfinished || w->waiters)
        abort(); /* the session must have ended both before */
    pthread_mutex_lock(&fake.lock);
    while (w->allocations) {
        struct allocation *a = w->allocations;
        w->allocations = a->next;
        fake_allocation_free(a);
        fake.allocations--;
        fake.late_left = fake.late;
    }
    fake.cached -= w->cached;
    fake_hosts_drop(w);
    while (w->graphs) {
        struct graph *g = w->graphs;
        w->graphs = g->next;
        free(g->bytes);
        free(g);
        fake.graphs--;
    }
    fake.workers--;
    pthread_mutex_unlock(&fake.lock);
    for (unsigned i = 0; i < w->slices; i++)
        if (w->used[i])
            atomic_fetch_sub(&slices_used, 1);
    pthread_mutex_destroy(&w->drain);
    pthread_mutex_destroy(&w->staging_lock);
    free(w->staging);
    free(w);
}

/* ---- staging ---- */

uint64_t staging_bytes(const struct worker *w)
{
    return (uint64_t)w->slices * STAGING_SLICE_BYTES;
}

static void mark(struct worker *w, unsigned from, unsigned count, bool used)
{
    for (unsigned i = 0; i < count; i++)
        w->used[from + i] = used;
    if (used)
        atomic_fetch_add(&slices_used, count);
    else
        atomic_fetch_sub(&slices_used, count);
}

static bool find_run(const struct worker *w, unsigned want, unsigned *at)
{
    unsigned run = 0;

    for (unsigned i = 0; i < w->slices; i++) {
        run = w->used[i] ? 0 : run + 1;
        if (run == want) {
            *at = i + 1 - want;
            return true;
        }
    }
    return false;
}

enum status staging_take(struct worker *w, uint64_t bytes, struct slice *out, struct waker *waker)
{
    unsigned    want = (unsigned)((bytes + STAGING_SLICE_BYTES - 1) / STAGING_SLICE_BYTES);
    unsigned    at = 0;
    enum status st = STATUS_OK;

    pthread_mutex_lock(&w->staging_lock);
    if (find_run(w, want, &at)) {
        mark(w, at, want, true);
        out->ref = (struct shm_ref){(uint64_t)at * STAGING_SLICE_BYTES, (uint64_t)want * STAGING_SLICE_BYTES};
        out->data = w->staging + out->ref.offset;
    } else {
        st = STATUS_PENDING;
        if (waker) {
            waker->next = w->waiters;
            w->waiters = waker;
        }
    }
    pthread_mutex_unlock(&w->staging_lock);
    return st;
}

void staging_give(struct worker *w, struct slice *s)
{
    unsigned from = (unsigned)(s->ref.offset / STAGING_SLICE_BYTES);
    unsigned count = (unsigned)(s->ref.bytes / STAGING_SLICE_BYTES);

    pthread_mutex_lock(&w->staging_lock);
    if (!count || !w->used[from])
        abort(); /* not taken, or given twice */
    mark(w, from, count, false);
    *s = (struct slice){0};
    wake_staging(w);
    pthread_mutex_unlock(&w->staging_lock);
}

void staging_unwatch(struct worker *w, struct waker *waker)
{
    pthread_mutex_lock(&w->staging_lock);
    for (struct waker **at = &w->waiters; *at; at = &(*at)->next)
        if (*at == waker) {
            *at = waker->next;
            waker->next = NULL;
            break;
        }
    pthread_mutex_unlock(&w->staging_lock);
}
