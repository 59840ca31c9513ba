/* Hibernation: the large buffers of a session leave the device for a file, and come back at the same addresses before the session is used again.
 * Worker, modules, streams and programs stay. Thread-safe. */
#pragma once

#include "session/session.h"

/* A request that needs its session awake, or asleep. Zero it. */
struct sleep_wait {
    bool     joined; /* it has waited: `failures` is what it had seen before */
    uint64_t failures;
    uint64_t since_ns; /* when it began to wait; 0: it did not */
};

/* OK when the session is so: awake, or nothing that a wake could help; asleep. PENDING when it is on its way there, which this has begun unless it
 * was under way: w is then registered, or woken already. Else why it is not so, and stays as it is. To sleep, it waits up to HIBERNATE_IDLE_MS
 * until no work is under way, then SESSION_BUSY. FEATURE_DISABLED, NOT_IMPLEMENTED, OVERLOADED, DEVICE_MEMORY_EXHAUSTED. Never blocks. */
enum status session_sleep_follow(struct session *s, bool asleep, struct sleep_wait *wait, struct waker *w, struct problem *why);
/* As session_sleep_follow() for an awake session; OK holds it awake until session_may_sleep(). */
enum status session_stay_awake(struct session *s, struct sleep_wait *wait, struct waker *w, struct problem *why);
void        session_may_sleep(struct session *s);
/* Afterwards w is not woken by this. */
void session_sleep_unfollow(struct session *s, struct waker *w);
/* As session_sleep_follow() for an awake session, and waits. Blocks. */
enum status session_wake_await(struct session *s, struct problem *why);

/* What all callers' hibernated sessions keep, and how many bytes may be kept. */
struct hibernation_use {
    uint64_t bytes, bytes_max;
};
void hibernation_use_of(struct registry *r, struct hibernation_use *out);
