/* Batches: operations that a thread queues instead of sending. Callers check buffers and streams. */
#ifndef GPUREST_SDK_BATCH_H
#define GPUREST_SDK_BATCH_H

#include "batch/frame.h"
#include "code/launch_body.h"

struct batch_made { /* a buffer that the batch allocates, or an earlier one that it frees */
    gpurest_buffer buffer;
    size_t         op;
    bool           freed;
};
struct batch_result {
    size_t                 op;
    gpurest_launch_result *launch; /* one of the two */
    float                 *elapsed_ms;
};

struct gpurest_batch {
    gpurest_session     *session; /* a reference */
    struct recording     recording;
    struct buf           ops; /* JSON objects, separated by commas */
    size_t               ops_count;
    uint64_t             timeout_ms;
    bool                 prints; /* the client's output callback gets what kernels print */
    size_t               segments_count, places_count;
    struct batch_made   *made, *freed;
    size_t               made_count, freed_count;
    struct batch_result *results;
    size_t               results_count;
    char                 default_module[NAME_BYTES]; /* of the first launch of a module: launches of the same need not name it. "": none */
    size_t              *launches;                   /* indices of the operations that are launches; programs count launches only */
    size_t               launches_count;
    uint32_t             serial, events; /* of its events */
    /* What follows is not cleared: most batches have little of it. */
    struct piece       segments[BATCH_SEGMENTS_MAX]; /* [segments_count], copies, owned by the batch */
    struct frame_place places[BATCH_SEGMENTS_MAX];   /* [places_count] */
};

/* One that no thread records; NULL: no memory. */
gpurest_batch *batch_create(gpurest_session *s);

/* src NULL: contents undefined. */
gpurest_status batch_alloc(gpurest_batch *b, gpurest_buffer *out, const void *src, size_t bytes);
gpurest_status batch_free(gpurest_batch *b, gpurest_buffer buffer, const struct buffer_entry *e);
gpurest_status batch_write(gpurest_batch *b, const struct buffer_entry *e, size_t offset, const void *src, size_t bytes);
gpurest_status batch_read(gpurest_batch *b, const struct buffer_entry *e, size_t offset, void *dst, size_t bytes);
gpurest_status batch_copy(gpurest_batch *b, const struct buffer_entry *to, size_t to_offset, const struct buffer_entry *from,
                          size_t from_offset, size_t bytes, const char *stream);
gpurest_status batch_fill(gpurest_batch *b, const struct buffer_entry *e, size_t offset, const char *type, uint32_t value, size_t bytes,
                          const char *stream);
gpurest_status batch_launch(gpurest_batch *b, const struct launch *l);
/* stream NULL: all streams. */
gpurest_status batch_sync(gpurest_batch *b, const char *stream);

/* Events by name; *out_ms is set when the batch is done. */
gpurest_status batch_event(gpurest_batch *b, const char *kind, const char *event, const char *stream);
gpurest_status batch_elapsed(gpurest_batch *b, const char *from, const char *to, float *out_ms);

/* How an operation that launches begins. */
#define BATCH_LAUNCH_BEGIN "{\"op\":\"launch\","
/* It is one launch, whose result nobody asked for. */
bool batch_is_launch(const gpurest_batch *b);
/* ---- calls/launch.c ---- sends such a batch as a launch of its own, and waits. Only the failure's op_index differs. */
gpurest_status batch_perform_launch(gpurest_batch *b);

/* Writes the whole message into `out`. */
gpurest_status batch_write_message(struct buf *out, gpurest_batch *b);
/* Ends a batch: on success sets buffers and results from the answer, on failure makes buffers that were not freed usable again. */
gpurest_status batch_settle(gpurest_batch *b, gpurest_status st, const struct json *answer, gpurest_op *op);
/* Sends it, waits, and settles it. op may be NULL. */
gpurest_status batch_perform(gpurest_batch *b, struct cancel *cancel, gpurest_op *op);
/* What gpurest_batch_submit and programs share: "segments": […]; "ops": […] and "timeout_ms"; how long the line may
 * be quiet; the buffers that it made and that are not the service's are void. */
void batch_write_segments(struct buf *out, const gpurest_batch *b);
void batch_write_ops(struct buf *out, const gpurest_batch *b);
int  batch_quiet_ms(const gpurest_batch *b);
void batch_void_made(gpurest_batch *b);
/* Voids the buffers that do not exist at the service. NULL is fine. */
void batch_destroy(gpurest_batch *b);

#endif
