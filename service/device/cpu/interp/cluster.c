/* The barrier of a cluster, and the shared memory of its other blocks. Threads arrive at the barrier and wait at it in two steps; in
 * between they may do other things. */
#include "device/cpu/interp/cluster.h"

#include <sched.h>

#include "base/deadline.h"
#include "device/cpu/interp/decode/decode.h"

/* A block that waits for others yields its core so often before it sleeps, and looks at its deadline after so long a sleep. */
enum { YIELDS = 64, NAP_MS = 5 };
/* A lane's arrival: none, or the phase that it arrived in, of which the lowest bit is enough: no lane is two phases behind. */
enum { NOT_ARRIVED = 0, ARRIVED_EVEN = 1 };

bool cluster_init(struct cluster *c, uint32_t blocks)
{
    pthread_condattr_t monotonic;

    *c = (struct cluster){.blocks = blocks};
    if (pthread_condattr_init(&monotonic) != 0)
        return false;
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return true;
}

void cluster_finish(struct cluster *c)
{
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
}

void cluster_begin(struct cluster *c)
{
    atomic_store(&c->phase, 0);
    c->running = c->blocks;
    c->arrived = 0;
    for (uint32_t i = 0; i < c->blocks; i++)
        c->members[i]->phase = 0;
}

/* With the lock held. */
static void end_phase(struct cluster *c)
{
    if (c->arrived && c->arrived == c->running) {
        c->arrived = 0;
        atomic_fetch_add(&c->phase, 1);
    }
    pthread_cond_broadcast(&c->changed);
}

void cluster_leave(struct block_run *r)
{
    struct cluster *c = r->cluster;

    pthread_mutex_lock(&c->lock);
    c->running--;
    c->arrived -= r->phase != atomic_load(&c->phase); /* it is one of them, and does not count any more */
    end_phase(c);
    pthread_mutex_unlock(&c->lock);
}

static uint8_t arrival_of(const struct block_run *r)
{
    return (uint8_t)(ARRIVED_EVEN + (r->phase & 1));
}

/* The phase is over for the block when its last thread has arrived, and for the cluster when its last block has. */
static void settle_arrivals(struct block_run *r)
{
    struct cluster *c = r->cluster;

    if (!r->arrived || r->arrived != r->live_count)
        return;
    r->arrived = 0;
    r->phase++;
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->arrived++;
    end_phase(c);
    pthread_mutex_unlock(&c->lock);
}

static bool phase_is_over(const struct block_run *r)
{
    return !r->cluster || atomic_load(&r->cluster->phase) == r->phase;
}

void cluster_arrive(struct lanes *l, const struct op *o)
{
    struct block_run *r = l->run;

    (void)o;
    r->met = true;
    LANES_EACH(if (r->arrivals[i] != NOT_ARRIVED) block_fault(l, FAULT_TRAP, i, "a second arrival at the cluster's barrier without a wait");
               r->arrivals[i] = arrival_of(r); r->arrived++);
    settle_arrivals(r);
}

void cluster_forget(struct block_run *r, const struct mask *m)
{
    for (uint32_t i = m->low; r->met && i < m->high; i++) {
        if (!m->m[i])
            continue;
        r->arrived -= r->arrivals[i] == arrival_of(r);
        r->arrivals[i] = NOT_ARRIVED;
    }
    settle_arrivals(r);
}

void cluster_wait(struct block_run *r, struct activation *a, const struct op *o, uint32_t resume)
{
    struct barrier *b = &r->barriers[CLUSTER_BARRIER];

    for (uint32_t i = a->current.low; i < a->current.high; i++) {
        if (!a->current.m[i])
            continue;
        if (r->arrivals[i] == NOT_ARRIVED)
            block_fault(&r->lanes, FAULT_TRAP, i, "a wait at the cluster's barrier without an arrival");
        r->waits[i] = CLUSTER_BARRIER;
        r->wait_depth[i] = (uint8_t)(r->depth - 1);
        r->resume[i] = resume;
        b->arrived++;
    }
    b->line = op_line(o);
    r->barriers_used |= 1u << CLUSTER_BARRIER;
    barriers_settle(r);
}

bool cluster_open(struct block_run *r)
{
    struct barrier *b = &r->barriers[CLUSTER_BARRIER];
    bool            over = phase_is_over(r), opened = false;

    for (uint32_t i = 0; over && i < r->lanes.count; i++) {
        struct activation *a = &r->activations[r->wait_depth[i]];

        if (r->waits[i] != CLUSTER_BARRIER || r->arrivals[i] == arrival_of(r))
            continue;
        r->waits[i] = NO_BARRIER;
        r->arrivals[i] = NOT_ARRIVED;
        b->arrived--;
        opened = true;
        if (r->resume[i] < a->code->blocks_count)
            pending_add_lane(a, r->resume[i], i);
    }
    if (!b->arrived)
        r->barriers_used &= ~(1u << CLUSTER_BARRIER);
    return opened;
}

/* Lanes whose block has met, but not their cluster. */
static bool waits_for_others(const struct block_run *r)
{
    for (uint32_t i = 0; i < r->lanes.count; i++) {
        if (r->waits[i] == CLUSTER_BARRIER && r->arrivals[i] != arrival_of(r))
            return true;
    }
    return false;
}

static void nap_until_changed(struct block_run *r)
{
    struct cluster *c = r->cluster;
    struct timespec at = timespec_of_ns(deadline_after_ms(NAP_MS));

    pthread_mutex_lock(&c->lock);
    if (!phase_is_over(r) && atomic_load(r->grid->stop) == STOP_NONE)
        pthread_cond_timedwait(&c->changed, &c->lock, &at);
    pthread_mutex_unlock(&c->lock);
}

bool cluster_sleep(struct block_run *r)
{
    if (!r->cluster || !waits_for_others(r))
        return false;
    for (unsigned i = 0; i < YIELDS && !phase_is_over(r); i++)
        sched_yield();
    while (!phase_is_over(r)) {
        nap_until_changed(r);
        check_clock(r);
    }
    return true;
}

/* ---- shared memory ---- */

uint8_t *cluster_shared(const struct block_run *r, uint64_t offset, uint32_t bytes)
{
    uint64_t rank = offset >> CLUSTER_RANK_SHIFT, at = offset & CLUSTER_OFFSET_MASK;

    if (!r->cluster || rank < 1 || rank > r->cluster->blocks || at > r->shared_bytes || bytes > r->shared_bytes - at)
        return NULL;
    return r->cluster->members[rank - 1]->shared + at;
}

bool cluster_own(const struct block_run *r, uint64_t offset)
{
    uint64_t rank = offset >> CLUSTER_RANK_SHIFT;

    return rank == 0 || rank == r->rank + 1;
}

/* mapa. A cluster of one block has its own addresses only. mode: OP_SHARED, offsets in the window of shared memory; or OP_GENERIC. */
void address_in_cluster(struct lanes *l, const struct op *o)
{
    const struct block_run *r = l->run;
    const uint32_t          blocks = r->cluster ? r->cluster->blocks : 1;
    const uint64_t          window = o->mode == OP_GENERIC ? SHARED_WINDOW : 0;
    const uint64_t         *a_ = LANE(uint64_t, o->a);
    const uint32_t         *rank = LANE(uint32_t, o->b);
    uint64_t               *d_ = LANE(uint64_t, o->d);

    LANES_EACH(if (rank[i] >= blocks) block_fault(l, FAULT_TRAP, i, "block %u of a cluster of %u", rank[i], blocks);
               if (a_[i] - window >= WINDOW_BYTES)
                   block_fault(l, FAULT_TRAP, i, "mapa of 0x%llx, which is not in shared memory", (unsigned long long)a_[i]);
               d_[i] = r->cluster ? window + ((a_[i] - window) & CLUSTER_OFFSET_MASK) + ((rank[i] + 1ull) << CLUSTER_RANK_SHIFT) : a_[i]);
}

/* getctarank: which block's shared memory an address is in. mode: as of mapa. */
void rank_in_cluster(struct lanes *l, const struct op *o)
{
    const struct block_run *r = l->run;
    const uint64_t          window = o->mode == OP_GENERIC ? SHARED_WINDOW : 0;
    const uint64_t         *a_ = LANE(uint64_t, o->a);
    uint32_t               *d_ = LANE(uint32_t, o->d);

    LANES_EACH(const uint64_t rank = (a_[i] - window) >> CLUSTER_RANK_SHIFT; d_[i] = rank ? (uint32_t)rank - 1 : r->rank);
}
