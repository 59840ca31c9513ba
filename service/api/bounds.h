/* Bounds of api/ alone, each with its unit in its name. What a user meets, or several folders share, is in limits.h. */
#ifndef GPUREST_API_BOUNDS_H
#define GPUREST_API_BOUNDS_H

#include "limits.h"

enum {
    DIGEST_PIECE_BYTES = 256 * 1024, /* read and hashed at a time */
    COMPARE_PIECE_BYTES = 256 * 1024, /* read of each of two buffers at a time */
    OFFLOAD_BATCH_ANSWER_BYTES_MIN = 4 * 1024 * 1024, /* what is offloaded costs the connection: a client of batches wants it for the next */
    LIST_ITEMS_DEFAULT = 100,
    READY_FRESH_MS = 10 * 1000, /* a canary's answer counts for so long */
    LOOP_STALL_S = 30, /* an event loop that stood still for so long fails /livez */
    LOG_FOLLOW_TICK_MS = 250,
    METRICS_BYTES_MAX = 4 * 1024 * 1024, /* of one scrape */
    ENGINE_NAME_BYTES = 16,
    WAIT_S_DEFAULT = 10,
    CHANGES_TICK_MS = 250, /* how often a follower of /v1/changes has things looked at */
    CHANGES_SESSIONS_AT_ONCE = 8, /* ... and how many sessions are held for that */
    EVENT_LINES_BYTES_MAX = 1024 * 1024, /* one event as text: control bytes take six characters */
    LAUNCH_ARG_DEPTH_MAX = 8, /* structs within structs */
    BATCH_JSON_VALUES_MAX = 128 * 1024, /* 4,096 launches of a few arguments each */
    BATCH_WHOLE_BYTES_MAX = 1024 * 1024, /* a request up to this is collected before it is looked at */
    RUN_TRIES_MAX = 3, /* so often is a run that had not begun when its hidden session was lost given another one */
    RUN_WAIT_MS = 30 * 1000, /* ... so long at most */
};

#define MEMORY_BYTES_ASKED_MAX (1ull << 62) /* of a buffer or a session; a macro, for the tables of request fields */

#endif
