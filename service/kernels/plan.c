/* From a kernel's arguments to the shape of its launch. */
#include <inttypes.h>
#include <stdio.h>

#include "kernels/kernels.h"

enum {
    VECTOR_BYTES = 16, /* the widest load of a thread */
    ROW_THREADS_MAX = 1024,
    ROW_VECTORS = 5,      /* of a row for each thread, before the block grows */
    ROW_VECTORS_HALF = 2, /* of elements of two bytes */
    AXIS_COLUMNS = 32,    /* neighbours in memory that a block takes when the axis is not the last one */
    WARP_THREADS = 32,    /* each has a row when the axis is the last one and short */
    SHADER_THREADS = 256, /* of a block: kernels/common.glsl */
    SHADER_SHORT = 32,    /* an axis that a thread reduces alone, and not a block: kernels/reduce.comp */
    MAY_TURN = 65535,     /* lavapipe ends a thread's loops after so many turns, without a word */
};

static uint64_t quotient_up(uint64_t n, uint64_t by)
{
    return n / by + (n % by != 0);
}

/* At least one block, and no more than the grid may have: kernels that can meet the limit loop over the rest. */
static uint32_t bounded_blocks(uint64_t blocks, uint32_t most)
{
    return blocks == 0 ? 1 : blocks > most ? most : (uint32_t)blocks;
}

static uint64_t element_bytes(enum builtin_dtype dtype)
{
    return builtin_type_bytes(&(struct builtin_param){.type = BUILTIN_TYPE_T}, dtype);
}

static uint32_t vectors_of(const struct builtin *k, const struct builtin_device *device)
{
    return device->on_host ? k->shape.vectors_on_host : k->shape.vectors;
}

uint32_t builtin_vectors(const struct builtin *k, bool on_host)
{
    return k->shape.rule == BUILTIN_FLAT ? vectors_of(k, &(struct builtin_device){.on_host = on_host}) : 0;
}

static uint64_t per_block(const struct builtin *k, enum builtin_dtype dtype, const struct builtin_device *device)
{
    return (uint64_t)k->shape.block * vectors_of(k, device) * (VECTOR_BYTES / element_bytes(dtype));
}

static uint32_t row_threads(uint64_t columns, enum builtin_dtype dtype)
{
    uint64_t bytes = element_bytes(dtype);
    uint64_t per_thread = (bytes == 2 ? ROW_VECTORS_HALF : ROW_VECTORS) * (VECTOR_BYTES / bytes);
    uint32_t threads = 32;

    while (threads < ROW_THREADS_MAX && threads * per_thread < columns)
        threads *= 2;
    return threads;
}

static void shape_axis(const struct builtin *k, const uint64_t n[3], const struct builtin_device *device, struct builtin_plan *out)
{
    uint64_t blocks = n[0];

    if (n[2] == 1 && n[1] <= BUILTIN_ROW_OF_WARP)
        blocks = quotient_up(n[0], k->shape.block / WARP_THREADS);
    else if (n[2] != 1 && __builtin_mul_overflow(n[0], quotient_up(n[2], AXIS_COLUMNS), &blocks))
        blocks = UINT64_MAX;
    out->grid[0] = bounded_blocks(blocks, device->max_grid[0]);
}

static void shape_tiles(const struct builtin *k, const uint64_t n[3], const struct builtin_device *device, struct builtin_plan *out)
{
    for (unsigned i = 0; i < 3; i++)
        out->grid[i] = bounded_blocks(quotient_up(n[i], k->shape.tile[i]), device->max_grid[i]);
}

static uint32_t at_once(uint32_t per_sm, const struct builtin_device *device)
{
    uint64_t blocks = (uint64_t)per_sm * (device->multiprocessors ? device->multiprocessors : 1);

    return bounded_blocks(blocks, BUILTIN_BLOCKS_AT_ONCE_MAX);
}

/* With warpgroups, one block per multiprocessor has nearly all of its shared memory. */
static void shape_pool(const struct builtin *k, enum builtin_dtype dtype, const uint64_t n[3], const struct builtin_device *device,
                       struct builtin_plan *out)
{
    bool warpgroups = device->warpgroups && (k->shape.warpgroup >> dtype & 1);

    if (warpgroups)
        out->block[0] = BUILTIN_WARPGROUP_THREADS;
    out->grid[0] = bounded_blocks(quotient_up(n[0], k->shape.tile[0]), at_once(warpgroups ? 1 : k->shape.per_sm, device));
    out->shared_bytes = warpgroups ? BUILTIN_WARPGROUP_BYTES : 0;
}

static void set_shape(const struct builtin *k, enum builtin_dtype dtype, const uint64_t n[3], const struct builtin_device *device,
                      struct builtin_plan *out)
{
    out->block[0] = k->shape.block;
    switch (k->shape.rule) {
    case BUILTIN_FLAT:
        out->grid[0] = bounded_blocks(quotient_up(n[0], per_block(k, dtype, device)), device->max_grid[0]);
        break;
    case BUILTIN_SHARES:
        out->grid[0] = bounded_blocks(quotient_up(n[0], per_block(k, dtype, device)), at_once(k->shape.per_sm, device));
        out->takes_slot = true;
        break;
    case BUILTIN_ROWS:
        out->block[0] = row_threads(n[1], dtype);
        out->grid[0] = bounded_blocks(n[0], device->max_grid[0]);
        break;
    case BUILTIN_AXIS:
        shape_axis(k, n, device, out);
        break;
    case BUILTIN_TILES:
        shape_tiles(k, n, device, out);
        break;
    case BUILTIN_POOL:
        shape_pool(k, dtype, n, device, out);
        break;
    case BUILTIN_WHOLE:
        out->grid[0] = bounded_blocks(quotient_up(n[0], k->shape.tile[0]), at_once(k->shape.per_sm, device));
        out->cooperative = out->takes_slot = true;
        break;
    }
}

static enum status too_much(const struct builtin *k, struct problem *why)
{
    return problem_field(why, STATUS_ARGUMENT_MISMATCH, "/args", "range", "the sizes given to %s are beyond 2^62", k->name);
}

static enum status check_values(const struct builtin *k, enum builtin_dtype dtype, const uint64_t *values, struct problem *why)
{
    for (unsigned i = 0; i < k->params_count; i++) {
        const struct builtin_param *p = &k->params[i];
        enum builtin_dtype          type = builtin_type_of(p, dtype);
        char                        at[PROBLEM_POINTER_BYTES];

        if (p->access != BUILTIN_VALUE || type < BUILTIN_DTYPE_i8)
            continue;
        snprintf(at, sizeof at, "/args/%u", i);
        if (p->power_of_two && (values[i] & (values[i] - 1)))
            return problem_field(why, STATUS_ARGUMENT_MISMATCH, at, "value", "%s of %s must be a power of two", p->name, k->name);
        if (values[i] >= p->least && values[i] <= p->most)
            continue;
        if (p->most == UINT64_MAX)
            return problem_field(why, STATUS_ARGUMENT_MISMATCH, at, "range", "%s of %s must be at least %" PRIu64, p->name, k->name,
                                 p->least);
        return problem_field(why, STATUS_ARGUMENT_MISMATCH, at, "range", "%s of %s must be from %" PRIu64 " to %" PRIu64, p->name, k->name,
                             p->least, p->most);
    }
    return STATUS_OK;
}

/* Blocks that have work: a block without costs lavapipe about 20 us. */
static bool shader_blocks(const struct builtin *k, const struct builtin_shader *s, enum builtin_dtype dtype, const uint64_t *values,
                          uint64_t *out)
{
    uint64_t length;

    *out = 1;
    if (s->blocks && !builtin_extent(k, s->blocks, dtype, values, 0, out))
        return false;
    if (k->shape.rule != BUILTIN_AXIS)
        return true;
    if (!builtin_extent(k, k->shape.count[1], dtype, values, 0, &length))
        return false;
    if (length <= SHADER_SHORT)
        *out = quotient_up(*out, SHADER_THREADS);
    return true;
}

/* A shader's blocks are all alike, and share nothing of their module. */
static enum status plan_shader(const struct builtin *k, enum builtin_dtype dtype, const uint64_t *values,
                               const struct builtin_device *device, struct builtin_plan *out, struct problem *why)
{
    const struct builtin_shader *s = builtin_shader_of(k, dtype);
    uint64_t                     blocks = 1, turns = 0;

    if (!s)
        return problem_field(why, STATUS_INVALID_FIELD, "/dtype", "value",
                             "vulkan devices do not have %s of %s yet; cpu and cuda devices do", k->name, builtin_dtype_name(dtype));
    if (!shader_blocks(k, s, dtype, values, &blocks) || (s->turns && !builtin_extent(k, s->turns, dtype, values, 0, &turns)))
        return too_much(k, why);
    if (s->blocks)
        out->grid[0] = bounded_blocks(blocks, device->max_grid[0]);
    out->block[0] = SHADER_THREADS;
    out->takes_slot = out->cooperative = false;
    out->shared_bytes = 0;
    if (turns > MAY_TURN || turns * quotient_up(blocks, out->grid[0]) > MAY_TURN)
        return problem_field(why, STATUS_ARGUMENT_MISMATCH, "/args", "range",
                             "%s of these sizes takes more than the %d turns of a loop that every vulkan device makes", k->name, MAY_TURN);
    return STATUS_OK;
}

enum status builtin_plan_of(const struct builtin *k, enum builtin_dtype dtype, const uint64_t *values, const struct builtin_device *device,
                            struct builtin_plan *out, struct problem *why)
{
    uint64_t    n[3] = {1, 1, 1};
    enum status st = check_values(k, dtype, values, why);

    *out = (struct builtin_plan){.grid = {1, 1, 1}, .block = {1, 1, 1}};
    for (unsigned i = 0; i < 3 && !st; i++)
        if (k->shape.count[i] && !builtin_extent(k, k->shape.count[i], dtype, values, 0, &n[i]))
            st = too_much(k, why);
    if (st)
        return st;
    set_shape(k, dtype, n, device, out);
    if (device->shades)
        st = plan_shader(k, dtype, values, device, out, why);
    if (st || !k->shape.scratch || (device->shades && !builtin_shader_of(k, dtype)->scratch))
        return st;
    out->takes_scratch = true;
    if (!builtin_extent(k, k->shape.scratch, dtype, values, out->grid[0], &out->scratch_bytes))
        return too_much(k, why);
    out->scratch_bytes += out->scratch_bytes == 0;
    return STATUS_OK;
}

enum status builtin_buffer_bytes(const struct builtin *k, enum builtin_dtype dtype, const uint64_t *values, unsigned i, uint64_t *out,
                                 struct problem *why)
{
    uint64_t elements;

    if (!builtin_extent(k, k->params[i].elements, dtype, values, 0, &elements) ||
        __builtin_mul_overflow(elements, builtin_type_bytes(&k->params[i], dtype), out))
        return too_much(k, why);
    return STATUS_OK;
}
