/* What the parts of the cuda backend share: the open device and its objects. Private to device/cuda/.
 * Everything belongs to the worker's one command thread, whose current context is the device's. */
#pragma once

#include <sys/queue.h>

#include "device/cuda/driver.h"
#include "device/cuda/vendor/cublaslt_abi.h"
#include "device/cuda/vendor/cusolver_abi.h"
#include "device/device.h"

struct cuda_plan;
struct cuda_texture;

/* Launches of a kernel and their marks as one graph, whose two nodes each launch changes (device/cuda/marked.c). Zeroed: not made yet. */
struct cuda_marked {
    cuda_graph                  graph;
    cuda_graph_exec             exec; /* NULL: none */
    cuda_graph_node             launch, mark;
    const struct device_module *module;  /* whose kernel the node has */
    unsigned                    kernel;  /* its index */
    unsigned                    others;  /* launches of other kernels since its last */
    bool                        refused; /* the driver makes no such graph */
};

struct device_stream {
    cuda_stream        handle;
    cuda_event         fence; /* recorded when a free must come after this stream's work */
    bool               busy;  /* work was queued since the stream was last seen idle */
    struct cuda_marked marked;
    LIST_ENTRY(device_stream) in_device;
};

struct device_event {
    cuda_event handle;
    LIST_ENTRY(device_event) in_device;
};

struct cuda_kernel {
    cuda_function function;
    uint32_t      shared_bytes_set; /* dynamic shared memory that the function currently allows */
    uint32_t      cluster[3];       /* blocks of each of its clusters, with which it was compiled; 0: it has none */
    bool          needs_clusters;   /* without a size in `cluster`: of one that each launch says, as none can here */
};

struct device_module {
    struct device      *device;
    cuda_module         handle;
    struct kernel_table table;
    struct cuda_kernel *kernels; /* [table.kernels_count], owned */
    struct cuda_plan   *plan;    /* not NULL: its kernel is a library's, and there is no handle. Owned */
    LIST_ENTRY(device_module) in_device;
};

struct cuda_allocation {
    uint64_t             address; /* 0: the place is free */
    uint64_t             bytes;   /* as asked for */
    uint64_t             taken;   /* of one that is mapped by itself: mapped bytes; 0: it is from the pool */
    cuda_share           share;   /* ... its memory */
    bool                 paged;   /* ... which may be evicted, and is not handed out */
    bool                 away;    /* it is evicted: there is no memory at the address */
    struct cuda_texture *texture; /* whose array it is, owned; NULL: memory */
};

/* A freed allocation whose memory may still be in use by queued work. */
struct cuda_pending_free {
    struct cuda_allocation allocation;
    cuda_event             done;
    STAILQ_ENTRY(cuda_pending_free) in_list;
};
STAILQ_HEAD(cuda_pending_frees, cuda_pending_free);

struct cuda_memory {
    cuda_pool                 pool;
    cuda_stream               stream;      /* allocations and frees only, so that it is always idle */
    cuda_stream               reaper;      /* waits for other streams on behalf of pending frees; runs nothing else */
    bool                      reaper_busy; /* it waits for work of a destroyed stream */
    struct cuda_allocation   *places;      /* open addressing, [room]; room is a power of two or 0 */
    size_t                    room;
    size_t                    count;
    uint64_t                  bytes; /* sum of the allocated bytes, as requested */
    uint64_t                  peak_bytes;
    uint64_t                  share_unit;     /* sizes of shared allocations are multiples of it; 0: the driver shares none */
    uint64_t                  page_unit;      /* sizes of paged allocations are multiples of it; 0: there are none */
    uint64_t                  shared_bytes;   /* taken by allocations that are mapped by themselves */
    uint64_t                  array_bytes;    /* of arrays, which are not of the pool */
    uint64_t                  keep_bytes_max; /* of freed memory that stays in the pool; UINT64_MAX: all */
    struct cuda_pending_frees pending;        /* done in the order of the list */
    struct cuda_pending_frees reusable;       /* with their events */
};

struct cuda_output {
    int file;   /* replaces standard output while the device is open; -1: no capture */
    int before; /* the original standard output; -1: none */
};

struct device {
    const struct cuda_driver *cu;
    cuda_ordinal              ordinal;
    cuda_context              context;
    uint64_t                  total_bytes;
    uint32_t                  max_block_threads;
    uint32_t                  max_block[3];
    uint32_t                  max_grid[3];
    uint32_t                  max_shared_bytes; /* per block, with opt-in */
    struct cuda_memory        memory;
    struct cuda_output        output;
    struct device_stream     *default_stream;
    LIST_HEAD(, device_stream) streams;
    LIST_HEAD(, device_event) events;
    LIST_HEAD(, device_module) modules;
    LIST_HEAD(, device_graph) graphs;
    LIST_HEAD(, cuda_texture) textures; /* that are not freed */
    bool                  may_print;    /* a module that calls printf was loaded */
    void                 *registered;   /* host memory; NULL: none */
    size_t                registered_bytes;
    uint64_t              registered_at; /* its address on the device; 0: none, or the driver writes no words */
    cublaslt_handle       blas;          /* NULL until the first product of the library */
    struct device_stream *capture;       /* runs nothing: launches for graphs are captured on it. NULL until the first one */
    struct device_module *scaler;        /* NULL until the first inverse transform of the library */
    cusolver_handle       solver;        /* these four: NULL until the first factorization of the library */
    cusolver_options      solver_options;
    cublas_handle         solver_blas;
    cuda_event            solver_done;     /* behind the last one: both handles work with memory of their own, on one stream at a time */
    struct device_module *solver_helpers;  /* NULL until one needs them */
    uint64_t              texel_addresses; /* given so far */
    struct problem        lost;            /* status OK while the context lives */
};

/* Translates a call's result; remembers a lost context. *why may be NULL; it is filled on failure. */
enum status cuda_check(struct device *d, cuda_result r, struct problem *why, const char *doing);
/* OK, or how the context was lost. */
enum status cuda_alive(const struct device *d, struct problem *why);

static inline struct device_stream *cuda_stream_of(const struct device *d, struct device_stream *s)
{
    return s ? s : d->default_stream;
}

/* Each _start is undone by its _stop, which accepts a zeroed member. */
enum status cuda_memory_start(struct device *d, struct problem *why);
void        cuda_memory_stop(struct device *d);
void        cuda_output_start(struct cuda_output *o);
void        cuda_output_stop(struct cuda_output *o);
void        cuda_streams_stop(struct device *d); /* and events */
/* True: nothing queued on any stream is unfinished. Never blocks. */
bool cuda_streams_idle(struct device *d);

/* ---- device/cuda/share.c ---- */
/* 0: this driver, or this device, hands out no descriptors of memory. */
uint64_t cuda_share_unit(const struct device *d);
/* Makes an allocation of a->bytes > 0 or more bytes, paged or shared as a->paged says, mapped and all zeros, and fills in the rest of *a. A failure
 * leaves nothing behind. */
enum status cuda_share_make(struct device *d, struct cuda_allocation *a);
/* Nothing queued uses it any more. Others that mapped it keep it. */
enum status cuda_share_drop(struct device *d, const struct cuda_allocation *a);
/* Of a paged one: its memory goes, and is there again, all zeros. A failure of the second changes nothing. */
enum status cuda_share_evict(struct device *d, struct cuda_allocation *a);
enum status cuda_share_restore(struct device *d, struct cuda_allocation *a);

/* From now on devices that are opened make large allocations paged, where the driver can. */
void cuda_paging_choose(bool on);
/* 0: no allocation is to be paged, or this driver has no functions for it. */
uint64_t cuda_page_unit(const struct device *d);

/* Enters an allocation, which cuda_mem_free() takes out. OUT_OF_MEMORY: there is no room. */
enum status cuda_memory_remember(struct device *d, const struct cuda_allocation *a);

/* ---- device/cuda/texture.c ---- */
/* Linear memory: of the host, or at an address of the device. */
struct cuda_linear {
    unsigned char *host; /* NULL: on the device */
    uint64_t       address;
};
/* Whether the address is one of an array's texels, which only the next function reaches. */
bool cuda_is_texels(uint64_t address);
/* Async. To or from linear memory, in whole texels. INTERNAL: it is no live texture's. */
enum status cuda_texels_copy(struct device *d, struct device_stream *s, uint64_t texels, const struct cuda_linear *other, uint64_t bytes,
                             bool write);
/* Nothing queued uses its array any more. */
enum status cuda_texture_release(struct device *d, struct cuda_texture *x);
/* Before the memory stops. */
void cuda_textures_stop(struct device *d);

/* ---- device/cuda/marked.c ---- */
/* Queues a checked launch with its mark, which has that address on the device. NOT_IMPLEMENTED: nothing is queued; they go one after the other. */
enum status cuda_marked_launch(struct device *d, struct device_stream *s, const struct device_launch *l, uint64_t mark_at,
                               struct problem *why);
/* The module goes, or of NULL the stream. */
void cuda_marked_forget(struct device *d, struct device_stream *s, const struct device_module *m);

/* A launch as a node of a graph, valid while its arguments are. `extra` has room for the five words of a parameter block. */
void cuda_describe_node(const struct device_launch *l, size_t *bytes, void *extra[5], struct cuda_kernel_node *out);
/* The address on the device of a word that device_ops.mark may write. 0: this driver writes none, or it is no such word. */
uint64_t cuda_mark_address(const struct device *d, const _Atomic uint32_t *word);

/* Checks what the driver would refuse less clearly; allows the kernel its shared memory. */
enum status cuda_launch_check(struct device *d, const struct device_launch *l, struct problem *why);

/* What a backend's functions of these names do, over the driver that it has loaded. */
unsigned    cuda_count_on(const struct cuda_driver *cu, struct problem *why);
enum status cuda_open_on(const struct cuda_driver *cu, struct device **out, unsigned index, struct problem *why);
void        cuda_identify_on(const struct cuda_driver *cu, unsigned index, char out[DEVICE_UUID_BYTES]);
/* The part of info() that asks nothing but the driver's table. */
enum status cuda_info_common(struct device *d, struct device_info *out);

/* The members of device_cuda, by part; those of device_hip, too, where it has them. */
void        cuda_close(struct device *d);
enum status cuda_info(struct device *d, struct device_info *out);
void        cuda_identify(unsigned index, char out[DEVICE_UUID_BYTES]);
enum status cuda_configure(struct device *d, enum device_setting s, const struct device_setting_value *v, struct problem *why);
enum status cuda_memory_info(struct device *d, struct device_memory *out);
void        cuda_memory_reset_peak(struct device *d);
enum status cuda_mem_alloc(struct device *d, uint64_t bytes, uint64_t *address);
enum status cuda_mem_alloc_shared(struct device *d, uint64_t bytes, int file, uint64_t file_bytes, struct device_shared *out);
enum status cuda_mem_export(struct device *d, uint64_t address, int *fd);
enum status cuda_mem_free(struct device *d, uint64_t address);
enum status cuda_mem_evict(struct device *d, uint64_t address, uint64_t *bytes);
enum status cuda_mem_restore(struct device *d, uint64_t address);
enum status cuda_mem_trim(struct device *d);
enum status cuda_mem_keep(struct device *d, uint64_t bytes_max);
enum status cuda_texture_create(struct device *d, const struct texture_desc *t, struct device_texture *out, struct problem *why);
enum status cuda_texture_destroy(struct device *d, uint64_t texture);
enum status cuda_host_register(struct device *d, void *base, size_t bytes);
enum status cuda_host_attach(struct device *d, void *base, size_t bytes);
void        cuda_host_detach(struct device *d, void *base);
enum status cuda_mem_write(struct device *d, struct device_stream *s, uint64_t to, const void *from, size_t bytes);
enum status cuda_mem_read(struct device *d, struct device_stream *s, void *to, uint64_t from, size_t bytes);
enum status cuda_mem_copy(struct device *d, struct device_stream *s, uint64_t to, uint64_t from, uint64_t bytes);
enum status cuda_mem_fill(struct device *d, struct device_stream *s, uint64_t to, uint64_t pattern, uint32_t pattern_bytes, uint64_t count);
enum status cuda_module_load(struct device *d, const char *image, size_t bytes, struct device_module **out, struct problem *why);
/* Has the driver link several images (ipc/linked_images.h) to a cubin, which is added to *cubin with a NUL. */
enum status cuda_link_images(struct device *d, struct span images, struct buf *cubin, struct problem *why);
/* The log of the driver's own compiler or linker, without its closing newlines. */
struct span cuda_log_text(const char *log);
/* An empty module, linked with the others. NULL: out of memory. */
struct device_module *cuda_module_new(struct device *d);
enum status cuda_vendor_load(struct device *d, const struct vendor_plan *ask, struct device_module **out, uint64_t *workspace_bytes,
                             struct problem *why);
void        cuda_module_unload(struct device *d, struct device_module *m);
const struct kernel_table *cuda_module_table(const struct device_module *m);
enum status                cuda_launch(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why);
/* Of a checked launch: the driver's result, not yet translated for launches. */
enum status cuda_launch_cooperative(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why);
enum status cuda_best_block(struct device *d, const struct device_module *m, unsigned kernel, uint32_t shared_bytes, uint32_t *threads);
enum status cuda_stream_create(struct device *d, struct device_stream **out);
void        cuda_stream_destroy(struct device *d, struct device_stream *s);
enum status cuda_event_create(struct device *d, struct device_event **out);
void        cuda_event_destroy(struct device *d, struct device_event *e);
enum status cuda_event_record(struct device *d, struct device_stream *s, struct device_event *e);
enum status cuda_event_query(struct device *d, struct device_event *e, struct problem *why);
enum status cuda_stream_query(struct device *d, struct device_stream *s, struct problem *why);
enum status cuda_event_elapsed(struct device *d, struct device_event *from, struct device_event *to, float *us);
enum status cuda_stream_wait(struct device *d, struct device_stream *s, struct device_event *e);
enum status cuda_mark(struct device *d, struct device_stream *s, struct device_mark mark);
enum status cuda_graph_create(struct device *d, const struct device_launch *launches, uint32_t count, struct device_graph **out,
                              struct problem *why);
enum status cuda_graph_set(struct device *d, struct device_graph *g, uint32_t index, const struct device_launch *l, struct problem *why);
enum status cuda_graph_run(struct device *d, struct device_stream *s, struct device_graph *g, struct problem *why);
void        cuda_graph_destroy(struct device *d, struct device_graph *g);
enum status cuda_take_output(struct device *d, struct device_stream *s, struct buf *out);
