/* Translates one PTX instruction into operations: chooses the handlers and the places of operands. */
#include "device/cpu/interp/decode/decode.h"

/* How many bytes source i (from 1) of an arithmetic instruction has. */
static unsigned source_bytes(const struct decoder *d, unsigned i)
{
    const struct ptx_insn *in = d->insn;
    unsigned               bytes = type_bytes(d);

    switch ((int)in->opcode) {
    case PTX_OP_SHL: case PTX_OP_SHR: return i == 2 ? 4 : bytes;
    case PTX_OP_BFE:  return i >= 2 ? 4 : bytes;
    case PTX_OP_BFI:  return i >= 3 ? 4 : bytes;
    case PTX_OP_MAD:  return in->part == PTX_WIDE && i == 3 ? 2 * bytes : bytes;
    case PTX_OP_SLCT: return i == 3 ? 4 : bytes;
    case PTX_OP_DP2A: case PTX_OP_DP4A: return 4;
    default:          return bytes;
    }
}

static unsigned result_bytes(const struct decoder *d)
{
    const struct ptx_insn *in = d->insn;

    switch ((int)in->opcode) {
    case PTX_OP_MUL: case PTX_OP_MAD: return in->part == PTX_WIDE ? 2 * type_bytes(d) : type_bytes(d);
    case PTX_OP_POPC: case PTX_OP_CLZ: case PTX_OP_BFIND: return 4;
    case PTX_OP_TESTP: return 1;
    case PTX_OP_DP2A: case PTX_OP_DP4A: return 4;
    default: return type_bytes(d);
    }
}

uint32_t decode_predicate(struct decoder *d, const struct ptx_operand *p)
{
    uint32_t   place = decode_source(d, p, 1), at;
    struct op *o;

    if (!p->negated)
        return place;
    at = decode_temporary(d, 1);
    o = decode_op(d, negate_pred);
    o->a = place;
    o->d = at;
    return at;
}

static uint32_t source_place(struct decoder *d, unsigned i, unsigned bytes)
{
    return bytes == 1 ? decode_predicate(d, operand(d, i)) : decode_source(d, operand(d, i), bytes);
}

static op_fn arithmetic_handler(struct decoder *d, uint8_t *mode)
{
    const struct ptx_insn *in = d->insn;
    op_fn                  run = bits_handler(in, mode);

    if (run)
        return run;
    if (is_float((enum ptx_type)in->type))
        return float_handler(in, mode);
    *mode = in->shiftamt != PTX_NO_MODIFIER;
    return int_handler(in);
}

static bool translate_arithmetic(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    uint8_t                mode = 0;
    op_fn                  run = arithmetic_handler(d, &mode);
    unsigned               bytes = result_bytes(d);
    uint32_t               place[5] = {0}, to;
    bool                   saturate = in->sat && (in->type == PTX_F32 || in->type == PTX_F64);
    struct op             *o;

    if (!run || in->operands_count < 2 || operand(d, 0)->kind == PTX_VECTOR || (in->type == PTX_PRED && in->opcode == PTX_OP_MOV))
        return false;
    for (unsigned i = 1; i < in->operands_count && i < 5; i++)
        place[i] = source_place(d, i, source_bytes(d, i));
    to = decode_destination(d, operand(d, 0), bytes);
    o = decode_op(d, run);
    o->a = place[1];
    o->b = place[2];
    o->c = place[3];
    o->e = place[4];
    o->d = to;
    o->mode = mode;
    if (saturate) {
        o = decode_op(d, saturate_handler((enum ptx_type)in->type));
        o->a = o->d = to;
    }
    decode_widen(d, operand(d, 0), to, bytes, false);
    return in->opcode != PTX_OP_LOP3 || translate_logic_predicate(d, to);
}

static bool move_vector(struct decoder *d, bool pack)
{
    const struct ptx_operand *v = operand(d, pack ? 1 : 0), *s = operand(d, pack ? 0 : 1);
    unsigned                  bytes = type_bytes(d);
    struct vector_places     *places;
    uint32_t                  scalar;
    struct op                *o;

    if (!v->count || bytes % v->count || bytes > 8 || (s->kind != PTX_REG && pack))
        return false;
    places = decode_vector(d, v, bytes / v->count, false);
    scalar = pack ? decode_destination(d, s, bytes) : decode_source(d, s, bytes);
    o = decode_op(d, pack ? pack_vector : unpack_vector);
    o->extra = places;
    o->width = (uint8_t)bytes;
    o->a = o->d = scalar;
    if (pack)
        decode_widen(d, s, scalar, bytes, false);
    return true;
}

static bool translate_move(struct decoder *d)
{
    unsigned   bytes = type_bytes(d);
    uint32_t   from, to;
    op_fn      run = move_handler(bytes);
    struct op *o;

    if (operand(d, 0)->kind == PTX_VECTOR || operand(d, 1)->kind == PTX_VECTOR)
        return operand(d, 0)->kind != operand(d, 1)->kind && move_vector(d, operand(d, 1)->kind == PTX_VECTOR);
    if (!run)
        return false;
    from = source_place(d, 1, bytes);
    to = decode_destination(d, operand(d, 0), bytes);
    o = decode_op(d, run);
    o->a = from;
    o->d = to;
    decode_widen(d, operand(d, 0), to, bytes, lane_type_is_signed(type_of(d)));
    return true;
}

/* The moved register may be wider than the type in memory: loads extend it, stores truncate it. */
static unsigned moved_bytes(const struct decoder *d, const struct ptx_operand *p)
{
    unsigned has = p->kind == PTX_REG ? decode_register_bytes(d, p->reg) : type_bytes(d);

    return has < type_bytes(d) ? type_bytes(d) : has;
}

static void set_address(struct op *o, const struct decoded_address *at)
{
    o->a = at->place;
    o->immediate = at->immediate;
    o->mode = (uint8_t)at->space;
    o->addresses = true;
}

/* The address is named in the text; in a register each lane may have another one. */
static bool load_uniform(struct decoder *d, const struct decoded_address *at)
{
    unsigned   bytes = type_bytes(d);
    struct op *o;

    if (at->space != OP_PARAM_KERNEL || operand(d, 1)->reg != PTX_NO_REG || moved_bytes(d, operand(d, 0)) != bytes || (bytes != 4 && bytes != 8)
        || operand(d, 0)->kind != PTX_REG)
        return false;
    o = decode_op(d, bytes == 4 ? load_kernel_param_32 : load_kernel_param_64);
    o->immediate = at->immediate;
    o->d = d->places[operand(d, 0)->reg];
    return true;
}

static bool load_value(struct decoder *d)
{
    const struct ptx_operand *to = operand(d, 0);
    bool                      is_signed = lane_type_is_signed(type_of(d)) && !is_float((enum ptx_type)d->insn->type);
    struct decoded_address    at;
    unsigned                  bytes = moved_bytes(d, to);
    op_fn                     run = memory_handler(false, type_bytes(d), bytes, is_signed);
    struct op                *o;

    if (operand(d, 1)->kind != PTX_ADDRESS || type_bytes(d) > 8)
        return false;
    at = decode_address(d, operand(d, 1), (enum ptx_space)d->insn->space);
    if (to->kind == PTX_VECTOR) {
        struct vector_places *v = decode_vector(d, to, type_bytes(d), is_signed);
        decode_check(d, &at, type_bytes(d) * v->count, CHECK_READ);
        o = decode_op(d, load_vector);
        o->extra = v;
        set_address(o, &at);
        return true;
    }
    if (load_uniform(d, &at))
        return true;
    if (!run)
        return false;
    decode_check(d, &at, type_bytes(d), CHECK_READ);
    o = decode_op(d, run);
    o->d = to->kind == PTX_REG ? d->places[to->reg] : decode_temporary(d, bytes);
    set_address(o, &at);
    return true;
}

static bool translate_load(struct decoder *d)
{
    bool ok = load_value(d);

    if (ok && d->insn->order == PTX_ACQUIRE)
        decode_op(d, fence_acquire);
    return ok;
}

static bool translate_store(struct decoder *d)
{
    const struct ptx_operand *from = operand(d, 1);
    struct decoded_address    at;
    unsigned                  bytes = moved_bytes(d, from);
    op_fn                     run = memory_handler(true, type_bytes(d), bytes, false);
    uint32_t                  place;
    struct op                *o;

    if (operand(d, 0)->kind != PTX_ADDRESS || type_bytes(d) > 8)
        return false;
    at = decode_address(d, operand(d, 0), (enum ptx_space)d->insn->space);
    if (at.space == OP_PARAM_KERNEL)
        return false;
    if (d->insn->order == PTX_RELEASE)
        decode_op(d, fence_release);
    if (from->kind == PTX_VECTOR) {
        struct vector_places *v = decode_vector(d, from, type_bytes(d), false);
        decode_check(d, &at, type_bytes(d) * v->count, CHECK_WRITE);
        o = decode_op(d, store_vector);
        o->extra = v;
        set_address(o, &at);
        return true;
    }
    if (!run)
        return false;
    place = decode_source(d, from, bytes);
    decode_check(d, &at, type_bytes(d), CHECK_WRITE);
    o = decode_op(d, run);
    o->d = place;
    set_address(o, &at);
    return true;
}

static bool atom_operation(const struct ptx_insn *in, enum atom_op *op)
{
    switch ((int)in->action) {
    case PTX_DO_ADD:  *op = ATOM_ADD; return true;
    case PTX_DO_INC:  *op = ATOM_INC; return true;
    case PTX_DO_DEC:  *op = ATOM_DEC; return true;
    case PTX_DO_MIN:  *op = ATOM_MIN; return true;
    case PTX_DO_MAX:  *op = ATOM_MAX; return true;
    case PTX_DO_AND:  *op = ATOM_AND; return true;
    case PTX_DO_OR:   *op = ATOM_OR; return true;
    case PTX_DO_XOR:  *op = ATOM_XOR; return true;
    case PTX_DO_EXCH: *op = ATOM_EXCH; return true;
    case PTX_DO_CAS:  *op = ATOM_CAS; return true;
    default:          return false;
    }
}

static bool atom_type(enum ptx_type t, enum atom_type *out)
{
    switch ((int)t) {
    case PTX_B16: case PTX_U16: *out = ATOM_B16; return true;
    case PTX_B32: case PTX_U32: *out = ATOM_B32; return true;
    case PTX_S32:   *out = ATOM_S32; return true;
    case PTX_B64: case PTX_U64: *out = ATOM_B64; return true;
    case PTX_S64:   *out = ATOM_S64; return true;
    case PTX_F16:   *out = ATOM_F16; return true;
    case PTX_F16X2: *out = ATOM_F16X2; return true;
    case PTX_BF16:  *out = ATOM_BF16; return true;
    case PTX_BF16X2: *out = ATOM_BF16X2; return true;
    case PTX_F32:   *out = ATOM_F32; return true;
    case PTX_F64:   *out = ATOM_F64; return true;
    default:        return false;
    }
}

/* Element by element, as PTX defines it. The results wait in temporaries until all sources are read. */
static bool atomic_vector(struct decoder *d, enum atom_op op, enum atom_type type)
{
    unsigned                  first = d->insn->opcode == PTX_OP_ATOM, bytes = type_bytes(d);
    const struct ptx_operand *from = operand(d, first + 1);
    struct vector_places     *to = first ? decode_vector(d, operand(d, 0), bytes, false) : NULL, *in;
    struct decoded_address    at = decode_address(d, operand(d, first), (enum ptx_space)d->insn->space);
    op_fn                     run = atom_handler(op, type);
    uint32_t                  result[VECTOR_ELEMENTS_MAX];
    struct op                *o;

    if (!run || from->kind != PTX_VECTOR || (to && to->count != from->count) || bytes * from->count > 32 || op != ATOM_ADD)
        return false;
    in = decode_vector(d, from, bytes, false);
    for (unsigned k = 0; k < in->count; k++) {
        if (in->reg_bytes[k] != bytes || (to && to->reg_bytes[k] && to->reg_bytes[k] != bytes))
            return false;
        result[k] = decode_temporary(d, bytes);
    }
    o = decode_op(d, check_alignment);
    set_address(o, &at);
    o->width = (uint8_t)(bytes * in->count);
    decode_check(d, &at, bytes * in->count, CHECK_UPDATE);
    for (unsigned k = 0; k < in->count; k++) {
        o = decode_op(d, run);
        set_address(o, &at);
        o->immediate += k * bytes;
        o->b = in->place[k];
        o->d = result[k];
    }
    for (unsigned k = 0; to && k < to->count; k++) {
        if (!to->reg_bytes[k])
            continue;
        o = decode_op(d, move_handler(bytes));
        o->a = result[k];
        o->d = to->place[k];
    }
    return true;
}

/* Exchanges move bits, and 64-bit sums have no sign. */
static bool atom_fits(enum atom_op op, enum ptx_type t)
{
    if (op == ATOM_EXCH || op == ATOM_CAS)
        return t == PTX_B16 || t == PTX_B32 || t == PTX_B64;
    return op != ATOM_ADD || t != PTX_S64;
}

static bool translate_atomic(struct decoder *d)
{
    unsigned               first = d->insn->opcode == PTX_OP_ATOM, bytes = type_bytes(d);
    struct decoded_address at;
    enum atom_op           op;
    enum atom_type         type;
    uint32_t               b, c, to;
    op_fn                  run;
    struct op             *o;

    if (!atom_operation(d->insn, &op) || !atom_type((enum ptx_type)d->insn->type, &type) || operand(d, first)->kind != PTX_ADDRESS
        || !atom_fits(op, (enum ptx_type)d->insn->type))
        return false;
    if (d->insn->vector > 1)
        return atomic_vector(d, op, type);
    run = atom_handler(op, type);
    if (!run)
        return false;
    at = decode_address(d, operand(d, first), (enum ptx_space)d->insn->space);
    b = decode_source(d, operand(d, first + 1), bytes);
    c = decode_source(d, operand(d, first + 2), bytes);
    to = first ? decode_destination(d, operand(d, 0), bytes) : decode_temporary(d, bytes);
    decode_check(d, &at, bytes, op == ATOM_EXCH ? CHECK_WRITE : CHECK_UPDATE);
    o = decode_op(d, run);
    set_address(o, &at);
    o->b = b;
    o->c = c;
    o->d = to;
    if (first)
        decode_widen(d, operand(d, 0), to, bytes, false);
    return true;
}

static int64_t window_of(enum ptx_space s)
{
    switch (s) {
    case PTX_SHARED: return (int64_t)SHARED_WINDOW;
    case PTX_LOCAL:  return (int64_t)LOCAL_WINDOW;
    case PTX_PARAM: case PTX_KERNEL_PARAM: return (int64_t)PARAM_WINDOW;
    case PTX_GENERIC: case PTX_GLOBAL: case PTX_CONST: return 0;
    }
    return 0;
}

static bool convert_address(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    int64_t                window = window_of((enum ptx_space)in->space);
    uint32_t               a = decode_source(d, operand(d, 1), 8), to = decode_destination(d, operand(d, 0), 8);
    struct op             *o = decode_op(d, offset_address);

    o->a = a;
    o->d = to;
    o->immediate = in->to ? -window : window;
    decode_widen(d, operand(d, 0), to, 8, false);
    return true;
}

static bool is_in_space(struct decoder *d)
{
    uint32_t   a = decode_source(d, operand(d, 1), 8), to = decode_destination(d, operand(d, 0), 1);
    struct op *o = decode_op(d, in_window);

    o->a = a;
    o->d = to;
    o->mode = d->insn->space;
    return true;
}

static bool select_value(struct decoder *d)
{
    unsigned   bytes = type_bytes(d);
    uint32_t   a, b, c, to;
    struct op *o;

    if (!select_handler(bytes))
        return false;
    a = source_place(d, 1, bytes);
    b = source_place(d, 2, bytes);
    c = decode_predicate(d, operand(d, 3));
    to = decode_destination(d, operand(d, 0), bytes);
    o = decode_op(d, select_handler(bytes));
    o->a = a;
    o->b = b;
    o->c = c;
    o->d = to;
    decode_widen(d, operand(d, 0), to, bytes, false);
    return true;
}

static bool translate_simple(struct decoder *d, op_fn run, bool has_result)
{
    uint32_t to = has_result ? decode_destination(d, operand(d, 0), 4) : 0;

    decode_op(d, run)->d = to;
    return true;
}

static bool move_constant(struct decoder *d, uint64_t value, unsigned bytes)
{
    uint32_t   from = decode_constant(d, value, bytes), to = decode_destination(d, operand(d, 0), bytes);
    struct op *o = decode_op(d, move_handler(bytes));

    o->a = from;
    o->d = to;
    return true;
}

static bool map_address(struct decoder *d)
{
    unsigned   bytes = type_bytes(d);
    uint32_t   a = decode_source(d, operand(d, 1), 8), rank = decode_source(d, operand(d, 2), 4), to = decode_temporary(d, 8);
    struct op *o = decode_op(d, address_in_cluster);

    o->a = a;
    o->b = rank;
    o->d = to;
    o = decode_op(d, resize_handler(8, bytes, false));
    o->a = to;
    o->d = d->places[operand(d, 0)->reg];
    return true;
}

/* A vote of the warp, or a cluster's arrival, which does nothing. */
static bool translate_barrier(struct decoder *d)
{
    return d->insn->warp ? translate_warp_sync(d) : d->insn->scope == PTX_SCOPE_CLUSTER;
}

bool translate(struct decoder *d)
{
    switch ((int)d->insn->opcode) {
    case PTX_OP_MOV:       return translate_move(d);
    case PTX_OP_LD:
    case PTX_OP_LDU:       return translate_load(d);
    case PTX_OP_ST:        return translate_store(d);
    case PTX_OP_ATOM:
    case PTX_OP_RED:       return translate_atomic(d);
    case PTX_OP_CVT:       return translate_convert(d);
    case PTX_OP_CVTA:      return convert_address(d);
    case PTX_OP_ISSPACEP:  return is_in_space(d);
    case PTX_OP_SETP:      return translate_setp(d);
    case PTX_OP_SET:       return translate_set(d);
    case PTX_OP_SELP:      return select_value(d);
    case PTX_OP_SHFL:      return translate_shuffle(d);
    case PTX_OP_VOTE:      return translate_vote(d);
    case PTX_OP_MATCH:     return translate_match(d);
    case PTX_OP_REDUX:     return translate_redux(d);
    case PTX_OP_ELECT:     return translate_elect(d);
    case PTX_OP_ACTIVEMASK: return translate_simple(d, warp_activemask, true);
    case PTX_OP_BAR:
    case PTX_OP_BARRIER:   return translate_barrier(d);
    case PTX_OP_ALLOCA:    return translate_alloca(d);
    case PTX_OP_STACKSAVE: return translate_stacksave(d);
    case PTX_OP_STACKRESTORE: return translate_stackrestore(d);
    case PTX_OP_MBARRIER:  return translate_mbarrier(d);
    case PTX_OP_MAPA:      return operand(d, 0)->kind == PTX_REG && map_address(d);
    case PTX_OP_GETCTARANK: return operand(d, 0)->kind == PTX_REG && move_constant(d, 0, 4);
    case PTX_OP_MEMBAR:
    case PTX_OP_FENCE:     return translate_simple(d, fence_all, false);
    case PTX_OP_NANOSLEEP: return translate_simple(d, nap, false);
    case PTX_OP_TRAP:
    case PTX_OP_BRKPT:     return translate_simple(d, trap, false);
    case PTX_OP_MMA:       return translate_mma(d);
    case PTX_OP_WMMA:      return translate_wmma(d);
    case PTX_OP_STMATRIX:  return translate_stmatrix(d);
    case PTX_OP_MOVMATRIX: return translate_movmatrix(d);
    case PTX_OP_VABSDIFF2:
    case PTX_OP_VABSDIFF4: return translate_absolute_differences(d);
    case PTX_OP_CREATEPOLICY: return move_constant(d, 0, 8);
    case PTX_OP_LDMATRIX:  return translate_ldmatrix(d);
    case PTX_OP_CP:        return translate_cp(d);
    case PTX_OP_CALL:      return translate_call(d);
    case PTX_OP_PREFETCH: case PTX_OP_PREFETCHU: case PTX_OP_PMEVENT: case PTX_OP_GRIDDEPCONTROL:
    case PTX_OP_DISCARD: case PTX_OP_APPLYPRIORITY: return true;
    default:               return translate_arithmetic(d);
    }
}
