/* The fake driver's graphs: chains of nodes in the order in which they were added. A node is a kernel, work of another fake library, a word to be
 * written, or a graph within the graph; what a stream is given while it is captured becomes such a chain. */
#include "support/fake_cuda.h"

#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 4096, PARAMS_BYTES_MAX = 32764 };

struct CUgraphNode_st {
    struct cuda_kernel_node what;
    fake_work              *work;  /* NULL: a kernel or a child */
    cuda_graph              child; /* owned; NULL: another node */
    cuda_address            word;  /* 0: another node */
    uint32_t                value;
    _Alignas(16) unsigned char params[PARAMS_BYTES_MAX]; /* or the argument of the work, which reads it as what it is */
    size_t params_bytes;
};

/* A graph and what is made of it are the same here; `nodes` belongs to the graph, the executable one has its own copies. */
struct CUgraph_st {
    unsigned               count;
    struct CUgraphNode_st *nodes[NODES_MAX];
};

struct CUgraphExec_st {
    unsigned               count;
    struct CUgraphNode_st *originals[NODES_MAX]; /* borrowed, for their identity */
    struct CUgraphNode_st *nodes[NODES_MAX];
};

/* ---- nodes ---- */

static bool fill(struct CUgraphNode_st *n, const struct cuda_kernel_node *what)
{
    size_t bytes = 0;

    if (!what->function || what->kernel || what->params)
        return false;
    if (what->extra) {
        if (what->extra[0] != CUDA_LAUNCH_BUFFER || what->extra[2] != CUDA_LAUNCH_BYTES || what->extra[4] != CUDA_LAUNCH_END)
            return false;
        bytes = *(const size_t *)what->extra[3];
        if (bytes > PARAMS_BYTES_MAX)
            return false;
        memcpy(n->params, what->extra[1], bytes);
    }
    n->what = *what;
    n->params_bytes = bytes;
    return true;
}

static void free_nodes(struct CUgraphNode_st **nodes, unsigned count);

static void free_graph(cuda_graph graph)
{
    if (graph)
        free_nodes(graph->nodes, graph->count);
    free(graph);
}

static void free_nodes(struct CUgraphNode_st **nodes, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        free_graph(nodes[i]->child);
        free(nodes[i]);
    }
}

static cuda_graph copy_graph(const struct CUgraph_st *graph);

static struct CUgraphNode_st *copy_node(const struct CUgraphNode_st *n)
{
    struct CUgraphNode_st *copy = malloc(sizeof *copy);

    *copy = *n;
    copy->child = n->child ? copy_graph(n->child) : NULL;
    return copy;
}

static cuda_graph copy_graph(const struct CUgraph_st *graph)
{
    cuda_graph copy = calloc(1, sizeof *copy);

    for (copy->count = 0; copy->count < graph->count; copy->count++)
        copy->nodes[copy->count] = copy_node(graph->nodes[copy->count]);
    return copy;
}

static void run_nodes(struct CUgraphNode_st *const *nodes, unsigned count, cuda_stream stream)
{
    for (unsigned i = 0; i < count && !fake_stuck(stream->stuck) && !fake_is_lost(); i++) {
        const struct CUgraphNode_st *n = nodes[i];
        struct fake_launch           l = {.params = n->params,
                                          .params_bytes = n->params_bytes,
                                          .grid = {n->what.grid[0], n->what.grid[1], n->what.grid[2]},
                                          .block = {n->what.block[0], n->what.block[1], n->what.block[2]},
                                          .shared_bytes = n->what.shared_bytes,
                                          .stream = stream};
        if (n->child)
            run_nodes(n->child->nodes, n->child->count, stream);
        else if (n->work)
            n->work(n->params);
        else if (n->word)
            memcpy((void *)(uintptr_t)n->word, &n->value, sizeof n->value);
        else
            fake_run(n->what.function, &l);
    }
}

/* ---- graphs ---- */

cuda_result cuGraphCreate(cuda_graph *graph, unsigned flags)
{
    cuda_result r = fake_step(__func__);

    if (r || flags)
        return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
    *graph = calloc(1, sizeof **graph);
    fake_live(1);
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuGraphDestroy(cuda_graph graph)
{
    cuda_result r = fake_step(__func__);

    free_graph(graph);
    fake_live(-1);
    return r;
}

/* A chain only: each node behind the last one. */
static bool chained(const struct CUgraph_st *graph, const cuda_graph_node *before, size_t before_count)
{
    return graph->count < NODES_MAX &&
           (graph->count ? before_count == 1 && before[0] == graph->nodes[graph->count - 1] : before_count == 0);
}

cuda_result cuGraphAddKernelNode_v2(cuda_graph_node *node, cuda_graph graph, const cuda_graph_node *before, size_t before_count,
                                    const struct cuda_kernel_node *what)
{
    cuda_result r = fake_step(__func__);

    if (r || !chained(graph, before, before_count))
        return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
    *node = calloc(1, sizeof **node);
    if (!fill(*node, what)) {
        free(*node);
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    }
    graph->nodes[graph->count++] = *node;
    return CUDA_RESULT_SUCCESS;
}

/* One write of one word. */
static bool fill_write(struct CUgraphNode_st *n, const struct cuda_memory_node *what)
{
    const struct cuda_memory_operation *o = what->operations;

    if (!what->context || what->count != 1 || what->flags || o->operation != CUDA_MEMORY_WRITE_32 || o->flags || !o->address)
        return false;
    n->word = o->address;
    n->value = (uint32_t)o->value;
    return true;
}

cuda_result cuGraphAddBatchMemOpNode(cuda_graph_node *node, cuda_graph graph, const cuda_graph_node *before, size_t before_count,
                                     const struct cuda_memory_node *what)
{
    cuda_result r = fake_step(__func__);

    if (r || !chained(graph, before, before_count))
        return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
    *node = calloc(1, sizeof **node);
    if (!fill_write(*node, what)) {
        free(*node);
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    }
    graph->nodes[graph->count++] = *node;
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuGraphAddChildGraphNode(cuda_graph_node *node, cuda_graph graph, const cuda_graph_node *before, size_t before_count,
                                     cuda_graph child)
{
    cuda_result r = fake_step(__func__);

    if (r || !chained(graph, before, before_count) || !child)
        return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
    *node = calloc(1, sizeof **node);
    (*node)->child = copy_graph(child);
    graph->nodes[graph->count++] = *node;
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuGraphInstantiateWithFlags(cuda_graph_exec *exec, cuda_graph graph, unsigned long long flags)
{
    cuda_result r = fake_step(__func__);

    if (r || flags)
        return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
    *exec = calloc(1, sizeof **exec);
    (*exec)->count = graph->count;
    for (unsigned i = 0; i < graph->count; i++) {
        (*exec)->originals[i] = graph->nodes[i];
        (*exec)->nodes[i] = copy_node(graph->nodes[i]);
    }
    fake_live(1);
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuGraphExecDestroy(cuda_graph_exec exec)
{
    cuda_result r = fake_step(__func__);

    free_nodes(exec->nodes, exec->count);
    free(exec);
    fake_live(-1);
    return r;
}

static struct CUgraphNode_st *node_of(cuda_graph_exec exec, cuda_graph_node node)
{
    for (unsigned i = 0; i < exec->count; i++)
        if (exec->originals[i] == node)
            return exec->nodes[i];
    return NULL;
}

cuda_result cuGraphExecKernelNodeSetParams_v2(cuda_graph_exec exec, cuda_graph_node node, const struct cuda_kernel_node *what)
{
    cuda_result            r = fake_step(__func__);
    struct CUgraphNode_st *n = node_of(exec, node);

    if (r)
        return r;
    return n && !n->child && !n->word && fill(n, what) ? CUDA_RESULT_SUCCESS : CUDA_RESULT_ERROR_INVALID_VALUE;
}

cuda_result cuGraphExecBatchMemOpNodeSetParams(cuda_graph_exec exec, cuda_graph_node node, const struct cuda_memory_node *what)
{
    cuda_result            r = fake_step(__func__);
    struct CUgraphNode_st *n = node_of(exec, node);

    if (r)
        return r;
    return n && n->word && fill_write(n, what) ? CUDA_RESULT_SUCCESS : CUDA_RESULT_ERROR_INVALID_VALUE;
}

/* A graph of another shape is refused, as by a real driver. */
cuda_result cuGraphExecChildGraphNodeSetParams(cuda_graph_exec exec, cuda_graph_node node, cuda_graph child)
{
    cuda_result            r = fake_step(__func__);
    struct CUgraphNode_st *n = node_of(exec, node);

    if (r || !n || !n->child || n->child->count != child->count)
        return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
    free_graph(n->child);
    n->child = copy_graph(child);
    return CUDA_RESULT_SUCCESS;
}

cuda_result cuGraphLaunch(cuda_graph_exec exec, cuda_stream stream)
{
    cuda_result r = fake_step(__func__);

    fake_runs_graph = true;
    if (!r)
        run_nodes(exec->nodes, exec->count, stream);
    fake_runs_graph = false;
    return r;
}

/* ---- capture ---- */

cuda_result cuStreamBeginCapture_v2(cuda_stream stream, unsigned mode)
{
    cuda_result r = fake_step(__func__);

    if (r || mode > CUDA_CAPTURE_RELAXED || stream->capture)
        return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
    stream->capture = calloc(1, sizeof *stream->capture);
    fake_live(1);
    return CUDA_RESULT_SUCCESS;
}

/* The capture ends whatever is answered. */
cuda_result cuStreamEndCapture(cuda_stream stream, cuda_graph *graph)
{
    cuda_result r = fake_step(__func__);

    if (!stream->capture)
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    *graph = stream->capture;
    stream->capture = NULL;
    if (!r)
        return r;
    free_graph(*graph);
    fake_live(-1);
    *graph = NULL;
    return r;
}

static struct CUgraphNode_st *note(cuda_graph graph, const void *params, size_t bytes)
{
    struct CUgraphNode_st *n = graph->count < NODES_MAX && bytes <= PARAMS_BYTES_MAX ? calloc(1, sizeof *n) : NULL;

    if (!n)
        return NULL;
    memcpy(n->params, params, bytes);
    n->params_bytes = bytes;
    graph->nodes[graph->count++] = n;
    return n;
}

cuda_result fake_capture_launch(const struct CUfunc_st *f, const struct fake_launch *l)
{
    struct CUgraphNode_st *n = note(l->stream->capture, l->params, l->params_bytes);

    if (!n)
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    n->what = (struct cuda_kernel_node){.function = (cuda_function)(uintptr_t)f, .shared_bytes = l->shared_bytes};
    memcpy(n->what.grid, l->grid, sizeof n->what.grid);
    memcpy(n->what.block, l->block, sizeof n->what.block);
    return CUDA_RESULT_SUCCESS;
}

static int submit(cuda_stream s, fake_work *run, const void *argument, size_t bytes)
{
    struct CUgraphNode_st *n;

    if (!s->capture) {
        if (!fake_stuck(s->stuck))
            run(argument);
        return 0;
    }
    n = note(s->capture, argument, bytes);
    if (!n)
        return (int)CUDA_RESULT_ERROR_INVALID_VALUE;
    n->work = run;
    return 0;
}

const struct fake_hooks fake_stream_hooks = {.submit = submit, .is_memory = fake_is_memory, .lose = fake_lose};
