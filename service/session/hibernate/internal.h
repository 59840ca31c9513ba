/* Shared by the files of session/hibernate/. */
#pragma once

#include "session/hibernate/hibernate.h"
#include "session/memory/internal.h"

/* A buffer whose bytes are in the file. */
struct kept {
    struct buffer *buffer; /* a reference */
    uint64_t       at;     /* in the file */
    bool           away;   /* its memory was given back */
};

/* What a worker session has put away. */
struct hibernation {
    struct registry *registry;
    struct account  *payer; /* the bytes are charged to it */
    int              fd;    /* in host memory, or a nameless file of the folder; -1: none */
    uint64_t         bytes;
    struct kept     *kept;
    unsigned         count;
};

/* ---- store.c ---- */
/* Charges the bytes to the session's caller and makes the file. OVERLOADED: its part of the bound, or the disk, is full; OUT_OF_MEMORY. */
enum status store_open(struct session *s, uint64_t bytes, struct hibernation *h, struct problem *why);
/* Undoes it, and frees h. The end of a large file is slow, so that it is not waited for. session.lock may be held, registry.lock not. NULL is a
 * no-op. */
void        store_close(struct hibernation *h);
enum status store_write(const struct hibernation *h, const unsigned char *from, size_t bytes, uint64_t at, struct problem *why);
enum status store_read(const struct hibernation *h, unsigned char *to, size_t bytes, uint64_t at, struct problem *why);

/* ---- move.c ---- copies all buffers out to the file, or those that are away back; nothing else uses the worker session, which the caller does. */
enum status hibernation_move(struct worker_session *c, const struct hibernation *h, bool out, struct problem *why);

/* ---- sleep.c ---- */
/* Begins to put the session to sleep, or to wake it, in a thread of its own. With session.lock held; the caller has a pin. */
enum status sleep_begin(struct session *s, enum sleep_step step, struct problem *why);
/* Nothing uses it, and it has what is worth hibernating; NULL, or what it does. With session.lock held. */
const char *sleep_hindrance(const struct session *s);
