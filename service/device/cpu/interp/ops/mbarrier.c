/* mbarrier: barriers that are objects in shared memory, as cuda::barrier uses them. Other blocks of a cluster, on other host threads, may
 * arrive at them, too. A waiting thread asks again in its loop; meanwhile others get their turns (device/cpu/interp/run.c). */
#include "device/cpu/interp/decode/decode.h"
#include "device/cpu/interp/ops/access.h"

/* The object's 64 bits, whose layout PTX leaves open. From the low end: arrivals missing in this phase, arrivals expected in each phase,
 * and the number of the phase. A state is the object before the arrival. */
enum { COUNT_BITS = 20, COUNT_MASK = (1 << COUNT_BITS) - 1, PHASE_BIT = 2 * COUNT_BITS };

static uint64_t mbarrier_object(uint64_t phase, uint32_t expected, uint32_t missing)
{
    return phase << PHASE_BIT | (uint64_t)expected << COUNT_BITS | missing;
}

static uint32_t missing_of(uint64_t object)
{
    return object & COUNT_MASK;
}

static uint32_t expected_of(uint64_t object)
{
    return object >> COUNT_BITS & COUNT_MASK;
}

static uint64_t *object_at(struct lanes *l, const struct op *o, uint32_t lane)
{
    uint64_t address = LANE(uint64_t, o->a)[lane] + (uint64_t)o->immediate, offset = address;

    if (o->mode == OP_GENERIC && space_of(&offset) != OP_SHARED)
        block_fault(l, FAULT_ILLEGAL_ADDRESS, lane, "mbarrier at 0x%llx, which is not in shared memory", (unsigned long long)address);
    return (uint64_t *)(void *)lane_pointer(l, OP_SHARED, offset, sizeof(uint64_t), lane);
}

static uint64_t read_object(struct lanes *l, const struct op *o, uint32_t lane)
{
    uint64_t v = __atomic_load_n(object_at(l, o, lane), __ATOMIC_SEQ_CST);

    if (!expected_of(v) && !missing_of(v))
        block_fault(l, FAULT_TRAP, lane, "the mbarrier is not initialised");
    return v;
}

static void mbarrier_initialise(struct lanes *l, const struct op *o)
{
    const uint32_t *count = LANE(uint32_t, o->b);

    LANES_EACH(if (count[i] < 1 || count[i] > COUNT_MASK)
                   block_fault(l, FAULT_TRAP, i, "an mbarrier of %u arrivals, must be 1 to %d", count[i], COUNT_MASK);
               __atomic_store_n(object_at(l, o, i), mbarrier_object(0, count[i], count[i]), __ATOMIC_SEQ_CST));
}

static void mbarrier_invalidate(struct lanes *l, const struct op *o)
{
    LANES_EACH(__atomic_store_n(object_at(l, o, i), 0, __ATOMIC_SEQ_CST));
}

/* drop: later phases do not expect those that arrive. */
static uint64_t arrived(struct lanes *l, uint64_t v, uint32_t count, bool drop, uint32_t lane)
{
    uint32_t expected = expected_of(v) - (drop ? count : 0), missing = missing_of(v);

    if (count < 1 || count > missing || (drop && count > expected_of(v)))
        block_fault(l, FAULT_TRAP, lane, "%u arrivals at an mbarrier that waits for %u", count, missing);
    if (missing > count)
        return mbarrier_object(v >> PHASE_BIT, expected, missing - count);
    return mbarrier_object((v >> PHASE_BIT) + 1, expected, expected);
}

/* The state before. */
static uint64_t arrive_once(struct lanes *l, const struct op *o, uint32_t count, uint32_t lane)
{
    uint64_t *object = object_at(l, o, lane), v;

    do {
        v = read_object(l, o, lane);
    } while (!__atomic_compare_exchange_n(object, &(uint64_t){v}, arrived(l, v, count, o->width, lane), false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST));
    return v;
}

/* c: how many arrive; width: drop. d: the state. */
static void mbarrier_arrive(struct lanes *l, const struct op *o)
{
    const uint32_t *count = LANE(uint32_t, o->c);
    uint64_t       *state = LANE(uint64_t, o->d);

    LANES_EACH(state[i] = arrive_once(l, o, count[i], i));
}

/* Whether the phase of the state in c has ended. */
static void test_state(struct lanes *l, const struct op *o)
{
    const uint64_t *state = LANE(uint64_t, o->c);
    uint8_t        *done = LANE(uint8_t, o->d);

    LANES_EACH(done[i] = read_object(l, o, i) >> PHASE_BIT != state[i] >> PHASE_BIT);
}

/* Whether the latest phase of the parity in c has ended. The running phase has not; the one before has the other parity. */
static void test_parity(struct lanes *l, const struct op *o)
{
    const uint32_t *parity = LANE(uint32_t, o->c);
    uint8_t        *done = LANE(uint8_t, o->d);

    LANES_EACH(done[i] = (read_object(l, o, i) >> PHASE_BIT & 1) != (parity[i] & 1));
}

static void count_missing(struct lanes *l, const struct op *o)
{
    const uint64_t *state = LANE(uint64_t, o->a);
    uint32_t       *to = LANE(uint32_t, o->d);

    LANES_EACH(to[i] = missing_of(state[i]));
}

/* Operand i is the object. */
static struct op mbarrier_op(struct decoder *d, op_fn run, unsigned i)
{
    struct decoded_address at = decode_address(d, operand(d, i), (enum ptx_space)d->insn->space);

    return access_op(run, &at);
}

static bool translate_arrive(struct decoder *d)
{
    struct op o = mbarrier_op(d, mbarrier_arrive, 1);

    o.c = d->insn->operands_count > 2 ? decode_source(d, operand(d, 2), 4) : decode_constant(d, 1, 4);
    o.width = d->insn->action == PTX_DO_ARRIVE_DROP;
    return decode_result(d, o, 8, false);
}

static bool translate_test(struct decoder *d)
{
    struct op o = mbarrier_op(d, d->insn->parity ? test_parity : test_state, 1);

    o.c = decode_source(d, operand(d, 2), d->insn->parity ? 4 : 8);
    return decode_result(d, o, 1, false);
}

bool translate_mbarrier(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    bool                   test = in->action == PTX_DO_TEST_WAIT || in->action == PTX_DO_TRY_WAIT;
    struct op              o;

    if (in->type != PTX_B64 || (in->space != PTX_GENERIC && in->space != PTX_SHARED) || (in->parity && !test))
        return false;
    if (in->action == PTX_DO_PENDING_COUNT)
        return decode_result(d, (struct op){.run = count_missing, .a = decode_source(d, operand(d, 1), 8)}, 4, false);
    if (test)
        return translate_test(d);
    if (in->action == PTX_DO_ARRIVE || in->action == PTX_DO_ARRIVE_DROP)
        return translate_arrive(d);
    if (in->action != PTX_DO_INIT && in->action != PTX_DO_INVAL)
        return false;
    o = mbarrier_op(d, in->action == PTX_DO_INIT ? mbarrier_initialise : mbarrier_invalidate, 0);
    if (in->action == PTX_DO_INIT)
        o.b = decode_source(d, operand(d, 1), 4);
    decode_op(d, o);
    return true;
}

/* Copies are done at once (device/cpu/interp/ops/copy.c), so the arrival comes at once. Without `.noinc` the phase did not expect it
 * before, and nothing changes. */
bool translate_copy_arrival(struct decoder *d)
{
    struct op o = mbarrier_op(d, mbarrier_arrive, 0);

    if (!d->insn->noinc)
        return true;
    o.c = decode_constant(d, 1, 4);
    decode_value(d, o, 8);
    return true;
}
