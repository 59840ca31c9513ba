/* Makes code from a parsed function: basic blocks, places of registers and constants, one or more operations per instruction. */
#include "device/cpu/interp/decode/decode.h"
#include "device/cpu/interp/affine.h"
#include "device/cpu/interp/variants.h"
#include "device/cpu/jit/subset.h"
#include "device/cpu/ptx/names.h"

#include <stdlib.h>

enum { CODE_ARENA_BYTES = 64 * 1024 * 1024, PLACES_MAX = 1 << 20 };

uint32_t decode_temporary(struct decoder *d, unsigned bytes)
{
    uint32_t at = d->code->frame_bytes;

    if (at > PLACES_MAX) {
        d->no_memory = true;
        return 0;
    }
    d->code->frame_bytes += bytes;
    return at;
}

void decode_op(struct decoder *d, struct op o)
{
    struct code *c = d->code;
    struct op  **ops = d->hoisting ? &c->prologue : &c->ops;
    uint32_t    *count = d->hoisting ? &c->prologue_count : &c->ops_count, *room = d->hoisting ? &d->prologue_room : &d->ops_room;

    o.insn = d->insn;
    o.guard = d->insn->guard == PTX_NO_REG ? OP_NONE : (int32_t)d->places[d->insn->guard];
    o.guard_not = d->insn->guard_not;
    if (ptx_grow((void **)ops, room, *count, sizeof o, UINT32_MAX))
        (*ops)[(*count)++] = o;
    else
        d->no_memory = true;
}

uint32_t decode_value(struct decoder *d, struct op o, unsigned bytes)
{
    o.d = decode_temporary(d, bytes);
    decode_op(d, o);
    return o.d;
}

bool decode_result(struct decoder *d, struct op o, unsigned bytes, bool is_signed)
{
    o.d = decode_destination(d, operand(d, 0), bytes);
    decode_op(d, o);
    decode_widen(d, operand(d, 0), o.d, bytes, is_signed);
    return true;
}

uint32_t decode_constant(struct decoder *d, uint64_t value, unsigned bytes)
{
    struct code *c = d->code;
    uint64_t     kept = bytes == 8 ? value : value & ((1ull << (8 * bytes)) - 1);
    uint32_t     place;

    if (constant_index_find(&d->constants, kept, bytes, &place))
        return place;
    place = decode_temporary(d, bytes);
    if (ptx_grow((void **)&c->constants, &d->constants_room, c->constants_count, sizeof *c->constants, UINT32_MAX) &&
        constant_index_add(&d->constants, kept, bytes, place))
        c->constants[c->constants_count++] = (struct code_constant){place, bytes, kept, NO_AFFINE};
    else
        d->no_memory = true;
    return place;
}

static uint32_t special_place(struct decoder *d, unsigned which, unsigned bytes)
{
    struct code *c = d->code;
    uint32_t     place, wide = bytes == 8 ? 8 : 4;

    /* Only cooperative groups of a whole grid read these. */
    if ((which == PTX_SPECIAL_ENVREG1 || which == PTX_SPECIAL_ENVREG2) && !c->grid_line)
        c->grid_line = d->insn->line ? d->insn->line : GRID_LINE_OF_CALL;

    if (ptx_special_kinds[which] == PTX_OF_CLOCK)
        return decode_value(d, (struct op){.run = read_clock, .mode = (uint8_t)which, .width = (uint8_t)wide}, wide);
    for (uint32_t i = 0; i < c->specials_count; i++) {
        if (c->specials[i].which == (int)which && c->specials[i].width == wide)
            return c->specials[i].place;
    }
    place = decode_temporary(d, wide);
    if (ptx_grow((void **)&c->specials, &d->specials_room, c->specials_count, sizeof *c->specials, UINT32_MAX))
        c->specials[c->specials_count++] = (struct code_special){.place = place, .width = wide, .which = (int)which, .affine = NO_AFFINE, .wanted = true};
    else
        d->no_memory = true;
    return place;
}

static uint32_t resize_place(struct decoder *d, uint32_t place, unsigned from, unsigned to)
{
    op_fn run = resize_handler(from, to, false);

    return decode_value(d, (struct op){.run = run ? run : move_handler(1), .a = place}, to);
}

/* A symbol's address in its own space. */
static uint32_t symbol_address(struct decoder *d, const struct ptx_operand *p)
{
    uint64_t base = p->index != PTX_NO_INDEX && p->index < d->module->symbols_count ? d->module->symbols[p->index].address : 0;

    if (p->space == PTX_LOCAL)
        return decode_value(d, (struct op){.run = local_address, .immediate = (int64_t)p->value}, 8);
    return decode_constant(d, base + p->value, 8);
}

uint32_t decode_register_bytes(const struct decoder *d, uint32_t reg)
{
    return d->function->registers[reg].bytes;
}

uint32_t decode_source(struct decoder *d, const struct ptx_operand *p, unsigned bytes)
{
    unsigned has;

    switch (p->kind) {
    case PTX_REG:
        has = decode_register_bytes(d, p->reg);
        return has == bytes ? d->places[p->reg] : resize_place(d, d->places[p->reg], has, bytes);
    case PTX_IMMEDIATE: return decode_constant(d, p->value, bytes);
    case PTX_SPECIAL_:
        if (bytes >= 4)
            return special_place(d, p->special, bytes);
        return resize_place(d, special_place(d, p->special, 4), 4, bytes);
    case PTX_FUNCTION:  return decode_constant(d, PTX_FUNCTION_ADDRESS(p->index), bytes);
    case PTX_ADDRESS:
        if (p->reg != PTX_NO_REG)
            break;
        return bytes == 8 ? symbol_address(d, p) : resize_place(d, symbol_address(d, p), 8, bytes);
    default: break;
    }
    return decode_constant(d, 0, bytes);
}

uint32_t decode_destination(struct decoder *d, const struct ptx_operand *p, unsigned bytes)
{
    if (p->kind == PTX_REG && decode_register_bytes(d, p->reg) == bytes)
        return d->places[p->reg];
    return decode_temporary(d, bytes);
}

void decode_widen(struct decoder *d, const struct ptx_operand *p, uint32_t place, unsigned bytes, bool is_signed)
{
    unsigned has = p->kind == PTX_REG ? decode_register_bytes(d, p->reg) : bytes;
    op_fn    run = resize_handler(bytes, has, is_signed);

    if (has != bytes)
        decode_op(d, (struct op){.run = run ? run : move_handler(1), .a = place, .d = d->places[p->reg]});
}

struct vector_places *decode_vector(struct decoder *d, const struct ptx_operand *p, unsigned element_bytes, bool is_signed)
{
    struct vector_places *v = arena_alloc(&d->code->arena, sizeof *v);
    static struct vector_places nothing;

    if (!v || p->count > VECTOR_ELEMENTS_MAX) {
        d->no_memory = true;
        return &nothing;
    }
    v->count = p->count;
    v->element_bytes = (unsigned char)element_bytes;
    v->is_signed = is_signed;
    for (unsigned k = 0; k < p->count; k++) {
        const struct ptx_operand *e = &p->elements[k];
        if (e->kind == PTX_REG) {
            v->place[k] = d->places[e->reg];
            v->reg_bytes[k] = (unsigned char)decode_register_bytes(d, e->reg);
        } else if (e->kind != PTX_SINK) {
            v->place[k] = decode_source(d, e, element_bytes);
            v->reg_bytes[k] = (unsigned char)element_bytes;
        }
    }
    return v;
}

static enum op_space op_space_of(const struct decoder *d, enum ptx_space s, const struct ptx_operand *p)
{
    switch (s) {
    case PTX_GENERIC: return OP_GENERIC;
    case PTX_GLOBAL:
    case PTX_CONST:   return OP_GLOBAL;
    case PTX_SHARED:  return OP_SHARED;
    case PTX_LOCAL:   return OP_LOCAL;
    case PTX_KERNEL_PARAM: return OP_PARAM_KERNEL;
    case PTX_PARAM:
        if (p->reg == PTX_NO_REG)
            return p->space == PTX_KERNEL_PARAM ? OP_PARAM_KERNEL : OP_PARAM;
        return d->function->entry ? OP_PARAM_KERNEL : OP_PARAM;
    }
    return OP_GENERIC;
}

struct decoded_address decode_address(struct decoder *d, const struct ptx_operand *p, enum ptx_space space)
{
    struct decoded_address r = {.immediate = (int64_t)p->value};

    if (p->reg == PTX_NO_REG && space == PTX_GENERIC && (p->index != PTX_NO_INDEX || p->space != PTX_GENERIC))
        space = (enum ptx_space)p->space;
    r.space = op_space_of(d, space, p);
    if (p->reg != PTX_NO_REG) {
        r.place = decode_register_bytes(d, p->reg) == 8 ? d->places[p->reg]
                                                        : resize_place(d, d->places[p->reg], decode_register_bytes(d, p->reg), 8);
        return r;
    }
    if (p->index != PTX_NO_INDEX || space == PTX_LOCAL) {
        r.place = symbol_address(d, p);
        r.immediate = 0;
    } else {
        r.place = decode_constant(d, 0, 8);
    }
    return r;
}

/* No lane waits for it alone: who waits, waits for all threads to do it. */
static bool is_cluster_arrival(const struct ptx_insn *in)
{
    return in->opcode == PTX_OP_BARRIER && in->scope == PTX_SCOPE_CLUSTER && in->action == PTX_DO_ARRIVE;
}

static bool ends_block(const struct ptx_insn *in)
{
    switch ((int)in->opcode) {
    case PTX_OP_BRA: case PTX_OP_BRX: case PTX_OP_RET: case PTX_OP_EXIT: return true;
    case PTX_OP_BAR: case PTX_OP_BARRIER: return !in->warp && !is_cluster_arrival(in);
    default: return false;
    }
}

static bool needs_warp(const struct ptx_insn *in)
{
    switch ((int)in->opcode) {
    case PTX_OP_SHFL: case PTX_OP_VOTE: return in->sync;
    case PTX_OP_MATCH: case PTX_OP_REDUX: case PTX_OP_ELECT: case PTX_OP_MMA: case PTX_OP_WMMA: case PTX_OP_LDMATRIX:
    case PTX_OP_STMATRIX: case PTX_OP_MOVMATRIX: return true;
    case PTX_OP_BAR: case PTX_OP_BARRIER: return in->warp;
    default: return false;
    }
}

/* Another thread may be waiting for what these observe. */
static bool reads_clock(const struct ptx_insn *in)
{
    return in->opcode == PTX_OP_ATOM || in->opcode == PTX_OP_RED || in->opcode == PTX_OP_MBARRIER || in->opcode == PTX_OP_CALL || in->opcode == PTX_OP_NANOSLEEP
           || (in->opcode == PTX_OP_LD && in->order != PTX_NO_MODIFIER && in->order != PTX_WEAK);
}

static void find_leaders(struct decoder *d)
{
    const struct ptx_function *f = d->function;

    d->leader[0] = d->leader[f->insns_count] = 1;
    for (uint32_t i = 0; i < f->insns_count; i++) {
        const struct ptx_insn *in = &f->insns[i];
        if (in->opcode == PTX_OP_BRA && in->target <= f->insns_count)
            d->leader[in->target] = 1;
        for (uint32_t k = 0; in->opcode == PTX_OP_BRX && k < in->targets_count; k++)
            d->leader[in->targets[k]] = 1;
        if (ends_block(in))
            d->leader[i + 1] = 1;
        if (needs_warp(in))
            d->leader[i] = 1;
        if (d->parted && i > 0 && native_insn(d->module, f, in) != native_insn(d->module, f, in - 1))
            d->leader[i] = 1;
    }
    for (uint32_t i = 0, block = 0; i <= f->insns_count; i++) {
        block += i > 0 && d->leader[i];
        d->block_of[i] = block;
    }
}

static bool decode_barrier(struct decoder *d, struct code_block *b)
{
    const struct ptx_insn    *in = d->insn;
    const struct ptx_operand *p = in->operands, *end = p + in->operands_count;
    struct op                 o = {.insn = in, .guard = OP_NONE};
    bool                      cluster = in->scope == PTX_SCOPE_CLUSTER;

    if (cluster != (in->action == PTX_DO_WAIT))
        return false;
    if (in->red) {
        o.mode = in->action == PTX_DO_POPC ? BAR_POPC : in->action == PTX_DO_AND ? BAR_AND : BAR_OR;
        o.d = decode_destination(d, p++, o.mode == BAR_POPC ? 4 : 1);
        o.c = decode_source(d, --end, 1);
        o.immediate = end->negated;
    } else {
        o.mode = in->action == PTX_DO_ARRIVE ? BAR_ARRIVE : BAR_SYNC;
    }
    o.a = p < end ? decode_source(d, p++, 4) : decode_constant(d, cluster ? CLUSTER_BARRIER : 0, 4);
    o.width = p < end;
    if (p < end)
        o.b = decode_source(d, p, 4);
    b->last = o;
    return true;
}

static bool decode_table(struct decoder *d, struct code_block *b)
{
    const struct ptx_insn *in = d->insn;
    uint32_t              *table = arena_array(&d->code->arena, in->targets_count, sizeof *table);

    if (!table || in->operands_count < 1)
        return false;
    for (uint32_t k = 0; k < in->targets_count; k++)
        table[k] = d->block_of[in->targets[k]];
    b->table = table;
    b->table_count = in->targets_count;
    b->last.a = decode_source(d, &in->operands[0], 4);
    return true;
}

static bool decode_end(struct decoder *d, struct code_block *b)
{
    const struct ptx_insn *in = d->insn;

    b->last = (struct op){.insn = in};
    switch ((int)in->opcode) {
    case PTX_OP_BRA:  b->end = END_BRANCH; b->target = d->block_of[in->target]; break;
    case PTX_OP_BRX:  b->end = END_TABLE; if (!decode_table(d, b)) return false; break;
    case PTX_OP_RET:  b->end = END_RETURN; break;
    case PTX_OP_EXIT: b->end = END_EXIT; break;
    default:          b->end = END_BARRIER; if (!decode_barrier(d, b)) return false; break;
    }
    b->last.guard = in->guard == PTX_NO_REG ? OP_NONE : (int32_t)d->places[in->guard];
    b->last.guard_not = in->guard_not;
    return true;
}

static enum status refuse_insn(const struct decoder *d, struct problem *why)
{
    const struct ptx_call     *call = d->insn->call;
    char                       image[PTX_IMAGE_WORDS_BYTES];
    const struct ptx_function *called = call && call->function != PTX_NO_INDEX ? &d->module->functions[call->function] : NULL;

    if (called && !called->defined)
        return problem_set(why, STATUS_MODULE_INVALID, "`call` of `%.*s` is not supported on device cpu%s, %sPTX line %u",
                           SPAN_ARG(span_first(called->name, 64)), ptx_feature_of(called->name), ptx_image_words(d->insn, image), d->insn->line);
    return problem_set(why, STATUS_MODULE_INVALID, "`%.*s` is not supported on device cpu%s, %sPTX line %u",
                       SPAN_ARG(span_first(d->insn->text, 64)), ptx_feature_of(d->insn->text), ptx_image_words(d->insn, image), d->insn->line);
}

/* In its block, or once for all blocks. */
static bool translate_somewhere(struct decoder *d)
{
    bool ok;

    d->hoisting = hoist_wanted(d);
    ok = translate(d);
    if (ok && d->hoisting)
        hoist_done(d);
    d->hoisting = false;
    return ok;
}

static enum status decode_blocks(struct decoder *d, struct problem *why)
{
    const struct ptx_function *f = d->function;
    struct code               *c = d->code;
    uint32_t                   i = 0;

    for (uint32_t k = 0; k < c->blocks_count; k++) {
        struct code_block *b = &c->blocks[k];

        *b = (struct code_block){.first = c->ops_count, .end = END_FALL, .last = {.guard = OP_NONE}, .guard_affine = NO_AFFINE};
        b->warp_first = i < f->insns_count && needs_warp(&f->insns[i]);
        b->insn_first = i;
        if (i == f->insns_count)
            b->end = END_RETURN;
        for (bool first = true; i < f->insns_count && (first || !d->leader[i]); i++, first = false) {
            d->insn = &f->insns[i];
            if (ends_block(d->insn) ? !decode_end(d, b) : !translate_somewhere(d))
                return refuse_insn(d, why);
            if (first)
                b->members = d->members;
        }
        b->count = c->ops_count - b->first;
        b->insn_count = i - b->insn_first;
    }
    return STATUS_OK;
}

static void mark_spins(struct decoder *d)
{
    const struct ptx_function *f = d->function;
    struct code               *c = d->code;
    uint32_t                  *seen = calloc(c->blocks_count + 1, sizeof *seen);

    if (!seen) {
        d->no_memory = true;
        return;
    }
    for (uint32_t i = 0; i < f->insns_count; i++) {
        seen[d->block_of[i] + 1] += reads_clock(&f->insns[i]);
        c->meets |= (f->insns[i].opcode == PTX_OP_ATOM || f->insns[i].opcode == PTX_OP_RED) && f->insns[i].space != PTX_SHARED;
    }
    for (uint32_t k = 0; k < c->blocks_count; k++)
        seen[k + 1] += seen[k];
    for (uint32_t k = 0; k < c->blocks_count; k++) {
        struct code_block *b = &c->blocks[k];
        b->spins = b->end == END_BRANCH && b->target <= k && seen[k + 1] > seen[b->target];
    }
    free(seen);
}

static bool keep_places(struct decoder *d)
{
    uint32_t *places = arena_array(&d->code->arena, d->function->registers_count, sizeof *places);

    if (places)
        memcpy(places, d->places, d->function->registers_count * sizeof *places);
    d->code->places = places;
    return places || !d->function->registers_count;
}

static bool decoder_start(struct decoder *d)
{
    const struct ptx_function *f = d->function;
    struct code               *c = d->code;

    arena_init(&c->arena, CODE_ARENA_BYTES);
    c->name = f->name;
    c->param_bytes = (f->param_frame_bytes + 15) / 16 * 16;
    c->local_bytes = (f->local_bytes + 15) / 16 * 16;
    d->places = calloc((size_t)f->registers_count + 1, sizeof *d->places);
    d->block_of = calloc((size_t)f->insns_count + 1, sizeof *d->block_of);
    d->leader = calloc((size_t)f->insns_count + 1, 1);
    d->facts = calloc((size_t)f->registers_count + 1, 1);
    if (!d->places || !d->block_of || !d->leader || !d->facts)
        return false;
    if (!d->parted)
        hoist_prepare(d);
    for (uint32_t i = 0; i < f->registers_count; i++)
        d->places[i] = decode_temporary(d, f->registers[i].bytes);
    if (d->parted && !keep_places(d))
        return false;
    find_leaders(d);
    c->blocks_count = d->block_of[f->insns_count] + 1;
    c->blocks = calloc(c->blocks_count, sizeof *c->blocks);
    return c->blocks != NULL;
}

void code_destroy(struct code *c)
{
    if (!c)
        return;
    arena_finish(&c->arena);
    free(c->ops);
    free(c->prologue);
    free(c->blocks);
    free(c->constants);
    free(c->specials);
    free(c);
}

enum status code_create(const struct ptx_module *m, const struct ptx_function *f, unsigned options, struct code **out,
                        struct problem *why)
{
    struct decoder d = {.module = m, .function = f, .code = calloc(1, sizeof *d.code)};
    enum status    st = STATUS_OUT_OF_MEMORY;

    if (!d.code)
        return st;
    d.code->plain = options & CODE_PLAIN;
    d.code->checked = options & CODE_CHECKED;
    d.parted = options & CODE_NATIVE;
    if (decoder_start(&d)) {
        st = decode_blocks(&d, why);
        if (st == STATUS_OK)
            mark_spins(&d);
        if (st == STATUS_OK && f->entry && !d.code->plain && !d.parted && !affine_plan(d.code, f, d.places))
            d.no_memory = true;
        if (d.no_memory)
            st = STATUS_OUT_OF_MEMORY;
    }
    free(d.places);
    free(d.block_of);
    free(d.leader);
    free(d.facts);
    constant_index_finish(&d.constants);
    if (st)
        code_destroy(d.code);
    else
        *out = d.code;
    return st;
}
