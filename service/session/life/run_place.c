/* The places of a caller's runs, and the runs that wait for one. */
#include "session/life/run_place.h"
#include "base/threads/held.h"
#include "session/bounds.h"

#include "session/life/internal.h"

/* ---- all below with registry.lock held ---- */

static void enlist_place(struct registry *r, struct run_place *p)
{
    assert(held(&r->lock));
    LIST_INSERT_HEAD(&r->runs, p, listed);
    p->is_listed = true;
}

static void unlist_place(struct run_place *p)
{
    if (p->is_listed)
        LIST_REMOVE(p, listed);
    p->is_listed = false;
}

static bool is_taken(const struct registry *r, const void *owner, unsigned number)
{
    const struct run_place *p;

    LIST_FOREACH(p, &r->runs, listed)
        if (p->taken && p->owner == owner && p->number == number)
            return true;
    return false;
}

unsigned runs_taken(const struct registry *r, const void *owner)
{
    const struct run_place *p;
    unsigned                n = 0;

    assert(held(&r->lock));
    LIST_FOREACH(p, &r->runs, listed)
        n += p->taken && p->owner == owner;
    return n;
}

/* Prefers a place whose session exists. Without `room` for one more worker, a new session is allowed only if the caller has no other run. */
static bool find_place(const struct registry *r, const void *owner, bool room, unsigned *out)
{
    bool any_taken = false, found = false;

    for (unsigned i = 0; i < RUNS_AT_ONCE_PER_CALLER; i++) {
        char id[ID_BYTES];

        if (is_taken(r, owner, i)) {
            any_taken = true;
            continue;
        }
        if (registry_has(r, owner, implicit_run_id(i, id))) {
            *out = i;
            return true;
        }
        if (!found)
            *out = i;
        found = true;
    }
    return found && (room || !any_taken);
}

/* Woken runs take a place or wait again. */
static void wake_waiting(struct registry *r, const void *owner)
{
    for (struct run_place *p = LIST_FIRST(&r->runs), *next; p; p = next) {
        next = LIST_NEXT(p, listed);
        if (p->taken || p->owner != owner)
            continue;
        unlist_place(p);
        p->waker->wake(p->waker);
    }
}

/* ---- without registry.lock ---- */

enum status run_enter(struct registry *r, const struct tenant *t, struct run_place *p, struct waker *w)
{
    bool room = pool_has_room(r->config.pool);

    pthread_mutex_lock(&r->lock);
    unlist_place(p);
    p->owner = t->owner;
    p->waker = w;
    p->taken = find_place(r, t->owner, room, &p->number);
    enlist_place(r, p);
    pthread_mutex_unlock(&r->lock);
    return p->taken ? STATUS_OK : STATUS_PENDING;
}

void run_leave(struct registry *r, struct run_place *p)
{
    pthread_mutex_lock(&r->lock);
    unlist_place(p);
    if (p->taken)
        wake_waiting(r, p->owner);
    p->taken = false;
    pthread_mutex_unlock(&r->lock);
}

enum status run_session(struct registry *r, const struct tenant *t, const struct run_place *p, struct session **out, struct problem *why)
{
    char                id[ID_BYTES];
    struct session_spec spec = {.id = implicit_run_id(p->number, id),
                                .memory_limit = MEMORY_LIMIT_NONE,
                                .idle_timeout_s = p->number ? RUN_EXTRA_IDLE_S : IDLE_TIMEOUT_S_DEFAULT,
                                .implicit = true};

    return implicit_session_of_run(r, t, &spec, out, why);
}
