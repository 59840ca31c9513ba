/* Counts wrong tokens by the address that sent them. An address that sends too many is refused whatever its token, so that guessing
 * reveals nothing. Callers that were admitted from that address before are still admitted: otherwise a client could lock out others with
 * the same address. Thread-safe; blocks only for a short lock. */
#ifndef GPUREST_HTTP_GUESSES_H
#define GPUREST_HTTP_GUESSES_H

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

#endif
