/* Translates operations among the threads of a warp. */
#include "device/cpu/interp/decode/decode.h"

static uint32_t second_predicate(struct decoder *d)
{
    return d->insn->predicate.kind == PTX_REG ? d->places[d->insn->predicate.reg] : decode_temporary(d, 1);
}

/* The old forms without .sync name no members: the lanes that are there take part. */
static uint32_t member_mask(struct decoder *d, unsigned i)
{
    d->members = i < d->insn->operands_count ? decode_source(d, operand(d, i), 4) : decode_constant(d, UINT32_MAX, 4);
    return d->members;
}

bool translate_shuffle(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    uint32_t               a = decode_source(d, operand(d, 1), 4), b = decode_source(d, operand(d, 2), 4);
    uint32_t               c = decode_source(d, operand(d, 3), 4), e = member_mask(d, 4), p = second_predicate(d);
    uint32_t               to = decode_destination(d, operand(d, 0), 4);
    struct op             *o;

    if (in->action < PTX_DO_UP || in->action > PTX_DO_IDX)
        return false;
    o = decode_op(d, warp_shuffle);
    o->a = a;
    o->b = b;
    o->c = c;
    o->e = e;
    o->d = to;
    o->width = 1;
    o->immediate = p;
    o->mode = (uint8_t)(in->action == PTX_DO_UP ? SHFL_UP : in->action == PTX_DO_DOWN ? SHFL_DOWN
                        : in->action == PTX_DO_BFLY ? SHFL_BFLY : SHFL_IDX);
    return true;
}

bool translate_vote(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    bool                   ballot = in->action == PTX_DO_BALLOT;
    uint32_t               a = decode_source(d, operand(d, 1), 1), e = member_mask(d, 2);
    uint32_t               to = decode_destination(d, operand(d, 0), ballot ? 4 : 1);
    struct op             *o;

    if (in->action < PTX_DO_ALL || in->action > PTX_DO_BALLOT)
        return false;
    o = decode_op(d, warp_vote);
    o->a = a;
    o->e = e;
    o->d = to;
    o->immediate = operand(d, 1)->negated;
    o->mode = (uint8_t)(ballot ? VOTE_BALLOT : in->action == PTX_DO_ALL ? VOTE_ALL : in->action == PTX_DO_ANY ? VOTE_ANY : VOTE_UNI);
    return true;
}

bool translate_match(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    unsigned               bytes = type_bytes(d);
    uint32_t               a, e, to, p;
    struct op             *o;

    if (bytes != 4 && bytes != 8)
        return false;
    a = decode_source(d, operand(d, 1), bytes);
    e = member_mask(d, 2);
    to = decode_destination(d, operand(d, 0), 4);
    p = second_predicate(d);
    o = decode_op(d, warp_match);
    o->a = a;
    o->e = e;
    o->d = to;
    o->width = (uint8_t)bytes;
    o->mode = in->action == PTX_DO_ALL;
    o->immediate = p;
    return true;
}

bool translate_redux(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    bool                   is_signed = in->type == PTX_S32;
    int                    mode = -1;
    uint32_t               a, e, to;
    struct op             *o;

    switch ((int)in->action) {
    case PTX_DO_ADD: mode = REDUX_ADD; break;
    case PTX_DO_AND: mode = REDUX_AND; break;
    case PTX_DO_OR:  mode = REDUX_OR; break;
    case PTX_DO_XOR: mode = REDUX_XOR; break;
    case PTX_DO_MIN: mode = is_signed ? REDUX_SMIN : REDUX_UMIN; break;
    case PTX_DO_MAX: mode = is_signed ? REDUX_SMAX : REDUX_UMAX; break;
    default: break;
    }
    if (mode < 0 || type_bytes(d) != 4 || is_float((enum ptx_type)in->type))
        return false;
    a = decode_source(d, operand(d, 1), 4);
    e = member_mask(d, 2);
    to = decode_destination(d, operand(d, 0), 4);
    o = decode_op(d, warp_redux);
    o->a = a;
    o->e = e;
    o->d = to;
    o->mode = (uint8_t)mode;
    return true;
}

bool translate_elect(struct decoder *d)
{
    uint32_t   e = member_mask(d, 1), to = decode_destination(d, operand(d, 0), 4), p = second_predicate(d);
    struct op *o = decode_op(d, warp_elect);

    o->e = e;
    o->d = to;
    o->immediate = p;
    return true;
}

bool translate_warp_sync(struct decoder *d)
{
    uint32_t e = member_mask(d, 0);

    decode_op(d, warp_sync)->e = e;
    return true;
}
