/* What happens in a session, as a stream of numbered events: the last EVENTS_KEPT_MAX are kept, and whoever follows them is woken.
 * Events cost nothing but their place in the ring while nobody follows. Thread-safe. Launches within batches have no id, and are told when their
 * batch is over: what finished, in the order of operations, by number of batch and operation. */
#ifndef GPUREST_SESSION_EVENTS_H
#define GPUREST_SESSION_EVENTS_H

#include "base/buf.h"
#include "pool/pool.h"
#include "session/session.h"

enum event_type {
    EVENT_SESSION_STATE,
    EVENT_LAUNCH_QUEUED,
    EVENT_LAUNCH_STARTED,
    EVENT_LAUNCH_FINISHED,
    EVENT_KERNEL_PRINTF,
    EVENT_DEVICE_HEALTH,
    EVENT_FAULTS_BUDGET,
    EVENT_RESYNC, /* not in the ring: tells a follower that he has lost some */
    EVENT_TYPES,
};

/* Which members count depends on the type. */
struct event {
    uint64_t        id; /* from 1 on, +1 by every event of the session */
    enum event_type type;
    uint64_t        wall_ns;
    char            launch[CLIENT_ID_CHARS_MAX + 1]; /* LAUNCH_…, KERNEL_PRINTF; "" within a batch */
    struct event_batch {
        uint64_t number;      /* of the session's batches, from 1 on; 0: a launch of its own */
        unsigned op, op_last; /* operations: these and those between, as far as they are launches */
        unsigned launches;    /* how many that are; when it failed, one of them did */
    } batch;
    union {
        enum session_state session;
        enum launch_state  launch;
        enum device_state  device;
        bool               spent; /* FAULTS_BUDGET: the caller's new work on the device is refused */
    } state;
    uint64_t    generation; /* SESSION_STATE */
    enum status status;     /* why a session faulted or a launch failed; OK: it did not */
    bool        timed;      /* LAUNCH_FINISHED: gpu_us is known */
    double      gpu_us;     /* of all launches together */
    bool        truncated;  /* KERNEL_PRINTF: there was more text */
};

/* A follower's place. Zeroed, then the three members of the caller. */
struct event_cursor {
    uint64_t     last;  /* id of the last event that was seen; 0: none */
    unsigned     types; /* 1 << enum event_type each; others are passed over */
    struct waker waker; /* woken once there may be more */
};

enum event_next {
    EVENTS_ONE,  /* *out, and its text behind what is in *text */
    EVENTS_GAP,  /* events behind `last` are gone, or never were: `last` is now where it goes on */
    EVENTS_NONE, /* the waker is registered */
    EVENTS_OVER, /* the session is gone, or the server stops */
};

/* Id of the newest event. */
uint64_t events_newest(struct session *s);
/* The next one of those types. Never blocks. The session must be held, by session_observe() at least. */
enum event_next events_next(struct session *s, struct event_cursor *c, struct event *out, struct buf *text);
/* Afterwards the waker is not touched. */
void events_unwatch(struct session *s, struct event_cursor *c);

/* One more follower. TOO_MANY_IN_FLIGHT beyond EVENT_STREAMS_PER_SESSION_MAX. Takes over a borrowed session: it stays in memory, but
 * from now on that is no use that keeps it from being idle. On failure it is the caller's still. */
enum status session_observe(struct session *s, struct problem *why);
void        session_unobserve(struct session *s);
/* The server stops: every follower's stream is over. */
void events_end_all(struct registry *r);

#endif
