/* One worker as the files of pool/ see it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/threads/waitlist.h"
#include "ipc/shm.h"
#include "pool/bounds.h"
#include "pool/workers/spawn.h"
#include "pool/workers/worker.h"

/* An entry of the call table. `number` is 0 while it is free. It becomes 0 only after the call's CALL_DONE was delivered, so a waiter
 * reads this and never the call, which may be gone by then. */
struct call_slot {
    _Atomic uint64_t number;
    _Atomic uint32_t serial;  /* futex word: +1 at every end */
    _Atomic uint32_t waiting; /* 1: a thread sleeps on it */
    struct call     *call;    /* borrowed until delivered */
    enum message     message;
    uint64_t         deadline_ns;
    bool             started;    /* the start was reported; under drain_lock */
    uint64_t         answer_max; /* bytes that the worker may claim to have written into staging */
};

/* Runs of whole slices, first fit. Slices are few (64 by default): a scan is cheaper than a tree. */
struct staging {
    pthread_mutex_t lock;
    struct waitlist waiters; /* over: no take any more */
    unsigned        slices_count;
    unsigned        fresh;                    /* this slice and those after it were never taken: they have no pages yet */
    unsigned char   used[STAGING_SLICES_MAX]; /* 1 = taken */
};

struct monitor;

/* Something that is read once, or ends once. Embedded in its owner, and there until readable() was called. */
struct watched {
    int fd;
    void (*readable)(struct watched *w); /* on the monitor's thread, once */
};

struct worker_options {
    const char        *executable;
    const char        *backend;
    const char *const *device_arguments; /* NULL-terminated, or NULL */
    const char        *visible;          /* another of them, or NULL; borrowed for worker_start() only */
    unsigned           index;            /* within its backend */
    const char        *uuid;             /* which decides where the driver's indices have changed; "": unknown. Borrowed likewise */
    unsigned           device;           /* the pool's number */
    uint64_t           staging_bytes;
    uint64_t           start_deadline_ms;
    bool               device_monitor;         /* it will serve no caller */
    bool               sharing;                /* it may exchange descriptors of memory with us */
    bool               allow_no_sandbox;       /* it may start where the machine offers no sandbox */
    char               mps[SERVER_PATH_BYTES]; /* the folder of the MPS server that it is to be a client of; "" = of none */
    struct monitor    *monitor;
    /* Called after every change of state, with locks of the worker held: must not call back. */
    void (*changed)(void *context);
    void *context;
};

/* Locks, in the order of taking: drain_lock, lock, staging.lock. */
struct worker {
    struct worker        *next;      /* the pool's lists */
    unsigned              pins;      /* the pool's, under its lock: not to be destroyed yet */
    bool                  discarded; /* the pool's: killed on purpose; its death says nothing about the device */
    struct worker_options options;
    struct spawned        process;
    struct watched        watched;      /* its end */
    int                   control_fd;   /* closing it ends the worker */
    int                   share_fd;     /* for descriptors of memory, both ways; -1 without sharing */
    pthread_mutex_t       share_lock;   /* one exchange of a descriptor at a time; taken before all others */
    uint64_t              share_number; /* of the last one; under share_lock */
    struct shm            shm;
    pthread_t             drainer;

    pthread_mutex_t  lock;
    pthread_cond_t   ended;   /* `gone` became true */
    _Atomic unsigned state;   /* enum worker_state; written under lock */
    _Atomic unsigned sandbox; /* enum worker_sandbox; written before READY */
    bool             was_ready;
    int              wait_status; /* as of waitpid(); counts once it is DEAD */
    bool             gone;        /* dead, and only the owner will touch it */
    struct waker    *end_waker;   /* to be woken then; NULL */
    uint64_t         started_ns, start_deadline_ns;
    uint64_t         ending_ns; /* when it was told to end, or announced it; 0: not yet */
    uint64_t         kill_ns;   /* when a worker that should end by itself is killed; or DEADLINE_NEVER */
    struct ring      commands;  /* under lock */
    uint64_t         numbers;
    unsigned         unfinished;
    _Atomic unsigned computing; /* of those, the ones that run kernels; written under lock */
    uint16_t         free_slots[RING_SLOTS];
    unsigned         free_count;
    struct problem   end;  /* how unfinished calls end; status OK = WORKER_LOST */
    bool             told; /* by the worker: it answered what it had accepted. Under lock, fixed once it is DEAD */

    pthread_mutex_t  drain_lock; /* over completions, and while events are delivered */
    struct ring      completions;
    bool             reported;       /* the report of its start; under drain_lock */
    _Atomic bool     malicious;      /* it wrote what no worker writes: its ring is not read any more; written under drain_lock */
    _Atomic unsigned spinners;       /* threads inside call_spin() */
    _Atomic uint64_t drain_until_ns; /* when the drainer checks next */

    struct call_slot slots[RING_SLOTS];
    struct staging   staging;
};

/* ---- worker.c ---- */
/* Starts the process; returns while it is STARTING. The calling thread must outlive the worker (see spawn.h). */
enum status worker_start(struct worker **out, const struct worker_options *options);
/* Kills, waits, frees. NULL is a no-op. */
void worker_destroy(struct worker *w);
/* Under lock. */
void worker_set_state(struct worker *w, enum worker_state next);
/* True: it ended before it was ready; *out says why. NO_WORKER: the device has no part in it. */
bool worker_start_failed(struct worker *w, struct problem *out);

/* ---- calls.c ---- */
void calls_init(struct worker *w);
/* Delivers whatever the ring holds. */
void calls_drain(struct worker *w);
/* As calls_drain; also waits until what another thread is just delivering is delivered. */
void calls_last(struct worker *w);
/* Delivers what the ring still holds, then ends all other calls as worker.end says. The worker is DEAD. */
void calls_fail(struct worker *w);
/* Kills the worker if a deadline has passed; returns when to check next. */
uint64_t calls_check_deadlines(struct worker *w);
/* False: not done at the deadline. */
bool call_wait_until(struct worker *w, struct call *c, uint64_t deadline_ns);

/* ---- staging.c ---- */
void staging_init(struct worker *w);
void staging_finish(struct worker *w);
/* The worker is dead: wakes all waiters; takes fail from now on. */
void staging_fail(struct worker *w);

/* ---- monitor.c ---- one thread that sees processes end */
enum status monitor_create(struct monitor **out);
/* Nothing may be watched any more. NULL is a no-op. */
void        monitor_destroy(struct monitor *m);
enum status monitor_add(struct monitor *m, struct watched *w);
/* Puts them, and `visible` unless it is NULL, behind the first argc places of argv, which has room for DEVICE_ARGUMENTS_MAX + 1 more. */
void worker_add_device_arguments(char **argv, unsigned argc, const char *const *more, const char *visible);
