/* Runs of one caller, each on an implicit session of its own: no run waits for another or sees another's fault. A caller has
 * RUNS_AT_ONCE_PER_CALLER places; a run that finds none free waits. */
#pragma once

#include <sys/queue.h>

#include "session/session.h"

/* Initially all zero; one thread at a time. */
struct run_place {
    bool          taken;
    unsigned      number; /* while the place is taken */
    const void   *owner;
    struct waker *waker; /* while it waits */
    bool          is_listed;
    LIST_ENTRY(run_place) listed; /* in registry.runs: all that have a place or wait for one */
};

/* OK: the place is taken until run_leave(). PENDING: all places are taken, or there is no worker for one more; w is woken when a retry
 * may succeed. Never blocks. */
enum status run_enter(struct registry *r, const struct tenant *t, struct run_place *p, struct waker *w);
/* Allowed in any state. Nothing of the run may be left on the session. */
void run_leave(struct registry *r, struct run_place *p);
/* The place's session, created at first use, and again after a fault. Borrowed. Blocks. */
enum status run_session(struct registry *r, const struct tenant *t, const struct run_place *p, struct session **out, struct problem *why);

/* The tenant's implicit session for background work, which no request can name or list. Created at first use, and again after a fault.
 * Borrowed. Blocks. */
enum status implicit_session(struct registry *r, const struct tenant *t, struct session **out, struct problem *why);
/* As implicit_session(), but only if the session exists. */
enum status implicit_session_find(struct registry *r, const struct tenant *t, struct session **out, struct problem *why);
