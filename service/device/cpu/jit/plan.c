/* Examines a kernel before it is compiled: which blocks are compiled, which registers live where, and how their values lie over the lanes. */
#include "device/cpu/jit/plan.h"

#include <stdlib.h>

#include "device/cpu/bounds.h"
#include "device/cpu/jit/subset.h"

enum { INSNS_MAX = 1000, PLACES_MAX = 12 };

static const struct shape varying = {SHAPE_VARYING, 0, 0};

/* ---- registers ---- */

static void visit(const struct ptx_operand *o, plan_reg_fn fn, void *context)
{
    if (o->kind == PTX_REG || (o->kind == PTX_ADDRESS && o->reg != PTX_NO_REG))
        fn(o->reg, context);
    for (unsigned k = 0; o->kind == PTX_VECTOR && k < o->count; k++)
        visit(&o->elements[k], fn, context);
}

static bool has_result(const struct ptx_insn *in)
{
    switch ((int)in->opcode) {
    case PTX_OP_ST:
    case PTX_OP_RED:
    case PTX_OP_BRA:
        return false;
    case PTX_OP_BAR:
    case PTX_OP_BARRIER:
        return in->red; /* which the interpreter writes: whatever else its register holds, it is no line */
    default:
        return in->operands_count > 0;
    }
}

void plan_each_source(const struct jit_plan *p, const struct ptx_insn *in, plan_reg_fn fn, void *context)
{
    bool compiled = native_way(p->module, p->function, in) == NATIVE_EMITTED;

    if (in->guard != PTX_NO_REG)
        fn(in->guard, context);
    for (unsigned i = 0; i < in->operands_count; i++) {
        if (i > 0 || !compiled || !has_result(in))
            visit(&in->operands[i], fn, context);
    }
    if (!compiled)
        visit(&in->predicate, fn, context);
    for (unsigned k = 0; in->call && k < in->call->args_count; k++)
        visit(&in->call->args[k], fn, context);
    for (unsigned k = 0; in->call && k < in->call->results_count; k++)
        visit(&in->call->results[k], fn, context);
    if (in->call)
        visit(&in->call->target, fn, context);
}

void plan_each_result(const struct ptx_insn *in, plan_reg_fn fn, void *context)
{
    if (has_result(in) && in->operands[0].kind != PTX_ADDRESS)
        visit(&in->operands[0], fn, context);
    visit(&in->predicate, fn, context);
    for (unsigned k = 0; in->call && k < in->call->results_count; k++)
        visit(&in->call->results[k], fn, context);
}

void plan_block_results(const struct jit_plan *p, uint32_t block, plan_reg_fn fn, void *context)
{
    const struct code_block *k = &p->code->blocks[block];

    for (uint32_t i = k->insn_first; i < k->insn_first + k->insn_count; i++)
        plan_each_result(&p->function->insns[i], fn, context);
}

void plan_note_use(uint32_t reg, void *use)
{
    struct plan_use *u = use;

    if (!(u->kills[reg / 64] >> (reg % 64) & 1))
        u->uses[reg / 64] |= 1ull << (reg % 64);
}

void plan_note_kill(uint32_t reg, void *use)
{
    struct plan_use *u = use;

    u->kills[reg / 64] |= 1ull << (reg % 64);
}

bool plan_add(const struct jit_plan *p, uint64_t *to, const uint64_t *from, const uint64_t *kills)
{
    bool changed = false;

    for (size_t w = 0; w < p->words; w++) {
        uint64_t more = from[w] & ~(kills ? kills[w] : 0) & ~to[w];

        to[w] |= more;
        changed |= more != 0;
    }
    return changed;
}

unsigned plan_successors(const struct code *c, uint32_t block, uint32_t out[2])
{
    const struct code_block *b = &c->blocks[block];
    unsigned                 n = 0;

    if (b->end == END_BRANCH)
        out[n++] = b->target;
    if ((b->end != END_BRANCH || b->last.guard != OP_NONE) && !((b->end == END_RETURN || b->end == END_EXIT) && b->last.guard == OP_NONE) &&
        block + 1 < c->blocks_count)
        out[n++] = block + 1;
    return n;
}

static bool flow_back(struct jit_plan *p, uint32_t block, const uint64_t *kills)
{
    const struct code *c = p->code;
    uint64_t          *live = p->live + block * p->words;
    uint32_t           next[2];
    bool               changed = false;

    for (unsigned n = plan_successors(c, block, next); n-- > 0;)
        changed |= plan_add(p, live, p->live + next[n] * p->words, kills);
    for (uint32_t k = 0; c->blocks[block].end == END_TABLE && k < c->blocks[block].table_count; k++)
        changed |= plan_add(p, live, p->live + c->blocks[block].table[k] * p->words, kills);
    return changed;
}

static bool find_live(struct jit_plan *p)
{
    const struct code *c = p->code;
    uint64_t          *kills = calloc((size_t)c->blocks_count * p->words, sizeof *kills);
    bool               changed = true;

    if (!kills)
        return false;
    for (uint32_t b = 0; b < c->blocks_count; b++) {
        struct plan_use u = {p->live + b * p->words, kills + b * p->words};

        for (uint32_t i = c->blocks[b].insn_first; i < c->blocks[b].insn_first + c->blocks[b].insn_count; i++) {
            const struct ptx_insn *in = &p->function->insns[i];
            plan_each_source(p, in, plan_note_use, &u);
            if (in->guard == PTX_NO_REG && native_insn(p->module, p->function, in))
                plan_each_result(in, plan_note_kill, &u);
        }
    }
    while (changed) {
        changed = false;
        for (uint32_t b = c->blocks_count; b-- > 0;)
            changed |= flow_back(p, b, kills + b * p->words);
    }
    free(kills);
    return true;
}

/* ---- which blocks ---- */

static bool is_plain_barrier(const struct code_block *k)
{
    const struct ptx_insn *in = k->last.insn;

    return k->end == END_BARRIER && k->count == 0 && k->last.guard == OP_NONE && in && k->last.mode == BAR_SYNC && !in->red &&
           in->scope != PTX_SCOPE_CLUSTER && in->operands_count == 1 && in->operands[0].kind == PTX_IMMEDIATE &&
           in->operands[0].value < CLUSTER_BARRIER;
}

static uint8_t passes(const struct jit_plan *p, uint32_t block)
{
    const struct code_block *k = &p->code->blocks[block];

    if (is_plain_barrier(k))
        return PASSES_BARRIER;
    return (k->end == END_RETURN || k->end == END_EXIT) && k->count == 0 && k->last.guard == OP_NONE ? PASSES_RETURN : 0;
}

static bool reads_special(const struct ptx_insn *in)
{
    for (unsigned i = 0; i < in->operands_count; i++) {
        if (in->operands[i].kind == PTX_SPECIAL_)
            return true;
        for (unsigned k = 0; in->operands[i].kind == PTX_VECTOR && k < in->operands[i].count; k++) {
            if (in->operands[i].elements[k].kind == PTX_SPECIAL_)
                return true;
        }
    }
    return false;
}

/* Barriers and returns, which the interpreter keeps. */
static bool is_kept(const struct ptx_insn *in)
{
    return in->opcode == PTX_OP_RET || in->opcode == PTX_OP_EXIT ||
           ((in->opcode == PTX_OP_BAR || in->opcode == PTX_OP_BARRIER) && !in->warp);
}

/* What the block's instructions ask of the whole; false: one is not compiled. */
static bool survey_insns(struct jit_plan *p, const struct code_block *k)
{
    bool ok = true;

    for (uint32_t i = k->insn_first; i < k->insn_first + k->insn_count; i++) {
        const struct ptx_insn *in = &p->function->insns[i];
        enum native_way        way = native_way(p->module, p->function, in);
        bool                   fits = way != NATIVE_LEAVES && (p->lanes == WARP_LANES || !native_meets_warp(p->module, in));

        ok = ok && fits;
        if (!fits && !is_kept(in) && !p->first_refused)
            p->first_refused = in;
        p->fills |= way == NATIVE_BORROWED && reads_special(in);
        p->borrows |= way == NATIVE_BORROWED;
        p->calls |=
            in->opcode == PTX_OP_CALL && in->call && in->call->function != PTX_NO_INDEX && p->module->functions[in->call->function].defined;
    }
    return ok;
}

static void find_native(struct jit_plan *p)
{
    const struct code *c = p->code;

    for (uint32_t b = 0; b < c->blocks_count; b++) {
        const struct code_block *k = &c->blocks[b];

        p->native[b] = survey_insns(p, k) && (k->end == END_FALL || k->end == END_BRANCH) && k->insn_count > 0;
        p->spins |= k->spins;
        p->warps |= k->warp_first;
        p->insns_native += p->native[b] ? k->insn_count : 0;
    }
    p->returns = c->blocks_count;
    p->entry[0] = p->native[0];
    p->whole = p->native[0] && !p->calls && !c->allocates; /* frames and stacks are set up block by block */
    for (uint32_t b = 0; b < c->blocks_count; b++) {
        p->passes[b] = passes(p, b);
        p->returns = p->passes[b] == PASSES_RETURN && b < p->returns ? b : p->returns;
        p->whole = p->whole && (p->native[b] || p->passes[b] == PASSES_RETURN);
        p->entry[b] |= p->native[b] && c->blocks[b].warp_first; /* lanes may leave before it and come back */
    }
    for (uint32_t b = 0; b < c->blocks_count; b++) {
        uint32_t next[2];

        for (unsigned n = plan_successors(c, b, next); n-- > 0;)
            p->entry[next[n]] |= p->native[next[n]] && (!p->native[b] || next[n] <= b);
        for (uint32_t k = 0; c->blocks[b].end == END_TABLE && k < c->blocks[b].table_count; k++)
            p->entry[c->blocks[b].table[k]] |= p->native[c->blocks[b].table[k]];
    }
}

/* ---- which registers live in one block only ---- */

struct homes {
    uint32_t *block; /* [registers_count] 1 + the block, or MANY */
    uint32_t  now;
};
enum { MANY = UINT32_MAX };

static void note_source(uint32_t reg, void *context)
{
    struct homes *h = context;

    if (h->block[reg] != h->now)
        h->block[reg] = MANY;
}

static void note_result(uint32_t reg, void *context)
{
    struct homes *h = context;

    if (h->block[reg] != h->now)
        h->block[reg] = h->block[reg] ? MANY : h->now;
}

static bool find_local(struct jit_plan *p)
{
    struct homes h = {calloc((size_t)p->function->registers_count + 1, sizeof *h.block), 0};

    if (!h.block)
        return false;
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        h.now = b + 1;
        for (uint32_t i = p->code->blocks[b].insn_first; i < p->code->blocks[b].insn_first + p->code->blocks[b].insn_count; i++) {
            const struct ptx_insn *in = &p->function->insns[i];
            plan_each_source(p, in, note_source, &h);
            if (in->guard != PTX_NO_REG || !native_insn(p->module, p->function, in))
                plan_each_result(in, note_source, &h);
            else
                plan_each_result(in, note_result, &h);
        }
    }
    for (uint32_t r = 0; r < p->function->registers_count; r++)
        p->local[r] = h.block[r] != MANY;
    free(h.block);
    return true;
}

/* ---- how values lie ---- */

struct meeting {
    struct jit_plan *plan;
    struct shape     shape;
    bool             changed;
};

static void meet(uint32_t reg, void *context)
{
    struct meeting *m = context;
    struct shape   *s = &m->plan->shapes[reg];

    if (m->shape.kind == SHAPE_NONE || s->kind == SHAPE_VARYING)
        return;
    if (m->plan->function->registers[reg].bytes < 4 && m->shape.kind == SHAPE_LINEAR)
        m->shape = varying;
    if (s->kind == SHAPE_NONE) {
        *s = m->shape;
        m->changed = true;
    } else if (s->kind != m->shape.kind || s->stride != m->shape.stride || s->wrapped != m->shape.wrapped) {
        bool same_line = s->kind == SHAPE_LINEAR && m->shape.kind == SHAPE_LINEAR && s->stride == m->shape.stride &&
                         (s->wrapped == 0 || m->shape.wrapped == 0);

        if (same_line && s->wrapped)
            return;
        *s = same_line ? m->shape : varying;
        m->changed = true;
    }
}

static void note_mark(uint32_t reg, void *marks)
{
    ((uint8_t *)marks)[reg] = 1;
}

static struct shape guarded(const struct jit_plan *p, const struct ptx_insn *in, struct shape s)
{
    if (in->guard == PTX_NO_REG || p->shapes[in->guard].kind == SHAPE_UNIFORM)
        return s;
    return p->shapes[in->guard].kind == SHAPE_NONE ? p->shapes[in->guard] : varying;
}

/* The result's own width may be another than the register's. */
static struct shape fitted(const struct jit_plan *p, const struct ptx_insn *in, struct shape s)
{
    const struct ptx_operand *to = &in->operands[0];
    unsigned                  bytes = ptx_type_bytes((enum ptx_type)in->type);

    bytes = in->part == PTX_WIDE ? 2 * bytes : bytes;
    bytes = in->opcode == PTX_OP_CVTA ? 8 : bytes;
    return s.kind == SHAPE_LINEAR && (to->kind != PTX_REG || p->function->registers[to->reg].bytes != bytes) ? varying : s;
}

static bool spread_shapes(struct jit_plan *p)
{
    struct meeting m = {.plan = p};

    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        for (uint32_t i = p->code->blocks[b].insn_first; i < p->code->blocks[b].insn_first + p->code->blocks[b].insn_count; i++) {
            const struct ptx_insn *in = &p->function->insns[i];

            m.shape = p->native[b] && in->opcode != PTX_OP_ST && in->opcode != PTX_OP_BRA &&
                              native_way(p->module, p->function, in) == NATIVE_EMITTED
                          ? fitted(p, in, guarded(p, in, plan_result(p, in)))
                          : varying;
            plan_each_result(in, meet, &m);
        }
    }
    return m.changed;
}

/* Marks what is reached from `from` through compiled blocks below `below`, and the blocks that this leads to: compiled ones at or above it, and
 * those that are not compiled. */
static void walk(const struct jit_plan *p, uint32_t from, uint32_t below, uint8_t *seen, uint8_t *exits)
{
    uint32_t stack[NATIVE_BLOCKS_MAX], count = 0, next[2];

    if (from >= below || !p->native[from]) {
        exits[from] = 1;
        return;
    }
    seen[from] = 1;
    stack[count++] = from;
    while (count) {
        uint32_t b = stack[--count];

        for (unsigned n = plan_successors(p->code, b, next); n-- > 0;) {
            if (next[n] >= below || !p->native[next[n]])
                exits[next[n]] = 1;
            else if (!seen[next[n]]) {
                seen[next[n]] = 1;
                stack[count++] = next[n];
            }
        }
    }
}

struct parting {
    struct jit_plan *plan;
    uint32_t         out;
    bool             changed;
};

static void make_parted(uint32_t reg, void *context)
{
    struct parting  *w = context;
    struct jit_plan *p = w->plan;

    if (!plan_is_live(p, w->out, reg) || p->shapes[reg].kind == SHAPE_VARYING)
        return;
    p->shapes[reg] = varying;
    w->changed = true;
}

/* Lanes leave compiled code at `out` with what their registers hold; those that go on at `in` may change theirs, and all may meet again. */
static bool part_ways(struct jit_plan *p, uint32_t out, uint32_t in)
{
    uint8_t        seen[NATIVE_BLOCKS_MAX] = {0}, exits[NATIVE_BLOCKS_MAX] = {0};
    struct parting w = {p, out, false};

    if (p->native[out] || p->passes[out] == PASSES_RETURN || !p->native[in])
        return false;
    walk(p, in, p->code->blocks_count, seen, exits);
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        if (seen[b])
            plan_block_results(p, b, make_parted, &w);
    }
    return w.changed;
}

/* While the blocks of `seen` run, other lanes stand before block `at`. */
static bool note_waiting(struct jit_plan *p, const uint8_t *seen, uint32_t at)
{
    bool changed = false;

    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        if (!seen[b])
            continue;
        changed |= plan_add(p, p->waited + b * p->words, p->live + at * p->words, NULL) || !p->divergent[b];
        p->divergent[b] = 1;
    }
    return changed;
}

/* Lanes that came by `low` or `high`, from a branch that parted them. */
struct groups {
    uint32_t low, high;
    uint32_t places[PLACES_MAX]; /* where one of them may stand while the other runs */
    unsigned count;
    bool     too_many;
};

static void add_place(struct groups *g, uint32_t block)
{
    for (unsigned i = 0; i < g->count; i++) {
        if (g->places[i] == block)
            return;
    }
    if (g->count == PLACES_MAX)
        g->too_many = true;
    else
        g->places[g->count++] = block;
}

/* All compiled blocks from both ways on, whatever lies between. */
static void reach_all(const struct jit_plan *p, const struct groups *g, uint8_t *seen)
{
    uint8_t exits[NATIVE_BLOCKS_MAX] = {0};

    walk(p, g->low, p->code->blocks_count, seen, exits);
    walk(p, g->high, p->code->blocks_count, seen, exits);
}

/* Some lanes have come out of compiled code before `at`, and others are inside: all may meet again there. */
static bool note_left(struct jit_plan *p, const struct groups *g, uint32_t at)
{
    uint8_t inside[NATIVE_BLOCKS_MAX] = {0};

    if (p->passes[at] == PASSES_RETURN)
        return false;
    reach_all(p, g, inside);
    return note_waiting(p, inside, at);
}

/* One group runs from block `from` on, as long as it stays below block `at`, where the other one waits. */
static bool run_below(struct jit_plan *p, struct groups *g, uint32_t from, uint32_t at)
{
    uint8_t seen[NATIVE_BLOCKS_MAX] = {0}, exits[NATIVE_BLOCKS_MAX] = {0};
    bool    changed;

    walk(p, from, at, seen, exits);
    changed = note_waiting(p, seen, at);
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        if (exits[b] && p->native[b])
            add_place(g, b);
        else if (exits[b])
            changed |= note_left(p, g, b);
    }
    return changed;
}

/* Nothing is known about where they wait. */
static bool give_up(struct jit_plan *p, const struct groups *g)
{
    uint8_t seen[NATIVE_BLOCKS_MAX] = {0};
    bool    changed = false;

    reach_all(p, g, seen);
    for (uint32_t at = 0; at < p->code->blocks_count; at++)
        changed |= seen[at] && note_waiting(p, seen, at);
    return changed;
}

/* The lower way runs first; lanes of the upper one wait until the lower ones have come there, or beyond. Then these wait in turn. */
static bool mark_divergence(struct jit_plan *p, uint32_t block)
{
    uint32_t      next[2];
    struct groups g = {.count = 0};
    bool          changed = false;

    if (plan_successors(p->code, block, next) != 2 || next[0] == next[1])
        return false;
    if (!p->native[next[0]] || !p->native[next[1]]) {
        changed = part_ways(p, next[0], next[1]);
        return part_ways(p, next[1], next[0]) || changed;
    }
    g.low = next[0] < next[1] ? next[0] : next[1];
    g.high = next[0] < next[1] ? next[1] : next[0];
    add_place(&g, g.high);
    changed = run_below(p, &g, g.low, g.high);
    for (unsigned known = 0; known < g.count && !g.too_many;) {
        known = g.count;
        for (unsigned i = 0; i < known; i++) {
            for (unsigned k = 0; k < known; k++)
                changed |= g.places[i] < g.places[k] && run_below(p, &g, g.places[i], g.places[k]);
        }
    }
    return g.too_many ? give_up(p, &g) || changed : changed;
}

struct standing {
    struct jit_plan *plan;
    uint32_t         block;
    bool             changed;
};

static void make_varying(uint32_t reg, void *context)
{
    struct standing *s = context;
    struct jit_plan *p = s->plan;

    if (p->local[reg] || p->shapes[reg].kind == SHAPE_VARYING || !(p->waited[s->block * p->words + reg / 64] >> (reg % 64) & 1))
        return;
    p->shapes[reg] = varying;
    s->changed = true;
}

/* One number cannot stand for lanes that are at different places. */
static bool spread_divergence(struct jit_plan *p)
{
    struct standing s = {p, 0, false};
    bool            changed = false;

    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        const struct ptx_insn *last = p->native[b] && p->code->blocks[b].end == END_BRANCH ? p->code->blocks[b].last.insn : NULL;

        if (last && last->guard != PTX_NO_REG && p->shapes[last->guard].kind == SHAPE_VARYING)
            changed |= mark_divergence(p, b);
    }
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        s.block = b;
        if (p->divergent[b])
            plan_block_results(p, b, make_varying, &s);
    }
    return changed || s.changed;
}

static void settle_unwritten(struct jit_plan *p)
{
    for (uint32_t r = 0; r < p->function->registers_count; r++) {
        if (p->shapes[r].kind == SHAPE_NONE)
            p->shapes[r] = varying;
    }
}

void plan_shapes_together(struct jit_plan *p)
{
    while (spread_shapes(p)) {
    }
    settle_unwritten(p);
    while (spread_shapes(p)) {
    }
}

static void find_shapes(struct jit_plan *p)
{
    while (spread_shapes(p) | spread_divergence(p)) {
    }
    settle_unwritten(p);
    while (spread_shapes(p) | spread_divergence(p)) {
    }
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        for (uint32_t i = p->code->blocks[b].insn_first; p->native[b] && i < p->code->blocks[b].insn_first + p->code->blocks[b].insn_count;
             i++) {
            plan_each_result(&p->function->insns[i], note_mark, p->dirty);
            plan_each_source(p, &p->function->insns[i], note_mark, p->read);
        }
    }
}

static enum status refuse(struct problem *why, const char *reason)
{
    return problem_set(why, STATUS_NOT_IMPLEMENTED, "%s", reason);
}

enum status plan_make(struct jit_plan *p, const struct ptx_module *m, const struct ptx_function *f, const struct code *c, unsigned lanes,
                      bool rows, bool whole, struct problem *why)
{
    size_t blocks = c->blocks_count, registers = (size_t)f->registers_count + 1;

    *p = (struct jit_plan){.module = m, .function = f, .code = c, .lanes = lanes, .rows = rows, .words = registers / 64 + 1};
    if (f->cluster[0] * f->cluster[1] * f->cluster[2] > 1)
        return refuse(why, "blocks of a cluster access each other's shared memory");
    if (blocks > NATIVE_BLOCKS_MAX)
        return refuse(why, "the kernel has more than 256 basic blocks");
    if (f->insns_count > INSNS_MAX)
        return refuse(why, "the kernel has more than 1000 instructions");
    p->native = calloc(blocks, 1);
    p->entry = calloc(blocks, 1);
    p->passes = calloc(blocks, 1);
    p->divergent = calloc(blocks, 1);
    p->shapes = calloc(registers, sizeof *p->shapes);
    p->local = calloc(registers, 1);
    p->dirty = calloc(registers, 1);
    p->read = calloc(registers, 1);
    p->live = calloc(blocks * p->words, sizeof *p->live);
    p->waited = calloc(blocks * p->words, sizeof *p->waited);
    p->changed = calloc(blocks * p->words, sizeof *p->changed);
    p->changed_later = calloc(blocks * p->words, sizeof *p->changed_later);
    p->needed = calloc(blocks * p->words, sizeof *p->needed);
    p->left_alive = calloc(p->words, sizeof *p->left_alive);
    p->held = calloc(p->words, sizeof *p->held);
    if (!p->native || !p->entry || !p->passes || !p->divergent || !p->shapes || !p->local || !p->dirty || !p->read || !p->live ||
        !p->waited || !p->changed || !p->changed_later || !p->needed || !p->left_alive || !p->held)
        return STATUS_OUT_OF_MEMORY;
    find_native(p);
    if (whole && p->first_refused)
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "`%.*s`, PTX line %u, is not compiled",
                           SPAN_ARG(span_first(p->first_refused->text, 64)), p->first_refused->line);
    if (!find_live(p) || !find_local(p))
        return STATUS_OUT_OF_MEMORY;
    find_shapes(p);
    plan_find_changed(p);
    plan_find_held(p);
    if (plan_find_needed(p))
        return STATUS_OUT_OF_MEMORY;
    return p->insns_native ? STATUS_OK : refuse(why, "no part of the kernel can be compiled");
}

void plan_finish(struct jit_plan *p)
{
    free(p->native);
    free(p->entry);
    free(p->passes);
    free(p->divergent);
    free(p->shapes);
    free(p->local);
    free(p->dirty);
    free(p->read);
    free(p->live);
    free(p->waited);
    free(p->changed);
    free(p->changed_later);
    free(p->needed);
    free(p->left_alive);
    free(p->held);
}
