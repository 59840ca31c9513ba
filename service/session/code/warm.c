/* Jobs that compile ahead: a thread each, few of them, and what is remembered of those that have ended. */
#include "session/code/warm.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/deadline.h"
#include "base/log/log.h"
#include "base/portion.h"
#include "base/threads/held.h"
#include "pool/compile/compile.h"
#include "session/code/builtin_source.h"
#include "session/code/internal.h"
#include "session/life/parts.h"

/* One reference is the list's, one the thread's. All but the first group is under warm_jobs.lock. */
struct warm_job {
    struct entry        entry; /* in no table; its id does not change */
    struct registry    *registry;
    const void         *owner; /* compared, never followed */
    char                caller[CALLER_NAME_BYTES];
    uint64_t            created_wall_ns;
    struct module_spec *modules; /* in the arena; of the thread alone, as the arena is */
    struct arena        arena;

    TAILQ_ENTRY(warm_job) in_jobs;
    unsigned          refs;
    bool              listed;
    bool              working;   /* its thread is at work: listed until that ends, so that it counts */
    bool              forgotten; /* not found any more */
    enum work_state   state;
    struct warm_item *items; /* [items_count], owned */
    unsigned          items_count;
    uint64_t          finished_wall_ns, expires_ns;
    struct waitlist   end;
};

void warm_jobs_init(struct warm_jobs *w)
{
    *w = (struct warm_jobs){0};
    TAILQ_INIT(&w->all);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
}

/* ---- references and the list; with warm_jobs.lock held ---- */

static void free_job(struct warm_job *j)
{
    arena_finish(&j->arena);
    for (unsigned i = 0; i < j->items_count; i++)
        free(j->items[i].detail);
    free(j->items);
    free(j);
}

static void unref(struct warm_job *j)
{
    assert(held(&j->registry->warm.lock) && j->refs > 0);
    if (--j->refs == 0)
        free_job(j);
}

static void unlist(struct warm_job *j)
{
    assert(held(&j->registry->warm.lock));
    if (!j->listed)
        return;
    TAILQ_REMOVE(&j->registry->warm.all, j, in_jobs);
    j->listed = false;
    unref(j);
}

static void list_last(struct warm_jobs *w, struct warm_job *j)
{
    assert(held(&w->lock));
    TAILQ_INSERT_TAIL(&w->all, j, in_jobs);
    j->listed = true;
    j->refs++;
}

static void forget(struct warm_job *j)
{
    j->forgotten = true;
    if (!j->working)
        unlist(j);
}

static void expire(struct warm_jobs *w)
{
    uint64_t now = now_ns();

    for (struct warm_job *j = TAILQ_FIRST(&w->all), *next; j; j = next) {
        next = TAILQ_NEXT(j, in_jobs);
        if (waitlist_over(&j->end) && j->expires_ns <= now)
            forget(j);
    }
}

/* How many of the owner's jobs have a thread at work, cancelled ones among them: or how many have none. */
static unsigned count_jobs(const struct warm_jobs *w, const void *owner, bool working)
{
    const struct warm_job *j;
    unsigned               n = 0;

    TAILQ_FOREACH(j, &w->all, in_jobs)
        n += j->owner == owner && j->working == working;
    return n;
}

static void drop_oldest(struct warm_jobs *w, const void *owner)
{
    struct warm_job *j;

    TAILQ_FOREACH(j, &w->all, in_jobs)
        if (j->owner == owner && !j->working)
            break;
    if (j)
        unlist(j);
}

/* ---- states; with warm_jobs.lock held ---- */

/* The only one to change a job's. */
static void set_warm_state(struct warm_job *j, enum work_state next)
{
    assert(held(&j->registry->warm.lock) && j->state == WORK_RUNNING && next > WORK_RUNNING);
    j->state = next;
    j->finished_wall_ns = wall_ns();
    j->expires_ns = deadline_after_ns(j->registry->config.result_ttl_s * NS_PER_S);
    waitlist_end(&j->end);
    pthread_cond_broadcast(&j->registry->warm.changed);
}

static bool is_wanted(const struct warm_job *j)
{
    return j->state == WORK_RUNNING && !j->registry->warm.stopping;
}

static void cancel(struct warm_job *j)
{
    for (unsigned i = 0; i < j->items_count; i++)
        if (j->items[i].state <= WORK_RUNNING)
            j->items[i].state = WORK_CANCELLED;
    set_warm_state(j, WORK_CANCELLED);
}

/* ---- the thread ---- */

/* What one item came to. */
struct outcome {
    enum status    status;
    bool           cached;
    double         compile_ms;
    struct problem why;
};

static enum status compile_spec(struct warm_job *j, const struct module_spec *spec, const char *holder, struct span arch, bool want_cubin,
                                struct arena *arena, struct outcome *out)
{
    const struct registry_config *config = &j->registry->config;
    struct compile_for            whom = {j->caller, false}; /* built-in kernels, too: nobody waits for these */
    struct compiled               c;
    enum status                   st;

    compiled_init(&c);
    st = compile_module(config->cache, config->compiler, whom, holder, spec, arch, want_cubin, arena, &c, &out->why);
    out->cached = c.cached;
    out->compile_ms = c.compile_ms;
    compiled_finish(&c);
    return st;
}

static enum status warm_builtin(struct warm_job *j, const struct warm_request *q, const struct device_facts *facts, struct arena *arena,
                                struct outcome *out)
{
    struct builtin_source_spec source;
    char                       arch[COMPILE_ARCH_BYTES];
    enum status                st = builtin_source_spec_make(q->kernel, q->dtype, facts, &source, &out->why);

    if (!st)
        st = module_spec_check(&source.spec, arena, &out->why);
    if (st)
        return st;
    builtin_arch(facts, arch);
    st = compile_spec(j, &source.spec, CODE_HOLDER_BUILTIN, span_of(arch), !facts->wants_ptx, arena, out);
    if (st == STATUS_COMPILE_TIMEOUT) /* it is no source of the caller's, and no fault of his */
        problem_set(&out->why, st, "the compilation was stopped after %d s", COMPILE_DEADLINE_MS / 1000);
    return st;
}

static enum status warm_source(struct warm_job *j, const struct warm_request *q, const struct pool_device *device,
                               const struct device_facts *facts, struct arena *arena, struct outcome *out)
{
    struct registry    *r = j->registry;
    const struct tenant t = {.owner = j->owner, .name = j->caller};
    char                arch[COMPILE_ARCH_BYTES];
    enum status         st = compile_architecture(facts, &j->modules[q->module], arch, &out->why);

    if (!st)
        st = budget_admits_caller(r, &t, q->device, &out->why);
    if (st)
        return st;
    st = compile_spec(j, &j->modules[q->module], code_holder(r->config.cache_shared, j->caller), span_of(arch), !facts->wants_ptx, arena,
                      out);
    budget_charge_caller(r, &t, device, q->device, st);
    return st;
}

static enum status warm_for(struct warm_job *j, const struct warm_request *q, struct arena *arena, struct outcome *out)
{
    struct pool_device  device;
    struct device_facts facts;

    if (!pool_device_at(j->registry->config.pool, q->device, &device))
        return problem_set(&out->why, STATUS_DEVICE_NOT_FOUND, "the device is gone");
    device_facts_of(&device.info, &facts);
    if (!facts.arch[0])
        return problem_set(&out->why, STATUS_DEVICE_ERROR, "the device has not said yet what code it takes");
    if (!facts.compiles_cuda)
        return problem_set(&out->why, STATUS_COMPILER_UNAVAILABLE, "nothing here compiles CUDA C++ for this device");
    return q->kernel ? warm_builtin(j, q, &facts, arena, out) : warm_source(j, q, &device, &facts, arena, out);
}

/* Waits a moment before it tries again; false: the job is not wanted any more. */
static bool nap(struct warm_job *j)
{
    struct warm_jobs *w = &j->registry->warm;
    struct timespec   until = timespec_of_ns(deadline_after_ms(CACHE_WARM_RETRY_MS));
    bool              wanted;

    pthread_mutex_lock(&w->lock);
    while (is_wanted(j) && pthread_cond_clockwait(&w->changed, &w->lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT) {
    }
    wanted = is_wanted(j);
    pthread_mutex_unlock(&w->lock);
    return wanted;
}

/* Requests that wait for their answer go first: without a turn it tries again. */
static void do_item(struct warm_job *j, const struct warm_request *q, struct outcome *out)
{
    struct arena arena;

    do {
        *out = (struct outcome){0};
        arena_init(&arena, REQUEST_ARENA_BYTES);
        out->status = warm_for(j, q, &arena, out);
        arena_finish(&arena);
    } while ((out->status == STATUS_TOO_MANY_IN_FLIGHT || out->status == STATUS_OVERLOADED) && nap(j));
}

/* With the lock held: the job's next item, begun; NULL: there is none, or it is not wanted. */
static struct warm_item *begin_item(struct warm_job *j, unsigned i)
{
    assert(held(&j->registry->warm.lock));
    if (!is_wanted(j) || i >= j->items_count)
        return NULL;
    j->items[i].state = WORK_RUNNING;
    return &j->items[i];
}

/* With the lock held. One of a cancelled job stays cancelled. Of a built-in kernel it is not told whether its code was there: others may have
 * compiled it. */
static void settle_item(struct warm_job *j, struct warm_item *item, const struct outcome *o)
{
    assert(held(&j->registry->warm.lock));
    if (item->state != WORK_RUNNING)
        return;
    item->state = o->status ? WORK_FAILED : WORK_SUCCEEDED;
    item->status = o->status;
    if (o->status)
        item->detail = strdup(o->why.detail);
    if (!o->status && !item->what.kernel) {
        item->cached = o->cached;
        item->compile_ms = o->compile_ms;
    }
}

/* With the lock held: all items are done. */
static void settle(struct warm_job *j)
{
    bool failed = false;

    for (unsigned i = 0; i < j->items_count; i++)
        failed = failed || j->items[i].state == WORK_FAILED;
    set_warm_state(j, failed ? WORK_FAILED : WORK_SUCCEEDED);
}

/* With the lock held: the thread's last step. */
static void leave(struct warm_job *j)
{
    struct warm_jobs *w = &j->registry->warm;

    if (j->state == WORK_RUNNING && w->stopping)
        cancel(j);
    else if (j->state == WORK_RUNNING)
        settle(j);
    arena_finish(&j->arena);
    j->working = false;
    if (j->forgotten)
        unlist(j);
    assert(w->threads > 0);
    w->threads--;
    pthread_cond_broadcast(&w->changed);
    unref(j);
}

static void *run_warm(void *argument)
{
    struct warm_job  *j = argument;
    struct warm_jobs *w = &j->registry->warm;
    struct warm_item *item;
    struct outcome    o;

    pthread_mutex_lock(&w->lock);
    for (unsigned i = 0; (item = begin_item(j, i)) != NULL; i++) {
        struct warm_request what = item->what;

        pthread_mutex_unlock(&w->lock);
        do_item(j, &what, &o);
        pthread_mutex_lock(&w->lock);
        settle_item(j, item, &o);
    }
    leave(j);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static bool start_thread(struct warm_job *j)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run_warm, j))
        return false;
    pthread_detach(thread);
    return true;
}

void warm_jobs_finish(struct warm_jobs *w)
{
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_broadcast(&w->changed);
    while (w->threads)
        pthread_cond_wait(&w->changed, &w->lock);
    while (!TAILQ_EMPTY(&w->all))
        unlist(TAILQ_FIRST(&w->all));
    pthread_mutex_unlock(&w->lock);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

/* ---- making ---- */

static bool copy_spec(struct warm_job *j, const struct warm_spec *spec)
{
    j->modules = arena_array(&j->arena, spec->modules_count, sizeof *j->modules);
    j->items = calloc(spec->items_count, sizeof *j->items);
    if (!j->modules || !j->items)
        return false;
    j->items_count = spec->items_count;
    for (unsigned i = 0; i < spec->items_count; i++)
        j->items[i].what = spec->items[i];
    for (unsigned i = 0; i < spec->modules_count; i++) {
        j->modules[i] = spec->modules[i];
        if (!module_spec_copy(&j->arena, &j->modules[i]))
            return false;
    }
    return true;
}

static struct warm_job *make(struct registry *r, const struct tenant *t, const struct warm_spec *spec)
{
    struct warm_job *j = calloc(1, sizeof *j);

    if (!j)
        return NULL;
    j->registry = r;
    j->owner = t->owner;
    j->created_wall_ns = wall_ns();
    j->state = WORK_RUNNING;
    j->end.lock = &r->warm.lock;
    arena_init(&j->arena, CACHE_WARM_BYTES_MAX);
    if (span_copy(span_of(t->name), j->caller, sizeof j->caller) && !registry_name(r, &j->entry, (struct span){0}, 'w', NULL) &&
        copy_spec(j, spec))
        return j;
    free_job(j);
    return NULL;
}

static enum status admit(struct warm_jobs *w, const void *owner, struct problem *why)
{
    unsigned             mine = count_jobs(w, owner, true);
    const struct portion all = {"cache_warms_total", CACHE_WARMS_MAX, w->threads, mine};

    assert(held(&w->lock));
    if (w->stopping)
        return problem_set(why, STATUS_DRAINING, "the service is shutting down");
    if (mine >= CACHE_WARMS_PER_CALLER_MAX)
        return problem_limit(why, STATUS_TOO_MANY_IN_FLIGHT, "cache_warms", CACHE_WARMS_PER_CALLER_MAX, mine, 1);
    return portion_check(&all, 1, why);
}

/* With the lock held. */
static enum status begin(struct warm_jobs *w, struct warm_job *j, struct problem *why)
{
    enum status st;

    expire(w);
    st = admit(w, j->owner, why);
    if (st)
        return st;
    j->refs = 2; /* the thread's and the caller's */
    j->working = true;
    w->threads++;
    if (!start_thread(j)) {
        w->threads--;
        log_warn("cache", "cannot start a thread to compile ahead");
        return problem_set(why, STATUS_OVERLOADED, "cannot start a thread to compile ahead");
    }
    if (count_jobs(w, j->owner, false) >= CACHE_WARMS_KEPT_MAX)
        drop_oldest(w, j->owner);
    list_last(w, j);
    return STATUS_OK;
}

static enum status check_service(struct registry *r, struct problem *why)
{
    bool draining;

    if (!r->config.cache || !code_cache_enabled(r->config.cache))
        return problem_set(why, STATUS_FEATURE_DISABLED, "the service keeps no code (--cache none), so nothing can be compiled ahead");
    if (!r->config.compiler || compile_service_version(r->config.compiler)[0] == '\0')
        return problem_set(why, STATUS_COMPILER_UNAVAILABLE, "No runtime compiler is installed; the operator can install NVRTC");
    pthread_mutex_lock(&r->lock);
    draining = r->draining;
    pthread_mutex_unlock(&r->lock);
    return draining ? problem_set(why, STATUS_DRAINING, "the service is draining and compiles nothing ahead") : STATUS_OK;
}

enum status warm_job_start(struct registry *r, const struct tenant *t, const struct warm_spec *spec, struct warm_job **out,
                           struct problem *why)
{
    struct warm_job *j;
    enum status      st = check_service(r, why);

    assert(spec->items_count && spec->items_count <= CACHE_WARM_ITEMS_MAX);
    if (st)
        return st;
    j = make(r, t, spec);
    if (!j)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory to compile ahead");
    pthread_mutex_lock(&r->warm.lock);
    st = begin(&r->warm, j, why);
    pthread_mutex_unlock(&r->warm.lock);
    if (st)
        free_job(j);
    else
        *out = j;
    return st;
}

/* ---- using ---- */

enum status warm_job_borrow(struct registry *r, const struct tenant *t, struct span id, struct warm_job **out, struct problem *why)
{
    struct warm_jobs *w = &r->warm;
    struct warm_job  *j;

    pthread_mutex_lock(&w->lock);
    expire(w);
    TAILQ_FOREACH(j, &w->all, in_jobs)
        if (!j->forgotten && j->owner == t->owner && span_is(id, j->entry.id))
            break;
    if (j)
        j->refs++;
    pthread_mutex_unlock(&w->lock);
    *out = j;
    return j ? STATUS_OK : problem_set(why, STATUS_NOT_FOUND, "nothing is compiled ahead under this id, or it has ended long ago");
}

void warm_job_return(struct warm_job *j)
{
    struct warm_jobs *w = &j->registry->warm;

    pthread_mutex_lock(&w->lock);
    unref(j);
    pthread_mutex_unlock(&w->lock);
}

unsigned warm_jobs_of(struct registry *r, const struct tenant *t)
{
    unsigned n;

    pthread_mutex_lock(&r->warm.lock);
    n = count_jobs(&r->warm, t->owner, true);
    pthread_mutex_unlock(&r->warm.lock);
    return n;
}

void warm_job_info_of(struct warm_job *j, struct warm_info *out)
{
    *out = (struct warm_info){.created_wall_ns = j->created_wall_ns, .items_count = j->items_count};
    memcpy(out->id, j->entry.id, sizeof out->id);
    pthread_mutex_lock(&j->registry->warm.lock);
    out->state = j->state;
    out->finished_wall_ns = j->finished_wall_ns;
    if (waitlist_over(&j->end))
        out->expires_wall_ns = j->finished_wall_ns + j->registry->config.result_ttl_s * NS_PER_S;
    for (unsigned i = 0; i < j->items_count; i++) {
        out->succeeded += j->items[i].state == WORK_SUCCEEDED;
        out->failed += j->items[i].state == WORK_FAILED;
    }
    pthread_mutex_unlock(&j->registry->warm.lock);
}

void warm_job_item_of(struct warm_job *j, unsigned i, struct warm_item *out)
{
    assert(i < j->items_count);
    pthread_mutex_lock(&j->registry->warm.lock);
    *out = j->items[i];
    pthread_mutex_unlock(&j->registry->warm.lock);
}

struct waitlist *warm_job_end(struct warm_job *j)
{
    return &j->end;
}

bool warm_job_cancel(struct warm_job *j)
{
    bool running;

    pthread_mutex_lock(&j->registry->warm.lock);
    running = j->state == WORK_RUNNING;
    if (running)
        cancel(j);
    pthread_mutex_unlock(&j->registry->warm.lock);
    return running;
}

void warm_job_forget(struct warm_job *j)
{
    pthread_mutex_lock(&j->registry->warm.lock);
    forget(j);
    pthread_mutex_unlock(&j->registry->warm.lock);
}
