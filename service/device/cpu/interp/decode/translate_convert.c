/* Translates cvt: between numbers, into pairs of halves, to tf32, and packed. */
#include "device/cpu/interp/decode/decode.h"

/* `.relu` and `.satfinite` of a half that was just converted. */
static void finish_conversion(struct decoder *d, uint32_t place, bool brain)
{
    const struct ptx_insn *in = d->insn;
    struct op             *o;

    if (!in->relu && in->sat != PTX_SATFINITE)
        return;
    o = decode_op(d, finish_half);
    o->d = place;
    o->mode = (uint8_t)((in->relu ? FINISH_RELU : 0) | (in->sat == PTX_SATFINITE ? FINISH_FINITE : 0));
    o->immediate = brain ? 0x7f80 : 0x7c00;
}

/* Source i, a binary32, as a half in a temporary. */
static uint32_t as_half(struct decoder *d, unsigned i, bool brain)
{
    struct op shape = {0}, *o;
    uint32_t  a = decode_source(d, operand(d, i), 4), to = decode_temporary(d, 2);

    convert_prepare(&shape, brain ? LANE_BF16 : LANE_F16, LANE_F32, rounding_of(d->insn->rounding), d->insn->ftz, false, false);
    o = decode_op(d, shape.run);
    o->mode = shape.mode;
    o->b = shape.b;
    o->c = shape.c;
    o->a = a;
    o->d = to;
    finish_conversion(d, to, brain);
    return to;
}

/* The first source becomes the upper half. */
static bool convert_pair(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    bool                   brain = in->type == PTX_BF16X2;
    uint32_t               high, low, to;
    struct op             *o;

    if (in->stype != PTX_F32 || in->operands_count != 3 || operand(d, 1)->kind == PTX_VECTOR || operand(d, 2)->kind == PTX_VECTOR
        || in->sat == PTX_SAT)
        return false;
    high = as_half(d, 1, brain);
    low = as_half(d, 2, brain);
    to = decode_destination(d, operand(d, 0), 4);
    o = decode_op(d, join_halves);
    o->a = low;
    o->b = high;
    o->d = to;
    decode_widen(d, operand(d, 0), to, 4, false);
    return true;
}

static bool convert_tf32(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    uint32_t               a, to;
    struct op             *o;

    if (in->stype != PTX_F32 || in->operands_count != 2 || in->relu || in->sat || (in->rounding != PTX_RNA && in->rounding != PTX_RN))
        return false;
    a = decode_source(d, operand(d, 1), 4);
    to = decode_destination(d, operand(d, 0), 4);
    o = decode_op(d, round_tf32);
    o->mode = in->rounding == PTX_RN;
    o->a = a;
    o->d = to;
    decode_widen(d, operand(d, 0), to, 4, false);
    return true;
}

static bool convert_single(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    enum lane_type         to = type_of(d), from = lane_type_of((enum ptx_type)in->stype);
    struct op              shape = {0}, *o;
    uint32_t               a, place;
    bool                   integral, half = to == LANE_F16 || to == LANE_BF16;

    if (to == LANE_TYPES || from == LANE_TYPES || in->stype == PTX_F16X2 || in->stype == PTX_BF16X2
        || ((in->relu || in->sat == PTX_SATFINITE) && !half) || operand(d, 1)->kind == PTX_VECTOR || in->operands_count != 2)
        return false;
    integral = lane_type_is_float(to) && lane_type_is_float(from) && in->rounding >= PTX_RNI && in->rounding <= PTX_RPI;
    convert_prepare(&shape, to, from, rounding_of(in->rounding), in->ftz, in->sat == PTX_SAT, integral);
    if (!shape.run)
        return false;
    a = decode_source(d, operand(d, 1), lane_type_bytes(from));
    place = decode_destination(d, operand(d, 0), lane_type_bytes(to));
    o = decode_op(d, shape.run);
    o->mode = shape.mode;
    o->b = shape.b;
    o->c = shape.c;
    o->a = a;
    o->d = place;
    if (half)
        finish_conversion(d, place, to == LANE_BF16);
    decode_widen(d, operand(d, 0), place, lane_type_bytes(to), lane_type_is_signed(to) && !lane_type_is_float(to));
    return true;
}

static unsigned packed_bits(enum ptx_type t)
{
    switch ((int)t) {
    case PTX_U2: case PTX_S2:   return 2;
    case PTX_U4: case PTX_S4:   return 4;
    case PTX_U8: case PTX_S8:   return 8;
    case PTX_U16: case PTX_S16: return 16;
    default:                    return 0;
    }
}

/* Two numbers, clamped, side by side, above a third operand unless they have 16 bits. */
static bool convert_packed(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    enum ptx_type          t = (enum ptx_type)in->types[0];
    unsigned               bits = packed_bits(t), operands = bits == 16 ? 3 : 4;
    uint32_t               a, b, c, to;
    struct op             *o;

    if (!bits || in->types_count != operands - 1 || in->operands_count != operands || in->types[1] != PTX_S32 || in->sat != PTX_SAT
        || (operands == 4 && in->types[2] != PTX_B32) || in->relu || in->ftz || in->rounding)
        return false;
    a = decode_source(d, operand(d, 1), 4);
    b = decode_source(d, operand(d, 2), 4);
    c = operands == 4 ? decode_source(d, operand(d, 3), 4) : decode_constant(d, 0, 4);
    to = decode_destination(d, operand(d, 0), 4);
    o = decode_op(d, pack_clamped);
    o->width = (uint8_t)bits;
    o->mode = t == PTX_S2 || t == PTX_S4 || t == PTX_S8 || t == PTX_S16;
    o->a = a;
    o->b = b;
    o->c = c;
    o->d = to;
    return true;
}

bool translate_convert(struct decoder *d)
{
    if (d->insn->pack)
        return convert_packed(d);
    if (is_fp8_pair(d->insn->type) || is_fp8_pair(d->insn->stype))
        return translate_fp8(d);
    switch ((int)d->insn->type) {
    case PTX_F16X2: case PTX_BF16X2: return convert_pair(d);
    case PTX_TF32:                   return convert_tf32(d);
    default:                         return convert_single(d);
    }
}
