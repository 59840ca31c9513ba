/* Block-wide barriers: plain, named with a thread count, and reducing. */
#include "device/cpu/interp/cluster.h"
#include "device/cpu/interp/ops/ops.h"

/* The second operand of bar is a thread count; without it all live lanes are expected. */
static uint32_t barrier_expected(struct block_run *r, const struct op *o, uint32_t lane)
{
    struct lanes *l = &r->lanes;

    return o->width ? LANE(uint32_t, o->b)[lane] : 0;
}

static uint32_t barrier_needed(const struct block_run *r, const struct barrier *b)
{
    return b->expected ? b->expected : r->live_count;
}

static void give_result(struct lanes *l, const struct op *o, uint32_t lane, uint32_t ones, uint32_t total)
{
    switch ((enum bar_mode)o->mode) {
    case BAR_POPC:
        LANE(uint32_t, o->d)[lane] = ones;
        break;
    case BAR_AND:
        LANE(uint8_t, o->d)[lane] = ones == total;
        break;
    case BAR_OR:
        LANE(uint8_t, o->d)[lane] = ones != 0;
        break;
    case BAR_SYNC:
    case BAR_ARRIVE:
        break;
    }
}

/* The reduction covers all that arrived; each waiting lane gets it in its own activation's registers. */
static void open_barrier(struct block_run *r, uint32_t id)
{
    uint32_t      ones = 0, total = 0;
    struct lanes *l = &r->lanes;
    uint8_t      *frame = l->frame;

    for (uint32_t i = 0; i < l->count; i++) {
        if (r->waits[i] == id) {
            ones += r->votes[i];
            total++;
        }
    }
    for (uint32_t i = 0; i < l->count; i++) {
        struct activation *a;
        uint32_t           at;

        if (r->waits[i] != id)
            continue;
        a = &r->activations[r->wait_depth[i]];
        at = r->resume[i];
        l->frame = a->frame;
        give_result(l, &a->code->blocks[at - 1].last, i, ones, total);
        r->waits[i] = NO_BARRIER;
        if (at < a->code->blocks_count)
            pending_add_lane(a, at, i);
    }
    l->frame = frame;
    r->barriers[id] = (struct barrier){0};
    r->barriers_used &= ~(1u << id);
}

static bool uniform_id(struct block_run *r, const struct activation *a, const struct op *o, uint32_t *id)
{
    struct lanes   *l = &r->lanes;
    const uint32_t *ids = LANE(uint32_t, o->a);
    uint32_t        others = 0;

    *id = ids[a->current.low];
    for (uint32_t i = a->current.low; i < a->current.high; i++)
        others |= (ids[i] ^ *id) & (0 - (uint32_t)a->current.m[i]);
    if (!others && *id < CLUSTER_BARRIER)
        return true;
    for (uint32_t i = a->current.low; i < a->current.high; i++) {
        if (!a->current.m[i])
            continue;
        if (ids[i] >= CLUSTER_BARRIER)
            block_fault(l, FAULT_TRAP, i, "barrier number %u is out of range", ids[i]);
        if (ids[i] != *id)
            return false;
    }
    return true;
}

/* All live lanes came at once: nothing is stored. */
static bool all_at_once(struct block_run *r, struct activation *a, const struct op *o)
{
    struct lanes  *l = &r->lanes;
    const uint8_t *p = o->mode >= BAR_POPC ? LANE(uint8_t, o->c) : NULL;
    uint32_t       ones = 0;

    for (uint32_t i = a->current.low; p && i < a->current.high; i++)
        ones += a->current.m[i] & (p[i] ^ o->immediate);
    for (uint32_t i = a->current.low; p && i < a->current.high; i++) {
        if (a->current.m[i])
            give_result(l, o, i, ones, a->current.count);
    }
    return true;
}

static void arrive_at_barrier(struct block_run *r, const struct op *o, uint32_t lane, uint32_t resume)
{
    struct lanes   *l = &r->lanes;
    uint32_t        id = LANE(uint32_t, o->a)[lane];
    struct barrier *b = &r->barriers[id];
    uint32_t        count = barrier_expected(r, o, lane);

    if (b->arrived && b->expected != count)
        block_fault(l, FAULT_TRAP, lane, "threads expect different counts at barrier %u", id);
    if (count > l->count || (count == 0 && o->width))
        block_fault(l, FAULT_TRAP, lane, "barrier %u expects %u of %u threads", id, count, l->count);
    b->expected = count;
    b->line = op_line(o);
    b->arrived++;
    r->barriers_used |= 1u << id;
    if (o->mode == BAR_ARRIVE) {
        pending_add_lane(activation_now(r), resume, lane);
        return;
    }
    r->waits[lane] = (uint8_t)id;
    r->wait_depth[lane] = (uint8_t)(r->depth - 1);
    r->resume[lane] = resume;
    r->votes[lane] = o->mode >= BAR_POPC ? LANE(uint8_t, o->c)[lane] ^ (uint8_t)o->immediate : 0;
}

bool barrier_arrive(struct block_run *r, struct activation *a, const struct op *o, uint32_t resume)
{
    uint32_t id;

    if (o->insn->scope == PTX_SCOPE_CLUSTER) {
        cluster_wait(r, a, o, resume);
        return false;
    }
    if (uniform_id(r, a, o, &id) && !o->width && o->mode != BAR_ARRIVE && a->current.count == r->live_count && !r->barriers[id].arrived)
        return all_at_once(r, a, o);
    for (uint32_t i = a->current.low; i < a->current.high; i++) {
        if (a->current.m[i])
            arrive_at_barrier(r, o, i, resume);
    }
    barriers_settle(r);
    return false;
}

bool barriers_settle(struct block_run *r)
{
    bool opened = false;

    if (r->barriers_used >> CLUSTER_BARRIER)
        opened = cluster_open(r);
    for (uint32_t id = 0; id < CLUSTER_BARRIER && r->barriers_used >> id; id++) {
        if (r->barriers[id].arrived && r->barriers[id].arrived >= barrier_needed(r, &r->barriers[id])) {
            open_barrier(r, id);
            opened = true;
        }
    }
    return opened;
}

bool activation_waits(const struct block_run *r)
{
    for (uint32_t i = 0; r->barriers_used && i < r->lanes.count; i++) {
        if (r->waits[i] != NO_BARRIER && r->wait_depth[i] == r->depth - 1)
            return true;
    }
    return false;
}

void barriers_stuck(struct block_run *r)
{
    for (uint32_t id = 0; id < BARRIERS; id++) {
        const struct barrier *b = &r->barriers[id];
        if (b->arrived && id == CLUSTER_BARRIER)
            block_fault(&r->lanes, FAULT_TRAP, -1, "the cluster's barrier at PTX line %u was not reached by all threads: %u of %u arrived",
                        b->line, r->arrived, r->live_count);
        if (b->arrived && !b->line) /* of the device's own function */
            block_fault(&r->lanes, FAULT_TRAP, -1, "cudaCGSynchronize was not called by all threads of a block: %u of %u", b->arrived,
                        barrier_needed(r, b));
        if (b->arrived)
            block_fault(&r->lanes, FAULT_TRAP, -1, "barrier %u at PTX line %u was not reached by all threads: arrived %u of %u", id,
                        b->line, b->arrived, barrier_needed(r, b));
    }
    block_fault(&r->lanes, FAULT_TRAP, -1, "threads wait, but not at a barrier");
}
