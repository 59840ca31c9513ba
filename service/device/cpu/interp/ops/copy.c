/* cp.async: copies at once, so that waiting for it does nothing. */
#include "device/cpu/interp/decode/decode.h"

struct copy_plan {
    int64_t to, from; /* offsets */
    bool    bounded;  /* c: bytes that come from the source; the rest is zero */
};

static void copy_now(struct lanes *l, const struct op *o)
{
    const struct copy_plan *p = o->extra;
    const uint64_t         *to = LANE(uint64_t, o->a), *from = LANE(uint64_t, o->b);
    const uint32_t         *bytes = LANE(uint32_t, o->c);

    for (uint32_t i = l->low; i < l->high; i++) {
        uint32_t n = p->bounded && bytes[i] < o->width ? bytes[i] : o->width;
        uint8_t *at;

        if (!l->m[i])
            continue;
        at = lane_pointer(l, OP_SHARED, to[i] + (uint64_t)p->to, o->width, i);
        memset(at, 0, o->width);
        if (n)
            check_now(l, OP_GLOBAL, from[i] + (uint64_t)p->from, n, CHECK_READ, i);
        if (n)
            memcpy(at, lane_pointer(l, OP_GLOBAL, from[i] + (uint64_t)p->from, o->width, i), n);
    }
}

bool translate_cp(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    struct copy_plan      *p = arena_alloc(&d->code->arena, sizeof *p);
    struct decoded_address to, from;
    uint64_t               bytes = operand(d, 2)->value;
    bool                   bounded = in->operands_count > 3;

    if (!p || !in->async || (in->type && in->action != PTX_DO_ARRIVE))
        return false;
    if (in->action == PTX_DO_ARRIVE)
        return in->type && translate_copy_arrival(d);
    if (in->action != PTX_NO_ACTION)
        return true;
    if (operand(d, 2)->kind != PTX_IMMEDIATE || (bytes != 4 && bytes != 8 && bytes != 16))
        return false;
    to = decode_address(d, operand(d, 0), PTX_SHARED);
    from = decode_address(d, operand(d, 1), PTX_GLOBAL);
    *p = (struct copy_plan){to.immediate, from.immediate, bounded};
    decode_op(d, (struct op){.run = copy_now,
                             .extra = p,
                             .a = to.place,
                             .b = from.place,
                             .c = bounded ? decode_source(d, operand(d, 3), 4) : decode_constant(d, 0, 4),
                             .width = (uint8_t)bytes});
    return true;
}
