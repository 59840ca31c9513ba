/* Buffers, temporary buffers, transfers and shared memory of a worker session, and memory that was freed but is not available yet. */
#pragma once

#include "session/life/parts.h"

/* What the texels of a buffer are read as. */
struct texture {
    struct texture_desc desc;
    uint64_t            number, surface; /* as kernels take them; surface 0: it is none */
    uint64_t            offset;          /* in `of` */
    struct buffer      *of;              /* whose memory it reads, a reference; NULL: it has its own */
};

struct buffer {
    struct entry    entry;
    uint64_t        bytes;
    uint64_t        charged; /* bytes charged to the quotas */
    uint64_t        address;
    uint64_t        created_wall_ns;
    uint64_t        number;    /* unique in its session: a later buffer with the same id has another number */
    bool            shareable; /* a separate allocation that clients may map */
    unsigned        refs;      /* the table's and those of everyone who holds it */
    unsigned        pins;      /* operations in progress; it is not deleted meanwhile */
    bool            ready;     /* allocated */
    struct share   *share;     /* memory that clients map; NULL = none. A reference */
    struct module  *module;    /* whose variable it is, see session/code/global.c; NULL = an allocation of its own */
    struct texture *texture;   /* whose texels it is, owned; NULL = none's */
    unsigned        textures;  /* that read its memory; it is not deleted meanwhile */
};

/* A buffer of a batch or a program, or the scratch memory of a launch. Nobody learns its id unless it becomes a buffer of the session. */
struct temp_buffer {
    struct buffer          buffer;         /* first: releasing the buffer frees the whole struct */
    struct worker_session *worker_session; /* where it lives; valid while it is in its tables */
    struct call            call;           /* frees it; holds a use of the worker session */
    struct temp_buffer    *of_batch;       /* the batch's next temporary buffer; the batch holds a reference */
    /* under session.lock */
    bool                abandoned; /* to be freed, or being freed */
    bool                wanted;    /* by batch_read_begin() after a successful run; of the batch's thread */
    bool                gone;      /* neither in worker_session.temp_buffers nor on the device; or kept */
    struct temp_buffer *next;      /* in worker_session.abandoned */
};

/* ---- buffer.c ---- with session.lock held */
/* BUFFER_NOT_FOUND, or *out is held and pinned. */
enum status buffer_pin(struct worker_session *c, struct span id, struct buffer **out, struct problem *why);
/* As buffer_pin(), if the buffer has these contents (NULL: any); else PRECONDITION_FAILED, also when the id does not exist. */
enum status buffer_pin_if(struct worker_session *c, struct span id, const struct contents *only, struct buffer **out, struct problem *why);
/* What an id names: a buffer, one of a batch, a variable of a module, or the texels of a texture. NULL: nothing. */
struct buffer *buffer_find(struct worker_session *c, struct span id);
/* One that is zeroed; no lock held. */
enum status buffer_init(struct buffer *b, uint64_t bytes, unsigned refs, struct problem *why);
/* Frees it, or a texture with its texels, after its detachment; on failure it is there as before. Blocks; no lock held. */
enum status buffer_release(struct worker_session *c, struct buffer *b, struct problem *why);
void        buffer_unpin(struct buffer *b);
void        buffer_unref(struct buffer *b);
/* Where b, which that id names, or the texture that it names (b is NULL then), is for a kernel. False: nowhere. */
bool buffer_where_is(const struct worker_session *c, const struct buffer *b, struct span id, uint64_t *address, uint64_t *bytes);
bool buffer_where(void *context, struct span id, uint64_t *address, uint64_t *bytes);
/* The buffer's current contents. With session.lock held. */
struct contents contents_of(const struct worker_session *c, const struct buffer *b);
/* Offset and size of a fill are multiples of its pattern's size. */
enum status pattern_check(uint64_t offset, uint64_t bytes, unsigned pattern_bytes, struct problem *why);
enum status buffer_fill_check(const struct buffer *b, struct problem *why);
enum status range_check(const struct buffer *b, uint64_t offset, uint64_t bytes, struct problem *why);

/* ---- texture.c ---- with session.lock held */
/* "<texture>.texels", ".tex" or ".surf": not the id of a buffer or a variable. */
bool texture_is_name(struct span name);
/* The texels; NULL: there are none such. */
struct buffer *texture_texels(const struct worker_session *c, struct span name);
/* The number that a kernel takes for ".tex" or ".surf"; false: there is none. */
bool texture_where(const struct worker_session *c, struct span name, uint64_t *number);
/* Out of the table; its last reference but those that others hold. */
void texture_unplace(struct worker_session *c, struct buffer *b);
/* Whether its bytes have addresses that kernels and fills can use. */
bool texture_lies_in_order(const struct buffer *b);

/* ---- share.c ---- memory that clients of the same host map. Detaches it from the buffer, which ends or stops sharing. Returns what
 * share_unref() does; with a buffer that ends the worker drops its mapping itself. With session.lock held. */
uint32_t share_detach(struct worker_session *c, struct buffer *b);
/* ---- share_buffer.c ---- as memory_allocate(), for a shareable buffer. No lock held. */
enum status share_allocate(struct worker_session *c, struct buffer *b, uint64_t *address, struct problem *why);
/* Whether shareable buffers are available, and how much one of b->bytes is charged. */
enum status share_plan(const struct worker_session *c, struct buffer *b, struct problem *why);
/* ---- temp_buffer.c ---- */
/* Allocates device memory under the quotas. Needs a use. May wait for the worker. */
enum status temp_buffer_create(struct worker_session *c, uint64_t bytes, struct temp_buffer **out, struct problem *why);
/* Frees it as soon as the worker takes the call, after everything submitted before. With session.lock held. */
void temp_buffer_abandon(struct worker_session *c, struct temp_buffer *l);
/* Makes it a buffer of the session. With session.lock held. */
enum status temp_buffer_keep(struct worker_session *c, struct temp_buffer *l, struct problem *why);
/* Waits until it is freed or the worker session has ended; returns early when launches are in progress, because its free waits for their
 * end. */
void temp_buffer_await(struct worker_session *c, struct temp_buffer *l);

/* ---- transfer_write.c ---- sends a full piece without waiting for more bytes. PENDING registers w. */
enum status transfer_write_flush(struct transfer *t, struct waker *w, struct problem *why);

/* ---- pending_free.c ---- device memory on its way back. session.lock may be held, registry.lock not, by what notes; no lock by what waits. */
/* With session.lock held: so many bytes of buffers were freed, which a worker may keep; or taken, perhaps of those. */
void pending_free_cached(struct worker_session *c, uint64_t bytes);
void pending_free_reused(struct worker_session *c, uint64_t bytes);
/* The worker has released its cache. No lock held. */
void pending_free_trimmed(struct worker_session *c);
/* Zero it, then call memory_wait_look() before every try of a call that allocates device memory. */
struct memory_wait {
    uint64_t deadline_ns, seen;
    bool     trimmed;
};
void memory_wait_look(struct worker_session *c, struct memory_wait *w);
/* The call found no device memory, as *why says: waits for freed memory, and returns true when a retry may succeed. Waits at most
 * MEMORY_RETURN_MS, and WORKER_CALL_DEADLINE_MS for workers that are about to end. */
bool memory_wait_more(struct worker_session *c, struct memory_wait *w, const struct problem *why);
/* For the host memory of shareable buffers: waits for one more worker session of the device to end. False when none is about to, or c is
 * closed. */
bool memory_wait_leaving(struct worker_session *c, struct memory_wait *w);

/* Allocates device memory; waits for memory that detached worker sessions still hold. Needs a use. */
enum status memory_allocate(struct worker_session *c, uint64_t bytes, uint64_t *address, struct problem *why);
/* Another allocating call, of so many bytes, for memory_allocate's retries. */
typedef enum status allocate_function(struct worker_session *c, void *what, uint64_t deadline_ns, struct problem *why);
enum status memory_allocate_by(struct worker_session *c, uint64_t bytes, allocate_function *allocate, void *what, struct problem *why);
