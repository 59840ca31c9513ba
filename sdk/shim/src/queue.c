/* Operations of a device in the order of the program's calls, sent as one frame. Streams keep that order too, so that an operation is done when
 * its frame is. A full frame is under way while the next one is filled; at most one is. The longer that takes, the fuller the next one becomes: what
 * each costs by itself is paid while the device waits. */
#include <stdio.h>
#include <stdlib.h>

#include "batch/batch.h"
#include "shim.h"

enum { TIMES_MAX = 256 };

struct noted_time {
    uint64_t *at_ns; /* NULL: nobody wants it any more */
    float     before_end_ms;
    char      event[16];
};

struct queue {
    gpurest_batch    *batch;     /* NULL: nothing is queued */
    gpurest_op       *under_way; /* the frame before; NULL: it is done */
    size_t            bytes;     /* of uploads */
    size_t            reads;     /* bytes that come with the answer */
    uint64_t          frame;
    struct noted_time times[TIMES_MAX];
    size_t            times_count;
};

static struct queue *queue_of(struct gpu *g)
{
    if (!g->queue)
        g->queue = calloc(1, sizeof *g->queue);
    return g->queue;
}

/* An empty frame takes the place of the one that is being filled. */
static void begin_frame(struct queue *q)
{
    q->batch = NULL;
    q->bytes = q->reads = q->times_count = 0;
    q->frame++;
}

void queue_drop(struct gpu *g)
{
    if (!g->queue)
        return;
    if (g->queue->under_way) {
        gpurest_op_cancel(g->queue->under_way);
        gpurest_op_wait(g->queue->under_way, -1);
        gpurest_op_free(g->queue->under_way);
        g->queue->under_way = NULL;
    }
    batch_destroy(g->queue->batch);
    begin_frame(g->queue);
}

/* ---- sending ---- */

/* What came after the failed operation was not done. */
static void frame_failed(struct gpu *g)
{
    gpu_failed(g);
    if (!g->sticky)
        gpu_tell_failure(g);
    gpu_fail(g, result_of_failure());
}

/* Waits for the frame before. */
static CUresult await_frame(struct gpu *g)
{
    gpurest_op *op = g->queue->under_way;

    if (!op)
        return g->sticky;
    if (gpurest_op_wait(op, -1))
        frame_failed(g);
    gpurest_op_free(op);
    g->queue->under_way = NULL;
    return g->sticky;
}

/* A full frame: the program goes on while the service does it. One whose answer brings bytes or times is waited for: the bytes' place may be gone
 * later, and times are told by when the answer comes. */
static CUresult send_full(struct gpu *g)
{
    struct queue *q = g->queue;

    if (q->times_count || q->reads)
        return queue_flush(g);
    if (await_frame(g))
        return g->sticky;
    if (gpurest_batch_submit(q->batch, &q->under_way)) {
        q->under_way = NULL;
        frame_failed(g);
    }
    begin_frame(q);
    return g->sticky;
}

static bool is_full(const struct queue *q, size_t bytes)
{
    const gpurest_batch *b = q->batch;
    size_t               all = b ? b->ops.bytes + q->bytes + bytes : 0;

    if (!b || b->ops_count == 0)
        return false;
    if (b->segments_count == BATCH_SEGMENTS_MAX || b->places_count == BATCH_SEGMENTS_MAX || q->times_count == TIMES_MAX)
        return true;
    if (b->ops_count < QUEUE_OPS_MAX && all <= QUEUE_BYTES_MAX)
        return false;
    return b->ops_count >= QUEUE_OPS_BUSY_MAX || all > QUEUE_BYTES_BUSY_MAX || gpurest_op_done(q->under_way);
}

gpurest_batch *queue_begin(struct gpu *g, size_t bytes, CUresult *why)
{
    struct queue *q = queue_of(g);

    *why = q ? gpu_session(g) : CUDA_ERROR_OUT_OF_MEMORY;
    if (!*why && is_full(q, bytes))
        *why = send_full(g);
    if (*why)
        return NULL;
    if (!q->batch) {
        q->batch = batch_create(g->session);
        if (!q->batch) {
            *why = CUDA_ERROR_OUT_OF_MEMORY;
            return NULL;
        }
        q->batch->prints = true;
        q->batch->timeout_ms = FRAME_TIMEOUT_MS;
    }
    q->bytes += bytes;
    return q->batch;
}

CUresult queue_end(struct gpu *g, gpurest_status st)
{
    return st ? gpu_failed(g) : CUDA_SUCCESS;
}

CUresult queue_note_read(struct gpu *g, size_t bytes)
{
    g->queue->reads += bytes;
    return g->queue->reads > READ_IN_FRAME_BYTES_MAX ? queue_flush(g) : CUDA_SUCCESS;
}

uint64_t queue_frame(const struct gpu *g)
{
    return g->queue ? g->queue->frame : 0;
}

bool queue_has(const struct gpu *g, uint64_t frame)
{
    return frame + (g->queue && g->queue->under_way ? 1 : 0) >= queue_frame(g);
}

/* ---- times ---- */

CUresult queue_note_time(struct gpu *g, uint64_t *at_ns)
{
    CUresult       r;
    gpurest_batch *b = queue_begin(g, 0, &r);
    struct queue  *q = g->queue;
    gpurest_status st;

    if (!b)
        return r;
    snprintf(q->times[q->times_count].event, sizeof q->times[0].event, "t%zu", q->times_count);
    st = batch_event(b, "record", q->times[q->times_count].event, "");
    if (!st)
        q->times[q->times_count++].at_ns = at_ns;
    return queue_end(g, st);
}

void queue_forget_time(struct gpu *g, const uint64_t *at_ns)
{
    for (size_t i = 0; g->queue && i < g->queue->times_count; i++)
        if (g->queue->times[i].at_ns == at_ns)
            g->queue->times[i].at_ns = NULL;
}

/* The device tells what lies between two of its moments. The last one of the frame is set on this process's clock when the answer comes, so that
 * times of several frames can be compared. */
static gpurest_status ask_for_times(struct queue *q)
{
    gpurest_status st = q->times_count ? batch_event(q->batch, "record", "end", "") : GPUREST_OK;

    for (size_t i = 0; i < q->times_count && !st; i++)
        st = batch_elapsed(q->batch, q->times[i].event, "end", &q->times[i].before_end_ms);
    return st;
}

static void set_times(struct queue *q)
{
    uint64_t end = now_ns();

    for (size_t i = 0; i < q->times_count; i++)
        if (q->times[i].at_ns)
            *q->times[i].at_ns = end - (uint64_t)((double)q->times[i].before_end_ms * 1e6);
}

/* The service answers a launch on the thread that received it, and changes threads twice for a batch. A launch and a wait took 254 us as a
 * batch, and 47 so (tenth percentiles, the middle of nine runs in turns, cpu device, load 12, 2026-11-28). */
static gpurest_status perform(gpurest_batch *b)
{
    return batch_is_launch(b) ? batch_perform_launch(b) : batch_perform(b, NULL, NULL);
}

CUresult queue_flush(struct gpu *g)
{
    struct queue  *q = g->queue;
    gpurest_status st;

    if (g->sticky || !q || await_frame(g) || !q->batch)
        return g->sticky;
    if (context_current())
        gpu_wait_as(context_current()->flags);
    st = ask_for_times(q);
    if (!st)
        st = perform(q->batch);
    if (!st)
        set_times(q);
    else
        frame_failed(g);
    queue_drop(g);
    return g->sticky;
}

size_t queue_end_of_process(struct gpu *g)
{
    struct queue *q = g->queue;

    if (g->sticky || !q || await_frame(g) || !q->batch)
        return 0;
    if (q->reads || q->times_count)
        return q->batch->ops_count;
    queue_flush(g);
    return 0;
}
