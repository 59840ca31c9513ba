/* Launches of a worker session, on their way to the device and back. */
#pragma once

#include "session/code/internal.h"
#include "session/launch/check.h"
#include "session/launch/params.h"
#include "session/memory/internal.h"

/* What one call to the worker needs; owned by the call's event, or by the last who spins on it. */
struct flight {
    struct call            call; /* first: events find the flight by it */
    struct launch         *launch;
    struct worker_session *worker_session;
    _Atomic unsigned       holders; /* the event, and who spins */
    struct msg_launch      msg;     /* last: allocated with room for as many bytes of parameters as any kernel of the module takes */
};

struct launch {
    struct entry           entry;
    struct worker_session *worker_session; /* a reference */
    _Atomic unsigned       refs;           /* the table, holders outside, and the way through the worker */
    unsigned char          digest[SHA256_BYTES];
    char                   module_id[ID_BYTES];
    struct module         *module;                  /* held until it ended */
    struct temp_buffer    *scratch;                 /* of a built-in kernel; until it ended. NULL: none */
    char                   dtype[DTYPE_NAME_BYTES]; /* of a built-in kernel; "" = of a module */
    char                   stream[STREAM_NAME_BYTES];
    bool                   vendor;  /* a library does the built-in kernel */
    bool                   untimed; /* gpu_us is the worker's time, and is not shown */
    uint32_t               grid[3], block[3], shared_bytes;
    uint64_t               timeout_ms;
    uint64_t               number; /* order of submission; also its tag */
    enum work_state        state;
    struct waitlist        end; /* over: nothing that launch_info tells changes any more; it is read without a lock */
    bool                   in_backlog;
    bool                   sending; /* at the head of the backlog and being submitted right now */
    bool                   ended;   /* the device is done with it, its output may be still to come */
    uint64_t               created_wall_ns, started_wall_ns, finished_wall_ns;
    uint64_t               started_ns; /* its deadline counts from here; 0 = not yet */
    double                 gpu_us;
    char                  *output; /* owned */
    uint64_t               output_bytes;
    bool                   output_truncated;
    struct problem        *problem; /* owned; only of failed ones */
    struct flight         *flight;  /* until the device is done */
    LIST_ENTRY(launch) unfinished;  /* in worker_session.unfinished */
    TAILQ_ENTRY(launch) queued;     /* in worker_session.backlog, until the ring has it for sure: it may have finished by then */
    TAILQ_ENTRY(launch) kept;       /* in worker_session.finished */
    struct launch *next;            /* in outputs */
    char           kernel[];        /* its name, in the same allocation */
};

/* ---- launch.c ---- */
/* Kernel, grid, block and shared memory of the message, checked; asks the worker for an automatic block. Needs a use. */
enum status launch_configure(struct worker_session *c, struct module *m, const struct launch_spec *spec, struct msg_launch *msg,
                             struct problem *why);
/* Of all but the id. */
void launch_digest(const struct launch_spec *spec, unsigned char out[SHA256_BYTES]);
/* Zeros but for the kernel's name and one reference. NULL: no memory. */
struct launch *launch_allocate(struct span kernel);
/* With session.lock held. */
void launch_unref(struct launch *l);

/* With session.lock held: the scratch memory of a built-in kernel's launch is the device's again, behind what was submitted. */
void launch_drop_scratch(struct launch *l);

/* ---- launch_progress.c ---- with session.lock held: the event that tells of it. */
void launch_publish(const struct launch *l, enum event_type type);

/* ---- launch_flight.c ---- with session.lock held: it is among those that have ended, of which the oldest are forgotten. */
void launch_keep(struct worker_session *c, struct launch *l);

/* ---- launch_flight.c ---- from the backlog into the ring and back. */
/* A time on the device as a worker reports it, which is not trusted: false, and 0, for what cannot be. */
bool gpu_us_check(float reported, double *us);
/* One has succeeded, in that time on the device; untimed: nobody measured it there. */
void launch_measure(double gpu_us, bool untimed);
/* Hands it to the worker, or puts it behind others that wait; one for which neither is possible ends. Needs a use, and submit_lock; session.lock is held
 * before, not behind. Where it is in the ring, *spun_on is its flight, to be given to flight_release(); NULL: nobody will spin. */
enum status launch_send(struct worker_session *c, struct launch *l, struct flight **spun_on, struct problem *why);
void        flight_release(struct flight *f);
/* With session.lock held: takes it out of the backlog, as cancelled. False when it is not in there. */
bool launch_withdraw(struct worker_session *c, struct launch *l);
