/* What every backend offers. A device lives in a worker process and is driven by that worker's one command thread:
 * no member is called by two threads at once, and all addresses are values of the worker's own address space or of the GPU.
 *
 * Order: operations on one stream happen in the order of the calls, as in CUDA; between streams nothing is promised
 * without events. Operations marked "async" return once they are queued; what they do wrong shows when an event recorded
 * behind them is queried, and from then on every call answers the same KERNEL_FAULT or DEVICE_ERROR: the context is lost
 * and the worker ends. */
#pragma once

#include "base/buf.h"
#include "base/problem.h"
#include "ipc/kernel_table.h"
#include "ipc/message.h"
#include "ipc/vendor_plan.h"

struct device;        /* one open device: a context */
struct device_module; /* code loaded into it */
struct device_stream;
struct device_event;
struct device_graph; /* launches prepared to be run many times */

/* A texture: its numbers as kernels take them, and where its texels are. */
struct device_texture {
    uint64_t address; /* for mem_write, mem_read and mem_copy; texels row after row. Kernels cannot use it, unless it is linear memory */
    uint64_t texture; /* cudaTextureObject_t, never 0 */
    uint64_t surface; /* cudaSurfaceObject_t; 0: it is none */
};

/* What the device writes behind something: device_ops.mark. */
struct device_mark {
    _Atomic uint32_t *word; /* in memory given to host_register(); NULL: nothing is written */
    uint32_t          value;
};

struct device_launch {
    const struct device_module *module;
    unsigned                    kernel; /* index into the module's kernel table */
    uint32_t                    grid[3];
    uint32_t                    block[3];
    uint32_t                    shared_bytes; /* dynamic */
    bool                 cooperative; /* all blocks run at once and may wait for each other, or LAUNCH_CONFIG_INVALID; not in graphs */
    const void          *params;      /* laid out as the kernel's table says; copied before launch() returns */
    uint32_t             params_bytes;
    uint64_t             deadline_ms; /* execution deadline; a backend that can stop a kernel stops it then (EXECUTION_TIMEOUT) */
    struct device_event *before,
        *after;              /* (optional; `before` only with `after`) recorded right before and right after it; not in graphs */
    struct device_mark mark; /* (optional, without `after`) written right after it, where device_ops.mark is there; not in graphs */
};

/* An allocation that other processes map, too. */
struct device_shared {
    uint64_t address;
    uint64_t offset; /* offset of the address in the shared mapping */
    uint64_t taken;  /* bytes of the shared mapping */
};

/* What a device that is reached through a driver needs, of which only its backend knows. */
struct device_driver {
    /* The build of the driver's library, "580.95.05", by which its system calls are known; "" where it does not tell. Borrowed. */
    const char *(*build)(struct device *d);
    const char *const *reads;        /* files and folders of the driver's own that a locked worker may read; NULL-terminated */
    const char *const *device_files; /* how the names of its files in /dev begin, NULL-terminated; a locked worker may use these */
};

/* Operations of all streams, since the device was opened. */
struct device_progress {
    uint64_t given, done;
};

struct device_ops {
    const char *name;

    /* True: "auto" does not look for its devices; somebody who names the backend wants them. */
    bool only_if_named;

    /* (optional) Takes a setting of the service, such as "libcuda" and a path, before the first count() and open(). False: this backend has
     * no setting of that name. The value may be NULL; it is borrowed for the process's life. Default: no settings. */
    bool (*set)(struct span name, const char *value);

    /* (optional) Once per process, before open() and before the process gives up opening files: opens the libraries that the settings ask
     * for. runs_kernels: callers' kernels will run here; else it only tells what the device has. True: the device makes code while it runs,
     * whose pages become executable after they were written. Default: it needs neither. */
    bool (*prepare)(bool runs_kernels);

    /* Whether recording two events is cheap compared to a launch: then every launch is timed and watched by itself. */
    bool events_are_cheap;
    /* How long after a fault an event_query() may still answer PENDING; 0: it tells at once. */
    uint32_t faults_late_ms;

    /* How many devices of this kind there are. 0, with the reason in *why, is no error: DEVICE_NOT_FOUND says that there is none, another
     * status that this cannot be told now. May be called before open. */
    unsigned (*count)(struct problem *why);

    /* (optional) Writes the identity of device `index` < count(), as info() has it in uuid; "" if the driver does not tell. It stays the
     * device's while indices change. May be called before open. Default: devices have no identity but their index. */
    void (*identify)(unsigned index, char out[DEVICE_UUID_BYTES]);

    /* Opens device `index` < count(). Slow (0.3 s on a GPU). On failure *out is untouched. */
    enum status (*open)(struct device **out, unsigned index, struct problem *why);
    /* Frees what is still allocated. NULL is a no-op. */
    void (*close)(struct device *d);

    /* (optional) Of device `index`; static. Behind prepare(), before open(). NULL, the default: the device has no driver, and once open makes
     * no system calls but those for memory and threads. */
    const struct device_driver *(*driver)(unsigned index);

    /* The canary fills and copies memory and runs no kernel: code would have to be compiled for each kind of device. */
    bool canary_copies;
    /* (optional) The canary's module, if it is not the PTX of worker/canary.c: the same kernel, gpurest_canary, with the same parameters. */
    struct span canary;

    /* Attributes are fixed; memory, clocks and sensors are read now. */
    enum status (*info)(struct device *d, struct device_info *out);
    enum status (*memory)(struct device *d, struct device_memory *out);
    /* device_memory.peak_bytes counts from what is allocated now. */
    void (*memory_reset_peak)(struct device *d);

    /* (optional) Changes a setting of the device itself, for all its users. NOT_IMPLEMENTED: this device does not have it. FEATURE_DISABLED:
     * the driver does not allow it to this user. INVALID_FIELD: not this value. INTERNAL: it failed. Default: no settings. */
    enum status (*configure)(struct device *d, enum device_setting s, const struct device_setting_value *v, struct problem *why);

    /* (optional) Makes host memory fast to copy from and to (pinned). Once, at start. Default: nothing. */
    enum status (*host_register)(struct device *d, void *base, size_t bytes);

    /* bytes > 0; the address is aligned to 256 bytes; the contents are undefined but never another session's.
     * DEVICE_MEMORY_EXHAUSTED leaves the device usable. Does not wait for running kernels. */
    enum status (*mem_alloc)(struct device *d, uint64_t bytes, uint64_t *address);
    /* Only what mem_alloc gave. Takes effect behind all work already queued on any stream. */
    enum status (*mem_free)(struct device *d, uint64_t address);

    /* (optional) As mem_alloc, but an allocation of its own, all zeros, that other processes may map: what they do to it harms only its
     * contents. DEVICE_SHARES_FILE: it is the memory of `file`, of file_bytes >= bytes whole pages, whose size cannot change; borrowed
     * for the call. DEVICE_SHARES_EXPORT: file is -1, and mem_export returns descriptors, which the caller owns, for processes that use
     * the driver; they keep the memory alive past mem_free. NOT_IMPLEMENTED: this device shares nothing (default). */
    enum status (*mem_alloc_shared)(struct device *d, uint64_t bytes, int file, uint64_t file_bytes, struct device_shared *out);
    enum status (*mem_export)(struct device *d, uint64_t address, int *fd);

    /* (optional, both or none) Makes more host memory fast to copy from and to, until host_detach. A failure changes nothing. */
    enum status (*host_attach)(struct device *d, void *base, size_t bytes);
    void (*host_detach)(struct device *d, void *base);

    /* (optional) Gives memory kept for later allocations back to the device. Does not wait for running kernels, so what they use may
     * stay. Default: nothing is kept. */
    enum status (*mem_trim)(struct device *d);

    /* (optional) From now on at most so many bytes of freed memory are kept for later allocations, as far as the driver's units allow; what is
     * more goes back to the device, also now. UINT64_MAX, the start: all. Default: nothing is kept. */
    enum status (*mem_keep)(struct device *d, uint64_t bytes_max);

    /* (optional, both or none) Gives the memory of an allocation back to the device, and has it again at the same address: the contents are lost,
     * and those of new memory afterwards. Nothing queued uses it, nor does anything between the two calls. *bytes: what the device got.
     * NOT_IMPLEMENTED: the memory of this allocation stays. DEVICE_MEMORY_EXHAUSTED of mem_restore changes nothing. Default: all stays. */
    enum status (*mem_evict)(struct device *d, uint64_t address, uint64_t *bytes);
    enum status (*mem_restore)(struct device *d, uint64_t address);

    /* (optional) Detects memory errors from now on, in modules that are loaded from now on: accesses beyond an allocation, to freed
     * memory, and reads of bytes that were never written. Each is a KERNEL_FAULT that names the thread and the line. Once, before the
     * first mem_alloc of the user. OUT_OF_MEMORY changes nothing. Default: the device cannot do it. */
    enum status (*memcheck)(struct device *d);

    /* Async. The host memory must stay untouched until an event recorded after the copy is done. The caller has checked the ranges
     * against its own allocations. */
    enum status (*mem_write)(struct device *d, struct device_stream *s, uint64_t to, const void *from, size_t bytes);
    enum status (*mem_read)(struct device *d, struct device_stream *s, void *to, uint64_t from, size_t bytes);
    enum status (*mem_copy)(struct device *d, struct device_stream *s, uint64_t to, uint64_t from, uint64_t bytes);
    /* Async. count elements of pattern_bytes (1, 2, 4 or 8), little-endian from the low end of pattern; `to` is a multiple of pattern_bytes. */
    enum status (*mem_fill)(struct device *d, struct device_stream *s, uint64_t to, uint64_t pattern, uint32_t pattern_bytes,
                            uint64_t count);

    /* (optional, both or none) The description was checked (texture_check). New texels are as those of mem_alloc. NOT_IMPLEMENTED,
     * DEVICE_MEMORY_EXHAUSTED; INVALID_FIELD: the device takes no such texture. Default: there are no textures. */
    enum status (*texture_create)(struct device *d, const struct texture_desc *t, struct device_texture *out, struct problem *why);
    /* Only what texture_create gave, by its `texture`; nothing queued uses it. Does not wait for running kernels. */
    enum status (*texture_destroy)(struct device *d, uint64_t texture);

    /* image: a cubin, fatbin or PTX text on cuda; PTX text on cpu (a NUL stands behind `bytes`); on both, several as ipc/linked_images.h has
     * them. MODULE_INVALID names what is wrong,
     * for PTX with its line. The image may be freed afterwards. */
    enum status (*module_load)(struct device *d, const char *image, size_t bytes, struct device_module **out, struct problem *why);
    /* (optional) As module_load, of a plan, which a library of the device's maker executes. Its launches are one block of one thread,
     * not cooperative, and take the address of *workspace_bytes that each has for itself. NOT_IMPLEMENTED: no such library is here, or
     * it does not support the plan. Default: no plans. */
    enum status (*vendor_load)(struct device *d, const struct vendor_plan *ask, struct device_module **out, uint64_t *workspace_bytes,
                               struct problem *why);
    /* No launch of it may be unfinished. NULL is a no-op. */
    void (*module_unload)(struct device *d, struct device_module *m);
    /* Borrowed until module_unload: kernels with their parameter layout, and globals. */
    const struct kernel_table *(*module_table)(const struct device_module *m);

    /* Async. LAUNCH_CONFIG_INVALID or ARGUMENT_MISMATCH when the device itself refuses: then nothing ran and the context lives on;
     * likewise NOT_IMPLEMENTED, when it cannot write l->mark. */
    enum status (*launch)(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why);
    /* The 1-dimensional block size of greatest occupancy. */
    enum status (*best_block)(struct device *d, const struct device_module *m, unsigned kernel, uint32_t shared_bytes, uint32_t *threads);

    /* A NULL stream is the device's default stream, which always exists. */
    enum status (*stream_create)(struct device *d, struct device_stream **out);
    void (*stream_destroy)(struct device *d, struct device_stream *s);

    /* An event is done once everything queued on its stream before the record is done. Recording again re-arms it. */
    enum status (*event_create)(struct device *d, struct device_event **out);
    void (*event_destroy)(struct device *d, struct device_event *e);
    enum status (*event_record)(struct device *d, struct device_stream *s, struct device_event *e);
    /* PENDING, OK, or how the context was lost (KERNEL_FAULT with cuda_result in *why, EXECUTION_TIMEOUT, DEVICE_ERROR). Never blocks. */
    enum status (*event_query)(struct device *d, struct device_event *e, struct problem *why);
    /* (optional) As event_query(), of an event recorded behind everything that is queued on the stream. Default: one is recorded. */
    enum status (*stream_query)(struct device *d, struct device_stream *s, struct problem *why);
    /* Async. Later work of the stream waits for the event's last record, on whichever stream. */
    enum status (*stream_wait)(struct device *d, struct device_stream *s, struct device_event *e);
    /* (optional) Async. Writes `value` to *word, in memory given to host_register(), once everything queued before is done. It is
     * readable even when the context was lost afterwards, where events tell nothing. NOT_IMPLEMENTED: this device cannot. Default:
     * events are queried; their results stay true for what was done before a fault. */
    enum status (*mark)(struct device *d, struct device_stream *s, struct device_mark mark);
    /* (optional) Of a device that does the work of all streams one after the other, in the order in which it was given: how many operations were
     * given so far, and how many of these are done. Default: streams run side by side. */
    void (*progress)(struct device *d, struct device_progress *out);
    /* Both done. In microseconds, may be 0. */
    enum status (*event_elapsed)(struct device *d, struct device_event *from, struct device_event *to, float *us);
    /* (optional) Waits up to `ns` for any queued work to make progress, instead of polling. Default: the caller spins and naps. */
    void (*wait_progress)(struct device *d, uint64_t ns);

    /* Appends what finished kernels printed since the last call, on all streams. Bounded by out->max; the rest is dropped. */
    enum status (*take_output)(struct device *d, struct device_stream *s, struct buf *out);

    /* A sequence of count >= 1 launches, checked and copied with their parameters. Refusals as of launch(). */
    enum status (*graph_create)(struct device *d, const struct device_launch *launches, uint32_t count, struct device_graph **out,
                                struct problem *why);
    /* Replaces the launch at `index`, for runs queued from now on. Refusals as of launch(): nothing is changed then. */
    enum status (*graph_set)(struct device *d, struct device_graph *g, uint32_t index, const struct device_launch *l, struct problem *why);
    /* Async. Runs all of them, in order. */
    enum status (*graph_run)(struct device *d, struct device_stream *s, struct device_graph *g, struct problem *why);
    /* No run of it may be unfinished, and its modules must still be loaded. NULL is a no-op. */
    void (*graph_destroy)(struct device *d, struct device_graph *g);

    /* (optional) Asks running kernels to stop soon. Default: the worker is killed at its deadline. */
    void (*cancel)(struct device *d);
};

/* The backend of that name ("cuda", "cpu"), checked for missing members; NULL if there is none. Static. */
const struct device_ops *device_ops_find(struct span name);
/* The i-th row of devices.def; NULL past the end. */
const struct device_ops *device_ops_at(unsigned i);
/* The name of the first required member that is NULL; NULL: all are there. */
const char *device_ops_missing(const struct device_ops *ops);

/* Offers a setting to every backend; ignored where none has it. Before the first count() and open(). The value is borrowed. */
void device_set(struct span name, const char *value);
