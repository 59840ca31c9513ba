/* What compiled code asks the interpreter for: accesses that need a look at each lane, operations that it lends, and the text of a fault. */
#include "device/cpu/interp/native_internal.h"

#include "device/cpu/jit/subset.h"

/* ---- accesses that need a look at each lane ---- */

/* The operation of that instruction that the interpreter would run. */
static const struct op *op_of(const struct code *c, const struct ptx_insn *in)
{
    for (uint32_t i = 0; i < c->ops_count; i++) {
        if (c->ops[i].insn == in && c->ops[i].addresses)
            return &c->ops[i];
    }
    return NULL;
}

static void fill_addresses(struct native_call *c)
{
    for (uint32_t i = 0; c->line_step != (int64_t)NATIVE_EACH && i < NATIVE_LANES_MAX; i++)
        c->addresses[i] = c->line_address + (uint64_t)c->line_step * i + (i >= c->line_turn ? (uint64_t)c->line_wrapped : 0);
}

static uint8_t *value_of(struct native_call *c, unsigned element, uint32_t lane, unsigned bytes)
{
    return (uint8_t *)c->values[element] + (size_t)lane * bytes;
}

KERNEL_MEMORY void native_access(struct native_call *c)
{
    struct block_run         *r = c->run;
    const struct code        *code = r->grid->code;
    const struct ptx_insn    *in = &code->native->function->insns[c->insn];
    bool                      load = in->opcode != PTX_OP_ST;
    const struct ptx_operand *moved = &in->operands[load ? 0 : 1];
    unsigned                  count = moved->kind == PTX_VECTOR ? moved->count : 1, bytes = ptx_type_bytes((enum ptx_type)in->type);
    enum op_space             space = OP_GENERIC;
    uint32_t                  first = NATIVE_LANES_MAX;

    native_space(in, &in->operands[load ? 1 : 0], &space);
    fill_addresses(c);
    native_find_block(r);
    r->lanes.current = op_of(code, in);
    for (uint32_t i = 0; i < NATIVE_LANES_MAX; i++) {
        uint8_t *at;

        if (!(c->lanes >> i & 1))
            continue;
        first = first < i ? first : i;
        at = lane_pointer(&r->lanes, space, c->addresses[i], bytes * count, c->lane + i);
        for (unsigned k = 0; k < count; k++) {
            uint8_t *value = value_of(c, k, i, bytes);

            memcpy(load ? value : at + k * bytes, load ? at + k * bytes : value, bytes);
        }
    }
    /* All lanes at one address: the first element is that of all. */
    for (unsigned k = 0; load && k < count && first < NATIVE_LANES_MAX; k++)
        memmove(value_of(c, k, 0, bytes), value_of(c, k, first, bytes), bytes);
}

/* Hosts gather in any order: the fault is that of the first lane whose page is no allocation's. Allocations end with their last page, but
 * for less than 256 bytes. */
static bool is_astray(const struct block_run *r, uint64_t at)
{
    return cpu_memory_left(r->grid->memory, (at | (cpu_memory_page(r->grid->memory) - 1)) - 255) == 0;
}

/* Of the chunk `number` of a strip, the lanes that run it. */
static uint32_t lanes_of_chunk(const struct native_call *c, uint32_t number, unsigned lanes)
{
    uint32_t bits = 0;

    for (uint32_t i = 0; i < lanes; i++) {
        uint32_t at = number * lanes + i;

        bits |= (uint32_t)(at >= c->strip_first && at < c->strip_end) << i;
    }
    return bits;
}

/* Where the strip's lane `at` makes the access. */
static uint64_t strip_address(const struct native_call *c, const struct code_native *n, const struct strip_access *a, uint32_t at)
{
    return a->address + (uint64_t)n->ops[a->insn].strip_step * ((uint64_t)c->strip_now * n->strip + at);
}

/* The strip's first access, and its first lane, that went astray. */
static const struct strip_access *find_access(const struct native_call *c, const struct block_run *r, uint32_t *lane)
{
    const struct code_native *n = r->grid->code->native;

    for (uint32_t k = 0; k < c->strip_accesses; k++) {
        for (*lane = c->strip_first; *lane < c->strip_end; ++*lane) {
            if (is_astray(r, strip_address(c, n, &c->strip_access[k], *lane)))
                return &c->strip_access[k];
        }
    }
    *lane = c->strip_first;
    return c->strip_access;
}

/* The access of a strip becomes that of the chunk in it whose lane went astray first. */
static void find_chunk(struct native_call *c, const struct block_run *r)
{
    const struct code_native  *n = r->grid->code->native;
    uint32_t                   at, chunk;
    const struct strip_access *a = find_access(c, r, &at);

    chunk = at / n->lanes;
    at = c->strip_now * n->strip + chunk * n->lanes;
    if (n->across)
        c->ctaid[0] += at / n->lanes;
    else
        c->lane += at;
    c->insn = (uint32_t)a->insn;
    c->address = strip_address(c, n, a, chunk * n->lanes);
    c->lanes = lanes_of_chunk(c, chunk, n->lanes);
}

void native_explain(struct block_run *r)
{
    struct native_call    *c = r->native;
    struct lanes          *l = &r->lanes;
    const struct code     *code = r->grid->code;
    const struct ptx_insn *in;
    const struct op       *o;
    int64_t                step;
    bool                   strip;

    if (!c || !c->active || !code->native) /* an earlier launch may have faulted in its compiled code */
        return;
    c->active = false;
    strip = c->lanes == NATIVE_STRIP;
    if (strip)
        find_chunk(c, r);
    in = &code->native->function->insns[c->insn];
    step = strip ? code->native->ops[c->insn].strip_step : code->native->ops[c->insn].step;
    native_find_block(r);
    o = op_of(code, in);
    l->current = o;
    if (!o)
        return;
    l->low = c->lane;
    l->high = c->lane + code->native->lanes < l->count ? c->lane + code->native->lanes : l->count;
    l->m = activation_now(r)->guard.m;
    for (uint32_t i = l->high; i-- > l->low;) {
        uint32_t k = i - c->lane;
        uint64_t at = step == (int64_t)NATIVE_EACH ? c->addresses[k] : c->address + (uint64_t)step * k;

        activation_now(r)->guard.m[i] = c->lanes >> k & 1;
        LANE(uint64_t, o->a)[i] = at - (uint64_t)o->immediate;
        if ((c->lanes >> k & 1) && is_astray(r, at))
            r->guard.address = at;
    }
}

/* ---- operations that the interpreter lends ---- */

void native_operate(struct native_call *c)
{
    struct block_run        *r = c->run;
    struct lanes            *l = &r->lanes;
    const struct code       *code = r->grid->code;
    const struct native_ops *ops = &code->native->ops[c->insn];
    struct mask              m = {.m = c->mask, .low = c->lane, .count = (uint32_t)__builtin_popcount(c->lanes)};

    if (!c->lanes)
        return;
    native_find_block(r);
    m.high = m.low + 32 - (uint32_t)__builtin_clz(c->lanes);
    m.low += (uint32_t)__builtin_ctz(c->lanes);
    for (unsigned k = 0; k < code->native->lanes; k += BYTES_OF_LANES)
        add_lanes(c->mask + c->lane + k, c->lanes >> k);
    c->active = false;
    for (uint32_t i = ops->first; i < ops->first + ops->count; i++) {
        lanes_use(l, &m);
        l->current = &code->ops[i];
        code->ops[i].run(l, &code->ops[i]);
    }
    c->active = true;
    memset(c->mask + c->lane, 0, code->native->lanes);
}
