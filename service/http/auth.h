/* Who may do what: bearer tokens from a file (their SHA-256 only), or one anonymous local caller when there is none. */
#ifndef GPUREST_HTTP_AUTH_H
#define GPUREST_HTTP_AUTH_H

#include "http/request.h"

struct auth;

/* `path` NULL: no tokens; every request is the caller "anonymous" with all scopes. The file is JSON:
 * {"tokens":[{"name":"alice","sha256":"<64 hex>","scopes":["read","write","compile","launch","metrics","admin"],
 *             "expires"?:"2027-01-01T00:00:00Z","sessions_max"?:8,"memory_max_bytes"?:N,"rate"?:N}]}, rate in requests a second */
enum status auth_create(struct auth **out, const char *path, struct problem *why);
void        auth_destroy(struct auth *a);
/* Reads the file anew (SIGHUP). On failure the old tokens stay. Callers keep their identity by name. Thread-safe. */
enum status auth_reload(struct auth *a, struct problem *why);
bool        auth_has_tokens(const struct auth *a);
/* `header` is the Authorization value. Every stored hash is compared, without early exit. UNAUTHENTICATED or OK. Thread-safe. */
enum status auth_check(struct auth *a, struct span header, struct caller **out, struct problem *why);

#endif
