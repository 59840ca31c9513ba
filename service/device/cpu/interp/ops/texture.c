/* tex, tld4 and txq: the texel, or the four, that each lane asks for. */
#include "device/cpu/interp/ops/texture.h"

static const struct texture_geometry geometries[] = {
    {"1d", PTX_GEOMETRY_1D, TEXTURE_1D, 1, false},
    {"2d", PTX_GEOMETRY_2D, TEXTURE_2D, 2, false},
    {"3d", PTX_GEOMETRY_3D, TEXTURE_3D, 3, false},
    {"a1d", PTX_GEOMETRY_A1D, TEXTURE_1D_LAYERED, 1, true},
    {"a2d", PTX_GEOMETRY_A2D, TEXTURE_2D_LAYERED, 2, true},
    {"cube", PTX_GEOMETRY_CUBE, TEXTURE_CUBE, 3, false},
    {"acube", PTX_GEOMETRY_ACUBE, TEXTURE_CUBE_LAYERED, 3, true},
};

const struct texture_geometry *texture_geometry_of(const struct ptx_insn *in)
{
    for (size_t i = 0; i < COUNT(geometries); i++)
        if (in->geometry == geometries[i].modifier)
            return &geometries[i];
    return NULL;
}

/* Kernels write the faces of a cube as layers. */
static bool fits_geometry(const struct cpu_texture *t, const struct texture_geometry *g, bool surface)
{
    return t->desc.dimension == g->dimension ||
           (surface && g->dimension == TEXTURE_2D_LAYERED && texture_dimension_of(&t->desc)->faces > 1);
}

const struct cpu_texture *texture_named(struct lanes *l, const struct op *o, uint32_t lane, bool surface)
{
    const struct cpu_textures     *all = l->run->grid->textures;
    const struct texture_operands *x = o->extra;
    uint64_t                       object = LANE(uint64_t, o->a)[lane];
    const struct cpu_texture      *t = all ? cpu_texture_find(all, object, surface) : NULL;

    if (!t)
        block_fault(l, FAULT_ILLEGAL_ADDRESS, lane, "0x%llx is no %s object", (unsigned long long)object, surface ? "surface" : "texture");
    if (x->geometry && !fits_geometry(t, x->geometry, surface))
        block_fault(l, FAULT_ILLEGAL_ADDRESS, lane, "%s access to a %s that is %s", x->geometry->word, surface ? "surface" : "texture",
                    texture_dimension_of(&t->desc)->name);
    return t;
}

static uint64_t layer_of(const struct cpu_texture *t, uint32_t layer)
{
    int32_t i = (int32_t)layer;

    return i < 0 ? 0 : i >= (int32_t)t->desc.layers ? t->desc.layers - 1 : (uint32_t)i;
}

static void find_point(struct lanes *l, const struct op *o, uint32_t lane, struct sample_point *p)
{
    const struct texture_operands *x = o->extra;
    const struct texture_geometry *g = x->geometry;
    unsigned                       faces;

    *p = (struct sample_point){.texture = texture_named(l, o, lane, false), .integers = o->insn->stype == PTX_S32};
    faces = texture_dimension_of(&p->texture->desc)->faces;
    p->normalized = p->texture->desc.normalized || faces > 1;
    if (g->layered)
        p->image = layer_of(p->texture, (uint32_t)lane_read(l, x->at->place[0], 4, lane)) * faces;
    for (unsigned k = 0; k < g->coordinates; k++) {
        uint32_t bits = (uint32_t)lane_read(l, x->at->place[k + g->layered], 4, lane);

        p->index[k] = (int32_t)bits;
        memcpy(&p->at[k], &bits, sizeof bits);
    }
    if (faces > 1)
        p->image += sample_face(p->at);
}

static unsigned channel_of(const struct ptx_insn *in)
{
    return in->component == PTX_COMPONENT_G ? 1 : in->component == PTX_COMPONENT_B ? 2 : in->component == PTX_COMPONENT_A ? 3 : 0;
}

void sample_texture(struct lanes *l, const struct op *o)
{
    const struct texture_operands *x = o->extra;

    for (uint32_t i = l->low; i < l->high; i++) {
        struct sample_point p;
        uint32_t            got[TEXEL_CHANNELS];

        if (!l->m[i])
            continue;
        find_point(l, o, i, &p);
        if (o->insn->opcode == PTX_OP_TLD4)
            sample_gather(l, i, &p, channel_of(o->insn), got);
        else
            sample_read(l, i, &p, got);
        for (unsigned k = 0; k < TEXEL_CHANNELS; k++)
            if (x->values->reg_bytes[k])
                lane_write(l, x->values->place[k], x->values->reg_bytes[k], i, got[k]);
        if (x->tells)
            lane_write(l, o->b, 1, i, 1);
    }
}

static uint32_t answer(const struct cpu_texture *t, uint8_t query)
{
    switch ((int)query) {
    case PTX_QUERY_WIDTH:
        return t->extent[0];
    case PTX_QUERY_HEIGHT:
        return t->extent[1];
    case PTX_QUERY_DEPTH:
        return t->extent[2];
    case PTX_QUERY_ARRAY_SIZE:
        return t->desc.layers;
    default:
        return 1; /* mip levels, samples */
    }
}

void query_texture(struct lanes *l, const struct op *o)
{
    LANES_EACH(LANE(uint32_t, o->d)[i] = answer(texture_named(l, o, i, o->mode), o->insn->query));
}
