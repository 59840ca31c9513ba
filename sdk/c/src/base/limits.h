/* Every bound of the library, with its unit in its name. */
#ifndef GPUREST_SDK_LIMITS_H
#define GPUREST_SDK_LIMITS_H

#include <assert.h>

enum {
    /* errors */
    CODE_BYTES = 64,
    MESSAGE_BYTES = 512,
    HINT_BYTES = 256,
    POINTER_BYTES = 128,
    REQUEST_ID_BYTES = 144,

    /* connections */
    HOST_BYTES = 256,
    TOKEN_BYTES_MAX = 4096,
    UNIX_PATH_BYTES_MAX = 107,
    CONNECTIONS_MAX = 64,
    BULK_CONNECTIONS_MAX = 16,
    RETRIES_MAX = 10,
    IDLE_CONNECTION_MS = 50 * 1000, /* the service closes at 60 s */
    RETRY_DELAY_MS = 50,            /* doubled each time, with jitter */
    RETRY_DELAY_MS_MAX = 10 * 1000, /* a service that asks for more is busy */
    KEEPALIVE_IDLE_S = 15,
    KEEPALIVE_INTERVAL_S = 5,
    TIMEOUT_MS_MAX = 24 * 3600 * 1000,

    /* HTTP */
    PATH_BYTES_MAX = 8 * 1024,
    REQUEST_HEAD_BYTES_MAX = 24 * 1024,
    ANSWER_HEAD_BYTES_MAX = 64 * 1024,
    ANSWER_BODY_BYTES_MAX = 128 * 1024 * 1024, /* of one that is collected */
    PROBLEM_BYTES_MAX = 1024 * 1024,
    CHUNK_LINE_BYTES_MAX = 4 * 1024,
    RECEIVE_BYTES = 64 * 1024,         /* taken from the socket at a time, when not into its place directly */
    DESCRIPTORS_MAX = 4,               /* taken with one piece of an answer */
    TRANSFER_BYTES = 4 * 1024 * 1024,  /* handed to the socket at a time */
    PIECES_AT_ONCE = 64,               /* of a body, in one system call */
    PROGRESS_BYTES_MIN = 1024 * 1024,  /* shorter bodies report no progress */
    PROGRESS_STEP_BYTES = 1024 * 1024, /* at least so much between two reports */

    /* names */
    NAME_BYTES = 80, /* an id with its NUL: ids of the service with a node's name, "$" and a client's id */
    SESSION_ID_BYTES = 128,

    /* objects */
    BUFFERS_MAX = 1024 * 1024,
    STREAMS_MAX = 64,
    KERNELS_MAX = 4096,
    PARAMS_MAX = 128,
    PARAM_BYTES_MAX = 32764,
    SOURCE_BYTES_MAX = 64 * 1024 * 1024, /* the service's own limit is lower */

    /* batches: the service's bounds */
    BATCH_OPS_MAX = 4096,
    BATCH_SEGMENTS_MAX = 256,
    BATCH_JSON_BYTES_MAX = 4 * 1024 * 1024,
    BATCH_ALIGN_BYTES = 64,
    BATCH_HEAD_BYTES = 16,
    PROGRAM_SCALARS_MAX = 1024, /* that one run of a program replaces */

    /* asynchronous operations */
    TRANSFER_THREADS_MAX = 8,
    FOLLOWER_THREADS_MAX = 4,
    FOLLOW_SLICE_S = 2, /* a launch is followed for so long before another one gets its turn */

    /* launches */
    LAUNCH_WAIT_S = 20, /* the service answers at the latest then; asked again until the end */
    EXECUTION_TIMEOUT_MS_DEFAULT = 60 * 1000,
    SLACK_MS = 40 * 1000, /* beyond a deadline of the service's: compilation (30 s), copies, the way */
};

static_assert(ANSWER_HEAD_BYTES_MAX >= RECEIVE_BYTES, "what is taken at a time fits the head's bound");
static_assert(PROBLEM_BYTES_MAX <= ANSWER_BODY_BYTES_MAX, "a problem is a body");

#define BULK_BYTES_MIN  (64ull * 1024 * 1024) /* from here on several connections share a transfer */
#define PIECE_BYTES_MIN (8ull * 1024 * 1024)  /* a connection's least share */

#endif
