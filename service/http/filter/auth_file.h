/* The tokens file, read into a plain array. */
#pragma once

#include "base/digests/digest.h"
#include "base/problem.h"
#include "limits.h"

struct caller;

struct auth_token {
    char           name[CALLER_NAME_BYTES];
    unsigned char  hash[SHA256_BYTES];
    unsigned       scopes; /* bits of enum scope; SCOPE_ANY is always set */
    unsigned       sessions_max;
    uint64_t       memory_max_bytes;
    uint32_t       requests_per_s; /* REQUESTS_PER_S_UNSET when the file does not say */
    uint64_t       expires_wall_s; /* 0 = never */
    struct caller *caller;         /* set by the function's caller */
};

/* *out is one malloc'ed array, never NULL. The file must belong to root or to the service's user, and nobody else may have write access.
 * Tokens with the same name belong to one caller and must agree in scopes and quotas; each token may occur once. Problems name the
 * entry, never the file or a hash. */
enum status auth_file_read(const char *path, struct auth_token **out, size_t *count, struct problem *why);
