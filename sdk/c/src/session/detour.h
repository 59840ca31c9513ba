/* Long transfers of a session around the router of a fleet: straight to its node, at the address that the session tells. */
#ifndef GPUREST_SDK_DETOUR_H
#define GPUREST_SDK_DETOUR_H

#include <stdatomic.h>

#include "base/json.h"
#include "client/client.h"

/* Zeroed: there is none. */
struct detour {
    bool                  made;
    struct pool           pool;
    atomic_uint_least64_t not_before_ms; /* the node did not answer: the router carries all until then */
};

/* By the member "endpoint" of a session. None where it is missing, the client's own address, or less safe than that. The first one stays. */
void detour_make(struct detour *d, const gpurest_client *c, const struct json *session);
void detour_finish(struct detour *d);
/* As client_perform(): through the detour if the exchange moves enough bytes, and through the router if the node does not answer. */
gpurest_status detour_perform(struct detour *d, gpurest_client *c, struct exchange *x);

#endif
