/* What happens in a session, as a stream of numbered events. The last EVENTS_KEPT_MAX are kept. Followers are woken by each new event;
 * without followers an event costs only its place in the ring. Thread-safe. Launches within batches have no id: they are reported when
 * their batch ends, in the order of operations, by the number of the batch and of the operations. */
#pragma once

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
    EVENT_MEMORY_LOW,
    EVENT_RESYNC, /* not in the ring: tells a follower that it has missed events */
    EVENT_TYPES,
};

/* The type decides which members are set. */
struct event {
    uint64_t        id; /* counts all events of the session, from 1 */
    enum event_type type;
    uint64_t        wall_ns;
    char            launch[CLIENT_ID_CHARS_MAX + 1]; /* LAUNCH_… and KERNEL_PRINTF; "" for launches within a batch */
    struct event_batch {
        uint64_t number;      /* of the batch, counted in the session from 1; 0: a launch outside batches */
        unsigned op, op_last; /* the first and the last operation of a range; those that are no launches do not count */
        unsigned launches;    /* launches in the range; if it failed, one of them did */
    } batch;
    union {
        enum session_state session;
        enum work_state    launch;
        enum device_state  device;
        struct event_memory {
            uint64_t used, limit; /* bytes in buffers of the session, and its limit; MEMORY_LIMIT_NONE: none */
            uint64_t requested;   /* what was refused; 0: nothing, but little is left below the limit */
        } memory;                 /* MEMORY_LOW */
        bool spent;               /* FAULTS_BUDGET: the caller gets no new work on the device */
    } state;
    enum recovery_step step;       /* DEVICE_HEALTH: what has just been done about the device */
    uint64_t           generation; /* SESSION_STATE */
    enum status        status;     /* why a session faulted, a launch failed or memory was refused; else OK */
    bool               timed;      /* LAUNCH_FINISHED: gpu_us is known */
    double             gpu_us;     /* sum over the launches */
    bool               truncated;  /* KERNEL_PRINTF: the text was cut */
};

/* A follower's position. Zero it, then set the caller's three members. */
struct event_cursor {
    uint64_t     last;  /* id of the last event that was seen; 0: none */
    unsigned     types; /* 1 << enum event_type each; others are passed over */
    struct waker waker; /* woken once there may be more */
};

enum event_next {
    EVENTS_ONE,  /* *out is the event; its text was appended to *text */
    EVENTS_GAP,  /* events after `last` are no longer kept, or never existed; `last` is now the position to go on from */
    EVENTS_NONE, /* the waker is registered */
    EVENTS_OVER, /* the session is gone, or the server stops */
};

uint64_t events_newest(struct session *s);
/* The next event of the wanted types. Never blocks. The caller holds the session, at least by session_observe(). */
enum event_next events_next(struct session *s, struct event_cursor *c, struct event *out, struct buf *text);
/* The waker is not touched after this. */
void events_unwatch(struct session *s, struct event_cursor *c);

/* Adds a follower. TOO_MANY_IN_FLIGHT beyond EVENT_STREAMS_PER_SESSION_MAX. Takes over a borrowed session, which stays in memory but may
 * become idle. On failure the caller still has it borrowed. */
enum status session_observe(struct session *s, struct problem *why);
void        session_unobserve(struct session *s);
/* Ends every follower's stream, when the server stops. */
void events_end_all(struct registry *r);
