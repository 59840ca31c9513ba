/* Shared by share.c, share_buffer.c and share_move.c. */
#pragma once

#include "session/memory/internal.h"

struct share {
    int              fd;        /* ours: sent to the worker, and used to free the pages */
    int              client_fd; /* a second opening of the same file; clients get duplicates of it */
    uint64_t         bytes;
    bool             direct; /* the buffer's own memory, charged with it */
    uint64_t         offset; /* direct: where in the file the buffer begins */
    uint32_t         host;   /* not direct: the worker's name for its mapping */
    unsigned         refs;   /* under session.lock: the buffer's, and those of copies in progress */
    struct registry *registry;
    struct account  *payer;
    struct reap_item end_item;
};

/* A file of so many bytes, charged, with one reference, not yet attached. No lock held. */
enum status share_make(struct session *s, uint64_t bytes, struct share **out, struct problem *why);
/* Whether the session may have one more shared buffer. With session.lock held. */
enum status share_check_count(const struct worker_session *c, struct problem *why);
/* The last reference posts it to the reaper and returns the mapping to pass to share_unmap(); earlier, a copy that is being submitted
 * would lose it. Otherwise, and for direct memory, returns 0. With session.lock held. */
uint32_t share_unref(struct share *m);
/* Lets the worker drop its mapping after everything in progress; host 0: nothing to do. Needs a use of the worker session; no lock held. */
void        share_unmap(struct worker_session *c, uint32_t host);
enum status share_enabled(const struct session *s, struct problem *why);
