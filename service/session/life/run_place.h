/* Runs of one caller, each on a hidden session that it has for itself: so none waits for another, and none meets another's fault. A caller has
 * RUNS_AT_ONCE_PER_CALLER places; who finds none free waits for one. */
#ifndef GPUREST_SESSION_RUN_PLACE_H
#define GPUREST_SESSION_RUN_PLACE_H

#include "session/session.h"

/* Zeroed at first; one thread at a time. */
struct run_place {
    bool              taken;
    unsigned          number; /* while taken */
    const void       *owner;
    struct waker     *waker; /* while it waits */
    struct run_place *next;  /* in registry.runs: all that are taken or wait */
};

/* OK: taken until run_leave(). PENDING: all are taken, or there is no worker for one more; w is woken when it is worth another try. Never
 * blocks. */
enum status run_enter(struct registry *r, const struct tenant *t, struct run_place *p, struct waker *w);
/* In any state. Nothing of the run is on the session any more. */
void run_leave(struct registry *r, struct run_place *p);
/* The place's session, made at first use, made anew when it faulted. Borrowed. Blocks. */
enum status run_session(struct registry *r, const struct tenant *t, const struct run_place *p, struct session **out, struct problem *why);

/* The tenant's hidden session for work in the background, which nobody can name or list: made at first use, made anew when it faulted. Borrowed. Blocks. */
enum status implicit_session(struct registry *r, const struct tenant *t, struct session **out, struct problem *why);
/* The same, only if it is there. */
enum status implicit_session_find(struct registry *r, const struct tenant *t, struct session **out, struct problem *why);

#endif
