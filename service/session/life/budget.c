/* Limits how often a caller's kernels may fault, exceed their deadlines or kill their worker, per device: each time costs the device a
 * new process, and its other callers the time this takes. A compilation that exceeds its deadline or kills its compiler counts on the
 * device it was for: it occupied a turn that others waited for. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log/log.h"
#include "base/metrics.h"
#include "base/rate.h"
#include "base/threads/held.h"
#include "session/life/internal.h"

/* One caller on one device. Removed once all its faults are forgotten. */
struct fault_budget {
    struct fault_budget *next;
    const void          *owner;
    unsigned             device;
    struct rate_bucket   bucket;
    bool                 spent;                                      /* new work is refused, as last reported */
    char tenant_name[CALLER_NAME_BYTES], device_id[DEVICE_ID_BYTES]; /* for the log: of the session that used up the budget */
};

static uint64_t interval_ns(const struct registry *r)
{
    uint64_t ns = r->config.crash_window_s * NS_PER_S / r->config.crash_budget;

    return ns ? ns : 1;
}

static bool is_forgotten(const struct fault_budget *b, uint64_t now)
{
    return atomic_load(&b->bucket.full_ns) <= now;
}

/* ---- with registry.lock held ---- */

static bool is_spent(const struct registry *r, const struct fault_budget *b, uint64_t now)
{
    uint64_t wait_ns;

    return !rate_has(&b->bucket, interval_ns(r), r->config.crash_budget, now, &wait_ns);
}

static void spend_budget(struct fault_budget *b, const char *tenant_name, const char *device_id)
{
    b->spent = true;
    span_copy(span_of(tenant_name), b->tenant_name, sizeof b->tenant_name);
    span_copy(span_of(device_id), b->device_id, sizeof b->device_id);
    counter_add(COUNTER_BUDGETS_SPENT, 1);
    log_warn("session", "caller %s has used up its crash budget on device %s: its new work there is rejected for a while", b->tenant_name,
             b->device_id);
}

static void settle_budget(const struct registry *r, struct fault_budget *b, uint64_t now)
{
    if (!b->spent || is_spent(r, b, now))
        return;
    b->spent = false;
    log_info("session", "new work of caller %s on device %s is accepted again", b->tenant_name, b->device_id);
}

/* Those that are forgotten go on the way. */
static struct fault_budget *find_budget(struct registry *r, const void *owner, unsigned device, uint64_t now)
{
    struct fault_budget **at = &r->budgets, *found = NULL, *b;

    while ((b = *at)) {
        settle_budget(r, b, now);
        if (is_forgotten(b, now)) {
            *at = b->next;
            free(b);
            continue;
        }
        if (b->owner == owner && b->device == device)
            found = b;
        at = &b->next;
    }
    atomic_store(&r->any_budget, r->budgets != NULL);
    return found;
}

/* NULL: no memory. The fault is then not counted. */
static struct fault_budget *find_or_make(struct registry *r, const void *owner, unsigned device, uint64_t now)
{
    struct fault_budget *b = find_budget(r, owner, device, now);

    if (b || !(b = calloc(1, sizeof *b)))
        return b;
    b->owner = owner;
    b->device = device;
    b->next = r->budgets;
    r->budgets = b;
    atomic_store(&r->any_budget, true);
    return b;
}

enum status budget_check(struct registry *r, const void *owner, unsigned device, struct problem *why)
{
    uint32_t             most = r->config.crash_budget;
    uint64_t             now = now_ns(), wait_ns = 0;
    struct fault_budget *b = most ? find_budget(r, owner, device, now) : NULL;

    assert(held(&r->lock));
    if (!b || rate_has(&b->bucket, interval_ns(r), most, now, &wait_ns))
        return STATUS_OK;
    counter_add(COUNTER_BUDGET_REFUSALS, 1);
    problem_limit(why, STATUS_RATE_LIMITED, "faults", most, most, 1);
    if (!why)
        return STATUS_RATE_LIMITED;
    snprintf(why->detail, sizeof why->detail,
             "this caller has used up its crash budget on this device: kernel faults and timeouts, and stopped or crashed compilations, "
             "at most %u within %llu s",
             most, (unsigned long long)r->config.crash_window_s);
    why->retry_after_ms = (uint32_t)(wait_ns / NS_PER_MS + 1);
    return STATUS_RATE_LIMITED;
}

/* ---- without registry.lock ---- */

static bool is_its_doing(enum status st)
{
    return st == STATUS_KERNEL_FAULT || st == STATUS_EXECUTION_TIMEOUT || st == STATUS_WORKER_LOST || st == STATUS_COMPILE_TIMEOUT ||
           st == STATUS_COMPILER_CRASHED;
}

/* With registry.lock held. */
static void charge(struct registry *r, const struct tenant *t, unsigned device, const char *device_id)
{
    uint64_t             now = now_ns(), wait_ns;
    struct fault_budget *b = find_or_make(r, t->owner, device, now);

    if (b && rate_take(&b->bucket, interval_ns(r), r->config.crash_budget, now, &wait_ns) && !b->spent && is_spent(r, b, now))
        spend_budget(b, t->name, device_id);
}

void budget_charge(struct session *s, enum status fault)
{
    struct registry *r = s->registry;

    if (!r->config.crash_budget || !is_its_doing(fault))
        return;
    pthread_mutex_lock(&r->lock);
    if (s->account)
        charge(r, &(struct tenant){.owner = s->account->owner, .name = s->tenant_name}, s->device, s->device_id);
    pthread_mutex_unlock(&r->lock);
}

void budget_charge_caller(struct registry *r, const struct tenant *t, const struct pool_device *device, unsigned number, enum status fault)
{
    if (!r->config.crash_budget || !is_its_doing(fault))
        return;
    pthread_mutex_lock(&r->lock);
    charge(r, t, number, device->id);
    pthread_mutex_unlock(&r->lock);
}

void budgets_look(struct registry *r)
{
    if (!atomic_load_explicit(&r->any_budget, memory_order_relaxed))
        return;
    pthread_mutex_lock(&r->lock);
    find_budget(r, NULL, 0, now_ns());
    pthread_mutex_unlock(&r->lock);
}

bool budget_is_spent(struct session *s)
{
    struct registry     *r = s->registry;
    struct fault_budget *b = NULL;
    uint64_t             now = now_ns();
    bool                 spent;

    if (!atomic_load_explicit(&r->any_budget, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&r->lock);
    if (s->account)
        b = find_budget(r, s->account->owner, s->device, now);
    spent = b && is_spent(r, b, now);
    pthread_mutex_unlock(&r->lock);
    return spent;
}

unsigned registry_budgets_spent(struct registry *r, unsigned device)
{
    uint64_t now = now_ns();
    unsigned n = 0;

    if (!r->config.crash_budget)
        return 0;
    pthread_mutex_lock(&r->lock);
    for (const struct fault_budget *b = r->budgets; b; b = b->next)
        n += b->device == device && is_spent(r, b, now);
    pthread_mutex_unlock(&r->lock);
    return n;
}

enum status budget_admits(struct session *s, struct problem *why)
{
    struct registry *r = s->registry;
    enum status      st = STATUS_OK;

    if (!atomic_load_explicit(&r->any_budget, memory_order_relaxed))
        return STATUS_OK;
    pthread_mutex_lock(&r->lock);
    if (s->account)
        st = budget_check(r, s->account->owner, s->device, why);
    pthread_mutex_unlock(&r->lock);
    return st;
}

enum status budget_admits_caller(struct registry *r, const struct tenant *t, unsigned device, struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&r->lock);
    st = budget_check(r, t->owner, device, why);
    pthread_mutex_unlock(&r->lock);
    return st;
}

enum status session_admits_work(struct session *s, struct problem *why)
{
    enum status st = pool_device_accepts(s->registry->config.pool, s->device, why);

    return st ? st : budget_admits(s, why);
}

unsigned registry_faults_of(struct registry *r, const struct tenant *t)
{
    uint64_t now = now_ns(), most = 0;

    if (!r->config.crash_budget)
        return 0;
    pthread_mutex_lock(&r->lock);
    for (const struct fault_budget *b = r->budgets; b; b = b->next) {
        uint64_t full_ns = atomic_load(&b->bucket.full_ns);
        uint64_t faults = full_ns > now ? (full_ns - now + interval_ns(r) - 1) / interval_ns(r) : 0;

        if (b->owner == t->owner && faults > most)
            most = faults;
    }
    pthread_mutex_unlock(&r->lock);
    return (unsigned)most;
}

void budgets_finish(struct registry *r)
{
    struct fault_budget *b;

    while ((b = r->budgets)) {
        r->budgets = b->next;
        free(b);
    }
}
