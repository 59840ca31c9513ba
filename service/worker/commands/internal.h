/* The device worker as its files see it: one process, one device, one thread that does everything. */
#pragma once

#include <sys/queue.h>

#include "device/device.h"
#include "ipc/shm.h"
#include "worker/bounds.h"

struct run;

/* One accepted command that is not answered yet. */
struct accepted_command {
    TAILQ_ENTRY(accepted_command) queued;
    uint64_t             sequence;   /* order of arrival */
    bool                 issued;     /* given to the device, or refused by it */
    enum status          refused;    /* by the device at issue: it has not run at all */
    struct problem       why;        /* of refused */
    uint64_t             started_ns; /* 0: not yet; of what is given behind other work: when that was seen to be on last */
    uint64_t             place;      /* on a device that does one thing after another: how many operations stand before it */
    uint64_t             order;      /* in which all streams' commands were given to the device, from 1 */
    bool                 told;       /* that it started; of a launch or a run */
    bool                 overdue;    /* it was judged so: the context ends for it */
    uint32_t             mark;       /* of a launch: what stands in its stream's mark once it is done; 0: nothing will */
    struct device_event *before;     /* of a timed LAUNCH; both are from the free list of events. NULL = not issued, or a run */
    struct device_event *after;      /* NULL too where the stream itself is asked (stream_query) */
    struct run          *run;        /* COMMAND_LIST and GRAPH_RUN only: until it is answered */
    struct command       command;
};

TAILQ_HEAD(command_queue, accepted_command);

/* The default stream is slot 0 and has no handle. */
struct stream {
    bool                     used;
    uint16_t                 generation; /* of the slot: ids of a destroyed stream are found out */
    struct device_stream    *handle;
    struct command_queue     queue;   /* oldest first: first the issued ones, then the waiting ones */
    struct accepted_command *waiting; /* the first one not issued, or a run not wholly issued; NULL = all are */
    unsigned                 issued;
    struct accepted_command *last;     /* the newest launch in flight; NULL: none. What may stand behind it: launches.c */
    unsigned                 launches; /* in flight */
    uint64_t                 asked_ns; /* when the driver was asked last whether a marked launch has failed */
    uint32_t                 marks;    /* the last mark that was put; of the slot, as its word in shm.marks is */
    unsigned                 runs;     /* in flight: a launch is not issued behind them, so that its deadline covers it alone */
    unsigned                 items;    /* entries of runs in flight */
};

struct module_slot {
    struct device_module *module; /* NULL = free */
    uint16_t              generation;
};

struct graph {
    struct device_graph *graph; /* NULL = free */
    uint32_t             count; /* its launches */
    bool                 timed; /* one of them is */
    uint16_t             generation;
};

/* An event that batches name by its place. `number` is that of the last record given to the device; 0 = none. */
struct named_event {
    struct device_event *event;
    uint32_t             number;
};

/* Host memory that a client maps, too, to copy from and to. The client may write to it at any time; its size is sealed. */
struct host_memory {
    unsigned char *base; /* NULL = free */
    uint64_t       bytes;
    uint64_t       beside;   /* address of the allocation that it belongs to */
    bool           closing;  /* its end was requested: no new copies */
    bool           attached; /* the device has it pinned */
    uint16_t       generation;
};

/* What is asked when a deadline has passed; `stream` and `event` are for nothing else. */
struct probe {
    struct device_stream *stream;
    struct device_event  *event;
    uint64_t              asked_ns;  /* 0: not yet */
    bool                  failed;    /* nothing could be asked */
    uint32_t              unsure_ms; /* of the verdict: how long it had no answer; 0: it had one */
};

/* A finished launch's printf text. */
struct output {
    uint64_t   tag;
    struct buf text;
};

struct canary {
    struct device_module *module;  /* NULL: not prepared */
    uint64_t              in, out; /* device addresses */
    struct device_event  *done;
    uint32_t              seed; /* different each time, so that an old result does not pass */
};

struct device_worker {
    const struct device_ops *ops;
    struct device           *device;
    struct shm               shm;
    struct ring              commands, completions;
    struct accepted_command  accepted[RING_SLOTS];
    unsigned                 accepted_end;  /* places ever used: the rest take no memory */
    struct command_queue     commands_free; /* of those */
    uint64_t                 sequence;
    uint64_t                 issues; /* commands that were given to the device */
    struct stream            streams[STREAMS_PER_SESSION_MAX + 1];
    unsigned                 streams_end; /* slots ever used: the rest need no check */
    struct command_queue     barriers;    /* calls that wait for earlier work */
    struct device_event     *events_free[2 * RING_SLOTS + 2 * STREAM_ITEMS_IN_FLIGHT_MAX];
    unsigned                 events_count;
    struct named_event       named[EVENTS_PER_SESSION_MAX];
    struct graph             graphs[GRAPHS_PER_WORKER_MAX];
    bool                     marks_fail; /* the device reported that it cannot */
    bool                     prints;     /* a module was loaded whose kernels print: whose text it is, is known of lone launches alone */
    uint8_t                  brief[BRIEF_FORMS]; /* how often in a row, up to BRIEF_TIMES */
    struct module_slot       modules[MODULES_PER_WORKER_MAX];
    struct buf               image; /* of a MODULE_LOAD that comes in pieces */
    struct output            outputs[OUTPUTS_KEPT_MAX];
    unsigned                 outputs_next;
    struct canary            canary;
    struct probe             probe;
    struct host_memory       hosts[2 * SHARES_PER_SESSION_MAX]; /* as many again may wait for the end of their users */
    bool                     sharing;                           /* there is a socket for descriptors */
    struct problem           told;                              /* of what is being reaped; all zeros between */
    struct problem           unaccepted;                        /* of what is being accepted; all zeros between */
    bool                     lost;                              /* the context: everything was answered, the process ends */
};

/* ---- device_worker.c ---- */
/* Answers `k` and frees it. `done` has only its reply set; why may be NULL when st is OK. */
void command_answer(struct device_worker *w, struct accepted_command *k, enum status st, struct completion *done,
                    const struct problem *why);
/* Tells it. Of a launch that succeeds before START_TOLD_US it need not be told. */
void command_started(struct device_worker *w, struct accepted_command *k);
/* The statuses that mean that the context is lost. */
bool status_is_fatal(enum status st);
/* Answers everything that is left, with worker_session_lost and *why. Work that runs kernels, and cannot have been the one that ended the context, is
 * answered WORKER_LOST: *innocent, if all of that is; NULL: what the device had not come to. */
void worker_lose(struct device_worker *w, const struct problem *why, const struct problem *innocent);

/* ---- launches.c ---- */
/* True: the launch may be issued now, behind s->last. */
bool overlap_allowed(struct device_worker *w, const struct stream *s, const struct accepted_command *k);
/* One has run so long. */
void overlap_learn(struct device_worker *w, const struct msg_launch *m, uint64_t ran_ns);
/* Whether the device writes words behind what is done (device_ops.mark). */
bool uses_marks(const struct device_worker *w);
/* The stream's next mark, for an untimed launch; none where the device has none. */
struct device_mark mark_next(struct device_worker *w, const struct stream *s);
/* As device_ops.event_query(), of an untimed launch; it is the stream's oldest, and the newest unless it has a mark. */
enum status launch_query(struct device_worker *w, struct stream *s, const struct accepted_command *k, struct problem *why);

/* ---- events.c ---- */
enum status event_take(struct device_worker *w, struct device_event **out);
void        event_give(struct device_worker *w, struct device_event *e); /* NULL is a no-op */
/* By name, which is valid but for event_name_valid(). */
bool event_name_valid(struct event_name n);
/* Its record was given to the device: other work may wait for it. */
bool        event_is_recorded(const struct device_worker *w, struct event_name n);
enum status named_event_record(struct device_worker *w, struct device_stream *s, struct event_name n);
enum status named_event_wait(struct device_worker *w, struct device_stream *s, struct event_name n);
/* PENDING too while its record waits. */
enum status named_event_query(struct device_worker *w, struct event_name n, struct problem *why);
/* Both are done. */
enum status named_event_elapsed(struct device_worker *w, struct event_name from, struct event_name to, float *us);

/* ---- issue.c ---- */
/* Recorded around a command; `before` for launches that are timed; `after` NULL: it is not watched by itself. */
struct issue_events {
    struct device_event *before, *after;
    struct device_mark   mark; /* of a launch */
};
/* Gives it to the device. A failure that is not fatal left nothing on the stream. */
enum status issue_command(struct device_worker *w, struct stream *s, uint32_t message, const void *body, const struct issue_events *events,
                          struct problem *why);
/* It waits for an event whose record is not issued yet. */
bool issue_blocked(const struct device_worker *w, uint32_t message, const void *body);
/* The device returned only a status: adds what was tried, or how the context was lost. `own` is asked last, NULL allowed. */
enum status issue_refused(struct device_worker *w, const struct device_event *own, enum status st, const char *what, struct problem *why);
enum status launch_describe(struct device_worker *w, const struct msg_launch *m, struct device_launch *out, struct problem *why);

/* ---- list.c ---- */
/* Checks the list of a COMMAND_LIST or GRAPH_RUN. Sets k->run, which must be closed in every case. */
enum status run_accept(struct device_worker *w, struct accepted_command *k, struct problem *why);
enum status graph_run_accept(struct device_worker *w, struct accepted_command *k, struct problem *why);
void        run_close(struct device_worker *w, struct run *r); /* NULL is a no-op */
/* Gives as much of it to the device as is allowed now. True: some of it was given. */
bool run_issue(struct device_worker *w, struct stream *s, struct run *r);
bool run_all_issued(const struct run *r);
/* PENDING, OK, or how it failed; sets *moved when some of it was done. */
enum status run_poll(struct device_worker *w, struct stream *s, struct run *r, bool *moved, struct problem *why);
/* Of the part in flight; NULL when none is. */
struct device_event *run_first_event(const struct run *r);
enum status          graph_make(struct device_worker *w, struct accepted_command *k, uint32_t *id, struct problem *why);
bool                 graph_exists(struct device_worker *w, uint32_t id);
/* All runs of it are done. */
void graph_end(struct device_worker *w, uint32_t id);

/* ---- streams.c ---- */
/* Given to the device, which has come to it, as far as it tells. */
bool command_reached(struct device_worker *w, const struct accepted_command *k);
/* Of its oldest work in flight; NULL when there is none, or none of its own. */
struct device_event *stream_first_event(const struct stream *s);
/* NULL when there is no such stream. */
struct stream *stream_find(struct device_worker *w, uint32_t id);
/* Queues it, and gives it to the device at once if allowed. */
void stream_push(struct device_worker *w, struct stream *s, struct accepted_command *k);
/* Issues what may be issued, answers what is done. True: something moved. */
bool streams_advance(struct device_worker *w);
bool streams_in_flight(const struct device_worker *w);
/* Everything before `sequence` is answered: on one stream, or on all with NULL. */
bool streams_passed(const struct device_worker *w, const struct stream *s, uint64_t sequence);
/* Takes out a launch that was not given to the device yet; NULL when there is none of that tag. */
struct accepted_command *streams_withdraw(struct device_worker *w, uint64_t tag);
/* All work, in order; for worker_lose(). */
struct accepted_command *streams_pop_any(struct device_worker *w);

/* ---- barriers.c ---- */
/* Answers the calls that wait for earlier work and whose time has come. True: there was one. */
bool barriers_advance(struct device_worker *w);

/* ---- worker/commands/calls.c ---- */
/* Handles a new command: answers it, or puts it on its stream or among the barriers. */
void                  worker_accept(struct device_worker *w, struct accepted_command *k);
struct device_module *loaded_module_find(struct device_worker *w, uint32_t id);
/* Checks a command before it goes on a stream. Bounds the timeout. */
enum status launch_check(struct device_worker *w, struct msg_launch *m, struct problem *why);
enum status fill_check(const struct msg_mem_fill *m, struct problem *why);

/* ---- overdue.c ---- */
/* At the start: later the driver may wait for a kernel that never ends. */
enum status probe_prepare(struct device_worker *w, struct problem *why);
/* Of work in flight whose deadline has passed. PENDING: it is not known yet, ask again. EXECUTION_TIMEOUT; or how the context was lost. */
enum status overdue_judge(struct device_worker *w, const struct accepted_command *k, uint64_t timeout_ms, struct problem *why);

/* How it is told, after a verdict. */
void overdue_describe(struct device_worker *w, const struct accepted_command *k, uint64_t timeout_ms, struct problem *why);

/* ---- memory.c ---- */
/* The outcome of allocating that many bytes, in words unless *why has some. */
enum status memory_answer(struct device_worker *w, uint64_t bytes, enum status st, struct problem *why);

/* ---- shared.c ---- */
/* A failure of the device that has no text yet. */
enum status shared_alloc(struct device_worker *w, const struct msg_mem_alloc_shared *m, struct msg_mem_alloc_shared_reply *r,
                         struct problem *why);
enum status shared_export(struct device_worker *w, const struct msg_mem_export *m, struct problem *why);
enum status host_map(struct device_worker *w, const struct msg_host_map *m, uint32_t *id, struct problem *why);
/* Room for one more exists only once all before is done. */
bool host_room_is_coming(struct device_worker *w);
/* No new copies from or to it from now on; false when there is none of that id. Call host_end() once all before is done. */
bool host_leave(struct device_worker *w, uint32_t id);
bool host_is_leaving(struct device_worker *w, uint32_t id);
void host_end(struct device_worker *w, uint32_t id);
/* The same for those that belong to that allocation. */
void host_leave_beside(struct device_worker *w, uint64_t address);
void host_end_beside(struct device_worker *w, uint64_t address);
/* A checked piece of staging memory (host 0) or of the host's. INVALID_REQUEST: it lies outside, or there is no such memory. */
enum status piece_find(struct device_worker *w, uint32_t host, struct shm_ref ref, unsigned char **out);

/* ---- output.c ---- */
/* Keeps the output until now for that launch; returns its size. */
uint32_t output_keep(struct device_worker *w, struct device_stream *s, uint64_t tag);
/* Copies it out and drops it. INVALID_REQUEST when none is kept. */
enum status output_take(struct device_worker *w, uint64_t tag, unsigned char *to, size_t room, uint64_t *bytes);

/* ---- canary.c ---- */
/* Computes a known answer on the device; prepares itself at the first call. DEVICE_ERROR: the answer is wrong or does not come. */
enum status canary_run(struct device_worker *w, struct problem *why);

/* ---- sandbox.c ---- */
/* Before anything else: dies with the parent, ignores the terminal's signals, writes no core file. False: that failed. */
bool sandbox_enter(void);
