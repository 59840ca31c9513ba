/* Memory that graphs allocate. A node's memory is there from the node's making, because its address is known then; it is the program's from a launch
 * until it is freed, and goes back when no node has it and it is not the program's. */
#include <stdlib.h>

#include "graph/graph.h"

enum { USED = 0, USED_HIGH = 1, RESERVED = 2, RESERVED_HIGH = 3, ALLOCATION_PINNED = 1, LOCATION_DEVICE = 1 };

struct graph_memory {
    uint64_t              address, bytes; /* address 0: it went with its context */
    const struct context *context;
    struct gpu           *gpu;
    const struct graph   *owner;
    size_t                references; /* nodes of the graph and of its instance */
    bool                  live;       /* a launch has allocated it */
    bool                  freed_by_owner, freed_by_others;
    struct graph_memory  *next;
};

static struct graph_memory *memories;

static struct graph_memory *find(uint64_t address)
{
    struct graph_memory *m = address ? memories : NULL;

    while (m && m->address != address)
        m = m->next;
    return m;
}

static void note(struct gpu *g, int current, uint64_t bytes, bool more)
{
    uint64_t *figures = g->graph_figures;

    figures[current] = more ? figures[current] + bytes : figures[current] - bytes;
    if (figures[current] > figures[current + 1])
        figures[current + 1] = figures[current];
}

static void set_live(struct graph_memory *m, bool live)
{
    if (m->live != live)
        note(m->gpu, USED, m->bytes, live);
    m->live = live;
}

static void end_if_unused(struct graph_memory *m)
{
    struct graph_memory **link = &memories;
    struct allocation     a;

    if (m->references || m->live)
        return;
    while (*link != m)
        link = &(*link)->next;
    *link = m->next;
    note(m->gpu, RESERVED, m->bytes, false);
    if (m->address && memory_take(m->address, &a) && a.gpu->session && !a.gpu->sticky) /* else it is gone with the session */
        memory_release(&a);
    free(m);
}

/* ---- what nodes do ---- */

static CUresult check(const CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    if (p->bytesize == 0 || p->poolProps.allocType != ALLOCATION_PINNED || (p->accessDescCount && !p->accessDescs))
        return CUDA_ERROR_INVALID_VALUE;
    if (p->poolProps.handleTypes || p->poolProps.location.type != LOCATION_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i <= p->accessDescCount; i++) {
        const CUmemLocation *l = i < p->accessDescCount ? &p->accessDescs[i].location : &p->poolProps.location;

        if (l->type != LOCATION_DEVICE || !gpu_at(l->id))
            return CUDA_ERROR_INVALID_VALUE;
        if (gpu_at(l->id) != context_current()->gpu)
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

CUresult work_of_allocation(const struct graph *owner, size_t bytes, struct work *out)
{
    struct graph_memory *m = calloc(1, sizeof *m);
    struct allocation    a;
    CUresult             r = m ? memory_allocate(bytes, NULL, &a) : CUDA_ERROR_OUT_OF_MEMORY;

    if (r) {
        free(m);
        return r;
    }
    *m = (struct graph_memory){a.address, bytes, a.context, a.gpu, owner, .references = 1, .next = memories};
    memories = m;
    note(m->gpu, RESERVED, bytes, true);
    *out = (struct work){.type = WORK_ALLOC, .of.memory = m};
    return CUDA_SUCCESS;
}

/* The graph's other nodes tell whether it frees it already. */
CUresult work_of_free(const struct graph *g, CUdeviceptr address, struct work *out)
{
    struct graph_memory *m = find(address);

    if (!m || m->freed_by_owner || (m->owner == g && m->freed_by_others))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i]->work.type == WORK_FREE && g->nodes[i]->work.of.address == address)
            return CUDA_ERROR_INVALID_VALUE;
    *(m->owner == g ? &m->freed_by_owner : &m->freed_by_others) = true;
    *out = (struct work){.type = WORK_FREE, .of.address = address};
    return CUDA_SUCCESS;
}

uint64_t graph_memory_address(const struct graph_memory *m)
{
    return m->address;
}

void graph_memory_retain(struct graph_memory *m)
{
    m->references++;
}

void graph_memory_release(struct graph_memory *m)
{
    m->references--;
    end_if_unused(m);
}

bool graph_has_memory(const struct graph *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i]->work.type == WORK_ALLOC || g->nodes[i]->work.type == WORK_FREE)
            return true;
    return false;
}

bool graph_memory_instantiated(const struct graph *g)
{
    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i]->work.type == WORK_ALLOC && g->nodes[i]->work.of.memory->references > 1)
            return true;
    return false;
}

CUresult graph_memory_run(struct graph_memory *m)
{
    if (m->address == 0)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    set_live(m, true);
    return CUDA_SUCCESS;
}

bool graph_memory_live(const struct graph_memory *m)
{
    return m->live;
}

/* ---- frees, by nodes and by the program ---- */

bool graph_memory_free(uint64_t address, CUresult *result)
{
    struct graph_memory *m = find(address);

    if (!m)
        return false;
    *result = m->live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    set_live(m, false);
    end_if_unused(m);
    return true;
}

void graph_memories_forget(const struct gpu *g, const struct context *c)
{
    for (struct graph_memory *m = memories, *next; m; m = next) {
        next = m->next;
        if (m->gpu != g || (c && m->context != c))
            continue;
        m->address = 0;
        set_live(m, false);
        end_if_unused(m);
    }
}

/* ---- the functions ---- */

CUresult shim_cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                     CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    struct graph *g = graph_of(hGraph);
    struct work   w;
    CUdeviceptr   address;
    CUresult      r = g && phGraphNode && nodeParams ? check(nodeParams) : CUDA_ERROR_INVALID_VALUE;

    r = r ? r : work_of_allocation(g, nodeParams->bytesize, &w);
    if (r)
        return r;
    address = graph_memory_address(w.of.memory);
    r = graph_add(g, dependencies, numDependencies, &w, phGraphNode);
    if (!r)
        nodeParams->dptr = address;
    return r;
}

CUresult shim_cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
    const struct node         *n = node_of_type(hNode, WORK_ALLOC);
    const struct graph_memory *m = n ? n->work.of.memory : NULL;

    if (!m || !params_out)
        return CUDA_ERROR_INVALID_VALUE;
    *params_out =
        (CUDA_MEM_ALLOC_NODE_PARAMS){.poolProps = {.allocType = ALLOCATION_PINNED, .location = {LOCATION_DEVICE, m->gpu->ordinal}},
                                     .bytesize = m->bytes,
                                     .dptr = m->address};
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
                                    CUdeviceptr dptr)
{
    struct graph *g = graph_of(hGraph);
    struct work   w;
    CUresult      r = g && phGraphNode ? work_of_free(g, dptr, &w) : CUDA_ERROR_INVALID_VALUE;

    return r ? r : graph_add(g, dependencies, numDependencies, &w, phGraphNode);
}

CUresult shim_cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
    const struct node *n = node_of_type(hNode, WORK_FREE);

    if (!n || !dptr_out)
        return CUDA_ERROR_INVALID_VALUE;
    *dptr_out = n->work.of.address;
    return CUDA_SUCCESS;
}

/* What no graph needs is not kept. */
CUresult shim_cuDeviceGraphMemTrim(CUdevice device)
{
    return gpu_at(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult shim_cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    const struct gpu *g = gpu_at(device);

    if (!g)
        return CUDA_ERROR_INVALID_DEVICE;
    if (attr < USED || attr > RESERVED_HIGH || !value)
        return CUDA_ERROR_INVALID_VALUE;
    *(cuuint64_t *)value = g->graph_figures[attr];
    return CUDA_SUCCESS;
}

/* The highest values can be set to 0, which makes them the present ones. */
CUresult shim_cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    struct gpu *g = gpu_at(device);

    if (!g)
        return CUDA_ERROR_INVALID_DEVICE;
    if ((attr != USED_HIGH && attr != RESERVED_HIGH) || !value || *(const cuuint64_t *)value)
        return CUDA_ERROR_INVALID_VALUE;
    g->graph_figures[attr] = g->graph_figures[attr - 1];
    return CUDA_SUCCESS;
}
