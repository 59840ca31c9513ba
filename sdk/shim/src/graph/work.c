/* What nodes of graphs do: made of CUDA's parameters, copied, and run. */
#include <stdlib.h>
#include <string.h>

#include "code/args.h"
#include "graph/graph.h"

/* ---- kernels ---- */

/* Parameters lie in the block as the kernel's table says; programs may change theirs when this returns. */
static CUresult copy_params(const gpurest_kernel *k, void **params, void **extra, struct kernel_work *out)
{
    gpurest_arg args[PARAMS_MAX];
    size_t      offset = 0, bytes = 0;
    CUresult    r = launch_args(k, params, extra, args);

    for (size_t i = 0; i < k->params_count && !r; i++)
        r = gpurest_kernel_param(k, i, &offset, &bytes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (r)
        return r;
    out->count = k->params_count;
    out->bytes = offset + bytes;
    out->block = calloc(1, out->bytes + 1);
    out->params = calloc(out->count + 1, sizeof *out->params);
    if (!out->block || !out->params)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < k->params_count; i++) {
        gpurest_kernel_param(k, i, &offset, &bytes);
        out->params[i] = out->block + offset;
        memcpy(out->params[i], args[i].in, bytes);
    }
    return CUDA_SUCCESS;
}

CUresult work_of_kernel(CUfunction function, const gpurest_launch_config *config, void **params, void **extra, struct work *out)
{
    const struct function *f = function_of(function);
    CUresult               r;

    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (struct work){.type = WORK_KERNEL, .of.kernel = {.function = function, .config = *config}};
    r = launch_check(f, config);
    r = r ? r : copy_params(f->kernel, params, extra, &out->of.kernel);
    if (r)
        work_finish(out);
    return r;
}

CUresult work_of_kernel_node(const CUDA_KERNEL_NODE_PARAMS *p, struct work *out)
{
    gpurest_launch_config c = GPUREST_LAUNCH_CONFIG_INIT;

    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    c.grid = GPUREST_3D(p->gridDimX, p->gridDimY, p->gridDimZ);
    c.block = GPUREST_3D(p->blockDimX, p->blockDimY, p->blockDimZ);
    c.shared_bytes = p->sharedMemBytes;
    return work_of_kernel(p->func ? p->func : (CUfunction)(void *)p->kern, &c, p->kernelParams, p->extra, out);
}

static CUresult copy_kernel(const struct kernel_work *from, struct work *out)
{
    *out = (struct work){.type = WORK_KERNEL, .of.kernel = *from};
    out->of.kernel.block = malloc(from->bytes + 1);
    out->of.kernel.params = calloc(from->count + 1, sizeof *from->params);
    if (!out->of.kernel.block || !out->of.kernel.params) {
        work_finish(out);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(out->of.kernel.block, from->block, from->bytes);
    for (size_t i = 0; i < from->count; i++)
        out->of.kernel.params[i] = out->of.kernel.block + ((char *)from->params[i] - from->block);
    return CUDA_SUCCESS;
}

/* ---- the others ---- */

CUresult work_of_copy(const CUDA_MEMCPY3D *c, struct work *out)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct work){.type = WORK_COPY, .of.copy = *c};
    return rows_known(c) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult work_of_fill(const CUDA_MEMSET_NODE_PARAMS *p, struct work *out)
{
    if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct work){.type = WORK_FILL, .of.fill = *p};
    return CUDA_SUCCESS;
}

CUresult work_of_host(const CUDA_HOST_NODE_PARAMS *p, struct work *out)
{
    if (!p || !p->fn)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct work){.type = WORK_HOST, .of.host = *p};
    return CUDA_SUCCESS;
}

CUresult work_of_graph(const struct graph *g, struct work *out)
{
    if (!g || graph_has_memory(g))
        return g ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    *out = (struct work){.type = WORK_GRAPH, .of.graph = graph_copy(g)};
    if (!out->of.graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    out->of.graph->owned = true;
    return CUDA_SUCCESS;
}

CUresult work_of_event(enum work_type type, CUevent event, struct work *out)
{
    *out = (struct work){.type = type, .of.event = event};
    return handle_get(HANDLE_EVENT, event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult work_copy(const struct work *from, struct work *out)
{
    if (from->type == WORK_KERNEL)
        return copy_kernel(&from->of.kernel, out);
    if (from->type == WORK_GRAPH)
        return work_of_graph(from->of.graph, out);
    *out = *from;
    if (from->type == WORK_ALLOC)
        graph_memory_retain(from->of.memory);
    return CUDA_SUCCESS;
}

void work_finish(struct work *w)
{
    if (w->type == WORK_KERNEL) {
        free(w->of.kernel.block);
        free(w->of.kernel.params);
    } else if (w->type == WORK_GRAPH)
        graph_destroy(w->of.graph);
    else if (w->type == WORK_ALLOC)
        graph_memory_release(w->of.memory);
    *w = (struct work){.type = WORK_EMPTY};
}

CUresult work_replace(struct node *n, CUresult made, struct work *w)
{
    if (made)
        return made;
    if (!n || n->work.type != w->type) {
        work_finish(w);
        return CUDA_ERROR_INVALID_VALUE;
    }
    work_finish(&n->work);
    n->work = *w;
    return CUDA_SUCCESS;
}

static CUresult run_fill(const CUDA_MEMSET_NODE_PARAMS *p)
{
    switch (p->elementSize) {
    case 1:
        return shim_cuMemsetD2D8_v2(p->dst, p->pitch, (unsigned char)p->value, p->width, p->height);
    case 2:
        return shim_cuMemsetD2D16_v2(p->dst, p->pitch, (unsigned short)p->value, p->width, p->height);
    default:
        return shim_cuMemsetD2D32_v2(p->dst, p->pitch, p->value, p->width, p->height);
    }
}

CUresult work_run(const struct work *w, CUstream stream)
{
    CUresult r;

    switch (w->type) {
    case WORK_KERNEL:
        return launch_kernel(w->of.kernel.function, &w->of.kernel.config, stream, w->of.kernel.params, NULL);
    case WORK_COPY:
        return rows_copy(&w->of.copy);
    case WORK_FILL:
        return run_fill(&w->of.fill);
    case WORK_HOST:
        return shim_cuLaunchHostFunc(stream, w->of.host.fn, w->of.host.userData);
    case WORK_EVENT_RECORD:
        return shim_cuEventRecord(w->of.event, stream);
    case WORK_EVENT_WAIT:
        return shim_cuStreamWaitEvent(stream, w->of.event, 0);
    case WORK_ALLOC:
        return graph_memory_run(w->of.memory);
    case WORK_FREE:
        return graph_memory_free(w->of.address, &r) ? r : CUDA_ERROR_INVALID_VALUE;
    case WORK_GRAPH:
    case WORK_EMPTY:
        break;
    }
    return CUDA_SUCCESS;
}

/* ---- nodes of each kind ---- */

static CUresult add(CUgraph graph, const CUgraphNode *before, size_t before_count, CUresult made, struct work *w, CUgraphNode *out)
{
    struct graph *g = graph_of(graph);

    if (made)
        return made;
    if (g && out)
        return graph_add(g, before, before_count, w, out);
    work_finish(w);
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies)
{
    struct work w = {.type = WORK_EMPTY};

    return add(hGraph, dependencies, numDependencies, CUDA_SUCCESS, &w, phGraphNode);
}

CUresult shim_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                      const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct work w;

    return add(hGraph, dependencies, numDependencies, work_of_kernel_node(nodeParams, &w), &w, phGraphNode);
}

CUresult shim_cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    const struct node        *n = node_of_type(hNode, WORK_KERNEL);
    const struct kernel_work *k;

    if (!n || !nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    k = &n->work.of.kernel;
    *nodeParams = (CUDA_KERNEL_NODE_PARAMS){.func = k->function,
                                            .gridDimX = k->config.grid.x,
                                            .gridDimY = k->config.grid.y,
                                            .gridDimZ = k->config.grid.z,
                                            .blockDimX = k->config.block.x,
                                            .blockDimY = k->config.block.y,
                                            .blockDimZ = k->config.block.z,
                                            .sharedMemBytes = (unsigned)k->config.shared_bytes,
                                            .kernelParams = k->params};
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
    struct work w;

    return work_replace(node_of(hNode), work_of_kernel_node(nodeParams, &w), &w);
}

CUresult shim_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                   const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    struct work w;

    (void)ctx; /* all of a device share its memory */
    return add(hGraph, dependencies, numDependencies, work_of_copy(copyParams, &w), &w, phGraphNode);
}

CUresult shim_cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
    const struct node *n = node_of_type(hNode, WORK_COPY);

    if (!n || !nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    *nodeParams = n->work.of.copy;
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
    struct work w;

    return work_replace(node_of(hNode), work_of_copy(nodeParams, &w), &w);
}

CUresult shim_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                   const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    struct work w;

    (void)ctx;
    return add(hGraph, dependencies, numDependencies, work_of_fill(memsetParams, &w), &w, phGraphNode);
}

CUresult shim_cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    const struct node *n = node_of_type(hNode, WORK_FILL);

    if (!n || !nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    *nodeParams = n->work.of.fill;
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    struct work w;

    return work_replace(node_of(hNode), work_of_fill(nodeParams, &w), &w);
}

CUresult shim_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                 const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    struct work w;

    return add(hGraph, dependencies, numDependencies, work_of_host(nodeParams, &w), &w, phGraphNode);
}

CUresult shim_cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
    const struct node *n = node_of_type(hNode, WORK_HOST);

    if (!n || !nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    *nodeParams = n->work.of.host;
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    struct work w;

    return work_replace(node_of(hNode), work_of_host(nodeParams, &w), &w);
}

CUresult shim_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                       CUgraph childGraph)
{
    struct work w;

    return add(hGraph, dependencies, numDependencies, work_of_graph(graph_of(childGraph), &w), &w, phGraphNode);
}

CUresult shim_cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
    const struct node *n = node_of_type(hNode, WORK_GRAPH);

    if (!n || !phGraph)
        return CUDA_ERROR_INVALID_VALUE;
    *phGraph = n->work.of.graph->handle;
    return CUDA_SUCCESS;
}

static CUresult get_event(CUgraphNode node, enum work_type type, CUevent *out)
{
    const struct node *n = node_of_type(node, type);

    if (!n || !out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = n->work.of.event;
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                        CUevent event)
{
    struct work w;

    return add(hGraph, dependencies, numDependencies, work_of_event(WORK_EVENT_RECORD, event, &w), &w, phGraphNode);
}

CUresult shim_cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    return get_event(hNode, WORK_EVENT_RECORD, event_out);
}

CUresult shim_cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    struct work w;

    return work_replace(node_of(hNode), work_of_event(WORK_EVENT_RECORD, event, &w), &w);
}

CUresult shim_cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                      CUevent event)
{
    struct work w;

    return add(hGraph, dependencies, numDependencies, work_of_event(WORK_EVENT_WAIT, event, &w), &w, phGraphNode);
}

CUresult shim_cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
    return get_event(hNode, WORK_EVENT_WAIT, event_out);
}

CUresult shim_cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
    struct work w;

    return work_replace(node_of(hNode), work_of_event(WORK_EVENT_WAIT, event, &w), &w);
}
