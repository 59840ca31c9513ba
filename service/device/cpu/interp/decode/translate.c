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
    uint32_t place = decode_source(d, p, 1);

    return p->negated ? decode_value(d, (struct op){.run = negate_pred, .a = place}, 1) : place;
}

static uint32_t source_place(struct decoder *d, unsigned i, unsigned bytes)
{
    return bytes == 1 ? decode_predicate(d, operand(d, i)) : decode_source(d, operand(d, i), bytes);
}

static op_fn arithmetic_handler(const struct ptx_insn *in, uint8_t *mode)
{
    op_fn run = bits_handler(in, mode);

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
    struct op              o = {0};
    uint32_t              *places[] = {&o.a, &o.b, &o.c, &o.e};
    unsigned               bytes = result_bytes(d);

    o.run = arithmetic_handler(in, &o.mode);
    if (!o.run || in->operands_count < 2 || operand(d, 0)->kind == PTX_VECTOR || (in->type == PTX_PRED && in->opcode == PTX_OP_MOV))
        return false;
    for (unsigned i = 1; i < in->operands_count && i <= COUNT(places); i++)
        *places[i - 1] = source_place(d, i, source_bytes(d, i));
    o.d = decode_destination(d, operand(d, 0), bytes);
    decode_op(d, o);
    if (in->sat && (in->type == PTX_F32 || in->type == PTX_F64))
        decode_op(d, (struct op){.run = saturate_handler((enum ptx_type)in->type), .a = o.d, .d = o.d});
    decode_widen(d, operand(d, 0), o.d, bytes, false);
    return in->opcode != PTX_OP_LOP3 || translate_logic_predicate(d, o.d);
}

static bool move_vector(struct decoder *d, bool pack)
{
    const struct ptx_operand *v = operand(d, pack ? 1 : 0), *s = operand(d, pack ? 0 : 1);
    unsigned                  bytes = type_bytes(d);
    struct op                 o = {.run = pack ? pack_vector : unpack_vector, .width = (uint8_t)bytes};

    if (!v->count || bytes % v->count || bytes > 8 || (s->kind != PTX_REG && pack))
        return false;
    o.extra = decode_vector(d, v, bytes / v->count, false);
    if (pack)
        return decode_result(d, o, bytes, false);
    o.a = decode_source(d, s, bytes);
    decode_op(d, o);
    return true;
}

static bool translate_move(struct decoder *d)
{
    unsigned bytes = type_bytes(d);

    if (operand(d, 0)->kind == PTX_VECTOR || operand(d, 1)->kind == PTX_VECTOR)
        return operand(d, 0)->kind != operand(d, 1)->kind && move_vector(d, operand(d, 1)->kind == PTX_VECTOR);
    return move_handler(bytes) && decode_result(d, (struct op){.run = move_handler(bytes), .a = source_place(d, 1, bytes)}, bytes,
                                                lane_type_is_signed(type_of(d)));
}

/* The moved register may be wider than the type in memory: loads extend it, stores truncate it. */
static unsigned moved_bytes(const struct decoder *d, const struct ptx_operand *p)
{
    unsigned has = p->kind == PTX_REG ? decode_register_bytes(d, p->reg) : type_bytes(d);

    return has < type_bytes(d) ? type_bytes(d) : has;
}

/* The address is named in the text; in a register each lane may have another one. */
static bool load_uniform(struct decoder *d, const struct decoded_address *at)
{
    unsigned bytes = type_bytes(d);

    if (at->space != OP_PARAM_KERNEL || operand(d, 1)->reg != PTX_NO_REG || moved_bytes(d, operand(d, 0)) != bytes || (bytes != 4 && bytes != 8)
        || operand(d, 0)->kind != PTX_REG)
        return false;
    return decode_result(d, (struct op){.run = bytes == 4 ? load_kernel_param_32 : load_kernel_param_64, .immediate = at->immediate}, bytes,
                         false);
}

static bool load_value(struct decoder *d)
{
    const struct ptx_operand *to = operand(d, 0);
    bool                      is_signed = lane_type_is_signed(type_of(d)) && !is_float((enum ptx_type)d->insn->type);
    struct decoded_address    at;
    unsigned                  bytes = moved_bytes(d, to);
    struct op                 o;

    if (operand(d, 1)->kind != PTX_ADDRESS || type_bytes(d) > 8)
        return false;
    at = decode_address(d, operand(d, 1), (enum ptx_space)d->insn->space);
    if (load_uniform(d, &at))
        return true;
    if (to->kind == PTX_VECTOR) {
        o = access_op(load_vector, &at);
        o.extra = decode_vector(d, to, type_bytes(d), is_signed);
    } else {
        o = access_op(memory_handler(false, type_bytes(d), bytes, is_signed), &at);
        o.d = decode_destination(d, to, bytes);
    }
    if (!o.run)
        return false;
    decode_check(d, &at, type_bytes(d) * (to->kind == PTX_VECTOR ? to->count : 1), CHECK_READ);
    decode_op(d, o);
    return true;
}

static bool translate_load(struct decoder *d)
{
    bool ok = load_value(d);

    if (ok && d->insn->order == PTX_ACQUIRE)
        decode_op(d, (struct op){.run = fence_acquire});
    return ok;
}

static bool translate_store(struct decoder *d)
{
    const struct ptx_operand *from = operand(d, 1);
    struct decoded_address    at;
    unsigned                  bytes = moved_bytes(d, from);
    struct op                 o;

    if (operand(d, 0)->kind != PTX_ADDRESS || type_bytes(d) > 8)
        return false;
    at = decode_address(d, operand(d, 0), (enum ptx_space)d->insn->space);
    if (from->kind == PTX_VECTOR) {
        o = access_op(store_vector, &at);
        o.extra = decode_vector(d, from, type_bytes(d), false);
    } else {
        o = access_op(memory_handler(true, type_bytes(d), bytes, false), &at);
        o.d = decode_source(d, from, bytes);
    }
    if (at.space == OP_PARAM_KERNEL || !o.run)
        return false;
    if (d->insn->order == PTX_RELEASE)
        decode_op(d, (struct op){.run = fence_release});
    decode_check(d, &at, type_bytes(d) * (from->kind == PTX_VECTOR ? from->count : 1), CHECK_WRITE);
    decode_op(d, o);
    return true;
}

static bool atom_operation(const struct ptx_insn *in, enum atom_op *op)
{
    static const unsigned char by_action[] = {
        [PTX_DO_ADD] = 1 + ATOM_ADD, [PTX_DO_INC] = 1 + ATOM_INC, [PTX_DO_DEC] = 1 + ATOM_DEC, [PTX_DO_MIN] = 1 + ATOM_MIN,
        [PTX_DO_MAX] = 1 + ATOM_MAX, [PTX_DO_AND] = 1 + ATOM_AND, [PTX_DO_OR] = 1 + ATOM_OR,   [PTX_DO_XOR] = 1 + ATOM_XOR,
        [PTX_DO_EXCH] = 1 + ATOM_EXCH, [PTX_DO_CAS] = 1 + ATOM_CAS,
    };

    if (in->action >= COUNT(by_action) || !by_action[in->action])
        return false;
    *op = (enum atom_op)(by_action[in->action] - 1);
    return true;
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
    uint32_t                  result[VECTOR_ELEMENTS_MAX];
    struct op                 o = access_op(check_alignment, &at);

    if (!atom_handler(op, type) || from->kind != PTX_VECTOR || (to && to->count != from->count) || bytes * from->count > 32 || op != ATOM_ADD)
        return false;
    in = decode_vector(d, from, bytes, false);
    for (unsigned k = 0; k < in->count; k++) {
        if (in->reg_bytes[k] != bytes || (to && to->reg_bytes[k] && to->reg_bytes[k] != bytes))
            return false;
    }
    o.width = (uint8_t)(bytes * in->count);
    decode_op(d, o);
    decode_check(d, &at, bytes * in->count, CHECK_UPDATE);
    for (unsigned k = 0; k < in->count; k++) {
        o = access_op(atom_handler(op, type), &at);
        o.immediate += k * bytes;
        o.b = in->place[k];
        result[k] = decode_value(d, o, bytes);
    }
    for (unsigned k = 0; to && k < to->count; k++) {
        if (to->reg_bytes[k])
            decode_op(d, (struct op){.run = move_handler(bytes), .a = result[k], .d = to->place[k]});
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
    struct op              o;

    if (!atom_operation(d->insn, &op) || !atom_type((enum ptx_type)d->insn->type, &type) || operand(d, first)->kind != PTX_ADDRESS
        || !atom_fits(op, (enum ptx_type)d->insn->type))
        return false;
    if (d->insn->vector > 1)
        return atomic_vector(d, op, type);
    if (!atom_handler(op, type))
        return false;
    at = decode_address(d, operand(d, first), (enum ptx_space)d->insn->space);
    o = access_op(atom_handler(op, type), &at);
    o.b = decode_source(d, operand(d, first + 1), bytes);
    o.c = decode_source(d, operand(d, first + 2), bytes);
    decode_check(d, &at, bytes, op == ATOM_EXCH ? CHECK_WRITE : CHECK_UPDATE);
    if (first)
        return decode_result(d, o, bytes, false);
    decode_value(d, o, bytes);
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
    int64_t window = window_of((enum ptx_space)d->insn->space);

    return decode_result(
        d, (struct op){.run = offset_address, .a = decode_source(d, operand(d, 1), 8), .immediate = d->insn->to ? -window : window}, 8, false);
}

static bool is_in_space(struct decoder *d)
{
    return decode_result(d, (struct op){.run = in_window, .a = decode_source(d, operand(d, 1), 8), .mode = d->insn->space, .width = d->insn->cluster}, 1, false);
}

static bool select_value(struct decoder *d)
{
    unsigned  bytes = type_bytes(d);
    struct op o = {.run = select_handler(bytes)};

    if (!o.run)
        return false;
    o.a = source_place(d, 1, bytes);
    o.b = source_place(d, 2, bytes);
    o.c = decode_predicate(d, operand(d, 3));
    return decode_result(d, o, bytes, false);
}

static bool translate_simple(struct decoder *d, op_fn run)
{
    decode_op(d, (struct op){.run = run});
    return true;
}

static bool move_constant(struct decoder *d, uint64_t value, unsigned bytes)
{
    return decode_result(d, (struct op){.run = move_handler(bytes), .a = decode_constant(d, value, bytes)}, bytes, false);
}

static bool map_address(struct decoder *d)
{
    struct op o = {.run = address_in_cluster,
                   .mode = d->insn->space == PTX_SHARED ? OP_SHARED : OP_GENERIC,
                   .a = decode_source(d, operand(d, 1), 8),
                   .b = decode_source(d, operand(d, 2), 4)};

    return decode_result(d, (struct op){.run = resize_handler(8, type_bytes(d), false), .a = decode_value(d, o, 8)}, type_bytes(d), false);
}

static bool find_rank(struct decoder *d)
{
    return decode_result(d,
                         (struct op){.run = rank_in_cluster,
                                     .mode = d->insn->space == PTX_SHARED ? OP_SHARED : OP_GENERIC,
                                     .a = decode_source(d, operand(d, 1), 8)},
                         4, false);
}

/* A vote of the warp, or an arrival at the cluster's barrier. */
static bool translate_barrier(struct decoder *d)
{
    if (d->insn->warp)
        return translate_warp_sync(d);
    return d->insn->scope == PTX_SCOPE_CLUSTER && translate_simple(d, cluster_arrive);
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
    case PTX_OP_ACTIVEMASK: return decode_result(d, (struct op){.run = warp_activemask}, 4, false);
    case PTX_OP_BAR:
    case PTX_OP_BARRIER:   return translate_barrier(d);
    case PTX_OP_ALLOCA:    return translate_alloca(d);
    case PTX_OP_STACKSAVE: return translate_stacksave(d);
    case PTX_OP_STACKRESTORE: return translate_stackrestore(d);
    case PTX_OP_MBARRIER:  return translate_mbarrier(d);
    case PTX_OP_MAPA:      return operand(d, 0)->kind == PTX_REG && map_address(d);
    case PTX_OP_GETCTARANK: return operand(d, 0)->kind == PTX_REG && find_rank(d);
    case PTX_OP_MEMBAR:
    case PTX_OP_FENCE:     return translate_simple(d, fence_all);
    case PTX_OP_NANOSLEEP: return translate_simple(d, nap);
    case PTX_OP_TRAP:
    case PTX_OP_BRKPT:     return translate_simple(d, trap);
    case PTX_OP_MMA:       return translate_mma(d);
    case PTX_OP_WMMA:      return translate_wmma(d);
    case PTX_OP_STMATRIX:  return translate_stmatrix(d);
    case PTX_OP_MOVMATRIX: return translate_movmatrix(d);
    case PTX_OP_VABSDIFF: case PTX_OP_VABSDIFF2: case PTX_OP_VABSDIFF4: case PTX_OP_VADD: case PTX_OP_VADD2: case PTX_OP_VADD4:
    case PTX_OP_VAVRG2: case PTX_OP_VAVRG4: case PTX_OP_VMAD: case PTX_OP_VMAX: case PTX_OP_VMAX2: case PTX_OP_VMAX4: case PTX_OP_VMIN:
    case PTX_OP_VMIN2: case PTX_OP_VMIN4: case PTX_OP_VSET: case PTX_OP_VSET2: case PTX_OP_VSET4: case PTX_OP_VSHL: case PTX_OP_VSHR:
    case PTX_OP_VSUB: case PTX_OP_VSUB2: case PTX_OP_VSUB4: return translate_video(d);
    case PTX_OP_TEX:
    case PTX_OP_TLD4:      return translate_texture(d);
    case PTX_OP_SULD:
    case PTX_OP_SUST:      return translate_surface(d);
    case PTX_OP_TXQ:
    case PTX_OP_SUQ:       return translate_texture_query(d);
    case PTX_OP_CREATEPOLICY: return move_constant(d, 0, 8);
    case PTX_OP_LDMATRIX:  return translate_ldmatrix(d);
    case PTX_OP_CP:        return translate_cp(d);
    case PTX_OP_CALL:      return translate_call(d);
    case PTX_OP_PREFETCH: case PTX_OP_PREFETCHU: case PTX_OP_PMEVENT: case PTX_OP_GRIDDEPCONTROL:
    case PTX_OP_DISCARD: case PTX_OP_APPLYPRIORITY: return true;
    default:               return translate_arithmetic(d);
    }
}
