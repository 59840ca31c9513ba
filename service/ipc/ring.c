/* The single-producer single-consumer ring between front-end and worker. */
#include "ipc/ring.h"

#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/deadline.h"

/* The head of a slot, before its payload. */
struct slot_head {
    uint32_t bytes;
    uint32_t unused;
};

static size_t stride(uint32_t slot_bytes)
{
    size_t all = sizeof(struct slot_head) + slot_bytes;
    return (all + RING_LINE_BYTES - 1) / RING_LINE_BYTES * RING_LINE_BYTES;
}

size_t ring_bytes(uint32_t slot_bytes)
{
    return offsetof(struct ring_shared, slots) + stride(slot_bytes) * RING_SLOTS;
}

void ring_populate(void *at, uint32_t slot_bytes)
{
    const volatile unsigned char *bytes = at;

    for (size_t i = 0; i < ring_bytes(slot_bytes); i += stride(slot_bytes))
        (void)bytes[i];
}

void ring_init(struct ring *r, void *at, uint32_t slot_bytes)
{
    r->shared = at;
    r->slot_bytes = slot_bytes;
    atomic_init(&r->own, 0);
}

static unsigned char *slot_at(const struct ring *r, uint32_t index)
{
    return r->shared->slots + stride(r->slot_bytes) * (index & (RING_SLOTS - 1));
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

void ring_poke(struct ring *r)
{
    futex(&r->shared->head, FUTEX_WAKE, 1, NULL);
}

uint32_t ring_position(const struct ring *r)
{
    return atomic_load_explicit(&r->own, memory_order_relaxed);
}

enum status ring_push(struct ring *r, const void *data, size_t bytes)
{
    uint32_t         own = ring_position(r);
    uint32_t         used = own - atomic_load_explicit(&r->shared->tail, memory_order_acquire);
    struct slot_head head = {(uint32_t)bytes, 0};
    unsigned char   *slot = slot_at(r, own);

    if (used > RING_SLOTS || bytes > r->slot_bytes)
        return STATUS_INTERNAL;
    if (used == RING_SLOTS)
        return STATUS_OVERLOADED;
    memcpy(slot, &head, sizeof head);
    memcpy(slot + sizeof head, data, bytes);
    atomic_store_explicit(&r->own, own + 1, memory_order_relaxed);
    /* Sequentially consistent on both words: either the sleeper sees the new head, or this side sees that it sleeps. */
    atomic_store(&r->shared->head, own + 1);
    if (atomic_load(&r->shared->sleeping))
        ring_poke(r);
    return STATUS_OK;
}

enum status ring_pop(struct ring *r, void *to, size_t *bytes)
{
    uint32_t             own = ring_position(r);
    uint32_t             ready = atomic_load_explicit(&r->shared->head, memory_order_acquire) - own;
    const unsigned char *slot = slot_at(r, own);
    struct slot_head     head;

    if (ready == 0)
        return STATUS_PENDING;
    if (ready > RING_SLOTS)
        return STATUS_INTERNAL;
    memcpy(&head, slot, sizeof head);
    if (head.bytes > r->slot_bytes)
        return STATUS_INTERNAL;
    memcpy(to, slot + sizeof head, head.bytes);
    *bytes = head.bytes;
    atomic_store_explicit(&r->own, own + 1, memory_order_relaxed);
    atomic_store_explicit(&r->shared->tail, own + 1, memory_order_release);
    return STATUS_OK;
}

bool ring_ready(const struct ring *r)
{
    return atomic_load_explicit(&r->shared->head, memory_order_acquire) != ring_position(r);
}

void ring_set_sleeping(struct ring *r, bool sleeping)
{
    atomic_store(&r->shared->sleeping, sleeping);
}

void ring_wait_at(struct ring *r, uint32_t position, uint64_t timeout_ns)
{
    struct timespec timeout = timespec_of_ns(timeout_ns);

    if (atomic_load(&r->shared->head) == position)
        futex(&r->shared->head, FUTEX_WAIT, position, &timeout);
}

void ring_wait(struct ring *r, uint64_t timeout_ns)
{
    ring_set_sleeping(r, true);
    ring_wait_at(r, ring_position(r), timeout_ns);
    ring_set_sleeping(r, false);
}
