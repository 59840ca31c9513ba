/* Compiled blocks on one host thread: what their calls need, from its start to its end. */
#include "device/cpu/interp/native_internal.h"

#include <stdlib.h>

bool native_begins(const struct code *c, uint32_t block)
{
    return c->native->entry[block];
}

/* They stay as long as blocks have the same shape. */
static bool make_mask(struct native_call *c, const struct block_run *r)
{
    if (c->mask && c->stride >= r->lanes.stride)
        return true;
    free(c->mask);
    c->mask = calloc(r->lanes.stride, 1);
    return c->mask != NULL;
}

static bool make_thread_ids(struct native_call *c, const struct block_run *r)
{
    const uint32_t *b = r->grid->launch->block;
    size_t          n = r->lanes.stride;

    if (c->tid[0] && memcmp(c->ntid, b, sizeof c->ntid) == 0)
        return true;
    free(c->tid[0]);
    c->tid[0] = calloc(3 * n, sizeof *c->tid[0]);
    if (!c->tid[0])
        return false;
    memcpy(c->ntid, b, sizeof c->ntid);
    c->tid[1] = c->tid[0] + n;
    c->tid[2] = c->tid[0] + 2 * n;
    for (size_t i = 0; i < n; i++) {
        c->tid[0][i] = (uint32_t)i % b[0];
        c->tid[1][i] = (uint32_t)i / b[0] % b[1];
        c->tid[2][i] = (uint32_t)i / b[0] / b[1];
    }
    return true;
}

/* What a fault may have left behind. */
static void forget_all(struct native_call *c)
{
    memset(c->touched, 0, sizeof c->touched);
    memset(c->pending, 0, sizeof c->pending);
    memset(c->held, 0, sizeof c->held);
    c->active = false;
    c->leaves = c->mixed = c->tired = c->trusted = c->strip_left = 0;
}

enum status native_prepare(struct block_run *r)
{
    const struct grid_run *g = r->grid;
    struct native_call    *c = r->native = r->native ? r->native : calloc(1, sizeof *c);

    if (!c || !make_thread_ids(c, r) || !make_mask(c, r))
        return STATUS_OUT_OF_MEMORY;
    forget_all(c);
    memset(c->mask, 0, r->lanes.stride);
    c->stride = r->lanes.stride;
    c->params = g->launch->params;
    c->memory_base = g->memory_base;
    c->memory_span = g->memory_span;
    c->shared = r->shared;
    c->shared_bytes = r->shared_bytes;
    c->local = r->local;
    c->local_bytes = r->local_bytes;
    c->budget = NATIVE_BACK_EDGES;
    c->contended = &g->contended;
    c->access = native_access;
    c->operate = native_operate;
    c->settle = native_settle;
    c->run = r;
    memcpy(c->nctaid, g->launch->grid, sizeof c->nctaid);
    return STATUS_OK;
}

void native_begin_block(struct block_run *r)
{
    r->native->doubted = false;
    if (r->grid->code->native && r->grid->code->native->lines_count)
        memset(r->native->held, 0, r->lanes.count * sizeof *r->native->held);
}

void native_finish(struct block_run *r)
{
    if (r->native) {
        free(r->native->tid[0]);
        free(r->native->mask);
    }
    free(r->native);
    r->native = NULL;
}
