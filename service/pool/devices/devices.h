/* The pool's inside: its devices, their device monitors and warm workers. */
#ifndef GPUREST_POOL_DEVICES_H
#define GPUREST_POOL_DEVICES_H

#include "pool/bounds.h"
#include "pool/pool.h"
#include "pool/workers/worker_internal.h"

/* A call to a device monitor that its asker may stop waiting for; it is then collected by the next one. */
struct ask {
    struct call    call;
    struct worker *worker; /* pinned; NULL = nothing is asked */
    enum message   message;
    struct slice   slice; /* DEVICE_INFO */
};

struct device_slot {
    struct pool_device public;               /* under the pool's lock; workers_warm is counted on reading */
    unsigned           index;                /* within its backend */
    struct worker     *device_monitor;       /* NULL while there is none */
    bool               device_monitor_known; /* its READY was taken notice of */
    bool               sandbox_known;        /* public.sandbox is of workers; else of the device monitor, whose own may be weaker */
    struct worker     *warm;                 /* a list: STARTING and READY ones that nobody owns */
    unsigned           demand;               /* takers that wait for one more */
    unsigned           failures;             /* starts in a row that failed for the device's fault */
    unsigned           shortages;            /* ... for want of memory, in a row */
    uint64_t           failed_starts;        /* in all */
    bool               starting;             /* a warm worker is being made and not on the list yet */
    uint64_t           next_try_ns;          /* not before it is anything started */
    bool               settled;              /* the first device monitor has come up, or failed */
    struct problem     last_problem;         /* why a start failed, or the verdict; status OK = neither */
    enum device_action verdict;              /* of errors of the hardware: with one there is no way back to healthy */
    _Atomic bool       hot;                  /* written under the pool's lock */
    uint64_t           canary_ns;            /* when a canary last came out right; 0 = never, or in doubt */
    pthread_mutex_t    ask_lock;             /* one asker at a time; over ask */
    struct ask         ask;
};

struct pool {
    struct pool_config config;
    struct monitor    *monitor;
    pthread_mutex_t    lock;    /* over everything below but what has its own; taken after any lock of a worker */
    pthread_cond_t     changed; /* something happened that a taker or the refiller may wait for; CLOCK_MONOTONIC */
    pthread_t          refiller;
    bool               refiller_runs;
    pthread_t          health;
    bool               health_runs;
    bool               stopping;
    bool               refiller_idle; /* it starts and ends nothing any more */
    bool               released;      /* no worker is left: it may end */
    uint64_t           changes;       /* +1 by every pool_changed() */
    struct device_slot devices[DEVICES_MAX];
    unsigned           devices_count;
    struct worker     *used;              /* a list: owned by sessions */
    struct worker     *discarded_workers; /* a list: to be destroyed by the refiller as soon as nobody pins them */
    unsigned           workers;           /* warm and used ones of all devices */
};

/* ---- discover.c ---- */
/* Fills pool->devices by asking a process of the role `count`. DEVICE_NOT_FOUND when there is none. */
enum status devices_discover(struct pool *p, struct problem *why);

/* ---- pool.c ---- */
/* Wakes whoever waits for a change; no worker function may be called with the pool's lock held, this one excepted. */
void pool_changed(void *pool);

/* ---- refill.c ---- */
void *refiller_run(void *pool);
/* The health thread's, under the pool's lock, which is given up meanwhile: a device monitor that has come up is asked about its device. False when
 * there is none. Not the refiller's: a management library may take seconds, and workers are waited for. */
bool device_monitor_notice(struct pool *p, struct device_slot *d);
/* Under the pool's lock. */
bool     list_remove(struct worker **list, struct worker *w);
unsigned list_count(const struct worker *list, enum worker_state state);
/* Waits for pool->changed until then. */
void pool_wait(struct pool *p, uint64_t deadline_ns);

/* ---- health.c ---- */
void *health_run(void *pool);

/* ---- device monitor.c ---- */
/* Asks the device monitor, and waits up to DEVICE_MONITOR_ANSWER_MS. False: no device monitor, or no answer in time, or a bad one (*why). */
bool device_monitor_canary(struct pool *p, struct device_slot *d, struct problem *why);
/* The same, with a patience of one's own. */
bool device_monitor_info(struct pool *p, struct device_slot *d, uint64_t patience_ms, struct device_info *out);

#endif
