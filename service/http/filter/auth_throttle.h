/* Wrong tokens by the address that sent them: one that sends too many is refused whatever token it shows, so that guessing tells it
 * nothing. Callers that were let in from that address before are let in all the same, or whoever shares an address could lock them out.
 * Thread-safe; nobody waits but for a short lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "http/bounds.h"
#include "limits.h"

struct auth_throttle;
struct caller;

/* NULL: no memory. per_minute: wrong tokens of one address; 0: unlimited. */
struct auth_throttle *auth_throttle_create(unsigned per_minute);
void                  auth_throttle_destroy(struct auth_throttle *g); /* NULL is a no-op */

/* Judges a token from that address; `caller` is its caller, NULL: none. False: refuse without a reason; *wait_ns until the address is
 * heard again. */
bool auth_throttle_admit(struct auth_throttle *g, const unsigned char address[PEER_ADDRESS_BYTES], const struct caller *caller,
                         uint64_t now, uint64_t *wait_ns);
