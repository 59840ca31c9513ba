/* Fault domains: sessions of one caller on one device that fall together. On a GPU they share an MPS server, and so must; elsewhere they do the
 * same, so that a program finds one behaviour everywhere.
 *
 * A domain has rounds. A worker session belongs to the round in which its worker was taken. The first of a round that is lost ends the round:
 * the submitter then loses all others of it, and only after that may workers of the next round be taken. */
#include "session/life/parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log/log.h"
#include "base/metrics.h"
#include "base/portion.h"
#include "base/threads/held.h"

enum { NAMED_MAX = 3, NAMES_BYTES = NAMED_MAX * (ID_BYTES + 4) + 32 };

/* ---- members; with registry.lock held ---- */

static struct fault_domain *find(const struct registry *r, const void *owner, struct span name)
{
    struct fault_domain *d;

    LIST_FOREACH(d, &r->domains, listed)
        if (d->owner == owner && span_is(name, d->name))
            break;
    return d;
}

unsigned domains_of(const struct registry *r, const void *owner)
{
    const struct fault_domain *d;
    unsigned                   n = 0;

    assert(held(&r->lock));
    LIST_FOREACH(d, &r->domains, listed)
        n += d->owner == owner;
    return n;
}

static void spread_fall(struct reap_item *item);
static void end_domain(struct reap_item *item);

static enum status make(struct registry *r, const void *owner, const struct session *fresh, struct fault_domain **out, struct problem *why)
{
    const struct portion all = {"fault_domains", FAULT_DOMAINS_MAX, r->domains_count, domains_of(r, owner)};
    enum status          st = portion_check(&all, 1, why);
    struct fault_domain *d = st ? NULL : calloc(1, sizeof *d);

    if (!d)
        return st ? st : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a fault domain");
    d->registry = r;
    d->owner = owner;
    d->device = fresh->device;
    d->shared_server = fresh->shared_server;
    d->fall_item.run = spread_fall;
    d->end_item.run = end_domain;
    span_copy(span_of(fresh->domain_name), d->name, sizeof d->name);
    LIST_INSERT_HEAD(&r->domains, d, listed);
    r->domains_count++;
    *out = d;
    return STATUS_OK;
}

static enum status check_joining(const struct fault_domain *d, const struct session *fresh, struct problem *why)
{
    if (d->device != fresh->device) /* it was made between the choice of the device and now */
        return problem_set(why, STATUS_SESSION_BUSY,
                           "the fault domain was made on another device at the same moment; send the request again");
    if (fresh->server_required && !d->shared_server)
        return problem_set(why, STATUS_FAULT_DOMAIN_UNAVAILABLE, "the fault domain has no MPS server: its sessions take turns");
    if (d->count == FAULT_DOMAIN_SESSIONS_MAX)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "fault_domain_sessions", FAULT_DOMAIN_SESSIONS_MAX, d->count, 1);
    return STATUS_OK;
}

enum status domain_join(struct registry *r, const void *owner, struct session *fresh, struct problem *why)
{
    struct fault_domain *d;
    enum status          st;

    assert(held(&r->lock));
    if (!fresh->domain_name[0])
        return STATUS_OK;
    d = find(r, owner, span_of(fresh->domain_name));
    st = d ? check_joining(d, fresh, why) : make(r, owner, fresh, &d, why);
    if (st)
        return st;
    d->members[d->count++] = fresh;
    fresh->domain = d;
    return STATUS_OK;
}

void domain_leave(struct session *s)
{
    struct fault_domain *d = s->domain;
    unsigned             i = 0;

    assert(held(&s->registry->lock));
    s->domain = NULL;
    if (!d)
        return;
    while (d->members[i] != s)
        i++;
    d->members[i] = d->members[--d->count];
    if (d->count)
        return;
    LIST_REMOVE(d, listed);
    d->registry->domains_count--;
    if (!d->falling)
        reaper_post(&d->registry->reaper, &d->end_item);
}

/* Nobody finds it any more, and no fall is under way. */
static void end_domain(struct reap_item *item)
{
    struct fault_domain *d = (struct fault_domain *)((char *)item - offsetof(struct fault_domain, end_item));

    if (d->shared_server)
        pool_domain_leave(d->registry->config.pool, d, true);
    free(d);
}

int domain_device(struct registry *r, const void *owner, struct span name)
{
    const struct fault_domain *d;
    int                        device;

    pthread_mutex_lock(&r->lock);
    d = find(r, owner, name);
    device = d ? (int)d->device : -1;
    pthread_mutex_unlock(&r->lock);
    return device;
}

void domain_info_of(const struct session *s, struct session_info *out)
{
    assert(held(&s->registry->lock));
    if (!s->domain)
        return;
    span_copy(span_of(s->domain->name), out->fault_domain, sizeof out->fault_domain);
    out->shared_server = s->domain->shared_server;
    out->domain_sessions = s->domain->count;
}

/* ---- workers ---- */

const void *domain_server(const struct session *s)
{
    return s->domain && s->domain->shared_server ? s->domain : NULL;
}

uint64_t domain_settle(struct session *s)
{
    struct registry *r = s->registry;
    uint64_t         round;

    if (!s->domain)
        return 0;
    pthread_mutex_lock(&r->lock);
    while (s->domain->falling)
        pthread_cond_wait(&r->closing_changed, &r->lock);
    round = s->domain->round;
    pthread_mutex_unlock(&r->lock);
    return round;
}

/* ---- the fall ---- */

static void begin_fall(struct fault_domain *d, enum counter cause)
{
    assert(held(&d->registry->lock));
    d->round++;
    d->falling = true;
    counter_add(cause, 1);
    reaper_post(&d->registry->submitter, &d->fall_item);
}

static void fall_by_server(struct fault_domain *d, const struct problem *why)
{
    d->fall = (struct domain_fall){.why = *why};
    problem_set(&d->fall.told, STATUS_FAULT_DOMAIN_LOST, "the MPS server of the fault domain '%s' ended, and its sessions with it",
                d->name);
    begin_fall(d, COUNTER_FALLS_BY_SERVER);
}

static void fall_by_session(struct fault_domain *d, const struct worker_session *c, const struct problem *why)
{
    /* A server tells a fault of one client to all: who hears of it first need not be who brought it about. */
    const char *what = d->shared_server && why->status == STATUS_KERNEL_FAULT ? "was the first to hear of a fault" : "failed";

    d->fall = (struct domain_fall){.by = c->session, .computed = worker_computes(c->worker), .why = *why};
    problem_set(&d->fall.told, STATUS_FAULT_DOMAIN_LOST, "session '%s' of the fault domain '%s' %s (%s: %.200s)", c->session->entry.id,
                d->name, what, status_code(why->status), why->detail);
    begin_fall(d, COUNTER_FALLS_BY_SESSION);
}

const struct problem *domain_lose(struct worker_session *c, const struct problem *why, struct problem *own)
{
    struct fault_domain *d = c->session->domain;
    struct registry     *r = c->session->registry;

    assert(held(&c->session->lock));
    if (!d || why->status == STATUS_DEVICE_RESET || why->status == STATUS_DEVICE_LOST) /* they end all on the device, each for itself */
        return why;
    pthread_mutex_lock(&r->lock);
    if (c->round == d->round && why->status == STATUS_FAULT_DOMAIN_LOST)
        fall_by_server(d, why);
    else if (c->round == d->round) {
        fall_by_session(d, c, why);
        pthread_mutex_unlock(&r->lock);
        return why;
    }
    c->suspect = why->status == STATUS_KERNEL_FAULT && worker_computes(c->worker);
    *own = d->fall.told;
    pthread_mutex_unlock(&r->lock);
    return own;
}

void domain_detach(struct worker_session *c, const char *reason)
{
    struct problem why, own;

    assert(held(&c->session->lock));
    if (!c->session->domain || c->lost || c->uses == 0 || !worker_computes(c->worker)) /* a call counts a moment beyond its use */
        return;
    problem_set(&why, STATUS_WORKER_LOST, "%s while its kernels ran", reason);
    domain_lose(c, &why, &own);
}

/* Of the round that has ended. */
static void lose_member(struct session *s, uint64_t round, const struct problem *why)
{
    struct worker_session *c;

    pthread_mutex_lock(&s->lock);
    c = s->worker_session;
    if (c && (c->lost || c->closed || c->round == round))
        c = NULL;
    if (c)
        c->uses++;
    pthread_mutex_unlock(&s->lock);
    if (!c)
        return;
    worker_kill(c->worker, STATUS_FAULT_DOMAIN_LOST, why);
    worker_session_leave_with(c, STATUS_FAULT_DOMAIN_LOST, why);
}

void domain_check(struct session *s)
{
    struct registry           *r = s->registry;
    const struct fault_domain *d;
    struct problem             told;
    uint64_t                   round = 0;

    if (!s->domain_name[0])
        return;
    pthread_mutex_lock(&r->lock);
    d = s->domain;
    if (d) {
        round = d->round;
        told = d->fall.told;
    }
    pthread_mutex_unlock(&r->lock);
    if (d)
        lose_member(s, round, &told);
}

void domain_look(struct session *s)
{
    struct registry *r = s->registry;
    const void      *server;
    struct problem   why;

    if (!s->shared_server)
        return;
    pthread_mutex_lock(&r->lock);
    server = domain_server(s);
    pthread_mutex_unlock(&r->lock);
    if (!server || !pool_domain_verdict(r->config.pool, server, &why))
        return;
    pthread_mutex_lock(&r->lock);
    if (s->domain == server && !s->domain->falling)
        fall_by_server(s->domain, &why);
    pthread_mutex_unlock(&r->lock);
}

/* ---- whose kernel it was, where a server tells all its clients the same; no lock held ---- */

struct fallen {
    struct session *members[FAULT_DOMAIN_SESSIONS_MAX]; /* pinned */
    unsigned        count;
    uint64_t        round;
};

/* Of the others, those that ran kernels when the device told of the fault. */
static unsigned find_suspects(const struct fallen *f, const struct session *by, struct session *out[FAULT_DOMAIN_SESSIONS_MAX])
{
    unsigned n = 0;

    for (unsigned i = 0; i < f->count; i++) {
        struct session        *s = f->members[i];
        struct worker_session *c;
        bool                   ran;

        pthread_mutex_lock(&s->lock);
        c = s->worker_session;
        ran = c && c->round != f->round && (c->lost ? c->suspect : worker_computes(c->worker));
        pthread_mutex_unlock(&s->lock);
        if (ran && s != by)
            out[n++] = s;
    }
    return n;
}

/* Not of one that had faulted before. */
static void set_fault(const struct fallen *f, struct session *s, const struct problem *fault)
{
    const struct worker_session *c;

    pthread_mutex_lock(&s->lock);
    c = s->worker_session;
    if (s->state == SESSION_FAULTED && c && c->round + 1 == f->round)
        s->fault = *fault;
    pthread_mutex_unlock(&s->lock);
}

static void append(struct problem *p, const char *text)
{
    size_t used = strlen(p->detail);

    snprintf(p->detail + used, sizeof p->detail - used, "%s", text);
}

static void name_suspects(struct session *const suspects[], unsigned count, char text[NAMES_BYTES])
{
    size_t used = (size_t)snprintf(text, NAMES_BYTES, "; MPS does not tell whose kernel it was:");

    for (unsigned i = 0; i < count && i < NAMED_MAX && used < NAMES_BYTES; i++)
        used += (size_t)snprintf(text + used, NAMES_BYTES - used, "%s '%s'", i ? "," : "", suspects[i]->entry.id);
    if (used < NAMES_BYTES)
        snprintf(text + used, NAMES_BYTES - used, "%s ran kernels, too", count > NAMED_MAX ? " and others" : "");
}

/* After all have fallen. The first to hear of a fault may be another one than the one that brought it about: surely if it ran no kernel. */
static void correct_blame(struct fault_domain *d, const struct fallen *f, struct domain_fall *fall, struct session *const suspects[],
                          unsigned count)
{
    char names[NAMES_BYTES];

    if (!d->shared_server || fall->why.status != STATUS_KERNEL_FAULT || count == 0)
        return;
    if (!fall->computed && count == 1) {
        problem_set(&fall->told, STATUS_FAULT_DOMAIN_LOST, "session '%s' of the fault domain '%s' failed (%s: %.200s)",
                    suspects[0]->entry.id, d->name, status_code(fall->why.status), fall->why.detail);
        for (unsigned i = 0; i < f->count; i++)
            set_fault(f, f->members[i], f->members[i] == suspects[0] ? &fall->why : &fall->told);
        return;
    }
    name_suspects(suspects, count, names);
    append(&fall->told, names);
    append(&fall->why, names);
    for (unsigned i = 0; i < f->count; i++)
        set_fault(f, f->members[i], f->members[i] == fall->by ? &fall->why : &fall->told);
}

static void take_fallen(struct fault_domain *d, struct fallen *f, struct domain_fall *fall)
{
    pthread_mutex_lock(&d->registry->lock);
    f->round = d->round;
    f->count = d->count;
    *fall = d->fall;
    for (unsigned i = 0; i < d->count; i++) {
        f->members[i] = d->members[i];
        session_pin(f->members[i]);
    }
    pthread_mutex_unlock(&d->registry->lock);
}

/* The next round may begin. */
static void settle(struct fault_domain *d)
{
    struct registry *r = d->registry;

    pthread_mutex_lock(&r->lock);
    d->falling = false;
    if (!d->count)
        reaper_post(&r->reaper, &d->end_item);
    pthread_cond_broadcast(&r->closing_changed);
    pthread_mutex_unlock(&r->lock);
}

static void spread_fall(struct reap_item *item)
{
    struct fault_domain *d = (struct fault_domain *)((char *)item - offsetof(struct fault_domain, fall_item));
    struct fallen        f;
    struct domain_fall   fall;
    struct session      *suspects[FAULT_DOMAIN_SESSIONS_MAX];
    unsigned             count;

    take_fallen(d, &f, &fall);
    log_warn("session", "the fault domain %s fell: %s", d->name, fall.told.detail);
    count = find_suspects(&f, fall.by, suspects);
    if (d->shared_server)
        pool_domain_leave(d->registry->config.pool, d, false);
    for (unsigned i = 0; i < f.count; i++)
        lose_member(f.members[i], f.round, &fall.told);
    correct_blame(d, &f, &fall, suspects, count);
    settle(d);
    for (unsigned i = 0; i < f.count; i++)
        session_unpin(f.members[i], false);
}
