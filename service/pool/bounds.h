/* Bounds of pool/ alone, each with its unit in its name. What a user meets, or several folders share, is in limits.h. */
#pragma once

#include "limits.h"

enum {
    SHARE_MESSAGES_MAX = 64, /* messages examined for one descriptor that a worker sends */
    COMPILE_TURN_WAIT_MS = 2 * COMPILE_DEADLINE_MS, /* for a turn to compile: longer than a compilation runs until its deadline */
    COMPILE_BUILTIN_TURNS = 1, /* beside the other turns, for built-in kernels only */
    DEVICE_MONITOR_STAGING_BYTES = STAGING_SLICE_BYTES, /* a device monitor moves no long bodies */
    BACKENDS_MAX = 8,
    DEVICE_ARGUMENTS_MAX = 16, /* settings of backends */
    DRAIN_TURN_MAX = 2 * RING_SLOTS, /* answers of a worker taken in one turn: a call has two at most */
    DEVICE_MONITOR_ANSWER_MS = 1000, /* longest wait of a request for a device monitor */
    QUARANTINE_RETRY_MS = 10 * 1000,
    HEALTH_PERIOD_MS = 2 * 1000, /* interval of reading sensors and errors */
    TEMPERATURE_HYSTERESIS_C = 5,
    TEMPERATURE_STOP_ABOVE_C = 5, /* above the slowdown limit running work is ended, unless a setting says otherwise */
    RECOVERY_SOFT_PAUSE_MS = 1000, /* before a device monitor is tried again after a soft reset */
    RECOVERY_HARD_PAUSE_MS = 5 * 1000, /* ... after a hard one; doubled with every further one because of the same error */
    RECOVERY_STEPS_MAX = 3, /* because of one error, before the device is quarantined, or stays so */
    RESET_END_MS = 30 * 1000, /* for the processes on a device to end */
    RESET_TOOL_MS = 120 * 1000, /* for the vendor's tool */
    RESET_TOOL_LOOK_MS = 50, /* how often it is looked at */
    COUNT_LOOK_MS = 50, /* how often the process that counts devices is looked at */
    RESET_START_MS = 2 * WORKER_START_DEADLINE_MS + CANARY_DEADLINE_MS, /* for a device monitor to come up, with its pause before */
    WORKER_SLOW_MS = 5 * 1000, /* a longer start or end of a worker is logged as a warning */
    WARM_TAKEN_MAX = 10, /* warm workers of a device, where they are used fast; --pool-size may be more */
    WARM_WINDOW_MS = 1000, /* as many as were taken within this time ... */
    WARM_KEEP_MS = 30 * 1000, /* ... stay warm for this time */
    PLENTY_DIVISOR = 4, /* more than --pool-size only while a quarter of the device's memory and of --workers-max is free; see pool_has_plenty() */
    SERVER_PATH_BYTES = 96, /* of a server's folder, with its NUL: the path of a socket in it has 108 */
    SERVER_START_MS = 30 * 1000, /* for a server's daemon to accept clients */
    SERVER_WARM_MAX = 1, /* workers that wait in a fault domain, beside those that somebody waits for */
    SERVERS_ENDING_MAX = FAULT_DOMAINS_MAX, /* with so many that have not ended yet no other one is started */
    RESPAWN_BACKOFF_MIN_MS = 100,
    RESPAWN_BACKOFF_MAX_MS = 10 * 1000,
};

static const uint64_t GPU_TIME_US_MAX = 2ull * EXECUTION_TIMEOUT_MS_MAX * 1000; /* longest plausible time of a launch, or between two events, beyond deadline and grace */
