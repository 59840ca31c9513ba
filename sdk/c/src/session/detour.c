/* Long transfers around the router. */
#include "session/detour.h"

#include <string.h>

#include "base/clock.h"

static bool is_other(const struct endpoint *a, const struct endpoint *b)
{
    return a->scheme != b->scheme || strcmp(a->authority, b->authority) != 0;
}

void detour_make(struct detour *d, const gpurest_client *c, const struct json *session)
{
    const char *url = json_text_or(json_member(session, "endpoint"), NULL);

    if (!url || d->made || pool_init_beside(&d->pool, &c->pool, url))
        return;
    d->made = is_other(&d->pool.target.endpoint, &c->pool.target.endpoint);
    if (!d->made)
        pool_finish(&d->pool);
    else if (d->pool.target.connect_timeout_ms > DETOUR_CONNECT_MS)
        d->pool.target.connect_timeout_ms = DETOUR_CONNECT_MS;
}

void detour_finish(struct detour *d)
{
    if (d->made)
        pool_finish(&d->pool);
}

static bool is_wanted(struct detour *d, gpurest_client *c, const struct exchange *x)
{
    if (!d->made || exchange_body_bytes(x) + x->into_bytes < DETOUR_BYTES_MIN || clock_ms() < atomic_load(&d->not_before_ms))
        return false;
    return !client_closed(c);
}

gpurest_status detour_perform(struct detour *d, gpurest_client *c, struct exchange *x)
{
    gpurest_status st;
    bool           around = is_wanted(d, c, x);

    x->through = around ? &d->pool : NULL;
    st = client_perform(c, x);
    if (around && !x->through)
        atomic_store(&d->not_before_ms, clock_ms() + DETOUR_PAUSE_MS);
    return st;
}
