/* Nodes and edges of graphs, and what is asked about them. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

struct graph *graph_of(const void *handle)
{
    return handle_get(HANDLE_GRAPH, handle);
}

struct node *node_of(const void *handle)
{
    return handle_get(HANDLE_NODE, handle);
}

struct node *node_of_type(const void *handle, enum work_type type)
{
    struct node *n = node_of(handle);

    return n && n->work.type == type ? n : NULL;
}

/* Rooms are powers of two. */
bool grow_list(void *list_of_pointers, size_t count)
{
    void **list = list_of_pointers, *larger;

    if (count & (count - 1) || (count == 0 && *list))
        return true;
    larger = realloc(*list, (count ? 2 * count : 1) * sizeof(void *));
    if (larger)
        *list = larger;
    return larger != NULL;
}

/* ---- nodes ---- */

static void destroy_node(struct node *n)
{
    handle_remove(n->handle);
    work_finish(&n->work);
    free(n->before);
    free(n);
}

static bool depends_on(const struct node *n, const struct node *other)
{
    for (size_t i = 0; i < n->before_count; i++)
        if (n->before[i] == other)
            return true;
    return false;
}

static CUresult add_edge(struct node *from, struct node *to)
{
    if (from == to || from->graph != to->graph || depends_on(to, from))
        return CUDA_ERROR_INVALID_VALUE;
    if (!grow_list(&to->before, to->before_count))
        return CUDA_ERROR_OUT_OF_MEMORY;
    to->before[to->before_count++] = from;
    return CUDA_SUCCESS;
}

static bool remove_edge(const struct node *from, struct node *to)
{
    for (size_t i = 0; i < to->before_count; i++)
        if (to->before[i] == from) {
            to->before[i] = to->before[--to->before_count];
            return true;
        }
    return false;
}

static struct node *make_node(struct graph *g, const struct work *work)
{
    struct node *n = calloc(1, sizeof *n);

    if (n)
        n->handle = handle_add(HANDLE_NODE, n);
    if (!n || !n->handle || !grow_list(&g->nodes, g->count)) {
        if (n)
            handle_remove(n->handle);
        free(n);
        return NULL;
    }
    n->graph = g;
    n->work = *work;
    g->nodes[g->count++] = n;
    return n;
}

static void remove_node(struct node *n)
{
    struct graph *g = n->graph;
    size_t        kept = 0;

    for (size_t i = 0; i < g->count; i++)
        if (g->nodes[i] != n) {
            remove_edge(n, g->nodes[i]);
            g->nodes[kept++] = g->nodes[i];
        }
    g->count = kept;
    destroy_node(n);
}

CUresult graph_add(struct graph *g, const CUgraphNode *before, size_t before_count, struct work *work, CUgraphNode *out)
{
    struct node *n = NULL, *other;
    CUresult     r = CUDA_SUCCESS;

    for (size_t i = 0; i < before_count && !r; i++) {
        other = before ? node_of(before[i]) : NULL;
        r = other && other->graph == g ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    if (!r)
        n = make_node(g, work);
    if (!n) {
        work_finish(work);
        return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < before_count && !r; i++)
        r = add_edge(node_of(before[i]), n);
    if (r)
        remove_node(n);
    else if (out)
        *out = n->handle;
    return r;
}

/* ---- graphs ---- */

struct graph *graph_make(void)
{
    struct graph *g = calloc(1, sizeof *g);

    if (g)
        g->handle = handle_add(HANDLE_GRAPH, g);
    if (g && g->handle)
        return g;
    free(g);
    return NULL;
}

void graph_destroy(struct graph *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->count; i++)
        destroy_node(g->nodes[i]);
    free(g->nodes);
    held_release(g->held, g->held_count);
    handle_remove(g->handle);
    free(g);
}

static bool copy_nodes(const struct graph *from, struct graph *to)
{
    struct work  work;
    struct node *n;

    for (size_t i = 0; i < from->count; i++) {
        from->nodes[i]->place = i;
        if (work_copy(&from->nodes[i]->work, &work))
            return false;
        n = make_node(to, &work);
        if (!n) {
            work_finish(&work);
            return false;
        }
        n->origin = from->nodes[i]->handle;
        n->disabled = from->nodes[i]->disabled;
    }
    return true;
}

struct graph *graph_copy(const struct graph *g)
{
    struct graph *copy = graph_make();
    bool          whole = copy && copy_nodes(g, copy);

    for (size_t i = 0; whole && i < g->count; i++)
        for (size_t k = 0; whole && k < g->nodes[i]->before_count; k++)
            whole = add_edge(copy->nodes[g->nodes[i]->before[k]->place], copy->nodes[i]) == CUDA_SUCCESS;
    if (whole)
        copy->held = held_copy(g->held, g->held_count);
    if (whole && copy->held) {
        copy->held_count = g->held_count;
        return copy;
    }
    graph_destroy(copy);
    return NULL;
}

/* Programs mostly add nodes in such an order, which is then one pass. */
CUresult graph_order(const struct graph *g, struct node ***out)
{
    struct node **order = calloc(g->count ? g->count : 1, sizeof(struct node *));
    size_t        placed = 0, before = 1;
    bool          ready;

    if (!order)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < g->count; i++)
        g->nodes[i]->place = 0; /* 0: not yet */
    while (placed < g->count && placed != before) {
        before = placed;
        for (size_t i = 0; i < g->count; i++) {
            struct node *n = g->nodes[i];

            ready = n->place == 0;
            for (size_t k = 0; k < n->before_count && ready; k++)
                ready = n->before[k]->place != 0;
            if (ready) {
                order[placed++] = n;
                n->place = placed;
            }
        }
    }
    if (placed < g->count) {
        free(order);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = order;
    return CUDA_SUCCESS;
}

struct node *graph_find_copy(const struct graph *g, const void *origin)
{
    struct node *found = NULL;

    for (size_t i = 0; i < g->count && !found; i++) {
        if (g->nodes[i]->origin == origin)
            found = g->nodes[i];
        else if (g->nodes[i]->work.type == WORK_GRAPH)
            found = graph_find_copy(g->nodes[i]->work.of.graph, origin);
    }
    return found;
}

/* ---- the functions ---- */

CUresult shim_cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    struct graph *g;

    if (!phGraph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    g = graph_make();
    if (!g)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *phGraph = g->handle;
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphDestroy(CUgraph hGraph)
{
    struct graph *g = graph_of(hGraph);

    if (!g || g->owned)
        return CUDA_ERROR_INVALID_VALUE;
    graph_destroy(g);
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
    struct graph *g = graph_of(originalGraph), *copy;

    if (!g || !phGraphClone)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph_has_memory(g))
        return CUDA_ERROR_NOT_SUPPORTED;
    copy = graph_copy(g);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *phGraphClone = copy->handle;
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)
{
    const struct graph *g = graph_of(hClonedGraph);
    const struct node  *found = g && node_of(hOriginalNode) ? graph_find_copy(g, hOriginalNode) : NULL;

    if (!found || !phNode)
        return CUDA_ERROR_INVALID_VALUE;
    *phNode = found->handle;
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphDestroyNode(CUgraphNode hNode)
{
    struct node *n = node_of(hNode);

    if (!n || graph_has_memory(n->graph))
        return n ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    remove_node(n);
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    const struct node *n = node_of(hNode);

    if (!n || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = (int)n->work.type;
    return CUDA_SUCCESS;
}

/* As CUDA lists things: without a place, their number alone; with one, as many as fit, and NULL after them. */
struct listing {
    CUgraphNode     *out, *out_too; /* out_too NULL: there is no second list */
    CUgraphEdgeData *edges;         /* of plain dependencies they are 0 */
    size_t           room, count;
};

static void list(struct listing *l, const struct node *n, const struct node *too)
{
    if (l->out && l->count < l->room) {
        l->out[l->count] = n->handle;
        if (l->out_too)
            l->out_too[l->count] = too->handle;
        if (l->edges)
            memset(&l->edges[l->count], 0, sizeof *l->edges);
    }
    l->count++;
}

static CUresult end_list(struct listing *l, size_t *number)
{
    for (size_t i = l->count; l->out && i < l->room; i++) {
        l->out[i] = NULL;
        if (l->out_too)
            l->out_too[i] = NULL;
    }
    *number = l->out && l->room < l->count ? l->room : l->count;
    return CUDA_SUCCESS;
}

static CUresult list_nodes(const struct graph *g, CUgraphNode *out, size_t *number, bool roots)
{
    struct listing l = {.out = out};

    if (!g || !number)
        return CUDA_ERROR_INVALID_VALUE;
    l.room = *number;
    for (size_t i = 0; i < g->count; i++)
        if (!roots || g->nodes[i]->before_count == 0)
            list(&l, g->nodes[i], NULL);
    return end_list(&l, number);
}

CUresult shim_cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    return list_nodes(graph_of(hGraph), nodes, numNodes, false);
}

CUresult shim_cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
    return list_nodes(graph_of(hGraph), rootNodes, numRootNodes, true);
}

CUresult shim_cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData, size_t *numEdges)
{
    const struct graph *g = graph_of(hGraph);
    struct listing      l = {.out = from, .out_too = to, .edges = edgeData};

    if (!g || !numEdges || !from != !to)
        return CUDA_ERROR_INVALID_VALUE;
    l.room = *numEdges;
    for (size_t i = 0; i < g->count; i++)
        for (size_t k = 0; k < g->nodes[i]->before_count; k++)
            list(&l, g->nodes[i]->before[k], g->nodes[i]);
    return end_list(&l, numEdges);
}

CUresult shim_cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
    return shim_cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

CUresult shim_cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData,
                                            size_t *numDependencies)
{
    const struct node *n = node_of(hNode);
    struct listing     l = {.out = dependencies, .edges = edgeData};

    if (!n || !numDependencies)
        return CUDA_ERROR_INVALID_VALUE;
    l.room = *numDependencies;
    for (size_t i = 0; i < n->before_count; i++)
        list(&l, n->before[i], NULL);
    return end_list(&l, numDependencies);
}

CUresult shim_cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies)
{
    return shim_cuGraphNodeGetDependencies_v2(hNode, dependencies, NULL, numDependencies);
}

CUresult shim_cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData,
                                              size_t *numDependentNodes)
{
    const struct node *n = node_of(hNode);
    struct listing     l = {.out = dependentNodes, .edges = edgeData};

    if (!n || !numDependentNodes)
        return CUDA_ERROR_INVALID_VALUE;
    l.room = *numDependentNodes;
    for (size_t i = 0; i < n->graph->count; i++)
        if (depends_on(n->graph->nodes[i], n))
            list(&l, n->graph->nodes[i], NULL);
    return end_list(&l, numDependentNodes);
}

CUresult shim_cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes)
{
    return shim_cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, NULL, numDependentNodes);
}

/* ---- edges ---- */

static CUresult change_edges(const struct graph *g, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                             size_t edges, bool adding)
{
    CUresult r = g && (!edges || (from && to)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    if (!r && data)
        return CUDA_ERROR_NOT_SUPPORTED; /* ports: programmatic launches alone have them */
    if (!r && !adding && graph_has_memory(g))
        return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < edges && !r; i++) {
        struct node *f = node_of(from[i]), *t = node_of(to[i]);

        if (!f || !t || f->graph != g || t->graph != g)
            r = CUDA_ERROR_INVALID_VALUE;
        else if (adding)
            r = add_edge(f, t);
        else
            r = remove_edge(f, t) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    return r;
}

CUresult shim_cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                        size_t numDependencies)
{
    return change_edges(graph_of(hGraph), from, to, edgeData, numDependencies, true);
}

CUresult shim_cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies)
{
    return change_edges(graph_of(hGraph), from, to, NULL, numDependencies, true);
}

CUresult shim_cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edgeData,
                                           size_t numDependencies)
{
    return change_edges(graph_of(hGraph), from, to, edgeData, numDependencies, false);
}

CUresult shim_cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies)
{
    return change_edges(graph_of(hGraph), from, to, NULL, numDependencies, false);
}
