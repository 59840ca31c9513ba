/* What each caller has used since the service started: time of devices, launches, bytes moved. Counted with every session's work, and kept when
 * the session is gone. */
#include <stdlib.h>

#include "base/metrics.h"
#include "base/threads/held.h"
#include "session/life/internal.h"

struct caller_use *use_of(struct registry *r, const struct tenant *t)
{
    struct caller_use *u = r->uses;

    assert(held(&r->lock));
    while (u && u->owner != t->owner)
        u = u->next;
    if (u || !(u = calloc(1, sizeof *u)))
        return u;
    u->owner = t->owner;
    span_copy(span_first(span_of(t->name ? t->name : ""), sizeof u->name - 1), u->name, sizeof u->name);
    u->next = r->uses;
    r->uses = u;
    return u;
}

void use_add_time(struct session *s, double us)
{
    assert(held(&s->lock));
    s->device_time_us += us;
    atomic_fetch_add(&s->use->device_ns, (uint64_t)(us * 1e3));
}

void use_add_launches(struct session *s, unsigned count)
{
    atomic_fetch_add(&s->launches_finished, count);
    atomic_fetch_add(&s->use->launches, count);
}

void use_add_bytes(struct session *s, bool to_device, uint64_t bytes)
{
    counter_add(to_device ? COUNTER_TRANSFER_TO_DEVICE : COUNTER_TRANSFER_FROM_DEVICE, bytes);
    atomic_fetch_add(to_device ? &s->use->to_device_bytes : &s->use->from_device_bytes, bytes);
}

unsigned caller_list(struct registry *r, struct caller_info *items, unsigned room)
{
    unsigned n = 0;

    pthread_mutex_lock(&r->lock);
    for (const struct caller_use *u = r->uses; u && n < room; u = u->next) {
        const struct account *a = account_find(r, u->owner);
        struct caller_info   *i = &items[n++];

        *i = (struct caller_info){.device_ns = atomic_load(&u->device_ns),
                                  .launches = atomic_load(&u->launches),
                                  .to_device_bytes = atomic_load(&u->to_device_bytes),
                                  .from_device_bytes = atomic_load(&u->from_device_bytes),
                                  .sessions = a ? a->count - a->implicit : 0,
                                  .runs = runs_taken(r, u->owner),
                                  .memory_bytes = a ? a->memory_bytes : 0};
        memcpy(i->name, u->name, sizeof i->name);
    }
    pthread_mutex_unlock(&r->lock);
    return n;
}

unsigned caller_count(struct registry *r)
{
    unsigned n = 0;

    pthread_mutex_lock(&r->lock);
    for (const struct caller_use *u = r->uses; u; u = u->next)
        n++;
    pthread_mutex_unlock(&r->lock);
    return n;
}

void uses_finish(struct registry *r)
{
    struct caller_use *u;

    while ((u = r->uses) != NULL) {
        r->uses = u->next;
        free(u);
    }
}
