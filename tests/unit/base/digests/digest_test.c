/* SHA-256 against the examples of FIPS 180-4, and the field rule. */
#include <criterion/criterion.h>

#include "base/digests/digest.h"

static void hex_of(const char *text, char out[SHA256_HEX_BYTES])
{
    struct sha256 h;
    unsigned char d[SHA256_BYTES], at_once[SHA256_BYTES];

    digest_init(&h);
    digest_add(&h, text, strlen(text));
    digest_end(&h, d);
    digest_span(span_of(text), at_once);
    cr_assert_eq(memcmp(d, at_once, sizeof d), 0);
    digest_hex(d, out);
}

Test(digest, known_answers)
{
    char hex[SHA256_HEX_BYTES];

    hex_of("abc", hex);
    cr_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hex_of("", hex);
    cr_assert_str_eq(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

Test(digest, fields_cannot_be_shifted_into_each_other)
{
    static const char *const pairs[2][2] = {{"ab", "c"}, {"a", "bc"}};
    unsigned char            d[2][SHA256_BYTES];

    for (int i = 0; i < 2; i++) {
        struct sha256 h;
        digest_init(&h);
        digest_add_field(&h, span_of(pairs[i][0]));
        digest_add_field(&h, span_of(pairs[i][1]));
        digest_end(&h, d[i]);
    }
    cr_assert_not(bytes_equal_secret(d[0], d[1], SHA256_BYTES));
    cr_assert(bytes_equal_secret(d[0], d[0], SHA256_BYTES));
}
