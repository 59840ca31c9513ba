/* Strips: several chunks as one wide chunk, whose blocks are made for all lanes together. Before a block begins, it is known that its accesses pass
 * and which way its lanes go. Where they do not go on together, the strip is taken back, if nothing has happened yet, and its chunks run
 * one by one; or its lanes leave compiled code before that block.
 * Where only lines and what is the same for all lanes is kept from block to block, several strips are a band: all of them go through a block, one
 * after the other (device/cpu/jit/emit/band.c), and then through the next. Lanes before and behind a stretch of it may return first. Of one that is taken back the first strip is tried alone. */
#include "device/cpu/jit/emit/band.h"

#include <stddef.h>
#include <stdlib.h>

struct strip_emission {
    const struct jit_plan *plan; /* these are exchanged for those of chunks */
    unsigned               lanes;
    llvm_value             every;
    llvm_value            *slot, *turn;
    llvm_block            *blocks, *back; /* [blocks_count] of compiled ones; where one ends before such a block */
    llvm_block             again;         /* where it begins, with as many strips as band_slot says */
    struct band            band;
};

static bool allocate(struct strip_emission *s, const struct jit_plan *p)
{
    size_t registers = (size_t)p->function->registers_count + 1;

    s->slot = calloc(registers, sizeof(llvm_value));
    s->turn = calloc(registers, sizeof(llvm_value));
    s->blocks = calloc(p->code->blocks_count, sizeof(llvm_block));
    s->back = calloc(p->code->blocks_count, sizeof(llvm_block));
    return s->slot && s->turn && s->blocks && s->back && band_make(&s->band, p);
}

void strip_emission_free(struct strip_emission *s)
{
    if (s) {
        free((void *)s->slot);
        free((void *)s->turn);
        free((void *)s->blocks);
        free((void *)s->back);
        band_finish(&s->band);
    }
    free(s);
}

/* To the strip's, and back. */
static void exchange(struct emitter *e)
{
    struct strip_emission *s = e->strip_made, now = *s;

    s->plan = e->plan;
    s->lanes = e->lanes;
    s->every = e->every;
    s->slot = e->slot;
    s->turn = e->turn;
    e->plan = now.plan;
    e->lanes = now.lanes;
    e->every = now.every;
    e->slot = now.slot;
    e->turn = now.turn;
    e->in_strip = !e->in_strip;
}

void begin_strip_slots(struct emitter *e)
{
    struct strip_emission *s = e->strip ? calloc(1, sizeof *s) : NULL;
    llvm_value             elements[STRIP_LANES_MAX];

    e->strip_made = s;
    if (!s || !allocate(s, e->plan)) {
        e->strip = NULL;
        return;
    }
    s->plan = &e->strip->plan;
    s->lanes = s->plan->lanes;
    for (unsigned i = 0; i < s->lanes; i++)
        elements[i] = number(e, 32, i);
    s->every = e->ll->LLVMConstVector(elements, s->lanes);
    exchange(e);
    make_register_slots(e);
    exchange(e);
    if (e->strip->bands)
        e->band_slot = e->ll->LLVMBuildAlloca(e->b, e->i32, "band");
    if (e->strip->parts) {
        e->low_slot = e->ll->LLVMBuildAlloca(e->b, e->i32, "low");
        e->high_slot = e->ll->LLVMBuildAlloca(e->b, e->i32, "high");
    }
}

/* ---- its blocks ---- */

static llvm_value strips_now(struct emitter *e)
{
    return e->band_slot ? load_slot(e, e->i32, e->band_slot) : number(e, 32, 1);
}

/* The first strip alone, then the first chunk. */
static void take_back(struct emitter *e)
{
    llvm_block alone;

    if (!e->band_slot) {
        e->ll->LLVMBuildBr(e->b, e->narrow);
        return;
    }
    alone = new_block(e, "alone");
    e->ll->LLVMBuildCondBr(e->b, icmp(e, LLVM_EQ, strips_now(e), number(e, 32, 1)), e->narrow, alone);
    go_on_in(e, alone);
    e->ll->LLVMBuildStore(e->b, number(e, 32, 1), e->band_slot);
    e->ll->LLVMBuildBr(e->b, e->strip_made->again);
}

/* Before `block`, in the chunk's or the strip's start. */
static void end_before(struct emitter *e, uint32_t block)
{
    if (!e->strip->late[block]) {
        take_back(e);
        return;
    }
    if (e->plan->across) { /* the arrays belong to one block of threads */
        e->unfit = true;
        e->ll->LLVMBuildUnreachable(e->b);
        return;
    }
    e->block = block;
    begin_each_strip(e, &e->strip_made->band);
    save_registers(e, block, e->mask);
    end_each_strip(e, &e->strip_made->band);
    set_member(e, offsetof(struct native_call, strip_left), strips_now(e), false);
    set_member(e, offsetof(struct native_call, strip_block), number(e, 32, block), false);
    stop_at(e, e->chunk_lane);
}

static llvm_block back_of(struct emitter *e, uint32_t block)
{
    struct strip_emission *s = e->strip_made;

    if (!s->back[block])
        s->back[block] = new_block(e, "back");
    return s->back[block];
}

/* The chunk so many turns on. */
static llvm_value turns_on(struct emitter *e, llvm_value count)
{
    return binary(e, LLVM_ADD, e->turns.inner, binary(e, LLVM_MUL, e->turns.inner_step, count));
}

static llvm_value chunks_now(struct emitter *e)
{
    return binary(e, LLVM_MUL, strips_now(e), number(e, 32, STRIP_CHUNKS));
}

/* The call ends behind the strip's last chunk, as if that had returned by itself. */
static void end_behind(struct emitter *e)
{
    llvm_value last = turns_on(e, binary(e, LLVM_SUB, chunks_now(e), number(e, 32, 1)));

    if (e->plan->across)
        set_member(e, offsetof(struct native_call, ctaid[0]), last, false);
    set_member(e, offsetof(struct native_call, mixed), number(e, 32, 0), false);
    set_member(e, offsetof(struct native_call, last), number(e, 32, e->plan->returns), false);
    stop_at(e, e->plan->across ? e->chunk_lane : last);
}

/* On to the next chunk if there is one with all its lanes. */
static void return_all(struct emitter *e)
{
    const struct chunk_turns *t = &e->turns;
    llvm_block                within = new_block(e, "within"), beyond = new_block(e, "beyond");
    llvm_block                outer = new_block(e, "outer"), end = new_block(e, "end");
    llvm_value                next = turns_on(e, chunks_now(e)), next_outer = binary(e, LLVM_ADD, t->outer, t->outer_step);
    llvm_value                same = number(e, 32, e->plan->returns), all = e->strip_all, more;

    e->ll->LLVMBuildCondBr(e->b, likely(e, icmp(e, LLVM_ULT, next, t->inner_full_end)), within, beyond);
    go_on_in(e, within);
    begin_chunk(e, next, t->outer, all, same);
    go_on_in(e, beyond);
    more = binary(e, LLVM_AND, icmp(e, LLVM_UGE, next, t->inner_end), icmp(e, LLVM_ULT, next_outer, t->outer_end));
    e->ll->LLVMBuildCondBr(e->b, more, outer, end);
    go_on_in(e, outer);
    begin_chunk(e, t->inner_first, next_outer, all, same);
    go_on_in(e, end);
    end_behind(e);
}

static void go_on(struct emitter *e, uint32_t to)
{
    llvm_block on;
    llvm_value left;

    if (to == e->plan->returns) {
        return_all(e);
        return;
    }
    if (!e->plan->native[to]) {
        e->unfit = true;
        e->ll->LLVMBuildUnreachable(e->b);
        return;
    }
    if (to <= e->block) {
        on = new_block(e, "on");
        left = binary(e, LLVM_SUB, load_slot(e, e->i32, e->budget_slot), number(e, 32, 1));
        e->ll->LLVMBuildStore(e->b, left, e->budget_slot);
        e->ll->LLVMBuildCondBr(e->b, likely(e, icmp(e, LLVM_SGT, left, number(e, 32, 0))), on, back_of(e, to));
        go_on_in(e, on);
    }
    e->ll->LLVMBuildBr(e->b, e->strip_made->blocks[to]);
}

static void go_either_way(struct emitter *e, const struct code_block *k, const struct decision *way)
{
    llvm_block taken = new_block(e, "taken"), next = new_block(e, "next");

    if (k->target <= e->block)
        e->ll->LLVMBuildCondBr(e->b, likely(e, way->all), taken, next);
    else
        e->ll->LLVMBuildCondBr(e->b, likely(e, way->none), next, taken);
    go_on_in(e, taken);
    go_on(e, k->target);
    go_on_in(e, next);
    go_on(e, e->block + 1);
}

/* Those that have not returned go on. */
static void go_on_in_part(struct emitter *e, uint32_t to, struct stretch part)
{
    llvm_block     some = new_block(e, "some"), none = new_block(e, "none");
    struct stretch left = common_stretch(e, lanes_left(e), part);

    e->ll->LLVMBuildCondBr(e->b, likely(e, icmp(e, LLVM_ULT, left.low, left.high)), some, none);
    go_on_in(e, none);
    return_all(e);
    go_on_in(e, some);
    e->ll->LLVMBuildStore(e->b, left.low, e->low_slot);
    e->ll->LLVMBuildStore(e->b, left.high, e->high_slot);
    go_on(e, to);
}

static void emit_strip_block(struct emitter *e, uint32_t block)
{
    const struct code_block *k = block_of(e, block);
    struct decision          way;
    struct stretch           left;
    llvm_block               sure;
    llvm_value               ok;

    go_on_in(e, e->strip_made->blocks[block]);
    e->block = block;
    ok = check_strip(e, &way);
    if (ok && !e->unfit) {
        sure = new_block(e, "sure");
        e->ll->LLVMBuildCondBr(e->b, likely(e, ok), sure, back_of(e, block));
        go_on_in(e, sure);
    }
    if (is_accessed(e, block)) {
        begin_each_strip(e, &e->strip_made->band);
        emit_strip_insns(e, &e->strip_made->band);
        end_each_strip(e, &e->strip_made->band);
    } else {
        emit_insns(e);
    }
    if (way.all && !e->unfit && staying_lanes(e, k, &way, &left))
        go_on_in_part(e, k->target == e->plan->returns ? block + 1 : k->target, left);
    else if (way.all && !e->unfit)
        go_either_way(e, k, &way);
    else
        go_on(e, k->end == END_BRANCH ? k->target : block + 1);
}

/* ---- where it begins ---- */

static llvm_value may_begin(struct emitter *e)
{
    const struct chunk_turns *t = &e->turns;
    llvm_value                ok = icmp(e, LLVM_ULT, turns_on(e, number(e, 32, STRIP_CHUNKS - 1)), t->inner_full_end), same = e->chunk_same;

    ok = binary(e, LLVM_AND, ok, icmp(e, LLVM_EQ, e->chunk_lanes, all_lanes(e)));
    ok = binary(
        e, LLVM_AND, ok,
        binary(e, LLVM_OR, icmp(e, LLVM_EQ, same, number(e, 32, NO_BLOCK)), icmp(e, LLVM_EQ, same, number(e, 32, e->plan->returns))));
    ok = binary(e, LLVM_AND, ok, icmp(e, LLVM_EQ, binary(e, LLVM_AND, e->chunk_lane, e->strip_align), number(e, 32, 0)));
    return binary(e, LLVM_AND, ok, e->strips_wanted);
}

static void forget_registers(struct emitter *e)
{
    const struct jit_plan *p = e->plan;

    for (uint32_t r = 0; r < p->function->registers_count; r++) {
        unsigned  bytes = p->function->registers[r].bytes;
        llvm_type type = int_type(e, bytes == 1 ? 1 : 8 * bytes);

        if (e->slot[r])
            e->ll->LLVMBuildStore(e->b, e->ll->LLVMGetUndef(p->shapes[r].kind == SHAPE_VARYING ? vector_of(e, type) : type), e->slot[r]);
    }
}

/* As many strips as the row has; of rows of a block, one. */
static llvm_value most_strips(struct emitter *e)
{
    const struct chunk_turns *t = &e->turns;
    llvm_value                lanes = number(e, 32, e->plan->across ? STRIP_CHUNKS : e->lanes), most = number(e, 32, BAND_STRIPS_MAX), n;

    n = binary(e, LLVM_UDIV, binary(e, LLVM_SUB, e->plan->across ? t->inner_end : parameter(e, 4), t->inner), lanes);
    n = choose(e, icmp(e, LLVM_ULT, n, most), n, most);
    return choose(e, icmp(e, LLVM_EQ, e->strip_align, number(e, 32, 0)), n, number(e, 32, 1));
}

/* From the head of a chunk on: `start`, where several may run together, or NULL. */
static void leave_head(struct emitter *e, llvm_block start)
{
    go_on_in(e, e->head);
    if (start)
        e->ll->LLVMBuildCondBr(e->b, likely(e, may_begin(e)), start, e->narrow);
    else
        e->ll->LLVMBuildBr(e->b, e->narrow);
}

/* For the handler of faults. */
static void note_strip(struct emitter *e)
{
    set_member(e, offsetof(struct native_call, lanes), number(e, 32, NATIVE_STRIP), true);
    set_member(e, offsetof(struct native_call, strip_now), number(e, 32, 0), true);
    set_member(e, offsetof(struct native_call, strip_first), number(e, 32, 0), true);
    set_member(e, offsetof(struct native_call, strip_end), number(e, 32, e->lanes), true);
}

/* Between its lanes' taking the place of the chunk's, and the chunk's return. */
static void emit_blocks(struct emitter *e, llvm_block start)
{
    const struct jit_plan *p = e->plan;
    llvm_block            *blocks = e->strip_made->blocks, *back = e->strip_made->back;

    e->full = true;
    e->mask = e->ll->LLVMConstAllOnes(vector_of(e, e->i1));
    for (uint32_t b = 0; b < p->code->blocks_count; b++)
        blocks[b] = p->native[b] ? new_block(e, "strip_block") : NULL;
    e->strip_made->again = new_block(e, "again");
    go_on_in(e, start);
    if (e->band_slot)
        e->ll->LLVMBuildStore(e->b, most_strips(e), e->band_slot);
    e->ll->LLVMBuildBr(e->b, e->strip_made->again);
    go_on_in(e, e->strip_made->again);
    forget_registers(e);
    if (e->low_slot) {
        e->ll->LLVMBuildStore(e->b, number(e, 32, 0), e->low_slot);
        e->ll->LLVMBuildStore(e->b, lanes_together(e, 32), e->high_slot);
    }
    note_strip(e);
    e->ll->LLVMBuildStore(e->b, member(e, offsetof(struct native_call, budget), 32), e->budget_slot);
    e->ll->LLVMBuildBr(e->b, blocks[0]);
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        if (blocks[b])
            emit_strip_block(e, b);
    }
    for (uint32_t b = 0; b < p->code->blocks_count; b++) {
        if (!back[b])
            continue;
        go_on_in(e, back[b]);
        end_before(e, b);
    }
    e->full = false;
}

bool emit_strip(struct emitter *e)
{
    llvm_block start = NULL;
    bool       broken = e->broken;

    if (e->strip) {
        start = new_block(e, "strip");
        e->strip_all = all_lanes(e);
        exchange(e);
        emit_blocks(e, start);
        exchange(e);
        e->unfit |= e->broken && !broken; /* where the strip's shapes and its code disagree, there are the chunks */
        e->broken = broken;
    }
    leave_head(e, e->unfit ? NULL : start);
    return start && !e->unfit;
}
