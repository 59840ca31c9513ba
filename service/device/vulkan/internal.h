/* What the files of the vulkan backend share. One thread calls all of it. */
#pragma once

#include <sys/queue.h>

#include "device/device.h"
#include "device/vulkan/bounds.h"
#include "device/vulkan/loader.h"
#include "device/vulkan/spirv.h"

/* An allocation: a buffer with memory of its own. */
struct vulkan_memory {
    uint64_t       address;
    uint64_t       bytes;    /* as asked for */
    uint64_t       reserved; /* of the device's memory */
    uint64_t       shift;    /* of the address in the buffer */
    VkBuffer       buffer;
    VkDeviceMemory memory;
};

/* What is destroyed once all submissions up to `ticket` are done. */
struct garbage {
    STAILQ_ENTRY(garbage) in_list;
    uint64_t             ticket;
    struct vulkan_memory memory;   /* no buffer: none */
    VkPipeline           pipeline; /* null: none */
    VkCommandBuffer      commands; /* null: none */
    VkQueryPool          query;    /* null: none */
};

/* Host-visible memory that a transfer passes through. */
struct staging {
    struct staging *next;
    VkBuffer        buffer;
    VkDeviceMemory  memory;
    unsigned char  *mapped;
    uint64_t        bytes;
    bool            to_device; /* else it is read from */
};

/* A submission in flight. */
struct job {
    STAILQ_ENTRY(job) in_list;
    uint64_t        value;  /* of its stream's semaphore, when it is done */
    uint64_t        ticket; /* its number among all submissions */
    VkCommandBuffer commands;
    bool            borrowed; /* the commands are a graph's */
    struct staging *staging;  /* NULL: none */
    void           *land_to;  /* NULL: nothing is read */
    size_t          land_bytes;
};
STAILQ_HEAD(jobs, job);

struct stream_wait {
    VkSemaphore semaphore;
    uint64_t    value;
};

enum { STREAM_WAITS_MAX = 8 };

struct device_stream {
    LIST_ENTRY(device_stream) in_device;
    VkQueue            queue;
    VkSemaphore        semaphore;
    uint64_t           submitted, done; /* values of the semaphore */
    struct jobs        in_flight;
    struct jobs        idle;                    /* with commands to be recorded again */
    struct stream_wait waits[STREAM_WAITS_MAX]; /* of the next submission */
    uint32_t           waits_count;
    bool               leaving; /* destroyed by its owner */
};

struct device_event {
    LIST_ENTRY(device_event) in_device;
    VkQueryPool           query;  /* one time stamp */
    struct device_stream *stream; /* of the last record, until that is done; NULL: it is, or there was none */
    uint64_t              value;
    bool                  recorded;
    bool                  unrecorded; /* the last record failed */
};

struct vulkan_pipeline {
    VkPipeline pipeline;
    uint32_t   block[3];
};

struct vulkan_kernel {
    struct spirv_kernel    reflected;
    VkDescriptorSetLayout  set; /* null: the kernel takes no buffers */
    VkPipelineLayout       layout;
    struct vulkan_pipeline pipelines[PIPELINES_PER_KERNEL_MAX];
    uint32_t               pipelines_count;
    uint32_t               pipelines_next; /* the place that the next one takes */
};

struct device_module {
    LIST_ENTRY(device_module) in_device;
    struct spirv_module  *code;
    VkShaderModule        shader;
    struct vulkan_kernel *kernels; /* [table.kernels_count] */
    struct kernel_table   table;
};

struct device {
    struct vulkan_functions          vk;
    const struct vulkan_offer       *offer;
    unsigned                         index;
    VkDevice                         device;
    VkCommandPool                    pool;
    VkQueue                          queues[VULKAN_QUEUES_MAX];
    unsigned                         queues_used;
    VkPhysicalDeviceProperties       properties;
    VkPhysicalDeviceMemoryProperties heaps;
    struct spirv_features            features;
    struct device_info               info;      /* all but memory; fixed */
    bool                             addresses; /* buffers have device addresses */
    uint32_t                         push_descriptors_max;
    uint64_t                         allocation_bytes_max;
    unsigned                         float_modes;                             /* bits of SPIRV_FLOAT_MODES */
    uint32_t                         device_type, upload_type, readback_type; /* of memory */

    /* the caller's objects that are not destroyed yet: close() frees them */
    LIST_HEAD(, device_stream) streams;
    LIST_HEAD(, device_event) events;
    LIST_HEAD(, device_module) modules;
    LIST_HEAD(, device_graph) graphs;
    struct device_stream *main_stream;
    uint64_t              tickets;          /* submissions so far */
    uint64_t              look_for_loss_at; /* while work is under way */
    bool                  recording;        /* a graph, for the next submission */
    STAILQ_HEAD(, garbage) garbage;
    struct staging *uploads, *readbacks; /* idle */
    unsigned        idle_pieces;

    struct vulkan_memory *allocations; /* sorted by address */
    size_t                allocations_count, allocations_room;
    uint64_t              allocated_bytes, reserved_bytes, peak_bytes;
    uint64_t              next_address; /* where the device has no addresses */
    uint64_t              changes;      /* of what recorded commands refer to: those recorded before may be stale */

    enum status    lost; /* OK: it is not */
    struct problem lost_why;
};

/* ---- vulkan.c ---- */
/* OK, or how the device was lost. */
enum status vulkan_alive(struct device *d, struct problem *why);
/* Translates a result of the driver; a lost device stays lost. */
enum status vulkan_check(struct device *d, VkResult r, struct problem *why, const char *doing);

/* ---- info.c ---- */
void vulkan_identity(const struct vulkan_offer *o, char out[DEVICE_UUID_BYTES]);
void vulkan_info_read(struct device *d);
/* Asks for what the device offers, and fills d->features by what it grants. The chain's structs are the caller's. */
struct vulkan_wanted {
    VkPhysicalDeviceFeatures2              base;
    VkPhysicalDeviceVulkan11Features       v11;
    VkPhysicalDeviceVulkan12Features       v12;
    VkPhysicalDeviceRobustness2FeaturesEXT robustness2;
};
void vulkan_features_choose(struct device *d, struct vulkan_wanted *w);

/* ---- memory.c ---- */
enum status vulkan_memory_start(struct device *d, struct problem *why);
void        vulkan_memory_finish(struct device *d);
enum status vulkan_mem_alloc(struct device *d, uint64_t bytes, uint64_t *address);
enum status vulkan_mem_free(struct device *d, uint64_t address);
enum status vulkan_memory(struct device *d, struct device_memory *out);
void        vulkan_memory_reset_peak(struct device *d);
/* The allocation that holds the address; NULL: none. Borrowed until the next allocation or free. */
const struct vulkan_memory *vulkan_memory_at(const struct device *d, uint64_t address);
/* A buffer of the device that no address leads to, for the next submission; garbage afterwards. */
enum status vulkan_memory_scratch(struct device *d, uint64_t bytes, struct vulkan_memory *out);
/* Destroys what it names behind all submissions so far. Without host memory it waits for them. */
void vulkan_discard(struct device *d, struct garbage what);
/* A piece with at least so many bytes; to_device: else it is read from. */
enum status vulkan_staging_take(struct device *d, uint64_t bytes, bool to_device, struct staging **out);
void        vulkan_staging_give(struct device *d, struct staging *s);

/* ---- transfer.c ---- */
enum status vulkan_mem_write(struct device *d, struct device_stream *s, uint64_t to, const void *from, size_t bytes);
enum status vulkan_mem_read(struct device *d, struct device_stream *s, void *to, uint64_t from, size_t bytes);
enum status vulkan_mem_copy(struct device *d, struct device_stream *s, uint64_t to, uint64_t from, uint64_t bytes);
enum status vulkan_mem_fill(struct device *d, struct device_stream *s, uint64_t to, uint64_t pattern, uint32_t pattern_bytes,
                            uint64_t count);

/* ---- stream.c ---- */
enum status vulkan_stream_create(struct device *d, struct device_stream **out);
void        vulkan_stream_destroy(struct device *d, struct device_stream *s);
/* Frees all streams; nothing runs any more. */
void vulkan_streams_finish(struct device *d);
/* A NULL stream is the main one. */
struct device_stream *vulkan_stream(struct device *d, struct device_stream *s);
/* A job whose commands are being recorded, behind a barrier for all before. */
enum status vulkan_job_begin(struct device *d, struct device_stream *s, struct job **out);
/* Gives it to the device, or, on failure, back. With st it is only given back, and st returned. */
enum status vulkan_job_end(struct device *d, struct device_stream *s, struct job *j, enum status st);
/* Submits recorded commands of a graph, which stay its own. */
enum status vulkan_job_submit(struct device *d, struct device_stream *s, VkCommandBuffer commands);
/* What was written by transfers and kernels is seen by both from here on. */
void vulkan_barrier(struct device *d, VkCommandBuffer commands);
/* Looks which jobs are done, and lands what they read. */
enum status vulkan_stream_reap(struct device *d, struct device_stream *s, struct problem *why);
/* The least ticket that may not be done; UINT64_MAX: all are. */
uint64_t vulkan_oldest_ticket(struct device *d);
/* The time stamp of the event is taken by these commands. */
void vulkan_event_stamp(struct device *d, VkCommandBuffer commands, struct device_event *e);
/* ... which are the stream's last submission. The event is done with the stream's submission `value`. */
void        vulkan_event_arm(struct device_event *e, struct device_stream *s, uint64_t value);
enum status vulkan_event_create(struct device *d, struct device_event **out);
void        vulkan_event_destroy(struct device *d, struct device_event *e);
enum status vulkan_event_record(struct device *d, struct device_stream *s, struct device_event *e);
enum status vulkan_event_query(struct device *d, struct device_event *e, struct problem *why);
enum status vulkan_event_elapsed(struct device *d, struct device_event *from, struct device_event *to, float *us);
enum status vulkan_stream_wait(struct device *d, struct device_stream *s, struct device_event *e);
void        vulkan_wait_progress(struct device *d, uint64_t ns);

/* ---- module.c ---- */
enum status vulkan_module_load(struct device *d, const char *image, size_t bytes, struct device_module **out, struct problem *why);
void        vulkan_module_unload(struct device *d, struct device_module *m);
const struct kernel_table *vulkan_module_table(const struct device_module *m);
/* The pipeline of a workgroup size that was checked. */
enum status vulkan_pipeline(struct device *d, struct device_module *m, unsigned kernel, const uint32_t block[3], VkPipeline *out,
                            struct problem *why);
/* Whether the device can run workgroups of this size of the kernel: LAUNCH_CONFIG_INVALID. */
enum status vulkan_block_check(const struct device *d, const struct device_module *m, unsigned kernel, const uint32_t block[3],
                               struct problem *why);

/* ---- launch.c ---- */
enum status vulkan_launch(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why);
enum status vulkan_best_block(struct device *d, const struct device_module *m, unsigned kernel, uint32_t shared_bytes, uint32_t *threads);
/* Whether the device takes the launch, whatever its buffers are. */
enum status vulkan_launch_check(struct device *d, const struct device_launch *l, struct problem *why);
/* Records a launch that was checked. */
enum status vulkan_launch_record(struct device *d, VkCommandBuffer commands, const struct device_launch *l, struct problem *why);

/* ---- graph.c ---- */
enum status vulkan_graph_create(struct device *d, const struct device_launch *launches, uint32_t count, struct device_graph **out,
                                struct problem *why);
enum status vulkan_graph_set(struct device *d, struct device_graph *g, uint32_t index, const struct device_launch *l, struct problem *why);
enum status vulkan_graph_run(struct device *d, struct device_stream *s, struct device_graph *g, struct problem *why);
void        vulkan_graph_destroy(struct device *d, struct device_graph *g);
