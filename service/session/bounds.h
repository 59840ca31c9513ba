/* Bounds of session/ alone, each with its unit in its name. What a user meets, or several folders share, is in limits.h. */
#pragma once

#include "limits.h"

enum {
    /* sessions */
    VENDOR_WORKSPACE_BYTES_MAX = 32 * 1024 * 1024, /* of a product: what its method may have for itself */
    BUILTIN_ARGS_MAX = 32,
    BUILTIN_EXPRESSION_BYTES = 128,
    MEMORY_RETURN_MS = 2000, /* so long memory that was given back to a device may be missing there: allocations that it would help wait */
    MEMORY_RETURN_NAP_MS = 10, /* ... and are tried again this often */
    MEMORY_LOW_PERCENT = 90,   /* of a session's limit: beyond it followers of its events are told that memory is low */
    RESET_BESIDE_MIB_MAX =
        1024,              /* a session with more in its buffers gets its next worker after the end of the last one: it may need the room */
    RESET_BESIDE_MAX = 4,  /* former workers of a session that may be ending while it is reset. With 1, 60 faults in a row were reset within 68 to 112 ms
                              in the median, with 4 within 0.4 to 0.5 (one H200, in turns, 2026-11-30): up to 4 were ending at once */
    JANITOR_TICK_MS = 100, /* how often idle, aged and overrunning sessions are looked for */
    TRANSFER_SLICES_MAX = 4,                     /* of staging, in flight per transfer */
    TRANSFER_LONG_PIECE_BYTES = 4 * 1024 * 1024, /* of an upload go to the device in one call ... */
    TRANSFER_LONG_PIECES_MIN = 8, /* ... while so many are still to come, and where staging memory holds as many; else a slice */
    LAUNCHES_IN_RING_MAX = 128,   /* the rest of the queue waits here, so that other calls find room */
    LAUNCH_OUTPUTS_KEPT_BYTES_MAX = 8 * 1024 * 1024, /* printf text of finished launches per session */

    MOVE_LEAVE_MS = 30 * 1000, /* the end of a move waits so long for requests under way */
    SNAPSHOT_LOOK_MS = 5, /* a session that is to stand still for its snapshot is looked at so often */

    /* hibernation */
    HIBERNATE_LANES_MAX = 4,                 /* pieces between device and file, at once ... */
    HIBERNATE_PIECE_BYTES = 4 * 1024 * 1024, /* ... of so many bytes, or of a slice where staging memory is small */
    HIBERNATE_IDLE_MS = 10 * 1000,           /* a session that is asked to hibernate waits so long for the end of its work */
    HIBERNATE_LOOKS_MAX = 5, /* at sessions of which each is used at that moment */
    HIBERNATE_PATIENCE_MS = 20 * 1000,       /* memory that others have is waited for so long */
    HIBERNATE_RETRY_MS = 50,
    HIBERNATE_RETRY_AFTER_MS = 2000,     /* what a client is told that found no memory to wake its session */
    HIBERNATE_VICTIM_MS = 5000,          /* so long, and for its bytes at the slowest rate, another session may take to fall asleep ... */
    HIBERNATE_BYTES_PER_MS_MIN = 200000, /* ... before it is passed over ... */
    HIBERNATE_FAILED_MS = 10 * 1000,     /* ... for so long */

    /* events */
    EVENT_TEXTS_BYTES_MAX = 1024 * 1024, /* of all that are kept; the oldest events make room */

    /* modules */
    KERNEL_NAMES_BYTES = 192, /* of a module's kernels in the error that one is missing, which the detail of a problem's field holds */
    COMPILE_DIAGNOSTICS_MAX = 64,
    COMPILE_HEADER_NAME_BYTES_MAX = 255,
    COMPILE_OPTION_TEXT_BYTES_MAX = 256, /* an option's name with its dashes */
    COMPILE_DEFINES_MAX = 64,
    COMPILE_DEFINE_VALUE_BYTES_MAX = 4096,
    CACHE_WARMS_MAX = 64,                   /* threads that compile ahead, over all callers */
    CACHE_WARMS_KEPT_MAX = 16,              /* finished ones of a caller that are remembered; the oldest are dropped first */
    CACHE_WARM_BYTES_MAX = 8 * 1024 * 1024, /* a copy of the sources, which came in one JSON body */
    CACHE_WARM_RETRY_MS = 1000,             /* without a turn to compile, because the caller's own requests wait for theirs */

    /* batches */
    GRAPH_PARAM_BYTES_MAX = 4096, /* a launch with more of them does not become a part of a program's graph */
    RUN_EXTRA_IDLE_S = 30,        /* the workers of the second and further ones stay so long without work */
    RUN_TRIES_MAX = 3,            /* so often is a run that had not begun when its implicit session was lost given another one */
    BATCH_WATCH_MS = 100,         /* a batch that is under way is asked so often whether its client is still there */

    /* workers */
    WORKER_CALL_DEADLINE_MS = 30 * 1000, /* for calls that do not wait for kernels */
    PING_AFTER_MS = 5000, /* launches were given to a worker and none started or ended: it is asked whether it still answers */

    /* code cache */
    CACHE_HOLDERS_COUNTED_MAX = 1056,   /* whose hits and misses are counted apart: every token's, with room for a reloaded file */
    CACHE_UNUSED_S_MAX = 7 * 24 * 3600, /* what nobody used for so long makes room first, whosesoever it is */
};

static const uint64_t CONTEXT_BYTES_MAX =
    1024ull * 1024 * 1024; /* of device memory that a worker has besides its buffers: an estimate, see session/memory/pending_free.c */

static_assert(TRANSFER_LONG_PIECE_BYTES % STAGING_SLICE_BYTES == 0, "a long piece is whole slices");
static_assert((int)LAUNCHES_IN_RING_MAX < (int)RING_SLOTS, "transfers and syncs find room in the ring");
