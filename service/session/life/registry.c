/* All sessions of this process: owners, counts, pins. */
#include "session/life/parts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/portion.h"
#include "base/random.h"
#include "base/threads/held.h"

static_assert(3 + NODE_NAME_CHARS_MAX + RANDOM_ID_CHARS < ID_BYTES && NODE_NAME_CHARS_MAX + 1 + CLIENT_ID_CHARS_MAX < ID_BYTES,
              "ids have room for the node: s_NODE_RANDOM and NODE.NAME");

enum status registry_name(const struct registry *r, struct entry *e, struct span id, char kind, struct problem *why)
{
    char        prefix[sizeof r->in_ids + 2] = {kind, '_'};
    enum status st;

    memcpy(prefix + 2, r->in_ids, sizeof r->in_ids);
    st = entry_name(e, id, prefix, why);
    if (!st && !id.bytes)
        memcpy(e->id + strlen(prefix), r->tag, strlen(r->tag));
    return st;
}

enum status session_name_object(const struct session *s, struct entry *e, struct span id, const char *prefix, struct problem *why)
{
    if (s->restoring && server_id_valid(id, prefix) && span_copy(id, e->id, sizeof e->id))
        return STATUS_OK;
    return entry_name(e, id, prefix, why);
}

void session_shown_id(const struct session *s, char out[ID_BYTES])
{
    const char *node = s->registry->node;

    if (node[0] && s->named)
        snprintf(out, ID_BYTES, "%.*s.%.*s", NODE_NAME_CHARS_MAX, node, CLIENT_ID_CHARS_MAX, s->entry.id);
    else
        memcpy(out, s->entry.id, ID_BYTES);
}

/* Prefers writers, which a steady flow of readers would keep waiting. */
static void lookup_lock_init(pthread_rwlock_t *lock)
{
    pthread_rwlockattr_t a;

    pthread_rwlockattr_init(&a);
    pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(lock, &a);
    pthread_rwlockattr_destroy(&a);
}

/* Must enclose each change of the set of accounts or sessions. */
static void change_begin(struct registry *r)
{
    pthread_mutex_lock(&r->lock);
    pthread_rwlock_wrlock(&r->lookup_lock);
}

static void change_end(struct registry *r)
{
    pthread_rwlock_unlock(&r->lookup_lock);
    pthread_mutex_unlock(&r->lock);
}

static void registry_free(struct registry *r)
{
    pthread_cond_destroy(&r->closing_changed);
    pthread_cond_destroy(&r->runner_left);
    pthread_cond_destroy(&r->janitor_kick);
    pthread_rwlock_destroy(&r->lookup_lock);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

enum status registry_create(struct registry **out, const struct registry_config *config)
{
    struct registry *r = calloc(1, sizeof *r);

    if (!r)
        return STATUS_OUT_OF_MEMORY;
    r->config = *config;
    if (!span_copy(span_of(config->node ? config->node : ""), r->node, sizeof r->node)) {
        free(r);
        return STATUS_INVALID_FIELD;
    }
    if (r->node[0])
        snprintf(r->in_ids, sizeof r->in_ids, "%s_", r->node);
    span_copy(span_first(span_of(config->instance ? config->instance : ""), NODE_TAG_CHARS), r->tag, sizeof r->tag);
    r->started_wall_ns = wall_ns();
    pthread_mutex_init(&r->lock, NULL);
    lookup_lock_init(&r->lookup_lock);
    pthread_cond_init(&r->janitor_kick, NULL);
    pthread_cond_init(&r->runner_left, NULL);
    pthread_cond_init(&r->closing_changed, NULL);
    warm_jobs_init(&r->warm);
    if (!reaper_start(&r->submitter))
        goto no_submitter;
    if (!reaper_start(&r->reaper))
        goto no_reaper;
    if (!janitor_start(r))
        goto no_janitor;
    *out = r;
    return STATUS_OK;
no_janitor:
    reaper_stop(&r->reaper);
no_reaper:
    reaper_stop(&r->submitter);
no_submitter:
    warm_jobs_finish(&r->warm);
    registry_free(r);
    return STATUS_OUT_OF_MEMORY;
}

/* Any listed session, pinned; NULL: none. */
static struct session *any_session(struct registry *r)
{
    const struct account *a;
    struct session       *s = NULL;

    pthread_mutex_lock(&r->lock);
    LIST_FOREACH(a, &r->accounts, listed)
        if (a->sessions.count && !s)
            s = (struct session *)a->sessions.items[0];
    if (s)
        s->pins++;
    pthread_mutex_unlock(&r->lock);
    return s;
}

static void await_closings(struct registry *r)
{
    pthread_mutex_lock(&r->lock);
    while (r->closing_count)
        pthread_cond_wait(&r->closing_changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

void registry_destroy(struct registry *r)
{
    struct session *s;

    if (!r)
        return;
    registry_drain(r, true);
    janitor_stop(r);
    while ((s = any_session(r)) != NULL) {
        session_end(s, SESSION_SHUT_DOWN);
        session_unpin(s, false);
    }
    batch_runners_await(r);
    warm_jobs_finish(&r->warm);
    await_closings(r);
    reaper_stop(&r->submitter);
    reaper_stop(&r->reaper);
    budgets_finish(r);
    ended_finish(r);
    moved_finish(r);
    uses_finish(r);
    registry_free(r);
}

void registry_drain(struct registry *r, bool on)
{
    pthread_mutex_lock(&r->lock);
    r->draining = on;
    pthread_mutex_unlock(&r->lock);
}

void registry_makes_way(struct registry *r, bool on)
{
    atomic_store(&r->makes_way, on);
}

struct account *account_find(const struct registry *r, const void *owner)
{
    struct account *a;

    LIST_FOREACH(a, &r->accounts, listed)
        if (a->owner == owner)
            break;
    return a;
}

static struct account *account_make(struct registry *r, const void *owner)
{
    struct account *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    a->owner = owner;
    LIST_INSERT_HEAD(&r->accounts, a, listed);
    return a;
}

static void account_drop_if_empty(struct account *a)
{
    if (a->count || a->payers)
        return;
    LIST_REMOVE(a, listed);
    table_finish(&a->sessions);
    free(a);
}

void registry_runner_leave(struct registry *r)
{
    pthread_mutex_lock(&r->lock);
    r->runners--;
    pthread_cond_signal(&r->runner_left);
    pthread_mutex_unlock(&r->lock);
}

bool registry_runner_start(struct registry *r, void *(*run)(void *), void *argument)
{
    pthread_t thread;

    pthread_mutex_lock(&r->lock);
    r->runners++;
    pthread_mutex_unlock(&r->lock);
    if (pthread_create(&thread, NULL, run, argument)) {
        registry_runner_leave(r);
        return false;
    }
    pthread_detach(thread);
    return true;
}

void account_leave(struct registry *r, struct account *a)
{
    change_begin(r);
    a->payers--;
    account_drop_if_empty(a);
    change_end(r);
}

unsigned registry_count(struct registry *r)
{
    unsigned n;

    pthread_mutex_lock(&r->lock);
    n = r->count;
    pthread_mutex_unlock(&r->lock);
    return n;
}

struct registry_use registry_use_of(struct registry *r, const struct tenant *t)
{
    struct registry_use   use = {0};
    const struct account *a;

    pthread_mutex_lock(&r->lock);
    a = account_find(r, t->owner);
    if (a)
        use = (struct registry_use){.sessions = a->count,
                                    .own = a->count - a->implicit,
                                    .memory_bytes = a->memory_bytes,
                                    .shares = a->shares_count,
                                    .shared_bytes = a->shared_bytes,
                                    .hibernated_bytes = a->hibernated_bytes,
                                    .batch_bytes = a->batch_bytes};
    use.domains = domains_of(r, t->owner);
    use.runs = runs_taken(r, t->owner);
    pthread_mutex_unlock(&r->lock);
    return use;
}

unsigned registry_domains(struct registry *r)
{
    unsigned n;

    pthread_mutex_lock(&r->lock);
    n = r->domains_count;
    pthread_mutex_unlock(&r->lock);
    return n;
}

static enum status too_many_sessions(const struct tenant *t, unsigned count, struct problem *why)
{
    problem_limit(why, STATUS_QUOTA_EXCEEDED, "sessions", t->sessions_max, count, 1);
    snprintf(
        why->detail, sizeof why->detail,
        "%u of %u sessions are in use: delete one that is not needed (GET /v1/sessions lists them). One with a lease_s ends soon after "
        "its client",
        count, t->sessions_max);
    return STATUS_QUOTA_EXCEEDED;
}

static enum status admit(struct registry *r, const struct tenant *t, const struct account *a, const struct session *fresh,
                         struct problem *why)
{
    const struct portion all = {"sessions_total", r->config.sessions_max, r->count, a ? a->count : 0};
    unsigned             count = a && !fresh->implicit ? a->count - a->implicit : 0;
    enum status          st;

    if (r->draining)
        return problem_set(why, STATUS_DRAINING, "the service is draining and accepts no new sessions");
    if (count && count >= t->sessions_max)
        return too_many_sessions(t, count, why);
    if (t->sessions_max == 0)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "sessions", 0, 0, 1);
    st = portion_check(&all, 1, why);
    if (st)
        return st;
    return budget_check(r, t->owner, fresh->device, why);
}

/* Above those of an earlier session of that name, so that requests for that one are not done in this one. */
static void begin_generation(const struct registry *r, const struct tenant *t, struct session *fresh)
{
    uint64_t before = fresh->named ? ended_generation(r, t->owner, span_of(fresh->entry.id)) : 0;

    if (fresh->generation <= before)
        fresh->generation = before + 1;
    fresh->restored.generation = fresh->generation;
}

static enum status enlist_locked(struct registry *r, const struct tenant *t, struct session *fresh, struct session **out, bool *created,
                                 struct problem *why)
{
    struct account *a = account_find(r, t->owner);
    struct entry   *known = a ? table_get(&a->sessions, span_of(fresh->entry.id)) : NULL;
    enum status     st = STATUS_OK;

    assert(held(&r->lock));
    *created = !known;
    if (known) {
        *out = (struct session *)known;
        (*out)->pins++;
        return STATUS_OK;
    }
    st = fresh->move.id[0] ? STATUS_OK : moved_check(r, t->owner, span_of(fresh->entry.id), why);
    if (!st)
        st = admit(r, t, a, fresh, why);
    if (!st && !(fresh->use = use_of(r, t)))
        st = problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a session");
    if (!st && !a && !(a = account_make(r, t->owner)))
        st = problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a session");
    if (st)
        return st;
    st = domain_join(r, t->owner, fresh, why);
    if (st) {
        account_drop_if_empty(a);
        return st;
    }
    st = table_put(&a->sessions, &fresh->entry);
    if (st) {
        domain_leave(fresh);
        account_drop_if_empty(a);
        return problem_set(why, st, "not enough memory for a session");
    }
    begin_generation(r, t, fresh);
    fresh->account = fresh->payer = a;
    a->payers++;
    fresh->listed = true;
    fresh->pins = 2; /* the registry's and the maker's */
    a->count++;
    a->implicit += fresh->implicit;
    r->count++;
    pthread_cond_signal(&r->janitor_kick);
    *out = fresh;
    return STATUS_OK;
}

enum status registry_enlist(struct registry *r, const struct tenant *t, struct session *fresh, struct session **out, bool *created,
                            struct problem *why)
{
    enum status st;

    change_begin(r);
    st = enlist_locked(r, t, fresh, out, created, why);
    change_end(r);
    return st;
}

bool registry_has(const struct registry *r, const void *owner, struct span id)
{
    const struct account *a = account_find(r, owner);

    assert(held(&r->lock));
    return a && table_get(&a->sessions, id);
}

static uint64_t limit_of_end(const struct session *s, enum session_end how)
{
    if (how == SESSION_IDLE)
        return s->idle_timeout_s;
    if (how == SESSION_LEASE_ENDED)
        return s->lease_s;
    return how == SESSION_AGED ? s->max_lifetime_s : 0;
}

/* With registry.lock and lookup_lock held. The caller has another pin. */
static void unlist_session(struct session *s, enum session_end how)
{
    assert(held(&s->registry->lock));
    assert(how != SESSION_GOES_ON);
    table_remove(&s->account->sessions, &s->entry);
    s->listed = false;
    s->end = (struct session_ending){
        .how = how, .limit_s = limit_of_end(s, how), .wall_ns = wall_ns(), .generation = s->named ? s->generation : 0};
    if (!s->implicit && how != SESSION_NOT_STARTED)
        ended_remember(s->registry, s->account->owner, s->entry.id, &s->end);
    if (how == SESSION_MOVED)
        moved_remember(s->registry, s->moved);
    s->pins--;
    assert(s->pins > 0);
}

void registry_tell_made(const struct session *s, bool anew)
{
    const struct registry_config *c = &s->registry->config;

    if (c->made && s->named)
        c->made(c->context, s->tenant_name, s->entry.id, anew);
}

/* The service's end is none: whatever is kept of the session stays for the next start. One that never was whole leaves what it was made from. */
static void tell_end(const struct session *s, enum session_end how)
{
    const struct registry_config *c = &s->registry->config;

    if (c->ended && !s->implicit && how != SESSION_SHUT_DOWN && how != SESSION_NOT_STARTED)
        c->ended(c->context, s->tenant_name, s->entry.id, how == SESSION_IDLE || how == SESSION_LEASE_ENDED || how == SESSION_AGED);
}

bool registry_unlist(struct session *s, enum session_end how)
{
    bool mine;

    change_begin(s->registry);
    mine = s->listed;
    if (mine)
        unlist_session(s, how);
    change_end(s->registry);
    if (mine)
        tell_end(s, how);
    return mine;
}

static bool is_over(uint64_t now, uint64_t since_ns, uint64_t limit_s)
{
    return now > since_ns && now - since_ns >= limit_s * NS_PER_S;
}

/* How the session ends at `now`. The caller has a pin. A client that follows its events is there, but does not use it. */
static enum session_end end_at(const struct session *s, uint64_t now)
{
    const unsigned own = 2; /* the registry's and the caller's */

    if (is_over(now, s->created_ns, s->max_lifetime_s))
        return SESSION_AGED;
    if (s->lease_s && s->pins == own && is_over(now, s->renewed_ns, s->lease_s))
        return SESSION_LEASE_ENDED;
    if (s->pins == own + s->observers && is_over(now, s->used_ns, s->idle_timeout_s))
        return SESSION_IDLE;
    return SESSION_GOES_ON;
}

bool registry_unlist_expired(struct session *s, uint64_t now)
{
    enum session_end how;

    change_begin(s->registry);
    how = s->listed ? end_at(s, now) : SESSION_GOES_ON;
    if (how != SESSION_GOES_ON)
        unlist_session(s, how);
    change_end(s->registry);
    if (how != SESSION_GOES_ON)
        tell_end(s, how);
    return how != SESSION_GOES_ON;
}

static void pin_all(struct registry *r, struct session **all, unsigned *count)
{
    struct account *a;

    LIST_FOREACH(a, &r->accounts, listed)
        for (unsigned i = 0; i < a->sessions.count; i++) {
            all[*count] = (struct session *)a->sessions.items[i];
            all[*count]->looks++;
            all[(*count)++]->pins++;
        }
}

void registry_each(struct registry *r, void (*look)(struct session *s, void *context), void *context)
{
    struct session **all;
    unsigned         count = 0;

    pthread_mutex_lock(&r->lock);
    all = r->count ? calloc(r->count, sizeof(struct session *)) : NULL;
    if (all)
        pin_all(r, all, &count);
    pthread_mutex_unlock(&r->lock);
    for (unsigned i = 0; i < count; i++) {
        look(all[i], context);
        all[i]->looks--;
        session_unpin(all[i], false);
    }
    free(all);
}

void registry_uncount(struct session *s)
{
    struct registry *r = s->registry;

    change_begin(r);
    s->account->count--;
    s->account->implicit -= s->implicit;
    r->count--;
    domain_leave(s);
    account_drop_if_empty(s->account);
    s->account = NULL;
    pthread_cond_broadcast(&r->closing_changed); /* wakes those who wait for the session's end, whichever thread brings it */
    change_end(r);
}

void session_pin(struct session *s)
{
    s->pins++;
}

void registry_observe(struct session *s, int change)
{
    s->observers += (unsigned)change;
}

void session_unpin(struct session *s, bool used)
{
    unsigned before;

    if (used)
        s->used_ns = s->renewed_ns = now_ns();
    before = s->pins--;
    assert(before > 0);
    if (before > 1)
        return;
    result_store_finish(s);
    account_leave(s->registry, s->payer);
    event_ring_finish(&s->events);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* Pinned; NULL: there is none. */
static struct session *look_up(struct registry *r, const struct tenant *t, struct span id, bool only_pending)
{
    struct account *a;
    struct session *s;

    pthread_rwlock_rdlock(&r->lookup_lock);
    a = account_find(r, t->owner);
    s = a ? (struct session *)table_get(&a->sessions, id) : NULL;
    if (s && only_pending && !s->pending)
        s = NULL;
    if (s)
        s->pins++;
    pthread_rwlock_unlock(&r->lookup_lock);
    return s;
}

enum status session_borrow(struct registry *r, const struct tenant *t, struct span id, struct session **out, struct problem *why)
{
    struct session *s = look_up(r, t, id, false);

    if (!s)
        return ended_explain(r, t->owner, id, why);
    if (s->restoring) {
        enum status st = restoring_problem(s, why);

        session_unpin(s, false);
        return st;
    }
    *out = s;
    return STATUS_OK;
}

enum status session_borrow_pending(struct registry *r, const struct tenant *t, struct span id, struct session **out, struct problem *why)
{
    *out = look_up(r, t, id, true);
    return *out ? STATUS_OK : session_borrow(r, t, id, out, why);
}

void session_renew(struct session *s)
{
    s->renewed_ns = now_ns();
}

void session_return(struct session *s)
{
    session_unpin(s, true);
}

void session_return_unnoticed(struct session *s)
{
    session_unpin(s, false);
}

/* The tenant's next session after *cursor, pinned; NULL at the end. */
static struct session *next_session(struct registry *r, const struct tenant *t, struct span cursor, bool *more)
{
    struct session *s = NULL;
    struct account *a;

    pthread_mutex_lock(&r->lock);
    a = account_find(r, t->owner);
    if (a) {
        unsigned at = table_after(&a->sessions, cursor);
        while (at < a->sessions.count && ((struct session *)a->sessions.items[at])->implicit)
            at++;
        *more = at + 1 < a->sessions.count;
        if (at < a->sessions.count)
            s = (struct session *)a->sessions.items[at];
        if (s)
            s->pins++;
    }
    pthread_mutex_unlock(&r->lock);
    return s;
}

unsigned session_list(struct registry *r, const struct tenant *t, struct page *page, struct session_info *items)
{
    char            at[ID_BYTES] = "";
    unsigned        n = 0;
    bool            more = false;
    struct session *s;

    page->next[0] = '\0';
    if (page->cursor.bytes >= sizeof at || !span_copy(page->cursor, at, sizeof at))
        return 0;
    while (n < page->limit && (s = next_session(r, t, span_of(at), &more)) != NULL) {
        session_info_of(s, &items[n++]);
        span_copy(span_of(s->entry.id), at, sizeof at);
        session_unpin(s, false);
    }
    if (n == page->limit && more)
        span_copy(span_of(at), page->next, sizeof page->next);
    return n;
}
