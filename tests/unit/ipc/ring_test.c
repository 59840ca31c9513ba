/* The ring: order, fullness, wrapping, hostile indices, and two threads at once. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "ipc/ring.h"

enum { SLOT_BYTES = 24, MESSAGES = 20000 };

static struct ring_shared *m;
static struct ring         producer, consumer;

static void start(void)
{
    m = aligned_alloc(RING_LINE_BYTES, ring_bytes(SLOT_BYTES));
    cr_assert_not_null(m);
    memset(m, 0, ring_bytes(SLOT_BYTES));
    ring_init(&producer, m, SLOT_BYTES);
    ring_init(&consumer, m, SLOT_BYTES);
}

static void end(void)
{
    free(m);
}

TestSuite(ring, .init = start, .fini = end);

Test(ring, an_empty_ring_has_nothing_and_a_full_one_takes_nothing)
{
    uint64_t in, out[SLOT_BYTES / 8];
    size_t   bytes;

    cr_assert_eq(ring_pop(&consumer, out, &bytes), STATUS_PENDING);
    cr_assert_not(ring_ready(&consumer));
    for (in = 0; in < RING_SLOTS; in++)
        cr_assert_eq(ring_push(&producer, &in, sizeof in), STATUS_OK);
    cr_assert_eq(ring_push(&producer, &in, sizeof in), STATUS_OVERLOADED);
    for (uint64_t i = 0; i < RING_SLOTS; i++) {
        cr_assert_eq(ring_pop(&consumer, out, &bytes), STATUS_OK);
        cr_assert_eq(bytes, sizeof in);
        cr_assert_eq(out[0], i);
    }
    cr_assert_eq(ring_pop(&consumer, out, &bytes), STATUS_PENDING);
    cr_assert_eq(ring_push(&producer, &in, sizeof in), STATUS_OK);
}

Test(ring, indices_wrap_past_32_bits)
{
    uint64_t out[SLOT_BYTES / 8];
    size_t   bytes;

    producer.own = consumer.own = UINT32_MAX - 3;
    m->head = m->tail = UINT32_MAX - 3;
    for (uint64_t i = 0; i < 10; i++) {
        cr_assert_eq(ring_push(&producer, &i, sizeof i), STATUS_OK);
        cr_assert_eq(ring_pop(&consumer, out, &bytes), STATUS_OK);
        cr_assert_eq(out[0], i);
    }
}

Test(ring, too_long_a_message_is_refused)
{
    char data[SLOT_BYTES + 1] = {0};

    cr_assert_eq(ring_push(&producer, data, SLOT_BYTES + 1), STATUS_INTERNAL);
    cr_assert_eq(ring_push(&producer, data, SLOT_BYTES), STATUS_OK);
}

Test(ring, a_hostile_head_is_found_out)
{
    static const uint32_t heads[] = {RING_SLOTS + 1, 0x7fffffff, UINT32_MAX, 0x80000000};
    uint64_t              out[SLOT_BYTES / 8];
    size_t                bytes;

    for (unsigned i = 0; i < sizeof heads / sizeof *heads; i++) {
        end();
        start();
        m->head = heads[i];
        cr_assert_eq(ring_pop(&consumer, out, &bytes), STATUS_INTERNAL);
    }
}

Test(ring, a_hostile_tail_is_found_out)
{
    static const uint32_t tails[] = {2, RING_SLOTS, 0x7fffffff, UINT32_MAX - RING_SLOTS};

    for (unsigned i = 0; i < sizeof tails / sizeof *tails; i++) {
        uint64_t in = 1;

        end();
        start();
        cr_assert_eq(ring_push(&producer, &in, sizeof in), STATUS_OK);
        m->tail = tails[i];
        cr_assert_eq(ring_push(&producer, &in, sizeof in), STATUS_INTERNAL);
    }
}

Test(ring, a_hostile_length_is_found_out)
{
    uint64_t in = 1, out[SLOT_BYTES / 8];
    uint32_t length = SLOT_BYTES + 1;
    size_t   bytes;

    cr_assert_eq(ring_push(&producer, &in, sizeof in), STATUS_OK);
    memcpy(m->slots, &length, sizeof length);
    cr_assert_eq(ring_pop(&consumer, out, &bytes), STATUS_INTERNAL);
}

static void *send_all(void *context)
{
    struct ring *r = context;

    for (uint64_t i = 0; i < MESSAGES;)
        i += ring_push(r, &i, sizeof i) == STATUS_OK;
    return NULL;
}

Test(ring, two_threads_lose_and_change_nothing)
{
    uint64_t  out[SLOT_BYTES / 8], expected = 0;
    pthread_t thread;
    size_t    bytes;

    cr_assert_eq(pthread_create(&thread, NULL, send_all, &producer), 0);
    while (expected < MESSAGES) {
        enum status st = ring_pop(&consumer, out, &bytes);

        if (st == STATUS_PENDING) {
            ring_wait(&consumer, NS_PER_S);
            continue;
        }
        cr_assert_eq(st, STATUS_OK);
        cr_assert_eq(out[0], expected);
        expected++;
    }
    pthread_join(thread, NULL);
}
