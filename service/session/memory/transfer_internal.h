/* Shared by transfer.c, transfer_write.c and transfer_read.c. */
#pragma once

#include "session/bounds.h"
#include "session/memory/internal.h"

enum piece_state { PIECE_IDLE, PIECE_FILLING, PIECE_FLYING, PIECE_ARRIVED };

struct piece {
    struct call      call; /* first: events find the piece by its call */
    struct transfer *transfer;
    enum piece_state state; /* under session.lock */
    struct slice     slice;
    uint64_t         address; /* of device memory */
    size_t           bytes;   /* to be transferred */
    size_t           done;    /* of these bytes, already filled (write) or handed out (read) */
};

struct transfer {
    struct waker           staging;        /* first: registered with the worker's staging memory */
    struct session        *session;        /* pinned */
    struct worker_session *worker_session; /* a reference */
    bool                   writing, unnoticed;
    uint64_t               address; /* of the next bytes */
    uint64_t               left;    /* bytes that have no slice yet (write) or are not requested yet (read) */
    uint64_t               unread;  /* read: bytes not yet handed out */
    struct piece           pieces[TRANSFER_SLICES_MAX];
    struct piece          *filling;     /* write: gets the next bytes */
    unsigned               head, count; /* read: pieces requested or arrived, in order */

    /* under session.lock */
    struct buffer *buffer; /* pinned until its bytes are in staging memory or in the device; whoever has the last byte may then delete it */
    uint64_t       to_arrive; /* read: bytes not yet in staging memory */
    uint64_t       order;     /* launches up to this number come first */
    struct waker  *user;
    struct waker  *borrower;             /* has borrowed a slice's memory; woken when it should return it */
    bool           watching, unwatching; /* `staging` is registered; transfer_unwatch_all is cancelling it */
    bool           destroyed, finished;
    struct contents contents;  /* write: set when finished */
    unsigned        holds;     /* calls in flight, and threads that are ending it */
    struct problem  problem;   /* status OK: none */
    LIST_ENTRY(transfer) link; /* in worker_session.transfers */
};

/* The only one to change a piece's state. With session.lock held. */
void piece_set_state(struct piece *p, enum piece_state next);
/* Releases the buffer. With session.lock held. */
void transfer_let_go(struct transfer *t);
/* Begins one step of the caller: cancels an earlier waker, and holds the worker until transfer_step_end. */
enum status transfer_step_begin(struct transfer *t, struct problem *why);
/* Returns st; a fault marks the session. */
enum status transfer_step_end(struct transfer *t, enum status st, const struct problem *why);
/* What ended the transfer, if anything. With session.lock held. */
enum status transfer_state(const struct transfer *t, struct problem *why);
/* For a step whose begin and end are in different calls: the memory of a slice is lent, and the worker stays mapped. Fails when the
 * worker session has just ended. */
enum status transfer_lend_begin(struct transfer *t, struct waker *w, struct problem *why);
void        transfer_lend_end(struct transfer *t);
/* A slice; or PENDING, with w registered. In a step. */
enum status transfer_slice(struct transfer *t, uint64_t bytes, struct slice *out, struct waker *w);
/* Submits a piece. PENDING, with w registered, when earlier launches or pieces must go first. In a step. */
enum status transfer_fly(struct piece *p, struct waker *w, struct problem *why);
