/* A table of fixed size with a few places for each hash of an address. A new address takes the least recently used place. */
#include "http/filter/auth_throttle.h"
#include "http/bounds.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"
#include "base/random.h"
#include "base/rate.h"

struct place {
    unsigned char        address[PEER_ADDRESS_BYTES];
    uint64_t             used_ns; /* 0: free */
    struct rate_bucket   wrong;
    const struct caller *known[AUTH_THROTTLE_CALLERS_KNOWN]; /* callers admitted from this address; compared, never followed */
    unsigned             next_known;
};

struct auth_throttle {
    unsigned        per_minute;
    uint64_t        seed; /* of the hash, so that nobody outside can choose colliding addresses */
    pthread_mutex_t lock; /* guards the places */
    struct place    places[AUTH_THROTTLE_SETS][AUTH_THROTTLE_PLACES];
};

struct auth_throttle *auth_throttle_create(unsigned per_minute)
{
    struct auth_throttle *g = calloc(1, sizeof *g);

    if (!g || !random_bytes(&g->seed, sizeof g->seed)) {
        free(g);
        return NULL;
    }
    g->per_minute = per_minute;
    pthread_mutex_init(&g->lock, NULL);
    return g;
}

void auth_throttle_destroy(struct auth_throttle *g)
{
    if (!g)
        return;
    pthread_mutex_destroy(&g->lock);
    free(g);
}

static struct place *set_of(struct auth_throttle *g, const unsigned char address[PEER_ADDRESS_BYTES])
{
    uint64_t h = g->seed;

    for (size_t i = 0; i < PEER_ADDRESS_BYTES; i++)
        h = (h ^ address[i]) * 0x9e3779b97f4a7c15u;
    return g->places[(h >> 32) % AUTH_THROTTLE_SETS];
}

/* The address's place; takes one if it has none. */
static struct place *place_of(struct auth_throttle *g, const unsigned char address[PEER_ADDRESS_BYTES])
{
    struct place *set = set_of(g, address), *oldest = set;

    for (struct place *p = set; p < set + AUTH_THROTTLE_PLACES; p++) {
        if (p->used_ns && memcmp(p->address, address, sizeof p->address) == 0)
            return p;
        if (p->used_ns < oldest->used_ns)
            oldest = p;
    }
    memset(oldest, 0, sizeof *oldest);
    memcpy(oldest->address, address, sizeof oldest->address);
    return oldest;
}

static bool is_known(const struct place *p, const struct caller *caller)
{
    for (unsigned i = 0; i < AUTH_THROTTLE_CALLERS_KNOWN; i++)
        if (p->known[i] == caller)
            return true;
    return false;
}

static void make_known(struct place *p, const struct caller *caller)
{
    if (is_known(p, caller))
        return;
    p->known[p->next_known] = caller;
    p->next_known = (p->next_known + 1) % AUTH_THROTTLE_CALLERS_KNOWN;
}

bool auth_throttle_admit(struct auth_throttle *g, const unsigned char address[PEER_ADDRESS_BYTES], const struct caller *caller,
                         uint64_t now, uint64_t *wait_ns)
{
    uint64_t      interval_ns;
    struct place *p;
    bool          admit;

    *wait_ns = 0;
    if (!g->per_minute)
        return true;
    interval_ns = 60 * NS_PER_S / g->per_minute;
    pthread_mutex_lock(&g->lock);
    p = place_of(g, address);
    p->used_ns = now ? now : 1;
    if (caller) {
        admit = rate_has(&p->wrong, interval_ns, g->per_minute, now, wait_ns) || is_known(p, caller);
        if (admit)
            make_known(p, caller);
    } else {
        admit = rate_take(&p->wrong, interval_ns, g->per_minute, now, wait_ns);
    }
    pthread_mutex_unlock(&g->lock);
    return admit;
}
