/* Every bound of the service, with its unit in its name. Nothing grows without a name here.
 * Those an operator may change are settings (config.def) whose bounds stand here; the rest are fixed. */
#ifndef GPUREST_LIMITS_H
#define GPUREST_LIMITS_H

#include <assert.h>
#include <stdint.h>

enum {
    /* http */
    JSON_BODY_BYTES_MAX = 1024 * 1024,
    JSON_DEPTH_MAX = 32,
    JSON_VALUES_MAX = 10000,
    SOURCE_BODY_BYTES_MAX = 4 * 1024 * 1024,
    REQUEST_ARENA_BYTES = 24 * 1024 * 1024, /* a source body, its JSON form and decoded headers; taken as needed */
    REPLY_BODY_BYTES_MAX = 64 * 1024 * 1024, /* module code is the largest body that is held whole */
    REPLY_HEADERS_MAX = 16,
    ROUTE_PARAMS_MAX = 3,
    URI_BYTES_MAX = 8 * 1024,
    REQUEST_HEADERS_MAX = 100,
    CONNECTION_MEMORY_BYTES = 32 * 1024, /* measured: more is slower, the pool is cleared per request */
    CONNECTIONS_MAX = 1024,
    CONNECTIONS_PER_ADDRESS_MAX = 128,
    REQUESTS_IN_FLIGHT_PER_CALLER_MAX = 64,
    HEADER_DEADLINE_S = 10,
    BODY_STALL_S = 30,
    IDLE_CONNECTION_S = 60,
    EXECUTOR_THREADS_MAX = 256,
    EXECUTOR_QUEUE_MAX = 1024,
    LOOP_THREADS_MAX = 16,
    LISTENERS_MAX = 8,
    HOSTS_MAX = 32,
    TOKENS_MAX = 1024,
    TOKEN_FILE_BYTES_MAX = 1024 * 1024,
    LIST_ITEMS_DEFAULT = 100,
    LIST_ITEMS_MAX = 1000,

    /* names */
    ID_BYTES = 128,        /* any id with its NUL: server ids, client ids (63 characters), node names */
    CLIENT_ID_CHARS_MAX = 63,
    CALLER_NAME_BYTES = 64,
    STREAM_NAME_BYTES = 64,
    LABELS_MAX = 16,
    LABEL_KEY_BYTES = 64,
    LABEL_VALUE_BYTES = 256,

    /* sessions */
    SESSIONS_PER_CALLER_MAX = 8,
    SESSIONS_MAX = 256,
    BUFFERS_PER_SESSION_MAX = 65536,
    MODULES_PER_SESSION_MAX = 1024,
    STREAMS_PER_SESSION_MAX = 64,
    LAUNCHES_QUEUED_MAX = 1024,
    LAUNCHES_KEPT_MAX = 1024, /* finished ones that GET still answers; the oldest are forgotten first */
    IDLE_TIMEOUT_S_DEFAULT = 600,
    IDLE_TIMEOUT_S_MAX = 24 * 3600,
    LIFETIME_S_MAX = 24 * 3600,
    WAIT_S_DEFAULT = 10,
    WAIT_S_MAX = 300,
    EXECUTION_TIMEOUT_MS_DEFAULT = 60 * 1000,
    EXECUTION_TIMEOUT_MS_MAX = 3600 * 1000,

    /* modules */
    COMPILE_HEADERS_MAX = 64,
    COMPILE_OPTIONS_MAX = 128,
    COMPILE_OPTION_BYTES_MAX = 4096 + 256,
    COMPILE_NAME_EXPRESSIONS_MAX = 256,
    COMPILE_LOG_BYTES_MAX = 64 * 1024,
    COMPILE_DIAGNOSTICS_MAX = 64,
    COMPILE_IMAGE_BYTES_MAX = 32 * 1024 * 1024,
    COMPILE_DEADLINE_MS = 30 * 1000,
    COMPILE_JOBS_MAX = 4,
    COMPILE_ADDRESS_SPACE_MIB = 2048,
    KERNEL_NAME_BYTES = 4096, /* mangled template names are long */
    KERNELS_PER_MODULE_MAX = 4096,
    GLOBALS_PER_MODULE_MAX = 4096,
    KERNEL_TABLE_BYTES_MAX = 8 * 1024 * 1024,
    KERNEL_PARAMS_MAX = 128,
    KERNEL_PARAM_BYTES_MAX = 4096, /* CUDA's own bound for every architecture */

    /* launches */
    LAUNCH_ARGS_MAX = KERNEL_PARAMS_MAX,
    KERNEL_OUTPUT_BYTES_MAX = 1024 * 1024, /* device printf kept per launch, as CUDA's FIFO */

    /* processes */
    DEVICES_MAX = 16,
    WORKERS_MAX = 64,
    POOL_SIZE_DEFAULT = 2,
    DEVICE_ATTRIBUTES_MAX = 224,
    RING_SLOTS = 256,
    COMMAND_BYTES_MAX = KERNEL_PARAM_BYTES_MAX + 512,
    COMPLETION_BYTES_MAX = 512,
    STAGING_MIB_DEFAULT = 64,
    STAGING_SLICE_BYTES = 1024 * 1024,
    WORKER_START_DEADLINE_MS = 30 * 1000,
    WORKER_CALL_DEADLINE_MS = 30 * 1000, /* for calls that do not wait for kernels */
    WORKER_GRACE_MS = 500,               /* past a kernel's own deadline before the worker is killed from outside */
    RESPAWN_BACKOFF_MIN_MS = 100,
    RESPAWN_BACKOFF_MAX_MS = 10 * 1000,
    SPIN_BUDGET_US = 30,
};

static const uint64_t MEMORY_LIMIT_NONE = UINT64_MAX; /* a session without memory_limit: the device is the limit */
static const uint64_t CACHE_BYTES_DEFAULT = 1024ull * 1024 * 1024;
static const uint64_t JSON_INTEGER_MAX = 1ull << 53; /* above it JSON numbers lose digits: decimal strings */

static_assert((RING_SLOTS & (RING_SLOTS - 1)) == 0, "ring indices wrap by mask");
static_assert(REQUEST_ARENA_BYTES >= 2 * (SOURCE_BODY_BYTES_MAX + JSON_BODY_BYTES_MAX), "a body and its decoded form must fit");
static_assert(KERNEL_TABLE_BYTES_MAX < STAGING_MIB_DEFAULT * 1024 * 1024, "a kernel table travels through staging");

#endif
