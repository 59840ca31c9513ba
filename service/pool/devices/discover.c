/* Which devices there are: as counted at the start, and again on request.
 *
 * A device is known by its UUID, or by its index where the driver tells none. Its place in the pool, and with it its id, stays its own for
 * the service's life, so that sessions, metrics and callers mean the same device by it. One that a count does not find is lost: nothing is
 * started on it, and what runs on it ends (pool_device_verdict). One that is found again goes on as after a reset. Devices whose backend
 * could not count stay as they are. The refiller does all of it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log/log.h"
#include "base/threads/held.h"
#include "pool/bounds.h"
#include "pool/devices/devices.h"

/* ---- one device, under the pool's lock ---- */

static void device_know_uuid(struct device_slot *d, const char *uuid)
{
    if (!uuid[0])
        return;
    snprintf(d->uuid, sizeof d->uuid, "%s", uuid);
    snprintf(d->public.info.uuid, sizeof d->public.info.uuid, "%s", uuid);
}

static void device_add(struct pool *p, unsigned rank, const struct device_count *row, unsigned index)
{
    struct device_slot *d = &p->devices[p->devices_count];
    unsigned            number = 0;

    assert(held(&p->lock));
    if (p->devices_count == DEVICES_MAX) {
        log_error("pool", "backend %s: a further device is not used: %d are known, lost ones included; a restart forgets these",
                  row->backend, DEVICES_MAX);
        return;
    }
    for (unsigned i = 0; i < p->devices_count; i++)
        number += strcmp(p->devices[i].public.backend, row->backend) == 0;
    pthread_mutex_init(&d->ask_lock, NULL);
    pthread_mutex_init(&d->settings_lock, NULL);
    d->index = index;
    d->rank = rank;
    device_know_uuid(d, row->uuids[index]);
    d->public.state = DEVICE_SUSPECT; /* until its device monitor is up */
    snprintf(d->public.backend, sizeof d->public.backend, "%.15s", row->backend);
    snprintf(d->public.id, sizeof d->public.id, "%.15s:%u", row->backend, number);
    p->devices_count++; /* last: others read without the lock */
    log_info("pool", "device %s was found: %s", d->public.id, d->uuid[0] ? d->uuid : "no UUID");
}

/* What was known of it live holds no longer. A verdict stays: a device that is away was not reset by that. */
static void device_lose(struct pool *p, struct device_slot *d)
{
    log_error("pool", "device %s is lost: a count of devices did not find it; its sessions fault", d->public.id);
    atomic_store(&d->lost, true);
    device_discard_all(p, d);
    device_reset_lost(d);
    domains_leave_device(p, (unsigned)(d - p->devices));
    device_forget_trouble(d);
    atomic_store(&d->hot, false);
    d->overheated = false;
    d->public.info.free_bytes = 0;
    d->public.info.health.watched = 0;
    for (unsigned i = 0; i < DEVICE_SENSORS; i++)
        d->public.info.sensors[i] = (struct device_reading){.state = SENSOR_DEVICE_LOST};
}

static void device_find(struct device_slot *d, const struct device_count *row, unsigned index)
{
    if (d->index != index)
        log_info("pool", "device %s has the index %u now, it had %u", d->public.id, index, d->index);
    d->index = index;
    device_know_uuid(d, row->uuids[index]);
    if (!atomic_load(&d->lost))
        return;
    log_info("pool", "device %s was found again", d->public.id);
    d->next_try_ns = 0;
    atomic_store(&d->lost, false);
}

/* ---- a backend's devices, under the pool's lock ---- */

/* What a row was found to be about. */
struct matches {
    bool known[DEVICES_MAX]; /* by the pool's number: the row has it */
    bool taken[DEVICES_MAX]; /* by index in the row: it is a known one */
};

static bool matches_uuid(const struct device_slot *d, const char *uuid, unsigned index)
{
    (void)index;
    return uuid[0] && strcmp(d->uuid, uuid) == 0;
}

static bool matches_index(const struct device_slot *d, const char *uuid, unsigned index)
{
    return d->index == index && !(uuid[0] && d->uuid[0]);
}

static void match(struct pool *p, const struct device_count *row, struct matches *m,
                  bool (*fits)(const struct device_slot *, const char *, unsigned))
{
    for (unsigned k = 0; k < row->count; k++)
        for (unsigned i = 0; i < p->devices_count && !m->taken[k]; i++) {
            struct device_slot *d = &p->devices[i];

            if (m->known[i] || strcmp(d->public.backend, row->backend) != 0 || !fits(d, row->uuids[k], k))
                continue;
            m->known[i] = m->taken[k] = true;
            device_find(d, row, k);
        }
}

static bool any_known(const struct pool *p, const char *backend)
{
    for (unsigned i = 0; i < p->devices_count; i++)
        if (strcmp(p->devices[i].public.backend, backend) == 0)
            return true;
    return false;
}

static void row_use(struct pool *p, unsigned rank, const struct device_count *row)
{
    struct matches m = {0};
    unsigned       before = p->devices_count;

    if (row->unknown && any_known(p, row->backend)) {
        log_warn("pool", "backend %s: its devices could not be counted, and stay as they were: %s", row->backend, row->why);
        return;
    }
    log_info("pool", "backend %s: %u device%s%s%s", row->backend, row->count, row->count == 1 ? "" : "s", row->why[0] ? ", " : "",
             row->why);
    match(p, row, &m, matches_uuid);
    match(p, row, &m, matches_index);
    for (unsigned i = 0; i < before; i++)
        if (!m.known[i] && !atomic_load(&p->devices[i].lost) && strcmp(p->devices[i].public.backend, row->backend) == 0)
            device_lose(p, &p->devices[i]);
    for (unsigned k = 0; k < row->count; k++)
        if (!m.taken[k])
            device_add(p, rank, row, k);
}

/* The order of rows is the order of preference. A backend that is named twice counts once. */
static void rows_use(struct pool *p)
{
    unsigned count = counter_rows(&p->counter);

    assert(held(&p->lock));
    for (unsigned i = 0; i < count; i++) {
        unsigned first = 0;

        while (strcmp(p->counter.rows[first].backend, p->counter.rows[i].backend) != 0)
            first++;
        if (first == i)
            row_use(p, i, &p->counter.rows[i]);
    }
}

/* ---- at the start ---- */

enum status devices_discover(struct pool *p, struct problem *why)
{
    struct problem incomplete = {0};
    const char    *reason;
    enum status    st = counter_start(&p->counter, &p->config, p->visible, why);

    if (st)
        return st;
    while ((st = counter_look(&p->counter, &incomplete)) == STATUS_PENDING)
        counter_wait(&p->counter);
    if (st)
        log_warn("pool", "%s: devices may be missing", incomplete.detail);
    pthread_mutex_lock(&p->lock);
    rows_use(p);
    pthread_mutex_unlock(&p->lock);
    if (p->devices_count)
        return STATUS_OK;
    reason = counter_rows(&p->counter) ? p->counter.rows[0].why : incomplete.detail;
    return problem_set(why, STATUS_DEVICE_NOT_FOUND, "no backend has a device%s%s", reason[0] ? ": " : "", reason);
}

/* ---- again ---- */

/* NULL, and no memory: false. */
static bool visible_argument(const char *visible, char **out)
{
    *out = NULL;
    return !visible || !visible[0] || asprintf(out, "--visible-devices=%s", visible) >= 0;
}

bool devices_set_visible(struct pool *p, const char *visible)
{
    return visible_argument(visible, &p->visible);
}

enum status pool_count_again(struct pool *p, const char *visible)
{
    char *wanted;

    if (!visible_argument(visible, &wanted))
        return STATUS_OUT_OF_MEMORY;
    pthread_mutex_lock(&p->lock);
    free(p->visible_wanted);
    p->visible_wanted = wanted;
    p->count_wanted = true;
    pool_note_change(p);
    pthread_mutex_unlock(&p->lock);
    return STATUS_OK;
}

/* The tool resets only what no process uses, and a device under it may not be visible. */
static bool any_tool(const struct pool *p)
{
    for (unsigned i = 0; i < p->devices_count; i++)
        if (p->devices[i].reset.phase == RESET_TOOL)
            return true;
    return false;
}

/* Requests that come while it runs make one further count. */
static bool count_begin(struct pool *p)
{
    struct problem why = {0};

    if (!p->count_wanted || any_tool(p))
        return false;
    p->count_wanted = false;
    free(p->visible_counted);
    p->visible_counted = p->visible_wanted;
    p->visible_wanted = NULL;
    if (counter_start(&p->counter, &p->config, p->visible_counted, &why))
        log_error("pool", "devices were not counted again: %s", why.detail);
    return true;
}

bool devices_count_care(struct pool *p)
{
    struct problem why = {0};
    enum status    st;

    assert(held(&p->lock));
    if (!counter_runs(&p->counter))
        return count_begin(p);
    st = counter_look(&p->counter, &why);
    if (st == STATUS_PENDING)
        return false;
    if (st) {
        log_error("pool", "devices were not counted again, and stay as they were: %s", why.detail);
        return true;
    }
    free(p->visible); /* workers follow the choice that was counted */
    p->visible = p->visible_counted;
    p->visible_counted = NULL;
    rows_use(p);
    pool_note_change(p);
    return true;
}

uint64_t devices_count_next_look(const struct pool *p)
{
    return counter_runs(&p->counter) ? deadline_after_ms(COUNT_LOOK_MS) : DEADLINE_NEVER;
}
