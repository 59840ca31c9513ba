/* alloca, stacksave and stackrestore: each thread's frames grow up from the low end of its local memory, its allocations down from the
 * high end. A function's allocations end with it (device/cpu/interp/call.c). */
#include "device/cpu/interp/decode/decode.h"

enum { ALIGN_DEFAULT = 8, ALIGN_MAX = 256 };

/* a: bytes; immediate: alignment, a power of two. d: the address in local space. */
static void stack_allocate(struct lanes *l, const struct op *o)
{
    struct block_run        *r = l->run;
    const struct activation *a = activation_now(r);
    const uint64_t          *bytes = LANE(uint64_t, o->a), bottom = a->local_base + (uint64_t)a->code->local_bytes;
    const uint64_t           mask = ~((uint64_t)o->immediate - 1);
    uint64_t                *to = LANE(uint64_t, o->d);

    r->stack_used = true;
    LANES_EACH(const uint64_t room = r->stack_top[i] - bottom; if (bytes[i] > room || ((r->stack_top[i] - bytes[i]) & mask) < bottom)
                   block_fault(l, FAULT_TRAP, i, "the stack of local memory overflowed");
               to[i] = (r->stack_top[i] - bytes[i]) & mask; r->stack_top[i] = (uint32_t)to[i]);
}

static void stack_save(struct lanes *l, const struct op *o)
{
    const uint32_t *top = l->run->stack_top;
    uint64_t       *to = LANE(uint64_t, o->d);

    LANES_EACH(to[i] = top[i]);
}

static void stack_restore(struct lanes *l, const struct op *o)
{
    struct block_run *r = l->run;
    const uint64_t   *to = LANE(uint64_t, o->a);

    LANES_EACH(if (to[i] < r->stack_top[i] || to[i] > r->local_bytes)
                   block_fault(l, FAULT_TRAP, i, "stackrestore of 0x%llx, which is not from stacksave", (unsigned long long)to[i]);
               r->stack_top[i] = (uint32_t)to[i]);
}

bool translate_alloca(struct decoder *d)
{
    uint64_t align = d->insn->operands_count > 2 ? operand(d, 2)->value : ALIGN_DEFAULT;

    if (!align || align & (align - 1) || align > ALIGN_MAX || (d->insn->operands_count > 2 && operand(d, 2)->kind != PTX_IMMEDIATE))
        return false;
    d->code->allocates = true;
    d->code->stack_place = d->code->stack_place ? d->code->stack_place : decode_temporary(d, 4);
    return decode_result(d, (struct op){.run = stack_allocate, .a = decode_source(d, operand(d, 1), 8), .immediate = (int64_t)align}, 8,
                         false);
}

bool translate_stacksave(struct decoder *d)
{
    return decode_result(d, (struct op){.run = stack_save}, 8, false);
}

bool translate_stackrestore(struct decoder *d)
{
    decode_op(d, (struct op){.run = stack_restore, .a = decode_source(d, operand(d, 0), 8)});
    return true;
}
