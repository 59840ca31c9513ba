/* Digest fields: known answers, refusals and their texts, and clients' preferences. */
#include <criterion/criterion.h>

#include "http/message/integrity.h"

#define SHA_OF_ABC "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
#define CRC_OF_ABC "Nks/tw=="

static struct arena   arena;
static struct problem why;

static void begin(void)
{
    arena_init(&arena, 1 << 16);
    why = (struct problem){0};
}

static void end(void)
{
    arena_finish(&arena);
}

TestSuite(integrity, .init = begin, .fini = end);

static enum status expect(const char *field, struct expected_digest *out)
{
    return digest_expected(span_of(field), &arena, out, &why);
}

static enum status check(const char *field, const char *body, const char *note)
{
    struct expected_digest e;
    struct body_digest     d;
    enum status            st = expect(field, &e);

    if (st)
        return st;
    body_digest_init(&d, e.algorithms);
    for (const char *p = body; *p; p++)
        body_digest_add(&d, (struct span){p, 1});
    return digest_compare(&e, &d, note, &why);
}

Test(integrity, writes_known_answers)
{
    struct body_digest d;
    char               text[DIGEST_FIELD_BYTES];

    body_digest_init(&d, DIGEST_SHA_256 | DIGEST_CRC32C);
    body_digest_add(&d, SPAN_LITERAL("a"));
    body_digest_add(&d, SPAN_LITERAL("bc"));
    body_digest_text(&d, text);
    cr_assert_str_eq(text, "sha-256=:" SHA_OF_ABC ":, crc32c=:" CRC_OF_ABC ":");
    body_digest_init(&d, DIGEST_CRC32C);
    body_digest_add(&d, SPAN_LITERAL("123456789"));
    body_digest_text(&d, text);
    cr_assert_str_eq(text, "crc32c=:4waSgw==:");
    body_digest_init(&d, DIGEST_SHA_256);
    body_digest_text(&d, text);
    cr_assert_str_eq(text, "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:");
}

Test(integrity, what_it_writes_it_takes)
{
    cr_expect_eq(check("sha-256=:" SHA_OF_ABC ":", "abc", ""), STATUS_OK);
    cr_expect_eq(check("crc32c=:" CRC_OF_ABC ":", "abc", ""), STATUS_OK);
    cr_expect_eq(check("crc32c=:" CRC_OF_ABC ":, sha-256=:" SHA_OF_ABC ":", "abc", ""), STATUS_OK);
    cr_expect_eq(check("md5=:AAAA:,  crc32c=:Nks/tw:;x=1", "abc", ""), STATUS_OK, "without padding, with a stranger and a parameter");
    cr_expect_eq(check("crc32c=:AAAAAA==:, crc32c=:" CRC_OF_ABC ":", "abc", ""), STATUS_OK, "the last one counts");
    cr_expect_eq(check("crc32c=:AAAAAA==:", "", ""), STATUS_OK, "an empty body");
}

Test(integrity, a_mismatch_names_both)
{
    cr_assert_eq(check("crc32c=:AAAAAA==:", "abc", "; and so on"), STATUS_DIGEST_MISMATCH);
    cr_expect_str_eq(why.detail, "crc32c of the body: expected :AAAAAA==:, computed :" CRC_OF_ABC ":; and so on");
    cr_assert_eq(check("sha-256=:" SHA_OF_ABC ":", "abd", ""), STATUS_DIGEST_MISMATCH);
    cr_expect(strstr(why.detail, "expected :" SHA_OF_ABC ":, computed :"));
    cr_expect_eq(check("sha-256=:" SHA_OF_ABC ":, crc32c=:AAAAAA==:", "abc", ""), STATUS_DIGEST_MISMATCH, "one of two is wrong");
    cr_expect(strstr(why.detail, "crc32c"));
}

Test(integrity, no_known_algorithm)
{
    static const char *const strange[] = {"", " ", "md5=:AAAA:", "sha-512=:AAAA:, md5=:AAAA:", "sha-256-x=:AAAA:", "crc32=:AAAA:"};
    struct expected_digest   e;

    for (size_t i = 0; i < COUNT(strange); i++)
        cr_expect_eq(expect(strange[i], &e), STATUS_UNSUPPORTED_DIGEST, "%s", strange[i]);
    cr_expect(strstr(why.detail, "sha-256") && strstr(why.detail, "crc32c"));
}

Test(integrity, malformed_fields)
{
    static const char *const bad[] = {
        "sha-256",
        "sha-256=",
        "sha-256=abc",
        "sha-256=5",
        "sha-256=\"" SHA_OF_ABC "\"",
        "sha-256=(:" SHA_OF_ABC ":)",
        "sha-256=" SHA_OF_ABC,
        "sha-256=:" SHA_OF_ABC,
        "sha-256::" SHA_OF_ABC ":",
        "SHA-256=:" SHA_OF_ABC ":",
        "sha-256=:" SHA_OF_ABC ":,",
        "sha-256=:" SHA_OF_ABC ": x",
        "sha-256=:" SHA_OF_ABC SHA_OF_ABC ":",
        "sha-256=::",
        "sha-256=:AAAA:",                                          /* too short */
        "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFaE=:x", /* after the end */
        "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa1=:",  /* unused bits */
        "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa==:",  /* 31 bytes */
        "crc32c=:Nks/twA=:",
        "crc32c=:Nks=tw==:",
        "crc32c=:Nks/tw=:",
        "crc32c=:Nks/tw===:",
        "crc32c=:N:",
        "md5=5, crc32c=:" CRC_OF_ABC ":",
        "crc32c=:" CRC_OF_ABC ":, md5",
    };
    struct expected_digest e;

    for (size_t i = 0; i < COUNT(bad); i++)
        cr_expect_eq(expect(bad[i], &e), STATUS_INVALID_HEADER, "%s", bad[i]);
}

static enum digest_algorithm wanted(const char *field)
{
    enum digest_algorithm got = DIGEST_NONE;

    cr_expect_eq(digest_wanted("Want-Content-Digest", span_of(field), &got, &why), STATUS_OK, "%s: %s", field, why.detail);
    return got;
}

Test(integrity, preferences)
{
    cr_expect_eq(wanted(""), DIGEST_NONE);
    cr_expect_eq(wanted("sha-256=1"), DIGEST_SHA_256);
    cr_expect_eq(wanted("crc32c=1"), DIGEST_CRC32C);
    cr_expect_eq(wanted("crc32c=5, sha-256=5"), DIGEST_SHA_256);
    cr_expect_eq(wanted("sha-256=5, crc32c=6;x, sha-512=10"), DIGEST_CRC32C);
    cr_expect_eq(wanted("sha-256=0"), DIGEST_NONE);
    cr_expect_eq(wanted("sha-256=9, sha-256=0, crc32c=1"), DIGEST_CRC32C);
    cr_expect_eq(wanted("sha-512=10"), DIGEST_NONE);
}

Test(integrity, malformed_preferences)
{
    static const char *const bad[] = {"sha-256",      "sha-256=",   "sha-256=11",  "sha-256=-1", "sha-256=1.0", "sha-256=:AAAA:",
                                      "sha-256=high", "sha-256=1,", "sha-256 = 1", "sha-512=99", "(1)"};
    enum digest_algorithm    got;

    for (size_t i = 0; i < COUNT(bad); i++)
        cr_expect_eq(digest_wanted("Want-Repr-Digest", span_of(bad[i]), &got, &why), STATUS_INVALID_HEADER, "%s", bad[i]);
    cr_expect(strstr(why.detail, "Want-Repr-Digest"));
}
