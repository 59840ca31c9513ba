/* The messages between the front-end and a worker: fixed structs, no pointers. Both sides are the same executable. The front-end trusts
 * nothing that a worker wrote: it copies, checks the copy, and uses the copy. */
#pragma once

#include <stddef.h>

#include "base/problem.h"
#include "ipc/bounds.h"
#include "ipc/texture.h"
#include "limits.h"

enum message {
#define MESSAGE(NAME, call) MESSAGE_##NAME,
#include "ipc/messages.def"
#undef MESSAGE
    MESSAGE_COUNT
};

/* A piece of staging memory: offset from its start, and length, in bytes. */
struct shm_ref {
    uint64_t offset;
    uint64_t bytes;
};

struct device_attribute {
    char    name[64]; /* lower snake case, the driver's own word: "max_threads_per_block" */
    int64_t value;
};

enum { DEVICE_SENSOR_UNKNOWN = INT32_MIN };

enum device_sensor {
#define SENSOR(NAME, name) DEVICE_SENSOR_##NAME,
#include "ipc/device_sensors.def"
#undef SENSOR
    DEVICE_SENSORS
};

enum device_sensor_state {
    SENSOR_NOT_OFFERED, /* this kind of device has none */
    SENSOR_READ,
    SENSOR_NO_LIBRARY,    /* the management library is not here, or does not know this device */
    SENSOR_NOT_SUPPORTED, /* the driver does not report it for this device */
    SENSOR_NOT_ALLOWED,   /* ... to this user */
    SENSOR_FAILED,
    SENSOR_DEVICE_LOST, /* set by the front-end */
    SENSOR_PAUSED, /* the management library was slow, and is left alone for a while */
    SENSOR_STATES
};

struct device_reading {
    int32_t  value; /* of SENSOR_READ only */
    uint32_t state; /* enum device_sensor_state */
};

enum device_setting {
#define DEVICE_SETTING(NAME, name, SHAPE) DEVICE_SETTING_##NAME,
#include "ipc/device_settings.def"
#undef DEVICE_SETTING
    DEVICE_SETTING_COUNT
};

enum device_setting_shape { DEVICE_SETTING_PAIR, DEVICE_SETTING_ONE, DEVICE_SETTING_SWITCH };

struct device_setting_value {
    uint32_t set; /* 0: the device's own default */
    uint32_t low; /* the only one, but of a PAIR */
    uint32_t high;
};

/* How device memory becomes memory of other processes of the host. */
enum device_sharing {
    DEVICE_SHARES_NOTHING,
    DEVICE_SHARES_FILE,   /* it is host memory: an allocation can be that of a file, given by descriptor */
    DEVICE_SHARES_EXPORT, /* the driver hands out descriptors, for processes that use the driver, too */
};

/* What a hardware error asks for, by increasing weight. */
enum device_action {
    DEVICE_ACTION_NONE,  /* nothing, or the end of the context that it hit */
    DEVICE_ACTION_DRAIN, /* the device needs a reset: no new work is started on it */
    DEVICE_ACTION_END,   /* results are in doubt, or the device is gone: all its work ends */
};

/* As reported by the management library; unknown where watched is 0. */
struct device_health {
    uint32_t watched;
    uint32_t action;          /* enum device_action: the heaviest since the process started */
    uint32_t xid;             /* the error that asked for it; 0 = none, or the device stopped answering */
    int64_t  ecc_uncorrected; /* errors since the driver was loaded; -1 = unknown */
};

/* What module_load takes of code that the service compiled for compile_arch. */
enum device_code { DEVICE_CODE_CUBIN, DEVICE_CODE_PTX, DEVICE_CODE_SPIRV, DEVICE_CODE_AMDGPU, DEVICE_CODES };

struct device_library {
    char name[16];    /* "cublaslt" */
    char version[32]; /* "13.1.0" */
};

/* Sizes in bytes, clocks in kHz. */
struct device_info {
    char                    name[256];
    char                    vendor[32];             /* "NVIDIA"; of a host's processor */
    char                    uuid[DEVICE_UUID_BYTES]; /* "GPU-…" or a host's stable one; "" if unknown */
    char                    compute_capability[16]; /* "9.0" */
    char                    driver[64];             /* "13.0"; "" on cpu */
    uint64_t                total_bytes;
    uint64_t                free_bytes; /* now */
    uint32_t                multiprocessors;
    uint32_t                clock_khz;
    uint32_t                memory_clock_khz;
    uint32_t                l2_cache_bytes;
    uint32_t                warp_size;
    uint32_t                max_threads_per_block;
    uint32_t                max_block[3];
    uint32_t                max_grid[3];
    uint64_t                max_shared_bytes_per_block; /* with opt-in */
    uint32_t                unified_addressing;
    uint32_t                unified_memory; /* 1: the device has no memory of its own, buffers take the host's */
    struct device_reading   sensors[DEVICE_SENSORS];
    struct device_health    health;
    char                    compile_arch[16];                /* the target of compilation: "sm_90", or "compute_75" for PTX */
    char                    compiler[16];                    /* of source for it: "nvrtc" of CUDA C++, "hiprtc" of HIP C++, "shaderc" of GLSL; "" = none here */
    uint32_t                code_format;                     /* enum device_code */
    uint32_t                on_host;                         /* 1: host processors run the kernels */
    uint32_t                sharing;                         /* enum device_sharing */
    uint64_t                sharing_unit;                    /* sizes of shared allocations are multiples of it; 0: nothing is shared */
    uint32_t                has_server;                      /* 1: contexts take turns, unless they share a server (MPS) */
    struct device_library   libraries[DEVICE_LIBRARIES_MAX]; /* the vendor's libraries in use; entries without a name are unused */
    char                    unsupported[1024];               /* comma-separated words for what kernels may not use; "" = unknown */
    uint32_t                attributes_count;
    struct device_attribute attributes[DEVICE_ATTRIBUTES_MAX];
};

/* Its value, or DEVICE_SENSOR_UNKNOWN. */
static inline int32_t device_sensor(const struct device_info *info, enum device_sensor s)
{
    return info->sensors[s].state == SENSOR_READ ? info->sensors[s].value : DEVICE_SENSOR_UNKNOWN;
}

/* As in the REST contract: "fan_pct". */
const char *device_sensor_name(enum device_sensor s);
/* Why it has no value, in words; state < SENSOR_STATES. */
const char *device_sensor_reason(enum device_sensor_state state);

/* As in the REST contract: "power_limit_w". */
const char               *device_setting_name(enum device_setting s);
enum device_setting_shape device_setting_shape_of(enum device_setting s);

static const uint64_t DEVICE_LARGEST_UNKNOWN = UINT64_MAX; /* device_memory.largest_free_bytes */

struct device_memory {
    uint64_t total_bytes;
    uint64_t free_bytes;
    uint64_t allocated_bytes; /* in use by this context, as requested */
    uint64_t reserved_bytes;  /* taken from the device for it */
    uint64_t peak_bytes;      /* greatest allocated_bytes so far */
    uint64_t largest_free_bytes;
};

struct msg_canary { uint32_t unused; };
struct msg_canary_reply { uint32_t unused; };

struct msg_device_info { struct shm_ref to; }; /* >= sizeof(struct device_info) */
struct msg_device_info_reply { uint32_t unused; };

struct msg_device_set {
    uint32_t                    setting; /* enum device_setting */
    struct device_setting_value value;
};
struct msg_device_set_reply { uint32_t unused; };

/* reset_peak, not 0: its peak counts from now on, so that it is what is allocated. */
struct msg_memory_info { uint32_t reset_peak; };
struct msg_memory_info_reply { struct device_memory memory; };

struct msg_mem_trim { uint32_t unused; };
struct msg_mem_trim_reply { uint32_t unused; };

/* bytes_max: UINT64_MAX: all of it. */
struct msg_mem_keep { uint64_t bytes_max; };
struct msg_mem_keep_reply { uint32_t unused; };

struct msg_memcheck { uint32_t unused; };
struct msg_memcheck_reply { uint32_t unused; };

struct msg_mem_alloc { uint64_t bytes; };
struct msg_mem_alloc_reply { uint64_t address; };

/* All zeros. `file`: the number of the descriptor sent before, whose memory it becomes (DEVICE_SHARES_FILE), of file_bytes bytes. */
struct msg_mem_alloc_shared { uint64_t bytes; uint64_t file; uint64_t file_bytes; };
struct msg_mem_alloc_shared_reply { uint64_t address; uint64_t offset; uint64_t taken; }; /* bytes of the mapping before it; in all */

struct msg_mem_export { uint64_t address; uint64_t file; }; /* its descriptor is sent under this number before the answer */
struct msg_mem_export_reply { uint32_t unused; };

struct msg_mem_free { uint64_t address; };
struct msg_mem_free_reply { uint32_t unused; };

/* bytes: what the device got back; 0: the memory of this allocation stays where it is. */
struct msg_mem_evict { uint64_t address; };
struct msg_mem_evict_reply { uint64_t bytes; };

struct msg_mem_restore { uint64_t address; uint64_t bytes; }; /* bytes: of the allocation, for the text of a failure */
struct msg_mem_restore_reply { uint32_t unused; };

/* `beside`: also the allocation at whose end the mapping ends. */
struct msg_host_map { uint64_t file; uint64_t bytes; uint64_t beside; };
struct msg_host_map_reply { uint32_t host; }; /* never 0 */

struct msg_host_unmap { uint32_t host; };
struct msg_host_unmap_reply { uint32_t unused; };

/* `stream`: 0 (default) or from STREAM_CREATE. `host`: 0 (the piece lies in staging memory) or from HOST_MAP. */
struct msg_mem_write { uint32_t stream; uint32_t host; uint64_t to; struct shm_ref from; };
struct msg_mem_write_reply { uint32_t unused; };

struct msg_mem_read { uint32_t stream; uint32_t host; uint64_t from; struct shm_ref to; };
struct msg_mem_read_reply { uint32_t unused; };

struct msg_mem_fill { uint32_t stream; uint32_t pattern_bytes; uint64_t to; uint64_t pattern; uint64_t count; };
struct msg_mem_fill_reply { uint32_t unused; };

struct msg_mem_copy { uint32_t stream; uint64_t to; uint64_t from; uint64_t bytes; };
struct msg_mem_copy_reply { uint32_t unused; };

/* An image larger than one piece comes in several calls: all but the last have more = 1. A new offset 0 drops the earlier pieces. plan =
 * 1: the image is a struct vendor_plan. */
struct msg_module_load { struct shm_ref piece; uint64_t offset; uint32_t more; uint32_t plan; struct shm_ref table_to; };
struct msg_module_load_reply { uint32_t module; uint64_t table_bytes; uint64_t workspace_bytes; };

struct msg_module_unload { uint32_t module; };
struct msg_module_unload_reply { uint32_t unused; };

/* `address`: where its texels are read and written, by MEM_WRITE, MEM_READ and MEM_COPY only; of linear memory its own. `surface`: 0: it is
 * none. */
struct msg_texture_create { struct texture_desc desc; };
struct msg_texture_create_reply { uint64_t address; uint64_t texture; uint64_t surface; };

struct msg_texture_destroy { uint64_t texture; };
struct msg_texture_destroy_reply { uint32_t unused; };

struct msg_stream_create { uint32_t unused; };
struct msg_stream_create_reply { uint32_t stream; }; /* never 0 */

struct msg_stream_destroy { uint32_t stream; };
struct msg_stream_destroy_reply { uint32_t unused; };

struct msg_best_block { uint32_t module; uint32_t kernel; uint32_t shared_bytes; };
struct msg_best_block_reply { uint32_t threads; };

struct msg_launch {
    uint64_t tag; /* the front-end's, unique in the worker's life: LAUNCH_CANCEL and TAKE_OUTPUT name the launch by it */
    uint32_t module;
    uint32_t kernel;
    uint32_t stream;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;
    uint32_t cooperative; /* 1: all blocks are resident at once and may wait for each other */
    uint32_t untimed;     /* 1: no events around it; its time is the worker's, from giving it to the device to seeing its end */
    uint64_t timeout_ms; /* of execution, counted from its start */
    uint32_t of_batch;   /* 1: timeout_ms is what its batch has left, which goes on while it waits for other streams' work */
    uint32_t params_bytes;
    unsigned char params[KERNEL_PARAM_BYTES_MAX]; /* last: only params_bytes of it travel */
};
struct msg_launch_reply {
    float    gpu_us;
    uint32_t output_bytes; /* printf text waiting for TAKE_OUTPUT */
};

struct msg_launch_cancel { uint64_t tag; };
struct msg_launch_cancel_reply { uint32_t cancelled; }; /* 0: too late. 1: the launch itself ends with CANCELLED */

struct msg_take_output { uint64_t tag; struct shm_ref to; };
struct msg_take_output_reply { uint64_t bytes; };

struct msg_stream_sync { uint32_t stream; uint32_t all; };
struct msg_stream_sync_reply { uint32_t unused; };

/* An event is a place below EVENTS_PER_SESSION_MAX and the number of its record, never used twice: a place serves one record after the
 * other. Waiting is for a record that was submitted before. */
struct event_name { uint32_t place; uint32_t number; };

struct msg_event_record { uint32_t stream; struct event_name event; };
struct msg_event_record_reply { uint32_t unused; };

struct msg_event_wait { uint32_t stream; struct event_name event; };
struct msg_event_wait_reply { uint32_t unused; };

struct msg_event_elapsed { struct event_name from, to; };
struct msg_event_elapsed_reply { float us; };

/* The list's entries are of that stream too. state.bytes >= sizeof(struct run_state). */
struct msg_command_list { uint32_t stream; uint32_t count; struct shm_ref list; struct shm_ref state; uint64_t timeout_ms; };
struct msg_command_list_reply { uint32_t unused; };

struct msg_graph_create { uint32_t count; struct shm_ref list; };
struct msg_graph_create_reply { uint32_t graph; }; /* never 0 */

/* The list's launches replace earlier ones from now on: the tag of each is the number of the place. count may be 0. */
struct msg_graph_run { uint32_t stream; uint32_t graph; uint32_t count; struct shm_ref list; struct shm_ref state; uint64_t timeout_ms; };
struct msg_graph_run_reply { uint32_t unused; };

struct msg_graph_destroy { uint32_t graph; };
struct msg_graph_destroy_reply { uint32_t unused; };

union message_body {
#define MESSAGE(NAME, call) struct msg_##call call;
#include "ipc/messages.def"
#undef MESSAGE
};

union message_reply {
#define MESSAGE(NAME, call) struct msg_##call##_reply call;
#include "ipc/messages.def"
#undef MESSAGE
};

struct command {
    uint64_t           call; /* the front-end's number of this call; returned in the completion */
    uint32_t           message;
    uint32_t           bytes; /* of body in use */
    union message_body body;
};

/* The sandbox of a worker since it reported READY. */
enum worker_sandbox {
    WORKER_SANDBOX_NONE,
    WORKER_SANDBOX_DENY_LIST,  /* system calls that lead out of the process are refused */
    WORKER_SANDBOX_ALLOW_LIST, /* all but the needed system calls are refused */
};

/* The phases of a worker's start, after its process. */
enum worker_start_phase { WORKER_START_DEVICE, WORKER_START_CANARY, WORKER_START_LOCK, WORKER_START_PHASES };

enum completion_kind {
    COMPLETION_STARTED, /* LAUNCH only: it has begun; DONE follows. Of a short launch that succeeds only DONE is told */
    COMPLETION_DONE,
};

struct completion {
    uint64_t call;
    uint32_t kind;
    uint32_t status; /* enum status */
    int32_t  cuda_result;
    uint32_t worker_session_lost; /* 1: this worker cannot serve any more */
    uint32_t sandbox;      /* call 0, READY: enum worker_sandbox */
    uint32_t start_ms[WORKER_START_PHASES]; /* ...: what took how long */
    uint64_t limit_max;    /* DEVICE_MEMORY_EXHAUSTED: total, used and requested bytes */
    uint64_t limit_used;
    uint64_t limit_requested;
    union message_reply reply;
    char     cuda_name[48]; /* from here on only where status is not OK: completion_bytes() */
    char     detail[208];
    struct problem_access access; /* and this only of KERNEL_FAULT of a device that knows it */
};

static_assert(sizeof(struct command) <= COMMAND_BYTES_MAX, "a command fits its ring slot");
static_assert(sizeof(struct completion) <= COMPLETION_BYTES_MAX, "a completion fits its ring slot");

const char *message_name(enum message m);
/* Bytes of the fixed part of that message's body; for LAUNCH without params. 0: no such message. */
size_t message_bytes(enum message m);
/* Bytes of it that travel. Of one that came in, what did not travel of `access` must be zero. */
size_t completion_bytes(const struct completion *c);
/* Whether a worker may answer with that status (worker_statuses.def). */
bool message_status_fits(uint32_t status);
/* Whether a body of that message may have `bytes` bytes. */
bool message_fits(uint32_t message, const void *body, size_t bytes);
