/* Digest fields of RFC 9530: what a body must hash to, what it hashes to, and which digest a client wants to have.
 * Two algorithms: sha-256, and crc32c, whose four bytes stand in network order. Knows no request and no server. */
#ifndef GPUREST_HTTP_INTEGRITY_H
#define GPUREST_HTTP_INTEGRITY_H

#include "base/arena.h"
#include "base/crc32c.h"
#include "base/digest.h"
#include "base/problem.h"

enum digest_algorithm {
    DIGEST_NONE = 0,
    DIGEST_SHA_256 = 1 << 0,
    DIGEST_CRC32C = 1 << 1,
};

enum { DIGEST_FIELD_BYTES = 128 }; /* the text of a field with all of them, and its NUL */

/* The digests that were asked for, of bytes that come piece by piece. */
struct body_digest {
    unsigned      algorithms; /* of enum digest_algorithm */
    struct sha256 sha_256;
    uint32_t      crc32c;
};
void body_digest_init(struct body_digest *d, unsigned algorithms);
void body_digest_add(struct body_digest *d, struct span piece);
/* "sha-256=:…:, crc32c=:…:". Ends it: nothing can be added any more. */
void body_digest_text(struct body_digest *d, char out[DIGEST_FIELD_BYTES]);

/* What a Content-Digest says. */
struct expected_digest {
    unsigned      algorithms;
    unsigned char sha_256[SHA256_BYTES];
    unsigned char crc32c[CRC32C_BYTES];
};
/* INVALID_HEADER when the field is malformed, UNSUPPORTED_DIGEST when it names none of ours. Others beside ours are ignored. */
enum status digest_expected(struct span field, struct arena *a, struct expected_digest *out, struct problem *why);
/* DIGEST_MISMATCH names both digests; `note` ends its detail. Ends d, which must have e's algorithms. */
enum status digest_compare(const struct expected_digest *e, struct body_digest *d, const char *note, struct problem *why);

/* What Want-Content-Digest or Want-Repr-Digest (`name`) prefers; DIGEST_NONE when it is absent or wants none of ours.
 * INVALID_HEADER when it is malformed. */
enum status digest_wanted(const char *name, struct span field, enum digest_algorithm *out, struct problem *why);

#endif
