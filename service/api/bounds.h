/* Bounds of api/ alone, each with its unit in its name. Bounds that a user meets or several folders share are in limits.h. */
#pragma once

#include "limits.h"

enum {
    DIGEST_PIECE_BYTES = 256 * 1024,  /* read and hashed at a time */
    COMPARE_PIECE_BYTES = 256 * 1024, /* read from each of two buffers at a time */
    OFFLOAD_BATCH_ANSWER_BYTES_MIN =
        4 * 1024 * 1024, /* smaller ones stay inline: offloading ends the connection, which a client of batches reuses */
    LIST_ITEMS_DEFAULT = 100,
    READY_FRESH_MS = 10 * 1000, /* how long a canary's answer counts */
    LOOP_STALL_S = 30,          /* an event loop that has not moved for this long fails /livez */
    RESET_LOOK_MS = 50,         /* how often a reset of a device is looked at */
    LOG_FOLLOW_TICK_MS = 250,
    CALLERS_IN_METRICS_MAX = 100,        /* with series of their own in /metrics */
    METRICS_BYTES_MAX = 4 * 1024 * 1024, /* of one scrape */
    ENGINE_NAME_BYTES = 16,
    WAIT_S_DEFAULT = 10,
    CHANGES_TICK_MS = 250,               /* how often a follower of /v1/changes compares */
    CHANGES_SESSIONS_AT_ONCE = 8,        /* ... and how many sessions it holds for that */
    EVENT_LINES_BYTES_MAX = 1024 * 1024, /* one event as text: control bytes take six characters */
    LAUNCH_ARG_DEPTH_MAX = 8,            /* structs within structs */
    BATCH_JSON_VALUES_MAX = 128 * 1024,  /* 4,096 launches of a few arguments each */
    BATCH_WHOLE_BYTES_MAX = 1024 * 1024, /* a request up to this is collected before it is looked at */
    RUN_WAIT_MS = 30 * 1000,             /* ... so long at most */
    RUN_ON_LOOP_BYTES_MAX = 64 * 1024,   /* JSON of a program's run that a loop reads itself: meanwhile all its connections wait */
};

/* Snapshots: the table of contents has a row for each part. */
enum {
    SNAPSHOT_PARTS_MAX = BUFFERS_PER_SESSION_MAX + 64 * 1024,
    SNAPSHOT_MANIFEST_BYTES_MAX = 32 * 1024 * 1024,
    SNAPSHOT_VALUES_MAX = 1024 * 1024,          /* of its JSON */
    SNAPSHOT_WAIT_S = 30,                       /* for work under way, unless the request says otherwise */
    SNAPSHOT_WATCH_MS = 1000,                   /* the same for one that nobody waits for */
    SNAPSHOT_TEXT_BYTES_MAX = 32 * 1024 * 1024, /* of a module or program */
    SNAPSHOT_RESULT_BYTES_MAX = BATCH_RESULTS_KEPT_BYTES_MAX + 64 * 1024,
    RESTORE_TRIES_MAX = 3, /* at the start, of what may be scarce for a moment */
    RESTORE_NAP_MS = 100,
    SNAPSHOT_PIECE_BYTES = 64 * 1024,           /* of such a text, at a time */
};

#define MEMORY_BYTES_ASKED_MAX (1ull << 62) /* of a buffer or a session; a macro, for the tables of request fields */
