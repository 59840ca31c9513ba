/* Translates cvt: between numbers, into pairs of halves, to tf32, and packed. */
#include "device/cpu/interp/decode/decode.h"

/* `.relu` and `.satfinite` of a half that was just converted. */
static void finish_conversion(struct decoder *d, uint32_t place, bool brain)
{
    uint8_t mode = (uint8_t)((d->insn->relu ? FINISH_RELU : 0) | (d->insn->sat == PTX_SATFINITE ? FINISH_FINITE : 0));

    if (mode)
        decode_op(d, (struct op){.run = finish_half, .d = place, .mode = mode, .immediate = brain ? 0x7f80 : 0x7c00});
}

/* Source i, a binary32, as a half in a temporary. */
static uint32_t as_half(struct decoder *d, unsigned i, bool brain)
{
    struct op o = {.a = decode_source(d, operand(d, i), 4)};
    uint32_t  to;

    convert_prepare(&o, brain ? LANE_BF16 : LANE_F16, LANE_F32, rounding_of(d->insn->rounding), d->insn->ftz, false, false);
    to = decode_value(d, o, 2);
    finish_conversion(d, to, brain);
    return to;
}

/* The first source becomes the upper half. */
static bool convert_pair(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    bool                   brain = in->type == PTX_BF16X2;

    if (in->stype != PTX_F32 || in->operands_count != 3 || operand(d, 1)->kind == PTX_VECTOR || operand(d, 2)->kind == PTX_VECTOR
        || in->sat == PTX_SAT)
        return false;
    return decode_result(d, (struct op){.run = join_halves, .b = as_half(d, 1, brain), .a = as_half(d, 2, brain)}, 4, false);
}

static bool convert_tf32(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;

    if (in->stype != PTX_F32 || in->operands_count != 2 || in->relu || in->sat || (in->rounding != PTX_RNA && in->rounding != PTX_RN))
        return false;
    return decode_result(d, (struct op){.run = round_tf32, .a = decode_source(d, operand(d, 1), 4), .mode = in->rounding == PTX_RN}, 4,
                         false);
}

static bool convert_single(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    enum lane_type         to = type_of(d), from = lane_type_of((enum ptx_type)in->stype);
    struct op              o = {0};
    bool                   integral, half = to == LANE_F16 || to == LANE_BF16;

    if (to == LANE_TYPES || from == LANE_TYPES || in->stype == PTX_F16X2 || in->stype == PTX_BF16X2
        || ((in->relu || in->sat == PTX_SATFINITE) && !half) || operand(d, 1)->kind == PTX_VECTOR || in->operands_count != 2)
        return false;
    integral = lane_type_is_float(to) && lane_type_is_float(from) && in->rounding >= PTX_RNI && in->rounding <= PTX_RPI;
    convert_prepare(&o, to, from, rounding_of(in->rounding), in->ftz, in->sat == PTX_SAT, integral);
    if (!o.run)
        return false;
    o.a = decode_source(d, operand(d, 1), lane_type_bytes(from));
    o.d = decode_destination(d, operand(d, 0), lane_type_bytes(to));
    decode_op(d, o);
    if (half)
        finish_conversion(d, o.d, to == LANE_BF16);
    decode_widen(d, operand(d, 0), o.d, lane_type_bytes(to), lane_type_is_signed(to) && !lane_type_is_float(to));
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
    struct op              o = {.run = pack_clamped, .width = (uint8_t)bits};

    if (!bits || in->types_count != operands - 1 || in->operands_count != operands || in->types[1] != PTX_S32 || in->sat != PTX_SAT
        || (operands == 4 && in->types[2] != PTX_B32) || in->relu || in->ftz || in->rounding)
        return false;
    o.mode = t == PTX_S2 || t == PTX_S4 || t == PTX_S8 || t == PTX_S16;
    o.a = decode_source(d, operand(d, 1), 4);
    o.b = decode_source(d, operand(d, 2), 4);
    o.c = operands == 4 ? decode_source(d, operand(d, 3), 4) : decode_constant(d, 0, 4);
    return decode_result(d, o, 4, false);
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
