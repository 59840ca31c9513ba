/* A bucket of `burst` tokens that is full again at full_ns has a token left if full_ns is at most (burst - 1) intervals ahead. The state is one
 * word, so taking a token is one compare-and-swap. */
#include "base/rate.h"

static bool has_token(uint64_t full_ns, uint64_t interval_ns, uint32_t burst, uint64_t now, uint64_t *wait_ns)
{
    uint64_t ahead = full_ns > now ? full_ns - now : 0;
    uint64_t most = interval_ns * (burst - 1);

    *wait_ns = ahead > most ? ahead - most : 0;
    return ahead <= most;
}

bool rate_has(const struct rate_bucket *b, uint64_t interval_ns, uint32_t burst, uint64_t now, uint64_t *wait_ns)
{
    return has_token(atomic_load_explicit(&b->full_ns, memory_order_relaxed), interval_ns, burst, now, wait_ns);
}

bool rate_take(struct rate_bucket *b, uint64_t interval_ns, uint32_t burst, uint64_t now, uint64_t *wait_ns)
{
    uint64_t full_ns = atomic_load_explicit(&b->full_ns, memory_order_relaxed);

    do {
        if (!has_token(full_ns, interval_ns, burst, now, wait_ns))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&b->full_ns, &full_ns, (full_ns > now ? full_ns : now) + interval_ns,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}
