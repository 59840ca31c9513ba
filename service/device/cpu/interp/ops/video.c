/* Sums of absolute differences of the bytes or halves in a register: the instructions that remain of a larger family. */
#include "device/cpu/interp/decode/decode.h"

struct differences {
    uint8_t parts; /* 2 or 4 */
    bool    signed_a, signed_b;
    bool    sum; /* added to c instead of put side by side */
};

static int32_t part_of(uint32_t bits, unsigned i, unsigned width, bool is_signed)
{
    uint32_t top = bits << (32 - width * (i + 1));

    return is_signed ? (int32_t)top >> (32 - width) : (int32_t)(top >> (32 - width));
}

static uint32_t sum_of_differences(const struct differences *p, uint32_t a, uint32_t b, uint32_t c)
{
    unsigned width = 32 / p->parts;
    uint32_t result = p->sum ? c : 0;

    for (unsigned i = 0; i < p->parts; i++) {
        int32_t  x = part_of(a, i, width, p->signed_a), y = part_of(b, i, width, p->signed_b);
        uint32_t difference = (uint32_t)(x > y ? x - y : y - x);
        result += p->sum ? difference : (difference & (0xffffffffu >> (32 - width))) << (width * i);
    }
    return result;
}

static void absolute_differences(struct lanes *l, const struct op *o)
{
    const struct differences *p = o->extra;
    const uint32_t           *a_ = LANE(uint32_t, o->a), *b_ = LANE(uint32_t, o->b), *c_ = LANE(uint32_t, o->c);

    LANES_SET(uint32_t, o->d, , sum_of_differences(p, a_[i], b_[i], c_[i]));
}

bool translate_absolute_differences(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    struct differences    *p = arena_alloc(&d->code->arena, sizeof *p);

    if (!p || in->types_count != 3)
        return false;
    for (unsigned i = 0; i < 3; i++) {
        if (in->types[i] != PTX_U32 && in->types[i] != PTX_S32)
            return false;
    }
    *p = (struct differences){.parts = in->opcode == PTX_OP_VABSDIFF2 ? 2 : 4,
                              .signed_a = in->types[1] == PTX_S32,
                              .signed_b = in->types[2] == PTX_S32,
                              .sum = in->action == PTX_DO_ADD};
    return decode_result(d,
                         (struct op){.run = absolute_differences,
                                     .extra = p,
                                     .a = decode_source(d, operand(d, 1), 4),
                                     .b = decode_source(d, operand(d, 2), 4),
                                     .c = decode_source(d, operand(d, 3), 4)},
                         4, false);
}
