/* What the files of pool/ share about one worker. */
#ifndef GPUREST_POOL_INTERNAL_H
#define GPUREST_POOL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/waker.h"
#include "ipc/shm.h"
#include "pool/workers/spawn.h"
#include "pool/workers/worker.h"

/* An entry of the call table. `number` is 0 while it is free; it goes back to 0 only after the call's CALL_DONE was delivered, so a
 * waiter looks here and never at the call, which may be gone by then. */
struct call_slot {
    _Atomic uint64_t number;
    _Atomic uint32_t serial;  /* futex word: +1 at every end */
    _Atomic uint32_t waiting; /* 1: somebody sleeps on it */
    struct call     *call;    /* borrowed until delivered */
    uint64_t         deadline_ns;
    bool             started;    /* it was told so; under drain_lock */
    uint64_t         answer_max; /* bytes the worker may claim to have written into staging */
};

/* Runs of whole slices, first fit. Slices are few (64 by default): a scan is cheaper than a tree. */
struct staging {
    pthread_mutex_t lock;
    struct waker   *waiters; /* linked by next */
    unsigned        slices_count;
    bool            dead;                     /* no take any more */
    unsigned char   used[STAGING_SLICES_MAX]; /* 1 = taken */
};

struct monitor;

struct worker_options {
    const char        *executable;
    const char        *backend;
    const char *const *device_arguments; /* NULL-terminated, or NULL */
    unsigned           index;            /* within its backend */
    unsigned           device;           /* the pool's number */
    uint64_t           staging_bytes;
    uint64_t           start_deadline_ms;
    bool               device_monitor;   /* it will serve no caller */
    bool               sharing;          /* it may exchange descriptors of memory with us */
    bool               allow_no_sandbox; /* it may start where the machine offers no sandbox */
    struct monitor    *monitor;
    /* Called after every change of state, with locks of the worker held: must not call back. */
    void (*changed)(void *context);
    void *context;
};

/* Locks, in the order of taking: drain_lock, lock, staging.lock. */
struct worker {
    struct worker        *next;      /* the pool's lists */
    unsigned              pins;      /* the pool's, under its lock: not to be destroyed yet */
    bool                  discarded; /* the pool's: killed on purpose, its death says nothing about the device */
    struct worker_options options;
    struct spawned        process;
    int                   control_fd;   /* closing it ends the worker */
    int                   share_fd;     /* for descriptors of memory, both ways; -1 without sharing */
    pthread_mutex_t       share_lock;   /* of one exchange of a descriptor; outer to all others */
    uint64_t              share_number; /* of the last one; under share_lock */
    struct shm            shm;
    pthread_t             reaper;

    pthread_mutex_t  lock;
    pthread_cond_t   ended;   /* `gone` became true */
    _Atomic unsigned state;   /* enum worker_state; written under lock */
    _Atomic unsigned sandbox; /* enum worker_sandbox; written before READY */
    bool             was_ready;
    int              wait_status; /* as of waitpid(); counts once it is DEAD */
    bool             gone;        /* dead, and nobody but the owner will touch this any more */
    struct waker    *end_waker;   /* to be woken then; NULL */
    uint64_t         started_ns, start_deadline_ns;
    uint64_t         ending_ns; /* when it was told to end, or said that it would; 0: not yet */
    uint64_t         kill_ns;   /* when a worker that should end by itself is killed; DEADLINE_NEVER */
    struct ring      commands;  /* under lock */
    uint64_t         numbers;
    unsigned         unfinished;
    uint16_t         free_slots[RING_SLOTS];
    unsigned         free_count;
    struct problem   end; /* how unfinished calls end; status OK = WORKER_LOST */

    pthread_mutex_t  drain_lock; /* over completions, and while events are delivered */
    struct ring      completions;
    bool             reported;        /* how its start went; under drain_lock */
    _Atomic bool     malicious;       /* it wrote what no worker writes: nothing more is read from it; written under drain_lock */
    _Atomic unsigned spinners;        /* threads inside call_spin() */
    _Atomic uint64_t reaper_until_ns; /* when the reaper looks around next */

    struct call_slot slots[RING_SLOTS];
    struct staging   staging;
};

/* ---- worker.c ---- */
/* Starts the process; returns while it is STARTING. The thread that calls must outlive the worker (see spawn.h). */
enum status worker_start(struct worker **out, const struct worker_options *options);
/* Kills, waits, frees. NULL is a no-op. */
void worker_destroy(struct worker *w);
/* Monitor's thread: the process has ended. The last thing that touches the worker but its owner. */
void worker_ended(struct worker *w);
/* Under lock. */
void worker_set_state(struct worker *w, enum worker_state next);
/* How it ended or did not start; a copy. */
void worker_end_problem(struct worker *w, struct problem *out);
bool worker_was_ready(struct worker *w);
/* Why it ended before it was ready. NO_WORKER when the device has no part in it. */
void worker_start_problem(struct worker *w, struct problem *out);

/* ---- calls.c ---- */
void calls_init(struct worker *w);
/* Delivers whatever the ring holds. */
void calls_drain(struct worker *w);
/* As calls_drain, and what another thread is just handing out has been handed out when it returns. */
void calls_last(struct worker *w);
/* Delivers what the ring still holds, then ends all others as worker.end says. The worker is DEAD. */
void calls_fail(struct worker *w);
/* Kills the worker if a deadline has passed; returns when to look again. */
uint64_t    calls_check_deadlines(struct worker *w);
enum status call_submit(struct worker *w, enum message m, const void *body, size_t bytes, struct call *c);
/* False when it is not done at the deadline. */
bool call_wait_until(struct worker *w, struct call *c, uint64_t deadline_ns);

/* ---- staging.c ---- */
void staging_init(struct worker *w);
void staging_finish(struct worker *w);
/* The worker is dead: wakes all, and takes fail from now on. */
void staging_fail(struct worker *w);

/* ---- monitor.c ---- one thread that sees processes end */
enum status monitor_create(struct monitor **out);
/* No worker may be left. NULL is a no-op. */
void        monitor_destroy(struct monitor *m);
enum status monitor_add(struct monitor *m, struct worker *w);
/* Puts them behind the first argc places of argv, which has room for DEVICE_ARGUMENTS_MAX more. */
void worker_add_device_arguments(char **argv, unsigned argc, const char *const *more);

#endif
