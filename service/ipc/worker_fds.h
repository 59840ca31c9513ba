/* Where a worker finds what its parent gave it, and how it ends. */
#ifndef GPUREST_IPC_WORKER_FDS_H
#define GPUREST_IPC_WORKER_FDS_H

enum {
    WORKER_SHM_FD = 3,     /* the sealed memory (role worker) */
    WORKER_COUNT_FD = 3,   /* where rows of device_count go (role count) */
    WORKER_CONTROL_FD = 4, /* a pipe's read end; its end of file means that the parent is gone */
    WORKER_SHARE_FD = 5,   /* a socket for descriptors of memory, both ways: with --local-sharing only */
};

enum {
    WORKER_EXIT_LOST = 3,   /* the context or the device was lost; it said so */
    WORKER_EXIT_UNABLE = 4, /* it could not set itself up, and has not touched its device */
};

#endif
