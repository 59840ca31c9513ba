/* Wrong tokens by the address that sent them: one that sends too many is refused whatever token it shows, so that guessing tells it
 * nothing. Callers that were let in from that address before are let in all the same, or whoever shares an address could lock them out.
 * Thread-safe; nobody waits but for a short lock. */
#ifndef GPUREST_HTTP_FILTER_AUTH_THROTTLE_H
#define GPUREST_HTTP_FILTER_AUTH_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "http/bounds.h"
#include "limits.h"

struct auth_throttle;
struct caller;

/* NULL without memory. per_minute: wrong tokens of one address; 0: any number. */
struct auth_throttle *auth_throttle_create(unsigned per_minute);
void                  auth_throttle_destroy(struct auth_throttle *g); /* NULL is a no-op */

/* What is to be made of a token that came from there: `caller` is whose it is, NULL: nobody's. False: refuse it without telling which;
 * *wait_ns until the address is heard again. */
bool auth_throttle_admit(struct auth_throttle *g, const unsigned char address[PEER_ADDRESS_BYTES], const struct caller *caller,
                         uint64_t now, uint64_t *wait_ns);

#endif
