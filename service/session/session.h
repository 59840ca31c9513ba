/* Sessions and their objects: buffers, modules, streams, launches. Ownership, quotas, handles; no HTTP, no CUDA.
 *
 * A session is one worker and one worker session, and falls alone unless it joins a fault domain. Everything here is thread-safe. A struct session * is borrowed
 * (session_borrow) and returned, and survives its own deletion until then. Objects are named by ids; info structs are copies. An id of
 * another caller's object is treated as unknown: *_NOT_FOUND with the same text. `why` is not NULL, unless a line says so. */
#pragma once

#include "base/arena.h"
#include "base/digests/digest.h"
#include "base/problem.h"
#include "base/threads/waitlist.h"
#include "ipc/compile_job.h"
#include "ipc/kernel_table.h"
#include "ipc/texture.h"
#include "limits.h"

struct pool;
struct compile_service;
struct code_cache;
struct registry; /* all sessions of this process */
struct session;
struct launch; /* reference-counted */
struct builtin_call;
struct transfer; /* a streamed write to or read from a buffer */

/* The owner of objects. `owner` is compared by pointer and never followed. */
struct tenant {
    const void *owner;
    const char *name; /* for logs and cache keys */
    unsigned    sessions_max;
    uint64_t    memory_max_bytes;
};

/* ---- registry.c ---- */
struct session_moved;
struct registry_config {
    struct pool            *pool;
    struct compile_service *compiler;
    struct code_cache      *cache;
    const char             *node;     /* "" or the node's name, which becomes part of ids */
    const char             *instance; /* names this process; its first characters tag the ids of sessions; NULL: none */
    unsigned                sessions_max;
    uint64_t                idle_timeout_s_max;  /* lowers what sessions ask for; 0: IDLE_TIMEOUT_S_MAX */
    uint64_t                lifetime_s_max;      /* likewise; 0: LIFETIME_S_MAX */
    bool                    cache_shared;        /* callers share compiled code */
    uint64_t                result_ttl_s;        /* how long results of asynchronous batches are kept */
    uint32_t                crash_budget;        /* faults that a tenant may have on a device within the window; 0 = unlimited */
    uint64_t                crash_window_s;      /* time in which a full budget is restored, one fault after another */
    uint64_t                hibernate_bytes_max; /* kept of hibernated sessions; 0 = there is no hibernation */
    uint64_t                hibernate_after_s;   /* idle so long, a session hibernates when its memory is wanted; 0: only when asked to */
    const char             *hibernate_dir;       /* where; NULL: in host memory */
    uint64_t                moved_for_s;         /* sessions that have moved to another node are told so for so long; 0: MOVED_FOR_S_MAX */
    uint64_t                shared_bytes_max;    /* memory shared with clients of this host (share.h); 0 = disabled */
    /* (optional) Tells that a caller's session whose id its client chose is whole, before anybody is told of it. Any thread, no lock held; must not call
     * back but session_borrow(). */
    void (*made)(void *context, const char *caller, const char *id, bool anew);
    /* (optional) Tells that a caller's session has ended for good, once no look-up finds it any more, and before a request that ended it is
     * answered. `expired`: nobody asked for it, its time was over. Not at the end of the service. Any thread, session.lock may be held; must not call back but session_borrow(). */
    void (*ended)(void *context, const char *caller, const char *id, bool expired);
    /* (optional) Tells that nobody is told any more where a session has gone. As `made`. */
    void (*moved_over)(void *context, const char *caller, const struct session_moved *m);
    void *context; /* of both */
};
enum status registry_create(struct registry **out, const struct registry_config *config);
/* Closes all sessions. */
void registry_destroy(struct registry *r);
/* While it is on, session_create answers DRAINING. */
void registry_drain(struct registry *r, bool on);
/* All sessions are saved or restored, one after the other, and nobody is served meanwhile: each needs its memory on the device then. */
void registry_makes_way(struct registry *r, bool on);
/* Ends all work in progress with WORKER_LOST, so that nothing waits for a hung worker. */
void     registry_kill_workers(struct registry *r);
unsigned registry_count(struct registry *r);
/* A tenant's part of bounds that all tenants share. */
struct registry_use {
    unsigned sessions; /* including those of runs, and those whose worker has not ended yet */
    unsigned own;      /* ... without those of runs */
    unsigned runs;     /* in progress on sessions of their own */
    unsigned domains;
    unsigned shares; /* buffers with memory that clients map */
    uint64_t shared_bytes;
    uint64_t hibernated_bytes; /* kept of its sessions that hibernate */
    uint64_t batch_bytes;      /* asynchronous batches and their results */
    uint64_t memory_bytes;
};
unsigned            registry_domains(struct registry *r); /* fault domains of all tenants */
struct registry_use registry_use_of(struct registry *r, const struct tenant *t);

/* Faults in the tenant's budget, on the device with the most. */
unsigned registry_faults_of(struct registry *r, const struct tenant *t);
/* How many callers' fault budgets for that device are used up now. */
unsigned registry_budgets_spent(struct registry *r, unsigned device);

/* ---- session.c ---- */
/* HIBERNATED is what is told of a session that is READY with its buffers off the device. */
enum session_state { SESSION_STARTING, SESSION_READY, SESSION_FAULTED, SESSION_CLOSING, SESSION_HIBERNATED };
enum { SESSION_STATES = SESSION_HIBERNATED + 1 };
const char *session_state_name(enum session_state s);
/* Numbers of all callers' sessions on that device (DEVICES_MAX: on any). */
struct registry_survey {
    unsigned states[SESSION_STATES];
    unsigned busy;   /* that have work in progress, transfers included */
    unsigned mapped; /* of which clients of this host map memory */
};
struct registry_survey registry_survey(struct registry *r, unsigned device);

struct waiting_work {
    unsigned launches, batches; /* accepted and not started; batches: those in the background */
};
struct waiting_work registry_waiting(struct registry *r);

struct label {
    char key[LABEL_KEY_BYTES];
    char value[LABEL_VALUE_BYTES];
};

/* Which snapshot a session was made from. */
enum session_source {
    SOURCE_NONE,
    SOURCE_SNAPSHOT, /* one that its caller has sent */
    SOURCE_SHUTDOWN, /* that of the service's end */
    SOURCE_PERIODIC, /* an earlier one: what came after it is lost */
    SOURCE_MOVE,     /* that with which it left another node */
    SESSION_SOURCES
};
const char *session_source_name(enum session_source s);

struct session_restored {
    enum session_source from;
    uint64_t            taken_wall_ns; /* 0: unknown */
    uint64_t            wall_ns;       /* when it was made of it */
    uint64_t            generation;    /* that it began with */
    char move[MOVE_SECRET_BYTES];      /* not "": the move that it came by, which is still to be confirmed (session/snapshot/move.h) */
};

struct session_spec {
    struct span id;              /* empty: the server generates one; else a valid client id (checked here) */
    struct span device;          /* empty: the default */
    uint64_t    memory_limit;    /* MEMORY_LIMIT_NONE: unlimited */
    double      memory_fraction; /* 0: none; else memory_limit is MEMORY_LIMIT_NONE and becomes this part of the device's memory */
    bool        keeps_bounded;   /* freed memory that its worker keeps has a bound: */
    uint64_t    pool_bytes_max;
    uint64_t    idle_timeout_s;
    uint64_t    max_lifetime_s;
    uint64_t    lease_s; /* ends the session when no request came for it for so long; 0: no lease */
    bool        memcheck;
    bool        implicit;  /* not listed; its id is none that a client could use */
    bool        restoring; /* its caller finds it SESSION_BUSY until session_restored() (snapshot/hold.h); never an existing one */
    bool        keeps_id;  /* with restoring: the id may be one that a service of this node chose */
    struct session_restored restored;     /* with restoring; its wall_ns and generation are set here */
    struct span             fault_domain; /* empty: it stands alone; else a client id (checked here) */
    bool server_required; /* the domain's sessions must run side by side: FAULT_DOMAIN_UNAVAILABLE where they would take turns */
    const struct label *labels;
    unsigned            labels_count;
};

struct session_info {
    char                    id[ID_BYTES];
    char                    device[32];
    enum session_state      state;
    uint64_t                generation;
    uint64_t                created_wall_ns;
    uint64_t                expires_wall_ns; /* the earliest end of idle time, lease and lifetime, as of now */
    uint64_t                idle_timeout_s;  /* in force: the registry's configuration may have lowered it */
    uint64_t                max_lifetime_s;  /* likewise */
    uint64_t                lease_s;         /* 0: no lease */
    uint64_t                memory_limit;    /* MEMORY_LIMIT_NONE: unlimited */
    double                  memory_fraction; /* of the device's memory, as asked for; 0: memory_limit was, or nothing */
    uint64_t                pool_bytes_max;  /* MEMORY_LIMIT_NONE: freed memory is kept without a bound */
    bool                    memcheck;
    struct label            labels[LABELS_MAX];
    unsigned                labels_count;
    struct problem          fault; /* status OK: none */
    uint64_t                device_time_us;
    uint64_t                memory_bytes;
    uint64_t                launches_finished; /* all, those of batches included */
    unsigned                buffers, modules, launches;
    char                    fault_domain[CLIENT_ID_CHARS_MAX + 1]; /* "": none; else: */
    bool                    shared_server;                         /* its sessions share an MPS server */
    unsigned                domain_sessions;                       /* how many there are, this one included */
    struct session_restored restored;
    uint64_t                kept_wall_ns;            /* of the last snapshot that the service keeps of it; 0: none */
    char                    move[MOVE_SECRET_BYTES]; /* the move that it is at; "": none */
};

/* Takes a worker from the pool; may block. If the id exists (same tenant): same spec -> *created = false, another spec -> SPEC_CONFLICT. */
enum status session_create(struct registry *r, const struct tenant *t, const struct session_spec *spec, struct session **borrowed,
                           bool *created, struct problem *why);
/* SESSION_NOT_FOUND, which says how the session ended if that is still known; or *out is pinned until session_return. Counts as use: idle time
 * and lease restart at the return. */
enum status session_borrow(struct registry *r, const struct tenant *t, struct span id, struct session **out, struct problem *why);
void        session_return(struct session *s);
/* The same for one that may be waiting for the confirmation of its move. */
enum status session_borrow_pending(struct registry *r, const struct tenant *t, struct span id, struct session **out, struct problem *why);
/* The same without a use of it: the service itself has looked at it. */
void session_return_unnoticed(struct session *s);
/* A session of that id went with another process of the service: its caller is told so, as of the last ones that have ended, until it makes one anew. */
void session_lost_before(struct registry *r, const struct tenant *t, struct span id);
/* Restarts the lease, but not the idle time: the session is then given back by session_return_unnoticed(). Never blocks. */
void session_renew(struct session *s);
void session_info_of(struct session *s, struct session_info *out);
struct session_patch {
    bool                has_idle_timeout, has_lease, has_labels, has_memory_limit, has_pool_bytes_max;
    uint64_t            idle_timeout_s;
    uint64_t            lease_s;      /* 0: none from now on */
    uint64_t            memory_limit; /* with has_memory_limit, this or the fraction, as in a session_spec */
    double              memory_fraction;
    uint64_t            pool_bytes_max;
    const struct label *labels; /* replaces all labels */
    unsigned            labels_count;
};
/* All of it or nothing. Blocks for a call to the worker if pool_bytes_max changes; then also SESSION_FAULTED or SESSION_BUSY. Buffers that exceed a
 * lower limit stay. */
enum status session_patch(struct session *s, const struct session_patch *p, struct problem *why);
/* Its number now: 1 at first, after a restore a larger one. */
uint64_t session_generation(struct session *s);
/* Replaces the worker: all handles become void, generation + 1, state ready. Also ends `faulted`. Blocks. */
enum status session_reset(struct session *s, struct problem *why);
/* Hides the session from everyone at once; worker, memory and quota are released before it returns. Unfinished launches end as
 * cancelled. */
enum status session_delete(struct session *s, struct problem *why);
/* ---- moved.c ---- sessions that have gone to another node */
struct session_moved {
    char     id[ID_BYTES]; /* here, without a node */
    char     to[MOVE_URL_BYTES];
    char     new_id[ID_BYTES];
    char     secret[MOVE_SECRET_BYTES];
    uint64_t wall_ns;
};
/* As if it had moved from here, at the service's start. False: that is too long ago to be told. */
bool session_moved_restore(struct registry *r, const struct tenant *t, const struct session_moved *m);
/* It is here again: what was remembered of the id is not true any more. */
void session_moved_forget(struct registry *r, const struct tenant *t, const char *id);

/* ---- operator.c ---- all callers' sessions, but for those of runs */
/* Calls `call` with each; `room` is where it is described. No lock held. */
void session_each(struct registry *r, struct session_info                                                *room,
                  void (*call)(const struct session_info *info, const char *caller, void *context), void *context);
/* A session by its id, and its caller's name if several have one of that id (else INVALID_FIELD); *out is for
 * session_return_unnoticed(). */
enum status session_find(struct registry *r, struct span caller, struct span id, struct session **out, struct problem *why);
const char *session_caller(const struct session *s);
/* As session_delete(), but its caller is told that an operator did it. */
enum status session_remove(struct session *s, struct problem *why);

/* ---- use.c ---- what a caller has used since the service started, its runs included */
struct caller_info {
    char     name[CALLER_NAME_BYTES];
    unsigned sessions, runs; /* now */
    uint64_t memory_bytes;   /* now */
    uint64_t device_ns, launches, to_device_bytes, from_device_bytes;
};
/* How many callers have had a session. */
unsigned caller_count(struct registry *r);
/* Up to `room` of them, the newest first. */
unsigned caller_list(struct registry *r, struct caller_info *items, unsigned room);

/* OK; SESSION_FAULTED with the fault in its detail; or SESSION_BUSY. */
enum status session_usable(struct session *s, struct problem *why);

/* Lists: up to `limit` items with keys after `cursor` (empty: from the start), in a stable order. next is "" at the end. */
struct page {
    struct span cursor;
    unsigned    limit;
    char        next[ID_BYTES];
};
/* Lists the tenant's own sessions. items: room for page->limit; returns how many were filled in. */
unsigned session_list(struct registry *r, const struct tenant *t, struct page *page, struct session_info *items);

/* ---- stream.c ---- waits for everything submitted before on one named stream ("" = all). Blocks. An unknown stream is no error:
 * nothing was submitted there. Returns the session's fault if it has one. */
enum status session_sync(struct session *s, struct span stream, struct problem *why);

/* ---- memory.c ---- device memory as this session's worker sees it. Blocks for a call to the worker. */
struct session_memory {
    uint64_t allocated_bytes; /* as requested: by buffers, and by the worker itself */
    uint64_t cached_bytes;    /* reserved but not allocated: cached for later allocations, or lost to rounding */
    uint64_t reserved_bytes;  /* taken from the device */
    uint64_t free_bytes;      /* of the whole device, now */
    uint64_t peak_bytes;      /* greatest allocated_bytes of this generation, or since MEMORY_RESET_PEAK */
    uint64_t limit_bytes;     /* the session's own; MEMORY_LIMIT_NONE: unlimited */
    double
        fragmentation; /* 1 - largest block that can be had / free_bytes: 0 if all of it is one block, near 1 if it is many small ones; NaN:
                                 the device cannot tell */
};
/* What is done before the figures are read. TRIM releases cached memory to the device, and does not wait for running kernels. With RESET_PEAK
 * peak_bytes counts from what is allocated now. */
enum memory_action { MEMORY_READ, MEMORY_TRIM, MEMORY_RESET_PEAK };
enum status session_memory_of(struct session *s, enum memory_action action, struct session_memory *out, struct problem *why);

/* ---- buffer.c ---- */
/* Identifies a buffer's contents: differs from those that it had or will have, and from those of a later buffer with the same id. Any
 * write in the session changes the epoch of all its buffers. */
struct contents {
    uint64_t generation, epoch, buffer;
};
static const uint64_t EPOCH_ANY = UINT64_MAX; /* only the buffer counts */

struct buffer_info {
    char            id[ID_BYTES];
    uint64_t        bytes;
    uint64_t        address; /* on the device */
    uint64_t        created_wall_ns;
    bool            shareable;
    struct contents contents;
};
/* id empty: the server generates one. If the id exists: same size and kind -> *created = false, otherwise SPEC_CONFLICT. A `shareable` one may be mapped
 * by processes of the same host (share.h): a separate allocation, all zeros, charged with its real size. FEATURE_DISABLED; INVALID_FIELD where the
 * device cannot share memory. */
enum status buffer_create(struct session *s, struct span id, uint64_t bytes, bool shareable, struct buffer_info *out, bool *created,
                          struct problem *why);
enum status buffer_info_of(struct session *s, struct span id, struct buffer_info *out, struct problem *why);
/* `only` not NULL: if the buffer has these contents; else PRECONDITION_FAILED, also when it does not exist. */
enum status buffer_delete(struct session *s, struct span id, const struct contents *only, struct problem *why);
/* Deletes a buffer whose upload was given up: without waiting, after everything its transfer has submitted. Does nothing when the id is
 * unknown, or when launches that were not submitted yet may name it. Call it after the transfer's destroy. */
void     buffer_abandon(struct session *s, struct span id);
unsigned buffer_list(struct session *s, struct page *page, struct buffer_info *items);
/* Blocks until done. offset + bytes must be inside the buffer, else RANGE_NOT_SATISFIABLE; both multiples of pattern_bytes, else
 * INVALID_FIELD. */
enum status buffer_fill(struct session *s, struct span id, uint64_t offset, uint64_t bytes, uint64_t pattern, unsigned pattern_bytes,
                        struct span stream, struct problem *why);
enum status buffer_copy(struct session *s, struct span to, uint64_t offset, struct span from, uint64_t from_offset, uint64_t bytes,
                        struct span stream, struct problem *why);

/* ---- transfer.c ---- bytes in pieces through staging memory, overlapped with the device's own copies. A transfer keeps its session and
 * buffer alive. One thread at a time per transfer. */
/* Checks range and state; never blocks. bytes may be 0. `only` not NULL: if the buffer has these contents; else PRECONDITION_FAILED, also when it does
 * not exist, and of several concurrent calls one succeeds. */
enum status transfer_write_begin(struct session *s, struct span buffer, uint64_t offset, uint64_t bytes, const struct contents *only,
                                 struct transfer **out, struct problem *why);
/* Takes some of the piece. PENDING registers w: no staging memory is free. Never blocks. */
enum status transfer_write(struct transfer *t, struct span piece, size_t *consumed, struct waker *w, struct problem *why);
/* Writes without a copy: lends staging memory for the next bytes until transfer_write_commit(), which says how many were filled. No
 * other call on the transfer is allowed between. w is woken when the memory should be returned at once: the session is about to end.
 * *room is never 0. Neither call blocks. */
enum status transfer_write_borrow(struct transfer *t, char **to, size_t *room, struct waker *w, struct problem *why);
enum status transfer_write_commit(struct transfer *t, size_t bytes, struct problem *why);
/* Waits until every byte is in the buffer (ordered before everything submitted later). Blocks. */
enum status transfer_write_finish(struct transfer *t, struct problem *why);
/* The buffer's contents that the transfer has made, after its finish. */
struct contents transfer_contents(const struct transfer *t);
/* A read of the service's own: it does not count as use of the session. Before anything else is done with it. */
void        transfer_unnoticed(struct transfer *t);
enum status transfer_read_begin(struct session *s, struct span buffer, uint64_t offset, uint64_t bytes, struct transfer **out,
                                struct problem *why);
/* Waits until the first bytes have arrived or failed; call it before a status line is sent. Blocks. */
enum status transfer_read_wait(struct transfer *t, struct problem *why);
/* PENDING with *got = 0 registers w. Never blocks. */
enum status transfer_read(struct transfer *t, char *to, size_t room, size_t *got, struct waker *w);
/* Reads without a copy: lends the next bytes, at least one, in staging memory until transfer_read_release(), which says how many were
 * used. Only while bytes are left. w, and the calls allowed between: as for transfer_write_borrow(). */
enum status transfer_read_lend(struct transfer *t, struct span *out, struct waker *w);
void        transfer_read_release(struct transfer *t, size_t bytes);
/* Ends the transfer in any state and frees it; an unfinished write leaves the range indeterminate. Does not block: staging memory
 * returns when the device is done with it. Afterwards w is not touched. NULL is a no-op. */
void transfer_destroy(struct transfer *t);

/* ---- module.c ---- */
enum image_kind {
    IMAGE_CUDA,
    IMAGE_PTX,
    IMAGE_BINARY,
    IMAGE_GLSL,
    IMAGE_SPIRV,
    IMAGE_LINKED, /* several, as ipc/linked_images.h has them; devices of the backends cuda and cpu link them */
    IMAGE_PLAN    /* session/ itself: bytes of a struct vendor_plan */
};
static inline bool image_is_shader(enum image_kind kind)
{
    return kind == IMAGE_GLSL || kind == IMAGE_SPIRV;
}
struct module_spec {
    struct span                  id; /* empty: the server makes one */
    enum image_kind              kind;
    struct span                  source; /* CUDA C++, GLSL or PTX; or a cubin, a fatbin, SPIR-V or linked images */
    const struct compile_header *headers;
    unsigned                     headers_count;
    const struct span           *options; /* as the client sent them; when checked, canonical */
    unsigned                     options_count;
    const struct span           *name_expressions;
    unsigned                     name_expressions_count;
    struct span arch; /* "compute_90": what to compile for, also as an option; empty: what the device says. With IMAGE_CUDA alone */
    /* by module_spec_check() */
    bool          checked;
    bool          binary;                      /* it has code that is no text, which the service must be started for */
    unsigned char source_digest[SHA256_BYTES]; /* of the source alone */
    unsigned char digest[SHA256_BYTES];        /* of all but the id: equal digests, equal input */
};
/* The one place where what a module is made from is checked, for every way in, and hashed: every spec passes here once, before
 * module_create(). Options become canonical and headers sorted, in the arena. INVALID_FIELD or OPTION_NOT_ALLOWED with a pointer into the
 * module's request, BODY_TOO_LARGE, OUT_OF_MEMORY. Headers come with IMAGE_CUDA and IMAGE_GLSL alone, options with IMAGE_SPIRV, too, and
 * expressions with IMAGE_CUDA. */
enum status module_spec_check(struct module_spec *spec, struct arena *arena, struct problem *why);
/* Has a checked spec of IMAGE_CUDA, IMAGE_LINKED, IMAGE_GLSL or IMAGE_SPIRV point to copies in the arena. False: no memory. */
bool module_spec_copy(struct arena *arena, struct module_spec *spec);
/* A loaded module, borrowed from the session until module_return. Its parts never change. */
struct module;
struct module_view {
    const char                *id;
    const struct kernel_table *table;
    /* name expressions and their lowered names; [expressions_count] */
    const char *const *expressions;
    const char *const *lowered;
    unsigned           expressions_count;
    const char        *arch;
    bool               cached;          /* the code came from the cache */
    double             compile_ms;      /* spent compiling, 0 when cached */
    struct span        log, ptx, cubin; /* may be empty */
    uint64_t           created_wall_ns;
    const char        *code_hash; /* SHA-256 of the loaded code, hex */
};
/* Compiles (or finds in the cache) and loads; spec is checked. Blocks. Identical input in this session -> the existing module, *created = false.
 * COMPILE_FAILED fills the compile part of *why from `arena`. Pass *out to module_return. */
enum status module_create(struct session *s, const struct module_spec *spec, struct arena *arena, struct module **out, bool *created,
                          struct problem *why);
enum status module_borrow(struct session *s, struct span id, struct module **out, struct problem *why);
void        module_return(struct session *s, struct module *m);
/* What it was made from; valid until module_return. */
const struct module_spec *module_spec_of(const struct module *m);
void                      module_view_of(const struct module *m, struct module_view *out);       /* valid until module_return */
enum status               module_delete(struct session *s, struct span id, struct problem *why); /* why: NULL allowed */
/* The id under which a variable of a module is a buffer, for every function that takes one but those that share or free it. `name`: as in the
 * source, mangled, a name expression, or its place in the list. GLOBAL_NOT_FOUND. */
enum status global_id_of(struct session *s, struct span module, struct span name, char id[ID_BYTES], struct problem *why);
/* The same for the variable at that place in the module's list. */
void global_id(const char *module, uint32_t index, char id[ID_BYTES]);
/* Copies ids only. */
unsigned module_list(struct session *s, struct page *page, char (*ids)[ID_BYTES]);

/* ---- launch.c ---- */
/* Of a launch, a batch in the background, or what is compiled ahead. */
enum work_state { WORK_QUEUED, WORK_RUNNING, WORK_SUCCEEDED, WORK_FAILED, WORK_CANCELLED };
const char *work_state_name(enum work_state s);
/* False: it is no name of a state in which it has ended. */
bool work_state_find_ended(struct span name, enum work_state *out);

/* One argument. Scalars are little-endian in `value`. */
/* ---- texture.c ---- */
struct texture_spec {
    struct texture_desc desc;   /* checked here; its address is not looked at */
    struct span         buffer; /* whose memory it reads, which may be another texture's texels; empty: its own */
    uint64_t            offset; /* in the buffer, bytes */
};
struct texture_info {
    char                id[ID_BYTES];
    struct texture_desc desc;
    uint64_t            bytes;
    char                buffer[ID_BYTES]; /* "": it has memory of its own */
    uint64_t            offset;
    uint64_t            number, surface; /* as kernels take them; surface 0: it is none */
    uint64_t            created_wall_ns;
};
/* As buffer_create(): an existing one of that id answers if its properties are the same, else SPEC_CONFLICT. INVALID_FIELD, BUFFER_NOT_FOUND,
 * QUOTA_EXCEEDED, DEVICE_MEMORY_EXHAUSTED, NOT_IMPLEMENTED. */
enum status texture_create(struct session *s, struct span id, const struct texture_spec *spec, struct texture_info *out, bool *created,
                           struct problem *why);
enum status texture_info_of(struct session *s, struct span id, struct texture_info *out, struct problem *why);
/* Waits for the launches before it. TEXTURE_NOT_FOUND, BUFFER_BUSY. */
enum status texture_delete(struct session *s, struct span id, struct problem *why);
unsigned    texture_list(struct session *s, struct page *page, struct texture_info *items);
/* The id under which its texels are a buffer for every function that reads, writes or copies one. TEXTURE_NOT_FOUND. */
enum status texels_id_of(struct session *s, struct span texture, char id[ID_BYTES], struct problem *why);
/* "<texture>.texels"; with .tex and .surf instead, arguments of kernels name it. */
void texels_id(const char *texture, char id[ID_BYTES]);

enum arg_kind { ARG_SCALAR, ARG_BUFFER, ARG_BYTES, ARG_STRUCT };
struct launch_arg {
    enum arg_kind            kind;
    unsigned                 scalar_bytes; /* 1, 2, 4 or 8 */
    const char              *type;         /* ARG_SCALAR: its name in api/decode/args.def; NULL: made by the service, never shown */
    uint64_t                 value;
    struct span              buffer;  /* ARG_BUFFER: id; */
    uint64_t                 offset;  /* and offset, within the buffer */
    struct span              bytes;   /* ARG_BYTES */
    const struct launch_arg *members; /* ARG_STRUCT: laid out as C would */
    unsigned                 members_count;
};
/* What runs a built-in kernel. */
enum launch_engine {
    ENGINE_ANY,     /* the GPU vendor's library if it has the operation, else our kernel */
    ENGINE_BUILTIN, /* our kernel */
    ENGINE_VENDOR,  /* the vendor's library */
};
struct launch_spec {
    struct span                id; /* empty: the server generates one */
    struct span                module;
    struct span                kernel;   /* as in the source, mangled, or a name expression */
    struct span                dtype;    /* not empty: `kernel` is built in, and has no module; its grid and block are derived */
    enum launch_engine         engine;   /* of a built-in kernel */
    const struct builtin_call *builtin;  /* set by session/ itself */
    uint32_t                   grid[3];  /* grid[0] = 0: derive from `threads` */
    uint64_t                   threads;  /* only with automatic block */
    uint32_t                   block[3]; /* block[0] = 0: chosen by the occupancy calculator */
    uint32_t                   shared_bytes;
    bool                       cooperative; /* the kernel may synchronize its whole grid; the grid must fit on the device at once */
    bool                       untimed;     /* nobody asks for its time on the device */
    const struct launch_arg   *args;
    unsigned                   args_count;
    struct span                params; /* .data not NULL: all parameters as they lie in memory, maybe 0 bytes, and no args */
    struct span                stream; /* "" = default */
    uint64_t                   timeout_ms;
    bool                       at_once; /* launch_submit() must not block */
    uint64_t                   spin_ns; /* how long launch_submit() spins for the end; it never sleeps */
};
struct launch_info {
    char                  id[ID_BYTES], module[ID_BYTES], stream[STREAM_NAME_BYTES];
    char                  dtype[DTYPE_NAME_BYTES]; /* not "": a built-in kernel, without a module */
    bool                  vendor;                  /* a vendor's library ran the built-in kernel; grid and block are meaningless */
    const char           *kernel;                  /* borrowed until launch_return */
    uint32_t              grid[3], block[3], shared_bytes;
    enum work_state       state;
    uint64_t              created_wall_ns, started_wall_ns, finished_wall_ns; /* 0 = not yet */
    bool                  untimed; /* gpu_us is the worker's time, by its clock, from giving it to the device */
    double                gpu_us;  /* valid when succeeded */
    struct span           output;  /* printf text; borrowed until launch_return */
    bool                  output_truncated;
    const struct problem *problem; /* when failed; borrowed until launch_return */
};
/* Checks everything that can be checked (ARGUMENT_MISMATCH with /args/N, LAUNCH_CONFIG_INVALID, KERNEL_NOT_FOUND), then submits. Blocks
 * for the worker, a compiler or memory at the first use of a stream's name, an automatic block or a built-in kernel, and for a built-in
 * kernel's scratch memory; with spec->at_once it returns PENDING instead and does nothing. *out is a reference for launch_return, NULL
 * on failure. If the id exists: SPEC_CONFLICT unless equal (then *created = false). */
enum status launch_submit(struct session *s, const struct launch_spec *spec, struct launch **out, bool *created, struct problem *why);
enum status launch_borrow(struct session *s, struct span id, struct launch **out, struct problem *why);
void        launch_return(struct launch *l);
/* Over when it has finished (succeeded, failed, cancelled), all output fetched. */
struct waitlist *launch_end(struct launch *l);
void             launch_info_of(struct launch *l, struct launch_info *out);
/* Queued: ends as cancelled, *cancelled = true. Running: LAUNCH_RUNNING. Finished: OK with *cancelled = false. Waits for the worker. */
enum status launch_cancel(struct session *s, struct launch *l, bool *cancelled, struct problem *why);
/* As launch_cancel(), without the outcome and without waiting. */
void     launch_abandon(struct launch *l);
unsigned launch_list(struct session *s, struct page *page, struct launch **items); /* references, to be returned */
/* Calls `each` for every launch that has ended, the oldest first; its digest is of what was asked for, zeros where the service chose the id. False: no
 * memory. */
typedef void launch_seen(void *context, const struct launch_info *l, const unsigned char digest[SHA256_BYTES]);
bool         launch_each_ended(struct session *s, launch_seen *each, void *context);
/* One that has ended elsewhere, with the session that is restored; it is the youngest. SNAPSHOT_INVALID: there is one of that id; OUT_OF_MEMORY. */
enum status launch_restore(struct session *s, const struct launch_info *was, const unsigned char digest[SHA256_BYTES], struct problem *why);
