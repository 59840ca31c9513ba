/* Remembers how fast workers are taken. A session that faults and is reset again and again takes one each time, and a start on a GPU takes some
 * hundred milliseconds: with as many warm ones as a second uses up, a reset does not wait for a start. */
#include "pool/workers/reserve.h"

#include "base/deadline.h"

void reserve_note(struct reserve *r, uint64_t now_ns)
{
    unsigned recent = 0;

    r->taken_ns[r->next] = now_ns;
    r->next = (r->next + 1) % WARM_TAKEN_MAX;
    for (unsigned i = 0; i < WARM_TAKEN_MAX; i++)
        recent += r->taken_ns[i] && now_ns - r->taken_ns[i] < WARM_WINDOW_MS * NS_PER_MS;
    if (recent < reserve_wanted(r, now_ns))
        return;
    r->most = recent;
    r->until_ns = now_ns + WARM_KEEP_MS * NS_PER_MS;
}

unsigned reserve_wanted(const struct reserve *r, uint64_t now_ns)
{
    return now_ns < r->until_ns ? r->most : 0;
}
