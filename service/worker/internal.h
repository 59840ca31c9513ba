/* What the files of the device worker share: one process, one device, one thread that does everything. */
#ifndef GPUREST_WORKER_INTERNAL_H
#define GPUREST_WORKER_INTERNAL_H

#include "device/device.h"
#include "ipc/shm.h"

/* One accepted command that is not answered yet. */
struct work {
    struct work         *next;
    uint64_t             sequence; /* order of arrival */
    bool                 issued;   /* given to the device, or refused by it */
    enum status          refused;  /* by the device at issue: nothing of it runs */
    struct problem       why;      /* of refused */
    uint64_t             started_ns;
    struct device_event *before; /* LAUNCH only; both are from the free list of events, NULL = not issued */
    struct device_event *after;
    struct command       command;
};

/* A first-in first-out list of work. */
struct queue {
    struct work *first;
    struct work *last;
};

/* The default stream is slot 0 and has no handle. */
struct stream {
    bool                  used;
    uint16_t              generation; /* of the slot: ids of a destroyed stream are found out */
    struct device_stream *handle;
    struct queue          queue;   /* oldest first: issued ones, then waiting ones */
    struct work          *waiting; /* the first one not issued; NULL = all are */
    unsigned              issued;
    bool                  launching; /* a launch is in flight: nothing is issued behind it, so that it can be cancelled */
};

struct module_slot {
    struct device_module *module; /* NULL = free */
    uint16_t              generation;
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
    uint32_t              seed; /* another one each time: an old result does not pass */
};

struct device_worker {
    const struct device_ops *ops;
    struct device           *device;
    struct shm               shm;
    struct ring              commands, completions;
    struct work              works[RING_SLOTS];
    struct work             *works_free;
    uint64_t                 sequence;
    struct stream            streams[STREAMS_PER_SESSION_MAX + 1];
    unsigned                 streams_end; /* of the slots that were ever used: the rest need no look */
    struct queue             barriers; /* calls that wait for work before them */
    struct device_event     *events_free[2 * RING_SLOTS];
    unsigned                 events_count;
    struct module_slot       modules[MODULES_PER_WORKER_MAX];
    struct buf               image; /* of a MODULE_LOAD that comes in pieces */
    struct output            outputs[OUTPUTS_KEPT_MAX];
    unsigned                 outputs_next;
    struct canary            canary;
    bool                     lost; /* the context: everything was answered, the process ends */
};

/* ---- device_worker.c ---- */
/* Answers `k` and frees it. `done` has its reply and nothing else set; why may be NULL when st is OK. */
void         work_answer(struct device_worker *w, struct work *k, enum status st, struct completion *done, const struct problem *why);
void         work_started(struct device_worker *w, const struct work *k);
void         queue_push(struct queue *q, struct work *k);
struct work *queue_pop(struct queue *q);
/* These three say that the context is gone. */
bool status_is_fatal(enum status st);
/* Answers everything with *why and context_lost. */
void worker_lose(struct device_worker *w, const struct problem *why);

/* ---- streams.c ---- */
/* NULL when there is no such stream. */
struct stream *stream_find(struct device_worker *w, uint32_t id);
/* Queues it, and gives it to the device at once if that may be. */
void stream_push(struct device_worker *w, struct stream *s, struct work *k);
/* Issues what may be issued, answers what is done. True when anything moved. */
bool streams_advance(struct device_worker *w);
bool streams_in_flight(const struct device_worker *w);
/* Nothing that came before `sequence` is unanswered; on one stream or, with NULL, on all. */
bool streams_passed(const struct device_worker *w, const struct stream *s, uint64_t sequence);
/* Takes a launch out that was not given to the device yet; NULL when there is none of that tag. */
struct work *streams_withdraw(struct device_worker *w, uint64_t tag);
/* All work, in order; for worker_lose(). */
struct work *streams_pop_any(struct device_worker *w);

/* ---- device_calls.c ---- */
/* Handles a new command: answers it, or puts it on its stream or among the barriers. */
void worker_accept(struct device_worker *w, struct work *k);
/* Answers the barriers whose time has come. True when there was one. */
bool                  barriers_advance(struct device_worker *w);
struct device_module *loaded_module_find(struct device_worker *w, uint32_t id);

/* ---- output.c ---- */
/* Keeps what was printed until now for that launch; how many bytes. */
uint32_t output_keep(struct device_worker *w, struct device_stream *s, uint64_t tag);
/* Copies it out and forgets it. INVALID_REQUEST when none is kept. */
enum status output_take(struct device_worker *w, uint64_t tag, unsigned char *to, size_t room, uint64_t *bytes);

/* ---- canary.c ---- */
/* Computes a known answer on the device; prepares itself at the first call. DEVICE_ERROR when the answer is wrong or does not come. */
enum status canary_run(struct device_worker *w, struct problem *why);

/* ---- sandbox.c ---- */
/* Before anything else: dies with the parent, ignores the terminal's signals, leaves no core file. False when that failed. */
bool sandbox_enter(void);

#endif
