/* A ring of fixed slots in shared memory, one producer and one consumer. Each side is one thread at a time.
 *
 * Both sides distrust the other: each keeps its own index privately, copies a slot out before it looks at it, and finds out
 * impossible indices instead of following them. `head` is written by the producer alone, `tail` and `sleeping` by the consumer. */
#ifndef GPUREST_IPC_RING_H
#define GPUREST_IPC_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "ipc/bounds.h"
#include "limits.h"

enum { RING_LINE_BYTES = 64 }; /* what a processor moves between cores at once: the two sides' words lie apart */

struct ring_shared {
    _Alignas(RING_LINE_BYTES) _Atomic uint32_t head;     /* slots pushed since the start, wraps; the futex word */
    _Alignas(RING_LINE_BYTES) _Atomic uint32_t tail;     /* slots popped since the start, wraps */
    _Alignas(RING_LINE_BYTES) _Atomic uint32_t sleeping; /* 1: a push must wake the consumer */
    _Alignas(RING_LINE_BYTES) unsigned char slots[];
};

struct ring {
    struct ring_shared *shared;     /* borrowed from the shm */
    uint32_t            slot_bytes; /* of payload */
    _Atomic uint32_t    own;        /* producer: head; consumer: tail; atomic, so that others may look */
};

/* Bytes of shared memory a ring takes, a multiple of RING_LINE_BYTES. slot_bytes <= COMMAND_BYTES_MAX. */
size_t ring_bytes(uint32_t slot_bytes);
/* Has the pages mapped that short messages take: the first one of each slot. A slot that was never full of a long message costs no more. */
void ring_populate(void *at, uint32_t slot_bytes);
/* `at` is zeroed memory of ring_bytes(), aligned to RING_LINE_BYTES. Either side calls it once before its first use. */
void ring_init(struct ring *r, void *at, uint32_t slot_bytes);

/* Producer. OVERLOADED: full. INTERNAL: the other side wrote impossible indices, or bytes > slot_bytes. */
enum status ring_push(struct ring *r, const void *data, size_t bytes);

/* Consumer. Copies one slot to `to` (room >= slot_bytes) and frees it. PENDING: empty. INTERNAL: impossible index or length. */
enum status ring_pop(struct ring *r, void *to, size_t *bytes);
/* Consumer: something may be popped, or the indices are impossible. */
bool ring_ready(const struct ring *r);
/* Consumer: sleeps until a push, a poke, or timeout_ns; may return early. The caller looks again by itself. */
void ring_wait(struct ring *r, uint64_t timeout_ns);
/* The same for a consumer whose thread that sleeps is not the one that pops: until something was pushed behind `position`, which is
 * ring_position() taken where the popping is serialised. Leaves the sleeping flag alone. */
void     ring_wait_at(struct ring *r, uint32_t position, uint64_t timeout_ns);
uint32_t ring_position(const struct ring *r);
/* Whether pushes wake the consumer while it is inside ring_wait(). Off while somebody spins on its behalf; the one who turns it on
 * again must look at the ring once more afterwards. Any thread of the consumer's process. */
void ring_set_sleeping(struct ring *r, bool sleeping);
/* Wakes the consumer without a push. Any thread. */
void ring_poke(struct ring *r);

/* Between two looks of a spin: leaves the core to its other thread. */
static inline void ring_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
