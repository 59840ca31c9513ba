/* Video instructions: arithmetic on bytes and halves of registers, one (vadd) or two or four at once (vadd2, vadd4). */
#include "device/cpu/interp/decode/decode.h"

enum { VIDEO_PARTS_MAX = 4, REGISTER_BITS = 32 };

/* Bits of {b, a}: where they begin and how many. */
struct part {
    uint8_t first, bits;
};

struct video {
    uint8_t     opcode;              /* enum ptx_opcode, of one part */
    uint8_t     parts;               /* 1, 2 or 4 */
    bool        to[VIDEO_PARTS_MAX]; /* of several: those of the result that are written */
    struct part a[VIDEO_PARTS_MAX], b[VIDEO_PARTS_MAX];
    bool        signed_d, signed_a, signed_b;
    bool        sat;
    struct part merge;         /* of one: where it stands in the result; bits 0: alone */
    uint8_t     then;          /* enum ptx_action: what is done with c */
    uint8_t     compare, wrap; /* enum ptx_modifier */
    bool        minus_product, minus_c, plus_one;
    uint8_t     shift;
};

static int64_t part_of(uint64_t bits, struct part p, bool is_signed)
{
    uint64_t top = bits << (64 - p.first - p.bits);

    return is_signed ? (int64_t)top >> (64 - p.bits) : (int64_t)(top >> (64 - p.bits));
}

static int64_t clamped(int64_t v, unsigned bits, bool is_signed)
{
    int64_t least = is_signed ? -(1ll << (bits - 1)) : 0, most = is_signed ? (1ll << (bits - 1)) - 1 : (1ll << bits) - 1;

    return v < least ? least : v > most ? most : v;
}

static bool compares(uint8_t how, int64_t x, int64_t y)
{
    switch (how) {
    case PTX_EQ:
        return x == y;
    case PTX_NE:
        return x != y;
    case PTX_LT:
        return x < y;
    case PTX_LE:
        return x <= y;
    case PTX_GT:
        return x > y;
    default:
        return x >= y;
    }
}

static int64_t shifted(const struct video *v, int64_t x, int64_t by)
{
    unsigned n = v->wrap == PTX_WRAP ? (unsigned)by & 31 : by > 32 ? 32 : (unsigned)by;

    return v->opcode == PTX_OP_VSHR ? x >> n : (int64_t)((uint64_t)x << n);
}

static int64_t of_parts(const struct video *v, int64_t x, int64_t y)
{
    switch ((int)v->opcode) {
    case PTX_OP_VADD:
        return x + y;
    case PTX_OP_VSUB:
        return x - y;
    case PTX_OP_VABSDIFF:
        return x > y ? x - y : y - x;
    case PTX_OP_VMIN:
        return x < y ? x : y;
    case PTX_OP_VMAX:
        return x > y ? x : y;
    case PTX_OP_VAVRG2:
        return (x + y + (x + y >= 0)) >> 1;
    case PTX_OP_VSET:
        return compares(v->compare, x, y);
    default:
        return shifted(v, x, y);
    }
}

/* In 128 bits: shift and saturation come last. A minus is ~ and one more. */
static uint32_t product_and_sum(const struct video *v, int64_t x, int64_t y, uint32_t c)
{
    bool     is_signed = v->signed_a || v->signed_b || v->minus_product || v->minus_c;
    __int128 t = (__int128)x * y, third = is_signed ? (__int128)(int32_t)c : (__int128)c;
    int64_t  result;

    t = v->minus_product ? third - t : v->minus_c ? t - third : t + third + v->plus_one;
    result = (int64_t)(t >> v->shift);
    return (uint32_t)(v->sat ? clamped(result, REGISTER_BITS, is_signed) : result);
}

static uint32_t with_third(const struct video *v, uint32_t t, uint32_t c)
{
    uint32_t mask = v->merge.bits ? (0xffffffffu >> (REGISTER_BITS - v->merge.bits)) << v->merge.first : 0;
    bool     less = v->signed_d ? (int32_t)t < (int32_t)c : t < c;

    switch ((int)v->then) {
    case PTX_DO_ADD:
        return t + c;
    case PTX_DO_MIN:
        return less ? t : c;
    case PTX_DO_MAX:
        return less ? c : t;
    default:
        return mask ? (c & ~mask) | (t << v->merge.first & mask) : t;
    }
}

static uint32_t of_one(const struct video *v, uint32_t a, uint32_t b, uint32_t c)
{
    int64_t x = part_of(a, v->a[0], v->signed_a), y = part_of(b, v->b[0], v->signed_b), t;

    if (v->opcode == PTX_OP_VMAD)
        return product_and_sum(v, x, y, c);
    t = of_parts(v, x, y);
    if (v->sat)
        t = clamped(t, v->merge.bits ? v->merge.bits : REGISTER_BITS, v->signed_d);
    return with_third(v, (uint32_t)t, c);
}

static uint32_t of_several(const struct video *v, uint32_t a, uint32_t b, uint32_t c)
{
    unsigned width = REGISTER_BITS / v->parts;
    uint64_t both = (uint64_t)b << REGISTER_BITS | a;
    uint32_t result = c, mask = 0xffffffffu >> (REGISTER_BITS - width);

    for (unsigned i = 0; i < v->parts; i++) {
        int64_t t;

        if (!v->to[i])
            continue;
        t = of_parts(v, part_of(both, v->a[i], v->signed_a), part_of(both, v->b[i], v->signed_b));
        if (v->sat)
            t = clamped(t, width, v->signed_d);
        result = v->then == PTX_DO_ADD ? result + (uint32_t)t : (result & ~(mask << width * i)) | ((uint32_t)t & mask) << width * i;
    }
    return result;
}

static void video_one(struct lanes *l, const struct op *o)
{
    const struct video *v = o->extra;
    const uint32_t     *a_ = LANE(uint32_t, o->a), *b_ = LANE(uint32_t, o->b), *c_ = LANE(uint32_t, o->c);

    LANES_SET(uint32_t, o->d, , of_one(v, a_[i], b_[i], c_[i]));
}

static void video_several(struct lanes *l, const struct op *o)
{
    const struct video *v = o->extra;
    const uint32_t     *a_ = LANE(uint32_t, o->a), *b_ = LANE(uint32_t, o->b), *c_ = LANE(uint32_t, o->c);

    LANES_SET(uint32_t, o->d, , of_several(v, a_[i], b_[i], c_[i]));
}

/* ---- decoding ---- */

static unsigned digit_of(uint16_t select, unsigned i)
{
    return select >> (PTX_SELECT_DIGIT_BITS * i) & 7;
}

static unsigned count_of(uint16_t select)
{
    return select >> PTX_SELECT_COUNT_SHIFT & 7;
}

static bool of_width(uint16_t select, unsigned width)
{
    return ((select & PTX_SELECT_HALVES) != 0) == (width == 16);
}

/* `count` parts of `width` bits out of `most`; without a selector those from `first` on. */
static bool take_parts(uint16_t select, unsigned count, unsigned width, unsigned most, unsigned first, struct part *out)
{
    if (select && (count_of(select) != count || !of_width(select, width)))
        return false;
    for (unsigned i = 0; i < count; i++) {
        unsigned digit = select ? digit_of(select, i) : first + i;

        if (digit >= most)
            return false;
        out[i] = (struct part){(uint8_t)(digit * width), (uint8_t)width};
    }
    return true;
}

static bool take_one(uint16_t select, struct part *out)
{
    unsigned width = !select ? REGISTER_BITS : select & PTX_SELECT_HALVES ? 16 : 8;

    *out = (struct part){0, REGISTER_BITS};
    return !select || take_parts(select, 1, width, REGISTER_BITS / width, 0, out);
}

static bool take_mask(uint16_t select, struct video *v)
{
    for (unsigned i = 0; i < v->parts; i++)
        v->to[i] = !select;
    for (unsigned i = 0; select && i < count_of(select); i++) {
        unsigned digit = digit_of(select, i);

        if (digit >= v->parts || v->to[digit] || !of_width(select, REGISTER_BITS / v->parts))
            return false;
        v->to[digit] = true;
    }
    return true;
}

static bool take_selectors(const struct ptx_insn *in, struct video *v)
{
    unsigned width = REGISTER_BITS / v->parts;

    if (in->operands[3].select)
        return false;
    if (v->parts > 1)
        return take_mask(in->operands[0].select, v) && take_parts(in->operands[1].select, v->parts, width, 2 * v->parts, 0, v->a) &&
               take_parts(in->operands[2].select, v->parts, width, 2 * v->parts, v->parts, v->b);
    if (in->operands[0].select && !take_one(in->operands[0].select, &v->merge))
        return false;
    return take_one(in->operands[1].select, &v->a[0]) && take_one(in->operands[2].select, &v->b[0]);
}

/* The opcode of one part, and how many there are. */
static void take_opcode(uint8_t opcode, struct video *v)
{
    static const uint8_t rows[][3] = {{PTX_OP_VADD, PTX_OP_VADD2, PTX_OP_VADD4},     {PTX_OP_VSUB, PTX_OP_VSUB2, PTX_OP_VSUB4},
                                      {PTX_OP_VAVRG2, PTX_OP_VAVRG2, PTX_OP_VAVRG4}, {PTX_OP_VABSDIFF, PTX_OP_VABSDIFF2, PTX_OP_VABSDIFF4},
                                      {PTX_OP_VMIN, PTX_OP_VMIN2, PTX_OP_VMIN4},     {PTX_OP_VMAX, PTX_OP_VMAX2, PTX_OP_VMAX4},
                                      {PTX_OP_VSET, PTX_OP_VSET2, PTX_OP_VSET4}};

    v->opcode = opcode;
    v->parts = 1;
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (opcode != rows[i][1] && opcode != rows[i][2])
            continue;
        v->opcode = rows[i][0];
        v->parts = opcode == rows[i][1] ? 2 : 4;
    }
}

/* vset has no type of the result, which counts as unsigned. */
static bool take_types(const struct ptx_insn *in, struct video *v)
{
    bool     set = v->opcode == PTX_OP_VSET, shift = v->opcode == PTX_OP_VSHL || v->opcode == PTX_OP_VSHR;
    unsigned at = !set;

    if (in->types_count != at + 2 || set != (in->compare != PTX_NO_MODIFIER) || (set && (in->compare < PTX_EQ || in->compare > PTX_GE)))
        return false;
    for (unsigned i = 0; i < in->types_count; i++)
        if (in->types[i] != PTX_U32 && in->types[i] != PTX_S32)
            return false;
    v->signed_d = at && in->types[0] == PTX_S32;
    v->signed_a = in->types[at] == PTX_S32;
    v->signed_b = in->types[at + 1] == PTX_S32;
    v->compare = in->compare;
    v->wrap = in->wrap;
    return shift ? !v->signed_b && (in->wrap == PTX_WRAP || in->wrap == PTX_CLAMP) : in->wrap == PTX_NO_MODIFIER;
}

/* Whether a third operand is there exactly where something is done with it. */
static bool third_fits(const struct ptx_insn *in, const struct video *v)
{
    if (v->parts > 1)
        return !v->sat || v->then != PTX_DO_ADD;
    if (v->opcode == PTX_OP_VMAD)
        return !v->merge.bits && v->minus_product + v->minus_c + v->plus_one <= 1;
    return (in->operands_count == 4) == (v->merge.bits || v->then) && !(v->merge.bits && v->then);
}

bool translate_video(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    struct video          *v = arena_alloc(&d->code->arena, sizeof *v);

    if (!v)
        return false;
    *v = (struct video){.sat = in->sat == PTX_SAT, .then = in->action, .plus_one = in->plus_one, .shift = in->shift};
    take_opcode(in->opcode, v);
    v->minus_product = in->operands[1].negated != in->operands[2].negated;
    v->minus_c = in->operands[3].negated;
    if (!take_types(in, v) || !take_selectors(in, v) || !third_fits(in, v))
        return false;
    return decode_result(d,
                         (struct op){.run = v->parts > 1 ? video_several : video_one,
                                     .extra = v,
                                     .a = decode_source(d, operand(d, 1), 4),
                                     .b = decode_source(d, operand(d, 2), 4),
                                     .c = decode_source(d, operand(d, in->operands_count == 4 ? 3 : 1), 4)},
                         4, false);
}
