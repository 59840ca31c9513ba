/* A rate limit: a token bucket, stored as the time at which it is full again. Thread-safe, without a lock. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A zeroed bucket is full. */
struct rate_bucket {
    _Atomic uint64_t full_ns;
};

/* Takes one of `burst` (> 0) tokens; one is refilled every interval_ns (> 0). False if the bucket is empty: *wait_ns is then the time until the
 * next token. `now` is a time of now_ns(). */
bool rate_take(struct rate_bucket *b, uint64_t interval_ns, uint32_t burst, uint64_t now, uint64_t *wait_ns);
/* True if rate_take() would succeed. */
bool rate_has(const struct rate_bucket *b, uint64_t interval_ns, uint32_t burst, uint64_t now, uint64_t *wait_ns);
