/* The descriptors that a worker inherits, and its exit codes. */
#pragma once

enum {
    WORKER_SHM_FD = 3,     /* the sealed memory (role worker) */
    WORKER_COUNT_FD = 3,   /* for rows of device_count (role count) */
    MPS_READY_FD = 3,      /* write end of a pipe: one byte when the daemon accepts clients (role mps) */
    WORKER_CONTROL_FD = 4, /* read end of a pipe; its end of file means that the parent is gone */
    WORKER_SHARE_FD = 5,   /* a socket for descriptors of memory, both ways: with --local-sharing only */
};

enum {
    WORKER_EXIT_LOST = 3,   /* the context or the device was lost, and the worker reported it */
    WORKER_EXIT_UNABLE = 4, /* the start failed before it touched the device */
};
