/* Reads, computes, compares and writes digest fields. */
#include "http/message/integrity.h"

#include <stdio.h>

#include "http/json/json.h"
#include "http/message/structured.h"

enum { WANT_MAX = 10, BASE64_BYTES = 48 };

static const struct algorithm {
    const char           *name;
    enum digest_algorithm bit;
    size_t                bytes;
} algorithms[] = {
    {"sha-256", DIGEST_SHA_256, SHA256_BYTES}, /* first: preferred among equals */
    {"crc32c", DIGEST_CRC32C, CRC32C_BYTES},
};

static const struct algorithm *algorithm_of(struct span key)
{
    for (size_t i = 0; i < COUNT(algorithms); i++)
        if (span_is(key, algorithms[i].name))
            return &algorithms[i];
    return NULL;
}

/* ---- computing ---- */

void body_digest_init(struct body_digest *d, unsigned wanted)
{
    d->algorithms = wanted;
    d->crc32c = 0;
    digest_init(&d->sha_256);
}

void body_digest_add(struct body_digest *d, struct span piece)
{
    if (d->algorithms & DIGEST_SHA_256)
        digest_add(&d->sha_256, piece.data, piece.bytes);
    if (d->algorithms & DIGEST_CRC32C)
        d->crc32c = crc32c_add(d->crc32c, piece.data, piece.bytes);
}

static void end_one(struct body_digest *d, const struct algorithm *a, unsigned char out[SHA256_BYTES])
{
    if (a->bit == DIGEST_SHA_256) {
        digest_end(&d->sha_256, out);
        return;
    }
    for (int i = 0; i < CRC32C_BYTES; i++)
        out[i] = (unsigned char)(d->crc32c >> (24 - 8 * i));
}

static void base64_text(const unsigned char *bytes, size_t n, char out[BASE64_BYTES])
{
    struct buf text;

    buf_init(&text, BASE64_BYTES);
    base64_add(&text, (struct span){(const char *)bytes, n});
    span_copy(buf_span(&text), out, BASE64_BYTES);
    buf_finish(&text);
}

void body_digest_text(struct body_digest *d, char out[DIGEST_FIELD_BYTES])
{
    unsigned char digest[SHA256_BYTES];
    char          text[BASE64_BYTES];
    size_t        used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < COUNT(algorithms); i++) {
        if (!(d->algorithms & algorithms[i].bit))
            continue;
        end_one(d, &algorithms[i], digest);
        base64_text(digest, algorithms[i].bytes, text);
        used += (size_t)snprintf(out + used, DIGEST_FIELD_BYTES - used, "%s%s=:%s:", used ? ", " : "", algorithms[i].name, text);
    }
}

/* ---- expected digests ---- */

/* The padding may be left out. */
static bool decode_digest(struct span text, struct arena *a, struct span *out)
{
    char padded[BASE64_BYTES];
    bool bare = text.bytes % 4 && (text.bytes == 0 || text.data[text.bytes - 1] != '=');

    if (text.bytes > BASE64_BYTES - 4 || !span_copy(text, padded, sizeof padded))
        return false;
    for (; bare && text.bytes % 4; text.bytes++)
        padded[text.bytes] = '=';
    return base64_decode((struct span){padded, text.bytes}, a, out);
}

static unsigned char *place_of(struct expected_digest *e, const struct algorithm *a)
{
    return a->bit == DIGEST_SHA_256 ? e->sha_256 : e->crc32c;
}

static enum status expect_one(const struct field_member *m, struct arena *arena, struct expected_digest *e, struct problem *why)
{
    const struct algorithm *a = algorithm_of(m->key);
    struct span             bytes;

    if (m->item != ITEM_BYTES)
        return problem_set(why, STATUS_INVALID_HEADER, "a digest must be base64 between colons");
    if (!a)
        return STATUS_OK;
    if (!decode_digest(m->text, arena, &bytes))
        return problem_set(why, STATUS_INVALID_HEADER, "the %s digest is not valid base64", a->name);
    if (bytes.bytes != a->bytes)
        return problem_set(why, STATUS_INVALID_HEADER, "a %s digest must have %zu bytes, got %zu", a->name, a->bytes, bytes.bytes);
    memcpy(place_of(e, a), bytes.data, a->bytes);
    e->algorithms |= a->bit;
    return STATUS_OK;
}

enum status digest_expected(struct span field, struct arena *a, struct expected_digest *out, struct problem *why)
{
    struct field_dictionary d;
    struct field_member     m;

    *out = (struct expected_digest){0};
    field_dictionary_init(&d, field);
    while (field_dictionary_next(&d, &m) != ITEM_NONE) {
        enum status st = m.item == ITEM_MALFORMED
                             ? problem_set(why, STATUS_INVALID_HEADER, "Content-Digest must be a dictionary of digests")
                             : expect_one(&m, a, out, why);
        if (st)
            return st;
    }
    return out->algorithms ? STATUS_OK
                           : problem_set(why, STATUS_UNSUPPORTED_DIGEST, "unsupported digest algorithm; send sha-256 or crc32c");
}

enum status digest_compare(const struct expected_digest *e, struct body_digest *d, const char *note, struct problem *why)
{
    struct expected_digest expected = *e;

    for (size_t i = 0; i < COUNT(algorithms); i++) {
        const struct algorithm *a = &algorithms[i];
        unsigned char           computed[SHA256_BYTES];
        char                    wanted[BASE64_BYTES], got[BASE64_BYTES];

        if (!(expected.algorithms & a->bit))
            continue;
        end_one(d, a, computed);
        if (memcmp(computed, place_of(&expected, a), a->bytes) == 0)
            continue;
        base64_text(place_of(&expected, a), a->bytes, wanted);
        base64_text(computed, a->bytes, got);
        return problem_set(why, STATUS_DIGEST_MISMATCH, "%s of the body: expected :%s:, computed :%s:%s", a->name, wanted, got, note);
    }
    return STATUS_OK;
}

/* ---- wanted digests ---- */

static bool preference_of(const struct field_member *m, uint64_t *out)
{
    return m->item == ITEM_INTEGER && span_u64(m->text, out) && *out <= WANT_MAX;
}

enum status digest_wanted(const char *name, struct span field, enum digest_algorithm *out, struct problem *why)
{
    struct field_dictionary d;
    struct field_member     m;
    uint64_t                wanted[COUNT(algorithms)] = {0}, best = 0;

    *out = DIGEST_NONE;
    field_dictionary_init(&d, field);
    while (field_dictionary_next(&d, &m) != ITEM_NONE) {
        const struct algorithm *a = algorithm_of(m.key);
        uint64_t                preference;

        if (m.item == ITEM_MALFORMED || !preference_of(&m, &preference))
            return problem_set(why, STATUS_INVALID_HEADER, "%s must give each algorithm a preference from 0 to %d", name, WANT_MAX);
        if (a)
            wanted[a - algorithms] = preference;
    }
    for (size_t i = 0; i < COUNT(algorithms); i++)
        if (wanted[i] > best) {
            best = wanted[i];
            *out = algorithms[i].bit;
        }
    return STATUS_OK;
}
