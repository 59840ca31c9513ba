/* Sessions, their owners and their workers' sides: the objects that every other room of session/ hangs its own on, and their locks.
 *
 * Locks, outer before inner: worker_session.load_lock and submit_lock, (the locks of pool/), session.lock, registry.lock.
 * So nothing of pool/ is called with session.lock or registry.lock held, and events of calls may take both.
 *
 * A session has at most one worker session: a worker and all that lives in it. A reset or delete takes it away from the
 * session and closes it: the worker is killed, which ends every call; when the last use is over the worker goes back. */
#ifndef GPUREST_SESSION_LIFE_INTERNAL_H
#define GPUREST_SESSION_LIFE_INTERNAL_H

#include <pthread.h>

#include "base/digest.h"
#include "base/reaper.h"
#include "base/waker.h"
#include "pool/pool.h"
#include "session/events/event_ring.h"
#include "session/life/device_facts.h"
#include "session/life/table.h"
#include "session/session.h"

/* All sessions of one owner. Under registry.lock. Lives while it counts a session, or somebody pays by it. */
struct account {
    const void     *owner;
    struct table    sessions;
    unsigned        count;  /* those whose worker is not yet given back included */
    unsigned        hidden; /* of them */
    unsigned        payers; /* sessions and shared memory that still exist */
    uint64_t        memory_bytes;
    uint64_t        batch_bytes, shared_bytes; /* of the registry's */
    unsigned        shares_count;              /* ... */
    struct account *next;
};

struct fault_budget;
struct run_place;

/* Of a device: memory that was given up and may not be free again yet. */
struct pending_free {
    unsigned leaving;  /* workers that were ended and are not gone yet */
    uint64_t bytes;    /* given up lately, at most */
    uint64_t until_ns; /* what came from workers that are gone may be missing until then */
    uint64_t count;    /* of givings-up, ever */
    unsigned trims;    /* workers that were asked for what they keep and have not answered */
};

struct registry {
    struct registry_config config;
    char                   node[ID_BYTES];
    pthread_mutex_t        lock;
    pthread_rwlock_t       lookup_lock;  /* over what session_borrow() reads; written with `lock` held, too. Inner to it */
    pthread_cond_t         janitor_kick; /* of the monotonic clock */
    pthread_t              janitor;
    bool                   janitor_stop, draining;
    struct account        *accounts;
    unsigned               count;
    struct reaper          submitter;       /* submits what the events of calls make possible; waits for nobody */
    struct reaper          reaper;          /* ends worker sessions whose workers are gone, and shared memory */
    unsigned               closing_count;   /* worker sessions that were detached and have not ended */
    pthread_cond_t         closing_changed; /* of the monotonic clock; pending_free changed, too */
    struct pending_free    pending_free[DEVICES_MAX];
    unsigned               runners; /* threads that do asynchronous batches */
    pthread_cond_t         runner_left;
    uint64_t               shared_bytes; /* of memory shared with clients, what is still to be given back included */
    unsigned               shares_count;
    struct fault_budget   *budgets;     /* of those whose kernels have faulted lately */
    _Atomic bool           any_budget;  /* written under lock: there are some */
    struct run_place      *runs;        /* run_place.c */
    uint64_t               batch_bytes; /* host memory of asynchronous batches and their results, all sessions together */
};

struct stream {
    char     name[STREAM_NAME_BYTES];
    uint32_t number;
};

struct launch;
struct module;
struct temp_buffer;
struct transfer;

struct worker_session {
    struct session     *session;
    struct worker      *worker; /* valid while uses > 0 */
    struct device_facts facts;
    pthread_mutex_t     load_lock;   /* one image at a time is sent to the worker */
    pthread_mutex_t     submit_lock; /* keeps launches in the order in which their arguments were packed */

    /* under session.lock */
    unsigned            refs; /* of this struct */
    _Atomic unsigned    uses; /* threads inside the worker's calls, and calls not yet done; begun with session.lock held */
    bool                closed;
    bool                lost; /* a fault ended it */
    uint64_t            lost_ns;
    struct table        buffers, modules, launches;
    struct table        builtins;      /* modules of built-in kernels, by "name/dtype": nobody lists or names them */
    uint64_t            builtins_used; /* times that one of them was asked for */
    struct stream       streams[STREAMS_PER_SESSION_MAX];
    unsigned            streams_count;
    uint64_t            code_bytes; /* of all modules, as kept here */
    struct launch      *unfinished; /* all queued and running ones */
    unsigned            unfinished_count;
    unsigned            in_ring;
    uint64_t            last_event_ns; /* a launch started or ended */
    uint64_t            busy_since_ns; /* as the janitor sees it: since then the worker has never been seen without something to do */
    struct call         ping;          /* asked of a worker that starts nothing of what it was given */
    bool                ping_due, ping_open;
    uint64_t            pinged_ns;                                 /* the last time */
    uint64_t            launch_number;                             /* the last one given */
    uint64_t            events_taken[EVENTS_PER_SESSION_MAX / 64]; /* places of events that batches use */
    uint32_t            event_number;                              /* the last one given; never 0 when given */
    struct launch      *backlog, *backlog_last;                    /* not yet in the ring, oldest first */
    struct launch      *outputs;                                   /* ended, their text is to be fetched; each holds a use */
    struct launch      *finished, *finished_last;                  /* oldest first */
    unsigned            finished_count;
    uint64_t            output_bytes; /* kept in finished ones */
    struct module      *unloads;      /* to be unloaded */
    struct transfer    *transfers;
    struct table        temp_buffers; /* buffers of batches and programs, by ids that nobody is told */
    struct table        programs;
    struct temp_buffer *abandoned;    /* of them, those to be freed */
    uint64_t            freed_bytes;  /* of memory that its worker may keep for itself */
    uint64_t            quota_bytes;  /* what its buffers count in session.memory_bytes; all is given back when it is closed */
    unsigned            shares_count; /* of buffers */

    struct reap_item submit_item; /* for registry.submitter; while it is posted it holds a reference and a pin */
    struct reap_item end_item;    /* for registry.reaper */
    struct waker     end_waker;   /* of a detached one: the worker is gone */
    _Atomic bool     worker_gone;
    bool             end_posted;
};

/* Oldest first. */
struct batch_job_list {
    struct batch_job *first, *last;
    unsigned          count;
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
    struct entry     entry;
    struct registry *registry;
    struct account  *account; /* until its quota is released */
    struct account  *payer;   /* the same, as long as the session exists */
    unsigned         device;
    char             device_id[32];
    bool             memcheck;
    bool             hidden; /* not listed, not counted against the tenant's number of sessions */
    uint64_t         memory_limit;
    uint64_t         tenant_memory_max;
    uint64_t         max_lifetime_s;
    uint64_t         created_wall_ns, created_ns;
    char             tenant_name[CALLER_NAME_BYTES];
    unsigned char    spec_digest[SHA256_BYTES];

    _Atomic unsigned pins;      /* one is the registry's, as long as it is listed; the last one frees the session */
    _Atomic unsigned observers; /* of them, those that do not count as use */
    _Atomic uint64_t used_ns;   /* end of the last use */
    /* under registry.lock */
    uint64_t idle_timeout_s;
    bool     listed; /* in its account's table: nobody deletes it yet */

    pthread_mutex_t lock;
    pthread_cond_t  changed; /* anything below, or in the worker session, that somebody may wait for */
    /* under lock */
    enum session_state     state;
    uint64_t               generation;
    uint64_t               epoch;
    uint64_t               buffers_made;
    struct worker_session *worker_session; /* NULL while starting, when closing, or when a reset got no worker */
    bool                   ending;         /* closing, and some of it is still there */
    unsigned               closing;        /* former worker sessions whose workers are not yet back */
    struct problem         fault;
    struct label           labels[LABELS_MAX];
    unsigned               labels_count;
    double                 device_time_us;
    uint64_t               memory_bytes;
    struct result_store    batches;
    struct event_ring      events;
    uint64_t               batches_published; /* those that had launches */
    enum device_state      device_state;      /* as last told in an event */
    bool                   budget_spent;      /* ... */
};

/* ---- registry.c ---- */
/* For who has it pinned. */
void session_pin(struct session *s);
/* The last one frees the session. `used`: the idle time starts anew. */
void session_unpin(struct session *s, bool used);
/* False when somebody else already did: from then on nobody finds the session, and the caller must close it. */
bool registry_unlist(struct session *s);
/* As registry_unlist, only when nobody but the caller has it pinned and its idle time is over at `now`. */
bool registry_unlist_idle(struct session *s, uint64_t now);
/* All sessions, each pinned; an owned array, NULL when there are none. */
struct session **registry_all(struct registry *r, unsigned *count);
/* More or fewer pins that are no use. */
void registry_observe(struct session *s, int change);
/* The worker is back: the session counts no longer. */
void registry_uncount(struct session *s);
/* One payer less. No lock held. */
void account_leave(struct registry *r, struct account *a);
/* With registry.lock held: somebody would find that session. */
bool registry_has(const struct registry *r, const void *owner, struct span id);
/* Puts a new session, pinned once, under its id; or finds the one of that id, pinned, with *created = false. */
enum status registry_enlist(struct registry *r, const struct tenant *t, struct session *fresh, struct session **out, bool *created,
                            struct problem *why);

/* ---- run_place.c ---- */
/* With registry.lock held: places that runs of that owner have. */
unsigned runs_taken(const struct registry *r, const void *owner);

/* ---- budget.c ---- */
/* Under registry.lock. OK, or RATE_LIMITED while the owner's kernels have faulted too often on that device. */
enum status budget_check(struct registry *r, const void *owner, unsigned device, struct problem *why);
/* Without it; session.lock may be held. */
enum status budget_admits(struct session *s, struct problem *why);
/* Whether it would refuse; nobody was refused. No lock but session.lock. */
bool budget_is_spent(struct session *s);
/* Forgets, and tells the log whose is free again. No lock held. */
void budgets_look(struct registry *r);
/* A session was lost, or a compilation for it was stopped. Counts what its owner may have done. */
void budget_charge(struct session *s, enum status fault);
/* Whether new kernels may be given to its device now: it is not too hot, and its owner has not had too many faults there. */
enum status session_admits_work(struct session *s, struct problem *why);
void        budgets_finish(struct registry *r);

/* ---- quota.c ---- under session.lock */
/* QUOTA_EXCEEDED names the limit: of the session, then of the tenant. SESSION_BUSY when the worker session was closed meanwhile. */
enum status quota_reserve(struct worker_session *c, uint64_t bytes, struct problem *why);
/* Of a closed worker session: nothing, that was done at once. */
void quota_release(struct worker_session *c, uint64_t bytes);
/* For who closes the worker session, in the same critical section. */
void quota_release_all(struct worker_session *c);

/* ---- worker_session.c ---- */
/* A worker session on a worker that it takes over. */
enum status worker_session_create(struct session *s, struct worker *w, const struct pool_device *device, struct worker_session **out);
/* Of one that has left its session (session.closing counts it): what waits is woken, the worker is killed, the quota is free again. Does not wait.
 * When the worker is gone and nobody is in it, the reaper gives it back to the pool and drops the session's reference, maybe before this returns. */
void worker_session_detach(struct worker_session *c, const char *reason);
/* The session's worker session in use until worker_session_leave; or why it cannot be used. */
enum status worker_session_enter(struct session *s, struct worker_session **out, struct problem *why);
/* The same for a worker session that is known; false when it was closed. Needs a reference. */
bool worker_session_use(struct worker_session *c);
void worker_session_leave(struct worker_session *c);
/* As worker_session_leave, for who holds a reference of c and a pin: takes no lock but for the last one in it when the worker is gone. */
void worker_session_leave_referenced(struct worker_session *c);
/* For a call to the worker whose answer nobody waits for; it is a use of its own. NULL: no memory, or the worker session was closed. */
struct call *worker_session_async_call(struct worker_session *c);
/* It was not submitted. */
void worker_session_async_call_unsent(struct call *call);
/* No lock held. */
bool worker_session_is_closed(struct worker_session *c);
/* As worker_session_leave, after a call with this outcome: a fault marks the session. Returns st. */
enum status worker_session_leave_with(struct worker_session *c, enum status st, const struct problem *why);
/* A launch called this waits until those submitted before it reached the worker. Fails when the worker session ended. Needs a use. */
enum status worker_session_wait_order(struct worker_session *c, struct problem *why);
/* Waits for staging memory. Needs a use. */
enum status worker_session_staging(struct worker_session *c, uint64_t bytes, struct slice *out, struct problem *why);

/* Below: with session.lock held. */
enum status session_usable_locked(struct session *s, struct problem *why);
void        worker_session_ref(struct worker_session *c);
void        worker_session_unref(struct worker_session *c);
void        worker_session_unuse(struct worker_session *c);
/* Why an operation that is under way cannot go on. */
enum status worker_session_still_usable(const struct worker_session *c, struct problem *why);
void        worker_session_lose(struct worker_session *c, const struct problem *why);
/* The outcome of a call, seen in its event: marks the session when it was a fault. */
void worker_session_check_call(struct worker_session *c, const struct call *call);
/* A call that could not be submitted: the worker has ended, of which we may be the first to hear, unless its ring is full. */
enum status worker_session_not_submitted(struct worker_session *c, enum status st, struct problem *why);
/* There may be something to submit in c. With session.lock held. */
void submit_later(struct worker_session *c);

/* ---- janitor.c ---- ends what is idle, too old, or runs past its deadline. One thread per registry. */
bool janitor_start(struct registry *r);
void janitor_stop(struct registry *r);
/* One round as if the monotonic clock were at `now`. */
void janitor_sweep(struct registry *r, uint64_t now);
/* Asks the worker whether it still answers, if that is due. The submitter's, inside worker_session_use(). */
void janitor_ping(struct worker_session *c);

/* ---- implicit.c ---- */
/* Of the session of a caller's run at that place (run_place.h); in `id`. */
struct span implicit_run_id(unsigned number, char id[ID_BYTES]);
/* Made when there is none, made anew when it faulted. Borrowed. Blocks. */
enum status implicit_session_of_run(struct registry *r, const struct tenant *t, const struct session_spec *spec, struct session **out,
                                    struct problem *why);

/* ---- session.c ---- */
/* As session_reset, but only of a faulted one; another one that is usable stays as it is. */
enum status session_revive(struct session *s, struct problem *why);
/* Deletes, unless somebody else does. */
void session_end(struct session *s, const char *reason);
/* With session.lock held: the only one to change the state. Notes the event and wakes who waits; fault and worker session are set before. */
void session_set_state(struct session *s, enum session_state next);
/* For who unlisted it: worker, memory and quota are released. Blocks. */
void session_close(struct session *s, const char *reason);
/* Takes it out of the registry and closes it without waiting. Not one that starts, or that somebody else closes. */
void session_close_later(struct session *s, const char *reason);
/* The same, when it is `aged`, or was idle too long at `now`. */
void session_expire(struct session *s, bool aged, uint64_t now);
/* Once no former worker session of a closing session is left, it counts no longer. No lock held. */
void session_close_finish(struct session *s);

/* ---- stream.c ---- number of that stream, made at its first use. Needs a use of the context. */
enum status stream_number(struct worker_session *c, struct span name, uint32_t *number, struct problem *why);
/* With session.lock held: false when that stream is still to be made. */
bool stream_known(const struct worker_session *c, struct span name, uint32_t *number);

#endif
