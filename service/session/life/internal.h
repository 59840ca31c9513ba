/* Sessions, their owners and their worker sessions: the objects that every other room of session/ attaches its own to, and their locks.
 *
 * Locks, outer before inner: worker_session.load_lock and submit_lock, (the locks of pool/), session.lock, registry.lock. So nothing of
 * pool/ is called with session.lock or registry.lock held, and events of calls may take both.
 *
 * A session has at most one worker session: a worker and all that lives in it. A reset or delete detaches it from the session and kills
 * the worker, which ends every call. After the last use the worker goes back to the pool. */
#pragma once

#include <pthread.h>
#include <sys/queue.h>

#include "base/digests/digest.h"
#include "base/threads/reaper.h"
#include "base/threads/waker.h"
#include "pool/pool.h"
#include "session/events/event_ring.h"
#include "session/life/device_facts.h"
#include "session/life/table.h"
#include "session/session.h"

/* All sessions of one owner. Under registry.lock. Freed when no session counts in it and nothing is charged to it. */
struct account {
    const void  *owner;
    struct table sessions;
    unsigned     count;    /* sessions, including those whose worker has not ended yet */
    unsigned     implicit; /* how many of those are implicit */
    unsigned     payers;   /* sessions and shared memory that are charged to it */
    uint64_t     memory_bytes;
    uint64_t     batch_bytes, shared_bytes; /* its part of the registry's sums */
    unsigned     shares_count;              /* its part of the registry's sum */
    uint64_t     hibernated_bytes;          /* likewise */
    LIST_ENTRY(account) listed;
};

/* How a round of a fault domain ended. */
struct domain_fall {
    const struct session *by;       /* whose loss it was, never followed; NULL: the server's */
    bool                  computed; /* it ran kernels then */
    struct problem        why;      /* its fault */
    struct problem        told;     /* that of the others */
};

/* Sessions of one caller on one device that fall together. Under registry.lock. The reaper frees it after its last session is uncounted. */
struct fault_domain {
    LIST_ENTRY(fault_domain) listed;
    struct registry   *registry;
    const void        *owner;
    char               name[CLIENT_ID_CHARS_MAX + 1];
    unsigned           device;
    bool               shared_server; /* its workers share an MPS server, which is the pool's by the address of this */
    struct session    *members[FAULT_DOMAIN_SESSIONS_MAX];
    unsigned           count;
    uint64_t           round;   /* how often it has fallen */
    bool               falling; /* the last fall has not reached all members */
    struct domain_fall fall;    /* the last one */
    struct reap_item   fall_item, end_item;
};

/* What a caller has used. Lives as long as the registry: callers are never forgotten. */
struct caller_use {
    struct caller_use *next;
    const void        *owner;
    char               name[CALLER_NAME_BYTES];
    _Atomic uint64_t   device_ns, launches, to_device_bytes, from_device_bytes;
};

struct fault_budget;

/* Code that is compiled ahead of its use: session/code/warm.c. */
struct warm_jobs {
    pthread_mutex_t lock;       /* over all below and the jobs */
    pthread_cond_t  changed;    /* monotonic clock: a thread has ended, a job was cancelled, or all are to stop */
    TAILQ_HEAD(, warm_job) all; /* that can be found, oldest first */
    unsigned threads;
    bool     stopping;
};

/* Freed memory of one device that may not be available yet. */
struct pending_free {
    unsigned leaving;  /* workers that were killed and still exist */
    uint64_t bytes;    /* upper bound of what was freed lately */
    uint64_t until_ns; /* until then, memory of ended workers may not be available yet */
    uint64_t count;    /* counts all frees */
    unsigned trims;    /* workers that were asked to give back cached memory and have not answered */
};

/* Why a session is not listed any more. */
enum session_end {
    SESSION_GOES_ON,
    SESSION_DELETED,
    SESSION_REMOVED,     /* by an operator */
    SESSION_IDLE,        /* its idle time was over */
    SESSION_LEASE_ENDED, /* nobody renewed its lease */
    SESSION_AGED,        /* its lifetime was over */
    SESSION_NOT_STARTED,
    SESSION_ABANDONED, /* the client of its run is gone */
    SESSION_MOVED,     /* it goes on on another node */
    SESSION_SHUT_DOWN, /* with the service */
    SESSION_OF_BEFORE, /* with another process of the service, before this one */
};

struct session_ending {
    enum session_end how;
    uint64_t         limit_s; /* what was over; 0: no time was */
    uint64_t         wall_ns;
    uint64_t         generation; /* the last one that it had under a name of its caller's; 0: no other session can have its id */
};

struct ended_sessions;

/* A session that is moving to another node, or the copy of one. Under session.lock. */
struct session_move {
    char     id[MOVE_SECRET_BYTES]; /* names the move: the SHA-256 of the secret, in hex */
    char     secret[MOVE_SECRET_BYTES];
    uint64_t until_ns, hold_ns; /* nothing changes the session until then; 0: it is not moving */
    bool     sent;              /* the move's snapshot, to its last byte */
    bool     leaving;           /* nobody uses it any more */
};

struct registry {
    struct registry_config config;
    char                   node[NODE_NAME_CHARS_MAX + 1];
    char                   in_ids[NODE_NAME_CHARS_MAX + 2]; /* "" or "NODE_" */
    char                   tag[NODE_TAG_CHARS + 1];         /* of the ids that this process makes */
    uint64_t               started_wall_ns;
    pthread_mutex_t        lock;
    pthread_rwlock_t       lookup_lock; /* guards what session_borrow() reads; for writing, `lock` is held, too. Inner to `lock` */
    pthread_cond_t         janitor_kick;
    pthread_t              janitor;
    bool                   janitor_stop, draining;
    LIST_HEAD(, account) accounts;
    _Atomic bool           makes_way;  /* any session hibernates for another one, however short its idle time */
    struct ended_sessions *ended;      /* ended.c */
    LIST_HEAD(, moved_session) moved;  /* moved.c */
    uint64_t            moved_look_ns; /* the next time; the janitor's */
    struct caller_use  *uses;          /* use.c */
    unsigned            count;
    struct reaper       submitter;       /* submits what the events of calls make possible; never waits */
    struct reaper       reaper;          /* ends worker sessions whose workers are gone, and frees shared memory */
    unsigned            closing_count;   /* detached worker sessions that have not ended */
    pthread_cond_t      closing_changed; /* also signals changes of pending_free */
    struct pending_free pending_free[DEVICES_MAX];
    uint64_t            hibernated_bytes; /* kept of sessions that hibernate */
    unsigned            runners;          /* threads that run asynchronous batches, or put sessions to sleep and wake them */
    pthread_cond_t      runner_left;
    uint64_t            shared_bytes; /* memory shared with clients, including what is still to be freed */
    unsigned            shares_count;
    LIST_HEAD(, fault_domain) domains;
    unsigned             domains_count;
    struct fault_budget *budgets;    /* of callers whose kernels have faulted lately */
    _Atomic bool         any_budget; /* budgets is not empty; written under lock */
    LIST_HEAD(, run_place) runs;     /* run_place.c */
    uint64_t         batch_bytes;    /* host memory of asynchronous batches and their results, over all sessions */
    struct warm_jobs warm;
};

struct stream {
    char     name[STREAM_NAME_BYTES];
    uint32_t number;
};

LIST_HEAD(launch_list, launch);
TAILQ_HEAD(launch_queue, launch);
LIST_HEAD(transfers, transfer);
TAILQ_HEAD(batch_job_queue, batch_job);

struct temp_buffer;

/* Whether the large buffers of a worker session are on the device: session/hibernate/. */
enum sleep { SLEEP_NONE, SLEEP_FALLING, SLEEP_ASLEEP, SLEEP_WAKING };
enum { SLEEPS = SLEEP_WAKING + 1 };
/* What a thread does about it: it falls asleep because others want its memory, or because its caller wants it so; it wakes. */
enum sleep_step { SLEEP_STEP_NONE, SLEEP_STEP_FALL, SLEEP_STEP_FALL_ASKED, SLEEP_STEP_WAKE };
struct hibernation;

struct worker_session {
    struct session     *session;
    struct worker      *worker; /* valid while uses > 0 */
    struct device_facts facts;
    pthread_mutex_t     load_lock;   /* serializes sending images to the worker */
    pthread_mutex_t     submit_lock; /* keeps launches in the order in which their arguments were packed */

    /* under session.lock */
    unsigned            refs; /* of this struct */
    _Atomic unsigned    uses; /* threads inside the worker's calls, and unfinished calls; raised with session.lock held */
    bool                closed;
    bool                lost;    /* ended by a fault */
    bool                suspect; /* lost when its fault domain had fallen, by a kernel's fault that may be its own */
    uint64_t            round;   /* of its fault domain */
    uint64_t            lost_ns;
    struct table        buffers, textures, modules, launches;
    uint64_t            names_ended;   /* of buffers, textures and modules: while none ends, a name that was found means the same */
    struct table        builtins;      /* modules of built-in kernels, by "name/dtype"; clients cannot list or name them */
    uint64_t            builtins_used; /* how often one of them was used */
    struct stream       streams[STREAMS_PER_SESSION_MAX];
    unsigned            streams_count;
    uint64_t            code_bytes; /* of all modules, in host memory */
    struct launch_list  unfinished; /* all queued and running launches */
    unsigned            unfinished_count;
    unsigned            in_ring;
    uint64_t            last_event_ns; /* last start or end of a launch */
    uint64_t            busy_since_ns; /* the janitor has seen the worker busy ever since */
    struct call         ping;          /* asks a worker that starts none of its launches whether it answers */
    bool                ping_due, ping_open;
    uint64_t            pinged_ns;                                 /* of the last ping */
    _Atomic uint64_t    launches_named;                            /* by us: their ids ascend, so that the table takes them at its end */
    uint64_t            launch_number;                             /* last one assigned */
    uint64_t            events_taken[EVENTS_PER_SESSION_MAX / 64]; /* bitmap of the events that batches use */
    uint32_t            event_number;                              /* last one assigned; 0 is never assigned */
    struct launch_queue backlog;                                   /* launches that are not yet in the ring, oldest first */
    struct launch      *outputs;  /* finished launches whose output is still to be fetched; each holds a use */
    struct launch_queue finished; /* oldest first */
    unsigned            finished_count;
    uint64_t            output_bytes; /* output kept in finished launches */
    struct module      *unloads;      /* modules to be unloaded */
    struct transfers    transfers;
    unsigned            batches;      /* that are open: from their making to their end */
    _Atomic unsigned    reads;        /* of the uses, those of transfers that read */
    struct table        temp_buffers; /* buffers of batches and programs; clients never learn their ids */
    struct table        programs;
    struct temp_buffer *abandoned;    /* of them, those to be freed */
    uint64_t            freed_bytes;  /* of memory that its worker may keep for itself */
    uint64_t            quota_bytes;  /* what its buffers count in session.memory_bytes; all is given back when it is closed */
    unsigned            shares_count; /* of buffers */
    enum sleep          sleep;        /* NONE, or nothing but a thread of session/hibernate/ uses it */
    struct hibernation *hibernation;  /* what has left the device, owned; NULL: nothing */

    struct reap_item submit_item; /* for registry.submitter; holds a reference and a pin while it is posted */
    struct reap_item end_item;    /* for registry.reaper */
    struct waker     end_waker;   /* posts end_item when the worker of a detached worker session is gone */
    _Atomic bool     worker_gone;
    bool             end_posted;
};

/* Oldest first. */
struct batch_job_list {
    struct batch_job_queue jobs;
    unsigned               count;
};

/* A session's batches in the background. Under session.lock. */
struct result_store {
    struct table          jobs; /* all that can be found */
    struct batch_job_list queued, finished;
    uint64_t              queued_bytes; /* of those that wait or run */
    uint64_t              kept_bytes;   /* of results, those included that are not found any more but still being read */
    bool                  running;      /* a runner thread is at work */
};

struct session {
    struct entry            entry;
    struct registry        *registry;
    struct account         *account; /* until its quota is released */
    struct account         *payer;   /* the same account, until the session is freed */
    struct caller_use      *use;     /* its caller's, once it is listed */
    unsigned                device;
    char                    device_id[32];
    bool                    memcheck;
    bool                    named;     /* the client chose its id */
    bool                    implicit;  /* not listed, and not counted in the tenant's number of sessions */
    atomic_bool             restoring; /* its snapshot is being read: only the request that restores it may use it */
    atomic_bool             pending;   /* ... and all of it is there, but for the confirmation of the move that it came by */
    char                    domain_name[CLIENT_ID_CHARS_MAX + 1]; /* "": it stands alone */
    bool                    shared_server, server_required;       /* its device's server can be had; the domain must have it */
    struct fault_domain    *domain; /* from its listing until it is uncounted; then written under lock and registry.lock. NULL: none */
    uint64_t                tenant_memory_max;
    uint64_t                max_lifetime_s;
    uint64_t                created_wall_ns, created_ns;
    struct session_restored restored;
    char                    tenant_name[CALLER_NAME_BYTES];
    unsigned char           spec_digest[SHA256_BYTES];

    _Atomic unsigned pins;       /* one is the registry's while the session is listed; the last unpin frees the session */
    _Atomic unsigned observers;  /* pins that do not count as use */
    _Atomic unsigned looks;      /* pins of registry_each() */
    _Atomic uint64_t used_ns;    /* end of the last use */
    _Atomic uint64_t renewed_ns; /* end of the last request, heartbeats included */
    /* under registry.lock */
    uint64_t              idle_timeout_s;
    uint64_t              lease_s; /* 0: no lease */
    bool                  listed;  /* in its account's table: not ended yet */
    struct session_ending end;     /* set when it is unlisted */
    struct moved_session *moved;   /* what is remembered of it when it ends as SESSION_MOVED; owned until then */

    pthread_mutex_t  lock;
    pthread_cond_t   changed;    /* signals any change below, or in the worker session */
    _Atomic uint64_t generation; /* raised under lock, or before anybody else knows the session */
    /* under lock */
    enum session_state     state;
    uint64_t               epoch;
    uint64_t               buffers_made;
    struct worker_session *worker_session; /* NULL while starting or closing, or when a reset got no worker */
    bool                   ending;         /* closing, and not completely released yet */
    unsigned               closing;        /* former worker sessions that have not ended */
    struct problem         fault;
    struct label           labels[LABELS_MAX];
    unsigned               labels_count;
    double                 device_time_us;
    _Atomic uint64_t       launches_finished; /* those of batches included */
    uint64_t               memory_bytes;
    bool                   memory_low;      /* more than MEMORY_LOW_PERCENT of the limit is in use, as last told in an event */
    uint64_t               memory_limit;    /* MEMORY_LIMIT_NONE: none */
    double                 memory_fraction; /* what the limit was made of; 0: of nothing */
    uint64_t               pool_bytes_max;  /* MEMORY_LIMIT_NONE: none */
    struct result_store    batches;
    struct event_ring      events;
    uint64_t               batches_published; /* those that had launches */
    unsigned               snapshots;         /* that are being taken: nothing is changed meanwhile */
    uint64_t               changes;           /* counts what was admitted to change it */
    uint64_t               kept_changes;      /* as of the snapshot that the service keeps of it, */
    uint64_t               kept_wall_ns;      /* taken then; 0: there is none */
    enum device_state      device_state;      /* as last told in an event */
    uint64_t               device_steps;      /* of its recovery, likewise */
    bool                   budget_spent;      /* ... */
    struct session_move    move;
    struct waitlist        sleepers;          /* requests that wait until the session is awake or asleep */
    enum sleep_step        sleep_step;        /* of the thread that is at it */
    unsigned               awake_for;         /* requests that need it awake until they end */
    uint64_t               sleep_failures[2]; /* of falling asleep, and of waking */
    uint64_t               sleep_failed_ns;   /* the last one, or when it was given up; 0: never */
    struct problem         sleep_problem;     /* of the last one */
};

/* ---- registry.c ---- */
/* Names a new object: as entry_name(), but what the service chooses has the node's name and the process's tag in it: KIND_NODE_RANDOM. */
enum status registry_name(const struct registry *r, struct entry *e, struct span id, char kind, struct problem *why);
/* As entry_name(), for an object of the session; one that is being restored may have an id that a service made, too. */
enum status session_name_object(const struct session *s, struct entry *e, struct span id, const char *prefix, struct problem *why);
/* Its id for clients: with the node before a name that the client chose. */
void session_shown_id(const struct session *s, char out[ID_BYTES]);
/* Adds a pin; the caller already has one. */
void session_pin(struct session *s);
/* The last unpin frees the session. `used` restarts idle time and lease. */
void session_unpin(struct session *s, bool used);
/* It is whole: tells it to whoever keeps names. Pinned, no lock held. */
/* `anew`: what was kept of an earlier session of that name is not this one's. */
void registry_tell_made(const struct session *s, bool anew);
/* Hides the session from all look-ups and remembers how it ended; the caller must then close it. False: somebody else has unlisted it. */
bool registry_unlist(struct session *s, enum session_end how);
/* As registry_unlist, but only if lifetime, lease or idle time is over at `now`. The last two never are while a request is in the session. */
bool registry_unlist_expired(struct session *s, uint64_t now);
/* Looks at all sessions that are listed now, each pinned meanwhile. No lock held. */
void registry_each(struct registry *r, void (*look)(struct session *s, void *context), void *context);
/* Changes how many of the pins do not count as use. */
void registry_observe(struct session *s, int change);
/* The worker is back: the session no longer counts. */
void registry_uncount(struct session *s);
/* Removes one payer. No lock held. */
void account_leave(struct registry *r, struct account *a);
/* NULL: it has no session. With registry.lock held. */
struct account *account_find(const struct registry *r, const void *owner);
/* Whether a look-up finds that session. With registry.lock held. */
bool registry_has(const struct registry *r, const void *owner, struct span id);
/* Lists a new session, pinned once, by its id. If the id exists: that session, pinned, with *created = false. */
enum status registry_enlist(struct registry *r, const struct tenant *t, struct session *fresh, struct session **out, bool *created,
                            struct problem *why);

/* A detached thread that the end of the registry waits for, and that calls the second at its end, as its last touch of it. False: none could be
 * started. registry.lock not held. */
bool registry_runner_start(struct registry *r, void *(*run)(void *), void *argument);
void registry_runner_leave(struct registry *r);

/* ---- run_place.c ---- */
/* How many places the owner's runs occupy. With registry.lock held. */
unsigned runs_taken(const struct registry *r, const void *owner);

/* ---- ended.c ---- how sessions ended, remembered for their owners */
/* Of a session that is unlisted now, with an id that requests can name. Without memory for it nothing is remembered. With registry.lock held. */
void ended_remember(struct registry *r, const void *owner, const char *id, const struct session_ending *end);
/* A session that is made anew under that name begins above this generation, so that requests for the earlier one are not done in it. 0: there was
 * none. With registry.lock held. */
uint64_t ended_generation(const struct registry *r, const void *owner, struct span id);
/* SESSION_NOT_FOUND, with how the owner's session of that id ended if that is remembered. registry.lock not held. */
enum status ended_explain(struct registry *r, const void *owner, struct span id, struct problem *why);
/* The same for an unlisted session at hand. registry.lock not held; session.lock may be. */
enum status ended_problem(struct session *s, struct problem *why);
void        ended_finish(struct registry *r);
/* ---- moved.c ---- sessions that have gone to another node, remembered for their owners */
struct moved_session;
/* For moved_remember(), else for free(). OUT_OF_MEMORY; QUOTA_EXCEEDED: too many of the owner's are remembered. registry.lock not held. */
enum status moved_make(struct registry *r, const struct tenant *t, const struct session_moved *what, struct moved_session **out,
                       struct problem *why);
/* Takes it over, and forgets what was remembered of that id. With registry.lock held. */
void moved_remember(struct registry *r, struct moved_session *m);
/* Forgets those that are told no longer, and tells registry_config.moved_over; now and then. For the janitor. */
void moved_look(struct registry *r, uint64_t now);
/* OK: the owner's session of that id has not moved, or too long ago; else SESSION_MOVED. With registry.lock held. */
enum status moved_check(struct registry *r, const void *owner, struct span id, struct problem *why);
/* Whether the session moves to another node, so that nothing changes it. With session.lock held. */
bool session_moving_locked(struct session *s);
/* SESSION_MOVING. */
enum status moving_problem(struct problem *why);
/* Why a session that is restoring cannot be used. Neither lock held. */
enum status restoring_problem(struct session *s, struct problem *why);
void        moved_finish(struct registry *r);

/* For work that ends with its session. */
const char *ended_text(enum session_end how);

/* ---- use.c ---- what callers have used */
/* The caller's; NULL: no memory. With registry.lock held. */
struct caller_use *use_of(struct registry *r, const struct tenant *t);
/* Device time of a session that is listed or was. With session.lock held. */
void use_add_time(struct session *s, double us);
/* Finished launches. Any thread. */
void use_add_launches(struct session *s, unsigned count);
/* Bytes moved to or from the device, in the service's metrics, too. Any thread. */
void use_add_bytes(struct session *s, bool to_device, uint64_t bytes);
void uses_finish(struct registry *r);

/* ---- budget.c ---- */
/* RATE_LIMITED while the owner's kernels have faulted too often on that device. With registry.lock held. */
enum status budget_check(struct registry *r, const void *owner, unsigned device, struct problem *why);
/* The same for a session's owner and device. registry.lock not held; session.lock may be. */
enum status budget_admits(struct session *s, struct problem *why);
/* Whether budget_admits() would refuse; counts no refusal. No lock held but session.lock. */
bool budget_is_spent(struct session *s);
/* Removes forgotten faults, and logs which callers may work again. No lock held. */
void budgets_look(struct registry *r);
/* A session was lost, or a compilation for it was stopped. Counts what its owner may have done. */
void budget_charge(struct session *s, enum status fault);
/* The two for work of a caller that has no session. No lock held. */
enum status budget_admits_caller(struct registry *r, const struct tenant *t, unsigned device, struct problem *why);
void budget_charge_caller(struct registry *r, const struct tenant *t, const struct pool_device *device, unsigned number, enum status fault);
/* Whether new kernels may be given to its device now: it is not too hot, and its owner has not had too many faults there. */
enum status session_admits_work(struct session *s, struct problem *why);
void        budgets_finish(struct registry *r);

/* ---- domain.c ---- */
/* Before a new session is listed: it joins the domain of its name, or makes it. With registry.lock held. */
enum status domain_join(struct registry *r, const void *owner, struct session *fresh, struct problem *why);
/* With registry.lock held. */
void domain_leave(struct session *s);
/* How many of them the owner has. With registry.lock held. */
unsigned domains_of(const struct registry *r, const void *owner);
/* The device of the owner's domain of that name; -1: there is none. No lock held. */
int domain_device(struct registry *r, const void *owner, struct span name);
/* With registry.lock held. */
void domain_info_of(const struct session *s, struct session_info *out);
/* What the pool knows the server by that the session's workers share; NULL: they share none. */
const void *domain_server(const struct session *s);
/* Waits until no fall is under way, and returns the round: that of a worker that is taken now. No lock held. */
uint64_t domain_settle(struct session *s);
/* The worker session is lost for that reason: what it is to its session, which may be in *own. The first of a round makes all others fall. With
 * session.lock held. */
const struct problem *domain_lose(struct worker_session *c, const struct problem *why, struct problem *own);
/* Its worker is about to be killed: if it runs kernels, that is a fault to the others. With session.lock held. */
void domain_detach(struct worker_session *c, const char *reason);
/* The session has got a worker session: loses it if its round has ended meanwhile. No lock held. */
void domain_check(struct session *s);
/* Looks whether the server has ended. No lock held. */
void domain_look(struct session *s);

/* ---- quota.c ---- under session.lock */
/* QUOTA_EXCEEDED names the limit, the session's first, then the tenant's; followers of events are told. SESSION_BUSY: the worker session was closed meanwhile. */
enum status quota_reserve(struct worker_session *c, uint64_t bytes, struct problem *why);
/* Tells followers of events when little is left below the session's limit. */
void quota_look(struct session *s);
/* Does nothing for a closed worker session: quota_release_all() has done it. */
void quota_release(struct worker_session *c, uint64_t bytes);
/* The caller closes the worker session in the same critical section. */
void quota_release_all(struct worker_session *c);

/* ---- worker_session.c ---- */
void device_facts_of(const struct device_info *info, struct device_facts *out);
/* Takes over the worker. */
enum status worker_session_create(struct session *s, struct worker *w, const struct pool_device *device, struct worker_session **out);
/* Wakes what waits, kills the worker and releases the quota. Does not wait. The worker session has left its session, and session.closing
 * counts it. When the worker is gone and nobody uses it, the reaper gives it back to the pool and drops the session's reference, maybe
 * before this returns. */
void worker_session_detach(struct worker_session *c, const char *reason);
/* The session's worker session, in use until worker_session_leave; or why it cannot be used. */
enum status worker_session_enter(struct session *s, struct worker_session **out, struct problem *why);
/* The same for what changes the session or its memory: SESSION_BUSY, too, while a snapshot of it is taken. */
enum status worker_session_enter_to_change(struct session *s, struct worker_session **out, struct problem *why);
/* Begins a use of a given worker session; false when it was closed. Needs a reference. */
bool worker_session_use(struct worker_session *c);
void worker_session_leave(struct worker_session *c);
/* As worker_session_leave, for a caller with a reference and a pin. Takes a lock only for the last use when the worker is gone. */
void worker_session_leave_referenced(struct worker_session *c);
/* What a call makes of its end, with session.lock held. */
typedef void call_ended(struct worker_session *c, const struct call *call, void *what);
/* Submits a call whose answer nobody waits for; it is a use of its own. `ended`: NULL allowed. False: it was not submitted. Needs a
 * reference; session.lock is not held. */
bool worker_session_call_async(struct worker_session *c, enum message m, const void *body, call_ended *ended, void *what);
/* No lock held. */
bool worker_session_is_closed(struct worker_session *c);
/* As worker_session_leave, after a call with this outcome; a fault marks the session. Returns st. */
enum status worker_session_leave_with(struct worker_session *c, enum status st, const struct problem *why);
/* Waits until all launches submitted so far have reached the worker. Fails when the worker session ended. Needs a use. */
enum status worker_session_wait_order(struct worker_session *c, struct problem *why);
/* Waits for staging memory. Needs a use. */
enum status worker_session_staging(struct worker_session *c, uint64_t bytes, struct slice *out, struct problem *why);
/* Why there is none, by what taking it answered. */
enum status worker_session_no_staging(enum status st, struct problem *why);

/* ---- with session.lock held ---- */
enum status session_usable_locked(struct session *s, struct problem *why);
/* As worker_session_enter_to_change(). */
enum status session_changeable_locked(struct session *s, struct problem *why);
void        worker_session_ref(struct worker_session *c);
void        worker_session_unref(struct worker_session *c);
void        worker_session_unuse(struct worker_session *c);
/* Why an operation in progress cannot go on. */
enum status worker_session_still_usable(const struct worker_session *c, struct problem *why);
/* The outcome of a call, seen in its event: marks the session when it was a fault. */
void worker_session_check_call(struct worker_session *c, const struct call *call);
/* A call that could not be submitted: the worker has ended, of which we may be the first to hear, unless its ring is full. */
enum status worker_session_not_submitted(struct worker_session *c, enum status st, struct problem *why);
/* Posts c to the submitter. With session.lock held. */
void submit_later(struct worker_session *c);

/* ---- janitor.c ---- ends sessions that are idle or too old, and launches that exceed their deadline. One thread per registry. */
bool janitor_start(struct registry *r);
void janitor_stop(struct registry *r);
/* One round, as if the monotonic clock were at `now`. */
void janitor_sweep(struct registry *r, uint64_t now);
/* Asks the worker whether it still answers, if that is due. Called by the submitter, inside worker_session_use(). */
void janitor_ping(struct worker_session *c);

/* ---- implicit.c ---- */
/* Id of the session of the run at that place (run_place.h), written to `id`. */
struct span implicit_run_id(unsigned number, char id[ID_BYTES]);
/* Creates the session if there is none, or again if it faulted. Borrowed. Blocks. */
enum status implicit_session_of_run(struct registry *r, const struct tenant *t, const struct session_spec *spec, struct session **out,
                                    struct problem *why);

/* ---- session.c ---- */
/* As clients see it. With session.lock held. */
enum session_state session_state_shown(const struct session *s);
/* As session_reset, but only if the session faulted. A usable session stays as it is. */
enum status session_revive(struct session *s, struct problem *why);
/* Ends the session, unless somebody else does. */
void session_end(struct session *s, enum session_end how);
/* The only function that changes the state. Records the event and wakes waiters; set fault and worker session before. With session.lock
 * held. */
void session_set_state(struct session *s, enum session_state next);
/* Releases worker, memory and quota, after registry_unlist(). Blocks. */
void session_close(struct session *s);
/* Unlists the session and closes it without waiting, unless it is starting or somebody else closes it: for that reason, or, with SESSION_GOES_ON, if
 * lifetime, lease or idle time is over at `now`. */
void session_close_later(struct session *s, enum session_end how, uint64_t now);
/* Uncounts a closing session once its last former worker session has ended. No lock held. */
void session_close_finish(struct session *s);

/* ---- stream.c ---- the stream's number; the stream is created at its first use. Needs a use of the worker session. */
enum status stream_number(struct worker_session *c, struct span name, uint32_t *number, struct problem *why);
/* False when the stream does not exist yet. With session.lock held. */
bool stream_known(const struct worker_session *c, struct span name, uint32_t *number);
