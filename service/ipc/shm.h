/* The memory that a front-end shares with one worker: a sealed memfd of header, command ring, completion ring, marks, staging. It is sealed so
 * that a hostile worker cannot shrink it under the front-end (SIGBUS). */
#pragma once

#include "ipc/message.h"
#include "ipc/ring.h"

enum { SHM_MARKS_BYTES = 4096 }; /* a page, so that marks and staging memory are registered with the device at once */

struct shm {
    int               fd;   /* owned; -1 = none */
    unsigned char    *base; /* NULL = not mapped */
    size_t            bytes;
    void             *commands;    /* a ring of struct command */
    void             *completions; /* a ring of struct completion */
    _Atomic uint32_t *marks;       /* [STREAMS_PER_SESSION_MAX + 1], right before staging; the worker's alone */
    unsigned char    *staging;
    uint64_t          staging_bytes;
};

/* Creates, seals and maps it; staging memory has no pages yet. staging_bytes > 0 is rounded up to whole slices. OUT_OF_MEMORY; *m is empty then. */
enum status shm_create(struct shm *m, uint64_t staging_bytes);
/* The worker's side: checks seals, size and header of `fd` and takes ownership of it. INTERNAL: it is not such memory. */
enum status shm_attach(struct shm *m, int fd);
/* Makes the pages of a piece of staging memory that lies inside, so that no transfer waits for them one by one. A kernel that cannot do that, or
 * has no memory, makes them at first use. */
void shm_populate(const struct shm *m, struct shm_ref ref);
/* Unmaps and closes; a shm with fd -1 and base NULL is fine. */
void shm_finish(struct shm *m);

/* A checked piece of staging; `ref` must be a private copy. INVALID_REQUEST when it lies outside. */
enum status shm_piece(const struct shm *m, struct shm_ref ref, unsigned char **out);
