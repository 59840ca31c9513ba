/* Which addresses are local, and which others are refused. */
#include <criterion/criterion.h>

#include "config/bind.h"

Test(bind, local_addresses)
{
    static const char *const local[] = {"127.0.0.1:8080", "127.9.9.9:0", "[::1]:80", "localhost:1", "unix:/run/x.sock"};
    static const char *const other[] = {":8080",       "0.0.0.0:80",     "[::]:80",
                                        "10.0.0.1:80", "example.com:80", "127.0.0.1.example.com:80",
                                        "[::2]:1",     "128.0.0.1:1",    "localhost.example.com:1"};

    for (size_t i = 0; i < COUNT(local); i++)
        cr_assert(address_is_local(local[i]), "%s", local[i]);
    for (size_t i = 0; i < COUNT(other); i++)
        cr_assert_not(address_is_local(other[i]), "%s", other[i]);
}

static enum status check_with(const char *listen, const char *tokens, const char *cert, bool insecure, bool plaintext, struct problem *why)
{
    struct config c = {.tokens = (char *)(uintptr_t)tokens,
                       .tls_cert = (char *)(uintptr_t)cert,
                       .insecure_no_auth = insecure,
                       .allow_plaintext = plaintext};

    c.listen.items[c.listen.count++] = (char *)(uintptr_t)listen;
    return bind_check(&c, why);
}

static enum status check(const char *listen, const char *tokens, bool insecure, bool plaintext, struct problem *why)
{
    return check_with(listen, tokens, "", insecure, plaintext, why);
}

Test(bind, refusals_say_what_to_do)
{
    struct problem why = {0};

    cr_assert_eq(check("127.0.0.1:1", "", false, false, &why), STATUS_OK);
    cr_assert_eq(check(":1", "", false, true, &why), STATUS_INVALID_REQUEST);
    cr_assert(strstr(why.detail, "--tokens") && strstr(why.detail, "--insecure-no-auth"));
    cr_assert_eq(check(":1", "tokens.json", false, false, &why), STATUS_INVALID_REQUEST);
    cr_assert(strstr(why.detail, "--allow-plaintext"));
    cr_assert_eq(check(":1", "tokens.json", false, true, &why), STATUS_OK);
    cr_assert_eq(check(":1", "", true, true, &why), STATUS_OK);
    cr_assert_eq(check_with(":1", "tokens.json", "chain.pem", false, false, &why), STATUS_OK);
    cr_assert_eq(check_with(":1", "", "chain.pem", false, false, &why), STATUS_INVALID_REQUEST);
}
