/* Shared by the shim's files. One lock is held during every call of a program, except in those that need nothing: functions here are called
 * with it, unless stated otherwise. Files above others: entry, resolve -> the files of calls -> queue -> gpu -> call, handles. */
#ifndef GPUREST_SHIM_SHIM_H
#define GPUREST_SHIM_SHIM_H

#include <gpurest/gpurest.h>
#include <gpurest/texture.h>
#include <stdbool.h>

#include "types.h"

enum {
    DRIVER_VERSION = 13000, /* of the interface that is offered: 1000 * major + 10 * minor */
    DEVICES_MAX = 16,
    ATTRIBUTES_MAX = 160,                  /* device attributes are below it */
    CONTEXTS_PER_THREAD = 1024,            /* of a thread's stack */
    QUEUE_OPS_MAX = 256,                   /* a frame is sent when so many operations are queued, */
    QUEUE_BYTES_MAX = 64 * 1024,           /* ... or so many bytes; */
    QUEUE_OPS_BUSY_MAX = 1024,             /* while the frame before is under way, when so many are, */
    QUEUE_BYTES_BUSY_MAX = 256 * 1024,     /* ... or so many bytes */
    FRAME_TIMEOUT_MS = 3600 * 1000,        /* CUDA knows none: the longest that a service grants */
    READ_IN_FRAME_BYTES_MAX = 1024 * 1024, /* longer reads have a request of their own, with the SDK's parallel connections */
    ADDRESS_TRIES = 8,                     /* of an allocation whose address is taken in this process */
    LEASE_S = 60,                          /* the service ends the session of a process that is gone */
    LEGACY_PARAMS_BYTES = 4096,
    IMAGE_BYTES_MAX = 256 * 1024 * 1024,
    MESSAGE_ROOM = 1024,
    SPIN_US = 100,     /* a program looks for an answer so long before it sleeps, */
    SPIN_CPUS_MIN = 5, /* ... with so many processors, or if it asks for it */
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- call.c: what surrounds every call ---- */

enum needs { NEEDS_NOTHING, NEEDS_INIT, NEEDS_CONTEXT };

/* CUDA_SUCCESS: the call may go on, and holds the lock if it needs anything. call_leave() must follow in any case. */
struct call {
    const char *symbol;
    uint64_t    begun_ns, messages;
    bool        locked;
};
CUresult call_enter(struct call *c, const char *symbol, enum needs needs);
CUresult call_leave(struct call *c, CUresult result);
/* Calls of this thread are refused from now on, as in callbacks of streams. */
void call_forbid(bool forbidden);
/* Gives the lock away and takes it again. */
void call_unlock(void);
void call_lock(void);
bool call_traced(void);
/* One line on standard error. */
void     tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
CUresult call_init(unsigned flags);

/* ---- errors.c ---- */

/* What the last failure of the SDK on this thread is in CUDA's words. */
CUresult result_of_failure(void);

/* ---- handles.c: what programs hold is a number, so that a stale or invented one is found out ---- */

enum handle_kind {
    HANDLE_CONTEXT = 1,
    HANDLE_MODULE,
    HANDLE_FUNCTION,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_LINK,
    HANDLE_POOL,
    HANDLE_GRAPH,
    HANDLE_NODE,
    HANDLE_EXEC,
    HANDLE_USER_OBJECT,
    HANDLE_ARRAY
};

/* NULL: out of memory. */
void *handle_add(enum handle_kind kind, void *object);
/* NULL: it is none of that kind. */
void *handle_get(enum handle_kind kind, const void *handle);
/* Another object behind the same handle; NULL: it is none until there is one again. */
void handle_set(const void *handle, void *object);
void handle_remove(const void *handle);
/* Visits all of a kind; `visit` may remove the one it is given. */
void handle_each(enum handle_kind kind, void (*visit)(void *handle, void *object, void *arg), void *arg);

/* ---- gpu.c: devices of the service, each with the session of this process ---- */

struct queue;

enum { GRAPH_FIGURES = 4 }; /* by CUgraphMem_attribute: bytes of graphs' memory */
struct gpu {
    CUdevice         ordinal;
    char             id[32], name[128];
    CUuuid           uuid;
    uint64_t         total_bytes;
    int64_t          attributes[ATTRIBUTES_MAX];
    gpurest_session *session;        /* NULL: not needed yet */
    CUresult         sticky;         /* CUDA_SUCCESS, or what every later call returns */
    struct queue    *queue;          /* NULL: nothing was queued yet */
    struct context  *primary;        /* NULL: not active */
    void            *primary_handle; /* the same for good, as CUDA's; NULL: not needed yet */
    unsigned         primary_flags, primary_references;
    struct pool     *default_pool, *pool; /* pool: that of cuMemAllocAsync; NULL: not needed yet */
    uint64_t         graph_figures[GRAPH_FIGURES];
};

/* CUDA_ERROR_NO_DEVICE if the service cannot be reached, which a line on standard error then says once. */
CUresult gpus_find(void);
int      gpus_count(void);
/* NULL: CUDA_ERROR_INVALID_DEVICE. */
struct gpu *gpu_at(CUdevice device);
/* Opens its session if there is none. */
CUresult gpu_session(struct gpu *g);
/* Notes an error after which the device's contents are unknown; returns it. */
CUresult gpu_fail(struct gpu *g, CUresult result);
/* The same for the SDK's last failure, if it is of that kind. */
CUresult gpu_failed(struct gpu *g);
/* Tells the SDK's last failure, which makes the device's contents unknown: in memcheck's report, or in a line on standard error. */
void gpu_tell_failure(const struct gpu *g);
/* Another worker, without the contents and errors of the old one. */
CUresult gpu_reset(struct gpu *g);
/* The session finds accesses outside of allocations. */
bool gpu_checks_memory(void);
/* Sends what is queued for any of them. Errors stick to their devices. */
void gpus_flush(void);
/* Ends all sessions, at the end of the process. */
void gpus_close(void);
/* How the program wants to wait from now on, by the flags of its context. */
void gpu_wait_as(unsigned context_flags);
/* Requests that were sent so far. */
uint64_t gpu_messages(void);

/* ---- report.c: what memcheck finds, as compute-sanitizer prints it. Nothing is printed before the first session with memcheck ---- */

void report_begin(void);
bool report_on(void);
/* The SDK's last failure; false: it is none of a kernel, or there is no report. */
bool report_fault(void);
/* A call returns to the program: the first one that returns a fault is a record, too. */
void report_call(const char *symbol, CUresult result);
/* At the end of the process: so many queued operations did not run. */
void report_lost(size_t count);
/* locked: false: another thread is in a call for good, and has the lock. */
void report_end(bool locked);

/* ---- context.c ---- */

struct context {
    struct gpu *gpu;
    void       *handle;
    unsigned    references; /* by cuCtxAttach, beyond the first */
    unsigned    flags;
    uint64_t    number;
};

/* Of this thread; NULL: none. */
struct context *context_current(void);
/* Why there is no current one: none was set, or it was destroyed. */
CUresult context_absent(void);
/* NULL: the current one. */
struct context *context_of(CUcontext handle);

/* ---- queue.c: operations that wait until something is asked for ---- */

/* The batch to add an operation of about `bytes` to; a full one is sent first, and not waited for. NULL: failed, with *why. */
gpurest_batch *queue_begin(struct gpu *g, size_t bytes, CUresult *why);
/* After each operation. `st`: the result of adding it. */
CUresult queue_end(struct gpu *g, gpurest_status st);
/* After an operation that brings bytes: a frame brings no more than READ_IN_FRAME_BYTES_MAX and the last of them. */
CUresult queue_note_read(struct gpu *g, size_t bytes);
/* Sends what is queued and waits until the device has done it. */
CUresult queue_flush(struct gpu *g);
/* Number of the frame that is being filled. */
uint64_t queue_frame(const struct gpu *g);
/* It is being filled or under way: not done yet. */
bool queue_has(const struct gpu *g, uint64_t frame);
/* The time of this moment of the frame is known in *at_ns when the frame is done; *at_ns must live until then. */
CUresult queue_note_time(struct gpu *g, uint64_t *at_ns);
/* *at_ns does not live any longer. */
void queue_forget_time(struct gpu *g, const uint64_t *at_ns);
/* Forgets what is queued. */
void queue_drop(struct gpu *g);
/* At the end of the process: does what is queued, unless it would write to the program's memory, which may be gone. The number of operations
 * that are left. */
size_t queue_end_of_process(struct gpu *g);

/* ---- transfer.c ---- */

/* A part of an allocation or of an array. */
struct device_range {
    struct gpu    *gpu;
    gpurest_buffer buffer;
    uint64_t       offset;
};

/* The bytes are taken now: the program may change them when this returns. */
CUresult range_upload(const struct device_range *to, const void *from, size_t bytes);
/* now: they are there when this returns; otherwise when the frame was sent, and *to must live until then. */
CUresult range_download(void *to, const struct device_range *from, size_t bytes, bool now);
CUresult range_copy(const struct device_range *to, const struct device_range *from, size_t bytes);

/* ---- memory.c ---- */

struct allocation {
    uint64_t              address, bytes;
    const struct context *context;
    struct gpu           *gpu;
    struct pool          *pool; /* NULL: of none */
    gpurest_buffer        buffer;
    uint64_t              number;   /* for CU_POINTER_ATTRIBUTE_BUFFER_ID */
    bool                  variable; /* of a module, with which it goes */
};

/* In the current context. *out: what the table has of it. */
CUresult memory_allocate(size_t bytes, struct pool *pool, struct allocation *out);
/* Queues the free of what the table no longer has. */
CUresult memory_release(const struct allocation *a);
/* Out of the table, and into it again. take: false if nothing of the program's begins there. */
bool memory_take(uint64_t address, struct allocation *out);
bool memory_put(const struct allocation *a);
void memory_leave_pool(const struct pool *p);
/* All of a context's memory is freed; NULL: of the device, because its session is gone. */
void memory_forget(const struct gpu *g, const struct context *c);
/* A variable of a module, as the SDK knows it. */
CUresult memory_add_variable(struct context *c, gpurest_buffer buffer, uint64_t *address, uint64_t *bytes);
void     memory_remove_variable(uint64_t address);

/* All of the range lies in one allocation, which *out is a part of. */
bool memory_range(uint64_t address, size_t bytes, struct device_range *out);
bool memory_is_variable(uint64_t address);

/* ---- array.c: texels that kernels reach by textures and surfaces alone ---- */

struct array {
    CUDA_ARRAY3D_DESCRIPTOR desc;
    const struct context   *context;
    struct gpu             *gpu;
    gpurest_buffer          texels;
    void                   *handle;
    size_t                  texel_bytes, row_bytes, rows, slices;
};

/* NULL: the handle is none. */
struct array *array_of(const void *handle);
/* Bytes of a texel; 0: there is no such format, or none here. *word: the service's. */
size_t texel_of(CUarray_format format, unsigned channels, const char **word);
/* Shape and format of an array for the service. */
void array_describe(const struct array *a, gpurest_texture_desc *out);
/* All of a context's; NULL: of the device, because its session is gone. */
void arrays_forget(const struct gpu *g, const struct context *c);

/* ---- texture.c ---- */

/* What there is not: CUDA_ERROR_NOT_SUPPORTED, which a line on standard error says once for each. */
enum refused_texture { REFUSED_LEVELS, REFUSED_BORDER, REFUSED_SAMPLING, REFUSED_VIEW, REFUSED_ARRAY };
CUresult texture_refuse(enum refused_texture what);

/* Ends those that read a buffer which is about to be freed. The program destroys them later. */
CUresult textures_leave(struct gpu *g, gpurest_buffer buffer);
/* All of a context's; NULL: of the device, because its session is gone. */
void textures_forget(const struct gpu *g, const struct context *c);

/* ---- pool.c ---- */

/* Queues frees of what pools have beyond their thresholds: the program waits for the device. */
void pools_trim(struct gpu *g);
/* The device's session is gone. */
void pools_forget(struct gpu *g);
/* Memory of the pool was freed without its order. */
void pool_freed(struct pool *p, const struct allocation *a);

/* ---- host.c ---- */

/* All of the range is memory that the program has locked in place: copies to it need not be done when they return. */
bool host_is_pinned(const void *start, size_t bytes);

/* ---- rows.c ---- */

/* Rows of both sides are width bytes of a pitch; those of one side have no gaps if its pitch is 0. */
CUresult rows_copy(const CUDA_MEMCPY3D *c);
/* Its arrays are there. */
bool rows_known(const CUDA_MEMCPY3D *c);

/* ---- image.c: code as programs hand it over, without a length ---- */

struct image {
    const void *data;
    size_t      bytes;
    void       *owned; /* what data lies in, if it was unpacked; NULL: the program's own */
};
/* Finds PTX, or a cubin, that the device can run. `image` is PTX, a cubin, a fatbin or its wrapper. */
CUresult image_find(const struct gpu *g, const void *image, struct image *out);
/* Several images, as the service takes them, which cuLinkComplete() makes: this head, and of each image another one and its bytes. */
#define LINKED_MAGIC "\x89GLK\r\n\x1a\n"
enum { LINKED_MAGIC_BYTES = 8, LINKED_IMAGES_MAX = 64 };
struct linked_head {
    char     magic[LINKED_MAGIC_BYTES];
    uint32_t count, zero;
};
struct linked_image {
    uint32_t kind, zero;
    uint64_t bytes;
};
/* Whether g runs PTX alone: then it has CUDA's device runtime in itself, and needs no library. */
bool image_wants_ptx(const struct gpu *g);
void image_finish(struct image *i);
/* The bytes of an ELF file, 0 if it is none. Exposed for tests. */
size_t image_elf_bytes(const void *image);

/* ---- module.c ---- */

struct variable {
    char            *name;
    uint64_t         address, bytes;
    struct variable *next;
};
struct module {
    struct context  *context;
    gpurest_module  *at_service;
    struct variable *variables; /* those that were asked for */
    void            *handle;
    void           **functions; /* handles, by the number of the kernel; NULL: not asked for yet */
    bool             library;
    unsigned         ptx_target; /* 75: the PTX was for compute_75; 0: it is a cubin */
};
/* What the functions of before CUDA 4 set for the next launch. */
struct legacy_launch {
    unsigned block[3], shared_bytes, params_bytes;
    char     params[LEGACY_PARAMS_BYTES];
};
struct function {
    struct module        *module;
    const gpurest_kernel *kernel;
    gpurest_kernel_info_t info;
    uint32_t              dynamic_shared_max; /* of attribute 8 */
    struct legacy_launch  legacy;
};

CUresult module_load(CUmodule *out, const void *image, unsigned options, const CUjit_option *names, void **values, bool library);
/* A file's bytes, which the caller frees, with a NUL after them. */
CUresult module_read_file(const char *path, char **out, size_t *out_bytes);
/* CUfunction and CUkernel are the same here. */
struct function *function_of(const void *handle);
/* All of a context's; NULL: of the device. */
void modules_forget(const struct gpu *g, const struct context *c);
/* Writes a text where the options of a compilation want it. */
void jit_log(unsigned options, const CUjit_option *names, void **values, const char *text, bool error);

/* ---- stream.c ---- */

/* CUDA_SUCCESS if a stream of this context, or a special value. */
CUresult stream_check(CUstream stream);
/* All of a context's; NULL: of the device. */
void     streams_forget(const struct gpu *g, const struct context *c);
uint64_t now_ns(void);
/* Where the stream is in a capture; NULL: a default stream, which cannot be captured. */
struct captured *stream_captured(CUstream stream);
/* Sends what is queued, waits for it and for the callbacks so far, and lets pools give memory back. */
CUresult stream_wait(struct gpu *g);
/* Calls it on the thread of callbacks, after those that are there. Out of memory, it is not called. */
void callback_later(CUhostFn fn, void *data);

/* ---- launch.c ---- */

/* Whether a block of so many threads has registers enough; if not, what bounds the kernel is its registers. */
bool occupancy_registers_suffice(const struct function *f, int64_t threads);
/* Shapes that CUDA refuses at once. */
CUresult launch_check(const struct function *f, const gpurest_launch_config *config);
/* The parameters as the SDK wants them, of one of CUDA's two forms; `out` has room for PARAMS_MAX. */
CUresult launch_args(const gpurest_kernel *k, void **params, void **extra, gpurest_arg *out);
CUresult launch_kernel(CUfunction function, const gpurest_launch_config *config, CUstream stream, void **params, void **extra);

/* ---- graph/capture.c: calls on a stream that becomes a graph. Functions with a stream are for those that capture_on() is true for ---- */

/* Of a stream, or of an event that was recorded in a capture: the nodes that the next one comes after. */
struct captured {
    uint64_t         capture; /* its number; 0: none */
    CUgraphNode     *last;
    size_t           last_count;
    CUgraphEdgeData *edges; /* of `last`, once a program has asked for them */
};
struct work;

bool capture_on(CUstream stream);
bool captures_active(void);
/* The stream or event is destroyed, or the event is recorded anew. */
void captured_forget(struct captured *p);
/* Adds a node; takes the work. */
CUresult capture_work(CUstream stream, struct work *work);
CUresult capture_copy(CUstream stream, const CUDA_MEMCPY3D *copy);
CUresult capture_bytes(CUstream stream, uint64_t to, CUmemorytype to_type, uint64_t from, CUmemorytype from_type, size_t bytes);
CUresult capture_fill(CUstream stream, const CUDA_MEMSET_NODE_PARAMS *fill);
CUresult capture_launch(CUstream stream, CUfunction function, const gpurest_launch_config *config, void **params, void **extra);
CUresult capture_host(CUstream stream, CUhostFn fn, void *data);
CUresult capture_allocation(CUstream stream, size_t bytes, CUdeviceptr *out);
CUresult capture_free(CUstream stream, CUdeviceptr address);
CUresult capture_record(CUstream stream, struct captured *event);
/* For any stream, if it or the event is in a capture. */
CUresult capture_wait(CUstream stream, const struct captured *event);
/* What cannot be captured: the capture is void, too. */
CUresult capture_refuse(CUstream stream);
/* The legacy default stream is used, which waits for the others: an error in a capture. */
CUresult captures_implicit(void);

/* ---- graph/memory.c ---- */

/* false: no graph allocated it, and *result is not set. */
bool graph_memory_free(uint64_t address, CUresult *result);
void graph_memories_forget(const struct gpu *g, const struct context *c);

/* ---- the functions that are supported ---- */

#define SUPPORTED(symbol, name, version, needs, parameters, names) CUresult shim_##symbol parameters;
#define REFUSED(symbol, name, version, needs, parameters, names)
#define SAME(symbol, name, version, other)
#include "driver.def"
#undef SUPPORTED
#undef REFUSED
#undef SAME

#endif
