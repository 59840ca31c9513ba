/* Registers wakers and wakes them under the list's lock: so unwatch can promise that no wake() runs any more. */
#include "base/threads/waitlist.h"

#include <stddef.h>

void waitlist_add(struct waitlist *l, struct waker *w)
{
    for (struct waker *at = l->first; at; at = at->next)
        if (at == w)
            return;
    w->next = l->first;
    l->first = w;
}

void waitlist_remove(struct waitlist *l, struct waker *w)
{
    struct waker **at = &l->first;

    while (*at && *at != w)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = w->next;
    w->next = NULL;
}

void waitlist_wake(struct waitlist *l)
{
    while (l->first) {
        struct waker *w = l->first;
        l->first = w->next;
        w->next = NULL;
        w->wake(w);
    }
}

void waitlist_end(struct waitlist *l)
{
    l->over = true;
    waitlist_wake(l);
}

bool waitlist_watch(struct waitlist *l, struct waker *w)
{
    bool open;

    pthread_mutex_lock(l->lock);
    open = !l->over;
    if (open)
        waitlist_add(l, w);
    pthread_mutex_unlock(l->lock);
    return open;
}

void waitlist_unwatch(struct waitlist *l, struct waker *w)
{
    pthread_mutex_lock(l->lock);
    waitlist_remove(l, w);
    pthread_mutex_unlock(l->lock);
}
