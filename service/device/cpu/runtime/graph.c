/* Graphs of the `cpu` device: launches kept with their parameters, and queued one by one. */
#include "device/cpu/runtime/graph.h"

#include <stdlib.h>

struct place {
    struct cpu_launch launch; /* its params are ours */
    void             *params;
};

struct cpu_graph {
    uint32_t     count;
    struct place places[];
};

enum status cpu_graph_create(uint32_t count, struct cpu_graph **out)
{
    struct cpu_graph *g = calloc(1, sizeof *g + (size_t)count * sizeof g->places[0]);

    if (!g)
        return STATUS_OUT_OF_MEMORY;
    g->count = count;
    *out = g;
    return STATUS_OK;
}

void cpu_graph_destroy(struct cpu_graph *g)
{
    if (!g)
        return;
    for (uint32_t i = 0; i < g->count; i++)
        free(g->places[i].params);
    free(g);
}

enum status cpu_graph_set(struct cpu_graph *g, uint32_t index, const struct cpu_launch *l)
{
    struct place *p = &g->places[index];
    void         *params;

    if (index >= g->count || l->params_bytes > KERNEL_PARAM_BYTES_MAX)
        return STATUS_ARGUMENT_MISMATCH;
    params = malloc(l->params_bytes ? l->params_bytes : 1);
    if (!params)
        return STATUS_OUT_OF_MEMORY;
    if (l->params_bytes)
        memcpy(params, l->params, l->params_bytes);
    free(p->params);
    p->launch = *l;
    p->launch.params = p->params = params;
    return STATUS_OK;
}

enum status cpu_graph_run(struct cpu_graph *g, struct cpu_queue *q)
{
    enum status st = STATUS_OK;

    for (uint32_t i = 0; i < g->count && !st; i++)
        st = g->places[i].params ? cpu_queue_launch(q, &g->places[i].launch, NULL, NULL) : STATUS_INTERNAL;
    return st;
}
