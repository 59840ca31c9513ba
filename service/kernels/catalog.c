/* The table of kernels, expanded from kernels/kernels.def, and look-ups in it. */
#include <stdio.h>

#include "kernels/kernels.h"

static const struct dtype {
    const char        *name;
    unsigned           bytes;
    enum builtin_dtype accumulator, real;
} dtypes[] = {
#define DTYPE(name, bytes, accumulator, real) {#name, bytes, BUILTIN_DTYPE_##accumulator, BUILTIN_DTYPE_##real},
#include "kernels/dtypes.def"
#undef DTYPE
};

/* Sets of dtypes as the rows name them. */
#define BIT(dtype) (1u << BUILTIN_DTYPE_##dtype)
#define HALVES (BIT(f16) | BIT(bf16))
#define SINGLES (BIT(f32) | BIT(f64))
#define REALS (HALVES | SINGLES)
#define SIGNED (BIT(i8) | BIT(i16) | BIT(i32) | BIT(i64))
#define UNSIGNED (BIT(u8) | BIT(u16) | BIT(u32) | BIT(u64))
#define INTEGERS (SIGNED | UNSIGNED)
#define NUMBERS (REALS | INTEGERS)
#define WIDE (SINGLES | BIT(i32) | BIT(i64) | BIT(u32) | BIT(u64))
#define TRUTH BIT(bool)
#define EVERY (NUMBERS | TRUTH)

/* Types as the rows name them. */
enum {
#define DTYPE(name, bytes, accumulator, real) TYPE_##name = BUILTIN_DTYPE_##name,
#include "kernels/dtypes.def"
#undef DTYPE
    TYPE__Bool = BUILTIN_DTYPE_bool, /* as stdbool.h spells it where a macro hands it on */
    TYPE_T = BUILTIN_TYPE_T,
    TYPE_ACCUMULATOR = BUILTIN_TYPE_ACCUMULATOR,
    TYPE_REAL = BUILTIN_TYPE_REAL,
};

/* Shapes as the rows name them. */
#define FLAT(n, per_thread) FLAT_VECTORS(n, per_thread, per_thread)
#define FLAT_VECTORS(n, per_thread, per_thread_on_host) \
    {.rule = BUILTIN_FLAT, .count = {n}, .block = 256, .vectors = per_thread, .vectors_on_host = per_thread_on_host}
#define SHARES(n, per_thread, blocks_per_sm) \
    {.rule = BUILTIN_SHARES, .count = {n}, .block = 512, .vectors = per_thread, .vectors_on_host = per_thread, .per_sm = blocks_per_sm}
#define ROWS(rows, columns) {.rule = BUILTIN_ROWS, .count = {rows, columns}}
#define MATRICES(batch, elements, bytes) {.rule = BUILTIN_ROWS, .count = {batch, elements}, .scratch = bytes}
#define AXIS(outer, length, inner) {.rule = BUILTIN_AXIS, .count = {outer, length, inner}, .block = 256}
#define TILES(x, tile_x, y, tile_y, z, tile_z, threads) \
    {.rule = BUILTIN_TILES, .count = {x, y, z}, .tile = {tile_x, tile_y, tile_z}, .block = threads}
#define POOL(n, per_block, threads, blocks_per_sm, warpgroup_dtypes) \
    {.rule = BUILTIN_POOL, .count = {n}, .tile = {per_block}, .block = threads, .per_sm = blocks_per_sm, .warpgroup = warpgroup_dtypes}
#define WHOLE(n, per_block, threads, blocks_per_sm, bytes) \
    {.rule = BUILTIN_WHOLE, .count = {n}, .tile = {per_block}, .block = threads, .per_sm = blocks_per_sm, .scratch = bytes}

#define BUFFER(access, type, name, elements, meaning) {BUILTIN_##access, TYPE_##type, #name, elements, 0, 0, false, meaning},
#define VALUE(type, name, least, most, meaning) {BUILTIN_VALUE, TYPE_##type, #name, NULL, least, most, false, meaning},
#define VALUE_POWER(type, name, most, meaning) {BUILTIN_VALUE, TYPE_##type, #name, NULL, 1, most, true, meaning},
#define VALUE_ANY(type, name, meaning) {BUILTIN_VALUE, TYPE_##type, #name, NULL, 0, UINT64_MAX, false, meaning},

#define KERNEL(name, family, function, dtypes, shape, summary, parameters) \
    {#name, #family, function, dtypes, shape, summary, (const struct builtin_param[]){parameters}, \
     sizeof((const struct builtin_param[]){parameters}) / sizeof(struct builtin_param)},

static const struct builtin builtins[] = {
#include "kernels/kernels.def"
};

static const struct builtin_shader shaders[] = {
#define SHADER(name, dtypes, blocks, turns, scratch) {#name, dtypes, blocks, turns, scratch},
#include "kernels/shaders.def"
#undef SHADER
};

const struct builtin *builtin_at(unsigned index)
{
    return index < COUNT(builtins) ? &builtins[index] : NULL;
}

const struct builtin *builtin_find(struct span name)
{
    for (unsigned i = 0; i < COUNT(builtins); i++)
        if (span_is(name, builtins[i].name))
            return &builtins[i];
    return NULL;
}

static const struct builtin_source *source_of(const char *stem, const char *ending)
{
    char name[64];

    snprintf(name, sizeof name, "%s%s", stem, ending);
    for (unsigned i = 0; i < builtin_sources_count; i++)
        if (strcmp(builtin_sources[i].name, name) == 0)
            return &builtin_sources[i];
    return NULL;
}

const struct builtin_source *builtin_source_of(const struct builtin *k)
{
    return source_of(k->family, ".cu");
}

const struct builtin_shader *builtin_shader_of(const struct builtin *k, enum builtin_dtype dtype)
{
    for (unsigned i = 0; i < COUNT(shaders); i++)
        if (strcmp(shaders[i].name, k->name) == 0)
            return shaders[i].dtypes >> dtype & 1 ? &shaders[i] : NULL;
    return NULL;
}

const struct builtin_source *builtin_shader_source(const struct builtin *k)
{
    return source_of(k->family, ".comp");
}

const struct builtin_source *builtin_common_source(void)
{
    return source_of("common", ".cuh");
}

static bool ends_with(const char *name, const char *ending)
{
    size_t bytes = strlen(name), end = strlen(ending);

    return bytes > end && strcmp(name + bytes - end, ending) == 0;
}

static const struct builtin_source *header_at(unsigned index, const char *ending)
{
    for (unsigned i = 0; i < builtin_sources_count; i++)
        if (ends_with(builtin_sources[i].name, ending) && index-- == 0)
            return &builtin_sources[i];
    return NULL;
}

const struct builtin_source *builtin_header_at(unsigned index)
{
    return header_at(index, ".cuh");
}

const struct builtin_source *builtin_shader_header_at(unsigned index)
{
    return header_at(index, ".glsl");
}

const char *builtin_dtype_name(unsigned dtype)
{
    return dtype < COUNT(dtypes) ? dtypes[dtype].name : NULL;
}

bool builtin_dtype_find(const struct builtin *k, struct span name, enum builtin_dtype *out)
{
    for (unsigned i = 0; i < COUNT(dtypes); i++)
        if (span_is(name, dtypes[i].name) && (k->dtypes >> i & 1)) {
            *out = (enum builtin_dtype)i;
            return true;
        }
    return false;
}

enum builtin_dtype builtin_type_of(const struct builtin_param *p, enum builtin_dtype dtype)
{
    if (p->type == BUILTIN_TYPE_T)
        return dtype;
    if (p->type == BUILTIN_TYPE_ACCUMULATOR)
        return dtypes[dtype].accumulator;
    return p->type == BUILTIN_TYPE_REAL ? dtypes[dtype].real : (enum builtin_dtype)p->type;
}

unsigned builtin_type_bytes(const struct builtin_param *p, enum builtin_dtype dtype)
{
    return dtypes[builtin_type_of(p, dtype)].bytes;
}

const char *builtin_type_name(const struct builtin_param *p)
{
    if (p->type == BUILTIN_TYPE_T)
        return "T";
    if (p->type == BUILTIN_TYPE_ACCUMULATOR)
        return "accumulator";
    return p->type == BUILTIN_TYPE_REAL ? "real" : dtypes[p->type].name;
}

bool builtin_expression(const struct builtin *k, enum builtin_dtype dtype, char *to, size_t room)
{
    struct span rest = span_of(k->function);
    size_t      used = 0;

    while (rest.bytes) {
        bool        here = span_starts(rest, "$T");
        struct span part = here ? span_of(dtypes[dtype].name) : (struct span){rest.data, 1};
        if (part.bytes >= room - used)
            return false;
        memcpy(to + used, part.data, part.bytes);
        used += part.bytes;
        rest = span_from(rest, here ? 2 : 1);
    }
    to[used] = '\0';
    return true;
}
