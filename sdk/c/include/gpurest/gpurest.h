/* gpurest.h - C11 and C++17 client of a gpurest service: GPU buffers, kernels and launches.
 *
 * Rules for all functions:
 * - A function that can fail returns GPUREST_OK (0) or a negative gpurest_status; gpurest_last_error() then describes
 *   the error for this thread. On failure `out` parameters are unchanged unless stated otherwise; a destination of bytes may be partly written.
 * - Thread safety: any number of threads may use clients, sessions, modules, kernels and operations at once. A batch belongs to the
 *   thread that began it. When an object is closed or freed, no other thread may be in a call on it or make one later.
 * - Blocking: functions that take a client or a session wait for the service, except those marked "Local.", which send nothing.
 *   They wait as long as the service lives, for a kernel for instance. When no data came or went for idle_timeout_ms, the library asks it on
 *   another connection, within the same time-outs; without an answer the call fails with GPUREST_E_TIMEOUT. What must end soon is not asked
 *   about and fails at once: gpurest_open, the requests of heartbeats, cancelling, unloading and closing, and each DELETE of gpurest_request.
 * - Ownership: inputs may be reused when a call returns, except for asynchronous ones. A returned `const char *` belongs to its object
 *   and lives as long; an object returned through a `**out` is released by the function named there.
 * - Order: calls of one thread on one session, asynchronous ones included, take effect in call order.
 * - Sizes and offsets are in bytes. Structs that start with struct_size must be initialized with their _INIT macro.
 * - After fork() a child must not use its parent's objects: calls return GPUREST_E_FORK. */
#ifndef GPUREST_GPUREST_H
#define GPUREST_GPUREST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define GPUREST_VERSION_MAJOR 1
#define GPUREST_VERSION_MINOR 0
#define GPUREST_VERSION_PATCH 0

#if defined(__GNUC__)
#define GPUREST_API __attribute__((visibility("default")))
#else
#define GPUREST_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ==== errors: status codes and the last error ====
 * A failing call records an error for its thread; a successful call leaves the last error unchanged. */

typedef enum gpurest_status {
    GPUREST_OK = 0,
    GPUREST_E_INVAL = -1,         /* invalid argument: found here, or refused by the service with 400, 409 or 422 */
    GPUREST_E_NOMEM_HOST = -2,    /* this process is out of memory */
    GPUREST_E_CONNECT = -3,       /* the service is unreachable, or the connection broke */
    GPUREST_E_TIMEOUT = -4,       /* no sign of life for too long; or a kernel exceeded its deadline (then fatal_for_session) */
    GPUREST_E_PROTO = -5,         /* the peer does not support this protocol or version */
    GPUREST_E_AUTH = -6,          /* no token, an invalid one, or one without the required scope */
    GPUREST_E_NOTFOUND = -7,      /* no such kernel, buffer, device, path */
    GPUREST_E_BUSY = -8,          /* at capacity now; the same call may succeed later */
    GPUREST_E_OOM_DEVICE = -9,    /* device memory is exhausted */
    GPUREST_E_COMPILE = -10,      /* the source does not compile, or the image does not load: see log */
    GPUREST_E_CUDA = -11,         /* a kernel faulted, or the device failed: see cuda_result */
    GPUREST_E_SESSION_LOST = -12, /* the session faulted or ended and its contents are lost; gpurest_session_reset() may help */
    GPUREST_E_ABORTED = -13,      /* not executed, because an earlier operation of the batch failed */
    GPUREST_E_CANCELLED = -14,    /* cancelled, or the client was closed */
    GPUREST_E_UNSUPPORTED = -15,  /* not supported by the service or this library */
    GPUREST_E_FORK = -16,         /* opened by another process */
    GPUREST_E_LIMIT = -17,        /* a limit or quota of the service; GET /v1/limits lists them */
    GPUREST_E_SERVER = -18        /* internal error of the service (5xx) */
} gpurest_status;

/* Strings may be empty, but never NULL. */
typedef struct gpurest_error {
    gpurest_status status;
    int            http_status;       /* 0: no answer from the service */
    int            cuda_result;       /* CUresult, 0: none */
    int            retryable;         /* the same call may succeed later */
    int            fatal_for_session; /* the session's contents are lost */
    const char    *code;              /* the service's problem code, such as "argument_mismatch"; "" if local */
    const char    *message;           /* one or two sentences, without a final newline */
    const char    *hint;              /* what to do next */
    const char    *pointer;           /* JSON pointer into the request, such as "/args/2" */
    const char    *request_id;        /* for the service's log */
    const char    *log;               /* compiler output */
} gpurest_error;

/* Local. The error of the last failed call on this thread; never NULL. Valid until the next failed call on this thread. */
GPUREST_API const gpurest_error *gpurest_last_error(void);
/* Local. A static string such as "GPUREST_E_BUSY", for any value. */
GPUREST_API const char *gpurest_status_name(gpurest_status status);
/* Local. The version of the library at run time, "1.0.0"; never NULL. */
GPUREST_API const char *gpurest_version(void);
/* Local. Frees a string or bytes returned by this library. NULL is fine. */
GPUREST_API void gpurest_mem_free(void *memory);

/* ==== client: connections to one service ====
 * A client owns a pool of connections and the threads of its asynchronous operations. */

typedef struct gpurest_client  gpurest_client;
typedef struct gpurest_session gpurest_session; /* a worker process with its own GPU context */
typedef struct gpurest_module  gpurest_module;
typedef struct gpurest_kernel  gpurest_kernel; /* owned by its module */
typedef struct gpurest_batch   gpurest_batch;
typedef struct gpurest_op      gpurest_op; /* an asynchronous operation */

/* Handles by value: {0} is no buffer, the default stream, no event. Valid only in the session that created them. */
typedef struct {
    uint64_t id;
} gpurest_buffer;
typedef struct {
    uint64_t id;
} gpurest_stream;
typedef struct {
    uint64_t id;
} gpurest_event;

typedef enum gpurest_log_level { GPUREST_LOG_WARN = 1, GPUREST_LOG_INFO = 2, GPUREST_LOG_DEBUG = 3 } gpurest_log_level;

typedef struct gpurest_options {
    size_t      struct_size;
    const char *url;                /* http://host[:port], https://…, unix:///path; NULL: $GPUREST_URL, else http://127.0.0.1:8080 */
    const char *token;              /* NULL: token_file, else $GPUREST_TOKEN, else the file $GPUREST_TOKEN_FILE, else none */
    const char *token_file;         /* a file whose first line is the token */
    const char *ca_file;            /* PEM, for https; NULL: $GPUREST_CA_FILE, else the system's */
    int         connect_timeout_ms; /* per attempt */
    int         idle_timeout_ms;    /* without data in either direction, before the service is asked whether it lives */
    int         max_retries;        /* after the first try; see "retries" in README.md */
    int         max_connections;    /* 1 to 64; further calls wait */
    int         bulk_connections;   /* 1 to 16, per transfer of 64 MiB or more */
    int         use_libcurl;        /* non-zero: use libcurl also for http and unix */
    void (*log)(void *arg, int level, const char *message); /* called on any thread; NULL: none */
    void *log_arg;
    /* "off", "warn", "info" or "debug", for all categories or by category: "warn,transport=debug". The library's categories are transport
     * (requests and their retries) and session. Without `log`, lines go to standard error. NULL: $GPUREST_LOG, else "debug" with `log` and
     * "off" without. */
    const char *log_level;
    const char *address; /* what to connect to in place of the URL's host, whose name remains that of the service; NULL: the host */
} gpurest_options;
#define GPUREST_OPTIONS_INIT                                                                                                               \
    {                                                                                                                                      \
        sizeof(gpurest_options), 0, 0, 0, 0, 5000, 60000, 2, 8, 4, 0, 0, 0, 0, 0                                                             \
    }

/* Opens a client and checks address, token and API version with one request. `url` as in gpurest_options. GPUREST_E_UNSUPPORTED: https in a
 * library built without libcurl, a Unix socket on Windows. */
GPUREST_API gpurest_status gpurest_open(gpurest_client **out, const char *url);
GPUREST_API gpurest_status gpurest_open_with(gpurest_client **out, const gpurest_options *options);
/* NULL is fine. Pending operations end with GPUREST_E_CANCELLED. Later calls on its sessions return GPUREST_E_CANCELLED; sessions must still be
 * closed with gpurest_session_close. Not from a callback. */
GPUREST_API void gpurest_close(gpurest_client *client);
/* Local. Writes a line to the client's log, if it wants lines of that category and level. `category`: a short name of yours. Ignores NULL. */
GPUREST_API void gpurest_client_log(const gpurest_client *client, gpurest_log_level level, const char *category, const char *message);
/* Local. The answer to GET /version at opening, as JSON. */
GPUREST_API const char *gpurest_server_version(const gpurest_client *client);

/* Called during transfers of 1 MiB or more by gpurest_write, _read, _alloc_from, batches and their asynchronous forms: on the transferring
 * thread, one call at a time per transfer. Non-zero cancels the transfer with GPUREST_E_CANCELLED. Must not call this library. */
typedef int (*gpurest_progress_cb)(void *arg, uint64_t done_bytes, uint64_t total_bytes);
/* Local. Applies to transfers that begin later; NULL: none. */
GPUREST_API void gpurest_client_set_progress(gpurest_client *client, gpurest_progress_cb progress, void *arg);

/* What the kernel of a gpurest_run or gpurest_run_builtin has printed by printf, if anything, before that call returns, on its thread. `truncated`:
 * non-zero if the service dropped the rest. Must not call this library. Other launches have it in gpurest_launch_result. */
typedef void (*gpurest_output_cb)(void *arg, const char *text, int truncated);
/* Local. Applies to runs that end later; NULL: none, which is so at first. */
GPUREST_API void gpurest_client_set_output(gpurest_client *client, gpurest_output_cb output, void *arg);

/* ==== request: any request of the REST API ==== */

/* Sends `json` (may be NULL) and sets *out_json (may be NULL) to the answer's body, "" if empty, released by gpurest_mem_free. A status other
 * than 2xx is a failure. `path` begins with a slash; GET, PUT and DELETE are retried.
 */
GPUREST_API gpurest_status gpurest_request(gpurest_client *client, const char *method, const char *path, const char *json, char **out_json);

/* Receives a piece of an answer's body. Non-zero cancels with GPUREST_E_CANCELLED. */
typedef int (*gpurest_body_cb)(void *arg, const void *data, size_t bytes);
typedef struct gpurest_http_request {
    size_t             struct_size;
    const char        *method, *path;
    const char        *content_type; /* NULL: no body */
    const void        *body;
    size_t             body_bytes;
    const char *const *headers; /* "Name: value" each */
    size_t             headers_count;
    gpurest_body_cb    on_body;         /* NULL: collected into the response */
    void              *on_body_arg;     /* for long answers such as event streams */
    int                idle_timeout_ms; /* longest time without data, even if the service lives; 0: the client's, which asks */
    int                stays;           /* non-zero: 421 is the answer where a session has moved; it is not followed there */
} gpurest_http_request;
#define GPUREST_HTTP_REQUEST_INIT                                                                                                          \
    {                                                                                                                                      \
        sizeof(gpurest_http_request), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                                                      \
    }
typedef struct gpurest_http_response gpurest_http_response;

/* Sends one request without retries, to where its session is. Any status is a success of the call. Released by gpurest_http_response_free. */
GPUREST_API gpurest_status gpurest_http(gpurest_client *client, const gpurest_http_request *request, gpurest_http_response **out);
/* Sends `get` to one client's service and the body of its answer on to another one's, as that of `put`, while it comes: neither memory nor disk
 * holds it. *out is the answer to `put`, or that to `get` if it is a refusal. Whichever ends early, the other one is cut: what comes in part is
 * never taken for the whole. `get` has no on_body; `put` has a content_type, no body, is sent once, and not on to where a session has moved. */
GPUREST_API gpurest_status gpurest_http_pass(gpurest_client *from, const gpurest_http_request *get, gpurest_client *to,
                                             const gpurest_http_request *put, gpurest_http_response **out);
/* Local, all of these. */
GPUREST_API int         gpurest_http_status(const gpurest_http_response *response);
GPUREST_API const char *gpurest_http_header(const gpurest_http_response *response, const char *name); /* NULL: absent; any case */
GPUREST_API const void *gpurest_http_body(const gpurest_http_response *response, size_t *bytes);      /* NUL-terminated */
GPUREST_API void        gpurest_http_response_free(gpurest_http_response *response);

/* ==== device: list devices ==== */

typedef struct gpurest_device_info_t {
    size_t   struct_size;
    char     id[32]; /* "cuda:0", "cpu:0": for gpurest_session_options.device */
    char     backend[16], name[128], uuid[64], compute_capability[16], state[16];
    uint64_t memory_total_bytes, memory_free_bytes;
    int      multiprocessors, clock_khz, warp_size, max_threads_per_block;
    uint64_t max_shared_bytes_per_block;
} gpurest_device_info_t;
#define GPUREST_DEVICE_INFO_INIT                                                                                                           \
    {                                                                                                                                      \
        sizeof(gpurest_device_info_t), {0}, {0}, {0}, {0}, {0}, {0}, 0, 0, 0, 0, 0, 0, 0                                                   \
    }

/* The number of devices of the service. */
GPUREST_API gpurest_status gpurest_device_count(gpurest_client *client, int *out);
/* `device` counts from 0. out->struct_size must be set. */
GPUREST_API gpurest_status gpurest_device_info(gpurest_client *client, int device, gpurest_device_info_t *out);

/* ==== session: a worker process with its own GPU context ====
 * When a session moves to another node, its calls follow it, on all threads, with the client's token; from https only to https. They wait while it
 * stands still for that, unless max_retries is 0. */

typedef struct gpurest_session_options {
    size_t      struct_size;
    const char *device;         /* NULL: chosen by the service */
    const char *name;           /* [a-z0-9][a-z0-9_-]{0,62}, of a fleet also NODE.name; joins a session that has the same options. NULL: random */
    uint64_t    memory_limit;   /* bytes of device memory; 0: none */
    uint32_t    idle_timeout_s; /* the service ends it when nothing used it for so long, or less if its operator says so; 0: the default (600) */
    int         memcheck;       /* non-zero: detect out-of-bounds accesses, on devices that can */
    int         keep;           /* non-zero: gpurest_session_close leaves it running at the service */
    const char *memory_fraction; /* instead of memory_limit: a part of the device's memory, such as "80%"; NULL: none */
    uint64_t    pool_bytes_max; /* bytes of freed memory that its worker keeps for later allocations, at most; 0: all of it */
    uint32_t    lease_s; /* the service ends it after so long without a request; a thread of the client sends some while this process lives; 0: no lease */
    const char *fault_domain;   /* sessions of one domain run side by side on a GPU, and a fault of one is a fault of all; NULL: it falls alone */
    int         fault_domain_optional; /* non-zero: where the service has no server for the domain, its sessions take turns instead */
} gpurest_session_options;
#define GPUREST_SESSION_OPTIONS_INIT                                                                                                       \
    {                                                                                                                                      \
        sizeof(gpurest_session_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                                                   \
    }

/* `options` may be NULL. Released by gpurest_session_close. */
GPUREST_API gpurest_status gpurest_session_open(gpurest_session **out, gpurest_client *client, const gpurest_session_options *options);
/* NULL is fine. Completes queued asynchronous operations, then ends the session at the service (unless `keep`) with its running kernels and all
 * its contents. Operations must still be freed. */
GPUREST_API void gpurest_session_close(gpurest_session *session);
/* Local. Its id at the service; where it was opened, if it has moved: that names it in paths of gpurest_request, which follow it, too. */
GPUREST_API const char *gpurest_session_id(const gpurest_session *session);
/* Starts a new worker, for example after a fault, or a new session of the same name if this one has ended. Buffers and modules become void; modules
 * must still be unloaded. */
GPUREST_API gpurest_status gpurest_session_reset(gpurest_session *session);
/* Writes a snapshot of the session to a file: buffers, modules as source, their variables, programs, labels and limits. Queued asynchronous
 * operations go first, and the service waits for work under way, or the call fails with GPUREST_E_BUSY. A file of that name is replaced only by a
 * whole one. Whoever can read the file can read the session's memory. */
GPUREST_API gpurest_status gpurest_session_save(gpurest_session *session, const char *path);
/* A session from such a file, all of it or none: named options->name, on options->device, left at the service with options->keep. Its other options
 * are the file's; `options` may be NULL. GPUREST_E_INVAL when the name exists, or the file is not whole. Pointers in buffers are not translated. Released by
 * gpurest_session_close. */
GPUREST_API gpurest_status gpurest_session_load(gpurest_session **out, gpurest_client *client, const char *path,
                                                const gpurest_session_options *options);

typedef struct gpurest_session_info_t {
    size_t struct_size;
    char   id[128], device[32];
    char   state[16]; /* "starting", "ready", "faulted", "closing", "hibernated" */
} gpurest_session_info_t;
#define GPUREST_SESSION_INFO_INIT                                                                                                          \
    {                                                                                                                                      \
        sizeof(gpurest_session_info_t), {0}, {0}, {0}                                                                                      \
    }

/* What the service says of the session, which wakes nothing. out->struct_size must be set. */
GPUREST_API gpurest_status gpurest_session_info(gpurest_session *session, gpurest_session_info_t *out);
/* Takes the session's large buffers off the device, until it is used again, which wakes it; addresses, modules and streams stay. Queued asynchronous
 * operations go first. GPUREST_E_BUSY: work is under way after 10 s; GPUREST_E_UNSUPPORTED: the service keeps no buffers elsewhere. *out_or_null: its
 * state after that. Not queued in a batch. */
GPUREST_API gpurest_status gpurest_session_hibernate(gpurest_session *session, gpurest_session_info_t *out_or_null);
/* Has a hibernated session's buffers on the device again, as its next use would. GPUREST_E_OOM_DEVICE: there is no room, and it stays as it is. */
GPUREST_API gpurest_status gpurest_session_wake(gpurest_session *session, gpurest_session_info_t *out_or_null);
/* Waits for all work of the session; kernels are bounded by their deadlines. In a batch: queued. */
GPUREST_API gpurest_status gpurest_sync(gpurest_session *session);
/* Waits until every asynchronous operation begun so far has its place in the order of the session, but not for kernels. */
GPUREST_API gpurest_status gpurest_flush(gpurest_session *session);

typedef struct gpurest_memory_info_t {
    size_t   struct_size;
    uint64_t allocated_bytes, cached_bytes, reserved_bytes, free_bytes, peak_bytes;
    uint64_t limit_bytes;   /* UINT64_MAX: none */
    double   fragmentation; /* 0 to 1; NaN: the device cannot tell */
} gpurest_memory_info_t;
#define GPUREST_MEMORY_INFO_INIT                                                                                                           \
    {                                                                                                                                      \
        sizeof(gpurest_memory_info_t), 0, 0, 0, 0, 0, 0, 0                                                                                 \
    }

/* out->struct_size must be set. */
GPUREST_API gpurest_status gpurest_memory_info(gpurest_session *session, gpurest_memory_info_t *out);
/* Returns memory cached for later allocations to the device; *out_or_null: the usage after that. */
GPUREST_API gpurest_status gpurest_memory_trim(gpurest_session *session, gpurest_memory_info_t *out_or_null);
/* peak_bytes counts from what is allocated now; *out_or_null: the usage after that. */
GPUREST_API gpurest_status gpurest_memory_reset_peak(gpurest_session *session, gpurest_memory_info_t *out_or_null);

/* ==== memory: buffers and their contents ====
 * In a batch, all are queued except gpurest_buffer_open and gpurest_buffer_bytes. */

/* Allocates a buffer with undefined contents. bytes > 0. */
GPUREST_API gpurest_status gpurest_alloc(gpurest_session *session, gpurest_buffer *out, size_t bytes);
/* Allocates a buffer with the contents of src, below 64 MiB in one request. */
GPUREST_API gpurest_status gpurest_alloc_from(gpurest_session *session, gpurest_buffer *out, const void *src, size_t bytes);
/* The handle becomes stale; the memory is freed after kernels that use it end. */
GPUREST_API gpurest_status gpurest_free(gpurest_session *session, gpurest_buffer buffer);
/* A handle to an existing buffer of the session, by its name at the service. */
GPUREST_API gpurest_status gpurest_buffer_open(gpurest_session *session, gpurest_buffer *out, const char *name);
/* Local. Its size; 0 for an invalid handle. */
GPUREST_API size_t gpurest_buffer_bytes(gpurest_session *session, gpurest_buffer buffer);
/* Copies host memory to the buffer, over several connections from 64 MiB on. 0 bytes are fine. */
GPUREST_API gpurest_status gpurest_write(gpurest_session *session, gpurest_buffer buffer, size_t offset, const void *src, size_t bytes);
/* Copies the buffer to host memory, after earlier operations. In a batch `dst` is filled by gpurest_batch_submit, or when its operation is done. */
GPUREST_API gpurest_status gpurest_read(gpurest_session *session, gpurest_buffer buffer, size_t offset, void *dst, size_t bytes);
/* Copies on the device. Ranges in one buffer must not overlap. In a batch: default stream only. */
GPUREST_API gpurest_status gpurest_copy(gpurest_session *session, gpurest_buffer to, size_t to_offset, gpurest_buffer from,
                                        size_t from_offset, size_t bytes, gpurest_stream stream);
/* Writes the low `width_bytes` (1, 2 or 4) of value `count` times. In a batch: default stream only. */
GPUREST_API gpurest_status gpurest_fill(gpurest_session *session, gpurest_buffer buffer, size_t offset, uint32_t value,
                                        unsigned width_bytes, size_t count, gpurest_stream stream);

/* ==== module: kernels from source, PTX or shaders ==== */

typedef struct gpurest_header {
    const char *name, *text; /* for #include "name" */
} gpurest_header;
typedef struct gpurest_compile_options {
    size_t                struct_size;
    const char *const    *options; /* "--std=c++17", "-DN=4", …, if the service allows them */
    size_t                options_count;
    const gpurest_header *headers;
    size_t                headers_count;
    const char *const    *name_expressions; /* template instantiations such as "scale<float>", usable as kernel names */
    size_t                name_expressions_count;
    const char           *language; /* of a source: NULL, CUDA C++; "glsl", a compute shader in GLSL, for vulkan devices */
} gpurest_compile_options;
#define GPUREST_COMPILE_OPTIONS_INIT                                                                                                       \
    {                                                                                                                                      \
        sizeof(gpurest_compile_options), 0, 0, 0, 0, 0, 0, 0                                                                               \
    }

/* Compiles CUDA C++, or GLSL (options->language). GPUREST_E_COMPILE: the error's log is the compiler's output. Released by gpurest_module_unload before its session is
 * closed. Not in a batch: compile before it. */
GPUREST_API gpurest_status gpurest_compile(gpurest_session *session, gpurest_module **out, const char *source, const char *const *options,
                                           size_t options_count);
GPUREST_API gpurest_status gpurest_compile_with(gpurest_session *session, gpurest_module **out, const char *source,
                                                const gpurest_compile_options *options);
/* Loads PTX (recognized by .version), SPIR-V for vulkan devices, a cubin or a fatbin; the service may refuse the latter two. */
GPUREST_API gpurest_status gpurest_module_load(gpurest_session *session, gpurest_module **out, const void *image, size_t bytes);
/* SPIR-V with options: "--specialize=NUMBER=VALUE" sets a specialisation constant. Other images take none. */
GPUREST_API gpurest_status gpurest_module_load_with(gpurest_session *session, gpurest_module **out, const void *image, size_t bytes,
                                                    const char *const *options, size_t options_count);
/* NULL is fine. Its kernel pointers become invalid. */
GPUREST_API void gpurest_module_unload(gpurest_module *module);
/* These five are local. The log may be "". */
GPUREST_API const char *gpurest_module_id(const gpurest_module *module);
GPUREST_API const char *gpurest_module_log(const gpurest_module *module);
GPUREST_API const char *gpurest_module_arch(const gpurest_module *module);
GPUREST_API double      gpurest_module_compile_ms(const gpurest_module *module, int *cached_or_null);
GPUREST_API size_t      gpurest_module_kernel_count(const gpurest_module *module);
/* Downloads the code; format "ptx", "cubin" or "spirv". *out is released by gpurest_mem_free. */
GPUREST_API gpurest_status gpurest_module_code(gpurest_module *module, const char *format, void **out, size_t *out_bytes);

/* A handle to a __device__ or __constant__ variable of the module: as in the source, mangled, or a name expression. It is a buffer for all
 * functions but gpurest_free and those that share, and valid until the module is unloaded. Not in a batch, which takes such handles. */
GPUREST_API gpurest_status gpurest_module_global(gpurest_module *module, const char *name, gpurest_buffer *out);

typedef struct gpurest_kernel_info_t {
    size_t   struct_size;
    uint32_t registers, max_threads;
    uint64_t shared_bytes, local_bytes, const_bytes;
} gpurest_kernel_info_t;
#define GPUREST_KERNEL_INFO_INIT                                                                                                           \
    {                                                                                                                                      \
        sizeof(gpurest_kernel_info_t), 0, 0, 0, 0, 0                                                                                       \
    }

/* All of these are local. `name` is a plain or mangled name, or a name expression. */
GPUREST_API gpurest_status gpurest_kernel_get(gpurest_module *module, const char *name, const gpurest_kernel **out);
GPUREST_API gpurest_status gpurest_kernel_at(gpurest_module *module, size_t index, const gpurest_kernel **out);
GPUREST_API const char    *gpurest_kernel_name(const gpurest_kernel *kernel);
GPUREST_API size_t         gpurest_kernel_param_count(const gpurest_kernel *kernel);
GPUREST_API gpurest_status gpurest_kernel_param(const gpurest_kernel *kernel, size_t index, size_t *offset, size_t *bytes);
/* The parameter's PTX type, such as "f32"; "" if unknown. */
GPUREST_API const char    *gpurest_kernel_param_type(const gpurest_kernel *kernel, size_t index);
GPUREST_API gpurest_status gpurest_kernel_info(const gpurest_kernel *kernel, gpurest_kernel_info_t *out);

/* ==== launch: run kernels ====
 * Arguments are checked against the kernel's parameters before anything is sent: number, sizes and, where the types are known, integer
 * against float. */

typedef struct gpurest_dim3 {
    uint32_t x, y, z; /* 0 counts as 1 */
} gpurest_dim3;

typedef enum gpurest_arg_kind {
    GPUREST_ARG_NONE = 0,
    GPUREST_ARG_I8,
    GPUREST_ARG_I16,
    GPUREST_ARG_I32,
    GPUREST_ARG_I64,
    GPUREST_ARG_U8,
    GPUREST_ARG_U16,
    GPUREST_ARG_U32,
    GPUREST_ARG_U64,
    GPUREST_ARG_F32,
    GPUREST_ARG_F64,
    GPUREST_ARG_BYTES,  /* in, bytes: the bytes of any type, such as a struct */
    GPUREST_ARG_BUFFER, /* buffer, offset: an address in it */
    GPUREST_ARG_IN,     /* gpurest_run only: host memory that is uploaded, */
    GPUREST_ARG_OUT,    /* ... downloaded, */
    GPUREST_ARG_INOUT,  /* ... or both */
    GPUREST_ARG_TEXTURE, /* buffer: a texture's handle (texture.h) */
    GPUREST_ARG_SURFACE
} gpurest_arg_kind;

typedef struct gpurest_arg {
    gpurest_arg_kind kind;
    size_t           bytes;  /* of in and out */
    size_t           offset; /* into buffer */
    const void      *in;
    void            *out;
    union {
        int64_t        i;
        uint64_t       u;
        float          f32;
        double         f64;
        gpurest_buffer buffer;
    } value;
} gpurest_arg;

static inline gpurest_arg gpurest_arg_make(gpurest_arg_kind kind)
{
    gpurest_arg a;

    memset(&a, 0, sizeof a);
    a.kind = kind;
    return a;
}
static inline gpurest_arg gpurest_arg_signed(gpurest_arg_kind kind, int64_t value)
{
    gpurest_arg a = gpurest_arg_make(kind);

    a.value.i = value;
    return a;
}
static inline gpurest_arg gpurest_arg_unsigned(gpurest_arg_kind kind, uint64_t value)
{
    gpurest_arg a = gpurest_arg_make(kind);

    a.value.u = value;
    return a;
}
static inline gpurest_arg gpurest_arg_f32(float value)
{
    gpurest_arg a = gpurest_arg_make(GPUREST_ARG_F32);

    a.value.f32 = value;
    return a;
}
static inline gpurest_arg gpurest_arg_f64(double value)
{
    gpurest_arg a = gpurest_arg_make(GPUREST_ARG_F64);

    a.value.f64 = value;
    return a;
}
static inline gpurest_arg gpurest_arg_buffer(gpurest_buffer buffer, size_t offset)
{
    gpurest_arg a = gpurest_arg_make(GPUREST_ARG_BUFFER);

    a.value.buffer = buffer;
    a.offset = offset;
    return a;
}
static inline gpurest_arg gpurest_arg_host(gpurest_arg_kind kind, const void *in, void *out, size_t bytes)
{
    gpurest_arg a = gpurest_arg_make(kind);

    a.in = in;
    a.out = out;
    a.bytes = bytes;
    return a;
}
#ifdef __cplusplus
#define GPUREST_CAST(type, v) static_cast<type>(v)
#else
#define GPUREST_CAST(type, v) ((type)(v))
#endif
#define GPUREST_I8(v) gpurest_arg_signed(GPUREST_ARG_I8, GPUREST_CAST(int8_t, v))
#define GPUREST_I16(v) gpurest_arg_signed(GPUREST_ARG_I16, GPUREST_CAST(int16_t, v))
#define GPUREST_I32(v) gpurest_arg_signed(GPUREST_ARG_I32, GPUREST_CAST(int32_t, v))
#define GPUREST_I64(v) gpurest_arg_signed(GPUREST_ARG_I64, GPUREST_CAST(int64_t, v))
#define GPUREST_U8(v) gpurest_arg_unsigned(GPUREST_ARG_U8, GPUREST_CAST(uint8_t, v))
#define GPUREST_U16(v) gpurest_arg_unsigned(GPUREST_ARG_U16, GPUREST_CAST(uint16_t, v))
#define GPUREST_U32(v) gpurest_arg_unsigned(GPUREST_ARG_U32, GPUREST_CAST(uint32_t, v))
#define GPUREST_U64(v) gpurest_arg_unsigned(GPUREST_ARG_U64, GPUREST_CAST(uint64_t, v))
#define GPUREST_F32(v) gpurest_arg_f32(GPUREST_CAST(float, v))
#define GPUREST_F64(v) gpurest_arg_f64(GPUREST_CAST(double, v))
#define GPUREST_BYTES(p, n) gpurest_arg_host(GPUREST_ARG_BYTES, (p), NULL, (n))
#define GPUREST_BUF(b) gpurest_arg_buffer((b), 0)
#define GPUREST_BUF_AT(b, offset) gpurest_arg_buffer((b), (offset))
#define GPUREST_IN(p, n) gpurest_arg_host(GPUREST_ARG_IN, (p), NULL, (n))
#define GPUREST_OUT(p, n) gpurest_arg_host(GPUREST_ARG_OUT, NULL, (p), (n))
#define GPUREST_INOUT(p, n) gpurest_arg_host(GPUREST_ARG_INOUT, (p), (p), (n))

static inline gpurest_dim3 gpurest_dim3_make(uint32_t x, uint32_t y, uint32_t z)
{
    gpurest_dim3 d;

    d.x = x;
    d.y = y;
    d.z = z;
    return d;
}
#define GPUREST_1D(x) gpurest_dim3_make((x), 1, 1)
#define GPUREST_2D(x, y) gpurest_dim3_make((x), (y), 1)
#define GPUREST_3D(x, y, z) gpurest_dim3_make((x), (y), (z))

typedef struct gpurest_launch_config {
    size_t         struct_size;
    gpurest_dim3   grid;
    gpurest_dim3   block;        /* x = 0: chosen by the service */
    uint64_t       threads;      /* instead of grid and block: at least so many threads; 0: not used */
    uint32_t       shared_bytes; /* dynamic shared memory */
    gpurest_stream stream;
    uint64_t       timeout_ms; /* of execution: a kernel that exceeds it is stopped and the session lost; 0: the service's default (60 s) */
    int            cooperative; /* 1: all blocks run at once and may wait for each other (grid.sync()); refused if the device has no room */
} gpurest_launch_config;
#define GPUREST_LAUNCH_CONFIG_INIT                                                                                                         \
    {                                                                                                                                      \
        sizeof(gpurest_launch_config), {1, 1, 1}, {0, 0, 0}, 0, 0, {0}, 0, 0                                                               \
    }

typedef struct gpurest_launch_result {
    size_t struct_size;
    double gpu_us; /* on the device; 0: timed together with others of its batch */
    char  *output; /* of the kernel's printf, may be ""; released by gpurest_mem_free; NULL on failure */
    int    output_truncated;
} gpurest_launch_result;
#define GPUREST_LAUNCH_RESULT_INIT                                                                                                         \
    {                                                                                                                                      \
        sizeof(gpurest_launch_result), 0, 0, 0                                                                                             \
    }

/* Launches a kernel and waits until it ends. In a batch: queued. */
GPUREST_API gpurest_status gpurest_launch(gpurest_session *session, const gpurest_kernel *kernel, gpurest_dim3 grid, gpurest_dim3 block,
                                          size_t shared_bytes, gpurest_stream stream, const gpurest_arg *args, size_t args_count);
/* As gpurest_launch, with a result; in a batch it is set when the batch is done. Launches without a result are not timed. */
GPUREST_API gpurest_status gpurest_launch_with(gpurest_session *session, const gpurest_kernel *kernel, const gpurest_launch_config *config,
                                               const gpurest_arg *args, size_t args_count, gpurest_launch_result *result_or_null);
/* As gpurest_launch_with, with the arguments in one block laid out as the kernel's parameters: scalars only, because pointers are invalid there. */
GPUREST_API gpurest_status gpurest_launch_raw(gpurest_session *session, const gpurest_kernel *kernel, const gpurest_launch_config *config,
                                              const void *params, size_t bytes);
/* Local: copies the arguments; a thread of the client launches. Not in a batch. *result_or_null must live until the operation is done, which
 * sets it. */
GPUREST_API gpurest_status gpurest_launch_async(gpurest_session *session, const gpurest_kernel *kernel, const gpurest_launch_config *config,
                                                const gpurest_arg *args, size_t args_count, gpurest_launch_result *result_or_null,
                                                gpurest_op **out);

/* ==== stream: order of work in a session, and events ====
 * The default stream is {0}. Work of other streams may run in parallel. */

/* Local: the service creates it at its first use. At most 64 per session. */
GPUREST_API gpurest_status gpurest_stream_create(gpurest_session *session, gpurest_stream *out);
/* Waits for the work of one stream. In a batch: queued. */
GPUREST_API gpurest_status gpurest_stream_sync(gpurest_session *session, gpurest_stream stream);
/* Events exist only in a batch; elsewhere these three return GPUREST_E_UNSUPPORTED. *out_ms is set when the batch is done. */
GPUREST_API gpurest_status gpurest_event_record(gpurest_session *session, gpurest_event *out, gpurest_stream stream);
GPUREST_API gpurest_status gpurest_stream_wait(gpurest_session *session, gpurest_stream stream, gpurest_event event);
GPUREST_API gpurest_status gpurest_event_elapsed_ms(gpurest_session *session, gpurest_event from, gpurest_event to, float *out_ms);

/* ==== batch: many operations in one request ====
 * Between gpurest_batch_begin and gpurest_batch_submit this thread's calls on the session are checked, copied and queued, then sent in one
 * request. A failing operation ends the batch: operations before it took effect, those after it may or may not have. Buffers allocated in a
 * failed batch are void. */

/* Local. One batch per session and thread at a time. */
GPUREST_API gpurest_status gpurest_batch_begin(gpurest_session *session, gpurest_batch **out);
/* Local. Of the whole batch at the service; 0: the service's default (60 s). */
GPUREST_API gpurest_status gpurest_batch_timeout_ms(gpurest_batch *batch, uint64_t timeout_ms);
GPUREST_API size_t         gpurest_batch_count(const gpurest_batch *batch); /* Local. Operations queued so far. */
/* Consumes the batch, on failure too. out_or_null NULL: waits; else released by gpurest_op_free. Destinations of reads, results and *out_ms
 * must live until it is done. */
GPUREST_API gpurest_status gpurest_batch_submit(gpurest_batch *batch, gpurest_op **out_or_null);
/* The same in the background: the service stores the batch, so no connection is held while it runs and a broken one loses nothing. Such batches
 * of a session run in order; other calls do not wait for them. Cancelling ends a queued batch, not a running one. */
GPUREST_API gpurest_status gpurest_batch_submit_background(gpurest_batch *batch, gpurest_op **out);
/* Local. Discards the queued operations. NULL is fine. */
GPUREST_API void gpurest_batch_discard(gpurest_batch *batch);

/* ==== program: a batch prepared once and run many times ==== */

typedef struct gpurest_program gpurest_program;

/* Stores the batch at the service without running it. Consumes it, on failure too. It must not free buffers that it did not allocate, and has
 * no launch results or elapsed times. Buffers that it allocates belong to the program; their handles become void. Released by
 * gpurest_program_destroy before its session is closed. */
GPUREST_API gpurest_status gpurest_batch_prepare(gpurest_batch *batch, gpurest_program **out);
/* Runs it in one request and waits. inputs[i] replaces the bytes of the i-th gpurest_write or gpurest_alloc_from, of the same size; outputs[i]
 * replaces the destination of the i-th gpurest_read. NULL or missing: as queued. Several threads may run it at once, with separate outputs.
 * Never sent twice. */
GPUREST_API gpurest_status gpurest_program_run(gpurest_program *program, const void *const *inputs, size_t inputs_count,
                                               void *const *outputs, size_t outputs_count);
/* Replaces a scalar argument, such as GPUREST_F32(…), of one of the batch's launches. launch and argument count from 0. */
typedef struct gpurest_program_scalar {
    size_t      launch, argument;
    gpurest_arg value;
} gpurest_program_scalar;
typedef struct gpurest_program_run_options {
    size_t                        struct_size;
    const void *const            *inputs; /* as in gpurest_program_run */
    void *const                  *outputs;
    const gpurest_program_scalar *scalars; /* for this run only; each argument once, in any order, at most 1,024 */
    size_t                        inputs_count, outputs_count, scalars_count;
} gpurest_program_run_options;
#define GPUREST_PROGRAM_RUN_OPTIONS_INIT \
    {sizeof(gpurest_program_run_options), 0, 0, 0, 0, 0, 0}

/* As gpurest_program_run. options NULL: as queued. out_or_null NULL: waits; else released by gpurest_op_free: inputs, outputs and the program
 * must live until it is done; scalars are copied. */
GPUREST_API gpurest_status gpurest_program_run_with(gpurest_program *program, const gpurest_program_run_options *options,
                                                    gpurest_op **out_or_null);
/* NULL is fine. */
GPUREST_API void gpurest_program_destroy(gpurest_program *program);

/* ==== op: asynchronous operations ==== */

/* Local: a thread of the client transfers. `src` and `dst` must live until it is done. Never queued in a batch. */
GPUREST_API gpurest_status gpurest_write_async(gpurest_session *session, gpurest_buffer buffer, size_t offset, const void *src,
                                               size_t bytes, gpurest_op **out);
GPUREST_API gpurest_status gpurest_read_async(gpurest_session *session, gpurest_buffer buffer, size_t offset, void *dst, size_t bytes,
                                              gpurest_op **out);
/* Called exactly once, on a thread of the client, never inside the call that sets it. May begin asynchronous operations and make local calls;
 * other calls could deadlock. */
typedef void (*gpurest_op_cb)(void *arg, gpurest_op *op);
/* Local. At most one per operation; also called if the operation is already done. */
GPUREST_API gpurest_status gpurest_op_on_done(gpurest_op *op, gpurest_op_cb callback, void *arg);
/* Waits, returns the operation's status and sets this thread's last error. GPUREST_E_TIMEOUT: not done in time; it continues. timeout_ms < 0: no
 * limit. Any number of threads may wait, any number of times. */
GPUREST_API gpurest_status gpurest_op_wait(gpurest_op *op, int timeout_ms);
/* Local. Non-zero if it is done. */
GPUREST_API int gpurest_op_done(const gpurest_op *op);
/* Local. Requests its end with GPUREST_E_CANCELLED. A running kernel is not stopped: its operation ends with the kernel. */
GPUREST_API void gpurest_op_cancel(gpurest_op *op);
/* The number of operations of a batch, and the status of each; valid once it is done. */
GPUREST_API size_t         gpurest_op_result_count(const gpurest_op *op);
GPUREST_API gpurest_status gpurest_op_result(const gpurest_op *op, size_t index);
/* NULL is fine. Waits until it and its callback are done: cancel it first to be quick. Not from a callback. */
GPUREST_API void gpurest_op_free(gpurest_op *op);

/* ==== run: compile, upload, launch and download in one request ==== */

typedef struct gpurest_times {
    double compile_ms; /* of the source, or of built-in kernels at their first use; 0 or little if cached */
    double upload_ms;  /* until the service received everything */
    double run_ms;     /* all operations, copies included */
    double gpu_us;     /* the kernel alone */
} gpurest_times;

/* Compiles the source, uploads GPUREST_IN and _INOUT arguments, launches, downloads _OUT and _INOUT arguments and frees, in one request on a
 * session that the service keeps for the caller. `times_or_null` is set on success. Never retried once sent. */
GPUREST_API gpurest_status gpurest_run(gpurest_client *client, const char *source, const char *kernel, gpurest_dim3 grid,
                                       gpurest_dim3 block, const gpurest_arg *args, size_t args_count, gpurest_times *times_or_null);
/* As gpurest_run, with all of a launch's configuration but the stream. */
GPUREST_API gpurest_status gpurest_run_with(gpurest_client *client, const char *source, const char *kernel,
                                            const gpurest_launch_config *config, const gpurest_arg *args, size_t args_count,
                                            gpurest_times *times_or_null);

#ifdef __cplusplus
}
#endif
#endif
