/* What the files of session/ share: the objects and their locks.
 *
 * Locks, outer before inner: context.load_lock and submit_lock, (the locks of pool/), session.lock, registry.lock.
 * So nothing of pool/ is called with session.lock or registry.lock held, and events of calls may take both.
 *
 * A session has at most one context: a worker and all that lives in it. A reset or delete takes the context away from the
 * session and closes it: the worker is killed, which ends every call; when the last use is over the worker goes back. */
#ifndef GPUREST_SESSION_INTERNAL_H
#define GPUREST_SESSION_INTERNAL_H

#include <pthread.h>

#include "base/digest.h"
#include "pool/pool.h"
#include "session/code/compile_module.h"
#include "session/events/event_ring.h"
#include "session/launch/check.h"
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
    pthread_cond_t         janitor_kick; /* of the monotonic clock */
    pthread_cond_t         helper_kick;
    pthread_t              janitor, helper;
    bool                   janitor_stop, helper_stop, draining;
    struct account        *accounts;
    unsigned               count;
    struct worker_session *work, *work_last;       /* contexts with something for the helper; each holds a reference */
    struct worker_session *closing, *closing_last; /* for the closer; their sessions are pinned */
    unsigned               closing_count;          /* with the one that it is at */
    uint64_t               closed_count;           /* ever */
    pthread_t              closer;
    pthread_cond_t         closing_changed; /* of the monotonic clock; of `returning`, too */
    struct pending_free    pending_free[DEVICES_MAX];
    bool                   closer_stop;
    unsigned               runners; /* threads that do asynchronous batches */
    pthread_cond_t         runner_left;
    uint64_t               shared_bytes; /* of memory shared with clients, what is still to be given back included */
    unsigned               shares_count;
    pthread_mutex_t        reap_lock;   /* outer to `lock`: who has had it knows that all dead shares are gone */
    struct share          *shares_dead; /* for shares_reap() */
    struct fault_budget   *budgets;     /* of those whose kernels have faulted lately */
    _Atomic bool           any_budget;  /* written under lock: there are some */
    struct run_place      *runs;        /* run_place.c */
    uint64_t               batch_bytes; /* host memory of asynchronous batches and their results, all sessions together */
};

struct stream {
    char     name[STREAM_NAME_BYTES];
    uint32_t number;
};

struct local;

struct worker_session {
    struct session     *session;
    struct worker      *worker; /* valid while uses > 0 */
    struct device_facts facts;
    pthread_mutex_t     load_lock;   /* one image at a time is sent to the worker */
    pthread_mutex_t     submit_lock; /* keeps launches in the order in which their arguments were packed */

    /* under session.lock */
    unsigned         refs; /* of this struct */
    unsigned         uses; /* threads inside the worker's calls, and calls not yet done */
    bool             closed;
    bool             lost; /* a fault ended it */
    uint64_t         lost_ns;
    struct table     buffers, modules, launches;
    struct table     builtins;      /* modules of built-in kernels, by "name/dtype": nobody lists or names them */
    uint64_t         builtins_used; /* times that one of them was asked for */
    struct stream    streams[STREAMS_PER_SESSION_MAX];
    unsigned         streams_count;
    uint64_t         code_bytes; /* of all modules, as kept here */
    struct launch   *unfinished; /* all queued and running ones */
    unsigned         unfinished_count;
    unsigned         in_ring;
    uint64_t         last_event_ns; /* a launch started or ended */
    uint64_t         busy_since_ns; /* as the janitor sees it: since then the worker has never been seen without something to do */
    struct call      ping;          /* asked of a worker that starts nothing of what it was given */
    bool             ping_due, ping_open;
    uint64_t         pinged_ns;                                 /* the last time */
    uint64_t         launch_number;                             /* the last one given */
    uint64_t         events_taken[EVENTS_PER_SESSION_MAX / 64]; /* places of events that batches use */
    uint32_t         event_number;                              /* the last one given; never 0 when given */
    struct launch   *backlog, *backlog_last;                    /* not yet in the ring, oldest first */
    struct launch   *outputs;                                   /* ended, their text is to be fetched; each holds a use */
    struct launch   *finished, *finished_last;                  /* oldest first */
    unsigned         finished_count;
    uint64_t         output_bytes; /* kept in finished ones */
    struct module   *unloads;      /* to be unloaded */
    struct transfer *transfers;
    struct table     locals; /* buffers of batches and programs, by ids that nobody is told */
    struct table     programs;
    struct local    *orphans;      /* of them, those to be freed */
    uint64_t         freed_bytes;  /* of memory that its worker may keep for itself */
    uint64_t         quota_bytes;  /* what its buffers count in session.memory_bytes; all is given back when it is closed */
    unsigned         shares_count; /* of buffers */

    /* under registry.lock */
    bool                   work_queued;
    struct worker_session *work_next;
    struct worker_session *closing_next;
};

/* A session's asynchronous batches. Under session.lock. */
struct result_store {
    struct table      jobs; /* all that can be found */
    struct batch_job *queued, *queued_last;
    struct batch_job *finished, *finished_last; /* oldest first */
    unsigned          queued_count, finished_count;
    uint64_t          queued_bytes; /* of those that wait or run */
    uint64_t          kept_bytes;   /* of results, those included that are not found any more but still being read */
    bool              running;      /* a runner thread is at work */
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

    /* under registry.lock */
    unsigned pins;
    unsigned observers; /* of them, those that do not count as use */
    uint64_t used_ns;   /* end of the last use */
    uint64_t idle_timeout_s;
    bool     listed; /* in its account's table: nobody deletes it yet */

    pthread_mutex_t lock;
    pthread_cond_t  changed; /* anything below, or in the context, that somebody may wait for */
    /* under lock */
    enum session_state     state;
    uint64_t               generation;
    uint64_t               epoch;
    uint64_t               buffers_made;
    struct worker_session *context; /* NULL while starting, when closing, or when a reset got no worker */
    bool                   ending;  /* the closer finishes its end */
    unsigned               closing; /* former contexts whose workers are not yet back */
    struct problem         fault;
    struct label           labels[LABELS_MAX];
    unsigned               labels_count;
    double                 device_time_us;
    uint64_t               memory_bytes;
    struct result_store    batches;
    struct event_ring      events;
    uint64_t               batches_told; /* those that had launches */
    enum device_state      device_state; /* as last told in an event */
    bool                   budget_spent; /* ... */
};

struct buffer {
    struct entry  entry;
    uint64_t      bytes;
    uint64_t      charged; /* bytes, against the quotas */
    uint64_t      address;
    uint64_t      created_wall_ns;
    uint64_t      number;    /* in its session, never used again: one of the same id that came later has another */
    bool          shareable; /* an allocation of its own, that clients may map */
    unsigned      refs;      /* the table and everyone who holds it */
    unsigned      pins;      /* those at work in it: it is not deleted meanwhile */
    bool          ready;     /* allocated */
    struct share *share;     /* memory that clients map; NULL = none. A reference */
};

struct best_block {
    bool     known;
    uint32_t shared_bytes;
    uint32_t threads;
};

struct module {
    struct entry           entry;
    struct worker_session *context; /* a reference */
    unsigned               refs;    /* the table, borrowers and unfinished launches */
    bool                   ready;
    bool                   loaded;
    uint64_t               used;             /* of ours: when, counted by context.builtins_used */
    bool                   failed;           /* of ours: it will not be ready */
    bool                   ours;             /* of the built-in kernels: counted against nobody's quota, its code kept by nobody */
    bool                   refused;          /* of a library's plan: ready, but it cannot be launched */
    bool                   plan;             /* ours, and what a library prepared */
    uint32_t               params_bytes_max; /* of its kernels, of the one that takes most */
    uint64_t               workspace_bytes;  /* of a plan: what each launch has for itself */
    uint32_t               remote;
    unsigned char          digest[SHA256_BYTES];
    char                   code_hash[SHA256_HEX_BYTES];
    char                   arch[16];
    struct kernel_table    table;
    struct compiled        compiled;               /* its output is kept for log and code */
    char                 **expressions, **lowered; /* [expressions_count], owned */
    unsigned               expressions_count;
    struct best_block     *best; /* [kernels_count] */
    uint64_t               kept_bytes;
    uint64_t               created_wall_ns;
    struct module         *unload_next;
    struct call            unload;
};

/* What one call to the worker needs; owned by the call's event, or by the last who spins on it. */
struct flight {
    struct call            call; /* first: events find the flight by it */
    struct launch         *launch;
    struct worker_session *context;
    unsigned               spinners;
    bool                   done;
    struct msg_launch      msg; /* last: allocated with room for as many bytes of parameters as any kernel of the module takes */
};

struct launch {
    struct entry           entry;
    struct worker_session *context; /* a reference */
    unsigned               refs;    /* the table, holders outside, and the way through the worker */
    unsigned char          digest[SHA256_BYTES];
    char                   module_id[ID_BYTES];
    struct module         *module;                  /* held until it ended */
    struct local          *scratch;                 /* of a built-in kernel; until it ended. NULL: none */
    char                   dtype[DTYPE_NAME_BYTES]; /* of a built-in kernel; "" = of a module */
    char                   stream[STREAM_NAME_BYTES];
    bool                   vendor; /* a library does the built-in kernel */
    char                  *kernel; /* owned */
    uint32_t               grid[3], block[3], shared_bytes;
    uint64_t               timeout_ms;
    uint64_t               number; /* order of submission; also its tag */
    enum launch_state      state;
    bool                   submitted; /* the flight is in the ring: it can be spun on */
    bool                   sending;   /* at the head of the backlog and being submitted right now */
    bool                   ended;     /* the device is done with it, its output may be still to come */
    uint64_t               created_wall_ns, started_wall_ns, finished_wall_ns;
    uint64_t               started_ns; /* its deadline counts from here; 0 = not yet */
    double                 gpu_us;
    char                  *output; /* owned */
    uint64_t               output_bytes;
    bool                   output_truncated;
    struct problem        *problem; /* owned; only of failed ones */
    struct flight         *flight;  /* until the device is done */
    struct waker          *watchers;
    struct launch         *unfinished_next, **unfinished_at; /* in context.unfinished */
    struct launch         *backlog_next;
    struct launch         *next; /* in outputs, then in finished */
};

/* ---- registry.c ---- */
void session_pin(struct session *s);
/* Frees the session when it was deleted and this was the last pin. `used`: the idle time starts anew. */
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
void budget_note(struct session *s, enum status fault);
/* Whether new kernels may be given to its device now: it is not too hot, and its owner has not had too many faults there. */
enum status session_admits_work(struct session *s, struct problem *why);
void        budgets_finish(struct registry *r);

/* ---- quota.c ---- under session.lock */
/* QUOTA_EXCEEDED names the limit: of the session, then of the tenant. SESSION_BUSY when the context was closed meanwhile. */
enum status quota_reserve(struct worker_session *c, uint64_t bytes, struct problem *why);
/* Of a closed context: nothing, that was done at once. */
void quota_release(struct worker_session *c, uint64_t bytes);
/* For who closes the context, in the same critical section. */
void quota_release_all(struct worker_session *c);

/* ---- context.c ---- */
/* A context on a worker that it takes over. */
enum status worker_session_create(struct session *s, struct worker *w, const struct pool_device *device, struct worker_session **out);
/* Ends everything in it, without waiting for the ends: what waits is woken, the worker is killed, the quota is free again. */
void worker_session_detach(struct worker_session *c, const char *reason);
/* Of a retired one: blocks until nobody uses the worker and it is back with the pool. Drops the session's reference. */
void worker_session_destroy(struct worker_session *c);
/* Both. NULL is a no-op. */
void worker_session_close(struct worker_session *c, const char *reason);
/* The session's context in use until worker_session_leave; or why it cannot be used. */
enum status worker_session_enter(struct session *s, struct worker_session **out, struct problem *why);
/* The same for a context that is known; false when it was closed. Needs a reference. */
bool worker_session_use(struct worker_session *c);
void worker_session_leave(struct worker_session *c);
/* For a call to the worker whose answer nobody waits for; it is a use of its own. NULL: no memory, or the context was closed. */
struct call *worker_session_async_call(struct worker_session *c);
/* It was not submitted. */
void worker_session_async_call_unsent(struct call *call);
/* No lock held. */
bool worker_session_is_closed(struct worker_session *c);
/* As worker_session_leave, after a call with this outcome: a fault marks the session. Returns st. */
enum status worker_session_leave_with(struct worker_session *c, enum status st, const struct problem *why);
/* A launch called this waits until those submitted before it reached the worker. Fails when the context ended. Needs a use. */
enum status worker_session_wait_order(struct worker_session *c, struct problem *why);
/* Memory of the device, as soon as what retired contexts still hold is back. Needs a use. */
enum status worker_session_allocate(struct worker_session *c, uint64_t bytes, uint64_t *address, struct problem *why);
/* The same by another call, which is asked again when such memory came back. */
typedef enum status allocate_function(struct worker_session *c, void *what, uint64_t deadline_ns, struct problem *why);
enum status         worker_session_allocate_by(struct worker_session *c, allocate_function *allocate, void *what, struct problem *why);
/* Waits for staging memory. Needs a use. */
enum status worker_session_staging(struct worker_session *c, uint64_t bytes, struct slice *out, struct problem *why);

/* Below: with session.lock held. */
enum status session_usable_locked(struct session *s, struct problem *why);
void        worker_session_ref(struct worker_session *c);
void        worker_session_unref(struct worker_session *c);
void        worker_session_unuse(struct worker_session *c);
void        worker_session_lose(struct worker_session *c, const struct problem *why);
/* The outcome of a call, seen in its event: marks the session when it was a fault. */
void worker_session_note(struct worker_session *c, const struct call *call);
/* A call that could not be submitted: the worker has ended, of which we may be the first to hear, unless its ring is full. */
enum status worker_session_not_submitted(struct worker_session *c, enum status st, struct problem *why);
/* Number of the newest launch that is not yet in the ring; what comes next must wait for it. 0: none. */
uint64_t worker_session_order(const struct worker_session *c);
bool     worker_session_ordered(const struct worker_session *c, uint64_t number);

/* ---- helper.c ---- does for events what they may not do themselves: submit. One thread per registry. */
bool helper_start(struct registry *r);
void helper_stop(struct registry *r);
/* There may be something to do in c. With session.lock held. */
void helper_kick(struct worker_session *c);

/* ---- closer.c ---- buries retired contexts of sessions that go on with another worker. One thread per registry. */
bool closer_start(struct registry *r);
/* Buries what is left first. */
void closer_stop(struct registry *r);
/* Takes c over. */
void closer_take(struct worker_session *c);
/* How many it has buried so far. No lock held. */
uint64_t closer_count(struct registry *r);
/* After a call of c that found nothing left, begun when so many were `buried`: waits, bounded, for one more, which gives something back.
 * False when there is none, or none in time, or c is closed: trying again is of no use. No lock held. */
bool closer_await(struct worker_session *c, uint64_t buried, uint64_t deadline_ns);

/* ---- returning.c ---- device memory on its way back. session.lock may be held, registry.lock not, by what notes; no lock by what waits. */
/* So many bytes were given back to the session's device, or soon will be. */
void pending_free_note(struct session *s, uint64_t bytes);
/* A worker has lost its context and is about to end. With session.lock held. */
void pending_free_lost(struct worker_session *c);
/* With session.lock held: so many bytes of buffers were freed, which a worker may keep; or taken, perhaps of those. */
void pending_free_cached(struct worker_session *c, uint64_t bytes);
void pending_free_reused(struct worker_session *c, uint64_t bytes);
/* The worker has given back what it kept. No lock held. */
void pending_free_trimmed(struct worker_session *c);
/* A worker with so many bytes in buffers was ended; then it is gone. */
void pending_free_begin(struct worker_session *c, uint64_t bytes);
void pending_free_end(struct worker_session *c);
/* Zeroed, then memory_wait_look() before every try of a call that takes device memory. */
struct memory_wait {
    uint64_t deadline_ns, seen;
    bool     trimmed;
};
void memory_wait_look(struct worker_session *c, struct memory_wait *w);
/* The call found no device memory, as *why says: true when it is worth another try, now. Waits while memory is on its way back, bounded
 * by MEMORY_RETURN_MS, and WORKER_CALL_DEADLINE_MS for workers that are about to end. */
bool memory_wait_more(struct worker_session *c, struct memory_wait *w, const struct problem *why);

/* ---- janitor.c ---- ends what is idle, too old, or runs past its deadline. One thread per registry. */
bool janitor_start(struct registry *r);
void janitor_stop(struct registry *r);
/* One round as if the monotonic clock were at `now`. */
void janitor_sweep(struct registry *r, uint64_t now);
/* Asks the worker whether it still answers, if that is due. The helper's, inside worker_session_use(). */
void janitor_ping(struct worker_session *c);

/* ---- hidden.c ---- */
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
/* For who unlisted it: worker, memory and quota are released. Blocks. */
void session_close(struct session *s, const char *reason);
/* Takes it out of the registry and closes it without waiting: the closer awaits its worker's end. Not one that starts, or that somebody else closes. */
void session_close_later(struct session *s, const char *reason);
/* The janitor's, who waits for nobody: closes it when it is `aged`, or was idle too long at `now`, unless it starts. The closer awaits its worker's end. */
void session_expire(struct session *s, bool aged, uint64_t now);
/* A former context is gone: when it was the last one of a session that has expired, that is closed. No lock held. */
void session_close_finish(struct session *s);

/* ---- stream.c ---- number of that stream, made at its first use. Needs a use of the context. */
enum status stream_number(struct worker_session *c, struct span name, uint32_t *number, struct problem *why);
/* PENDING for one that is to be made and spec->at_once. */
enum status stream_of_launch(struct worker_session *c, const struct launch_spec *spec, uint32_t *number, struct problem *why);

/* ---- buffer.c ---- with session.lock held */
/* BUFFER_NOT_FOUND, or *out held and pinned. */
enum status buffer_pin(struct worker_session *c, struct span id, struct buffer **out, struct problem *why);
/* ... if it has these contents (NULL: any will do); else PRECONDITION_FAILED, also when there is none of that id. */
enum status buffer_pin_if(struct worker_session *c, struct span id, const struct contents *only, struct buffer **out, struct problem *why);
void        buffer_unpin(struct buffer *b);
void        buffer_unref(struct buffer *b);
bool        buffer_where(void *context, struct span id, uint64_t *address, uint64_t *bytes);
/* With session.lock held: what the buffer's contents are now. */
struct contents contents_of(const struct worker_session *c, const struct buffer *b);
enum status     range_check(const struct buffer *b, uint64_t offset, uint64_t bytes, struct problem *why);

/* ---- share.c ---- memory that clients of the same host map. With session.lock held: the buffer goes, or lets go of it. As share_unref(); a buffer
 * that goes takes the worker's mapping along. */
uint32_t share_detach(struct worker_session *c, struct buffer *b);
/* Those that are not the buffers' own memory: a worker that is about to end does not matter to them. */
void shares_detach_all(struct worker_session *c);
/* ---- share_buffer.c ---- memory of a shareable buffer, as worker_session_allocate(). No lock held. */
enum status share_allocate(struct worker_session *c, struct buffer *b, uint64_t *address, struct problem *why);
/* Whether such buffers can be had, and what one of b->bytes is charged. */
enum status share_plan(const struct worker_session *c, struct buffer *b, struct problem *why);
/* Gives memory that is no longer anybody's back to the host. Slow; no lock held. */
void shares_reap(struct registry *r);

/* ---- context.c, with session.lock held: why an operation that is under way cannot go on. */
enum status worker_session_still_usable(const struct worker_session *c, struct problem *why);

/* ---- transfer.c ---- with session.lock held: tells whoever waits that something changed. */
void transfers_wake(struct worker_session *c);
/* Takes back all registrations with the worker. Blocks briefly; no lock held. */
void transfers_unwatch(struct worker_session *c);

/* ---- module_input.c ---- */
enum status module_input_check(const struct module_spec *spec, struct problem *why);
void        module_input_digest(const struct module_spec *spec, unsigned char out[SHA256_BYTES]);

/* ---- module.c ---- with session.lock held */
/* MODULE_NOT_FOUND, or *out with one more reference. */
enum status module_find(struct worker_session *c, struct span id, struct module **out, struct problem *why);
/* The last one has it unloaded by the helper; it is freed then. */
void module_unref(struct module *m);
/* The loaded module of a built-in kernel, made at its first use, with one more reference. Where that would
 * have to be waited for and `at_once`: PENDING. */
enum status module_builtin(struct session *s, struct span id, const struct module_spec *spec, bool at_once, struct module **out,
                           struct problem *why);
/* No device has it any more. */
void module_free(struct module *m);
/* module_load.c: gives the image to the device and reads the kernel table. Needs a use of m->context. */
enum status module_load(struct module *m, struct span image, struct problem *why);
/* module_load.c: hands what waits to be unloaded to the worker. Needs a use. */
void module_unload_some(struct worker_session *c);

/* ---- session/batch/result_store.c ---- forgets results whose time is over at `now`. */
void result_store_expire(struct session *s, uint64_t now);
/* The session is about to be freed. */
void result_store_finish(struct session *s);

/* ---- session/batch/async.c ---- until all runner threads have ended; their sessions are closed. */
void batch_runners_await(struct registry *r);

/* ---- program.c ---- with session.lock held: the context has been closed, and its programs with it. */
void program_drop_all(struct worker_session *c);

/* ---- local.c ---- hands the orphans to the worker. Needs a use. */
void locals_free_some(struct worker_session *c);
/* With session.lock held: the worker is gone, and their memory with it. */
void locals_drop_all(struct worker_session *c);
/* With session.lock held: the worker is dead, and with it the memory of those that were still to be freed. */
void locals_drop_orphans(struct worker_session *c);

/* ---- transfer_write.c ---- a full piece leaves, whether or not more bytes come. PENDING registers w. */
enum status transfer_write_flush(struct transfer *t, struct waker *w, struct problem *why);

/* ---- launch.c ---- */
/* Kernel, grid, block and shared memory of the message, checked; asks the worker for an automatic block. Needs a use. */
enum status launch_configure(struct worker_session *c, struct module *m, const struct launch_spec *spec, struct msg_launch *msg,
                             struct problem *why);
/* Of all but the id. */
void launch_digest(const struct launch_spec *spec, unsigned char out[SHA256_BYTES]);
/* With session.lock held. */
void launch_unref(struct launch *l);

/* With session.lock held: the scratch memory of a built-in kernel's launch is the device's again, behind what was submitted. */
void launch_drop_scratch(struct launch *l);

/* ---- launch_flight.c ---- from the backlog into the ring and back. */
/* A time on the device as a worker tells it, which is not trusted: false, and 0, for what cannot be. */
bool gpu_us_check(float told, double *us);
/* One has succeeded, in that time on the device. */
void launch_measure(double gpu_us);
/* Hands it to the worker, or puts it behind others that wait. Needs a use, and submit_lock. */
enum status launch_send(struct worker_session *c, struct launch *l, struct problem *why);
/* With session.lock held: ends one that could not be sent. */
void launch_fail(struct launch *l, const struct problem *why);
/* With session.lock held: takes it out of the backlog, as cancelled. False when it is not in there. */
bool launch_withdraw(struct worker_session *c, struct launch *l);
/* Submits what the ring has room for. Needs a use, and submit_lock. */
void launch_pump(struct worker_session *c);
/* Fetches output that waits for it. Needs a use. */
void launch_fetch_outputs(struct worker_session *c);
/* With session.lock held: all that did not reach the worker, or that only waits for its output, ends now. */
void launch_flush(struct worker_session *c);
/* With session.lock held: drops the table's references. */
void launch_forget_all(struct worker_session *c);

#endif
