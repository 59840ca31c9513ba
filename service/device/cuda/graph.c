/* Sequences of launches as graphs of the driver: one chain of kernel nodes, made once. Without graphs in the driver, launches go one by
 * one. */
#include "device/cuda/vendor/vendor.h"

#include <stdlib.h>

struct place {
    struct device_launch launch; /* its params are ours */
    void                *params;
    cuda_graph_node      node;
    bool                 plan;       /* a library's launch; the module may be gone when the next one comes for this place */
    uint32_t             cluster[3]; /* of its kernel, likewise; a node that gets another kernel keeps it */
};

struct device_graph {
    LIST_ENTRY(device_graph) in_device;
    cuda_graph      graph;
    cuda_graph_exec exec; /* NULL: launched one by one */
    uint32_t        count;
    struct place    places[];
};

static bool driver_has_graphs(const struct cuda_driver *cu)
{
    return cu->cuGraphCreate && cu->cuGraphDestroy && cu->cuGraphAddKernelNode_v2 && cu->cuGraphInstantiateWithFlags &&
           cu->cuGraphExecDestroy && cu->cuGraphExecKernelNodeSetParams_v2 && cu->cuGraphLaunch;
}

/* Launches of libraries need more driver functions than others, and not all can be in a graph. */
static bool can_build(const struct cuda_driver *cu, const struct device_graph *g)
{
    bool plans = false;

    for (uint32_t i = 0; i < g->count; i++) {
        const struct device_module *m = g->places[i].launch.module;

        if (m->plan && !cuda_plan_can_capture(m->plan))
            return false;
        plans = plans || m->plan;
    }
    return driver_has_graphs(cu) && (!plans || cuda_can_capture(cu));
}

/* The driver copies all of it. */
void cuda_describe_node(const struct device_launch *l, size_t *bytes, void *extra[5], struct cuda_kernel_node *out)
{
    *bytes = l->params_bytes;
    extra[0] = CUDA_LAUNCH_BUFFER;
    extra[1] = (void *)(uintptr_t)l->params;
    extra[2] = CUDA_LAUNCH_BYTES;
    extra[3] = bytes;
    extra[4] = CUDA_LAUNCH_END;
    *out = (struct cuda_kernel_node){.function = l->module->kernels[l->kernel].function,
                                     .grid = {l->grid[0], l->grid[1], l->grid[2]},
                                     .block = {l->block[0], l->block[1], l->block[2]},
                                     .shared_bytes = l->shared_bytes,
                                     .extra = *bytes ? extra : NULL};
}

/* Copies the launch into the place; replaces the old one. */
static enum status keep_launch(struct place *p, const struct device_launch *l, struct problem *why)
{
    void *params = malloc(l->params_bytes ? l->params_bytes : 1);

    if (!params)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the graph");
    if (l->params_bytes)
        memcpy(params, l->params, l->params_bytes);
    free(p->params);
    p->launch = *l;
    p->plan = l->module->plan != NULL;
    memcpy(p->cluster, l->module->kernels[l->kernel].cluster, sizeof p->cluster);
    p->launch.before = p->launch.after = NULL;
    p->launch.params = p->params = params;
    return STATUS_OK;
}

/* What a library queues for one launch, as a graph within the graph. */
static enum status add_plan(struct device *d, struct device_graph *g, uint32_t i, const cuda_graph_node *before, struct problem *why)
{
    struct place *p = &g->places[i];
    cuda_graph    child;
    enum status   st = cuda_plan_capture(d, &p->launch, &child, why);

    if (st)
        return st;
    st = cuda_check(d, d->cu->cuGraphAddChildGraphNode(&p->node, g->graph, before, before != NULL, child), why, "adding a node to a graph");
    d->cu->cuGraphDestroy(child); /* it was copied */
    return st;
}

static enum status add_node(struct device *d, struct device_graph *g, uint32_t i, struct problem *why)
{
    struct place           *p = &g->places[i];
    const cuda_graph_node  *before = i ? &g->places[i - 1].node : NULL;
    struct cuda_kernel_node node;
    void                   *extra[5];
    size_t                  bytes;

    if (p->plan)
        return add_plan(d, g, i, before, why);
    cuda_describe_node(&p->launch, &bytes, extra, &node);
    return cuda_check(d, d->cu->cuGraphAddKernelNode_v2(&p->node, g->graph, before, before != NULL, &node), why,
                      "adding a node to a graph");
}

static enum status build_graph(struct device *d, struct device_graph *g, struct problem *why)
{
    enum status st = cuda_check(d, d->cu->cuGraphCreate(&g->graph, 0), why, "creating a graph");

    for (uint32_t i = 0; i < g->count && !st; i++)
        st = add_node(d, g, i, why);
    return st ? st : cuda_check(d, d->cu->cuGraphInstantiateWithFlags(&g->exec, g->graph, 0), why, "preparing a graph");
}

static void graph_free(struct device *d, struct device_graph *g)
{
    if (g->exec)
        d->cu->cuGraphExecDestroy(g->exec);
    if (g->graph)
        d->cu->cuGraphDestroy(g->graph);
    for (uint32_t i = 0; i < g->count; i++)
        free(g->places[i].params);
    free(g);
}

enum status cuda_graph_create(struct device *d, const struct device_launch *launches, uint32_t count, struct device_graph **out,
                              struct problem *why)
{
    struct device_graph *g = calloc(1, sizeof *g + (size_t)count * sizeof g->places[0]);
    enum status          st = cuda_alive(d, why);

    if (!g)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the graph");
    g->count = count;
    for (uint32_t i = 0; i < count && !st; i++) {
        st = cuda_launch_check(d, &launches[i], why);
        if (!st)
            st = keep_launch(&g->places[i], &launches[i], why);
    }
    if (!st && can_build(d->cu, g))
        st = build_graph(d, g, why);
    if (st) {
        graph_free(d, g);
        return st;
    }
    LIST_INSERT_HEAD(&d->graphs, g, in_device);
    *out = g;
    return STATUS_OK;
}

void cuda_graph_destroy(struct device *d, struct device_graph *g)
{
    if (!g)
        return;
    LIST_REMOVE(g, in_device);
    graph_free(d, g);
}

static enum status set_plan(struct device *d, struct device_graph *g, uint32_t index, const struct device_launch *l, struct problem *why)
{
    cuda_graph  child;
    enum status st = cuda_plan_capture(d, l, &child, why);

    if (st)
        return st;
    st = cuda_check(d, d->cu->cuGraphExecChildGraphNodeSetParams(g->exec, g->places[index].node, child), why, "updating a graph");
    d->cu->cuGraphDestroy(child);
    return st;
}

static enum status set_kernel(struct device *d, struct device_graph *g, uint32_t index, const struct device_launch *l, struct problem *why)
{
    struct cuda_kernel_node node;
    void                   *extra[5];
    size_t                  bytes;

    cuda_describe_node(l, &bytes, extra, &node);
    return cuda_check(d, d->cu->cuGraphExecKernelNodeSetParams_v2(g->exec, g->places[index].node, &node), why, "updating a graph");
}

/* From then on launches go one by one: places were changed, and the chain cannot be rebuilt before all are known. */
static void dissolve_graph(struct device *d, struct device_graph *g)
{
    d->cu->cuGraphExecDestroy(g->exec);
    d->cu->cuGraphDestroy(g->graph);
    g->exec = NULL;
    g->graph = NULL;
}

/* A node's kind never changes, nor its clusters' size, and neither does the number of kernels that a library makes of a launch. */
static enum status change_node(struct device *d, struct device_graph *g, uint32_t index, const struct device_launch *l, struct problem *why)
{
    const struct place *p = &g->places[index];
    bool                plan = l->module->plan != NULL, same = plan == p->plan;
    enum status         st = STATUS_INTERNAL;

    same = same && memcmp(p->cluster, l->module->kernels[l->kernel].cluster, sizeof p->cluster) == 0;

    if (same)
        st = plan ? set_plan(d, g, index, l, why) : set_kernel(d, g, index, l, why);
    if (st != STATUS_INTERNAL || (same && !plan))
        return st;
    dissolve_graph(d, g);
    return STATUS_OK;
}

enum status cuda_graph_set(struct device *d, struct device_graph *g, uint32_t index, const struct device_launch *l, struct problem *why)
{
    enum status st = cuda_alive(d, why);

    if (!st && index >= g->count)
        st = problem_set(why, STATUS_INTERNAL, "the graph has no such node");
    if (!st)
        st = cuda_launch_check(d, l, why);
    if (!st && g->exec)
        st = change_node(d, g, index, l, why);
    return st ? st : keep_launch(&g->places[index], l, why);
}

enum status cuda_graph_run(struct device *d, struct device_stream *s, struct device_graph *g, struct problem *why)
{
    enum status st = cuda_alive(d, why);

    for (uint32_t i = 0; i < g->count && !st && !g->exec; i++)
        st = cuda_launch(d, s, &g->places[i].launch, why);
    if (st || !g->exec)
        return st;
    s = cuda_stream_of(d, s);
    s->busy = true;
    return cuda_check(d, d->cu->cuGraphLaunch(g->exec, s->handle), why, "running a graph");
}
