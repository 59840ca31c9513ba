/* Instances of graphs: a copy of the graph with its order. A launch queues the nodes' work, which is one frame if nothing comes back. */
#include <stdlib.h>

#include "graph/graph.h"

enum { INSTANTIATE_FLAGS = 15, FLAG_AUTO_FREE = 1, FLAG_DEVICE_LAUNCH = 4 };
enum { UPDATE_DONE = 0, UPDATE_TOPOLOGY_CHANGED = 2, UPDATE_TYPE_CHANGED = 3 };

struct exec {
    void         *handle;
    struct graph *graph; /* nodes know by `origin` of whom they are copies */
    struct node **order; /* children's nodes in their place */
    size_t        count;
    cuuint64_t    flags;
};

static struct exec *exec_of(const void *handle)
{
    return handle_get(HANDLE_EXEC, handle);
}

/* ---- the order ---- */

static CUresult add_order(const struct graph *g, struct exec *e)
{
    struct node **order = NULL;
    CUresult      r = graph_order(g, &order);

    for (size_t i = 0; i < g->count && !r; i++) {
        if (order[i]->work.type == WORK_GRAPH)
            r = add_order(order[i]->work.of.graph, e);
        else if (grow_list(&e->order, e->count))
            e->order[e->count++] = order[i];
        else
            r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    free(order);
    return r;
}

static void destroy(struct exec *e)
{
    handle_remove(e->handle);
    graph_destroy(e->graph);
    free(e->order);
    free(e);
}

static CUresult make(const struct graph *g, cuuint64_t flags, CUgraphExec *out)
{
    struct exec *e = calloc(1, sizeof *e);
    CUresult     r = e ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

    if (r)
        return r;
    e->flags = flags;
    e->graph = graph_copy(g);
    e->handle = e->graph ? handle_add(HANDLE_EXEC, e) : NULL;
    if (e->graph)
        e->graph->owned = true;
    r = e->handle ? add_order(e->graph, e) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r)
        destroy(e);
    else
        *out = e->handle;
    return r;
}

CUresult shim_cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
    const struct graph *g = graph_of(hGraph);

    if (!g || !phGraphExec || flags & ~(unsigned long long)INSTANTIATE_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    return flags & FLAG_DEVICE_LAUNCH || graph_memory_instantiated(g) ? CUDA_ERROR_NOT_SUPPORTED : make(g, flags, phGraphExec);
}

CUresult shim_cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    if (!instantiateParams)
        return CUDA_ERROR_INVALID_VALUE;
    instantiateParams->hErrNode_out = NULL;
    instantiateParams->result_out = 0;
    return shim_cuGraphInstantiateWithFlags(phGraphExec, hGraph, instantiateParams->flags);
}

CUresult shim_cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    if (phErrorNode)
        *phErrorNode = NULL;
    if (logBuffer && bufferSize)
        *logBuffer = '\0';
    return shim_cuGraphInstantiateWithFlags(phGraphExec, hGraph, 0);
}

CUresult shim_cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
    return shim_cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult shim_cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    struct exec *e = exec_of(hGraphExec);

    if (!e)
        return CUDA_ERROR_INVALID_VALUE;
    destroy(e);
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
    const struct exec *e = exec_of(hGraphExec);

    if (!e || !flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = e->flags;
    return CUDA_SUCCESS;
}

/* ---- launch ---- */

/* The first upload is the launch's own. */
CUresult shim_cuGraphUpload(CUgraphExec hGraph, CUstream hStream)
{
    CUresult r = stream_check(hStream);

    return r || exec_of(hGraph) ? r : CUDA_ERROR_INVALID_VALUE;
}

/* What a launch before allocated and nobody freed: the flag frees it, and without it the launch is wrong. */
static CUresult free_from_before(const struct exec *e)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < e->count && !r; i++) {
        const struct work *w = &e->order[i]->work;

        if (w->type == WORK_ALLOC && graph_memory_live(w->of.memory) &&
            (!(e->flags & FLAG_AUTO_FREE) || !graph_memory_free(graph_memory_address(w->of.memory), &r)))
            r = CUDA_ERROR_INVALID_VALUE;
    }
    return r;
}

CUresult shim_cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
    const struct exec *e = exec_of(hGraph);
    CUresult           r = stream_check(hStream);
    struct work        w;

    if (r || !e)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (capture_on(hStream)) {
        r = work_of_graph(e->graph, &w);
        return r ? r : capture_work(hStream, &w);
    }
    r = free_from_before(e);
    for (size_t i = 0; i < e->count && !r; i++)
        if (!e->order[i]->disabled)
            r = work_run(&e->order[i]->work, hStream);
    return r;
}

/* ---- changes of an instance, by the nodes of the graph that it was made of ---- */

static struct node *copy_of(CUgraphExec exec, CUgraphNode node)
{
    const struct exec *e = exec_of(exec);

    return e && node ? graph_find_copy(e->graph, node) : NULL;
}

CUresult shim_cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct work w;

    return work_replace(copy_of(hGraphExec, hNode), work_of_kernel_node(nodeParams, &w), &w);
}

CUresult shim_cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    struct work w;

    (void)ctx;
    return work_replace(copy_of(hGraphExec, hNode), work_of_copy(copyParams, &w), &w);
}

CUresult shim_cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                                             CUcontext ctx)
{
    struct work w;

    (void)ctx;
    return work_replace(copy_of(hGraphExec, hNode), work_of_fill(memsetParams, &w), &w);
}

CUresult shim_cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    struct work w;

    return work_replace(copy_of(hGraphExec, hNode), work_of_host(nodeParams, &w), &w);
}

CUresult shim_cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
    struct work w;

    return work_replace(copy_of(hGraphExec, hNode), work_of_event(WORK_EVENT_RECORD, event, &w), &w);
}

CUresult shim_cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
    struct work w;

    return work_replace(copy_of(hGraphExec, hNode), work_of_event(WORK_EVENT_WAIT, event, &w), &w);
}

CUresult shim_cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
    struct node *n = copy_of(hGraphExec, hNode);

    if (!n || (n->work.type != WORK_KERNEL && n->work.type != WORK_COPY && n->work.type != WORK_FILL))
        return CUDA_ERROR_INVALID_VALUE;
    n->disabled = !isEnabled;
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
    const struct node *n = copy_of(hGraphExec, hNode);

    if (!n || !isEnabled)
        return CUDA_ERROR_INVALID_VALUE;
    *isEnabled = !n->disabled;
    return CUDA_SUCCESS;
}

/* Nodes stand in the order in which they were added; CUDA wants the same one, too. */
static int compare(const struct graph *ours, const struct graph *theirs, const struct node **wrong)
{
    *wrong = NULL;
    if (ours->count != theirs->count)
        return UPDATE_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < ours->count; i++)
        ours->nodes[i]->place = theirs->nodes[i]->place = i;
    for (size_t i = 0; i < ours->count; i++) {
        const struct node *a = ours->nodes[i], *b = theirs->nodes[i];
        int                child = UPDATE_DONE;

        *wrong = b;
        if (a->work.type != b->work.type)
            return UPDATE_TYPE_CHANGED;
        if (a->before_count != b->before_count)
            return UPDATE_TOPOLOGY_CHANGED;
        for (size_t k = 0; k < a->before_count; k++)
            if (a->before[k]->place != b->before[k]->place)
                return UPDATE_TOPOLOGY_CHANGED;
        if (a->work.type == WORK_GRAPH)
            child = compare(a->work.of.graph, b->work.of.graph, wrong);
        if (child)
            return child;
    }
    *wrong = NULL;
    return UPDATE_DONE;
}

/* Copies keep the names by which the program knows their nodes. */
static void keep_origins(const struct graph *old, struct graph *fresh)
{
    for (size_t i = 0; i < old->count; i++) {
        fresh->nodes[i]->origin = old->nodes[i]->origin;
        fresh->nodes[i]->disabled = old->nodes[i]->disabled;
        if (old->nodes[i]->work.type == WORK_GRAPH)
            keep_origins(old->nodes[i]->work.of.graph, fresh->nodes[i]->work.of.graph);
    }
}

/* All or nothing: the new instance takes the place of the old one when it is whole. */
static CUresult take_work(struct exec *e, const struct graph *g)
{
    struct exec *fresh;
    CUgraphExec  handle;
    CUresult     r = make(g, e->flags, &handle);

    if (r)
        return r;
    fresh = exec_of(handle);
    keep_origins(e->graph, fresh->graph);
    handle_remove(fresh->handle);
    graph_destroy(e->graph);
    free(e->order);
    e->graph = fresh->graph;
    e->order = fresh->order;
    e->count = fresh->count;
    free(fresh);
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
    struct exec        *e = exec_of(hGraphExec);
    const struct graph *g = graph_of(hGraph);
    const struct node  *wrong;

    if (!e || !g || !resultInfo)
        return CUDA_ERROR_INVALID_VALUE;
    *resultInfo = (CUgraphExecUpdateResultInfo){.result = compare(e->graph, g, &wrong)};
    if (resultInfo->result == UPDATE_DONE)
        return take_work(e, g);
    resultInfo->errorNode = wrong ? wrong->handle : NULL;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult shim_cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                                CUgraphExecUpdateResult *updateResult_out)
{
    CUgraphExecUpdateResultInfo info = {0};
    CUresult                    r = updateResult_out ? shim_cuGraphExecUpdate_v2(hGraphExec, hGraph, &info) : CUDA_ERROR_INVALID_VALUE;

    if (updateResult_out)
        *updateResult_out = info.result;
    if (hErrorNode_out)
        *hErrorNode_out = info.errorNode;
    return r;
}

/* The child must have the shape of the one that is there. */
CUresult shim_cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)
{
    struct exec        *e = exec_of(hGraphExec);
    struct node        *n = copy_of(hGraphExec, hNode);
    const struct graph *g = graph_of(childGraph);
    const struct node  *wrong;
    struct work         w;
    CUresult            r;

    if (!n || n->work.type != WORK_GRAPH || !g || compare(n->work.of.graph, g, &wrong) != UPDATE_DONE)
        return CUDA_ERROR_INVALID_VALUE;
    r = work_replace(n, work_of_graph(g, &w), &w);
    if (r)
        return r;
    e->count = 0;
    free(e->order);
    e->order = NULL;
    return add_order(e->graph, e);
}
