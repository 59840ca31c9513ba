/* One MPS server of the pool's: the process that supervises it (worker/mps_supervisor.h), and its folder. */
#pragma once

#include "pool/bounds.h"
#include "pool/workers/worker_internal.h"

struct mps_server {
    struct mps_server *next; /* the pool's list of those that are ending */
    unsigned           device;
    struct spawned     process;
    int                control_fd; /* closing it ends the server */
    int                ready_fd;
    struct watched     ready, end;
    _Atomic unsigned   told;                      /* of the two, those that the monitor has seen; then it can be freed */
    _Atomic bool       up;                        /* it accepts clients */
    uint64_t           start_deadline_ns;         /* until then it must be up */
    char               folder[SERVER_PATH_BYTES]; /* its own, which the process removes at its end */
    char               pipe[SERVER_PATH_BYTES];   /* where its clients find it */
    void (*changed)(void *context);
    void *context;
};

struct mps_options {
    const char     *executable; /* our own */
    const char     *control;    /* nvidia-cuda-mps-control */
    const char     *visible;    /* the argument that chooses devices, or NULL */
    const char     *base;       /* folder of all servers' folders */
    uint64_t        number;     /* of the server: its folder's name */
    unsigned        device;     /* noted in it */
    struct monitor *monitor;
    /* When it is up, and when it has ended, on the monitor's thread. */
    void (*changed)(void *context);
    void *context;
};

/* Starts the process; the calling thread need not stay. INTERNAL or OUT_OF_MEMORY. */
enum status mps_server_start(struct mps_server **out, const struct mps_options *options);
/* Tells it to end. Does not wait. */
void mps_server_end(struct mps_server *s);
/* The process has ended, and nothing of the server is left. */
bool mps_server_gone(const struct mps_server *s);
/* It is gone. */
void mps_server_free(struct mps_server *s);

/* A new private folder for the servers of this process, and the removal of those that processes before it have left. `lock_fd` says that it is in
 * use: close it when the process ends, after mps_base_remove(). False with errno. */
bool mps_base_create(char path[SERVER_PATH_BYTES], int *lock_fd);
void mps_base_remove(const char *path, int *lock_fd);
