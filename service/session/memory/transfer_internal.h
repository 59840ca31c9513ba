/* What transfer.c, transfer_write.c and transfer_read.c share. */
#ifndef GPUREST_SESSION_TRANSFER_PARTS_H
#define GPUREST_SESSION_TRANSFER_PARTS_H

#include "session/bounds.h"
#include "session/memory/internal.h"

enum piece_state { PIECE_IDLE, PIECE_FILLING, PIECE_FLYING, PIECE_ARRIVED };

struct piece {
    struct call      call; /* first: events find the piece by it */
    struct transfer *transfer;
    enum piece_state state; /* under session.lock */
    struct slice     slice;
    uint64_t         address; /* in the device */
    size_t           bytes;   /* to be transferred */
    size_t           done;    /* of them filled (write) or handed out (read) */
};

struct transfer {
    struct waker           staging;        /* first: registered with the worker's staging memory */
    struct session        *session;        /* pinned */
    struct worker_session *worker_session; /* a reference */
    bool                   writing;
    uint64_t               address; /* of what comes next */
    uint64_t               left;    /* write: not yet given a slice; read: not yet asked for */
    uint64_t               unread;  /* read: not yet handed out */
    struct piece           pieces[TRANSFER_SLICES_MAX];
    struct piece          *filling;     /* write: gets the next bytes */
    unsigned               head, count; /* read: pieces asked for or arrived, in order */

    /* under session.lock */
    struct buffer   *buffer;    /* pinned, until its bytes are in staging memory or in the device: who has the last of them may delete it */
    uint64_t         to_arrive; /* read: not yet in staging memory */
    uint64_t         order;     /* launches up to this one come first */
    struct waker    *user;
    struct waker    *borrower;             /* has a slice's memory and is to be told when it had better return it */
    bool             watching, unwatching; /* `staging` is registered; is being taken back by transfer_unwatch_all */
    bool             destroyed, finished;
    struct contents  contents;   /* write: once it has finished */
    unsigned         holds;      /* calls in flight, and whoever is in the middle of ending it */
    struct problem   problem;    /* status OK: none */
    struct transfer *next, **at; /* in worker_session.transfers */
};

/* With session.lock held: the only one to change a piece's state. */
void piece_set_state(struct piece *p, enum piece_state next);
/* With session.lock held: the buffer is not needed any more. */
void transfer_let_go(struct transfer *t);
/* For one step of the caller: forgets an earlier waker, and holds the worker until transfer_step_end. */
enum status transfer_step_begin(struct transfer *t, struct problem *why);
/* Returns st, and marks the session when it was a fault. */
enum status transfer_step_end(struct transfer *t, enum status st, const struct problem *why);
/* With session.lock held: what ended the transfer, if anything did. */
enum status transfer_state(const struct transfer *t, struct problem *why);
/* Between a step's beginning and its end, both of which then lie in different calls: memory of a slice is lent out, and the worker
 * stays mapped. Fails when the worker session has just ended. */
enum status transfer_lend_begin(struct transfer *t, struct waker *w, struct problem *why);
void        transfer_lend_end(struct transfer *t);
/* A slice, or PENDING with w registered for when there may be one. In a step. */
enum status transfer_slice(struct transfer *t, uint64_t bytes, struct slice *out, struct waker *w);
/* Sends a piece on its way. PENDING with w registered when earlier launches, or earlier pieces, must go first. In a step. */
enum status transfer_fly(struct piece *p, struct waker *w, struct problem *why);

#endif
