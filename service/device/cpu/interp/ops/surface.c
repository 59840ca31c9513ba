/* suld and sust: bytes of a surface. The first coordinate counts bytes, the others count rows and images. */
#include "device/cpu/interp/ops/texture.h"

#include "device/cpu/interp/decode/decode.h"

/* Where a lane accesses. */
struct surface_place {
    uint64_t address;
    bool     outside; /* under .zero: nothing is there */
};

static int64_t bounded(int64_t v, int64_t most)
{
    return v < 0 ? 0 : v > most ? most : v;
}

static _Noreturn void outside(struct lanes *l, const struct cpu_texture *t, const int64_t *at, uint32_t lane)
{
    block_fault(l, FAULT_ILLEGAL_ADDRESS, lane, "surface access outside %u x %u x %u texels: byte %lld of row %lld, image %lld",
                t->extent[0], t->extent[1], t->extent[2] > 1 ? t->extent[2] : t->images, (long long)at[0], (long long)at[1],
                (long long)at[2]);
}

/* at: byte of the row, row, image or layer; most: the last place of each. */
static struct surface_place place_within(struct lanes *l, const struct op *o, const struct cpu_texture *t, int64_t *at, unsigned bytes,
                                         uint32_t lane)
{
    int64_t              most[3] = {(int64_t)t->extent[0] * t->texel_bytes - bytes, (int64_t)t->extent[1] - 1,
                                    (int64_t)(t->extent[2] > 1 ? t->extent[2] : t->images) - 1};
    struct surface_place p = {.outside = false};

    for (unsigned k = 0; k < 3; k++) {
        if (at[k] >= 0 && at[k] <= most[k])
            continue;
        if (o->insn->boundary == PTX_BOUNDARY_TRAP || most[k] < 0)
            outside(l, t, at, lane);
        if (o->insn->boundary == PTX_BOUNDARY_ZERO)
            p.outside = true;
        at[k] = bounded(at[k], most[k]);
    }
    if (at[0] % bytes)
        block_fault(l, FAULT_MISALIGNED, lane, "surface access of %u bytes at byte %lld of a row", bytes, (long long)at[0]);
    p.address = sample_address(t, (uint64_t)at[2], (uint64_t)at[0], (uint64_t)at[1], 0);
    return p;
}

static struct surface_place find_place(struct lanes *l, const struct op *o, uint32_t lane)
{
    const struct texture_operands *x = o->extra;
    const struct texture_geometry *g = x->geometry;
    const struct cpu_texture      *t = texture_named(l, o, lane, true);
    int64_t                        at[3] = {0};

    for (unsigned k = 0; k < g->coordinates; k++)
        at[k] = (int32_t)lane_read(l, x->at->place[k + g->layered], 4, lane);
    if (g->layered)
        at[2] = (int32_t)lane_read(l, x->at->place[0], 4, lane);
    return place_within(l, o, t, at, x->values->element_bytes * x->values->count, lane);
}

KERNEL_MEMORY void load_surface(struct lanes *l, const struct op *o)
{
    const struct texture_operands *x = o->extra;
    const struct vector_places    *v = x->values;
    unsigned                       bytes = v->element_bytes;

    for (uint32_t i = l->low; i < l->high; i++) {
        struct surface_place p;
        const uint8_t       *from = NULL;

        if (!l->m[i])
            continue;
        p = find_place(l, o, i);
        if (!p.outside) {
            check_now(l, OP_GLOBAL, p.address, bytes * v->count, CHECK_READ, i);
            from = lane_pointer(l, OP_GLOBAL, p.address, bytes * v->count, i);
        }
        for (unsigned k = 0; k < v->count; k++) {
            uint64_t value = 0;
            if (from)
                memcpy(&value, from + (size_t)k * bytes, bytes);
            if (v->reg_bytes[k])
                lane_write(l, v->place[k], v->reg_bytes[k], i, value);
        }
    }
}

KERNEL_MEMORY void store_surface(struct lanes *l, const struct op *o)
{
    const struct texture_operands *x = o->extra;
    const struct vector_places    *v = x->values;
    unsigned                       bytes = v->element_bytes;

    for (uint32_t i = l->low; i < l->high; i++) {
        struct surface_place p;
        uint8_t             *to;

        if (!l->m[i])
            continue;
        p = find_place(l, o, i);
        if (p.outside)
            continue;
        check_now(l, OP_GLOBAL, p.address, bytes * v->count, CHECK_WRITE, i);
        to = lane_pointer(l, OP_GLOBAL, p.address, bytes * v->count, i);
        for (unsigned k = 0; k < v->count; k++) {
            uint64_t value = v->reg_bytes[k] ? lane_read(l, v->place[k], v->reg_bytes[k], i) : 0;
            memcpy(to + (size_t)k * bytes, &value, bytes);
        }
    }
}
