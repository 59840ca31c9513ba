/* The inside of the pool: its devices, their device monitors and warm workers. */
#pragma once

#include "pool/bounds.h"
#include "pool/devices/counter.h"
#include "pool/devices/reset_tool.h"
#include "pool/domains/domains.h"
#include "pool/pool.h"
#include "pool/workers/reserve.h"
#include "pool/workers/worker_internal.h"

/* A call to a device monitor. The asker may stop waiting for it; then the next asker collects it. */
struct ask {
    struct call    call;
    struct worker *worker; /* pinned; NULL = no question is open */
    enum message   message;
    struct slice   slice; /* DEVICE_INFO */
};

/* DRAINING: running work may finish. ENDING: all processes on the device end. TOOL: the vendor's tool runs. STARTING: a new device monitor
 * has to come up. Each has a deadline but DRAINING, which whoever began it ends. */
enum reset_phase { RESET_NONE, RESET_DRAINING, RESET_ENDING, RESET_TOOL, RESET_STARTING, RESET_PHASES };

struct device_reset {
    enum reset_phase  phase;
    bool              hard;
    uint64_t          deadline_ns;
    uint64_t          ended;       /* resets so far */
    struct problem    outcome;     /* of the last of them */
    unsigned          tries;       /* hard resets because of the present verdict */
    uint64_t          next_try_ns; /* no other one before then */
    struct reset_tool tool;        /* in the phase TOOL */
};

struct device_slot {
    struct pool_device public;                   /* under the pool's lock; workers_warm is counted on reading */
    unsigned            index;                   /* within its backend, as last counted */
    unsigned            rank;                    /* of its backend: the least is preferred */
    char                uuid[DEVICE_UUID_BYTES]; /* by which it is known again; "": by its index */
    _Atomic bool        lost;                    /* the last count did not find it; written under the pool's lock */
    struct worker      *device_monitor;          /* NULL while there is none */
    bool                device_monitor_known;    /* its READY was seen */
    bool                sandbox_known;           /* public.sandbox is that of workers; else the device monitor's, which may be weaker */
    bool                came_up;                 /* it was healthy once */
    struct worker      *warm;                    /* a list: STARTING and READY ones that nobody owns */
    unsigned            demand;                  /* takers that wait for another worker */
    struct reserve      reserve;                 /* how fast they are taken */
    bool                surplus;                 /* more are warm than the use asks for now */
    unsigned            failures;                /* consecutive starts that failed because of the device */
    unsigned            shortages;               /* ... for lack of memory */
    uint64_t            failed_starts;           /* in all */
    bool                starting;                /* a warm worker is being made and not on the list yet */
    uint64_t            next_try_ns;             /* no start before then */
    bool                settled;                 /* the first device monitor has come up, or failed */
    struct problem      last_problem;            /* why a start failed, or the verdict; status OK = neither */
    enum device_action  verdict;                 /* from hardware errors: with one the device takes no sessions until a reset succeeds */
    _Atomic bool        resetting;               /* reset.phase is not NONE; written under the pool's lock */
    struct device_reset reset;
    enum recovery_step  step;       /* the last one */
    uint64_t            steps;      /* so far */
    _Atomic bool        hot;        /* takes no new work; written under the pool's lock */
    bool                overheated; /* and its work ends; then it is hot, too */
    uint64_t            canary_ns;  /* time of the last correct canary; 0 = never, or in doubt */
    pthread_mutex_t     ask_lock;   /* one asker at a time; over ask */
    struct ask          ask;
    pthread_mutex_t     settings_lock; /* one change of a setting at a time, until it is noted; before ask_lock */
};

struct pool {
    struct pool_config  config;
    struct monitor     *monitor;
    pthread_mutex_t     lock;    /* protects everything below without a lock of its own; taken after any lock of a worker */
    pthread_cond_t      changed; /* signals what a taker or the refiller may wait for */
    pthread_t           refiller;
    bool                refiller_runs;
    pthread_t           health;
    bool                health_runs;
    bool                stopping;
    bool                refiller_idle;        /* no more starts and ends */
    bool                released;             /* no worker is left: it may end */
    uint64_t            changes;              /* +1 by every pool_changed() */
    struct device_slot  devices[DEVICES_MAX]; /* with ids that stay; none is taken away */
    _Atomic unsigned    devices_count;        /* grows under the lock; read without it */
    struct pool_domains domains;
    struct worker      *used;              /* a list: owned by sessions */
    struct worker      *discarded_workers; /* a list: the refiller destroys them as soon as nobody pins them */
    unsigned            workers;           /* warm and used workers of all devices */

    struct device_counter counter;         /* at the start, and the refiller's */
    bool                  count_wanted;    /* pool_count_again() */
    char                 *visible;         /* owned arguments for processes with a driver; NULL: as the environment says. Of workers ... */
    char                 *visible_counted; /* ... of the count that runs, and whose end makes it that of workers */
    char                 *visible_wanted;  /* ... of the next count */
};

/* ---- discover.c ---- */
/* Fills pool->devices by asking a process of the role `count`. DEVICE_NOT_FOUND when there is none. */
enum status devices_discover(struct pool *p, struct problem *why);
/* False: not enough memory. Before the first count. */
bool devices_set_visible(struct pool *p, const char *visible);
/* Refiller, under the pool's lock: begins a count that is wanted, takes the result of one that runs. True: something was done. */
bool     devices_count_care(struct pool *p);
uint64_t devices_count_next_look(const struct pool *p);

/* ---- pool.c ---- */
/* Wakes whoever waits for a change. The only worker function that may be called with the pool's lock held. */
void pool_changed(void *pool);

/* The same, under the pool's lock. */
void pool_note_change(struct pool *p);
/* Both under the pool's lock. A ready worker becomes a session's. */
void pool_hand_out(struct pool *p, struct device_slot *d, struct worker **list, struct worker *w);
/* Why the device gives no workers now; OK: it may. */
enum status device_refuses(const struct pool *p, const struct device_slot *d, struct problem *why);

/* ---- refill.c ---- */
void *refiller_run(void *pool);
/* Health thread, under the pool's lock, which it releases meanwhile: asks a new device monitor about its device. False: there is none.
 * The refiller does not do this: a management library may take seconds, and workers are waited for. */
bool device_monitor_notice(struct pool *p, struct device_slot *d);
/* Under the pool's lock, which it releases meanwhile; NULL: it failed. `mps`: the folder of its server, or NULL. */
struct worker *start_pool_worker(struct pool *p, struct device_slot *d, uint64_t staging, bool device_monitor, const char *mps);
/* Under the pool's lock. The refiller kills and destroys it; its death says nothing about the device. */
void discard_worker(struct pool *p, struct worker *w);
/* Under the pool's lock. The first of a list of warm workers; false: there is none. */
bool discard_warm(struct pool *p, struct worker **warm);
/* Under the pool's lock. A warm worker that nobody waits for makes room for one that somebody waits for, on device `d`, in `domain` or in
 * none (NULL). */
bool evict_for(struct pool *p, const struct device_slot *d, const struct pool_domain *domain);
bool may_make_room(struct pool *p, const struct device_slot *d, const struct pool_domain *domain);
/* Under the pool's lock. Room for what serves speed only, beside so many workers: a quarter of all and of the device's memory stays free. */
bool device_has_plenty(const struct pool *p, const struct device_slot *d, unsigned workers);
/* When to try again after so many failures. */
uint64_t pause_ns(unsigned failures);
/* Under the pool's lock. */
void     list_push(struct worker **list, struct worker *w);
bool     list_remove(struct worker **list, struct worker *w);
unsigned list_count(const struct worker *list, enum worker_state state);
unsigned list_count_living(const struct worker *list);
bool     worker_is_over(const struct worker *w);
/* Waits for pool->changed until then. */
void pool_wait(struct pool *p, uint64_t deadline_ns);

/* Under the pool's lock. Whatever waits on the device for sessions ends, and its device monitor. */
void device_discard_all(struct pool *p, struct device_slot *d);
/* Under the pool's lock. The device monitor's answer, unless the device was lost meanwhile. */
void device_keep_info(struct device_slot *d, const struct device_info *info);
/* Under the pool's lock. Failures so far say nothing about what comes; a verdict stays. */
void device_forget_trouble(struct device_slot *d);

/* ---- health.c ---- */
void *health_run(void *pool);
/* Under the pool's lock. Whether these errors ask for something. */
void device_judge_hardware(struct device_slot *d, const struct device_health *h);

/* ---- reset.c ---- under the pool's lock */
/* What to do about the failure that was just counted; NONE: nothing more, it is quarantined. `computed`: the device computes, but a library
 * does not answer. */
enum recovery_step recovery_next(const struct pool *p, const struct device_slot *d, bool computed);
/* Tells it, and begins the reset if it is one. */
void recovery_begin(struct device_slot *d, enum recovery_step step);
/* Refiller: carries a reset on. True: something was done. */
bool device_reset_care(struct pool *p, struct device_slot *d);
bool device_may_start_monitor(const struct device_slot *d);
/* The new device monitor told about the device. */
void device_reset_came_up(struct device_slot *d, const struct device_info *info);
/* No device monitor comes up. */
void device_reset_failed(struct device_slot *d, const struct problem *why);
/* When device_reset_care() has to be called next. */
uint64_t device_reset_next_look(const struct device_slot *d);
/* The device is lost: a reset that has begun to end its processes has failed. */
void device_reset_lost(struct device_slot *d);
/* Why a lost device does nothing. */
enum status device_lost_problem(const struct device_slot *d, struct problem *why);
/* The pool stops: ends a tool that runs. */
void device_reset_stop(struct device_slot *d);

/* ---- device monitor.c ---- */
/* Asks the device monitor, and waits up to DEVICE_MONITOR_ANSWER_MS. False: no device monitor, no answer in time, or a bad one (*why). */
bool device_monitor_canary(struct pool *p, struct device_slot *d, struct problem *why);
/* The same, with another limit on the wait. */
bool device_monitor_info(struct pool *p, struct device_slot *d, uint64_t patience_ms, struct device_info *out);
/* Changes a setting of the device, as pool_device_configure(). Blocks up to CANARY_DEADLINE_MS. */
enum status device_monitor_set(struct pool *p, struct device_slot *d, enum device_setting s, const struct device_setting_value *v,
                               struct problem *why);

/* ---- settings.c ---- */
/* Health thread, no lock held: the device may have lost what was set, for its last process has ended or it was reset. */
void device_settings_again(struct pool *p, struct device_slot *d);
