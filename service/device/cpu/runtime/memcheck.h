/* memcheck's knowledge of device memory: one byte of state for each byte of the reserved range, in a second range of addresses. Bytes of
 * state are plain: threads that race for a byte of device memory race only for its state. */
#pragma once

#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>

enum shadow_state {
    SHADOW_FOREIGN, /* of no allocation */
    SHADOW_FRESH,   /* allocated, never written */
    SHADOW_WRITTEN,
};

struct cpu_shadow {
    uint64_t base; /* the range of device addresses */
    uint64_t span;
    uint8_t *state; /* [span] enum shadow_state; the host makes pages at first use */
};

/* Everything is foreign. OUT_OF_MEMORY: the host does not grant the addresses. */
enum status cpu_shadow_create(uint64_t base, uint64_t span, struct cpu_shadow **out);
void        cpu_shadow_destroy(struct cpu_shadow *s); /* NULL is a no-op */

/* Does nothing if s is NULL. The range lies within [base, base + span). State can be set only where it is open, by whole pages: closed
 * pages take no memory, and read as foreign. */
enum status cpu_shadow_open(struct cpu_shadow *s, uint64_t address, uint64_t bytes);
void        cpu_shadow_close(struct cpu_shadow *s, uint64_t address, uint64_t bytes); /* after it was set foreign */
void        cpu_shadow_set(struct cpu_shadow *s, uint64_t address, uint64_t bytes, enum shadow_state state);
/* State travels with the bytes: a copy of unwritten bytes is unwritten, too. */
void cpu_shadow_copy(struct cpu_shadow *s, uint64_t to, uint64_t from, uint64_t bytes);

/* The lowest state of those bytes; bytes > 0. */
static inline enum shadow_state cpu_shadow_lowest(const struct cpu_shadow *s, uint64_t address, uint32_t bytes)
{
    const uint8_t *state = s->state + (address - s->base);
    uint8_t        lowest = state[0];

    for (uint32_t i = 1; i < bytes; i++)
        lowest = state[i] < lowest ? state[i] : lowest;
    return (enum shadow_state)lowest;
}
