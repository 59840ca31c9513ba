/* User objects: what graphs keep alive for the program. The last reference calls the program's destructor, on the thread of callbacks. */
#include <stdlib.h>

#include "graph/graph.h"

enum { NO_DESTRUCTOR_SYNC = 1, GRAPH_MOVE = 1, COUNT_MAX = INT32_MAX };

struct user_object {
    void    *handle;
    CUhostFn destroy;
    void    *data;
    uint64_t references;
};

static struct user_object *object_of(const void *handle)
{
    return handle_get(HANDLE_USER_OBJECT, handle);
}

static void release(struct user_object *o, uint64_t count)
{
    o->references -= count;
    if (o->references)
        return;
    callback_later(o->destroy, o->data);
    handle_remove(o->handle);
    free(o);
}

void held_release(struct held *h, size_t count)
{
    for (size_t i = 0; i < count; i++)
        release(h[i].object, h[i].count);
    free(h);
}

struct held *held_copy(const struct held *h, size_t count)
{
    struct held *copy = calloc(count + 1, sizeof *copy);

    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = h[i];
        copy[i].object->references += copy[i].count;
    }
    return copy;
}

CUresult shim_cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy, unsigned int initialRefcount, unsigned int flags)
{
    struct user_object *o;

    if (!object_out || !destroy || initialRefcount == 0 || initialRefcount > COUNT_MAX || flags != NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    o = calloc(1, sizeof *o);
    if (o) {
        *o = (struct user_object){.destroy = destroy, .data = ptr, .references = initialRefcount};
        o->handle = handle_add(HANDLE_USER_OBJECT, o);
    }
    if (!o || !o->handle) {
        free(o);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *object_out = o->handle;
    return CUDA_SUCCESS;
}

CUresult shim_cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    struct user_object *o = object_of(object);

    if (!o || count == 0 || count > COUNT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    o->references += count;
    return CUDA_SUCCESS;
}

CUresult shim_cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    struct user_object *o = object_of(object);

    if (!o || count == 0 || count > o->references)
        return CUDA_ERROR_INVALID_VALUE;
    release(o, count);
    return CUDA_SUCCESS;
}

/* With GRAPH_MOVE the references are the caller's own, which it gives away. */
CUresult shim_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)
{
    struct graph       *g = graph_of(graph);
    struct user_object *o = object_of(object);
    struct held        *larger;

    if (!g || !o || count == 0 || count > COUNT_MAX || flags > GRAPH_MOVE || (flags == GRAPH_MOVE && count > o->references))
        return CUDA_ERROR_INVALID_VALUE;
    larger = realloc(g->held, (g->held_count + 1) * sizeof *larger);
    if (!larger)
        return CUDA_ERROR_OUT_OF_MEMORY;
    g->held = larger;
    g->held[g->held_count++] = (struct held){o, count};
    o->references += flags == GRAPH_MOVE ? 0 : count;
    return CUDA_SUCCESS;
}

CUresult shim_cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
    struct graph       *g = graph_of(graph);
    struct user_object *o = object_of(object);

    for (size_t i = 0; g && o && count && i < g->held_count; i++)
        if (g->held[i].object == o && g->held[i].count >= count) {
            g->held[i].count -= count;
            if (!g->held[i].count)
                g->held[i] = g->held[--g->held_count];
            release(o, count);
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}
