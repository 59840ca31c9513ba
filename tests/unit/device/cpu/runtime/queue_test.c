/* Order, events and the sticky loss of the cpu device's queue. */
#include <criterion/criterion.h>

#include "base/deadline.h"
#include "device/cpu/runtime/queue.h"

static struct cpu_memory *m;
static struct cpu_engine *e;
static struct cpu_queue  *q;

static void start(void)
{
    cr_assert_eq(cpu_memory_create(1 << 24, &m), STATUS_OK);
    cr_assert_eq(cpu_engine_create(m, 2, &e), STATUS_OK);
    cr_assert_eq(cpu_queue_create(m, e, &q), STATUS_OK);
}

static void stop(void)
{
    cpu_queue_destroy(q);
    cpu_engine_destroy(e);
    cpu_memory_destroy(m);
}

TestSuite(cpu_queue, .init = start, .fini = stop);

static enum status wait_for(struct cpu_event *event)
{
    enum status st;

    while ((st = cpu_event_query(q, event, NULL)) == STATUS_PENDING)
        cpu_queue_wait_progress(q, NS_PER_S);
    return st;
}

Test(cpu_queue, transfers_happen_in_order_and_an_event_tells_when)
{
    static char       in[5000], out[5000];
    struct cpu_event *event;
    uint64_t          a, b;

    memset(in, 7, sizeof in);
    cr_assert_eq(cpu_memory_alloc(m, sizeof in, &a), STATUS_OK);
    cr_assert_eq(cpu_memory_alloc(m, sizeof in, &b), STATUS_OK);
    cr_assert_eq(cpu_event_create(&event), STATUS_OK);
    cr_assert_eq(cpu_event_query(q, event, NULL), STATUS_OK, "never recorded");
    cr_assert_eq(cpu_queue_write(q, a, in, sizeof in), STATUS_OK);
    cr_assert_eq(cpu_queue_copy(q, b, a, sizeof in), STATUS_OK);
    cr_assert_eq(cpu_queue_fill(q, b, 0x0102030405060708ull, 8, 2), STATUS_OK);
    cr_assert_eq(cpu_queue_fill(q, b + 16, 0xabcd, 2, 1), STATUS_OK);
    cr_assert_eq(cpu_queue_read(q, out, b, sizeof out), STATUS_OK);
    cr_assert_eq(cpu_event_record(q, event), STATUS_OK);
    cr_assert_eq(wait_for(event), STATUS_OK);
    cr_assert_eq(out[0], 8);
    cr_assert_eq(out[15], 1);
    cr_assert_eq((unsigned char)out[16], 0xcd);
    cr_assert_eq(out[18], 7);
    cr_assert_eq(out[4999], 7);
    cpu_event_destroy(q, event);
}

Test(cpu_queue, events_measure_time_and_may_be_destroyed_while_pending)
{
    struct cpu_event *from, *to, *third;
    uint64_t          a;
    float             us = -1;

    cr_assert_eq(cpu_memory_alloc(m, 1 << 22, &a), STATUS_OK);
    cr_assert_eq(cpu_event_create(&from), STATUS_OK);
    cr_assert_eq(cpu_event_create(&to), STATUS_OK);
    cr_assert_eq(cpu_event_create(&third), STATUS_OK);
    cr_assert_eq(cpu_event_elapsed(from, to, &us), STATUS_INTERNAL);
    cr_assert_eq(cpu_event_record(q, from), STATUS_OK);
    cr_assert_eq(cpu_queue_fill(q, a, 1, 1, 1 << 22), STATUS_OK);
    cr_assert_eq(cpu_event_record(q, third), STATUS_OK);
    cpu_event_destroy(q, third);
    cr_assert_eq(cpu_event_record(q, to), STATUS_OK);
    cr_assert_eq(wait_for(to), STATUS_OK);
    cr_assert_eq(cpu_event_elapsed(from, to, &us), STATUS_OK);
    cr_assert_gt(us, 0);
    cpu_event_destroy(q, from);
    cpu_event_destroy(q, to);
}

Test(cpu_queue, memory_is_freed_behind_the_work_before)
{
    static char out[64];
    uint64_t    a;

    cr_assert_eq(cpu_memory_alloc(m, sizeof out, &a), STATUS_OK);
    cr_assert_eq(cpu_queue_fill(q, a, 5, 1, sizeof out), STATUS_OK);
    cr_assert_eq(cpu_queue_read(q, out, a, sizeof out), STATUS_OK);
    cr_assert_eq(cpu_queue_free(q, a), STATUS_OK);
    cr_assert_eq(cpu_queue_drain(q, NULL), STATUS_OK);
    cr_assert_eq(out[63], 5);
    cr_assert(cpu_memory_left(m, a) == 0);
}

Test(cpu_queue, a_failure_is_sticky_but_what_was_done_before_stays_done)
{
    struct cpu_event *before, *behind;
    struct problem    why = {0};

    cr_assert_eq(cpu_event_create(&before), STATUS_OK);
    cr_assert_eq(cpu_event_create(&behind), STATUS_OK);
    cr_assert_eq(cpu_event_record(q, before), STATUS_OK);
    cr_assert_eq(cpu_queue_free(q, 4096), STATUS_OK, "no such allocation: found out when executed");
    (void)cpu_event_record(q, behind);
    cr_assert_eq(cpu_queue_drain(q, &why), STATUS_DEVICE_ERROR);
    cr_assert_neq(why.detail[0], 0);
    cr_assert_eq(cpu_event_query(q, before, &why), STATUS_OK);
    cr_assert_eq(cpu_queue_fill(q, 0, 0, 1, 0), STATUS_DEVICE_ERROR);
    cpu_event_destroy(q, before);
    cpu_event_destroy(q, behind);
}
