/* Sessions and what they own: buffers, modules, streams, launches. Ownership, quotas, handles; no HTTP, no CUDA.
 *
 * A session is one worker, one worker session, one fault domain. Everything here is thread-safe; a struct session * is borrowed
 * (session_borrow) and returned, and survives its own deletion until then. Objects are named by ids; info structs are copies.
 * An id that does not exist and one of another caller are the same: *_NOT_FOUND with the same text. */
#ifndef GPUREST_SESSION_SESSION_H
#define GPUREST_SESSION_SESSION_H

#include "base/arena.h"
#include "base/digest.h"
#include "base/problem.h"
#include "base/waker.h"
#include "ipc/compile_job.h"
#include "ipc/kernel_table.h"
#include "limits.h"

struct pool;
struct compile_service;
struct code_cache;
struct registry; /* all sessions of this process */
struct session;
struct launch; /* reference-counted */
struct builtin_call;
struct transfer; /* a streamed write to or read from a buffer */

/* Who owns what is made, in this layer's own words. `owner` is compared by pointer and never followed. */
struct tenant {
    const void *owner;
    const char *name; /* for logs and cache keys */
    unsigned    sessions_max;
    uint64_t    memory_max_bytes;
};

/* ---- registry.c ---- */
struct registry_config {
    struct pool            *pool;
    struct compile_service *compiler;
    struct code_cache      *cache;
    const char             *node; /* "" or the node's name, which then is part of session ids */
    unsigned                sessions_max;
    bool                    cache_shared;     /* callers take compiled code of each other */
    uint64_t                result_ttl_s;     /* results of asynchronous batches are kept so long */
    uint32_t                crash_budget;     /* faults that a tenant may have on a device at once; 0 = any number */
    uint64_t                crash_window_s;   /* in which they are all forgotten again, one by one */
    uint64_t                shared_bytes_max; /* of memory shared with clients of this host (share.h); 0 = none is */
};
enum status registry_create(struct registry **out, const struct registry_config *config);
/* Closes all sessions. */
void registry_destroy(struct registry *r);
/* From now on session_create answers DRAINING. */
void registry_drain(struct registry *r);
/* ... and from now on no longer. */
void registry_resume(struct registry *r);
/* What still runs ends at once, with WORKER_LOST: nothing waits for a worker any more that hangs. */
void     registry_kill_workers(struct registry *r);
unsigned registry_count(struct registry *r);
unsigned registry_count_of(struct registry *r, const struct tenant *t);
uint64_t registry_memory_of(struct registry *r, const struct tenant *t); /* bytes in buffers, over all its sessions */
/* What a tenant has of bounds that all share. */
struct registry_use {
    unsigned sessions; /* those of runs, and those whose worker has not ended yet, included */
    unsigned runs;     /* under way on sessions of their own */
    unsigned shares;   /* memory that clients map */
    uint64_t shared_bytes;
    uint64_t batch_bytes; /* asynchronous batches and their results */
};
struct registry_use registry_use_of(struct registry *r, const struct tenant *t);

/* Faults of its kernels that are not forgotten yet, of the device where it has most. */
unsigned registry_faults_of(struct registry *r, const struct tenant *t);
/* Callers whose new work on that device is refused for their faults now. */
unsigned registry_budgets_spent(struct registry *r, unsigned device);

/* ---- session.c ---- */
enum session_state { SESSION_STARTING, SESSION_READY, SESSION_FAULTED, SESSION_CLOSING };
enum { SESSION_STATES = SESSION_CLOSING + 1 };
const char *session_state_name(enum session_state s);
/* How many sessions there are in each state, of all callers. */
void session_states(struct registry *r, unsigned counts[SESSION_STATES]);

struct label {
    char key[LABEL_KEY_BYTES];
    char value[LABEL_VALUE_BYTES];
};

struct session_spec {
    struct span         id;           /* empty: the server makes one; else a valid client id (checked here) */
    struct span         device;       /* empty: the default */
    uint64_t            memory_limit; /* MEMORY_LIMIT_NONE */
    uint64_t            idle_timeout_s;
    uint64_t            max_lifetime_s;
    bool                memcheck;
    bool                hidden; /* one that nobody lists; its id is no id that a client could name */
    const struct label *labels;
    unsigned            labels_count;
};

struct session_info {
    char               id[ID_BYTES];
    char               device[32];
    enum session_state state;
    uint64_t           generation;
    uint64_t           created_wall_ns;
    uint64_t           expires_wall_ns; /* the earlier of idle and lifetime end, as of now */
    uint64_t           idle_timeout_s;
    uint64_t           max_lifetime_s;
    uint64_t           memory_limit; /* MEMORY_LIMIT_NONE */
    bool               memcheck;
    struct label       labels[LABELS_MAX];
    unsigned           labels_count;
    struct problem     fault; /* status OK: none */
    uint64_t           device_time_us;
    uint64_t           memory_bytes;
    unsigned           buffers, modules, launches;
};

/* Takes a worker from the pool; may block. With an id that exists (same tenant): same spec -> *created = false, another -> SPEC_CONFLICT. */
enum status session_create(struct registry *r, const struct tenant *t, const struct session_spec *spec, struct session **borrowed,
                           bool *created, struct problem *why);
/* SESSION_NOT_FOUND, or *out pinned until session_return. Counts as use (idle timeout starts anew at the return). */
enum status session_borrow(struct registry *r, const struct tenant *t, struct span id, struct session **out, struct problem *why);
void        session_return(struct session *s);
void        session_info_of(struct session *s, struct session_info *out);
struct session_patch {
    bool                has_idle_timeout, has_labels;
    uint64_t            idle_timeout_s;
    const struct label *labels; /* replace all */
    unsigned            labels_count;
};
enum status session_patch(struct session *s, const struct session_patch *p, struct problem *why);
/* New worker, all handles void, generation + 1, state ready. Also the way out of `faulted`. Blocks. */
enum status session_reset(struct session *s, struct problem *why);
/* Gone for everyone at once; worker, memory and quota are released before it returns. Unfinished launches end as cancelled. */
enum status session_delete(struct session *s, struct problem *why);
/* OK, or SESSION_FAULTED (with what faulted it in detail), or SESSION_BUSY. */
enum status session_usable(struct session *s, struct problem *why);
/* The device's fixed facts, for checks. Borrowed from the session's worker. */
uint64_t session_generation(struct session *s);
uint64_t session_epoch(struct session *s); /* write epoch: +1 by every upload, fill, copy and launch */

/* Lists: up to `limit` items with keys after `cursor` (empty: from the start), in a stable order. next is "" at the end. */
struct page {
    struct span cursor;
    unsigned    limit;
    char        next[ID_BYTES];
};
/* items: room for page->limit; returns how many, over the tenant's own sessions. */
unsigned session_list(struct registry *r, const struct tenant *t, struct page *page, struct session_info *items);

/* ---- stream.c ---- waits for everything submitted before, on one named stream ("" = all). Blocks.
 * UNKNOWN stream names are fine: nothing was submitted there. The session's fault otherwise. */
enum status session_sync(struct session *s, struct span stream, struct problem *why);

/* ---- memory.c ---- the device's memory as this session's worker sees it. Blocks for a call to the worker. */
struct session_memory {
    uint64_t allocated_bytes; /* as asked for: by buffers, and by what the worker itself needs */
    uint64_t cached_bytes;    /* reserved but not allocated: kept for later allocations, or lost to rounding */
    uint64_t reserved_bytes;  /* taken from the device */
    uint64_t free_bytes;      /* of the whole device, now */
    uint64_t peak_bytes;      /* greatest allocated_bytes of this generation */
    uint64_t limit_bytes;     /* the session's own; MEMORY_LIMIT_NONE */
    double   fragmentation;   /* 0: all free memory is one block; towards 1: many small ones */
};
enum status session_memory_of(struct session *s, struct session_memory *out, struct problem *why);
/* Gives cached memory back to the device; *out is what there is afterwards. Does not wait for running kernels. */
enum status session_memory_trim(struct session *s, struct session_memory *out, struct problem *why);

/* ---- buffer.c ---- */
/* Tells a buffer's contents from others that it had or will have, and from those of another buffer that has its id later. Any write in the
 * session changes the epoch of all. */
struct contents {
    uint64_t generation, epoch, buffer;
};
static const uint64_t EPOCH_ANY = UINT64_MAX; /* the buffer alone matters */

struct buffer_info {
    char            id[ID_BYTES];
    uint64_t        bytes;
    uint64_t        created_wall_ns;
    bool            shareable;
    struct contents contents;
};
/* id empty: the server makes one. An id that exists: same size and kind -> *created = false, another -> SPEC_CONFLICT. */
enum status buffer_create(struct session *s, struct span id, uint64_t bytes, struct buffer_info *out, bool *created, struct problem *why);
/* One that processes of the same host may map (share.h): an allocation of its own, all zeros, charged with what it takes. FEATURE_DISABLED;
 * INVALID_FIELD where the device shares nothing. */
enum status buffer_create_shareable(struct session *s, struct span id, uint64_t bytes, struct buffer_info *out, bool *created,
                                    struct problem *why);
enum status buffer_info_of(struct session *s, struct span id, struct buffer_info *out, struct problem *why);
enum status buffer_delete(struct session *s, struct span id, struct problem *why);
/* Only if its contents are still these; else PRECONDITION_FAILED, also when it is gone. */
enum status buffer_delete_if(struct session *s, struct span id, const struct contents *only, struct problem *why);
/* For a buffer whose upload was given up: deletes it without waiting, behind what its transfer has submitted. It stays when the id is
 * unknown, or when launches that were not submitted yet may name it. Call it after the transfer's destroy. */
void     buffer_abandon(struct session *s, struct span id);
unsigned buffer_list(struct session *s, struct page *page, struct buffer_info *items);
/* Waits until done. offset + bytes inside the buffer, else RANGE_NOT_SATISFIABLE; both multiples of pattern_bytes, else INVALID_FIELD. */
enum status buffer_fill(struct session *s, struct span id, uint64_t offset, uint64_t bytes, uint64_t pattern, unsigned pattern_bytes,
                        struct span stream, struct problem *why);
enum status buffer_copy(struct session *s, struct span to, uint64_t offset, struct span from, uint64_t from_offset, uint64_t bytes,
                        struct span stream, struct problem *why);

/* ---- transfer.c ---- bytes in pieces through staging memory, overlapped with the device's own copying.
 * A transfer keeps its session and buffer alive. One thread at a time per transfer. */
/* Checks range and state; never blocks. bytes may be 0. */
enum status transfer_write_begin(struct session *s, struct span buffer, uint64_t offset, uint64_t bytes, struct transfer **out,
                                 struct problem *why);
/* Only if the buffer's contents are still these; else PRECONDITION_FAILED, also when it is gone. Of several at once one begins. */
enum status transfer_write_begin_if(struct session *s, struct span buffer, uint64_t offset, uint64_t bytes, const struct contents *only,
                                    struct transfer **out, struct problem *why);
/* Takes some of the piece; PENDING registers w (no staging free). Never blocks. */
enum status transfer_write(struct transfer *t, struct span piece, size_t *consumed, struct waker *w, struct problem *why);
/* The same without a copy: room for the next bytes in staging memory itself, lent until transfer_write_commit(), which says how many
 * came. Nothing else may be done with the transfer between. w is woken when the memory had better be returned at once: the session
 * is about to end. *room is never 0. Neither blocks. */
enum status transfer_write_borrow(struct transfer *t, char **to, size_t *room, struct waker *w, struct problem *why);
enum status transfer_write_commit(struct transfer *t, size_t bytes, struct problem *why);
/* Waits until every byte is in the buffer (ordered before everything submitted later). Blocks. */
enum status transfer_write_finish(struct transfer *t, struct problem *why);
/* What it has made of the buffer, after its finish. */
struct contents transfer_contents(const struct transfer *t);
enum status     transfer_read_begin(struct session *s, struct span buffer, uint64_t offset, uint64_t bytes, struct transfer **out,
                                    struct problem *why);
/* The first read-ahead has arrived, or its failure: to be waited for before a status line is sent. Blocks. */
enum status transfer_read_wait(struct transfer *t, struct problem *why);
/* PENDING with *got = 0 registers w. Never blocks. */
enum status transfer_read(struct transfer *t, char *to, size_t room, size_t *got, struct waker *w);
/* The same without a copy: the next bytes where they arrived, never none, lent until transfer_read_release(), which says how many were
 * used. Only while bytes are left. w and what may be done between: as for transfer_write_borrow(). */
enum status transfer_read_lend(struct transfer *t, struct span *out, struct waker *w);
void        transfer_read_release(struct transfer *t, size_t bytes);
/* Ends it in any state (an unfinished write leaves the range indeterminate) and frees it. Does not block: staging returns when the
 * device is done with it. Afterwards w is not touched. NULL is a no-op. */
void transfer_destroy(struct transfer *t);

/* ---- module.c ---- */
enum image_kind { IMAGE_CUDA, IMAGE_PTX, IMAGE_BINARY, IMAGE_PLAN /* session/ itself: bytes of a struct vendor_plan */ };
struct module_spec {
    struct span                  id; /* empty: the server makes one */
    enum image_kind              kind;
    struct span                  source; /* CUDA C++ or PTX; or a cubin or fatbin */
    const struct compile_header *headers;
    unsigned                     headers_count;
    const struct span           *options; /* as the client sent them; when checked, canonical */
    unsigned                     options_count;
    const struct span           *name_expressions;
    unsigned                     name_expressions_count;
    /* by module_spec_check() */
    bool          checked;
    unsigned char source_digest[SHA256_BYTES]; /* of the source alone */
    unsigned char digest[SHA256_BYTES];        /* of all but the id: equal digests, equal input */
};
/* The one place where what a module is made from is checked, for every way in, and hashed: every spec passes here once, before
 * module_create(). Options become canonical and headers sorted, in the arena. INVALID_FIELD or OPTION_NOT_ALLOWED with a pointer into the
 * module's request, BODY_TOO_LARGE, OUT_OF_MEMORY. Headers, options and expressions come with IMAGE_CUDA alone. */
enum status module_spec_check(struct module_spec *spec, struct arena *arena, struct problem *why);
/* A loaded module, borrowed from the session until module_return. Its parts never change. */
struct module;
struct module_view {
    const char                *id;
    const struct kernel_table *table;
    /* name expressions and what they were lowered to; [expressions_count] */
    const char *const *expressions;
    const char *const *lowered;
    unsigned           expressions_count;
    const char        *arch;
    bool               cached;          /* code came from the cache */
    double             compile_ms;      /* spent compiling, 0 when cached */
    struct span        log, ptx, cubin; /* may be empty */
    uint64_t           created_wall_ns;
    const char        *code_hash; /* SHA-256 of what was loaded, hex */
};
/* Compiles (or finds in the cache) and loads; spec is checked. Blocks. Identical input in this session -> the existing one, *created = false.
 * COMPILE_FAILED fills the compile part of *why from `arena`. *out must be given to module_return. */
enum status module_create(struct session *s, const struct module_spec *spec, struct arena *arena, struct module **out, bool *created,
                          struct problem *why);
enum status module_borrow(struct session *s, struct span id, struct module **out, struct problem *why);
void        module_return(struct session *s, struct module *m);
void        module_view_of(const struct module *m, struct module_view *out); /* valid until module_return */
enum status module_delete(struct session *s, struct span id, struct problem *why);
/* Copies ids only. */
unsigned module_list(struct session *s, struct page *page, char (*ids)[ID_BYTES]);

/* ---- launch.c ---- */
enum launch_state { LAUNCH_QUEUED, LAUNCH_RUNNING, LAUNCH_SUCCEEDED, LAUNCH_FAILED, LAUNCH_CANCELLED };
const char *launch_state_name(enum launch_state s);

/* One argument. Scalars are little-endian in `value`. */
enum arg_kind { ARG_SCALAR, ARG_BUFFER, ARG_BYTES, ARG_STRUCT };
struct launch_arg {
    enum arg_kind            kind;
    unsigned                 scalar_bytes; /* 1, 2, 4 or 8 */
    const char              *type; /* ARG_SCALAR: its name in api/decode/args.def; NULL: of our own making, nothing to be told of it */
    uint64_t                 value;
    struct span              buffer;  /* ARG_BUFFER: id; */
    uint64_t                 offset;  /* and offset, within the buffer */
    struct span              bytes;   /* ARG_BYTES */
    const struct launch_arg *members; /* ARG_STRUCT: laid out as C would */
    unsigned                 members_count;
};
/* Who does a built-in kernel. */
enum launch_engine {
    ENGINE_ANY,     /* a library of the GPU's maker where there is one that does it, else ours */
    ENGINE_BUILTIN, /* ours */
    ENGINE_VENDOR,  /* a library */
};
struct launch_spec {
    struct span                id; /* empty: the server makes one */
    struct span                module;
    struct span                kernel;   /* as in the source, mangled, or a name expression */
    struct span                dtype;    /* not empty: `kernel` is a built-in one, which has no module and a grid and block of its own */
    enum launch_engine         engine;   /* of a built-in one */
    const struct builtin_call *builtin;  /* session/ itself sets it */
    uint32_t                   grid[3];  /* grid[0] = 0: derive from `threads` */
    uint64_t                   threads;  /* only with automatic block */
    uint32_t                   block[3]; /* block[0] = 0: the occupancy calculator's choice */
    uint32_t                   shared_bytes;
    bool                       cooperative; /* the kernel may wait for its whole grid; as many blocks as the device holds at once */
    const struct launch_arg   *args;
    unsigned                   args_count;
    struct span                stream; /* "" = default */
    uint64_t                   timeout_ms;
    bool                       at_once; /* launch_submit() is to wait for nobody */
    uint64_t                   spin_ns; /* for so long launch_submit() spins for the end; it never sleeps */
};
struct launch_info {
    char              id[ID_BYTES], module[ID_BYTES], stream[STREAM_NAME_BYTES];
    char              dtype[DTYPE_NAME_BYTES]; /* not "": a built-in kernel, and no module */
    bool              vendor;                  /* of a built-in kernel: a library did it, and grid and block say nothing */
    const char       *kernel;                  /* borrowed until launch_return */
    uint32_t          grid[3], block[3], shared_bytes;
    enum launch_state state;
    uint64_t          created_wall_ns, started_wall_ns, finished_wall_ns; /* 0 = not yet */
    double            gpu_us;                                             /* valid when succeeded */
    struct span       output;                                             /* printf text; borrowed until launch_return */
    bool              output_truncated;
    struct problem    problem; /* when failed */
};
/* Checks everything that can be checked (ARGUMENT_MISMATCH with /args/N, LAUNCH_CONFIG_INVALID, KERNEL_NOT_FOUND), then submits.
 * Waits for the worker, a compiler or memory at a first use: of a stream's name, of an automatic block, of a built-in kernel; and for a built-in
 * one's scratch memory. With spec->at_once it is PENDING instead, and nothing was done.
 * *out is a reference to give to launch_return, NULL on failure. With an id that exists: SPEC_CONFLICT unless equal (then *created = false). */
enum status launch_submit(struct session *s, const struct launch_spec *spec, struct launch **out, bool *created, struct problem *why);
enum status launch_borrow(struct session *s, struct span id, struct launch **out, struct problem *why);
void        launch_return(struct launch *l);
/* True when finished (succeeded, failed, cancelled), all output fetched. */
bool launch_finished(struct launch *l);
/* Registers w to be woken at the end; false when it has finished already (then w is not registered). */
bool launch_watch(struct launch *l, struct waker *w);
void launch_unwatch(struct launch *l, struct waker *w);
void launch_info_of(struct launch *l, struct launch_info *out);
/* Queued: ends as cancelled, *cancelled = true. Running: LAUNCH_RUNNING. Finished: OK with *cancelled = false. Waits for the worker. */
enum status launch_cancel(struct session *s, struct launch *l, bool *cancelled, struct problem *why);
/* The same for who does not want to know what came of it: waits for nobody. */
void     launch_abandon(struct launch *l);
unsigned launch_list(struct session *s, struct page *page, struct launch **items); /* references, to be returned */

#endif
