/* The kernels and globals of a module: building the table, and its encoding as bytes. */
#include "ipc/kernel_table.h"
#include "ipc/bounds.h"

#include <stdlib.h>
#include <string.h>

/* All numbers are in host byte order: both sides are the same program on the same machine. */
struct table_head {
    uint32_t magic;
    uint32_t kernels_count;
    uint32_t globals_count;
    uint32_t prints;
};

struct kernel_row {
    uint32_t name_bytes;
    uint32_t registers, shared_bytes, local_bytes, const_bytes, max_threads, max_dynamic_shared_bytes;
    uint32_t block[3];
    uint32_t params_count;
    uint32_t params_bytes;
    uint32_t engine;
    char     engine_reason[KERNEL_REASON_BYTES];
};

struct global_row {
    uint64_t address;
    uint64_t bytes;
    uint32_t constant;
    uint32_t name_bytes;
};

static const uint32_t MAGIC = 0x3162746b; /* "ktb1" */

void kernel_table_init(struct kernel_table *t)
{
    *t = (struct kernel_table){0};
}

void kernel_table_finish(struct kernel_table *t)
{
    for (uint32_t i = 0; i < t->kernels_count; i++) {
        free(t->kernels[i].name);
        free(t->kernels[i].params);
    }
    for (uint32_t i = 0; i < t->globals_count; i++)
        free(t->globals[i].name);
    free(t->kernels);
    free(t->globals);
    *t = (struct kernel_table){0};
}

/* Room for one more element of `size` bytes; the array doubles at every power of two. */
static void *grow_array(void *array, uint32_t count, size_t size)
{
    if (count & (count - 1))
        return array;
    return realloc(array, (count ? (size_t)count * 2 : 1) * size);
}

static bool name_fits(struct span name)
{
    return name.bytes > 0 && name.bytes < KERNEL_NAME_BYTES && !memchr(name.data, 0, name.bytes);
}

struct kernel_desc *kernel_table_add(struct kernel_table *t, struct span name, uint32_t params_count)
{
    struct kernel_desc  k = {0};
    struct kernel_desc *array;

    if (t->kernels_count == KERNELS_PER_MODULE_MAX || params_count > KERNEL_PARAMS_MAX || !name_fits(name))
        return NULL;
    array = grow_array(t->kernels, t->kernels_count, sizeof *array);
    if (!array)
        return NULL;
    t->kernels = array;
    k.name = strndup(name.data, name.bytes);
    k.params = params_count ? calloc(params_count, sizeof *k.params) : NULL;
    k.params_count = params_count;
    if (!k.name || (params_count && !k.params)) {
        free(k.name);
        free(k.params);
        return NULL;
    }
    array[t->kernels_count] = k;
    return &array[t->kernels_count++];
}

struct kernel_global *kernel_table_add_global(struct kernel_table *t, struct span name)
{
    struct kernel_global *array;

    if (t->globals_count == GLOBALS_PER_MODULE_MAX || !name_fits(name))
        return NULL;
    array = grow_array(t->globals, t->globals_count, sizeof *array);
    if (!array)
        return NULL;
    t->globals = array;
    array[t->globals_count] = (struct kernel_global){.name = strndup(name.data, name.bytes)};
    return array[t->globals_count].name ? &array[t->globals_count++] : NULL;
}

int kernel_table_find(const struct kernel_table *t, struct span name)
{
    for (uint32_t i = 0; i < t->kernels_count; i++)
        if (span_is(name, t->kernels[i].name))
            return (int)i;
    return -1;
}

/* ---- to bytes ---- */

static void kernel_add(const struct kernel_desc *k, struct buf *out)
{
    struct kernel_row row = {(uint32_t)strlen(k->name),
                             k->registers,
                             k->shared_bytes,
                             k->local_bytes,
                             k->const_bytes,
                             k->max_threads,
                             k->max_dynamic_shared_bytes,
                             {k->block[0], k->block[1], k->block[2]},
                             k->params_count,
                             k->params_bytes,
                             k->engine,
                             ""};

    memcpy(row.engine_reason, k->engine_reason, sizeof row.engine_reason);
    buf_add(out, &row, sizeof row);
    buf_add(out, k->name, row.name_bytes);
    if (k->params_count)
        buf_add(out, k->params, k->params_count * sizeof *k->params);
}

enum status kernel_table_encode(const struct kernel_table *t, struct buf *out)
{
    struct table_head head = {MAGIC, t->kernels_count, t->globals_count, t->prints};

    buf_add(out, &head, sizeof head);
    for (uint32_t i = 0; i < t->kernels_count; i++)
        kernel_add(&t->kernels[i], out);
    for (uint32_t i = 0; i < t->globals_count; i++) {
        const struct kernel_global *g = &t->globals[i];
        struct global_row           row = {g->address, g->bytes, g->constant, (uint32_t)strlen(g->name)};

        buf_add(out, &row, sizeof row);
        buf_add(out, g->name, row.name_bytes);
    }
    return out->failed ? STATUS_OUT_OF_MEMORY : STATUS_OK;
}

/* ---- from bytes ---- */

static bool take_from(struct span *in, void *to, size_t bytes)
{
    if (in->bytes < bytes)
        return false;
    if (bytes)
        memcpy(to, in->data, bytes);
    *in = span_from(*in, bytes);
    return true;
}

static bool take_span(struct span *in, size_t bytes, struct span *out)
{
    if (in->bytes < bytes)
        return false;
    *out = span_first(*in, bytes);
    *in = span_from(*in, bytes);
    return true;
}

static bool params_fit(const struct kernel_desc *k)
{
    for (uint32_t i = 0; i < k->params_count; i++) {
        const struct kernel_param *p = &k->params[i];

        if (p->offset > k->params_bytes || p->size > k->params_bytes - p->offset || !memchr(p->type, 0, sizeof p->type))
            return false;
    }
    return k->params_bytes <= KERNEL_PARAM_BYTES_MAX;
}

static enum status kernel_take(struct span *in, struct kernel_table *t)
{
    struct kernel_row   row;
    struct span         name;
    struct kernel_desc *k;

    if (!take_from(in, &row, sizeof row) || !take_span(in, row.name_bytes, &name) || !name_fits(name) ||
        row.params_count > KERNEL_PARAMS_MAX || row.engine > KERNEL_ENGINE_LLVM ||
        !memchr(row.engine_reason, 0, sizeof row.engine_reason) || in->bytes < row.params_count * sizeof *k->params)
        return STATUS_INTERNAL;
    k = kernel_table_add(t, name, row.params_count);
    if (!k)
        return STATUS_OUT_OF_MEMORY;
    k->registers = row.registers;
    k->shared_bytes = row.shared_bytes;
    k->local_bytes = row.local_bytes;
    k->const_bytes = row.const_bytes;
    k->max_threads = row.max_threads;
    k->max_dynamic_shared_bytes = row.max_dynamic_shared_bytes;
    memcpy(k->block, row.block, sizeof k->block);
    k->params_bytes = row.params_bytes;
    k->engine = (enum kernel_engine)row.engine;
    memcpy(k->engine_reason, row.engine_reason, sizeof k->engine_reason);
    take_from(in, k->params, row.params_count * sizeof *k->params);
    return params_fit(k) ? STATUS_OK : STATUS_INTERNAL;
}

static enum status global_take(struct span *in, struct kernel_table *t)
{
    struct global_row     row;
    struct span           name;
    struct kernel_global *g;

    if (!take_from(in, &row, sizeof row) || !take_span(in, row.name_bytes, &name) || !name_fits(name) ||
        row.bytes > UINT64_MAX - row.address)
        return STATUS_INTERNAL;
    g = kernel_table_add_global(t, name);
    if (!g)
        return STATUS_OUT_OF_MEMORY;
    g->address = row.address;
    g->bytes = row.bytes;
    g->constant = row.constant != 0;
    return STATUS_OK;
}

static enum status decode_table(struct span in, struct kernel_table *t)
{
    struct table_head head;
    enum status       st = STATUS_OK;

    if (!take_from(&in, &head, sizeof head) || head.magic != MAGIC || head.kernels_count > KERNELS_PER_MODULE_MAX ||
        head.globals_count > GLOBALS_PER_MODULE_MAX)
        return STATUS_INTERNAL;
    t->prints = head.prints != 0;
    for (uint32_t i = 0; i < head.kernels_count && !st; i++)
        st = kernel_take(&in, t);
    for (uint32_t i = 0; i < head.globals_count && !st; i++)
        st = global_take(&in, t);
    return !st && in.bytes ? STATUS_INTERNAL : st;
}

enum status kernel_table_decode(struct span bytes, struct kernel_table *t)
{
    enum status st;

    kernel_table_init(t);
    st = decode_table(bytes, t);
    if (st)
        kernel_table_finish(t);
    return st;
}
