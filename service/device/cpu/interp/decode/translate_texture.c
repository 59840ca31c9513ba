/* Translates operations on textures and surfaces. They name a texture by its number, in a register of 64 bits. */
#include "device/cpu/interp/decode/decode.h"
#include "device/cpu/interp/ops/texture.h"

static bool number_of_texture(struct decoder *d, unsigned i, uint32_t *place)
{
    const struct ptx_operand *named = operand(d, i);
    struct ptx_operand        number = {.kind = PTX_REG, .reg = named->reg, .index = PTX_NO_INDEX};

    if (named->kind != PTX_ADDRESS || named->reg == PTX_NO_REG || named->value || decode_register_bytes(d, named->reg) != 8)
        return false;
    *place = decode_source(d, &number, 8);
    return true;
}

/* A single coordinate may stand without braces. */
static const struct vector_places *as_vector(struct decoder *d, const struct ptx_operand *o, unsigned bytes)
{
    struct ptx_operand one = {.kind = PTX_VECTOR, .count = 1, .elements = o};

    return decode_vector(d, o->kind == PTX_VECTOR ? o : &one, bytes, false);
}

static struct texture_operands *take_operands(struct decoder *d, unsigned values, unsigned at, unsigned bytes)
{
    const struct texture_geometry *g = texture_geometry_of(d->insn);
    const struct ptx_operand      *coordinates = operand(d, at);
    unsigned                       given = coordinates->kind == PTX_VECTOR ? coordinates->count : 1;
    struct texture_operands       *x = arena_alloc(&d->code->arena, sizeof *x);

    if (!x) {
        d->no_memory = true;
        return NULL;
    }
    if (!g || given < g->coordinates + g->layered || given > TEXEL_CHANNELS)
        return NULL;
    *x = (struct texture_operands){.geometry = g, .values = as_vector(d, operand(d, values), bytes), .at = as_vector(d, coordinates, 4)};
    return x;
}

bool translate_texture(struct decoder *d)
{
    const struct ptx_insn   *in = d->insn;
    struct op                o = {.run = sample_texture};
    struct texture_operands *x;

    if (in->vector != TEXEL_CHANNELS || !in->stype || !number_of_texture(d, 1, &o.a))
        return false;
    if (in->opcode == PTX_OP_TLD4 && (in->geometry != PTX_GEOMETRY_2D || !in->component || in->stype != PTX_F32))
        return false;
    x = take_operands(d, 0, 2, 4);
    if (!x || (in->stype == PTX_S32 && (x->geometry->dimension == TEXTURE_CUBE || x->geometry->dimension == TEXTURE_CUBE_LAYERED)))
        return false;
    x->tells = in->predicate.kind == PTX_REG;
    if (x->tells)
        o.b = d->places[in->predicate.reg];
    o.extra = x;
    decode_op(d, o);
    return true;
}

bool translate_surface(struct decoder *d)
{
    bool      store = d->insn->opcode == PTX_OP_SUST;
    unsigned  bytes = type_bytes(d);
    struct op o = {.run = store ? store_surface : load_surface};

    if (!d->insn->raw || !d->insn->boundary || bytes * d->insn->vector > 16 || d->insn->vector > TEXEL_CHANNELS ||
        d->insn->geometry == PTX_GEOMETRY_CUBE || d->insn->geometry == PTX_GEOMETRY_ACUBE || !number_of_texture(d, store ? 0 : 1, &o.a))
        return false;
    o.extra = store ? take_operands(d, 2, 1, bytes) : take_operands(d, 0, 2, bytes);
    if (!o.extra)
        return false;
    decode_op(d, o);
    return true;
}

bool translate_texture_query(struct decoder *d)
{
    static const struct texture_operands whole = {.geometry = NULL};
    struct op                            o = {.run = query_texture, .extra = &whole, .mode = d->insn->opcode == PTX_OP_SUQ};

    return d->insn->query && number_of_texture(d, 1, &o.a) && decode_result(d, o, 4, false);
}
