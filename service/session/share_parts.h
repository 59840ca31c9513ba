/* What share.c and share_move.c have between them. */
#ifndef GPUREST_SESSION_SHARE_PARTS_H
#define GPUREST_SESSION_SHARE_PARTS_H

#include "session/internal.h"

struct share {
    int           fd;        /* ours, to copy by */
    int           client_fd; /* another opening of the same file, of which clients get duplicates */
    uint64_t      bytes;
    unsigned      refs; /* under session.lock: the buffer, and copies under way */
    struct share *next; /* among the registry's dead ones */
};

/* With session.lock held; the last one leaves it to shares_reap(). */
void share_unref(struct registry *r, struct share *m);

#endif
