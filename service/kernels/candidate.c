/* The other shapes that kernels can be built in, expanded from kernels/candidates.def, and the sizes that measurements of them stand for.
 */
#include "kernels/kernels.h"

enum condition { ALWAYS, WARP_PER_ROW, NO_WARPGROUPS };

static const char ANY[] = "ANY";

static const struct candidate {
    const char       *family, *kernel;
    enum builtin_rule rule;
    const char       *name;
    uint32_t          threads, tile[2];
    enum condition    when;
    const char       *options[BUILTIN_CANDIDATE_OPTIONS_MAX + 1]; /* up to a NULL */
} candidates[] = {
#define OPTIONS(...)                                                                                                                       \
    {                                                                                                                                      \
        __VA_ARGS__                                                                                                                        \
    }
#define CANDIDATE(family, kernel, rule, name, threads, tile_x, tile_y, when, options)                                                      \
    {#family, #kernel, BUILTIN_##rule, #name, threads, {tile_x, tile_y}, when, options},
#include "kernels/candidates.def"
#undef CANDIDATE
#undef OPTIONS
};

static bool is_of(const struct candidate *c, const struct builtin *k)
{
    return c->rule == k->shape.rule && strcmp(c->family, k->family) == 0 &&
           (strcmp(c->kernel, ANY) == 0 || strcmp(c->kernel, k->name) == 0);
}

/* NULL for the kernel's own shape, number 0, and behind the last. */
static const struct candidate *candidate_at(const struct builtin *k, unsigned number)
{
    for (size_t i = 0; i < COUNT(candidates) && number; i++)
        if (is_of(&candidates[i], k) && --number == 0)
            return &candidates[i];
    return NULL;
}

unsigned builtin_candidates(const struct builtin *k)
{
    unsigned n = 1;

    for (size_t i = 0; i < COUNT(candidates) && n < BUILTIN_CANDIDATES_MAX; i++)
        n += is_of(&candidates[i], k);
    return n;
}

const char *builtin_candidate_name(const struct builtin *k, unsigned number)
{
    const struct candidate *c = candidate_at(k, number);

    return c ? c->name : number == 0 ? "default" : NULL;
}

bool builtin_candidate_find(const struct builtin *k, struct span name, unsigned *number)
{
    for (unsigned i = 0; i < builtin_candidates(k); i++)
        if (span_is(name, builtin_candidate_name(k, i))) {
            *number = i;
            return true;
        }
    return false;
}

const char *const *builtin_candidate_options(const struct builtin *k, unsigned number)
{
    static const char *const none[] = {NULL};
    const struct candidate  *c = candidate_at(k, number);

    return c ? c->options : none;
}

struct builtin builtin_as(const struct builtin *k, unsigned number)
{
    const struct candidate *c = candidate_at(k, number);
    struct builtin          as = *k;

    if (!c)
        return as;
    as.shape.block = c->threads;
    for (unsigned i = 0; i < 2; i++)
        if (c->tile[i])
            as.shape.tile[i] = c->tile[i];
    return as;
}

static uint64_t value_of(const struct builtin *k, const uint64_t *values, const char *name)
{
    for (unsigned i = 0; i < k->params_count; i++)
        if (k->params[i].access == BUILTIN_VALUE && strcmp(k->params[i].name, name) == 0)
            return values[i];
    return 0;
}

bool builtin_candidate_fits(const struct builtin *k, unsigned number, enum builtin_dtype dtype, const uint64_t *values,
                            const struct builtin_device *device)
{
    const struct candidate *c = candidate_at(k, number);

    switch (c ? c->when : ALWAYS) {
    case ALWAYS:
        return true;
    case WARP_PER_ROW: /* else the warps of a block share out a sum */
        return value_of(k, values, "inner") == 1 && value_of(k, values, "length") <= BUILTIN_ROW_OF_WARP;
    case NO_WARPGROUPS: /* they have tiles of their own */
        return !(device->warpgroups && (k->shape.warpgroup >> dtype & 1));
    }
    return false;
}

/* ---- sizes ---- */

enum status builtin_all_bytes(const struct builtin *k, enum builtin_dtype dtype, const uint64_t *values, uint64_t *out, struct problem *why)
{
    enum status st = STATUS_OK;
    uint64_t    bytes;

    *out = 0;
    for (unsigned i = 0; i < k->params_count && !st; i++) {
        if (k->params[i].access == BUILTIN_VALUE)
            continue;
        st = builtin_buffer_bytes(k, dtype, values, i, &bytes, why);
        if (!st && __builtin_add_overflow(*out, bytes, out))
            st = problem_set(why, STATUS_ARGUMENT_MISMATCH, "the buffers of %s hold more than 2^64 bytes", k->name);
    }
    return st;
}

unsigned builtin_size_class(uint64_t bytes)
{
    return bytes ? (63u - (unsigned)__builtin_clzll(bytes)) / 2 : 0;
}

uint64_t builtin_size_class_least(unsigned size_class)
{
    return size_class ? UINT64_C(1) << 2 * size_class : 0;
}
