/* Every bound of the service, with its unit in its name. Nothing grows without a name here.
 * Those an operator may change are settings (config.def) whose bounds stand here; the rest are fixed. */
#ifndef GPUREST_LIMITS_H
#define GPUREST_LIMITS_H

#include <assert.h>
#include <stdint.h>

enum {
    /* what callers share: SECURITY.md lists each such bound with what one caller may have of it */
    PORTION_DIVISOR = 4, /* of what the other callers leave of a bound, a caller may have all but so large a part; see base/portion.h */

    /* http */
    JSON_BODY_BYTES_MAX = 1024 * 1024,
    JSON_FIELDS_MAX = 48, /* of a table that decodes an object */
    JSON_DEPTH_MAX = 32,
    JSON_VALUES_MAX = 10000,
    SOURCE_BODY_BYTES_MAX = 4 * 1024 * 1024,
    REQUEST_ARENA_BYTES = 24 * 1024 * 1024, /* a source body, its JSON form and decoded headers; taken as needed */
    REPLY_BODY_BYTES_MAX = 64 * 1024 * 1024, /* module code is the largest body that is held whole */
    VERIFIED_BODY_BYTES_MAX = 64 * 1024 * 1024, /* a body with a digest is held back until it is verified, or hashed before it is sent, up to here */
    DIGEST_PIECE_BYTES = 256 * 1024, /* read and hashed at a time */
    REPLY_HEADERS_MAX = 16,
    SERVER_TIMING_BYTES_MAX = 256, /* its five durations, of up to 20 digits each, are shorter */
    ROUTE_PARAMS_MAX = 3,
    ROUTE_SEGMENTS_MAX = 12, /* of a path; no endpoint has more than half of it */
    URI_BYTES_MAX = 8 * 1024,
    REQUEST_HEADERS_MAX = 100,
    REQUEST_HEADER_BYTES_MAX = 24 * 1024, /* request line and header lines; of a trailer as many */
    CHUNK_LINE_BYTES_MAX = 256,           /* a chunk's size and extensions */
    CONNECTION_MEMORY_BYTES = 32 * 1024, /* measured: more is slower, the pool is cleared per request */
    CONNECTIONS_MAX = 1024,
    CONNECTIONS_PER_ADDRESS_MAX = 128,
    CONNECTIONS_RESERVED = 64, /* beyond both: for newcomers that find all others at work; only probes are answered there */
    EXECUTOR_THREADS_RESERVED = 4, /* of EXECUTOR_THREADS_MAX: for probes */
    REQUESTS_IN_FLIGHT_PER_CALLER_MAX = 64,
    REQUESTS_PER_S_MAX = 1000 * 1000, /* the setting's greatest value; so many may come at once, too */
    TOKEN_FAILURES_PER_MINUTE = 10,   /* of one address */
    PEER_ADDRESS_BYTES = 9,           /* family, then an IPv4 address or the network part of an IPv6 one */
    GUESS_SETS = 1024,                /* addresses that wrong tokens are counted of: so many times GUESS_PLACES */
    GUESS_PLACES = 4,
    GUESS_CALLERS_KNOWN = 8,          /* of one address */
    HEADER_DEADLINE_S = 10,
    BODY_STALL_S = 30,
    BODY_BYTES_PER_S_MIN = 1024,   /* of a body that a client sends, on the whole */
    ANSWER_BYTES_PER_S_MIN = 1024, /* ... and takes of an answer */
    BODY_RATE_GRACE_S = 5,         /* before either is looked at */
    IDLE_CONNECTION_S = 60,
    IDEMPOTENCY_S = 600, /* a key is remembered for so long after its request was done */
    IDEMPOTENCY_KEY_CHARS_MAX = 128,
    IDEMPOTENCY_KEYS_PER_CALLER_MAX = 10000,
    IDEMPOTENCY_KEYS_MAX = 100000,
    IDEMPOTENCY_BUCKETS = 16384,
    IDEMPOTENCY_ANSWER_BYTES_MAX = 1024 * 1024,       /* longer ones are not stored */
    IDEMPOTENCY_ANSWERS_BYTES_MAX = 64 * 1024 * 1024, /* of all callers together; the oldest of the caller who has most make room */
    EXECUTOR_THREADS_MAX = 256,
    EXECUTOR_QUEUE_MAX = 1024,
    EXECUTOR_IDLE_MS = 10 * 1000,
    SWEEP_INTERVAL_MS = 100,              /* deadlines and hang-ups are looked for this often */
    SWEEP_LATE_MS = 2 * 1000,             /* a loop that looks so late was stopped */
    TURN_INTERVAL_MAX_MS = 1000,          /* an idle loop turns at least this often */
    REPLY_WHOLE_BYTES_MAX = 256 * 1024,   /* more in one send() would stall the loop's other clients */
    REFUSED_BODY_DRAIN_BYTES = 64 * 1024, /* a refused request keeps its connection when its body is at most this */
    LINGER_BYTES_MAX = 1024 * 1024,       /* unread input taken from a connection that we close, so that the answer is not lost */
    LINGER_MS = 200,
    OFFLOAD_UPLOAD_BYTES_MIN = 1024 * 1024,  /* shorter bodies are not worth the change of threads */
    OFFLOAD_DOWNLOAD_BYTES_MIN = 256 * 1024, /* longer ones would hold up the loop */
    OFFLOAD_BATCH_ANSWER_BYTES_MIN = 4 * 1024 * 1024, /* what is offloaded costs the connection: a client of batches wants it for the next */
    OFFLOAD_DROP_BYTES = 64 * 1024,          /* pieces in which a failed upload's rest is read */
    UPLOAD_WAKE_BYTES = 512 * 1024,          /* of a fast client's body wake its I/O thread; the socket's buffer may grow to twice that for it, within tcp_rmem */
    UPLOAD_WAKE_MS = 5,                      /* for so long they are waited for */
    IO_THREADS_DEFAULT = 4,
    IO_THREADS_MAX = 64,
    LISTEN_BACKLOG = 4096,
    ACCEPTS_PER_TURN = 64,
    LOOP_THREADS_MAX = 16,
    LISTENERS_MAX = 8,
    CONNECTIONS_CLOSING_MAX = ACCEPTS_PER_TURN * LISTENERS_MAX, /* that have made room for others within a turn of the loop */
    HOSTS_MAX = 32,
    TRUSTED_PROXIES_MAX = 64,
    PROXY_HEADER_BYTES_MAX = 1024, /* of the PROXY protocol, its further fields included */
    FORWARDED_HOPS_MAX = 32,       /* proxies that are looked back through for a request's client */
    TOKENS_MAX = 1024,
    TOKEN_FILE_BYTES_MAX = 1024 * 1024,
    TLS_FILE_BYTES_MAX = 1024 * 1024, /* each of certificate chain, key and client authorities */
    TLS_CRL_BYTES_MAX = 16 * 1024 * 1024, /* the lists of revoked certificates */
    TLS_CHAIN_CERTIFICATES_MAX = 16,  /* that a client shows, when lists of revoked ones are there */
    INPUT_PIPE_S = 10,                /* a pipe in place of a settings, tokens or certificate file has ended after so long */
    LIST_ITEMS_DEFAULT = 100,
    LIST_ITEMS_MAX = 1000,
    CONFIG_LIST_ITEMS_MAX = 32, /* of a setting that may be given several times */
    CONFIG_FILE_BYTES_MAX = 64 * 1024,
    READY_FRESH_MS = 10 * 1000, /* a canary's answer counts for so long */
    LOOP_STALL_S = 30,          /* an event loop that stood still for so long fails /livez */
    LOG_LINE_BYTES = 2048,
    LOG_MESSAGE_BYTES = 1024,
    LOG_LINES_KEPT = 1024, /* for /v1/admin/logs */
    LOG_LINES_QUEUED_MAX = 4096, /* wait for standard error or the file; the oldest are dropped */
    LOG_FLUSH_MS = 1000,         /* the last lines have at the end of the service */
    LOG_CRASH_FLUSH_MS = 200,    /* ... and when it dies of a fault */
    LOG_RELAY_SOURCES_MAX = 256, /* processes of ours whose lines are taken in at once: all workers, device monitors and compilers twice over */
    LOG_RELAY_LINES_PER_S = 50,  /* of each; what is more is dropped */
    LOG_RELAY_LINES_BURST = 500, /* ... beyond so many at once: a sanitizer's report is no more */
    LOG_RELAY_READ_BYTES = 16 * 1024, /* of each at a time ... */
    LOG_RELAY_PAUSE_MS = 50,     /* ... and then, beyond its rate, nothing for so long */
    LOG_PATH_BYTES_MAX = 4000,
    LOG_FILE_MIB_DEFAULT = 10,
    LOG_FILES_DEFAULT = 5,
    LOG_FILES_MAX = 100,
    LOG_FOLLOWERS_MAX = 8,
    LOG_FOLLOW_TICK_MS = 250,
    METRICS_BYTES_MAX = 4 * 1024 * 1024, /* of one scrape */
    METRIC_LABELS_BYTES_MAX = 1024,
    HEALTHCHECK_TIMEOUT_MS = 2500, /* less than the 3 s that the image gives it */
    PROBE_ANSWER_BYTES = 1024,     /* of the service's answer to a health check, head and body */
    PROBE_RETRY_MS = 10,           /* between two tries to connect to a Unix socket whose queue is full */
    QUIESCE_MS = 5 * 1000,      /* for the last answers, when the server stops */

    /* names */
    ID_BYTES = 128,        /* any id with its NUL: server ids, client ids (63 characters), node names */
    CLIENT_ID_CHARS_MAX = 63,
    RANDOM_STOCK_BYTES = 1024, /* per thread, for ids */
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
    BUILTINS_PER_SESSION_MAX = 768, /* built-in kernels, each for one dtype, loaded at once; they count among no modules */
    VENDOR_PLANS_PER_SESSION_MAX = 64, /* products and transforms of given sizes that a library has prepared; the one used longest ago makes room */
    VENDOR_WORKSPACE_BYTES_MAX = 32 * 1024 * 1024, /* of a product: what its method may have for itself */
    BUILTIN_BLOCKS_AT_ONCE_MAX = 1056, /* of those whose blocks work together: as many partial results have a place */
    BUILTIN_WARPGROUP_THREADS = 3 * 128, /* of blocks whose warpgroups multiply matrices: one fetches, two multiply */
    BUILTIN_WARPGROUP_BYTES = 4 * 48 * 1024 + 1024, /* of shared memory, where warpgroups multiply matrices: four stages of operands, aligned */
    BUILTIN_ROW_OF_WARP = 2048, /* elements of the longest row that one warp reduces */
    BUILTIN_HEADERS_MAX = 8,
    CANDIDATE_NAME_BYTES = 32,         /* of such a shape */
    BUILTIN_ARGS_MAX = 32,
    BUILTIN_EXPRESSION_BYTES = 128,
    DTYPE_NAME_BYTES = 8,
    ENGINE_NAME_BYTES = 16,
    STREAMS_PER_SESSION_MAX = 64,
    SHARES_PER_SESSION_MAX = 64, /* buffers whose memory clients of this host map */
    SHARES_MAX = 256,            /* ... of all sessions: each takes two descriptors */
    SHARE_MESSAGES_MAX = 64,     /* looked at for one descriptor that a worker sends */
    LOCAL_SHARING_MIB_DEFAULT = 1024,
    LOCAL_SHARING_MIB_MAX = 1024 * 1024,
    LAUNCHES_QUEUED_MAX = 1024,
    LAUNCHES_KEPT_MAX = 1024, /* finished ones that GET still answers; the oldest are forgotten first */
    IDLE_TIMEOUT_S_DEFAULT = 600,
    IDLE_TIMEOUT_S_MAX = 24 * 3600,
    LIFETIME_S_MAX = 24 * 3600,
    MEMORY_RETURN_MS = 2000,   /* so long memory that was given back to a device may be missing there: allocations that it would help wait */
    MEMORY_RETURN_NAP_MS = 10, /* ... and are tried again this often */
    CLOSER_TICK_MS = 5, /* how often workers that were ended are looked at, as long as there are some */
    RESET_BESIDE_MIB_MAX = 1024, /* a session with more in its buffers gets its next worker after the end of the last one: it may need the room */
    JANITOR_TICK_MS = 100, /* how often idle, aged and overrunning sessions are looked for */
    TRANSFER_SLICES_MAX = 4, /* of staging, in flight per transfer */
    TRANSFER_LONG_PIECE_BYTES = 4 * 1024 * 1024, /* of an upload go to the device in one call ... */
    TRANSFER_LONG_PIECES_MIN = 8, /* ... while so many are still to come, and where staging memory holds as many; else a slice */
    LAUNCHES_IN_RING_MAX = 128, /* the rest of the queue waits here, so that other calls find room */
    LAUNCH_OUTPUTS_KEPT_BYTES_MAX = 8 * 1024 * 1024, /* printf text of finished launches per session */
    MODULE_CODE_KEPT_BYTES_MAX = 256 * 1024 * 1024, /* logs, PTX and cubins per session */
    CRASH_BUDGET_DEFAULT = 60, /* faults of one caller's kernels on one device within the window */
    CRASH_BUDGET_MAX = 1000 * 1000, /* the setting's greatest value */
    CRASH_WINDOW_S_DEFAULT = 60,
    CRASH_WINDOW_S_MAX = 24 * 3600,
    RESULT_TTL_S_DEFAULT = 300, /* of asynchronous batches */
    RESULT_TTL_S_MAX = 24 * 3600,
    WAIT_S_DEFAULT = 10,
    WAIT_S_MAX = 300,
    EXECUTION_TIMEOUT_MS_DEFAULT = 60 * 1000,
    EXECUTION_TIMEOUT_MS_MAX = 3600 * 1000,

    /* events */
    EVENTS_KEPT_MAX = 1024,                /* per session, for those who come back with a Last-Event-ID */
    BATCH_EVENTS_MAX = 32,                 /* launch.finished of one batch; the last of them tells of all launches that are left */
    EVENT_TEXT_BYTES_MAX = 64 * 1024,      /* of a kernel's printf text in one event */
    EVENT_TEXTS_BYTES_MAX = 1024 * 1024,   /* of all that are kept; the oldest events make room */
    EVENT_STREAMS_PER_SESSION_MAX = 16,
    EVENT_STREAMS_PER_CALLER_MAX = 32,
    EVENT_STREAM_S_MAX = 3600,
    CHANGES_TICK_MS = 250,                 /* how often a follower of /v1/changes has things looked at */
    CHANGES_SESSIONS_AT_ONCE = 8,          /* ... and how many sessions are held for that */
    EVENT_HEARTBEAT_S = 15,                /* the setting's default */
    EVENT_PIECE_BYTES = 16 * 1024,         /* given to a connection at a time */
    EVENT_LINES_BYTES_MAX = 1024 * 1024,   /* one event as text: control bytes take six characters */

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
    COMPILE_TURN_WAIT_MS = 2 * COMPILE_DEADLINE_MS, /* for a turn to compile: longer than a compilation that is stopped at its deadline */
    COMPILE_WAITING_PER_CALLER_MAX = 32, /* compilations of a caller's own sources that wait for a turn */
    COMPILE_BUILTIN_TURNS = 1, /* beside the other turns, for built-in kernels alone */
    COMPILE_TREE_FILES_MAX = 65536, /* of the tree of CUDA headers that is looked at to tell it from others */
    COMPILE_ADDRESS_SPACE_MIB = 2048,
    COMPILE_STACK_MIB = 64, /* soft; deep nesting then ends as a crash instead of eating the machine */
    COMPILE_STACK_HARD_MIB = 256,
    COMPILE_FILES_MAX = 64, /* descriptors: nested headers */
    COMPILE_JOB_BYTES_MAX = 16 * 1024 * 1024, /* a job as bytes; source and headers together came in one body */
    COMPILE_LOWERED_BYTES_MAX = 1024 * 1024,
    COMPILE_OUTPUT_BYTES_MAX = 66 * 1024 * 1024, /* an answer as bytes */
    COMPILE_HEADER_NAME_BYTES_MAX = 255,
    COMPILE_OPTION_TEXT_BYTES_MAX = 256, /* an option's name with its dashes */
    COMPILE_DEFINES_MAX = 64,
    COMPILE_DEFINE_VALUE_BYTES_MAX = 4096,
    COMPILE_VERSION_BYTES = 32,
    COMPILE_IDENTITY_BYTES = 65, /* a SHA-256 in hex with its NUL */
    COMPILE_ARCH_BYTES = 32, /* "sm_90" and the like with the NUL */
    KERNEL_NAME_BYTES = 4096, /* mangled template names are long */
    KERNELS_PER_MODULE_MAX = 4096,
    GLOBALS_PER_MODULE_MAX = 4096,
    KERNEL_TABLE_BYTES_MAX = 8 * 1024 * 1024,
    KERNEL_PARAMS_MAX = 128,
    KERNEL_PARAM_BYTES_MAX = 32764, /* CUDA's own bound from sm_70 on */
    GRAPH_PARAM_BYTES_MAX = 4096,   /* a launch with more of them does not become a part of a program's graph */

    /* launches */
    LAUNCH_ARGS_MAX = KERNEL_PARAMS_MAX,
    LAUNCH_ARG_DEPTH_MAX = 8, /* structs within structs */
    KERNEL_OUTPUT_BYTES_MAX = 1024 * 1024, /* device printf kept per launch, as CUDA's FIFO */

    /* batches */
    BATCH_JSON_BYTES_MAX = 4 * 1024 * 1024,
    BATCH_JSON_VALUES_MAX = 128 * 1024, /* 4,096 launches of a few arguments each */
    BATCH_OPS_MAX = 4096,
    BATCH_SEGMENTS_MAX = 256,               /* in each direction */
    BATCH_INLINE_BYTES_MAX = 64 * 1024,     /* of segments within JSON, in each direction */
    BATCH_WHOLE_BYTES_MAX = 1024 * 1024,    /* a request up to this is collected before it is looked at */
    BATCH_ANSWER_BYTES_MAX = REPLY_BODY_BYTES_MAX, /* of what is read: it is held until the last kernel has finished */
    RUN_ITEMS_MAX = 256,                    /* operations of a batch that go to the worker in one message */
    RUN_EXACT_ITEMS_MAX = 16,               /* of so many each is watched by itself; of more, where watching is dear, a group */
    RUN_GROUP_ITEMS = 16,
    RUN_ISSUE_AT_ONCE = 64,                 /* given to the device before the worker looks around */
    STREAM_ITEMS_IN_FLIGHT_MAX = 512,       /* fewer than a driver queues before its calls block */
    EVENTS_PER_SESSION_MAX = BATCH_OPS_MAX, /* recorded by batches that run at the same time */
    PROGRAMS_PER_SESSION_MAX = 16,
    GRAPHS_PER_PROGRAM_MAX = BATCH_OPS_MAX / 2, /* a graph has at least two launches */
    GRAPHS_PER_WORKER_MAX = PROGRAMS_PER_SESSION_MAX * GRAPHS_PER_PROGRAM_MAX,
    RUNS_AT_ONCE_PER_CALLER = 4,            /* POST /v1/run: each has a worker of its own; more wait */
    RUN_TRIES_MAX = 3,                      /* so often is a run that had not begun when its hidden session was lost given another one */
    RUN_WAIT_MS = 30 * 1000,                /* ... so long at most */
    RUN_SPARE_IDLE_S = 30,                  /* the workers of the second and further ones stay so long without work */
    BATCH_WATCH_MS = 100,                   /* a batch that is under way is asked so often whether its client is still there */
    BATCHES_QUEUED_MAX = 64,                /* asynchronous ones that wait in a session */
    BATCHES_QUEUED_BYTES_MAX = 128 * 1024 * 1024, /* ... of host memory for what they are to do, a session */
    BATCHES_KEPT_MAX = 64,                  /* finished asynchronous ones that a session still tells of; the oldest are forgotten first */
    BATCH_RESULTS_KEPT_BYTES_MAX = 256 * 1024 * 1024, /* ... of host memory for their results */
    BATCH_CALLS_IN_FLIGHT_MAX = 64,         /* given to the worker and not yet done; as many outputs as it keeps */

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
    STAGING_SLICES_MAX = 4096, /* the setting's greatest value, in slices */
    DEVICE_MONITOR_STAGING_BYTES = STAGING_SLICE_BYTES, /* a device monitor moves no long bodies */
    BACKENDS_MAX = 8,
    COPIES_IN_FLIGHT_MAX = 64,  /* per stream: copies and fills given to the device and not yet done */
    DRAIN_TURN_MAX = 2 * RING_SLOTS, /* answers of a worker taken in one turn: each call under way has two at most */
    CALLS_RESERVED = 16,        /* calls that launches leave free, so that a cancel always gets through */
    OUTPUTS_KEPT_MAX = 64,      /* launches whose printf text waits for TAKE_OUTPUT; the oldest is forgotten */
    MODULES_PER_WORKER_MAX = 2048,
    SPIN_CPUS_FEW = 2,          /* with fewer processors nobody spins */
    SPIN_CPUS_MANY = 5,         /* from so many on spinning takes nothing away from others */
    SPIN_CPUS_MAX = 65536,      /* the setting's greatest value */
    WORKER_SPIN_US = 50,        /* a worker's looking for the next command before it sleeps */
    WORKER_SPIN_MANY_US = 500,  /* ... with many processors: longer than a client needs for its next request */
    WORKER_BUSY_SPIN_US = 200,  /* ... and for the end of device work before it naps */
    WORKER_NAP_US_MIN = 20,
    WORKER_NAP_US_MAX = 1000,
    WORKER_SLEEP_MS = 100,      /* longest sleep without looking around */
    CANARY_DEADLINE_MS = 10 * 1000,
    DEVICE_MONITOR_ANSWER_MS = 1000,    /* what a request may wait for a device monitor */
    QUARANTINE_RETRY_MS = 10 * 1000,
    HEALTH_PERIOD_MS = 2 * 1000, /* sensors and errors of devices that have them are read this often */
    TEMPERATURE_MAX_C = 150,     /* the setting's greatest value */
    TEMPERATURE_HYSTERESIS_C = 5,
    WORKER_UID_FIRST = 0x70000000, /* under root each worker is the user of this number and its process id: of numbers that nobody gives out */
    WORKER_TASKS_MAX = 64 * (1 + 16) + 16, /* CPU_POOL_THREADS_MAX that compute, for each CPU_RESIDENT_BLOCKS_PER_CORE of a cooperative launch, and the spare ones */
    WORKER_FILES_SPARE = 16,     /* that a worker must be able to open at its start */
    WORKER_FILES_OF_DRIVER_MIN = 256, /* with a lower limit a device that does not open is not to blame: a driver opens up to some dozens a device */
    WORKER_START_DEADLINE_MS = 30 * 1000,
    WORKER_SLOW_MS = 5 * 1000, /* a worker that takes longer to start or to end is told to the log as a warning */
    WORKER_CALL_DEADLINE_MS = 30 * 1000, /* for calls that do not wait for kernels */
    PING_AFTER_MS = 5000,                /* launches were given to a worker and none started or ended: it is asked whether it still answers */
    WORKER_GRACE_MS = 500,               /* past a kernel's own deadline before the worker is killed from outside */
    RESPAWN_BACKOFF_MIN_MS = 100,
    RESPAWN_BACKOFF_MAX_MS = 10 * 1000,
    SPIN_BUDGET_US = 30,        /* a caller's looking for its worker's answer */
    SPIN_BUDGET_MANY_US = 100,
    LOOP_SPIN_MANY_US = 100,    /* an event loop's looking for the next request; with few processors it sleeps at once */

    /* cuda device */
    DEVICE_ALLOCATIONS_MAX = 4 * BUFFERS_PER_SESSION_MAX, /* buffers and the temporary ones of batches */
    FREE_WAIT_MS = 20,       /* an allocation that found no memory waits that long for pending frees */
    JIT_LOG_BYTES = 8 * 1024,
    NVML_READ_MS_MAX = 250,  /* a slower management library is left alone for NVML_REST_MS */
    NVML_REST_MS = 5000, /* a device that is busy with faults makes it slow for a while */

    /* cpu device: interpreter */
    CPU_GUARDED_ALLOCATIONS_MAX = 16384, /* two mappings each; the kernel's usual bound is 65530 */
    CPU_POPULATE_BYTES_MIN = 1024 * 1024, /* writes of the host from here on have their pages made at once; a slice of staging memory */
    CPU_BLOCK_THREADS_MAX = 1024,
    CPU_CALL_DEPTH_MAX = 64,
    CPU_LOCAL_BYTES_MAX = 512 * 1024, /* per thread, CUDA's own bound */
    CPU_STACK_BYTES = 16 * 1024,      /* local memory per thread beyond the kernel's own frame, for calls */
    CPU_SHARED_BYTES_MAX = 64 * 1024, /* per block, dynamic included */
    CPU_REGISTER_FILE_BYTES_MAX = 512 * 1024 * 1024, /* per running block, frames of calls included */
    CPU_POOL_THREADS_MAX = 64,
    CPU_SPIN_ROUNDS = 32, /* rounds of a waiting loop before other lanes get a turn */
    CPU_KERNEL_HEAP_BYTES_MAX = 8 * 1024 * 1024, /* malloc in kernels, CUDA's default */
    CPU_KERNEL_HEAP_PIECES_MAX = 64 * 1024, /* pieces in use and between them */
    CPU_QUEUED_OPERATIONS_MAX = 65536,
    CPU_FREED_KEPT_MAX = 1024,        /* freed allocations that memcheck still names */
    CPU_VARIABLE_GAP_BYTES = 32,      /* between a module's variables under memcheck */
    CPU_RESIDENT_BLOCKS_PER_CORE = 16, /* of a cooperative launch: each block has a host thread of its own */

    /* cpu device: PTX */
    PTX_NAMES_MAX = 1024 * 1024,
    PTX_FUNCTIONS_MAX = 2 * KERNELS_PER_MODULE_MAX,
    PTX_SYMBOLS_MAX = 64 * 1024,
    PTX_FILES_MAX = 4096, /* source files that `.loc` names */
    PTX_INSNS_MAX = 1024 * 1024, /* per function */
    PTX_REGISTERS_MAX = 256 * 1024, /* per function */
    PTX_LABELS_MAX = 1024 * 1024, /* per function */
    PTX_SCOPES_MAX = 1024 * 1024, /* per function */
    PTX_SCOPE_DEPTH_MAX = 64,
    PTX_DIMENSIONS_MAX = 8,
    PTX_ALIGN_MAX = 1024 * 1024,
    PTX_CONST_BYTES_MAX = 64 * 1024, /* per module, CUDA's own bound */
    PTX_MODULE_BYTES_MAX = 1024 * 1024 * 1024, /* of host memory that a parsed module may take */
    PRINTF_ITEM_BYTES_MAX = 4096, /* one conversion's text: width and precision are cut there */
};

static const uint64_t HELD_BODIES_BYTES_MAX = 512ull * 1024 * 1024; /* of host memory for bodies that are held for their digests, all requests together */
static const uint64_t BATCH_JOBS_BYTES_MAX = 1024ull * 1024 * 1024; /* of host memory for asynchronous batches and their results, all sessions together */
static const uint64_t CONTEXT_BYTES_MAX = 1024ull * 1024 * 1024; /* of device memory that a worker has besides its buffers: an estimate, see session/memory/pending_free.c */
static const uint64_t GPU_TIME_US_MAX = 2ull * EXECUTION_TIMEOUT_MS_MAX * 1000; /* of a launch, or between two events, as a worker tells; beyond a deadline and its grace it is no time */
static const uint64_t MEMORY_LIMIT_NONE = UINT64_MAX; /* a session without memory_limit: the device is the limit */
static const uint64_t CPU_ARENA_BYTES_MAX = 1ull << 40; /* reserved addresses, not memory */
static const uint64_t CPU_ARENA_BYTES_MIN = 1ull << 28;
static const uint64_t WORKER_OWN_BYTES = 4ull << 30; /* of memory that a cpu worker may have besides its device's: modules, its heap, stacks of its threads */
static const uint64_t WORKER_OWN_BYTES_PER_CPU = 1ull << 30; /* ... and for each processor: registers of the blocks that run there, and stacks of a cooperative launch's threads */
static const uint64_t CPU_MEMORY_RESERVE_BYTES = 256ull * 1024 * 1024; /* left to the service and the host */
enum {
    CACHE_ENTRIES_MAX = 65536, /* files in the code cache */
    CACHE_UNUSED_S_MAX = 7 * 24 * 3600, /* what nobody used for so long makes room first, whosesoever it is */
};
static const uint64_t CACHE_BYTES_DEFAULT = 1024ull * 1024 * 1024;
#define MEMORY_BYTES_ASKED_MAX (1ull << 62) /* of a buffer or a session; a macro, for the tables of request fields */
static const uint64_t JSON_INTEGER_MAX = 1ull << 53; /* above it JSON numbers lose digits: decimal strings */

static_assert(WORKER_TASKS_MAX >= CPU_POOL_THREADS_MAX * (1 + CPU_RESIDENT_BLOCKS_PER_CORE) + 4, "every cooperative launch has its threads");
static_assert((RING_SLOTS & (RING_SLOTS - 1)) == 0, "ring indices wrap by mask");
static_assert(OFFLOAD_UPLOAD_BYTES_MIN > CONNECTION_MEMORY_BYTES, "when a body is offloaded some of it is still in the socket");
static_assert(REQUEST_HEADER_BYTES_MAX + REQUEST_HEADERS_MAX * 64 <= CONNECTION_MEMORY_BYTES, "the longest header and its table fit MHD's memory");
static_assert(URI_BYTES_MAX < REQUEST_HEADER_BYTES_MAX, "a target that is too long is told its limit");
static_assert(UPLOAD_WAKE_BYTES <= STAGING_SLICE_BYTES, "what is waited for has room in what a sink lends");
static_assert(TRANSFER_LONG_PIECE_BYTES % STAGING_SLICE_BYTES == 0, "a long piece is whole slices");
static_assert(LAUNCHES_IN_RING_MAX < RING_SLOTS, "transfers and syncs find room in the ring");
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

#endif
