/* The fake driver's graphs: chains of kernel nodes, in the order in which they were added. */
#include "support/fake_cuda.h"

#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 4096, PARAMS_BYTES_MAX = 4096 };

struct CUgraphNode_st {
    struct cuda_kernel_node what;
    unsigned char           params[PARAMS_BYTES_MAX];
    size_t                  params_bytes;
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

cuda_result cuGraphCreate(cuda_graph *graph, unsigned flags)
{
    cuda_result r = fake_step(__func__);

    if (r || flags)
        return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
    *graph = calloc(1, sizeof **graph);
    fake_live(1);
    return CUDA_RESULT_SUCCESS;
}

static void free_nodes(struct CUgraphNode_st **nodes, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        free(nodes[i]);
}

cuda_result cuGraphDestroy(cuda_graph graph)
{
    cuda_result r = fake_step(__func__);

    free_nodes(graph->nodes, graph->count);
    free(graph);
    fake_live(-1);
    return r;
}

/* A chain only: each node behind the last one. */
cuda_result cuGraphAddKernelNode_v2(cuda_graph_node *node, cuda_graph graph, const cuda_graph_node *before, size_t before_count,
                                    const struct cuda_kernel_node *what)
{
    cuda_result r = fake_step(__func__);
    bool        chained = graph->count ? before_count == 1 && before[0] == graph->nodes[graph->count - 1] : before_count == 0;

    if (r || !chained || graph->count == NODES_MAX)
        return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
    *node = calloc(1, sizeof **node);
    if (!fill(*node, what)) {
        free(*node);
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    }
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
        (*exec)->nodes[i] = malloc(sizeof *graph->nodes[i]);
        memcpy((*exec)->nodes[i], graph->nodes[i], sizeof *graph->nodes[i]);
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

cuda_result cuGraphExecKernelNodeSetParams_v2(cuda_graph_exec exec, cuda_graph_node node, const struct cuda_kernel_node *what)
{
    cuda_result r = fake_step(__func__);

    for (unsigned i = 0; i < exec->count && !r; i++)
        if (exec->originals[i] == node)
            return fill(exec->nodes[i], what) ? CUDA_RESULT_SUCCESS : CUDA_RESULT_ERROR_INVALID_VALUE;
    return r ? r : CUDA_RESULT_ERROR_INVALID_VALUE;
}

cuda_result cuGraphLaunch(cuda_graph_exec exec, cuda_stream stream)
{
    cuda_result r = fake_step(__func__);

    for (unsigned i = 0; i < exec->count && !r && !fake_stuck(stream->stuck); i++) {
        const struct CUgraphNode_st *n = exec->nodes[i];
        struct fake_launch           l = {.params = n->params,
                                          .params_bytes = n->params_bytes,
                                          .grid = {n->what.grid[0], n->what.grid[1], n->what.grid[2]},
                                          .block = {n->what.block[0], n->what.block[1], n->what.block[2]},
                                          .shared_bytes = n->what.shared_bytes,
                                          .stream = stream};
        fake_run(n->what.function, &l);
    }
    return r;
}
