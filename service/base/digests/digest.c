/* The only file that uses nettle. */
#include "base/digests/digest.h"

#include <nettle/memops.h>
#include <nettle/sha2.h>

_Static_assert(sizeof(struct sha256_ctx) <= sizeof(((struct sha256 *)0)->state), "nettle's context must fit");

static struct sha256_ctx *context(struct sha256 *h)
{
    return (struct sha256_ctx *)(void *)h->state;
}

void digest_init(struct sha256 *h)
{
    nettle_sha256_init(context(h));
}

void digest_add(struct sha256 *h, const void *data, size_t bytes)
{
    if (bytes)
        nettle_sha256_update(context(h), bytes, data);
}

void digest_add_u64(struct sha256 *h, uint64_t value)
{
    digest_add(h, &value, sizeof value);
}

void digest_add_field(struct sha256 *h, struct span field)
{
    digest_add_u64(h, field.bytes);
    digest_add(h, field.data, field.bytes);
}

void digest_end(struct sha256 *h, unsigned char out[SHA256_BYTES])
{
    nettle_sha256_digest(context(h), SHA256_BYTES, out);
}

void digest_span(struct span bytes, unsigned char out[SHA256_BYTES])
{
    struct sha256 h;

    digest_init(&h);
    digest_add(&h, bytes.data, bytes.bytes);
    digest_end(&h, out);
}

void digest_hex(const unsigned char digest[SHA256_BYTES], char out[SHA256_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 0; i < SHA256_BYTES; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[2 * SHA256_BYTES] = '\0';
}

bool bytes_equal_secret(const void *a, const void *b, size_t bytes)
{
    return nettle_memeql_sec(a, b, bytes);
}

bool digest_of_hex(struct span hex, unsigned char out[SHA256_BYTES])
{
    if (hex.bytes != 2 * SHA256_BYTES)
        return false;
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        int high = hex_digit(hex.data[2 * i]), low = hex_digit(hex.data[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}
