/* What share.c, share_buffer.c and share_move.c have between them. */
#ifndef GPUREST_SESSION_SHARE_PARTS_H
#define GPUREST_SESSION_SHARE_PARTS_H

#include "session/memory/internal.h"

struct share {
    int              fd;        /* ours, to lend to the worker and to take the memory back by */
    int              client_fd; /* another opening of the same file, of which clients get duplicates */
    uint64_t         bytes;
    bool             direct; /* it is the buffer's own memory, and charged with that */
    uint64_t         offset; /* of a direct one: where in the file the buffer begins */
    uint32_t         host;   /* of one that is none: the worker's name for its mapping */
    unsigned         refs;   /* under session.lock: the buffer, and copies under way */
    struct registry *registry;
    struct account  *payer;
    struct reap_item end_item;
};

/* A file of so many bytes, counted, with one reference, of nobody yet. No lock held. */
enum status share_make(struct session *s, uint64_t bytes, struct share **out, struct problem *why);
/* With session.lock held: what the session's number of shared buffers has room for. */
enum status share_check_count(const struct worker_session *c, struct problem *why);
/* With session.lock held; the last one leaves it to the reaper, and gets what is then to be given to share_unmap(): sooner, a copy that is
 * just being submitted would find it gone. Else, and of a direct one, 0. */
uint32_t share_unref(struct share *m);
/* Has the worker let go of its mapping, behind what is under way; host 0: of none. Needs a use of the worker session; no lock held. */
void        share_unmap(struct worker_session *c, uint32_t host);
enum status share_enabled(const struct session *s, struct problem *why);

#endif
