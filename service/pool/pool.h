/* The front-end's side of all device workers: which devices there are, a warm set per device, respawn, quarantine.
 * Thread-safe. A worker belongs to at most one session in its whole life; a used one ends and a fresh one takes its slot. */
#pragma once

#include "pool/workers/worker.h"

struct pool;

struct pool_config {
    const char *executable; /* our own, for re-exec; borrowed for the pool's life */
    struct span backends;   /* comma-separated names to use, in order, e.g. "cuda,cpu"; "auto" = every backend with a device */
    unsigned    warm_per_device;
    unsigned    workers_max;
    uint64_t    staging_bytes; /* per worker */
    uint64_t    start_deadline_ms;
    const char *const
            *device_arguments;   /* settings of backends, "--libcuda=PATH", for every worker; NULL-terminated, or NULL. Borrowed likewise */
    unsigned temperature_max_c;  /* temperature from which a device takes no new work; 0: the device's own limit */
    unsigned temperature_stop_c; /* ... and above which its work is ended; 0: a little above the device's own limit */
    bool     allow_device_settings; /* devices may be reset by nvidia_smi */
    const char *nvidia_smi;         /* the tool's path; borrowed likewise. NULL: none */
    bool        sharing;            /* workers may exchange descriptors of memory with the front-end */
    bool        allow_no_sandbox;   /* workers may start where the machine offers no sandbox */
    const char *visible_devices;    /* instead of the environment's choice of devices, until pool_count_again(); NULL or "": as that says */
    const char *mps_control;        /* path of nvidia-cuda-mps-control, beside which its server lies; borrowed likewise. NULL: none, */
    const char *mps_missing;        /* ... because: "the service was started with --mps off". Borrowed likewise */
};

enum device_state { DEVICE_HEALTHY, DEVICE_SUSPECT, DEVICE_QUARANTINED, DEVICE_HOT, DEVICE_OVERHEATED, DEVICE_RESETTING, DEVICE_LOST };
enum { DEVICE_STATES = DEVICE_LOST + 1 };

/* What is done about a device with errors, one after the other. A soft reset ends all processes of ours on it; a hard one has the
 * vendor's tool reset it then. */
enum recovery_step { RECOVERY_NONE, RECOVERY_WORKER, RECOVERY_SOFT_RESET, RECOVERY_HARD_RESET };
/* "soft_reset"; not of RECOVERY_NONE. */
const char *recovery_step_name(enum recovery_step step);

struct pool_device {
    char                        id[32]; /* "cuda:0": its backend, and its number in the order in which that backend's devices were found */
    char                        backend[16];
    enum device_state           state;
    struct device_info          info; /* as of its device monitor's start; pool_device_refresh reads live figures */
    unsigned                    workers_warm;
    unsigned                    workers_used;
    uint64_t                    restarts;
    enum worker_sandbox         sandbox;                        /* the weakest of its workers' sandboxes */
    struct device_setting_value settings[DEVICE_SETTING_COUNT]; /* as this service has set them */
};

/* Starts, in parallel, one device monitor per device (never handed out: it answers device_info and canaries) and the warm sets. Fails
 * when no device could be opened. */
enum status pool_create(struct pool **out, const struct pool_config *config, struct problem *why);
/* Kills every worker and waits for it. NULL is a no-op. */
void pool_destroy(struct pool *p);

/* Counts devices again, in the background, in a process that sees those of `visible_devices` (as of pool_config), and so do workers from
 * then on. New ones are added, behind the others; those that are not found are lost until a later count finds them. A count that fails
 * changes nothing. OUT_OF_MEMORY: none is made. */
enum status pool_count_again(struct pool *p, const char *visible_devices);

/* Devices keep their numbers, ids and places; there may be more later, never fewer. */
unsigned pool_device_count(const struct pool *p);
/* False past the end. Copies. */
bool pool_device_at(struct pool *p, unsigned i, struct pool_device *out);
/* QUARANTINED past the end. */
enum device_state pool_device_state(struct pool *p, unsigned i);
/* How many steps of recovery it has seen, and the last of them. */
uint64_t pool_device_recovery(struct pool *p, unsigned i, enum recovery_step *last);
/* Whether the last worker that was to start on it found too little of the device's memory. */
bool pool_device_wants_memory(struct pool *p, unsigned i);
/* Memory has come free there that no worker's end tells of: workers are started again without a pause. */
void pool_device_got_memory(struct pool *p, unsigned i);
/* OK; OVERLOADED while the device is too hot for new work, or being reset; or DEVICE_LOST. Cheap. */
enum status pool_device_accepts(struct pool *p, unsigned i, struct problem *why);
/* OK; or why work ends that runs on it now. DEVICE_ERROR: the hardware failed, and nothing on it can be trusted. DEVICE_OVERHEATED: it
 * must cool down; what does not compute may stay. DEVICE_RESET: its processes must end. DEVICE_LOST: it is not there any more. */
enum status pool_device_verdict(struct pool *p, unsigned i, struct problem *why);
/* Index of that id; -1 if there is none. */
int pool_device_find(struct pool *p, struct span id);
/* The device for a session. A device's id: that device. A backend's name: its healthy device with the fewest workers in use, the first
 * of equals. Empty: the same for the first backend, in order of preference, that has a healthy device. -1 if there is none. */
int pool_device_choose(struct pool *p, struct span wish);
/* Why there is none. NOT_READY: those that fit take no sessions now. DEVICE_NOT_FOUND: none fits. */
enum status pool_device_missing(struct pool *p, struct span wish, struct problem *why);
/* Whether that wish could choose device `i`, whatever the device's state. */
bool pool_device_fits(const struct pool *p, unsigned i, struct span wish);
/* As pool_device_at, with memory, clocks and sensors read now through the device monitor; falls back to the last known values. Blocks up
 * to 1 s. */
bool pool_device_refresh(struct pool *p, unsigned i, struct pool_device *out);

/* A warm worker of that device at once, else a new one within workers_max (blocks for its start), else NO_WORKER. DEVICE_ERROR: the
 * device is quarantined. DEVICE_LOST. The caller owns it until pool_give_back. */
enum status pool_take(struct pool *p, unsigned device, struct worker **out, struct problem *why);
/* As pool_take, but only a warm worker that is ready now; false when there is none, or the device is quarantined. Does not block. */
bool pool_take_ready(struct pool *p, unsigned device, struct worker **out);
/* Whether one more worker may be started now; another thread may be quicker. */
bool pool_has_room(struct pool *p);
/* Whether a quarter of the workers that there may be is free or warm, and a quarter of the device's memory free: others still get theirs. */
bool pool_has_plenty(struct pool *p, unsigned device);
/* Ends the worker; its slot is refilled in the background. Unfinished calls of the worker end with WORKER_LOST before this returns. NULL
 * is a no-op. */
void pool_give_back(struct pool *p, struct worker *w);

/* ---- workers that share an MPS server (pool/domains/) ---- */
/* NEEDLESS: contexts of the device do not take turns, or it has no such server. MISSING: *why says what is missing. */
enum pool_server_offer { SERVER_NEEDLESS, SERVER_OFFERED, SERVER_MISSING };
enum pool_server_offer pool_server_offer(struct pool *p, unsigned device, struct problem *why);
/* As pool_take(), for a worker that shares the server of that domain; it is started if there is none, up to FAULT_DOMAINS_MAX. `domain` is
 * compared, and never followed. FAULT_DOMAIN_UNAVAILABLE: the server does not start. OVERLOADED: it is full. */
enum status pool_domain_take(struct pool *p, unsigned device, const void *domain, struct worker **out, struct problem *why);
bool        pool_domain_take_ready(struct pool *p, const void *domain, struct worker **out);
/* Its server, and what waits there, ends now; the next taker finds another one. Its used workers are the caller's. Does not wait.
 * `for_good`: nobody takes from it any more. */
void pool_domain_leave(struct pool *p, const void *domain, bool for_good);
/* FAULT_DOMAIN_LOST: its server has ended by itself; pool_domain_leave() is due. */
enum status pool_domain_verdict(struct pool *p, const void *domain, struct problem *why);
/* Servers that run, those included that are ending. */
unsigned pool_servers(struct pool *p);

/* Changes a setting of the device itself, for all its users, until the service or another program changes it again; it is set anew after a
 * reset. NOT_IMPLEMENTED, INVALID_FIELD, FEATURE_DISABLED (no permission): as of device_ops.configure. INVALID_FIELD also names the range
 * that the device reports. DEVICE_BUSY: it is being reset. DEVICE_LOST. NO_WORKER: nobody can change it at the moment. Blocks up to
 * 20 s. */
enum status pool_device_configure(struct pool *p, unsigned i, enum device_setting s, const struct device_setting_value *v,
                                  struct problem *why);
/* Only the check of the range. */
enum status pool_device_setting_fits(struct pool *p, unsigned i, enum device_setting s, const struct device_setting_value *v,
                                     struct problem *why);

/* ---- resetting a device ---- */
/* It takes no new work from now on. DEVICE_BUSY: it is being reset. DEVICE_LOST. FEATURE_DISABLED, or INVALID_FIELD: it has no hard reset. */
enum status pool_reset_begin(struct pool *p, unsigned i, bool hard, struct problem *why);
/* Instead of pool_reset_go_on(): it goes on as it was. */
void pool_reset_cancel(struct pool *p, unsigned i);
/* All processes on it end from now on, those of sessions, too (pool_device_verdict). Returns what pool_reset_outcome() has to be given. */
uint64_t pool_reset_go_on(struct pool *p, unsigned i);
/* PENDING: it goes on. Else how the reset has ended: OK, the device serves again and its errors are forgotten; DEVICE_ERROR; or DEVICE_LOST.
 * Does not block. */
enum status pool_reset_outcome(struct pool *p, unsigned i, uint64_t ticket, struct problem *why);

/* For /readyz: OK, or the first device's failure. A device passes when it is healthy, answered its canary at most `fresh_ms` ago (asked
 * anew if older; blocks up to 1 s a device), and has a warm worker, or could have one. Either way *why has the detail on every device
 * that does not pass; empty: all pass. `why` may be NULL. */
enum status pool_ready(struct pool *p, uint64_t fresh_ms, struct problem *why);
