/* One worker process as the front-end sees it: a slot, a process id, rings and staging memory in a sealed memfd.
 * Thread-safe: any thread may call; calls of one stream keep their order of submission. */
#pragma once

#include "base/deadline.h"
#include "ipc/message.h"

struct worker;

enum worker_state { WORKER_DEAD, WORKER_STARTING, WORKER_READY, WORKER_STOPPING };

enum call_event { CALL_STARTED, CALL_DONE };

/* One call in flight. Embedded in the caller's own object, which stays alive and unmoved until CALL_DONE is delivered. Zero-initialise,
 * set the three members of the caller, then worker_submit_<call>(). */
struct call {
    /* the caller's */
    void (*on_event)(
        struct call *c,
        enum call_event
            event); /* NULL allowed. Runs on whichever thread drains the ring, with exactly one CALL_DONE each: must not block, submit or wait */
    void *context;
    uint64_t
        deadline_ns; /* at this time the worker is killed and the call ends with EXECUTION_TIMEOUT (LAUNCH, COMMAND_LIST, GRAPH_RUN) or WORKER_LOST; DEADLINE_NEVER allowed. on_event(CALL_STARTED) may set it anew */
    /* the worker's; valid in on_event(CALL_DONE) and after call_wait() */
    enum status         status;
    bool                worker_session_lost;
    uint64_t            started_wall_ns; /* LAUNCH, COMMAND_LIST, GRAPH_RUN: when the device came to it; 0 before, and if it ended soon */
    union message_reply reply;
    struct problem      problem; /* filled when status is not OK */
    /* private to pool/ */
    uint64_t number;
    uint32_t message;
};

/* Calls. Submitting fails with WORKER_LOST (dead), or OVERLOADED (RING_SLOTS unfinished calls); on failure no event follows. */
enum status call_submit(struct worker *w, enum message m, const void *body, struct call *c); /* body: a struct msg_<call> of that message */
#define MESSAGE(NAME, name) enum status worker_submit_##name(struct worker *w, const struct msg_##name *m, struct call *c);
#include "ipc/messages.def"
#undef MESSAGE
/* As submit and wait in one: spins, then sleeps. `reply` and `why` may be NULL. */
#define MESSAGE(NAME, name)                                                                                                                \
    enum status worker_##name(struct worker *w, const struct msg_##name *m, struct msg_##name##_reply *reply, uint64_t deadline_ns,        \
                              struct problem *why);
#include "ipc/messages.def"
#undef MESSAGE

/* Calls that take along a borrowed descriptor, or bring one back, which the caller owns; they fill in the member `file` of *m.
 * INVALID_FIELD: the pool's workers share nothing. */
enum status worker_mem_alloc_file(struct worker *w, struct msg_mem_alloc_shared *m, int fd, struct msg_mem_alloc_shared_reply *reply,
                                  uint64_t deadline_ns, struct problem *why);
enum status worker_host_map_file(struct worker *w, struct msg_host_map *m, int fd, struct msg_host_map_reply *reply, uint64_t deadline_ns,
                                 struct problem *why);
enum status worker_mem_export_file(struct worker *w, struct msg_mem_export *m, int *fd, uint64_t deadline_ns, struct problem *why);

/* Drains the completion ring on this thread for up to budget_ns, until c is done. True: it is. Never sleeps. */
bool call_spin(struct worker *w, struct call *c, uint64_t budget_ns);
/* Spins briefly, then sleeps until c is done; returns c->status. */
enum status call_wait(struct worker *w, struct call *c);

unsigned          worker_device(const struct worker *w);
enum worker_state worker_state_of(const struct worker *w);
/* Its sandbox; valid once it is READY. */
enum worker_sandbox worker_sandbox_of(const struct worker *w);
/* How it ended, ends or failed to start, as far as is known; status OK: nothing is. A copy. */
void worker_end_problem(struct worker *w, struct problem *out);
/* Whether calls that run kernels are unfinished; each counts until a moment after its CALL_DONE. Takes no lock. */
bool worker_computes(const struct worker *w);
/* Kills the process now (SIGKILL). Its calls end with the given status and problem, later ones with WORKER_LOST. Does not wait. */
void worker_kill(struct worker *w, enum status st, const struct problem *why);
struct waker;
/* Wakes `waker`, the only one, when the process is gone and all calls have ended; at once if so already. It may take any lock of
 * session/. */
void worker_watch_end(struct worker *w, struct waker *waker);

/* Staging memory, shared with the worker. A slice belongs to the caller from take to give. Never blocks. */
struct slice {
    struct shm_ref ref;
    unsigned char *data; /* in this process */
};
/* `bytes` <= staging_bytes, rounded up to whole slices. PENDING: no run of slices is free; `w`, if not NULL, is then registered and
 * woken at the next give. */
enum status staging_take(struct worker *w, uint64_t bytes, struct slice *out, struct waker *waker);
void        staging_give(struct worker *w, struct slice *s);
void        staging_unwatch(struct worker *w, struct waker *waker);
uint64_t    staging_bytes(const struct worker *w);
