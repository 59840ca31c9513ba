/* SHA-256 (FIPS 180-4) by nettle, and constant-time comparison. Thread-safe: no shared state. */
#pragma once

#include "base/span.h"

enum { SHA256_BYTES = 32, SHA256_HEX_BYTES = 65 };

struct sha256 {
    _Alignas(16) unsigned char state[256]; /* nettle's context; digest.c checks that it fits */
};

void digest_init(struct sha256 *h);
void digest_add(struct sha256 *h, const void *data, size_t bytes);
void digest_add_u64(struct sha256 *h, uint64_t value);
/* Adds the length as 8 bytes, then the bytes, so that different lists of fields have different hashes. */
void digest_add_field(struct sha256 *h, struct span field);
/* Call digest_init before using h again. */
void digest_end(struct sha256 *h, unsigned char out[SHA256_BYTES]);
/* Of these bytes alone. */
void digest_span(struct span bytes, unsigned char out[SHA256_BYTES]);
/* Lower case, NUL-terminated. */
void digest_hex(const unsigned char digest[SHA256_BYTES], char out[SHA256_HEX_BYTES]);
/* False: it is not 64 hexadecimal digits. */
bool digest_of_hex(struct span hex, unsigned char out[SHA256_BYTES]);
/* Constant time. */
bool bytes_equal_secret(const void *a, const void *b, size_t bytes);
