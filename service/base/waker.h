/* How something that finishes later tells somebody who cannot wait. */
#ifndef GPUREST_BASE_WAKER_H
#define GPUREST_BASE_WAKER_H

/* Embedded in the waiting object and registered with what it waits for (launch_watch, transfer_watch, ...), which links it.
 * wake() is called at most once per registration, from any thread, possibly with locks held: it must not block, nor call back
 * into what it waits for. After the matching ..._unwatch() has returned, wake() is not called and not running. */
struct waker {
    void (*wake)(struct waker *w);
    struct waker *next; /* the list's; NULL and not registered outside */
};

#endif
