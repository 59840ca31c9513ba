/* Digest fields of RFC 9530: the digest that a body must have, the one it has, and the one that a client wants. Two algorithms: sha-256,
 * and crc32c, whose four bytes are in network order. Independent of requests and the server. */
#pragma once

#include "base/arena.h"
#include "base/digests/crc32c.h"
#include "base/digests/digest.h"
#include "base/problem.h"

enum digest_algorithm {
    DIGEST_NONE = 0,
    DIGEST_SHA_256 = 1 << 0,
    DIGEST_CRC32C = 1 << 1,
};

enum { DIGEST_FIELD_BYTES = 128 }; /* a field with all algorithms, and its NUL */

/* The chosen digests of bytes that arrive in pieces. */
struct body_digest {
    unsigned      algorithms; /* bits of enum digest_algorithm */
    struct sha256 sha_256;
    uint32_t      crc32c;
};
void body_digest_init(struct body_digest *d, unsigned algorithms);
void body_digest_add(struct body_digest *d, struct span piece);
/* "sha-256=:…:, crc32c=:…:". Finishes the digest: no more bytes can be added. */
void body_digest_text(struct body_digest *d, char out[DIGEST_FIELD_BYTES]);

/* The contents of a Content-Digest. */
struct expected_digest {
    unsigned      algorithms;
    unsigned char sha_256[SHA256_BYTES];
    unsigned char crc32c[CRC32C_BYTES];
};
/* INVALID_HEADER when the field is malformed, UNSUPPORTED_DIGEST when it has no supported algorithm. Other algorithms beside supported
 * ones are ignored. */
enum status digest_expected(struct span field, struct arena *a, struct expected_digest *out, struct problem *why);
/* DIGEST_MISMATCH names both digests; `note` ends its detail. Finishes d, which must have e's algorithms. */
enum status digest_compare(const struct expected_digest *e, struct body_digest *d, const char *note, struct problem *why);

/* The preferred algorithm in Want-Content-Digest or Want-Repr-Digest (`name`); DIGEST_NONE when the field is absent or wants no
 * supported one. INVALID_HEADER when it is malformed. */
enum status digest_wanted(const char *name, struct span field, enum digest_algorithm *out, struct problem *why);
