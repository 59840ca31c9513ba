/* Buffers, temporary ones, transfers and shared memory of a worker session, and device memory on its way back. */
#ifndef GPUREST_SESSION_MEMORY_INTERNAL_H
#define GPUREST_SESSION_MEMORY_INTERNAL_H

#include "session/life/parts.h"

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

/* A buffer of a batch or a program, or the scratch memory of a launch. Its id is never told to anybody while it is theirs. */
struct temp_buffer {
    struct buffer          buffer;         /* first: what holds the buffer frees it all */
    struct worker_session *worker_session; /* where it lives; valid while it is in there */
    struct call            call;           /* of its freeing; holds a use of the worker session */
    struct temp_buffer    *of_batch;       /* the batch's next one; the batch holds a reference */
    /* under session.lock */
    bool                abandoned; /* to be freed, or being freed */
    bool                wanted;    /* by batch_read_begin() after a successful run; of the batch's thread */
    bool                gone;      /* neither in worker_session.temp_buffers nor on the device; or kept */
    struct temp_buffer *next;      /* in worker_session.abandoned */
};

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
/* ---- share_buffer.c ---- memory of a shareable buffer, as memory_allocate(). No lock held. */
enum status share_allocate(struct worker_session *c, struct buffer *b, uint64_t *address, struct problem *why);
/* Whether such buffers can be had, and what one of b->bytes is charged. */
enum status share_plan(const struct worker_session *c, struct buffer *b, struct problem *why);
/* ---- temp_buffer.c ---- */
/* Device memory under the quotas. Needs a use. May wait for the worker. */
enum status temp_buffer_create(struct worker_session *c, uint64_t bytes, struct temp_buffer **out, struct problem *why);
/* With session.lock held: it is freed as soon as the worker takes the call, behind all that was submitted before. */
void temp_buffer_abandon(struct worker_session *c, struct temp_buffer *l);
/* With session.lock held: from now on a buffer of the session. */
enum status temp_buffer_keep(struct worker_session *c, struct temp_buffer *l, struct problem *why);
/* Waits until it is gone, the worker session has ended, or launches are under way, whose end its freeing waits for. */
void temp_buffer_await(struct worker_session *c, struct temp_buffer *l);

/* ---- transfer_write.c ---- a full piece leaves, whether or not more bytes come. PENDING registers w. */
enum status transfer_write_flush(struct transfer *t, struct waker *w, struct problem *why);

/* ---- pending_free.c ---- device memory on its way back. session.lock may be held, registry.lock not, by what notes; no lock by what waits. */
/* So many bytes were given back to the session's device, or soon will be. */
void pending_free_add(struct session *s, uint64_t bytes);
/* With session.lock held: so many bytes of buffers were freed, which a worker may keep; or taken, perhaps of those. */
void pending_free_cached(struct worker_session *c, uint64_t bytes);
void pending_free_reused(struct worker_session *c, uint64_t bytes);
/* The worker has given back what it kept. No lock held. */
void pending_free_trimmed(struct worker_session *c);
/* Zeroed, then memory_wait_look() before every try of a call that takes device memory. */
struct memory_wait {
    uint64_t deadline_ns, seen;
    bool     trimmed;
};
void memory_wait_look(struct worker_session *c, struct memory_wait *w);
/* The call found no device memory, as *why says: true when it is worth another try, now. Waits while memory is on its way back, bounded
 * by MEMORY_RETURN_MS, and WORKER_CALL_DEADLINE_MS for workers that are about to end. */
bool memory_wait_more(struct worker_session *c, struct memory_wait *w, const struct problem *why);
/* For host memory instead, of shareable buffers: waits for one more worker session of the device to end. False when none is about to, or c is closed. */
bool memory_wait_leaving(struct worker_session *c, struct memory_wait *w);

/* Memory of the device, as soon as what detached worker sessions still hold is back. Needs a use. */
enum status memory_allocate(struct worker_session *c, uint64_t bytes, uint64_t *address, struct problem *why);
/* The same by another call, which is asked again when such memory came back. */
typedef enum status allocate_function(struct worker_session *c, void *what, uint64_t deadline_ns, struct problem *why);
enum status         memory_allocate_by(struct worker_session *c, allocate_function *allocate, void *what, struct problem *why);

#endif
