/* Authentication and scopes: bearer tokens from a file (SHA-256 only), or one anonymous caller without a file. */
#pragma once

#include "base/digests/digest.h"
#include "http/message/request.h"

struct auth;

/* A request's token. One thread at a time. */
struct auth_grant {
    unsigned char  hash[SHA256_BYTES];
    struct caller *caller;         /* NULL: no caller, or no token file */
    uint64_t       expires_wall_s; /* 0 = never */
    uint64_t       generation;     /* of the token file that holds this token */
};

/* `path` NULL: no tokens; every request's caller is "anonymous", with all scopes. The file is JSON:
 * {"tokens":[{"name":"alice","sha256":"<64 hex>","scopes":["read","write","compile","launch","metrics","admin"],
 *             "expires"?:"2027-01-01T00:00:00Z","sessions_max"?:8,"memory_max_bytes"?:N,"rate"?:N}]}, rate in requests per second */
enum status auth_create(struct auth **out, const char *path, struct problem *why);
void        auth_destroy(struct auth *a);
/* Reloads the file (SIGHUP). On failure the old tokens stay valid. A caller is identified by its name across reloads. Thread-safe. */
enum status auth_reload(struct auth *a, struct problem *why);
/* The caller of that name; NULL: no token has it. Thread-safe. */
struct caller *auth_caller(struct auth *a, const char *name);
bool           auth_has_tokens(const struct auth *a);
/* `header` is the Authorization value. Compares every stored hash, without early exit. UNAUTHENTICATED or OK. Thread-safe. */
enum status auth_check(struct auth *a, struct span header, struct caller **out, struct problem *why);
/* As auth_check(), and fills *grant for later auth_holds(). */
enum status auth_admit(struct auth *a, struct span header, struct caller **out, struct auth_grant *grant, struct problem *why);
/* Whether the token is still in the file, with the same caller and these scopes, and has not expired. Cheap unless the file was
 * reloaded. Thread-safe. */
bool auth_holds(struct auth *a, struct auth_grant *grant, unsigned scopes);
