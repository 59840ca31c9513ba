/* The life of a session: create, reset, delete, describe. */
#include "session/bounds.h"
#include "session/life/parts.h"

#include "base/threads/contended.h"
#include "base/threads/held.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum session_state session_state_shown(const struct session *s)
{
    const struct worker_session *c = s->worker_session;

    assert(held(&s->lock));
    if (s->state != SESSION_READY)
        return s->state;
    if (s->restoring)
        return SESSION_STARTING;
    return c && (c->sleep == SLEEP_ASLEEP || c->sleep == SLEEP_WAKING) ? SESSION_HIBERNATED : SESSION_READY;
}

const char *session_state_name(enum session_state s)
{
    static const char *const names[] = {[SESSION_STARTING] = "starting",
                                        [SESSION_READY] = "ready",
                                        [SESSION_FAULTED] = "faulted",
                                        [SESSION_CLOSING] = "closing",
                                        [SESSION_HIBERNATED] = "hibernated"};

    return names[s];
}

const char *session_source_name(enum session_source s)
{
    static const char *const names[SESSION_SOURCES] = {[SOURCE_NONE] = "none",
                                                       [SOURCE_SNAPSHOT] = "snapshot",
                                                       [SOURCE_SHUTDOWN] = "shutdown",
                                                       [SOURCE_PERIODIC] = "periodic",
                                                       [SOURCE_MOVE] = "move"};

    return names[s];
}

struct survey {
    unsigned                device;
    struct registry_survey *found;
};

static void survey_session(struct session *s, void *survey)
{
    const struct survey         *x = survey;
    const struct worker_session *c;

    if (x->device != DEVICES_MAX && s->device != x->device)
        return;
    pthread_mutex_lock(&s->lock);
    c = s->worker_session;
    x->found->states[session_state_shown(s)]++;
    x->found->busy += c && c->uses > 0;
    x->found->mapped += c && c->shares_count > 0;
    pthread_mutex_unlock(&s->lock);
}

struct registry_survey registry_survey(struct registry *r, unsigned device)
{
    struct registry_survey found = {0};

    registry_each(r, survey_session, &(struct survey){device, &found});
    return found;
}

static enum status check_spec(const struct session_spec *spec, struct problem *why)
{
    if (spec->idle_timeout_s > IDLE_TIMEOUT_S_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/idle_timeout_s", "range", "must be at most %d", IDLE_TIMEOUT_S_MAX);
    if (spec->lease_s > LEASE_S_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/lease_s", "range", "must be at most %d", LEASE_S_MAX);
    if (spec->max_lifetime_s > LIFETIME_S_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/max_lifetime_s", "range", "must be at most %d", LIFETIME_S_MAX);
    if (spec->memory_limit == 0)
        return problem_field(why, STATUS_INVALID_FIELD, "/memory_limit", "range", "must be at least 1 byte");
    if (!(spec->memory_fraction >= 0 && spec->memory_fraction <= 1))
        return problem_field(why, STATUS_INVALID_FIELD, "/memory_fraction", "range", "must be above 0 and at most 1");
    if (spec->labels_count > LABELS_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/labels", "range", "too many labels, at most %d are possible", LABELS_MAX);
    return STATUS_OK;
}

static uint64_t pool_bytes_of(const struct session_spec *spec)
{
    return spec->keeps_bounded ? spec->pool_bytes_max : MEMORY_LIMIT_NONE;
}

/* Of what was asked for, but for the device: join_session() looks at that. */
static void digest_spec(const struct session_spec *spec, unsigned char out[SHA256_BYTES])
{
    struct sha256 h;

    digest_init(&h);
    digest_add_u64(&h, spec->memory_limit);
    digest_add(&h, &spec->memory_fraction, sizeof spec->memory_fraction);
    digest_add_u64(&h, pool_bytes_of(spec));
    digest_add_u64(&h, spec->idle_timeout_s);
    digest_add_u64(&h, spec->max_lifetime_s);
    digest_add_u64(&h, spec->lease_s);
    digest_add_u64(&h, spec->memcheck);
    digest_add_field(&h, spec->fault_domain);
    digest_add_u64(&h, spec->fault_domain.bytes && spec->server_required);
    for (unsigned i = 0; i < spec->labels_count; i++) {
        digest_add_field(&h, span_of(spec->labels[i].key));
        digest_add_field(&h, span_of(spec->labels[i].value));
    }
    digest_end(&h, out);
}

/* Under an id that a service of this node chose. */
static bool keep_name(struct session *s, struct span id)
{
    char prefix[sizeof s->registry->in_ids + 2];

    snprintf(prefix, sizeof prefix, "s_%s", s->registry->in_ids);
    return server_id_valid(id, prefix) && span_copy(id, s->entry.id, sizeof s->entry.id);
}

static enum status name_session(struct session *s, struct span id, bool keeps_id, struct problem *why)
{
    if (keeps_id && keep_name(s, id))
        return STATUS_OK;
    if (s->implicit)
        return span_copy(id, s->entry.id, sizeof s->entry.id) ? STATUS_OK : STATUS_INTERNAL;
    s->named = id.bytes > 0;
    return registry_name(s->registry, &s->entry, id, 's', why);
}

/* Where its fault domain is, if there is one, else as wished. */
static enum status choose_device(struct session *s, const struct tenant *t, const struct session_spec *spec, struct problem *why)
{
    struct pool *pool = s->registry->config.pool;
    int          device = spec->fault_domain.bytes ? domain_device(s->registry, t->owner, spec->fault_domain) : -1;

    if (device >= 0 && !pool_device_fits(pool, (unsigned)device, spec->device))
        return problem_field(why, STATUS_SPEC_CONFLICT, "/fault_domain", "value", "the fault domain '%.*s' is on another device",
                             (int)spec->fault_domain.bytes, spec->fault_domain.data);
    if (device < 0)
        device = pool_device_choose(pool, spec->device);
    if (device < 0)
        return pool_device_missing(pool, spec->device, why);
    s->device = (unsigned)device;
    return STATUS_OK;
}

static enum status choose_domain(struct session *s, const struct session_spec *spec, struct problem *why)
{
    enum pool_server_offer offer;
    struct problem         missing;

    if (!spec->fault_domain.data)
        return STATUS_OK;
    if (!client_id_valid(spec->fault_domain))
        return problem_field(
            why, STATUS_INVALID_FIELD, "/fault_domain", "format",
            "a fault domain's name must have 1 to %d characters of a-z, 0-9, '_' and '-', and start with a letter or digit",
            CLIENT_ID_CHARS_MAX);
    span_copy(spec->fault_domain, s->domain_name, sizeof s->domain_name);
    offer = pool_server_offer(s->registry->config.pool, s->device, &missing);
    if (offer == SERVER_MISSING && spec->server_required) {
        *why = missing;
        return missing.status;
    }
    s->shared_server = offer == SERVER_OFFERED;
    s->server_required = offer != SERVER_NEEDLESS && spec->server_required;
    return STATUS_OK;
}

/* The limit in bytes: as given, or that part of the device's memory, at least one so that it stays a limit. */
static enum status limit_of(const struct session *s, double fraction, uint64_t bytes, uint64_t *out, struct problem *why)
{
    struct pool_device *device;
    uint64_t            total = 0, part;

    *out = bytes;
    if (!(fraction > 0))
        return STATUS_OK;
    device = calloc(1, sizeof *device); /* on the heap: large, with all attributes */
    if (device && pool_device_at(s->registry->config.pool, s->device, device))
        total = device->info.total_bytes;
    free(device);
    if (!total)
        return problem_field(why, STATUS_OVERLOADED, "/memory_fraction", "value", "the device has not told yet how much memory it has");
    part = (uint64_t)((long double)fraction * (long double)total);
    *out = part ? part : 1;
    return STATUS_OK;
}

/* What a session gets of a time that it asks for. The service's own sessions have what they need. */
static uint64_t time_in_force(const struct session *s, uint64_t asked_s, uint64_t most_s)
{
    return most_s && asked_s > most_s && !s->implicit ? most_s : asked_s;
}

static uint64_t idle_in_force(const struct session *s, uint64_t asked_s)
{
    return time_in_force(s, asked_s ? asked_s : IDLE_TIMEOUT_S_DEFAULT, s->registry->config.idle_timeout_s_max);
}

static uint64_t lifetime_in_force(const struct session *s, uint64_t asked_s)
{
    return time_in_force(s, asked_s ? asked_s : LIFETIME_S_DEFAULT, s->registry->config.lifetime_s_max);
}

static void fill_session(struct session *s, const struct tenant *t, const struct session_spec *spec)
{
    enum recovery_step step;

    span_copy(span_first(span_of(t->name ? t->name : ""), sizeof s->tenant_name - 1), s->tenant_name, sizeof s->tenant_name);
    s->tenant_memory_max = t->memory_max_bytes;
    s->memory_fraction = spec->memory_fraction;
    s->pool_bytes_max = pool_bytes_of(spec);
    s->memcheck = spec->memcheck;
    s->idle_timeout_s = idle_in_force(s, spec->idle_timeout_s);
    s->max_lifetime_s = lifetime_in_force(s, spec->max_lifetime_s);
    s->lease_s = spec->lease_s;
    s->labels_count = spec->labels_count;
    if (spec->labels_count)
        memcpy(s->labels, spec->labels, spec->labels_count * sizeof *spec->labels);
    s->state = SESSION_STARTING;
    s->created_wall_ns = wall_ns();
    s->generation =
        spec->restored.from ? s->created_wall_ns / NS_PER_MS : 1; /* other than any that it had: addresses and entity tags are new */
    s->created_ns = now_ns();
    s->restored = spec->restored;
    s->restored.wall_ns = s->created_wall_ns;
    memcpy(s->move.id, spec->restored.move, sizeof s->move.id);
    s->used_ns = s->renewed_ns = s->created_ns;
    s->device_state = DEVICE_HEALTHY;
    s->device_steps = pool_device_recovery(s->registry->config.pool, s->device, &step);
    digest_spec(spec, s->spec_digest);
}

static enum status make_session(struct registry *r, const struct tenant *t, const struct session_spec *spec, struct session **out,
                                struct problem *why)
{
    struct session *s;
    enum status     st = check_spec(spec, why);

    if (st)
        return st;
    s = calloc(1, sizeof *s);
    if (!s)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a session");
    s->registry = r;
    s->implicit = spec->implicit;
    s->restoring = spec->restoring;
    if (spec->restoring)
        event_ring_go_on(&s->events);
    st = choose_device(s, t, spec, why);
    if (!st)
        st = name_session(s, spec->id, spec->keeps_id, why);
    if (!st)
        st = choose_domain(s, spec, why);
    if (!st)
        st = limit_of(s, spec->memory_fraction, spec->memory_limit, &s->memory_limit, why);
    if (st) {
        free(s);
        return st;
    }
    contended_init(&s->lock);
    pthread_cond_init(&s->changed, NULL);
    s->events.watchers.lock = &s->lock;
    s->sleepers.lock = &s->lock;
    TAILQ_INIT(&s->batches.queued.jobs);
    TAILQ_INIT(&s->batches.finished.jobs);
    fill_session(s, t, spec);
    *out = s;
    return STATUS_OK;
}

static void discard_session(struct session *s)
{
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static enum status start_memcheck(struct worker *w, struct problem *why)
{
    enum status st = worker_memcheck(w, &(struct msg_memcheck){0}, NULL, deadline_after_ms(WORKER_CALL_DEADLINE_MS), why);

    return st == STATUS_INVALID_FIELD ? problem_field(why, st, "/memcheck", "value", "this device does not support memcheck") : st;
}

/* Until no former worker session is left. */
static void await_former(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->closing)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static enum status bound_kept(struct worker *w, uint64_t bytes_max, struct problem *why)
{
    struct msg_mem_keep_reply none;

    return worker_mem_keep(w, &(struct msg_mem_keep){bytes_max}, &none, deadline_after_ms(WORKER_CALL_DEADLINE_MS), why);
}

/* What a session wants of a fresh worker. */
static enum status prepare_worker(struct session *s, struct worker *w, struct problem *why)
{
    enum status st = s->memcheck ? start_memcheck(w, why) : STATUS_OK;
    uint64_t    keep;

    pthread_mutex_lock(&s->lock);
    keep = s->pool_bytes_max;
    pthread_mutex_unlock(&s->lock);
    return st || keep == MEMORY_LIMIT_NONE ? st : bound_kept(w, keep, why);
}

static enum status take_from_pool(struct session *s, struct worker **w, struct problem *why)
{
    struct pool *pool = s->registry->config.pool;
    const void  *server = domain_server(s);

    return server ? pool_domain_take(pool, s->device, server, w, why) : pool_take(pool, s->device, w, why);
}

/* The place that there was for one more may be gone, or what the session's last worker still holds is missing: then its end is waited for. Idle
 * sessions hibernate if what is missing is the device's memory. */
static enum status take_worker(struct session *s, struct worker **w, struct problem *why)
{
    enum status st;
    bool        leaving;

    pthread_mutex_lock(&s->lock);
    leaving = s->closing > 0; /* before the first try: it may be gone right behind it */
    pthread_mutex_unlock(&s->lock);
    st = take_from_pool(s, w, why);
    if (st == STATUS_NO_WORKER && leaving) {
        await_former(s);
        st = take_from_pool(s, w, why);
    }
    while (st == STATUS_NO_WORKER && hibernation_make_room_to_start(s))
        st = take_from_pool(s, w, why);
    return st;
}

/* A worker session for a session that is STARTING, on that worker, which it takes over; NULL: on one that the pool gives. `round`: that of its
 * fault domain before the worker was taken. */
static enum status start_worker_session(struct session *s, struct worker *w, uint64_t round, struct worker_session **out,
                                        struct problem *why)
{
    struct pool        *pool = s->registry->config.pool;
    struct pool_device *device = calloc(1, sizeof *device); /* on the heap: large, with all attributes */
    enum status         st;

    if (!device) {
        pool_give_back(pool, w);
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a session");
    }
    st = w ? STATUS_OK : take_worker(s, &w, why);
    if (st)
        goto out;
    if (!pool_device_at(pool, s->device, device))
        st = problem_set(why, STATUS_DEVICE_NOT_FOUND, "the device has disappeared");
    else if ((st = prepare_worker(s, w, why)) == STATUS_OK) {
        st = worker_session_create(s, w, device, out);
        if (st)
            problem_set(why, st, "not enough memory for a session");
    }
    if (st)
        pool_give_back(pool, w);
    else {
        pthread_mutex_lock(&s->lock);
        (*out)->round = round;
        span_copy(span_of(device->id), s->device_id, sizeof s->device_id);
        pthread_mutex_unlock(&s->lock);
    }
out:
    free(device);
    return st;
}

void session_set_state(struct session *s, enum session_state next)
{
    static const bool may[SESSION_STATES][SESSION_STATES] = {
        [SESSION_STARTING] = {[SESSION_READY] = true, [SESSION_FAULTED] = true},
        [SESSION_READY] = {[SESSION_STARTING] = true, [SESSION_FAULTED] = true, [SESSION_CLOSING] = true},
        [SESSION_FAULTED] = {[SESSION_STARTING] = true, [SESSION_CLOSING] = true},
    };

    assert(held(&s->lock));
    assert(may[s->state][next]);
    s->state = next;
    events_publish_session(s);
    pthread_cond_broadcast(&s->changed);
}

/* From STARTING to READY, or to FAULTED with the reason. */
static enum status set_started(struct session *s, struct worker_session *c, enum status st, const struct problem *why)
{
    pthread_mutex_lock(&s->lock);
    s->worker_session = c;
    s->fault = (struct problem){0};
    if (st && why)
        s->fault = *why;
    s->fault.status = st;
    session_set_state(s, st ? SESSION_FAULTED : SESSION_READY);
    pthread_mutex_unlock(&s->lock);
    domain_check(s);
    return st;
}

/* Another request makes it right now: waits for the outcome. */
static enum status join_session(struct session *s, const struct session *wanted, struct span device, struct problem *why)
{
    enum status st = STATUS_OK;
    bool        waited = false;

    if (s->restoring)
        return restoring_problem(s, why);
    if (wanted->restoring)
        return problem_set(why, STATUS_SPEC_CONFLICT, "a session with this id exists; delete it first, or restore under another id");
    if (memcmp(s->spec_digest, wanted->spec_digest, SHA256_BYTES) != 0 || !pool_device_fits(s->registry->config.pool, s->device, device))
        return problem_set(why, STATUS_SPEC_CONFLICT, "a session with this id exists with other properties");
    pthread_mutex_lock(&s->lock);
    while (s->state == SESSION_STARTING) {
        waited = true;
        pthread_cond_wait(&s->changed, &s->lock);
    }
    if (waited && s->state == SESSION_FAULTED && !s->worker_session) {
        *why = s->fault;
        st = s->fault.status;
    } else if (s->state == SESSION_CLOSING)
        st = problem_set(why, STATUS_SESSION_BUSY, "the session with this id is closing");
    pthread_mutex_unlock(&s->lock);
    return st;
}

enum status session_create(struct registry *r, const struct tenant *t, const struct session_spec *spec, struct session **borrowed,
                           bool *created, struct problem *why)
{
    struct session        *fresh = NULL, *s = NULL;
    struct worker_session *c = NULL;
    enum status            st = make_session(r, t, spec, &fresh, why);

    if (st)
        return st;
    st = registry_enlist(r, t, fresh, &s, created, why);
    if (st) {
        discard_session(fresh);
        return st;
    }
    if (*created) {
        st = start_worker_session(s, NULL, domain_settle(s), &c, why);
        if (!st && !spec->restoring)
            registry_tell_made(s, true);
        set_started(s, c, st, why);
        if (st)
            session_end(s, SESSION_NOT_STARTED);
    } else {
        st = join_session(s, fresh, spec->device, why);
        discard_session(fresh);
    }
    if (st)
        session_unpin(s, false);
    else
        *borrowed = s;
    return st;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t expires_wall(const struct session *s)
{
    bool     used = s->pins > s->observers + s->listed;
    uint64_t now = now_ns();
    uint64_t end = lesser(s->created_ns + s->max_lifetime_s * NS_PER_S, (used ? now : s->used_ns) + s->idle_timeout_s * NS_PER_S);

    assert(held(&s->registry->lock));
    if (s->lease_s)
        end = lesser(end, (s->pins > s->listed ? now : s->renewed_ns) + s->lease_s * NS_PER_S);
    return end > now ? wall_ns() + (end - now) : wall_ns();
}

void session_info_of(struct session *s, struct session_info *out)
{
    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&s->lock);
    session_shown_id(s, out->id);
    memcpy(out->device, s->device_id, sizeof out->device);
    out->state = session_state_shown(s);
    out->generation = s->generation;
    out->created_wall_ns = s->created_wall_ns;
    out->max_lifetime_s = s->max_lifetime_s;
    out->memory_limit = s->memory_limit;
    out->memory_fraction = s->memory_fraction;
    out->pool_bytes_max = s->pool_bytes_max;
    out->memcheck = s->memcheck;
    memcpy(out->labels, s->labels, sizeof out->labels);
    out->labels_count = s->labels_count;
    out->fault = s->fault;
    out->device_time_us = (uint64_t)fmin(s->device_time_us, (double)JSON_INTEGER_MAX);
    out->memory_bytes = s->memory_bytes;
    out->launches_finished = atomic_load(&s->launches_finished);
    out->restored = s->restored;
    out->kept_wall_ns = s->kept_wall_ns;
    if (s->pending || session_moving_locked(s))
        memcpy(out->move, s->move.id, sizeof out->move);
    if (s->worker_session) {
        out->buffers = s->worker_session->buffers.count;
        out->modules = s->worker_session->modules.count;
        out->launches = s->worker_session->launches.count;
    }
    pthread_mutex_lock(&s->registry->lock);
    domain_info_of(s, out);
    out->idle_timeout_s = s->idle_timeout_s;
    out->lease_s = s->lease_s;
    out->expires_wall_ns = expires_wall(s);
    pthread_mutex_unlock(&s->registry->lock);
    pthread_mutex_unlock(&s->lock);
}

static void patch_locked(struct session *s, const struct session_patch *p, uint64_t limit)
{
    assert(held(&s->lock));
    s->changes++;
    if (p->has_memory_limit) {
        s->memory_fraction = p->memory_fraction;
        s->memory_limit = limit;
        quota_look(s);
    }
    if (p->has_pool_bytes_max)
        s->pool_bytes_max = p->pool_bytes_max;
    if (p->has_labels) {
        memset(s->labels, 0, sizeof s->labels);
        if (p->labels_count)
            memcpy(s->labels, p->labels, p->labels_count * sizeof *p->labels);
        s->labels_count = p->labels_count;
    }
    pthread_mutex_lock(&s->registry->lock);
    if (p->has_idle_timeout)
        s->idle_timeout_s = idle_in_force(s, p->idle_timeout_s);
    if (p->has_lease)
        s->lease_s = p->lease_s;
    pthread_mutex_unlock(&s->registry->lock);
}

enum status session_patch(struct session *s, const struct session_patch *p, struct problem *why)
{
    uint64_t               limit;
    struct worker_session *c = NULL; /* whose worker is to be told, in use; NULL: none need be */
    enum status            st;

    if (p->has_idle_timeout && (p->idle_timeout_s == 0 || p->idle_timeout_s > IDLE_TIMEOUT_S_MAX))
        return problem_field(why, STATUS_INVALID_FIELD, "/idle_timeout_s", "range", "must be from 1 to %d", IDLE_TIMEOUT_S_MAX);
    if (p->has_lease && p->lease_s > LEASE_S_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/lease_s", "range", "must be from 0 (no lease) to %d", LEASE_S_MAX);
    if (p->has_labels && p->labels_count > LABELS_MAX)
        return problem_field(why, STATUS_INVALID_FIELD, "/labels", "range", "too many labels, at most %d are possible", LABELS_MAX);
    st = limit_of(s, p->memory_fraction, p->memory_limit, &limit, why);
    if (!st && p->has_pool_bytes_max)
        st = worker_session_enter(s, &c, why);
    if (st)
        return st;
    pthread_mutex_lock(&s->lock);
    if (session_moving_locked(s))
        st = moving_problem(why);
    else if (c && s->worker_session != c) /* the next one may have been told the former bound */
        st = problem_set(why, STATUS_SESSION_BUSY, "the session was reset or deleted during the request");
    else
        patch_locked(s, p, limit);
    pthread_mutex_unlock(&s->lock);
    if (!c)
        return st;
    return worker_session_leave_with(c, st ? st : bound_kept(c->worker, p->pool_bytes_max, why), why);
}

enum status session_usable(struct session *s, struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&s->lock);
    st = session_usable_locked(s, why);
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* Removes the worker session from its session; the caller must detach it. NULL: none. With session.lock held. */
static struct worker_session *take_worker_session(struct session *s)
{
    struct worker_session *c = s->worker_session;

    assert(held(&s->lock));
    s->worker_session = NULL;
    s->closing += c != NULL;
    return c;
}

static bool take_ready(struct session *s, struct worker **w)
{
    struct pool *pool = s->registry->config.pool;
    const void  *server = domain_server(s);

    return server ? pool_domain_take_ready(pool, server, w) : pool_take_ready(pool, s->device, w);
}

/* Whether the session goes on while `ending` former workers end, which a driver may take long for: with `*w`, or, if that is NULL, with one that is
 * still to be taken. Beside more than one only while others lack nothing, so that resets in a row do not pile up dying workers; in no fault domain,
 * whose server counts them. */
static bool goes_on_beside(struct session *s, unsigned ending, bool small, struct worker **w)
{
    struct pool *pool = s->registry->config.pool;

    if (ending == 1)
        return take_ready(s, w) || (small && pool_has_room(pool));
    return small && ending <= RESET_BESIDE_MAX && !domain_server(s) && pool_has_plenty(pool, s->device);
}

/* The session goes on with a worker that stands ready at once, or with one that is started beside the end of the old one. NULL: a worker is still to
 * be taken. */
static struct worker *replace_worker(struct session *s, struct worker_session *old, uint64_t *round, const char *reason)
{
    struct worker *w = NULL;
    unsigned       ending;
    bool           small;

    *round = domain_settle(s);
    if (!old)
        return NULL;
    pthread_mutex_lock(&s->lock);
    small = old->quota_bytes >> 20 <= RESET_BESIDE_MIB_MAX;
    ending = s->closing;
    pthread_mutex_unlock(&s->lock);
    worker_session_detach(old, reason);
    *round = domain_settle(s); /* its end may have made the domain fall */
    if (!goes_on_beside(s, ending, small, &w))
        await_former(s);
    return w;
}

/* `faulted_only`: one that is at work stays. */
static enum status renew_worker_session(struct session *s, bool faulted_only, struct problem *why)
{
    struct worker_session *old = NULL, *c = NULL;
    struct worker         *w;
    uint64_t               round;
    bool                   renews = false;
    enum status            st;

    pthread_mutex_lock(&s->lock);
    if (s->state != SESSION_CLOSING && session_moving_locked(s))
        st = moving_problem(why);
    else if (s->state == SESSION_STARTING || s->state == SESSION_CLOSING || (s->state == SESSION_READY && (s->snapshots || faulted_only)))
        st = session_changeable_locked(s, why);
    else if (!(st = budget_admits(s, why))) {
        renews = true;
        old = take_worker_session(s);
        s->fault = (struct problem){0};
        s->generation++;
        s->changes++;
        session_set_state(s, SESSION_STARTING);
    }
    pthread_mutex_unlock(&s->lock);
    if (!renews)
        return st;
    w = replace_worker(s, old, &round, "the session was reset");
    st = start_worker_session(s, w, round, &c, why);
    return set_started(s, c, st, why);
}

uint64_t session_generation(struct session *s)
{
    return s->generation;
}

enum status session_reset(struct session *s, struct problem *why)
{
    return renew_worker_session(s, false, why);
}

enum status session_revive(struct session *s, struct problem *why)
{
    return renew_worker_session(s, true, why);
}

void session_end(struct session *s, enum session_end how)
{
    if (registry_unlist(s, how))
        session_close(s);
}

/* The session is unlisted, so nobody can use it any more. With session.lock held. */
static struct worker_session *close_begin(struct session *s)
{
    assert(held(&s->lock));
    s->ending = true;
    session_set_state(s, SESSION_CLOSING);
    return take_worker_session(s);
}

/* After close_begin(), no lock held. The end of its worker session does the rest. */
static void close_end(struct session *s, struct worker_session *c)
{
    if (c)
        worker_session_detach(c, ended_text(s->end.how));
    else
        session_close_finish(s);
}

void session_close(struct session *s)
{
    struct worker_session *c;
    bool                   shares;

    pthread_mutex_lock(&s->lock);
    while (s->state == SESSION_STARTING)
        pthread_cond_wait(&s->changed, &s->lock);
    c = close_begin(s);
    shares = c && c->shares_count;
    pthread_mutex_unlock(&s->lock);
    close_end(s, c);
    pthread_mutex_lock(&s->lock);
    while (s->ending)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    if (shares) /* a client that waits for the end may rely on it that its mappings are gone */
        reaper_flush(&s->registry->reaper);
}

void session_close_finish(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->ending && s->closing == 0) {
        events_end(s);
        registry_uncount(s);
        s->ending = false;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
}

void session_close_later(struct session *s, enum session_end how, uint64_t now)
{
    struct worker_session *c = NULL;
    bool                   mine;

    pthread_mutex_lock(&s->lock);
    mine = s->state != SESSION_STARTING && (how == SESSION_GOES_ON ? registry_unlist_expired(s, now) : registry_unlist(s, how));
    if (mine)
        c = close_begin(s);
    pthread_mutex_unlock(&s->lock);
    if (mine)
        close_end(s, c);
}

enum status session_delete(struct session *s, struct problem *why)
{
    if (!registry_unlist(s, SESSION_DELETED))
        return ended_problem(s, why);
    session_close(s);
    return STATUS_OK;
}
