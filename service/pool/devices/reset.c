/* Resets of devices, and the steps that bring a device with errors back.
 *
 * After a failed start the ladder (refill.c) first replaces the device monitor and the warm workers, then ends all processes on the device,
 * then has the vendor's tool reset it, where that is allowed, each time with a longer pause; what still fails is quarantined. An error that
 * asks for a reset (xid.def) leaves only the last step, once nothing of a session's is left on the device. Operators can ask for either
 * reset at any time. The refiller does all of it; the registry's janitor ends the sessions' workers, as pool_device_verdict() says. */
#include "base/log/log.h"
#include "base/metrics.h"
#include "base/threads/held.h"
#include "pool/bounds.h"
#include "pool/devices/devices.h"

static const struct {
    const char  *name;
    enum counter counter;
} steps[] = {
    [RECOVERY_WORKER] = {"worker", COUNTER_RECOVERIES_WORKER},
    [RECOVERY_SOFT_RESET] = {"soft_reset", COUNTER_RECOVERIES_SOFT_RESET},
    [RECOVERY_HARD_RESET] = {"hard_reset", COUNTER_RECOVERIES_HARD_RESET},
};

const char *recovery_step_name(enum recovery_step step)
{
    assert(step > RECOVERY_NONE && step < COUNT(steps));
    return steps[step].name;
}

/* ---- phases, under the pool's lock ---- */

static void set_phase(struct device_slot *d, enum reset_phase next, uint64_t ms)
{
    static const bool may[RESET_PHASES][RESET_PHASES] = {
        [RESET_NONE] = {[RESET_DRAINING] = 1, [RESET_ENDING] = 1},
        [RESET_DRAINING] = {[RESET_NONE] = 1, [RESET_ENDING] = 1},
        [RESET_ENDING] = {[RESET_NONE] = 1, [RESET_TOOL] = 1, [RESET_STARTING] = 1},
        [RESET_TOOL] = {[RESET_NONE] = 1, [RESET_STARTING] = 1},
        [RESET_STARTING] = {[RESET_NONE] = 1},
    };

    assert(may[d->reset.phase][next]);
    d->reset.phase = next;
    d->reset.deadline_ns = ms ? deadline_after_ms(ms) : DEADLINE_NEVER;
    atomic_store(&d->resetting, next != RESET_NONE);
}

/* why->status OK: the device serves again. */
static void reset_over(struct device_slot *d, const struct problem *why)
{
    d->reset.outcome = *why;
    d->reset.ended++;
    set_phase(d, RESET_NONE, 0);
    if (why->status) {
        log_error("pool", "the reset of device %s failed: %s", d->public.id, why->detail);
        return;
    }
    d->reset.tries = 0;
    d->reset.next_try_ns = 0;
    log_info("pool", "device %s was reset", d->public.id);
}

static void tell_step(struct device_slot *d, enum recovery_step step)
{
    d->step = step;
    d->steps++;
    counter_add(steps[step].counter, 1);
    log_warn("pool", "recovery of device %s: %s", d->public.id, steps[step].name);
}

static bool has_hard_reset(const struct device_slot *d)
{
    return strcmp(d->public.info.vendor, "NVIDIA") == 0 && d->public.info.uuid[0];
}

static bool may_reset_hard(const struct pool *p, const struct device_slot *d)
{
    return p->config.allow_device_settings && p->config.nvidia_smi && has_hard_reset(d);
}

static bool any_lives(const struct worker *list, unsigned device)
{
    for (; list; list = list->next)
        if (worker_device(list) == device && worker_state_of(list) != WORKER_DEAD)
            return true;
    return false;
}

/* ---- steps of recovery ---- */

/* What never came up has nothing on it that a reset could end; and no session ends because of a library that only tells about the device. */
enum recovery_step recovery_next(const struct pool *p, const struct device_slot *d, bool computed)
{
    assert(d->failures > 0);
    if (d->failures == 1)
        return RECOVERY_WORKER;
    if (!d->came_up || computed || d->failures > RECOVERY_STEPS_MAX || d->public.state == DEVICE_QUARANTINED)
        return RECOVERY_NONE;
    if (d->failures == 2)
        return RECOVERY_SOFT_RESET;
    return may_reset_hard(p, d) ? RECOVERY_HARD_RESET : RECOVERY_NONE;
}

void recovery_begin(struct device_slot *d, enum recovery_step step)
{
    tell_step(d, step);
    if (step == RECOVERY_WORKER || d->reset.phase != RESET_NONE)
        return;
    d->reset.hard = step == RECOVERY_HARD_RESET;
    set_phase(d, RESET_ENDING, RESET_END_MS);
}

/* Sessions may finish on a device that only needs a reset; on others the janitor ends them. */
static bool recover_from_verdict(struct pool *p, struct device_slot *d)
{
    if (!d->verdict || atomic_load(&d->lost) || d->reset.tries >= RECOVERY_STEPS_MAX || deadline_left_ns(d->reset.next_try_ns) > 0 ||
        !may_reset_hard(p, d) || any_lives(p->used, (unsigned)(d - p->devices)))
        return false;
    d->reset.next_try_ns = deadline_after_ms((uint64_t)RECOVERY_HARD_PAUSE_MS << d->reset.tries);
    d->reset.tries++;
    recovery_begin(d, RECOVERY_HARD_RESET);
    return true;
}

/* ---- carrying a reset on; the refiller, under the pool's lock ---- */

static void begin_start(struct device_slot *d)
{
    set_phase(d, RESET_STARTING, RESET_START_MS);
    if (!d->failures) /* else the pause of the step counts */
        d->next_try_ns = 0;
}

/* Nothing of ours is on the device. False: the process that counts devices still runs, and may use it. */
static bool go_on_without_processes(struct pool *p, struct device_slot *d)
{
    struct problem why;

    if (d->reset.hard && counter_runs(&p->counter))
        return false;
    if (!d->reset.hard)
        begin_start(d);
    else if (reset_tool_start(&d->reset.tool, p->config.nvidia_smi, d->public.info.uuid, &why))
        reset_over(d, &why);
    else
        set_phase(d, RESET_TOOL, RESET_TOOL_MS);
    return true;
}

static bool end_processes(struct pool *p, struct device_slot *d)
{
    unsigned       i = (unsigned)(d - p->devices);
    struct problem why;

    if (domains_leave_device(p, i))
        return true;
    if (d->warm || d->device_monitor) {
        device_discard_all(p, d);
        return true;
    }
    if (!any_lives(p->used, i) && !any_lives(p->discarded_workers, i) && !domains_on_device(p, i))
        return go_on_without_processes(p, d);
    if (deadline_left_ns(d->reset.deadline_ns) > 0)
        return false;
    problem_set(&why, STATUS_DEVICE_ERROR, "processes on device %s do not end", d->public.id);
    reset_over(d, &why);
    return true;
}

static bool look_at_tool(struct device_slot *d)
{
    struct problem why;
    enum status    st = reset_tool_look(&d->reset.tool, &why);

    if (st == STATUS_PENDING && deadline_left_ns(d->reset.deadline_ns) > 0)
        return false;
    if (st == STATUS_PENDING) {
        reset_tool_drop(&d->reset.tool);
        st = problem_set(&why, STATUS_DEVICE_ERROR, "the reset tool did not end within %d s", RESET_TOOL_MS / 1000);
    }
    if (st)
        reset_over(d, &why);
    else
        begin_start(d);
    return true;
}

static bool look_at_start(struct device_slot *d)
{
    struct problem why;

    if (deadline_left_ns(d->reset.deadline_ns) > 0)
        return false;
    problem_set(&why, STATUS_DEVICE_ERROR, "device %s did not come up in time", d->public.id);
    reset_over(d, &why);
    return true;
}

bool device_reset_care(struct pool *p, struct device_slot *d)
{
    assert(held(&p->lock));
    switch (d->reset.phase) {
    case RESET_NONE:
        return recover_from_verdict(p, d);
    case RESET_ENDING:
        return end_processes(p, d);
    case RESET_TOOL:
        return look_at_tool(d);
    case RESET_STARTING:
        return look_at_start(d);
    case RESET_DRAINING:
    case RESET_PHASES:
        break;
    }
    return false;
}

bool device_may_start_monitor(const struct device_slot *d)
{
    return d->reset.phase != RESET_ENDING && d->reset.phase != RESET_TOOL;
}

/* Its management library was started anew: what it reports now happened after the reset, or lasts. */
void device_reset_came_up(struct device_slot *d, const struct device_info *info)
{
    const struct problem none = {0};

    if (d->reset.phase != RESET_STARTING)
        return;
    d->verdict = DEVICE_ACTION_NONE;
    d->last_problem = none;
    device_judge_hardware(d, &info->health);
    reset_over(d, d->verdict ? &d->last_problem : &none);
}

void device_reset_failed(struct device_slot *d, const struct problem *why)
{
    if (d->reset.phase == RESET_STARTING)
        reset_over(d, why);
}

enum status device_lost_problem(const struct device_slot *d, struct problem *why)
{
    return problem_set(why, STATUS_DEVICE_LOST, "device %s is lost: the last count of devices did not find it", d->public.id);
}

void device_reset_lost(struct device_slot *d)
{
    struct problem why;

    assert(d->reset.phase != RESET_TOOL); /* no count runs beside it */
    device_lost_problem(d, &why);
    if (d->reset.phase > RESET_DRAINING)
        reset_over(d, &why);
}

uint64_t device_reset_next_look(const struct device_slot *d)
{
    if (d->reset.phase == RESET_TOOL)
        return deadline_after_ms(RESET_TOOL_LOOK_MS);
    if (d->reset.phase == RESET_NONE)
        return d->verdict && deadline_left_ns(d->reset.next_try_ns) > 0 ? d->reset.next_try_ns : DEADLINE_NEVER;
    return d->reset.deadline_ns;
}

void device_reset_stop(struct device_slot *d)
{
    if (d->reset.phase == RESET_TOOL)
        reset_tool_drop(&d->reset.tool);
}

/* ---- what operators ask for ---- */

static enum status check_reset(const struct pool *p, const struct device_slot *d, bool hard, struct problem *why)
{
    if (p->stopping)
        return problem_set(why, STATUS_DRAINING, "the service is shutting down");
    if (atomic_load(&d->lost))
        return device_lost_problem(d, why);
    if (hard && !p->config.allow_device_settings)
        return problem_set(why, STATUS_FEATURE_DISABLED, "hard resets are off: the service was started without --allow-device-settings");
    if (hard && !(p->config.nvidia_smi && has_hard_reset(d)))
        return problem_field(why, STATUS_INVALID_FIELD, "/kind", "value", "device %s has no hard reset", d->public.id);
    if (d->reset.phase != RESET_NONE)
        return problem_set(why, STATUS_DEVICE_BUSY, "device %s is being reset", d->public.id);
    return STATUS_OK;
}

static void announce(struct pool *p)
{
    p->changes++;
    pthread_cond_broadcast(&p->changed);
}

enum status pool_reset_begin(struct pool *p, unsigned i, bool hard, struct problem *why)
{
    struct device_slot *d = &p->devices[i];
    enum status         st;

    assert(i < p->devices_count);
    pthread_mutex_lock(&p->lock);
    st = check_reset(p, d, hard, why);
    if (!st) {
        d->reset.hard = hard;
        set_phase(d, RESET_DRAINING, 0);
        announce(p);
    }
    pthread_mutex_unlock(&p->lock);
    return st;
}

void pool_reset_cancel(struct pool *p, unsigned i)
{
    assert(i < p->devices_count);
    pthread_mutex_lock(&p->lock);
    set_phase(&p->devices[i], RESET_NONE, 0);
    announce(p);
    pthread_mutex_unlock(&p->lock);
}

uint64_t pool_reset_go_on(struct pool *p, unsigned i)
{
    struct device_slot *d = &p->devices[i];
    uint64_t            ticket;

    assert(i < p->devices_count);
    pthread_mutex_lock(&p->lock);
    ticket = d->reset.ended;
    tell_step(d, d->reset.hard ? RECOVERY_HARD_RESET : RECOVERY_SOFT_RESET);
    set_phase(d, RESET_ENDING, RESET_END_MS);
    if (atomic_load(&d->lost)) /* meanwhile */
        device_reset_lost(d);
    announce(p);
    pthread_mutex_unlock(&p->lock);
    return ticket;
}

enum status pool_reset_outcome(struct pool *p, unsigned i, uint64_t ticket, struct problem *why)
{
    struct device_slot *d = &p->devices[i];
    enum status         st = STATUS_PENDING;

    assert(i < p->devices_count);
    pthread_mutex_lock(&p->lock);
    if (d->reset.ended != ticket) {
        st = d->reset.outcome.status;
        if (why)
            *why = d->reset.outcome;
    }
    pthread_mutex_unlock(&p->lock);
    return st;
}
