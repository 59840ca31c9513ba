/* All limits of the library. Names end with their unit. */
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
    ACCESS_WORD_BYTES = 16,
    ACCESS_KERNEL_BYTES = 128,
    ACCESS_FILE_BYTES = 64,

    /* the log */
    LOG_CATEGORY_BYTES = 16,
    LOG_CATEGORIES_MAX = 8,

    /* connections */
    HOST_BYTES = 256,
    TOKEN_BYTES_MAX = 4096,
    UNIX_PATH_BYTES_MAX = 107,
    CONNECTIONS_MAX = 64,
    BULK_CONNECTIONS_MAX = 16,
    RETRIES_MAX = 10,
    IDLE_CONNECTION_MS = 50 * 1000, /* below the service's 60 s */
    RETRY_DELAY_MS = 50,            /* doubles with each retry, with jitter */
    RETRY_DELAY_MS_MAX = 10 * 1000, /* a longer Retry-After is GPUREST_E_BUSY */
    DETOUR_CONNECT_MS = 1000,       /* to a node itself, around the router */
    DETOUR_PAUSE_MS = 60 * 1000,    /* before a node that was not reached is tried again */
    DETOUR_BYTES_MIN = 1024 * 1024, /* shorter transfers are as fast through the router */
    MOVED_MAX = 1024,               /* sessions at other nodes of which a client remembers where; of the others it is told again */
    MOVES_FOLLOWED_MAX = 8,         /* nodes that one request is sent on to */
    MOVING_PAUSE_MS = 250,          /* before a session is asked again that stands still while it moves */
    MOVING_MS_MAX = 3600 * 1000,    /* as long as it may */
    KEEPALIVE_IDLE_S = 15,
    KEEPALIVE_INTERVAL_S = 5,
    TIMEOUT_MS_MAX = 24 * 3600 * 1000,

    /* HTTP */
    PATH_BYTES_MAX = 8 * 1024,
    REQUEST_HEAD_BYTES_MAX = 24 * 1024,
    ANSWER_HEAD_BYTES_MAX = 64 * 1024,
    ANSWER_BODY_BYTES_MAX = 128 * 1024 * 1024, /* of a collected body */
    PROBLEM_BYTES_MAX = 1024 * 1024,
    CHUNK_LINE_BYTES_MAX = 4 * 1024,
    RECEIVE_BYTES = 64 * 1024,         /* per receive, unless directly into the destination */
    DESCRIPTORS_MAX = 4,               /* per receive */
    TRANSFER_BYTES = 4 * 1024 * 1024,  /* per send */
    SOURCE_BYTES = 256 * 1024,         /* of a body that is sent while it comes */
    PIECES_AT_ONCE = 64,               /* of a body, per system call */
    PROGRESS_BYTES_MIN = 1024 * 1024,  /* shorter bodies report none */
    PROGRESS_STEP_BYTES = 1024 * 1024, /* least distance between two reports */

    /* names */
    NAME_BYTES = 80, /* an id with its NUL: of the service with a node's name, or "$" and a client's id */
    SESSION_ID_BYTES = 128,
    MOVE_SECRET_BYTES = 72, /* 64 hexadecimal digits today */

    /* objects */
    BUFFERS_MAX = 1024 * 1024,
    STREAMS_MAX = 64,
    KERNELS_MAX = 4096,
    PARAMS_MAX = 512,
    PARAM_BYTES_MAX = 32764,
    ARGS_BLOCK_BYTES_MAX = 1024,         /* more go one by one */
    SOURCE_BYTES_MAX = 64 * 1024 * 1024, /* the service's limit is lower */

    /* batches: the service's limits */
    BATCH_OPS_MAX = 4096,
    BATCH_SEGMENTS_MAX = 256,
    BATCH_JSON_BYTES_MAX = 4 * 1024 * 1024,
    BATCH_ALIGN_BYTES = 64,
    BATCH_HEAD_BYTES = 16,
    PROGRAM_SCALARS_MAX = 1024, /* per run of a program */

    /* asynchronous operations */
    TRANSFER_THREADS_MAX = 8,
    FOLLOWER_THREADS_MAX = 4,
    FOLLOW_SLICE_S = 2, /* long poll of one launch before the next gets its turn */

    /* launches */
    LAUNCH_WAIT_S = 20, /* long poll, repeated until the launch ends */
    EXECUTION_TIMEOUT_MS_DEFAULT = 60 * 1000,
    LEASE_S_MAX = 24 * 3600, /* the service's limit */
    BEATS_PER_LEASE = 3,     /* heartbeats: two may get lost */
    SLACK_MS = 40 * 1000,    /* added to the service's deadlines: compilation (30 s), copies, network */
};

static_assert(ANSWER_HEAD_BYTES_MAX >= RECEIVE_BYTES, "what is taken at a time fits the head's bound");
static_assert(PROBLEM_BYTES_MAX <= ANSWER_BODY_BYTES_MAX, "a problem is a body");

#define BULK_BYTES_MIN  (64ull * 1024 * 1024) /* larger transfers use several connections */
#define PIECE_BYTES_MIN (8ull * 1024 * 1024)  /* least share per connection */

#endif
