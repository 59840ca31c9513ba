/* gpurest.h - GPU buffers, kernels and launches of a gpurest service, from C11 and C++17.
 *
 * Rules that hold everywhere:
 * - A function that can fail returns GPUREST_OK (0) or a negative gpurest_status; gpurest_last_error() then tells this thread why.
 *   On failure an `out` parameter is untouched, unless stated otherwise. Memory given for received bytes may be partly written.
 * - Thread safety: clients, sessions, modules, kernels and operations may be used by any number of threads at once. A batch belongs to
 *   the thread that began it. Closing or freeing an object ends its use: no other thread may be inside a call on it, or call it later.
 * - Blocking: whatever takes a client or a session waits for the service's answer, except where "Local." says that nothing is sent.
 *   No call waits for ever: see connect_timeout_ms and idle_timeout_ms.
 * - Ownership: inputs are copied or used up before a call returns, so they may be reused at once. A returned `const char *` belongs
 *   to the object it was asked from and lives as long as that; what came out through a `**out` is released by the function named there.
 * - Order: the calls of one thread on one session take effect in the order in which they are made, asynchronous ones included.
 * - Sizes and offsets are in bytes. Options structs begin with their own size; start from their _INIT macro.
 * - After fork() a child must not use what its parent opened: calls then give GPUREST_E_FORK and do nothing. */
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

/* ==== errors: what went wrong, and what to do about it ====
 * Every failing call records an error for its thread; calls that succeed leave it alone. */

typedef enum gpurest_status {
    GPUREST_OK = 0,
    GPUREST_E_INVAL = -1,         /* a wrong argument: found here, or refused by the service with 400, 409 or 422 */
    GPUREST_E_NOMEM_HOST = -2,    /* this process is out of memory */
    GPUREST_E_CONNECT = -3,       /* the service cannot be reached, or the connection broke */
    GPUREST_E_TIMEOUT = -4,       /* no progress for too long; or a kernel passed its deadline (then fatal_for_session) */
    GPUREST_E_PROTO = -5,         /* the peer does not speak this protocol, or not this version of it */
    GPUREST_E_AUTH = -6,          /* no token, a wrong one, or one without the needed scope */
    GPUREST_E_NOTFOUND = -7,      /* no such kernel, buffer, device, path */
    GPUREST_E_BUSY = -8,          /* at capacity now; the same call may succeed later */
    GPUREST_E_OOM_DEVICE = -9,    /* device memory is exhausted */
    GPUREST_E_COMPILE = -10,      /* the source does not compile, or the image does not load: see log */
    GPUREST_E_CUDA = -11,         /* a kernel faulted, or the device failed: see cuda_result */
    GPUREST_E_SESSION_LOST = -12, /* the session has faulted or is gone, its contents with it; gpurest_session_reset() may help */
    GPUREST_E_ABORTED = -13,      /* not done, because something before it in the same batch failed */
    GPUREST_E_CANCELLED = -14,    /* cancelled, or the client was closed */
    GPUREST_E_UNSUPPORTED = -15,  /* the service or this library cannot do it */
    GPUREST_E_FORK = -16,         /* opened by another process, see above */
    GPUREST_E_LIMIT = -17,        /* a limit or quota of the service: gpurest_request() on /v1/limits lists them */
    GPUREST_E_SERVER = -18        /* the service failed in itself (5xx) */
} gpurest_status;

/* Strings are never NULL, but may be empty. */
typedef struct gpurest_error {
    gpurest_status status;
    int            http_status;       /* 0: no answer of the service was involved */
    int            cuda_result;       /* CUresult, 0: none */
    int            retryable;         /* the identical call may succeed later */
    int            fatal_for_session; /* the session's contents are lost */
    const char    *code;              /* the service's stable word, such as "argument_mismatch"; "" when it was not the service */
    const char    *message;           /* one sentence or two, without a newline at the end */
    const char    *hint;              /* what to do next */
    const char    *pointer;           /* which part of the request, as a JSON pointer such as "/args/2" */
    const char    *request_id;        /* to look for in the service's log */
    const char    *log;               /* compiler output */
} gpurest_error;

/* Local. Of the last call that failed on this thread; never NULL. Valid until the next gpurest_ call that fails on this thread. */
GPUREST_API const gpurest_error *gpurest_last_error(void);
/* Local. "GPUREST_E_BUSY"; a static string, for any value. */
GPUREST_API const char *gpurest_status_name(gpurest_status status);
/* Local. The version of the library at run time, "1.0.0"; never NULL. */
GPUREST_API const char *gpurest_version(void);
/* Local. Releases a string or bytes that a function below handed out. NULL is fine. */
GPUREST_API void gpurest_mem_free(void *memory);

/* ==== client: connections to one service ====
 * A client owns a pool of connections and the threads of its asynchronous operations. */

typedef struct gpurest_client  gpurest_client;
typedef struct gpurest_session gpurest_session; /* one worker process and one context at the service */
typedef struct gpurest_module  gpurest_module;
typedef struct gpurest_kernel  gpurest_kernel; /* owned by its module */
typedef struct gpurest_batch   gpurest_batch;
typedef struct gpurest_op      gpurest_op; /* an asynchronous operation */

/* Handles by value; {0} is no buffer, the default stream, no event. They mean something to the session that made them only. */
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
    const char *token_file;         /* its first line is the token */
    const char *ca_file;            /* PEM, for https; NULL: $GPUREST_CA_FILE, else the system's */
    int         connect_timeout_ms; /* for one attempt */
    int         idle_timeout_ms;    /* longest time without a byte in either direction */
    int         max_retries;        /* after the first try; see "retries" in README.md */
    int         max_connections;    /* 1 to 64; more callers wait for one */
    int         bulk_connections;   /* 1 to 16: those that share one transfer from 64 MiB on */
    int         use_libcurl;        /* non-zero: plain connections through libcurl, too, as https always is */
    void (*log)(void *arg, int level, const char *message); /* on any thread; NULL: silent */
    void *log_arg;
} gpurest_options;
#define GPUREST_OPTIONS_INIT                                                                                                               \
    {                                                                                                                                      \
        sizeof(gpurest_options), 0, 0, 0, 0, 5000, 60000, 2, 8, 4, 0, 0, 0                                                                 \
    }

/* Opens a client and asks the service for its version, so that a wrong address or token shows here. `url` as in gpurest_options. */
GPUREST_API gpurest_status gpurest_open(gpurest_client **out, const char *url);
GPUREST_API gpurest_status gpurest_open_with(gpurest_client **out, const gpurest_options *options);
/* NULL is fine. Pending operations end with GPUREST_E_CANCELLED. Its sessions stay valid pointers, to be closed by gpurest_session_close;
 * calls on them give GPUREST_E_CANCELLED from now on. Not from a callback. */
GPUREST_API void gpurest_close(gpurest_client *client);
/* Local. What /version said when the client was opened, as JSON. */
GPUREST_API const char *gpurest_server_version(const gpurest_client *client);

/* Called during transfers of gpurest_write, _read, _alloc_from, batches and their asynchronous forms, from 1 MiB on: on the transferring
 * thread, one call at a time per transfer. Non-zero gives the transfer up with GPUREST_E_CANCELLED. Must not call this library. */
typedef int (*gpurest_progress_cb)(void *arg, uint64_t done_bytes, uint64_t total_bytes);
/* Local. For transfers that begin later; NULL: none. */
GPUREST_API void gpurest_client_set_progress(gpurest_client *client, gpurest_progress_cb progress, void *arg);

/* ==== request: any request of the REST contract ==== */

/* Sends `json` (may be NULL) and gives the answer's body as a string, "" when it has none, in *out_json (may be NULL), to be released by
 * gpurest_mem_free. An answer that is no success is a failure as everywhere. `path` begins with a slash; GET, PUT and DELETE are retried.
 */
GPUREST_API gpurest_status gpurest_request(gpurest_client *client, const char *method, const char *path, const char *json, char **out_json);

/* A piece of an answer's body. Non-zero gives the answer up with GPUREST_E_CANCELLED. */
typedef int (*gpurest_body_cb)(void *arg, const void *data, size_t bytes);
typedef struct gpurest_http_request {
    size_t             struct_size;
    const char        *method, *path;
    const char        *content_type; /* NULL without a body */
    const void        *body;
    size_t             body_bytes;
    const char *const *headers; /* "Name: value" each */
    size_t             headers_count;
    gpurest_body_cb    on_body;         /* NULL: collected into the response */
    void              *on_body_arg;     /* for long answers such as event streams */
    int                idle_timeout_ms; /* 0: the client's */
} gpurest_http_request;
#define GPUREST_HTTP_REQUEST_INIT                                                                                                          \
    {                                                                                                                                      \
        sizeof(gpurest_http_request), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                                                         \
    }
typedef struct gpurest_http_response gpurest_http_response;

/* As gpurest_request, with everything in the caller's hands: answers of any status are a success of the call, and nothing is retried. */
GPUREST_API gpurest_status gpurest_http(gpurest_client *client, const gpurest_http_request *request, gpurest_http_response **out);
/* Local, all of these. */
GPUREST_API int         gpurest_http_status(const gpurest_http_response *response);
GPUREST_API const char *gpurest_http_header(const gpurest_http_response *response, const char *name); /* NULL: absent; any case */
GPUREST_API const void *gpurest_http_body(const gpurest_http_response *response, size_t *bytes);      /* NUL-terminated */
GPUREST_API void        gpurest_http_response_free(gpurest_http_response *response);

/* ==== device: what there is to compute on ==== */

typedef struct gpurest_device_info_t {
    size_t   struct_size;
    char     id[32]; /* "cuda:0", "cpu:0": what gpurest_session_options.device takes */
    char     backend[16], name[128], uuid[64], compute_capability[16], state[16];
    uint64_t memory_total_bytes, memory_free_bytes;
    int      multiprocessors, clock_khz, warp_size, max_threads_per_block;
    uint64_t max_shared_bytes_per_block;
} gpurest_device_info_t;
#define GPUREST_DEVICE_INFO_INIT                                                                                                           \
    {                                                                                                                                      \
        sizeof(gpurest_device_info_t), {0}, {0}, {0}, {0}, {0}, {0}, 0, 0, 0, 0, 0, 0, 0                                                   \
    }

/* How many devices the service has. */
GPUREST_API gpurest_status gpurest_device_count(gpurest_client *client, int *out);
/* `device` from 0; *out with struct_size set. */
GPUREST_API gpurest_status gpurest_device_info(gpurest_client *client, int device, gpurest_device_info_t *out);

/* ==== session: a process, a context and a fault domain at the service ==== */

typedef struct gpurest_session_options {
    size_t      struct_size;
    const char *device;         /* NULL: the service's choice */
    const char *name;           /* [a-z0-9][a-z0-9_-]{0,62}; one that exists with the same options is joined. NULL: a random one */
    uint64_t    memory_limit;   /* bytes of device memory; 0: none */
    uint32_t    idle_timeout_s; /* without a request for so long the service ends it; 0: the service's default (600) */
    int         memcheck;       /* non-zero: out-of-bounds accesses are found on devices that can */
    int         keep;           /* non-zero: gpurest_session_close leaves it alive at the service */
} gpurest_session_options;
#define GPUREST_SESSION_OPTIONS_INIT                                                                                                       \
    {                                                                                                                                      \
        sizeof(gpurest_session_options), 0, 0, 0, 0, 0, 0                                                                                  \
    }

/* `options` may be NULL. Released by gpurest_session_close. */
GPUREST_API gpurest_status gpurest_session_open(gpurest_session **out, gpurest_client *client, const gpurest_session_options *options);
/* NULL is fine. Ends the session at the service (unless `keep`), and so frees all that it holds. Asynchronous operations that have not
 * begun are done before; kernels that run then end with their session. Frees no operation. */
GPUREST_API void gpurest_session_close(gpurest_session *session);
/* Local. Its id at the service. */
GPUREST_API const char *gpurest_session_id(const gpurest_session *session);
/* A new worker after a fault, or to start afresh: buffers and modules are void from then on (modules still need gpurest_module_unload). */
GPUREST_API gpurest_status gpurest_session_reset(gpurest_session *session);
/* Waits for all work of the session, as long as that takes (kernels have their deadlines). In a batch: queued there. */
GPUREST_API gpurest_status gpurest_sync(gpurest_session *session);
/* Returns when every asynchronous operation begun so far has its place in the order of the session; does not wait for kernels. */
GPUREST_API gpurest_status gpurest_flush(gpurest_session *session);

typedef struct gpurest_memory_info_t {
    size_t   struct_size;
    uint64_t allocated_bytes, cached_bytes, reserved_bytes, free_bytes, peak_bytes;
    uint64_t limit_bytes;   /* UINT64_MAX: none */
    double   fragmentation; /* 0 to 1 */
} gpurest_memory_info_t;
#define GPUREST_MEMORY_INFO_INIT                                                                                                           \
    {                                                                                                                                      \
        sizeof(gpurest_memory_info_t), 0, 0, 0, 0, 0, 0, 0                                                                                 \
    }

/* *out with struct_size set. */
GPUREST_API gpurest_status gpurest_memory_info(gpurest_session *session, gpurest_memory_info_t *out);
/* Gives memory that is kept for later allocations back to the device; *out_or_null: how it is then. */
GPUREST_API gpurest_status gpurest_memory_trim(gpurest_session *session, gpurest_memory_info_t *out_or_null);

/* ==== memory: buffers and their bytes ====
 * In a batch, all but gpurest_buffer_open and gpurest_buffer_bytes are queued there. */

/* New memory has undefined contents. bytes > 0. */
GPUREST_API gpurest_status gpurest_alloc(gpurest_session *session, gpurest_buffer *out, size_t bytes);
/* Allocates and fills with `bytes` of src in one request. */
GPUREST_API gpurest_status gpurest_alloc_from(gpurest_session *session, gpurest_buffer *out, const void *src, size_t bytes);
/* The handle is stale from now on; kernels that use the memory still end first. */
GPUREST_API gpurest_status gpurest_free(gpurest_session *session, gpurest_buffer buffer);
/* A handle to a buffer of the session that somebody else made under this name. */
GPUREST_API gpurest_status gpurest_buffer_open(gpurest_session *session, gpurest_buffer *out, const char *name);
/* Local. Its size; 0 for what is no buffer of the session. */
GPUREST_API size_t gpurest_buffer_bytes(gpurest_session *session, gpurest_buffer buffer);
/* From 64 MiB on several connections share it. 0 bytes are fine. */
GPUREST_API gpurest_status gpurest_write(gpurest_session *session, gpurest_buffer buffer, size_t offset, const void *src, size_t bytes);
/* Sees what everything before it wrote. In a batch `dst` is filled by gpurest_batch_submit, or when its operation is done. */
GPUREST_API gpurest_status gpurest_read(gpurest_session *session, gpurest_buffer buffer, size_t offset, void *dst, size_t bytes);
/* On the device; the ranges may not overlap within one buffer. In a batch on the default stream only. */
GPUREST_API gpurest_status gpurest_copy(gpurest_session *session, gpurest_buffer to, size_t to_offset, gpurest_buffer from,
                                        size_t from_offset, size_t bytes, gpurest_stream stream);
/* `count` times the low `width_bytes` (1, 2 or 4) of value. In a batch on the default stream only. */
GPUREST_API gpurest_status gpurest_fill(gpurest_session *session, gpurest_buffer buffer, size_t offset, uint32_t value,
                                        unsigned width_bytes, size_t count, gpurest_stream stream);

/* ==== module: kernels from source or PTX ==== */

typedef struct gpurest_header {
    const char *name, *text; /* for #include "name" */
} gpurest_header;
typedef struct gpurest_compile_options {
    size_t                struct_size;
    const char *const    *options; /* "--std=c++17", "-DN=4", …; the service has a list of what it allows */
    size_t                options_count;
    const gpurest_header *headers;
    size_t                headers_count;
    const char *const    *name_expressions; /* "scale<float>": template instantiations, then names of kernels */
    size_t                name_expressions_count;
} gpurest_compile_options;
#define GPUREST_COMPILE_OPTIONS_INIT                                                                                                       \
    {                                                                                                                                      \
        sizeof(gpurest_compile_options), 0, 0, 0, 0, 0, 0                                                                                  \
    }

/* CUDA C++. A compilation that fails gives GPUREST_E_COMPILE with the compiler's output as the error's log. Released by
 * gpurest_module_unload, at the latest before its session is closed. Not in a batch: compile before it. */
GPUREST_API gpurest_status gpurest_compile(gpurest_session *session, gpurest_module **out, const char *source, const char *const *options,
                                           size_t options_count);
GPUREST_API gpurest_status gpurest_compile_with(gpurest_session *session, gpurest_module **out, const char *source,
                                                const gpurest_compile_options *options);
/* PTX text (told by its .version line), else a cubin or fatbin, which the service may refuse. */
GPUREST_API gpurest_status gpurest_module_load(gpurest_session *session, gpurest_module **out, const void *image, size_t bytes);
/* NULL is fine. Its kernels end with it. */
GPUREST_API void gpurest_module_unload(gpurest_module *module);
/* Local, these five. The log is "" when the compiler had nothing to say. */
GPUREST_API const char *gpurest_module_id(const gpurest_module *module);
GPUREST_API const char *gpurest_module_log(const gpurest_module *module);
GPUREST_API const char *gpurest_module_arch(const gpurest_module *module);
GPUREST_API double      gpurest_module_compile_ms(const gpurest_module *module, int *cached_or_null);
GPUREST_API size_t      gpurest_module_kernel_count(const gpurest_module *module);
/* What runs, "ptx" or "cubin"; *out is released by gpurest_mem_free. */
GPUREST_API gpurest_status gpurest_module_code(gpurest_module *module, const char *format, void **out, size_t *out_bytes);

typedef struct gpurest_kernel_info_t {
    size_t   struct_size;
    uint32_t registers, max_threads;
    uint64_t shared_bytes, local_bytes, const_bytes;
} gpurest_kernel_info_t;
#define GPUREST_KERNEL_INFO_INIT                                                                                                           \
    {                                                                                                                                      \
        sizeof(gpurest_kernel_info_t), 0, 0, 0, 0, 0                                                                                       \
    }

/* Local, all of these: the table came with the module. `name` is the plain or the mangled name, or a name expression. */
GPUREST_API gpurest_status gpurest_kernel_get(gpurest_module *module, const char *name, const gpurest_kernel **out);
GPUREST_API gpurest_status gpurest_kernel_at(gpurest_module *module, size_t index, const gpurest_kernel **out);
GPUREST_API const char    *gpurest_kernel_name(const gpurest_kernel *kernel);
GPUREST_API size_t         gpurest_kernel_param_count(const gpurest_kernel *kernel);
GPUREST_API gpurest_status gpurest_kernel_param(const gpurest_kernel *kernel, size_t index, size_t *offset, size_t *bytes);
/* The parameter's type as the compiler wrote it, such as "f32"; "" when it is not known. */
GPUREST_API const char    *gpurest_kernel_param_type(const gpurest_kernel *kernel, size_t index);
GPUREST_API gpurest_status gpurest_kernel_info(const gpurest_kernel *kernel, gpurest_kernel_info_t *out);

/* ==== launch: arguments and kernels that run ====
 * Arguments are checked against the kernel's table before anything is sent: their number, their sizes, and, where the table tells, whether
 * an integer goes where a float is expected. */

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
    GPUREST_ARG_BYTES,  /* in, bytes: any type, such as a struct, as it lies in memory */
    GPUREST_ARG_BUFFER, /* buffer, offset: an address in it */
    GPUREST_ARG_IN,     /* gpurest_run only: host memory whose contents go there, */
    GPUREST_ARG_OUT,    /* ... come back, */
    GPUREST_ARG_INOUT   /* ... or both */
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
#define GPUREST_I8(v) gpurest_arg_signed(GPUREST_ARG_I8, (int8_t)(v))
#define GPUREST_I16(v) gpurest_arg_signed(GPUREST_ARG_I16, (int16_t)(v))
#define GPUREST_I32(v) gpurest_arg_signed(GPUREST_ARG_I32, (int32_t)(v))
#define GPUREST_I64(v) gpurest_arg_signed(GPUREST_ARG_I64, (int64_t)(v))
#define GPUREST_U8(v) gpurest_arg_unsigned(GPUREST_ARG_U8, (uint8_t)(v))
#define GPUREST_U16(v) gpurest_arg_unsigned(GPUREST_ARG_U16, (uint16_t)(v))
#define GPUREST_U32(v) gpurest_arg_unsigned(GPUREST_ARG_U32, (uint32_t)(v))
#define GPUREST_U64(v) gpurest_arg_unsigned(GPUREST_ARG_U64, (uint64_t)(v))
#define GPUREST_F32(v) gpurest_arg_f32((float)(v))
#define GPUREST_F64(v) gpurest_arg_f64((double)(v))
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
    gpurest_dim3   block;        /* x = 0: the service chooses */
    uint64_t       threads;      /* instead of grid and block: so many threads at least; 0: not used */
    uint32_t       shared_bytes; /* dynamic shared memory */
    gpurest_stream stream;
    uint64_t       timeout_ms; /* of execution: an endless kernel is stopped, the session lost; 0: the service's default (60 s) */
} gpurest_launch_config;
#define GPUREST_LAUNCH_CONFIG_INIT                                                                                                         \
    {                                                                                                                                      \
        sizeof(gpurest_launch_config), {1, 1, 1}, {0, 0, 0}, 0, 0, {0}, 0                                                                  \
    }

typedef struct gpurest_launch_result {
    size_t struct_size;
    double gpu_us; /* on the device */
    char  *output; /* of the kernel's printf, "" when there was none; to be released by gpurest_mem_free; NULL on failure */
    int    output_truncated;
} gpurest_launch_result;
#define GPUREST_LAUNCH_RESULT_INIT                                                                                                         \
    {                                                                                                                                      \
        sizeof(gpurest_launch_result), 0, 0, 0                                                                                             \
    }

/* Runs a kernel and waits for its end. In a batch: queued there. */
GPUREST_API gpurest_status gpurest_launch(gpurest_session *session, const gpurest_kernel *kernel, gpurest_dim3 grid, gpurest_dim3 block,
                                          size_t shared_bytes, gpurest_stream stream, const gpurest_arg *args, size_t args_count);
/* As gpurest_launch; *result_or_null is filled, in a batch when it is done. */
GPUREST_API gpurest_status gpurest_launch_with(gpurest_session *session, const gpurest_kernel *kernel, const gpurest_launch_config *config,
                                               const gpurest_arg *args, size_t args_count, gpurest_launch_result *result_or_null);
/* As gpurest_launch_with, its arguments as one block laid out by the kernel's table. Pointers in it mean nothing there: scalars only. */
GPUREST_API gpurest_status gpurest_launch_raw(gpurest_session *session, const gpurest_kernel *kernel, const gpurest_launch_config *config,
                                              const void *params, size_t bytes);
/* Local: checks and copies the arguments; a thread of the client launches and follows. Not in a batch. *result_or_null is to live until
 * the operation is done, and is filled by then. */
GPUREST_API gpurest_status gpurest_launch_async(gpurest_session *session, const gpurest_kernel *kernel, const gpurest_launch_config *config,
                                                const gpurest_arg *args, size_t args_count, gpurest_launch_result *result_or_null,
                                                gpurest_op **out);

/* ==== stream: order of work within a session, and time between points of it ====
 * The default stream is {0}. Work of other streams runs beside it. */

/* Local: the service makes it when it is first used (64 per session). */
GPUREST_API gpurest_status gpurest_stream_create(gpurest_session *session, gpurest_stream *out);
/* Waits for the work of one stream. In a batch: queued there. */
GPUREST_API gpurest_status gpurest_stream_sync(gpurest_session *session, gpurest_stream stream);
/* Events live within one batch; outside of one these three give GPUREST_E_UNSUPPORTED. *out_ms is filled when the batch is done. */
GPUREST_API gpurest_status gpurest_event_record(gpurest_session *session, gpurest_event *out, gpurest_stream stream);
GPUREST_API gpurest_status gpurest_stream_wait(gpurest_session *session, gpurest_stream stream, gpurest_event event);
GPUREST_API gpurest_status gpurest_event_elapsed_ms(gpurest_session *session, gpurest_event from, gpurest_event to, float *out_ms);

/* ==== batch: many operations in one request ====
 * Between gpurest_batch_begin and gpurest_batch_submit this thread's calls on the session are checked, copied and queued here; then all
 * go in one request. A failing operation ends the batch: those before it have taken effect, of those behind it nothing is known. Buffers
 * made in a batch that failed are void. */

/* Local. One batch per session and thread at a time. */
GPUREST_API gpurest_status gpurest_batch_begin(gpurest_session *session, gpurest_batch **out);
/* Local. For the whole of it at the service; 0: the service's default (60 s). */
GPUREST_API gpurest_status gpurest_batch_timeout_ms(gpurest_batch *batch, uint64_t timeout_ms);
GPUREST_API size_t         gpurest_batch_count(const gpurest_batch *batch); /* Local. Operations queued so far. */
/* Consumes the batch, on failure too. out_or_null NULL: waits for its end; else released by gpurest_op_free. Memory that it reads into,
 * results and *out_ms of its calls are to live until it is done. */
GPUREST_API gpurest_status gpurest_batch_submit(gpurest_batch *batch, gpurest_op **out_or_null);
/* The same, but the service keeps the batch: no connection is held while it runs, and a broken one loses nothing. Such batches of a session
 * are done in their order; no other call waits for them. Cancelling ends one that still waits at the service; one that runs goes on. */
GPUREST_API gpurest_status gpurest_batch_submit_background(gpurest_batch *batch, gpurest_op **out);
/* Local. Forgets what was queued. NULL is fine. */
GPUREST_API void gpurest_batch_discard(gpurest_batch *batch);

/* ==== program: a batch that is prepared once and run many times ==== */

typedef struct gpurest_program gpurest_program;

/* Prepares the batch at the service instead of doing it. Consumes it, on failure too. It frees no buffer from outside, its launches have
 * no results, and it measures no time; the buffers that it makes are the program's, and their handles void. Released by
 * gpurest_program_destroy, at the latest before its session is closed. */
GPUREST_API gpurest_status gpurest_batch_prepare(gpurest_batch *batch, gpurest_program **out);
/* Does it all in one request, and waits for its end. inputs[i]: other bytes for the i-th gpurest_write or gpurest_alloc_from, as many as
 * were queued; NULL, or not there: those that were queued. outputs[i]: where the i-th gpurest_read goes to; NULL, or not there: where it
 * was to go. Any thread, also while it runs, with outputs of its own. Never sent twice. */
GPUREST_API gpurest_status gpurest_program_run(gpurest_program *program, const void *const *inputs, size_t inputs_count,
                                               void *const *outputs, size_t outputs_count);
/* Another value, GPUREST_F32(…) and its like, for an argument of one of the batch's launches; both count from 0. */
typedef struct gpurest_program_scalar {
    size_t      launch, argument;
    gpurest_arg value;
} gpurest_program_scalar;
typedef struct gpurest_program_run_options {
    size_t                        struct_size;
    const void *const            *inputs; /* as in gpurest_program_run */
    void *const                  *outputs;
    const gpurest_program_scalar *scalars; /* for this run alone; each argument once, in any order, at most 1,024 */
    size_t                        inputs_count, outputs_count, scalars_count;
} gpurest_program_run_options;
#define GPUREST_PROGRAM_RUN_OPTIONS_INIT \
    {sizeof(gpurest_program_run_options), 0, 0, 0, 0, 0, 0}

/* As gpurest_program_run. options NULL: everything as it was queued. out_or_null NULL: waits for its end; else released by gpurest_op_free:
 * inputs, outputs and the program are to live until it is done; scalars are copied. */
GPUREST_API gpurest_status gpurest_program_run_with(gpurest_program *program, const gpurest_program_run_options *options,
                                                    gpurest_op **out_or_null);
/* NULL is fine. */
GPUREST_API void gpurest_program_destroy(gpurest_program *program);

/* ==== op: asynchronous operations ==== */

/* Local: a thread of the client does it. `src` and `dst` are to live until it is done. Not part of a batch, even if one is begun. */
GPUREST_API gpurest_status gpurest_write_async(gpurest_session *session, gpurest_buffer buffer, size_t offset, const void *src,
                                               size_t bytes, gpurest_op **out);
GPUREST_API gpurest_status gpurest_read_async(gpurest_session *session, gpurest_buffer buffer, size_t offset, void *dst, size_t bytes,
                                              gpurest_op **out);
/* Exactly once, on a thread of the client, never inside the call that sets it. May begin asynchronous operations and make calls that are
 * "Local."; other calls could wait for the very thread they are on. */
typedef void (*gpurest_op_cb)(void *arg, gpurest_op *op);
/* Local. At most one per operation; one set when it is done already is called, too. */
GPUREST_API gpurest_status gpurest_op_on_done(gpurest_op *op, gpurest_op_cb callback, void *arg);
/* Its own status, with this thread's last error set from it; GPUREST_E_TIMEOUT when it is not done in time, and then it goes on.
 * timeout_ms < 0: as long as it takes. Any number of threads may wait, any number of times. */
GPUREST_API gpurest_status gpurest_op_wait(gpurest_op *op, int timeout_ms);
/* Local. Non-zero once it is done. */
GPUREST_API int gpurest_op_done(const gpurest_op *op);
/* Local. Asks it to end with GPUREST_E_CANCELLED: at once if it waits here, soon if bytes are moving. A kernel that runs already cannot
 * be stopped this way: its operation ends as the kernel does. */
GPUREST_API void gpurest_op_cancel(gpurest_op *op);
/* Operations of a batch that are known to be done, and the status of each; valid once it is done. */
GPUREST_API size_t         gpurest_op_result_count(const gpurest_op *op);
GPUREST_API gpurest_status gpurest_op_result(const gpurest_op *op, size_t index);
/* NULL is fine. Waits for its end and for a running callback: cancel it first to be quick. Not from a callback. */
GPUREST_API void gpurest_op_free(gpurest_op *op);

/* ==== run: all of it in one request ==== */

typedef struct gpurest_times {
    double compile_ms; /* 0 when the service had compiled it before */
    double upload_ms;  /* until the service had received everything */
    double run_ms;     /* all operations, copies included */
    double gpu_us;     /* the kernel alone */
} gpurest_times;

/* Compiles (or finds) the source, uploads GPUREST_IN and _INOUT arguments, launches, downloads _OUT and _INOUT ones and frees, in one
 * request on a session that the service keeps for the caller. `times_or_null` is filled on success. Never retried once it was sent. */
GPUREST_API gpurest_status gpurest_run(gpurest_client *client, const char *source, const char *kernel, gpurest_dim3 grid,
                                       gpurest_dim3 block, const gpurest_arg *args, size_t args_count, gpurest_times *times_or_null);

#ifdef __cplusplus
}
#endif
#endif
