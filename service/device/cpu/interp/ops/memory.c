/* Loads and stores. Every address of every active lane is checked against its space before it is used. */
#include "device/cpu/interp/cluster.h"
#include "device/cpu/interp/ops/access.h"

static const char *space_name(enum op_space s)
{
    static const char *const names[] = {"generic", "global", "shared", "local", "param", "param"};

    return s <= OP_PARAM_KERNEL ? names[s] : "unknown";
}

/* A generic address is told as what it leads to. */
static struct bad_access bad_access_of(enum op_space s, uint64_t address, uint32_t bytes)
{
    static const enum access_space spaces[] = {ACCESS_GLOBAL, ACCESS_GLOBAL, ACCESS_SHARED, ACCESS_LOCAL, ACCESS_PARAM, ACCESS_PARAM};

    if (s == OP_GENERIC)
        s = space_of(&address);
    return (struct bad_access){spaces[s], address, bytes};
}

static _Noreturn void bad_address(struct lanes *l, enum op_space s, uint64_t address, uint32_t bytes, uint32_t lane)
{
    struct bad_access a = bad_access_of(s, address, bytes);

    if (bytes > 1 && address % bytes)
        block_fault_access(l, FAULT_MISALIGNED, lane, &a, "misaligned %s address 0x%llx for an access of %u bytes", space_name(s),
                           (unsigned long long)address, bytes);
    block_fault_access(l, FAULT_ILLEGAL_ADDRESS, lane, &a, "illegal %s address 0x%llx", space_name(s), (unsigned long long)address);
}

static inline bool fits(uint64_t offset, uint32_t bytes, uint64_t size)
{
    return offset <= size && bytes <= size - offset;
}

static uint8_t *in_kernel_params(struct lanes *l, uint64_t offset, uint32_t bytes)
{
    const struct cpu_launch *k = l->run->grid->launch;

    return fits(offset, bytes, k->params_bytes) ? (uint8_t *)(uintptr_t)k->params + offset : NULL;
}

static uint8_t *in_params(struct lanes *l, uint64_t offset, uint32_t bytes, uint32_t lane)
{
    struct activation *a = activation_now(l->run);

    return fits(offset, bytes, a->code->param_bytes) ? a->params + (size_t)lane * a->code->param_bytes + offset : NULL;
}

static uint8_t *in_global(struct lanes *l, uint64_t address, uint32_t bytes)
{
    const struct grid_run *g = l->run->grid;

    return fits(address - g->memory_base, bytes, g->memory_span) ? (uint8_t *)(uintptr_t)address : NULL;
}

/* NULL when the access leaves its space. *offset becomes the place in it. */
static uint8_t *locate_lane(struct lanes *l, enum op_space s, uint64_t *offset, uint32_t bytes, uint32_t lane)
{
    struct block_run *r = l->run;

    if (s == OP_GENERIC)
        s = space_of(offset);
    switch (s) {
    case OP_GENERIC:
    case OP_GLOBAL: return in_global(l, *offset, bytes);
    case OP_SHARED: return fits(*offset, bytes, r->shared_bytes) ? r->shared + *offset : cluster_shared(r, *offset, bytes);
    case OP_LOCAL:
        return fits(*offset, bytes, r->local_bytes) ? r->local + (size_t)lane * r->local_bytes + *offset : NULL;
    case OP_PARAM:        return in_params(l, *offset, bytes, lane);
    case OP_PARAM_KERNEL: return in_kernel_params(l, *offset, bytes);
    }
    return NULL;
}

uint8_t *lane_pointer(struct lanes *l, enum op_space s, uint64_t address, uint32_t bytes, uint32_t lane)
{
    uint64_t offset = address;
    uint8_t *p = locate_lane(l, s, &offset, bytes, lane);

    if (!p || (offset & (bytes - 1)))
        bad_address(l, s, address, bytes, lane);
    return p;
}

const uint8_t *lane_peek(struct lanes *l, uint64_t address, uint32_t bytes, uint32_t lane)
{
    return locate_lane(l, OP_GENERIC, &address, bytes, lane);
}

/* MOVE(name, type in memory, type of the register): one element per lane. Lanes that write to one address do so in their order. */
#define ADDRESS(i) (address[i] + (uint64_t)o->immediate)
#define LOAD_SCATTERED(M, R, into)                                                    \
    do {                                                                              \
        if (l->dense) {                                                               \
            LANES_LOOP(into[i] = (R)*ACCESSED(const M, i));                           \
        } else {                                                                      \
            const uint8_t *m_ = l->m;                                                 \
            LANES_LOOP(const uint64_t at_ = m_[i] ? address[i] + at.add : at.safe;    \
                       const R v_ = (R)*(const M *)(const void *)(at.origin + at_); into[i] = m_[i] ? v_ : into[i]); \
        }                                                                             \
    } while (0)
/* Registers and kernels' memory never overlap. The index is a size_t: compilers see that it does not wrap. */
#define MOVE_ALL(T, F, to, from)                                                      \
    {                                                                                 \
        T *restrict       to_ = to;                                                   \
        const F *restrict from_ = from;                                               \
        const size_t      count_ = l->high - l->low;                                  \
        for (size_t k = 0; k < count_; k++)                                           \
            to_[k] = (T)from_[k];                                                     \
    }
#define LOAD_ALL(M, R, to, first)    MOVE_ALL(R, M, to, (const M *)(const void *)(first))
#define STORE_ALL(M, R, first, from) MOVE_ALL(M, R, (M *)(void *)(first), from)
/* All elements of a run at once: they are read before any is written. */
#define LOAD_RUNS(M, R, into)                                                         \
    for (uint32_t i = l->low; i < l->high; i += RUN_LANES) {                          \
        M        run[RUN_LANES];                                                      \
        R *const to = into + i;                                                       \
        memcpy(run, ACCESSED(const M, i), sizeof run);                                \
        for (unsigned k = 0; k < RUN_LANES; k++)                                      \
            to[k] = (R)run[k];                                                        \
    }
#define REPEAT_RUNS(M, R, into)                                                       \
    for (uint32_t i = l->low; i < l->high; i += RUN_LANES) {                          \
        const R  value = (R)*ACCESSED(const M, i);                                    \
        R *const to = into + i;                                                       \
        for (unsigned k = 0; k < RUN_LANES; k++)                                      \
            to[k] = value;                                                            \
    }
#define STORE_RUNS(M, from)                                                           \
    for (uint32_t i = l->low; i < l->high; i += RUN_LANES) {                          \
        M run[RUN_LANES];                                                             \
        for (unsigned k = 0; k < RUN_LANES; k++)                                      \
            run[k] = (M)from[i + k];                                                  \
        memcpy(ACCESSED(M, i), run, sizeof run);                                      \
    }
#define MOVE(name, M, R)                                                              \
    KERNEL_MEMORY static void load_##name(struct lanes *l, const struct op *o)        \
    {                                                                                 \
        const uint64_t *address = LANE(uint64_t, o->a);                               \
        R              *into = LANE(R, o->d);                                         \
        struct access   at;                                                           \
        switch (survey_access(l, o, sizeof(M), &at)) {                                \
        case CONSECUTIVE: LOAD_ALL(M, R, into + l->low, at.first) return;             \
        case SAME: {                                                                  \
            const R value = (R)*(const M *)(const void *)at.first;                    \
            LANES_SET(R, o->d, , value);                                              \
            return;                                                                   \
        }                                                                             \
        case RUN_CONSECUTIVE: LOAD_RUNS(M, R, into) return;                           \
        case RUN_SAME:  REPEAT_RUNS(M, R, into) return;                               \
        case SCATTERED: LOAD_SCATTERED(M, R, into); return;                           \
        case LANEWISE:  LANES_EACH(into[i] = (R)*ACCESSED_OWN(const M, i)); return;   \
        case ASTRAY:                                                                  \
            LANES_EACH(into[i] = (R)*(const M *)(const void *)lane_pointer(l, (enum op_space)o->mode, ADDRESS(i), sizeof(M), i)); \
        }                                                                             \
    }                                                                                 \
    KERNEL_MEMORY static void store_##name(struct lanes *l, const struct op *o)       \
    {                                                                                 \
        const uint64_t *address = LANE(uint64_t, o->a);                               \
        const R        *d_ = LANE(R, o->d);                                           \
        struct access   at;                                                           \
        switch (survey_access(l, o, sizeof(M), &at)) {                                \
        case CONSECUTIVE: STORE_ALL(M, R, at.first, d_ + l->low) return;              \
        case RUN_CONSECUTIVE: STORE_RUNS(M, d_) return;                               \
        case SAME:      *(M *)(void *)at.first = (M)d_[l->high - 1]; return;          \
        case RUN_SAME:                                                                \
            for (uint32_t i = l->low; i < l->high; i += RUN_LANES)                    \
                *ACCESSED(M, i) = (M)d_[i + RUN_LANES - 1];                           \
            return;                                                                   \
        case SCATTERED: LANES_EACH(*ACCESSED(M, i) = (M)d_[i]); return;               \
        case LANEWISE:  LANES_EACH(*ACCESSED_OWN(M, i) = (M)d_[i]); return;           \
        case ASTRAY:                                                                  \
            LANES_EACH(*(M *)(void *)lane_pointer(l, (enum op_space)o->mode, ADDRESS(i), sizeof(M), i) = (M)d_[i]); \
        }                                                                             \
    }

MOVE(u8_16, uint8_t, uint16_t)
MOVE(u8_32, uint8_t, uint32_t)
MOVE(u8_64, uint8_t, uint64_t)
MOVE(s8_16, int8_t, uint16_t)
MOVE(s8_32, int8_t, uint32_t)
MOVE(s8_64, int8_t, uint64_t)
MOVE(u16_16, uint16_t, uint16_t)
MOVE(u16_32, uint16_t, uint32_t)
MOVE(u16_64, uint16_t, uint64_t)
MOVE(s16_32, int16_t, uint32_t)
MOVE(s16_64, int16_t, uint64_t)
MOVE(u32_32, uint32_t, uint32_t)
MOVE(u32_64, uint32_t, uint64_t)
MOVE(s32_64, int32_t, uint64_t)
MOVE(u64_64, uint64_t, uint64_t)
MOVE(u8_8, uint8_t, uint8_t)

struct move_row {
    unsigned char memory, reg; /* bytes */
    bool          is_signed;
    op_fn         load, store;
};
#define ROW(name, memory, reg, is_signed) {memory, reg, is_signed, load_##name, store_##name}
static const struct move_row moves[] = {
    ROW(u8_8, 1, 1, false),   ROW(u8_16, 1, 2, false),  ROW(u8_32, 1, 4, false),  ROW(u8_64, 1, 8, false),
    ROW(u8_8, 1, 1, true),    ROW(s8_16, 1, 2, true),   ROW(s8_32, 1, 4, true),   ROW(s8_64, 1, 8, true),
    ROW(u16_16, 2, 2, false), ROW(u16_32, 2, 4, false), ROW(u16_64, 2, 8, false), ROW(u16_16, 2, 2, true),
    ROW(s16_32, 2, 4, true),  ROW(s16_64, 2, 8, true),  ROW(u32_32, 4, 4, false), ROW(u32_64, 4, 8, false),
    ROW(u32_32, 4, 4, true),  ROW(s32_64, 4, 8, true),  ROW(u64_64, 8, 8, false), ROW(u64_64, 8, 8, true),
};

op_fn memory_handler(bool store, unsigned memory_bytes, unsigned reg_bytes, bool is_signed)
{
    for (size_t i = 0; i < COUNT(moves); i++) {
        if (moves[i].memory == memory_bytes && moves[i].reg == reg_bytes && moves[i].is_signed == is_signed)
            return store ? moves[i].store : moves[i].load;
    }
    return NULL;
}

/* Vectors: o->width elements of element_bytes() from one address that is aligned to all of them. extra lists the places. */
/* reg_bytes 0: `_`, which takes nothing and gives 0. */
static void store_element(struct lanes *l, const struct vector_places *v, unsigned k, uint32_t lane, uint64_t value)
{
    if (v->reg_bytes[k])
        lane_write(l, v->place[k], v->reg_bytes[k], lane, value);
}

static uint64_t load_element(struct lanes *l, const struct vector_places *v, unsigned k, uint32_t lane)
{
    return v->reg_bytes[k] ? lane_read(l, v->place[k], v->reg_bytes[k], lane) : 0;
}

static uint64_t extend_value(uint64_t value, unsigned bytes, bool is_signed)
{
    unsigned shift = 64 - 8 * bytes;

    return is_signed ? (uint64_t)((int64_t)(value << shift) >> shift) : value;
}

KERNEL_MEMORY void load_vector(struct lanes *l, const struct op *o)
{
    const uint64_t             *address = LANE(uint64_t, o->a);
    const struct vector_places *v = o->extra;
    unsigned                    bytes = v->element_bytes;

    for (uint32_t i = l->low; i < l->high; i++) {
        const uint8_t *from;

        if (!l->m[i])
            continue;
        from = lane_pointer(l, (enum op_space)o->mode, ADDRESS(i), bytes * v->count, i);
        for (unsigned k = 0; k < v->count; k++) {
            uint64_t value = 0;
            memcpy(&value, from + k * bytes, bytes);
            store_element(l, v, k, i, extend_value(value, bytes, v->is_signed));
        }
    }
}

KERNEL_MEMORY void store_vector(struct lanes *l, const struct op *o)
{
    const uint64_t             *address = LANE(uint64_t, o->a);
    const struct vector_places *v = o->extra;
    unsigned                    bytes = v->element_bytes;

    for (uint32_t i = l->low; i < l->high; i++) {
        uint8_t *to;

        if (!l->m[i])
            continue;
        to = lane_pointer(l, (enum op_space)o->mode, ADDRESS(i), bytes * v->count, i);
        for (unsigned k = 0; k < v->count; k++) {
            uint64_t value = load_element(l, v, k, i);
            memcpy(to + k * bytes, &value, bytes);
        }
    }
}

/* mov between a scalar and a vector of its parts; extra lists the parts, from the low end. */
void pack_vector(struct lanes *l, const struct op *o)
{
    const struct vector_places *v = o->extra;

    for (uint32_t i = l->low; i < l->high; i++) {
        uint64_t value = 0;

        if (!l->m[i])
            continue;
        for (unsigned k = 0; k < v->count; k++)
            value |= (load_element(l, v, k, i) & (~0ull >> (64 - 8 * v->element_bytes))) << (8 * v->element_bytes * k);
        lane_write(l, o->d, o->width, i, value);
    }
}

void unpack_vector(struct lanes *l, const struct op *o)
{
    const struct vector_places *v = o->extra;

    for (uint32_t i = l->low; i < l->high; i++) {
        uint64_t value;

        if (!l->m[i])
            continue;
        value = o->width == 8 ? LANE(uint64_t, o->a)[i] : o->width == 4 ? LANE(uint32_t, o->a)[i] : LANE(uint16_t, o->a)[i];
        for (unsigned k = 0; k < v->count; k++)
            store_element(l, v, k, i, value >> (8 * v->element_bytes * k));
    }
}

/* ld.param of a kernel: the same value for every lane. */
#define KERNEL_PARAM(name, M, R)                                                      \
    void load_kernel_param_##name(struct lanes *l, const struct op *o)                \
    {                                                                                 \
        M value;                                                                      \
        memcpy(&value, lane_pointer(l, OP_PARAM_KERNEL, (uint64_t)o->immediate, sizeof value, l->low), sizeof value); \
        LANES_SET(R, o->d, , (R)value);                                               \
    }
KERNEL_PARAM(32, uint32_t, uint32_t)
KERNEL_PARAM(64, uint64_t, uint64_t)
