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
    static const uint8_t modes[] = {[PTX_DO_UP] = SHFL_UP, [PTX_DO_DOWN] = SHFL_DOWN, [PTX_DO_BFLY] = SHFL_BFLY, [PTX_DO_IDX] = SHFL_IDX};

    if (d->insn->action < PTX_DO_UP || d->insn->action > PTX_DO_IDX)
        return false;
    return decode_result(d,
                         (struct op){.run = warp_shuffle,
                                     .a = decode_source(d, operand(d, 1), 4),
                                     .b = decode_source(d, operand(d, 2), 4),
                                     .c = decode_source(d, operand(d, 3), 4),
                                     .e = member_mask(d, 4),
                                     .immediate = second_predicate(d),
                                     .mode = modes[d->insn->action]},
                         4, false);
}

bool translate_vote(struct decoder *d)
{
    static const uint8_t modes[] = {[PTX_DO_ALL] = VOTE_ALL, [PTX_DO_ANY] = VOTE_ANY, [PTX_DO_UNI] = VOTE_UNI, [PTX_DO_BALLOT] = VOTE_BALLOT};

    if (d->insn->action < PTX_DO_ALL || d->insn->action > PTX_DO_BALLOT)
        return false;
    return decode_result(d,
                         (struct op){.run = warp_vote,
                                     .a = decode_source(d, operand(d, 1), 1),
                                     .e = member_mask(d, 2),
                                     .immediate = operand(d, 1)->negated,
                                     .mode = modes[d->insn->action]},
                         d->insn->action == PTX_DO_BALLOT ? 4 : 1, false);
}

bool translate_match(struct decoder *d)
{
    unsigned bytes = type_bytes(d);

    if (bytes != 4 && bytes != 8)
        return false;
    return decode_result(d,
                         (struct op){.run = warp_match,
                                     .a = decode_source(d, operand(d, 1), bytes),
                                     .e = member_mask(d, 2),
                                     .immediate = second_predicate(d),
                                     .width = (uint8_t)bytes,
                                     .mode = d->insn->action == PTX_DO_ALL},
                         4, false);
}

bool translate_redux(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    bool                   is_signed = in->type == PTX_S32;
    int                    mode = -1;
    struct op              o = {.run = warp_redux};

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
    o.a = decode_source(d, operand(d, 1), 4);
    o.e = member_mask(d, 2);
    o.mode = (uint8_t)mode;
    return decode_result(d, o, 4, false);
}

bool translate_elect(struct decoder *d)
{
    return decode_result(d, (struct op){.run = warp_elect, .e = member_mask(d, 1), .immediate = second_predicate(d)}, 4, false);
}

bool translate_warp_sync(struct decoder *d)
{
    decode_op(d, (struct op){.run = warp_sync, .e = member_mask(d, 0)});
    return true;
}
