/* Bounds that a user meets or that several rooms share, each with its unit in its name. Bounds of one room are in its bounds.h. Nothing
 * grows without a bound in one of them. Bounds that an operator may change are settings (config.def), whose limits are here; all others
 * are fixed. */
#pragma once

#include <assert.h>
#include <stdint.h>

enum {
    /* http */
    JSON_BODY_BYTES_MAX = 1024 * 1024,
    JSON_DEPTH_MAX = 32,
    SOURCE_BODY_BYTES_MAX = 4 * 1024 * 1024,
    REQUEST_ARENA_BYTES = 24 * 1024 * 1024, /* a source body, its JSON form and decoded headers; allocated as needed */
    REPLY_BODY_BYTES_MAX = 64 * 1024 * 1024, /* module code is the largest body that is held whole */
    VERIFIED_BODY_BYTES_MAX = 64 * 1024 * 1024, /* up to here a body with a digest is held back until it is verified, or hashed before it is sent */
    URI_BYTES_MAX = 8 * 1024,
    CONNECTIONS_MAX = 1024,
    CONNECTIONS_PER_ADDRESS_MAX = 128,
    REQUESTS_IN_FLIGHT_PER_CALLER_MAX = 64,
    REQUESTS_PER_S_MAX = 1000 * 1000, /* the setting's greatest value; also the burst */
    TOKEN_FAILURES_PER_MINUTE = 10,   /* per address */
    HEADER_DEADLINE_S = 10,
    BODY_STALL_S = 30,
    BODY_BYTES_PER_S_MIN = 1024,   /* average that a client must send of a body */
    ANSWER_BYTES_PER_S_MIN = 1024, /* average that a client must read of an answer */
    BODY_RATE_GRACE_S = 5,         /* before either average is checked */
    IDLE_CONNECTION_S = 60,
    IDEMPOTENCY_S = 600, /* a key is remembered for this long after its request has finished */
    IDEMPOTENCY_KEY_CHARS_MAX = 128,
    IDEMPOTENCY_KEYS_PER_CALLER_MAX = 10000,
    IDEMPOTENCY_KEYS_MAX = 100000,
    IDEMPOTENCY_ANSWER_BYTES_MAX = 1024 * 1024,       /* longer answers are not stored */
    REPLY_WHOLE_BYTES_MAX = 256 * 1024,   /* sending more in one send() would stall the loop's other clients */
    IO_THREADS_DEFAULT = 4,
    IO_THREADS_MAX = 64,
    LOOP_THREADS_MAX = 16,
    LOOP_THREADS_CHOSEN_MIN = 2, /* by the number of CPUs, where the setting leaves it open */
    LOOP_THREADS_CHOSEN_MAX = 8,
    LOOP_THREADS_CPUS = 2, /* for each loop. 4, 6 and 8 loops on the 16 CPUs of an H200 did 123,000, 145,000 and 180,000 launches/s (2026-11-29, eight sessions) */
    LISTENERS_MAX = 8,
    TRUSTED_PROXIES_MAX = 64,
    LIST_ITEMS_MAX = 1000,
    CONFIG_LIST_ITEMS_MAX = 32, /* of a setting that may be repeated */
    CONFIG_FILE_BYTES_MAX = 64 * 1024,
    LOG_LINE_BYTES = 2048,
    LOG_LINES_KEPT = 1024, /* for /v1/admin/logs */
    LOG_FILE_MIB_DEFAULT = 10,
    LOG_FILES_DEFAULT = 5,
    LOG_FILES_MAX = 100,
    LOG_FOLLOWERS_MAX = 8,
    METRIC_LABELS_BYTES_MAX = 1024,
    QUIESCE_MS = 5 * 1000,      /* for the last answers when the server stops */

    /* names */
    ID_BYTES = 128,        /* any id with its NUL: server ids, client ids (63 characters), node names */
    CLIENT_ID_CHARS_MAX = 63,
    NODE_NAME_CHARS_MAX = 48,
    MOVE_URL_BYTES = 256,     /* of a node that a session moves to, with its NUL */
    MOVE_SECRET_BYTES = 65,   /* of a secret, or of its digest, in hex with a NUL */
    MOVE_HOLD_S_DEFAULT = 120, /* so long a session stands still for its move, unless the request says otherwise, */
    MOVE_HOLD_S_MAX = 3600,    /* at most */
    MOVED_FOR_S_MAX = 30 * 24 * 3600,
    MOVED_SESSIONS_PER_CALLER_MAX = 1000, /* that are told where they are now */
    SNAPSHOT_HAVE_MAX = 100,              /* digests of what the client has, which fit a URI also with %2C between them */
    NODE_TAG_CHARS = 6, /* of the 22 random ones of a session's id: those name the process that chose it */
    CALLER_NAME_BYTES = 64,
    STREAM_NAME_BYTES = 64,
    DEVICE_ID_BYTES = 32,
    LABELS_MAX = 16,
    LABEL_KEY_BYTES = 64,
    LABEL_VALUE_BYTES = 256,

    /* sessions */
    SESSIONS_PER_CALLER_MAX = 8,
    SESSIONS_MAX = 256,
    BUFFERS_PER_SESSION_MAX = 65536,
    MODULES_PER_SESSION_MAX = 1024,
    TEXTURES_PER_SESSION_MAX = 1024,
    TEXTURE_OFFSET_ALIGN = 512, /* bytes: where in a buffer a texture may begin, CUDA's own bound */
    BUILTINS_PER_SESSION_MAX = 768, /* built-in kernels loaded at once, each for one dtype; they do not count as modules */
    VENDOR_PLANS_PER_SESSION_MAX = 64, /* products and transforms of given sizes that a library has prepared; the least recently used is dropped */
    BUILTIN_BLOCKS_AT_ONCE_MAX = 1056, /* blocks of built-in kernels whose blocks cooperate: there is a place for this many partial results */
    BUILTIN_WARPGROUP_THREADS = 3 * 128, /* per block, where warpgroups multiply matrices: one fetches, two multiply */
    BUILTIN_WARPGROUP_BYTES = 4 * 48 * 1024 + 1024, /* of shared memory, where warpgroups multiply matrices: four stages of operands, aligned */
    BUILTIN_ROW_OF_WARP = 2048, /* elements of the longest row that one warp reduces */
    BUILTIN_HEADERS_MAX = 8,
    DTYPE_NAME_BYTES = 8,
    STREAMS_PER_SESSION_MAX = 64,
    SHARES_PER_SESSION_MAX = 64, /* buffers with memory that clients of this host map */
    SHARES_MAX = 256,            /* ... over all sessions: each takes two descriptors */
    LOCAL_SHARING_MIB_DEFAULT = 1024,
    LOCAL_SHARING_MIB_MAX = 1024 * 1024,
    HIBERNATE_MIB_MAX = 16 * 1024 * 1024,
    HIBERNATE_AFTER_S_MAX = 7 * 24 * 3600,
    HIBERNATE_BUFFER_BYTES_MIN = 2 * 1024 * 1024, /* a smaller buffer stays on the device while its session is hibernated */
    LAUNCHES_QUEUED_MAX = 1024,
    LAUNCHES_KEPT_MAX = 1024, /* finished launches that GET still answers; the oldest are dropped first */
    IDLE_TIMEOUT_S_DEFAULT = 600,
    IDLE_TIMEOUT_S_MAX = 366 * 24 * 3600, /* a setting lowers what sessions get */
    LIFETIME_S_DEFAULT = 24 * 3600,
    LIFETIME_S_MAX = 366 * 24 * 3600, /* likewise */
    LEASE_S_MAX = 24 * 3600,
    ENDED_SESSIONS_KEPT_MAX = 64, /* per caller: how its last ones ended, for requests that still name them */
    MODULE_CODE_KEPT_BYTES_MAX = 256 * 1024 * 1024, /* sources, logs, PTX and cubins per session */
    FAULT_DOMAINS_MAX = 16, /* each may have a server, which takes memory of the device */
    FAULT_DOMAIN_SESSIONS_MAX = 40, /* an MPS server serves at least 48 clients: warm workers and those that are just replaced count, too */
    CRASH_BUDGET_DEFAULT = 60, /* faults of one caller's kernels on one device within the window */
    CRASH_BUDGET_MAX = 1000 * 1000, /* the setting's greatest value */
    CRASH_WINDOW_S_DEFAULT = 60,
    CRASH_WINDOW_S_MAX = 24 * 3600,
    RESULT_TTL_S_DEFAULT = 300, /* of asynchronous batches */
    RESULT_TTL_S_MAX = 24 * 3600,
    WAIT_S_MAX = 300,
    EXECUTION_TIMEOUT_MS_DEFAULT = 60 * 1000,
    EXECUTION_TIMEOUT_MS_MAX = 3600 * 1000,

    /* events */
    EVENTS_KEPT_MAX = 1024,                /* per session, for clients that return with a Last-Event-ID */
    BATCH_EVENTS_MAX = 32,                 /* launch.finished events of one batch; the last of them covers all remaining launches */
    EVENT_TEXT_BYTES_MAX = 64 * 1024,      /* of a kernel's printf text in one event */
    EVENT_STREAMS_PER_SESSION_MAX = 16,
    EVENT_STREAMS_PER_CALLER_MAX = 32,
    EVENT_STREAM_S_MAX = 3600,
    EVENT_HEARTBEAT_S = 15,                /* default of the setting */

    /* modules */
    COMPILE_HEADERS_MAX = 64,
    COMPILE_OPTIONS_MAX = 128,
    COMPILE_NAME_EXPRESSIONS_MAX = 256,
    COMPILE_LOG_BYTES_MAX = 64 * 1024,
    COMPILE_IMAGE_BYTES_MAX = 32 * 1024 * 1024,
    COMPILE_DEADLINE_MS = 30 * 1000,
    COMPILE_JOBS_MAX = 4,
    COMPILE_WAITING_PER_CALLER_MAX = 32, /* compilations of a caller's own sources that wait for a turn */
    CACHE_ENTRIES_MAX = 65536, /* files in the code cache */
    CACHE_WARMS_PER_CALLER_MAX = 4, /* requests of a caller to compile ahead that are under way */
    CACHE_WARM_ITEMS_MAX = 1024, /* compilations that one of them asks for */
    COMPILE_TREE_FILES_MAX = 65536, /* of the tree of CUDA headers, which is hashed to identify it */
    COMPILE_JOB_BYTES_MAX = 16 * 1024 * 1024, /* a serialized job; source and headers arrived in one body */
    COMPILE_LOWERED_BYTES_MAX = 1024 * 1024,
    COMPILE_OUTPUT_BYTES_MAX = 66 * 1024 * 1024, /* a serialized answer */
    COMPILE_VERSION_BYTES = 32,
    COMPILE_IDENTITY_BYTES = 65, /* a SHA-256 in hex with its NUL */
    COMPILE_ARCH_BYTES = 32, /* "sm_90" and similar, with the NUL */
    LINKED_IMAGES_MAX = 64, /* that one module is linked of */
    KERNEL_NAME_BYTES = 4096, /* mangled template names are long */
    KERNELS_PER_MODULE_MAX = 4096,
    KERNEL_TABLE_BYTES_MAX = 8 * 1024 * 1024,
    KERNEL_PARAMS_MAX = 512, /* an array takes seven in code of Numba's */
    KERNEL_PARAM_BYTES_MAX = 32764, /* CUDA's own bound since sm_70 */

    /* launches */
    LAUNCH_ARGS_MAX = KERNEL_PARAMS_MAX,
    KERNEL_OUTPUT_BYTES_MAX = 1024 * 1024, /* device printf kept per launch; CUDA's FIFO has this size */

    /* batches */
    BATCH_JSON_BYTES_MAX = 4 * 1024 * 1024,
    BATCH_OPS_MAX = 4096,
    BATCH_SEGMENTS_MAX = 256,               /* in each direction */
    BATCH_INLINE_BYTES_MAX = 64 * 1024,     /* of segments within JSON, in each direction */
    BATCH_ANSWER_BYTES_MAX = REPLY_BODY_BYTES_MAX, /* bytes read: they are held until the last kernel has finished */
    RUN_ITEMS_MAX = 256,                    /* operations of a batch that one message sends to the worker */
    EVENTS_PER_SESSION_MAX = BATCH_OPS_MAX, /* recorded by concurrent batches */
    PROGRAMS_PER_SESSION_MAX = 16,
    GRAPHS_PER_PROGRAM_MAX = BATCH_OPS_MAX / 2, /* a graph has at least two launches */
    RUNS_AT_ONCE_PER_CALLER = 4,            /* POST /v1/run: each has a worker of its own; further runs wait */
    BATCHES_QUEUED_MAX = 64,                /* asynchronous batches that wait in a session */
    BATCHES_QUEUED_BYTES_MAX = 128 * 1024 * 1024, /* ... host memory of their requests, per session */
    BATCHES_KEPT_MAX = 64,                  /* finished asynchronous batches that a session remembers; the oldest are dropped first */
    BATCH_RESULTS_KEPT_BYTES_MAX = 256 * 1024 * 1024, /* ... host memory of their results */
    BATCH_CALLS_IN_FLIGHT_MAX = 64,         /* sent to the worker and not finished; the worker keeps as many outputs */

    /* processes */
    DEVICES_MAX = 16,
    WORKERS_MAX = 64,
    POOL_SIZE_DEFAULT = 2,
    DEVICE_ATTRIBUTES_MAX = 224,
    DEVICE_LIBRARIES_MAX = 4, /* of a device's maker */
    RING_SLOTS = 256,
    STAGING_MIB_DEFAULT = 64,
    STAGING_SLICE_BYTES = 1024 * 1024,
    STAGING_SLICES_MAX = 4096, /* the setting's greatest value, in slices */
    CALLS_RESERVED = 16,        /* calls that launches leave free, so that a cancel always gets through */
    OUTPUTS_KEPT_MAX = 64,      /* launches whose printf text waits for TAKE_OUTPUT; the oldest is dropped */
    MODULES_PER_WORKER_MAX = 2048,
    SPIN_CPUS_MAX = 65536,      /* the setting's greatest value */
    RESET_TIMEOUT_S_DEFAULT = 30, /* for running work, when an operator resets a device */
    RESET_TIMEOUT_S_MAX = 3600,
    CANARY_DEADLINE_MS = 10 * 1000,
    TEMPERATURE_MAX_C = 150,     /* the setting's greatest value */
    WORKER_TASKS_MAX = 64 * (1 + 16) + 16, /* CPU_POOL_THREADS_MAX, for each CPU_RESIDENT_BLOCKS_PER_CORE of a cooperative launch, and spare ones */
    WORKER_START_DEADLINE_MS = 30 * 1000,
    WORKER_GRACE_MS = 500,      /* a worker that is lost has so long to end by itself */
    FAULT_TOLD_MS = 1000,       /* a driver tells a fault at most so much later: a trap on an H200 after 500 ms, seldom more (2026-11-22) */
    LAUNCH_GRACE_MS = FAULT_TOLD_MS + WORKER_GRACE_MS, /* after a kernel's own deadline, before its worker is killed from outside */
    SPIN_BUDGET_US = 30,        /* how long a caller spins for its worker's answer */
    SPIN_BUDGET_MANY_US = 100,

    /* cpu device: interpreter */
    CPU_POOL_THREADS_MAX = 64,
    CPU_RESIDENT_BLOCKS_PER_CORE = 16, /* of a cooperative launch: each block has a host thread of its own */
};

static const uint64_t HELD_BODIES_BYTES_MAX = 512ull * 1024 * 1024; /* host memory for bodies that are held for their digests, over all requests */
static const uint64_t BATCH_JOBS_BYTES_MAX = 1024ull * 1024 * 1024; /* host memory for asynchronous batches and their results, over all sessions */
static const uint64_t MEMORY_LIMIT_NONE = UINT64_MAX; /* a session without memory_limit: the device is the limit */
static const uint64_t CPU_ARENA_BYTES_MAX = 1ull << 40; /* reserved addresses, not memory */
static const uint64_t JSON_INTEGER_MAX = 1ull << 53; /* above it JSON numbers lose digits, so decimal strings are used */

static_assert(WORKER_TASKS_MAX >= CPU_POOL_THREADS_MAX * (1 + CPU_RESIDENT_BLOCKS_PER_CORE) + 4, "every cooperative launch has its threads");
static_assert((RING_SLOTS & (RING_SLOTS - 1)) == 0, "ring indices wrap by mask");
static_assert(REQUEST_ARENA_BYTES >= 2 * (SOURCE_BODY_BYTES_MAX + JSON_BODY_BYTES_MAX), "a body and its decoded form must fit");
static_assert(VERIFIED_BODY_BYTES_MAX <= REPLY_BODY_BYTES_MAX, "a body that is hashed before it is sent fits a reply");
static_assert(COMPILE_JOB_BYTES_MAX >= 2 * SOURCE_BODY_BYTES_MAX, "a job and its frame must fit");
static_assert(COMPILE_OUTPUT_BYTES_MAX >= 2 * COMPILE_IMAGE_BYTES_MAX + COMPILE_LOG_BYTES_MAX + COMPILE_LOWERED_BYTES_MAX,
              "the largest answer must fit");
static_assert(KERNEL_TABLE_BYTES_MAX < STAGING_MIB_DEFAULT * 1024 * 1024, "a kernel table travels through staging");
static_assert(BATCH_RESULTS_KEPT_BYTES_MAX >= BATCH_ANSWER_BYTES_MAX + REPLY_BODY_BYTES_MAX, "the largest result can be kept");
static_assert(BATCHES_QUEUED_BYTES_MAX >= 4 * REQUEST_ARENA_BYTES, "any batch can wait");
static_assert(BATCH_CALLS_IN_FLIGHT_MAX <= OUTPUTS_KEPT_MAX, "the worker forgets no output of a batch before it is fetched");
static_assert(BATCH_CALLS_IN_FLIGHT_MAX < RING_SLOTS - CALLS_RESERVED, "a batch leaves room in the ring");
static_assert(REQUEST_ARENA_BYTES >= 4 * BATCH_JSON_BYTES_MAX, "a batch's JSON in its decoded form must fit");
