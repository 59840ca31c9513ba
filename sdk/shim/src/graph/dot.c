/* Graphs as text for people: the DOT language. */
#include <stdio.h>

#include "graph/graph.h"

static const char *name_of(enum work_type type)
{
    switch (type) {
    case WORK_KERNEL:
        return "kernel";
    case WORK_COPY:
        return "copy";
    case WORK_FILL:
        return "fill";
    case WORK_HOST:
        return "host function";
    case WORK_GRAPH:
        return "child graph";
    case WORK_EVENT_WAIT:
        return "wait for an event";
    case WORK_EVENT_RECORD:
        return "record an event";
    case WORK_ALLOC:
        return "allocation";
    case WORK_FREE:
        return "free";
    case WORK_EMPTY:
        break;
    }
    return "empty";
}

/* Children are clusters; `number` makes the names of nodes unique. */
static void print_graph(FILE *f, const struct graph *g, size_t *number)
{
    for (size_t i = 0; i < g->count; i++) {
        const struct node     *n = g->nodes[i];
        const struct function *k = n->work.type == WORK_KERNEL ? function_of(n->work.of.kernel.function) : NULL; /* NULL: unloaded, too */

        g->nodes[i]->place = (*number)++;
        fprintf(f, "n%zu [label=\"%s\"];\n", n->place, k ? gpurest_kernel_name(k->kernel) : name_of(n->work.type));
    }
    for (size_t i = 0; i < g->count; i++)
        for (size_t k = 0; k < g->nodes[i]->before_count; k++)
            fprintf(f, "n%zu -> n%zu;\n", g->nodes[i]->before[k]->place, g->nodes[i]->place);
    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i]->work.type == WORK_GRAPH) {
            fprintf(f, "subgraph cluster_%zu {\n", g->nodes[i]->place);
            print_graph(f, g->nodes[i]->work.of.graph, number);
            fprintf(f, "}\n");
        }
}

/* What the flags ask for in addition is not printed. */
CUresult shim_cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
    const struct graph *g = graph_of(hGraph);
    size_t              number = 0;
    bool                failed;
    FILE               *f;

    (void)flags;
    if (!g || !path)
        return CUDA_ERROR_INVALID_VALUE;
    f = fopen(path, "we");
    if (!f)
        return CUDA_ERROR_OPERATING_SYSTEM;
    fprintf(f, "digraph dot {\n");
    print_graph(f, g, &number);
    fprintf(f, "}\n");
    failed = ferror(f);
    return fclose(f) || failed ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
