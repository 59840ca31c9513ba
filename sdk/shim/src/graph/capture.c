/* Captures: what is called on a stream becomes nodes of a graph. An event that is recorded there takes the place in the graph along, and a stream
 * that waits for it joins the capture. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

enum { MODE_GLOBAL = 0, MODE_RELAXED = 2, CAPTURE_NONE = 0, CAPTURE_ACTIVE = 1, CAPTURE_INVALID = 2, UPDATE_ADD = 0, UPDATE_SET = 1 };

struct capture {
    uint64_t        number;
    struct graph   *graph;
    CUstream        origin;
    int             mode;
    pthread_t       thread;
    bool            invalid, into_theirs; /* into_theirs: the graph is the program's */
    struct capture *next;
};

static struct capture *captures;
static uint64_t        captures_made;

static _Thread_local int thread_mode = MODE_GLOBAL;

static struct capture *find(uint64_t number)
{
    struct capture *c = number ? captures : NULL;

    while (c && c->number != number)
        c = c->next;
    return c;
}

bool capture_on(CUstream stream)
{
    const struct captured *s = stream_captured(stream);

    return s && s->capture;
}

bool captures_active(void)
{
    return captures != NULL;
}

/* ---- places in a graph ---- */

static void end(struct capture *c);

/* A capture ends with the stream that it began on. Another one may go: what it has done and nobody has joined is found at the end. */
void captured_forget(struct captured *p)
{
    struct capture *c = find(p->capture);

    if (c && stream_captured(c->origin) == p) {
        if (!c->into_theirs)
            graph_destroy(c->graph);
        end(c);
    }
    free(p->last);
    free(p->edges);
    *p = (struct captured){0};
}

static CUresult set_last(struct captured *p, const CUgraphNode *nodes, size_t count)
{
    CUgraphNode *copy = malloc((count + 1) * sizeof *copy);

    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (count)
        memcpy(copy, nodes, count * sizeof *copy);
    free(p->last);
    p->last = copy;
    p->last_count = count;
    return CUDA_SUCCESS;
}

static bool has(const struct captured *p, CUgraphNode node)
{
    for (size_t i = 0; i < p->last_count; i++)
        if (p->last[i] == node)
            return true;
    return false;
}

static CUresult add_last(struct captured *p, const CUgraphNode *nodes, size_t count)
{
    CUgraphNode *larger = realloc(p->last, (p->last_count + count + 1) * sizeof *larger);

    if (!larger)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->last = larger;
    for (size_t i = 0; i < count; i++)
        if (!has(p, nodes[i]))
            p->last[p->last_count++] = nodes[i];
    return CUDA_SUCCESS;
}

/* ---- during a capture ---- */

CUresult capture_work(CUstream stream, struct work *work)
{
    struct captured *s = stream_captured(stream);
    struct capture  *c = find(s->capture);
    CUgraphNode      node;
    CUresult         r;

    if (!c || c->invalid) {
        work_finish(work);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    r = graph_add(c->graph, s->last, s->last_count, work, &node);
    return r ? r : set_last(s, &node, 1);
}

CUresult capture_copy(CUstream stream, const CUDA_MEMCPY3D *copy)
{
    struct work w;
    CUresult    r = work_of_copy(copy, &w);

    return r ? r : capture_work(stream, &w);
}

CUresult capture_bytes(CUstream stream, uint64_t to, CUmemorytype to_type, uint64_t from, CUmemorytype from_type, size_t bytes)
{
    CUDA_MEMCPY3D c = {.dstMemoryType = to_type,
                       .dstDevice = to,
                       .dstHost = (void *)(uintptr_t)to,
                       .srcMemoryType = from_type,
                       .srcDevice = from,
                       .srcHost = (const void *)(uintptr_t)from,
                       .WidthInBytes = bytes,
                       .Height = 1,
                       .Depth = 1};

    return capture_copy(stream, &c);
}

CUresult capture_fill(CUstream stream, const CUDA_MEMSET_NODE_PARAMS *fill)
{
    struct work w;
    CUresult    r = work_of_fill(fill, &w);

    return r ? r : capture_work(stream, &w);
}

CUresult capture_launch(CUstream stream, CUfunction function, const gpurest_launch_config *config, void **params, void **extra)
{
    struct work w;
    CUresult    r = work_of_kernel(function, config, params, extra, &w);

    return r ? r : capture_work(stream, &w);
}

CUresult capture_host(CUstream stream, CUhostFn fn, void *data)
{
    CUDA_HOST_NODE_PARAMS p = {fn, data};
    struct work           w;
    CUresult              r = work_of_host(&p, &w);

    return r ? r : capture_work(stream, &w);
}

CUresult capture_allocation(CUstream stream, size_t bytes, CUdeviceptr *out)
{
    const struct capture *c = find(stream_captured(stream)->capture);
    struct work           w;
    CUdeviceptr           address;
    CUresult              r = !c || c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                              : !out           ? CUDA_ERROR_INVALID_VALUE
                                               : work_of_allocation(c->graph, bytes ? bytes : 1, &w);

    if (r)
        return r;
    address = graph_memory_address(w.of.memory);
    r = capture_work(stream, &w);
    if (!r)
        *out = address;
    return r;
}

CUresult capture_free(CUstream stream, CUdeviceptr address)
{
    const struct capture *c = find(stream_captured(stream)->capture);
    struct work           w;
    CUresult              r = c && !c->invalid ? work_of_free(c->graph, address, &w) : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

    return r ? r : capture_work(stream, &w);
}

CUresult capture_record(CUstream stream, struct captured *event)
{
    const struct captured *s = stream_captured(stream);

    event->capture = s->capture;
    return set_last(event, s->last, s->last_count);
}

/* An event of a capture brings the stream into it; one of outside cannot be waited for within. */
CUresult capture_wait(CUstream stream, const struct captured *event)
{
    struct captured *s = stream_captured(stream);

    if (!find(event->capture))
        return event->capture ? CUDA_ERROR_CAPTURED_EVENT : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    if (!s || (s->capture && s->capture != event->capture))
        return s ? CUDA_ERROR_STREAM_CAPTURE_MERGE : CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    s->capture = event->capture;
    return add_last(s, event->last, event->last_count);
}

CUresult capture_refuse(CUstream stream)
{
    struct capture *c = find(stream_captured(stream)->capture);

    if (c)
        c->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult captures_implicit(void)
{
    for (struct capture *c = captures; c; c = c->next) {
        unsigned flags = 0;

        if (c->mode != MODE_RELAXED && shim_cuStreamGetFlags(c->origin, &flags) == CUDA_SUCCESS && flags == 0) {
            c->invalid = true;
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return CUDA_SUCCESS;
}

/* ---- begin and end ---- */

static CUresult begin(CUstream stream, int mode, struct graph *theirs, const CUgraphNode *before, size_t before_count)
{
    CUresult         r = stream_check(stream);
    struct captured *s = r ? NULL : stream_captured(stream);
    struct capture  *c;

    if (r || mode < MODE_GLOBAL || mode > MODE_RELAXED)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (!s) /* the default streams */
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    c = calloc(1, sizeof *c);
    if (!c || set_last(s, before, before_count)) {
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *c = (struct capture){.number = ++captures_made,
                          .graph = theirs ? theirs : graph_make(),
                          .origin = stream,
                          .mode = mode,
                          .thread = pthread_self(),
                          .into_theirs = theirs != NULL,
                          .next = captures};
    if (!c->graph) {
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    captures = c;
    s->capture = c->number;
    return CUDA_SUCCESS;
}

CUresult shim_cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    return begin(hStream, mode, NULL, NULL, 0);
}

CUresult shim_cuStreamBeginCapture(CUstream hStream)
{
    return begin(hStream, MODE_GLOBAL, NULL, NULL, 0);
}

CUresult shim_cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                          const CUgraphEdgeData *dependencyData, size_t numDependencies, CUstreamCaptureMode mode)
{
    struct graph *g = graph_of(hGraph);

    if (!g || (numDependencies && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < numDependencies; i++)
        if (!node_of(dependencies[i]) || node_of(dependencies[i])->graph != g)
            return CUDA_ERROR_INVALID_VALUE;
    return dependencyData ? CUDA_ERROR_NOT_SUPPORTED : begin(hStream, mode, g, dependencies, numDependencies);
}

/* Every node that others do not follow must be where the origin has come to. */
static bool is_joined(const struct capture *c, const struct captured *origin)
{
    for (size_t i = 0; i < c->graph->count; i++)
        c->graph->nodes[i]->place = 0; /* 1: something follows */
    for (size_t i = 0; i < c->graph->count; i++)
        for (size_t k = 0; k < c->graph->nodes[i]->before_count; k++)
            c->graph->nodes[i]->before[k]->place = 1;
    for (size_t i = 0; i < c->graph->count; i++)
        if (!c->graph->nodes[i]->place && !has(origin, c->graph->nodes[i]->handle))
            return false;
    return true;
}

static void leave(void *handle, void *object, void *arg)
{
    struct captured *s = stream_captured(handle);

    (void)object;
    if (s->capture == *(const uint64_t *)arg) {
        free(s->last);
        free(s->edges);
        *s = (struct captured){0};
    }
}

static void end(struct capture *c)
{
    struct capture **link = &captures;

    while (*link != c)
        link = &(*link)->next;
    *link = c->next;
    handle_each(HANDLE_STREAM, leave, &c->number);
    free(c);
}

CUresult shim_cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    CUresult         r = stream_check(hStream);
    struct captured *s = r ? NULL : stream_captured(hStream);
    struct capture  *c = s ? find(s->capture) : NULL;

    if (r || !c)
        return r ? r : CUDA_ERROR_ILLEGAL_STATE;
    if (!phGraph)
        return CUDA_ERROR_INVALID_VALUE;
    if (c->origin != hStream)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (c->mode != MODE_RELAXED && !pthread_equal(c->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    r = c->invalid                          ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
        : is_joined(c, s) || c->into_theirs ? CUDA_SUCCESS
                                            : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    *phGraph = r ? NULL : c->graph->handle;
    if (r && !c->into_theirs)
        graph_destroy(c->graph);
    end(c);
    return r;
}

/* ---- what is asked ---- */

/* Programs read an element for each dependency; those here are plain, which is 0. */
static CUresult plain_edges(struct captured *s, const CUgraphEdgeData **out)
{
    CUgraphEdgeData *edges = calloc(s->last_count + 1, sizeof *edges);

    if (!edges)
        return CUDA_ERROR_OUT_OF_MEMORY;
    free(s->edges);
    *out = s->edges = edges;
    return CUDA_SUCCESS;
}

static int status_of(const struct capture *c)
{
    return !c ? CAPTURE_NONE : c->invalid ? CAPTURE_INVALID : CAPTURE_ACTIVE;
}

CUresult shim_cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
                                        const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out,
                                        size_t *numDependencies_out)
{
    CUresult              r = stream_check(hStream);
    struct captured      *s = r ? NULL : stream_captured(hStream);
    const struct capture *c = s ? find(s->capture) : NULL;

    if (r || !captureStatus_out)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *captureStatus_out = status_of(c);
    if (!c)
        return CUDA_SUCCESS; /* the rest is set of captures alone */
    if (id_out)
        *id_out = c->number;
    if (graph_out)
        *graph_out = c->graph->handle;
    if (dependencies_out)
        *dependencies_out = s->last;
    if (numDependencies_out)
        *numDependencies_out = s->last_count;
    return edgeData_out ? plain_edges(s, edgeData_out) : CUDA_SUCCESS;
}

CUresult shim_cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
                                        const CUgraphNode **dependencies_out, size_t *numDependencies_out)
{
    return shim_cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out, dependencies_out, NULL, numDependencies_out);
}

CUresult shim_cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
    return shim_cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL);
}

CUresult shim_cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    return shim_cuStreamGetCaptureInfo_v3(hStream, captureStatus, NULL, NULL, NULL, NULL, NULL);
}

CUresult shim_cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
                                                   size_t numDependencies, unsigned int flags)
{
    CUresult         r = stream_check(hStream);
    struct captured *s = r ? NULL : stream_captured(hStream);
    struct capture  *c = s ? find(s->capture) : NULL;

    if (r || flags > UPDATE_SET || (numDependencies && !dependencies))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (!c || dependencyData)
        return c ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_ILLEGAL_STATE;
    for (size_t i = 0; i < numDependencies; i++)
        if (!node_of(dependencies[i]) || node_of(dependencies[i])->graph != c->graph)
            return CUDA_ERROR_INVALID_VALUE;
    return flags == UPDATE_ADD ? add_last(s, dependencies, numDependencies) : set_last(s, dependencies, numDependencies);
}

CUresult shim_cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies, size_t numDependencies, unsigned int flags)
{
    return shim_cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, NULL, numDependencies, flags);
}

/* Calls that a capture of this thread would forbid are done here anyway; the mode is kept for who asks. */
CUresult shim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    int before = thread_mode;

    if (!mode || *mode < MODE_GLOBAL || *mode > MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
