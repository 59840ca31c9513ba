/* Who waits for something that changes under a lock: all are woken together. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/threads/waker.h"

struct waitlist {
    pthread_mutex_t *lock; /* guards the list and what is waited for */
    struct waker    *first;
    _Atomic bool     over; /* nobody needs to wait any more */
};

/* Registers w to be woken; false when it is over (then w is not registered). */
bool waitlist_watch(struct waitlist *l, struct waker *w);
/* Afterwards w->wake() is not running and is not called. */
void waitlist_unwatch(struct waitlist *l, struct waker *w);

static inline bool waitlist_over(const struct waitlist *l)
{
    return atomic_load(&l->over);
}

/* All below with the lock held. */
/* One that is registered already stays once. */
void waitlist_add(struct waitlist *l, struct waker *w);
/* One that is not registered is left as it is. */
void waitlist_remove(struct waitlist *l, struct waker *w);
void waitlist_wake(struct waitlist *l);
/* It is over: wakes all. */
void waitlist_end(struct waitlist *l);
