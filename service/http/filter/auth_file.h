/* The tokens file, read into a plain array. */
#ifndef GPUREST_HTTP_AUTH_FILE_H
#define GPUREST_HTTP_AUTH_FILE_H

#include "base/digest.h"
#include "base/problem.h"
#include "limits.h"

struct caller;

struct auth_token {
    char           name[CALLER_NAME_BYTES];
    unsigned char  hash[SHA256_BYTES];
    unsigned       scopes; /* of enum scope, SCOPE_ANY always among them */
    unsigned       sessions_max;
    uint64_t       memory_max_bytes;
    uint32_t       requests_per_s; /* REQUESTS_PER_S_UNSET when the file does not say */
    uint64_t       expires_wall_s; /* 0 = never */
    struct caller *caller;         /* filled in by the reader's caller */
};

/* *out is one malloc'ed array, never NULL. The file must be root's or the service's own and nobody else's to write. Two tokens of one name
 * are one caller and must agree in scopes and quotas; no token stands twice.
 * Problems name the entry, never the file or a hash. */
enum status auth_file_read(const char *path, struct auth_token **out, size_t *count, struct problem *why);

#endif
