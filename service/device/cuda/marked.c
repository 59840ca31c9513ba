/* A launch and the mark behind it, given to the device as one graph of two nodes, which each launch of its kernel changes.
 *
 * The driver takes them in 3.6 us, and the end is seen after 6.6; one after the other they take 4.4 and 8.4 (one H200, 2026-11-29).
 *
 * A node that gets another kernel keeps what the one before had beside its parameters: blocks that need clusters run without them, and others in them.
 * So a graph has one kernel, until others have come so often that one of them has it. */
#include "device/cuda/bounds.h"
#include "device/cuda/internal.h"

/* A library queues its launches itself; cooperative ones and clusters were not tried in a graph of their own. What a kernel prints in a graph does not
 * come out when its stream is waited for, as the text of a launch must. */
static bool fits(const struct device_launch *l)
{
    const struct device_module *m = l->module;

    return !m->plan && !m->table.prints && !m->kernels[l->kernel].cluster[0] && !l->cooperative &&
           l->params_bytes <= MARKED_PARAM_BYTES_MAX;
}

static bool driver_can(const struct cuda_driver *cu)
{
    return cu->cuGraphCreate && cu->cuGraphDestroy && cu->cuGraphAddKernelNode_v2 && cu->cuGraphAddBatchMemOpNode &&
           cu->cuGraphInstantiateWithFlags && cu->cuGraphExecDestroy && cu->cuGraphExecKernelNodeSetParams_v2 &&
           cu->cuGraphExecBatchMemOpNodeSetParams && cu->cuGraphLaunch;
}

static void drop(struct device *d, struct cuda_marked *g)
{
    if (g->exec)
        d->cu->cuGraphExecDestroy(g->exec);
    if (g->graph)
        d->cu->cuGraphDestroy(g->graph);
    *g = (struct cuda_marked){.refused = g->refused};
}

void cuda_marked_forget(struct device *d, struct device_stream *s, const struct device_module *m)
{
    if (!m || s->marked.module == m)
        drop(d, &s->marked);
}

static cuda_result make(const struct device *d, struct cuda_marked *g, const struct cuda_kernel_node *launch,
                        const struct cuda_memory_node *mark)
{
    const struct cuda_driver *cu = d->cu;
    cuda_result               r = cu->cuGraphCreate(&g->graph, 0);

    if (!r)
        r = cu->cuGraphAddKernelNode_v2(&g->launch, g->graph, NULL, 0, launch);
    if (!r)
        r = cu->cuGraphAddBatchMemOpNode(&g->mark, g->graph, &g->launch, 1, mark);
    return r ? r : cu->cuGraphInstantiateWithFlags(&g->exec, g->graph, 0);
}

/* What the driver refuses changes nothing. */
static cuda_result change(const struct device *d, const struct cuda_marked *g, const struct cuda_kernel_node *launch,
                          const struct cuda_memory_node *mark)
{
    cuda_result r = d->cu->cuGraphExecKernelNodeSetParams_v2(g->exec, g->launch, launch);

    return r ? r : d->cu->cuGraphExecBatchMemOpNodeSetParams(g->exec, g->mark, mark);
}

/* What speaks against a launch is told when it goes by itself, as it then does: also of a result that we do not know, which may be one of graphs
 * alone, whether the context is lost. */
static enum status told(struct device *d, cuda_result r, const char *doing)
{
    return cuda_status(r) == STATUS_DEVICE_ERROR ? STATUS_INTERNAL : cuda_check(d, r, NULL, doing);
}

static enum status prepare(struct device *d, struct cuda_marked *g, const struct device_launch *l, uint64_t mark_at, struct problem *why)
{
    struct cuda_memory_operation write = {.operation = CUDA_MEMORY_WRITE_32, .address = mark_at, .value = l->mark.value};
    struct cuda_memory_node      mark = {.context = d->context, .count = 1, .operations = &write};
    struct cuda_kernel_node      launch;
    void                        *extra[5];
    size_t                       bytes;
    enum status                  st;

    cuda_describe_node(l, &bytes, extra, &launch);
    if (g->exec) {
        st = told(d, change(d, g, &launch, &mark), "changing a graph");
    } else {
        g->module = l->module;
        g->kernel = l->kernel;
        st = told(d, make(d, g, &launch, &mark), "making a graph");
        g->refused = st != STATUS_OK;
    }
    if (g->refused)
        drop(d, g);
    if (!st)
        return STATUS_OK;
    st = cuda_alive(d, why);
    return st ? st : STATUS_NOT_IMPLEMENTED;
}

/* False: the launch is of another kernel, and goes by itself. */
static bool take_graph(struct device *d, struct cuda_marked *g, const struct device_launch *l)
{
    bool own = !g->exec || (g->module == l->module && g->kernel == l->kernel);

    g->others = own ? 0 : g->others + 1;
    if (g->others < MARKED_OTHERS_MAX)
        return own;
    drop(d, g);
    return true;
}

enum status cuda_marked_launch(struct device *d, struct device_stream *s, const struct device_launch *l, uint64_t mark_at,
                               struct problem *why)
{
    struct cuda_marked *g = &s->marked;
    enum status         st;
    cuda_result         r;

    if (!fits(l) || g->refused || !driver_can(d->cu) || !take_graph(d, g, l))
        return STATUS_NOT_IMPLEMENTED;
    st = prepare(d, g, l, mark_at, why);
    if (st)
        return st;
    s->busy = true;
    r = d->cu->cuGraphLaunch(g->exec, s->handle);
    if (r == CUDA_RESULT_ERROR_OUT_OF_MEMORY)
        return STATUS_NOT_IMPLEMENTED; /* by itself, a launch may need none */
    return cuda_check(d, r, why, "the launch");
}
