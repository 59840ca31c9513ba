/* Small operations without a family: addresses of frames and windows, clocks, traps, naps. */
#include <sched.h>

#include "base/deadline.h"
#include "device/cpu/bounds.h"
#include "device/cpu/interp/cluster.h"
#include "device/cpu/interp/decode/decode.h"

void offset_address(struct lanes *l, const struct op *o)
{
    const uint64_t *a_ = LANE(uint64_t, o->a);

    LANES_SET(uint64_t, o->d, , a_[i] + (uint64_t)o->immediate);
}

void local_address(struct lanes *l, const struct op *o)
{
    uint64_t at = (uint64_t)o->immediate + activation_now(l->run)->local_base;

    LANES_SET(uint64_t, o->d, , at);
}

/* other_blocks: shared memory of the cluster's other blocks counts, too. */
static bool inside_window(const struct block_run *r, enum ptx_space space, bool other_blocks, uint64_t address)
{
    const struct grid_run *g = r->grid;

    switch (space) {
    case PTX_SHARED:
        return address - SHARED_WINDOW < WINDOW_BYTES && (other_blocks || cluster_own(r, address - SHARED_WINDOW));
    case PTX_LOCAL:
        return address - LOCAL_WINDOW < WINDOW_BYTES;
    case PTX_PARAM:
    case PTX_KERNEL_PARAM:
        return address - PARAM_WINDOW < WINDOW_BYTES;
    case PTX_GLOBAL:
    case PTX_GENERIC:
        return address - g->memory_base < g->memory_span;
    case PTX_CONST:
        return false; /* constants are device memory here: they count as global */
    }
    return false;
}

void in_window(struct lanes *l, const struct op *o)
{
    const uint64_t *a_ = LANE(uint64_t, o->a);

    LANES_SET(uint8_t, o->d, , inside_window(l->run, (enum ptx_space)o->mode, o->width, a_[i]));
}

static_assert(CPU_CLOCK_KHZ * 1000ull == NS_PER_S, "%clock counts nanoseconds");

void read_clock(struct lanes *l, const struct op *o)
{
    uint64_t t = o->mode == PTX_SPECIAL_GLOBALTIMER || o->mode == PTX_SPECIAL_GLOBALTIMER_LO || o->mode == PTX_SPECIAL_GLOBALTIMER_HI
                     ? wall_ns()
                     : now_ns();

    if (o->mode == PTX_SPECIAL_CLOCK_HI || o->mode == PTX_SPECIAL_GLOBALTIMER_HI)
        t >>= 32;
    if (o->width == 8)
        LANES_SET(uint64_t, o->d, , t);
    else
        LANES_SET(uint32_t, o->d, , t);
}

void trap(struct lanes *l, const struct op *o)
{
    (void)o;
    LANES_EACH(block_fault(l, FAULT_TRAP, i, "trap"));
}

/* Sleeping would hold up all lanes, perhaps those that it waits for: yielding the core is enough. */
void nap(struct lanes *l, const struct op *o)
{
    (void)l;
    (void)o;
    sched_yield();
}
