/* Surveys the addresses of a memory operation: one pass of a few vector instructions instead of a check per lane. */
#include "device/cpu/interp/ops/access.h"
#include "device/cpu/interp/affine.h"

enum op_space space_of(uint64_t *address)
{
    if (*address - SHARED_WINDOW < WINDOW_BYTES) {
        *address -= SHARED_WINDOW;
        return OP_SHARED;
    }
    if (*address - LOCAL_WINDOW < WINDOW_BYTES) {
        *address -= LOCAL_WINDOW;
        return OP_LOCAL;
    }
    if (*address - PARAM_WINDOW < WINDOW_BYTES) {
        *address -= PARAM_WINDOW;
        return OP_PARAM_KERNEL;
    }
    return OP_GLOBAL;
}

/* The space of the first active lane's address stands for all. An address in another space is out of bounds in this one. */
static bool survey_space(struct lanes *l, const struct op *o, struct access *a)
{
    struct block_run  *r = l->run;
    struct activation *now = activation_now(r);
    uint64_t           example = LANE(uint64_t, o->a)[l->low] + (uint64_t)o->immediate, offset = example;
    enum op_space      s = (enum op_space)o->mode;

    *a = (struct access){.add = (uint64_t)o->immediate};
    if (s == OP_GENERIC) {
        s = space_of(&offset);
        a->add -= example - offset;
    }
    switch (s) {
    case OP_GLOBAL:
        a->origin = (uint8_t *)(uintptr_t)r->grid->memory_base;
        a->add -= r->grid->memory_base;
        a->size = r->grid->memory_span;
        return true;
    case OP_SHARED:
        a->origin = r->shared;
        a->size = r->shared_bytes;
        return true;
    case OP_LOCAL:
        a->origin = r->local;
        a->size = a->pitch = r->local_bytes;
        return true;
    case OP_PARAM:
        a->origin = now->params;
        a->size = a->pitch = now->code->param_bytes;
        return true;
    case OP_PARAM_KERNEL: /* read only; rarely addressed by a register */
    case OP_GENERIC:
        break;
    }
    return false;
}

static bool in_bounds(const struct access *a, uint64_t offset, uint64_t bytes, uint32_t align)
{
    return offset <= a->size && bytes <= a->size - offset && (offset & (align - 1)) == 0;
}

/* Lanes one after the other (step is the access's size), or all at one address (step 0). */
static bool in_step(const struct lanes *l, const uint64_t *address, uint64_t step)
{
    const uint32_t low = l->low, high = l->high;
    uint64_t       differ = 0, next = address[low];

    for (uint32_t i = low; i < high; i++) {
        differ |= address[i] ^ next;
        next += step;
    }
    return differ == 0;
}

/* Compilers use scalar registers for short inner loops like the one below unless the type says otherwise. Every host supports it. */
typedef uint64_t four __attribute__((vector_size(32)));
typedef uint64_t four_in_memory __attribute__((vector_size(32), aligned(8), may_alias));
#define FOUR_AT(p) (*(const four_in_memory *)(const void *)(p))

/* The same within each run; each run's first address is checked for the whole run. */
static bool runs_in_step(const struct lanes *l, const uint64_t *address, uint64_t step, uint32_t bytes, const struct access *a)
{
    const four     expected = {0, step, 2 * step, 3 * step};
    const uint64_t room = step ? (uint64_t)RUN_LANES * bytes : bytes;
    four           differ = {0};

    for (uint32_t i = l->low; i < l->high; i += RUN_LANES) {
        const uint64_t *run = address + i, first = run[0];
        if (!in_bounds(a, first + a->add, room, bytes))
            return false;
        differ |= (FOUR_AT(run) - first) ^ expected;
        differ |= (FOUR_AT(run + 4) - (first + 4 * step)) ^ expected;
        differ |= (FOUR_AT(run + 8) - (first + 8 * step)) ^ expected;
        differ |= (FOUR_AT(run + 12) - (first + 12 * step)) ^ expected;
    }
    return (differ[0] | differ[1] | differ[2] | differ[3]) == 0;
}
static_assert(RUN_LANES == 16, "four times four");

/* The pattern that the first two lanes and the last suggest, verified. SCATTERED: no pattern, and nothing was checked. */
static enum access_pattern pattern_of(const struct lanes *l, const uint64_t *address, uint32_t bytes, const struct access *a)
{
    uint32_t n = l->high - l->low;
    uint64_t first = address[l->low], step = n > 1 ? address[l->low + 1] - first : bytes, most = address[l->high - 1] - first;

    if (step != 0 && step != bytes)
        return SCATTERED;
    if (most == step * (n - 1) && in_step(l, address, step))
        return !in_bounds(a, first + a->add, step ? (uint64_t)n * bytes : bytes, bytes) ? ASTRAY : step ? CONSECUTIVE : SAME;
    if (l->low % RUN_LANES == 0 && n % RUN_LANES == 0 && runs_in_step(l, address, step, bytes, a))
        return step ? RUN_CONSECUTIVE : RUN_SAME;
    return SCATTERED;
}

/* Every active lane's offset is at most `limit` (below 2^63) and aligned. */
static bool all_in_bounds(const struct lanes *l, const uint64_t *address, const struct access *a, uint64_t limit, uint32_t bytes)
{
    const uint64_t add = a->add;
    const uint8_t *m = l->m;
    const uint32_t low = l->low, high = l->high;
    uint64_t       out = 0, bits = 0;

    for (uint32_t i = low; l->dense && i < high; i++) {
        uint64_t at = address[i] + add;
        out |= at | (limit - at);
        bits |= at;
    }
    for (uint32_t i = low; !l->dense && i < high; i++) {
        uint64_t at = address[i] + add, taken = 0 - (uint64_t)m[i];
        out |= (at | (limit - at)) & taken;
        bits |= at & taken;
    }
    return out >> 63 == 0 && (bits & (bytes - 1)) == 0;
}

/* Whole runs of the block's rows: only each run's first address is written to the array. */
static enum access_pattern affine_runs(struct lanes *l, const struct op *o, const struct affine_value *f, uint32_t bytes,
                                       const struct access *a)
{
    uint64_t      *address = LANE(uint64_t, o->a), at = affine_at(l, f, l->low);
    const uint64_t room = f->step_x ? (uint64_t)RUN_LANES * bytes : bytes;
    const uint32_t width = l->width;
    uint32_t       x = l->low % width, y = l->low / width % l->height;

    for (uint32_t i = l->low; i < l->high; i += RUN_LANES) {
        address[i] = at;
        if (!in_bounds(a, at + a->add, room, bytes))
            return ASTRAY;
        at += RUN_LANES * f->step_x;
        x += RUN_LANES;
        if (x < width)
            continue;
        x = 0;
        y = y + 1 == l->height ? 0 : y + 1;
        at = f->base + f->step_y * y;
    }
    return f->step_x ? RUN_CONSECUTIVE : RUN_SAME;
}

/* The pattern of an affine address. ASTRAY: bad, or the array must be examined. Lanes are dense. */
static enum access_pattern affine_pattern(struct lanes *l, const struct op *o, const struct affine_value *f, uint32_t bytes,
                                          const struct access *a)
{
    uint32_t n = l->high - l->low;
    bool     one_row = l->width == l->count || (f->step_x == 0 && f->step_y == 0) ||
                   (f->step_y == f->step_x * l->width && l->width * l->height == l->count);

    if (f->step_x != 0 && f->step_x != bytes)
        return ASTRAY;
    if (one_row && in_bounds(a, a->safe, f->step_x ? (uint64_t)n * bytes : bytes, bytes))
        return f->step_x ? CONSECUTIVE : SAME;
    if (!one_row && l->width % RUN_LANES == 0 && l->low % RUN_LANES == 0 && n % RUN_LANES == 0)
        return affine_runs(l, o, f, bytes, a);
    return ASTRAY;
}

/* False: the pattern is still unknown, and the array of addresses is filled. */
static bool survey_affine(struct lanes *l, const struct op *o, uint32_t bytes, struct access *a, enum access_pattern *p)
{
    struct affine_value *f = affine_address(l, o);

    if (!f)
        return false;
    LANE(uint64_t, o->a)[l->low] = affine_at(l, f, l->low);
    if (l->dense && survey_space(l, o, a) && !a->pitch && a->size >= bytes && a->size >> 63 == 0) {
        a->safe = LANE(uint64_t, o->a)[l->low] + a->add;
        a->first = (uint8_t *)((uintptr_t)a->origin + a->safe); /* may be out of bounds until affine_pattern() has checked it */
        *p = affine_pattern(l, o, f, bytes, a);
        if (*p != ASTRAY)
            return true;
    }
    affine_fill(l, f, o->a, 8);
    return false;
}

enum access_pattern survey_access(struct lanes *l, const struct op *o, uint32_t bytes, struct access *a)
{
    const uint64_t     *address = LANE(uint64_t, o->a);
    enum access_pattern p = SCATTERED;

    if (survey_affine(l, o, bytes, a, &p))
        return p;
    if (l->plain || l->low >= l->high || !survey_space(l, o, a) || a->size < bytes || a->size >> 63)
        return ASTRAY;
    a->safe = address[l->low] + a->add; /* active, since masks are measured */
    if (l->dense && !a->pitch)
        p = pattern_of(l, address, bytes, a);
    if (p == SCATTERED && !all_in_bounds(l, address, a, a->size - bytes, bytes))
        p = ASTRAY;
    if (p == ASTRAY)
        return p;
    a->first = a->origin + a->safe;
    return a->pitch ? LANEWISE : p;
}
