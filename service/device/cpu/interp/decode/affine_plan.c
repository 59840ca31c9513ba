/* Plans at load which operations of an entry use affine values (device/cpu/interp/affine.h); all others need not know of them.
 *
 * An instruction takes part when it is one operation without a guard whose result follows from its sources. A value that other
 * instructions read is written to its array at once; a value that they write is never affine. */
#include "device/cpu/interp/decode/decode.h"
#include "device/cpu/interp/affine.h"

#include <stdlib.h>

/* Rounds over the text that find what values may be; compilers' code takes few. Stopping early leaves arrays where affine values would do. */
enum { ROUNDS_MAX = 64 };

/* What is known of a value. */
enum {
    READ_PLAIN = 1,    /* something reads its array */
    WRITTEN_PLAIN = 2, /* something writes its array alone */
    MAY_BE_UNIFORM = 4,  /* for all threads */
    MAY_GROW = 8,      /* with a thread's coordinates */
    MAY_BE_AFFINE = MAY_BE_UNIFORM | MAY_GROW,
    WRITTEN = 16,
    READ_ELSEWHERE = 32, /* than behind its only write in the same basic block */
    WORTH_AFFINE = 64,  /* something profits if it is affine */
};

/* All arrays are indexed by place. */
struct planner {
    struct code               *code;
    const struct ptx_function *function;
    const uint32_t            *places;  /* of registers */
    uint8_t                   *known;
    uint8_t                   *width;   /* 0: the value at this place cannot be affine */
    uint32_t                  *affine;
    uint32_t                  *written_in; /* basic block + 1 */
    bool                       no_memory;
};

static void mark_register(struct planner *p, uint32_t reg, uint8_t what)
{
    p->known[p->places[reg]] |= what;
}

static void mark_special(struct planner *p, uint8_t which)
{
    for (uint32_t i = 0; i < p->code->specials_count; i++) {
        if (p->code->specials[i].which == which)
            p->known[p->code->specials[i].place] |= READ_PLAIN;
    }
}

static void mark_operand(struct planner *p, const struct ptx_operand *o, uint8_t what)
{
    if (o->kind == PTX_REG || (o->kind == PTX_ADDRESS && o->reg != PTX_NO_REG))
        mark_register(p, o->reg, what);
    if (o->kind == PTX_SPECIAL_)
        mark_special(p, o->special);
    for (unsigned k = 0; o->kind == PTX_VECTOR && k < o->count; k++)
        mark_operand(p, &o->elements[k], what);
}

/* Of an instruction that takes no part. Its first operand counts as written: one too many does no harm, one too few would. */
static void mark_plain(struct planner *p, const struct ptx_insn *in)
{
    for (unsigned i = 0; i < in->operands_count; i++)
        mark_operand(p, &in->operands[i], i ? READ_PLAIN : READ_PLAIN | WRITTEN_PLAIN);
    mark_operand(p, &in->predicate, READ_PLAIN | WRITTEN_PLAIN);
    if (in->guard != PTX_NO_REG)
        mark_register(p, in->guard, READ_PLAIN);
    if (!in->call)
        return;
    mark_operand(p, &in->call->target, READ_PLAIN);
    for (unsigned i = 0; i < in->call->args_count; i++)
        mark_operand(p, &in->call->args[i], READ_PLAIN);
    for (unsigned i = 0; i < in->call->results_count; i++)
        mark_operand(p, &in->call->results[i], READ_PLAIN | WRITTEN_PLAIN);
}

static bool is_integer(enum ptx_type t)
{
    return t == PTX_U32 || t == PTX_S32 || t == PTX_U64 || t == PTX_S64 || t == PTX_B32 || t == PTX_B64;
}

static bool is_signed(enum ptx_type t)
{
    return t == PTX_S32 || t == PTX_S64;
}

static enum affine_rule rule_of_cvt(const struct ptx_insn *in)
{
    unsigned from = ptx_type_bytes((enum ptx_type)in->stype), to = ptx_type_bytes((enum ptx_type)in->type);

    if (in->sat || !is_integer((enum ptx_type)in->type) || !is_integer((enum ptx_type)in->stype))
        return RULE_UNIFORM;
    return from == to ? RULE_MOVE : from > to ? RULE_NARROW : RULE_WIDEN;
}

static enum affine_rule rule_of_product(const struct ptx_insn *in, enum affine_rule low, enum affine_rule wide)
{
    return in->part == PTX_LO ? low : in->part == PTX_WIDE && ptx_type_bytes((enum ptx_type)in->type) == 4 ? wide : RULE_UNIFORM;
}

static enum affine_rule rule_of_arithmetic(const struct ptx_insn *in)
{
    if (in->opcode == PTX_OP_CVT)
        return rule_of_cvt(in);
    if (in->opcode == PTX_OP_CVTA)
        return RULE_OFFSET;
    if (in->opcode == PTX_OP_MOV)
        return RULE_MOVE;
    if (in->type == PTX_PRED || (is_integer((enum ptx_type)in->type) && !is_signed((enum ptx_type)in->type))) {
        switch ((int)in->opcode) {
        case PTX_OP_AND: return RULE_AND;
        case PTX_OP_OR:  return RULE_OR;
        case PTX_OP_SHR: return RULE_SHR;
        default: break;
        }
    }
    if (in->sat || !is_integer((enum ptx_type)in->type))
        return RULE_UNIFORM;
    switch ((int)in->opcode) {
    case PTX_OP_ADD:  return RULE_ADD;
    case PTX_OP_SUB:  return RULE_SUB;
    case PTX_OP_SHL:  return RULE_SHL;
    case PTX_OP_MUL:  return rule_of_product(in, RULE_MUL, RULE_MUL_WIDE);
    case PTX_OP_MAD:  return rule_of_product(in, RULE_MAD, RULE_MAD_WIDE);
    case PTX_OP_SETP: return RULE_COMPARE;
    default:          return RULE_UNIFORM;
    }
}

/* Only of instructions that have become one operation. */
static bool takes_part(const struct ptx_insn *in, const struct op *o)
{
    if (in->guard != PTX_NO_REG)
        return false;
    for (unsigned i = 0; i < in->operands_count; i++) {
        if (in->operands[i].kind == PTX_VECTOR)
            return false;
    }
    if (in->opcode == PTX_OP_LD)
        return in->operands[0].kind == PTX_REG;
    if (in->opcode == PTX_OP_ST)
        return o->addresses;
    return insn_is_pure(in) && in->operands[0].kind == PTX_REG && in->predicate.kind == PTX_NOTHING;
}

static unsigned sources_of(const struct ptx_insn *in, const struct op *o)
{
    switch ((int)in->opcode) {
    case PTX_OP_LD: return o->addresses ? 1 : 0;
    case PTX_OP_ST: return 2;
    default:        return in->operands_count - 1;
    }
}

static struct op_affine *new_plan(struct planner *p, const struct op *o)
{
    const struct ptx_insn *in = o->insn;
    struct op_affine      *f = arena_alloc(&p->code->arena, sizeof *f);
    const uint32_t         place[] = {o->a, in->opcode == PTX_OP_ST ? o->d : o->b, o->c, o->e};

    if (!f) {
        p->no_memory = true;
        return NULL;
    }
    f->rule = in->opcode == PTX_OP_LD ? RULE_LOAD : in->opcode == PTX_OP_ST ? RULE_STORE : rule_of_arithmetic(in);
    if (f->rule == RULE_LOAD && !o->addresses)
        f->rule = RULE_UNIFORM; /* a parameter */
    f->is_signed = is_signed((enum ptx_type)(in->opcode == PTX_OP_CVT ? in->stype : in->type));
    if (f->rule == RULE_COMPARE && !insn_comparison(in, &f->how))
        f->rule = RULE_UNIFORM;
    f->count = (uint8_t)sources_of(in, o);
    f->width = f->rule == RULE_STORE ? 0 : p->width[o->d];
    f->result = NO_AFFINE;
    for (unsigned i = 0; i < f->count; i++)
        f->source[i] = (struct affine_source){NO_AFFINE, place[i], p->width[place[i]]};
    return f;
}

/* The width of every value that it touches must be known. */
static bool places_fit(const struct op_affine *f)
{
    for (unsigned i = 0; i < f->count; i++) {
        if (!f->source[i].width)
            return false;
    }
    return f->rule == RULE_STORE || f->width;
}

static bool one_operation(const struct op *ops, uint32_t i, uint32_t count)
{
    return (i == 0 || ops[i - 1].insn != ops[i].insn) && (i + 1 == count || ops[i + 1].insn != ops[i].insn);
}

/* Candidates get a plan; what the others touch is marked. */
static void sort_out(struct planner *p, struct op *ops, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct ptx_insn *in = ops[i].insn;
        struct op_affine      *f = NULL;

        if (one_operation(ops, i, count) && takes_part(in, &ops[i]) && sources_of(in, &ops[i]) <= AFFINE_SOURCES_MAX)
            f = new_plan(p, &ops[i]);
        if (f && places_fit(f))
            ops[i].affine = f;
        else
            mark_plain(p, in);
    }
}

/* What a result may be, given what its sources may be. */
static uint8_t may_be(const struct planner *p, const struct op_affine *f)
{
    uint8_t  all = MAY_BE_AFFINE, any = 0;
    unsigned growing = 0;

    for (unsigned i = 0; i < f->count; i++) {
        uint8_t k = p->known[f->source[i].place] & MAY_BE_AFFINE;
        if (!k)
            return 0;
        all &= k;
        any |= k;
        growing += !(k & MAY_BE_UNIFORM);
    }
    switch (f->rule) {
    case RULE_MOVE: case RULE_ADD: case RULE_SUB: case RULE_OFFSET: case RULE_NARROW: case RULE_WIDEN:
        return (all & MAY_BE_UNIFORM) | (any & MAY_GROW);
    case RULE_MUL: case RULE_MAD: case RULE_SHL: case RULE_MUL_WIDE: case RULE_MAD_WIDE:
        return (all & MAY_BE_UNIFORM) | (growing < f->count ? any & MAY_GROW : 0);
    case RULE_COMPARE: return MAY_BE_UNIFORM;
    case RULE_UNIFORM: case RULE_AND: case RULE_OR: case RULE_SHR:
    case RULE_LOAD:    return all & MAY_BE_UNIFORM;
    case RULE_STORE:   break;
    }
    return 0;
}

/* Arrays stay: a value that some writes cannot keep affine, which would be converted to and fro, and one that nobody uses as affine. */
static bool narrow_down(struct planner *p, const struct op *ops, uint32_t count)
{
    bool less = false;

    for (uint32_t i = 0; i < count; i++) {
        uint8_t *known = &p->known[ops[i].d];

        if (!ops[i].affine || ops[i].affine->rule == RULE_STORE || !(*known & MAY_BE_AFFINE)
            || (may_be(p, ops[i].affine) && *known & WORTH_AFFINE))
            continue;
        *known = (uint8_t)((*known & ~MAY_BE_AFFINE) | WRITTEN_PLAIN);
        less = true;
    }
    return less;
}

/* An affine result profits from affine sources (other than itself), an access from an affine address, a branch from an affine guard. */
static void mark_worth(struct planner *p, const struct op *ops, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct op_affine *f = ops[i].affine;
        bool                    access = f && (f->rule == RULE_LOAD || f->rule == RULE_STORE);
        bool                    affine = f && f->rule != RULE_STORE && p->known[ops[i].d] & MAY_BE_AFFINE;

        for (unsigned s = 0; f && s < f->count; s++) {
            if ((access && s == 0) || (affine && f->source[s].place != ops[i].d))
                p->known[f->source[s].place] |= WORTH_AFFINE;
        }
    }
}

static void mark_all_worth(struct planner *p)
{
    const struct code *c = p->code;

    for (uint32_t place = 0; place <= c->frame_bytes; place++)
        p->known[place] &= (uint8_t)~WORTH_AFFINE;
    mark_worth(p, c->prologue, c->prologue_count);
    mark_worth(p, c->ops, c->ops_count);
    for (uint32_t k = 0; k < c->blocks_count; k++) {
        if (c->blocks[k].end == END_BRANCH && c->blocks[k].last.guard != OP_NONE)
            p->known[c->blocks[k].last.guard] |= WORTH_AFFINE;
    }
}

/* Which results may be uniform, and which may grow, beginning with none. */
static bool spread_kinds(struct planner *p, const struct op *ops, uint32_t count)
{
    bool more = false;

    for (uint32_t i = 0; i < count; i++) {
        uint8_t now = ops[i].affine ? may_be(p, ops[i].affine) : 0, *known;

        if (!now)
            continue;
        known = &p->known[ops[i].d];
        if (*known & WRITTEN_PLAIN || (*known | now) == *known)
            continue;
        *known |= now;
        more = true;
    }
    return more;
}

static void mark_read(struct planner *p, uint32_t place, uint32_t block)
{
    if (p->written_in[place] != block + 1)
        p->known[place] |= READ_ELSEWHERE;
}

/* In the order of the text, so that what is read before it is written is seen. */
static void mark_locals(struct planner *p)
{
    const struct code *c = p->code;

    for (uint32_t k = 0; k < c->blocks_count; k++) {
        const struct code_block *b = &c->blocks[k];

        for (uint32_t i = b->first; i < b->first + b->count; i++) {
            const struct op_affine *f = c->ops[i].affine;
            for (unsigned s = 0; f && s < f->count; s++)
                mark_read(p, f->source[s].place, k);
            if (!f || f->rule == RULE_STORE)
                continue;
            p->known[c->ops[i].d] |= p->known[c->ops[i].d] & WRITTEN ? READ_ELSEWHERE : WRITTEN;
            p->written_in[c->ops[i].d] = k + 1;
        }
        if (b->end == END_BRANCH && b->last.guard != OP_NONE)
            mark_read(p, (uint32_t)b->last.guard, k);
    }
}

static uint32_t affine_of_place(struct planner *p, uint32_t place)
{
    if (!(p->known[place] & MAY_BE_AFFINE))
        return NO_AFFINE;
    if (p->affine[place] == NO_AFFINE)
        p->affine[place] = p->code->affine_count++;
    return p->affine[place];
}

/* Operations that no affine value reaches lose their plan. */
static void assign_values(struct planner *p, struct op *ops, uint32_t count, bool prologue)
{
    for (uint32_t i = 0; i < count; i++) {
        struct op_affine *f = (struct op_affine *)(uintptr_t)ops[i].affine;
        bool              useful = false;

        if (!f)
            continue;
        for (unsigned s = 0; s < f->count; s++) {
            f->source[s].affine = affine_of_place(p, f->source[s].place);
            useful |= f->source[s].affine != NO_AFFINE;
        }
        if (f->rule != RULE_STORE && p->known[ops[i].d] & MAY_BE_AFFINE) {
            f->result = affine_of_place(p, ops[i].d);
            f->local = !prologue && !(p->known[ops[i].d] & (READ_ELSEWHERE | READ_PLAIN));
            f->wanted = p->known[ops[i].d] & READ_PLAIN;
            useful = true;
        }
        if (!useful)
            ops[i].affine = NULL;
    }
}

static void know_sources(struct planner *p)
{
    struct code *c = p->code;

    for (uint32_t i = 0; i < p->function->registers_count; i++)
        p->width[p->places[i]] = p->function->registers[i].bytes <= 8 ? p->function->registers[i].bytes : 0;
    for (uint32_t i = 0; i < c->constants_count; i++) {
        p->width[c->constants[i].place] = (uint8_t)c->constants[i].width;
        p->known[c->constants[i].place] |= MAY_BE_UNIFORM;
    }
    for (uint32_t i = 0; i < c->specials_count; i++) {
        const struct code_special *s = &c->specials[i];

        if (s->which == PTX_SPECIAL_TID_X || s->which == PTX_SPECIAL_TID_Y)
            p->known[s->place] |= MAY_GROW;
        else
            p->known[s->place] |= ptx_special_kinds[s->which] != PTX_OF_LANE || s->which == PTX_SPECIAL_TID_Z ? MAY_BE_UNIFORM : WRITTEN_PLAIN;
        p->width[s->place] = (uint8_t)s->width;
    }
}

static void mark_ends(struct planner *p)
{
    for (uint32_t k = 0; k < p->code->blocks_count; k++) {
        const struct code_block *b = &p->code->blocks[k];
        if (b->last.insn && b->end != END_BRANCH)
            mark_plain(p, b->last.insn);
    }
}

static void name_sources(struct planner *p)
{
    struct code *c = p->code;

    for (uint32_t i = 0; i < c->constants_count; i++)
        c->constants[i].affine = p->affine[c->constants[i].place];
    for (uint32_t i = 0; i < c->specials_count; i++) {
        struct code_special *s = &c->specials[i];
        s->affine = p->affine[s->place];
        s->wanted = s->affine == NO_AFFINE || p->known[s->place] & READ_PLAIN;
    }
    for (uint32_t k = 0; k < c->blocks_count; k++) {
        struct code_block *b = &c->blocks[k];
        if (b->end == END_BRANCH && b->last.guard != OP_NONE)
            b->guard_affine = p->affine[b->last.guard];
    }
}

static void plan_values(struct planner *p)
{
    struct code *c = p->code;
    bool         more = true;

    know_sources(p);
    sort_out(p, c->prologue, c->prologue_count);
    sort_out(p, c->ops, c->ops_count);
    mark_ends(p);
    for (unsigned round = 0; more && round < ROUNDS_MAX; round++) {
        more = spread_kinds(p, c->prologue, c->prologue_count);
        more |= spread_kinds(p, c->ops, c->ops_count);
        if (more)
            continue;
        mark_all_worth(p);
        more = narrow_down(p, c->prologue, c->prologue_count);
        more |= narrow_down(p, c->ops, c->ops_count);
    }
    mark_locals(p);
    assign_values(p, c->prologue, c->prologue_count, true);
    assign_values(p, c->ops, c->ops_count, false);
    name_sources(p);
}

bool affine_plan(struct code *c, const struct ptx_function *f, const uint32_t *places)
{
    size_t         n = (size_t)c->frame_bytes + 1;
    struct planner p = {.code = c, .function = f, .places = places, .known = calloc(n, 1), .width = calloc(n, 1),
                        .affine = malloc(n * sizeof *p.affine), .written_in = calloc(n, sizeof *p.written_in)};
    bool           ok = p.known && p.width && p.affine && p.written_in;

    if (ok) {
        memset(p.affine, 0xff, n * sizeof *p.affine);
        plan_values(&p);
    }
    free(p.known);
    free(p.width);
    free(p.affine);
    free(p.written_in);
    return ok && !p.no_memory;
}
