/* Graphs: nodes of work, each after those that it depends on. They are run one after the other in such an order, as everything here is. graph.c
 * keeps nodes and edges, work.c what nodes do, exec.c instances, capture.c makes nodes of what is called on a stream. */
#ifndef GPUREST_SHIM_GRAPH_H
#define GPUREST_SHIM_GRAPH_H

#include "shim.h"

/* CUgraphNodeType. */
enum work_type {
    WORK_KERNEL,
    WORK_COPY,
    WORK_FILL,
    WORK_HOST,
    WORK_GRAPH,
    WORK_EMPTY,
    WORK_EVENT_WAIT,
    WORK_EVENT_RECORD,
    WORK_ALLOC = 10,
    WORK_FREE = 11,
};

struct graph_memory;

struct kernel_work {
    CUfunction            function;
    gpurest_launch_config config;
    void                **params; /* owned, as is the block that they point into */
    char                 *block;
    size_t                count, bytes;
};

struct work {
    enum work_type type;
    union {
        struct kernel_work      kernel;
        CUDA_MEMCPY3D           copy;
        CUDA_MEMSET_NODE_PARAMS fill;
        CUDA_HOST_NODE_PARAMS   host;
        struct graph           *graph; /* owned */
        CUevent                 event;
        struct graph_memory    *memory;  /* retained */
        CUdeviceptr             address; /* of WORK_FREE */
    } of;
};

struct node {
    struct graph *graph;
    void         *handle;
    const void   *origin; /* handle of the node that it is a copy of; NULL: none */
    struct work   work;
    struct node **before; /* what it depends on */
    size_t        before_count;
    bool          disabled;
    size_t        place; /* scratch: number in the graph or in an order */
};

struct user_object;

/* References to what the program wants kept. */
struct held {
    struct user_object *object;
    uint64_t            count;
};

struct graph {
    void         *handle;
    struct node **nodes;
    size_t        count;
    struct held  *held;
    size_t        held_count;
    bool          owned; /* of a node or an instance: programs cannot destroy it */
};

/* ---- graph.c ---- */

struct graph *graph_make(void);
void          graph_destroy(struct graph *g);
/* With all nodes and their work. NULL: out of memory. */
struct graph *graph_copy(const struct graph *g);
/* Takes the work. *out may be NULL. */
CUresult graph_add(struct graph *g, const CUgraphNode *before, size_t before_count, struct work *work, CUgraphNode *out);
/* An order in which each node stands behind those that it depends on; the caller frees it. CUDA_ERROR_INVALID_VALUE: there is none. */
CUresult      graph_order(const struct graph *g, struct node ***out);
struct graph *graph_of(const void *handle);
struct node  *node_of(const void *handle);
/* The node of that type; NULL: the handle is none. */
struct node *node_of_type(const void *handle, enum work_type type);
struct node *graph_find_copy(const struct graph *g, const void *origin);
/* More things after `count` of them; false: out of memory. */
bool grow_list(void *list_of_pointers, size_t count);

/* ---- user_object.c ---- */

/* Frees the list, too. */
void held_release(struct held *h, size_t count);
/* NULL: out of memory. */
struct held *held_copy(const struct held *h, size_t count);

/* ---- memory.c ---- */

CUresult work_of_allocation(const struct graph *owner, size_t bytes, struct work *out);
CUresult work_of_free(const struct graph *g, CUdeviceptr address, struct work *out);
uint64_t graph_memory_address(const struct graph_memory *m);
void     graph_memory_retain(struct graph_memory *m);
void     graph_memory_release(struct graph_memory *m);
/* Of a launch: the memory is the program's now. */
CUresult graph_memory_run(struct graph_memory *m);
bool     graph_memory_live(const struct graph_memory *m);
/* Nodes that allocate or free: such a graph cannot be copied, be a child or lose nodes. */
bool graph_has_memory(const struct graph *g);
/* An instance has its memory: there can be one. */
bool graph_memory_instantiated(const struct graph *g);

/* ---- work.c ---- */

CUresult work_of_kernel(CUfunction function, const gpurest_launch_config *config, void **params, void **extra, struct work *out);
CUresult work_of_kernel_node(const CUDA_KERNEL_NODE_PARAMS *p, struct work *out);
CUresult work_of_copy(const CUDA_MEMCPY3D *c, struct work *out);
CUresult work_of_fill(const CUDA_MEMSET_NODE_PARAMS *p, struct work *out);
CUresult work_of_host(const CUDA_HOST_NODE_PARAMS *p, struct work *out);
CUresult work_of_graph(const struct graph *g, struct work *out);
CUresult work_of_event(enum work_type type, CUevent event, struct work *out);
CUresult work_copy(const struct work *from, struct work *out);
void     work_finish(struct work *w);
/* In place of the node's own; takes it. */
CUresult work_replace(struct node *n, CUresult made, struct work *w);
/* Not for WORK_GRAPH. */
CUresult work_run(const struct work *w, CUstream stream);

#endif
