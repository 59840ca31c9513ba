/* A ring of fixed slots in shared memory, one producer and one consumer. Each side is one thread at a time.
 *
 * Neither side trusts the other: each keeps its own index privately, copies a slot out before reading it, and detects impossible indices
 * instead of following them. The producer alone writes `head`; the consumer alone writes `tail` and `sleeping`. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "ipc/bounds.h"
#include "limits.h"

enum { RING_LINE_BYTES = 64 }; /* the unit that moves between cores: the words of the two sides lie in different ones */

struct ring_shared {
    _Alignas(RING_LINE_BYTES) _Atomic uint32_t head;     /* slots pushed since the start, wraps; the futex word */
    _Alignas(RING_LINE_BYTES) _Atomic uint32_t tail;     /* slots popped since the start, wraps */
    _Alignas(RING_LINE_BYTES) _Atomic uint32_t sleeping; /* 1: a push must wake the consumer */
    _Alignas(RING_LINE_BYTES) unsigned char slots[];
};

struct ring {
    struct ring_shared *shared;     /* borrowed from the shm */
    uint32_t            slot_bytes; /* of payload */
    _Atomic uint32_t    own;        /* producer: head; consumer: tail; atomic, so that other threads may read it */
};

/* Bytes of shared memory for a ring, a multiple of RING_LINE_BYTES. slot_bytes <= COMMAND_BYTES_MAX. */
size_t ring_bytes(uint32_t slot_bytes);
/* Maps the pages that short messages use: the first page of each slot. Other pages cost nothing until a long message uses them. */
void ring_populate(void *at, uint32_t slot_bytes);
/* `at` is zeroed memory of ring_bytes(), aligned to RING_LINE_BYTES. Either side calls it once before its first use. */
void ring_init(struct ring *r, void *at, uint32_t slot_bytes);

/* Producer. OVERLOADED: full. INTERNAL: the other side wrote impossible indices, or bytes > slot_bytes. */
enum status ring_push(struct ring *r, const void *data, size_t bytes);

/* Consumer. Copies one slot to `to` (room >= slot_bytes) and frees it. PENDING: empty. INTERNAL: impossible index or length. */
enum status ring_pop(struct ring *r, void *to, size_t *bytes);
/* Consumer: a slot can be popped, or the indices are impossible. */
bool ring_ready(const struct ring *r);
/* Consumer: sleeps until a push, a poke, or timeout_ns; may return early, so the caller checks again. */
void ring_wait(struct ring *r, uint64_t timeout_ns);
/* The same for a consumer that sleeps on another thread than it pops on: until something was pushed behind `position`, which is
 * ring_position() read where popping is serialised. Leaves the sleeping flag alone. */
void     ring_wait_at(struct ring *r, uint32_t position, uint64_t timeout_ns);
uint32_t ring_position(const struct ring *r);
/* Whether pushes wake the consumer inside ring_wait(). Off while another thread spins for it; who turns it on must check the ring once
 * more afterwards. Any thread of the consumer's process. */
void ring_set_sleeping(struct ring *r, bool sleeping);
/* Wakes the consumer without a push. Any thread. */
void ring_poke(struct ring *r);
