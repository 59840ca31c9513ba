/* Translates setp and set, and the predicate of lop3: comparisons, combined with a third predicate, of numbers and of pairs of halves. */
#include "device/cpu/interp/decode/decode.h"

bool insn_comparison(const struct ptx_insn *in, enum compare *how)
{
    static const unsigned char by_modifier[] = {
        [PTX_EQ] = 1 + CMP_EQ,      [PTX_NE] = 1 + CMP_NE,   [PTX_LT] = 1 + CMP_LT,   [PTX_LE] = 1 + CMP_LE,   [PTX_GT] = 1 + CMP_GT,
        [PTX_GE] = 1 + CMP_GE,      [PTX_LS] = 1 + CMP_LE,   [PTX_HS] = 1 + CMP_GE,   [PTX_EQU] = 1 + CMP_EQU, [PTX_NEU] = 1 + CMP_NEU,
        [PTX_LTU] = 1 + CMP_LTU,    [PTX_LEU] = 1 + CMP_LEU, [PTX_GTU] = 1 + CMP_GTU, [PTX_GEU] = 1 + CMP_GEU, [PTX_NUM] = 1 + CMP_NUM,
        [PTX_IS_NAN] = 1 + CMP_NAN, [PTX_LO] = 1 + CMP_LT,   [PTX_HI] = 1 + CMP_GT,
    };
    unsigned m = in->compare ? in->compare : in->part;

    if (m >= COUNT(by_modifier) || !by_modifier[m])
        return false;
    *how = (enum compare)(by_modifier[m] - 1);
    return true;
}

static op_fn combine_handler(uint8_t action)
{
    return action == PTX_DO_AND ? combine_and : action == PTX_DO_OR ? combine_or : action == PTX_DO_XOR ? combine_xor : NULL;
}

static bool is_pair(enum ptx_type t)
{
    return t == PTX_F16X2 || t == PTX_BF16X2;
}

/* Source i as an array of the compared type; of a pair, its low or high half. */
static uint32_t compared_source(struct decoder *d, unsigned i, enum ptx_type t, bool high)
{
    if (!is_pair(t))
        return t == PTX_PRED ? decode_predicate(d, operand(d, i)) : decode_source(d, operand(d, i), ptx_type_bytes(t));
    return decode_value(d, (struct op){.run = high ? high_half : low_half, .a = decode_source(d, operand(d, i), 4)}, 2);
}

/* The comparison of sources 1 and 2 in type t; false when that type cannot be compared. */
static bool comparison_op(struct decoder *d, enum ptx_type t, bool high, struct op *o)
{
    enum lane_type type = t == PTX_F16X2 ? LANE_F16 : t == PTX_BF16X2 ? LANE_BF16 : lane_type_of(t);
    enum compare   how;

    if (type == LANE_TYPES || !insn_comparison(d->insn, &how))
        return false;
    *o = (struct op){.run = compare_handler(type, how, d->insn->ftz)};
    if (!o->run)
        return false;
    o->a = compared_source(d, 1, t, high);
    o->b = compared_source(d, 2, t, high);
    return true;
}

/* to = (flip XOR test) COMBINED WITH c */
static uint32_t combine_with_third(struct decoder *d, uint32_t test, bool flip, uint32_t c)
{
    op_fn run = combine_handler(d->insn->action);

    return decode_value(d, (struct op){.run = run ? run : flip ? negate_pred : move_handler(1), .a = test, .c = c, .mode = flip && run}, 1);
}

static void assign_predicate(struct decoder *d, const struct ptx_operand *p, uint32_t from)
{
    if (p->kind == PTX_REG)
        decode_op(d, (struct op){.run = move_handler(1), .a = from, .d = d->places[p->reg]});
}

/* Of a pair, the two predicates are those of the low and the high half; otherwise the second is the comparison's complement. */
static bool set_predicates(struct decoder *d, bool pair)
{
    const struct ptx_insn *in = d->insn;
    uint32_t               low, high, c = 0, yes, no;
    struct op              o;

    if (!comparison_op(d, (enum ptx_type)in->type, false, &o))
        return false;
    low = high = decode_value(d, o, 1);
    if (pair && comparison_op(d, (enum ptx_type)in->type, true, &o))
        high = decode_value(d, o, 1);
    if (in->action)
        c = decode_predicate(d, operand(d, 3));
    yes = combine_with_third(d, low, false, c);
    no = combine_with_third(d, high, !pair, c);
    assign_predicate(d, operand(d, 0), yes);
    assign_predicate(d, &in->predicate, no);
    return true;
}

/* Both results are complete before either is written: the third operand may be one of them. */
bool translate_setp(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    bool                   pair = is_pair((enum ptx_type)in->type);
    struct op              o;

    if (in->action && in->operands_count < 4)
        return false;
    if (in->action || in->predicate.kind != PTX_NOTHING || pair)
        return set_predicates(d, pair);
    return comparison_op(d, (enum ptx_type)in->type, false, &o) && decode_result(d, o, 1, false);
}

/* lop3 with a predicate: the second result tells whether the first is not zero, combined with the last operand. */
bool translate_logic_predicate(struct decoder *d, uint32_t value)
{
    const struct ptx_insn *in = d->insn;
    struct op              o = {.run = compare_handler(LANE_U32, CMP_NE, false), .a = value, .b = decode_constant(d, 0, 4)};

    if (in->predicate.kind == PTX_NOTHING && !in->action)
        return in->operands_count == 5;
    if (!in->action || in->operands_count != 6)
        return false;
    assign_predicate(d, &in->predicate, combine_with_third(d, decode_value(d, o, 1), false, decode_predicate(d, operand(d, 5))));
    return true;
}

static uint64_t true_value(enum ptx_type t)
{
    return t == PTX_F32 ? 0x3f800000u : t == PTX_F16 || t == PTX_F16X2 ? 0x3c00 : t == PTX_BF16 || t == PTX_BF16X2 ? 0x3f80 : UINT64_MAX;
}

/* One comparison as a value of `bytes` in *place; false: there is none. */
static bool compared_value(struct decoder *d, bool high, unsigned bytes, uint32_t *place)
{
    const struct ptx_insn *in = d->insn;
    uint32_t               test;
    struct op              o;

    if (!set_value_handler(bytes) || !comparison_op(d, (enum ptx_type)in->stype, high, &o))
        return false;
    test = decode_value(d, o, 1);
    if (in->action)
        test = combine_with_third(d, test, false, decode_predicate(d, operand(d, 3)));
    o = (struct op){.run = set_value_handler(bytes), .a = test, .immediate = (int64_t)true_value((enum ptx_type)in->type)};
    *place = decode_value(d, o, bytes);
    return true;
}

static bool set_pair(struct decoder *d)
{
    struct op o = {.run = join_halves};

    return compared_value(d, false, 2, &o.a) && compared_value(d, true, 2, &o.b) && type_bytes(d) == 4 && decode_result(d, o, 4, false);
}

/* As NVIDIA's assembler accepts it: pairs give pairs or 32 bits, halves give halves or integers, all others 32 bits or a half. */
static bool set_types_fit(enum ptx_type to, enum ptx_type from)
{
    bool half = from == PTX_F16 || from == PTX_BF16;

    if (to == PTX_U32 || to == PTX_S32)
        return true;
    if (is_pair(from) || is_pair(to))
        return to == from;
    if (to == PTX_U16 || to == PTX_S16)
        return half;
    if (half)
        return to == from || to == PTX_BF16;
    return to == PTX_F32 || to == PTX_F16 || to == PTX_BF16;
}

bool translate_set(struct decoder *d)
{
    unsigned  bytes = type_bytes(d);
    struct op o = {.run = move_handler(bytes)};

    if (!set_types_fit((enum ptx_type)d->insn->type, (enum ptx_type)d->insn->stype))
        return false;
    if (is_pair((enum ptx_type)d->insn->stype))
        return set_pair(d);
    return compared_value(d, false, bytes, &o.a) && decode_result(d, o, bytes, false);
}
