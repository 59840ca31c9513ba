/* How often something may happen: a token bucket, kept as the time at which it would be full again. Thread-safe, without a lock. */
#ifndef GPUREST_BASE_RATE_H
#define GPUREST_BASE_RATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed: a full bucket. */
struct rate_bucket {
    _Atomic uint64_t full_ns;
};

/* Takes one of `burst` (> 0) tokens, of which one comes back every interval_ns (> 0). False when none is left: *wait_ns is the time until the
 * next, and nothing was taken. `now` is of the clock of now_ns(). */
bool rate_take(struct rate_bucket *b, uint64_t interval_ns, uint32_t burst, uint64_t now, uint64_t *wait_ns);
/* Whether rate_take() would succeed. */
bool rate_has(const struct rate_bucket *b, uint64_t interval_ns, uint32_t burst, uint64_t now, uint64_t *wait_ns);

#endif
