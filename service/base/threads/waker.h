/* Notifies an object that cannot block when an operation finishes. */
#pragma once

/* Embedded in the waiting object and registered with what it waits for (base/threads/waitlist.h, staging_take, ...), which links it.
 * wake() is called at most once per registration, from any thread, possibly with locks held: it must not block or call into the watched
 * object. After the matching ..._unwatch() returns, wake() is not running and is not called. */
struct waker {
    void (*wake)(struct waker *w);
    struct waker *next; /* used by the list; NULL when not registered */
};
