/* Loads and stores of compiled kernels. Every address of every lane is checked against its space first, as the interpreter does; what a
 * check does not let pass goes to the call's access(), which looks at each lane and faults as the interpreter does. */
#include "device/cpu/jit/emit/emit.h"

#include "device/cpu/interp/decode/decode.h"
#include "device/cpu/jit/subset.h"

struct access_plan {
    const struct ptx_operand *moved;
    enum op_space             space;
    unsigned                  bytes, count, total;
    bool                      load, is_signed;
    struct value              address;  /* 64 bits: in its space */
    bool                      one, row; /* all lanes at one address; or one after the other */
    llvm_value                at;       /* scalar or vector: the host's address */
    llvm_value                stored[NATIVE_ELEMENTS_MAX];
    bool                      stored_scalar[NATIVE_ELEMENTS_MAX];
    struct value              loaded[NATIVE_ELEMENTS_MAX];
};

static const struct ptx_operand *element(const struct access_plan *a, unsigned k)
{
    return a->moved->kind == PTX_VECTOR ? &a->moved->elements[k] : a->moved;
}

static struct value register_address(struct emitter *e, uint32_t reg)
{
    return resize_value(e, read_register(e, reg), 64, false);
}

static struct value address_of(struct emitter *e, const struct ptx_operand *p)
{
    struct value v;

    if (p->reg == PTX_NO_REG)
        return source_value(e, p, 8);
    v = register_address(e, p->reg);
    v.v = binary(e, LLVM_ADD, v.v, like(e, v.scalar, 64, p->value));
    return v;
}

/* [offset, offset + bytes) lies in [0, size), and the offset is a multiple of `align`. */
static llvm_value fits(struct emitter *e, bool scalar, llvm_value offset, llvm_value size, llvm_value bytes, unsigned align)
{
    llvm_value room = binary(e, LLVM_ADD, binary(e, LLVM_SUB, size, bytes), number(e, 64, 1));
    llvm_value places = choose(e, icmp(e, LLVM_UGE, size, bytes), room, number(e, 64, 0));
    llvm_value ok = icmp(e, LLVM_ULT, offset, scalar ? places : spread(e, places));

    if (align == 1)
        return ok;
    return binary(e, LLVM_AND, ok, icmp(e, LLVM_EQ, binary(e, LLVM_AND, offset, like(e, scalar, 64, align - 1)), like(e, scalar, 64, 0)));
}

static llvm_value any(struct emitter *e, llvm_value mask)
{
    return icmp(e, LLVM_NE, mask_bits(e, mask), number(e, 32, 0));
}

/* The host addresses of the lanes' own parts of local memory. */
static llvm_value own_parts(struct emitter *e)
{
    llvm_value index = binary(e, LLVM_ADD, cast(e, LLVM_ZEXT, e->every, e->i64), spread(e, e->lane));

    return binary(e, LLVM_ADD, spread(e, e->local), binary(e, LLVM_MUL, index, spread(e, e->local_bytes)));
}

static void place(struct emitter *e, struct access_plan *a)
{
    bool       line = a->address.scalar && a->address.shape.kind == SHAPE_LINEAR;
    llvm_value v;

    a->one = a->address.scalar && !line && a->space != OP_LOCAL;
    a->row = line && a->space != OP_LOCAL && a->count == 1 && a->address.shape.stride == (int64_t)a->bytes;
    v = a->one || a->row ? a->address.v : as_vector(e, &a->address);
    if (a->space == OP_SHARED)
        v = binary(e, LLVM_ADD, v, a->one || a->row ? e->shared : spread(e, e->shared));
    else if (a->space == OP_LOCAL)
        v = binary(e, LLVM_ADD, v, own_parts(e));
    a->at = v;
}

static llvm_value lanes_on(struct emitter *e, llvm_value lanes, int64_t stride)
{
    return binary(e, LLVM_MUL, cast(e, LLVM_ZEXT, lanes, e->i64), number(e, 64, (uint64_t)stride));
}

llvm_value check_range(struct emitter *e, enum op_space space, struct value base, int64_t low, int64_t high, unsigned align,
                       llvm_value mask)
{
    llvm_value     size = space == OP_SHARED ? e->shared_bytes : space == OP_LOCAL ? e->local_bytes : e->memory_span, start, ok;
    int64_t        stride = base.shape.kind == SHAPE_LINEAR ? base.shape.stride : 0;
    llvm_value     bytes = number(e, 64, (uint64_t)(high - low)), reach;
    struct stretch left;

    if (base.scalar && stride % (int64_t)align) /* not all lanes are aligned alike */
        base = vector_value(as_vector(e, &base), 64);
    start = binary(e, LLVM_ADD, base.v, like(e, base.scalar, 64, (uint64_t)low));
    if (space == OP_GLOBAL)
        start = binary(e, LLVM_SUB, start, base.scalar ? e->memory_base : spread(e, e->memory_base));
    if (!base.scalar) {
        ok = binary(e, LLVM_XOR, fits(e, false, start, size, bytes, align), like(e, false, 1, 1));
        return binary(e, LLVM_XOR, any(e, binary(e, LLVM_AND, ok, mask)), number(e, 1, 1));
    }
    left = lanes_left(e);
    start = binary(e, LLVM_ADD, start, lanes_on(e, left.low, stride));
    reach = lanes_on(e, binary(e, LLVM_SUB, binary(e, LLVM_SUB, left.high, left.low), number(e, 32, 1)), stride);
    if (stride < 0)
        start = binary(e, LLVM_ADD, start, reach);
    ok = fits(e, true, start, size, binary(e, stride < 0 ? LLVM_SUB : LLVM_ADD, bytes, reach), align);
    return base.turn ? binary(e, LLVM_AND, ok, icmp(e, LLVM_UGE, base.turn, left.high)) : ok;
}

/* All that the access needs holds. */
static llvm_value passes(struct emitter *e, const struct access_plan *a)
{
    llvm_value ok = check_range(e, a->space, a->address, 0, a->total, a->total, e->taken);

    return a->one && e->guarded ? binary(e, LLVM_AND, ok, any(e, e->taken)) : ok;
}

/* ---- several accesses from one register on ---- */

const struct ptx_operand *address_operand(const struct ptx_insn *in)
{
    bool load = in->opcode == PTX_OP_LD || in->opcode == PTX_OP_LDU;

    return load || in->opcode == PTX_OP_ST ? &in->operands[load ? 1 : 0] : NULL;
}

bool insn_writes(const struct ptx_insn *in, uint32_t reg)
{
    const struct ptx_operand *to = &in->operands[0];

    if (in->opcode == PTX_OP_ST || in->opcode == PTX_OP_BRA)
        return false;
    for (unsigned k = 0; to->kind == PTX_VECTOR && k < to->count; k++) {
        if (to->elements[k].kind == PTX_REG && to->elements[k].reg == reg)
            return true;
    }
    for (unsigned k = 0; in->call && k < in->call->results_count; k++) {
        if (in->call->results[k].kind == PTX_REG && in->call->results[k].reg == reg)
            return true;
    }
    return (to->kind == PTX_REG && to->reg == reg) || (in->predicate.kind == PTX_REG && in->predicate.reg == reg);
}

bool block_writes(const struct jit_plan *p, const struct code_block *k, uint32_t reg)
{
    for (uint32_t i = k->insn_first; i < k->insn_first + k->insn_count; i++) {
        if (insn_writes(&p->function->insns[i], reg))
            return true;
    }
    return false;
}

unsigned access_bytes(const struct ptx_insn *in)
{
    const struct ptx_operand *moved = &in->operands[in->opcode == PTX_OP_ST ? 1 : 0];

    return ptx_type_bytes((enum ptx_type)in->type) * (moved->kind == PTX_VECTOR ? moved->count : 1);
}

/* From this instruction on, as long as the register stays: what is accessed from it in this space. Returns how many accesses there are. */
static unsigned survey_group(const struct emitter *e, enum op_space space, uint32_t reg, struct access_group *g)
{
    const struct code_block *k = &e->plan->code->blocks[e->block];
    const struct ptx_insn   *end = e->plan->function->insns + k->insn_first + k->insn_count;
    unsigned                 count = 0;

    *g = (struct access_group){.reg = reg, .space = space, .align = 1};
    for (const struct ptx_insn *in = e->insn; in < end; in++) {
        const struct ptx_operand *at = address_operand(in);
        enum op_space             other = OP_GENERIC;
        int64_t                   offset = at ? (int64_t)at->value : 0, beyond = at ? offset + access_bytes(in) : 0;

        if (at && at->reg == reg && native_space(in, at, &other) && other == space && offset % (int64_t)access_bytes(in) == 0 &&
            offset < GROUP_REACH && offset > -GROUP_REACH) {
            g->low = count && g->low < offset ? g->low : offset;
            g->high = count && g->high > beyond ? g->high : beyond;
            g->align = g->align > access_bytes(in) ? g->align : access_bytes(in);
            count++;
        }
        g->last = in;
        if (insn_writes(in, reg))
            break;
    }
    return count;
}

/* Groups hold aligned accesses near their register. */
static bool in_reach(const struct access_plan *a, const struct ptx_operand *p)
{
    return p->value % a->total == 0 && (int64_t)p->value < GROUP_REACH && (int64_t)p->value > -GROUP_REACH;
}

/* The group that the access belongs to, and that holds here; NULL: none. */
static const struct access_group *group_of(const struct emitter *e, const struct access_plan *a, const struct ptx_operand *p, bool assumed)
{
    for (unsigned i = 0; i < e->groups_count; i++) {
        const struct access_group *g = &e->groups[i];

        if (g->assumed == assumed && g->reg == p->reg && g->space == a->space && e->insn <= g->last)
            return g;
    }
    return NULL;
}

/* Whether all accesses of the group of this one pass; NULL: it has no group. */
static llvm_value group_passes(struct emitter *e, const struct access_plan *a, const struct ptx_operand *p)
{
    const struct access_group *known;
    struct access_group        g;
    llvm_value                 ok;

    if (p->reg == PTX_NO_REG || !in_reach(a, p))
        return NULL;
    known = group_of(e, a, p, false);
    ok = known ? known->ok : NULL;
    if (!ok && !e->careful && !e->full && survey_group(e, a->space, p->reg, &g) > 1) {
        ok = g.ok = check_range(e, a->space, register_address(e, p->reg), g.low, g.high, g.align, e->mask);
        if (e->groups_count < GROUPS_MAX)
            e->groups[e->groups_count++] = g;
    }
    return ok && a->one && e->guarded ? binary(e, LLVM_AND, ok, any(e, e->taken)) : ok;
}

static uint32_t insn_index(const struct emitter *e)
{
    return (uint32_t)(e->insn - e->plan->function->insns);
}

static void note_lanes(struct emitter *e, bool is_volatile)
{
    if (e->full && !e->guarded) { /* both at once */
        uint64_t all = (1ull << e->lanes) - 1;

        set_member(e, offsetof(struct native_call, insn), number(e, 64, all << 32 | insn_index(e)), is_volatile);
        return;
    }
    set_member(e, offsetof(struct native_call, insn), number(e, 32, insn_index(e)), is_volatile);
    set_member(e, offsetof(struct native_call, lanes), mask_bits(e, e->taken), is_volatile);
}
static_assert(offsetof(struct native_call, lanes) == offsetof(struct native_call, insn) + sizeof(uint32_t), "they are written together");

/* What the handler of faults wants to know. */
static void note_access(struct emitter *e, const struct access_plan *a)
{
    int64_t step = a->row ? a->bytes : a->one ? 0 : (int64_t)NATIVE_EACH;

    if (a->space != OP_GLOBAL)
        return;
    if (e->in_strip) { /* the block has listed it (device/cpu/jit/emit/ahead.c) */
        e->ops[insn_index(e)].strip_step = step;
        return;
    }
    note_lanes(e, true);
    set_member(e, a->one || a->row ? offsetof(struct native_call, address) : offsetof(struct native_call, addresses), a->at, true);
    e->ops[insn_index(e)].step = step;
}

static void call_access(struct emitter *e)
{
    llvm_type  type = e->ll->LLVMFunctionType(e->ll->LLVMVoidTypeInContext(e->context), &e->i64, 1, 0);
    llvm_value to = pointer(e, member(e, offsetof(struct native_call, access), 64), type);

    e->ll->LLVMBuildCall2(e->b, type, to, &e->call, 1, "");
}

static void access_slowly(struct emitter *e, struct access_plan *a)
{
    note_lanes(e, false);
    if (a->address.scalar) {
        bool line = a->address.shape.kind == SHAPE_LINEAR;

        set_member(e, offsetof(struct native_call, line_address), a->address.v, false);
        set_member(e, offsetof(struct native_call, line_step), number(e, 64, line ? (uint64_t)a->address.shape.stride : 0), false);
        set_member(e, offsetof(struct native_call, line_turn), a->address.turn ? a->address.turn : number(e, 32, e->lanes), false);
        set_member(e, offsetof(struct native_call, line_wrapped), number(e, 64, (uint64_t)a->address.shape.wrapped), false);
    } else {
        set_member(e, offsetof(struct native_call, line_step), number(e, 64, (uint64_t)NATIVE_EACH), false);
        set_member(e, offsetof(struct native_call, addresses), a->address.v, false);
    }
    for (unsigned k = 0; !a->load && k < a->count; k++) {
        set_member(e, values_at(k), a->stored_scalar[k] ? spread(e, a->stored[k]) : a->stored[k], false);
    }
    call_access(e);
    for (unsigned k = 0; a->load && k < a->count; k++) {
        llvm_type  type = a->one ? int_type(e, 8 * a->bytes) : vector_of(e, int_type(e, 8 * a->bytes));
        llvm_value load =
            e->ll->LLVMBuildLoad2(e->b, type, pointer(e, binary(e, LLVM_ADD, e->call, number(e, 64, values_at(k))), type), "");

        e->ll->LLVMSetAlignment(load, a->bytes);
        a->loaded[k].v = load;
    }
}

static llvm_value plus(struct emitter *e, const struct access_plan *a, unsigned k)
{
    return k ? binary(e, LLVM_ADD, a->at, like(e, a->one || a->row, 64, (uint64_t)k * a->bytes)) : a->at;
}

/* Hosts that gather do it by words of 32 bits: the one that the bytes lie in. */
static llvm_value gather_narrow(struct emitter *e, const struct access_plan *a, unsigned k)
{
    llvm_value at = plus(e, a, k), in_word = binary(e, LLVM_AND, at, like(e, false, 64, 3)), word;

    word = masked_load(e, binary(e, LLVM_XOR, at, in_word), false, 4, e->taken);
    in_word = binary(e, LLVM_SHL, cast(e, LLVM_TRUNC, in_word, e->i32), like(e, false, 32, 3));
    return cast(e, LLVM_TRUNC, binary(e, LLVM_LSHR, word, in_word), int_type(e, 8 * a->bytes));
}

static llvm_value load_fast(struct emitter *e, const struct access_plan *a, unsigned k)
{
    llvm_type type = int_type(e, 8 * a->bytes);

    if (a->one) {
        llvm_value load = e->ll->LLVMBuildLoad2(e->b, type, pointer(e, plus(e, a, k), type), "");
        e->ll->LLVMSetAlignment(load, a->bytes);
        e->ll->LLVMSetVolatile(load, 1); /* its fault counts even if nobody uses its value */
        return load;
    }
    if (!a->row && a->bytes < 4 && !e->ll->neon)
        return gather_narrow(e, a, k);
    return masked_load(e, plus(e, a, k), a->row, a->bytes, e->taken);
}

/* Of several lanes at one address, the last one's value stays. */
static llvm_value last_value(struct emitter *e, const struct access_plan *a, unsigned k)
{
    llvm_value args[2] = {mask_bits(e, e->taken), number(e, 1, 0)}, zeros;

    if (a->stored_scalar[k])
        return a->stored[k];
    zeros = intrinsic(e, "llvm.ctlz", &e->i32, 1, args, 2);
    return e->ll->LLVMBuildExtractElement(
        e->b, a->stored[k], binary(e, LLVM_AND, binary(e, LLVM_SUB, number(e, 32, 31), zeros), number(e, 32, e->lanes - 1)), "");
}

static void store_fast(struct emitter *e, const struct access_plan *a, unsigned k)
{
    llvm_type type = int_type(e, 8 * a->bytes);

    if (a->one) {
        llvm_value store = e->ll->LLVMBuildStore(e->b, last_value(e, a, k), pointer(e, plus(e, a, k), type));
        e->ll->LLVMSetAlignment(store, a->bytes);
        return;
    }
    masked_store(e, plus(e, a, k), a->row, a->bytes, a->stored_scalar[k] ? spread(e, a->stored[k]) : a->stored[k], e->taken);
}

/* The value of the fast way or the slow one. */
static llvm_value either(struct emitter *e, llvm_value fast, llvm_block fast_end, llvm_value slow, llvm_block slow_end)
{
    llvm_value phi = e->ll->LLVMBuildPhi(e->b, e->ll->LLVMTypeOf(fast), ""), values[2] = {fast, slow};
    llvm_block blocks[2] = {fast_end, slow_end};

    e->ll->LLVMAddIncoming(phi, values, blocks, 2);
    return phi;
}

/* Checked before the block began. */
static bool is_assumed(const struct emitter *e, const struct access_plan *a, const struct ptx_operand *p)
{
    if (e->full)
        return e->passed[insn_index(e)];
    if (!e->assuming || (a->one && e->guarded) || (p->reg != PTX_NO_REG && !in_reach(a, p)))
        return false;
    return group_of(e, a, p, true) != NULL;
}

static void access_fast(struct emitter *e, const struct access_plan *a, llvm_value found[])
{
    note_access(e, a);
    for (unsigned k = 0; k < a->count; k++) {
        if (a->load)
            found[k] = load_fast(e, a, k);
        else
            store_fast(e, a, k);
    }
}

static struct value loaded_value(const struct access_plan *a, llvm_value v)
{
    return (struct value){.v = v, .scalar = a->one, .bits = 8 * a->bytes, .shape = {a->one ? SHAPE_UNIFORM : SHAPE_VARYING, 0, 0}};
}

/* The accesses from registers that the block does not write before: whether they all pass; NULL: there are too few. */
llvm_value check_block(struct emitter *e)
{
    const struct code_block *k = &e->plan->code->blocks[e->block];
    unsigned                 accesses = 0;
    llvm_value               ok = NULL;

    for (uint32_t i = k->insn_first; i < k->insn_first + k->insn_count && e->groups_count < GROUPS_MAX; i++) {
        const struct ptx_operand *p = address_operand(&e->plan->function->insns[i]);
        struct access_group       g;
        enum op_space             space = OP_GENERIC;
        bool                      known = false;

        if (!p || p->reg == PTX_NO_REG || !native_space(&e->plan->function->insns[i], p, &space))
            continue;
        for (uint32_t j = k->insn_first; j < i; j++)
            known = known || insn_writes(&e->plan->function->insns[j], p->reg);
        for (unsigned j = 0; j < e->groups_count; j++)
            known = known || (e->groups[j].reg == p->reg && e->groups[j].space == space);
        e->insn = &e->plan->function->insns[k->insn_first];
        if (known)
            continue;
        accesses += survey_group(e, space, p->reg, &g);
        g.assumed = true;
        g.ok = check_range(e, space, register_address(e, p->reg), g.low, g.high, g.align, e->mask);
        ok = ok ? binary(e, LLVM_AND, ok, g.ok) : g.ok;
        e->groups[e->groups_count++] = g;
    }
    if (accesses >= 4)
        return ok;
    e->groups_count = 0;
    return NULL;
}

/* The host addresses go to addresses[], for all lanes. Whether they are good, and only this host thread accesses that memory. */
llvm_value atomic_is_ours(struct emitter *e, const struct ptx_operand *p, unsigned bytes)
{
    struct access_plan a = {.bytes = bytes, .count = 1, .total = bytes};
    llvm_value         ok, at, shared;

    native_space(e->insn, p, &a.space);
    a.address = address_of(e, p);
    ok = check_range(e, a.space, a.address, 0, bytes, bytes, e->taken);
    at = as_vector(e, &a.address);
    if (a.space == OP_SHARED)
        at = binary(e, LLVM_ADD, at, spread(e, e->shared));
    set_member(e, offsetof(struct native_call, addresses), at, false);
    if (a.space == OP_SHARED)
        return ok;
    note_lanes(e, true);
    e->ops[insn_index(e)].step = (int64_t)NATIVE_EACH;
    shared = member(e, offsetof(struct native_call, contended), 64);
    shared = e->ll->LLVMBuildLoad2(e->b, e->i8, pointer(e, shared, e->i8), "");
    e->ll->LLVMSetVolatile(shared, 1);
    return binary(e, LLVM_AND, ok, icmp(e, LLVM_EQ, shared, number(e, 8, 0)));
}

static void access_memory(struct emitter *e, struct access_plan *a, const struct ptx_operand *p)
{
    llvm_block fast, slow, done, fast_end, slow_end, alone;
    llvm_value found[NATIVE_ELEMENTS_MAX] = {NULL}, group;

    place(e, a);
    if (e->in_strip && !(is_assumed(e, a, p) && (a->one || a->row))) {
        e->unfit = true;
        for (unsigned k = 0; a->load && k < a->count; k++)
            a->loaded[k] =
                loaded_value(a, e->ll->LLVMGetUndef(a->one ? int_type(e, 8 * a->bytes) : vector_of(e, int_type(e, 8 * a->bytes))));
        return;
    }
    if (!a->one && !a->row && !a->load && a->bytes < 4) {
        emit_borrowed(e); /* hosts have no vectors for these */
        return;
    }
    if (is_assumed(e, a, p)) {
        access_fast(e, a, found);
        for (unsigned k = 0; a->load && k < a->count; k++)
            a->loaded[k] = loaded_value(a, found[k]);
        return;
    }
    fast = new_block(e, "fast");
    slow = new_block(e, "slow");
    done = new_block(e, "done");
    group = group_passes(e, a, p);
    if (group) {
        alone = new_block(e, "alone");
        e->ll->LLVMBuildCondBr(e->b, likely(e, group), fast, alone);
        go_on_in(e, alone);
    }
    e->ll->LLVMBuildCondBr(e->b, likely(e, passes(e, a)), fast, slow);
    go_on_in(e, fast);
    access_fast(e, a, found);
    fast_end = e->ll->LLVMGetInsertBlock(e->b);
    e->ll->LLVMBuildBr(e->b, done);
    go_on_in(e, slow);
    access_slowly(e, a);
    slow_end = e->ll->LLVMGetInsertBlock(e->b);
    e->ll->LLVMBuildBr(e->b, done);
    go_on_in(e, done);
    for (unsigned k = 0; a->load && k < a->count; k++)
        a->loaded[k] = loaded_value(a, either(e, found[k], fast_end, a->loaded[k].v, slow_end));
}

static struct access_plan start(const struct emitter *e, bool load)
{
    const struct ptx_insn *in = e->insn;
    struct access_plan     a = {.moved = &in->operands[load ? 0 : 1], .load = load, .bytes = ptx_type_bytes((enum ptx_type)in->type)};

    a.count = a.moved->kind == PTX_VECTOR ? a.moved->count : 1;
    a.total = a.bytes * a.count;
    a.is_signed = lane_type_is_signed(lane_type_of((enum ptx_type)in->type)) && !is_float((enum ptx_type)in->type);
    native_space(in, &in->operands[load ? 1 : 0], &a.space);
    return a;
}

static llvm_value kept_param(const struct emitter *e, uint64_t offset, unsigned bytes)
{
    for (unsigned i = 0; i < e->params_count; i++) {
        if (e->param[i].offset == offset && e->param[i].bytes == bytes)
            return e->param[i].v;
    }
    return NULL;
}

/* ld.param of a kernel: plan.c has checked the bounds. */
static void load_param(struct emitter *e, struct access_plan *a, const struct ptx_operand *p)
{
    llvm_type type = int_type(e, 8 * a->bytes);

    for (unsigned k = 0; k < a->count; k++) {
        uint64_t   offset = p->value + (uint64_t)k * a->bytes;
        llvm_value at = binary(e, LLVM_ADD, e->params, number(e, 64, offset)), v = kept_param(e, offset, a->bytes);

        if (!v) {
            v = e->ll->LLVMBuildLoad2(e->b, type, pointer(e, at, type), "");
            e->ll->LLVMSetAlignment(v, 1);
        }
        a->loaded[k] = scalar_value(v, 8 * a->bytes);
    }
}

void load_params(struct emitter *e)
{
    const struct ptx_function *f = e->plan->function;

    for (uint32_t i = 0; i < f->insns_count && e->params_count < PARAMS_KEPT_MAX; i++) {
        const struct ptx_insn *in = &f->insns[i];
        enum op_space          space = OP_GENERIC;
        struct access_plan     a;

        if (in->opcode != PTX_OP_LD || native_way(e->plan->module, f, in) != NATIVE_EMITTED ||
            !native_space(in, &in->operands[1], &space) || space != OP_PARAM_KERNEL || in->operands[0].kind == PTX_VECTOR)
            continue;
        e->insn = in;
        a = start(e, true);
        if (kept_param(e, in->operands[1].value, a.bytes))
            continue;
        load_param(e, &a, &in->operands[1]);
        e->param[e->params_count++] = (struct param_value){in->operands[1].value, a.bytes, a.loaded[0].v};
    }
}

void emit_load(struct emitter *e)
{
    struct access_plan a = start(e, true);

    if (a.space == OP_PARAM_KERNEL) {
        load_param(e, &a, &e->insn->operands[1]);
    } else {
        a.address = address_of(e, &e->insn->operands[1]);
        access_memory(e, &a, &e->insn->operands[1]);
    }
    for (unsigned k = 0; k < a.count; k++) {
        if (element(&a, k)->kind == PTX_REG)
            write_register(e, element(&a, k)->reg, a.loaded[k], a.is_signed);
    }
}

void emit_store(struct emitter *e)
{
    struct access_plan a = start(e, false);

    a.address = address_of(e, &e->insn->operands[0]);
    for (unsigned k = 0; k < a.count; k++) {
        struct value v = resize_value(e, source_value(e, element(&a, k), a.bytes == 1 ? 2 : a.bytes), 8 * a.bytes, false);

        a.stored_scalar[k] = alike(e, &v, 1);
        a.stored[k] = v.v;
    }
    access_memory(e, &a, &e->insn->operands[0]);
}
